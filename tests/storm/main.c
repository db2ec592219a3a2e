/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes in a storm: the command, the processes, and what is done to them: see storm.h.
 *
 *   storm [OPTION]... PLUGIN [KEY=VALUE]...
 *
 *   -p N  processes [3]      -k N   so many are killed, and others started [4]
 *   -n N  instances [60]     -l MS  locks of turns and activities [2000]
 *   -w MS the store is unreachable for so long in the middle [0: never]
 *   -d COMMAND, -u COMMAND   what takes it away and brings it back, for sh [a store in front]
 *   -s MS a process that is stopped drains for so long [5000]
 *   -q MS so long without any progress is the end [120000]
 *   -r    activities learn by their renewals only
 */
#include "tests/storm/storm.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/runtime/shared/ticks.h"
#include "core/runtime/testing/failing-store.h"

enum { MOST_SETTINGS = 8, MOST_ACTIONS = 64, LOOK_MS = 10 };

struct driver {
  const struct run *run;
  struct faulty *faulty;
  pid_t pids[MOST_PROCESSES];
  int killed, stopped, asked, wrong_exits;
  int64_t progress_at;       /* the tick at which something was last seen to go on */
  unsigned progress;
};

/* ---- processes ------------------------------------------------------------------------------- */

/* In the child: this program once more. */
static void
become_process(const struct run *run, pid_t parent)
{
  char memory[16], **rest = run->arguments + 1;
  char *arguments[64] = {run->arguments[0], memory};
  size_t n = 2;

  snprintf(memory, sizeof memory, "-P%d", run->memory);
  while (*rest && n + 1 < sizeof arguments / sizeof *arguments)
    arguments[n++] = *rest++;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent)
    execv("/proc/self/exe", arguments);
  _exit(99);
}

/* It keeps SIGTERM waiting until it looks for it. */
static pid_t
start_process(const struct run *run)
{
  pid_t parent = getpid();
  sigset_t held, before;

  sigemptyset(&held);
  sigaddset(&held, SIGTERM);
  fflush(NULL);
  pthread_sigmask(SIG_BLOCK, &held, &before);
  pid_t pid = fork();
  if (pid != 0)
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (pid < 0)
    BAIL_OUT("no process: %s", strerror(errno));
  if (pid == 0)
    become_process(run, parent);
  return pid;
}

static void
end_process(struct driver *d, pid_t pid, int number)
{
  int status = 0;

  kill(pid, number);
  if (waitpid(pid, &status, 0) != pid)
    BAIL_OUT("a process has ended: %s", strerror(errno));
  if (number == SIGKILL ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                        : WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return;
  d->wrong_exits++;
  diag("a process ended with status 0x%x after signal %d", (unsigned)status, number);
}

/* Another takes its place. */
static void
replace_process(struct driver *d, int number)
{
  int which = rand() % d->run->processes;

  end_process(d, d->pids[which], number);
  d->pids[which] = start_process(d->run);
}

/* ---- cancellations --------------------------------------------------------------------------- */

struct asking {
  struct driver *driver;
  int part, parts;    /* every so manieth of those that are cancelled */
  int asked;
};

/* Until it is stored: what is refused meanwhile, or unknown, is asked again. */
static bool
ask_one(struct dk_client *client, int number)
{
  char name[16];
  int64_t until = ticks_now() + 600 * 1000;
  dk_status status;

  instance_name(name, number);
  while ((status = dk_client_cancel(client, dk_str_of(name), "a storm", "the driver")) != DK_OK
         && status != DK_DUPLICATE && ticks_now() < until)
    poll(NULL, 0, LOOK_MS);
  if (status != DK_OK && status != DK_DUPLICATE)
    fprintf(stderr, "# %s is not cancelled: %s\n", name, dk_client_error(client));
  return status == DK_OK || status == DK_DUPLICATE;
}

static void *
ask(void *context)
{
  struct asking *asking = context;
  const struct run *run = asking->driver->run;
  struct dk_client *client = dk_client_new(faulty_store(asking->driver->faulty), NULL);

  for (int i = 0, n = 0; client && i < run->instances; i++)
    if (instance_shape(i) == HOLD && n++ % asking->parts == asking->part)
      asking->asked += ask_one(client, i);
  dk_client_free(client);
  return NULL;
}

static void
cancel_part(struct driver *d, int part)
{
  struct asking asking = {.driver = d, .part = part, .parts = 2};

  ask(&asking);
  d->asked += asking.asked;
}

/* ---- the store is unreachable ---------------------------------------------------------------- */

static void
run_command(const char *command)
{
  int status = system(command);

  if (status != 0)
    BAIL_OUT("status %d of: %s", status, command);
}

static void
set_away(struct driver *d, bool is_away)
{
  if (d->run->away) {
    run_command(is_away ? d->run->away : d->run->back);
    return;
  }
  atomic_store(&d->run->shared->is_away, is_away);
  faulty_away(d->faulty, is_away);
}

/* The second part of the cancellations is asked for meanwhile. */
static void
be_away(struct driver *d)
{
  struct asking asking = {.driver = d, .part = 1, .parts = 2};
  int64_t until = ticks_now() + d->run->away_ms;
  pthread_t thread;

  set_away(d, true);
  if (pthread_create(&thread, NULL, ask, &asking) != 0)
    BAIL_OUT("no thread");
  while (ticks_now() < until)
    poll(NULL, 0, LOOK_MS);
  set_away(d, false);
  pthread_join(thread, NULL);
  d->asked += asking.asked;
}

/* ---- what is done, and when ------------------------------------------------------------------ */

enum what { KILL, STOP, CANCEL_HALF, AWAY };

struct action {
  unsigned at;   /* so many steps were run for the first time */
  enum what what;
};

static unsigned
all_steps(const struct run *run)
{
  unsigned n = 0;

  for (int i = 0; i < run->instances; i++)
    n += (unsigned)shape_steps(instance_shape(i));
  return n;
}

static int
by_time(const void *a, const void *b)
{
  const struct action *one = a, *other = b;

  return (one->at > other->at) - (one->at < other->at);
}

static int
plan_actions(const struct run *run, struct action actions[MOST_ACTIONS])
{
  unsigned all = all_steps(run), kills = (unsigned)run->kills;
  int n = 0;

  actions[n++] = (struct action){all / 4, CANCEL_HALF};
  actions[n++] = (struct action){all / 3, STOP};
  actions[n++] = (struct action){all / 2, AWAY};
  for (unsigned i = 0; i < kills && n < MOST_ACTIONS; i++)
    actions[n++] = (struct action){all * (i + 1) / (kills + 1), KILL};
  qsort(actions, (size_t)n, sizeof *actions, by_time);
  return n;
}

static void
act(struct driver *d, enum what what)
{
  switch (what) {
  case KILL:
    replace_process(d, SIGKILL);
    d->killed++;
    break;
  case STOP:
    replace_process(d, SIGTERM);
    d->stopped++;
    break;
  case CANCEL_HALF:
    cancel_part(d, 0);
    break;
  case AWAY:
    if (d->run->away_ms > 0)
      be_away(d);
    else
      cancel_part(d, 1);
    break;
  }
  d->progress_at = ticks_now();
}

/* False: there is no more progress. */
static bool
goes_on(struct driver *d)
{
  unsigned runs = atomic_load(&d->run->shared->n_runs);

  if (runs != d->progress)
    d->progress_at = ticks_now();
  d->progress = runs;
  if (ticks_now() - d->progress_at < d->run->patience_ms)
    return true;
  diag("no progress: %u steps were begun, of %u", runs, all_steps(d->run));
  return false;
}

static bool
weather(struct driver *d)
{
  struct action actions[MOST_ACTIONS];
  int n = plan_actions(d->run, actions);

  for (int i = 0; i < n; i++) {
    while (atomic_load(&d->run->shared->n_first) < actions[i].at) {
      if (!goes_on(d))
        return false;
      poll(NULL, 0, LOOK_MS);
    }
    act(d, actions[i].what);
  }
  return true;
}

static bool
until_over(struct driver *d, struct dk_client *client, int number)
{
  struct dk_instance_info info = {.struct_size = sizeof info};
  char name[16];
  dk_status status;

  instance_name(name, number);
  while ((status = dk_client_wait(client, dk_str_of(name), 200, &info)) != DK_OK)
    if (!goes_on(d)) {
      diag("%s has not ended: status %d: %s", name, (int)status, dk_client_error(client));
      return false;
    }
  d->progress_at = ticks_now();
  return true;
}

static bool
until_all_over(struct driver *d, struct dk_client *client)
{
  for (int i = 0; i < d->run->instances; i++)
    if (!until_over(d, client, i))
      return false;
  return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void
start_instances(const struct run *run, struct dk_client *client)
{
  char name[16];

  for (int i = 0; i < run->instances; i++) {
    instance_name(name, i);
    if (dk_client_start(client, dk_str_of(name), shape_name(instance_shape(i)), dk_str_of("0"),
                        NULL) != DK_OK)
      BAIL_OUT("%s is not started: %s", name, dk_client_error(client));
  }
}

static int
holds(const struct run *run)
{
  int n = 0;

  for (int i = 0; i < run->instances; i++)
    n += instance_shape(i) == HOLD;
  return n;
}

static void
drive(const struct run *run)
{
  struct driver d = {.run = run, .progress_at = ticks_now()};

  d.faulty = faulty_open(run->plugin, run->settings, run->n_settings);
  struct dk_client *client = dk_client_new(faulty_store(d.faulty), NULL);
  if (!client)
    BAIL_OUT("no memory for a client");
  start_instances(run, client);
  int64_t began = ticks_now();
  for (int i = 0; i < run->processes; i++)
    d.pids[i] = start_process(run);
  ok(weather(&d) && until_all_over(&d, client), "all %d instances end", run->instances);
  diag("%lld ms; %d processes killed, %d stopped and replaced; %lld ms without the store",
       (long long)(ticks_now() - began), d.killed, d.stopped, (long long)run->away_ms);
  for (int i = 0; i < run->processes; i++)
    end_process(&d, d.pids[i], SIGTERM);
  cmp_ok(d.killed, "==", run->kills, "all planned kills hit a working process");
  cmp_ok(d.wrong_exits, "==", 0, "the others stopped in good order after SIGTERM");
  cmp_ok(d.asked, "==", holds(run), "all planned cancellations were requested");
  judge(run, faulty_store(d.faulty));
  dk_client_free(client);
  faulty_close(d.faulty);
}

/* ---- the command ----------------------------------------------------------------------------- */

__attribute__((noreturn)) static void
usage(void)
{
  fputs("usage: storm [-p N] [-k N] [-n N] [-l MS] [-w MS] [-s MS] [-q MS] [-r]"
        " [-d COMMAND -u COMMAND] PLUGIN [KEY=VALUE]...\n", stderr);
  exit(2);
}

static void
read_option(struct run *run, int option)
{
  switch (option) {
  case 'p': run->processes = atoi(optarg); break;
  case 'k': run->kills = atoi(optarg); break;
  case 'n': run->instances = atoi(optarg); break;
  case 'l': run->lock_ms = atoi(optarg); break;
  case 'w': run->away_ms = atoi(optarg); break;
  case 'd': run->away = optarg; break;
  case 'u': run->back = optarg; break;
  case 's': run->stop_ms = atoi(optarg); break;
  case 'r': run->by_renewal = true; break;
  case 'q': run->patience_ms = atoi(optarg); break;
  case 'P': run->memory = atoi(optarg); break;
  default: usage();
  }
}

static void
read_options(struct run *run, int argc, char **argv)
{
  for (int option; (option = getopt(argc, argv, "p:k:n:l:w:s:d:u:q:P:r")) != -1;)
    read_option(run, option);
  if (optind >= argc || run->processes < 1 || run->processes > MOST_PROCESSES || run->kills < 0
      || run->kills > MOST_ACTIONS - 3 || run->instances < 10 || run->instances > MOST_INSTANCES
      || run->lock_ms < 1000 || !run->away != !run->back)
    usage();
  run->plugin = argv[optind];
}

/* KEY=VALUE, to the end. */
static void
read_settings(struct run *run, struct dk_setting settings[MOST_SETTINGS], char **words)
{
  for (; *words && run->n_settings < MOST_SETTINGS; words++) {
    char *value = strchr(*words, '=');
    if (!value)
      usage();
    *value++ = '\0';
    settings[run->n_settings++] = (struct dk_setting){*words, dk_str_of(value)};
  }
  run->settings = settings;
}

/* The words as they came: those of the settings are cut. */
static char **
copy_words(int argc, char **argv)
{
  char **copy = calloc((size_t)argc + 1, sizeof *copy);

  for (int i = 0; copy && i < argc; i++)
    if (!(copy[i] = strdup(argv[i])))
      BAIL_OUT("no memory");
  return copy;
}

static void
share_memory(struct run *run, bool is_process)
{
  if (!is_process && ((run->memory = memfd_create("storm", 0)) < 0
                      || ftruncate(run->memory, (off_t)sizeof *run->shared) != 0))
    BAIL_OUT("no memory to be shared: %s", strerror(errno));
  run->shared = mmap(NULL, sizeof *run->shared, PROT_READ | PROT_WRITE, MAP_SHARED, run->memory,
                     0);
  if (run->shared == MAP_FAILED)
    BAIL_OUT("no memory to be shared: %s", strerror(errno));
}

int
main(int argc, char **argv)
{
  struct run run = {.processes = 3, .kills = 4, .instances = 60, .lock_ms = 2000,
                    .stop_ms = 5000, .patience_ms = 120000, .memory = -1};
  struct dk_setting settings[MOST_SETTINGS];
  char **words = copy_words(argc, argv);

  run.arguments = words;
  read_options(&run, argc, argv);
  bool is_process = run.memory >= 0;
  read_settings(&run, settings, argv + optind + 1);
  share_memory(&run, is_process);
  int code = is_process ? run_process(&run) : (drive(&run), done_testing());
  for (int i = 0; words && i < argc; i++)
    free(words[i]);
  free(words);
  munmap(run.shared, sizeof *run.shared);
  return code;
}
