/* SPDX-License-Identifier: Apache-2.0 */
/* The log: see log.h.  Owns only its counters and the metrics; the text of an event is made for the
 * call and freed after it. */
#include "core/runtime/shared/log.h"

#include <stddef.h>
#include <stdio.h>

#include "core/base/text.h"

/* ---- counters -------------------------------------------------------------------------------- */

enum { FIRST_COUNTER = offsetof(struct dk_counters, turns_committed) };
_Static_assert(sizeof(struct dk_counters) == FIRST_COUNTER + N_TOLD_COUNTERS * sizeof(uint64_t),
               "enum counter and struct dk_counters have the same counters");

void
log_init(struct log *log, dk_log_fn *function, void *context, const char *worker)
{
  log->function = function;
  log->context = context;
  log->worker = worker;
  for (int i = 0; i < N_COUNTERS; i++)
    atomic_init(&log->counters[i], 0);
  metrics_init(&log->metrics);
  health_init(&log->health);
}

void
log_done(struct log *log)
{
  metrics_done(&log->metrics);
  health_done(&log->health);
}

void
log_count(struct log *log, enum counter counter)
{
  atomic_fetch_add_explicit(&log->counters[counter], 1, memory_order_relaxed);
}

void
log_uncount(struct log *log, enum counter counter)
{
  atomic_fetch_sub_explicit(&log->counters[counter], 1, memory_order_relaxed);
}

uint64_t
log_counted(const struct log *log, enum counter counter)
{
  return atomic_load_explicit(&log->counters[counter], memory_order_relaxed);
}

void
log_read(const struct log *log, struct dk_counters *ret_counters)
{
  size_t size = ret_counters->struct_size;
  char *at = (char *)ret_counters + FIRST_COUNTER;

  for (size_t i = 0; i < N_TOLD_COUNTERS; i++) {
    if (size < FIRST_COUNTER + (i + 1) * sizeof(uint64_t))
      return; /* an older caller's struct ends here */
    uint64_t n = log_counted(log, (enum counter)i);
    memcpy(at + i * sizeof(n), &n, sizeof(n));
  }
}

/* ---- events ---------------------------------------------------------------------------------- */

static const int8_t levels[] = {
  [DK_LOG_RENEWED] = DK_LEVEL_TRACE,
  [DK_LOG_RENEWAL_RETRIED] = DK_LEVEL_WARNING,
  [DK_LOG_ACTIVITY_CANCELLED] = DK_LEVEL_INFO,
  [DK_LOG_RESULT_REFUSED] = DK_LEVEL_INFO,
  [DK_LOG_GRACE_EXCEEDED] = DK_LEVEL_WARNING,
  [DK_LOG_QUARANTINED] = DK_LEVEL_WARNING,
  [DK_LOG_CAP_REACHED] = DK_LEVEL_ERROR,
  [DK_LOG_ACK_RETRIED] = DK_LEVEL_WARNING,
  [DK_LOG_LEASE_LOST] = DK_LEVEL_WARNING,
  [DK_LOG_TURN_DROPPED] = DK_LEVEL_WARNING,
  [DK_LOG_STALLED] = DK_LEVEL_WARNING,
  [DK_LOG_STRAY] = DK_LEVEL_INFO,
  [DK_LOG_MESSAGE_DROPPED] = DK_LEVEL_WARNING,
  [DK_LOG_STORE_AWAY] = DK_LEVEL_WARNING,
  [DK_LOG_STORE_BACK] = DK_LEVEL_INFO,
  [DK_LOG_ORCHESTRATION_ENDED] = DK_LEVEL_DEBUG,
  [DK_LOG_PROGRAMMING_ERROR] = DK_LEVEL_ERROR,
  [DK_LOG_TURN_STUCK] = DK_LEVEL_ERROR,
  [DK_LOG_SHORT_LIMIT] = DK_LEVEL_WARNING,
};

/* The caller's level, if it is set; debug, which is 0, can be set only for a line without a
 * number. */
static int32_t
level_of(const struct dk_log_event *event)
{
  size_t number = (size_t)event->number;

  if (event->level != 0 || event->number <= DK_LOG_TEXT ||
      number >= sizeof(levels) / sizeof(levels[0]))
    return event->level;
  return levels[number];
}

static const char *
cause_name(int32_t cause)
{
  static const char *const names[] = {
    [DK_CAUSE_CANCELLED] = "cancelled",
    [DK_CAUSE_LEASE_LOST] = "lease lost",
    [DK_CAUSE_SHUTDOWN] = "the runtime stops",
  };

  return cause > 0 && cause <= DK_CAUSE_SHUTDOWN ? names[cause] : NULL;
}

static const char *
learnt_name(int32_t learnt)
{
  static const char *const names[] = {
    [DK_LEARNT_BY_COMMIT] = "the commit",       [DK_LEARNT_BY_RENEWAL] = "a renewal",
    [DK_LEARNT_BY_ACK] = "its acknowledgement", [DK_LEARNT_BY_DEADLINE] = "the deadline",
    [DK_LEARNT_BY_STOP] = "the stop",
  };

  return learnt > 0 && learnt <= DK_LEARNT_BY_STOP ? names[learnt] : NULL;
}

/* Adds an id or a name, made readable, between two words. */
static void
add_id(struct dk_text *text, const char *before, dk_str id, const char *after)
{
  dk_text_puts(text, before);
  dk_text_add_escaped(text, id.ptr, id.len, DK_ESCAPE_VISIBLE);
  dk_text_puts(text, after);
}

static void
add_number(struct dk_text *text, const char *what, uint64_t number)
{
  dk_text_printf(text, "%s%s %llu", text->length > 0 ? ", " : "", what,
                 (unsigned long long)number);
}

/* "instance order-1, execution 2, activity 3 (charge): " */
static void
add_subject(struct dk_text *text, const struct dk_log_event *event)
{
  dk_str name = event->activity.ptr ? event->activity : event->orchestration;

  if (event->instance.ptr)
    add_id(text, "instance ", event->instance, "");
  if (event->execution_id > 1)
    add_number(text, "execution", event->execution_id);
  if (event->activity_id > 0)
    add_number(text, "activity", event->activity_id);
  if (name.ptr)
    add_id(text, text->length > 0 ? " (" : "(", name, ")");
  if (text->length > 0)
    dk_text_puts(text, ": ");
}

/* " [cancelled, learnt by a renewal, DK_LOCK_LOST]" */
static void
add_why(struct dk_text *text, const struct dk_log_event *event)
{
  const char *cause = cause_name(event->cause), *learnt = learnt_name(event->learnt);
  const char *before = " [";
  char name[32];

  if (cause) {
    dk_text_printf(text, "%s%s", before, cause);
    before = ", ";
  }
  if (learnt) {
    dk_text_printf(text, "%slearnt by %s", before, learnt);
    before = ", ";
  }
  if (event->status != DK_OK) {
    dk_text_printf(text, "%s%s", before, dk_status_name(event->status, name, sizeof(name)));
    before = ", ";
  }
  if (before[0] == ',')
    dk_text_puts(text, "]");
}

/* Adds the formatted text; if there is no memory, or the format fails, the format itself. */
static void
add_words(struct dk_text *text, const char *format, va_list args)
{
  struct dk_text words = DK_TEXT_EMPTY;

  dk_text_vprintf(&words, format, args);
  if (dk_text_failed(&words))
    dk_text_puts(text, format);
  else
    dk_text_add_escaped(text, dk_text_str(&words), words.length, DK_ESCAPE_VISIBLE);
  dk_text_done(&words);
}

static void
print_to_stderr(const struct dk_log_event *event)
{
  if (event->level >= DK_LEVEL_WARNING)
    fprintf(stderr, "durakit: %s: %s\n", event->level == DK_LEVEL_WARNING ? "warning" : "error",
            event->text.ptr);
}

static bool
has_no_listener(const struct log *log, int32_t level)
{
  return !log->function && level < DK_LEVEL_WARNING;
}

void
log_report(struct log *log, const struct dk_log_event *event, const char *format, ...)
{
  struct dk_log_event told = *event;
  struct dk_text text = DK_TEXT_EMPTY;
  va_list args;

  told.level = level_of(event);
  if (has_no_listener(log, told.level))
    return;
  told.struct_size = sizeof(told);
  if (!told.worker.ptr)
    told.worker = dk_str_of(log->worker);
  if (!told.text.ptr) {
    add_subject(&text, event);
    va_start(args, format);
    add_words(&text, format, args);
    va_end(args);
    add_why(&text, event);
    /* If there is no memory for the line, a shorter one is better than none. */
    told.text = dk_text_failed(&text) ? dk_str_of(format)
                                      : (dk_str){dk_text_str(&text), text.length};
  }
  if (log->function)
    log->function(log->context, &told);
  else
    print_to_stderr(&told);
  dk_text_done(&text);
}
