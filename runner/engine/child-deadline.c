/* SPDX-License-Identifier: Apache-2.0 */
/* The deadline of a child, which moves for delays that are not its fault. */
#include "runner/engine/child-deadline.h"

#include "runner/system/clock.h"
#include "runner/system/processor-wait.h"

enum {
  START_MS = 5000, /* until a check begins to load the plugin */
  LEAST_MS = 50,   /* shorter delays do not move the deadline */
  MOST_TIMES_GRANTED = 10,
  MOST_OPERATIONS = 5000, /* no check makes half as many: more are an endless loop */
  PARTS = 4 /* of its deadline: after each the engine looks whether operations still end */
};

/* Each store to be removed gets the whole time. */
void
child_deadline_of_next_store(struct slot *slot)
{
  uint32_t tried = kit_report_of(slot->shared)->operations;

  if (slot->task.kind != TASK_DESTROY || slot->signals > 0 || tried <= slot->tried
      || tried > slot->task.n_suffixes)
    return;
  slot->tried = tried;
  slot->deadline_ns = clock_ns() + slot->task.deadline_ms * 1000000;
}

/* On a busy machine a check is not blamed for the time in which it waited for a processor: its
 * deadline moves by that time, up to a limit. */
static bool
grant_time(struct slot *slot)
{
  int64_t most = MOST_TIMES_GRANTED * slot->task.deadline_ms * 1000000;
  int64_t starved = slot->signals > 0 ? 0 : processor_wait_ns(slot->pid);
  int64_t more = (starved < most ? starved : most) - slot->granted_ns;

  if (more < LEAST_MS * INT64_C(1000000))
    return false;
  slot->granted_ns += more;
  slot->deadline_ns += more;
  return true;
}

/* The time of a check begins when it begins to load the plugin: the steps before that take long
 * only on a busy machine. */
static bool
grant_start(struct slot *slot, int64_t now)
{
  int64_t until = slot->started_ns + INT64_C(1000000) * START_MS;

  if (slot->task.kind != TASK_CHECK || !slot->job.plugin || slot->task.memcheck
      || slot->signals > 0 || now >= until
      || kit_report_of(slot->shared)->phase != PHASE_START)
    return false;
  slot->deadline_ns = now + slot->task.deadline_ms * 1000000;
  return true;
}

/* Its operations still end: the store is slow, and does not hang.  The last operation has begun or
 * ended within the last half of the time; one that has run for longer hangs. */
static bool
still_works(const struct slot *slot, int64_t now)
{
  const struct kit_report *report = kit_report_of(slot->shared);

  return slot->task.kind == TASK_CHECK && slot->signals == 0 && report->operations > 1
         && report->operations < MOST_OPERATIONS
         && now - report->since_ns < slot->task.deadline_ms * 1000000 / 2;
}

/* A check is not ended in the middle of its work, as far as its task allows. */
static bool
grant_work(struct slot *slot, int64_t now)
{
  int64_t most = slot->task.more_ms * 1000000 - slot->worked_ns;
  int64_t part = slot->task.deadline_ms * 1000000 / PARTS;
  int64_t more = part < most ? part : most;

  if (more <= 0 || !still_works(slot, now))
    return false;
  slot->worked_ns += more;
  slot->deadline_ns = now + more;
  return true;
}

void
child_deadline_passed(struct slot *slot, int64_t now)
{
  const struct kit_report *report = kit_report_of(slot->shared);

  slot->timed_out = true;
  slot->slow = still_works(slot, now);
  slot->called_ns = report->running == 1 ? now - report->since_ns : 0;
}

bool
child_deadline_move(struct slot *slot, int64_t now)
{
  return grant_start(slot, now) || grant_time(slot) || grant_work(slot, now);
}
