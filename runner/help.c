/* SPDX-License-Identifier: Apache-2.0 */
/* The help: examples first. */
#include <stdio.h>

#include "conformance/checks/topics.h"
#include "runner/options.h"
#include "runner/plan.h"

static const char of_settings[] =
  "\n"
  "Settings of the provider:\n"
  "  --set KEY=VALUE         as its users give it; `durakit probe PLUGIN` shows which there are\n"
  "  --set-env KEY=VARIABLE  from the environment, so that no secret is on a command line\n"
  "  --settings FILE         lines of key = value\n";

static const char of_runs[] =
  "\n"
  "The run:\n"
  "  -j N                    N checks at a time (as many as processors, at most 4); races run\n"
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
  "  --verbose               also what passed\n"
  "\n"
  "Exit: 0 passed; 1 a clause is violated; 2 usage, settings, a store that exists; 3 the plugin\n"
  "cannot be loaded; 4 the kit, its surroundings or the store failed; 5 incomplete; 6 memory or\n"
  "race findings only; 7 flaky or unexercised only.\n";

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
  "durakit tells whether a storage provider for durable execution keeps the contract.\n"
  "\n"
  "  durakit certify ./my_provider.so                 everything that is required\n"
  "  durakit certify sqlite                           a name means an installed plugin\n"
  "  durakit certify ./x.so --set host=db.example     what the provider needs to reach its store\n"
  "  durakit check ./my_provider.so --only 'cancel/*' some of it\n"
  "  durakit check ./my_provider.so --next            while it is being written\n"
  "  durakit list checks                              or clauses, mutants, topics, providers\n"
  "  durakit explain CANCEL-5                         or a check, or a mutant\n"
  "  durakit probe ./my_provider.so                   what it says of itself\n"
  "  durakit repro out/results.jsonl:cancel/mass      one recorded failure again\n"
  "  durakit selftest                                 tests the kit itself\n"
  "  durakit clean                                    removes what dead runs have left\n"
  "  durakit bench ./my_provider.so                   how fast it is, beside what it could be\n"
  "  durakit --version\n"
  "\n"
  "durakit COMMAND --help says more.\n";

static const char certify[] =
  "durakit certify PLUGIN: runs every check that the contract requires, and judges each.\n"
  "\n"
  "  durakit certify ./my_provider.so\n"
  "  durakit certify ./my_provider.so -j4 --out results\n"
  "  durakit certify ./my_provider.so --profile runtime orchestrations on it, and cancellation\n"
  "  durakit certify ./my_provider.so --no-memcheck     quickly; the result says so\n"
  "  durakit certify ./x.so --set host=db.example --set-env password=DB_PASSWORD\n"
  "  prove -e 'durakit certify --format tap' ./my_provider.so\n"
  "\n"
  "Profiles: core is the contract, and the usual one; runtime runs the runtime on the provider,\n"
  "in real time, with the integration tests of the design papers; all is both.\n"
  "\n"
  "Each check runs natively and, where Valgrind is installed, once more under it (its id then\n"
  "ends in @memcheck): no invalid access, no use of undefined bytes, no leak.\n"
  "\n"
  "The kit finds mistakes, not malice.  A provider runs in processes of its own, so that crashes,\n"
  "hangs and early exits are verdicts; but it runs with your rights, and one that sets out to\n"
  "deceive the kit can.  Certify only what you would also run.\n";

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
  "  durakit list providers           in DURAKIT_PLUGIN_PATH, then where they are installed\n";

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
  "  durakit probe sqlite --json\n";

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
  "  -j N                    so many at a time (3)\n";

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

static void
show_topics(void)
{
  size_t n;
  const struct dk_topic *topics = dk_topics(&n);

  printf("\nTopics:");
  for (size_t i = 0; i < n; i++)
    printf(" %s", topics[i].name);
  printf(" (durakit explain %s)\n", topics[0].name);
}

void
options_help(enum command command)
{
  static const char *const texts[COMMANDS] = {
    [COMMAND_NONE] = general,     [COMMAND_CERTIFY] = certify, [COMMAND_CHECK] = check,
    [COMMAND_LIST] = list,        [COMMAND_EXPLAIN] = explain, [COMMAND_PROBE] = probe,
    [COMMAND_REPRO] = repro,      [COMMAND_SELFTEST] = selftest, [COMMAND_CLEAN] = clean,
    [COMMAND_BENCH] = bench,
  };
  bool runs = command == COMMAND_CERTIFY || command == COMMAND_CHECK || command == COMMAND_REPRO;

  fputs(texts[command], stdout);
  if (command == COMMAND_CHECK)
    show_topics();
  if (runs || command == COMMAND_PROBE || command == COMMAND_CLEAN
      || command == COMMAND_BENCH)
    fputs(of_settings, stdout);
  if (runs) {
    fputs(of_servers, stdout);
    fputs(of_runs, stdout);
  }
}
