/* SPDX-License-Identifier: Apache-2.0 */
/* Options: see options.h.  Owns nothing.  The numbers are in one table, with default and range; the
 * checks of how options fit together follow it. */
#include "core/runtime/options.h"

#include <stddef.h>
#include <stdio.h>

#include "core/base/utf8.h"
#include "core/plugin/refusal.h"
#include "core/runtime/code/registry.h"

static const int64_t ten_years = INT64_C(3652) * 24 * 3600 * 1000;

enum { LEAST_RENEWAL_MS = 500, MAX_SLOTS = 4096, MAX_TAG = 255 };

/* A number: its place in the struct, what 0 means, and its range. */
struct number {
  const char *name;
  size_t offset;
  enum { COUNT, SIZE, MS } type;  /* uint32_t, uint64_t, int64_t */
  int64_t fallback, least, most;
};

#define NUMBER(member, type, fallback, least, most)                                                \
  {#member, offsetof(struct dk_runtime_options, member), type, fallback, least, most}

static const struct number numbers[] = {
  NUMBER(orchestration_slots, COUNT, 2, 1, MAX_SLOTS),
  NUMBER(activity_slots, COUNT, 2, 1, MAX_SLOTS),
  /* max_quarantined: twice activity_slots, see below */
  NUMBER(max_attempts, COUNT, 10, 1, UINT32_MAX),
  NUMBER(turn_lock_ms, MS, 5000, 1, ten_years),
  NUMBER(turn_renewal_buffer_ms, MS, 2000, 1, ten_years),
  NUMBER(max_turn_ms, MS, 10000, 1, ten_years),
  NUMBER(activity_lock_ms, MS, 30000, 1, ten_years),
  NUMBER(activity_renewal_buffer_ms, MS, 5000, 1, ten_years),
  NUMBER(grace_ms, MS, 10000, 1, ten_years),
  NUMBER(poll_ms, MS, 30000, 1, ten_years),
  NUMBER(backoff_ms, MS, 1000, 1, ten_years),
  NUMBER(max_backoff_ms, MS, 60000, 1, ten_years),
  NUMBER(max_events, COUNT, 100000, 1, UINT32_MAX),
  NUMBER(max_messages, COUNT, 1000, 1, UINT32_MAX),
  NUMBER(cache_bytes, SIZE, 64 * 1024 * 1024, 1, INT64_MAX),
  NUMBER(session_lock_ms, MS, 30000, 1, ten_years),
};

enum { N_NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

/* ---- reading and refusing -------------------------------------------------------------------- */

static int64_t
get_number(const struct dk_runtime_options *options, const struct number *number)
{
  const char *at = (const char *)options + number->offset;
  uint32_t count;
  uint64_t size;
  int64_t ms;

  switch (number->type) {
  case COUNT:
    memcpy(&count, at, sizeof(count));
    return count;
  case SIZE:
    memcpy(&size, at, sizeof(size));
    return size > INT64_MAX ? INT64_MAX : (int64_t)size;
  case MS:
    break;
  }
  memcpy(&ms, at, sizeof(ms));
  return ms;
}

static void
set_number(struct dk_runtime_options *options, const struct number *number, int64_t value)
{
  char *at = (char *)options + number->offset;
  uint32_t count = (uint32_t)value;

  if (number->type == COUNT)
    memcpy(at, &count, sizeof(count));
  else
    memcpy(at, &value, sizeof(value));
}

/* Begins a refusal of the options; the caller adds what was expected, found, and what to do. */
static dk_status
options_refuse(struct dk_refusal *refusal, const char *where, const char *what)
{
  dk_refusal_begin(refusal, 0, where, "%s", what);
  return DK_INVALID;
}

static dk_status
refuse_number(struct dk_refusal *refusal, const struct number *number, int64_t found)
{
  options_refuse(refusal, number->name, "the value is out of its range");
  dk_refusal_say(refusal->expected, "%lld to %lld%s", (long long)number->least,
                 (long long)number->most, number->type == MS ? " milliseconds" : "");
  dk_refusal_say(refusal->found, "%lld", (long long)found);
  dk_refusal_say(refusal->next, "give a value in that range, or 0 for the default, %lld",
                 (long long)number->fallback);
  return DK_INVALID;
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* Copies the members that the caller's header has; the rest is zero. */
static dk_status
copy_options(const struct dk_runtime_options *given, struct dk_runtime_options *options,
             struct dk_refusal *refusal)
{
  size_t size = given->struct_size;

  if (!DK_HAS_FIELD(dk_runtime_options, given, registry)) {
    options_refuse(refusal, "struct_size", "the options are too short to hold a registry");
    dk_refusal_say(refusal->expected, "%zu", sizeof(*given));
    dk_refusal_say(refusal->found, "%zu", size);
    dk_refusal_say(refusal->next, "begin with struct dk_runtime_options options = {.struct_size = "
                                  "sizeof(options)}");
    return DK_INVALID;
  }
  memset(options, 0, sizeof(*options));
  memcpy(options, given, size < sizeof(*options) ? size : sizeof(*options));
  options->struct_size = sizeof(*options);
  return DK_OK;
}

static dk_status
check_flags(const struct dk_runtime_options *options, struct dk_refusal *refusal)
{
  const uint32_t known =
    DK_RUNTIME_NO_LOCAL_SIGNAL | DK_RUNTIME_FAIL_FAST | DK_RUNTIME_FAIL_DELAYED;

  if ((options->flags & ~known) == 0)
    return DK_OK;
  options_refuse(refusal, "flags", "flags has bits that this version does not know");
  dk_refusal_say(refusal->expected, "DK_RUNTIME_NO_LOCAL_SIGNAL, DK_RUNTIME_FAIL_FAST, "
                                        "DK_RUNTIME_FAIL_DELAYED");
  dk_refusal_say(refusal->found, "0x%x", (unsigned)(options->flags & ~known));
  dk_refusal_say(refusal->next, "leave them out, or use the libdurakit that belongs to the header");
  return DK_INVALID;
}

static dk_status
check_registry(const struct dk_runtime_options *options, struct dk_refusal *refusal)
{
  if (!options->registry) {
    options_refuse(refusal, "registry", "no registry is given");
    dk_refusal_say(refusal->expected, "a registry of what can run, from dk_registry_new");
    dk_refusal_say(refusal->found, "NULL");
    dk_refusal_say(refusal->next, "register orchestrations and activities, and set this member");
    return DK_INVALID;
  }
  const struct registered_activity *isolated = registry_isolated(options->registry);
  if (!isolated || options->zygote)
    return DK_OK;
  options_refuse(refusal, "zygote",
                 "an activity must run in a process, but there is no zygote to start it");
  dk_refusal_say(refusal->expected, "a zygote, from dk_zygote_start at the top of main");
  dk_refusal_say(refusal->found, "NULL, and the activity \"%s\" with DK_IN_PROCESS",
                 isolated->name);
  dk_refusal_say(refusal->next, "start a zygote with this registry, or register the activity "
                                "without DK_IN_PROCESS");
  return DK_INVALID;
}

static dk_status
complete_numbers(struct dk_runtime_options *options, struct dk_refusal *refusal)
{
  for (size_t i = 0; i < N_NUMBERS; i++) {
    int64_t found = get_number(options, &numbers[i]);
    if (found == 0)
      set_number(options, &numbers[i], numbers[i].fallback);
    else if (found < numbers[i].least || found > numbers[i].most)
      return refuse_number(refusal, &numbers[i], found);
  }
  if (options->max_quarantined == 0)
    options->max_quarantined = 2 * options->activity_slots;
  return DK_OK;
}

/* A lease is renewed every lock - buffer.  That must be at least half a second, because a renewal
 * takes time, and at most the lock. */
static dk_status
check_renewal(const char *what, int64_t lock, int64_t buffer, struct dk_refusal *refusal)
{
  if (lock - buffer >= LEAST_RENEWAL_MS)
    return DK_OK;
  char where[64];
  snprintf(where, sizeof(where), "%s_renewal_buffer_ms", what);
  options_refuse(refusal, where,
                 buffer > lock ? "the buffer is longer than the lock"
                               : "the buffer leaves too little time between renewals");
  dk_refusal_say(refusal->expected, "%s_lock_ms - %s of at least %d ms", what, where,
                 LEAST_RENEWAL_MS);
  dk_refusal_say(refusal->found, "%lld - %lld = %lld ms", (long long)lock, (long long)buffer,
                 (long long)(lock - buffer));
  if (lock > LEAST_RENEWAL_MS)
    dk_refusal_say(refusal->next, "give a buffer of at most %lld ms, or a longer lock",
                   (long long)(lock - LEAST_RENEWAL_MS));
  else
    dk_refusal_say(refusal->next, "give a lock of more than %d ms", LEAST_RENEWAL_MS);
  return DK_INVALID;
}

static dk_status
check_backoff(const struct dk_runtime_options *options, struct dk_refusal *refusal)
{
  if (options->backoff_ms <= options->max_backoff_ms)
    return DK_OK;
  options_refuse(refusal, "max_backoff_ms", "the longest delay is shorter than the first");
  dk_refusal_say(refusal->expected, "at least backoff_ms, %lld", (long long)options->backoff_ms);
  dk_refusal_say(refusal->found, "%lld", (long long)options->max_backoff_ms);
  dk_refusal_say(refusal->next, "set both of them, or neither");
  return DK_INVALID;
}

static dk_status
check_each_tag(const struct dk_runtime_options *options, struct dk_refusal *refusal)
{
  for (size_t i = 0; i < options->n_tags; i++) {
    const dk_str *tag = &options->tags[i];
    if (tag->ptr && dk_text_id_valid(tag->ptr, tag->len, MAX_TAG))
      continue;
    options_refuse(refusal, "tags", "one of the tags cannot be the tag of an activity");
    dk_refusal_say(refusal->expected, "1 to %d bytes of UTF-8 without NUL", MAX_TAG);
    dk_refusal_say(refusal->found, "tag %zu of %zu, %zu bytes", i + 1, options->n_tags, tag->len);
    dk_refusal_say(refusal->next, "leave it out; DK_TAG_UNTAGGED_OR_LISTED also selects "
                                  "activities without a tag");
    return DK_INVALID;
  }
  return DK_OK;
}

/* The rule and the list must agree: a list that is not used, or a rule that nothing can fulfil, is
 * a mistake. */
static dk_status
check_tags(const struct dk_runtime_options *options, struct dk_refusal *refusal)
{
  int32_t rule = options->tag_rule;
  bool wants_list = rule == DK_TAG_LISTED || rule == DK_TAG_UNTAGGED_OR_LISTED;

  if (rule < DK_TAG_UNTAGGED || rule > DK_TAG_ANY) {
    options_refuse(refusal, "tag_rule", "this version does not know the rule");
    dk_refusal_say(refusal->expected, "DK_TAG_UNTAGGED, _LISTED, _UNTAGGED_OR_LISTED or _ANY");
    dk_refusal_say(refusal->found, "%d", (int)rule);
    dk_refusal_say(refusal->next, "use one of them");
    return DK_INVALID;
  }
  if (wants_list == (options->n_tags > 0) && (options->n_tags == 0 || options->tags))
    return check_each_tag(options, refusal);
  options_refuse(refusal, "tags",
                 wants_list ? "the rule needs a list of tags"
                            : "there are tags that the rule does not use");
  dk_refusal_say(refusal->expected, wants_list ? "at least one tag"
                                               : "DK_TAG_LISTED or DK_TAG_UNTAGGED_OR_LISTED");
  dk_refusal_say(refusal->found, "tag_rule %d with %zu tags%s", (int)rule, options->n_tags,
                 options->tags ? "" : ", tags is NULL");
  dk_refusal_say(refusal->next, wants_list ? "list the tags, or use another tag_rule"
                                           : "set tag_rule, or leave the tags out");
  return DK_INVALID;
}

static dk_status
check_sessions(const struct dk_runtime_options *options, struct dk_refusal *refusal)
{
  int32_t rule = options->session_rule;

  if (rule >= DK_SESSION_NONE && rule <= DK_SESSION_ANY)
    return DK_OK;
  options_refuse(refusal, "session_rule", "this version does not know the rule");
  dk_refusal_say(refusal->expected, "DK_SESSION_NONE, _HELD or _ANY");
  dk_refusal_say(refusal->found, "%d", (int)rule);
  dk_refusal_say(refusal->next, "use one of them");
  return DK_INVALID;
}

static dk_status
check_name(const struct dk_runtime_options *options, struct dk_refusal *refusal)
{
  if (!options->name || dk_text_id_valid(options->name, strlen(options->name), MAX_TAG))
    return DK_OK;
  options_refuse(refusal, "name", "the name cannot be that of a worker");
  dk_refusal_say(refusal->expected, "1 to %d bytes of UTF-8", MAX_TAG);
  dk_refusal_say(refusal->found, "%zu bytes", strlen(options->name));
  dk_refusal_say(refusal->next, "give another name, or NULL for host:pid:number");
  return DK_INVALID;
}

/* Checks how the options fit together, once all have their values. */
static dk_status
check_options(const struct dk_runtime_options *o, struct dk_refusal *refusal)
{
  dk_status status = check_flags(o, refusal);

  if (status == DK_OK)
    status = check_registry(o, refusal);
  if (status == DK_OK)
    status = check_name(o, refusal);
  if (status == DK_OK)
    status = check_renewal("turn", o->turn_lock_ms, o->turn_renewal_buffer_ms, refusal);
  if (status == DK_OK)
    status = check_renewal("activity", o->activity_lock_ms, o->activity_renewal_buffer_ms,
                           refusal);
  if (status == DK_OK)
    status = check_backoff(o, refusal);
  if (status == DK_OK)
    status = check_tags(o, refusal);
  return status == DK_OK ? check_sessions(o, refusal) : status;
}

dk_status
options_complete(const struct dk_runtime_options *given, struct dk_runtime_options *ret_options,
                 struct dk_refusal *ret_refusal)
{
  struct dk_runtime_options options;
  dk_status status = copy_options(given, &options, ret_refusal);

  if (status == DK_OK)
    status = complete_numbers(&options, ret_refusal);
  if (status == DK_OK)
    status = check_options(&options, ret_refusal);
  if (status == DK_OK)
    *ret_options = options;
  return status;
}
