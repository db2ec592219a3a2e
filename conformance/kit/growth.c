/* SPDX-License-Identifier: Apache-2.0 */
/* What grows from one cycle of open, use and close to the next: see check.h.  A resource that is
 * allocated once, or up to a limit, does not grow in every counted cycle; a leak does. */
#include "conformance/kit/kit.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- malloc ---------------------------------------------------------------------------------- */

#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)

/* Memory that a thread frees may stay in a cache of that thread, and counts as used there.  So the
 * cache is filled, for each size that it takes: then it holds the same at each look. */
static void
fill_own_cache(void)
{
  enum { SMALLEST = 24, LARGEST = 1032, STEP = 16, DEPTH = 7 };
  void *volatile pieces[DEPTH];

  for (size_t size = SMALLEST; size <= LARGEST; size += STEP) {
    for (size_t i = 0; i < DEPTH; i++)
      pieces[i] = malloc(size);
    for (size_t i = 0; i < DEPTH; i++)
      free(pieces[i]);
  }
}

#endif

/* The bytes that malloc has given out and that were not freed; 0 if this cannot be known, and under
 * Valgrind, which reports leaks itself. */
static uint64_t
used_by_malloc(void)
{
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
  if (kit_under_memcheck())
    return 0;
  fill_own_cache();
  struct mallinfo2 info = mallinfo2();

  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

/* The bytes that malloc itself has mapped, used or not; 0 as above. */
static uint64_t
mapped_by_malloc(void)
{
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 33)
  if (kit_under_memcheck())
    return 0;
  struct mallinfo2 info = mallinfo2();

  return info.arena + info.hblkhd;
#else
  return 0;
#endif
}

/* ---- the kinds ------------------------------------------------------------------------------- */

/* The mapped bytes that can be accessed, without malloc's part; 0 if that is not known (a sanitizer
 * or Valgrind, which maps memory of its own).  Pages without access are left out: malloc reserves
 * them, and the host keeps them to guard what it has freed.  Large pieces of malloc's are avoided,
 * because they would change its sum. */
static uint64_t
mapped_outside_malloc(void)
{
  FILE *maps = fopen("/proc/self/maps", "re");
  uint64_t from, to, all = 0, mallocs = mapped_by_malloc();
  char buffer[1024], line[512], rights[4];
  bool at_start = true; /* of a line */

  if (maps == NULL)
    return 0;
  setvbuf(maps, buffer, _IOFBF, sizeof(buffer));
  for (; fgets(line, sizeof(line), maps) != NULL; at_start = strchr(line, '\n') != NULL) {
    if (at_start && sscanf(line, "%" SCNx64 "-%" SCNx64 " %3s", &from, &to, rights) == 3
        && strcmp(rights, "---") != 0)
      all += to - from;
  }
  fclose(maps);
  return mallocs > 0 && all > mallocs ? all - mallocs : 0;
}

/* No function counts them: so this creates all that are free, and deletes them again. */
static uint64_t
thread_keys(void)
{
  pthread_key_t keys[PTHREAD_KEYS_MAX];
  size_t n = 0;

  while (n < PTHREAD_KEYS_MAX && pthread_key_create(&keys[n], NULL) == 0)
    n++;
  for (size_t i = 0; i < n; i++)
    pthread_key_delete(keys[i]);
  return PTHREAD_KEYS_MAX - n;
}

static uint64_t
open_descriptors(void)
{
  DIR *folder = opendir("/proc/self/fd");
  uint64_t n = 0;

  while (folder != NULL && readdir(folder) != NULL)
    n++;
  if (folder != NULL)
    closedir(folder);
  return n;
}

static uint64_t
threads(void)
{
  return kit_count_threads();
}

static const struct {
  uint64_t (*look)(void);
  const char *what, *instead;
  bool varies; /* one cycle may grow less, because the kit itself has freed something */
} kinds[GROWTH_KINDS] = {
  {open_descriptors, "descriptors", "close has closed all that the handle opened", false},
  {threads, "threads", "close has waited for all threads of the handle (pthread_join)", false},
  {used_by_malloc, "bytes of malloc",
   "close has freed all that open and the operations allocated", true},
  {mapped_outside_malloc, "bytes mapped outside malloc",
   "close has unmapped all that open and the operations mapped (mmap, shmat, dlopen)", false},
  {thread_keys, "thread keys (pthread_key_create)",
   "make a key once for the process, or delete it in close", false},
};

/* ---- judging --------------------------------------------------------------------------------- */

static void
note_growth(struct growth *growth, size_t kind, uint64_t grown)
{
  if (growth->cycles == 0 || grown < growth->least[kind]) {
    growth->second[kind] = growth->cycles == 0 ? UINT64_MAX : growth->least[kind];
    growth->least[kind] = grown;
  } else if (grown < growth->second[kind]) {
    growth->second[kind] = grown;
  }
}

void
growth_look(struct growth *growth, bool counts)
{
  for (size_t i = 0; i < GROWTH_KINDS; i++) {
    uint64_t is = kinds[i].look(), was = growth->last[i];
    uint64_t grown = is > was ? is - was : 0;

    growth->last[i] = is;
    if (counts)
      note_growth(growth, i, grown);
  }
  growth->cycles += counts ? 1 : 0;
}

void
expect_no_growth(struct dk_check *t, const struct growth *growth)
{
  char found[128];

  for (size_t i = 0; i < GROWTH_KINDS; i++) {
    uint64_t grown = kinds[i].varies ? growth->second[i] : growth->least[i];
    uint32_t cycles = growth->cycles - (kinds[i].varies ? 1 : 0);

    if (growth->cycles < 2 || grown == 0)
      continue;
    snprintf(found, sizeof(found), "at least %" PRIu64 " more %s after each cycle",
             grown, kinds[i].what);
    snprintf(t->report->clause, sizeof(t->report->clause), "CALL-8");
    kit_fail(t, VERDICT_FAIL, NULL, kinds[i].instead, found,
             "%u of the last %u cycles of open, use and close left at least %" PRIu64 " more %s",
             cycles, growth->cycles, grown, kinds[i].what);
  }
}
