/* SPDX-License-Identifier: Apache-2.0 */
/* SRV: a server behind the store, and whatever may happen to it and to its connections. */
#include "conformance/checks/server-trials.h"

#include <stdio.h>

enum {
  MOST_WAITS = 12,      /* of one call; a trial for each */
  MOST_ROUNDS = 12,     /* of all calls, until one has felt that it was cut */
  RETURNS_MS = 8000,    /* the longest that a cancelled call may take to return */
  UNDER_WAY_MS = 300    /* by then a started call is answered, or waits for its server */
};

static const char never_waits[] =
  "needs a provider that waits for its server by host->wait; none of its calls did";

/* ---- connections ----------------------------------------------------------------------------- */

/* The number of cuts, and of those that the call noticed. */
struct cuts {
  unsigned made, felt;
};

/* Each operation, cut at its first wait for the server, then at its second, and so on until it ends
 * before that. */
static void
try_each_cut(struct dk_check *t, enum cut cut, struct cuts *cuts)
{
  FOR_EACH_DEED(t, deed) {
    bool is_cut = true;

    for (uint32_t n = 1; n <= MOST_WAITS && is_cut; n++) {
      struct trial trial = trial_of(t, deed);

      cut_at_wait(t, cut, n);
      dk_status status = trial_call(&trial, false);
      is_cut = was_cut(t);
      cuts->made += is_cut ? 1u : 0u;
      cuts->felt += is_cut && status != DK_OK ? 1u : 0u;
      trial_judge_status(&trial, status);
      until_well(t);
      trial_settle(&trial, status);
    }
  }
}

/* A server may be so quick, or the machine so busy, that every answer is there before the cut. */
static unsigned
try_all_cut(struct dk_check *t, enum cut cut)
{
  struct cuts cuts = {0, 0};

  try_each_cut(t, cut, &cuts);
  for (int round = 1; round < MOST_ROUNDS && cuts.made > 0 && cuts.felt == 0; round++)
    try_each_cut(t, cut, &cuts);
  return cuts.made;
}

/* SRV-1: a connection that is lost in a call ends it with the right class; nothing by halves. */
void
srv_connection_lost(struct dk_check *t)
{
  if (try_all_cut(t, CUT_REQUEST) == 0)
    skip_check(t, never_waits);
}

/* SRV-2: a call that was done and whose answer is lost is of unknown outcome; a repeat reports that
 * it happened. */
void
srv_answer_lost(struct dk_check *t)
{
  if (try_all_cut(t, CUT_ANSWER) == 0)
    skip_check(t, never_waits);
}

/* SRV-3: connections that are lost between two calls are replaced, without a new open. */
void
srv_idle_connection_lost(struct dk_check *t)
{
  size_t cut = 0;

  FOR_EACH_DEED(t, deed) {
    struct trial trial = trial_of(t, deed);

    cut += cut_connections(t);
    dk_status status = trial_call(&trial, false);
    trial_judge_status(&trial, status);
    until_well(t);
    trial_settle(&trial, status);
  }
  if (cut == 0)
    skip_check(t, "needs a provider that keeps a connection to its server; no socket was found");
}

/* The fetch of the other handle is woken, and does not return because its time is up. */
static void
expect_woken(struct dk_check *t, struct actor *waiter, bool cut_meanwhile)
{
  enum { WAIT_MS = 600000 };
  struct dk_turn *turn;
  int64_t began = now(t);

  must(t, try_fetch_turn(t, &turn, .on = waiter, .start = true, .wait_ms = WAIT_MS));
  until_it_waits(t, waiter);
  if (cut_meanwhile) {
    cut_connections(t);
    until_well(t);
    until_it_waits(t, waiter);
  }
  must(t, enqueue(t, "inst", .id = "news"));
  dk_status status = finish(t, waiter);
  if (is_retryable(status) || status == DK_OUTCOME_UNKNOWN) { /* it noticed the loss */
    until_well(t);
    must(t, ack_turn(t, fetch_turn(t, .wait_ms = 2 * LEASE_MS), .empty = true));
    return;
  }
  expect_status(t, status, DK_OK);
  turn = finished_turn(t, waiter);
  expect(t, now(t) - began < WAIT_MS,
         "after a connection was lost, a waiting fetch is woken by the "
         "commit of another handle, and does not return only when its time is up");
  must(t, ack_turn(t, turn, .empty = true));
}

/* SRV-3: what notifies a waiting fetch is lost with a connection, and made again with the next. */
void
srv_woken_on_a_new_connection(struct dk_check *t)
{
  struct actor *waiter = another_handle(t);

  given_instance(t, "inst");
  expect_woken(t, waiter, false);
  cut_connections(t);
  until_well(t);
  expect_woken(t, waiter, false);
  expect_woken(t, waiter, true);
}

static void
try_all_through(struct dk_check *t, struct message_cut cut)
{
  FOR_EACH_DEED(t, deed) {
    bool is_cut = true;

    for (cut.n = 1; cut.n <= MOST_WAITS && is_cut; cut.n++) {
      struct trial trial = trial_of(t, deed);

      cut_at_message(t, cut);
      dk_status status = trial_call(&trial, false);
      is_cut = message_was_cut(t);
      trial_judge_status(&trial, status);
      until_well(t);
      trial_settle(&trial, status);
    }
  }
}

/* SRV-1: the same from outside, before and after each message in each direction. */
void
srv_messages_lost(struct dk_check *t)
{
  try_all_through(t, (struct message_cut){.is_answer = false});
  try_all_through(t, (struct message_cut){.is_answer = true});
}

/* SRV-2: what has reached the other side counts, whatever became of the connection then. */
void
srv_messages_passed_on(struct dk_check *t)
{
  try_all_through(t, (struct message_cut){.is_answer = false, .passed_on = true});
  try_all_through(t, (struct message_cut){.is_answer = true, .passed_on = true});
}

/* SRV-1: a connection that is reset counts as one that is closed. */
void
srv_connection_reset(struct dk_check *t)
{
  try_all_through(t, (struct message_cut){.is_answer = false, .reset = true});
  try_all_through(t, (struct message_cut){.is_answer = true, .reset = true});
  try_all_through(t, (struct message_cut){.is_answer = true, .reset = true, .passed_on = true});
}

/* SRV-1, SRV-2: a connection may end in one direction only, and then it is lost like any other. */
void
srv_half_closed(struct dk_check *t)
{
  try_all_through(t, (struct message_cut){.is_answer = false, .passed_on = true, .half = true});
  try_all_through(t, (struct message_cut){.is_answer = true, .half = true});
  try_all_through(t, (struct message_cut){.is_answer = true, .passed_on = true, .half = true});
}

/* ---- the server ------------------------------------------------------------------------------ */

/* While the server is down a call answers that it may be repeated, and again when it is. */
static void
expect_down(struct dk_check *t)
{
  char name[32];

  for (int i = 0; i < 3; i++) {
    dk_status status = ask_for_nothing(t);

    expect(t, dk_status_class(status) == 1 || (i == 0 && status == DK_OUTCOME_UNKNOWN),
           "a call while the server is down answers with class 1 (try again); it answers %s",
           dk_status_name(status, name, sizeof(name)));
  }
}

/* SRV-4: crashed in the middle of each operation and started again.  What was acknowledged is
 * there, what was not is whole or absent, and the same handle works. */
void
srv_crash(struct dk_check *t)
{
  FOR_EACH_DEED(t, deed) {
    struct trial trial = trial_of(t, deed);

    cut_at_wait(t, CRASH_SERVER, 1);
    dk_status status = trial_call(&trial, false);
    if (was_cut(t))
      judge_crashed(t);
    else
      crash_server(t);
    trial_judge_status(&trial, status);
    expect_down(t);
    start_server(t);
    until_well(t);
    trial_settle(&trial, status);
  }
}

/* Starts the call and lets the kit hold what it sends, or what is answered; then crashes the server
 * and discards that.  False: the call ended before that. */
static bool
crash_holding(struct trial *trial, struct message_cut cut, dk_status *ret_status)
{
  struct dk_check *t = trial->t;

  cut_at_message(t, cut);
  must(t, trial_call(trial, true));
  bool is_held = message_is_held(t, trial->on);
  if (is_held) {
    crash_server_now(t);
    let_message_go(t);
  }
  *ret_status = finish(t, trial->on);
  trial_take(trial);
  if (is_held)
    judge_crashed(t);
  return is_held;
}

/* Each call that changes something, at each of its messages. */
static void
crash_all_holding(struct dk_check *t, struct message_cut cut)
{
  struct actor *other = another_thread(t);

  FOR_EACH_DEED(t, deed) {
    bool is_held = deed != DEED_READ_HISTORY;

    for (cut.n = 1; cut.n <= MOST_WAITS && is_held; cut.n++) {
      struct trial trial = trial_of(t, deed);
      dk_status status;

      trial.on = other;
      is_held = crash_holding(&trial, cut, &status);
      trial_judge_status(&trial, status);
      if (is_held)
        start_server(t);
      until_well(t);
      trial_settle(&trial, status);
    }
  }
}

/* SRV-4: a request that a server crashes before it receives is not done, and no answer reports it
 * as done. */
void
srv_crash_before_request(struct dk_check *t)
{
  crash_all_holding(t, (struct message_cut){.held = true});
}

/* SRV-4: crashed when it had answered, and the answer never came: what was done is not undone. */
void
srv_crash_before_answer(struct dk_check *t)
{
  crash_all_holding(t, (struct message_cut){.is_answer = true, .held = true});
}

/* SRV-4: what was acknowledged just before a crash is there after it. */
void
srv_acknowledged_survives(struct dk_check *t)
{
  enum { CRASHES = 3 };
  char kept[32];

  given_instance(t, "inst");
  for (int i = 0; i < CRASHES; i++) {
    snprintf(kept, sizeof(kept), "kept-%d", i);
    must(t, ack_turn(t, next_turn(t, "inst"), .events = {{(uint64_t)i + 2}},
                     .schedule = {{(uint64_t)i + 1}}));
    must(t, enqueue(t, kept, .id = "message"));
    crash_server(t);
    start_server(t);
    until_well(t);
    expect_equal(t, read_history(t, "inst")->n_events, i + 2, "events after a crash");
    must(t, ack_work(t, the_item_of(t, "inst", (uint64_t)i + 1)->work.lock_token));
    expect_ids(t, the_turn_of(t, kept), "message");
  }
}

/* ---- a server that does not answer ----------------------------------------------------------- */

/* Only what writes shows that the server has answered: what is read may be remembered. */
static void
expect_unanswered(const struct trial *trial, dk_status status)
{
  if (status == DK_OK && trial->deed != DEED_READ_HISTORY)
    judge_not_paused(trial->t, deed_name(trial->deed));
}

static void
expect_back(struct dk_check *t, struct trial *trial)
{
  bool by_itself = returns_within(t, trial->on, UNDER_WAY_MS);
  dk_status status;

  cancel_call(t, trial->on);
  expect(t, returns_within(t, trial->on, RETURNS_MS),
         "%s returns when it is cancelled, though its server is stopped", deed_name(trial->deed));
  status = finish(t, trial->on);
  trial_take(trial);
  trial_judge_status(trial, status);
  expect(t, resume_server(t), "the call returned before the server continued");
  if (by_itself)
    expect_unanswered(trial, status);
  until_well(t);
  trial_settle(trial, status);
}

/* SRV-5: a call that waits for a stopped server returns when the host cancels it. */
void
srv_stopped_call_returns(struct dk_check *t)
{
  struct actor *other = another_thread(t);

  FOR_EACH_DEED(t, deed) {
    struct trial trial = trial_of(t, deed);

    trial.on = other;
    pause_server(t);
    must(t, trial_call(&trial, true));
    expect_back(t, &trial);
  }
}

/* SRV-5: so does close, with a call that waits and without one; and nothing is lost by it. */
void
srv_stopped_close_returns(struct dk_check *t)
{
  struct actor *handle = another_handle(t);

  given_instance(t, "inst");
  must(t, enqueue(t, "kept", .id = "message"));
  must(t, renew_turn(t, next_turn(t, "inst")->head.lock_token, .on = handle));
  pause_server(t);
  close_handle(t, handle);
  expect(t, resume_server(t), "close returns while its server is stopped");
  open_handle(t, handle);

  pause_server(t);
  must(t, enqueue(t, "late", .id = "late", .on = handle, .start = true));
  bool by_itself = returns_within(t, handle, UNDER_WAY_MS);
  close_handle(t, handle);
  expect(t, resume_server(t), "close returns, and ends the call that waits for a stopped server");
  dk_status status = finish(t, handle);
  if (by_itself && status == DK_OK)
    judge_not_paused(t, deed_name(DEED_ENQUEUE));
  expect(t, status == DK_OK || status == DK_CALL_CANCELLED || status == DK_OUTCOME_UNKNOWN ||
         is_retryable(status), "the call that close has ended says what may be done next");
  open_handle(t, handle);
  until_well(t);
  expect_ids(t, fetch_turn_of(t, "kept"), "message");
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* SRV-6: an operation that the role has no right to is refused and changes nothing; once the right
 * is granted again, the same handle does what it was asked. */
void
srv_rights_withdrawn(struct dk_check *t)
{
  struct trial trials[DEEDS];

  FOR_EACH_DEED(t, deed) {
    trials[deed] = trial_of(t, deed);
    deny_rights(t);
    expect_status(t, trial_call(&trials[deed], false), DK_REFUSED);
    allow_rights(t);
    until_well(t);
    trials[deed].fetches = 0;
    dk_status status = trial_call(&trials[deed], false);
    expect_status(t, status, DK_OK);
    trials[deed].fetches = 0;
    trial_settle(&trials[deed], status);
  }
}
