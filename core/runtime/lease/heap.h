/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of things that have to be looked at at a tick: the earliest is on top.
 *
 * What stands in it embeds a struct due, and room is made before it is added, so that to add never
 * fails.  No lock: the owner's. */
#ifndef DK_RUNTIME_LEASE_HEAP_H
#define DK_RUNTIME_LEASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct due {
  int64_t at;
  size_t place; /* in the heap, from 1; 0: it is in none */
};

struct heap {
  struct due **dues; /* from 1 */
  size_t n, room;
};

/* Room for one more than there are promised; false: no memory. */
bool heap_reserve(struct heap *heap, size_t promised);
void heap_done(struct heap *heap);
/* NULL: empty. */
struct due *heap_top(const struct heap *heap);
/* Puts it in at that tick, or moves it there. */
void heap_set(struct heap *heap, struct due *due, int64_t at);
/* Nothing happens if it is not in it. */
void heap_remove(struct heap *heap, struct due *due);

#endif
