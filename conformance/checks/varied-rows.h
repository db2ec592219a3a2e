/* SPDX-License-Identifier: Apache-2.0 */
/* Included once for each variation by checks.c, which defines VARIED (its name),
 * VARIED_ID, and VARIED_NEEDS (besides those of the check): all checks, varied so.
 * It has no guard. */
#define ROW_OF_(variation, area, function) varied_##variation##_##area##_##function
#define ROW_OF(variation, area, function) ROW_OF_(variation, area, function)
#define BY_(variation) &variation_##variation
#define BY(variation) BY_(variation)

#define CHECK(area, function, name, clauses_, needs_, flags_, processes_, says_)                   \
  static const struct check ROW_OF(VARIED, area, function) = {                                     \
    .id = #area "/" name "~" VARIED_ID,                                                            \
    .clauses = clauses_,                                                                           \
    .says = says_,                                                                                 \
    .run = area##_##function,                                                                      \
    .needs = (needs_) | VARIED_NEEDS,                                                              \
    .flags = flags_,                                                                               \
    .processes = processes_,                                                                       \
    .variation = BY(VARIED),                                                                       \
  };
#include "conformance/contract/areas.def"

static const struct check *const LIST_OF(VARIED)[] = {
#define CHECK(area, function, name, clauses, needs, flags, processes, says)                        \
  &ROW_OF(VARIED, area, function),
#include "conformance/contract/areas.def"
};

#undef ROW_OF_
#undef ROW_OF
#undef BY_
#undef BY
#undef VARIED
#undef VARIED_ID
#undef VARIED_NEEDS
