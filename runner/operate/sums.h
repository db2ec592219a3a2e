/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics that runtimes have saved (dk_runtime_save_metrics): read from files, and added up
 * series by series.  One thread at a time.
 *
 * The format is the part of Prometheus' text (0.0.4) that a runtime writes: counters, gauges and
 * histograms with HELP and TYPE, whole numbers up to 2^64-1, or numbers with up to nine decimals.
 * Anything else is refused: a wrong number is worse than none.
 */
#ifndef DK_RUNNER_OPERATE_SUMS_H
#define DK_RUNNER_OPERATE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "runner/cli/printer.h"

/* Exact: billionths are counted separately. */
struct amount {
  uint64_t whole;
  uint32_t billionths;
  bool has_point;  /* shown with decimals */
};

enum sample_kind { SAMPLE_PLAIN, SAMPLE_BUCKET, SAMPLE_SUM, SAMPLE_COUNT };

/* Nodes of the trees begin with their key. */
struct series {
  const char *key;   /* its name and its labels, sorted by their names */
  const char *text;  /* name{label="value",...}, as it was written first */
  enum sample_kind kind;
  struct amount amount;
  size_t n_file;     /* the last file that had it, from 1 on */
  struct series *next;
};

/* The "le" of a bucket. */
struct bound {
  const char *text;
  struct bound *next;
};

struct family {
  const char *name;
  const char *type, *help;  /* NULL: not read yet */
  struct series *first, **end;
  struct bound *bounds;     /* the same for all its histograms */
  bool has_bounds;
  size_t n_file;
  struct family *next;
};

struct sums {
  struct dk_arena arena;
  void *families_by_name, *series_by_key;
  struct family *first, **end;  /* in the order in which they were read */
  const char *const *paths;
  size_t n_files;
  /* Whether the store has a family of this name. */
  bool (*is_taken)(const char *name);
};

/* Reads all files.  EXIT_PASSED; or after a message EXIT_USAGE, if a file is wrong, or
 * EXIT_ENVIRONMENT.  sums_done must follow in any case. */
int sums_read(struct sums *sums, const char *const *paths, size_t n,
              bool (*is_taken)(const char *name));
void sums_done(struct sums *sums);

/* Adds; false: the sum is too large. */
bool sums_amount_add(struct amount *to, const struct amount *amount);
/* NULL: out of memory. */
struct family *sums_family(struct sums *sums, const char *name);
struct family *sums_find_family(const struct sums *sums, const char *name);
struct series *sums_series(struct sums *sums, struct family *family, const char *key);

/* The text of a file, whose lines are parsed in place; the same codes. */
int sums_take_text(struct sums *sums, size_t n_file, char *text, size_t size);
/* Reads the valid label at `at`, after a brace or a comma: its name and its value without escapes;
 * returns what follows it. */
const char *sums_label(const char *at, struct dk_text *ret_name, struct dk_text *ret_value);

/* For people: without zeros and buckets. */
void sums_tell(const struct sums *sums, struct printer *printer);
void sums_tell_prometheus(const struct sums *sums, struct printer *printer);
json_t *sums_json(const struct sums *sums);

#endif
