/* SPDX-License-Identifier: Apache-2.0 */
/* All checks, and those that were asked for. */
#ifndef DK_RUNNER_RUN_PLAN_H
#define DK_RUNNER_RUN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conformance/kit/engine.h"
#include "runner/cli/options.h"

/* The hash of the manifest: check ids with their clauses, the text of the clauses, the mutants. */
uint64_t plan_manifest(void);

/* The checks that were asked for, in the contract's order; all if none was named.  From malloc.
 * NULL: the reason was printed, and *ret_code is set. */
const struct check **plan_select(const struct options *options, size_t *ret_n, int *ret_code);

/* All checks that can be selected, by number from 0. */
size_t plan_count(void);
const struct check *plan_check(size_t i);
bool plan_is_of_profile(const struct check *check, enum profile profile);
const struct check *plan_find(const char *id); /* NULL: no such check */
/* What the check needs is what the provider declares, as far as that can be known before it runs.
 */
bool plan_is_offered(const struct check *check, const struct kit_probe *probe, bool has_store);
/* The check has this clause, as its first or another one. */
bool plan_tests(const struct check *check, const char *clause);
/* The length of the clause that the check is for, at the beginning of its list. */
size_t plan_first_clause(const struct check *check);
bool plan_is_first(const struct check *check, const char *clause);

#endif
