/* SPDX-License-Identifier: Apache-2.0 */
/* One call of an operation: its request, its results, its outcome.
 *
 * A caller owns the memory of all this, and is used by one thread at a time; upcalls may come from
 * the provider's threads, one after the other.  Members that other threads read are atomic or
 * guarded by the store's lock. */
#ifndef DK_PLUGIN_CALL_H
#define DK_PLUGIN_CALL_H

#include <stdatomic.h>
#include <stdbool.h>

#include <durakit/host.h>

#include "core/base/arena.h"

/* Returns what is not DK_OK. */
#define TRY(step)                                                                                  \
  do {                                                                                             \
    dk_status try_status = (step);                                                                 \
    if (try_status != DK_OK)                                                                       \
      return try_status;                                                                           \
  } while (0)

/* ---- operations ------------------------------------------------------------------------------ */

/* The arguments of all operations; each operation uses its own. */
struct dk_request {
  const struct dk_item *item;
  const struct dk_fetch_turn *fetch_turn;
  const struct dk_fetch_work *fetch_work;
  const struct dk_turn_result *turn_result;
  const struct dk_work_result *work_result;
  const struct dk_read_history *read_history;
  const struct dk_list_instances *list_instances;
  const struct dk_list_executions *list_executions;
  const struct dk_read_messages *read_messages;
  const struct dk_read_stats *read_stats;
  const struct dk_delete_instances *delete_instances;
  const struct dk_delete_matching *delete_matching;
  const struct dk_prune *prune;
  const struct dk_open *open;
  struct dk_bytes token;
  uint64_t fetch_id;
  int64_t ms;
  int32_t ignore_attempt;
};

/* Which results an operation may hand up. */
enum {
  DK_TAKES_TURN = 1u,
  DK_TAKES_WORK = 2u,
  DK_TAKES_HISTORY = 4u,
  DK_TAKES_STOLEN = 8u,
  DK_TAKES_INSTANCES = 16u,
  DK_TAKES_EXECUTIONS = 32u,
  DK_TAKES_MESSAGES = 64u,
  DK_TAKES_STATS = 128u,
  DK_TAKES_REMOVED = 256u,
  DK_TAKES_NEXT = 512u, /* dk_removed.next: the operation removes a page */
  DK_TAKES_DUPLICATE = 1024u
};

struct dk_call;
struct dk_operation {
  const char *name;
  /* Its offset in struct dk_ops, or in struct dk_admin; 0 (the offset of struct_size): not in that
   * table. */
  size_t member, admin_member;
  uint32_t takes;
  bool may_find_nothing;
  bool may_bring_work; /* after it, waiting fetches should try again */
  dk_status (*check)(struct dk_call *call, const struct dk_request *request);
  dk_status (*attempt)(struct dk_call *call, const struct dk_request *request);
};

/* ---- calls ----------------------------------------------------------------------------------- */

/* An array that grows in an arena. */
struct dk_rows {
  void *first;
  size_t n, room;
};

/* In the order in which a turn is handed up. */
enum dk_stage { DK_STAGE_NONE, DK_STAGE_HEAD, DK_STAGE_KV, DK_STAGE_EVENTS, DK_STAGE_MESSAGES };

/* What was handed up so far. */
struct dk_results {
  enum dk_stage stage;
  struct dk_turn *turn;
  struct dk_works *works;
  struct dk_history *history;
  struct dk_instances *instances;
  struct dk_executions *executions;
  struct dk_messages *waiting;
  struct dk_rows kv, events, messages, work_rows, stolen, instance_rows, execution_rows;
  struct dk_cancel_report report;
  struct dk_stats stats;
  struct dk_removed removed;
  int32_t duplicate_list; /* DK_LIST_...; 0: none was named */
  uint64_t duplicate_index;
  bool is_reported;   /* the upcall for the report, the stats, or the removed rows was made */
  bool is_incomplete; /* there was no memory for a stolen row, or for the end of a page */
};

struct dk_store;
struct dk_call {
  const struct dk_operation *operation;
  const struct dk_request *request;
  struct dk_caller *caller;
  struct dk_store *store;
  struct dk_call *next; /* among the running calls of the store, under its lock */
  int64_t began;        /* when it was added to them, by dk_monotonic_ms */
  /* Kept here, so that an upcall after the store was closed can still be reported. */
  void (*violation)(void *context, const char *operation, const char *clause, const char *text);
  void *context;

  atomic_bool is_running;    /* it is inside the provider */
  bool is_cancelled;         /* once set, it stays set */
  uint32_t cancelled_waits;  /* how many waits have returned since the cancellation */
  int gate;                  /* the descriptor of cancel_fd, if it was made for this call; else
                                -1 */
  dk_status failed;          /* the status passed to fail; DK_OK: it was not called */
  dk_status refused;         /* the answer of an upcall that was refused; DK_OK: none was */
  struct dk_arena_mark begin;
  struct dk_results results;
};

enum { DK_FAILURE_TEXT = 2048 };

struct dk_caller {
  struct dk_arena arena;
  bool is_own;               /* made by malloc */
  bool is_unchecked;
  uint32_t refuses;          /* the n-th result from now on; 0: none */
  int32_t actor;
  struct dk_canceller *canceller;
  struct dk_failure failure;
  struct dk_overdue overdue; /* the last call's */
  struct dk_call call;
  char text[DK_FAILURE_TEXT]; /* the failure's */
};

struct dk_canceller {
  atomic_bool is_cancelled;
  bool is_own;
  int fd; /* an eventfd, readable once it is cancelled */
};

/* Makes the call: checks the request, waits at the turnstile, calls, and checks the answer.  A call
 * that is not DK_OK leaves nothing in the caller's memory, and its failure describes it. */
dk_status dk_call_make(struct dk_store *store, struct dk_caller *caller,
                       const struct dk_operation *operation, const struct dk_request *request);

/* The host has cancelled the call. */
bool dk_call_is_cancelled(struct dk_call *call);
/* A descriptor that is readable from then on; -1: descriptors have run out. */
int dk_call_cancel_fd(struct dk_call *call);
/* Discards all that was handed up, for another attempt. */
void dk_call_forget(struct dk_call *call);

/* The host's own refusal: writes the failure, and returns `status`. */
__attribute__((format(printf, 3, 4))) dk_status
dk_call_refuse(struct dk_call *call, dk_status status, const char *format, ...);
/* Reports that the provider broke a rule.  The second function also writes the failure and returns
 * DK_INTERNAL, as the answer of an upcall. */
__attribute__((format(printf, 3, 4))) void dk_call_report(struct dk_call *call, const char *clause,
                                                          const char *format, ...);
__attribute__((format(printf, 3, 4))) dk_status
dk_call_violated(struct dk_call *call, const char *clause, const char *format, ...);

/* Text that a person reads in a failure: cut to fit, without NUL inside. */
void dk_caller_set_text(struct dk_caller *caller, struct dk_bytes text);

/* ---- results (sink.c) ------------------------------------------------------------------------ */

/* Puts the upcalls that hand something up into the table. */
void dk_sink_upcalls(struct dk_host *host);
/* Checks that everything that a DK_OK promises was handed up, and makes the results ready to be
 * read. */
dk_status dk_sink_complete(struct dk_call *call);

/* ---- leases (overdue.c) ---------------------------------------------------------------------- */

/* After a complete fetch: moves what is overdue from the results into the caller's `overdue`.
 * DK_BUSY, with a text, if nothing else was fetched. */
dk_status dk_overdue_judge(struct dk_call *call);

#endif
