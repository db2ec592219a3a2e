/* SPDX-License-Identifier: Apache-2.0 */
/* Commits a turn: sends the decision to the store, and repeats that until the lease ends.
 *
 * The lease is renewed meanwhile.  An attempt that hangs is cancelled when the lease would have
 * ended without renewals, so that it can be repeated.  A commit that is refused because of its
 * content (too large) is delayed, or fails the instance with a small commit; a commit that is
 * refused because an id is taken is sent without that message; every other failure is the store's,
 * never the instance's. */
#include <assert.h>
#include <string.h>

#include "core/runtime/turn/commit-encode.h"
#include "core/runtime/turn/turn-thread.h"
#include "core/runtime/turn/turn.h"

enum { FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 500 };

#define NOT_TAKEN "the store does not accept its turn: %s"

/* ---- one attempt after the other ------------------------------------------------------------- */

static dk_status
turn_commit_attempt(struct turn *turn, const struct dk_turn_result *result,
                    struct dk_commit_outcome *outcome)
{
  memset(outcome, 0, sizeof(*outcome));
  health_ask(&turn->shared->log->health, &turn->commits, HEALTH_COMMITS, 0);
  if (!turn_thread_call_begins(turn->thread, lease_deadline(turn->lease)))
    return DK_CALL_CANCELLED;
  dk_status status = dk_store_ack_orchestration_item(
      turn->shared->store, turn->caller, turn->fetched->head.lock_token, result, outcome);
  if (!turn_thread_call_ends(turn->thread))
    return DK_CALL_CANCELLED;
  if (dk_status_class(status) == 3)
    turn->is_unsure = true;
  return status;
}

/* The first failure of a series is a warning, for all turns together. */
static void
log_retry(struct turn *turn, dk_status status)
{
  struct dk_log_event event = turn_event(turn, DK_LOG_ACK_RETRIED);
  const char *why = dk_caller_failure(turn->caller)->text;

  log_count(turn->shared->log, COUNT_ACKS_RETRIED);
  event.status = status;
  if (!health_refused(&turn->shared->log->health, &turn->commits, status, why))
    event.level = DK_LEVEL_TRACE;
  log_report(turn->shared->log, &event, "its turn cannot be committed, trying again: %s", why);
}

static void
log_committed(struct turn *turn)
{
  struct dk_log_event event = turn_event(turn, DK_LOG_STORE_BACK);

  if (health_good(&turn->shared->log->health, &turn->commits, &event.ms))
    log_report(turn->shared->log, &event, "turns can be committed again, after %lld ms",
               (long long)event.ms);
}

static bool
is_ours(const struct turn *turn)
{
  return !atomic_load(&turn->is_lost) && lease_deadline(turn->lease) > ticks_now();
}

/* Sends until the outcome is clear or the lease has ended; returns the last answer. */
static dk_status
send_until_clear(struct turn *turn, struct dk_turn_result *result,
                 struct dk_commit_outcome *outcome)
{
  int64_t pause = FIRST_PAUSE_MS;

  for (;;) {
    dk_status status = turn_commit_attempt(turn, result, outcome);
    if (turn->is_unsure)
      result->flags |= DK_REPEATED;
    if (!health_may_pass(status) || turn_thread_is_abandoned(turn->thread))
      return status;
    log_retry(turn, status);
    if (!is_ours(turn) || !turn_thread_pause(turn->thread, pause) || !is_ours(turn))
      return status;
    pause = pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
  }
}

/* Refused neither for the content of the turn nor because its lease is lost: another turn would be
 * refused too. */
static bool
is_refused(dk_status status)
{
  return status == DK_REFUSED || status == DK_CORRUPT || status == DK_INTERNAL;
}

static dk_status
send(struct turn *turn, struct dk_turn_result *result, struct dk_commit_outcome *outcome)
{
  struct health *health = &turn->shared->log->health;
  dk_status status = send_until_clear(turn, result, outcome);

  if (status == DK_OK)
    log_committed(turn);
  if (is_refused(status))
    health_refused(health, &turn->commits, status, dk_caller_failure(turn->caller)->text);
  if (status != DK_OK)
    health_rest(health, &turn->commits);
  return status;
}

/* ---- after the commit ------------------------------------------------------------------------ */

static void
log_stray(struct turn *turn, const struct stray *stray)
{
  struct dk_log_event event =
      turn_event(turn, stray->is_unreadable ? DK_LOG_MESSAGE_DROPPED : DK_LOG_STRAY);

  log_count(turn->shared->log, stray->is_unreadable ? COUNT_MESSAGES_DROPPED : COUNT_STRAYS);
  log_report(turn->shared->log, &event, "a message (%s) has no effect: %s", stray->kind,
             stray->why);
}

static void
log_strays(struct turn *turn)
{
  static const struct stray taken = {"detached start", "the instance id is taken", false};

  for (size_t i = 0; i < turn->n_strays; i++)
    log_stray(turn, &turn->strays[i]);
  for (size_t i = 0; i < turn->n_taken; i++)
    log_stray(turn, &taken);
}

/* A failure that its code did not return is logged as a warning, because its status might never be
 * read. */
static void
log_failure(struct turn *turn)
{
  const struct decision *d = &turn->decision;
  const struct event *end = &d->events[d->n_events - 1];
  struct dk_log_event event = turn_event(turn, DK_LOG_ORCHESTRATION_ENDED);

  if (end->code != CODE_APPLICATION)
    event.level = DK_LEVEL_WARNING;
  log_count(turn->shared->log, COUNT_ORCHESTRATIONS_FAILED);
  log_count(turn->shared->log, COUNT_FAILED + end->code);
  log_report(turn->shared->log, &event, "failed: %s: %.*s", code_name(end->code),
             (int)end->text.len, end->text.ptr);
}

static void
log_end(struct turn *turn)
{
  static const struct {
    int32_t status;
    enum counter counter;
    const char *word;
  } ends[] = {
    {DK_COMPLETED, COUNT_ORCHESTRATIONS_COMPLETED, "completed"},
    {DK_CANCELLED, COUNT_ORCHESTRATIONS_CANCELLED, "cancelled"},
    {DK_CONTINUED_AS_NEW, COUNT_ORCHESTRATIONS_CONTINUED, "continued as new"},
  };

  if (turn->decision.status == DK_FAILED)
    log_failure(turn);
  for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
    if (turn->decision.status == ends[i].status) {
      struct dk_log_event event = turn_event(turn, DK_LOG_ORCHESTRATION_ENDED);
      log_count(turn->shared->log, ends[i].counter);
      log_report(turn->shared->log, &event, "%s", ends[i].word);
    }
}

static void
signal_worker(struct turn *turn, const struct dk_commit_outcome *outcome)
{
  if (turn->shared->activities && outcome->n_stolen > 0 &&
      !(turn->shared->options->flags & DK_RUNTIME_NO_LOCAL_SIGNAL))
    activity_pool_signal(turn->shared->activities, turn->instance, outcome->stolen,
                         outcome->n_stolen);
}

static void
landed(struct turn *turn)
{
  log_count(turn->shared->log, COUNT_TURNS_COMMITTED);
  retry_counts_forget(turn->shared->retries, turn->instance);
  commit_count_requests(turn);
  log_strays(turn);
}

/* Adds what was committed to the memory; false: no memory. */
static bool
add_decision(struct remembered *memory, const struct decision *d, size_t n_there)
{
  return remembered_add(memory, d->events + n_there, d->n_events - n_there) &&
         remembered_change(memory, d->kv, d->n_kv) &&
         history_settle(memory->index, memory->events, memory->n_events) == DK_OK;
}

/* The code can continue from here, if it waits; DK_RUNTIME_FAIL_FAST requires that it comes here
 * again from its start. */
static bool
keeps_run(const struct turn *turn)
{
  return turn->memory->run && replay_waits(turn->memory->run) &&
         turn->decision.status == DK_RUNNING &&
         !(turn->shared->options->flags & DK_RUNTIME_FAIL_FAST);
}

/* Keeps what was committed for the next turn, unless there is no next turn, or the state of the
 * store is uncertain. */
static void
remember(struct turn *turn)
{
  const struct decision *d = &turn->decision;
  struct remembered *memory = turn->memory;
  size_t n_there = turn->is_first && memory->n_events > 0 ? memory->n_events : 0;

  if (turn->is_unsure ||
      (d->status != DK_RUNNING && d->status != DK_STATUS_KEEP && d->status != DK_CONTINUED_AS_NEW))
    return;
  if (n_there > d->n_events)
    return;
  if (!add_decision(memory, d, n_there))
    return;
  if (!keeps_run(turn))
    remembered_drop_run(memory);
  cache_put(turn->shared->cache, memory);
  turn->memory = NULL;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static enum fate
refused_by_store(struct turn *turn, dk_status status)
{
  char name[32];

  retry_counts_pardon(turn->shared->retries, turn->instance, turn->attempt);
  return turn_delay(turn, DELAY_REFUSED, "the store refuses its commit, %s: %s",
                    dk_status_name(status, name, sizeof(name)),
                    dk_caller_failure(turn->caller)->text);
}

/* How the turn ends, for each answer that is not DK_OK. */
static enum fate
fate_of(struct turn *turn, dk_status status)
{
  if (turn_thread_is_abandoned(turn->thread))
    return FATE_LEFT;
  if (status == DK_LOCK_LOST)
    return FATE_LOST;
  if (health_may_pass(status))
    return turn_thread_ends(turn->thread) && !turn->is_unsure ? FATE_AGAIN : FATE_DROPPED;
  return refused_by_store(turn, status);
}

static dk_status
send_decision(struct turn *turn, const struct decision *decision, struct dk_commit_outcome *outcome)
{
  struct dk_turn_result *result = commit_encode(&turn->arena, decision, turn->shared->owner);

  if (!result)
    return DK_NO_MEMORY;
  if (turn->is_unsure)
    result->flags |= DK_REPEATED;
  return send(turn, result, outcome);
}

/* The outgoing message that the store named as stored already; false: it named none, for it is an
 * event or an activity, or the provider was built for an ABI before 2.3. */
static bool
is_message_named(const struct turn *turn, size_t *ret_index)
{
  const struct dk_failure *failure = dk_caller_failure(turn->caller);

  *ret_index = (size_t)failure->index;
  return failure->list == DK_LIST_ORCHESTRATOR_ITEMS;
}

static bool
is_detached_start(const struct outgoing *outgoing)
{
  return outgoing->message.kind == MESSAGE_START && !outgoing->message.parent.instance.ptr;
}

/* The decision without the messages whose ids are taken: each refusal names one.  If it names none,
 * the turn waits until the message that is stored has been processed. */
static dk_status
send_without_taken(struct turn *turn, struct dk_commit_outcome *outcome)
{
  dk_status status = DK_DUPLICATE;
  size_t i;

  while (status == DK_DUPLICATE && is_message_named(turn, &i)) {
    assert(i < turn->decision.n_outgoing);
    turn->n_taken += is_detached_start(&turn->decision.outgoing[i]);
    if (decision_leave_away(&turn->arena, turn->instance, &turn->decision, i) != DK_OK)
      return DK_NO_MEMORY;
    status = send_decision(turn, &turn->decision, outcome);
  }
  return status;
}

/* The turn is larger than the store accepts, and the instance must fail for that: with a small
 * commit. */
static dk_status
send_failure(struct turn *turn, struct dk_commit_outcome *outcome)
{
  const char *why = dk_arena_printf(&turn->arena, NOT_TAKEN, dk_caller_failure(turn->caller)->text);

  if (!why || turn_decide_failure(turn, CODE_LIMIT, dk_str_of(why)) != DK_OK)
    return DK_NO_MEMORY;
  return send_decision(turn, &turn->decision, outcome);
}

static bool
is_about_content(dk_status status)
{
  return status == DK_TOO_LARGE || status == DK_INVALID || status == DK_UNSUPPORTED;
}

/* ---- the commits ----------------------------------------------------------------------------- */

enum fate
turn_commit(struct turn *turn)
{
  struct dk_commit_outcome outcome;
  dk_status status = send_decision(turn, &turn->decision, &outcome);

  if (is_about_content(status) && !turn_fails(turn, DELAY_LIMIT))
    return turn_delay(turn, DELAY_LIMIT, NOT_TAKEN, dk_caller_failure(turn->caller)->text);
  if (is_about_content(status))
    status = send_failure(turn, &outcome);
  if (status == DK_DUPLICATE)
    status = send_without_taken(turn, &outcome);
  if (status == DK_DUPLICATE)
    return turn_delay(turn, DELAY_TAKEN,
                      "the id of one of its messages or events is already stored: %s",
                      dk_caller_failure(turn->caller)->text);
  if (status != DK_OK)
    return fate_of(turn, status);
  signal_worker(turn, &outcome);
  commit_count_cancelled(turn, &outcome);
  remember(turn); /* before the next turn of this instance needs it */
  landed(turn);
  log_end(turn);
  return FATE_COMMITTED;
}

enum fate
turn_commit_reasons(struct turn *turn)
{
  struct dk_commit_outcome outcome;
  struct dk_turn_result *result = commit_encode_nothing(&turn->arena, NULL, 0);
  dk_status status = result ? send(turn, result, &outcome) : DK_NO_MEMORY;

  return status == DK_OK ? FATE_COMMITTED : fate_of(turn, status);
}

static dk_status
send_nothing(struct turn *turn, const struct outgoing *answers, size_t n_answers)
{
  struct dk_commit_outcome outcome;
  struct dk_turn_result *result = commit_encode_nothing(&turn->arena, answers, n_answers);

  return result ? send(turn, result, &outcome) : DK_NO_MEMORY;
}

/* Two answers with the same id are impossible: the id names the asker's own event. */
enum fate
turn_commit_nothing(struct turn *turn, struct outgoing *answers, size_t n_answers)
{
  dk_status status = send_nothing(turn, answers, n_answers);
  size_t i;

  /* An earlier commit has already sent this answer. */
  while (status == DK_DUPLICATE && n_answers > 0) {
    n_answers = is_message_named(turn, &i) ? n_answers - 1 : 0;
    if (n_answers > i)
      memmove(&answers[i], &answers[i + 1], (n_answers - i) * sizeof(*answers));
    status = send_nothing(turn, answers, n_answers);
  }
  if (status != DK_OK)
    return fate_of(turn, status);
  landed(turn);
  if (turn->memory && !turn->is_first && !turn->is_unsure) {
    cache_put(turn->shared->cache, turn->memory); /* as it was */
    turn->memory = NULL;
  }
  return FATE_COMMITTED;
}
