/* SPDX-License-Identifier: Apache-2.0 */
/* A store under stress: see stress.h.
 *
 *   stress [-p PROCESSES] [-t THREADS] [-i INSTANCES] [-n OPERATIONS] [-l LEASE_MS] [-s SEED] [-o]
 *          [-k KILLS [-w MS] [-c | -x COMMAND]] PLUGIN KEY=VALUE...
 *
 * The store is made, and left behind.  PROCESSES 0: this one alone, for a race detector.
 * OPERATIONS are those that found something to do.  -o: all threads are one owner, who keeps the
 * histories.
 *
 * With KILLS, the processes work on until so many of them were killed, each replaced by another;
 * with -c, until so many of their sockets were shut; with -x, until COMMAND was run so often, which
 * may do anything to the store's server.  From one to the next it is up to MS, by chance. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "tests/stress/stress.h"

enum { MOST_SETTINGS = 16, LONGEST_LIFE_MS = 40, PATIENCE_MS = 60000, ENOUGH_UNKNOWN = 3,
       MOST_CUTS = 10 };

/* ---- the command line ------------------------------------------------------------------------ */

static void
usage(void)
{
  fputs("usage: stress [-p PROCESSES] [-t THREADS] [-i INSTANCES] [-n OPERATIONS] [-l LEASE_MS]\n"
        "              [-s SEED] [-o] [-k KILLS [-w MS] [-c | -x COMMAND]] PLUGIN KEY=VALUE...\n",
        stderr);
  exit(2);
}

static uint64_t
number_from(const char *word, uint64_t most)
{
  char *end;

  errno = 0;
  uint64_t number = strtoull(word, &end, 0);
  if (errno != 0 || *end != '\0' || end == word || number > most)
    usage();
  return number;
}

static void
read_option(struct run *run, int option)
{
  switch (option) {
  case 'p': run->processes = (int)number_from(optarg, MOST_SLOTS); break;
  case 't': run->threads = (int)number_from(optarg, 64); break;
  case 'i': run->instances = number_from(optarg, MOST_INSTANCES); break;
  case 'n': run->operations = number_from(optarg, 1000000); break;
  case 'k': run->kills = (int)number_from(optarg, 100000); break;
  case 'l': run->lease_ms = (int64_t)number_from(optarg, 86400000); break;
  case 's': run->seed = number_from(optarg, UINT64_MAX); break;
  case 'w': run->life_ms = (int)number_from(optarg, 60000); break;
  case 'o': run->keeps_histories = true; break;
  case 'c': run->harm = CUT_SOCKETS; break;
  case 'x':
    run->harm = RUN_COMMAND;
    run->command = optarg;
    break;
  default: usage();
  }
}

static void
read_options(struct run *run, int argc, char **argv)
{
  for (int option; (option = getopt(argc, argv, "p:t:i:n:k:l:s:w:ocx:")) != -1;)
    read_option(run, option);
  if (optind >= argc || run->threads == 0 || run->instances == 0 || run->life_ms == 0 ||
      (run->kills > 0 && run->processes == 0) || (run->kills == 0 && run->harm != KILL_PROCESSES))
    usage();
  if (run->kills > 0)
    run->operations = 0;
}

static void
read_settings(struct run *run, struct dk_setting *settings, int n, char **words)
{
  if (n > MOST_SETTINGS)
    usage();
  for (int i = 0; i < n; i++) {
    char *value = strchr(words[i], '=');
    if (!value)
      usage();
    *value++ = '\0';
    settings[i] = (struct dk_setting){words[i], text(value)};
  }
  run->settings = settings;
  run->n_settings = (size_t)n;
}

/* ---- the store ------------------------------------------------------------------------------- */

bool
open_store(const struct run *run, const struct dk_host_options *options, uint32_t flags,
           struct dk_caller *caller, struct dk_store **ret_store)
{
  /* The drain has a clock of its own: a store that goes by another would keep its leases. */
  dk_status status = dk_store_open(run->library, options, caller, flags | DK_OPEN_HOST_CLOCK,
                                   run->settings, run->n_settings, ret_store);

  if (status != DK_OK)
    broken(run->journal, "open: status %d: %s", (int)status, dk_caller_failure(caller)->text);
  return status == DK_OK;
}

static void
make_store(const struct run *run)
{
  struct dk_host_options options = {.struct_size = sizeof options};
  struct dk_caller *caller = dk_caller_new(NULL, 0);
  struct dk_store *store;

  if (!caller || !open_store(run, &options, DK_OPEN_CREATE, caller, &store))
    BAIL_OUT("%s", run->journal->broken);
  dk_store_close(store);
  dk_caller_free(caller);
}

static struct journal *
make_journal(void)
{
  struct journal *j = mmap(NULL, sizeof *j, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  if (j == MAP_FAILED)
    BAIL_OUT("no memory for the journal: %s", strerror(errno));
  return j;
}

/* ---- processes ------------------------------------------------------------------------------- */

static pid_t
start(const struct run *run, int slot, uint64_t seed)
{
  pid_t parent = getpid(), pid;

  fflush(NULL);
  pid = fork();
  if (pid < 0)
    BAIL_OUT("no process: %s", strerror(errno));
  if (pid > 0)
    return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(99);
  run_load(run, slot, seed);
  _exit(0);
}

/* Returns when it has ended by itself, or the time has passed. */
static bool
ends_within(pid_t pid, int ms)
{
  struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

  if (ended.fd < 0)
    BAIL_OUT("pidfd_open: %s", strerror(errno));
  int n = poll(&ended, 1, ms);
  close(ended.fd);
  return n > 0;
}

/* It works, and has for a while. */
static void
let_work(const struct run *run, int slot, pid_t pid)
{
  struct journal *j = run->journal;
  uint64_t before = atomic_load(&j->operations[slot]);

  for (int waited = 0; atomic_load(&j->operations[slot]) < before + 2 && waited < PATIENCE_MS &&
                       !atomic_load(&j->is_broken) && !ends_within(pid, 1); waited++)
    continue;
  ends_within(pid, rand() % run->life_ms);
}

/* At whatever it does. */
static bool
kill_one(pid_t pid)
{
  int status;

  kill(pid, SIGKILL);
  return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void
kill_processes(const struct run *run, pid_t *pids, uint64_t seed)
{
  int killed = 0;

  for (int i = 0; i < run->kills && !atomic_load(&run->journal->is_broken); i++) {
    int slot = i % run->processes;
    let_work(run, slot, pids[slot]);
    killed += kill_one(pids[slot]);
    pids[slot] = start(run, slot, seed++);
  }
  cmp_ok(killed, "==", run->kills, "so many times a process was killed at its work");
}

static void
run_commands(const struct run *run, const pid_t *pids)
{
  int done = 0;

  for (int i = 0; i < run->kills && !atomic_load(&run->journal->is_broken); i++) {
    let_work(run, i % run->processes, pids[i % run->processes]);
    done += system(run->command) == 0;
  }
  cmp_ok(done, "==", run->kills, "so many times the command was run, and ended well");
}

/* And on, as far as chance will have it, until some have hit what has to be asked for again. */
static void
wait_for_cuts(const struct run *run, const pid_t *pids)
{
  struct journal *j = run->journal;
  uint64_t wanted = (uint64_t)run->kills, made = 0, unknown = 0;

  while (made < wanted || (unknown < ENOUGH_UNKNOWN && made < MOST_CUTS * wanted)) {
    if (atomic_load(&j->is_broken) || ends_within(pids[0], 10))
      break;
    made = atomic_load(&j->harmed);
    unknown = atomic_load(&j->unknown);
  }
  ok(made >= wanted, "%" PRIu64 " sockets were shut, of %" PRIu64, made, wanted);
  ok(unknown > 0, "some of them while an answer was on its way");
}

static void
test_ends(const struct run *run, const pid_t *pids)
{
  int wrong = 0, status;

  for (int i = 0; i < run->processes; i++)
    wrong += waitpid(pids[i], &status, 0) != pids[i] || !WIFEXITED(status) ||
             WEXITSTATUS(status) != 0;
  cmp_ok(wrong, "==", 0, "each of %d processes ends by itself", run->processes);
}

static void
run_processes(const struct run *run)
{
  pid_t pids[MOST_SLOTS];
  uint64_t seed = run->seed;

  srand((unsigned)run->seed);
  for (int i = 0; i < run->processes; i++)
    pids[i] = start(run, i, seed++);
  if (run->kills > 0 && run->harm == KILL_PROCESSES)
    kill_processes(run, pids, seed);
  else if (run->kills > 0 && run->harm == RUN_COMMAND)
    run_commands(run, pids);
  else if (run->kills > 0)
    wait_for_cuts(run, pids);
  if (run->kills > 0)
    atomic_store(&run->journal->stops, true);
  test_ends(run, pids);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void
test_operations(const struct run *run)
{
  uint64_t n = 0, wanted = run->operations * (uint64_t)(run->processes ? run->processes : 1);

  for (int i = 0; i < MOST_SLOTS; i++)
    n += atomic_load(&run->journal->operations[i]);
  ok(n >= wanted && n > 0, "%" PRIu64 " operations were made", n);
}

int
main(int argc, char **argv)
{
  struct run run = {.processes = 2, .threads = 4, .operations = 10000, .lease_ms = 60000,
                    .instances = 24, .life_ms = LONGEST_LIFE_MS, .seed = (uint64_t)getpid()};
  struct dk_setting settings[MOST_SETTINGS];
  struct dk_refusal refusal;
  struct told told = {.n = 0};

  read_options(&run, argc, argv);
  read_settings(&run, settings, argc - optind - 1, argv + optind + 1);
  run.journal = make_journal();
  if (dk_library_open(argv[optind], 0, &run.library, &refusal) < 0)
    BAIL_OUT("%s: %s", argv[optind], refusal.what);
  diag("seed %" PRIu64, run.seed);
  make_store(&run);
  if (run.processes > 0)
    run_processes(&run);
  else
    run_load(&run, 0, run.seed);
  test_operations(&run);
  bool is_drained = !atomic_load(&run.journal->is_broken) && drain(&run, &told);
  if (!ok(is_drained && !atomic_load(&run.journal->is_broken),
          "no answer and no delivery is wrong, and the drain ends"))
    diag("%s", run.journal->broken);
  if (is_drained)
    judge(&run, &told);
  free(told.facts);
  dk_library_close(run.library);
  munmap(run.journal, sizeof *run.journal);
  return done_testing();
}
