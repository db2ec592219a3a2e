/* SPDX-License-Identifier: Apache-2.0 */
/* Events and messages: the contents of histories and queues, in memory and as JSON text.
 *
 * A payload is one JSON object with a format number ("v").  Members that it lacks are zero or
 * absent; members and kinds that a newer runtime wrote are refused by name.  Text that is not valid
 * UTF-8 is kept byte for byte, in another member (base64).  The decoded text is in the arena,
 * followed by a NUL.
 */
#ifndef DK_RUNTIME_FORMAT_EVENT_H
#define DK_RUNTIME_FORMAT_EVENT_H

#include <durakit/runtime.h>

#include "core/base/arena.h"
#include "core/base/text.h"

/* One kind for each thing that can happen to an execution.  The names are the JSON's.
 *   S  a command: made by the code, in call order
 *   C  the end of what `source` began
 *   A  an arrival from outside
 *   L  the execution's own life */
enum event_kind {
  EVENT_NONE = 0,
  EVENT_STARTED,             /* L name version text=input parent; carried */
  EVENT_COMPLETED,           /* L text=output */
  EVENT_FAILED,              /* L text=error code */
  EVENT_CANCELLED,           /* L text=reason by */
  EVENT_CONTINUED,           /* L text=input version */
  EVENT_CANCEL_REQUESTED,    /* A text=reason by */
  EVENT_ACTIVITY,            /* S name text=input tag session */
  EVENT_ACTIVITY_COMPLETED,  /* C source text=result */
  EVENT_ACTIVITY_FAILED,     /* C source text=error code */
  EVENT_TIMER,               /* S number=duration time2=fire at */
  EVENT_TIMER_FIRED,         /* C source */
  EVENT_CHILD,               /* S name text=input instance version */
  EVENT_CHILD_COMPLETED,     /* C source text=result */
  EVENT_CHILD_FAILED,        /* C source text=error code */
  EVENT_DETACHED,            /* S name text=input instance version */
  EVENT_WAIT,                /* S name: dk_external */
  EVENT_RAISED,              /* A name text=data message_id */
  EVENT_DEQUEUE,             /* S name: dk_dequeue */
  EVENT_QUEUED,              /* A name text=data message_id */
  EVENT_TRY_DEQUEUE,         /* S name number=1 if it took one, source=the EVENT_QUEUED taken */
  EVENT_DROPPED,             /* S source code: a future that the code has cancelled */
  EVENT_ENDED,               /* cancelled by the end of the execution: source code */
  EVENT_VALUE,               /* S name="now"|"guid"|"random" number, or text (guid) */
  EVENT_KV,                  /* S number=DK_KV_... name=key text=value */
  EVENT_STATUS,              /* S text (absent: cleared) */
  N_EVENT_KINDS
};

/* Why something was cancelled or failed: a closed list; words in JSON. */
enum code {
  CODE_NONE = 0,
  CODE_SELECT_LOSER_TIMEOUT,    /* a timer won */
  CODE_SELECT_LOSER_OTHER,
  CODE_DROPPED,                 /* dk_drop */
  CODE_TERMINAL_COMPLETED,
  CODE_TERMINAL_FAILED,
  CODE_TERMINAL_CANCELLED,
  CODE_TERMINAL_CONTINUED_AS_NEW,
  CODE_POISON,
  CODE_LIMIT,
  CODE_CORRUPT,                 /* an unreadable history */
  CODE_NONDETERMINISM,
  CODE_APPLICATION,             /* the code returned a failure */
  CODE_UNREGISTERED,
  CODE_INSTANCE_TAKEN,          /* a child's id belongs to another */
  CODE_CANCELLED,               /* a child that was cancelled */
  N_CODES
};

/* Who requests that an instance is cancelled, and the outcome: closed lists; words in metrics. `by`
 * is free text, and is not a source. */
enum request_source {
  REQUEST_BY_API,      /* a client */
  REQUEST_BY_PARENT,   /* which ended, or dropped its child */
  N_REQUEST_SOURCES
};
enum request_outcome {
  REQUEST_TAKEN,       /* the first: it cancels */
  REQUEST_REPEATED,    /* there was one before */
  REQUEST_TOO_LATE,    /* the instance had ended */
  REQUEST_FOR_NOBODY,  /* the instance was not started while the request waited */
  REQUEST_REFUSED,     /* it comes from an instance that is not the parent */
  N_REQUEST_OUTCOMES
};

/* The instance that began a child, to which the child reports its end.  instance absent: none. */
struct parent {
  dk_str instance;
  uint64_t execution;
  uint64_t source;  /* the parent's EVENT_CHILD */
};

struct carried {    /* a queue's message that passes to the next execution */
  dk_str queue, data;
};

struct event {
  uint64_t id, source;
  enum event_kind kind;
  enum code code;
  int64_t time;        /* when it was made, by the host's clock; only for people */
  int64_t number, time2;
  dk_str name, text, version, instance, tag, session, by;
  /* The id of the message that it was made from.  If a message is sent again after an unknown
   * outcome, although the first copy was taken, this id shows that the second is a stray. */
  dk_str message_id;
  struct parent parent;
  struct carried *carried;
  size_t n_carried;
};

enum message_kind {
  MESSAGE_NONE = 0,
  MESSAGE_START,               /* name version text=input parent */
  MESSAGE_CONTINUE,            /* execution=the next, name version text=input parent carried */
  MESSAGE_ACTIVITY_COMPLETED,  /* execution source text */
  MESSAGE_ACTIVITY_FAILED,     /* execution source text code */
  MESSAGE_TIMER_FIRED,         /* execution source */
  MESSAGE_CHILD_COMPLETED,     /* execution source (the parent's) text */
  MESSAGE_CHILD_FAILED,        /* execution source text code */
  MESSAGE_RAISED,              /* name text */
  MESSAGE_QUEUED,              /* name text */
  MESSAGE_CANCEL,              /* text=reason by; parent: only if it is this child of that parent */
  MESSAGE_DELAYED,             /* name=why text by=the worker: only for display (delay-reason.h) */
  N_MESSAGE_KINDS
};

struct message {
  enum message_kind kind;
  enum code code;
  uint64_t execution, source;
  dk_str id;                   /* the id in the queue; not in the payload: the caller sets it */
  dk_str name, text, version, by;
  struct parent parent;
  struct carried *carried;
  size_t n_carried;
};

/* What a worker needs to know about an activity; the payload of its row. */
struct task_order {
  dk_str name, input, orchestration, version;
};

/* Adds the payload to `text`; dk_text_failed reports a lack of memory. */
void event_encode(struct dk_text *text, const struct event *event);
void message_encode(struct dk_text *text, const struct message *message);
void task_order_encode(struct dk_text *text, const struct task_order *order);

/* DK_OK; DK_CORRUPT with *ret_why (in the arena): what was found where, and what was expected;
 * DK_NO_MEMORY.  The id of an event is not in its payload: the caller sets it. */
dk_status event_decode(struct dk_arena *arena, dk_str payload, struct event *ret_event,
                       const char **ret_why);
dk_status message_decode(struct dk_arena *arena, dk_str payload, struct message *ret_message,
                         const char **ret_why);
dk_status task_order_decode(struct dk_arena *arena, dk_str payload, struct task_order *ret_order,
                            const char **ret_why);

const char *event_kind_name(enum event_kind kind);     /* "activity_completed"; never NULL */
const char *message_kind_name(enum message_kind kind);
const char *code_name(enum code code);                 /* "select_loser_timeout"; "" for none */

#endif
