/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes a call: the check's own thread, or an actor that waits for operations.
 *
 * An actor gets an operation by its semaphore, and signals its end by an eventfd: so the check
 * waits for it as a provider waits for work, through the clock, and virtual time may move.  For a
 * process the check also waits for the end of a pipe, so that its death is noticed at once.  The
 * signal is given before the actor becomes idle on the clock; otherwise time could jump, or a
 * deadlock be seen, in between.  The actors' descriptors and threads are closed and joined before
 * the process's state is compared.
 */
#include "conformance/kit/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the actor's side ------------------------------------------------------------------------ */

/* Moves to the place-th processor that this thread may use, and stays free to leave it: two threads
 * that wake one another tend to end up on one processor, where they would never overlap. */
static void
go_to_processor(int32_t place)
{
  cpu_set_t all, one;

  if (sched_getaffinity(0, sizeof(all), &all) != 0)
    return;
  for (size_t i = 0; i < CPU_SETSIZE; i++) {
    if (!CPU_ISSET(i, &all) || place-- > 0)
      continue;
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    sched_setaffinity(0, sizeof(one), &one);
    sched_setaffinity(0, sizeof(all), &all);
    return;
  }
}

/* The two racing actors release each other, so that no third thread takes their processors: the
 * second to arrive sets the time when both go, so soon that both are still on their processors.
 * The wait is bounded, in case the partner never arrives. */
void
kit_stand_at_line(struct actor *who)
{
  enum { GO_IN_NS = 20000 };
  struct kit_shared *shared = who->shared;
  int64_t bound = kit_real_ns() + INT64_C(2000000000);

  go_to_processor(atomic_fetch_add(&shared->at_line, 1));
  if (atomic_fetch_add(&shared->ready, 1) == 1)
    atomic_store(&shared->go_ns, kit_real_ns() + GO_IN_NS);
  while (atomic_load(&shared->go_ns) == 0 && kit_real_ns() < bound)
    sched_yield();
  while (kit_real_ns() < atomic_load(&shared->go_ns))
    continue;
  who->op.began_ns = kit_real_ns();
  kit_race_begins(shared);
}

void
kit_done(struct actor *who)
{
  uint64_t one = 1;
  ssize_t n;

  /* The signal comes first: so when `done` is seen it can be consumed, and none is left over for
   * the next call. */
  do
    n = write(who->done_fd, &one, sizeof(one));
  while (n < 0 && errno == EINTR);
  atomic_store_explicit(&who->done, 1, memory_order_release);
  if (who->shared->clock != NULL)
    dk_virtual_clock_finished(who->shared->clock, who->clock_actor);
}

static void *
thread_main(void *argument)
{
  struct actor *who = argument;

  for (;;) {
    while (sem_wait(&who->go) != 0)
      continue;
    if (who->op.kind == OP_QUIT)
      return NULL;
    if (who->op.at_line != 0)
      kit_stand_at_line(who);
    atomic_store(&who->begun, 1);
    kit_op_run(&who->op, who->store, who->caller);
    kit_done(who);
  }
}

/* ---- making them ----------------------------------------------------------------------------- */

static void
begin_actor(struct dk_check *t, struct actor *who)
{
  who->shared = t->shared;
  who->job = t->job;
  who->done_fd = eventfd(0, EFD_CLOEXEC);
  if (who->done_fd < 0 || sem_init(&who->go, 1, 0) != 0)
    kit_trouble(t, "an actor cannot be made: %s", strerror(errno));
  who->wait_fd = who->done_fd;
}

/* A number on the virtual clock, which forgets its actors with each restart. */
static void
join_clock(struct dk_check *t, struct actor *who)
{
  if (t->shared->clock != NULL)
    who->clock_actor = dk_virtual_clock_add_actor(t->shared->clock);
  if (who->clock_actor < 0)
    kit_trouble(t, "the virtual clock has no room for another actor");
}

/* One descriptor for done or dead: when the process dies its end of the pipe is closed. */
static void
watch_process(struct dk_check *t, struct actor *who)
{
  struct epoll_event event = {.events = EPOLLIN};

  who->wait_fd = epoll_create1(EPOLL_CLOEXEC);
  if (who->wait_fd < 0 || epoll_ctl(who->wait_fd, EPOLL_CTL_ADD, who->done_fd, &event) != 0 ||
      epoll_ctl(who->wait_fd, EPOLL_CTL_ADD, who->life_fd, &event) != 0)
    kit_trouble(t, "another process cannot be watched: %s", strerror(errno));
}

static void
prepare_process(struct dk_check *t, struct actor *who, uint32_t number)
{
  size_t size;
  void *region = kit_request_region(t->shared, number, &size);

  who->kind = IS_PROCESS;
  snprintf(who->name, sizeof(who->name), "process %u", number + 1);
  dk_arena_init_fixed(&who->requests, region, size);
  who->reply = kit_reply_region(t->shared, number, &who->reply_size);
  begin_actor(t, who);
}

static void
fork_process(struct dk_check *t, struct actor *who)
{
  pid_t parent = getpid(), child;
  int life[2];

  if (pipe2(life, O_CLOEXEC) != 0)
    kit_trouble(t, "another process cannot be forked: %s", strerror(errno));
  who->life_fd = life[0];
  child = fork();
  if (child == 0) {
    /* The process must not outlive the check; until here the runner's kill of the group covers
     * that. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(0);
    close(life[0]);
    kit_process_main(who);
  }
  close(life[1]);
  if (child < 0)
    kit_trouble(t, "another process cannot be forked: %s", strerror(errno));
  who->pid = child; /* by one side only: the actor lies in the shared map */
  watch_process(t, who);
}

/* Called before anything is loaded: a plugin that starts a thread in its constructor would hang in
 * a forked copy. */
void
kit_fork_processes(struct dk_check *t)
{
  uint32_t n = t->job->check->processes;

  if (n > KIT_PROCESSES)
    kit_trouble(t, "the check needs %u other processes; at most %d are possible", n, KIT_PROCESSES);
  for (uint32_t i = 0; i < n; i++) {
    prepare_process(t, &t->shared->actors[1 + i], i);
    fork_process(t, &t->shared->actors[1 + i]);
  }
}

static struct actor *
free_actor(struct dk_check *t, enum actor_kind kind, int *ret_number)
{
  struct actor *actors = t->shared->actors;
  struct actor *found = NULL;

  *ret_number = kind == IS_HANDLE ? 2 : 1; /* the check's own is handle 1 */
  for (int i = 1; i < KIT_ACTORS; i++) {
    if (actors[i].in_use && actors[i].kind == kind)
      (*ret_number)++;
    else if (found == NULL && !actors[i].in_use && actors[i].kind != IS_PROCESS)
      found = &actors[i];
  }
  if (found == NULL)
    kit_trouble(t, "a check may use %d actors", KIT_ACTORS);
  return found;
}

static struct actor *
new_actor(struct dk_check *t, enum actor_kind kind, const char *what)
{
  int number;
  struct actor *who = free_actor(t, kind, &number);

  who->kind = kind;
  snprintf(who->name, sizeof(who->name), "%s %d", what, number);
  begin_actor(t, who);
  join_clock(t, who);
  who->caller = dk_caller_new(NULL, 0);
  who->canceller = dk_canceller_new(NULL);
  if (who->caller == NULL || who->canceller == NULL)
    kit_trouble(t, "no memory for an actor");
  dk_caller_set_canceller(who->caller, who->canceller);
  who->in_use = 1;
  return who;
}

struct actor *
another_thread(struct dk_check *t)
{
  return new_actor(t, IS_THREAD, "thread");
}

struct actor *
another_handle(struct dk_check *t)
{
  struct actor *who = new_actor(t, IS_HANDLE, "handle");

  open_handle(t, who);
  return who;
}

struct actor *
another_process(struct dk_check *t)
{
  for (int i = 1; i <= KIT_PROCESSES; i++) {
    struct actor *who = &t->shared->actors[i];

    if (who->kind == IS_PROCESS && !who->in_use) {
      join_clock(t, who);
      who->in_use = 1;
      return who;
    }
  }
  kit_trouble(t, "the check uses more processes than its line in the table says");
}

struct actor *
kit_actor(struct dk_check *t, struct actor *actor)
{
  return actor != NULL ? actor : &t->shared->actors[0];
}

struct dk_store *
kit_store_of(struct dk_check *t, struct actor *who)
{
  struct dk_store *store = who->kind == IS_THREAD ? t->shared->actors[0].store : who->store;

  if (who->kind == IS_PROCESS)
    kit_trouble(t, "the handle of %s is in another process", who->name);
  if (store == NULL)
    kit_trouble(t, "the handle of %s is closed", who->name);
  return store;
}

/* ---- giving and waiting ---------------------------------------------------------------------- */

static void
need_thread(struct dk_check *t, struct actor *who)
{
  if (who->kind == IS_PROCESS)
    return;
  who->store = kit_store_of(t, who);
  if (who->has_thread)
    return;
  if (pthread_create(&who->thread, NULL, thread_main, who) != 0)
    kit_trouble(t, "a thread cannot be started");
  who->has_thread = 1;
}

void
kit_give(struct dk_check *t, struct actor *who)
{
  need_thread(t, who);
  if (who->canceller != NULL)
    dk_canceller_reset(who->canceller);
  if (who->caller != NULL)
    dk_caller_set_actor(who->caller, who->clock_actor);
  who->op.at_line = who->held;
  who->held = 0;
  atomic_store(&who->done, 0);
  atomic_store(&who->begun, 0);
  who->given = 1;
  if (t->shared->clock != NULL)
    dk_virtual_clock_give(t->shared->clock, who->clock_actor);
  sem_post(&who->go);
}

/* The other process has ended during its call: finds whether by a signal or by its own exit. */
static void
judge_death(struct dk_check *t, struct actor *who)
{
  siginfo_t info = {.si_pid = 0};
  const char *operation = kit_op_name(who->op.kind);

  if (who->kind != IS_PROCESS ||
      waitid(P_PID, (id_t)who->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return;
  if (atomic_load(&who->loads) == 0)
    kit_trouble(t, "%s, another process of the check, ended before it began to load the plugin (%s "
                   "%d): check whether memory or processes have run out, and try again", who->name,
                info.si_code == CLD_EXITED ? "exit" : "signal", info.si_status);
  snprintf(t->report->clause, sizeof(t->report->clause), "ABI-7");
  if (info.si_code == CLD_EXITED)
    kit_fail(t, VERDICT_EARLY_EXIT, NULL, "a provider never ends the process", NULL,
             "%s ended with exit %d in %s", who->name, info.si_status, operation);
  kit_fail(t, VERDICT_CRASH, NULL, "a provider never crashes", strsignal(info.si_status),
           "%s was killed by signal %d (%s) in %s", who->name, info.si_status,
           strsignal(info.si_status), operation);
}

static void
wait_once(struct dk_check *t, struct actor *who)
{
  struct dk_wait wait = {
    .actor = 0, .cancel_fd = -1, .fd = who->wait_fd, .events = 1, .until = INT64_MAX
  };
  dk_status status = t->clock->wait(t->clock, &wait);

  if (atomic_load_explicit(&who->done, memory_order_acquire) != 0)
    return;
  judge_death(t, who);
  if (status == DK_OK || t->real_time)
    return;
  kit_fail(t, VERDICT_FAIL, NULL, "the call returns once there is what it waits for",
           t->report->trace[who->trace_line % KIT_TRACE_LINES].text,
           "deadlock in virtual time: all calls wait and no time limit is left: work that should "
           "have woken %s of %s did not", kit_op_name(who->op.kind), who->name);
}

void
kit_wait_done(struct dk_check *t, struct actor *who)
{
  uint64_t count;

  kit_enter(t, kit_op_name(who->op.kind));
  while (atomic_load_explicit(&who->done, memory_order_acquire) == 0)
    wait_once(t, who);
  kit_left(t);
  /* It has signalled its end, and now becomes idle.  Consumes the signal, for the next call. */
  if (t->shared->clock != NULL)
    dk_virtual_clock_join(t->shared->clock, 0, who->clock_actor);
  struct pollfd ready = {.fd = who->done_fd, .events = POLLIN};
  if (poll(&ready, 1, 0) == 1 && read(who->done_fd, &count, sizeof(count)) < 0)
    kit_trouble(t, "an actor's descriptor cannot be read: %s", strerror(errno));
}

/* Behind a server the news of a change comes when it comes, in real time.  While the check's own
 * thread runs, the virtual clock stands still. */
static void
let_it_answer(struct dk_check *t, const struct actor *who, int64_t at, int ms)
{
  struct dk_wait wait = {
    .actor = 0, .cancel_fd = -1, .fd = who->wait_fd, .events = DK_WAIT_READ, .until = at
  };
  struct pollfd done = {.fd = who->wait_fd, .events = POLLIN};

  if (t->job->settle_ms == 0 || t->real_time ||
      atomic_load_explicit(&who->done, memory_order_acquire) != 0)
    return;
  if (t->clock->wait(t->clock, &wait) == DK_NOTHING)
    poll(&done, 1, ms);
}

void
until_it_answers(struct dk_check *t, struct actor *actor, int64_t at, bool patiently)
{
  enum { AGAIN_MS = 100 };

  let_it_answer(t, kit_actor(t, actor), at, patiently ? t->job->answer_ms / 5 : AGAIN_MS);
}

dk_status
finish(struct dk_check *t, struct actor *actor)
{
  enum { NEWS_MS = 300 };
  struct actor *who = kit_actor(t, actor);

  if (!who->given)
    kit_trouble(t, "finish(%s), but no call of it was started", who->name);
  let_it_answer(t, who, now(t), NEWS_MS);
  kit_wait_done(t, who);
  return kit_conclude(t, who);
}

struct dk_turn *
finished_turn(struct dk_check *t, struct actor *actor)
{
  struct actor *who = kit_actor(t, actor);

  if (who->given)
    finish(t, who);
  return who->op.turn;
}

struct dk_works *
finished_work(struct dk_check *t, struct actor *actor)
{
  struct actor *who = kit_actor(t, actor);

  if (who->given)
    finish(t, who);
  return who->op.works;
}

const struct dk_commit_outcome *
finished_commit(struct dk_check *t, struct actor *actor)
{
  struct actor *who = kit_actor(t, actor);

  if (who->given)
    finish(t, who);
  return &who->op.outcome;
}

/* In real time a call counts as waiting if it has not returned after a while. */
static bool
waits_for_real(struct actor *who)
{
  struct pollfd done = {.fd = who->wait_fd, .events = POLLIN};

  return poll(&done, 1, 200) == 0;
}

/* A thread that waits by the clock does not notice the death of a process: another thread does, and
 * marks the process as idle on the clock. */
struct death_watch {
  struct actor *who;
  pthread_t thread;
  int end_fd;
};

static void *
watch_for_death(void *argument)
{
  struct death_watch *watch = argument;
  struct pollfd ends[] = {{.fd = watch->who->life_fd, .events = POLLIN},
                          {.fd = watch->end_fd, .events = POLLIN}};

  while (poll(ends, 2, -1) < 0)
    continue;
  if (ends[0].revents != 0)
    dk_virtual_clock_finished(watch->who->shared->clock, watch->who->clock_actor);
  return NULL;
}

static bool
process_waits(struct dk_check *t, struct actor *who)
{
  struct death_watch watch = {.who = who, .end_fd = eventfd(0, EFD_CLOEXEC)};
  uint64_t one = 1;
  bool waits;

  if (watch.end_fd < 0 || pthread_create(&watch.thread, NULL, watch_for_death, &watch) != 0)
    kit_trouble(t, "another process cannot be watched: %s", strerror(errno));
  waits = dk_virtual_clock_until_it_waits(t->shared->clock, 0, who->clock_actor) != 0;
  while (write(watch.end_fd, &one, sizeof(one)) < 0)
    continue;
  pthread_join(watch.thread, NULL);
  close(watch.end_fd);
  return waits;
}

bool
kit_waits(struct dk_check *t, struct actor *who)
{
  if (t->real_time)
    return waits_for_real(who);
  if (who->kind == IS_PROCESS)
    return process_waits(t, who);
  return dk_virtual_clock_until_it_waits(t->shared->clock, 0, who->clock_actor) != 0;
}

void
until_it_waits(struct dk_check *t, struct actor *actor)
{
  struct actor *who = kit_actor(t, actor);
  char name[32];

  if (!who->given)
    kit_trouble(t, "until_it_waits(%s), but no call of it was started", who->name);
  if (kit_waits(t, who))
    return;
  dk_status status = finish(t, who);
  kit_fail(t, VERDICT_FAIL, NULL, "the call waits for work",
           t->report->trace[(t->report->n_trace - 1) % KIT_TRACE_LINES].text,
           "%s of %s should have waited, but returned %s", kit_op_name(who->op.kind), who->name,
           kit_status_name(status, name, sizeof(name)));
}

void
cancel_call(struct dk_check *t, struct actor *actor)
{
  struct actor *who = kit_actor(t, actor);

  if (who->canceller == NULL)
    kit_trouble(t, "a call of %s cannot be cancelled from here", who->name);
  say_in_trace(t, "cancel the call of %s", who->name);
  dk_cancel(who->canceller);
}

/* ---- the end of a pass ----------------------------------------------------------------------- */

static void
end_thread(struct actor *who)
{
  if (!who->has_thread)
    return;
  who->op.kind = OP_QUIT;
  sem_post(&who->go);
  pthread_join(who->thread, NULL);
  who->has_thread = 0;
}

static void
end_actor(struct actor *who)
{
  end_thread(who);
  dk_caller_free(who->caller);
  dk_canceller_free(who->canceller);
  who->caller = NULL;
  who->canceller = NULL;
  close(who->done_fd);
  sem_destroy(&who->go);
  who->store = NULL;
  who->in_use = 0;
  who->held = 0;
}

static void
finish_quietly(struct dk_check *t, struct actor *who)
{
  if (!who->given)
    return;
  if (who->canceller != NULL)
    dk_cancel(who->canceller);
  kit_wait_done(t, who);
  kit_conclude(t, who);
}

/* Cancels calls that the check has left running, closes handles and joins threads. */
void
kit_end_actors(struct dk_check *t)
{
  for (int i = 1; i < KIT_ACTORS; i++) {
    struct actor *who = &t->shared->actors[i];

    if (!who->in_use)
      continue;
    finish_quietly(t, who);
    if (who->kind == IS_PROCESS) {
      close_handle(t, who);
      who->in_use = 0;
      who->held = 0;
    } else if (who->kind == IS_HANDLE && who->store != NULL) {
      kit_close(t, who);
      end_actor(who);
    } else {
      end_actor(who);
    }
  }
}

/* After a pass the process closes and unloads; otherwise it is killed. */
static void
quit_process(struct actor *who, bool in_peace)
{
  siginfo_t info;

  if (in_peace) {
    who->op.kind = OP_QUIT;
    sem_post(&who->go);
  } else {
    kill(who->pid, SIGKILL);
  }
  waitid(P_PID, (id_t)who->pid, &info, WEXITED);
  close(who->wait_fd);
  close(who->life_fd);
  close(who->done_fd);
  sem_destroy(&who->go);
  who->pid = 0;
  who->in_use = 0;
}

/* An actor of another kind may take its place; no second process is forked. */
void
kill_process(struct dk_check *t, struct actor *actor)
{
  if (actor == NULL || actor->kind != IS_PROCESS || actor->given)
    kit_trouble(t, "kill_process() is for another process that has no call running");
  say_in_trace(t, "%s is killed", actor->name);
  quit_process(actor, false);
  actor->kind = IS_HANDLE;
}

void
kit_quit_processes(struct dk_check *t, bool in_peace)
{
  for (int i = 1; i <= KIT_PROCESSES; i++) {
    struct actor *who = &t->shared->actors[i];

    if (who->kind == IS_PROCESS && who->pid > 0)
      quit_process(who, in_peace);
  }
}

static bool
comes_back(struct actor *who)
{
  enum { LONG_ENOUGH_MS = 1000 };
  struct pollfd done = {.fd = who->done_fd, .events = POLLIN};

  if (who->canceller != NULL)
    dk_cancel(who->canceller);
  if (atomic_load(&who->done) == 0 && poll(&done, 1, LONG_ENOUGH_MS) != 1)
    return false;
  who->given = 0;
  return true;
}

/* After a failure: cancels the calls that still run, and kills other processes.  False: a call did
 * not return, so that nothing can be closed. */
bool
kit_call_actors_back(struct dk_check *t)
{
  bool all = true;

  for (int i = 1; i < KIT_ACTORS; i++) {
    struct actor *who = &t->shared->actors[i];

    if (!who->in_use || !who->given)
      continue;
    if (who->kind == IS_PROCESS)
      quit_process(who, false);
    else if (!comes_back(who))
      all = false;
  }
  return all;
}
