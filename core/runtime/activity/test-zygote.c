/* SPDX-License-Identifier: Apache-2.0 */
/* Activities in processes, on a store: a real zygote, real children, real kills. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/runtime/activity/zygote.h"
#include "core/runtime/testing/activities-alone.h"

static struct dk_registry *registry;

/* What the children report to the test besides their results: they share this memory with it. */
static struct shared {
  atomic_int runs, seen, may_end;
  _Atomic int32_t cause;
  _Atomic pid_t pid, grandchild;
} *shared;

static void
reset(void)
{
  atomic_store(&shared->runs, 0);
  atomic_store(&shared->seen, 0);
  atomic_store(&shared->may_end, 0);
  atomic_store(&shared->cause, 0);
  atomic_store(&shared->pid, 0);
  atomic_store(&shared->grandchild, 0);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static dk_result
tells_pid(dk_task *task, dk_str input)
{
  char *text = dk_task_alloc(task, 64);

  (void)input;
  snprintf(text, 64, "%d", (int)getpid());
  return dk_done(task, dk_str_of(text));
}

static dk_result
tells_info(dk_task *task, dk_str input)
{
  const struct dk_task_info *info = dk_task_info(task);
  char *text = dk_task_alloc(task, 200);

  snprintf(text, 200, "%s %llu %llu %s %s %s %s %u %d %s", info->instance.ptr,
           (unsigned long long)info->execution_id, (unsigned long long)info->activity_id,
           info->name.ptr, info->orchestration.ptr, info->version.ptr, info->worker.ptr,
           info->attempt, info->fence > 0, input.ptr);
  return dk_done(task, dk_str_of(text));
}

static dk_result
echo(dk_task *task, dk_str input)
{
  return dk_done(task, input);
}

static dk_result
fails(dk_task *task, dk_str input)
{
  (void)input;
  return dk_error(task, "failed in a process");
}

static dk_result
crashes(dk_task *task, dk_str input)
{
  (void)task, (void)input;
  atomic_fetch_add(&shared->runs, 1);
  raise(SIGKILL);
  return dk_done(task, input);
}

static dk_result
crashes_once(dk_task *task, dk_str input)
{
  signal(SIGSEGV, SIG_DFL); /* a sanitizer would handle it */
  if (atomic_fetch_add(&shared->runs, 1) == 0)
    raise(SIGSEGV);
  return dk_done(task, input);
}

static dk_result
exits(dk_task *task, dk_str input)
{
  (void)task, (void)input;
  _exit(7);
}

static dk_result
obeys(dk_task *task, dk_str input)
{
  struct pollfd set = {.fd = dk_task_cancel_fd(task), .events = POLLIN};

  atomic_fetch_add(&shared->runs, 1);
  atomic_store(&shared->cause, dk_task_sleep(task, 3600 * 1000));
  atomic_fetch_add(&shared->seen, poll(&set, 1, 0) == 1);
  return dk_done(task, input);
}

/* Ignores signals, and has a process of its own; both have to be killed. */
static dk_result
stubborn(dk_task *task, dk_str input)
{
  pid_t pid = fork();

  if (pid == 0)
    for (;;)
      pause();
  atomic_store(&shared->grandchild, pid);
  atomic_store(&shared->pid, getpid());
  atomic_fetch_add(&shared->runs, 1);
  while (!atomic_load(&shared->may_end))
    pause();
  return dk_done(task, input);
}

/* What a child must not have: descriptors of the runtime, and its standard input. */
static dk_result
tells_descriptors(dk_task *task, dk_str input)
{
  char *text = dk_task_alloc(task, 64);
  char byte;
  int n = 0;

  (void)input;
  for (int fd = 3; fd < 256; fd++)
    n += fcntl(fd, F_GETFD) >= 0;
  snprintf(text, 64, "%d open, %zd to read", n, read(STDIN_FILENO, &byte, 1));
  return dk_done(task, dk_str_of(text));
}

/* ---- ends ------------------------------------------------------------------------------------ */

static struct shop *
open_shop(struct dk_zygote *zygote)
{
  struct shop *shop = shop_open_with(faulty_open_model(), registry);

  reset();
  shop->options.zygote = zygote;
  shop_start(shop);
  return shop;
}

/* The registry is shared by all tests. */
static void
close_shop(struct shop *shop)
{
  shop->registry = NULL;
  shop_close(shop);
}

static void
test_ends(struct dk_zygote *zygote)
{
  struct shop *shop = open_shop(zygote);
  struct dk_text large = DK_TEXT_EMPTY;

  shop_order(shop, 1, "info", "and its input");
  is(shop_wait(shop, 1)->text, "i 1 1 info test 1.0.0 here 1 1 and its input",
     "an activity in a process knows what it is");
  shop_order(shop, 2, "fails", "");
  struct came *came = shop_wait(shop, 2);
  cmp_ok(came->kind, "==", MESSAGE_ACTIVITY_FAILED, "one that fails has failed");
  is(came->text, "failed in a process", "with its words");
  while (large.length < 3000000)
    dk_text_puts(&large, "0123456789");
  shop_order_text(shop, 3, "echo", (dk_str){dk_text_str(&large), large.length});
  cmp_ok(shop_wait(shop, 3)->length, "==", large.length, "3 MB go there and back");
  dk_text_done(&large);
  shop_order(shop, 4, "pid", "");
  int pid = atoi(shop_wait(shop, 4)->text);
  shop_order(shop, 5, "pid", "");
  ok(pid > 0 && pid != getpid(), "it is another process");
  cmp_ok(atoi(shop_wait(shop, 5)->text), "==", pid, "which is used again");
  shop_order(shop, 6, "descriptors", "");
  ok(says(shop_wait(shop, 6)->text, " open, 0 to read"), "it has nothing to read");
  ok(atoi(shop->came[6].text) <= 4, "and no descriptors but its own");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_WARNING), "==", 0, "no warning is logged");
  close_shop(shop);
}

static void
test_crashes(struct dk_zygote *zygote)
{
  struct shop *shop = open_shop(zygote);

  shop_order(shop, 1, "once", "x");
  is(shop_wait(shop, 1)->text, "x", "one that crashed is run again");
  cmp_ok(atomic_load(&shared->runs), "==", 2, "twice in all");
  ok(says(listener_latest(shop->listener, DK_LOG_TEXT).text, "signal 11"), "the crash is logged");
  atomic_store(&shared->runs, 0);
  shop_order(shop, 2, "crashes", "x");
  struct came *came = shop_wait(shop, 2);
  cmp_ok(came->kind, "==", MESSAGE_ACTIVITY_FAILED, "one that crashes always has failed");
  cmp_ok(came->code, "==", CODE_POISON, "as poison");
  ok(says(came->text, "crashed: signal 9"), "and says how");
  cmp_ok(atomic_load(&shared->runs), "==", 3, "after all attempts it may have");
  shop_order(shop, 3, "exits", "x");
  ok(says(shop_wait(shop, 3)->text, "exit status 7"), "one that ends its process is reported, too");
  shop_order(shop, 4, "echo", "y");
  is(shop_wait(shop, 4)->text, "y", "other activities run");
  close_shop(shop);
}

/* ---- cancellation ---------------------------------------------------------------------------- */

static void
test_obeys(struct dk_zygote *zygote, bool is_local)
{
  struct shop *shop = open_shop(zygote);

  shop_order(shop, 1, "obeys", "x");
  ok(UNTIL(atomic_load(&shared->runs) == 1), "an activity in a process runs");
  shop_cancel(shop, 1, 1, is_local);
  ok(UNTIL(shop_counter(shop, COUNT_GRACE_KEPT) == 1), "%s, it ends in its grace",
     is_local ? "signalled by the commit" : "learnt by a renewal");
  cmp_ok(atomic_load(&shared->cause), "==", DK_CAUSE_CANCELLED, "its token has the cause");
  cmp_ok(atomic_load(&shared->seen), "==", 1, "its descriptor is readable");
  shop_order(shop, 2, "echo", "y");
  is(shop_wait(shop, 2)->text, "y", "other activities run");
  cmp_ok(shop->came[1].times, "==", 0, "its result is dropped");
  cmp_ok(listener_level(shop->listener, DK_LEVEL_WARNING), "==", 0, "no warning is logged");
  close_shop(shop);
}

static bool
is_alive(pid_t pid)
{
  char path[64], state = 'X';
  FILE *file;

  snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
  file = fopen(path, "r");
  if (!file)
    return false;
  if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
    state = 'X';
  fclose(file);
  return state != 'Z' && state != 'X';
}

static void
test_killed(struct dk_zygote *zygote)
{
  struct shop *shop = open_shop(zygote);

  shop->options.grace_ms = 500;
  shop_order(shop, 1, "stubborn", "x");
  ok(UNTIL(atomic_load(&shared->runs) == 1), "an activity that ignores signals runs in a process");
  int64_t from = ticks_now();
  pid_t pid = atomic_load(&shared->pid), grandchild = atomic_load(&shared->grandchild);
  ok(is_alive(pid) && is_alive(grandchild), "with a process of its own");
  shop_cancel(shop, 1, 1, true);
  ok(listener_until(shop->listener, DK_LOG_GRACE_EXCEEDED, 1), "it exceeds its grace");
  cmp_ok(ticks_now() - from, ">=", 500, "not before that has ended");
  ok(UNTIL(!is_alive(pid)), "and is killed");
  ok(UNTIL(!is_alive(grandchild)), "with what it has started");
  cmp_ok(listener_count(shop->listener, DK_LOG_QUARANTINED), "==", 0, "no thread is left");
  cmp_ok(shop_counter(shop, COUNT_GRACE_KEPT), "==", 0, "its grace was not kept");
  shop_order(shop, 2, "echo", "y");
  is(shop_wait(shop, 2)->text, "y", "other activities run");
  close_shop(shop);
}

static void
test_stop(struct dk_zygote *zygote)
{
  struct shop *shop = open_shop(zygote);
  struct dk_leftover leftover;

  shop->options.grace_ms = 200;
  shop_order(shop, 1, "stubborn", "x");
  ok(UNTIL(atomic_load(&shared->runs) == 1), "an activity in a process runs");
  ok(shop_stop(shop, 0, &leftover), "a stop leaves nothing in this process");
  cmp_ok(leftover.activities, "==", 1, "the activity is given back");
  cmp_ok(leftover.not_given_back + leftover.quarantined, "==", 0, "and no thread is left");
  ok(UNTIL(!is_alive(atomic_load(&shared->pid))), "its process is killed");
  close_shop(shop);
}

/* ---- the zygote ------------------------------------------------------------------------------ */

static void
test_no_zygote(void)
{
  struct shop *shop = open_shop(NULL);

  shop_order(shop, 1, "echo", "x");
  ok(listener_until(shop->listener, DK_LOG_STALLED, 1),
     "without a zygote an activity in a process is delayed");
  struct heard delayed = listener_latest(shop->listener, DK_LOG_STALLED);
  ok(says(delayed.text, "dk_zygote_start"),
     "and the log says what is missing");
  close_shop(shop);
}

static pid_t
parent_of(pid_t pid)
{
  char path[64];
  int parent = 0;
  FILE *file;

  snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
  file = fopen(path, "r");
  if (file && fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1)
    parent = 0;
  if (file)
    fclose(file);
  return parent;
}

/* Its children end with it; their activities are given back, and that is logged once. */
static void
test_zygote_dies(struct dk_zygote *zygote)
{
  struct shop *shop = open_shop(zygote);
  char reason[200] = "";

  shop_order(shop, 1, "stubborn", "x");
  ok(UNTIL(atomic_load(&shared->runs) == 1), "an activity in a process runs");
  ok(activity_pool_is_well(shop->pool, reason, sizeof(reason)), "the worker is healthy");
  pid_t pid = atomic_load(&shared->pid);
  kill(parent_of(pid), SIGKILL);
  ok(UNTIL(!is_alive(pid)), "when the zygote dies, so does its process");
  ok(UNTIL(!activity_pool_is_well(shop->pool, reason, sizeof(reason))),
     "the worker is not healthy");
  ok(says(reason, "zygote"), "and the reason names the zygote");
  ok(listener_until(shop->listener, DK_LOG_STALLED, 1), "others are delayed");
  ok(UNTIL(shop_counter(shop, COUNT_ACTIVITIES_PUT_OFF) >= 5), "again and again");
  cmp_ok(listener_count(shop->listener, DK_LOG_STALLED), "==", 1, "which is logged once");
  shop_look(shop);
  cmp_ok(shop->came[1].times, "==", 0, "and fails nothing");
  kill(atomic_load(&shared->grandchild), SIGKILL);
  close_shop(shop);
}

/* Runs in its own process, which dies; the zygote and the children have to end by themselves. */
static void
test_runtime_dies(void)
{
  struct dk_zygote *zygote;
  int status;

  reset();
  pid_t runtime = fork();
  if (runtime == 0) {
    struct dk_text text = DK_TEXT_EMPTY;
    if (dk_zygote_start(registry, &zygote) != DK_OK)
      _exit(1);
    struct child *child = zygote_take(zygote);
    for (int i = 0; i < 4; i++)
      frame_put_number(&text, 1);
    frame_put_text(&text, dk_str_of("stubborn"));
    for (int i = 0; i < 7; i++)
      frame_put_text(&text, dk_str_of("x"));
    if (!child || !frame_send(child->reader.fd, FRAME_ORDER, &text, -1))
      _exit(2);
    for (;;)
      pause();
  }
  ok(UNTIL(atomic_load(&shared->runs) == 1), "another runtime has a process that runs");
  pid_t pid = atomic_load(&shared->pid), its_zygote = parent_of(pid);
  kill(runtime, SIGKILL);
  waitpid(runtime, &status, 0);
  ok(UNTIL(!is_alive(pid)), "when it is killed, its process ends");
  ok(UNTIL(!is_alive(its_zygote)), "and its zygote");
  ok(UNTIL(!is_alive(atomic_load(&shared->grandchild))), "and what the process had started");
}

static void
test_refusals(void)
{
  struct dk_zygote *zygote = NULL;

  cmp_ok(dk_zygote_start(NULL, &zygote), "==", DK_INVALID, "no zygote without a registry");
  dk_zygote_stop(NULL);
#ifdef __SANITIZE_THREAD__
  skip(1, "this sanitizer has a thread of its own");
#else
  struct shop *shop = open_shop(NULL);
  cmp_ok(dk_zygote_start(registry, &zygote), "==", DK_INVALID, "nor beside other threads");
  close_shop(shop);
#endif
}

static void
add(const char *name, dk_activity_fn *function)
{
  const struct dk_activity_traits traits = {.struct_size = sizeof(traits),
                                            .isolation = DK_IN_PROCESS};

  if (dk_register_activity(registry, name, function, &traits) != DK_OK)
    BAIL_OUT("%s cannot be registered", name);
}

int
main(void)
{
  struct dk_zygote *zygote = NULL;

  shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  registry = dk_registry_new();
  if (shared == MAP_FAILED || !registry)
    BAIL_OUT("no memory");
  add("info", tells_info);
  add("pid", tells_pid);
  add("echo", echo);
  add("fails", fails);
  add("crashes", crashes);
  add("once", crashes_once);
  add("exits", exits);
  add("obeys", obeys);
  add("stubborn", stubborn);
  add("descriptors", tells_descriptors);
  cmp_ok(dk_zygote_start(registry, &zygote), "==", DK_OK, "a zygote at the top of main");
  test_runtime_dies();
  test_refusals();
  test_ends(zygote);
  test_crashes(zygote);
  test_obeys(zygote, true);
  test_obeys(zygote, false);
  test_killed(zygote);
  test_stop(zygote);
  test_no_zygote();
  test_zygote_dies(zygote);
  dk_zygote_stop(zygote);
  dk_registry_free(registry);
  return done_testing();
}
