/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of arena.h, in both kinds: growing and in a region. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "config.h"

#include "conformance/tap/tap.h"
#include "core/base/arena.h"

#if HAVE_VALGRIND
#include <valgrind/memcheck.h>
#endif

enum { REGION = 8192, HEADER = 32 };

/* A request that no machine can satisfy must be refused here as elsewhere, not end the test. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
  return "allocator_may_return_null=1";
}

static bool
is_zero(const char *bytes, size_t size)
{
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != 0)
      return false;
  return true;
}

static bool
is_aligned(const void *piece)
{
  return (uintptr_t)piece % 16 == 0;
}

/* Pieces of 1 to 500 bytes, each filled with its own byte: none may lie over another. */
static void
pieces_are_apart(struct dk_arena *arena, size_t count, const char *kind)
{
  unsigned char *pieces[500];
  unsigned damaged = 0, unaligned = 0, dirty = 0;

  for (size_t i = 0; i < count; i++) {
    pieces[i] = dk_arena_alloc(arena, i + 1);
    if (!pieces[i])
      BAIL_OUT("%s: no piece of %zu bytes", kind, i + 1);
    unaligned += !is_aligned(pieces[i]);
    dirty += !is_zero((char *)pieces[i], i + 1);
    memset(pieces[i], (int)(i % 251), i + 1);
  }
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k <= i; k++)
      damaged += pieces[i][k] != i % 251;
  cmp_ok(damaged, "==", 0, "%s: no piece lies over another", kind);
  cmp_ok(unaligned, "==", 0, "%s: all are aligned", kind);
  cmp_ok(dirty, "==", 0, "%s: all are zeroed", kind);
}

static void
empty_pieces(struct dk_arena *arena, const char *kind)
{
  void *first = dk_arena_alloc(arena, 0);
  void *second = dk_arena_array(arena, 0, 100);
  char *copy = dk_arena_copy(arena, NULL, 0);

  ok(first && second && first != second, "%s: pieces of no bytes have their own addresses", kind);
  is(copy, "", "%s: a copy of nothing is an empty string", kind);
}

static void
refusals(struct dk_arena *arena, const char *kind)
{
  struct dk_arena_mark before = dk_arena_mark(arena);

  ok(!dk_arena_alloc(arena, SIZE_MAX), "%s: the largest size is refused", kind);
  ok(!dk_arena_alloc(arena, SIZE_MAX - 8), "%s: nearly the largest size is refused", kind);
  ok(!dk_arena_alloc(arena, (size_t)PTRDIFF_MAX), "%s: more than an address space", kind);
  ok(!dk_arena_alloc(arena, (size_t)PTRDIFF_MAX - 256), "%s: all of an address space", kind);
  ok(!dk_arena_array(arena, SIZE_MAX / 2 + 1, 2), "%s: a product that overflows to 0", kind);
  ok(!dk_arena_array(arena, SIZE_MAX / 4, 8), "%s: a product that overflows", kind);
  ok(!dk_arena_copy(arena, "x", SIZE_MAX), "%s: a copy whose NUL overflows", kind);
  struct dk_arena_mark after = dk_arena_mark(arena);
  ok(before.block == after.block && before.used == after.used, "%s: a refusal takes nothing", kind);
}

static void
strings(struct dk_arena *arena, const char *kind)
{
  char *copy = dk_arena_copy(arena, "a\0bXX", 3);
  char long_text[300];

  cmp_mem(copy, "a\0b", 4, "%s: a copy has its bytes and a NUL", kind);
  is(dk_arena_strdup(arena, "text"), "text", "%s: a string", kind);
  is(dk_arena_strdup(arena, NULL), NULL, "%s: no string", kind);
  is(dk_arena_printf(arena, "%s-%d", "row", 7), "row-7", "%s: a format", kind);
  is(dk_arena_printf(arena, "%s", ""), "", "%s: a format that gives nothing", kind);
  memset(long_text, 'x', sizeof(long_text) - 1);
  long_text[sizeof(long_text) - 1] = '\0';
  is(dk_arena_printf(arena, "%s", long_text), long_text, "%s: a long format", kind);
  ok(!dk_arena_printf(arena, "%lc", (wint_t)0x7fffffff), "%s: a format that fails", kind);
}

static void
rewinding(struct dk_arena *arena, const char *kind)
{
  char *kept = dk_arena_strdup(arena, "kept");
  struct dk_arena_mark mark = dk_arena_mark(arena);
  char *given = dk_arena_alloc(arena, 100);

  memset(given, 'x', 100);
  dk_arena_rewind(arena, mark);
  char *again = dk_arena_alloc(arena, 100);
  ok(again == given, "%s: after a rewind the same room is given again", kind);
  ok(is_zero(again, 100), "%s: and it is zeroed again", kind);
  is(kept, "kept", "%s: what came before the mark is still there", kind);

  dk_arena_rewind(arena, mark);
  dk_arena_rewind(arena, mark);
  ok(dk_arena_alloc(arena, 100) == given, "%s: a mark may be used twice", kind);
}

static void
everything(struct dk_arena *arena, size_t pieces, const char *kind)
{
  rewinding(arena, kind);
  strings(arena, kind);
  empty_pieces(arena, kind);
  refusals(arena, kind);
  dk_arena_reset(arena);
  pieces_are_apart(arena, pieces, kind);
  dk_arena_reset(arena);
  pieces_are_apart(arena, pieces, kind);
  dk_arena_done(arena);
  dk_arena_done(arena);
  is(dk_arena_strdup(arena, "once more"), "once more", "%s: it can be used after its end", kind);
  dk_arena_done(arena);
}

static void
growing(void)
{
  struct dk_arena arena;

  dk_arena_init(&arena);
  struct dk_arena_mark empty = dk_arena_mark(&arena);
  ok(!empty.block, "an arena that was not used has no block");
  everything(&arena, 500, "growing");

  dk_arena_init(&arena);
  char *large = dk_arena_alloc(&arena, 3000000);
  ok(large && is_zero(large, 3000000), "a piece larger than any usual block");
  ok(dk_arena_alloc(&arena, 10), "and a small one after it");
  dk_arena_rewind(&arena, empty);
  ok(!arena.newest, "a rewind to the empty arena gives all blocks back");

  for (int i = 0; i < 1000; i++)
    dk_arena_alloc(&arena, 1000);
  dk_arena_reset(&arena);
  ok(arena.newest, "a reset keeps a block");
  struct dk_arena_block *kept = arena.newest;
  dk_arena_alloc(&arena, 1000);
  ok(arena.newest == kept, "and uses it");
  dk_arena_done(&arena);
  ok(!arena.newest, "the end gives all blocks back");
  dk_arena_reset(&arena);
  dk_arena_done(NULL);
  pass("an empty arena can be reset, and none can be ended");
}

/* A mark in an older block: the rewind frees the newer blocks and goes back in that one. */
static void
rewinding_over_blocks(void)
{
  struct dk_arena arena;

  dk_arena_init(&arena);
  char *kept = dk_arena_strdup(&arena, "kept");
  struct dk_arena_mark mark = dk_arena_mark(&arena);
  char *next = dk_arena_alloc(&arena, 16);
  for (int i = 0; i < 100; i++)
    dk_arena_alloc(&arena, 4000);
  ok(arena.newest != mark.block, "there are newer blocks than the mark's");
  dk_arena_rewind(&arena, mark);
  ok(arena.newest == mark.block, "the rewind goes back to the block of the mark");
  ok(dk_arena_alloc(&arena, 16) == (void *)next, "to the place in it");
  is(kept, "kept", "and what came before is still there");
  dk_arena_done(&arena);
}

/* A fixed arena gives every byte of its region but the header, and not one more. */
static void
room_of_a_region(size_t offset)
{
  char *region = malloc(REGION + offset + 1);
  struct dk_arena arena;
  size_t pieces = 0;

  if (!region)
    BAIL_OUT("out of memory");
  memset(region, 'x', REGION + offset + 1);
  char *start = region + offset;
  dk_arena_init_fixed(&arena, start, REGION);
  for (char *piece; (piece = dk_arena_alloc(&arena, 16)); pieces++)
    memset(piece, 'y', 16);
  size_t lost = offset % 16 ? 16 : 0;
  cmp_ok(pieces, "==", (REGION - HEADER - lost) / 16, "offset %zu: as many pieces as fit", offset);
  ok(region[offset + REGION] == 'x', "offset %zu: nothing is written behind the region", offset);
  ok(offset == 0 || start[-1] == 'x', "offset %zu: nothing is written before it", offset);
  dk_arena_done(&arena);
  ok(dk_arena_alloc(&arena, 16), "offset %zu: it is empty after its end", offset);
  free(region);
}

static void
in_a_region(void)
{
  static _Alignas(16) char large[1 << 18];
  struct dk_arena arena;

  dk_arena_init_fixed(&arena, large, sizeof(large));
  everything(&arena, 400, "in a region");
  ok(!dk_arena_alloc(&arena, sizeof(large)), "more than the region is refused");
  ok(dk_arena_alloc(&arena, sizeof(large) - HEADER), "all of the room is given");
  ok(!dk_arena_alloc(&arena, 0), "and then not even a piece of no bytes");

  room_of_a_region(0);
  room_of_a_region(1);
  room_of_a_region(15);
  dk_arena_init_fixed(&arena, large, HEADER - 1);
  ok(!dk_arena_alloc(&arena, 0), "a region smaller than a header has no room");
  dk_arena_init_fixed(&arena, large + 1, HEADER);
  ok(!dk_arena_alloc(&arena, 0), "nor one that is too small once it is aligned");
  dk_arena_init_fixed(&arena, NULL, 100);
  ok(!dk_arena_alloc(&arena, 0), "nor no region");
  dk_arena_reset(&arena);
  dk_arena_rewind(&arena, dk_arena_mark(&arena));
  dk_arena_done(&arena);
  pass("an arena without a region can be reset, rewound and ended");
}

/* The parent reads what a forked child puts into an arena of a shared map, and continues there. */
static void
shared_with_a_child(void)
{
  struct shared {
    struct dk_arena arena;
    char *from_child;
    _Alignas(16) char region[REGION];
  };
  struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

  if (shared == MAP_FAILED)
    BAIL_OUT("no shared map");
  dk_arena_init_fixed(&shared->arena, shared->region, sizeof(shared->region));
  pid_t child = fork();
  if (child == 0) {
    shared->from_child = dk_arena_strdup(&shared->arena, "said by the child");
    _exit(0);
  }
  int status = -1;
  ok(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child ended well");
  is(shared->from_child, "said by the child", "the parent reads what the child has put there");
  char *next = dk_arena_strdup(&shared->arena, "the parent's");
  ok(next && next != shared->from_child, "and its own piece lies elsewhere");
  is(shared->from_child, "said by the child", "so that the child's is as it was");
  munmap(shared, sizeof(*shared));
}

/* How many of these bytes may be used, as Valgrind sees it; all of them, if it does not look. */
static size_t
usable(const char *bytes, size_t size)
{
  uintptr_t wrong = 0;

#if HAVE_VALGRIND
  VALGRIND_DISABLE_ERROR_REPORTING;
  wrong = (uintptr_t)VALGRIND_CHECK_MEM_IS_ADDRESSABLE(bytes, size);
  VALGRIND_ENABLE_ERROR_REPORTING;
#endif
  return wrong == 0 ? size : wrong - (uintptr_t)bytes;
}

static bool
is_watched(void)
{
#if HAVE_VALGRIND
  return RUNNING_ON_VALGRIND != 0;
#else
  return false;
#endif
}

static void
withdrawn(void)
{
  struct dk_arena arena;

  dk_arena_init(&arena);
  struct dk_arena_mark begin = dk_arena_mark(&arena);
  char *piece = dk_arena_alloc(&arena, 20);
  cmp_ok(usable(piece, 20), "==", 20, "a piece can be used as far as it was asked for");
  cmp_ok(usable(piece, 32), "==", is_watched() ? 20 : 32, "and no further, under Valgrind");
  dk_arena_withdraw(piece + 4, 8);
  cmp_ok(usable(piece, 20), "==", is_watched() ? 4 : 20, "nor can bytes that were withdrawn");
  dk_arena_rewind(&arena, begin);
  char *again = dk_arena_alloc(&arena, 32);
  cmp_ok(usable(again, 32), "==", 32, "room that is given out again can be used");
  ok(is_zero(again, 32), "and is all zeros");
  dk_arena_done(&arena);
}

int
main(void)
{
  shared_with_a_child(); /* first: it forks, and Valgrind takes what we hold then for its leaks */
  growing();
  rewinding_over_blocks();
  in_a_region();
  withdrawn();
  return done_testing();
}
