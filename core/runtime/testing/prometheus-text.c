/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Prometheus' text format: see prometheus-text.h. */
#include "core/runtime/testing/prometheus-text.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

/* ---- help ------------------------------------------------------------------------------------ */

static void *
enough(void *memory)
{
  if (!memory)
    BAIL_OUT("no memory to read metrics with");
  return memory;
}

static char *
piece(const char *from, const char *to)
{
  return enough(strndup(from, (size_t)(to - from)));
}

/* The first complaint is kept; returns false, which the caller can return. */
__attribute__((format(printf, 2, 3))) static bool
complain(struct scrape *scrape, const char *format, ...)
{
  va_list args;
  int n = 0;

  if (scrape->complaint[0])
    return false;
  if (scrape->line > 0)
    n = snprintf(scrape->complaint, sizeof(scrape->complaint), "line %zu: ", scrape->line);
  va_start(args, format);
  vsnprintf(scrape->complaint + n, sizeof(scrape->complaint) - (size_t)n, format, args);
  va_end(args);
  return false;
}

/* Behind a name; NULL: there is none.  Those of metrics may have colons, too. */
static const char *
end_of_name(const char *at, bool has_colons)
{
  if (!isalpha((unsigned char)*at) && *at != '_' && !(has_colons && *at == ':'))
    return NULL;
  while (isalnum((unsigned char)*at) || *at == '_' || (has_colons && *at == ':'))
    at++;
  return at;
}

/* ---- comments -------------------------------------------------------------------------------- */

static struct scrape_family *
family_named(struct scrape *scrape, const char *name)
{
  for (size_t i = 0; i < scrape->n_families; i++)
    if (strcmp(scrape->families[i].name, name) == 0)
      return &scrape->families[i];
  return NULL;
}

static struct scrape_family *
last_family(struct scrape *scrape)
{
  return scrape->n_families == 0 ? NULL : &scrape->families[scrape->n_families - 1];
}

/* The family that is being read, or a new one; its lines have to be together. */
static struct scrape_family *
family_of_comment(struct scrape *scrape, char *name)
{
  struct scrape_family *last = last_family(scrape);

  if (last && strcmp(last->name, name) == 0 && !last->has_samples) {
    free(name);
    return last;
  }
  if (family_named(scrape, name)) {
    complain(scrape, "%s was described before: its lines have to be together", name);
    free(name);
    return NULL;
  }
  scrape->families =
    enough(realloc(scrape->families, (scrape->n_families + 1) * sizeof(*scrape->families)));
  scrape->families[scrape->n_families++] = (struct scrape_family){.name = name};
  return last_family(scrape);
}

static bool
read_help(struct scrape *scrape, struct scrape_family *family, const char *at, const char *end)
{
  if (family->help)
    return complain(scrape, "a second HELP of %s", family->name);
  for (const char *c = at; c < end; c++)
    if (*c == '\\' && (++c == end || (*c != '\\' && *c != 'n')))
      return complain(scrape, "HELP has an invalid escape");
  family->help = piece(at, end);
  return true;
}

static bool
read_type(struct scrape *scrape, struct scrape_family *family, const char *at, const char *end)
{
  static const char *const types[] = {"counter", "gauge", "histogram", "summary", "untyped"};

  if (family->type)
    return complain(scrape, "a second TYPE of %s", family->name);
  family->type = piece(at, end);
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
    if (strcmp(family->type, types[i]) == 0)
      return true;
  return complain(scrape, "%s is not a type", family->type);
}

static bool
read_comment(struct scrape *scrape, const char *at, const char *end)
{
  bool is_help = strncmp(at, "# HELP ", 7) == 0;

  if (!is_help && strncmp(at, "# TYPE ", 7) != 0)
    return true; /* for people */
  const char *name = at + 7, *behind = end_of_name(name, true);
  if (!behind || *behind != ' ')
    return complain(scrape, "HELP and TYPE are followed by a metric's name and a blank");
  struct scrape_family *family = family_of_comment(scrape, piece(name, behind));
  if (!family)
    return false;
  return is_help ? read_help(scrape, family, behind + 1, end)
                 : read_type(scrape, family, behind + 1, end);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* A quoted value without its escapes; behind the quote, or NULL. */
static const char *
read_value(struct scrape *scrape, const char *at, const char *end, char **ret_value)
{
  char *to = *ret_value = enough(calloc(1, (size_t)(end - at) + 1));

  if (*at++ != '"')
    complain(scrape, "a label's value begins with a quote");
  for (; at < end && *at != '"' && !scrape->complaint[0]; at++) {
    bool is_escaped = *at == '\\';
    if (is_escaped && (++at == end || !strchr("\\\"n", *at)))
      complain(scrape, "\\%c is not an escape", at == end ? ' ' : *at);
    *to++ = is_escaped && *at == 'n' ? '\n' : *at;
  }
  if (at == end)
    complain(scrape, "a label's value ends with a quote");
  return scrape->complaint[0] ? NULL : at + 1;
}

/* Behind the brace, or NULL. */
static const char *
read_labels(struct scrape *scrape, struct scrape_sample *sample, const char *at, const char *end)
{
  while (at && *at != '}') {
    const char *behind = end_of_name(at, false);
    if (!behind || *behind != '=' || sample->n_labels == SCRAPE_LABELS) {
      complain(scrape, "a label is a name and =, and there are %d at most", SCRAPE_LABELS);
      return NULL;
    }
    sample->labels[sample->n_labels] = piece(at, behind);
    at = read_value(scrape, behind + 1, end, &sample->values[sample->n_labels++]);
    if (at && *at == ',')
      at++;
    else if (at && *at != '}')
      complain(scrape, "labels are separated by commas, and end with a brace");
    if (scrape->complaint[0])
      return NULL;
  }
  return at ? at + 1 : NULL;
}

static bool
read_number(struct scrape *scrape, struct scrape_sample *sample, const char *at, const char *end)
{
  char *text = piece(at, end), *behind;

  sample->value = strtod(text, &behind);
  bool is_number = *text && !isspace((unsigned char)*text) && *behind == '\0';
  free(text);
  return is_number || complain(scrape, "a blank and a number end the line");
}

static bool
has_suffix(const struct scrape_family *family, const char *name, const char *suffix)
{
  size_t length = strlen(family->name);

  return strncmp(name, family->name, length) == 0 && strcmp(name + length, suffix) == 0;
}

/* The sample belongs to the family whose comments are above it. */
static bool
find_family(struct scrape *scrape, struct scrape_sample *sample)
{
  struct scrape_family *last = last_family(scrape);
  const char *name = sample->name;

  if (!last || !last->help || !last->type)
    return complain(scrape, "%s has no HELP and TYPE before it", name);
  bool is_histogram = strcmp(last->type, "histogram") == 0;
  if (is_histogram ? !has_suffix(last, name, "_bucket") && !has_suffix(last, name, "_sum") &&
                       !has_suffix(last, name, "_count")
                   : !has_suffix(last, name, ""))
    return complain(scrape, "%s does not belong to %s, above it", name, last->name);
  last->has_samples = true;
  sample->n_family = scrape->n_families - 1;
  for (size_t i = 0; i < scrape->n_samples; i++)
    if (strcmp(scrape->samples[i].series, sample->series) == 0)
      return complain(scrape, "%s was listed before", sample->series);
  if (strcmp(last->type, "gauge") != 0 && !(sample->value >= 0))
    return complain(scrape, "%s is less than 0", sample->series);
  return true;
}

static bool
read_sample(struct scrape *scrape, const char *at, const char *end)
{
  struct scrape_sample *sample;
  const char *behind = end_of_name(at, true);

  scrape->samples =
    enough(realloc(scrape->samples, (scrape->n_samples + 1) * sizeof(*scrape->samples)));
  sample = &scrape->samples[scrape->n_samples];
  *sample = (struct scrape_sample){.name = piece(at, behind ? behind : at)};
  const char *value = behind && *behind == '{' ? read_labels(scrape, sample, behind + 1, end)
                                               : behind;
  sample->series = piece(at, value ? value : at);
  bool is_right = value && *value == ' '
                    ? read_number(scrape, sample, value + 1, end)
                    : complain(scrape, "a line begins with a metric and a blank");
  is_right = is_right && find_family(scrape, sample);
  scrape->n_samples++;
  return is_right;
}

/* ---- histograms ------------------------------------------------------------------------------ */

/* The same labels, except for "le", which is the last of a bucket. */
static bool
is_beside(const struct scrape_sample *a, const struct scrape_sample *b, size_t n_labels)
{
  for (size_t i = 0; i < n_labels; i++)
    if (strcmp(a->labels[i], b->labels[i]) != 0 || strcmp(a->values[i], b->values[i]) != 0)
      return false;
  return true;
}

/* A row of buckets that begins here: bounds and counts rise, the last is +Inf and the count; how
 * many they are. */
static size_t
check_buckets(struct scrape *scrape, size_t from)
{
  const struct scrape_sample *first = &scrape->samples[from], *last = first;
  double bound = -INFINITY, n = 0;
  size_t i = from;

  for (; i < scrape->n_samples && has_suffix(first->family, scrape->samples[i].name, "_bucket") &&
         bound < INFINITY; i++) {
    last = &scrape->samples[i];
    size_t le = last->n_labels - 1;
    if (last->n_labels != first->n_labels || strcmp(last->labels[le], "le") != 0 ||
        !is_beside(first, last, le))
      complain(scrape, "%s is not a bucket of its histogram", last->series);
    if (strtod(last->values[le], NULL) <= bound || last->value < n)
      complain(scrape, "%s is less than the bucket before it", last->series);
    bound = strtod(last->values[le], NULL);
    n = last->value;
  }
  if (bound < INFINITY || i + 2 > scrape->n_samples) {
    complain(scrape, "the buckets of %s do not end with +Inf, a sum and a count", first->series);
    return i - from + 1;
  }
  const struct scrape_sample *sum = &scrape->samples[i], *count = sum + 1;
  if (!has_suffix(first->family, sum->name, "_sum") ||
      !has_suffix(first->family, count->name, "_count") ||
      !is_beside(first, sum, first->n_labels - 1) || !is_beside(first, count, first->n_labels - 1))
    complain(scrape, "the buckets of %s are not followed by their sum and count", first->series);
  else if (count->value != n)
    complain(scrape, "%s differs from the bucket +Inf", count->series);
  return i - from + 2;
}

static void
check_histograms(struct scrape *scrape)
{
  scrape->line = 0;
  for (size_t i = 0; i < scrape->n_samples && !scrape->complaint[0];) {
    if (strcmp(scrape->samples[i].family->type, "histogram") != 0)
      i++;
    else if (!has_suffix(scrape->samples[i].family, scrape->samples[i].name, "_bucket"))
      complain(scrape, "%s has no buckets before it", scrape->samples[i].series);
    else
      i += check_buckets(scrape, i);
  }
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct scrape *
scrape_read(dk_str text)
{
  struct scrape *scrape = enough(calloc(1, sizeof(*scrape)));
  const char *at = text.ptr, *end = text.ptr + text.len;

  if (text.len == 0 || end[-1] != '\n')
    complain(scrape, "the text does not end with a line");
  else if (!dk_utf8_valid(text.ptr, text.len) || memchr(text.ptr, '\0', text.len))
    complain(scrape, "the text is not UTF-8, or has a NUL");
  while (at < end && !scrape->complaint[0]) {
    const char *behind = memchr(at, '\n', (size_t)(end - at));
    scrape->line++;
    if (*at == '#')
      read_comment(scrape, at, behind);
    else if (at < behind)
      read_sample(scrape, at, behind);
    at = behind + 1;
  }
  if (scrape->complaint[0])
    return scrape;
  for (size_t i = 0; i < scrape->n_samples; i++) /* the families move no more */
    scrape->samples[i].family = &scrape->families[scrape->samples[i].n_family];
  check_histograms(scrape);
  return scrape;
}

void
scrape_free(struct scrape *scrape)
{
  if (!scrape)
    return;
  for (size_t i = 0; i < scrape->n_families; i++) {
    free(scrape->families[i].name);
    free(scrape->families[i].type);
    free(scrape->families[i].help);
  }
  for (size_t i = 0; i < scrape->n_samples; i++) {
    struct scrape_sample *sample = &scrape->samples[i];
    for (size_t label = 0; label < sample->n_labels; label++) {
      free(sample->labels[label]);
      free(sample->values[label]);
    }
    free(sample->series);
    free(sample->name);
  }
  free(scrape->families);
  free(scrape->samples);
  free(scrape);
}

/* ---- values and changes ---------------------------------------------------------------------- */

double
scrape_value(const struct scrape *scrape, const char *series)
{
  for (size_t i = 0; scrape && i < scrape->n_samples; i++)
    if (strcmp(scrape->samples[i].series, series) == 0)
      return scrape->samples[i].value;
  return 0;
}

const struct scrape_sample *
scrape_find(const struct scrape *scrape, const char *name, const char *label, const char *value)
{
  for (size_t i = 0; i < scrape->n_samples; i++) {
    const struct scrape_sample *sample = &scrape->samples[i];
    for (size_t at = 0; at < sample->n_labels; at++)
      if (strcmp(sample->name, name) == 0 && strcmp(sample->labels[at], label) == 0 &&
          strcmp(sample->values[at], value) == 0)
        return sample;
  }
  return NULL;
}

static bool
is_a_duration(const struct scrape_sample *sample)
{
  return strcmp(sample->family->type, "histogram") == 0 &&
         !has_suffix(sample->family, sample->name, "_count");
}

char *
scrape_changes(const struct scrape *before, const struct scrape *after)
{
  struct dk_text text = DK_TEXT_EMPTY;

  if (after->complaint[0] || (before && before->complaint[0]))
    return enough(strdup("a text that cannot be read has no changes\n"));
  for (size_t i = 0; i < after->n_samples; i++) {
    const struct scrape_sample *sample = &after->samples[i];
    double change = sample->value - scrape_value(before, sample->series);
    if (change != 0 && !is_a_duration(sample))
      dk_text_printf(&text, "%s %+.0f\n", sample->series, change);
  }
  for (size_t i = 0; before && i < before->n_samples; i++)
    if (before->samples[i].value != 0 && scrape_value(after, before->samples[i].series) == 0 &&
        strcmp(before->samples[i].family->type, "gauge") != 0)
      dk_text_printf(&text, "%s is missing\n", before->samples[i].series);
  if (dk_text_failed(&text))
    BAIL_OUT("no memory to compare metrics with");
  char *changes = enough(strdup(dk_text_str(&text)));
  dk_text_done(&text);
  return changes;
}

bool
scrape_alike(const char *changes, const char *expected)
{
  while (*expected) {
    if (strncmp(expected, "+N\n", 3) == 0 && changes[0] == '+') {
      changes += strcspn(changes, "\n");
      expected += 2;
    }
    if (*changes++ != *expected++)
      return false;
  }
  return *changes == '\0';
}
