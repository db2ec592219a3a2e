/* SPDX-License-Identifier: Apache-2.0 */
/* The calls by which a provider asks for memory: counted, and some of them fail.
 *
 * The command defines these functions of the C library itself and exports them, as in disk.h.  What
 * the command asks for itself, and what the dynamic linker does, always succeeds.  What a provider
 * has from elsewhere (an allocator of its own on mapped pages, a language with one) is not seen;
 * nor is anything under a sanitizer or Valgrind, which stand in for the same functions. */
#ifndef DK_KIT_SHORTAGE_H
#define DK_KIT_SHORTAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct kit_shortage {
  uint32_t at;     /* which call fails, from 1; 0: none does */
  int32_t lasts;   /* ... and so do all that follow */
  _Atomic uint32_t n_calls;
};

/* From here on this process counts, and does what `shortage` says; NULL: no longer. */
void kit_shortage_arm(struct kit_shortage *shortage);
/* Whether a call comes from the command itself: from this place in its code. */
bool kit_is_own_call(const void *caller);

#endif
