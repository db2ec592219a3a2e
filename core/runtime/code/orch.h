/* SPDX-License-Identifier: Apache-2.0 */
/* One run of an orchestration: what the calls of runtime.h share.
 *
 * Owned by its own thread while the code runs, else by the thread that runs the turn.  The run's
 * thread knows its run, so that a call with a wrong dk_orch can fail the turn.  The code is left by
 * orch_wait, which might return, and by orch_leave, which does not; so no function in these files
 * may hold anything that has to be released.
 */
#ifndef DK_RUNTIME_CODE_ORCH_H
#define DK_RUNTIME_CODE_ORCH_H

#define DK_NO_SOURCE_LINES /* these files define the calls */

#include "core/base/names.h"
#include "core/runtime/code/coroutine.h"
#include "core/runtime/code/history.h"
#include "core/runtime/code/replay.h"
#include "core/runtime/code/winner-rule.h"

struct arrival { /* a raised event or a queue's message, until it is taken */
  dk_str data;
  uint64_t position;
  bool taken;
  struct arrival *next;      /* of the same name */
};

struct dk_future {
  enum event_kind kind;
  uint64_t id;
  int64_t ms;                /* a timer's */
  dk_str name;
  struct arrival *arrival;   /* of a wait or dequeue: the arrival kept for it */
  uint64_t position;         /* as found so far; POSITION_NONE: not ready */
  dk_str value;              /* of an activity or child, once it was read */
  bool taken, dropped;
  struct dk_future *before, *after; /* the open ones of the same name */
};

struct mailbox { /* arrivals of one name, and the waits for them, both in order */
  struct arrival *free, *last_free;
  struct dk_future *first, *last;
  struct dk_future *without;     /* the first wait without an arrival; no later one has any */
};

struct future_block {
  struct future_block *older;
  size_t used, size;
  struct dk_future futures[];
};

struct queued { /* all messages of queues, for the next execution */
  struct arrival *arrival;
  dk_str queue;
  struct queued *next;
};

struct dk_orch {
  struct dk_arena memory, *arena; /* which is its memory */
  dk_orchestration_fn *function;
  struct coroutine *coroutine;      /* NULL before the first turn */
  bool waits;               /* it is in orch_wait */
  uint64_t execution;
  size_t n_said;            /* number of events, its last turn's included, for replay_fits */
  const struct past *past;  /* this turn's, and: */
  struct ran *ran;
  const struct event *started;
  const struct history *history;
  const struct outside *posted; /* the last that is in a mailbox */
  const char *call;         /* the present call, for messages */
  const char *line;         /* and its source line; NULL: unknown */
  const char *last_line;    /* the last one from dk_orch_at */
  bool over;                /* the code has called dk_completed or dk_failed */
  uint64_t now;             /* of the rule by position (replay.h) */
  size_t cursor;            /* all commands before this index are matched */
  uint64_t n_matched;
  struct event *commands;   /* new ones; moves when it grows */
  size_t n_commands, room;
  struct future_block *futures;
  struct names raised, queues; /* of struct mailbox */
  struct queued *queued, *last_queued;
  struct names kv;          /* of struct kv_known */
  bool kv_cleared;
  int64_t last_now;
  uint64_t seed;
};

/* ---- orch.c: beginning and end --------------------------------------------------------------- */

/* Called first by every call: returns the run of this thread.  It leaves the code if `given` is
 * another run, or if the turn has taken too long.  NULL: this thread runs no orchestration; that is
 * printed to standard error, and the call must return nothing. */
struct dk_orch *orch_enter(const dk_orch *given, const char *call);
/* The same, for calls that begin, record or wait, which must not follow dk_completed or
 * dk_failed. */
struct dk_orch *orch_begin(const dk_orch *given, const char *call);

DK_NORETURN void orch_leave(struct dk_orch *o, enum ending ending);
/* Ends the turn; returns in the next turn, if this run has one. */
void orch_wait(struct dk_orch *o);
/* ENDING_WRONG_USE, _LIMIT: "dk_timer: ..." with the source line. */
DK_NORETURN void orch_wrong(struct dk_orch *o, const char *format, ...) DK_PRINTF(2, 3);
DK_NORETURN void orch_limit(struct dk_orch *o, const char *format, ...) DK_PRINTF(2, 3);
DK_NORETURN void orch_nondeterminism(struct dk_orch *o, const char *format, ...) DK_PRINTF(2, 3);

/* These leave the code if there is no memory. */
void *orch_array(struct dk_orch *o, size_t count, size_t size);
dk_str orch_copy(struct dk_orch *o, dk_str text); /* absent stays absent */
dk_str orch_vprintf(struct dk_orch *o, const char *format, va_list args) DK_PRINTF(2, 0);
void **orch_name(struct dk_orch *o, struct names *names, dk_str name);

/* The text of a string argument, which must be a valid name; else leaves the code. */
dk_str orch_text_id(struct dk_orch *o, const char *what, dk_str text);
dk_str orch_name_of(struct dk_orch *o, const char *what, const char *string);
/* Bytes that may be empty or absent, but must fit into a payload. */
dk_str orch_payload(struct dk_orch *o, const char *what, dk_str bytes);
/* NULL is absent; else it must be of the form "1.2.3". */
dk_str orch_version_of(struct dk_orch *o, const char *version);

/* ---- replay-match.c: the stream of commands -------------------------------------------------- */

/* Records a command: matches the history's next one (*ret_made false), or adds a new one.  The
 * event is valid until the next command. */
const struct event *orch_record_command(struct dk_orch *o, const struct event *said,
                                        bool *ret_made);
/* The history's next command that was not repeated yet; NULL: none. */
const struct event *orch_next_recorded(struct dk_orch *o);
/* How many commands of the history were not repeated; *ret_first: the first of them. */
size_t orch_left_over(struct dk_orch *o, const struct event **ret_first);
/* "activity \"charge\"", for messages. */
const char *orch_describe(struct dk_orch *o, const struct event *event);

/* ---- future.c: futures, and which one gets what arrives -------------------------------------- */

void orch_post_carried(struct dk_orch *o);  /* posts what the last execution left, once */
void orch_post_arrivals(struct dk_orch *o); /* posts what is new */
struct dk_future *orch_future(struct dk_orch *o, const struct event *command);
/* Checks the argument of a call, which must be a future of this run. */
struct dk_future *orch_check_future(struct dk_orch *o, const dk_future *future);
/* Where it became ready; POSITION_NONE: it is not. */
uint64_t orch_position(const struct dk_orch *o, struct dk_future *future);
/* The future has won: moves `now` to it, and takes what was kept for it. */
void orch_take(struct dk_orch *o, struct dk_future *future);
/* Cancels it if it has not ended. */
void orch_drop(struct dk_orch *o, struct dk_future *future, enum code code);
/* The first message that is not kept for a future; NULL: none. */
struct arrival *orch_unclaimed(struct dk_orch *o, dk_str queue);
void orch_take_unclaimed(struct dk_orch *o, dk_str queue);

#endif
