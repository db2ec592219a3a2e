/* SPDX-License-Identifier: Apache-2.0 */
/* Selecting instances, for a client: page by page, what a filter of the user's selects.
 *
 * The store knows neither name nor parent of an instance that was not started.  A filter that asks
 * for them becomes two questions: one for what is not started, whose starts are looked at here, and
 * one for the rest.  One selection belongs to one thread. */
#ifndef DK_RUNTIME_CLIENT_CLIENT_FILTER_H
#define DK_RUNTIME_CLIENT_CLIENT_FILTER_H

#include "core/runtime/client/client-info.h"

/* What one question has brought so far. */
struct stream {
  struct dk_instance_filter filter;
  bool is_over;                     /* there is no more than the rows; or it was never asked */
  struct dk_text after;             /* the last id that it has brought; empty: none */
  const struct dk_instances *rows;  /* of which `next` is the next */
  size_t next;
};

struct selection {
  struct dk_instance_filter filter;  /* the user's, copied */
  struct stream unborn, started;     /* the second is asked for all, if one is enough */
  /* All that is not started comes before the rest, so that nothing is left out that begins
   * meanwhile (it may come twice); else all is in the order of the ids. */
  bool in_turn;
  uint32_t page;                     /* so many at most in an answer; 0: all */
  struct dk_arena texts;
};

/* A copy whose texts live in the arena, each with a NUL behind it; NULL is an empty filter. */
dk_status selecting_copy(struct dk_client *client, struct dk_arena *arena,
                         const struct dk_instance_filter *filter,
                         struct dk_instance_filter *ret_copy);
/* Selects all, on purpose or not. */
bool selecting_all(const struct dk_instance_filter *filter);

/* By ids, behind `after`.  selection_end after a failure, too. */
dk_status selection_begin(struct dk_client *client, struct selection *selection,
                          const struct dk_instance_filter *filter, dk_str after);
/* Before the first page: instances that are over are not wanted. */
void selection_leave_over(struct selection *selection);
void selection_end(struct selection *selection);

struct page {
  struct dk_instance_info *infos; /* by their ids; in the memory of `looking` */
  size_t n;
  bool is_last;
};
/* The next page, which may be empty. */
dk_status select_page(struct info_reader *l, struct selection *selection, struct page *ret_page);

#endif
