/* SPDX-License-Identifier: Apache-2.0 */
/* What the next call of an actor meets: see disk.h and shortage.h, which do it.  It is ordered
 * before the call begins, and holds for that call only. */
#include "conformance/kit/kit.h"

#include <string.h>

static void
need_process(struct dk_check *t, const struct actor *who, const char *word)
{
  if (who->kind != IS_PROCESS || who->given)
    kit_trouble(t, "%s() is for another process that has no call running", word);
}

void
kill_in_next_call(struct dk_check *t, struct actor *process, enum end_of_process how, uint32_t n)
{
  need_process(t, kit_actor(t, process), "kill_in_next_call");
  process->doom = (struct kit_doom){.end = (int32_t)how, .at = n};
}

void
fail_in_next_call(struct dk_check *t, struct actor *actor, struct fault fault)
{
  struct actor *who = kit_actor(t, actor);

  if (who->kind != IS_MAIN)
    need_process(t, who, "fail_in_next_call");
  if (fault.error == 0 || fault.n == 0)
    kit_trouble(t, "fail_in_next_call() needs an errno, and which call fails, from 1");
  who->doom = (struct kit_doom){
    .error = fault.error, .lasts = fault.lasts, .kind = (int32_t)fault.of, .at = fault.n
  };
}

struct last_call
last_call_of(struct dk_check *t, struct actor *actor)
{
  const struct actor *who = kit_actor(t, actor);
  const struct kit_doom *doom = &who->op.doom;

  return (struct last_call){
    .answered = doom->has_answered != 0,
    .status = who->op.status,
    .calls = doom->n_calls,
    .writes = doom->n_writes,
    .syncs = doom->n_syncs,
    .at = doom->call,
  };
}

void
run_out_of_memory(struct dk_check *t, uint32_t n, bool lasts)
{
  t->shortage = (struct kit_shortage){.at = n, .lasts = lasts};
  t->is_short = true;
}

uint32_t
requests_for_memory(struct dk_check *t)
{
  return atomic_load(&t->shortage.n_calls);
}

void
kit_take_doom(struct actor *who)
{
  who->op.doom = who->doom;
  memset(&who->doom, 0, sizeof(who->doom));
}

void
kit_faults_begin(struct dk_check *t, struct op *op)
{
  kit_disk_arm(op->doom.error != 0 ? &op->doom : NULL);
  kit_shortage_arm(t->is_short ? &t->shortage : NULL);
}

void
kit_faults_end(struct dk_check *t)
{
  kit_disk_arm(NULL);
  kit_shortage_arm(NULL);
  t->is_short = false;
}
