/* SPDX-License-Identifier: Apache-2.0 */
/* Selects instances for a client, page by page, by a filter of the user.
 *
 * The store knows neither name nor parent of an instance that was not started.  A filter with one
 * of these becomes two requests: one for the instances that are not started, whose starts are
 * checked here, and one for the rest.  One selection belongs to one thread. */
#ifndef DK_RUNTIME_CLIENT_CLIENT_FILTER_H
#define DK_RUNTIME_CLIENT_CLIENT_FILTER_H

#include "core/runtime/client/client-info.h"

/* What one request has returned so far. */
struct stream {
  struct dk_instance_filter filter;
  bool is_over;                     /* there is nothing after the rows; or it was never requested */
  struct dk_text after;             /* the last id returned; empty: none */
  const struct dk_instances *rows;  /* `next` is the index of the next one */
  size_t next;
};

struct selection {
  struct dk_instance_filter filter;  /* the user's, copied */
  struct stream unborn, started;     /* if one request is enough, it is the second */
  /* Instances that are not started come before the rest, so that none that begins meanwhile is
   * missed (it may come twice); else all are in the order of the ids. */
  bool in_turn;
  uint32_t page;                     /* the most in one answer; 0: all */
  struct dk_arena texts;
};

/* A copy whose texts are in the arena, each followed by a NUL; NULL is an empty filter. */
dk_status selecting_copy(struct dk_client *client, struct dk_arena *arena,
                         const struct dk_instance_filter *filter,
                         struct dk_instance_filter *ret_copy);
/* The filter selects everything, intentionally or not. */
bool selecting_all(const struct dk_instance_filter *filter);

/* Begins after the id `after`.  Call selection_end even after a failure. */
dk_status selection_begin(struct dk_client *client, struct selection *selection,
                          const struct dk_instance_filter *filter, dk_str after);
/* Call it before the first page, to leave out instances that have ended. */
void selection_leave_over(struct selection *selection);
void selection_end(struct selection *selection);

struct page {
  struct dk_instance_info *infos; /* by their ids; in the memory of `looking` */
  size_t n;
  bool is_last;
};
/* Reads the next page, which may be empty. */
dk_status select_page(struct info_reader *l, struct selection *selection, struct page *ret_page);

#endif
