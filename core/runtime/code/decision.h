/* SPDX-License-Identifier: Apache-2.0 */
/* What a turn does to the store: from the past, the arrivals and the run to one commit.  Pure.
 *
 * Every end of an execution, whichever way it comes (completed, failed, cancelled, continued as
 * new, poison, limit, corrupt history), goes through one function: all open activities are
 * cancelled in this commit, open children told, open timers withdrawn, the parent told, the
 * terminal event last.
 */
#ifndef DK_RUNTIME_CODE_DECISION_H
#define DK_RUNTIME_CODE_DECISION_H

#include "core/runtime/code/replay.h"

/* A message to be sent with the commit. */
struct outgoing {
  dk_str instance, id;   /* id absent: none */
  int64_t visible_at;    /* 0: at once */
  struct message message;
};
struct scheduled {       /* an activity's row */
  uint64_t activity_id;
  dk_str tag, session;
  struct task_order order;
};
struct cancelled {       /* an activity whose row is deleted, and why */
  uint64_t activity_id;
  enum code code;
  dk_str name;
};

struct decision {
  uint64_t execution;
  int32_t status;                       /* DK_RUNNING, ... */
  dk_str output;
  dk_str name, version, parent;         /* to be stored with the first commit of an execution */
  struct event *events;                 /* all that are new, ids ascending */
  size_t n_events;
  struct scheduled *scheduled;
  size_t n_scheduled;
  struct cancelled *cancelled;
  size_t n_cancelled;
  dk_str *withdrawn;                    /* ids of messages: timers that lost */
  size_t n_withdrawn;
  struct outgoing *outgoing;
  size_t n_outgoing;
  struct dk_kv_change *kv;
  size_t n_kv;
  int32_t custom_status_op;             /* DK_CUSTOM_... */
  dk_str custom_status;
};

/* The ids of messages by which a repetition is found, see the kinds; `kind` is MESSAGE_CONTINUE
 * ("c<execution>", the next one's), MESSAGE_TIMER_FIRED ("t<execution>.<event>"),
 * MESSAGE_ACTIVITY_COMPLETED or _FAILED ("a..."), MESSAGE_CHILD_COMPLETED or _FAILED ("e...", the
 * parent's numbers), MESSAGE_CANCEL ("x...", from a parent), MESSAGE_START ("start"). */
dk_str message_id(struct dk_arena *arena, enum message_kind kind, uint64_t execution,
                  uint64_t event);
/* A timer's message id: "t<execution>.<event>", so that a timer that lost can be withdrawn. */
dk_str timer_message_id(struct dk_arena *arena, uint64_t execution, uint64_t event);
/* The id of a child that the code gave none: "<parent>::<execution>.<event>". */
dk_str child_instance_id(struct dk_arena *arena, dk_str parent, uint64_t execution, uint64_t event);

/* The arrivals of a turn become events behind the history, each once: what is for another
 * execution, for nothing open, or a repetition is a stray, and is told to `stray` (why is a
 * literal).  Nothing is copied: history and messages outlive what is made of them.  The history has
 * no arrivals yet; after the commit it is settled (history.h), and without one it is of no use any
 * more.
 *
 * `history` begins with the EVENT_STARTED: in an execution's first turn the one that the caller has
 * made of the start or continue message, which itself is MESSAGE_NONE then, as is one that cannot
 * be decoded: such are passed over.  When n_arrived is 0 there is no need to run the code: an empty
 * commit takes the messages away, with `answers`. */
struct staged {
  struct event *arrived;      /* only these; for struct past */
  size_t n_arrived;
  const struct history *index; /* likewise */
  bool cancel_requested;      /* now or before; the first request's event: */
  const struct event *cancel;
  struct outgoing *answers;   /* to parents whose child could not have this instance's id; decide()
                                 sends them along */
  size_t n_answers;
  uint32_t requests[N_REQUEST_SOURCES][N_REQUEST_OUTCOMES]; /* to cancel, that were looked at */
};
/* Of a MESSAGE_CANCEL. */
enum request_source request_source(const struct message *request);
dk_status decision_stage(struct dk_arena *arena, struct history *history, uint64_t execution,
                         const struct message *messages, size_t n_messages, int64_t time,
                         void (*stray)(void *context, const struct message *message,
                                       const char *why),
                         void *context, struct staged *ret_staged);

/* What ended the turn besides its code. */
enum verdict {
  VERDICT_RAN,        /* as `ran` says */
  VERDICT_CANCELLED,  /* a cancel request: the code was not run */
  VERDICT_FAILED      /* by the runtime: code and text say why (poison, limit, corrupt,
                         nondeterminism) */
};
struct verdict_of {
  enum verdict verdict;
  enum code code;
  dk_str text;
};

/* DK_OK, DK_NO_MEMORY, or DK_INVALID for a run that cannot be committed (with VERDICT_RAN:
 * nondeterminism, corrupt, overdue, no memory).  `started` is the execution's EVENT_STARTED (name,
 * version, parent).  first: it is the execution's first commit.
 *
 * What the code did in this turn (commands, key-values, custom status, detached starts) is kept
 * when it waits, completed, failed by itself or continued as new.  When it was cancelled or failed
 * by the runtime (VERDICT_FAILED, ENDING_LIMIT, ENDING_WRONG_USE), nothing of this turn's run is:
 * that commit has the arrivals, the end, and what the end cancels.  `ran` may be NULL then.  Texts
 * of errors and reasons are cut where they would not fit.  What was begun and dropped, or begun and
 * ended, in one turn makes neither a row nor a message.
 *
 * An end never has more than past->max_items (0: any) because of what is open: what does not fit is
 * left away, the EVENT_ENDED first, then the timers, then rows (whose results become strays). */
dk_status decide(struct dk_arena *arena, const struct past *past, const struct event *started,
                 bool first, const struct staged *staged, const struct ran *ran,
                 const struct verdict_of *verdict, struct decision *ret_decision);

/* The commit was refused because outgoing message i is stored at its receiver already: it is left
 * away.  A child's start whose id is taken so becomes the answer to its parent, a message to
 * itself. */
dk_status decision_leave_away(struct dk_arena *arena, dk_str instance, struct decision *decision,
                              size_t i);

/* The answer to a start message of somebody's child for an instance that exists: *ret_answer tells
 * whether there has to be one.  `own` is the instance's own parent.  For instances that are over:
 * else decision_stage does it. */
dk_status decision_answer_start(struct dk_arena *arena, const struct parent *own,
                                const struct message *start, bool *ret_answer,
                                struct outgoing *ret_outgoing);

#endif
