/* SPDX-License-Identifier: Apache-2.0 */
/* All checks of this kit, made from areas.def of the contract. */
#include "conformance/checks/checks.h"

#define CHECK(area, function, name, clauses_, needs_, flags_, processes_, says_)                   \
  static const struct check row_##area##_##function = {                                            \
    .id = #area "/" name,                                                                          \
    .clauses = clauses_,                                                                           \
    .says = says_,                                                                                 \
    .run = area##_##function,                                                                      \
    .needs = needs_,                                                                               \
    .flags = flags_,                                                                               \
    .processes = processes_,                                                                       \
  };
#include "conformance/contract/areas.def"

static const struct check *const all[] = {
#define CHECK(area, function, name, clauses, needs, flags, processes, says)                        \
  &row_##area##_##function,
#include "conformance/contract/areas.def"
};

/* ---- varied ---------------------------------------------------------------------------------- */

#define VARIATION(name, id_, says_, not_for_, ...)                                                 \
  static const struct variation variation_##name = {                                               \
    .id = id_, .says = says_, .not_for = not_for_, __VA_ARGS__                                     \
  };
#include "conformance/checks/variations.def"

#define LIST_OF_(variation) list_of_##variation
#define LIST_OF(variation) LIST_OF_(variation)

#define VARIED payload_1025
#define VARIED_ID "payload-1025"
#define VARIED_NEEDS 0
#include "conformance/checks/varied-rows.h"
#define VARIED payload_32769
#define VARIED_ID "payload-32769"
#define VARIED_NEEDS 0
#include "conformance/checks/varied-rows.h"
#define VARIED odd_ids
#define VARIED_ID "odd-ids"
#define VARIED_NEEDS 0
#include "conformance/checks/varied-rows.h"
#define VARIED large_numbers
#define VARIED_ID "large-numbers"
#define VARIED_NEEDS 0
#include "conformance/checks/varied-rows.h"
#define VARIED two_handles
#define VARIED_ID "two-handles"
#define VARIED_NEEDS NEEDS_HANDLES
#include "conformance/checks/varied-rows.h"
#define VARIED reopened
#define VARIED_ID "reopened"
#define VARIED_NEEDS (NEEDS_STORE | NEEDS_DURABLE)
#include "conformance/checks/varied-rows.h"

static const struct check *const *const varied[] = {
#define VARIATION(name, id, says, not_for, ...) list_of_##name,
#include "conformance/checks/variations.def"
};

enum { CHECKS = sizeof(all) / sizeof(all[0]), VARIATIONS = sizeof(varied) / sizeof(varied[0]) };

size_t
dk_varied_count(void)
{
  return (size_t)CHECKS * VARIATIONS;
}

const struct check *
dk_varied_check(size_t i)
{
  return varied[i / CHECKS][i % CHECKS];
}

bool
dk_variation_applies(const struct check *check)
{
  const uint32_t never = IS_RACE | IS_SLOW | IS_ALONE | IS_RUNTIME | OF_ALL;

  return check->variation == NULL || (check->flags & (never | check->variation->not_for)) == 0;
}

const struct check *const *
dk_checks(size_t *ret_n)
{
  *ret_n = CHECKS;
  return all;
}
