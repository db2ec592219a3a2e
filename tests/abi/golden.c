/* SPDX-License-Identifier: Apache-2.0 */
/* Holds provider.h and admin.h to golden.def, the layout as it was when this draft was made: every
 * member at its place, of its size and type; every function type and constant; every size.  It is
 * compiled, never run.
 *
 * A struct may grow at its end, but then the minor number must have grown too.  Everything else is
 * another ABI: until the freeze a new draft number, then never.  `make abi-update` makes golden.def
 * anew, and asks for a line in docs/abi.md.
 */
#include <durakit/admin.h>

#define SAME(a, b) __builtin_types_compatible_p(__typeof__(a), b)

enum {
#define MINOR(n) golden_minor = n,
#define DRAFT(n) golden_draft = n,
#define STAMP(n)
#define TYPE(...)
#define CONSTANT(name, value)
#define FUNCTION(...)
#define FROZEN(name, size)
#define GROWS(name, size)
#define MEMBER(...)
#include "golden.def"
#undef STAMP
#undef TYPE
#undef CONSTANT
#undef FUNCTION
#undef FROZEN
#undef GROWS
#undef MEMBER
#undef MINOR
#undef DRAFT
  golden_end
};

_Static_assert(golden_draft == DK_ABI_DRAFT, "the draft number changed: run make abi-update");
_Static_assert(golden_minor <= DK_ABI_MINOR, "the minor number went back");

#define MINOR(n)
#define DRAFT(n)
#define STAMP(n)                                                                                   \
  _Static_assert(DK_STAMP == (n), "the stamp changed: plugins built before are refused");
#define TYPE(name, ...)                                                                            \
  _Static_assert(SAME(name, __VA_ARGS__), #name " is another type: another ABI");
#define CONSTANT(name, value)                                                                      \
  _Static_assert(name == (value), #name " changed its value: another ABI");
#define FUNCTION(name, ...)                                                                        \
  _Static_assert(__builtin_types_compatible_p(name *, __typeof__(__VA_ARGS__) *),                  \
                 #name " changed its signature: another ABI");
#define FROZEN(name, size)                                                                         \
  _Static_assert(sizeof(struct name) == (size), "struct " #name " is frozen and changed its size");
#define GROWS(name, size)                                                                          \
  _Static_assert(sizeof(struct name) == (size) ||                                                  \
                     (sizeof(struct name) > (size) && DK_ABI_MINOR > golden_minor),                \
                 "struct " #name " grew: DK_ABI_MINOR must grow with it (or it shrank)");
#define MEMBER(name, member, offset, size, ...)                                                    \
  _Static_assert(offsetof(struct name, member) == (offset),                                        \
                 #name "." #member " moved: another ABI");                                         \
  _Static_assert(sizeof(((struct name *)0)->member) == (size),                                     \
                 #name "." #member " changed its size: another ABI");                              \
  _Static_assert(SAME(((struct name *)0)->member, __typeof__(__VA_ARGS__)),                        \
                 #name "." #member " changed its type: another ABI");
#include "golden.def"
