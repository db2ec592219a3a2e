/* SPDX-License-Identifier: 0BSD */
/* durakit/admin.h - durakit.admin/1: inspect the instances of a store, and remove those that have
 * ended.
 *
 * An extension.  A provider that declares it implements all of it, and is also judged by the areas
 * ADMIN, DEL and PRUNE of the contract; other providers need nothing from this header.  The rules
 * of durakit/provider.h about growth, ownership, results, time, text and threads hold here as well.
 * Ids are compared bytewise, and every list is sorted by id.
 */
#ifndef DURAKIT_ADMIN_H
#define DURAKIT_ADMIN_H

#include <durakit/provider.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DK_ADMIN "durakit.admin/1"

/* ---- what the host sends --------------------------------------------------------------------- */

/* A status in lists and filters: messages are stored for the instance, but no turn of it was ever
 * committed.  It has no name yet, because the name is in a message.  [ADMIN-4] */
enum { DK_NOT_STARTED = 0 };

enum {
  DK_FILTER_IDS = 1u,   /* only those in `ids`: none, if the list is empty */
  DK_FILTER_ROOTS = 2u  /* only those without a parent */
};

/* Selects the instances that match every condition given.  A condition that is absent or 0 is not
 * given.  Times are those of struct dk_instance; an instance that has no execution, or whose
 * current execution is running, has not completed, and no completed_... selects it.  [ADMIN-2] */
struct dk_instance_filter {
  uint32_t struct_size, flags;      /* DK_FILTER_... */
  const struct dk_bytes *ids;       /* in any order, perhaps with repetitions */
  size_t n_ids;
  struct dk_bytes name, version, parent_instance; /* equal to these, bytewise */
  uint32_t statuses, reserved;      /* bits 1u << DK_NOT_STARTED to 1u << DK_CANCELLED: the current
                                       execution has one of these */
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

enum { DK_DELETE_FORCE = 1u };      /* also instances that have not ended */
struct dk_delete_instances {
  uint32_t struct_size, flags;      /* DK_DELETE_... */
  const struct dk_bytes *instances; /* each is deleted with all its descendants */
  size_t n_instances;
};

/* One page of the instances that the filter selects: at most max_instances, with ids greater than
 * `after`. */
struct dk_delete_matching {
  uint32_t struct_size, flags;      /* none yet */
  const struct dk_instance_filter *filter; /* never NULL; an empty filter selects all */
  struct dk_bytes after;
  uint32_t max_instances, reserved; /* to be deleted, without their descendants; at least 1 */
};

/* Either one instance, or one page of the instances that the filter selects. */
struct dk_prune {
  uint32_t struct_size, flags;      /* none yet */
  struct dk_bytes instance;         /* if given, filter, after and max_instances are absent */
  const struct dk_instance_filter *filter;
  struct dk_bytes after;
  uint32_t max_instances;           /* to examine; at least 1 */
  uint32_t keep;                    /* how many of the newest executions remain; 0 means 1 */
  int64_t completed_before;         /* only executions that ended before this time; 0: any time */
};

/* ---- what the provider hands up -------------------------------------------------------------- */

/* The present state of an instance.  [ADMIN-3] */
struct dk_instance {
  uint32_t struct_size;
  int32_t status;                 /* of the current execution; DK_NOT_STARTED: all members after
                                     `owner` are absent */
  struct dk_bytes instance;
  int64_t created_at;             /* when the oldest of its messages was stored, as known at its
                                     first commit; it does not change when that message is
                                     consumed */
  int64_t locked_until;           /* until when its turn is locked; 0: it is not locked */
  struct dk_bytes owner;          /* of the last commit: the worker that has its history in
                                     memory */
  struct dk_bytes name, version, parent_instance;
  uint64_t birth;
  uint64_t execution_id, last_event_id;
  int64_t started_at, completed_at; /* of the current execution; completed_at 0: it has not ended */
  struct dk_bytes output;         /* of the current execution, if DK_LIST_OUTPUT was given */
};

/* Counts of one moment.  A message or activity that is not yet visible is delayed; else, if it is
 * locked by a lease, it is locked; the rest is ready.  A message is locked while the turn of its
 * instance is.  [ADMIN-6] */
struct dk_stats {
  uint32_t struct_size, reserved;
  int64_t now;
  /* instances by the status of their current execution */
  uint64_t not_started, running, completed, failed, continued_as_new, cancelled;
  uint64_t executions, events;
  uint64_t messages_ready, messages_delayed, messages_locked;
  uint64_t activities_ready, activities_delayed, activities_locked;
  int64_t oldest_message, oldest_activity; /* visible_at of the first that is ready; 0: none is */
};

/* What a delete or a prune has removed.  [DEL-7, PRUNE-4] */
struct dk_removed {
  uint32_t struct_size, reserved;
  uint64_t instances;             /* deleted, descendants included; of a prune: examined */
  uint64_t executions, events, messages, activities;
  struct dk_bytes next;           /* of a page: the last instance that was examined, if there may be
                                     more; absent: there are no more */
  uint64_t roots;                 /* of a deletion, how many of `instances` were requested: each id
                                     of a list once, even if its ancestor is in the list too; of a
                                     page those that max_instances counts.  A provider of ABI 2.1
                                     leaves it 0.  [2.2] */
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

/* What extension("durakit.admin/1") returns.  A store that is open read-only offers it too, and
 * refuses to remove (DK_REFUSED).  The first four operations take no lock of an instance, change
 * nothing, and show one moment; for an id that does not exist they hand up nothing. */
struct dk_admin {
  uint32_t struct_size, reserved;
  /* Hands up the instances that the filter selects, in the order of their ids, each once: every
   * instance of which a turn was committed, and every other instance for which messages are stored.
   * Hands up fewer than max_instances only if there are no more.  The cost of a page must not grow
   * with the number of instances before it.
   * Clauses: ADMIN-1 to ADMIN-4, ADMIN-7.  [concurrent] */
  dk_list_instances_fn *list_instances;
  /* Hands up the executions that are stored, with their outputs, ascending.
   * Clauses: ADMIN-5, ADMIN-7.  [concurrent] */
  dk_list_executions_fn *list_executions;
  /* Hands up the messages that are stored for an instance, visible or not, locked or not, in queue
   * order, with attempt 0 (the attempt is not reported here).
   * Clauses: ADMIN-8, ADMIN-7.  [concurrent] */
  dk_read_messages_fn *read_messages;
  /* Counts; it may read every row.
   * Clauses: ADMIN-6, ADMIN-7.  [concurrent] */
  dk_read_stats_fn *read_stats;
  /* Deletes the instances and all their descendants: executions, histories, messages and
   * activities, locked or not, the turn's lock, the instance itself.  It deletes all or nothing,
   * and checks and deletes in one transaction.  All their tokens are dead from then on.  The ids
   * may be used again, for new instances.
   * Errors, nothing changed: DK_NOT_FOUND (one of `instances` has neither a turn committed nor a
   * message); DK_REFUSED (one of them has a parent that exists and is not deleted as well, even
   * with force; or, without force, one that would be deleted has not ended: it is running, has not
   * started, or is between two executions).
   * Clauses: DEL-1 to DEL-7.  [concurrent] */
  dk_delete_instances_fn *delete_instances;
  /* Deletes, as delete_instances without force does, those roots among the selected instances that
   * have ended with all their descendants; skips the rest.  An instance whose parent does not exist
   * is a root.  May end its page early, with `next`.
   * Clauses: DEL-8, DEL-9.  [concurrent] */
  dk_delete_matching_fn *delete_matching;
  /* Removes executions that are older than the newest `keep` and have ended (before
   * completed_before, if that is given), with their histories, and nothing else.  Never removes the
   * current execution, nor one whose status is DK_RUNNING.  Prunes each instance completely or not
   * at all.  A page may end early, with `next`.
   * Errors: DK_NOT_FOUND (for `instance`: no turn of it was ever committed).
   * Clauses: PRUNE-1 to PRUNE-5.  [concurrent] */
  dk_prune_fn *prune_executions;
};

#ifdef __cplusplus
}
#endif
#endif
