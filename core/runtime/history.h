/* SPDX-License-Identifier: Apache-2.0 */
/* An index of an execution's events: what ended what, what was dropped, what came from outside.
 *
 * Made in one pass, in the turn's arena, and read-only after the arrivals were added.  It can be
 * made of any history, also of one that makes no sense: then `why` tells the first thing that is
 * wrong, and what can be found still is.
 */
#ifndef DK_RUNTIME_HISTORY_H
#define DK_RUNTIME_HISTORY_H

#include "core/runtime/event.h"

#include <stdbool.h>

/* What a kind of event is, as in the list of event.h. */
enum event_role { ROLE_NONE, ROLE_COMMAND, ROLE_END, ROLE_ARRIVAL, ROLE_LIFE };
enum event_role event_role(enum event_kind kind);
/* The kind of command that this kind is the end of; EVENT_NONE if it is no end. */
enum event_kind event_ends(enum event_kind kind);
bool event_is_terminal(enum event_kind kind);

/* A raised event or a queue's message, in order. */
struct outside {
  const struct event *event;
  struct outside *next;
};

struct trace_of;  /* what became of one event */

struct history {
  struct dk_arena *arena;
  const struct event *events, *arrived; /* arrived go on where events end */
  size_t n_events, n_arrived;
  struct trace_of *traces;              /* one for each event, then for each that may arrive */
  struct outside *outside, *last_outside;
  const struct event *cancel;           /* the first EVENT_CANCEL_REQUESTED */
  const char *why;                      /* NULL: all makes sense */
  bool no_memory;                       /* for `outside` or `why` */
};

/* room: so many can arrive.  NULL: no memory. */
struct history *history_new(struct dk_arena *arena, const struct event *events, size_t n_events,
                            const struct event *arrived, size_t room);
/* The next of `arrived` is there now. */
void history_arrive(struct history *history);

size_t history_length(const struct history *history);
const struct event *history_event(const struct history *history, size_t i);
/* By id; NULL: there is none. */
const struct event *history_find(const struct history *history, uint64_t id);
/* The event that ended this command, NULL: it has not ended. */
const struct event *history_end_of(const struct history *history, uint64_t id);
bool history_is_dropped(const struct history *history, uint64_t id);
/* 1 behind the last, 1 for no events. */
uint64_t history_next_id(const struct history *history);

#endif
