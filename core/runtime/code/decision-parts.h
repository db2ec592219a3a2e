/* SPDX-License-Identifier: Apache-2.0 */
/* A decision that is being made: what decision.c and decision-end.c share. */
#ifndef DK_RUNTIME_CODE_DECISION_PARTS_H
#define DK_RUNTIME_CODE_DECISION_PARTS_H

#include "core/base/names.h"
#include "core/runtime/code/decision.h"
#include "core/runtime/code/history.h"

struct deciding {
  struct dk_arena *arena;
  const struct past *past;
  const struct event *started;
  const struct staged *staged;
  const struct ran *ran;
  const struct history *history;
  struct decision *decision;
  bool no_memory;
  /* How it ends; EVENT_NONE: it does not. */
  enum event_kind end;
  int32_t status;
  enum code code, ended;      /* of the failure; of what is ended with it */
  dk_str text, by;
  /* What the run did, if that is kept. */
  bool keeps_run;
  const struct event *commands;
  size_t n_commands;
  size_t n_before;            /* events of the decision that were not made by it */
  bool *gone;                 /* for each command: whether it was dropped in this turn */
  bool *dropped;              /* for each event of the history, at an end: the same */
  struct names starts;        /* instances that this commit starts */
  struct {
    size_t events, cancelled, outgoing;
  } room;                     /* of the decision's lists, counted before; cancelled: of `withdrawn`,
                               * too.  A command is one at most of each of the others */
};

/* message-ids.c: the message to a parent that its child's id is taken; without an id: no memory. */
struct outgoing outgoing_taken(struct dk_arena *arena, const struct parent *parent);

/* decision.c */
struct event *decide_event(struct deciding *d, enum event_kind kind);

/* decision-end.c */
void decide_send(struct deciding *d, struct outgoing outgoing);
/* The effects of a drop on the store. */
void decide_drop(struct deciding *d, const struct event *drop);
/* How many operations of the history are open. */
size_t count_open(const struct deciding *d);
/* Every end of an execution goes through this function. */
void decide_end(struct deciding *d);

#endif
