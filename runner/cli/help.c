/* SPDX-License-Identifier: Apache-2.0 */
/* The help: examples first.  The pages of the manual are made from it (gen-manual.c), so it keeps
 * to a few forms: the first line is "durakit COMMAND ARGUMENTS: what it does."; a line that is
 * indented by two is an example or an option, two blanks before what is said of it; "Something:" is
 * a heading; "Exit: 0 ...; 1 ....", else those that all have.  What several commands share is told
 * of each as far as it takes it.
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
  "  --set KEY=VALUE         as its users give it; `durakit probe PLUGIN` shows which there are\n"
  "  --set-env KEY=VARIABLE  from the environment, so that no secret is on a command line\n"
  "  --settings FILE         lines of key = value; a relative path is one in the file's folder\n";

static const char of_runs[] =
  "\n"
  "The run:\n"
  "  -j, --jobs N            N checks at a time (as many as processors, at most 4); races run\n"
  "                          alone\n"
  "  --classify N            runs a failure again, N times, to tell always from sometimes (1)\n"
  "  --timeout-scale X       gives a check X times its time\n"
  "  --suppressions FILE     of Valgrind, for its findings in other libraries; each entry needs a\n"
  "                          reason (# ...) in the line above it, and none may hide the provider\n"
  "  --seed NUMBER           the seed of an earlier run\n"
  "  --run-id ID             the part of this run in the names of its stores\n"
  "\n"
  "Output:\n"
  "  --format tap|human      TAP when standard output is no terminal\n"
  "  --out FOLDER            results.jsonl there, and traces and output of what failed; those of\n"
  "                          an earlier run are replaced\n"
  "  --color WHEN            auto, always or never; NO_COLOR is honoured\n"
  "  --verbose               also what passed\n";

static const char of_all[] =
  "\n"
  "  -h, --help              this text; of all commands without one\n"
  "  --version               the versions of the command, of the ABI and of the contract\n";

static const char of_verdicts[] =
  "\n"
  "Exit: 0 passed; 1 a clause is violated; 2 usage, settings, a store that exists; 3 the plugin\n"
  "cannot be loaded; 4 the kit, its surroundings or the store failed; 5 incomplete; 6 memory or\n"
  "race findings only; 7 flaky or unexercised only.\n";

static const char of_others[] =
  "\n"
  "Exit: 0 done; 2 usage, settings, an unknown name; 3 the plugin cannot be loaded; 4 the\n"
  "command, its surroundings or the store failed; 5 nobody reads the output.\n";

static const char of_servers[] =
  "\n"
  "A server behind the store (providers that declare `shared` 3); what is not given is not\n"
  "tested, and said so:\n"
  "  --store-crash COMMAND   crashes the server at once, as kill -9 does\n"
  "  --store-start COMMAND   starts it again, and returns when it can be reached\n"
  "  --store-pause COMMAND   stops it, as kill -STOP does\n"
  "  --store-resume COMMAND  lets it go on\n"
  "  --store-deny COMMAND    withdraws the rights of the provider's role on the store {store}\n"
  "  --store-allow COMMAND   gives them back\n"
  "  --store-address WHERE   where the server listens: the path of a socket, or HOST:PORT\n"
  "  --through KEY=VALUE     how the provider reaches the kit instead, which then stands between:\n"
  "                          {folder} has a socket of the same name, {host} and {port} are for\n"
  "                          TCP\n"
  "Commands are run by sh -c; {store} in them is the store of the check, as is $DURAKIT_STORE,\n"
  "and {folder} the folder of the run, as is $DURAKIT_FOLDER.  Whatever was done is undone, also\n"
  "after a check that was killed.  Use a server that nobody else uses.\n";

static const char general[] =
  "durakit judges storage providers for durable execution, and operates what runs on them.\n"
  "\n"
  "  durakit certify ./my_provider.so                  everything that is required\n"
  "  durakit certify sqlite                            a name means an installed plugin\n"
  "  durakit certify ./x.so --set host=db.example      what the provider needs to reach its store\n"
  "  durakit check ./my_provider.so --only 'cancel/*'  some of it\n"
  "  durakit check ./my_provider.so --next             while it is being written\n"
  "  durakit list checks                               or clauses, mutants, topics, providers\n"
  "  durakit explain CANCEL-5                          or a check, or a mutant\n"
  "  durakit probe ./my_provider.so                    what it says of itself\n"
  "  durakit repro out/results.jsonl:cancel/mass       one recorded failure again\n"
  "  durakit selftest                                  tests the kit itself\n"
  "  durakit clean                                     removes what dead runs have left\n"
  "  durakit bench ./my_provider.so                    how fast it is, beside what it could be\n"
  "  durakit --version\n"
  "\n"
  "Where a runtime works on a store (each with --provider sqlite --set store=orders.db):\n"
  "  durakit start order-1 --name order                a new instance\n"
  "  durakit status order-1                            how it stands; history: what has happened\n"
  "  durakit wait order-1 --timeout 1m                 until it is over\n"
  "  durakit raise order-1 paid                        an event for it\n"
  "  durakit enqueue account-1 bookings --data 12      a message for one of its queues\n"
  "  durakit cancel order-1 --reason 'wrong address'   or by --name and other conditions\n"
  "  durakit instances --status running                what there is\n"
  "  durakit delete order-1                            what is over; prune: old executions\n"
  "  durakit stats                                     counts, also for Prometheus\n"
  "\n"
  "durakit COMMAND --help says more.\n"
  "\n"
  "Environment:\n"
  "  DURAKIT_PLUGIN_PATH     folders that are searched for a plugin's name before the one where\n"
  "                          plugins are installed, with colons between them; a command that is\n"
  "                          not installed looks among those that were built with it, too\n"
  "  DURAKIT_PROVIDER        the plugin, for commands that work on a store and for probe, where\n"
  "                          the command line names none\n"
  "  DURAKIT_SETTINGS        the file with its settings, as --settings takes it; keys that are\n"
  "                          given by --set, --set-env and --settings win, and with --provider\n"
  "                          neither variable counts\n"
  "  TMPDIR                  where stores and what belongs to a run are kept while it runs\n"
  "  NO_COLOR                if it is set and not empty, nothing is coloured\n";

static const char certify[] =
  "durakit certify PLUGIN: runs every check that the contract requires, and judges each.\n"
  "\n"
  "  durakit certify ./my_provider.so\n"
  "  durakit certify ./my_provider.so -j4 --out results\n"
  "  durakit certify ./my_provider.so --profile runtime  orchestrations on it, and cancellation\n"
  "  durakit certify ./my_provider.so --no-memcheck      quickly; the result says so\n"
  "  durakit certify ./x.so --set host=db.example --set-env password=DB_PASSWORD\n"
  "  prove -e 'durakit certify --format tap' ./my_provider.so\n"
  "\n"
  "Each check runs natively and, where Valgrind is installed, once more under it (its id then\n"
  "ends in @memcheck): no invalid access, no use of undefined bytes, no leak.\n"
  "\n"
  "The kit finds mistakes, not malice.  A provider runs in processes of its own, so that crashes,\n"
  "hangs and early exits are verdicts; but it runs with your rights, and one that sets out to\n"
  "deceive the kit can.  Certify only what you would also run.\n"
  "\n"
  "Which checks:\n"
  "  --profile WHICH         core is the contract with what the provider declares, and the usual\n"
  "                          one; admin is what durakit.admin/1 is judged by, alone; runtime runs\n"
  "                          the runtime on the provider, in real time, with the integration\n"
  "                          tests of the design papers; all is core and runtime\n"
  "  --no-memcheck           natively only; the result says so\n";

static const char check[] =
  "durakit check PLUGIN: runs the checks that are asked for.\n"
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
  "  --only WHAT             ids, patterns, clauses, areas or topics, with commas between them\n"
  "  --profile WHICH         of core, which is the usual one, of admin, runtime or all\n"
  "  --memcheck              runs them under Valgrind; memory/cycle is run there only\n"
  "  --next                  accepts missing operations, and names the next one to write\n"
  "  --repeat N              each check N times, until it fails\n"
  "  --gdb                   stops in the one check, under gdb\n"
  "  --in-process            runs the one check in this process, for a debugger; no verdict\n";

static const char list[] =
  "durakit list WHAT [--json]: what there is, one a line.\n"
  "\n"
  "  durakit list checks\n"
  "  durakit list checks --profile runtime\n"
  "  durakit list clauses --json\n"
  "  durakit list mutants\n"
  "  durakit list providers           in DURAKIT_PLUGIN_PATH, then where they are installed\n"
  "\n"
  "  --profile WHICH         of the checks: core, which is the usual one, admin, runtime\n"
  "                          or all\n"
  "  --json                  an array of objects\n";

static const char explain[] =
  "durakit explain ID: a check, a clause or a mutant, with what belongs to it.\n"
  "\n"
  "  durakit explain cancel/ack-after-deletion\n"
  "  durakit explain CANCEL-5\n"
  "  durakit explain cancel/only-unlocked\n";

static const char probe[] =
  "durakit probe PLUGIN [--json]: loads it in a child, and shows what it says of itself.\n"
  "\n"
  "  durakit probe ./my_provider.so\n"
  "  durakit probe sqlite --json\n"
  "\n"
  "Without PLUGIN that of DURAKIT_PROVIDER, with the settings in the file DURAKIT_SETTINGS: both\n"
  "are shown, and the keys of the settings that are given, not their values.\n"
  "  --json                  all of it, as one object\n"
  "  --timeout-scale X       gives the child X times its time\n";

static const char repro[] =
  "durakit repro FILE[:CHECK]: runs what is recorded in results.jsonl again.\n"
  "\n"
  "  durakit repro out/results.jsonl                      all that did not pass\n"
  "  durakit repro out/results.jsonl:cancel/locked-row\n"
  "  durakit repro out/results.jsonl --set-env password=DB_PASSWORD   what was masked\n";

static const char selftest[] =
  "durakit selftest: tests the kit itself.\n"
  "\n"
  "  durakit selftest                 ends in one line\n"
  "  durakit selftest --verbose       shows which check catches which mutant; takes longer\n"
  "  durakit selftest --format tap\n"
  "\n"
  "The model must pass everything, shuffled and twice; each of its mutants must be caught by the\n"
  "check that is meant for it; each provider of the zoo must get its one verdict.\n"
  "  --model PLUGIN          the model, if it is not installed\n"
  "  --zoo FOLDER            where the providers of the zoo are\n"
  "  -j, --jobs N            so many at a time (3)\n"
  "\n"
  "Exit: 0 the kit is as it should be; 1 something of it is not; 2 usage or settings; 3 the model\n"
  "cannot be loaded; 4 its surroundings failed.\n";

static const char clean[] =
  "durakit clean [PLUGIN]: removes what runs that were killed have left.\n"
  "\n"
  "  durakit clean                                      their folders\n"
  "  durakit clean sqlite --set store=/srv/x.db         their stores, too\n"
  "\n"
  "  --timeout-scale X       gives the removal of each store X times its time\n";

static const char bench[] =
  "durakit bench PLUGIN: measures workloads, each beside something that it can be compared to.\n"
  "\n"
  "  durakit bench ./my_provider.so\n"
  "  durakit bench sqlite --floor ./floor --only turn-1,turn-16\n"
  "\n"
  "The floor is a program that does the least that each workload needs.  Its lines: set KEY=VALUE\n"
  "for each setting of the provider, about, begin WORKLOAD A B, run MS; its answers: ok, or ok\n"
  "OPERATIONS NANOSECONDS SYNCS.  Without a floor only those rows have a ratio that compare the\n"
  "provider with itself: turn-4-8 is the rate of 8 callers as a share of the rate of 4.\n"
  "  --floor PROGRAM         is given a store of its own, a path or what the provider's setting\n"
  "                          takes, and the protocol on its standard input\n"
  "  --only NAMES            turn-1, turn-16, work-1, work-16, fan-in, cancel, cancel-growth,\n"
  "                          cancel-foreign, timers, leases, turn-1-2, turn-2-4, turn-4-8,\n"
  "                          turn-8-16, work-1-2, work-2-4, work-4-8, work-8-16\n"
  "  --pairs N               N pairs of slices for each row (7)\n"
  "  --slice MS              length of a slice (200)\n"
  "  --json                  all figures, as one object\n"
  "The stores lie in $TMPDIR, or in /var/tmp: on the disk that is meant.  What is missed is told;\n"
  "the exit code is 0 when everything could be measured.\n";

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

/* "--jobs" in "  -j, --jobs N            so many"; false if the line is of no option. */
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

/* The command takes it, and the help does not tell of it so far. */
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

/* A paragraph as far as it is of the command; none of it if none of its options is. */
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

/* Each of these texts begins with an empty line, which ends what stands before it. */
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
