/* SPDX-License-Identifier: Apache-2.0 */
/* Arena: memory that is allocated piece by piece and freed all at once.
 *
 * An arena belongs to one thread at a time; it has no lock.  It never ends the process: an
 * allocation that fails returns NULL.  Two kinds share the calls below: one grows by malloc, the
 * other uses a region of the caller (for example memory that processes share) and never calls
 * malloc.
 */
#ifndef DK_BASE_ARENA_H
#define DK_BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct dk_arena_block;

/* Public only so that it can be embedded: the members belong to arena.c. */
struct dk_arena {
  struct dk_arena_block *newest; /* pieces come from here; NULL before the first */
  bool fixed;                    /* lives in the caller's region */
};

/* A position to return to: see dk_arena_rewind. */
struct dk_arena_mark {
  struct dk_arena_block *block;
  size_t used;
};

/* An arena that grows by blocks of malloc; the first piece allocates the first block. */
void dk_arena_init(struct dk_arena *arena);

/* An arena inside `region`, which must outlive it.  The arena uses about 32 bytes of the region
 * itself. */
void dk_arena_init_fixed(struct dk_arena *arena, void *region, size_t size);

/* A zeroed piece, aligned to 16 bytes.  A piece of 0 bytes has an address of its own.  NULL: no
 * memory, the region is full, or the size overflows. */
void *dk_arena_alloc(struct dk_arena *arena, size_t size);

/* As dk_arena_alloc, for `count` elements of `size` bytes; NULL as well if the product
 * overflows. */
void *dk_arena_array(struct dk_arena *arena, size_t count, size_t size);

/* A copy of `size` bytes, followed by a NUL that the size does not count.  `bytes` may be NULL if
 * `size` is 0; the result is then an empty string. */
char *dk_arena_copy(struct dk_arena *arena, const void *bytes, size_t size);

/* A copy of a string; NULL gives NULL. */
char *dk_arena_strdup(struct dk_arena *arena, const char *string);

char *dk_arena_printf(struct dk_arena *arena, const char *format, ...)
  __attribute__((format(printf, 2, 3)));
char *dk_arena_vprintf(struct dk_arena *arena, const char *format, va_list args)
  __attribute__((format(printf, 2, 0)));

/* The total size of its blocks. */
size_t dk_arena_size(const struct dk_arena *arena);

/* These bytes of a piece must not be read any more: Valgrind reports any access until the memory is
 * allocated again.  Without Valgrind this does nothing. */
void dk_arena_withdraw(const void *bytes, size_t size);

/* Remembers what is allocated so far; rewinding frees everything that was allocated since.  A
 * rewind or a reset invalidates the marks that were taken after the position it returns to. */
struct dk_arena_mark dk_arena_mark(const struct dk_arena *arena);
void dk_arena_rewind(struct dk_arena *arena, struct dk_arena_mark mark);

/* Frees all pieces and keeps one block, the newest, for later allocations. */
void dk_arena_reset(struct dk_arena *arena);

/* Frees all pieces and all blocks.  NULL is allowed; the arena may be used again, empty. */
void dk_arena_done(struct dk_arena *arena);

#endif
