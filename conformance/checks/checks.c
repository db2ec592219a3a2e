/* SPDX-License-Identifier: Apache-2.0 */
/* All checks of this kit, made from areas.def of the contract. */
#include "conformance/checks/checks.h"
#include "conformance/checks/variations.h"

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

#define MEMBERS(...) __VA_ARGS__
#define VARIATION(name, id_, says_, needs_, processes_, members, ...)                              \
  static const struct variation variation_##name = {.id = id_, .says = says_, MEMBERS members};
VARIATIONS(VARIATION, )

#define VARIED(name_, id_, says_of_it, needs_of_it, processes_of_it, members, area, function,      \
               name, clauses_, needs_, flags_, processes_, says_)                                  \
  {                                                                                                \
    .id = #area "/" name "~" id_,                                                                  \
    .clauses = clauses_,                                                                           \
    .says = says_,                                                                                 \
    .run = area##_##function,                                                                      \
    .needs = (needs_) | (needs_of_it),                                                             \
    .flags = flags_,                                                                               \
    .processes = (processes_) + (processes_of_it),                                                 \
    .variation = &variation_##name_,                                                               \
  },
#define CHECK(area, function, name, clauses, needs, flags, processes, says)                        \
  VARIATIONS(VARIED, area, function, name, clauses, needs, flags, processes, says)
static const struct check varied[] = {
#include "conformance/contract/areas.def"
};

enum {
  CHECKS = sizeof(all) / sizeof(all[0]),
  VARIED_CHECKS = sizeof(varied) / sizeof(varied[0])
};

size_t
dk_varied_count(void)
{
  return VARIED_CHECKS;
}

const struct check *
dk_varied_check(size_t i)
{
  return &varied[i];
}

bool
dk_variation_applies(const struct check *check)
{
  const uint32_t never = IS_RACE | IS_SLOW | IS_ALONE | IS_RUNTIME | OF_ALL;
  const struct variation *variation = check->variation;

  return variation == NULL ||
         ((check->flags & (never | variation->not_for)) == 0 &&
          (check->needs & variation->not_with) == 0 && check->processes <= MOST_PROCESSES);
}

/* Each check in two of the usual ones, its neighbours in others.  To open the store before each
 * call takes four times as long as the others: of two checks only one gets that. */
bool
dk_variation_is_usual(size_t i)
{
  enum { ONE_IN = 3 };
  size_t n = VARIED_CHECKS / CHECKS, check = i / n;
  const struct variation *variation = varied[i].variation;

  return variation->is_usual && (check + i % n) % ONE_IN == 0 &&
         (!variation->reopens || check / ONE_IN % 2 == 0);
}

const struct check *const *
dk_checks(size_t *ret_n)
{
  *ret_n = CHECKS;
  return all;
}
