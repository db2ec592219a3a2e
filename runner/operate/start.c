/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit start`, `raise` and `enqueue`: a message to one instance. */
#include "runner/cli/message.h"
#include "runner/cli/printer.h"
#include "runner/cli/status-words.h"
#include "runner/operate/host.h"
#include "runner/operate/operate.h"
#include "runner/operate/show.h"
#include "runner/operate/targets.h"
#include "runner/operate/waits.h"

/* Common to all three. */
struct sending {
  struct host host;
  struct printer printer;
  struct ids ids;
  struct dk_text buffer;
  dk_str payload;
};

static int
begin_sending(struct sending *s, const struct options *options, const char *schema)
{
  *s = (struct sending){.printer = printer_of(options, schema, NULL), .buffer = DK_TEXT_EMPTY};
  int code = host_load(&s->host, options, NULL);

  if (code == EXIT_PASSED)
    code = targets_ids_take(&s->host, &s->ids);
  if (code == EXIT_PASSED)
    code = targets_take_payload(&s->host, &s->buffer, &s->payload);
  return code == EXIT_PASSED ? host_open(&s->host, options->operating.create ? DK_OPEN_CREATE : 0)
                             : code;
}

static int
end_sending(struct sending *s, int code)
{
  host_close(&s->host);
  targets_ids_done(&s->ids);
  dk_text_done(&s->buffer);
  return printer_done(&s->printer, code);
}

/* "order-1: started", or as JSON.  `waits_for`: NULL if no event or message was sent. */
static void
print_sending(struct sending *s, const char *outcome, const char *words, const char *waits_for)
{
  struct dk_text line = DK_TEXT_EMPTY;
  json_t *rest = json_object();

  show_text(&line, s->ids.items[0]);
  dk_text_printf(&line, ": %s\n", words);
  printer_text(&s->printer, &line);
  show_json_text(rest, "instance", s->ids.items[0]);
  if (s->host.options->command == COMMAND_RAISE)
    show_json_string(rest, "event", s->host.options->arguments[1]);
  else if (s->host.options->command == COMMAND_ENQUEUE)
    show_json_string(rest, "queue", s->host.options->arguments[1]);
  else
    show_json_string(rest, "name", s->host.options->operating.chosen.name);
  show_json_string(rest, "outcome", outcome);
  if (waits_for)
    show_json_string(rest, "waits_for", waits_for);
  printer_end(&s->printer, rest);
}

/* ---- start ----------------------------------------------------------------------------------- */

int
operate_start(const struct options *options)
{
  const struct chosen *chosen = &options->operating.chosen;
  struct sending s;
  int code = begin_sending(&s, options, "durakit.start/1");

  if (code != EXIT_PASSED)
    return end_sending(&s, code);
  dk_str input = s.payload.ptr ? s.payload : dk_str_of("");
  dk_status status =
    dk_client_start(s.host.client, s.ids.items[0], chosen->name, input, chosen->version);
  if (status == DK_OK) {
    print_sending(&s, "started", "started", NULL);
  } else if (status == DK_DUPLICATE) {
    print_sending(&s, "already_there", "exists already, and was not started again", NULL);
    code = EXIT_VIOLATED;
  } else {
    code = host_failed(&s.host, options->arguments[0], status);
  }
  return end_sending(&s, code);
}

/* ---- raise and enqueue ----------------------------------------------------------------------- */

/* An event, or a message of a queue. */
struct kind {
  const char *outcome;
  enum waits own, other;
  dk_status (*send)(struct dk_client *client, dk_str instance, const char *name, dk_str data);
  const char *waited;    /* the instance waits for what is sent */
  const char *kept;      /* it does not */
  const char *otherwise; /* it waits for the other kind, under this name */
  const char *unknown, *not_started, *not_there;
};

static const struct kind event = {
  .outcome = "raised",
  .own = WAITS_FOR_EVENT,
  .other = WAITS_FOR_QUEUE,
  .send = dk_client_raise,
  .waited = "raised; it waits for this event",
  .kept = "raised; it does not wait for this event now: kept until it does, or continues as new",
  .otherwise = "raised, but it waits on a queue of this name: durakit enqueue sends there",
  .unknown = "raised; it is not known whether it waits for this event",
  .not_started = "raised; it is not started yet: kept for it",
  .not_there = "raised; kept for its start, if one is stored",
};

static const struct kind queue = {
  .outcome = "enqueued",
  .own = WAITS_FOR_QUEUE,
  .other = WAITS_FOR_EVENT,
  .send = dk_client_enqueue,
  .waited = "enqueued; it waits for a message of this queue",
  .kept = "enqueued; it does not wait for this queue now: kept until it does",
  .otherwise = "enqueued, but it waits for an event of this name: durakit raise sends it",
  .unknown = "enqueued; it is not known whether it waits for this queue",
  .not_started = "enqueued; it is not started yet: kept for it",
  .not_there = "enqueued; kept for its start, if one is stored",
};

static int
send_message(struct sending *s, const struct kind *kind, const char *words, const char *waits_for)
{
  const char *const *arguments = s->host.options->arguments;
  dk_str data = s->payload.ptr ? s->payload : dk_str_of("");
  dk_status status = kind->send(s->host.client, s->ids.items[0], arguments[1], data);

  if (status != DK_OK)
    return host_failed(&s->host, arguments[0], status);
  print_sending(s, kind->outcome, words, waits_for);
  return EXIT_PASSED;
}

/* Looks first, then sends: after the sending a runtime may have taken the message. */
static int
send_to_running(struct sending *s, const struct kind *kind)
{
  const enum waits waits = waits_of(s->host.client, s->ids.items[0],
                                    s->host.options->arguments[1]);

  if (host_interrupted(&s->host))
    return host_say_interrupted();
  if (waits & WAITS_UNKNOWN)
    return send_message(s, kind, kind->unknown, "unknown");
  if (waits & kind->own)
    return send_message(s, kind, kind->waited, kind->own == WAITS_FOR_EVENT ? "event" : "queue");
  if (waits & kind->other)
    return send_message(s, kind, kind->otherwise, kind->own == WAITS_FOR_EVENT ? "queue" : "event");
  return send_message(s, kind, kind->kept, "nothing");
}

static void
tell_ended(struct sending *s, int32_t status)
{
  struct dk_text words = DK_TEXT_EMPTY;

  dk_text_printf(&words, "has ended (%s); nothing was sent", status_words(status));
  print_sending(s, "over", dk_text_str(&words), NULL);
  dk_text_done(&words);
}

/* A message to an instance that has ended, or to a mistyped id, would never be read.  If the
 * provider cannot distinguish a missing instance from one that has not started, it is sent. */
static int
send_if_it_lives(struct sending *s, const struct kind *kind)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  dk_status status = dk_client_status(s->host.client, s->ids.items[0], &info);

  if (status == DK_NOT_FOUND && !host_has_admin(&s->host))
    return send_message(s, kind, kind->not_there, "unknown");
  if (status == DK_NOT_FOUND) {
    print_sending(s, "not_found", "not found; nothing was sent", NULL);
    return EXIT_VIOLATED;
  }
  if (status != DK_OK)
    return host_failed(&s->host, s->host.options->arguments[0], status);
  if (info.status == DK_NOT_STARTED)
    return send_message(s, kind, kind->not_started, "nothing");
  if (info.status == DK_RUNNING)
    return send_to_running(s, kind);
  tell_ended(s, info.status);
  return EXIT_VIOLATED;
}

static int
send_one(const struct options *options, const char *schema, const struct kind *kind)
{
  struct sending s;
  int code = begin_sending(&s, options, schema);

  if (code == EXIT_PASSED)
    code = send_if_it_lives(&s, kind);
  return end_sending(&s, code);
}

int
operate_raise(const struct options *options)
{
  return send_one(options, "durakit.raise/1", &event);
}

int
operate_enqueue(const struct options *options)
{
  return send_one(options, "durakit.enqueue/1", &queue);
}
