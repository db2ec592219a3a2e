/* SPDX-License-Identifier: Apache-2.0 */
/* Arena: memory that is given out piece by piece and taken back together.
 *
 * An arena belongs to one thread at a time; it has no lock.  It never ends the process: what cannot
 * be given is NULL.  Two kinds share the calls below: one grows by malloc, the other lives in a
 * region of the caller (a map that processes share, say) and never calls malloc.
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

/* A place to come back to, see dk_arena_rewind. */
struct dk_arena_mark {
  struct dk_arena_block *block;
  size_t used;
};

/* An arena that grows by blocks of malloc; the first block comes with the first piece. */
void dk_arena_init(struct dk_arena *arena);

/* An arena inside `region`, which must outlive it.  Some 32 bytes of the region are its own. */
void dk_arena_init_fixed(struct dk_arena *arena, void *region, size_t size);

/* A zeroed piece, aligned to 16 bytes.  A piece of 0 bytes has an address of its own.
 * NULL: no memory, no room, or more than a size can say. */
void *dk_arena_alloc(struct dk_arena *arena, size_t size);

/* As dk_arena_alloc, for `count` elements of `size` bytes; NULL also if the product overflows. */
void *dk_arena_array(struct dk_arena *arena, size_t count, size_t size);

/* A copy of `size` bytes with a NUL behind it that the size does not count.  `bytes` may be NULL if
 * `size` is 0; the result is then an empty string. */
char *dk_arena_copy(struct dk_arena *arena, const void *bytes, size_t size);

/* A copy of a string; NULL gives NULL. */
char *dk_arena_strdup(struct dk_arena *arena, const char *string);

char *dk_arena_printf(struct dk_arena *arena, const char *format, ...)
  __attribute__((format(printf, 2, 3)));
char *dk_arena_vprintf(struct dk_arena *arena, const char *format, va_list args)
  __attribute__((format(printf, 2, 0)));

/* What its blocks take. */
size_t dk_arena_size(const struct dk_arena *arena);

/* Nobody may look at these bytes of a piece any more: under Valgrind it is found who does, until
 * the room is given out again.  Else nothing happens. */
void dk_arena_withdraw(const void *bytes, size_t size);

/* Remembers what was given out so far; rewinding takes back everything given out since.  A rewind
 * or a reset ends the marks that were taken after the place it goes back to. */
struct dk_arena_mark dk_arena_mark(const struct dk_arena *arena);
void dk_arena_rewind(struct dk_arena *arena, struct dk_arena_mark mark);

/* Takes everything back and keeps one block, the newest, for what comes next. */
void dk_arena_reset(struct dk_arena *arena);

/* Takes everything back and frees it.  NULL is allowed; the arena may be used again, empty. */
void dk_arena_done(struct dk_arena *arena);

#endif
