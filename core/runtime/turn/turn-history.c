/* SPDX-License-Identifier: Apache-2.0 */
/* The past of a turn: its history from the cache, from the fetch, or read from the store. */
#include "core/runtime/turn/turn-thread.h"
#include "core/runtime/turn/turn.h"

/* How many fetches are made without the owner, so that one of them returns this instance's
 * key-values again. */
enum { COLD_FETCHES = 100 };

static enum fate
turn_history_no_memory(struct turn *turn)
{
  return turn_delay(turn, DELAY_NO_MEMORY, "no memory for the history");
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* An event that cannot be read is kept as EVENT_NONE, so that the ids are right. */
static bool
add_event(struct turn *turn, const struct dk_event *stored)
{
  struct event *event = remembered_next(turn->memory);
  const char *why = NULL;

  if (!event)
    return false;
  dk_status status = event_decode(&turn->memory->arena, stored->payload, event, &why);
  if (status == DK_NO_MEMORY)
    return false;
  if (status != DK_OK) {
    *event = (struct event){.kind = EVENT_NONE};
    if (!turn->corrupt)
      turn->corrupt =
          dk_arena_printf(&turn->arena, "event %llu: %s", (unsigned long long)stored->event_id,
                          why ? why : "unreadable");
  }
  event->id = stored->event_id;
  return true;
}

static enum fate
decode(struct turn *turn, const struct dk_event *events, size_t n_events)
{
  const struct dk_turn *fetched = turn->fetched;

  turn->memory = remembered_new(turn->instance, fetched->head.birth, fetched->head.execution_id);
  if (!turn->memory || !remembered_kv(turn->memory, fetched->kv, fetched->n_kv))
    return turn_history_no_memory(turn);
  for (size_t i = 0; i < n_events; i++)
    if (!add_event(turn, &events[i]))
      return turn_history_no_memory(turn);
  if (remembered_last(turn->memory) != fetched->head.last_event_id)
    turn->corrupt = "the history does not reach to its last event";
  log_count(turn->shared->log, COUNT_COLD_TURNS);
  return FATE_GOES_ON;
}

/* ---- where it comes from --------------------------------------------------------------------- */

static enum fate
read_history(struct turn *turn, const struct dk_read_history *request,
             struct dk_history **ret_history)
{
  if (!turn_thread_call_begins(turn->thread, lease_deadline(turn->lease)))
    return FATE_LEFT;
  dk_status status = dk_store_read_history(turn->shared->store, turn->caller, request, ret_history);

  if (!turn_thread_call_ends(turn->thread))
    return FATE_LEFT;
  if (status == DK_OK || dk_status_class(status) != 2)
    return status == DK_OK ? FATE_GOES_ON : FATE_DROPPED;
  return turn_delay(turn, DELAY_REFUSED, "the store refuses to read its history: %s",
                    dk_caller_failure(turn->caller)->text);
}

/* The store assumes that we have the history, but we do not. */
static enum fate
read_again(struct turn *turn)
{
  const struct dk_read_history request = {.struct_size = sizeof(request),
                                          .instance = turn->instance,
                                          .execution_id = turn->fetched->head.execution_id};
  struct dk_history *history;

  if (turn->shared->has_kv) {
    atomic_store(&turn->shared->cold_fetches, COLD_FETCHES);
    return FATE_AGAIN;
  }
  enum fate fate = read_history(turn, &request, &history);
  return fate == FATE_GOES_ON ? decode(turn, history->events, history->n_events) : fate;
}

/* The name must outlive the memory, which goes back to the cache. */
static bool
copy_name(struct turn *turn)
{
  dk_str name = turn->started->name;

  if (!name.ptr)
    return true;
  turn->name = (dk_str){dk_arena_copy(&turn->arena, name.ptr, name.len), name.len};
  return turn->name.ptr != NULL;
}

/* Reads the first event; if it cannot be read, uses the head. */
static bool
find_started(struct turn *turn)
{
  const struct remembered *memory = turn->memory;
  const struct dk_turn_head *head = &turn->fetched->head;

  if (memory->n_events > 0 && memory->events[0].kind == EVENT_STARTED) {
    turn->started = &memory->events[0];
    return true;
  }
  if (!turn->corrupt)
    turn->corrupt = "the history does not begin with the start";
  struct event *made = dk_arena_alloc(&turn->arena, sizeof(*made));
  if (!made)
    return false;
  made->kind = EVENT_STARTED;
  made->name = head->name;
  made->version = head->version;
  turn->started = made;
  return true;
}

enum fate
turn_load_history(struct turn *turn)
{
  const struct dk_turn *fetched = turn->fetched;
  const struct dk_turn_head *head = &fetched->head;
  enum fate fate = FATE_GOES_ON;

  turn->execution = head->execution_id;
  if (head->history_from <= head->last_event_id) {
    fate = decode(turn, fetched->events, fetched->n_events);
  } else {
    turn->memory = cache_take(turn->shared->cache, turn->instance, head->birth, head->execution_id,
                              head->last_event_id);
    if (turn->memory)
      log_count(turn->shared->log, COUNT_WARM_TURNS);
    else
      fate = read_again(turn);
  }
  if (fate != FATE_GOES_ON)
    return fate;
  turn->n_committed = turn->memory->n_events;
  return find_started(turn) && copy_name(turn) ? FATE_GOES_ON : turn_history_no_memory(turn);
}

/* ---- a new execution ------------------------------------------------------------------------- */

enum fate
turn_begin_history(struct turn *turn, uint64_t execution, const struct event *started)
{
  struct remembered *earlier = turn->memory;
  struct remembered *memory = remembered_new(turn->instance, turn->fetched->head.birth, execution);

  turn->memory = memory;
  bool enough = memory && remembered_add(memory, started, 1) &&
                (!earlier || remembered_kv(memory, earlier->kv, earlier->n_kv));
  remembered_free(earlier);
  if (!enough)
    return turn_history_no_memory(turn);
  turn->execution = execution;
  turn->n_committed = 0;
  turn->is_first = true;
  turn->corrupt = NULL;
  turn->started = &memory->events[0];
  return copy_name(turn) ? FATE_GOES_ON : turn_history_no_memory(turn);
}

/* ---- ended instances ------------------------------------------------------------------------- */

enum fate
turn_load_parent(struct turn *turn, struct parent *ret_parent)
{
  const struct dk_read_history request = {.struct_size = sizeof(request),
                                          .max_events = 1,
                                          .instance = turn->instance,
                                          .execution_id = turn->fetched->head.execution_id};
  struct dk_history *history;
  struct event started = {0};
  const char *why;

  *ret_parent = (struct parent){0};
  enum fate fate = read_history(turn, &request, &history);
  if (fate != FATE_GOES_ON || history->n_events == 0)
    return fate;
  dk_status status = event_decode(&turn->arena, history->events[0].payload, &started, &why);
  if (status == DK_NO_MEMORY)
    return turn_history_no_memory(turn);
  if (status == DK_OK && started.kind == EVENT_STARTED)
    *ret_parent = started.parent;
  return FATE_GOES_ON;
}
