/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of single fields: see field.h.  Owns nothing. */
#include "core/plugin/field.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/plugin/library.h"
#include "core/plugin/store.h"

enum { FIELD_TEXT = 512, PLACE_TEXT = 64 };

struct dk_form
dk_form_begin(struct dk_call *call)
{
  return (struct dk_form){.call = call, .limits = &call->store->library->limits};
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void
name_place(const struct dk_form *form, const char *field, char place[PLACE_TEXT])
{
  if (form->list && form->index == DK_NO_INDEX)
    snprintf(place, PLACE_TEXT, "%s.%s", form->list, field);
  else if (form->list)
    snprintf(place, PLACE_TEXT, "%s[%zu].%s", form->list, form->index, field);
  else
    snprintf(place, PLACE_TEXT, "%s", field);
}

dk_status
dk_form_refuse(const struct dk_form *form, dk_status status, const char *field, const char *format,
               ...)
{
  char place[PLACE_TEXT], text[FIELD_TEXT];
  va_list args;

  name_place(form, field, place);
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  return dk_call_refuse(form->call, status, "%s: %s: %s", form->call->operation->name, place, text);
}

/* ---- form ------------------------------------------------------------------------------------ */

dk_status
dk_form_struct(const struct dk_form *form, uint32_t struct_size, size_t least)
{
  if (struct_size >= least)
    return DK_OK;
  return dk_form_refuse(form, DK_INVALID, "struct_size", "expected at least %zu, found %u", least,
                        struct_size);
}

dk_status
dk_form_flags(const struct dk_form *form, uint32_t flags, uint32_t known)
{
  if (!(flags & ~known))
    return DK_OK;
  return dk_form_refuse(form, DK_UNSUPPORTED, "flags", "expected none but 0x%x, found 0x%x", known,
                        flags);
}

dk_status
dk_form_value(const struct dk_form *form, const char *field, int32_t value, int32_t most)
{
  if (value >= 0 && value <= most)
    return DK_OK;
  return dk_form_refuse(form, DK_UNSUPPORTED, field, "expected one of 0 to %d, found %d", (int)most,
                        (int)value);
}

static dk_status
refuse_text(const struct dk_form *form, const char *field, struct dk_bytes text)
{
  unsigned most = form->limits->max_id;

  if (text.len == 0)
    return dk_form_refuse(form, DK_INVALID, field, "expected 1 to %u bytes, found %s", most,
                          text.ptr ? "none" : "nothing");
  if (!text.ptr)
    return dk_form_refuse(form, DK_INVALID, field, "expected text, found %zu bytes at NULL",
                          text.len);
  if (text.len > most)
    return dk_form_refuse(form, DK_INVALID, field, "expected 1 to %u bytes, found %zu", most,
                          text.len);
  if (memchr(text.ptr, '\0', text.len))
    return dk_form_refuse(form, DK_INVALID, field, "expected text without NUL, found one");
  return dk_form_refuse(form, DK_INVALID, field, "expected UTF-8, found other bytes");
}

dk_status
dk_form_text(struct dk_form *form, const char *field, struct dk_bytes text, bool may_be_absent)
{
  if (!text.ptr && text.len == 0 && may_be_absent)
    return DK_OK;
  if (!text.ptr || !dk_text_id_valid(text.ptr, text.len, form->limits->max_id))
    return refuse_text(form, field, text);
  if (text.ptr[text.len] != '\0')
    return dk_form_refuse(form, DK_INVALID, field,
                          "expected a NUL after its %zu bytes, found none", text.len);
  form->bytes += text.len;
  return DK_OK;
}

static void
field_count(struct dk_form *form, uint64_t bytes)
{
  if (__builtin_add_overflow(form->bytes, bytes, &form->bytes))
    form->bytes = UINT64_MAX;
}

dk_status
dk_form_payload(struct dk_form *form, const char *field, struct dk_bytes payload)
{
  if (!payload.ptr && payload.len > 0)
    return dk_form_refuse(form, DK_INVALID, field, "expected bytes, found %zu at NULL",
                          payload.len);
  field_count(form, payload.len);
  if (payload.len > form->limits->max_payload && form->too_large == 0) {
    form->too_large = payload.len;
    name_place(form, field, form->too_large_at);
  }
  return DK_OK;
}

dk_status
dk_form_absent(const struct dk_form *form, const char *field, struct dk_bytes bytes,
               const char *why)
{
  if (!bytes.ptr && bytes.len == 0)
    return DK_OK;
  return dk_form_refuse(form, DK_INVALID, field, "expected it to be absent (%s), found %zu bytes",
                        why, bytes.len);
}

dk_status
dk_form_number(const struct dk_form *form, const char *field, uint64_t number)
{
  if (number >= 1 && number <= INT64_MAX)
    return DK_OK;
  return dk_form_refuse(form, DK_INVALID, field, "expected 1 to 2^63 - 1, found %llu",
                        (unsigned long long)number);
}

dk_status
dk_form_at_least(const struct dk_form *form, const char *field, int64_t value, int64_t least)
{
  if (value >= least)
    return DK_OK;
  return dk_form_refuse(form, DK_INVALID, field, "expected at least %lld, found %lld",
                        (long long)least, (long long)value);
}

dk_status
dk_form_list(struct dk_form *form, const char *field, const void *first, size_t n)
{
  if (!first && n > 0)
    return dk_form_refuse(form, DK_INVALID, field, "expected a list, found %zu elements at NULL",
                          n);
  if (__builtin_add_overflow(form->items, n, &form->items))
    form->items = UINT64_MAX;
  return DK_OK;
}

dk_status
dk_form_extension(const struct dk_form *form, const char *field, const char *extension)
{
  if (dk_library_declares(form->call->store->library, extension))
    return DK_OK;
  return dk_form_refuse(form, DK_UNSUPPORTED, field,
                        "expected it to be absent, as the provider does not declare %s, found it",
                        extension);
}

dk_status
dk_form_token(const struct dk_form *form, struct dk_bytes token)
{
  size_t most = (size_t)form->limits->max_id * 2 + 128;

  if (!token.ptr || token.len == 0)
    return dk_form_refuse(form, DK_LOCK_LOST, "token", "expected 1 to %zu bytes, found none", most);
  if (token.len > most)
    return dk_form_refuse(form, DK_LOCK_LOST, "token",
                          "expected 1 to %zu bytes, found %zu: no provider issues such a token",
                          most, token.len);
  if (memchr(token.ptr, '\0', token.len))
    return dk_form_refuse(form, DK_LOCK_LOST, "token",
                          "expected bytes without NUL, found one: no provider issues such a token");
  return DK_OK;
}

/* ---- size ------------------------------------------------------------------------------------ */

dk_status
dk_form_payloads_fit(const struct dk_form *form)
{
  if (form->too_large == 0)
    return DK_OK;
  return dk_call_refuse(form->call, DK_TOO_LARGE,
                        "%s: %s: expected at most %llu bytes (max_payload), found %llu",
                        form->call->operation->name, form->too_large_at,
                        (unsigned long long)form->limits->max_payload,
                        (unsigned long long)form->too_large);
}

dk_status
dk_form_commit_fits(const struct dk_form *form)
{
  const char *name = form->call->operation->name;

  TRY(dk_form_payloads_fit(form));
  if (form->items > form->limits->max_commit_items)
    return dk_call_refuse(form->call, DK_TOO_LARGE,
                          "%s: expected at most %llu items in all lists (max_commit_items), "
                          "found %llu", name, (unsigned long long)form->limits->max_commit_items,
                          (unsigned long long)form->items);
  if (form->bytes > form->limits->max_commit_bytes)
    return dk_call_refuse(form->call, DK_TOO_LARGE,
                          "%s: expected at most %llu bytes together (max_commit_bytes), found %llu",
                          name, (unsigned long long)form->limits->max_commit_bytes,
                          (unsigned long long)form->bytes);
  return DK_OK;
}
