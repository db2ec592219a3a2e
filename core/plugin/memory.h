/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that what a provider hands up is addressable and initialised.  Valgrind knows; without
 * Valgrind nothing is checked, and the answer is yes.  Owns nothing.
 *
 * All of it is checked before the host uses it, so that a finding names operation, upcall, member
 * and byte, and the stack in Valgrind's own report has the provider's line. */
#ifndef DK_PLUGIN_MEMORY_H
#define DK_PLUGIN_MEMORY_H

#include "core/plugin/call.h"

/* This program runs under Valgrind; called once for each store. */
bool dk_memory_is_watched(void);

struct dk_member {
  const char *name;
  uint16_t offset, size;
  bool is_bytes; /* a struct dk_bytes, whose bytes are checked as well */
};
/* The members of a struct that a provider writes, without the padding, which it need not write. */
struct dk_shape {
  const char *name; /* its name in a finding: "item" */
  const struct dk_member *members;
  size_t n_members;
};
extern const struct dk_shape dk_shape_turn, dk_shape_kv, dk_shape_event, dk_shape_message,
  dk_shape_work, dk_shape_item, dk_shape_stolen, dk_shape_report, dk_shape_execution,
  dk_shape_instance, dk_shape_stats, dk_shape_removed;

/* MEM-1, MEM-2: reports what is wrong and refuses the call.  `upcall` is the upcall that hands it
 * up. */
dk_status dk_memory_size(struct dk_call *call, const char *upcall, const void *given);
/* The first `size` bytes of the struct, where `size` is its struct_size. */
dk_status dk_memory_struct(struct dk_call *call, const char *upcall, const struct dk_shape *shape,
                           const void *given, size_t size);
dk_status dk_memory_value(struct dk_call *call, const char *upcall, const char *name,
                          const void *value, size_t size);
dk_status dk_memory_bytes(struct dk_call *call, const char *upcall, const char *name,
                          struct dk_bytes bytes);

/* The status that an operation returned, or the refusal of one that is undefined. */
dk_status dk_memory_returned(struct dk_call *call, dk_status status);

/* Describes the first thing that is wrong with these bytes; false: nothing is.  With `quietly`
 * Valgrind reports nothing itself: for values passed by copy, when no line of the provider runs. */
enum { DK_MEMORY_TEXT = 160 };
struct dk_memory_fault {
  const char *clause;
  char text[DK_MEMORY_TEXT];
};
bool dk_memory_finds(const struct dk_store *store, const char *name, const void *bytes, size_t size,
                     bool quietly, struct dk_memory_fault *ret_fault);

#endif
