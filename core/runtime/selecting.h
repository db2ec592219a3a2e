/* SPDX-License-Identifier: Apache-2.0 */
/* Selecting instances, for a client: page by page, what a filter of the user's selects.
 *
 * The store knows neither name nor parent of an instance that was not started; they are held
 * against its start here.  One selection belongs to one thread. */
#ifndef DK_RUNTIME_SELECTING_H
#define DK_RUNTIME_SELECTING_H

#include "core/runtime/looking.h"

struct selection {
  struct dk_instance_filter filter;           /* the user's, copied */
  struct dk_instance_filter started, unborn;  /* what the store is asked for */
  bool asks_started, asks_unborn;             /* the first is asked for all, if that is enough */
  uint32_t page;                              /* so many at most in an answer; 0: all */
  struct dk_text after;                       /* absent while it is empty: no id is */
  struct dk_arena texts;
};

/* A copy whose texts live in the arena, each with a NUL behind it; NULL is an empty filter. */
dk_status selecting_copy(struct dk_client *client, struct dk_arena *arena,
                         const struct dk_instance_filter *filter,
                         struct dk_instance_filter *ret_copy);
/* Selects all, on purpose or not. */
bool selecting_all(const struct dk_instance_filter *filter);

/* selection_end after a failure, too. */
dk_status selection_begin(struct dk_client *client, struct selection *selection,
                          const struct dk_instance_filter *filter, dk_str after);
/* Instances that are over are not wanted. */
void selection_leave_over(struct selection *selection);
void selection_end(struct selection *selection);

struct page {
  struct dk_instance_info *infos; /* by their ids; in the memory of `looking` */
  size_t n;
  bool is_last;
};
/* The next page. */
dk_status select_page(struct looking *l, struct selection *selection, struct page *ret_page);

#endif
