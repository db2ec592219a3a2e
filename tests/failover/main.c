/* SPDX-License-Identifier: Apache-2.0 */
/* Workers whose server is taken away, and another takes its place: see failover.h.
 *
 *   failover [OPTION]... -e COMMAND -m COMMAND PLUGIN [KEY=VALUE]...
 *
 *   -n N   orders [200], started one after the other all the time
 *   -p N   workers [2]
 *   -e COMMAND  for sh: what happens to the primary, when a quarter of the orders is done
 *   -m COMMAND  promotes the standby, so long after that [-w MS: 3000]
 *   -b COMMAND  what comes back, when the workers are at work again and half of the orders is done
 *   -s MS  an activity must begin within so long after the promotion [0: it is only told]
 *   -q MS  so long without any progress is the end [120000]
 *
 * What the plugin and the workers log goes to standard error. */
#include "tests/failover/failover.h"

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
#include <time.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

enum { MOST_SETTINGS = 8, LOOK_MS = 10, MOST_UNDONE = 20 };

struct driver {
  const struct run *run;
  struct dk_store *store;
  pid_t workers[MOST_WORKERS];
  atomic_int n_acked;           /* orders whose start was acknowledged: the first so many */
  atomic_int n_refused;         /* starts that were tried again */
  unsigned progress;
  int64_t progress_at;
};

int64_t
real_ms(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the store ------------------------------------------------------------------------------- */

static void
tell_line(void *context, int32_t level, struct dk_bytes line)
{
  if (level > 0)
    fprintf(stderr, "%s: pg: %.*s\n", (const char *)context, (int)line.len, line.ptr);
}

struct dk_store *
open_store(const struct run *run, const char *who)
{
  const struct dk_host_options options = {
    .struct_size = sizeof options, .context = (void *)(uintptr_t)who, .log = tell_line};
  struct dk_caller *caller = dk_caller_new(NULL, 0);
  struct dk_library *library;
  struct dk_refusal refusal;
  struct dk_store *store;

  if (!caller)
    BAIL_OUT("no memory for a caller");
  if (dk_library_open(run->plugin, 0, &library, &refusal) != 0)
    BAIL_OUT("%s: %s", refusal.where, refusal.what);
  if (dk_store_open(library, &options, caller, DK_OPEN_CREATE, run->settings, run->n_settings,
                    &store) != DK_OK)
    BAIL_OUT("%s cannot open the store: %s", who, dk_caller_failure(caller)->text);
  dk_caller_free(caller);
  return store;
}

void
close_store(struct dk_store *store)
{
  struct dk_library *library = dk_store_library(store);

  if (dk_store_close(store))
    BAIL_OUT("the store is still in use");
  dk_library_close(library);
}

/* ---- workers --------------------------------------------------------------------------------- */

/* In the child: this program once more, with the descriptor of the memory that is shared. */
static void
become_worker(const struct run *run, pid_t parent)
{
  char memory[16], *arguments[64] = {run->arguments[0], memory};
  size_t n = 2;

  snprintf(memory, sizeof memory, "-P%d", run->memory);
  for (char **rest = run->arguments + 1; *rest && n + 1 < sizeof arguments / sizeof *arguments;)
    arguments[n++] = *rest++;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent)
    execv("/proc/self/exe", arguments);
  _exit(99);
}

static pid_t
start_worker(const struct run *run)
{
  pid_t parent = getpid();

  fflush(NULL);
  pid_t pid = fork();
  if (pid < 0)
    BAIL_OUT("no process: %s", strerror(errno));
  if (pid == 0)
    become_worker(run, parent);
  return pid;
}

static void
end_workers(struct driver *d)
{
  int n_wrong = 0, status;

  for (int i = 0; i < d->run->workers; i++)
    kill(d->workers[i], SIGTERM);
  for (int i = 0; i < d->run->workers; i++)
    if (waitpid(d->workers[i], &status, 0) != d->workers[i] || status != 0)
      n_wrong++;
  cmp_ok(n_wrong, "==", 0, "the workers stop in good order");
}

/* ---- the load -------------------------------------------------------------------------------- */

/* Until it is acknowledged; what is refused meanwhile, or unknown, is asked again. */
static void
start_order(struct driver *d, struct dk_client *client, int number)
{
  char name[24];
  dk_status status;

  snprintf(name, sizeof name, "order-%d", number);
  while ((status = dk_client_start(client, dk_str_of(name), "order", dk_str_of("0"), NULL))
           != DK_OK && status != DK_DUPLICATE) {
    atomic_fetch_add(&d->n_refused, 1);
    poll(NULL, 0, LOOK_MS);
  }
  atomic_store(&d->n_acked, number + 1);
}

/* As many as the workers keep up with. */
static void *
start_orders(void *context)
{
  struct driver *d = context;
  struct dk_client *client = dk_client_new(d->store, NULL);

  if (!client)
    BAIL_OUT("no memory for a client");
  for (int i = 0; i < d->run->orders; i++) {
    while ((unsigned)i >= atomic_load(&d->run->shared->n_done) + MOST_UNDONE)
      poll(NULL, 0, LOOK_MS);
    start_order(d, client, i);
  }
  dk_client_free(client);
  return NULL;
}

/* ---- what is done to the servers ------------------------------------------------------------- */

static void
do_command(const char *command)
{
  int status = system(command);

  if (status != 0)
    BAIL_OUT("status %d of: %s", status, command);
}

static void
expect_progress(struct driver *d, const char *what)
{
  unsigned done = atomic_load(&d->run->shared->n_done);

  if (done != d->progress)
    d->progress_at = real_ms();
  d->progress = done;
  if (real_ms() - d->progress_at > d->run->patience_ms)
    BAIL_OUT("no progress: %u orders are done, %d acknowledged, of %d; waited for: %s", done,
             atomic_load(&d->n_acked), d->run->orders, what);
}

static void
until_done(struct driver *d, int n, const char *what)
{
  while (atomic_load(&d->run->shared->n_done) < (unsigned)n) {
    expect_progress(d, what);
    poll(NULL, 0, LOOK_MS);
  }
}

/* The time that the workers need to notice it. */
static void
let_pass(int64_t ms)
{
  int64_t until = real_ms() + ms;

  while (real_ms() < until)
    poll(NULL, 0, LOOK_MS);
}

static void
fail_over(struct driver *d)
{
  const struct run *run = d->run;
  struct shared *shared = run->shared;

  until_done(d, run->orders / 4, "the first quarter");
  do_command(run->event);
  let_pass(run->promote_after_ms);
  do_command(run->promote);
  atomic_store(&shared->promoted_at, real_ms());
  d->progress_at = real_ms();
  while (atomic_load(&shared->first_at) == 0) {
    expect_progress(d, "an activity that begins after the promotion");
    poll(NULL, 0, LOOK_MS);
  }
  long long ms = atomic_load(&shared->first_at) - atomic_load(&shared->promoted_at);
  diag("%lld ms after the promotion the first activity begins", ms);
  ok(true, "the workers are at work again");
  if (run->most_ms > 0)
    cmp_ok(ms, "<=", run->most_ms, "so soon after the promotion");
  until_done(d, run->orders / 2, "the first half");
  if (run->back)
    do_command(run->back);
  until_done(d, run->orders, "the rest");
}

/* ---- what must have become of it ------------------------------------------------------------- */

static int
count_twice(const struct run *run)
{
  int twice = 0;

  for (int i = 0; i < run->orders; i++)
    for (int j = 0; j < STEPS; j++) {
      unsigned begun = atomic_load(&run->shared->begun[i][j]);
      unsigned ended = atomic_load(&run->shared->ended[i][j]);
      if (begun > 1)
        diag("order-%d, step %d: begun %u times, ended %u times", i, j, begun, ended);
      twice += ended > 1;
    }
  return twice;
}

static bool
has_completed(struct driver *d, struct dk_client *client, int number)
{
  struct dk_instance_info info = {.struct_size = sizeof info};
  char name[24], output[16];
  dk_status status;

  snprintf(name, sizeof name, "order-%d", number);
  snprintf(output, sizeof output, "%d", STEPS);
  status = dk_client_wait(client, dk_str_of(name), d->run->patience_ms, &info);
  if (status == DK_OK && info.status == DK_COMPLETED && strcmp(info.output.ptr, output) == 0)
    return true;
  diag("%s: status %d of the call (%s), %d of the order, output \"%s\"", name, (int)status,
       dk_client_error(client), (int)info.status, info.output.ptr ? info.output.ptr : "");
  return false;
}

static void
judge(struct driver *d)
{
  struct dk_client *client = dk_client_new(d->store, NULL);
  int lost = 0;

  if (!client)
    BAIL_OUT("no memory for a client");
  for (int i = 0; i < d->run->orders; i++)
    lost += !has_completed(d, client, i);
  cmp_ok(lost, "==", 0, "of %d orders that were acknowledged none is lost", d->run->orders);
  cmp_ok(count_twice(d->run), "==", 0, "no activity has run to its end twice");
  dk_client_free(client);
}

static void
drive(const struct run *run)
{
  struct driver d = {.run = run, .progress_at = real_ms()};
  int64_t began = real_ms();
  pthread_t load;

  d.store = open_store(run, "client");
  for (int i = 0; i < run->workers; i++)
    d.workers[i] = start_worker(run);
  if (pthread_create(&load, NULL, start_orders, &d) != 0)
    BAIL_OUT("no thread");
  fail_over(&d);
  pthread_join(load, NULL);
  diag("%lld ms in all; %d starts were tried again", (long long)(real_ms() - began),
       atomic_load(&d.n_refused));
  judge(&d);
  end_workers(&d);
  close_store(d.store);
}

/* ---- the command ----------------------------------------------------------------------------- */

__attribute__((noreturn)) static void
usage(void)
{
  fputs("usage: failover [-n N] [-p N] [-w MS] [-s MS] [-q MS] [-b COMMAND] -e COMMAND -m COMMAND"
        " PLUGIN [KEY=VALUE]...\n", stderr);
  exit(2);
}

static void
read_option(struct run *run, int option)
{
  switch (option) {
  case 'n': run->orders = atoi(optarg); break;
  case 'p': run->workers = atoi(optarg); break;
  case 'w': run->promote_after_ms = atoi(optarg); break;
  case 's': run->most_ms = atoi(optarg); break;
  case 'q': run->patience_ms = atoi(optarg); break;
  case 'e': run->event = optarg; break;
  case 'm': run->promote = optarg; break;
  case 'b': run->back = optarg; break;
  case 'P': run->memory = atoi(optarg); break;
  default: usage();
  }
}

static void
read_options(struct run *run, int argc, char **argv)
{
  for (int option; (option = getopt(argc, argv, "n:p:w:s:q:e:m:b:P:")) != -1;)
    read_option(run, option);
  if (optind >= argc || run->workers < 1 || run->workers > MOST_WORKERS || run->orders < 8 ||
      run->orders > MOST_ORDERS || !run->event || !run->promote)
    usage();
  run->plugin = argv[optind];
}

/* KEY=VALUE, to the end.  The words stay whole, for the workers get them too. */
static void
read_settings(struct run *run, struct dk_setting settings[MOST_SETTINGS], char **words)
{
  for (; *words && run->n_settings < MOST_SETTINGS; words++) {
    char *key = strdup(*words), *value = key ? strchr(key, '=') : NULL;
    if (!value)
      usage();
    *value++ = '\0';
    settings[run->n_settings++] = (struct dk_setting){key, dk_str_of(value)};
  }
  run->settings = settings;
}

static void
share_memory(struct run *run, bool is_worker)
{
  if (!is_worker && ((run->memory = memfd_create("failover", 0)) < 0 ||
                     ftruncate(run->memory, (off_t)sizeof *run->shared) != 0))
    BAIL_OUT("no memory to be shared: %s", strerror(errno));
  run->shared = mmap(NULL, sizeof *run->shared, PROT_READ | PROT_WRITE, MAP_SHARED, run->memory, 0);
  if (run->shared == MAP_FAILED)
    BAIL_OUT("no memory to be shared: %s", strerror(errno));
}

int
main(int argc, char **argv)
{
  struct run run = {.workers = 2, .orders = 200, .promote_after_ms = 3000, .patience_ms = 120000,
                    .memory = -1, .arguments = argv};
  struct dk_setting settings[MOST_SETTINGS];

  read_options(&run, argc, argv);
  bool is_worker = run.memory >= 0;
  read_settings(&run, settings, argv + optind + 1);
  share_memory(&run, is_worker);
  int code = is_worker ? run_worker(&run) : (drive(&run), done_testing());
  for (size_t i = 0; i < run.n_settings; i++)
    free((char *)(uintptr_t)settings[i].key);
  munmap(run.shared, sizeof *run.shared);
  return code;
}
