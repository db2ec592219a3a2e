/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: see metrics.h.
 *
 * Locking: `lock` guards the names and the histograms.  A row never moves once it exists; its cells
 * are atomic, so that they are read without the lock. */
#include "core/runtime/shared/metrics.h"

#include <assert.h>

#include "core/base/utf8.h"
#include "core/runtime/shared/log.h"

enum { LONGEST_NAME = 255, MOST_READINGS = N_DELAYS };

#define OTHER "other"

/* ---- the closed lists ------------------------------------------------------------------------ */

static const char *const source_names[N_REQUEST_SOURCES] = {
  [REQUEST_BY_API] = "api",
  [REQUEST_BY_PARENT] = "parent",
};

static const char *const outcome_names[N_REQUEST_OUTCOMES] = {
  [REQUEST_TAKEN] = "requested",
  [REQUEST_REPEATED] = "already_requested",
  [REQUEST_TOO_LATE] = "terminal",
  [REQUEST_FOR_NOBODY] = "not_found",
  [REQUEST_REFUSED] = "refused",
};

static const char *const phase_names[N_PHASES] = {
  [PHASE_QUEUED] = "queued",
  [PHASE_LOCKED] = "locked",
  [PHASE_ABSENT] = "absent",
  [PHASE_UNKNOWN] = "unknown",
};

static const char *const path_names[METRIC_PATHS] = {
  [DK_LEARNT_BY_COMMIT - 1] = "local",
  [DK_LEARNT_BY_RENEWAL - 1] = "renew",
  [DK_LEARNT_BY_ACK - 1] = "ack",
  [DK_LEARNT_BY_DEADLINE - 1] = "deadline",
};

/* In seconds, as text and in nanoseconds. */
static const struct bound {
  const char *text;
  int64_t ns;
} bounds[METRIC_BOUNDS] = {
  {"0.0001", 100000},
  {"0.0005", 500000},
  {"0.001", 1000000},
  {"0.005", 5000000},
  {"0.01", 10000000},
  {"0.05", 50000000},
  {"0.1", 100000000},
  {"0.5", 500000000},
  {"1", 1000000000},
  {"5", 5000000000},
  {"10", 10000000000},
  {"30", 30000000000},
  {"60", 60000000000},
  {"300", 300000000000},
};

/* ---- counting -------------------------------------------------------------------------------- */

void
metrics_init(struct metrics *metrics)
{
  *metrics = (struct metrics){
    .requests.n_cells = N_REQUEST_SOURCES * N_REQUEST_OUTCOMES,
    .cancelled.n_cells = N_CODES * N_PHASES,
  };
  dk_lock_init(&metrics->lock);
  dk_arena_init(&metrics->arena);
}

void
metrics_done(struct metrics *metrics)
{
  dk_arena_done(&metrics->arena);
  dk_lock_done(&metrics->lock);
}

/* An absent (unknown) name is; a name that really is "other" is counted with the others. */
static bool
has_own_row(dk_str name)
{
  return name.len == 0 || (dk_text_id_valid(name.ptr, name.len, LONGEST_NAME) &&
                           !str_equal(name, dk_str_of(OTHER)));
}

/* NULL: no memory. */
static struct name_row *
add_row(struct metrics *metrics, struct by_name *by, dk_str name)
{
  struct dk_arena *arena = &metrics->arena;
  struct name_row *row = dk_arena_alloc(arena, sizeof(*row));

  assert(dk_lock_is_held(&metrics->lock) && by->n_rows < METRIC_NAMES);
  if (!row)
    return NULL;
  row->name = (dk_str){dk_arena_copy(arena, name.ptr, name.len), name.len};
  row->cells = dk_arena_array(arena, by->n_cells, sizeof(*row->cells));
  void **place = row->name.ptr && row->cells ? names_at(&by->places, arena, row->name) : NULL;
  if (!place)
    return NULL;
  *place = row;
  by->rows[by->n_rows++] = row;
  return row;
}

static void
metrics_count(struct metrics *metrics, struct by_name *by, dk_str name, size_t cell, uint64_t n)
{
  dk_lock(&metrics->lock);
  struct name_row *row = names_find(&by->places, name);
  if (!row && by->n_rows < METRIC_NAMES && has_own_row(name))
    row = add_row(metrics, by, name);
  _Atomic uint64_t *cells = row ? row->cells : by->others;
  assert(cell < by->n_cells);
  atomic_fetch_add_explicit(&cells[cell], n, memory_order_relaxed);
  dk_unlock(&metrics->lock);
}

void
metrics_requested(struct metrics *metrics, enum request_source source,
                  enum request_outcome outcome, dk_str orchestration, uint64_t n)
{
  metrics_count(metrics, &metrics->requests, orchestration,
                (size_t)source * N_REQUEST_OUTCOMES + outcome, n);
}

void
metrics_cancelled(struct metrics *metrics, enum code code, enum cancel_phase phase,
                  dk_str activity)
{
  metrics_count(metrics, &metrics->cancelled, activity, (size_t)code * N_PHASES + phase, 1);
}

void
metrics_notified(struct metrics *metrics, int32_t learnt, int64_t ns)
{
  struct histogram *histogram = &metrics->notified[learnt - DK_LEARNT_BY_COMMIT];
  int64_t length = ns > 0 ? ns : 0;
  size_t i = 0;

  while (i < METRIC_BOUNDS && length > bounds[i].ns)
    i++;
  dk_lock(&metrics->lock);
  histogram->within[i]++;
  histogram->sum_ns += (uint64_t)length;
  dk_unlock(&metrics->lock);
}

/* ---- writing --------------------------------------------------------------------------------- */

struct family;
struct page {
  struct dk_text *text;
  struct log *log;
  const struct family *family;  /* that is being written */
};

/* A sample from the log: the label's value, and the counter. */
struct reading {
  const char *value;
  enum counter counter;
};

struct family {
  const char *name, *type, *help;
  const char *label;  /* of the readings; NULL: a single one, without a label */
  struct reading readings[MOST_READINGS];
  void (*write)(struct page *page);  /* for a family without readings */
};

/* Escapes a backslash, a quote and the end of a line; everything else is UTF-8 and unchanged. */
static void
add_label_value(struct dk_text *text, dk_str value)
{
  for (size_t i = 0; i < value.len; i++)
    if (value.ptr[i] == '\n')
      dk_text_puts(text, "\\n");
    else if (value.ptr[i] == '\\' || value.ptr[i] == '"')
      dk_text_printf(text, "\\%c", value.ptr[i]);
    else
      dk_text_add(text, &value.ptr[i], 1);
}

static void
write_readings(struct page *page)
{
  const struct family *family = page->family;

  for (const struct reading *r = family->readings; r < family->readings + MOST_READINGS; r++) {
    if (!r->value)
      return;
    dk_text_puts(page->text, family->name);
    if (family->label)
      dk_text_printf(page->text, "{%s=\"%s\"}", family->label, r->value);
    dk_text_printf(page->text, " %llu\n", (unsigned long long)log_counted(page->log, r->counter));
  }
}

/* A sample with two closed labels and a name, which is written once it is not 0. */
static void
write_named(struct page *page, const char *label, const char *value, const char *label_2,
            const char *value_2, const struct name_row *row, size_t cell)
{
  uint64_t n = atomic_load_explicit(&row->cells[cell], memory_order_relaxed);

  if (n == 0)
    return;
  dk_text_printf(page->text, "%s{%s=\"%s\",%s=\"%s\",name=\"", page->family->name, label, value,
                 label_2, value_2);
  add_label_value(page->text, row->name);
  dk_text_printf(page->text, "\"} %llu\n", (unsigned long long)n);
}

static void
write_requests_of(struct page *page, const struct name_row *row)
{
  for (size_t i = 0; i < N_REQUEST_SOURCES * N_REQUEST_OUTCOMES; i++)
    write_named(page, "source", source_names[i / N_REQUEST_OUTCOMES], "outcome",
                outcome_names[i % N_REQUEST_OUTCOMES], row, i);
}

static void
write_cancelled_of(struct page *page, const struct name_row *row)
{
  for (size_t i = 0; i < N_CODES * N_PHASES; i++)
    write_named(page, "code", code_name((enum code)(i / N_PHASES)), "phase",
                phase_names[i % N_PHASES], row, i);
}

/* Copies the list of rows under the lock, and writes them without it. */
static void
write_rows(struct page *page, struct by_name *by,
           void (*write_row)(struct page *page, const struct name_row *row))
{
  struct metrics *metrics = &page->log->metrics;
  const struct name_row others = {dk_str_of(OTHER), by->others};
  const struct name_row *rows[METRIC_NAMES];

  dk_lock(&metrics->lock);
  size_t n = by->n_rows;
  for (size_t i = 0; i < n; i++)
    rows[i] = by->rows[i];
  dk_unlock(&metrics->lock);
  for (size_t i = 0; i < n; i++)
    write_row(page, rows[i]);
  write_row(page, &others);
}

static void
write_requests(struct page *page)
{
  write_rows(page, &page->log->metrics.requests, write_requests_of);
}

static void
write_cancelled(struct page *page)
{
  write_rows(page, &page->log->metrics.cancelled, write_cancelled_of);
}

static void
write_histogram(struct page *page, const char *path, const struct histogram *histogram)
{
  const char *name = page->family->name;
  uint64_t n = 0;

  for (size_t i = 0; i <= METRIC_BOUNDS; i++) {
    n += histogram->within[i];
    dk_text_printf(page->text, "%s_bucket{path=\"%s\",le=\"%s\"} %llu\n", name, path,
                   i < METRIC_BOUNDS ? bounds[i].text : "+Inf", (unsigned long long)n);
  }
  dk_text_printf(page->text, "%s_sum{path=\"%s\"} %llu.%09llu\n", name, path,
                 (unsigned long long)(histogram->sum_ns / 1000000000),
                 (unsigned long long)(histogram->sum_ns % 1000000000));
  dk_text_printf(page->text, "%s_count{path=\"%s\"} %llu\n", name, path, (unsigned long long)n);
}

static void
write_notified(struct page *page)
{
  struct metrics *metrics = &page->log->metrics;

  for (size_t i = 0; i < METRIC_PATHS; i++) {
    dk_lock(&metrics->lock);
    struct histogram histogram = metrics->notified[i];
    dk_unlock(&metrics->lock);
    write_histogram(page, path_names[i], &histogram);
  }
}

/* ---- the families ---------------------------------------------------------------------------- */

static const struct family families[] = {
    {.name = "dk_cancel_requests_total",
     .type = "counter",
     .help = "Requests to cancel an instance that commits of this runtime have taken.",
     .write = write_requests},
    {.name = "dk_activities_cancelled_total",
     .type = "counter",
     .help = "Activities that commits of this runtime have cancelled.",
     .write = write_cancelled},
    {.name = "dk_activity_cancel_notification_seconds",
     .type = "histogram",
     .help = "Until this worker knew that an activity must end: from the commit (local), or from "
             "when its lease was last known to be valid.",
     .write = write_notified},
    {.name = "dk_activity_cancel_grace_total",
     .type = "counter",
     .help = "Activities that were signalled to end, by whether they kept their grace.",
     .label = "outcome",
     .readings = {{"kept", COUNT_GRACE_KEPT},
                  {"quarantined", COUNT_GRACE_QUARANTINED},
                  {"killed", COUNT_GRACE_KILLED}}},
    {.name = "dk_activity_stuck",
     .type = "gauge",
     .help = "Abandoned threads of activities that still run.",
     .readings = {{"", COUNT_QUARANTINED_NOW}}},
    {.name = "dk_lock_renewals_total",
     .type = "counter",
     .help = "Renewals of the leases of turns and activities.",
     .label = "result",
     .readings = {{"ok", COUNT_RENEWALS},
                  {"retried", COUNT_RENEWALS_RETRIED},
                  {"lost", COUNT_RENEWALS_LOST}}},
    {.name = "dk_work_acks_total",
     .type = "counter",
     .help = "Acknowledgements of activities that have ended.",
     .label = "result",
     .readings = {{"ok", COUNT_WORK_ACKS_OK},
                  {"refused", COUNT_WORK_ACKS_REFUSED},
                  {"retried", COUNT_WORK_ACKS_RETRIED},
                  {"lost", COUNT_WORK_ACKS_LOST},
                  {"unknown", COUNT_WORK_ACKS_UNKNOWN},
                  {"error", COUNT_WORK_ACKS_ERROR}}},
    {.name = "dk_turns_total",
     .type = "counter",
     .help = "Turns, by outcome.",
     .label = "outcome",
     .readings = {{"committed", COUNT_TURNS_COMMITTED},
                  {"dropped", COUNT_TURNS_DROPPED},
                  {"stalled", COUNT_TURNS_STALLED},
                  {"lost", COUNT_TURNS_LOST}}},
    {.name = "dk_orchestrations_total",
     .type = "counter",
     .help = "Executions of orchestrations that turns of this runtime have ended.",
     .label = "outcome",
     .readings = {{"completed", COUNT_ORCHESTRATIONS_COMPLETED},
                  {"failed", COUNT_ORCHESTRATIONS_FAILED},
                  {"cancelled", COUNT_ORCHESTRATIONS_CANCELLED},
                  {"continued", COUNT_ORCHESTRATIONS_CONTINUED}}},
    {.name = "dk_orchestrations_failed_total",
     .type = "counter",
     .help = "Executions that turns of this runtime have ended as failed, by cause.",
     .label = "code",
     .readings = {{"application", COUNT_FAILED + CODE_APPLICATION},
                  {"poison", COUNT_FAILED + CODE_POISON},
                  {"nondeterminism", COUNT_FAILED + CODE_NONDETERMINISM},
                  {"corrupt", COUNT_FAILED + CODE_CORRUPT},
                  {"limit", COUNT_FAILED + CODE_LIMIT},
                  {"unregistered", COUNT_FAILED + CODE_UNREGISTERED}}},
    {.name = "dk_delayed_total",
     .type = "counter",
     .help = "Turns, and activities that cannot be run here or whose result is refused, that this "
             "runtime has delayed, by cause.",
     .label = "code",
     .readings = {{"unregistered", COUNT_DELAYED + DELAY_UNREGISTERED},
                  {"nondeterminism", COUNT_DELAYED + DELAY_NONDETERMINISM},
                  {"corrupt", COUNT_DELAYED + DELAY_CORRUPT},
                  {"unreadable", COUNT_DELAYED + DELAY_UNREADABLE},
                  {"limit", COUNT_DELAYED + DELAY_LIMIT},
                  {"wrong_call", COUNT_DELAYED + DELAY_WRONG_CALL},
                  {"overdue", COUNT_DELAYED + DELAY_OVERDUE},
                  {"stuck", COUNT_DELAYED + DELAY_STUCK},
                  {"no_memory", COUNT_DELAYED + DELAY_NO_MEMORY},
                  {"taken", COUNT_DELAYED + DELAY_TAKEN},
                  {"refused", COUNT_DELAYED + DELAY_REFUSED},
                  {"no_start", COUNT_DELAYED + DELAY_NO_START}}},
    {.name = "dk_activities_started_total",
     .type = "counter",
     .help = "Activities whose function this worker has called.",
     .readings = {{"", COUNT_ACTIVITIES_STARTED}}},
    {.name = "dk_activities_total",
     .type = "counter",
     .help = "Activities of this worker, by outcome.",
     .label = "outcome",
     .readings = {{"completed", COUNT_ACTIVITIES_COMPLETED},
                  {"failed", COUNT_ACTIVITIES_FAILED},
                  {"cancelled", COUNT_ACTIVITIES_CANCELLED},
                  {"lost", COUNT_ACTIVITIES_LOST},
                  {"put_off", COUNT_ACTIVITIES_PUT_OFF}}},
};

void
metrics_write(struct log *log, struct dk_text *text)
{
  struct page page = {.text = text, .log = log};

  for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
    const struct family *family = &families[i];
    page.family = family;
    dk_text_printf(text, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
                   family->type);
    if (family->write)
      family->write(&page);
    else
      write_readings(&page);
  }
}
