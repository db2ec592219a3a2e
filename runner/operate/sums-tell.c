/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of metrics, for people, as JSON, and for Prometheus: see sums.h.
 *
 * Names of activities may be anything.  Bytes that do not print are shown as \xHH, for Prometheus
 * as \\xHH. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "runner/cli/json-memory.h"
#include "runner/operate/show.h"
#include "runner/operate/sums.h"

enum { AMOUNT_SIZE = 32 };

static const char *
amount_text(const struct amount *amount, char text[AMOUNT_SIZE])
{
  int n = snprintf(text, AMOUNT_SIZE, "%" PRIu64, amount->whole);

  if (amount->has_point && n > 0)
    snprintf(text + n, AMOUNT_SIZE - (size_t)n, ".%09" PRIu32, amount->billionths);
  return text;
}

static bool
is_zero(const struct amount *amount)
{
  return amount->whole == 0 && amount->billionths == 0;
}

/* Text that is UTF-8, and is escaped already. */
static void
add_printable(struct dk_text *out, const char *text, const char *escape)
{
  size_t left = strlen(text);

  while (left > 0) {
    uint32_t character;
    size_t n = dk_utf8_next(text, left, &character);

    if (n > 0 && dk_utf8_printable(character))
      dk_text_add(out, text, n);
    n = n > 0 ? n : 1;
    for (size_t i = 0; i < n && !dk_utf8_printable(character); i++)
      dk_text_printf(out, "%s%02x", escape, (unsigned char)text[i]);
    text += n;
    left -= n;
  }
}

/* ---- for people ------------------------------------------------------------------------------ */

static bool
is_shown(const struct series *series)
{
  return series->kind != SAMPLE_BUCKET && !is_zero(&series->amount);
}

void
sums_tell(const struct sums *sums, struct printer *printer)
{
  char number[AMOUNT_SIZE];
  size_t n = 0;

  if (sums->n_files == 0)
    return;
  printer_line(printer, "counted by runtimes, in %zu file%s", sums->n_files,
               sums->n_files == 1 ? "" : "s");
  for (const struct family *family = sums->first; family; family = family->next)
    for (const struct series *series = family->first; series; series = series->next) {
      struct dk_text line = DK_TEXT_EMPTY;
      if (!is_shown(series))
        continue;
      n++;
      dk_text_printf(&line, "%14s  ", amount_text(&series->amount, number));
      add_printable(&line, series->text, "\\x");
      dk_text_puts(&line, "\n");
      printer_text(printer, &line);
    }
  if (n == 0)
    printer_line(printer, "%14s  all counts", "0");
}

/* ---- Prometheus ------------------------------------------------------------------------------ */

void
sums_tell_prometheus(const struct sums *sums, struct printer *printer)
{
  char number[AMOUNT_SIZE];

  for (const struct family *family = sums->first; family; family = family->next) {
    struct dk_text text = DK_TEXT_EMPTY;
    dk_text_printf(&text, "# HELP %s ", family->name);
    add_printable(&text, family->help, "\\\\x");
    dk_text_printf(&text, "\n# TYPE %s %s\n", family->name, family->type);
    for (const struct series *series = family->first; series; series = series->next) {
      add_printable(&text, series->text, "\\\\x");
      dk_text_printf(&text, " %s\n", amount_text(&series->amount, number));
    }
    printer_text(printer, &text);
  }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *
json_of_labels(const char *series)
{
  json_t *labels = json_object();
  const char *at = strchr(series, '{');

  while (at && (*at == '{' || *at == ',')) {
    struct dk_text name = DK_TEXT_EMPTY, value = DK_TEXT_EMPTY;
    at = sums_label(at + 1, &name, &value);
    if (dk_text_failed(&name))
      dk_text_fail(&value);
    json_object_set_new(labels, dk_text_str(&name), json_memory_of_text(&value));
    dk_text_done(&name);
    dk_text_done(&value);
  }
  return labels;
}

/* Beyond the whole numbers of jansson it is the nearest double. */
static json_t *
json_of_amount(const struct amount *amount)
{
  if (!amount->has_point && amount->whole <= INT64_MAX)
    return json_integer((json_int_t)amount->whole);
  return json_real((double)amount->whole + (double)amount->billionths / 1e9);
}

json_t *
sums_json(const struct sums *sums)
{
  json_t *list = json_array();

  for (const struct family *family = sums->first; family; family = family->next)
    for (const struct series *series = family->first; series; series = series->next) {
      json_t *item = json_object();
      dk_str name = {series->text, strcspn(series->text, "{")};
      show_json_text(item, "name", name);
      json_object_set_new(item, "labels", json_of_labels(series->text));
      json_object_set_new(item, "value", json_of_amount(&series->amount));
      json_array_append_new(list, item);
    }
  return list;
}
