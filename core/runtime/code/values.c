/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded values, key-values and the custom status.  See orch.h.
 *
 * A key that this execution has not used is read from the store's snapshot once, and the result is
 * recorded; everything else about keys follows from the history.  So the age of the snapshot does
 * not matter, and a replay reads the same value. */
#include "core/runtime/code/orch.h"

#include <stdio.h>

struct kv_known {
  bool there;
  dk_str value;
};

enum { KV_READ = 0, GUID_LENGTH = 36 };

/* ---- time and random numbers
 * --------------------------------------------------------------------------*/

/* Computed from this turn's seed and the id of the event that records it, so that it does not
 * matter where the run of the code began. */
static uint64_t
random_bits(const struct dk_orch *o, uint64_t half)
{
  uint64_t event = history_next_id(o->history) + o->n_commands;
  uint64_t bits = o->seed + (2 * event + half) * UINT64_C(0x9e3779b97f4a7c15);

  bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
  return bits ^ bits >> 31;
}

/* Records a value under its name; `said` has the value, if it is a new one. */
static const struct event *
record(struct dk_orch *o, const char *name, int64_t number, dk_str text)
{
  bool made;

  return orch_record_command(o, &(struct event){.kind = EVENT_VALUE, .name = dk_str_of(name),
                                             .number = number, .text = text}, &made);
}

/* The clocks of hosts differ; within an execution time must not go back. */
int64_t
dk_now(dk_orch *given)
{
  struct dk_orch *o = orch_begin(given, "dk_now");

  if (!o)
    return 0;
  int64_t now = o->past->time > o->last_now ? o->past->time : o->last_now;
  o->last_now = record(o, "now", now, dk_str_of(NULL))->number;
  return o->last_now;
}

uint64_t
dk_random(dk_orch *given)
{
  struct dk_orch *o = orch_begin(given, "dk_random");

  return o ? (uint64_t)record(o, "random", (int64_t)random_bits(o, 0), dk_str_of(NULL))->number : 0;
}

/* A random one, version 4. */
static void
make_guid(const struct dk_orch *o, char guid[GUID_LENGTH + 1])
{
  uint64_t high = random_bits(o, 0), low = random_bits(o, 1);

  snprintf(guid, GUID_LENGTH + 1, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(high >> 32),
           (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xfff),
           (unsigned)(0x8000 | (low >> 48 & 0x3fff)),
           (unsigned long long)(low & UINT64_C(0xffffffffffff)));
}

void
dk_guid(dk_orch *given, char ret_guid[37])
{
  struct dk_orch *o = orch_begin(given, "dk_guid");
  char guid[GUID_LENGTH + 1];

  ret_guid[0] = '\0';
  if (!o)
    return;
  make_guid(o, guid);
  const struct event *recorded = record(o, "guid", 0, dk_str_of(guid));
  if (recorded->text.len != GUID_LENGTH)
    orch_nondeterminism(o, "the recorded guid, event %llu, has %zu bytes instead of 36",
                        (unsigned long long)recorded->id, recorded->text.len);
  memcpy(ret_guid, recorded->text.ptr, GUID_LENGTH);
  ret_guid[GUID_LENGTH] = '\0';
}

/* ---- key-values -------------------------------------------------------------------------------*/

static struct dk_orch *
begin_kv(const dk_orch *given, const char *call)
{
  struct dk_orch *o = orch_begin(given, call);

  if (o && !o->past->has_kv)
    orch_wrong(o, "this store has no key-values (durakit.kv/1)");
  return o;
}

static const struct event *
record_kv(struct dk_orch *o, int64_t operation, dk_str key, dk_str value)
{
  bool made;

  return orch_record_command(o, &(struct event){.kind = EVENT_KV, .number = operation, .name = key,
                                             .text = value}, &made);
}

static void
know(struct dk_orch *o, dk_str key, bool there, dk_str value)
{
  void **at = orch_name(o, &o->kv, key);

  if (!*at)
    *at = orch_array(o, 1, sizeof(struct kv_known));
  *(struct kv_known *)*at = (struct kv_known){there, value};
}

void
dk_kv_set(dk_orch *given, const char *key, dk_str value)
{
  struct dk_orch *o = begin_kv(given, "dk_kv_set");

  if (!o)
    return;
  dk_str name = orch_name_of(o, "the key", key);
  dk_str bytes = orch_payload(o, "the value", value.ptr ? value : dk_str_of(""));
  const struct event *said = record_kv(o, DK_KV_SET, name, bytes);
  know(o, said->name, true, said->text.ptr ? said->text : dk_str_of(""));
}

void
dk_kv_clear(dk_orch *given, const char *key)
{
  struct dk_orch *o = begin_kv(given, "dk_kv_clear");

  if (o)
    know(o, record_kv(o, DK_KV_CLEAR, orch_name_of(o, "the key", key), dk_str_of(NULL))->name,
         false, dk_str_of(NULL));
}

void
dk_kv_clear_all(dk_orch *given)
{
  struct dk_orch *o = begin_kv(given, "dk_kv_clear_all");

  if (!o)
    return;
  record_kv(o, DK_KV_CLEAR_ALL, dk_str_of(NULL), dk_str_of(NULL));
  o->kv = (struct names){.n_entries = 0};
  o->kv_cleared = true;
}

static dk_str
in_snapshot(const struct past *past, dk_str key)
{
  for (size_t i = 0; i < past->n_kv; i++)
    if (str_equal(past->kv[i].key, key))
      return past->kv[i].value.ptr ? past->kv[i].value : dk_str_of("");
  return dk_str_of(NULL);
}

/* Read from the store's snapshot once, and recorded. */
static void
read_key(struct dk_orch *o, dk_str key)
{
  const struct event *said = record_kv(o, KV_READ, key, in_snapshot(o->past, key));

  know(o, said->name, said->text.ptr, said->text);
}

int32_t
dk_kv_get(dk_orch *given, const char *key, dk_str *ret_value)
{
  struct dk_orch *o = begin_kv(given, "dk_kv_get");

  if (!o)
    return 0;
  dk_str name = orch_name_of(o, "the key", key);
  if (!names_find(&o->kv, name) && !o->kv_cleared)
    read_key(o, name);
  const struct kv_known *known = names_find(&o->kv, name);
  if (!known || !known->there)
    return 0;
  if (ret_value)
    *ret_value = known->value;
  return 1;
}

/* ---- custom status ----------------------------------------------------------------------------*/

void
dk_set_status(dk_orch *given, dk_str status)
{
  struct dk_orch *o = orch_begin(given, "dk_set_status");
  bool made;

  if (!o)
    return;
  if (!o->past->has_status)
    orch_wrong(o, "this store has no custom status (durakit.status/1)");
  orch_record_command(o, &(struct event){.kind = EVENT_STATUS,
                                      .text = orch_payload(o, "the status", status)}, &made);
}
