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

const struct check *const *
dk_checks(size_t *ret_n)
{
  *ret_n = sizeof(all) / sizeof(all[0]);
  return all;
}
