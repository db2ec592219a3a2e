/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit history`: what has happened to an instance, event by event. */
#include <inttypes.h>
#include <string.h>

#include "runner/cli/json-memory.h"
#include "runner/cli/message.h"
#include "runner/cli/printer.h"
#include "runner/operate/host.h"
#include "runner/operate/operate.h"
#include "runner/operate/show.h"
#include "runner/operate/targets.h"

struct telling {
  struct host host;
  struct printer printer;
  uint64_t execution;  /* that the last event was of */
};

static bool
is(const struct dk_history_entry *entry, const char *kind)
{
  return strcmp(entry->kind, kind) == 0;
}

/* What its text is: the words before it. */
static void
show_entry_text(struct dk_text *out, const struct dk_history_entry *entry)
{
  if (is(entry, "cancelled") || is(entry, "cancel_requested")) {
    show_why(out, entry->by, entry->text);
  } else if (is(entry, "unreadable")) {
    dk_text_puts(out, " ");
    show_text(out, entry->payload);
  } else if (entry->text.len > 0) {
    dk_text_puts(out, ": ");
    show_text(out, entry->text);
  }
}

/* How long the timer lasts, and until when; only the payload has both. */
static void
show_timer(struct dk_text *out, dk_str payload)
{
  json_t *timer = json_loadb(payload.ptr, payload.len, JSON_ALLOW_NUL, NULL);
  const json_t *duration = json_object_get(timer, "duration");
  const json_t *fire_at = json_object_get(timer, "fire_at");

  if (json_is_integer(duration))
    dk_text_printf(out, " %.3f s", (double)json_integer_value(duration) / 1000);
  if (json_is_integer(fire_at)) {
    dk_text_puts(out, ", until ");
    show_time(out, json_integer_value(fire_at));
  }
  json_decref(timer);
  if (json_memory_failed())
    dk_text_fail(out);
}

/* "  5  2026-11-01T08:00:00.000Z  dropped of 2 (select_loser_timeout)". */
static void
show_entry(struct dk_text *out, const struct dk_history_entry *entry)
{
  dk_text_printf(out, "%4" PRIu64 "  ", entry->event_id);
  show_time(out, entry->time);
  dk_text_puts(out, "  ");
  show_string(out, entry->kind);
  if (entry->source != 0)
    dk_text_printf(out, " of %" PRIu64, entry->source);
  if (entry->name.ptr) {
    dk_text_puts(out, " ");
    show_text(out, entry->name);
  }
  if (entry->other_instance.ptr) {
    dk_text_puts(out, is(entry, "started") ? " for " : " as ");
    show_text(out, entry->other_instance);
  }
  if (entry->code[0]) {
    dk_text_puts(out, " (");
    show_string(out, entry->code);
    dk_text_puts(out, ")");
  }
  if (is(entry, "timer"))
    show_timer(out, entry->payload);
  show_entry_text(out, entry);
  dk_text_puts(out, "\n");
}

/* The payload as the runtime wrote it; if it is not JSON, as text. */
static void
put_payload(json_t *object, dk_str payload)
{
  json_t *value = payload.ptr
                    ? json_loadb(payload.ptr, payload.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
                    : NULL;

  if (value)
    json_object_set_new(object, "payload", value);
  else
    show_json_text(object, "payload", payload);
}

static json_t *
json_of_entry(const struct dk_history_entry *entry)
{
  json_t *object = json_object();

  show_json_number(object, "execution", entry->execution_id);
  show_json_number(object, "event", entry->event_id);
  show_json_time(object, "time", entry->time);
  show_json_string(object, "kind", entry->kind);
  if (entry->source != 0)
    show_json_number(object, "source", entry->source);
  if (entry->code[0])
    show_json_string(object, "code", entry->code);
  if (entry->name.ptr)
    show_json_text(object, "name", entry->name);
  if (entry->other_instance.ptr)
    show_json_text(object, "other_instance", entry->other_instance);
  if (is(entry, "cancelled") || is(entry, "cancel_requested")) {
    show_json_text(object, "by", entry->by);
    show_json_text(object, "reason", entry->text);
  } else if (entry->text.ptr) {
    show_json_text(object, "text", entry->text);
  }
  put_payload(object, entry->payload);
  return object;
}

static int32_t
take_entry(void *context, const struct dk_history_entry *entry)
{
  struct telling *t = context;
  struct dk_text line = DK_TEXT_EMPTY;

  t->execution = entry->execution_id;
  show_entry(&line, entry);
  printer_text(&t->printer, &line);
  if (!printer_is_text(&t->printer))
    printer_item(&t->printer, json_of_entry(entry));
  return printer_broken(&t->printer) || host_interrupted(&t->host);
}

/* There is no such execution: an instance that has not started has none at all. */
static int
tell_none(struct telling *t, dk_str id)
{
  const struct operating *operating = &t->host.options->operating;
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  dk_status status = dk_client_status(t->host.client, id, &info);

  if (status == DK_OK && info.status == DK_NOT_STARTED && operating->execution == 0) {
    printer_line(&t->printer, "not started: no turn of it has been committed");
    return EXIT_PASSED;
  }
  if (status != DK_OK && status != DK_NOT_FOUND)
    return host_failed(&t->host, id.ptr, status);
  if (status == DK_OK)
    return host_refuse(&t->host, EXIT_VIOLATED, id.ptr, "this execution is not stored", NULL,
                       "without --execution the latest is shown");
  return host_refuse(&t->host, EXIT_VIOLATED, id.ptr, "there is no such instance", NULL,
                     host_has_admin(&t->host) ? "durakit instances lists all"
                                              : "or it has not started: the provider does not "
                                                "know which");
}

static int
tell_history(struct telling *t, dk_str id)
{
  const struct operating *operating = &t->host.options->operating;
  dk_status status = dk_client_history(t->host.client, id, operating->execution,
                                       operating->from, operating->limit, take_entry, t);

  if (status == DK_OK) {
    bool all = operating->execution == 0 && operating->from == 0 && operating->limit == 0;
    if (all && t->execution > 1)
      printer_line(&t->printer, "execution %" PRIu64 ", after %" PRIu64 " that continued as new: "
                                "--execution N shows one of them",
                   t->execution, t->execution - 1);
    if (t->execution == 0 && operating->from > 0)
      printer_line(&t->printer, "no event from number %" PRIu64 " on", operating->from);
    return EXIT_PASSED;
  }
  if (status == DK_NOT_FOUND)
    return tell_none(t, id);
  if (status == DK_CALL_CANCELLED && printer_broken(&t->printer))
    return EXIT_INCOMPLETE;
  return host_failed(&t->host, id.ptr, status);
}

int
operate_history(const struct options *options)
{
  struct telling t = {.printer = printer_of(options, "durakit.history/1", "events")};
  struct ids ids = {.file = DK_TEXT_EMPTY};
  int code = host_load(&t.host, options, NULL);

  if (code == EXIT_PASSED)
    code = targets_ids_take(&t.host, &ids);
  if (code == EXIT_PASSED)
    code = host_open(&t.host, DK_OPEN_READ_ONLY);
  if (code == EXIT_PASSED) {
    code = tell_history(&t, ids.items[0]);
    json_t *rest = json_object();
    show_json_text(rest, "instance", ids.items[0]);
    if (t.execution != 0)
      show_json_number(rest, "execution", t.execution);
    else
      json_object_set_new(rest, "execution", json_null());
    show_json_bool(rest, "complete", code == EXIT_PASSED);
    printer_end(&t.printer, rest);
  }
  host_close(&t.host);
  targets_ids_done(&ids);
  return printer_done(&t.printer, code);
}
