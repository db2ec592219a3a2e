/* SPDX-License-Identifier: Apache-2.0 */
/* Settings, checked against the parameters that a provider declares.  Owns nothing. */
#include "core/plugin/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/plugin/library.h"
#include "core/plugin/refusal.h"

/* ---- types ----------------------------------------------------------------------------------- */

static bool
is_text(struct dk_bytes value)
{
  return value.ptr && !memchr(value.ptr, '\0', value.len);
}

static bool
is_path(struct dk_bytes value)
{
  return is_text(value) && value.len > 0;
}

/* Reads the number at the beginning of the text; *ret_rest is the text after it. */
static bool
settings_read_number(struct dk_bytes value, int64_t *ret_number, const char **ret_rest)
{
  bool negative = value.len > 0 && value.ptr[0] == '-';
  size_t i = negative;
  int64_t number = 0;

  for (; i < value.len && isdigit((unsigned char)value.ptr[i]); i++) {
    int64_t digit = value.ptr[i] - '0';
    if (__builtin_mul_overflow(number, 10, &number) ||
        __builtin_sub_overflow(number, digit, &number))
      return false;
  }
  /* Counted downwards, because the smallest number has no positive counterpart. */
  if (i == (size_t)negative || (!negative && number == INT64_MIN))
    return false;
  *ret_number = negative ? number : -number;
  *ret_rest = value.ptr + i;
  return true;
}

static bool
is_integer(struct dk_bytes value)
{
  int64_t number;
  const char *rest;

  return is_text(value) && settings_read_number(value, &number, &rest) &&
         rest == value.ptr + value.len;
}

static bool
is_one_of(struct dk_bytes value, const char *const *words)
{
  for (; *words; words++)
    if (strlen(*words) == value.len && memcmp(*words, value.ptr, value.len) == 0)
      return true;
  return false;
}

static bool
is_boolean(struct dk_bytes value)
{
  static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "1", "0", NULL};

  return is_text(value) && is_one_of(value, words);
}

static bool
is_duration(struct dk_bytes value)
{
  static const struct {
    const char *name;
    int64_t ms;
  } units[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
  int64_t number;
  const char *rest;

  if (!is_text(value) || !settings_read_number(value, &number, &rest) || number < 0)
    return false;
  size_t length = (size_t)(value.ptr + value.len - rest);
  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
    if (strlen(units[i].name) == length && memcmp(units[i].name, rest, length) == 0)
      return number <= INT64_MAX / units[i].ms;
  return false;
}

static bool
is_port(struct dk_bytes value)
{
  int64_t port;
  const char *rest;

  return settings_read_number(value, &port, &rest) && rest == value.ptr + value.len && port >= 1 &&
         port <= 65535;
}

/* A path of a socket, or a host with or without a port; the provider checks what it refers to. */
static bool
is_address(struct dk_bytes value)
{
  if (!is_path(value))
    return false;
  for (size_t i = 0; i < value.len; i++)
    if (isspace((unsigned char)value.ptr[i]))
      return false;

  const char *colon = memrchr(value.ptr, ':', value.len);
  const char *bracket = memrchr(value.ptr, ']', value.len);
  if (value.ptr[0] == '/' || !colon || (bracket && bracket > colon))
    return true;
  size_t before = (size_t)(colon - value.ptr);
  return before > 0 && is_port((struct dk_bytes){colon + 1, value.len - before - 1});
}

struct type {
  const char *name;
  const char *form;
  bool (*fits)(struct dk_bytes value);
};

static const struct type types[] = {
  {"string", "text without NUL", is_text},
  {"path", "a path, not empty, without NUL", is_path},
  {"integer", "a whole number of 64 bits, such as 42 or -7", is_integer},
  {"boolean", "one of true, false, yes, no, on, off, 1, 0", is_boolean},
  {"duration", "a number and a unit (250ms, 5s, 2m, 1h), or milliseconds without one",
   is_duration},
  {"address", "host, host:port, [address]:port or the path of a socket", is_address},
};

static const struct type *
type_of(const char *name)
{
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
    if (strcmp(types[i].name, name) == 0)
      return &types[i];
  return NULL;
}

const char *
dk_setting_type_form(const char *type)
{
  const struct type *found = type_of(type);

  return found ? found->form : NULL;
}

bool
dk_setting_fits(const char *type, struct dk_bytes value)
{
  return type_of(type)->fits(value);
}

/* ---- nearest match --------------------------------------------------------------------------- */

enum { LONGEST_COMPARED = 64 };

/* How many letters must be inserted, deleted or changed to turn one into the other. */
static size_t
distance(const char *a, const char *b)
{
  size_t row[LONGEST_COMPARED + 1];
  size_t length = strlen(b);

  if (strlen(a) > LONGEST_COMPARED || length > LONGEST_COMPARED)
    return LONGEST_COMPARED;
  for (size_t j = 0; j <= length; j++)
    row[j] = j;
  for (size_t i = 0; a[i]; i++) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < length; j++) {
      size_t change = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      size_t shift = (row[j] < diagonal ? row[j] : diagonal) + 1;
      row[j + 1] = change < shift ? change : shift;
    }
  }
  return row[length];
}

static const char *
nearest(const struct dk_param *params, const char *key)
{
  const char *best = NULL;
  size_t best_distance = strlen(key) / 3 + 2;

  for (; params && params->key; params++) {
    size_t this_distance = distance(params->key, key);
    if (this_distance < best_distance) {
      best = params->key;
      best_distance = this_distance;
    }
  }
  return best;
}

/* ---- the check ------------------------------------------------------------------------------- */

static void
list_keys(const struct dk_param *params, char part[DK_REFUSAL_TEXT])
{
  part[0] = '\0';
  for (const struct dk_param *at = params; at && at->key; at++)
    dk_refusal_add(part, "%s", at->key);
  if (!part[0])
    dk_refusal_say(part, "no settings: this provider has none");
}

static int32_t
refuse_unknown(const struct dk_param *params, const char *where, const char *key,
               struct dk_refusal *refusal)
{
  const char *like = nearest(params, key);

  dk_refusal_begin(refusal, 0, key, "there is no setting '%s'", key);
  list_keys(params, refusal->expected);
  dk_refusal_say(refusal->found, "%s", key);
  if (like)
    dk_refusal_say(refusal->next, "did you mean '%s'?", like);
  else
    dk_refusal_say(refusal->next, "durakit probe %s lists its settings", where);
  return -1;
}

static int32_t
refuse_value(const struct dk_param *param, struct dk_bytes value, struct dk_refusal *refusal)
{
  dk_refusal_begin(refusal, 0, param->key, "the value of the setting '%s' is not a valid %s",
                   param->key, param->type);
  dk_refusal_say(refusal->expected, "%s", dk_setting_type_form(param->type));
  if (param->flags & DK_PARAM_SECRET)
    dk_refusal_say(refusal->found, "a secret of %zu bytes", value.len);
  else if (!value.ptr)
    dk_refusal_say(refusal->found, "no value");
  else
    dk_refusal_say(refusal->found, "'%.*s'", (int)(value.len < 200 ? value.len : 200), value.ptr);
  if (param->help)
    dk_refusal_say(refusal->next, "%s: %s", param->key, param->help);
  return -1;
}

static int32_t
refuse_missing(const struct dk_param *param, struct dk_refusal *refusal)
{
  dk_refusal_begin(refusal, 0, param->key, "the setting '%s' is required", param->key);
  dk_refusal_say(refusal->expected, "%s=..., %s", param->key, dk_setting_type_form(param->type));
  dk_refusal_say(refusal->found, "it is not set");
  if (param->help)
    dk_refusal_say(refusal->next, "%s: %s", param->key, param->help);
  return -1;
}

static int32_t
refuse_repeated(const char *key, struct dk_refusal *refusal)
{
  dk_refusal_begin(refusal, 0, key, "the setting '%s' is given twice", key);
  dk_refusal_say(refusal->expected, "each setting once");
  dk_refusal_say(refusal->found, "'%s' again", key);
  return -1;
}

static const struct dk_param *
param_of(const struct dk_param *params, const char *key)
{
  for (; params && params->key; params++)
    if (strcmp(params->key, key) == 0)
      return params;
  return NULL;
}

static bool
is_set(const struct dk_setting *settings, size_t n_settings, const char *key)
{
  for (size_t i = 0; i < n_settings; i++)
    if (strcmp(settings[i].key, key) == 0)
      return true;
  return false;
}

int32_t
dk_settings_check_params(const struct dk_param *params, const char *where,
                         const struct dk_setting *settings, size_t n_settings,
                         struct dk_refusal *ret_refusal)
{
  for (size_t i = 0; i < n_settings; i++) {
    const char *key = settings[i].key ? settings[i].key : "";
    const struct dk_param *param = param_of(params, key);
    if (!param)
      return refuse_unknown(params, where, key, ret_refusal);
    if (is_set(settings, i, key))
      return refuse_repeated(key, ret_refusal);
    if (!dk_setting_fits(param->type, settings[i].value))
      return refuse_value(param, settings[i].value, ret_refusal);
  }
  for (const struct dk_param *param = params; param && param->key; param++)
    if ((param->flags & DK_PARAM_REQUIRED) && !is_set(settings, n_settings, param->key))
      return refuse_missing(param, ret_refusal);
  return 0;
}

int32_t
dk_settings_check(const struct dk_library *library, const struct dk_setting *settings,
                  size_t n_settings, struct dk_refusal *ret_refusal)
{
  return dk_settings_check_params(library->provider.params, library->path, settings, n_settings,
                                  ret_refusal);
}
