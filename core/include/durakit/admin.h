/* SPDX-License-Identifier: 0BSD */
/* durakit/admin.h - durakit.admin/1: to look at the instances of a store, and to remove what is
 * over.
 *
 * An extension: a provider that declares it has all of it, and is judged by the areas ADMIN, DEL
 * and PRUNE of the contract besides; one that does not needs nothing of this header.  What
 * durakit/provider.h says of growth, ownership, results, time, text and threads holds here too.
 * Ids compare bytewise, and every list is in their order.
 */
#ifndef DURAKIT_ADMIN_H
#define DURAKIT_ADMIN_H

#include <durakit/provider.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DK_ADMIN "durakit.admin/1"

/* ---- what the host sends --------------------------------------------------------------------- */

/* Where a status is told or asked for: messages are stored for the instance, and no turn of it was
 * ever committed.  It has no name yet, for that is in a message.  [ADMIN-4] */
enum { DK_NOT_STARTED = 0 };

enum {
  DK_FILTER_IDS = 1u,   /* only those of `ids`: none, if the list is empty */
  DK_FILTER_ROOTS = 2u  /* only those without a parent */
};

/* Which instances: those for which all holds that is given.  Absent and 0 are not given.  Times are
 * as in struct dk_instance; an instance whose current execution runs, or that has none, has not
 * completed, and no completed_... selects it.  [ADMIN-2] */
struct dk_instance_filter {
  uint32_t struct_size, flags;      /* DK_FILTER_... */
  const struct dk_bytes *ids;       /* in any order, perhaps with repetitions */
  size_t n_ids;
  struct dk_bytes name, version, parent_instance; /* equal to these, bytewise */
  uint32_t statuses, reserved;      /* bits 1u << DK_NOT_STARTED to 1u << DK_CANCELLED: one of
                                       these, of the current execution */
  int64_t created_from, created_before;     /* from <= time < before */
  int64_t completed_from, completed_before;
};

enum { DK_LIST_OUTPUT = 1u }; /* with the output of the current execution */
struct dk_list_instances {
  uint32_t struct_size, flags;      /* DK_LIST_... */
  const struct dk_instance_filter *filter; /* NULL: all */
  struct dk_bytes after;            /* ids greater than this; absent: from the first */
  uint32_t max_instances, reserved; /* 0: all */
};

struct dk_list_executions {
  uint32_t struct_size;
  uint32_t max_executions;          /* 0: all */
  struct dk_bytes instance;
  uint64_t after;                   /* numbers greater than this */
};

struct dk_read_messages {
  uint32_t struct_size;
  uint32_t max_messages;            /* 0: all */
  struct dk_bytes instance;
};

struct dk_read_stats {
  uint32_t struct_size, flags;      /* none yet */
};

enum { DK_DELETE_FORCE = 1u };      /* also what is not over */
struct dk_delete_instances {
  uint32_t struct_size, flags;      /* DK_DELETE_... */
  const struct dk_bytes *instances; /* each goes with all its descendants */
  size_t n_instances;
};

/* One page of all that the filter selects: up to so many, ids greater than `after`. */
struct dk_delete_matching {
  uint32_t struct_size, flags;      /* none yet */
  const struct dk_instance_filter *filter; /* never NULL: an empty one selects all */
  struct dk_bytes after;
  uint32_t max_instances, reserved; /* to be deleted, without their descendants; at least 1 */
};

/* Either one instance, or one page of all that the filter selects. */
struct dk_prune {
  uint32_t struct_size, flags;      /* none yet */
  struct dk_bytes instance;         /* with it filter, after and max_instances are absent */
  const struct dk_instance_filter *filter;
  struct dk_bytes after;
  uint32_t max_instances;           /* to be looked at; at least 1 */
  uint32_t keep;                    /* so many of the newest executions stay; 0 is 1 */
  int64_t completed_before;         /* only executions that ended before; 0: whenever */
};

/* ---- what the provider hands up -------------------------------------------------------------- */

/* An instance as it stands.  [ADMIN-3] */
struct dk_instance {
  uint32_t struct_size;
  int32_t status;                 /* of the current execution; DK_NOT_STARTED: what follows
                                     created_at and the owner is absent */
  struct dk_bytes instance;
  int64_t created_at;             /* when the oldest of its messages was stored, as of its first
                                     commit; it stays so, also when that message is consumed */
  int64_t locked_until;           /* somebody holds its turn; 0: nobody does */
  struct dk_bytes owner;          /* of the last commit: who has its history in memory */
  struct dk_bytes name, version, parent_instance;
  uint64_t birth;
  uint64_t execution_id, last_event_id;
  int64_t started_at, completed_at; /* of the current execution; completed_at 0: it is not over */
  struct dk_bytes output;         /* of the current execution, if it was asked for */
};

/* Counts of one moment.  Between the two, whatever waits for a time is delayed,
 * then what somebody holds is locked, and the rest is ready.  A message is locked while a turn of
 * its instance is held.  [ADMIN-6] */
struct dk_stats {
  uint32_t struct_size, reserved;
  int64_t now;
  /* instances by the status of their current execution */
  uint64_t not_started, running, completed, failed, continued_as_new, cancelled;
  uint64_t executions, events;
  uint64_t messages_ready, messages_delayed, messages_locked;
  uint64_t activities_ready, activities_delayed, activities_locked;
  int64_t oldest_message, oldest_activity; /* visible_at of the ready ones' first; 0: none is */
};

/* What a delete or a prune has removed.  [DEL-7, PRUNE-4] */
struct dk_removed {
  uint32_t struct_size, reserved;
  uint64_t instances;             /* deleted, descendants too; of a prune: looked at */
  uint64_t executions, events, messages, activities;
  struct dk_bytes next;           /* of a page: the last instance that was looked at, if there may
                                     be more; absent: that was all */
  uint64_t roots;                 /* of a deletion, how many of `instances` were asked for: of a
                                     list each id once, also if an ancestor of it is in the list;
                                     of a page those that max_instances counts.  A provider of ABI
                                     2.1 leaves it 0.  [2.2] */
};

/* ---- what the provider offers ---------------------------------------------------------------- */

typedef dk_status dk_list_instances_fn(void *self, struct dk_call *call,
                                       const struct dk_list_instances *request);
typedef dk_status dk_list_executions_fn(void *self, struct dk_call *call,
                                        const struct dk_list_executions *request);
typedef dk_status dk_read_messages_fn(void *self, struct dk_call *call,
                                      const struct dk_read_messages *request);
typedef dk_status dk_read_stats_fn(void *self, struct dk_call *call,
                                   const struct dk_read_stats *request);
typedef dk_status dk_delete_instances_fn(void *self, struct dk_call *call,
                                         const struct dk_delete_instances *request);
typedef dk_status dk_delete_matching_fn(void *self, struct dk_call *call,
                                        const struct dk_delete_matching *request);
typedef dk_status dk_prune_fn(void *self, struct dk_call *call, const struct dk_prune *request);

/* What extension("durakit.admin/1") gives.  A store that is open read-only offers it too, and
 * refuses to remove (DK_REFUSED).  The first four take no lock of an instance, change nothing, and
 * tell of one moment; an id that is not there brings nothing. */
struct dk_admin {
  uint32_t struct_size, reserved;
  /* Hands up the instances that the filter selects, in the order of their ids, each once: every one
   * of which a turn was committed, and every other for which messages are stored.  Fewer than
   * max_instances come only if there are no more.  What a page costs must not grow with the
   * instances before it.
   * Clauses: ADMIN-1 to ADMIN-4, ADMIN-7.  [concurrent] */
  dk_list_instances_fn *list_instances;
  /* Hands up the executions that are stored, with their outputs, ascending.
   * Clauses: ADMIN-5, ADMIN-7.  [concurrent] */
  dk_list_executions_fn *list_executions;
  /* Hands up the messages that are stored for an instance, visible or not, held or not, in queue
   * order, with attempt 0: that is not told here.
   * Clauses: ADMIN-8, ADMIN-7.  [concurrent] */
  dk_read_messages_fn *read_messages;
  /* Counts; it may look at every row.
   * Clauses: ADMIN-6, ADMIN-7.  [concurrent] */
  dk_read_stats_fn *read_stats;
  /* Deletes the instances, and whatever has one of them for an ancestor: executions, histories,
   * messages and activities, locked or not, the turn's lock, the instance itself.  Whole or not
   * at all, judged and done in one transaction.  Every token of theirs is dead from then on; the
   * ids may be used again, and that is another life.
   * Errors, nothing changed: DK_NOT_FOUND (one of `instances` has neither a turn committed nor a
   * message); DK_REFUSED (one of them has a parent that is there and does not go as well, with
   * force too; without force: one that goes is not over, that is, it is running, has not started,
   * or is between two executions).
   * Clauses: DEL-1 to DEL-7.  [concurrent] */
  dk_delete_instances_fn *delete_instances;
  /* Deletes, as delete_instances without force, of what the filter selects the roots that are over
   * with all their descendants; the rest is passed over.  A parent that is not there is none.  May
   * end its page early, with `next`.
   * Clauses: DEL-8, DEL-9.  [concurrent] */
  dk_delete_matching_fn *delete_matching;
  /* Removes executions that are older than the newest `keep`, have ended, and, if a time is given,
   * ended before it; with their histories, and nothing else.  Never the current one, nor one whose
   * status is DK_RUNNING.  Each instance whole or not at all.  A page may end early, with `next`.
   * Errors: DK_NOT_FOUND (for `instance`: no turn of it was ever committed).
   * Clauses: PRUNE-1 to PRUNE-5.  [concurrent] */
  dk_prune_fn *prune_executions;
};

#ifdef __cplusplus
}
#endif
#endif
