/* SPDX-License-Identifier: Apache-2.0 */
/* Text and times of a store, shown: see show.h. */
#include "runner/operate/show.h"

#include <stdbool.h>

#include "core/base/utf8.h"
#include "runner/cli/json-memory.h"
#include "runner/cli/status-words.h"
#include "runner/cli/when.h"

/* ---- for people ------------------------------------------------------------------------------ */

void
show_text(struct dk_text *out, dk_str text)
{
  if (text.ptr)
    dk_text_add_escaped(out, text.ptr, text.len, DK_ESCAPE_VISIBLE);
}

void
show_string(struct dk_text *out, const char *string)
{
  show_text(out, dk_str_of(string));
}

void
show_time(struct dk_text *out, int64_t ms)
{
  char text[WHEN_SIZE] = "(no date)";

  if (ms != 0)
    when_format(ms, text);
  dk_text_printf(out, "%-24s", text);
}

void
show_why(struct dk_text *out, dk_str by, dk_str why)
{
  if (by.ptr && by.len > 0) {
    dk_text_puts(out, " by ");
    show_text(out, by);
  }
  if (why.ptr && why.len > 0) {
    dk_text_puts(out, ": ");
    show_text(out, why);
  }
}

void
show_field(struct dk_text *out, const char *label, dk_str text)
{
  if (!text.ptr)
    return;
  dk_text_printf(out, "  %-10s  ", label);
  show_text(out, text);
  dk_text_puts(out, "\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void
add_base64(struct dk_text *out, const unsigned char *bytes, size_t n)
{
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

  for (size_t i = 0; i < n; i += 3) {
    uint32_t three = (uint32_t)bytes[i] << 16;
    three |= i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0;
    three |= i + 2 < n ? bytes[i + 2] : 0;
    char four[4] = {letters[three >> 18], letters[three >> 12 & 63],
                    i + 1 < n ? letters[three >> 6 & 63] : '=',
                    i + 2 < n ? letters[three & 63] : '='};
    dk_text_add(out, four, sizeof(four));
  }
}

void
show_json_text(json_t *object, const char *key, dk_str text)
{
  if (!text.ptr) {
    json_object_set_new(object, key, json_null());
  } else if (dk_utf8_valid(text.ptr, text.len)) {
    json_object_set_new(object, key, json_stringn(text.ptr, text.len));
  } else {
    struct dk_text other = DK_TEXT_EMPTY, value = DK_TEXT_EMPTY;
    dk_text_printf(&other, "%s_base64", key);
    if (dk_text_failed(&other))
      dk_text_fail(&value);
    add_base64(&value, (const unsigned char *)text.ptr, text.len);
    json_object_set_new(object, dk_text_str(&other), json_memory_of_text(&value));
    dk_text_done(&other);
    dk_text_done(&value);
  }
}

void
show_json_string(json_t *object, const char *key, const char *string)
{
  show_json_text(object, key, dk_str_of(string));
}

void
show_json_time(json_t *object, const char *key, int64_t ms)
{
  char text[WHEN_SIZE];

  if (ms == 0) {
    json_object_set_new(object, key, json_null());
    return;
  }
  when_format(ms, text);
  json_object_set_new(object, key, json_string(text));
}

void
show_json_number(json_t *object, const char *key, uint64_t number)
{
  json_object_set_new(object, key, json_integer((json_int_t)number));
}

void
show_json_bool(json_t *object, const char *key, bool value)
{
  json_object_set_new(object, key, json_boolean(value));
}

static void
put_result(json_t *object, const struct dk_instance_info *info)
{
  if (info->status == DK_COMPLETED)
    show_json_text(object, "output", info->output);
  if (info->status == DK_FAILED)
    show_json_text(object, "error", info->output);
  if (info->status == DK_NOT_STARTED)
    show_json_text(object, "input", info->output);
  if (info->status != DK_CANCELLED)
    return;
  json_t *cancelled = json_object();
  show_json_time(cancelled, "at", info->ended_at);
  show_json_text(cancelled, "by", info->cancelled_by);
  show_json_text(cancelled, "reason", info->output);
  json_object_set_new(object, "cancelled", cancelled);
}

json_t *
show_json_instance(const struct dk_instance_info *info)
{
  json_t *object = json_object();

  show_json_text(object, "instance", info->instance);
  show_json_string(object, "status", status_word(info->status));
  show_json_text(object, "name", info->name);
  show_json_text(object, "version", info->version);
  show_json_number(object, "execution", info->execution_id);
  show_json_number(object, "events", info->n_events);
  show_json_time(object, "created_at", info->created_at);
  show_json_time(object, "started_at", info->started_at);
  show_json_time(object, "ended_at", info->ended_at);
  show_json_time(object, "locked_until", info->locked_until);
  show_json_text(object, "parent", info->parent);
  show_json_text(object, "owner", info->owner);
  put_result(object, info);
  return object;
}

json_t *
show_json_removed(const struct dk_removed *removed)
{
  json_t *object = json_object();

  show_json_number(object, "instances", removed->instances);
  if (removed->roots > 0 || removed->instances == 0) /* else the provider does not count them */
    show_json_number(object, "roots", removed->roots);
  show_json_number(object, "executions", removed->executions);
  show_json_number(object, "events", removed->events);
  show_json_number(object, "messages", removed->messages);
  show_json_number(object, "activities", removed->activities);
  return object;
}
