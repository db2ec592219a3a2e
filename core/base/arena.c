/* SPDX-License-Identifier: Apache-2.0 */
/* Arena: see arena.h.  Owns its blocks, a list from the newest to the oldest; pieces are taken
 * from the newest only, so that a mark is one block and one offset. */
#include "config.h"

#include "core/base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if HAVE_VALGRIND
#include <valgrind/memcheck.h>
#endif

enum { ALIGNMENT = 16, SMALLEST_BLOCK = 4096, LARGEST_USUAL_BLOCK = 1024 * 1024 };

/* The usable memory begins after the header; `size` and `used` count only this memory. */
struct dk_arena_block {
  _Alignas(ALIGNMENT) struct dk_arena_block *older;
  size_t size;
  size_t used;
};

/* Rounds a request up to a multiple of the alignment, at least one; false if that exceeds
 * SIZE_MAX. */
static bool
whole_pieces(size_t size, size_t *ret_size)
{
  if (size > (size_t)PTRDIFF_MAX - sizeof(struct dk_arena_block) - ALIGNMENT)
    return false;
  if (size == 0)
    size = 1;
  *ret_size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return true;
}

static bool
has_room(const struct dk_arena *arena, size_t size)
{
  return arena->newest && arena->newest->size - arena->newest->used >= size;
}

/* Zeroes a piece.  For Valgrind: memory that is allocated again may be used, but not beyond the
 * size requested.  Nothing is marked in a region that processes share: Valgrind's marks hold in one
 * process only.
 */
static void
clear(const struct dk_arena *arena, char *piece, size_t size, size_t whole)
{
#if HAVE_VALGRIND
  VALGRIND_MAKE_MEM_UNDEFINED(piece, whole);
  memset(piece, 0, whole);
  if (!arena->fixed)
    VALGRIND_MAKE_MEM_NOACCESS(piece + size, whole - size);
#else
  (void)arena;
  (void)size;
  memset(piece, 0, whole);
#endif
}

/* Blocks double, so that many small pieces cost few calls of malloc. */
static size_t
next_block_size(const struct dk_arena *arena, size_t at_least)
{
  size_t size = SMALLEST_BLOCK;

  if (arena->newest)
    size = arena->newest->size < LARGEST_USUAL_BLOCK / 2 ? arena->newest->size * 2
                                                          : LARGEST_USUAL_BLOCK;
  return size < at_least ? at_least : size;
}

static bool
add_block(struct dk_arena *arena, size_t at_least)
{
  if (arena->fixed)
    return false;

  size_t size = next_block_size(arena, at_least);
  struct dk_arena_block *block = malloc(sizeof(*block) + size);
  if (!block)
    return false;
  *block = (struct dk_arena_block){.older = arena->newest, .size = size};
  arena->newest = block;
  return true;
}

static void
free_newest(struct dk_arena *arena)
{
  struct dk_arena_block *block = arena->newest;

  assert(!arena->fixed); /* all its marks name its one block, so that no block is ever newer */
  arena->newest = block->older;
  free(block);
}

void
dk_arena_init(struct dk_arena *arena)
{
  *arena = (struct dk_arena){.fixed = false};
}

void
dk_arena_init_fixed(struct dk_arena *arena, void *region, size_t size)
{
  size_t skip = (ALIGNMENT - (uintptr_t)region % ALIGNMENT) % ALIGNMENT;

  *arena = (struct dk_arena){.fixed = true};
  if (!region || size < skip + sizeof(struct dk_arena_block))
    return; /* no block: every request is refused */
  arena->newest = (void *)((char *)region + skip);
  *arena->newest =
    (struct dk_arena_block){.size = size - skip - sizeof(struct dk_arena_block)};
}

void *
dk_arena_alloc(struct dk_arena *arena, size_t size)
{
  size_t whole;

  if (!whole_pieces(size, &whole))
    return NULL;
  if (!has_room(arena, whole) && !add_block(arena, whole))
    return NULL;

  char *piece = (char *)(arena->newest + 1) + arena->newest->used;
  arena->newest->used += whole;
  /* Memory is used again after a rewind, so it must be cleared here. */
  clear(arena, piece, size, whole);
  return piece;
}

void *
dk_arena_array(struct dk_arena *arena, size_t count, size_t size)
{
  size_t total;

  if (__builtin_mul_overflow(count, size, &total))
    return NULL;
  return dk_arena_alloc(arena, total);
}

char *
dk_arena_copy(struct dk_arena *arena, const void *bytes, size_t size)
{
  size_t with_nul;

  if (__builtin_add_overflow(size, 1, &with_nul))
    return NULL;
  char *copy = dk_arena_alloc(arena, with_nul);
  if (copy && size > 0)
    memcpy(copy, bytes, size);
  return copy;
}

char *
dk_arena_strdup(struct dk_arena *arena, const char *string)
{
  return string ? dk_arena_copy(arena, string, strlen(string)) : NULL;
}

char *
dk_arena_vprintf(struct dk_arena *arena, const char *format, va_list args)
{
  va_list again;
  char *text = NULL;

  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  if (length >= 0)
    text = dk_arena_alloc(arena, (size_t)length + 1);
  if (text)
    vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return text;
}

char *
dk_arena_printf(struct dk_arena *arena, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  char *text = dk_arena_vprintf(arena, format, args);
  va_end(args);
  return text;
}

size_t
dk_arena_size(const struct dk_arena *arena)
{
  size_t size = 0;

  for (const struct dk_arena_block *block = arena->newest; block; block = block->older)
    size += sizeof(*block) + block->size;
  return size;
}

void
dk_arena_withdraw(const void *bytes, size_t size)
{
#if HAVE_VALGRIND
  VALGRIND_MAKE_MEM_NOACCESS(bytes, size);
#else
  (void)bytes;
  (void)size;
#endif
}

struct dk_arena_mark
dk_arena_mark(const struct dk_arena *arena)
{
  return (struct dk_arena_mark){
    .block = arena->newest,
    .used = arena->newest ? arena->newest->used : 0,
  };
}

void
dk_arena_rewind(struct dk_arena *arena, struct dk_arena_mark mark)
{
  while (arena->newest && arena->newest != mark.block)
    free_newest(arena);

  /* A mark names a block that still exists, or none if the arena had none. */
  assert(arena->newest == mark.block);
  if (arena->newest)
    arena->newest->used = mark.used;
}

void
dk_arena_reset(struct dk_arena *arena)
{
  if (!arena->newest)
    return;

  struct dk_arena kept = {.newest = arena->newest->older, .fixed = arena->fixed};
  arena->newest->older = NULL;
  arena->newest->used = 0;
  while (kept.newest)
    free_newest(&kept);
}

void
dk_arena_done(struct dk_arena *arena)
{
  if (!arena)
    return;
  if (arena->fixed) {
    dk_arena_reset(arena); /* the region is the caller's; it is empty and can be used again */
    return;
  }
  while (arena->newest)
    free_newest(arena);
}
