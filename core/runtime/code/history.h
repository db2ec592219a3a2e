/* SPDX-License-Identifier: Apache-2.0 */
/* An index of an execution's events: what ended what, what was dropped, what came from outside.
 *
 * It grows with its execution: what is committed is looked at once, and the index stays with the
 * events from turn to turn.  It names events by their place, for they move when there are more.
 * It can be made of any history, also of one that makes no sense: then `why` tells the first thing
 * that is wrong, and what can be found still is.
 */
#ifndef DK_RUNTIME_CODE_HISTORY_H
#define DK_RUNTIME_CODE_HISTORY_H

#include "core/base/names.h"
#include "core/runtime/format/event.h"

#include <stdbool.h>

/* What a kind of event is, as in the list of event.h. */
enum event_role { ROLE_NONE, ROLE_COMMAND, ROLE_END, ROLE_ARRIVAL, ROLE_LIFE };
enum event_role event_role(enum event_kind kind);
/* The kind of command that this kind is the end of; EVENT_NONE if it is no end. */
enum event_kind event_ends(enum event_kind kind);
bool event_is_terminal(enum event_kind kind);

/* A raised event or a queue's message, in order. */
struct outside {
  size_t place;
  struct outside *next;
};

struct trace_of;  /* what became of one event */

struct history {
  struct dk_arena *arena;
  const struct event *events, *arrived; /* arrived go on where events end */
  size_t n_events, n_arrived;
  struct trace_of *traces;              /* one for each event, then for each that may arrive */
  size_t room;                          /* how many there are */
  struct outside *outside, *last_outside;
  struct names messages;                /* the ids of committed messages, as far as: */
  const struct outside *last_message;
  size_t cancel;                        /* behind the place of the first EVENT_CANCEL_REQUESTED */
  const char *why;                      /* NULL: all makes sense */
  bool no_memory;
};

/* Of what is committed, or begins an execution.  NULL: no memory.  After a lack of memory in any of
 * these the index is of no use any more. */
struct history *history_new(struct dk_arena *arena, const struct event *events, size_t n_events);
/* Before a turn: so many may arrive, and will stand there. */
dk_status history_expect(struct history *history, const struct event *arrived, size_t room);
/* The next of them is there now. */
void history_arrive(struct history *history);
/* After its commit: the arrivals stand in `events` now, and what the turn did behind them. */
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
/* Is it the id of a message that a committed event has come from?  *ret_is_known is set for DK_OK
 * only. */
dk_status history_knows_message(struct history *history, dk_str id, bool *ret_is_known);
/* 1 behind the last, 1 for no events. */
uint64_t history_next_id(const struct history *history);

#endif
