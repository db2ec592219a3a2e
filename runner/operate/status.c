/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit status` and `durakit wait`: the status of instances, what waits for them, how they
 * end. */
#include <inttypes.h>
#include <string.h>

#include "runner/cli/message.h"
#include "runner/cli/printer.h"
#include "runner/cli/status-words.h"
#include "runner/cli/when.h"
#include "runner/operate/host.h"
#include "runner/operate/operate.h"
#include "runner/operate/show.h"
#include "runner/operate/targets.h"

struct looking {
  struct host host;
  struct printer printer;
  struct ids ids;
  size_t n_found, n_not_found;
};

static int
begin_looking(struct looking *l, const struct options *options, uint32_t flags, const char *schema)
{
  *l = (struct looking){.printer = printer_of(options, schema, "instances")};
  int code = host_load(&l->host, options, NULL);

  if (code == EXIT_PASSED)
    code = targets_ids_take(&l->host, &l->ids);
  if (code == EXIT_PASSED && options->command == COMMAND_WAIT)
    host_waits_until(&l->host, when_until(options->operating.wait_ms), "--timeout");
  return code == EXIT_PASSED ? host_open(&l->host, flags) : code;
}

static int
end_looking(struct looking *l, int code)
{
  host_close(&l->host);
  targets_ids_done(&l->ids);
  return printer_done(&l->printer, code);
}

/* ---- for people ------------------------------------------------------------------------------ */

static void
show_moment(struct dk_text *out, const char *label, int64_t ms)
{
  if (ms == 0)
    return;
  dk_text_printf(out, "  %-10s  ", label);
  show_time(out, ms);
  dk_text_puts(out, "\n");
}

/* What the text of an instance with this status is. */
static const char *
label_of_result(int32_t status)
{
  switch (status) {
  case DK_NOT_STARTED:
    return "input";
  case DK_COMPLETED:
    return "output";
  case DK_FAILED:
    return "error";
  case DK_CANCELLED:
    return "reason";
  default:
    return "result";
  }
}

static void
show_info(struct dk_text *out, const struct dk_instance_info *info)
{
  show_text(out, info->instance);
  dk_text_printf(out, "\n  %-10s  %s\n", "status", status_words(info->status));
  if (info->name.ptr) {
    dk_text_printf(out, "  %-10s  ", "name");
    show_text(out, info->name);
    dk_text_puts(out, info->version.ptr ? " " : "");
    show_text(out, info->version);
    dk_text_puts(out, "\n");
  }
  show_field(out, "parent", info->parent);
  if (info->status != DK_NOT_STARTED)
    dk_text_printf(out, "  %-10s  %" PRIu64 ", %" PRIu64 " event%s\n", "execution",
                   info->execution_id, info->n_events, info->n_events == 1 ? "" : "s");
  show_moment(out, "created", info->created_at);
  if (info->execution_id > 1)
    show_moment(out, "began", info->started_at);
  show_moment(out, info->status == DK_CANCELLED ? "cancelled" : "ended", info->ended_at);
  show_field(out, "by", info->cancelled_by);
  show_field(out, label_of_result(info->status), info->output);
  show_moment(out, "turn until", info->locked_until);
}

/* ---- what waits ------------------------------------------------------------------------------ */

struct waiting {
  struct printer *printer;
  struct dk_text lines;
  json_t *list;
  json_t *delays;  /* NULL: nothing is delayed */
  bool is_over;    /* the instance has ended: a delay does not matter any more */
};

/* Why a worker could not continue with it, and until when it is delayed. */
static void
take_delay(struct waiting *w, const struct dk_waiting *delay)
{
  json_t *object = json_object();

  dk_text_printf(&w->lines, "  %-10s  until ", "delayed");
  show_time(&w->lines, delay->visible_at);
  dk_text_puts(&w->lines, ": ");
  show_text(&w->lines, delay->name);
  dk_text_puts(&w->lines, ": ");
  show_text(&w->lines, delay->text);
  dk_text_puts(&w->lines, "\n");
  show_json_text(object, "code", delay->name);
  show_json_text(object, "text", delay->text);
  show_json_text(object, "by", delay->by);
  show_json_time(object, "since", delay->enqueued_at);
  show_json_time(object, "until", delay->visible_at);
  if (!w->delays)
    w->delays = json_array();
  json_array_append_new(w->delays, object);
}

/* Its name: a message that cannot be read has only its id. */
static dk_str
label_of(const struct dk_waiting *message)
{
  return strcmp(message->kind, "unreadable") == 0 ? message->id : message->name;
}

static int32_t
take_waiting(void *context, const struct dk_waiting *message)
{
  struct waiting *w = context;

  if (strcmp(message->kind, "delayed") == 0) {
    if (!w->is_over)
      take_delay(w, message);
    return 0;
  }
  dk_text_printf(&w->lines, "  %-10s  %s", "waiting", message->kind);
  if (label_of(message).ptr) {
    dk_text_puts(&w->lines, " ");
    show_text(&w->lines, label_of(message));
  }
  dk_text_puts(&w->lines, message->visible_at > when_now() ? ", from " : ", since ");
  show_time(&w->lines, message->visible_at);
  if (strcmp(message->kind, "start") != 0) /* its text is the input, which is shown */
    show_why(&w->lines, message->by, message->text);
  dk_text_puts(&w->lines, "\n");

  json_t *object = json_object();
  show_json_string(object, "kind", message->kind);
  show_json_text(object, "id", message->id);
  show_json_text(object, "name", message->name);
  show_json_text(object, "by", message->by);
  show_json_text(object, "text", message->text);
  show_json_time(object, "enqueued_at", message->enqueued_at);
  show_json_time(object, "visible_at", message->visible_at);
  if (strcmp(message->kind, "unreadable") == 0)
    show_json_text(object, "payload", message->payload);
  json_array_append_new(w->list, object);
  return 0;
}

/* ---- status ---------------------------------------------------------------------------------- */

static void
tell_not_found(struct looking *l, dk_str id)
{
  struct dk_text line = DK_TEXT_EMPTY;
  json_t *object = json_object();

  show_text(&line, id);
  dk_text_printf(&line, "\n  %-10s  not found%s\n", "status",
                 host_has_admin(&l->host) ? ""
                                          : ", or not started: the provider does not know which");
  printer_text(&l->printer, &line);
  show_json_text(object, "instance", id);
  show_json_string(object, "status", "not_found");
  printer_item(&l->printer, object);
  l->n_not_found++;
}

/* Nothing waits for an instance that was deleted meanwhile. */
static dk_status
read_waiting(struct looking *l, dk_str id, struct waiting *w)
{
  if (!host_has_admin(&l->host))
    return DK_OK;
  dk_status status = dk_client_messages(l->host.client, id, take_waiting, w);
  return status == DK_NOT_FOUND ? DK_OK : status;
}

static dk_status
tell_status(struct looking *l, dk_str id)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  dk_status status = dk_client_status(l->host.client, id, &info);

  if (status == DK_NOT_FOUND) {
    tell_not_found(l, id);
    return DK_OK;
  }
  if (status != DK_OK)
    return status;
  struct waiting w = {.lines = DK_TEXT_EMPTY,
                      .list = json_array(),
                      .is_over = info.status != DK_NOT_STARTED && info.status != DK_RUNNING};
  json_t *object = show_json_instance(&info);
  show_info(&w.lines, &info);
  status = read_waiting(l, id, &w); /* the texts of the info are invalid from here on */
  if (host_has_admin(&l->host))
    json_object_set_new(object, "waiting", w.list);
  else
    json_decref(w.list);
  if (w.delays)
    json_object_set_new(object, "delayed", w.delays);
  printer_text(&l->printer, &w.lines);
  printer_item(&l->printer, object);
  l->n_found++;
  return status;
}

static void
tell_counts(struct looking *l, int code)
{
  json_t *rest = json_object();

  show_json_number(rest, "found", l->n_found);
  show_json_number(rest, "not_found", l->n_not_found);
  show_json_bool(rest, "complete", code <= EXIT_VIOLATED);
  printer_end(&l->printer, rest);
}

int
operate_status(const struct options *options)
{
  struct looking l;
  int code = begin_looking(&l, options, DK_OPEN_READ_ONLY, "durakit.status/1");

  if (code != EXIT_PASSED)
    return end_looking(&l, code);
  for (size_t i = 0; code == EXIT_PASSED && i < l.ids.n && !printer_broken(&l.printer); i++) {
    dk_status status = tell_status(&l, l.ids.items[i]);
    if (status != DK_OK)
      code = host_failed(&l.host, l.ids.items[i].ptr, status);
  }
  if (code == EXIT_PASSED && l.n_not_found > 0)
    code = EXIT_VIOLATED;
  tell_counts(&l, code);
  return end_looking(&l, code);
}

/* ---- wait ------------------------------------------------------------------------------------ */

static void
print_end_of_instance(struct looking *l, const struct dk_instance_info *info)
{
  struct dk_text line = DK_TEXT_EMPTY;

  show_text(&line, info->instance);
  dk_text_printf(&line, ": %s", status_words(info->status));
  show_why(&line, info->cancelled_by, info->output);
  dk_text_puts(&line, "\n");
  printer_text(&l->printer, &line);
  printer_item(&l->printer, show_json_instance(info));
  printer_flush(&l->printer);
}

/* An instance that has not ended in time, or does not exist. */
static void
tell_other(struct looking *l, dk_str id, const char *word, const char *words)
{
  struct dk_text line = DK_TEXT_EMPTY;
  json_t *object = json_object();

  show_text(&line, id);
  dk_text_printf(&line, ": %s\n", words);
  printer_text(&l->printer, &line);
  show_json_text(object, "instance", id);
  show_json_string(object, "status", word);
  printer_item(&l->printer, object);
  printer_flush(&l->printer);
}

/* EXIT_PASSED: it has completed. */
static int
wait_for(struct looking *l, dk_str id)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  dk_status status;

  do
    status = dk_client_status(l->host.client, id, &info);
  while (host_waits_on(&l->host, status, dk_client_error(l->host.client)));
  /* The command would wait for a mistyped id without end. */
  if (status == DK_NOT_FOUND && host_has_admin(&l->host)) {
    tell_other(l, id, "not_found", "not found");
    return EXIT_VIOLATED;
  }
  if (status == DK_NOT_FOUND)
    host_refuse(&l->host, EXIT_PASSED, id.ptr, "no turn of it has been committed", NULL,
                "the command waits for its start; the provider does not know whether one is "
                "stored");
  else if (status != DK_OK && dk_status_class(status) == 2)
    return host_failed(&l->host, id.ptr, status);
  info = (struct dk_instance_info){.struct_size = sizeof(info)};
  status = host_wait(&l->host, id, &info);
  if (status == DK_NOTHING) {
    tell_other(l, id, "not_over", "has not ended in time");
    return EXIT_VIOLATED;
  }
  if (status != DK_OK)
    return host_failed(&l->host, id.ptr, status);
  print_end_of_instance(l, &info);
  return info.status == DK_COMPLETED ? EXIT_PASSED : EXIT_VIOLATED;
}

int
operate_wait(const struct options *options)
{
  struct looking l;
  int code = begin_looking(&l, options, DK_OPEN_READ_ONLY, "durakit.wait/1");

  if (code != EXIT_PASSED)
    return end_looking(&l, code);
  for (size_t i = 0; code <= EXIT_VIOLATED && i < l.ids.n && !printer_broken(&l.printer); i++) {
    int one = wait_for(&l, l.ids.items[i]);
    code = one > code ? one : code;
  }
  if (host_interrupted(&l.host))
    message_print("interrupted: the instances continue");
  json_t *rest = json_object();
  show_json_bool(rest, "complete", code <= EXIT_VIOLATED);
  printer_end(&l.printer, rest);
  return end_looking(&l, code);
}
