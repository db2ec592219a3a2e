/* SPDX-License-Identifier: Apache-2.0 */
/* After the drawn steps: everything that is left comes out, so that what a call has left behind
 * unseen is seen.  Histories and lists are read; then, just before each instant that a request has
 * named and at it, all turns and all work are fetched and ended. */
#include "conformance/random/random.h"

#include <stdlib.h>

enum { LEASE = 1000, MOST_EXECUTIONS = 8, MOST_INSTANTS = 80 };

static bool
settle_call(struct pass *p, const struct op *request, struct token_ref token)
{
  struct op *op = lasting(p, 1, sizeof(*op));

  *op = *request;
  return play_new(p, (struct step){.kind = STEP_CALL, .token = token, .request = op});
}

static bool
settle_time(struct pass *p, int64_t time)
{
  return time <= now(p->t) ||
         play_new(p, (struct step){.kind = STEP_TIME, .ms = time - now(p->t)});
}

/* ---- looking --------------------------------------------------------------------------------- */

static bool
read_executions(struct pass *p, struct dk_bytes instance)
{
  for (uint64_t id = 0; id < MOST_EXECUTIONS; id++) {
    if (!settle_call(p, &(struct op){
                          .kind = OP_READ_HISTORY,
                          .read_history = {.struct_size = sizeof(struct dk_read_history),
                                           .instance = instance,
                                           .execution_id = id},
                        }, (struct token_ref){0, 0, 0}))
      return false;
    if (p->ours.history->found == 0)
      break;
  }
  return true;
}

static bool
list_all(struct pass *p)
{
  static const struct op list = {
    .kind = OP_LIST_INSTANCES,
    .list_instances = {.struct_size = sizeof(struct dk_list_instances), .flags = DK_LIST_OUTPUT},
  };
  static const struct op stats = {.kind = OP_READ_STATS};

  return !p->t->has_admin || (settle_call(p, &list, (struct token_ref){0, 0, 0}) &&
                              settle_call(p, &stats, (struct token_ref){0, 0, 0}));
}

static bool
look_at_all(struct pass *p)
{
  struct random_run *run = p->run;

  for (size_t i = 0; i < n_ids(run); i++)
    if (!read_executions(p, run->ids[i]))
      return false;
  return list_all(p);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static bool
take_turns(struct pass *p)
{
  const struct op fetch = {
    .kind = OP_FETCH_TURN,
    .fetch_turn = {.struct_size = sizeof(struct dk_fetch_turn), .lock_ms = LEASE},
  };
  struct dk_turn_result *nothing = lasting(p, 1, sizeof(*nothing));

  nothing->struct_size = sizeof(*nothing);
  for (;;) {
    if (!settle_call(p, &fetch, (struct token_ref){0, 0, 0}))
      return false;
    if (p->ours.status != DK_OK)
      return true;
    if (!settle_call(p, &(struct op){.kind = OP_ACK_TURN, .result = nothing},
                     (struct token_ref){p->step, 0, 0}))
      return false;
  }
}

static bool
take_work(struct pass *p)
{
  const struct op fetch = {
    .kind = OP_FETCH_WORK,
    .fetch_work = {.struct_size = sizeof(struct dk_fetch_work),
                   .max_items = 1,
                   .lock_ms = LEASE,
                   .tag_rule = DK_TAG_ANY,
                   .session_rule = DK_SESSION_NONE},
  };
  const struct op ack = {
    .kind = OP_ACK_WORK,
    .work_result = {.struct_size = sizeof(struct dk_work_result)},
  };

  for (;;) {
    if (!settle_call(p, &fetch, (struct token_ref){0, 0, 0}))
      return false;
    if (p->ours.status != DK_OK)
      return true;
    if (!settle_call(p, &ack, (struct token_ref){p->step, 0, 0}))
      return false;
  }
}

static bool
take_all(struct pass *p)
{
  return take_turns(p) && take_work(p);
}

/* ---- as time passes -------------------------------------------------------------------------- */

static int
by_time(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

  return (x > y) - (x < y);
}

void
settle(struct pass *p)
{
  struct dk_check *t = p->t;
  size_t n = t->instants.n;
  int64_t *instants = kit_alloc(t, &t->arena, n + 1, sizeof(*instants));

  for (size_t i = 0; i < n; i++)
    instants[i] = t->instants.items[i];
  qsort(instants, n, sizeof(*instants), by_time);
  if (!look_at_all(p) || !take_all(p))
    return;
  for (size_t i = 0; i < n; i++) {
    if (n > MOST_INSTANTS && !one_in(&p->run->chance, n / MOST_INSTANTS))
      continue;
    if (instants[i] <= now(t) || instants[i] > now(t) + KIT_FAR)
      continue;
    if (!settle_time(p, instants[i] - 1) || !take_all(p) || !settle_time(p, instants[i]) ||
        !take_all(p))
      return;
  }
  look_at_all(p);
}
