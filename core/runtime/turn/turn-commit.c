/* SPDX-License-Identifier: Apache-2.0 */
/* Committing: the decision goes to the store, and is tried again while the lease lives.
 *
 * The lease is renewed all the while.  An attempt that hangs is called back when the lease would
 * have ended without that, so it can be repeated.  What is refused because of what it says (too
 * large) is delayed, or fails the instance with a small commit; what is refused because an id is
 * taken goes without that message; everything else is the store's trouble, never the
 * instance's. */
#include <string.h>

#include "core/runtime/turn/commit-encode.h"
#include "core/runtime/turn/turn-thread.h"
#include "core/runtime/turn/turn.h"

enum { FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 500, MOST_TAKEN = 32 };

#define NOT_TAKEN "the store does not take its turn: %s"

/* ---- one attempt after the other ------------------------------------------------------------- */

/* DK_CALL_CANCELLED: it hung, was called back, and nothing was done. */
static bool
can_be_tried_again(dk_status status)
{
  int32_t class = dk_status_class(status);

  return class == 1 || class == 3 || status == DK_CALL_CANCELLED;
}

static dk_status
attempt(struct job *job, const struct dk_turn_result *result, struct dk_commit_outcome *outcome)
{
  memset(outcome, 0, sizeof(*outcome));
  contact_ask(&job->w->journal->contact, &job->commits, CONTACT_COMMITS, 0);
  if (!seat_call_begins(job->seat, lease_deadline(job->lease)))
    return DK_CALL_CANCELLED;
  dk_status status = dk_store_ack_orchestration_item(
    job->w->store, job->caller, job->turn->head.lock_token, result, outcome);
  if (!seat_call_ends(job->seat))
    return DK_CALL_CANCELLED;
  if (dk_status_class(status) == 3)
    job->is_unsure = true;
  return status;
}

/* The first of a row is a warning, for all turns together. */
static void
tell_retry(struct job *job, dk_status status)
{
  struct dk_log_event event = job_event(job, DK_LOG_ACK_RETRIED);
  const char *why = dk_caller_failure(job->caller)->text;

  journal_count(job->w->journal, COUNT_ACKS_RETRIED);
  event.status = status;
  if (!contact_refused(&job->w->journal->contact, &job->commits, status, why))
    event.level = DK_LEVEL_TRACE;
  journal_tell(job->w->journal, &event, "its turn cannot be committed, it is tried again: %s",
               why);
}

static void
tell_committed(struct job *job)
{
  struct dk_log_event event = job_event(job, DK_LOG_STORE_BACK);

  if (contact_good(&job->w->journal->contact, &job->commits, &event.ms))
    journal_tell(job->w->journal, &event, "turns can be committed again, after %lld ms",
                 (long long)event.ms);
}

static bool
is_ours(const struct job *job)
{
  return !atomic_load(&job->is_lost) && lease_deadline(job->lease) > ticks_now();
}

/* Sends until it is clear, or the lease is over: then the last answer. */
static dk_status
send_until_clear(struct job *job, struct dk_turn_result *result, struct dk_commit_outcome *outcome)
{
  int64_t pause = FIRST_PAUSE_MS;

  for (;;) {
    dk_status status = attempt(job, result, outcome);
    if (job->is_unsure)
      result->flags |= DK_REPEATED;
    if (!can_be_tried_again(status) || seat_is_left(job->seat))
      return status;
    tell_retry(job, status);
    if (!is_ours(job) || !seat_pause(job->seat, pause) || !is_ours(job))
      return status;
    pause = pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
  }
}

/* Not for what the turn says, and not because it is somebody else's: no other would be taken. */
static bool
is_refused(dk_status status)
{
  return status == DK_REFUSED || status == DK_CORRUPT || status == DK_INTERNAL;
}

static dk_status
send(struct job *job, struct dk_turn_result *result, struct dk_commit_outcome *outcome)
{
  struct contact *contact = &job->w->journal->contact;
  dk_status status = send_until_clear(job, result, outcome);

  if (status == DK_OK)
    tell_committed(job);
  if (is_refused(status))
    contact_refused(contact, &job->commits, status, dk_caller_failure(job->caller)->text);
  if (status != DK_OK)
    contact_rest(contact, &job->commits);
  return status;
}

/* ---- after the commit ------------------------------------------------------------------------ */

static void
tell_strays(struct job *job)
{
  for (size_t i = 0; i < job->n_strays; i++) {
    const struct stray *stray = &job->strays[i];
    struct dk_log_event event =
      job_event(job, stray->is_unreadable ? DK_LOG_MESSAGE_DROPPED : DK_LOG_STRAY);
    journal_count(job->w->journal,
                  stray->is_unreadable ? COUNT_MESSAGES_DROPPED : COUNT_STRAYS);
    journal_tell(job->w->journal, &event, "a message (%s) does nothing: %s", stray->kind,
                 stray->why);
  }
}

/* What its code did not say itself is worth a warning, also where nobody asks for its status. */
static void
tell_failure(struct job *job)
{
  const struct decision *d = &job->decision;
  const struct event *end = &d->events[d->n_events - 1];
  struct dk_log_event event = job_event(job, DK_LOG_ORCHESTRATION_ENDED);

  if (end->code != CODE_APPLICATION)
    event.level = DK_LEVEL_WARNING;
  journal_count(job->w->journal, COUNT_ORCHESTRATIONS_FAILED);
  journal_count(job->w->journal, COUNT_FAILED + end->code);
  journal_tell(job->w->journal, &event, "failed: %s: %.*s", code_name(end->code),
               (int)end->text.len, end->text.ptr);
}

static void
tell_end(struct job *job)
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

  if (job->decision.status == DK_FAILED)
    tell_failure(job);
  for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
    if (job->decision.status == ends[i].status) {
      struct dk_log_event event = job_event(job, DK_LOG_ORCHESTRATION_ENDED);
      journal_count(job->w->journal, ends[i].counter);
      journal_tell(job->w->journal, &event, "%s", ends[i].word);
    }
}

static void
signal_worker(struct job *job, const struct dk_commit_outcome *outcome)
{
  if (job->w->worker && outcome->n_stolen > 0 &&
      !(job->w->options->flags & DK_RUNTIME_NO_LOCAL_SIGNAL))
    worker_signal(job->w->worker, job->instance, outcome->stolen, outcome->n_stolen);
}

static void
landed(struct job *job)
{
  journal_count(job->w->journal, COUNT_TURNS_COMMITTED);
  notes_forget(job->w->notes, job->instance);
  count_requests(job);
  tell_strays(job);
}

/* What was committed stands in the memory; false: no memory. */
static bool
add_decision(struct remembered *memory, const struct decision *d, size_t n_there)
{
  return remembered_add(memory, d->events + n_there, d->n_events - n_there) &&
         remembered_change(memory, d->kv, d->n_kv) &&
         history_settle(memory->index, memory->events, memory->n_events) == DK_OK;
}

/* The code can go on from here, if it waits; a test wants to see that it comes here again from its
 * start. */
static bool
keeps_run(const struct job *job)
{
  return job->memory->run && replay_waits(job->memory->run) &&
         job->decision.status == DK_RUNNING &&
         !(job->w->options->flags & DK_RUNTIME_FAIL_FAST);
}

/* What was committed is remembered for the next turn, unless there is none, or it is not sure what
 * the store has. */
static void
remember(struct job *job)
{
  const struct decision *d = &job->decision;
  struct remembered *memory = job->memory;
  size_t n_there = job->is_first && memory->n_events > 0 ? memory->n_events : 0;

  if (job->is_unsure || (d->status != DK_RUNNING && d->status != DK_STATUS_KEEP &&
                         d->status != DK_CONTINUED_AS_NEW))
    return;
  if (n_there > d->n_events)
    return;
  if (!add_decision(memory, d, n_there))
    return;
  if (!keeps_run(job))
    remembered_drop_run(memory);
  cache_put(job->w->cache, memory);
  job->memory = NULL;
}

/* ---- what is refused ------------------------------------------------------------------------- */

static enum fate
refused_by_store(struct job *job, dk_status status)
{
  char name[32];

  notes_pardon(job->w->notes, job->instance, job->attempt);
  return job_stalled(job, STALL_REFUSED, "the store refuses its commit, %s: %s",
                     dk_status_name(status, name, sizeof(name)),
                     dk_caller_failure(job->caller)->text);
}

/* How the turn ends for each answer that is not DK_OK. */
static enum fate
fate_of(struct job *job, dk_status status)
{
  if (seat_is_left(job->seat))
    return FATE_LEFT;
  if (status == DK_LOCK_LOST)
    return FATE_LOST;
  if (can_be_tried_again(status))
    return seat_ends(job->seat) && !job->is_unsure ? FATE_AGAIN : FATE_DROPPED;
  return refused_by_store(job, status);
}

static dk_status
send_decision(struct job *job, const struct decision *decision, struct dk_commit_outcome *outcome)
{
  struct dk_turn_result *result = commit_encode(&job->arena, decision, job->w->owner);

  if (!result)
    return DK_NO_MEMORY;
  if (job->is_unsure)
    result->flags |= DK_REPEATED;
  return send(job, result, outcome);
}

/* Those that the failure's text names come first. */
static bool
is_named(const struct job *job, const struct outgoing *outgoing)
{
  const char *text = dk_caller_failure(job->caller)->text;

  return outgoing->instance.ptr && strstr(text, outgoing->instance.ptr);
}

/* How likely the message is the one whose id is taken: 3 the most, 0 not at all. */
static int
suspicion(const struct job *job, const struct outgoing *outgoing)
{
  if (!outgoing->id.ptr)
    return 0;
  return 1 + (outgoing->message.kind == MESSAGE_START) + is_named(job, outgoing);
}

static void
tell_taken(struct job *job, const struct outgoing *taken)
{
  if (taken->message.kind == MESSAGE_START && !taken->message.parent.instance.ptr)
    job_stray(job, "detached start", "the instance id is taken", false);
}

static dk_status
send_one_less(struct job *job, size_t taken, struct dk_commit_outcome *outcome)
{
  struct decision less = job->decision;

  less.outgoing = dk_arena_array(&job->arena, less.n_outgoing, sizeof(*less.outgoing));
  if (!less.outgoing)
    return DK_NO_MEMORY;
  memcpy(less.outgoing, job->decision.outgoing, less.n_outgoing * sizeof(*less.outgoing));
  if (decision_leave_away(&job->arena, job->instance, &less, taken) != DK_OK)
    return DK_NO_MEMORY;
  return send_decision(job, &less, outcome);
}

/* The decision without each of those messages, one at a time; one that lands settles it.  If two
 * ids are taken, none does, and the turn waits until those starts have been processed. */
static dk_status
send_without(struct job *job, struct dk_commit_outcome *outcome)
{
  const struct decision *d = &job->decision;
  int tries = 0;

  for (int level = 3; level > 0; level--)
    for (size_t i = 0; i < d->n_outgoing; i++) {
      if (suspicion(job, &d->outgoing[i]) != level || tries++ >= MOST_TAKEN)
        continue;
      dk_status status = send_one_less(job, i, outcome);
      if (status != DK_DUPLICATE) {
        tell_taken(job, &d->outgoing[i]);
        return status;
      }
    }
  return DK_DUPLICATE;
}

/* The turn says more than the store takes, and the instance is to fail for that: with a commit that
 * says little. */
static dk_status
send_failure(struct job *job, struct dk_commit_outcome *outcome)
{
  const char *why = dk_arena_printf(&job->arena, NOT_TAKEN, dk_caller_failure(job->caller)->text);

  if (!why || decide_failure(job, CODE_LIMIT, dk_str_of(why)) != DK_OK)
    return DK_NO_MEMORY;
  return send_decision(job, &job->decision, outcome);
}

static bool
is_about_content(dk_status status)
{
  return status == DK_TOO_LARGE || status == DK_INVALID || status == DK_UNSUPPORTED;
}

/* ---- the commits ----------------------------------------------------------------------------- */

enum fate
commit_decision(struct job *job)
{
  struct dk_commit_outcome outcome;
  dk_status status = send_decision(job, &job->decision, &outcome);

  if (is_about_content(status) && !job_fails(job, STALL_LIMIT))
    return job_stalled(job, STALL_LIMIT, NOT_TAKEN, dk_caller_failure(job->caller)->text);
  if (is_about_content(status))
    status = send_failure(job, &outcome);
  if (status == DK_DUPLICATE)
    status = send_without(job, &outcome);
  if (status == DK_DUPLICATE)
    return job_stalled(job, STALL_TAKEN, "ids of its messages are taken, or an event's: %s",
                       dk_caller_failure(job->caller)->text);
  if (status != DK_OK)
    return fate_of(job, status);
  signal_worker(job, &outcome);
  count_cancelled(job, &outcome);
  remember(job); /* before the next turn of this instance asks for it */
  landed(job);
  tell_end(job);
  return FATE_COMMITTED;
}

enum fate
commit_reasons(struct job *job)
{
  struct dk_commit_outcome outcome;
  struct dk_turn_result *result = commit_encode_nothing(&job->arena, NULL, 0);
  dk_status status = result ? send(job, result, &outcome) : DK_NO_MEMORY;

  return status == DK_OK ? FATE_COMMITTED : fate_of(job, status);
}

/* Two answers of one id cannot be: it names the asker's own event. */
enum fate
commit_nothing(struct job *job, const struct outgoing *answers, size_t n_answers)
{
  struct dk_commit_outcome outcome;
  struct dk_turn_result *result = commit_encode_nothing(&job->arena, answers, n_answers);
  dk_status status = result ? send(job, result, &outcome) : DK_NO_MEMORY;

  /* The askers have their answers already, from an earlier commit. */
  if (status == DK_DUPLICATE && n_answers > 0)
    return commit_nothing(job, NULL, 0);
  if (status != DK_OK)
    return fate_of(job, status);
  landed(job);
  if (job->memory && !job->is_first && !job->is_unsure) {
    cache_put(job->w->cache, job->memory); /* as it was */
    job->memory = NULL;
  }
  return FATE_COMMITTED;
}
