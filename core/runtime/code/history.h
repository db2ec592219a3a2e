/* SPDX-License-Identifier: Apache-2.0 */
/* An index of an execution's events: which event ended which, what was dropped, what came from
 * outside.
 *
 * It grows with its execution: each committed event is indexed once, and the index stays with the
 * events from turn to turn.  It refers to events by index, because they move when there are more.
 * It can be made of any history, even an invalid one: then `why` is the first error, and the rest
 * can still be found.
 */
#ifndef DK_RUNTIME_CODE_HISTORY_H
#define DK_RUNTIME_CODE_HISTORY_H

#include "core/base/names.h"
#include "core/runtime/format/event.h"

#include <stdbool.h>

/* The role of a kind of event, as in the list of event.h. */
enum event_role { ROLE_NONE, ROLE_COMMAND, ROLE_END, ROLE_ARRIVAL, ROLE_LIFE };
enum event_role event_role(enum event_kind kind);
/* The kind of command that this kind ends; EVENT_NONE if it does not end any. */
enum event_kind event_ends(enum event_kind kind);
bool event_is_terminal(enum event_kind kind);

/* A raised event or a queue's message, in order. */
struct outside {
  size_t place;
  struct outside *next;
};

struct trace_of;  /* how one event ended */

struct history {
  struct dk_arena *arena;
  const struct event *events, *arrived; /* `arrived` continues where `events` ends */
  size_t n_events, n_arrived;
  struct trace_of *traces;              /* one for each event, then one for each that may arrive */
  size_t room;                          /* number of traces */
  struct outside *outside, *last_outside;
  struct names messages;                /* the ids of committed messages, up to this event: */
  const struct outside *last_message;
  size_t cancel;                        /* 1 + the index of the first EVENT_CANCEL_REQUESTED */
  const char *why;                      /* why it is invalid; NULL: it is valid */
  bool no_memory;
};

/* Indexes what is committed, or begins an execution.  NULL: no memory.  After a lack of memory in
 * any of these functions the index is unusable. */
struct history *history_new(struct dk_arena *arena, const struct event *events, size_t n_events);
/* Before a turn: up to `n` events may arrive, and will be stored in `arrived`. */
dk_status history_expect(struct history *history, const struct event *arrived, size_t room);
/* The next of them has arrived. */
void history_arrive(struct history *history);
/* After its commit: `events` now has the arrivals, and after them what the turn did. */
dk_status history_settle(struct history *history, const struct event *events, size_t n_events);

size_t history_length(const struct history *history);
const struct event *history_event(const struct history *history, size_t i);
/* By id; NULL: there is none. */
const struct event *history_find(const struct history *history, uint64_t id);
/* The event that ended this command, NULL: it has not ended. */
const struct event *history_end_of(const struct history *history, uint64_t id);
bool history_is_dropped(const struct history *history, uint64_t id);
/* The first request to cancel; NULL: there is none. */
const struct event *history_cancel(const struct history *history);
/* Whether a committed event was made from a message with this id.  *ret_is_known is set for DK_OK
 * only. */
dk_status history_knows_message(struct history *history, dk_str id, bool *ret_is_known);
/* The last id + 1; 1 if there are no events. */
uint64_t history_next_id(const struct history *history);

#endif
