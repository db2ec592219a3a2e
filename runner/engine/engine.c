/* SPDX-License-Identifier: Apache-2.0 */
/* Forks, watches and ends children.  Owns their slots; signals come as a descriptor, so that there
 * is no handler and no lock. */
#include "runner/engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/engine/child-deadline.h"
#include "runner/engine/child.h"
#include "runner/engine/judge.h"
#include "runner/engine/slot.h"
#include "runner/engine/task-names.h"
#include "runner/system/clock.h"
#include "runner/system/limits.h"
#include "runner/system/orphans.h"

enum {
  GRACE_MS = 200,
  MEMCHECK_GRACE_MS = 5000, /* Valgrind reports where a child hangs before it ends */
  DESTROY_MS = 5000, /* each store */
  LOOK_MS = 50 /* between two looks at the size of the children's output */
};

struct engine {
  const struct folder *folder;
  const struct memcheck *memcheck; /* NULL: nothing runs under it */
  unsigned n_slots;
  struct slot *slots;
  int signal_fd;
  struct pollfd *watched;    /* the signals, and the seals of each slot */
  sigset_t mask;             /* as it was, to be restored */
  struct sigaction on_child; /* as it was */
  struct strangers strangers;
  struct limits limits;
  char meddled[200];         /* limits that a child has changed, not yet part of a verdict */
  struct task_names names;   /* of its tasks */
  char why[400];             /* why the last task could not be started; "": it was */
  int interrupted;
  engine_wait_fn *on_wait;   /* NULL: none */
  void *context;             /* of on_wait */
};

/* ---- signals and limits ---------------------------------------------------------------------- */

/* True if a child has changed them. */
static bool
look_at_limits(struct engine *engine)
{
  char text[sizeof(engine->meddled)];

  if (!limits_restore(&engine->limits, text, sizeof(text)))
    return false;
  memcpy(engine->meddled, text, sizeof(engine->meddled));
  return true;
}

static void
send_signal(struct slot *slot, int number)
{
  kill(-slot->pid, number);
  kill(slot->pid, number);
  slot->signals++;
}

/* SIGTERM, a grace period, SIGKILL.  A stopped process gets its SIGTERM only when it continues. */
static void
push(struct slot *slot)
{
  if (slot->signals == 0) {
    send_signal(slot, SIGTERM);
    kill(-slot->pid, SIGCONT);
    int64_t grace = slot->task.memcheck ? MEMCHECK_GRACE_MS : GRACE_MS;
    slot->deadline_ns = clock_ns() + grace * 1000000;
  } else {
    send_signal(slot, SIGKILL);
    slot->deadline_ns = INT64_MAX;
  }
}

static void
take_interruption(struct engine *engine, int number)
{
  if (engine->interrupted)
    return;
  engine->interrupted = number;
  for (unsigned i = 0; i < engine->n_slots; i++) {
    struct slot *slot = &engine->slots[i];
    if (slot->busy && slot->task.kind != TASK_DESTROY)
      push(slot);
  }
}

/* The kernel's signal for a limit that a child has lowered.  It may arrive when that limit is
 * restored already, so only the limit in force now counts. */
static bool
is_of_lowered_limit(struct engine *engine, const struct signalfd_siginfo *info)
{
  if (info->ssi_signo == SIGXFSZ)
    return true;
  if (info->ssi_signo != SIGXCPU)
    return false;
  look_at_limits(engine);
  return info->ssi_code == SI_KERNEL && limits_leave_processor_time(&engine->limits);
}

static void
hear_signals(struct engine *engine)
{
  struct signalfd_siginfo info;

  while (read(engine->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
    if (info.ssi_signo != SIGCHLD && !is_of_lowered_limit(engine, &info))
      take_interruption(engine, (int)info.ssi_signo);
  }
}

/* ---- making and ending it -------------------------------------------------------------------- */

/* A parent that ignores SIGCHLD passes that on by exec, and then the kernel keeps no exit
 * status. */
static int
take_signals(struct engine *engine)
{
  struct sigaction keep = {.sa_handler = SIG_DFL};
  sigset_t wanted;

  if (sigaction(SIGCHLD, &keep, NULL) != 0)
    return -1;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  sigaddset(&wanted, SIGINT);
  sigaddset(&wanted, SIGTERM);
  sigaddset(&wanted, SIGHUP);
  sigaddset(&wanted, SIGXCPU); /* a limit that a child may lower; the others fail a call */
  sigaddset(&wanted, SIGXFSZ);
  /* No other signal stays blocked, even if a parent has blocked it. */
  if (sigprocmask(SIG_SETMASK, &wanted, &engine->mask) != 0)
    return -1;
  engine->signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
  if (engine->signal_fd < 0)
    return -1;
  return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

struct engine *
engine_new(const struct folder *folder, unsigned slots)
{
  struct engine *engine = calloc(1, sizeof(*engine));

  if (!engine)
    return NULL;
  engine->folder = folder;
  engine->signal_fd = -1;
  engine->slots = calloc(slots, sizeof(*engine->slots));
  engine->watched = calloc(slots + 1, sizeof(*engine->watched));
  sigprocmask(SIG_BLOCK, NULL, &engine->mask);
  sigaction(SIGCHLD, NULL, &engine->on_child);
  limits_note(&engine->limits);
  bool ready = engine->slots && engine->watched && orphans_note_strangers(&engine->strangers)
               && take_signals(engine) == 0;
  for (unsigned i = 0; ready && i < slots; i++) {
    engine->n_slots++;
    ready = slot_init(&engine->slots[i], folder, i);
  }
  if (ready)
    return engine;
  engine_free(engine);
  return NULL;
}

void
engine_free(struct engine *engine)
{
  char text[160];

  if (!engine)
    return;
  for (unsigned i = 0; i < engine->n_slots; i++) {
    struct slot *slot = &engine->slots[i];
    if (slot->busy)
      kill(-slot->pid, SIGKILL);
    slot_done(slot);
  }
  if (engine->n_slots > 0)
    orphans_end(&engine->strangers, NULL, 0, text, sizeof(text));
  orphans_forget_strangers(&engine->strangers);
  if (engine->signal_fd >= 0) {
    hear_signals(engine); /* so that no pending signal ends the process now */
    close(engine->signal_fd);
  }
  sigaction(SIGCHLD, &engine->on_child, NULL);
  sigprocmask(SIG_SETMASK, &engine->mask, NULL);
  free(engine->watched);
  free(engine->slots);
  free(engine);
}

void
engine_use_memcheck(struct engine *engine, const struct memcheck *memcheck)
{
  engine->memcheck = memcheck;
}

const char *
engine_cold_reason(const struct engine *engine)
{
  for (unsigned i = 0; i < engine->n_slots; i++) {
    const struct zygote *zygote = &engine->slots[i].zygote;
    if (zygote->cold && zygote->plugin[0])
      return zygote->why;
  }
  return "";
}

const char *
engine_reason(const struct engine *engine)
{
  return engine->why;
}

unsigned
engine_running(const struct engine *engine)
{
  unsigned n = 0;

  for (unsigned i = 0; i < engine->n_slots; i++)
    n += engine->slots[i].busy ? 1u : 0u;
  return n;
}

bool
engine_has_room(const struct engine *engine)
{
  return engine_running(engine) < engine->n_slots;
}

void
engine_hear(struct engine *engine)
{
  hear_signals(engine);
}

void
engine_on_wait(struct engine *engine, engine_wait_fn *wait, void *context)
{
  engine->on_wait = wait;
  engine->context = context;
}

int
engine_interrupted(const struct engine *engine)
{
  return engine->interrupted;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Notes what failed and keeps errno; returns false. */
static bool
engine_fail(struct engine *engine, const char *what, const char *where)
{
  int reason = errno;

  snprintf(engine->why, sizeof(engine->why), "%s%s%s: %s", what, where[0] ? " " : "", where,
           strerror(reason));
  errno = reason;
  return false;
}

/* Makes the folder of the task, and puts its files into the job. */
static bool
prepare_task(struct engine *engine, struct slot *slot, const struct task *task)
{
  slot->task = *task;
  slot->job = task->job;
  bool checks = task->kind == TASK_CHECK;
  slot->parent = checks ? engine->folder->checks : engine->folder->others;
  bool made = task_names_make_folder(&engine->names, slot->parent, slot->name, sizeof(slot->name));
  snprintf(slot->folder, sizeof(slot->folder), "%s/%s/%s", engine->folder->path,
           checks ? "checks" : "others", slot->name);
  slot->job.folder = slot->folder;
  if (!made)
    return engine_fail(engine, "mkdir", slot->folder);
  slot->output = slot_open_file(slot, "out");
  if (slot->output < 0)
    return engine_fail(engine, "the file for its output beside", slot->folder);
  slot->errors = slot_open_file(slot, "err");
  return slot->errors >= 0 || engine_fail(engine, "the file of the errors beside", slot->folder);
}

/* Under memcheck the child becomes another program, and starts late: its time begins when it has
 * started. */
static bool
start_memcheck(const struct engine *engine, struct slot *slot)
{
  if (!engine->memcheck) {
    errno = ENOSYS;
    return false;
  }
  slot->pid = zygote_start_child(&slot->zygote, engine->memcheck, &slot->task, &slot->job,
                                 slot->file);
  slot->started_ns = clock_ns();
  slot->deadline_ns = slot->started_ns + slot->task.deadline_ms * 1000000;
  return slot->pid > 0;
}

/* Forks.  Buffered output is written before, so that no child writes it again. */
static bool
fork_sealed(struct engine *engine, struct slot *slot)
{
  struct child child = {.task = &slot->task,
                        .shared = slot->shared,
                        .folder = slot->folder,
                        .output = slot->output,
                        .errors = slot->errors,
                        .runner = getpid()};

  if (!slot_reserve(slot)) {
    errno = ENOMEM;
    return engine_fail(engine, "memory for its outcome", "");
  }
  kit_shared_reset(slot->shared);
  fflush(NULL);
  slot->started_ns = clock_ns();
  slot->deadline_ns = slot->started_ns + slot->task.deadline_ms * 1000000;
  slot->job.rounds_until_ns = slot->started_ns + slot->task.deadline_ms * 1000000 / 10 * 8;
  slot->granted_ns = 0;
  slot->worked_ns = 0;
  slot->signals = 0;
  slot->tried = 0;
  slot->timed_out = false;
  slot->slow = false;
  slot->called_ns = 0;
  slot->flooded = false;
  if (slot->task.memcheck) {
    if (!start_memcheck(engine, slot))
      return engine_fail(engine, "the start under Valgrind", "");
  } else {
    slot->pid = fork();
    if (slot->pid == 0)
      child_main(&child, &slot->job);
    if (slot->pid < 0)
      return engine_fail(engine, "fork", "");
  }
  setpgid(slot->pid, slot->pid);
  slot->busy = true;
  return true;
}

/* The child has its end of the socket for seals; the runner keeps no copy of it. */
static bool
fork_child(struct engine *engine, struct slot *slot)
{
  struct stat socket;

  if (!seals_begin(&slot->seals, &slot->job.seals))
    return engine_fail(engine, "its socket to the runner", "");
  bool forked = fstat(slot->job.seals, &socket) == 0;
  slot->job.seals_inode = socket.st_ino;
  forked = forked && fork_sealed(engine, slot);
  int reason = errno;
  close(slot->job.seals);
  slot->job.seals = 0;
  if (!forked)
    seals_end(&slot->seals);
  errno = reason;
  return forked;
}

bool
engine_start(struct engine *engine, const struct task *task)
{
  struct slot *slot = NULL;

  for (unsigned i = 0; i < engine->n_slots && !slot; i++)
    slot = engine->slots[i].busy ? NULL : &engine->slots[i];
  if (!slot) {
    errno = EAGAIN;
    return engine_fail(engine, "a free slot", "");
  }
  engine->why[0] = '\0';
  if (slot_makes_stores(task))
    folder_note(engine->folder, '+', task->job.number);
  if (prepare_task(engine, slot, task) && fork_child(engine, slot))
    return true;
  int reason = errno;
  slot_remove_folder(slot);
  errno = reason;
  return false;
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* The leader of the group has ended and is not reaped yet, so no other group has its number; unless
 * its end was not seen. */
static void
end_group(struct engine *engine, struct slot *slot, bool seen, char *orphans, size_t size)
{
  struct running running[128];
  size_t n = 0;
  siginfo_t how;

  for (unsigned i = 0; i < engine->n_slots && n < 127; i++) {
    const struct slot *other = &engine->slots[i];
    if (other->zygote.pid > 0)
      running[n++] = (struct running){other->zygote.pid, NULL};
    if (other->busy)
      running[n++] = (struct running){other->pid, other == slot ? NULL : other->folder};
  }
  orphans_end(&engine->strangers, running, n, orphans, size);
  if (seen)
    kill(-slot->pid, SIGKILL);
  while (seen && waitid(P_PID, (id_t)slot->pid, &how, WEXITED) != 0 && errno == EINTR)
    continue;
  slot->busy = false;
}

/* A second child removes the stores; the check's outcome waits for it. */
static bool
start_removal(struct engine *engine, struct slot *slot, struct outcome *outcome)
{
  slot->task.kind = TASK_DESTROY;
  slot->task.memcheck = slot->task.warms = false;
  slot->task.suffixes = (const char (*)[64])slot->stores;
  slot->task.n_suffixes = slot->n_stores;
  slot->task.deadline_ms = slot->task.removal_ms ? slot->task.removal_ms : DESTROY_MS;
  slot->pending = outcome;
  if (fork_child(engine, slot))
    return true;
  slot->pending = NULL;
  return false;
}

static void
keep_leftovers(struct slot *slot, struct outcome *outcome)
{
  memcpy(outcome->leftovers, slot->stores, sizeof(outcome->leftovers));
  outcome->n_leftovers = slot->n_stores;
}

/* After the second child: what of its stores is left. */
static struct outcome *
finish_removal(struct slot *slot, struct outcome *removal)
{
  struct outcome *outcome = slot->pending;

  slot->pending = NULL;
  slot_forget_gone(slot, removal);
  keep_leftovers(slot, outcome);
  outcome_free(removal);
  return outcome;
}

static struct outcome *
leave_slot(struct engine *engine, struct slot *slot, struct outcome *outcome)
{
  if (slot->job.plugin && outcome->n_leftovers + outcome->n_unsure == 0)
    folder_note(engine->folder, '-', slot->job.number);
  slot_remove_folder(slot);
  slot->n_stores = 0;
  return outcome;
}

/* Only a check that has loaded the plugin is judged by it: no canary. */
static void
take_meddling(struct engine *engine, const struct slot *slot, struct ending *ending)
{
  if (slot->task.kind != TASK_CHECK || !slot->job.plugin
      || (kit_report_of(slot->shared)->phase == PHASE_START && !slot->task.memcheck))
    return;
  memcpy(ending->meddled, engine->meddled, sizeof(ending->meddled));
  memcpy(ending->intruded, engine->names.intruded, sizeof(ending->intruded));
  engine->meddled[0] = engine->names.intruded[0] = '\0';
}

/* The child of this slot has ended.  NULL: a second child now runs, which removes its stores. */
static struct outcome *
finish_child(struct engine *engine, struct slot *slot, const siginfo_t *how)
{
  char orphans[160];
  struct ending ending = {.how = *how,
                          .timed_out = slot->timed_out,
                          .slow = slot->slow,
                          .flooded = slot->flooded,
                          .deadline_ms = slot->task.deadline_ms,
                          .worked_ms = slot->worked_ns / 1000000,
                          .called_ns = slot->called_ns,
                          .stdout_bytes = slot_stdout_bytes(slot),
                          .seals = &slot->seals};

  seals_end(&slot->seals);
  if (slot->task.warms)
    zygote_take_heir(&slot->zygote);
  end_group(engine, slot, how->si_code != 0, orphans, sizeof(orphans));
  look_at_limits(engine);
  task_names_look(&engine->names, engine->folder);
  take_meddling(engine, slot, &ending);
  struct outcome *outcome = slot_collect(slot, engine->memcheck);
  memcpy(outcome->orphans, orphans, sizeof(outcome->orphans));
  judge_child(outcome, &slot->task, &ending);
  if (slot->task.memcheck)
    judge_memory(outcome, &slot->task, engine->memcheck->self);
  outcome->interrupted = engine->interrupted && slot->signals > 0 && !slot->timed_out
                         && !slot->flooded;
  if (slot->pending)
    return leave_slot(engine, slot, finish_removal(slot, outcome));
  slot_list_stores(slot, outcome->report);
  slot_list_unsure(slot, outcome);
  if (slot->n_stores > 0 && start_removal(engine, slot, outcome))
    return NULL;
  keep_leftovers(slot, outcome);
  return leave_slot(engine, slot, outcome);
}

/* ---- watching -------------------------------------------------------------------------------- */

/* Waits, and answers the children that have asked for a seal; poll skips descriptors that are
 * -1. */
static void
poll_all(struct engine *engine, int timeout)
{
  engine->watched[0] = (struct pollfd){.fd = engine->signal_fd, .events = POLLIN};
  for (unsigned i = 0; i < engine->n_slots; i++)
    engine->watched[1 + i] = (struct pollfd){.fd = engine->slots[i].seals.fd, .events = POLLIN};
  poll(engine->watched, 1 + engine->n_slots, timeout);
  for (unsigned i = 0; i < engine->n_slots; i++) {
    if (engine->watched[1 + i].revents)
      seals_answer(&engine->slots[i].seals);
  }
}

/* Waits for a signal, a child's question, the first deadline, or the next look at the output: never
 * longer, even if signals are lost. */
static void
watch_children(struct engine *engine)
{
  int64_t timeout = LOOK_MS;

  for (unsigned i = 0; i < engine->n_slots; i++) {
    const struct slot *slot = &engine->slots[i];
    int64_t left = (slot->deadline_ns - clock_ns() + 999999) / 1000000;
    if (slot->busy && slot->deadline_ns != INT64_MAX && left < timeout)
      timeout = left < 0 ? 0 : left;
  }
  poll_all(engine, (int)timeout);
  hear_signals(engine);
  look_at_limits(engine);
}

/* Ends the children that write without end: they fill the memory that all checks share. */
static void
stop_floods(struct engine *engine)
{
  for (unsigned i = 0; i < engine->n_slots; i++) {
    struct slot *slot = &engine->slots[i];
    if (!slot->busy || slot->signals > 0
        || slot_output_bytes(slot) <= (uint64_t)OUTPUT_MOST_MIB << 20)
      continue;
    slot->flooded = true;
    push(slot);
  }
}

/* Ends the children whose time is up. */
static void
meet_deadlines(struct engine *engine)
{
  int64_t now = clock_ns();

  for (unsigned i = 0; i < engine->n_slots; i++) {
    struct slot *slot = &engine->slots[i];
    if (slot->busy)
      child_deadline_of_next_store(slot);
    if (!slot->busy || slot->deadline_ns > now || child_deadline_move(slot, now))
      continue;
    if (slot->signals == 0)
      child_deadline_passed(slot, now);
    push(slot);
  }
}

/* How the child has ended; si_code 0 if its status is lost. */
static bool
has_ended(const struct slot *slot, siginfo_t *ret_how)
{
  *ret_how = (siginfo_t){0};
  if (waitid(P_PID, (id_t)slot->pid, ret_how, WEXITED | WNOWAIT | WNOHANG) == 0)
    return ret_how->si_pid != 0;
  return errno == ECHILD;
}

/* The outcome of a child that has ended. */
static struct outcome *
find_ended_child(struct engine *engine)
{
  for (unsigned i = 0; i < engine->n_slots; i++) {
    struct slot *slot = &engine->slots[i];
    siginfo_t how;
    if (!slot->busy || !has_ended(slot, &how))
      continue;
    struct outcome *outcome = finish_child(engine, slot, &how);
    if (outcome)
      return outcome;
  }
  return NULL;
}

struct outcome *
engine_wait(struct engine *engine)
{
  while (engine_running(engine) > 0) {
    hear_signals(engine); /* even if some child has always ended */
    struct outcome *outcome = find_ended_child(engine);
    if (outcome)
      return outcome;
    meet_deadlines(engine);
    stop_floods(engine);
    if (engine->on_wait)
      engine->on_wait(engine->context);
    watch_children(engine);
  }
  return NULL;
}

struct outcome *
engine_run(struct engine *engine, const struct task *task)
{
  if (!engine_start(engine, task))
    return NULL;
  return engine_wait(engine);
}
