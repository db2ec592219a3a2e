/* SPDX-License-Identifier: Apache-2.0 */
/* The effects of a turn on the store: makes one commit from the past, the arrivals and the run.
 * Pure.
 *
 * Every end of an execution, for whatever reason (completed, failed, cancelled, continued as new,
 * poison, limit, corrupt history), goes through one function: this commit cancels all open
 * activities, sends open children a request to cancel, withdraws open timers, reports to the
 * parent, and has the terminal event last.
 */
#ifndef DK_RUNTIME_CODE_DECISION_H
#define DK_RUNTIME_CODE_DECISION_H

#include "core/runtime/code/replay.h"

/* A message that the commit sends. */
struct outgoing {
  dk_str instance, id;   /* id absent: none */
  int64_t visible_at;    /* 0: at once */
  struct message message;
};
struct scheduled {       /* the row of an activity */
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
  dk_str name, version, parent;         /* stored with the first commit of an execution */
  struct event *events;                 /* all new ones, ids ascending */
  size_t n_events;
  struct scheduled *scheduled;
  size_t n_scheduled;
  struct cancelled *cancelled;
  size_t n_cancelled;
  dk_str *withdrawn;                    /* ids of messages: timers that lost a race */
  size_t n_withdrawn;
  struct outgoing *outgoing;
  size_t n_outgoing;
  struct dk_kv_change *kv;
  size_t n_kv;
  int32_t custom_status_op;             /* DK_CUSTOM_... */
  dk_str custom_status;
};

/* The ids of messages, by which a repetition is recognised; `kind` is MESSAGE_CONTINUE
 * ("c<execution>", the next one's), MESSAGE_TIMER_FIRED ("t<execution>.<event>"),
 * MESSAGE_ACTIVITY_COMPLETED or _FAILED ("a..."), MESSAGE_CHILD_COMPLETED or _FAILED ("e...", the
 * parent's numbers), MESSAGE_CANCEL ("x...", from a parent), MESSAGE_START ("start"). */
dk_str message_id(struct dk_arena *arena, enum message_kind kind, uint64_t execution,
                  uint64_t event);
/* The id of a timer's message: "t<execution>.<event>", so that a timer that lost a race can be
 * withdrawn. */
dk_str timer_message_id(struct dk_arena *arena, uint64_t execution, uint64_t event);
/* The id of a child to which the code gave none: "<parent>::<execution>.<event>". */
dk_str child_instance_id(struct dk_arena *arena, dk_str parent, uint64_t execution, uint64_t event);

/* Makes the arrivals of a turn events after the history, each once.  A message for another
 * execution, a message that refers to nothing open, and a repetition are strays, and are reported
 * to `stray` (`why` is a literal).  Nothing is copied: history and messages must outlive the
 * result.  The history must not have arrivals yet; after the commit it is settled (history.h), and
 * without a commit it is unusable.
 *
 * `history` begins with the EVENT_STARTED.  In an execution's first turn the caller has made that
 * event from the start or continue message, and changed that message to MESSAGE_NONE.  A message
 * that cannot be decoded is MESSAGE_NONE too; such messages are skipped.  If n_arrived is 0 the
 * code need not run: an empty commit removes the messages, with `answers`. */
struct staged {
  struct event *arrived;      /* only the arrivals; for struct past */
  size_t n_arrived;
  const struct history *index; /* likewise */
  bool cancel_requested;      /* in this turn or before; the event of the first request: */
  const struct event *cancel;
  struct outgoing *answers;   /* to parents whose child could not have this instance's id; decide()
                                 adds them to the commit */
  size_t n_answers;
  uint32_t requests[N_REQUEST_SOURCES][N_REQUEST_OUTCOMES]; /* counts of requests to cancel, by
                                                               source and outcome */
};
/* Of a MESSAGE_CANCEL. */
enum request_source request_source(const struct message *request);
dk_status decision_stage(struct dk_arena *arena, struct history *history, uint64_t execution,
                         const struct message *messages, size_t n_messages, int64_t time,
                         void (*stray)(void *context, const struct message *message,
                                       const char *why),
                         void *context, struct staged *ret_staged);

/* How the turn ended: by its code, or otherwise. */
enum verdict {
  VERDICT_RAN,        /* as described by `ran` */
  VERDICT_CANCELLED,  /* by a request to cancel: the code was not run */
  VERDICT_FAILED      /* by the runtime: code and text have the cause (poison, limit, corrupt,
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
 * What the code did in this turn (commands, key-values, custom status, detached starts) is kept if
 * it waits, completed, failed by itself or continued as new.  If it was cancelled or failed by the
 * runtime (VERDICT_FAILED, ENDING_LIMIT, ENDING_WRONG_USE), nothing of this turn's run is kept:
 * that commit has the arrivals, the end, and what the end cancels; `ran` may be NULL then.  Texts
 * of errors and reasons are cut if they would not fit.  An operation that was begun and dropped, or
 * begun and ended, in one turn makes neither a row nor a message.
 *
 * An end never exceeds past->max_items (0: no limit) because of what is open: it leaves out what
 * does not fit, first the EVENT_ENDED, then the timers, then rows (whose results become strays). */
dk_status decide(struct dk_arena *arena, const struct past *past, const struct event *started,
                 bool first, const struct staged *staged, const struct ran *ran,
                 const struct verdict_of *verdict, struct decision *ret_decision);

/* The commit was refused because outgoing message i is stored at its receiver already: leaves the
 * message out.  If it is the start of a child, whose id is then taken, it is replaced by an answer
 * to the parent, a message of the instance to itself. */
dk_status decision_leave_away(struct dk_arena *arena, dk_str instance, struct decision *decision,
                              size_t i);

/* The answer to the start of a child, if the instance with this id exists: *ret_answer is true if
 * an answer is needed.  `own` is the instance's own parent.  Only for instances that have ended:
 * otherwise decision_stage does it. */
dk_status decision_answer_start(struct dk_arena *arena, const struct parent *own,
                                const struct message *start, bool *ret_answer,
                                struct outgoing *ret_outgoing);

#endif
