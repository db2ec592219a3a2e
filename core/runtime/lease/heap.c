/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of dues: see heap.h.  Each due knows its place, so it is moved without a search. */
#include "core/runtime/lease/heap.h"

#include <assert.h>
#include <stdlib.h>

bool
heap_reserve(struct heap *heap, size_t promised)
{
  size_t room = heap->room > 0 ? heap->room : 16;

  assert(heap->n <= promised);
  while (room < promised + 1)
    room *= 2;
  if (room == heap->room)
    return true;
  struct due **dues = realloc(heap->dues, (room + 1) * sizeof(struct due *));
  if (!dues)
    return false;
  heap->dues = dues;
  heap->room = room;
  return true;
}

void
heap_done(struct heap *heap)
{
  free(heap->dues);
  *heap = (struct heap){NULL, 0, 0};
}

struct due *
heap_top(const struct heap *heap)
{
  return heap->n > 0 ? heap->dues[1] : NULL;
}

/* It knows its place, and neither comes after a child nor before its parent.  O(1). */
__attribute__((unused)) static bool
is_in_place(const struct heap *heap, const struct due *due)
{
  size_t place = due->place, child = 2 * place;

  return place >= 1 && place <= heap->n && heap->dues[place] == due &&
         (place == 1 || heap->dues[place / 2]->at <= due->at) &&
         (child > heap->n || due->at <= heap->dues[child]->at) &&
         (child + 1 > heap->n || due->at <= heap->dues[child + 1]->at);
}

static void
heap_put(struct heap *heap, struct due *due, size_t place)
{
  assert(place >= 1 && place <= heap->n);
  heap->dues[place] = due;
  due->place = place;
}

static void
rise(struct heap *heap, struct due *due)
{
  size_t place = due->place;

  while (place > 1 && heap->dues[place / 2]->at > due->at) {
    heap_put(heap, heap->dues[place / 2], place);
    place /= 2;
  }
  heap_put(heap, due, place);
}

static void
sink(struct heap *heap, struct due *due)
{
  size_t place = due->place;

  for (;;) {
    size_t child = 2 * place;
    if (child < heap->n && heap->dues[child + 1]->at < heap->dues[child]->at)
      child++;
    if (child > heap->n || heap->dues[child]->at >= due->at)
      break;
    heap_put(heap, heap->dues[child], place);
    place = child;
  }
  heap_put(heap, due, place);
}

void
heap_set(struct heap *heap, struct due *due, int64_t at)
{
  if (due->place == 0) {
    assert(heap->n < heap->room); /* reserved before */
    heap->n++;
    heap_put(heap, due, heap->n);
  }
  assert(heap->dues[due->place] == due);
  due->at = at;
  rise(heap, due);
  sink(heap, due);
  assert(is_in_place(heap, due));
}

void
heap_remove(struct heap *heap, struct due *due)
{
  size_t place = due->place;

  if (place == 0)
    return;
  assert(place <= heap->n && heap->dues[place] == due);
  struct due *last = heap->dues[heap->n--];
  due->place = 0;
  if (last == due)
    return;
  heap_put(heap, last, place);
  rise(heap, last);
  sink(heap, last);
  assert(is_in_place(heap, last));
}
