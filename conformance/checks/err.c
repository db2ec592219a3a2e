/* SPDX-License-Identifier: Apache-2.0 */
/* ERR: by which status a call is refused, which of several faults it reports, and that it leaves
 * nothing behind.  The limits have a file of their own, limits.c. */
#include <stdio.h>

#include "conformance/checks/checks.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Expects a refusal with this status; the message of the check says in words what was requested. */
#define expect_refusal(t, got, wanted, what)                                                       \
  kit_expect_status(t, (got), (wanted), (what), __FILE__, __LINE__)

/* ---- each refusal by its status -------------------------------------------------------------- */

struct refused_commit {
  const char *what;
  dk_status status;
  struct ack_turn_args commit;
};

/* Of "inst" as given_commit_to_refuse leaves it: in execution 2, with one event and activity 1. */
static const struct refused_commit refused_commits[] = {
  {"a commit of an execution that has ended", DK_INVALID, {.execution_id = 1}},
  {"a commit of the execution after the next", DK_INVALID, {.execution_id = 4}},
  {"an empty commit with an event in it", DK_INVALID, {.empty = true, .events = {{9}}}},
  {"an empty commit with a status in it", DK_INVALID, {.empty = true, .status = DK_COMPLETED}},
  {"a commit with an event id that is stored", DK_DUPLICATE,
   {.execution_id = 2, .events = {{1}, {9}}}},
  {"a commit with an activity that is stored", DK_DUPLICATE,
   {.execution_id = 2, .schedule = {{9}, {1}}}},
  {"a commit with a message that is stored for another instance", DK_DUPLICATE,
   {.execution_id = 2, .send = {{"other", .id = "new"}, {"other", .id = "stored"}}}},
  {"a commit with a message whose id the turn's own message has", DK_DUPLICATE,
   {.execution_id = 2, .send = {{"inst", .id = "own"}}}},
};

static struct dk_turn *
given_commit_to_refuse(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2, .events = {{1}},
                   .schedule = {{1}}));
  must(t, enqueue(t, "other", .id = "stored", .delay_ms = LEASE_MS));
  must(t, enqueue(t, "inst", .id = "own"));
  return fetch_turn(t);
}

/* ERR-1: a commit. */
void
err_refusals_of_commit(struct dk_check *t)
{
  struct dk_turn *turn = given_commit_to_refuse(t);

  for (size_t i = 0; i < COUNT(refused_commits); i++)
    expect_refusal(t, kit_ack_turn(t, turn, &refused_commits[i].commit), refused_commits[i].status,
                   refused_commits[i].what);
  must(t, ack_turn(t, turn, .execution_id = 2));
  expect_refusal(t, ack_turn(t, turn, .execution_id = 2), DK_LOCK_LOST,
                 "a commit with a token that is used up");
  struct dk_turn *unknown = next_turn(t, "unknown");
  expect_refusal(t, ack_turn(t, unknown, .nameless = true), DK_INVALID,
                 "the first commit of an instance without name and version");
  expect_refusal(t, ack_turn(t, unknown, .execution_id = 2), DK_INVALID,
                 "the first commit of an instance for execution 2");
}

/* ERR-1: abandoning and renewing a turn, by each way in which a token dies. */
void
err_refusals_of_turn(struct dk_check *t)
{
  struct dk_bytes none = bytes("no such token");

  must(t, enqueue(t, "inst"));
  struct dk_turn *given_back = fetch_turn(t);
  must(t, abandon_turn(t, given_back->head.lock_token));
  struct dk_turn *expired = fetch_turn(t);
  advance(t, LEASE_MS);
  struct dk_turn *taken_over = expired;
  struct dk_bytes dead[] = {none, given_back->head.lock_token, expired->head.lock_token};
  for (size_t i = 0; i < COUNT(dead); i++) {
    expect_refusal(t, renew_turn(t, dead[i]), DK_LOCK_LOST, "renewing a turn with a dead token");
    expect_refusal(t, abandon_turn(t, dead[i]), DK_LOCK_LOST,
                   "abandoning a turn with a dead token");
  }
  struct dk_turn *committed = fetch_turn(t);
  expect_refusal(t, renew_turn(t, taken_over->head.lock_token), DK_LOCK_LOST,
                 "renewing a turn that was taken over");
  expect_refusal(t, abandon_turn(t, taken_over->head.lock_token), DK_LOCK_LOST,
                 "abandoning a turn that was taken over");
  must(t, ack_turn(t, committed, .empty = true));
  expect_refusal(t, renew_turn(t, committed->head.lock_token), DK_LOCK_LOST,
                 "renewing a turn that is committed");
  expect_refusal(t, abandon_turn(t, committed->head.lock_token), DK_LOCK_LOST,
                 "abandoning a turn that is committed");
}

static void
expect_work_refusals(struct dk_check *t, struct dk_bytes token, const char *renew,
                     const char *abandon, const char *ack)
{
  expect_refusal(t, renew_work(t, token), DK_LOCK_LOST, renew);
  expect_refusal(t, abandon_work(t, token), DK_LOCK_LOST, abandon);
  expect_refusal(t, ack_work(t, token, .to = "inst"), DK_LOCK_LOST, ack);
  expect_refusal(t, ack_work(t, token), DK_LOCK_LOST, ack);
}

/* ERR-1: the same for work, and an ack whose completion is stored already. */
void
err_refusals_of_work(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  must(t, enqueue(t, "inst", .id = "stored"));
  expect_work_refusals(t, bytes("no such token"),
                       "renewing work with a token that was never given out",
                       "abandoning work with a token that was never given out",
                       "an ack with a token that was never given out");
  struct dk_bytes cancelled = fetch_activity(t, "inst", 2)->work.lock_token;
  struct dk_bytes expired = fetch_activity(t, "inst", 1)->work.lock_token;
  must(t, ack_turn(t, fetch_turn(t), .cancel = {2}, .send = {{"inst", .id = "again"}}));
  expect_work_refusals(t, cancelled, "renewing work that was cancelled",
                       "abandoning work that was cancelled", "an ack of work that was cancelled");
  advance(t, LEASE_MS);
  expect_work_refusals(t, expired, "renewing work whose lease has run out",
                       "abandoning work whose lease has run out",
                       "an ack of work whose lease has run out");
  struct dk_bytes live = fetch_work(t)->work.lock_token;
  expect_work_refusals(t, expired, "renewing work that was taken over",
                       "abandoning work that was taken over",
                       "an ack of work that was taken over");
  expect_refusal(t, ack_work(t, live, .to = "inst", .id = "again"), DK_DUPLICATE,
                 "an ack whose completion is stored already");
  must(t, ack_work(t, live, .to = "inst", .id = "done"));
  expect_work_refusals(t, live, "renewing work that is done", "abandoning work that is done",
                       "an ack of work that is done");
}

/* ERR-1: a message that is stored, wherever the first one is: free, not due, or with a turn. */
void
err_refusals_of_enqueue(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "taken"));
  fetch_turn(t);
  must(t, enqueue(t, "inst", .id = "free"));
  must(t, enqueue(t, "inst", .id = "later", .delay_ms = LEASE_MS));
  expect_refusal(t, enqueue(t, "inst", .id = "free"), DK_DUPLICATE,
                 "a message whose id is stored");
  expect_refusal(t, enqueue(t, "inst", .id = "free", .repeated = true), DK_DUPLICATE,
                 "the repeat of a message that is stored");
  expect_refusal(t, enqueue(t, "inst", .id = "later"), DK_DUPLICATE,
                 "a message whose id is stored and not due");
  expect_refusal(t, enqueue(t, "inst", .id = "taken"), DK_DUPLICATE,
                 "a message whose id is with a turn");
}

/* ERR-1: an activity that is stored, free or held. */
void
err_refusals_directly(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  expect_refusal(t, enqueue_work(t, "inst", .activity = {1}), DK_DUPLICATE,
                 "an activity that is stored");
  fetch_work(t);
  expect_refusal(t, enqueue_work(t, "inst", .activity = {1}), DK_DUPLICATE,
                 "an activity that a worker holds");
  must(t, enqueue_work(t, "unknown", .activity = {1}));
  expect_refusal(t, enqueue_work(t, "unknown", .activity = {1}), DK_DUPLICATE,
                 "an activity that is stored, of an unknown instance");
}

/* ---- alone on a healthy store ---------------------------------------------------------------- */

/* Classes 1 and 3 are for stores and machines in trouble.  must() judges why a store is
 * unavailable: whether there is no room left, the server is unreachable, or the machine is
 * healthy. */
static dk_status
healthy(struct dk_check *t, dk_status status, const char *what)
{
  int32_t class = dk_status_class(status);
  char name[32];

  expect(t, status == DK_UNAVAILABLE || (class != 1 && class != 3),
         "%s answered %s, which is of class %d, although no other call uses the store", what,
         dk_status_name(status, name, sizeof name), (int)class);
  return status;
}

#define expect_healthy(t, call) must(t, healthy(t, (call), #call))

/* ERR-1: a call that runs alone on a healthy store gets no answer that means try again. */
void
err_alone_and_healthy(struct dk_check *t)
{
  struct dk_turn *turn;
  struct dk_works *works;

  given_instance(t, "inst");
  for (int round = 0; round < 20; round++) {
    expect_healthy(t, enqueue(t, "inst"));
    expect_healthy(t, try_fetch_turn(t, &turn));
    expect_healthy(t, renew_turn(t, turn->head.lock_token));
    expect_healthy(t, ack_turn(t, turn, .events = {{next_event(turn)}}, .schedule = {{1}, {2}}));
    expect_healthy(t, try_fetch_work(t, &works));
    expect_healthy(t, abandon_work(t, works->items[0].work.lock_token));
    expect_healthy(t, try_fetch_work(t, &works));
    expect_healthy(t, renew_work(t, works->items[0].work.lock_token));
    expect_healthy(t, ack_work(t, works->items[0].work.lock_token, .to = "inst"));
    expect_healthy(t, try_fetch_turn(t, &turn));
    expect_healthy(t, ack_turn(t, turn, .cancel = {1, 2}));
  }
}

/* ---- nothing is left behind ------------------------------------------------------------------ */

/* ERR-3: the message that is stored stays as it is: its payload, its place, its time, its count. */
void
err_refused_enqueue_leaves_nothing(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "taken", .payload = "first"));
  must(t, abandon_turn(t, fetch_turn(t)->head.lock_token));
  fetch_turn(t);
  must(t, enqueue(t, "inst", .id = "free", .payload = "first"));
  must(t, enqueue(t, "inst", .id = "later", .payload = "first", .delay_ms = 4000));
  must(t, enqueue(t, "inst", .id = "last", .payload = "first"));

  before(t);
  expect_status(t, enqueue(t, "inst", .id = "taken", .payload = "second"), DK_DUPLICATE);
  expect_status(t, enqueue(t, "inst", .id = "free", .payload = "second"), DK_DUPLICATE);
  expect_status(t, enqueue(t, "inst", .id = "free", .delay_ms = 9000), DK_DUPLICATE);
  expect_status(t, enqueue(t, "inst", .id = "later", .payload = "second"), DK_DUPLICATE);
  expect_unchanged(t);
}

/* ERR-3: an ack that is refused leaves the row, the end of its lease and its count. */
void
err_refused_ack_leaves_nothing(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst", .id = "stored", .payload = "first"));
  must(t, enqueue(t, "other", .id = "stored", .delay_ms = 7000));
  must(t, abandon_work(t, fetch_work(t)->work.lock_token));
  struct dk_bytes token = fetch_work(t, .lock_ms = 5000)->work.lock_token;
  advance(t, 1000);

  before(t);
  expect_status(t, ack_work(t, token, .to = "inst", .id = "stored", .payload = "second"),
                DK_DUPLICATE);
  expect_status(t, ack_work(t, token, .to = "other", .id = "stored"), DK_DUPLICATE);
  expect_status(t, ack_work(t, token, .to = "other", .id = "stored", .repeated = true),
                DK_DUPLICATE);
  expect_unchanged(t);
}

/* ERR-3: a refused enqueue does not touch the row that is there, nor the lock on it, either. */
void
err_refused_directly_leaves_nothing(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{1, .tag = "gpu"}, {2, .delay_ms = 4000}, {3}}));
  must(t, abandon_work(t, fetch_activity(t, "inst", 3)->work.lock_token, .ms = 2000));

  before(t);
  expect_status(t, enqueue_work(t, "inst", .activity = {1, .payload = "another"}), DK_DUPLICATE);
  expect_status(t, enqueue_work(t, "inst", .activity = {2, .tag = "tape"}), DK_DUPLICATE);
  expect_status(t, enqueue_work(t, "inst", .activity = {3, .delay_ms = 9000}), DK_DUPLICATE);
  expect_unchanged(t);
}

/* ERR-3: no call of a former holder, whatever it carries, changes anything for any other caller. */
void
err_lost_leaves_nothing(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  struct dk_bytes work = fetch_activity(t, "inst", 1)->work.lock_token;
  must(t, enqueue(t, "inst", .id = "first"));
  struct dk_bytes turn = fetch_turn(t)->head.lock_token;
  must(t, enqueue(t, "inst", .id = "second"));
  must(t, enqueue(t, "elsewhere", .id = "third", .delay_ms = 4 * LEASE_MS));
  advance(t, LEASE_MS);

  before(t);
  expect_dead_turn(t, turn);
  expect_dead_work(t, work);
  expect_unchanged(t);
}

/* ---- the first of several faults ------------------------------------------------------------- */

/* ERR-5: a dead token is reported first, whatever else is wrong with the commit. */
void
err_dead_turn_token_first(struct dk_check *t)
{
  struct dk_turn *turn = given_commit_to_refuse(t);

  must(t, abandon_turn(t, turn->head.lock_token));
  struct dk_turn *expired = fetch_turn(t);
  advance(t, LEASE_MS);
  struct dk_bytes dead[] = {bytes("no such token"), turn->head.lock_token,
                            expired->head.lock_token};
  for (size_t k = 0; k < COUNT(dead); k++)
    for (size_t i = 0; i < COUNT(refused_commits); i++) {
      char what[160];

      snprintf(what, sizeof what, "with a dead token %s", refused_commits[i].what);
      expect_refusal(t, kit_ack_token(t, dead[k], &refused_commits[i].commit), DK_LOCK_LOST, what);
    }
}

/* ERR-5: the same for an ack whose completion is stored already. */
void
err_dead_work_token_first(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 2);
  must(t, enqueue(t, "inst", .id = "stored"));
  struct dk_bytes cancelled = fetch_activity(t, "inst", 2)->work.lock_token;
  struct dk_bytes expired = fetch_activity(t, "inst", 1)->work.lock_token;
  must(t, ack_turn(t, fetch_turn(t), .cancel = {2}, .send = {{"inst", .id = "again"}}));
  advance(t, LEASE_MS);
  struct dk_bytes dead[] = {bytes("no such token"), cancelled, expired};
  for (size_t i = 0; i < COUNT(dead); i++) {
    expect_refusal(t, ack_work(t, dead[i], .to = "inst", .id = "again"), DK_LOCK_LOST,
                   "an ack with a dead token, whose completion is stored as well,");
    expect_refusal(t, ack_work(t, dead[i], .to = "inst", .id = "again", .repeated = true),
                   DK_LOCK_LOST, "the repeat of an ack that never landed, with a dead token,");
  }
}

/* ERR-5: form is judged before state. */
void
err_form_before_state(struct dk_check *t)
{
  static const struct refused_commit both[] = {
    {"a commit of no possible execution, with an activity that is stored", DK_INVALID,
     {.execution_id = 4, .schedule = {{1, .execution_id = 2}}}},
    {"a commit of an execution that has ended, with an event id that is stored", DK_INVALID,
     {.execution_id = 1, .events = {{1}}}},
    {"a commit of no possible execution, with a message that is stored", DK_INVALID,
     {.execution_id = 4, .send = {{"other", .id = "stored"}}}},
    {"an empty commit with a status, and a message that is stored", DK_INVALID,
     {.empty = true, .status = DK_FAILED, .send = {{"other", .id = "stored"}}}},
  };
  struct dk_turn *turn = given_commit_to_refuse(t);

  for (size_t i = 0; i < COUNT(both); i++)
    expect_refusal(t, kit_ack_turn(t, turn, &both[i].commit), both[i].status, both[i].what);
  struct dk_turn *unknown = next_turn(t, "unknown");
  expect_refusal(t, ack_turn(t, unknown, .nameless = true, .send = {{"other", .id = "stored"}}),
                 DK_INVALID, "a first commit without a name, with a message that is stored,");
}

/* ---- a host without memory ------------------------------------------------------------------- */

/* One call, of which the n-th result is refused; DK_OK: it has fewer results. */
static dk_status
refuse_nth(struct dk_check *t, uint32_t n, dk_status got)
{
  dk_caller_refuse_result(caller_of(t, NULL), 0);
  expect(t, got == DK_OK || got == DK_NO_MEMORY,
         "the host has no memory for result %u, and so the operation returns DK_NO_MEMORY", n);
  return got;
}
#define WITHOUT_RESULT(t, n, call)                                                                 \
  (dk_caller_refuse_result(caller_of(t, NULL), n), refuse_nth(t, n, (call)))

/* What was refused comes again when its lease has ended, if one was left: whole, and in order. */
static void
expect_all_again(struct dk_check *t)
{
  advance(t, LEASE_MS);
  struct dk_turn *turn = the_turn_of(t, "inst");
  expect_equal(t, turn->n_events, 3, "events of the turn, after its fetch was refused");
  expect_ids(t, turn, "first", "second");
  must(t, abandon_turn(t, turn->head.lock_token));
  struct taken_work work = take_work(t);
  expect_equal(t, work.n, 3, "work items, after their fetch was refused");
  for (size_t i = 0; i < work.n; i++)
    must(t, abandon_work(t, work.items[i]->work.lock_token));
}

/* ERR-1: a result that the host refuses ends the operation with the host's status; nothing of it is
 * lost, and the next call works. */
void
err_result_refused(struct dk_check *t)
{
  struct dk_turn *turn = NULL;
  struct dk_works *works = NULL;
  dk_status status = DK_NO_MEMORY;

  given_instance_with_activities(t, "inst", 3);
  must(t, ack_turn(t, next_turn(t, "inst"), .events = {{2}, {3}}));
  must(t, enqueue(t, "inst", .id = "first"));
  must(t, enqueue(t, "inst", .id = "second"));
  for (uint32_t n = 1; status != DK_OK; n++) {
    status = WITHOUT_RESULT(t, n, try_read_history(t, "inst"));
    expect_equal(t, read_history(t, "inst")->n_events, 3, "events that are read then");
  }
  status = DK_NO_MEMORY;
  for (uint32_t n = 1; status != DK_OK; n++) {
    status = WITHOUT_RESULT(t, n, try_fetch_turn(t, &turn));
    if (status == DK_OK)
      must(t, abandon_turn(t, turn->head.lock_token));
    must(t, enqueue(t, "other"));
    must(t, ack_turn(t, fetch_turn_of(t, "other"), .empty = true));
    expect_all_again(t);
  }
  status = DK_NO_MEMORY;
  for (uint32_t n = 1; status != DK_OK; n++) {
    status = WITHOUT_RESULT(t, n, try_fetch_work(t, &works, .max_items = 3));
    for (size_t i = 0; status == DK_OK && i < works->n_items; i++)
      must(t, abandon_work(t, works->items[i].work.lock_token));
    expect_all_again(t);
    if (n > 3)
      break; /* a provider may hand up fewer */
  }
}
