/* SPDX-License-Identifier: Apache-2.0 */
/* Trials of operations: see server-trials.h. */
#include "conformance/checks/server-trials.h"

#include "conformance/checks/admin.h"

#include <stdio.h>
#include <string.h>

enum {
  WELL_IN_A_ROW = 20,    /* as many connections as a pool may have, each broken */
  HELD_MS = 600000,      /* how long a held message is held */
  SHORT_LEASE_MS = 1000, /* of a fetch whose answer may be lost */
  MOST_CALLS = 400
};

const char *
deed_name(enum deed deed)
{
  static const char *const names[DEEDS] = {
    [DEED_ENQUEUE] = "enqueue_for_orchestrator",
    [DEED_ENQUEUE_NAMELESS] = "enqueue_for_orchestrator, without an id",
    [DEED_FETCH_TURN] = "fetch_orchestration_item",
    [DEED_ACK_TURN] = "ack_orchestration_item",
    [DEED_ABANDON_TURN] = "abandon_orchestration_item",
    [DEED_RENEW_TURN] = "renew_orchestration_item_lock",
    [DEED_FETCH_WORK] = "fetch_work_item",
    [DEED_ACK_WORK] = "ack_work_item",
    [DEED_ABANDON_WORK] = "abandon_work_item",
    [DEED_RENEW_WORK] = "renew_work_item_lock",
    [DEED_CANCEL] = "ack_orchestration_item, which cancels activities",
    [DEED_READ_HISTORY] = "read_history",
    [DEED_ENQUEUE_WORK] = "enqueue_for_worker",
    [DEED_DELETE] = "delete_instances",
    [DEED_PRUNE] = "prune",
  };

  return names[deed];
}

static bool
is_offered(struct dk_check *t, enum deed deed)
{
  if (deed == DEED_ENQUEUE_WORK)
    return provider(t)->ops->enqueue_for_worker;
  if (deed == DEED_DELETE || deed == DEED_PRUNE)
    return dk_store_extension(store_of(t, NULL), DK_ADMIN);
  return true;
}

enum deed
next_deed(struct dk_check *t, enum deed deed)
{
  do
    deed++;
  while (deed < DEEDS && !is_offered(t, deed));
  return deed;
}

/* A message of unknown outcome may come later, when a server has found time for it. */
#define NAMELESS "nameless"

/* ---- well or not ----------------------------------------------------------------------------- */

/* Only the store itself can know that it does not exist; a token that was never given out may be
 * recognised by its form. */
static const char nobody[] = "durakit: an instance that does not exist";

dk_status
ask_for_nothing(struct dk_check *t)
{
  return try_read_history(t, nobody);
}

/* The same, and not in the trace, which would be full of it. */
static dk_status
ask_quietly(struct dk_check *t)
{
  struct dk_read_history request = {.struct_size = sizeof(request), .instance = bytes(nobody)};
  struct dk_history *history;

  return dk_store_read_history(store_of(t, NULL), caller_of(t, NULL), &request, &history);
}

static bool
may_be_asked_again(dk_status status)
{
  return dk_status_class(status) == 1 || status == DK_OUTCOME_UNKNOWN;
}

void
until_well(struct dk_check *t)
{
  int64_t patience = patience_ms(t), bound = real_time_ms() + patience;

  for (int in_a_row = 0; in_a_row < WELL_IN_A_ROW;) {
    dk_status status = ask_quietly(t);

    if (status == DK_OK) {
      in_a_row++;
      continue;
    }
    in_a_row = 0;
    expect(t, may_be_asked_again(status),
           "while a server is being reached again a call answers with class 1 or an unknown "
           "outcome, so that it may be repeated; it answers %d", status);
    expect(t, real_time_ms() < bound,
           "the server is running, and calls on the same handle are answered again within %d s",
           (int)(patience / 1000));
    wait_for_real(t, 5);
  }
}

/* ---- before ---------------------------------------------------------------------------------- */

static bool
is_of_work(enum deed deed)
{
  return deed == DEED_FETCH_WORK || deed == DEED_ACK_WORK || deed == DEED_ABANDON_WORK ||
         deed == DEED_RENEW_WORK || deed == DEED_DELETE;
}

static uint64_t
activities_of(enum deed deed)
{
  return deed == DEED_CANCEL ? 2 : is_of_work(deed) ? 1 : 0;
}

static struct dk_turn *
held_turn(struct trial *trial)
{
  must(trial->t, enqueue(trial->t, trial->instance, .id = "first"));
  return fetch_turn_of(trial->t, trial->instance, .lock_ms = HELD_MS);
}

struct trial
trial_of(struct dk_check *t, enum deed deed)
{
  struct trial trial = {.t = t, .deed = deed};

  /* By the number of calls so far: each trial of a check has names of its own. */
  snprintf(trial.instance, sizeof(trial.instance), "%s-%u",
           deed == DEED_ENQUEUE_NAMELESS ? NAMELESS : "inst", calls_so_far(t));
  snprintf(trial.other, sizeof(trial.other), "other-%u", calls_so_far(t));
  if (deed == DEED_PRUNE)
    given_executions(t, trial.instance, 3, 0);
  if (deed == DEED_ENQUEUE || deed == DEED_ENQUEUE_NAMELESS || deed == DEED_PRUNE)
    return trial;
  given_instance_with_activities(t, trial.instance, activities_of(deed));
  if (activities_of(deed) > 0 && deed != DEED_FETCH_WORK)
    trial.work = fetch_work(t, .lock_ms = HELD_MS);
  if (deed == DEED_FETCH_TURN || deed == DEED_DELETE)
    must(t, enqueue(t, trial.instance, .id = "first"));
  else if (!is_of_work(deed) && deed != DEED_READ_HISTORY && deed != DEED_ENQUEUE_WORK)
    trial.turn = held_turn(&trial);
  return trial;
}

/* ---- the call -------------------------------------------------------------------------------- */

static dk_status
commit(struct trial *trial, bool start, bool repeated)
{
  return ack_turn(trial->t, trial->turn, .on = trial->on, .start = start, .repeated = repeated,
                  .events = {{next_event(trial->turn), "the event"}}, .schedule = {{7}},
                  .send = {{trial->other, .payload = "sent"}});
}

static dk_status
commit_cancels(struct trial *trial, bool start, bool repeated)
{
  return ack_turn(trial->t, trial->turn, .on = trial->on, .start = start, .repeated = repeated,
                  .events = {{next_event(trial->turn), "the event"}}, .cancel = {1, 2});
}

static dk_status
fetch_a_turn(struct trial *trial, bool start)
{
  trial->fetches++;
  return try_fetch_turn(trial->t, &trial->turn, .on = trial->on, .start = start,
                        .lock_ms = SHORT_LEASE_MS);
}

static dk_status
fetch_an_item(struct trial *trial, bool start)
{
  struct dk_works *works = NULL;
  dk_status status = try_fetch_work(trial->t, &works, .on = trial->on, .start = start,
                                    .lock_ms = SHORT_LEASE_MS);

  trial->fetches++;
  trial->work = !start && status == DK_OK && works ? &works->items[0] : NULL;
  return status;
}

static dk_status
read_it(struct trial *trial, bool start)
{
  return try_read_history(trial->t, trial->instance, .on = trial->on, .start = start);
}

static dk_status
call(struct trial *trial, bool start, bool repeated)
{
  struct dk_check *t = trial->t;
  struct actor *on = trial->on;
  struct dk_bytes token = trial->turn ? trial->turn->head.lock_token
                          : trial->work ? trial->work->work.lock_token : bytes(NULL);

  switch (trial->deed) {
  case DEED_ENQUEUE:
    return enqueue(t, trial->instance, .id = "message", .on = on, .start = start,
                   .repeated = repeated);
  case DEED_ENQUEUE_NAMELESS:
    return enqueue(t, trial->instance, .on = on, .start = start, .repeated = repeated);
  case DEED_FETCH_TURN:
    return fetch_a_turn(trial, start);
  case DEED_ACK_TURN:
    return commit(trial, start, repeated);
  case DEED_ABANDON_TURN:
    return abandon_turn(t, token, .on = on, .start = start);
  case DEED_RENEW_TURN:
    return renew_turn(t, token, .on = on, .start = start, .ms = HELD_MS);
  case DEED_FETCH_WORK:
    return fetch_an_item(trial, start);
  case DEED_ACK_WORK:
    return ack_work(t, token, .on = on, .start = start, .repeated = repeated,
                    .to = trial->instance, .id = "completion");
  case DEED_ABANDON_WORK:
    return abandon_work(t, token, .on = on, .start = start);
  case DEED_RENEW_WORK:
    return renew_work(t, token, .on = on, .start = start, .ms = HELD_MS);
  case DEED_CANCEL:
    return commit_cancels(trial, start, repeated);
  case DEED_ENQUEUE_WORK:
    return enqueue_work(t, trial->instance, .on = on, .start = start, .repeated = repeated,
                        .activity = {7});
  case DEED_DELETE:
    return delete_instances(t, .ids = {trial->instance}, .force = true, .on = on, .start = start);
  case DEED_PRUNE:
    return prune(t, trial->instance, .keep = 1, .on = on, .start = start);
  default:
    return read_it(trial, start);
  }
}

dk_status
trial_call(struct trial *trial, bool start)
{
  return call(trial, start, false);
}

void
trial_take(struct trial *trial)
{
  if (trial->deed == DEED_FETCH_TURN)
    trial->turn = finished_turn(trial->t, trial->on);
  if (trial->deed == DEED_FETCH_WORK) {
    struct dk_works *works = finished_work(trial->t, trial->on);
    trial->work = works && works->n_items > 0 ? &works->items[0] : NULL;
  }
}

/* ---- the truth ------------------------------------------------------------------------------- */

void
trial_judge_status(const struct trial *trial, dk_status status)
{
  char name[32];

  if (status == DK_OK || status == DK_CALL_CANCELLED || may_be_asked_again(status))
    return;
  expect(trial->t, false,
         "%s whose connection was lost answers with class 1 (not done) or 3 (unknown); it "
         "answers %s", deed_name(trial->deed), dk_status_name(status, name, sizeof(name)));
}

/* Repeats until an answer is certain; marked as repeated from the first unknown outcome on.
 * Nothing disturbs the calls any more. */
static dk_status
answer_in_the_end(struct trial *trial, dk_status status)
{
  for (int calls = 0; calls < MOST_CALLS; calls++) {
    if (status != DK_CALL_CANCELLED)
      trial_judge_status(trial, status);
    trial->is_unknown = trial->is_unknown || status == DK_OUTCOME_UNKNOWN;
    if (status != DK_OK && status != DK_OUTCOME_UNKNOWN)
      trial->denied = status;
    if (status == DK_OK || (trial->is_unknown && trial->deed == DEED_ENQUEUE_NAMELESS))
      return status;
    until_well(trial->t);
    if (trial->is_unknown)
      wait_for_real(trial->t, 20);
    status = call(trial, false, trial->is_unknown);
    bool is_known_now = dk_status_class(status) != 1 && status != DK_OUTCOME_UNKNOWN;
    if (is_known_now)
      return status;
  }
  expect(trial->t, false, "%s is answered in the end", deed_name(trial->deed));
  return status;
}

/* The store shows that it happened, though an answer has said that it did not. */
static void
fail_denied(const struct trial *trial, const char *what_shows_it)
{
  char name[32];

  expect(trial->t, false,
         "%s: an answer was %s, which says that nothing happened, but it had: expected "
         "DK_OUTCOME_UNKNOWN; %s", deed_name(trial->deed),
         dk_status_name(trial->denied, name, sizeof(name)), what_shows_it);
}

/* DK_LOCK_LOST, DK_DUPLICATE or DK_NOT_FOUND, as the answer to a repeat, shows that the call had
 * happened. */
static void
expect_not_denied(const struct trial *trial, dk_status status, dk_status had_happened)
{
  char name[32], what[64];

  if (status != had_happened || trial->is_unknown || trial->denied == DK_OK)
    return;
  snprintf(what, sizeof(what), "its repeat was answered %s",
           dk_status_name(had_happened, name, sizeof(name)));
  fail_denied(trial, what);
}

static void
expect_done(const struct trial *trial, dk_status status, dk_status had_happened)
{
  if (status == had_happened && trial->is_unknown)
    return;
  expect_not_denied(trial, status, had_happened);
  expect_status(trial->t, status, DK_OK);
}

static bool
is_nameless(const struct dk_turn *turn)
{
  struct dk_bytes instance = turn->head.instance;

  return instance.len > strlen(NAMELESS) && memcmp(instance.ptr, NAMELESS, strlen(NAMELESS)) == 0;
}

/* No turn is left, but for messages without an id, some of which are of unknown outcome and have
 * come late; each of them once.  Gives how many are of this trial. */
static uint32_t
expect_no_more_turns(const struct trial *trial)
{
  uint32_t found = 0;
  struct dk_turn *turn;

  while (try_fetch_turn(trial->t, &turn) == DK_OK && is_nameless(turn)) {
    found += same_bytes(turn->head.instance, bytes(trial->instance)) ? 1 : 0;
    if (turn->n_messages > 1 && trial->denied != DK_OK && !trial->is_unknown)
      fail_denied(trial, "its repeat has made a second message");
    expect_equal(trial->t, turn->n_messages, 1, "messages of an enqueue without an id");
    must(trial->t, ack_turn(trial->t, turn, .empty = true));
  }
  expect(trial->t, !turn, "no other instance has a turn");
  return found;
}

static void
expect_one_message(const struct trial *trial, const char *instance, const char *what)
{
  struct dk_turn *turn = fetch_turn_of(trial->t, instance);

  if (turn->n_messages > 1 && trial->denied != DK_OK && !trial->is_unknown)
    fail_denied(trial, "its repeat has made a second message");
  expect_equal(trial->t, turn->n_messages, 1, "messages of the %s", what);
  must(trial->t, ack_turn(trial->t, turn, .empty = true));
}

/* Without an id there may be no message if the outcome is unknown, and never two. */
static void
settle_nameless(const struct trial *trial, dk_status status)
{
  uint32_t found = expect_no_more_turns(trial);

  if (status == DK_OK)
    expect_equal(trial->t, found, 1, "turns of the enqueue that was answered with DK_OK");
}

/* The commit is there once: its event, its activity, and the message that it sends. */
static void
settle_commit(struct trial *trial, dk_status status)
{
  struct dk_check *t = trial->t;

  expect_not_denied(trial, status, DK_LOCK_LOST);
  expect_status(t, status, DK_OK);
  expect_equal(t, read_history(t, trial->instance)->n_events, 2, "events after one commit more");
  expect_one_message(trial, trial->other, "instance to which the commit has sent one");
  must(t, ack_work(t, the_item_of(t, trial->instance, 7)->work.lock_token));
  expect_no_work(t);
  expect_no_more_turns(trial);
}

/* The cancelling commit is there once, and both activities were deleted: no fetch returns the one
 * that was free, and the holder of the other has lost it. */
static void
settle_cancel(const struct trial *trial, dk_status status)
{
  struct dk_check *t = trial->t;

  expect_not_denied(trial, status, DK_LOCK_LOST);
  expect_status(t, status, DK_OK);
  expect_equal(t, read_history(t, trial->instance)->n_events, 2, "events after one commit more");
  expect_status(t, ack_work(t, trial->work->work.lock_token, .to = trial->instance),
                DK_LOCK_LOST);
  expect_no_work(t);
  expect_no_more_turns(trial);
}

/* A fetch whose answer was lost may have left a lock that runs out, and one counted attempt. */
static void
settle_fetched_turn(struct trial *trial)
{
  struct dk_check *t = trial->t;

  if (!trial->turn)
    trial->turn = fetch_turn(t, .wait_ms = 60000);
  expect_text(t, trial->turn->head.instance, trial->instance, "instance of the turn");
  expect_equal(t, trial->turn->n_messages, 1, "messages of the turn");
  expect(t, trial->turn->messages[0].attempt <= trial->fetches + 1,
         "each fetch counts one attempt at most: %u for %u fetches",
         trial->turn->messages[0].attempt, trial->fetches);
}

static void
settle_fetched_work(struct trial *trial)
{
  struct dk_check *t = trial->t;

  if (!trial->work)
    trial->work = fetch_work(t, .wait_ms = 60000);
  expect_text(t, trial->work->item.instance, trial->instance, "instance of the work item");
  expect(t, trial->work->work.attempt <= trial->fetches + 1,
         "each fetch counts one attempt at most: %u for %u fetches", trial->work->work.attempt,
         trial->fetches);
}

/* The lease of a fetch under trial is short: if it has run out meanwhile it is taken again. */
static void
finish_turn(struct trial *trial)
{
  struct dk_check *t = trial->t;
  dk_status status = ack_turn(t, trial->turn, .execution_id = 1);

  if (status == DK_LOCK_LOST)
    status = ack_turn(t, fetch_turn(t, .wait_ms = 60000), .execution_id = 1);
  expect_status(t, status, DK_OK);
  expect_no_more_turns(trial);
}

static void
finish_work(struct trial *trial)
{
  struct dk_check *t = trial->t;
  dk_status status = ack_work(t, trial->work->work.lock_token);

  if (status == DK_LOCK_LOST)
    status = ack_work(t, fetch_work(t, .wait_ms = 60000)->work.lock_token);
  expect_status(t, status, DK_OK);
  expect_no_work(t);
}

static void
settle_given_back(struct trial *trial, dk_status status)
{
  struct dk_check *t = trial->t;

  expect_done(trial, status, DK_LOCK_LOST);
  if (trial->deed == DEED_ABANDON_TURN) {
    trial->turn = fetch_turn_of(t, trial->instance);
    expect_equal(t, trial->turn->messages[0].attempt, 2, "attempt of what was abandoned once");
    finish_turn(trial);
  } else {
    trial->work = fetch_work(t);
    expect_equal(t, trial->work->work.attempt, 2, "attempt of what was abandoned once");
    finish_work(trial);
  }
}

void
trial_settle(struct trial *trial, dk_status status)
{
  struct dk_check *t = trial->t;

  trial->on = NULL;
  status = answer_in_the_end(trial, status);
  until_well(t);
  switch (trial->deed) {
  case DEED_ENQUEUE:
    expect_done(trial, status, DK_DUPLICATE);
    expect_one_message(trial, trial->instance, "enqueue that was made until it was known");
    break;
  case DEED_ENQUEUE_NAMELESS:
    settle_nameless(trial, status);
    break;
  case DEED_FETCH_TURN:
    settle_fetched_turn(trial);
    finish_turn(trial);
    break;
  case DEED_ACK_TURN:
    settle_commit(trial, status);
    break;
  case DEED_ABANDON_TURN:
  case DEED_ABANDON_WORK:
    settle_given_back(trial, status);
    break;
  case DEED_RENEW_TURN:
    expect_status(t, status, DK_OK);
    finish_turn(trial);
    break;
  case DEED_FETCH_WORK:
    settle_fetched_work(trial);
    finish_work(trial);
    break;
  case DEED_ACK_WORK:
    expect_done(trial, status, DK_LOCK_LOST);
    expect_one_message(trial, trial->instance, "instance to which the completion goes");
    expect_no_work(t);
    break;
  case DEED_RENEW_WORK:
    expect_status(t, status, DK_OK);
    finish_work(trial);
    break;
  case DEED_CANCEL:
    settle_cancel(trial, status);
    break;
  case DEED_ENQUEUE_WORK:
    expect_done(trial, status, DK_DUPLICATE);
    must(t, ack_work(t, the_item_of(t, trial->instance, 7)->work.lock_token));
    expect_no_work(t);
    break;
  case DEED_DELETE:
    expect_done(trial, status, DK_NOT_FOUND);
    expect_gone(t, trial->instance);
    expect_status(t, ack_work(t, trial->work->work.lock_token, .to = trial->other), DK_LOCK_LOST);
    expect_no_more_turns(trial);
    break;
  case DEED_PRUNE:
    expect_status(t, status, DK_OK);
    expect_executions(t, trial->instance, 3);
    expect_equal(t, read_history(t, trial->instance)->n_events, 1, "events that are kept");
    break;
  default:
    expect_status(t, status, DK_OK);
    expect_equal(t, read_history(t, trial->instance)->n_events, 1, "events");
  }
}
