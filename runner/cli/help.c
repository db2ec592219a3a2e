/* SPDX-License-Identifier: Apache-2.0 */
/* The help: examples first.  The pages of the manual are made from it (gen-manual.c), so it keeps
 * to a few forms: the first line is "durakit COMMAND ARGUMENTS: what it does."; a line that is
 * indented by two is an example or an option, with two blanks before its description; "Something:"
 * is a heading; "Exit: 0 ...; 1 ...." lists the exit codes, and a text without it gets the usual
 * ones.  What several commands share is added to the help of each, without the options that it does
 * not take.
 */
#include <stdio.h>
#include <string.h>

#include "conformance/checks/topics.h"
#include "core/base/text.h"
#include "runner/cli/operate-help.h"
#include "runner/cli/option-row.h"

static const char of_settings[] =
  "\n"
  "Settings of the provider:\n"
  "  --set KEY=VALUE         one setting; `durakit probe PLUGIN` lists those of a provider\n"
  "  --set-env KEY=VARIABLE  a setting from an environment variable: keeps secrets off the\n"
  "                          command line\n"
  "  --settings FILE         a file with lines of key = value; a relative path in it starts at\n"
  "                          the folder of the file\n";

static const char of_runs[] =
  "\n"
  "The run:\n"
  "  -j, --jobs N            runs N checks at a time (default: processors + 1, at most 4);\n"
  "                          races run alone\n"
  "  --classify N            runs a failed check N more times, to see whether it always fails (1)\n"
  "  --timeout-scale X       multiplies the time limit of each check by X\n"
  "  --suppressions FILE     a file of Valgrind that suppresses findings in other libraries; each\n"
  "                          entry needs a reason (# ...) in the line above it, and must not hide\n"
  "                          the provider\n"
  "  --seed NUMBER           the random seed, for example that of an earlier run\n"
  "  --run-id ID             becomes a part of the names of this run's stores\n"
  "\n"
  "Output:\n"
  "  --format tap|human      default: human on a terminal, otherwise TAP\n"
  "  --out FOLDER            writes results.jsonl there, and the traces and output of failed\n"
  "                          checks; replaces those of an earlier run\n"
  "  --color WHEN            auto, always or never; NO_COLOR is honoured\n"
  "  --verbose               shows passed checks, too\n";

static const char of_all[] =
  "\n"
  "  -h, --help              shows this text; without a command, an overview of all commands\n"
  "  --version               shows the versions of the command, of the ABI and of the contract\n";

static const char of_verdicts[] =
  "\n"
  "Exit: 0 passed; 1 a clause is violated; 2 wrong usage or settings, or the store exists\n"
  "already; 3 the plugin cannot be loaded; 4 the kit, its environment or the store failed; 5 the\n"
  "run is incomplete; 6 memory or race findings only; 7 flaky or unexercised checks only.\n";

static const char of_others[] =
  "\n"
  "Exit: 0 done; 2 wrong usage or settings, or an unknown name; 3 the plugin cannot be loaded;\n"
  "4 the command, its environment or the store failed; 5 the reader has closed the output.\n";

static const char of_servers[] =
  "\n"
  "The server behind the store, for providers that declare `shared` 3.  Without one of these\n"
  "options the checks that need it are skipped, and the result says so:\n"
  "  --store-crash COMMAND   crashes the server at once, as kill -9 does\n"
  "  --store-start COMMAND   starts the server again, and returns when it is reachable\n"
  "  --store-pause COMMAND   pauses the server, as kill -STOP does\n"
  "  --store-resume COMMAND  resumes the paused server\n"
  "  --store-deny COMMAND    revokes the rights of the provider's role on the store {store}\n"
  "  --store-allow COMMAND   grants these rights again\n"
  "  --store-address WHERE   where the server listens: the path of a socket, or HOST:PORT\n"
  "  --through KEY=VALUE     the setting that connects the provider to the kit, which forwards to\n"
  "                          the server; in VALUE, {folder} is a folder that has a socket of the\n"
  "                          same name, {host} and {port} are for TCP\n"
  "Commands are run by sh -c.  In them {store} and $DURAKIT_STORE are the store of the check,\n"
  "{folder} and $DURAKIT_FOLDER the folder of the run.  The kit undoes what they have done, even\n"
  "after a check that was killed.  Use a server that serves nothing else.\n";

static const char general[] =
  "durakit certifies storage providers for durable execution, and operates what runs on them.\n"
  "\n"
  "  durakit certify ./my_provider.so                  runs all required checks\n"
  "  durakit certify sqlite                            an installed plugin, by its name\n"
  "  durakit certify ./x.so --set host=db.example      with a setting of the provider\n"
  "  durakit check ./my_provider.so --only 'cancel/*'  runs some checks\n"
  "  durakit check ./my_provider.so --next             names the next operation to write\n"
  "  durakit list checks                               or clauses, mutants, topics, providers\n"
  "  durakit explain CANCEL-5                          explains a clause, a check or a mutant\n"
  "  durakit probe ./my_provider.so                    shows what the provider declares\n"
  "  durakit repro out/results.jsonl:cancel/mass       runs one recorded failure again\n"
  "  durakit selftest                                  tests the kit itself\n"
  "  durakit clean                                     removes what killed runs have left\n"
  "  durakit bench ./my_provider.so                    measures how fast the provider is\n"
  "  durakit --version\n"
  "\n"
  "On a store that a runtime works on (each with --provider sqlite --set store=orders.db):\n"
  "  durakit start order-1 --name order                starts an instance\n"
  "  durakit status order-1                            shows its status; history: its events\n"
  "  durakit wait order-1 --timeout 1m                 waits until it has ended\n"
  "  durakit raise order-1 paid                        sends an event to it\n"
  "  durakit enqueue account-1 bookings --data 12      sends a message to one of its queues\n"
  "  durakit cancel order-1 --reason 'wrong address'   cancels it; or many, by conditions\n"
  "  durakit instances --status running                lists instances\n"
  "  durakit delete order-1                            deletes it; prune: its old executions\n"
  "  durakit stats                                     prints counts, also for Prometheus\n"
  "\n"
  "durakit COMMAND --help describes a command and its options.\n"
  "\n"
  "Environment:\n"
  "  DURAKIT_PLUGIN_PATH     folders, separated by colons, that are searched for a plugin's name\n"
  "                          before the folder where plugins are installed; a command that is not\n"
  "                          installed also searches the plugins that were built with it\n"
  "  DURAKIT_PROVIDER        the plugin, for commands that work on a store and for probe, if the\n"
  "                          command line names none\n"
  "  DURAKIT_SETTINGS        a file with its settings, as for --settings; --set, --set-env and\n"
  "                          --settings override its keys.  With --provider both variables are\n"
  "                          ignored\n"
  "  TMPDIR                  the folder for the stores and files of a run, while it runs\n"
  "  NO_COLOR                if it is set and not empty, no colours are used\n";

static const char certify[] =
  "durakit certify PLUGIN: runs all checks that the contract requires, with a verdict for each.\n"
  "\n"
  "  durakit certify ./my_provider.so\n"
  "  durakit certify ./my_provider.so -j4 --out results\n"
  "  durakit certify ./my_provider.so --profile runtime  runs the runtime on the provider\n"
  "  durakit certify ./my_provider.so --no-memcheck      faster, without Valgrind\n"
  "  durakit certify ./x.so --set host=db.example --set-env password=DB_PASSWORD\n"
  "  prove -e 'durakit certify --format tap' ./my_provider.so\n"
  "\n"
  "Each check runs natively and, if Valgrind is installed, once more under it (its id then ends\n"
  "in @memcheck).  Valgrind must find no invalid access, no use of undefined bytes and no leak.\n"
  "\n"
  "The kit finds mistakes, not malice.  A provider runs in processes of its own, so that crashes,\n"
  "hangs and early exits are verdicts.  But it runs with your rights, and a provider that is\n"
  "written to deceive the kit can do so.  Certify only what you would also run.\n"
  "\n"
  "Which checks:\n"
  "  --profile WHICH         core (the default) tests the contract, with what the provider\n"
  "                          declares; admin tests durakit.admin/1 alone; runtime runs the\n"
  "                          runtime on the provider, in real time, with the integration tests\n"
  "                          of the design papers; all is core and runtime\n"
  "  --effort HOW            default runs each check also in two of its variations (larger\n"
  "                          payloads, other ids, two handles, ...: CHECK~VARIATION); quick runs\n"
  "                          none of them, deep all of them, under Valgrind too\n"
  "  --no-memcheck           runs no check under Valgrind; the result says so\n";

static const char check[] =
  "durakit check PLUGIN: runs the checks that you select.\n"
  "\n"
  "  durakit check ./my_provider.so --only cancel/locked-row\n"
  "  durakit check ./my_provider.so --only 'token/*,CANCEL-5'\n"
  "  durakit check ./my_provider.so --only lock-stealing --repeat 20\n"
  "  durakit check ./my_provider.so --only 'cancel/*' --memcheck\n"
  "  durakit check ./my_provider.so --only 'run/*'    the runtime on the provider\n"
  "  durakit check ./my_provider.so --next\n"
  "  durakit check ./my_provider.so --only turn/birth --gdb\n"
  "\n"
  "Which checks:\n"
  "  --only WHAT             ids, patterns, clauses, areas or topics, separated by commas; with ~\n"
  "                          also variations: 'queue/*~payload-1025'\n"
  "  --profile WHICH         selects from core (the default), admin, runtime or all\n"
  "  --memcheck              runs the checks under Valgrind; memory/cycle runs only there\n"
  "  --next                  accepts missing operations, and names the next one to write\n"
  "  --repeat N              runs each check up to N times, until it fails\n"
  "  --gdb                   runs the one selected check under gdb, and stops where it begins\n"
  "  --in-process            runs the one selected check in this process, for a debugger; gives\n"
  "                          no verdict\n";

static const char list[] =
  "durakit list WHAT [--json]: lists checks, clauses, mutants, topics or providers, one a line.\n"
  "\n"
  "  durakit list checks\n"
  "  durakit list checks --profile runtime\n"
  "  durakit list clauses --json\n"
  "  durakit list mutants\n"
  "  durakit list providers           in DURAKIT_PLUGIN_PATH, then the installed ones\n"
  "\n"
  "  --profile WHICH         of the checks: core (the default), admin, runtime or all\n"
  "  --json                  prints an array of objects\n";

static const char explain[] =
  "durakit explain ID: explains a check, a clause, a mutant or a topic.\n"
  "\n"
  "  durakit explain cancel/ack-after-deletion\n"
  "  durakit explain CANCEL-5\n"
  "  durakit explain cancel/only-unlocked\n";

static const char probe[] =
  "durakit probe PLUGIN [--json]: loads it in a child process, and shows what it declares.\n"
  "\n"
  "  durakit probe ./my_provider.so\n"
  "  durakit probe sqlite --json\n"
  "\n"
  "Without PLUGIN it loads the plugin that DURAKIT_PROVIDER names, with the settings in the file\n"
  "that DURAKIT_SETTINGS names.  It shows both, and the keys of the given settings without their\n"
  "values.\n"
  "  --json                  prints all of it, as one object\n"
  "  --timeout-scale X       multiplies the time limit of the child by X\n";

static const char repro[] =
  "durakit repro FILE[:CHECK]: runs checks that are recorded in results.jsonl again.\n"
  "\n"
  "  durakit repro out/results.jsonl                      all checks that did not pass\n"
  "  durakit repro out/results.jsonl:cancel/locked-row\n"
  "  durakit repro out/results.jsonl --set-env password=DB_PASSWORD   a setting that was masked\n";

static const char selftest[] =
  "durakit selftest: tests the kit itself.\n"
  "\n"
  "  durakit selftest                 prints one line at the end\n"
  "  durakit selftest --verbose       shows which check catches which mutant; takes longer\n"
  "  durakit selftest --format tap\n"
  "\n"
  "The model must pass all checks, twice and in random order.  Each of its mutants must be caught\n"
  "by the check that is meant for it.  Each provider of the zoo must get the one verdict that it\n"
  "was written for.\n"
  "  --model PLUGIN          the model, if it is not installed\n"
  "  --zoo FOLDER            the folder with the providers of the zoo\n"
  "  -j, --jobs N            runs N at a time (3)\n"
  "\n"
  "Exit: 0 the kit works as it should; 1 some part of it does not; 2 wrong usage or settings;\n"
  "3 the model cannot be loaded; 4 the environment of the kit failed.\n";

static const char clean[] =
  "durakit clean [PLUGIN]: removes what killed runs have left.\n"
  "\n"
  "  durakit clean                                      removes their folders\n"
  "  durakit clean sqlite --set store=/srv/x.db         removes their stores, too\n"
  "\n"
  "  --timeout-scale X       multiplies the time limit for removing each store by X\n";

static const char bench[] =
  "durakit bench PLUGIN: measures how fast the provider is, one workload after the other.\n"
  "\n"
  "  durakit bench ./my_provider.so\n"
  "  durakit bench sqlite --floor ./floor --only turn-1,turn-16\n"
  "\n"
  "The floor is a program that does the least that each workload needs, for comparison.  It reads\n"
  "these lines: set KEY=VALUE for each setting of the provider, about, begin WORKLOAD A B,\n"
  "run MS.  It answers ok, or ok OPERATIONS NANOSECONDS SYNCS.  Without a floor, a row has a\n"
  "ratio only if it compares the provider with itself: turn-4-8 is the rate of 8 callers divided\n"
  "by the rate of 4.\n"
  "  --floor PROGRAM         the floor; it gets a store of its own (a path, or a value for the\n"
  "                          provider's setting), and those lines on its standard input\n"
  "  --only NAMES            turn-1, turn-16, work-1, work-16, fan-in, cancel, cancel-growth,\n"
  "                          cancel-foreign, timers, leases, turn-1-2, turn-2-4, turn-4-8,\n"
  "                          turn-8-16, work-1-2, work-2-4, work-4-8, work-8-16\n"
  "  --pairs N               measures N pairs of slices for each row (7)\n"
  "  --slice MS              the length of a slice (200)\n"
  "  --json                  prints all figures, as one object\n"
  "The stores are made in $TMPDIR, or in /var/tmp: choose the disk that you want to measure.  A\n"
  "missed target is reported, and is no failure: the exit code is 0 if everything was measured.\n";

static const char *const texts[COMMANDS] = {
  [COMMAND_NONE] = general,     [COMMAND_CERTIFY] = certify,   [COMMAND_CHECK] = check,
  [COMMAND_LIST] = list,        [COMMAND_EXPLAIN] = explain,   [COMMAND_PROBE] = probe,
  [COMMAND_REPRO] = repro,      [COMMAND_SELFTEST] = selftest, [COMMAND_CLEAN] = clean,
  [COMMAND_BENCH] = bench,
  [COMMAND_START] = help_of_start,         [COMMAND_STATUS] = help_of_status,
  [COMMAND_WAIT] = help_of_wait,           [COMMAND_HISTORY] = help_of_history,
  [COMMAND_RAISE] = help_of_raise,         [COMMAND_ENQUEUE] = help_of_enqueue,
  [COMMAND_CANCEL] = help_of_cancel,
  [COMMAND_INSTANCES] = help_of_instances, [COMMAND_DELETE] = help_of_delete,
  [COMMAND_PRUNE] = help_of_prune,         [COMMAND_STATS] = help_of_stats,
};

static void
add_topics(struct dk_text *help)
{
  size_t n;
  const struct dk_topic *topics = dk_topics(&n);

  dk_text_puts(help, "\nTopics:");
  for (size_t i = 0; i < n; i++)
    dk_text_printf(help, " %s", topics[i].name);
  dk_text_printf(help, " (durakit explain %s)\n", topics[0].name);
}

void
options_synopsis(enum command command, struct dk_text *arguments, struct dk_text *says)
{
  const char *line = texts[command];
  size_t length = strcspn(line, "\n");
  const char *colon = command == COMMAND_NONE ? NULL : memmem(line, length, ": ", 2);
  size_t front = strlen("durakit ");

  if (colon) {
    front += strlen(options_command_name(command));
    front += line[front] == ' ' ? 1 : 0;
    dk_text_add(arguments, line + front, (size_t)(colon - line) - front);
    front = (size_t)(colon - line) + 2;
  }
  length -= length > 0 && line[length - 1] == '.' ? 1 : 0;
  dk_text_add(says, line + front, length - front);
}

/* ---- what several commands share ------------------------------------------------------------- */

/* "--jobs" in "  -j, --jobs N            runs N"; false if the line describes no option. */
static bool
option_of(const char *line, size_t length, char *ret_name, size_t size)
{
  const char *dashes = length > 3 && line[2] == '-' ? memmem(line, length, "--", 2) : NULL;
  size_t n = dashes ? strspn(dashes + 2, "abcdefghijklmnopqrstuvwxyz-") + 2 : 0;

  if (n == 0 || n >= size || memcmp(line, "  ", 2) != 0)
    return false;
  memcpy(ret_name, dashes, n);
  ret_name[n] = '\0';
  return true;
}

/* The command takes it, and the help does not describe it so far. */
static bool
is_to_tell(const struct dk_text *help, enum command command, const char *name)
{
  for (const char *at = dk_text_str(help); *at; at += strcspn(at, "\n") + 1) {
    char told[40];
    if (option_of(at, strcspn(at, "\n"), told, sizeof(told)) && strcmp(told, name) == 0)
      return false;
  }
  return options_takes(command, name);
}

/* A paragraph without the options of other commands; nothing if all its options are such. */
static void
add_shared(struct dk_text *help, enum command command, const char *paragraph, size_t length)
{
  struct dk_text kept = DK_TEXT_EMPTY;
  bool has_options = false, has_some = false, keep = true;

  for (const char *at = paragraph; at < paragraph + length; at += strcspn(at, "\n") + 1) {
    size_t line = strcspn(at, "\n");
    char name[40];

    if (option_of(at, line, name, sizeof(name))) {
      keep = is_to_tell(help, command, name);
      has_options = true;
      has_some = has_some || keep;
    } else if (*at != ' ') {
      keep = true;
    }
    if (keep)
      dk_text_add(&kept, at, line + 1);
  }
  if (has_some || !has_options) {
    dk_text_puts(help, "\n");
    dk_text_add_text(help, &kept);
  }
  dk_text_done(&kept);
}

/* Each of these texts begins with an empty line, which separates it from the text before. */
static void
add_all_shared(struct dk_text *help, enum command command, const char *text)
{
  while (*text) {
    text++;
    const char *end = strstr(text, "\n\n");
    size_t length = end ? (size_t)(end - text) + 1 : strlen(text);
    add_shared(help, command, text, length);
    text += length;
  }
}

void
options_help_text(enum command command, struct dk_text *help)
{
  bool runs = command == COMMAND_CERTIFY || command == COMMAND_CHECK || command == COMMAND_REPRO;
  bool operates = (OPERATES & (1u << command)) != 0;
  const char *own_exit = strstr(texts[command], "\nExit: ");
  size_t length = own_exit ? (size_t)(own_exit - texts[command]) : strlen(texts[command]);

  dk_text_add(help, texts[command], length);
  if (command == COMMAND_CHECK)
    add_topics(help);
  if (operates) {
    add_all_shared(help, command, help_of_choice);
    add_all_shared(help, command, help_of_operating);
  }
  add_all_shared(help, command, of_settings);
  add_all_shared(help, command, of_servers);
  add_all_shared(help, command, of_runs);
  add_all_shared(help, command, of_all);
  if (own_exit)
    dk_text_puts(help, own_exit);
  else
    dk_text_puts(help, operates                          ? help_of_exits
                       : runs || command == COMMAND_NONE ? of_verdicts
                                                         : of_others);
}
