/* SPDX-License-Identifier: Apache-2.0 */
/* A turn: the order of its steps, and its outcome: see turn.h. */
#include "core/runtime/turn/turn.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/runtime/turn/turn-thread.h"

/* ---- helpers --------------------------------------------------------------------------------- */

struct dk_log_event
turn_event(const struct turn *turn, int32_t number)
{
  return (struct dk_log_event){
      .struct_size = sizeof(struct dk_log_event),
      .number = number,
      .instance = turn->instance,
      .execution_id = turn->execution,
      .orchestration = turn->name,
  };
}

void
turn_stray(struct turn *turn, const char *kind, const char *why, bool is_unreadable)
{
  if (turn->n_strays < turn->fetched->n_messages)
    turn->strays[turn->n_strays++] = (struct stray){kind, why, is_unreadable};
}

enum fate
turn_delay(struct turn *turn, enum delay why, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  vsnprintf(turn->words, sizeof(turn->words), format, args);
  va_end(args);
  turn->delay_why = why;
  return FATE_DELAYED;
}

uint32_t
turn_judged(const struct turn *turn)
{
  /* Messages that waited for the start do not count against it. */
  bool waited = !turn->fetched->head.known && turn->start_attempt > 0;
  uint32_t attempt = waited ? turn->start_attempt : turn->attempt;

  return retry_counts_judged(turn->shared->retries, turn->instance, attempt);
}

bool
turn_fails(const struct turn *turn, enum delay why)
{
  const struct dk_runtime_options *options = turn->shared->options;
  bool is_by_code = why == DELAY_NONDETERMINISM || why == DELAY_LIMIT || why == DELAY_WRONG_CALL;

  if (is_by_code && (options->flags & DK_RUNTIME_FAIL_FAST))
    return true;
  return (options->flags & DK_RUNTIME_FAIL_DELAYED) && turn_judged(turn) >= options->max_attempts;
}

/* No message has an effect; `outcome` is that of the requests to cancel among them. */
static void
all_are_strays(struct turn *turn, enum request_outcome outcome, const char *why, bool is_warning)
{
  for (size_t i = 0; i < turn->n_messages; i++) {
    const struct message *message = &turn->messages[i];
    if (message->kind == MESSAGE_NONE)
      continue;
    turn_stray(turn, message_kind_name(message->kind), why, is_warning);
    if (message->kind == MESSAGE_CANCEL)
      turn->staged.requests[request_source(message)][outcome]++;
  }
}

/* ---- more messages than one turn takes ------------------------------------------------------- */

/* How many fetches return all messages, so that one of them is of this instance. */
enum { WHOLE_FETCHES = 100 };

/* The message that begins an execution might be queued after as many others as one fetch returns.
 * Then the turn must not wait for it: a larger fetch returns them all together, in order. */
static bool
may_be_behind(const struct turn *turn)
{
  return !turn->is_whole && turn->fetched->n_messages >= turn->shared->options->max_messages;
}

static enum fate
fetch_whole(struct turn *turn)
{
  atomic_store(&turn->shared->whole_fetches, WHOLE_FETCHES);
  return FATE_AGAIN;
}

/* ---- unknown instances ----------------------------------------------------------------------- */

/* Drops messages whose instance was not started. */
static enum fate
give_up_waiting(struct turn *turn)
{
  all_are_strays(turn, REQUEST_FOR_NOBODY,
                 "its instance was not started while it waited: check the id, or start it "
                 "earlier (dk_client_start)",
                 true);
  return turn_commit_nothing(turn, NULL, 0);
}

/* Messages are dropped when all have waited long enough; or, so that they do not accumulate
 * forever, a whole batch when some have. */
static bool
waited_long_enough(const struct turn *turn)
{
  const struct dk_runtime_options *options = turn->shared->options;
  bool is_full = turn->fetched->n_messages >= options->max_messages;

  uint32_t attempt = is_full ? turn->attempt : turn->least_attempt;

  return retry_counts_judged(turn->shared->retries, turn->instance, attempt) >
         options->max_attempts;
}

static enum fate
wait_for_start(struct turn *turn)
{
  if (turn->n_strays == turn->n_messages || waited_long_enough(turn))
    return give_up_waiting(turn);
  return turn_delay(turn, DELAY_NO_START,
                    "messages for an instance that was not started (yet) wait for its start, and "
                    "are dropped after some time: start it (dk_client_start)");
}

/* ---- beginnings ------------------------------------------------------------------------------ */

/* The version to run: the one requested, or the newest one registered here. */
static dk_str
version_of(const struct turn *turn, dk_str name, dk_str version)
{
  const char *found = NULL;

  if (version.ptr)
    return version;
  if (registry_orchestration(turn->shared->options->registry, name, version, &found))
    return dk_str_of(found);
  return dk_str_of(NO_VERSION); /* none: the instance waits for one, or is cancelled */
}

/* Makes the message, or its substitute, the first event. */
static enum fate
turn_begin(struct turn *turn, uint64_t execution, const struct message *message,
           const char *corrupt)
{
  const struct event started = {
      .id = 1,
      .kind = EVENT_STARTED,
      .time = turn->now,
      .name = message->name,
      .version = version_of(turn, message->name, message->version),
      .text = message->text,
      .parent = message->parent,
      .carried = message->carried,
      .n_carried = message->n_carried,
  };
  enum fate fate = turn_begin_history(turn, execution, &started);

  if (fate != FATE_GOES_ON)
    return fate;
  turn->corrupt = corrupt;
  return turn_decide(turn);
}

/* The id of every start. */
static dk_str
start_id(struct turn *turn)
{
  return message_id(&turn->arena, MESSAGE_START, 1, 0);
}

/* The message of the turn that has the id of a start but cannot be read; NULL: there is none. */
static const struct dk_message *
unreadable_start(const struct turn *turn, dk_str id)
{
  for (size_t i = 0; i < turn->fetched->n_messages; i++)
    if (turn->fetched->messages[i].id.ptr && str_equal(turn->fetched->messages[i].id, id))
      return &turn->fetched->messages[i];
  return NULL;
}

/* Its start is delayed: a request to cancel does not wait for it, everything else does.
 * FATE_GOES_ON: no start is stored. */
static enum fate
begin_delayed(struct turn *turn)
{
  dk_str id = start_id(turn);
  const struct dk_message *row = unreadable_start(turn, id);
  bool is_here = row != NULL;
  struct message start;

  enum fate fate = row ? FATE_GOES_ON : stored_find(turn, id, &row);
  if (fate != FATE_GOES_ON || !row)
    return fate;
  if (!turn_inbox_has(turn, MESSAGE_CANCEL))
    return is_here ? FATE_GOES_ON : stored_wait_for(turn, row);
  if (stored_read_start(turn, row, &start) != DK_OK)
    return turn_delay(turn, DELAY_NO_MEMORY, "no memory for its start");
  if (!is_here)
    turn->stored_start = id;
  return turn_begin(turn, 1, &start, NULL);
}

static enum fate
unknown(struct turn *turn)
{
  struct message start;

  cache_forget(turn->shared->cache, turn->instance);
  if (turn_inbox_take(turn, MESSAGE_START, 0, &start, &turn->start_attempt))
    return turn_begin(turn, 1, &start, NULL);
  if (may_be_behind(turn))
    return fetch_whole(turn);
  enum fate fate = begin_delayed(turn);
  if (fate != FATE_GOES_ON)
    return fate;
  if (turn->unreadable && !turn_fails(turn, DELAY_UNREADABLE))
    return turn_delay(turn, DELAY_UNREADABLE,
                      "a message of it, possibly its start, cannot be read: %s", turn->unreadable);
  return wait_for_start(turn);
}

/* The history of the last execution has everything except the contents of its queues. */
static enum fate
begin_without_message(struct turn *turn)
{
  const struct remembered *memory = turn->memory;
  const struct event *last = &memory->events[memory->n_events - 1];
  const struct message instead = {.name = turn->started->name,
                                  .version = last->version,
                                  .text = last->text,
                                  .parent = turn->started->parent};

  return turn_begin(turn, turn->execution + 1, &instead,
                    "the message that begins this execution cannot be read");
}

/* Waits for the message that continues it; a cancel request need not wait. */
static enum fate
continuing(struct turn *turn)
{
  struct message next;
  uint32_t attempt;

  if (!turn_inbox_has(turn, MESSAGE_CONTINUE) && may_be_behind(turn))
    return fetch_whole(turn);
  enum fate fate = turn_load_history(turn);
  if (fate != FATE_GOES_ON)
    return fate;
  if (turn_inbox_take(turn, MESSAGE_CONTINUE, turn->execution + 1, &next, &attempt))
    return turn_begin(turn, turn->execution + 1, &next, NULL);
  const struct dk_message *delayed;
  fate = stored_find(turn, message_id(&turn->arena, MESSAGE_CONTINUE, turn->execution + 1, 0),
                     &delayed);
  if (fate != FATE_GOES_ON)
    return fate;
  if (delayed && !turn_inbox_has(turn, MESSAGE_CANCEL))
    return stored_wait_for(turn, delayed);
  bool is_over = turn_inbox_has(turn, MESSAGE_CANCEL) || turn_fails(turn, DELAY_CORRUPT);
  if (is_over && !turn->corrupt && turn->memory->n_events > 0)
    return begin_without_message(turn);
  return turn_delay(turn, DELAY_CORRUPT,
                    "the message that begins its next execution is missing or unreadable");
}

/* ---- running and ended instances ------------------------------------------------------------- */

static enum fate
running(struct turn *turn)
{
  enum fate fate = turn_load_history(turn);

  return fate == FATE_GOES_ON ? turn_decide(turn) : fate;
}

/* Makes one answer for each parent that started a child with this id. */
static dk_status
make_answers(struct turn *turn, const struct parent *own, struct outgoing *answers,
             size_t *ret_n_answers)
{
  for (size_t i = 0; i < turn->n_messages; i++) {
    bool has_answer = false;
    if (turn->messages[i].kind != MESSAGE_START)
      continue;
    if (decision_answer_start(&turn->arena, own, &turn->messages[i], &has_answer,
                              &answers[*ret_n_answers]) != DK_OK)
      return DK_NO_MEMORY;
    *ret_n_answers += has_answer;
  }
  return DK_OK;
}

static enum fate
over(struct turn *turn)
{
  struct parent own = {.execution = 0};
  struct outgoing *answers = dk_arena_array(&turn->arena, turn->n_messages, sizeof(*answers));
  enum fate fate = FATE_GOES_ON;
  size_t n_answers = 0;

  turn->execution = turn->fetched->head.execution_id;
  if (turn_inbox_has(turn, MESSAGE_START))
    fate = turn_load_parent(turn, &own);
  if (fate != FATE_GOES_ON)
    return fate;
  if (!answers || make_answers(turn, &own, answers, &n_answers) != DK_OK)
    return turn_delay(turn, DELAY_NO_MEMORY, "no memory for its turn");
  all_are_strays(turn, REQUEST_TOO_LATE, "the instance has ended", false);
  return turn_commit_nothing(turn, answers, n_answers);
}

static enum fate
process(struct turn *turn)
{
  const struct dk_turn_head *head = &turn->fetched->head;

  if (turn_inbox_read(turn) != DK_OK)
    return turn_delay(turn, DELAY_NO_MEMORY, "no memory for its turn");
  if (turn->n_reasons == turn->n_messages)
    return turn_commit_reasons(turn); /* the delay that they explain has ended */
  if (!head->known)
    return unknown(turn);
  if (head->status == DK_RUNNING || head->status == DK_STATUS_KEEP)
    return running(turn);
  if (head->status == DK_CONTINUED_AS_NEW)
    return continuing(turn);
  return over(turn);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void
turn_give_back(struct turn *turn, int64_t delay_ms, bool ignore_attempt)
{
  if (lease_deadline(turn->lease) <= ticks_now())
    return;
  lease_rest(turn->lease);
  if (!turn_thread_call_begins(turn->thread, lease_deadline(turn->lease)))
    return;
  dk_status status = dk_store_abandon_orchestration_item(
      turn->shared->store, turn->caller, turn->fetched->head.lock_token, delay_ms, ignore_attempt);
  if (turn_thread_call_ends(turn->thread) && turn_thread_ends(turn->thread))
    turn_thread_gave_back(turn->thread, status == DK_OK);
}

/* Delays a start that leaves no trace in the store (delayed-starts.h).  False: it must be given
 * back. */
static bool
delay_start(struct turn *turn, int64_t delay_ms)
{
  dk_str token = turn->fetched->head.lock_token;

  bool needs_none =
      turn->shared->has_admin; /* later messages find the start (stored-delays.c) */

  if (needs_none || turn->fetched->head.known || !turn->is_first || turn_thread_ends(turn->thread))
    return false;
  lease_rest(turn->lease);
  if (!turn_thread_call_begins(turn->thread, lease_deadline(turn->lease)))
    return true;
  int64_t at = ticks_after(ticks_now(), delay_ms);
  dk_status status = dk_store_renew_orchestration_item_lock(
      turn->shared->store, turn->caller, token, delay_ms + DELAYED_START_MARGIN_MS);
  return !turn_thread_call_ends(turn->thread) ||
         (status == DK_OK && delayed_starts_put(turn->shared->delayed_starts, token, at));
}

/* backoff_ms * 2^(n - 1), up to max_backoff_ms. */
static int64_t
backoff(const struct dk_runtime_options *options, uint32_t n)
{
  int64_t delay = options->backoff_ms;

  for (uint32_t i = 1; i < n && delay < options->max_backoff_ms; i++)
    delay *= 2;
  return delay < options->max_backoff_ms ? delay : options->max_backoff_ms;
}

/* Whether the delivery counts as an attempt.  Messages without an instance are dropped in the end,
 * so that they do not accumulate. */
static bool
is_counted(const struct turn *turn)
{
  switch (turn->delay_why) {
  case DELAY_NO_START:
    return true;
  case DELAY_TAKEN:
  case DELAY_REFUSED:
  case DELAY_DROPPED:
    return false;
  default:
    return turn->shared->options->flags & DK_RUNTIME_FAIL_DELAYED;
  }
}

/* Logs the delay: the first time for this reason as a warning (an invalid call: an error), then as
 * trace. */
static void
delayed(struct turn *turn)
{
  bool is_wrong_call = turn->delay_why == DELAY_WRONG_CALL, counts = is_counted(turn), is_first;
  struct dk_log_event event =
      turn_event(turn, is_wrong_call ? DK_LOG_PROGRAMMING_ERROR : DK_LOG_STALLED);
  uint32_t in_a_row =
      retry_counts_delayed_again(turn->shared->retries, turn->instance, turn->delay_why, &is_first);
  uint32_t n = counts ? turn_judged(turn) : in_a_row;

  event.ms = backoff(turn->shared->options, n > in_a_row ? n : in_a_row);
  if (!is_first)
    event.level = DK_LEVEL_TRACE;
  retry_counts_delayed_until(turn->shared->retries, turn->instance, turn->delay_why,
                             ticks_after(ticks_now(), event.ms));
  log_count(turn->shared->log, COUNT_TURNS_STALLED);
  log_count(turn->shared->log, COUNT_DELAYED + turn->delay_why);
  log_report(turn->shared->log, &event, "delayed: %s", turn->words);
  if (!counts && delay_start(turn, event.ms))
    return;
  turn_give_back(turn, event.ms, !counts);
  stored_write_reason(turn);
}

/* The store failed: the deliveries counted so far are not the instance's fault. */
static void
dropped(struct turn *turn)
{
  struct dk_log_event event = turn_event(turn, DK_LOG_TURN_DROPPED);
  bool is_first;
  uint32_t in_a_row =
      retry_counts_delayed_again(turn->shared->retries, turn->instance, DELAY_DROPPED, &is_first);

  if (!is_first)
    event.level = DK_LEVEL_TRACE;
  retry_counts_pardon(turn->shared->retries, turn->instance, turn->attempt);
  log_count(turn->shared->log, COUNT_TURNS_DROPPED);
  log_report(turn->shared->log, &event,
             "its turn could not be committed and is dropped; it will be fetched again");
  turn_give_back(turn, backoff(turn->shared->options, in_a_row), true);
}

static void
lost(struct turn *turn)
{
  struct dk_log_event event = turn_event(turn, DK_LOG_TEXT);

  event.level = DK_LEVEL_INFO;
  retry_counts_pardon(turn->shared->retries, turn->instance, turn->attempt);
  log_count(turn->shared->log, COUNT_TURNS_LOST);
  log_report(turn->shared->log, &event,
             turn->is_unsure ? "its commit had succeeded before, or its lease was lost"
                             : "the lease of its turn was lost; it will be fetched again");
}

/* The lease of an abandoned thread belongs to turn_pool_end. */
static void
close_turn(struct turn *turn, enum fate fate)
{
  switch (fate) {
  case FATE_DELAYED:
    delayed(turn);
    break;
  case FATE_WAITS:
    turn_give_back(turn, turn->wait_ms, true);
    break;
  case FATE_AGAIN:
    turn_give_back(turn, 0, true);
    break;
  case FATE_DROPPED:
    dropped(turn);
    break;
  case FATE_LOST:
    lost(turn);
    break;
  case FATE_COMMITTED:
  case FATE_TOO_LATE:
  case FATE_LEFT:
    break;
  case FATE_GOES_ON:
    assert(!"a turn that is closed has come to its end");
    break;
  }
}

/* ---- the lease ------------------------------------------------------------------------------- */

static void
lease_lost(void *context, enum loss loss)
{
  struct turn *turn = context;

  (void)loss;
  atomic_store(&turn->is_lost, true);
}

static bool
keep_lease(struct turn *turn)
{
  const struct dk_runtime_options *options = turn->shared->options;
  const struct lease_terms terms = {
      .kind = LEASE_TURN,
      .token = turn->fetched->head.lock_token,
      .lock_ms = options->turn_lock_ms,
      .buffer_ms = options->turn_renewal_buffer_ms,
      .deadline = ticks_of(turn->shared->store, turn->fetched->deadline),
      .instance = turn->fetched->head.instance,
      .execution_id = turn->fetched->head.execution_id,
      .lost = lease_lost,
      .context = turn,
  };

  turn->lease = leases_keep(turn->shared->leases, &terms);
  return turn->lease != NULL;
}

void
turn_run(struct turn *turn)
{
  if (!keep_lease(turn))
    return; /* without memory for that the lease expires */
  turn->instance = turn->fetched->head.instance;
  turn->now = turn->fetched->head.now;
  close_turn(turn, process(turn));
  remembered_free(turn->memory);
  turn->memory = NULL;
}
