/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit start` and `durakit raise`: a message to one instance. */
#include "runner/operate/host.h"
#include "runner/operate/operate.h"
#include "runner/operate/print.h"
#include "runner/operate/show.h"
#include "runner/operate/targets.h"
#include "runner/say.h"

/* What both have. */
struct sending {
  struct host host;
  struct printer printer;
  struct ids ids;
  struct dk_text buffer;
  dk_str payload;
};

static int
begin(struct sending *s, const struct options *options, const char *schema)
{
  *s = (struct sending){.printer = printer_of(options, schema, NULL), .buffer = DK_TEXT_EMPTY};
  int code = host_load(&s->host, options, NULL);

  if (code == EXIT_PASSED)
    code = ids_take(&s->host, &s->ids);
  if (code == EXIT_PASSED)
    code = payload_take(&s->host, &s->buffer, &s->payload);
  return code == EXIT_PASSED ? host_open(&s->host, options->operating.create ? DK_OPEN_CREATE : 0)
                             : code;
}

static int
end(struct sending *s, int code)
{
  host_close(&s->host);
  ids_done(&s->ids);
  dk_text_done(&s->buffer);
  return printer_done(&s->printer, code);
}

/* "order-1: started", or as JSON. */
static void
tell(struct sending *s, const char *outcome, const char *words)
{
  struct dk_text line = DK_TEXT_EMPTY;
  json_t *rest = json_object();

  show_text(&line, s->ids.items[0]);
  dk_text_printf(&line, ": %s\n", words);
  printer_text(&s->printer, &line);
  json_add_text(rest, "instance", s->ids.items[0]);
  if (s->host.options->command == COMMAND_RAISE)
    json_add_string(rest, "event", s->host.options->arguments[1]);
  else
    json_add_string(rest, "name", s->host.options->operating.chosen.name);
  json_add_string(rest, "outcome", outcome);
  printer_end(&s->printer, rest);
}

/* ---- start ----------------------------------------------------------------------------------- */

int
operate_start(const struct options *options)
{
  const struct chosen *chosen = &options->operating.chosen;
  struct sending s;
  int code = begin(&s, options, "durakit.start/1");

  if (code != EXIT_PASSED)
    return end(&s, code);
  dk_str input = s.payload.ptr ? s.payload : dk_str_of("");
  dk_status status =
    dk_client_start(s.host.client, s.ids.items[0], chosen->name, input, chosen->version);
  if (status == DK_OK) {
    tell(&s, "started", "started");
  } else if (status == DK_DUPLICATE) {
    tell(&s, "already_there", "is there already, and was not started again");
    code = EXIT_VIOLATED;
  } else {
    code = host_failed(&s.host, options->arguments[0], status);
  }
  return end(&s, code);
}

/* ---- raise ----------------------------------------------------------------------------------- */

/* How the instance stands: DK_OK and its status, DK_NOT_FOUND, or what has failed. */
static dk_status
look(struct sending *s, int32_t *ret_status)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  dk_status status = dk_client_status(s->host.client, s->ids.items[0], &info);

  if (status == DK_OK)
    *ret_status = info.status;
  return status;
}

static int
raise_event(struct sending *s, const char *words)
{
  const char *const *arguments = s->host.options->arguments;
  dk_str data = s->payload.ptr ? s->payload : dk_str_of("");
  dk_status status = dk_client_raise(s->host.client, s->ids.items[0], arguments[1], data);

  if (status != DK_OK)
    return host_failed(&s->host, arguments[0], status);
  tell(s, "raised", words);
  return EXIT_PASSED;
}

/* Nobody would ever read what is sent to what is over, or to an id that was mistyped.  Of a
 * provider that cannot tell what has not started, it is sent. */
static int
raise_if_it_lives(struct sending *s)
{
  int32_t state = DK_RUNNING;
  dk_status status = look(s, &state);

  if (status == DK_NOT_FOUND && !host_has_admin(&s->host))
    return raise_event(s, "raised; it waits for the start, if one is stored");
  if (status == DK_NOT_FOUND) {
    tell(s, "not_found", "not found; nothing was sent");
    return EXIT_VIOLATED;
  }
  if (status != DK_OK)
    return host_failed(&s->host, s->host.options->arguments[0], status);
  if (state == DK_RUNNING || state == DK_NOT_STARTED)
    return raise_event(s, "raised");
  tell(s, "over", "is over; nothing was sent");
  return EXIT_VIOLATED;
}

int
operate_raise(const struct options *options)
{
  struct sending s;
  int code = begin(&s, options, "durakit.raise/1");

  if (code == EXIT_PASSED)
    code = raise_if_it_lives(&s);
  return end(&s, code);
}
