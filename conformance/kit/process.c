/* SPDX-License-Identifier: Apache-2.0 */
/* An actor that is a process of its own.  It is forked before the check's process loads anything;
 * with its first operation it loads the plugin itself and opens the same store, and then runs
 * operations as a thread does.  It owns its library, handle and caller; the caller's memory is the
 * actor's part of the shared map, so that the check can read the results there. */
#include "conformance/kit/kit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct process {
  struct actor *who;
  struct dk_library *library;
  struct dk_store *store;
  struct dk_caller *caller;
};

static bool
process_refuse(struct process *p, dk_status status, const char *what, const char *why)
{
  struct op *op = &p->who->op;

  op->status = status;
  op->broken = 1;
  snprintf(op->text, sizeof(op->text), "%.80s: %.400s", what, why);
  return false;
}

static bool
need_library(struct process *p)
{
  const struct kit_job *job = p->who->job;
  struct dk_refusal refusal = {.number = 0};

  if (p->library != NULL)
    return true;
  atomic_store(&p->who->loads, 1);
  if (dk_library_open(job->plugin, kit_library_flags(job), &p->library, &refusal) != 0)
    return process_refuse(p, DK_INTERNAL, "the plugin cannot be loaded", refusal.what);
  return true;
}

static bool
need_store(struct process *p)
{
  struct kit_shared *shared = p->who->shared;
  struct dk_host_options options;
  struct kit_settings settings;
  dk_status status;

  if (p->store != NULL)
    return true;
  if (!need_library(p))
    return false;
  if (!kit_settings(shared, p->who->job, shared->store_value, &settings))
    return process_refuse(p, DK_INTERNAL, "the store cannot be opened", "too many settings");
  kit_options(shared, &options);
  status = dk_store_open(p->library, &options, p->caller,
                         kit_open_flags(shared, dk_library_provider(p->library)),
                         settings.items, settings.n, &p->store);
  if (status != DK_OK)
    return process_refuse(p, status, "the store cannot be opened",
                          dk_caller_failure(p->caller)->text);
  return true;
}

static void
close_store(struct process *p)
{
  const char *stuck = dk_store_close(p->store);

  if (stuck != NULL)
    process_refuse(p, DK_INTERNAL, "a call did not return when the store was closed", stuck);
  p->store = NULL;
}

/* ---- an operation that ends with its process ------------------------------------------------- */

/* In a copy of this process, which has loaded nothing: only what the operation itself does to files
 * is counted, but what open has written may be lost with it. */
static void
run_and_die(struct process *p)
{
  struct op *op = &p->who->op;

  if (op->doom.end == KIT_POWER_CUT)
    kit_disk_record();
  if (op->kind == OP_OPEN)
    kit_disk_arm(&op->doom);
  if (!need_store(p))
    _exit(0);
  kit_disk_arm(&op->doom);
  if (op->kind == OP_OPEN)
    op->status = DK_OK;
  else
    kit_op_run(op, p->store, p->caller);
  atomic_store(&op->doom.has_answered, 1);
  kit_disk_end(&op->doom);
}

static void
run_doomed(struct process *p)
{
  struct op *op = &p->who->op;
  int how = 0;
  pid_t child;

  op->status = DK_OUTCOME_UNKNOWN;
  child = kit_fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_and_die(p);
  }
  while (child > 0 && waitpid(child, &how, 0) < 0 && errno == EINTR)
    continue;
  /* The caller lies in the shared map, and was left in the midst of a call. */
  p->caller = dk_caller_new(p->who->reply, p->who->reply_size);
  if (p->caller == NULL)
    _exit(1);
  if (child < 0 || (WIFEXITED(how) && op->broken == 0))
    process_refuse(p, DK_INTERNAL, "a process that was to be killed", "it has ended by itself");
  else if (WIFSIGNALED(how) && WTERMSIG(how) != SIGKILL)
    process_refuse(p, DK_INTERNAL, "a process that was to be killed", strsignal(WTERMSIG(how)));
}

static void
process_run(struct process *p)
{
  struct op *op = &p->who->op;

  if (op->doom.end != KIT_LIVES_ON) {
    run_doomed(p);
    return;
  }
  switch (op->kind) {
  case OP_OPEN:
    if (need_store(p))
      op->status = DK_OK;
    break;
  case OP_CLOSE:
    close_store(p);
    break;
  default:
    /* Opens the handle first, to be ready at the line. */
    if (!need_store(p))
      break;
    if (op->at_line != 0)
      kit_stand_at_line(p->who);
    atomic_store(&p->who->begun, 1);
    kit_disk_arm(op->doom.error != 0 ? &op->doom : NULL);
    kit_op_run(op, p->store, p->caller);
    kit_disk_arm(NULL);
  }
}

void
kit_process_main(struct actor *who)
{
  struct process p = {.who = who};

  p.caller = dk_caller_new(who->reply, who->reply_size);
  if (p.caller == NULL)
    _exit(1);
  kit_watch_forks(who->shared, who->job);
  for (;;) {
    while (sem_wait(&who->go) != 0)
      continue;
    if (who->op.kind == OP_QUIT)
      break;
    dk_caller_set_actor(p.caller, who->clock_actor);
    process_run(&p);
    kit_done(who);
  }
  dk_store_close(p.store);
  dk_caller_free(p.caller);
  dk_library_close(p.library);
  _exit(0);
}
