/* SPDX-License-Identifier: Apache-2.0 */
/* A job: the order of its steps, and what becomes of the turn: see turn.h. */
#include "core/runtime/turn/turn.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/runtime/turn/turn-thread.h"

/* ---- helpers --------------------------------------------------------------------------------- */

struct dk_log_event
job_event(const struct job *job, int32_t number)
{
  return (struct dk_log_event){
    .struct_size = sizeof(struct dk_log_event),
    .number = number,
    .instance = job->instance,
    .execution_id = job->execution,
    .orchestration = job->name,
  };
}

void
job_stray(struct job *job, const char *kind, const char *why, bool is_unreadable)
{
  if (job->n_strays < job->turn->n_messages)
    job->strays[job->n_strays++] = (struct stray){kind, why, is_unreadable};
}

enum fate
job_stalled(struct job *job, enum stall why, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  vsnprintf(job->words, sizeof(job->words), format, args);
  va_end(args);
  job->stall = why;
  return FATE_STALLED;
}

uint32_t
job_judged(const struct job *job)
{
  /* Messages that waited for the start do not speak against it. */
  bool waited = !job->turn->head.known && job->start_attempt > 0;
  uint32_t attempt = waited ? job->start_attempt : job->attempt;

  return notes_judged(job->w->notes, job->instance, attempt);
}

bool
job_fails(const struct job *job, enum stall why)
{
  const struct dk_runtime_options *options = job->w->options;
  bool is_by_code =
    why == STALL_NONDETERMINISM || why == STALL_LIMIT || why == STALL_WRONG_CALL;

  if (is_by_code && (options->flags & DK_RUNTIME_FAIL_FAST))
    return true;
  return (options->flags & DK_RUNTIME_FAIL_DELAYED) && job_judged(job) >= options->max_attempts;
}

/* Whatever it is, it does nothing; the requests to cancel among them came to this. */
static void
all_are_strays(struct job *job, enum request_outcome outcome, const char *why, bool is_warning)
{
  for (size_t i = 0; i < job->n_messages; i++) {
    const struct message *message = &job->messages[i];
    if (message->kind == MESSAGE_NONE)
      continue;
    job_stray(job, message_kind_name(message->kind), why, is_warning);
    if (message->kind == MESSAGE_CANCEL)
      job->staged.requests[request_source(message)][outcome]++;
  }
}

/* ---- more messages than one turn takes ------------------------------------------------------- */

/* How many fetches bring all messages, so that one of them is this instance's. */
enum { WHOLE_FETCHES = 100 };

/* The message that begins an execution may stand behind as many others as one fetch brings.  It
 * must not be waited for then: those in front are fetched together with it, in their order. */
static bool
may_be_behind(const struct job *job)
{
  return !job->is_whole && job->turn->n_messages >= job->w->options->max_messages;
}

static enum fate
fetch_whole(struct job *job)
{
  atomic_store(&job->w->whole_fetches, WHOLE_FETCHES);
  return FATE_AGAIN;
}

/* ---- what is not known ----------------------------------------------------------------------- */

/* Nobody has come for these messages. */
static enum fate
give_up_waiting(struct job *job)
{
  all_are_strays(job, REQUEST_FOR_NOBODY,
                 "nobody has started its instance while it waited: is the id right?  If so, "
                 "dk_client_start it sooner", true);
  return commit_nothing(job, NULL, 0);
}

/* Dropped are messages that have all been waiting long enough; or, so that they do not pile up for
 * ever, a whole batch of which some have. */
static bool
waited_long_enough(const struct job *job)
{
  const struct dk_runtime_options *options = job->w->options;
  bool is_full = job->turn->n_messages >= options->max_messages;

  uint32_t attempt = is_full ? job->attempt : job->least_attempt;

  return notes_judged(job->w->notes, job->instance, attempt) > options->max_attempts;
}

static enum fate
wait_for_start(struct job *job)
{
  if (job->n_strays == job->n_messages || waited_long_enough(job))
    return give_up_waiting(job);
  return job_stalled(job, STALL_NO_START,
                     "messages for an instance that was not started (yet) have to wait, and are "
                     "dropped in the end: dk_client_start it");
}

/* ---- beginnings ------------------------------------------------------------------------------ */

/* The version that runs: the one asked for, or the newest here. */
static dk_str
version_of(const struct job *job, dk_str name, dk_str version)
{
  const char *found = NULL;

  if (version.ptr)
    return version;
  if (registry_orchestration(job->w->options->registry, name, version, &found))
    return dk_str_of(found);
  return dk_str_of(NO_VERSION); /* none: it waits for one, or is cancelled */
}

/* The message, or what stands for it, becomes the first event. */
static enum fate
begin(struct job *job, uint64_t execution, const struct message *message, const char *corrupt)
{
  const struct event started = {
    .id = 1,
    .kind = EVENT_STARTED,
    .time = job->now,
    .name = message->name,
    .version = version_of(job, message->name, message->version),
    .text = message->text,
    .parent = message->parent,
    .carried = message->carried,
    .n_carried = message->n_carried,
  };
  enum fate fate = past_begin(job, execution, &started);

  if (fate != FATE_COMMITTED)
    return fate;
  job->corrupt = corrupt;
  return decide_turn(job);
}

/* The id of a start is always this one. */
static dk_str
start_id(struct job *job)
{
  return message_id(&job->arena, MESSAGE_START, 1, 0);
}

/* The message of the turn that would be the start, if it could be read; NULL: there is none. */
static const struct dk_message *
unreadable_start(const struct job *job, dk_str id)
{
  for (size_t i = 0; i < job->turn->n_messages; i++)
    if (job->turn->messages[i].id.ptr && str_equal(job->turn->messages[i].id, id))
      return &job->turn->messages[i];
  return NULL;
}

/* Its start is delayed: a request to cancel does not wait for it, all else does.  *ret_found false:
 * no start is stored. */
static enum fate
begin_delayed(struct job *job, bool *ret_found)
{
  dk_str id = start_id(job);
  const struct dk_message *row = unreadable_start(job, id);
  bool is_here = row != NULL;
  struct message start;

  *ret_found = false;
  enum fate fate = row ? FATE_COMMITTED : stored_find(job, id, &row);
  if (fate != FATE_COMMITTED || !row)
    return fate;
  if (!inbox_has(job, MESSAGE_CANCEL)) {
    *ret_found = !is_here;
    return is_here ? FATE_COMMITTED : stored_wait_for(job, row);
  }
  *ret_found = true;
  if (stored_read_start(job, row, &start) != DK_OK)
    return job_stalled(job, STALL_NO_MEMORY, "no memory for its start");
  if (!is_here)
    job->stored_start = id;
  return begin(job, 1, &start, NULL);
}

static enum fate
unknown(struct job *job)
{
  struct message start;
  bool is_found;

  cache_forget(job->w->cache, job->instance);
  if (inbox_take(job, MESSAGE_START, 0, &start, &job->start_attempt))
    return begin(job, 1, &start, NULL);
  if (may_be_behind(job))
    return fetch_whole(job);
  enum fate fate = begin_delayed(job, &is_found);
  if (is_found || fate != FATE_COMMITTED)
    return fate;
  if (job->unreadable && !job_fails(job, STALL_UNREADABLE))
    return job_stalled(job, STALL_UNREADABLE,
                       "a message of it, maybe its start, cannot be read: %s", job->unreadable);
  return wait_for_start(job);
}

/* The history of the last execution says all but what was in its queues. */
static enum fate
begin_without_message(struct job *job)
{
  const struct remembered *memory = job->memory;
  const struct event *last = &memory->events[memory->n_events - 1];
  const struct message instead = {.name = job->started->name,
                                  .version = last->version,
                                  .text = last->text,
                                  .parent = job->started->parent};

  return begin(job, job->execution + 1, &instead,
               "the message that begins this execution cannot be read");
}

/* It waits for the message that continues it; a cancel request needs none. */
static enum fate
continuing(struct job *job)
{
  struct message next;
  uint32_t attempt;

  if (!inbox_has(job, MESSAGE_CONTINUE) && may_be_behind(job))
    return fetch_whole(job);
  enum fate fate = past_load(job);
  if (fate != FATE_COMMITTED)
    return fate;
  if (inbox_take(job, MESSAGE_CONTINUE, job->execution + 1, &next, &attempt))
    return begin(job, job->execution + 1, &next, NULL);
  const struct dk_message *delayed;
  fate = stored_find(job, message_id(&job->arena, MESSAGE_CONTINUE, job->execution + 1, 0),
                     &delayed);
  if (fate != FATE_COMMITTED)
    return fate;
  if (delayed && !inbox_has(job, MESSAGE_CANCEL))
    return stored_wait_for(job, delayed);
  bool is_over = inbox_has(job, MESSAGE_CANCEL) || job_fails(job, STALL_CORRUPT);
  if (is_over && !job->corrupt && job->memory->n_events > 0)
    return begin_without_message(job);
  return job_stalled(job, STALL_CORRUPT,
                     "the message that begins its next execution is not there or unreadable");
}

/* ---- what runs, and what is over ------------------------------------------------------------- */

static enum fate
running(struct job *job)
{
  enum fate fate = past_load(job);

  return fate == FATE_COMMITTED ? decide_turn(job) : fate;
}

/* One for each who asked for a child of this id. */
static dk_status
make_answers(struct job *job, const struct parent *own, struct outgoing *answers,
             size_t *ret_n_answers)
{
  for (size_t i = 0; i < job->n_messages; i++) {
    bool has_answer = false;
    if (job->messages[i].kind != MESSAGE_START)
      continue;
    if (decision_answer_start(&job->arena, own, &job->messages[i], &has_answer,
                              &answers[*ret_n_answers]) != DK_OK)
      return DK_NO_MEMORY;
    *ret_n_answers += has_answer;
  }
  return DK_OK;
}

static enum fate
over(struct job *job)
{
  struct parent own = {.execution = 0};
  struct outgoing *answers = dk_arena_array(&job->arena, job->n_messages, sizeof(*answers));
  enum fate fate = FATE_COMMITTED;
  size_t n_answers = 0;

  job->execution = job->turn->head.execution_id;
  if (inbox_has(job, MESSAGE_START))
    fate = past_parent(job, &own);
  if (fate != FATE_COMMITTED)
    return fate;
  if (!answers || make_answers(job, &own, answers, &n_answers) != DK_OK)
    return job_stalled(job, STALL_NO_MEMORY, "no memory for its turn");
  all_are_strays(job, REQUEST_TOO_LATE, "the instance is over", false);
  return commit_nothing(job, answers, n_answers);
}

static enum fate
process(struct job *job)
{
  const struct dk_turn_head *head = &job->turn->head;

  if (inbox_read(job) != DK_OK)
    return job_stalled(job, STALL_NO_MEMORY, "no memory for its turn");
  if (job->n_reasons == job->n_messages)
    return commit_reasons(job); /* what they tell of has gone its way */
  if (!head->known)
    return unknown(job);
  if (head->status == DK_RUNNING || head->status == DK_STATUS_KEEP)
    return running(job);
  if (head->status == DK_CONTINUED_AS_NEW)
    return continuing(job);
  return over(job);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void
give_back(struct job *job, int64_t delay_ms, bool ignore_attempt)
{
  if (lease_deadline(job->lease) <= ticks_now())
    return;
  lease_rest(job->lease);
  if (!seat_call_begins(job->seat, lease_deadline(job->lease)))
    return;
  dk_status status =
    dk_store_abandon_orchestration_item(job->w->store, job->caller, job->turn->head.lock_token,
                                        delay_ms, ignore_attempt);
  if (seat_call_ends(job->seat) && seat_ends(job->seat))
    seat_gave_back(job->seat, status == DK_OK);
}

/* A start that leaves no trace in the store (delayed-starts.h).  False: it has to be given back. */
static bool
park(struct job *job, int64_t delay_ms)
{
  dk_str token = job->turn->head.lock_token;

  bool needs_none = job->w->has_admin; /* what comes meanwhile finds the start (stored-delays.c) */

  if (needs_none || job->turn->head.known || !job->is_first || seat_ends(job->seat))
    return false;
  lease_rest(job->lease);
  if (!seat_call_begins(job->seat, lease_deadline(job->lease)))
    return true;
  int64_t at = ticks_after(ticks_now(), delay_ms);
  dk_status status = dk_store_renew_orchestration_item_lock(
    job->w->store, job->caller, token, delay_ms + PARKING_MARGIN_MS);
  return !seat_call_ends(job->seat) ||
         (status == DK_OK && parking_put(job->w->parking, token, at));
}

/* backoff_ms * 2^(n - 1), up to the most. */
static int64_t
backoff(const struct dk_runtime_options *options, uint32_t n)
{
  int64_t delay = options->backoff_ms;

  for (uint32_t i = 1; i < n && delay < options->max_backoff_ms; i++)
    delay *= 2;
  return delay < options->max_backoff_ms ? delay : options->max_backoff_ms;
}

/* Whether the delivery counts as an attempt.  What waits for nobody is dropped in the end, so that
 * it does not pile up. */
static bool
is_counted(const struct job *job)
{
  switch (job->stall) {
  case STALL_NO_START:
    return true;
  case STALL_TAKEN:
  case STALL_REFUSED:
  case STALL_DROPPED:
    return false;
  default:
    return job->w->options->flags & DK_RUNTIME_FAIL_DELAYED;
  }
}

/* The first time for this reason it is a warning (a wrong call: an error), then trace. */
static void
stalled(struct job *job)
{
  bool is_wrong_call = job->stall == STALL_WRONG_CALL, counts = is_counted(job), is_first;
  struct dk_log_event event =
    job_event(job, is_wrong_call ? DK_LOG_PROGRAMMING_ERROR : DK_LOG_STALLED);
  uint32_t in_a_row = notes_stalled(job->w->notes, job->instance, job->stall, &is_first);
  uint32_t n = counts ? job_judged(job) : in_a_row;

  event.ms = backoff(job->w->options, n > in_a_row ? n : in_a_row);
  if (!is_first)
    event.level = DK_LEVEL_TRACE;
  notes_delayed_until(job->w->notes, job->instance, job->stall,
                      ticks_after(ticks_now(), event.ms));
  journal_count(job->w->journal, COUNT_TURNS_STALLED);
  journal_count(job->w->journal, COUNT_DELAYED + job->stall);
  journal_tell(job->w->journal, &event, "delayed: %s", job->words);
  if (!counts && park(job, event.ms))
    return;
  give_back(job, event.ms, !counts);
  stored_tell_why(job);
}

/* The store's trouble: what was counted so far is no fault of the instance. */
static void
dropped(struct job *job)
{
  struct dk_log_event event = job_event(job, DK_LOG_TURN_DROPPED);
  bool is_first;
  uint32_t in_a_row = notes_stalled(job->w->notes, job->instance, STALL_DROPPED, &is_first);

  if (!is_first)
    event.level = DK_LEVEL_TRACE;
  notes_pardon(job->w->notes, job->instance, job->attempt);
  journal_count(job->w->journal, COUNT_TURNS_DROPPED);
  journal_tell(job->w->journal, &event,
               "its turn could not be committed and is dropped; it will be fetched again");
  give_back(job, backoff(job->w->options, in_a_row), true);
}

static void
lost(struct job *job)
{
  struct dk_log_event event = job_event(job, DK_LOG_TEXT);

  event.level = DK_LEVEL_INFO;
  notes_pardon(job->w->notes, job->instance, job->attempt);
  journal_count(job->w->journal, COUNT_TURNS_LOST);
  journal_tell(job->w->journal, &event,
               job->is_unsure ? "its commit had landed before, or its lease was lost"
                              : "the lease of its turn was lost; it will be fetched again");
}

/* The lease of a thread that was left belongs to turns_end. */
static void
close_job(struct job *job, enum fate fate)
{
  switch (fate) {
  case FATE_STALLED:
    stalled(job);
    break;
  case FATE_WAITS:
    give_back(job, job->wait_ms, true);
    break;
  case FATE_AGAIN:
    give_back(job, 0, true);
    break;
  case FATE_DROPPED:
    dropped(job);
    break;
  case FATE_LOST:
    lost(job);
    break;
  case FATE_COMMITTED:
  case FATE_TOO_LATE:
  case FATE_LEFT:
    break;
  }
}

/* ---- the lease ------------------------------------------------------------------------------- */

static void
lease_lost(void *context, enum loss loss)
{
  struct job *job = context;

  (void)loss;
  atomic_store(&job->is_lost, true);
}

static bool
keep_lease(struct job *job)
{
  const struct dk_runtime_options *options = job->w->options;
  const struct lease_terms terms = {
    .kind = LEASE_TURN,
    .token = job->turn->head.lock_token,
    .lock_ms = options->turn_lock_ms,
    .buffer_ms = options->turn_renewal_buffer_ms,
    .deadline = ticks_of(job->w->store, job->turn->deadline),
    .instance = job->turn->head.instance,
    .execution_id = job->turn->head.execution_id,
    .lost = lease_lost,
    .context = job,
  };

  job->lease = keeper_keep(job->w->keeper, &terms);
  return job->lease != NULL;
}

void
job_run(struct job *job)
{
  if (!keep_lease(job))
    return; /* without memory for that the lease runs out */
  job->instance = job->turn->head.instance;
  job->now = job->turn->head.now;
  close_job(job, process(job));
  remembered_free(job->memory);
  job->memory = NULL;
}
