/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of things that are due at a tick: the earliest is on top.
 *
 * An element embeds a struct due, and memory is reserved before it is added, so that adding never
 * fails.  It has no lock: the owner's lock guards it. */
#ifndef DK_RUNTIME_LEASE_HEAP_H
#define DK_RUNTIME_LEASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct due {
  int64_t at;
  size_t place; /* in the heap, from 1; 0: not in a heap */
};

struct heap {
  struct due **dues; /* from 1 */
  size_t n, room;
};

/* Reserves memory for one more than `promised`; false: no memory. */
bool heap_reserve(struct heap *heap, size_t promised);
void heap_done(struct heap *heap);
/* NULL: empty. */
struct due *heap_top(const struct heap *heap);
/* Adds it at that tick, or moves it there. */
void heap_set(struct heap *heap, struct due *due, int64_t at);
/* Nothing happens if it is not in it. */
void heap_remove(struct heap *heap, struct due *due);

#endif
