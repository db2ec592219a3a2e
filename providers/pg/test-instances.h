/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of durakit.admin/1 share: short ways to make instances, and to read them back.  A
 * failure of the environment bails out. */
#ifndef DK_PG_TEST_INSTANCES_H
#define DK_PG_TEST_INSTANCES_H

#include <durakit/admin.h>

#include "providers/pg/test-stores.h"

/* Lists of ids are texts with blanks between. */
enum { MOST_IDS = 3000 };

/* Stores a message for it, and fetches its turn; so no other instance may be ready. */
struct dk_turn *turn_of(struct handle_under_test *h, const char *instance);
dk_status try_to_commit(struct handle_under_test *h, struct dk_bytes token,
                        struct dk_turn_result result, struct dk_commit_outcome *ret_outcome);
/* Its next turn, committed.  What is absent: execution 1, name "order", version "1". */
void commit_of(struct handle_under_test *h, const char *instance, struct dk_turn_result result);
#define COMMIT(h, instance, ...) commit_of(h, instance, (struct dk_turn_result){__VA_ARGS__})

/* The ids that are listed; lives until the next call. */
const char *listed(struct handle_under_test *h, const struct dk_instance_filter *filter,
                   const char *after, uint32_t most);
/* One as it is listed, with its output; bails out if it is not. */
struct dk_instance told(struct handle_under_test *h, const char *instance);

/* What was refused is in `said`. */
dk_status try_to_delete(struct handle_under_test *h, const char *ids, uint32_t flags,
                        struct dk_removed *ret_removed);
/* One test point: what went, as "instances executions events messages activities next". */
void is_removed(const struct dk_removed *removed, const char *expected, const char *name);

#endif
