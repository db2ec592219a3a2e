/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of metrics and adds them up: see sums.h.  Their format is sums-text.c's. */
#include "runner/operate/sums.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runner/cli/message.h"

enum { MOST_BYTES = 16 * 1024 * 1024, BILLION = 1000000000 };

#define A_SAVED_FILE "a file that dk_runtime_save_metrics has written"

/* ---- sums ------------------------------------------------------------------------------------ */

bool
sums_amount_add(struct amount *to, const struct amount *amount)
{
  uint32_t billionths = to->billionths + amount->billionths;

  to->has_point = to->has_point || amount->has_point;
  to->billionths = billionths % BILLION;
  return !__builtin_add_overflow(to->whole, amount->whole, &to->whole)
         && !__builtin_add_overflow(to->whole, billionths / BILLION, &to->whole);
}

static int
by_key(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct family *
sums_find_family(const struct sums *sums, const char *name)
{
  struct family *const *place = tfind(&name, &sums->families_by_name, by_key);

  return place ? *place : NULL;
}

struct family *
sums_family(struct sums *sums, const char *name)
{
  struct family *family = sums_find_family(sums, name);

  if (family)
    return family;
  family = dk_arena_alloc(&sums->arena, sizeof(*family));
  if (!family || !(family->name = dk_arena_strdup(&sums->arena, name))
      || !tsearch(family, &sums->families_by_name, by_key))
    return NULL;
  family->end = &family->first;
  *sums->end = family;
  sums->end = &family->next;
  return family;
}

struct series *
sums_series(struct sums *sums, struct family *family, const char *key)
{
  struct series *const *place = tfind(&key, &sums->series_by_key, by_key);
  struct series *series = place ? *place : NULL;

  if (series)
    return series;
  series = dk_arena_alloc(&sums->arena, sizeof(*series));
  if (!series || !(series->key = dk_arena_strdup(&sums->arena, key))
      || !tsearch(series, &sums->series_by_key, by_key))
    return NULL;
  *family->end = series;
  family->end = &series->next;
  return series;
}

/* The arena owns the nodes of a tree. */
static void
keep_node(void *node)
{
  (void)node;
}

void
sums_done(struct sums *sums)
{
  tdestroy(sums->families_by_name, keep_node);
  tdestroy(sums->series_by_key, keep_node);
  dk_arena_done(&sums->arena);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int
refuse_sums(const char *path, const char *what, const char *expected, const char *found)
{
  message_problem(&(struct problem){path, what, expected, found,
                                    "durakit stats --help shows examples"}, NULL);
  return EXIT_USAGE;
}

/* It is one of the earlier files, perhaps by another path. */
static bool
sums_is_known(const struct stat *files, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (S_ISREG(files[n].st_mode) && files[i].st_dev == files[n].st_dev
        && files[i].st_ino == files[n].st_ino)
      return true;
  return false;
}

/* `bytes` has room for one byte more than is allowed. */
static int
read_file(struct sums *sums, size_t n, char *bytes, struct stat *files)
{
  const char *path = sums->paths[n];
  FILE *file = fopen(path, "re");
  int code = EXIT_PASSED;

  if (!file || fstat(fileno(file), &files[n]) != 0) {
    code = refuse_sums(path, "the file of metrics cannot be read", A_SAVED_FILE, strerror(errno));
  } else if (sums_is_known(files, n)) {
    code = refuse_sums(path, "the file of metrics is given twice", "each file once",
                       "its counts would be added twice");
  } else {
    size_t size = fread(bytes, 1, MOST_BYTES + 1, file);
    if (ferror(file))
      code = refuse_sums(path, "the file of metrics cannot be read", A_SAVED_FILE, strerror(errno));
    else if (size > MOST_BYTES)
      code = refuse_sums(path, "the file of metrics is too large",
                         A_SAVED_FILE ", of 16 MiB at most",
                         NULL);
    else
      code = sums_take_text(sums, n + 1, bytes, size);
  }
  if (file)
    fclose(file);
  return code;
}

int
sums_read(struct sums *sums, const char *const *paths, size_t n,
          bool (*is_taken)(const char *name))
{
  *sums = (struct sums){.paths = paths, .n_files = n, .is_taken = is_taken};
  dk_arena_init(&sums->arena);
  sums->end = &sums->first;
  if (n == 0)
    return EXIT_PASSED;
  char *bytes = malloc(MOST_BYTES + 1);
  struct stat *files = calloc(n, sizeof(*files));
  int code = bytes && files ? EXIT_PASSED : EXIT_ENVIRONMENT;

  if (code != EXIT_PASSED)
    message_print("out of memory");
  for (size_t i = 0; code == EXIT_PASSED && i < n; i++)
    code = read_file(sums, i, bytes, files);
  free(bytes);
  free(files);
  return code;
}
