/* SPDX-License-Identifier: Apache-2.0 */
/* Of variations: who makes the calls of a check, and what has happened to whatever a fetch brings
 * before the check gets it.
 *
 * A first delivery comes before the fetch of the check: the same fetch, whose result goes back, by
 * an abandon or because its short lease ends.  So the check's own fetch brings a second delivery,
 * and the check expects of it what it expects of a first one. */
#include "conformance/kit/kit.h"

#include <stdio.h>

/* ---- by whom --------------------------------------------------------------------------------- */

/* Two handles take the check's own calls in turn. */
static struct dk_store *
store_in_turn(struct dk_check *t, struct actor *who)
{
  bool is_second = who->kind == IS_MAIN && t->second != NULL && t->report->operations % 2 == 0;

  return is_second ? t->second : kit_store_of(t, who);
}

/* Nothing that a handle has in memory outlives a call; after many, every tenth call, because to
 * open takes a store longer than most calls.  Not while threads use it. */
static void
reopen_before_call(struct dk_check *t, struct actor *who)
{
  enum { MANY = 100, SOME = 10 };
  const struct variation *variation = who->op.variation;
  uint32_t n = t->report->operations;

  if (variation == NULL || !variation->reopens || who->kind != IS_MAIN || who->store == NULL ||
      (n > MANY && n % SOME != 0) || dk_cancelled(who->canceller))
    return;
  for (int i = 1; i < KIT_ACTORS; i++)
    if (t->shared->actors[i].in_use && t->shared->actors[i].kind == IS_THREAD)
      return;
  struct op op = who->op;
  kit_close(t, who);
  kit_reopen(t, who);
  who->op = op;
}

void
kit_run_plain(struct dk_check *t, struct actor *who)
{
  reopen_before_call(t, who);
  dk_caller_set_actor(who->caller, 0);
  struct dk_store *store = store_in_turn(t, who);
  kit_faults_begin(t, &who->op);
  kit_op_run(&who->op, store, who->caller);
  kit_faults_end(t);
  if (dk_cancelled(who->canceller))
    dk_canceller_reset(who->canceller);
}

static void
take_reply(struct op *op, const struct op *from)
{
  op->status = from->status;
  op->by_host = from->by_host;
  snprintf(op->text, sizeof(op->text), "%s", from->text);
  snprintf(op->distorted, sizeof(op->distorted), "%s", from->distorted);
  op->duplicate = from->duplicate;
  op->broken = from->broken;
  op->turn = from->turn;
  op->works = from->works;
  op->history = from->history;
  op->outcome = from->outcome;
  op->began_ns = from->began_ns;
  op->ended_ns = from->ended_ns;
  kit_give_admin_reply(op, from);
}

/* The check's handle and another process take its calls in turn.  False: the handle's turn. */
static bool
run_in_process(struct dk_check *t, struct actor *who)
{
  const struct variation *variation = who->op.variation;

  if (variation == NULL || !variation->leaves || who->kind != IS_MAIN || who->store == NULL ||
      t->report->operations % 2 == 0)
    return false;
  if (t->helper == NULL)
    t->helper = another_process(t);
  struct actor *helper = t->helper;
  kit_begin(t, helper, who->op.kind);
  kit_copy_request(t, &helper->requests, &who->op, &helper->op);
  kit_give(t, helper);
  kit_wait_done(t, helper);
  helper->given = 0;
  take_reply(&who->op, &helper->op);
  return true;
}

/* ---- first deliveries ------------------------------------------------------------------------ */

enum { MOMENT_MS = 1 };

static bool
ends_by_time(enum first_delivery kind)
{
  return kind == FIRST_EXPIRED || kind == FIRST_TAKEN_OVER;
}

static bool
is_work(const struct op *op)
{
  return op->kind == OP_FETCH_WORK;
}

/* Not while another call could take what is given back, nor for a fetch that is to be released.  In
 * real time a lease of a moment may end before its own answer. */
static bool
wants_first(struct dk_check *t, const struct actor *who)
{
  const struct op *op = &who->op;
  bool fetches = (op->kind == OP_FETCH_TURN && op->fetch_turn.fetch_id == 0) ||
                 (op->kind == OP_FETCH_WORK && op->fetch_work.fetch_id == 0);

  if (op->variation == NULL || op->variation->first == FIRST_NEVER || !fetches ||
      (t->real_time && ends_by_time(op->variation->first)) ||
      t->twin.inside || atomic_load(&t->shared->gate.countdown) != 0)
    return false;
  for (int i = 0; i < KIT_ACTORS; i++)
    if (t->shared->actors[i].given)
      return false;
  return true;
}

/* The tokens of the first delivery; NULL: a delivery of nothing. */
struct first {
  struct dk_bytes *tokens;
  size_t n;
};

static struct first
fetch_first(struct dk_check *t, struct actor *who)
{
  enum first_delivery kind = who->op.variation->first;
  struct op op = who->op;
  struct first first = {.n = 0};

  op.fetch_turn.wait_until = op.fetch_work.wait_until = 0;
  if (ends_by_time(kind))
    op.fetch_turn.lock_ms = op.fetch_work.lock_ms = MOMENT_MS;
  if (kind == FIRST_TAKEN_OVER)
    op.fetch_turn.owner = op.fetch_work.owner = bytes("the first to fetch");
  if (kind == FIRST_TAKEN_OVER && op.fetch_work.session_lock_ms > 0)
    op.fetch_work.session_lock_ms = MOMENT_MS;
  kit_op_run(&op, store_in_turn(t, who), who->caller);
  if (op.status != DK_OK)
    return first;
  first.n = is_work(&op) ? op.works->n_items : 1;
  first.tokens = kit_alloc(t, &t->arena, first.n, sizeof(*first.tokens));
  for (size_t i = 0; i < first.n; i++)
    first.tokens[i] = kit_copy_bytes(t, &t->arena,
                                     is_work(&op) ? op.works->items[i].work.lock_token
                                                  : op.turn->head.lock_token);
  return first;
}

static dk_status
call_with_token(struct dk_check *t, struct actor *who, enum op_kind kind, struct dk_bytes token,
                int64_t ms)
{
  struct op op = {.kind = kind, .token = token, .ms = ms, .ignore_attempt = 1,
                  .variation = who->op.variation, .limits = who->op.limits};

  kit_op_run(&op, store_in_turn(t, who), who->caller);
  return op.status;
}

static void
give_back(struct dk_check *t, struct actor *who, const struct first *first)
{
  enum op_kind kind = is_work(&who->op) ? OP_ABANDON_WORK : OP_ABANDON_TURN;
  int64_t delay = who->op.variation->first == FIRST_PUT_OFF ? MOMENT_MS : 0;
  char name[32];

  for (size_t i = 0; i < first->n; i++) {
    dk_status status = call_with_token(t, who, kind, first->tokens[i], delay);
    if (status != DK_OK)
      kit_fail(t, VERDICT_FAIL, NULL, "DK_OK", kit_status_name(status, name, sizeof(name)),
               "%s with the live token of a first delivery answered %s (%s)", kit_op_name(kind),
               name, who->op.variation->says);
  }
}

/* TOKEN-5: the first owner comes too late, and changes nothing for the second. */
static void
come_late(struct dk_check *t, struct actor *who)
{
  bool work = is_work(&who->op);
  enum op_kind late[] = {work ? OP_RENEW_WORK : OP_RENEW_TURN,
                         work ? OP_ABANDON_WORK : OP_ABANDON_TURN};
  char name[32];

  for (size_t i = 0; i < t->late.n; i++)
    for (size_t k = 0; k < sizeof(late) / sizeof(late[0]); k++) {
      dk_status status = call_with_token(t, who, late[k], t->late.items[i], MOMENT_MS);
      if (status != DK_LOCK_LOST)
        kit_fail(t, VERDICT_FAIL, NULL, "DK_LOCK_LOST",
                 kit_status_name(status, name, sizeof(name)),
                 "%s with a token whose lease has ended answered %s (%s)", kit_op_name(late[k]),
                 name, who->op.variation->says);
    }
  t->late.n = 0;
}

static void
deliver_first(struct dk_check *t, struct actor *who)
{
  enum first_delivery kind = who->op.variation->first;
  struct first first = fetch_first(t, who);

  if (first.n == 0)
    return;
  if (kind == FIRST_GIVEN_BACK || kind == FIRST_PUT_OFF)
    give_back(t, who, &first);
  for (size_t i = 0; kind == FIRST_TAKEN_OVER && i < first.n; i++)
    *LIST_ADD(t, &t->arena, &t->late) = first.tokens[i];
  if (kind != FIRST_GIVEN_BACK)
    kit_go_to(t, now(t) + MOMENT_MS);
  say_in_trace(t, "(%s: the next is its second)", who->op.variation->says);
}

/* ---- one call -------------------------------------------------------------------------------- */

void
kit_run_varied(struct dk_check *t, struct actor *who)
{
  if (dk_cancelled(who->canceller)) { /* for this call, and for no other one */
    kit_run_plain(t, who);
    return;
  }
  kit_delete_neighbour(t);
  if (wants_first(t, who))
    deliver_first(t, who);
  if (!run_in_process(t, who))
    kit_run_plain(t, who);
  if (t->late.n > 0)
    come_late(t, who);
}
