/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks of durakit.admin/1 share: usual beginnings, and what is expected of lists and of
 * what was removed. */
#ifndef DK_CHECKS_ADMIN_H
#define DK_CHECKS_ADMIN_H

#include "conformance/checks/checks.h"

/* The first turn of an instance, committed with this status and one event.  parent NULL: none. */
void given_child(struct dk_check *t, const char *id, const char *parent, int32_t status);
void given_root(struct dk_check *t, const char *id, int32_t status);
/* Executions 1 to n, `apart_ms` between any two commits, the last one running; each of the others
 * has ended as continued as new.  In each: event 1, and its number ("execution 2") as output. */
void given_executions(struct dk_check *t, const char *id, uint64_t n, int64_t apart_ms);
/* n instances from "inst-00000" on that have not started: "other", which is made and runs, has sent
 * each a message that is delayed. */
void given_many_waiting(struct dk_check *t, struct dk_bytes *ret_ids, size_t n);

/* The instance of this id; NULL: it is not in the list. */
const struct dk_instance *listed(const struct dk_instances *list, const char *id);
/* The only one of this id, listed by its id. */
const struct dk_instance *look_at(struct dk_check *t, const char *id);

/* These, in this order, and no others; NULL ends the list. */
void expect_ids_listed(struct dk_check *t, const struct dk_instances *list,
                       const char *const *ids);
#define expect_listed(t, list, ...)                                                                \
  expect_ids_listed(t, list, (const char *const[]){__VA_ARGS__, NULL})
#define expect_none_listed(t, list)                                                                \
  expect_equal(t, (list)->n_items, 0, "instances in a list that should be empty")
/* The numbers of the executions of an instance: these, and no others; 0 ends the list. */
void expect_executions_of(struct dk_check *t, const char *id, const uint64_t *numbers);
#define expect_executions(t, id, ...)                                                              \
  expect_executions_of(t, id, (const uint64_t[]){__VA_ARGS__, 0})

/* Deletes or prunes page after page, each from where the last one ended, until there is no next; a
 * page may end early.  Returns what all of them removed.  If a `max` is given, no page removes
 * more. */
struct dk_removed delete_pages(struct dk_check *t, const struct remove_args *a);
struct dk_removed prune_pages_of(struct dk_check *t, const struct remove_args *a);
#define delete_all_matching(t, ...) delete_pages(t, &(struct remove_args){__VA_ARGS__})
#define prune_all_matching(t, ...) prune_pages_of(t, &(struct remove_args){__VA_ARGS__})

/* Expects no trace of this id: in no list, no history, no message. */
void expect_gone(struct dk_check *t, const char *id);
/* Compares all counts; `next` is ignored. */
void expect_removed(struct dk_check *t, const struct dk_removed *got, struct dk_removed wanted);
#define expect_counts(t, got, ...) expect_removed(t, got, (struct dk_removed){__VA_ARGS__})

#endif
