/* SPDX-License-Identifier: Apache-2.0 */
/* Fairness: what is given back at once, or has just come, must not keep the rest waiting
 * [QUEUE-8, WORK-2].  One step fetches and gives back, or replaces what was done, until everything
 * that is eligible has come.  A fair provider has shown all after a few fetches; an unfair one may
 * take as long as the contract permits. */
#include "conformance/random/random.h"

#include <stdio.h>

enum { MOST_DELIVERIES = 1000, CALLS_OF_A_STEP = 10000, LEASE = 30000,
       FIRST_NEW = 2000000 };

/* The calls of this step: their tokens are of no other step. */
static bool
call_within(struct pass *p, const struct step *fair, uint32_t number, const struct op *request,
            struct token_ref token)
{
  struct step step = {
    .kind = STEP_CALL,
    .number = fair->number * CALLS_OF_A_STEP + number,
    .handle = fair->handle,
    .token = token,
    .request = request,
  };

  return play_step(p, &step);
}

/* ---- turns ----------------------------------------------------------------------------------- */

struct seen {
  bool ids[MOST_IDS];
};

static bool
is_ready(struct pass *p, struct dk_bytes instance)
{
  int64_t locked_until = 0, visible_at = 0;

  return look_at_model(p, instance, &visible_at, &locked_until) && visible_at <= now(p->t) &&
         locked_until <= now(p->t);
}

/* NULL: all have come. */
static const struct dk_bytes *
find_unseen(struct pass *p, const struct seen *seen)
{
  for (uint32_t i = 0; i < n_ids(p->run); i++)
    if (!seen->ids[i] && is_ready(p, p->run->ids[i]))
      return &p->run->ids[i];
  return NULL;
}

/* True: for the first time. */
static bool
see_turn(struct pass *p, struct seen *seen)
{
  for (uint32_t i = 0; i < n_ids(p->run); i++) {
    if (!same_bytes(p->theirs->turn->head.instance, p->run->ids[i]))
      continue;
    bool is_new = !seen->ids[i];
    seen->ids[i] = true;
    return is_new;
  }
  return false;
}

static bool
starved(struct pass *p, const struct step *fair, const char *clause, const char *what,
        struct dk_bytes instance)
{
  char expected[200];

  p->step = fair->number;
  snprintf(expected, sizeof(expected), "%s of \"%.100s\" before %d others", what,
           instance.ptr != NULL ? instance.ptr : "any instance", MOST_DELIVERIES);
  return differs(p, clause, "what was fetched and given back again and again", expected,
                 "only those that had come before");
}

static bool
play_fair_turns(struct pass *p, const struct step *fair)
{
  const struct op *fetch = fair->request;
  const struct op back = {.kind = OP_ABANDON_TURN, .ignore_attempt = 1};
  struct seen seen = {{false}};
  const struct dk_bytes *unseen;
  uint32_t number = 0;

  for (uint32_t n = 0; (unseen = find_unseen(p, &seen)) != NULL; n++) {
    if (n > MOST_DELIVERIES)
      return starved(p, fair, "QUEUE-8", "a turn", *unseen);
    uint32_t fetched = ++number;
    if (!call_within(p, fair, fetched, fetch, (struct token_ref){0, 0, 0}))
      return false;
    if (p->ours.status != DK_OK)
      return true;
    if (see_turn(p, &seen))
      n = 0;
    if (!call_within(p, fair, ++number, &back, (struct token_ref){p->step, 0, 0}))
      return false;
  }
  return true;
}

/* ---- work ------------------------------------------------------------------------------------ */

static bool
see_work(struct dk_work_item *seen, size_t *n_seen, const struct dk_work_item *item)
{
  const struct dk_works before = {.items = seen, .n_items = *n_seen};

  if (find_work(&before, &item->item) != NULL)
    return false;
  seen[(*n_seen)++] = *item;
  return true;
}

/* The activity is done, and a new one comes. */
static bool
replace(struct pass *p, const struct step *fair, uint32_t *number, struct token_ref token,
        struct dk_item *ret_new)
{
  const struct op done = {
    .kind = OP_ACK_WORK, .work_result = {.struct_size = sizeof(struct dk_work_result)}
  };
  struct op comes = {.kind = OP_ENQUEUE_WORK, .item = fair->request->item};

  comes.item.activity_id += (uint64_t)fair->number * CALLS_OF_A_STEP + *number;
  *ret_new = comes.item;
  return call_within(p, fair, ++*number, &done, token) &&
         call_within(p, fair, ++*number, &comes, (struct token_ref){0, 0, 0});
}

static bool
play_fair_work(struct pass *p, const struct step *fair)
{
  const struct op *fetch = fair->request;
  const struct op back = {.kind = OP_ABANDON_WORK, .ignore_attempt = 1};
  const size_t most_seen = 2 * MOST_DELIVERIES;
  struct dk_work_item *seen = kit_alloc(p->t, &p->t->arena, most_seen, sizeof(*seen));
  struct step asked = {.request = fetch};
  size_t n_seen = 0;
  uint32_t number = 0;

  for (uint32_t n = 0; n_seen + 1 < most_seen; n++) {
    if (ask_model_beside(p, &asked, seen, n_seen) > now(p->t))
      return true;
    if (n > MOST_DELIVERIES)
      return starved(p, fair, "WORK-2", "an activity", bytes(NULL));
    uint32_t fetched = ++number;
    if (!call_within(p, fair, fetched, fetch, (struct token_ref){0, 0, 0}))
      return false;
    if (p->ours.status != DK_OK)
      return true;
    if (see_work(seen, &n_seen, &p->theirs->works->items[0]))
      n = 0;
    struct token_ref token = {p->step, 0, 0};
    if (!fair->request->item.activity_id
          ? !call_within(p, fair, ++number, &back, token)
          : !replace(p, fair, &number, token, &seen[n_seen++].item))
      return false;
  }
  return true;
}

/* ---- the step -------------------------------------------------------------------------------- */

bool
play_fair(struct pass *p, const struct step *step)
{
  size_t before = p->handed.n;
  bool is_same =
    step->request->kind == OP_FETCH_TURN ? play_fair_turns(p, step) : play_fair_work(p, step);

  for (size_t i = before; i < p->handed.n; i++)
    p->handed.items[i].is_within = true;
  return is_same;
}

void
draw_fair(struct pass *p, struct step *ret_step)
{
  static const char *const owners[] = {"worker-1", "worker-2"};
  struct op *op = lasting(p, 1, sizeof(*op));
  bool is_work = one_in(&p->run->chance, 2);

  ret_step->kind = STEP_FAIR;
  op->kind = is_work ? OP_FETCH_WORK : OP_FETCH_TURN;
  op->fetch_turn = (struct dk_fetch_turn){
    .struct_size = sizeof(op->fetch_turn), .lock_ms = LEASE, .owner = draw_text(p, owners, 2)
  };
  op->fetch_work = (struct dk_fetch_work){
    .struct_size = sizeof(op->fetch_work), .max_items = 1, .lock_ms = LEASE,
    .tag_rule = DK_TAG_ANY, .session_rule = DK_SESSION_NONE
  };
  if (is_work && p->t->provider->ops->enqueue_for_worker != NULL && one_in(&p->run->chance, 2))
    op->item = (struct dk_item){
      .struct_size = sizeof(op->item), .instance = p->run->ids[0], .execution_id = 1,
      .activity_id = FIRST_NEW, .payload = bytes("new")
    };
  ret_step->request = op;
}
