/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Prometheus' text format (0.0.4) as strictly as it is described, for the tests of the
 * metrics: and what has changed between two texts. */
#ifndef DK_RUNTIME_TESTING_PROMETHEUS_TEXT_H
#define DK_RUNTIME_TESTING_PROMETHEUS_TEXT_H

#include <durakit/runtime.h>

#include <stdbool.h>

enum { SCRAPE_LABELS = 4 };

struct scrape_family {
  char *name, *type, *help;
  bool has_samples;
};

struct scrape_sample {
  size_t n_family;
  const struct scrape_family *family; /* once all is read */
  char *series;                       /* as it was read: "name{label=\"value\"}" */
  char *name;
  char *labels[SCRAPE_LABELS], *values[SCRAPE_LABELS]; /* without escapes */
  size_t n_labels;
  double value;
};

struct scrape {
  struct scrape_family *families;
  size_t n_families;
  struct scrape_sample *samples;
  size_t n_samples;
  size_t line;                        /* that is being read, or where reading ended: */
  char complaint[256];                /* "" if everything is right */
};

/* Without memory it ends the program, but never for a complaint, which the caller checks. */
struct scrape *scrape_read(dk_str text);
void scrape_free(struct scrape *scrape); /* NULL is allowed */
/* 0 if there is no such series. */
double scrape_value(const struct scrape *scrape, const char *series);
/* The sample with this value of its label; NULL: none. */
const struct scrape_sample *scrape_find(const struct scrape *scrape, const char *name,
                                        const char *label, const char *value);
/* "series +1", a line for each that has changed, in the order of `after`; of histograms the count
 * only, because how long something took is not predictable.  Before NULL: all was 0.  The caller
 * frees it. */
char *scrape_changes(const struct scrape *before, const struct scrape *after);
/* Whether the changes are these; in `expected`, +N means any number above 0. */
bool scrape_alike(const char *changes, const char *expected);

#endif
