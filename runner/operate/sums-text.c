/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a runtime's metrics, line by line: see sums.h.  The first wrong line ends it, and is
 * reported with its number, what it is and what it should be. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "runner/cli/message.h"
#include "runner/operate/sums.h"

enum { MOST_LABELS = 16, MOST_SHOWN = 160, DECIMALS = 9 };

#define A_SAMPLE "name{label=\"value\",...} number"
#define A_NUMBER "a whole number up to 18446744073709551615, or one with up to 9 decimals"

struct reader {
  struct sums *sums;
  size_t n_file, line;
  struct family *family;     /* the one of the current lines; NULL before the first */
  bool has_help, has_type;   /* in this file */
  /* The histogram that is not yet complete: */
  enum sample_kind next;     /* the kind of its next sample; SAMPLE_BUCKET before its first */
  size_t n_buckets;
  struct bound **bound;      /* where the next bucket has its bound, or will have it */
  struct amount last_bound, last_count;
  struct dk_text group;      /* its labels */
  struct dk_text key, other; /* scratch texts, for the function that runs */
  const char *what, *expected;
};

struct label {
  const char *text; /* name="value", as it is written */
  size_t n_name, n;
};

struct sample {
  const char *line;
  size_t n_name, n;          /* of the name, and of the series */
  struct label labels[MOST_LABELS];
  size_t n_labels;
  enum sample_kind kind;
  struct amount amount;
};

/* false, for the caller to return. */
static bool
complain(struct reader *r, const char *what, const char *expected)
{
  r->what = what;
  r->expected = expected;
  return false;
}

static bool
has_no_memory(struct reader *r)
{
  return complain(r, NULL, NULL);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The end of a name; NULL: there is none.  Names of metrics may have colons, too. */
static const char *
end_of_name(const char *at, bool has_colons)
{
  if (!isalpha((unsigned char)*at) && *at != '_' && !(has_colons && *at == ':'))
    return NULL;
  while (isalnum((unsigned char)*at) || *at == '_' || (has_colons && *at == ':'))
    at++;
  return at;
}

/* All of it has to be a number. */
static bool
read_amount(const char *at, const char *end, struct amount *ret)
{
  uint32_t unit = 1000000000;

  *ret = (struct amount){.whole = 0};
  if (at == end || !isdigit((unsigned char)*at))
    return false;
  for (; at < end && isdigit((unsigned char)*at); at++)
    if (__builtin_mul_overflow(ret->whole, (uint64_t)10, &ret->whole)
        || __builtin_add_overflow(ret->whole, (uint64_t)(*at - '0'), &ret->whole))
      return false;
  if (at == end)
    return true;
  ret->has_point = *at == '.' && end - at > 1 && end - at <= 1 + DECIMALS;
  if (!ret->has_point)
    return false;
  for (at++; at < end && isdigit((unsigned char)*at); at++) {
    unit /= 10;
    ret->billionths += (uint32_t)(*at - '0') * unit;
  }
  return at == end;
}

static bool
is_more(const struct amount *a, const struct amount *b)
{
  return a->whole != b->whole ? a->whole > b->whole : a->billionths > b->billionths;
}

static bool
is_equal(const struct amount *a, const struct amount *b)
{
  return a->whole == b->whole && a->billionths == b->billionths;
}

/* ---- families -------------------------------------------------------------------------------- */

/* A histogram has samples with the name of this family. */
static bool
is_part_of_a_histogram(struct reader *r, const char *name)
{
  static const char *const suffixes[] = {"_bucket", "_sum", "_count"};
  size_t length = strlen(name);

  for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
    size_t n = strlen(suffixes[i]);
    if (length <= n || strcmp(name + length - n, suffixes[i]) != 0)
      continue;
    dk_text_reset(&r->other);
    dk_text_add(&r->other, name, length - n);
    const struct family *family = sums_find_family(r->sums, dk_text_str(&r->other));
    return family && family->type && strcmp(family->type, "histogram") == 0;
  }
  return false;
}

/* One of its samples has the name of another family. */
static bool
hides_a_family(struct reader *r, const char *name)
{
  static const char *const suffixes[] = {"_bucket", "_sum", "_count"};

  for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
    dk_text_reset(&r->other);
    dk_text_printf(&r->other, "%s%s", name, suffixes[i]);
    if (sums_find_family(r->sums, dk_text_str(&r->other)))
      return true;
  }
  return false;
}

static bool
may_leave_family(struct reader *r)
{
  if (r->next != SAMPLE_BUCKET || r->n_buckets > 0)
    return complain(r, "the histogram above is incomplete",
                    "its buckets up to le=\"+Inf\", _sum and _count");
  return !r->family || (r->has_help && r->has_type)
         || complain(r, "the metric above has no HELP and TYPE", "both");
}

/* HELP or TYPE of a metric: the metric begins, or this is the other one of the two. */
static bool
enter_family(struct reader *r, const char *name)
{
  if (r->family && strcmp(r->family->name, name) == 0)
    return true;
  if (!may_leave_family(r))
    return false;
  if (r->sums->is_taken(name))
    return complain(r, "this is a metric of the store, which stats counts itself",
                    "metrics of a runtime");
  if (is_part_of_a_histogram(r, name))
    return complain(r, "a histogram has samples of this name", "a name of its own");
  if (dk_text_failed(&r->other))
    return has_no_memory(r);
  r->family = sums_family(r->sums, name);
  if (!r->family)
    return has_no_memory(r);
  if (r->family->n_file == r->n_file)
    return complain(r, "this metric appears twice", "all samples of a metric together");
  r->family->n_file = r->n_file;
  r->has_help = r->has_type = false;
  return true;
}

/* Finds the family of the name after "# HELP " or "# TYPE "; returns the rest of the line. */
static const char *
take_family(struct reader *r, const char *at)
{
  const char *end = end_of_name(at, true);

  if (!end || *end != ' ') {
    complain(r, "this line names no metric", "# HELP name text, # TYPE name type");
    return NULL;
  }
  dk_text_reset(&r->key);
  dk_text_add(&r->key, at, (size_t)(end - at));
  if (dk_text_failed(&r->key)) {
    has_no_memory(r);
    return NULL;
  }
  return enter_family(r, dk_text_str(&r->key)) ? end + 1 : NULL;
}

static bool
take_help(struct reader *r, const char *line)
{
  const char *help = take_family(r, line);

  if (!help)
    return false;
  if (r->has_help)
    return complain(r, "this metric has a second HELP", "one for each metric");
  for (const char *at = help; *at; at++)
    if (*at == '\\' && *++at != '\\' && *at != 'n')
      return complain(r, "this escape is invalid", "\\\\ or \\n");
  r->has_help = true;
  if (!r->family->help) /* else that of the first file */
    r->family->help = dk_arena_strdup(&r->sums->arena, help);
  return r->family->help || has_no_memory(r);
}

static bool
take_type(struct reader *r, const char *line)
{
  static const char *const types[] = {"counter", "gauge", "histogram"};
  const char *word = take_family(r, line), *type = NULL;

  if (!word)
    return false;
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
    if (strcmp(types[i], word) == 0)
      type = types[i];
  if (!type)
    return complain(r, "this type cannot be added up", "counter, gauge or histogram");
  if (r->has_type)
    return complain(r, "this metric has a second TYPE", "one for each metric");
  if (r->family->type && r->family->type != type)
    return complain(r, "this metric has another type in an earlier file", r->family->type);
  if (type == types[2] && hides_a_family(r, r->family->name))
    return complain(r, "another metric has the name of a sample of this one", "a name of its own");
  r->family->type = type;
  r->has_type = true;
  return true;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Where the value that begins here has ended, after its quote; NULL: it has no end. */
static const char *
end_of_value(const char *at)
{
  for (; *at && *at != '"'; at++)
    if (*at == '\\' && *++at != '\\' && *at != '"' && *at != 'n')
      return NULL;
  return *at ? at + 1 : NULL;
}

static int
by_name(const void *a, const void *b)
{
  const struct label *one = a, *other = b;
  size_t n = one->n_name < other->n_name ? one->n_name : other->n_name;
  int order = memcmp(one->text, other->text, n);

  return order != 0 ? order : (one->n_name > other->n_name) - (one->n_name < other->n_name);
}

/* Reads the labels from the brace on, and sorts them. */
static bool
take_labels(struct reader *r, struct sample *sample, const char **at)
{
  while (**at == '{' || **at == ',') {
    struct label *label = &sample->labels[sample->n_labels];
    if (sample->n_labels++ == MOST_LABELS)
      return complain(r, "this sample has too many labels", "16 at most");
    label->text = *at + 1;
    const char *end = end_of_name(label->text, false);
    if (!end || end[0] != '=' || end[1] != '"')
      return complain(r, "this is not a label", A_SAMPLE);
    label->n_name = (size_t)(end - label->text);
    end = end_of_value(end + 2);
    if (!end)
      return complain(r, "the value of a label has no end, or an invalid escape",
                      "\"value\", in which \\\\, \\\" and \\n are escapes");
    label->n = (size_t)(end - label->text);
    *at = end;
  }
  if (*(*at)++ != '}')
    return complain(r, "the labels have no end", A_SAMPLE);
  qsort(sample->labels, sample->n_labels, sizeof(sample->labels[0]), by_name);
  for (size_t i = 1; i < sample->n_labels; i++)
    if (by_name(&sample->labels[i - 1], &sample->labels[i]) == 0)
      return complain(r, "a label appears twice", "each label once");
  return true;
}

const char *
sums_label(const char *at, struct dk_text *ret_name, struct dk_text *ret_value)
{
  size_t n = strcspn(at, "=");

  dk_text_add(ret_name, at, n);
  for (at += n + 2; *at != '"'; at++)
    if (*at != '\\')
      dk_text_add(ret_value, at, 1);
    else
      dk_text_add(ret_value, *++at == 'n' ? "\n" : at, 1);
  return at + 1;
}

/* The "le" of a bucket; NULL: it has none. */
static const struct label *
bound_of(const struct sample *sample)
{
  for (size_t i = 0; i < sample->n_labels; i++)
    if (sample->labels[i].n_name == 2 && memcmp(sample->labels[i].text, "le", 2) == 0)
      return &sample->labels[i];
  return NULL;
}

/* All of them, except for one. */
static void
add_labels(struct dk_text *text, const struct sample *sample, const struct label *but)
{
  const char *between = "";

  for (const struct label *l = sample->labels; l < sample->labels + sample->n_labels; l++) {
    if (l == but)
      continue;
    dk_text_puts(text, between);
    dk_text_add(text, l->text, l->n);
    between = ",";
  }
}

/* ---- histograms ------------------------------------------------------------------------------ */

/* All histograms of a family have the same bounds: those of the first one. */
static bool
take_bound(struct reader *r, const char *text, size_t n)
{
  struct family *family = r->family;
  struct bound *bound = *r->bound;

  if (family->has_bounds) {
    if (!bound || strlen(bound->text) != n || memcmp(bound->text, text, n) != 0)
      return complain(r, "earlier histograms of this metric do not have this bucket",
                      bound ? bound->text : "no more buckets");
  } else {
    bound = dk_arena_alloc(&r->sums->arena, sizeof(*bound));
    if (!bound || !(bound->text = dk_arena_copy(&r->sums->arena, text, n)))
      return has_no_memory(r);
    *r->bound = bound;
  }
  r->bound = &bound->next;
  return true;
}

static bool
take_bucket(struct reader *r, const struct sample *sample)
{
  const struct label *le = bound_of(sample);
  struct amount bound;

  if (!le || sample->amount.has_point)
    return complain(r, "this is not a bucket",
                    "le=\"bound\" among its labels, and a whole number");
  const char *text = le->text + 4; /* le=" */
  size_t n = le->n - 5;
  bool is_last = n == 4 && memcmp(text, "+Inf", 4) == 0;
  if (!is_last && !read_amount(text, text + n, &bound))
    return complain(r, "this is not a bound of a bucket", "+Inf, or " A_NUMBER);
  if (r->n_buckets == 0) {
    r->bound = &r->family->bounds;
  } else {
    if (!is_last && !is_more(&bound, &r->last_bound))
      return complain(r, "this bound is not above the previous one", "ascending bounds");
    if (is_more(&r->last_count, &sample->amount))
      return complain(r, "this bucket counts less than the previous one", "the same or more");
  }
  if (!take_bound(r, text, n))
    return false;
  r->n_buckets++;
  r->last_count = sample->amount;
  if (is_last) {
    r->family->has_bounds = true;
    r->next = SAMPLE_SUM;
  } else {
    r->last_bound = bound;
  }
  return true;
}

/* The next sample of a histogram: its buckets, its sum, its count, all with the same labels. */
static bool
take_of_histogram(struct reader *r, const struct sample *sample)
{
  const struct label *le = sample->kind == SAMPLE_BUCKET ? bound_of(sample) : NULL;

  if (sample->kind != r->next)
    return complain(r, "this sample is not the next one of the histogram",
                    "its buckets up to le=\"+Inf\", _sum and _count");
  dk_text_reset(&r->other);
  add_labels(&r->other, sample, le);
  if (r->n_buckets == 0) {
    dk_text_reset(&r->group);
    add_labels(&r->group, sample, le);
  } else if (strcmp(dk_text_str(&r->other), dk_text_str(&r->group)) != 0) {
    return complain(r, "this sample has other labels than its histogram",
                    r->group.length > 0 ? dk_text_str(&r->group) : "no other labels");
  }
  if (sample->kind == SAMPLE_BUCKET)
    return take_bucket(r, sample);
  r->next = sample->kind == SAMPLE_SUM ? SAMPLE_COUNT : SAMPLE_BUCKET;
  if (sample->kind == SAMPLE_COUNT) {
    r->n_buckets = 0;
    if (sample->amount.has_point || !is_equal(&sample->amount, &r->last_count))
      return complain(r, "the count differs from that of the last bucket", "the same number");
  }
  return true;
}

/* ---- samples --------------------------------------------------------------------------------- */

static bool
find_kind(struct reader *r, struct sample *sample)
{
  static const char *const suffixes[] = {[SAMPLE_BUCKET] = "_bucket", [SAMPLE_SUM] = "_sum",
                                         [SAMPLE_COUNT] = "_count"};
  const struct family *family = r->family;
  size_t n = family ? strlen(family->name) : 0;

  if (!family || !r->has_help || !r->has_type)
    return complain(r, "this metric has no HELP and TYPE above", "both, above its samples");
  bool is_of_it = sample->n_name >= n && memcmp(sample->line, family->name, n) == 0;
  const char *rest = sample->line + (is_of_it ? n : 0);
  size_t n_rest = sample->n_name - (is_of_it ? n : 0);
  if (is_of_it && n_rest == 0 && strcmp(family->type, "histogram") != 0) {
    sample->kind = SAMPLE_PLAIN;
    return true;
  }
  for (int kind = SAMPLE_BUCKET; is_of_it && kind <= SAMPLE_COUNT; kind++)
    if (strcmp(family->type, "histogram") == 0 && strlen(suffixes[kind]) == n_rest
        && memcmp(rest, suffixes[kind], n_rest) == 0) {
      sample->kind = (enum sample_kind)kind;
      return true;
    }
  return complain(r, "this sample does not belong to the metric above", family->name);
}

static bool
add_sample(struct reader *r, const struct sample *sample)
{
  dk_text_reset(&r->key);
  dk_text_add(&r->key, sample->line, sample->n_name);
  dk_text_puts(&r->key, "{");
  add_labels(&r->key, sample, NULL);
  if (dk_text_failed(&r->key) || dk_text_failed(&r->group) || dk_text_failed(&r->other))
    return has_no_memory(r);
  struct series *series = sums_series(r->sums, r->family, dk_text_str(&r->key));
  if (series && !series->text)
    series->text = dk_arena_copy(&r->sums->arena, sample->line, sample->n);
  if (!series || !series->text)
    return has_no_memory(r);
  if (series->n_file == r->n_file)
    return complain(r, "this series appears twice", "each series once");
  series->n_file = r->n_file;
  series->kind = sample->kind;
  return sums_amount_add(&series->amount, &sample->amount)
         || complain(r, "the sum with the earlier files is too large",
                     "a sum up to 18446744073709551615");
}

static bool
take_sample(struct reader *r, const char *line)
{
  struct sample sample = {.line = line};
  const char *at = end_of_name(line, true);

  if (!at)
    return complain(r, "this line is not a sample", A_SAMPLE);
  sample.n_name = (size_t)(at - line);
  if (*at == '{' && !take_labels(r, &sample, &at))
    return false;
  sample.n = (size_t)(at - line);
  if (*at != ' ')
    return complain(r, "this line is not a sample", A_SAMPLE);
  if (!read_amount(at + 1, at + strlen(at), &sample.amount))
    return complain(r, "a runtime does not write such a number", A_NUMBER);
  if (!find_kind(r, &sample))
    return false;
  if (sample.kind != SAMPLE_PLAIN && !take_of_histogram(r, &sample))
    return false;
  return add_sample(r, &sample);
}

/* ---- the text -------------------------------------------------------------------------------- */

static bool
take_sums_line(struct reader *r, const char *line, size_t size)
{
  if (memchr(line, '\0', size) || !dk_utf8_valid(line, size))
    return complain(r, "this line is not text", "UTF-8 without a NUL");
  if (strncmp(line, "# HELP ", 7) == 0)
    return take_help(r, line + 7);
  if (strncmp(line, "# TYPE ", 7) == 0)
    return take_type(r, line + 7);
  return size == 0 || line[0] == '#' || take_sample(r, line);
}

/* Long lines are cut. */
static int
refuse_sums_line(const struct reader *r, const char *line, size_t size)
{
  struct dk_text where = DK_TEXT_EMPTY, found = DK_TEXT_EMPTY;

  if (!r->what) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  dk_text_printf(&where, "%s:%zu", r->sums->paths[r->n_file - 1], r->line);
  dk_text_add(&found, line, size < MOST_SHOWN ? size : MOST_SHOWN);
  dk_text_puts(&found, size < MOST_SHOWN ? "" : "...");
  message_problem(&(struct problem){dk_text_str(&where), r->what, r->expected, dk_text_str(&found),
                                    "give files that dk_runtime_save_metrics has written"},
                  NULL);
  dk_text_done(&where);
  dk_text_done(&found);
  return EXIT_USAGE;
}

int
sums_take_text(struct sums *sums, size_t n_file, char *text, size_t size)
{
  struct reader r = {.sums = sums, .n_file = n_file, .next = SAMPLE_BUCKET,
                     .group = DK_TEXT_EMPTY, .key = DK_TEXT_EMPTY, .other = DK_TEXT_EMPTY};
  char *at = text, *end = text + size;
  bool is_well = true;
  size_t n = 0;

  while (is_well && at < end) {
    char *newline = memchr(at, '\n', (size_t)(end - at));
    r.line++;
    n = (size_t)((newline ? newline : end) - at);
    if (newline)
      *newline = '\0';
    is_well = newline ? take_sums_line(&r, at, n)
                      : complain(&r, "the last line has no end", "the complete file");
    at += is_well ? n + 1 : 0;
  }
  if (is_well) {
    r.line++;
    n = 0;
    is_well = may_leave_family(&r)
              && (r.family || complain(&r, "the file has no metrics", "at least one"));
  }
  int code = is_well ? EXIT_PASSED : refuse_sums_line(&r, at, n);
  dk_text_done(&r.group);
  dk_text_done(&r.key);
  dk_text_done(&r.other);
  return code;
}
