/* SPDX-License-Identifier: Apache-2.0 */
/* The past of a job: its history from the cache, from the fetch, or read from the store. */
#include "core/runtime/turn/turn-thread.h"
#include "core/runtime/turn/turn.h"

/* How many fetches come without the owner, so that one instance brings its key-values again. */
enum { COLD_FETCHES = 100 };

static enum fate
no_memory(struct job *job)
{
  return job_stalled(job, STALL_NO_MEMORY, "no memory for the history");
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* What cannot be read stays as an event of no kind, so that the ids are right. */
static bool
add_event(struct job *job, const struct dk_event *stored)
{
  struct event *event = remembered_next(job->memory);
  const char *why = NULL;

  if (!event)
    return false;
  dk_status status = event_decode(&job->memory->arena, stored->payload, event, &why);
  if (status == DK_NO_MEMORY)
    return false;
  if (status != DK_OK) {
    *event = (struct event){.kind = EVENT_NONE};
    if (!job->corrupt)
      job->corrupt =
        dk_arena_printf(&job->arena, "event %llu: %s", (unsigned long long)stored->event_id,
                        why ? why : "unreadable");
  }
  event->id = stored->event_id;
  return true;
}

static enum fate
decode(struct job *job, const struct dk_event *events, size_t n_events)
{
  const struct dk_turn *turn = job->turn;

  job->memory = remembered_new(job->instance, turn->head.birth, turn->head.execution_id);
  if (!job->memory || !remembered_kv(job->memory, turn->kv, turn->n_kv))
    return no_memory(job);
  for (size_t i = 0; i < n_events; i++)
    if (!add_event(job, &events[i]))
      return no_memory(job);
  if (remembered_last(job->memory) != turn->head.last_event_id)
    job->corrupt = "the history does not reach to its last event";
  journal_count(job->w->journal, COUNT_COLD_TURNS);
  return FATE_COMMITTED;
}

/* ---- where it comes from --------------------------------------------------------------------- */

static enum fate
read_history(struct job *job, const struct dk_read_history *request,
             struct dk_history **ret_history)
{
  if (!seat_call_begins(job->seat, lease_deadline(job->lease)))
    return FATE_LEFT;
  dk_status status = dk_store_read_history(job->w->store, job->caller, request, ret_history);

  if (!seat_call_ends(job->seat))
    return FATE_LEFT;
  if (status == DK_OK || dk_status_class(status) != 2)
    return status == DK_OK ? FATE_COMMITTED : FATE_DROPPED;
  return job_stalled(job, STALL_REFUSED, "the store refuses to read its history: %s",
                     dk_caller_failure(job->caller)->text);
}

/* The store believes that we have it, and we do not. */
static enum fate
read_again(struct job *job)
{
  const struct dk_read_history request = {.struct_size = sizeof(request),
                                          .instance = job->instance,
                                          .execution_id = job->turn->head.execution_id};
  struct dk_history *history;

  if (job->w->has_kv) {
    atomic_store(&job->w->cold_fetches, COLD_FETCHES);
    return FATE_AGAIN;
  }
  enum fate fate = read_history(job, &request, &history);
  return fate == FATE_COMMITTED ? decode(job, history->events, history->n_events) : fate;
}

/* Outlives the memory, which goes back to the cache. */
static bool
copy_name(struct job *job)
{
  dk_str name = job->started->name;

  if (!name.ptr)
    return true;
  job->name = (dk_str){dk_arena_copy(&job->arena, name.ptr, name.len), name.len};
  return job->name.ptr != NULL;
}

/* What the first event says; if it cannot be read, what the head does. */
static bool
find_started(struct job *job)
{
  const struct remembered *memory = job->memory;
  const struct dk_turn_head *head = &job->turn->head;

  if (memory->n_events > 0 && memory->events[0].kind == EVENT_STARTED) {
    job->started = &memory->events[0];
    return true;
  }
  if (!job->corrupt)
    job->corrupt = "the history does not begin with the start";
  struct event *made = dk_arena_alloc(&job->arena, sizeof(*made));
  if (!made)
    return false;
  made->kind = EVENT_STARTED;
  made->name = head->name;
  made->version = head->version;
  job->started = made;
  return true;
}

enum fate
past_load(struct job *job)
{
  const struct dk_turn *turn = job->turn;
  const struct dk_turn_head *head = &turn->head;
  enum fate fate = FATE_COMMITTED;

  job->execution = head->execution_id;
  if (head->history_from <= head->last_event_id) {
    fate = decode(job, turn->events, turn->n_events);
  } else {
    job->memory = cache_take(job->w->cache, job->instance, head->birth, head->execution_id,
                             head->last_event_id);
    if (job->memory)
      journal_count(job->w->journal, COUNT_WARM_TURNS);
    else
      fate = read_again(job);
  }
  if (fate != FATE_COMMITTED)
    return fate;
  job->n_committed = job->memory->n_events;
  return find_started(job) && copy_name(job) ? FATE_COMMITTED : no_memory(job);
}

/* ---- a new execution ------------------------------------------------------------------------- */

enum fate
past_begin(struct job *job, uint64_t execution, const struct event *started)
{
  struct remembered *earlier = job->memory;
  struct remembered *memory =
    remembered_new(job->instance, job->turn->head.birth, execution);

  job->memory = memory;
  bool enough = memory && remembered_add(memory, started, 1) &&
                (!earlier || remembered_kv(memory, earlier->kv, earlier->n_kv));
  remembered_free(earlier);
  if (!enough)
    return no_memory(job);
  job->execution = execution;
  job->n_committed = 0;
  job->is_first = true;
  job->corrupt = NULL;
  job->started = &memory->events[0];
  return copy_name(job) ? FATE_COMMITTED : no_memory(job);
}

/* ---- what is over ---------------------------------------------------------------------------- */

enum fate
past_parent(struct job *job, struct parent *ret_parent)
{
  const struct dk_read_history request = {.struct_size = sizeof(request),
                                          .max_events = 1,
                                          .instance = job->instance,
                                          .execution_id = job->turn->head.execution_id};
  struct dk_history *history;
  struct event started = {0};
  const char *why;

  *ret_parent = (struct parent){0};
  enum fate fate = read_history(job, &request, &history);
  if (fate != FATE_COMMITTED || history->n_events == 0)
    return fate;
  dk_status status = event_decode(&job->arena, history->events[0].payload, &started, &why);
  if (status == DK_NO_MEMORY)
    return no_memory(job);
  if (status == DK_OK && started.kind == EVENT_STARTED)
    *ret_parent = started.parent;
  return FATE_COMMITTED;
}
