/* SPDX-License-Identifier: Apache-2.0 */
/* durakit.admin/1: looking at instances, and removing those that have ended.
 *
 *   admin.c    the operations as the host calls them, and their table
 *   look.c     looking, beside the writer
 *   walk.c     along the instances that a filter may select
 *   page.c     a page of a deletion or a prune: how far it goes
 *   delete.c   deleting, by the writer
 *   prune.c    pruning, by the writer
 */
#ifndef DK_SQLITE_ADMIN_H
#define DK_SQLITE_ADMIN_H

#include <durakit/admin.h>

#include "providers/sqlite/list.h"

/* ---- walking --------------------------------------------------------------------------------- */

/* Along the instances in the order of their ids: all, the children of one, or those that a filter
 * lists, as it is quickest.  The store is not changed meanwhile. */
struct walk {
  /* what is asked: the caller's, for as long as the walk */
  const struct dk_instance_filter *filter; /* NULL: all */
  struct dk_bytes after;
  struct dk_bytes *ids;   /* of the filter, in order, each once */
  size_t n_ids;
  /* where it is */
  struct statements *sql;
  int64_t now;            /* a lease that has ended is none */
  uint64_t left;          /* how many instances it may still look at */
  size_t next_id;
  sqlite3_stmt *row;
  char last[MAX_ID];      /* the last that it has looked at */
  size_t last_length;
  bool is_over;           /* there are no more instances */
};

struct found {
  int64_t iid;
  struct dk_instance instance; /* its bytes live until the next step */
};

/* false: out of memory.  To be ended in any case. */
bool walk_begin(struct walk *walk, const struct dk_instance_filter *filter, struct dk_bytes after);
void walk_end(struct walk *walk);

/* Puts the walk at its beginning, wherever it was before.  It looks at `most` instances, selected
 * or not. */
void walk_start(struct walk *walk, struct statements *sql, int64_t now, uint64_t most);
/* Gives the next instance that the filter selects.  *ret_is_there false: there is none, or the walk
 * has looked at as many as it may. */
dk_status walk_step(struct walk *walk, struct found *ret_found, bool *ret_is_there);
/* When no more steps are wanted. */
void walk_stop(struct walk *walk);

/* ---- looking --------------------------------------------------------------------------------- */

struct listing {
  const struct dk_list_instances *request;
  struct walk walk;
};

read_fn read_instances, read_executions, read_messages, read_stats; /* of a struct listing; of the
                                                                       host's requests */

/* ---- removing -------------------------------------------------------------------------------- */

/* How many instances one page may look at, and how many rows it may remove (and those of one more
 * instance), before it ends early: so long at most it occupies the writer.  [DEL-9, PRUNE-4] */
enum { MOST_LOOKED_AT = 2000, MOST_REMOVED = 10000 };

/* All that is to be deleted, as a list for the statements that delete.  It is gathered first, so
 * that nothing is refused after something has been deleted. */
struct batch {
  struct list list;
  uint64_t rows;          /* about how many */
  struct dk_removed removed;
};

/* Adds what is deleted with one instance; *ret_counts: it is one of the page's max_instances. */
typedef dk_status gather_fn(struct operation *op, const struct found *found, struct batch *batch,
                            bool *ret_counts);
/* Deletes what was gathered, and counts it. */
typedef dk_status delete_fn(struct operation *op, struct dk_bytes list,
                            struct dk_removed *removed);

/* The request of an operation that works in pages. */
struct page {
  const void *request;
  uint32_t most;          /* its max_instances */
  struct walk walk;
};

dk_status apply_page(struct operation *op, gather_fn *gather, delete_fn *delete_gathered);

/* Runs a statement that deletes by the list, and adds the number of deleted rows. */
dk_status delete_rows(struct operation *op, enum statement statement, uint64_t *rows,
                      struct dk_bytes list);

apply_fn apply_delete_instances, apply_delete_matching, apply_prune, apply_prune_page;

/* The table that extension() gives. */
extern const struct dk_admin sqlite_admin;

#endif
