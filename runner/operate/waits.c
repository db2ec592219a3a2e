/* SPDX-License-Identifier: Apache-2.0 */
/* Counts waiting calls and what has arrived for them: see waits.h.  Calls of one name are served in
 * order, so that numbers are enough; a call that was dropped is not served any more. */
#include "runner/operate/waits.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/grow.h"

/* Calls of one kind for the name. */
struct calls {
  const char *call, *arrival; /* the kinds of event */
  uint64_t *ids;              /* of the calls, without the dropped ones */
  size_t n, room;
  uint64_t arrived, taken;    /* taken: without a call that waits */
};

struct watch {
  dk_str name;
  struct calls calls[2];
  bool failed;                /* out of memory, or an event cannot be read */
};

static bool
is_named(const struct watch *w, dk_str name)
{
  return name.len == w->name.len && name.len > 0 && memcmp(name.ptr, w->name.ptr, name.len) == 0;
}

static bool
add_call(struct calls *calls, uint64_t id)
{
  uint64_t *grown = dk_grown(calls->ids, calls->n, &calls->room, sizeof(*grown));

  if (!grown)
    return false;
  calls->ids = grown;
  calls->ids[calls->n++] = id;
  return true;
}

static void
drop_call(struct calls *calls, uint64_t id)
{
  for (size_t i = 0; i < calls->n; i++) {
    if (calls->ids[i] != id)
      continue;
    memmove(&calls->ids[i], &calls->ids[i + 1], (calls->n - i - 1) * sizeof(*calls->ids));
    calls->n--;
    return;
  }
}

/* Messages of the queue that a new execution has inherited, and those that dk_try_dequeue took:
 * only the payload has them. */
static void
take_payload(struct watch *w, const struct dk_history_entry *entry)
{
  bool begins = strcmp(entry->kind, "started") == 0;
  struct calls *queue = &w->calls[1];

  if (!begins && (strcmp(entry->kind, "try_dequeue") != 0 || !is_named(w, entry->name)))
    return;
  json_t *payload = json_loadb(entry->payload.ptr, entry->payload.len, JSON_ALLOW_NUL, NULL);
  json_t *list = json_object_get(payload, "carried"), *carried;
  size_t i;
  w->failed = w->failed || !payload;
  json_array_foreach(list, i, carried) {
    json_t *name = json_object_get(carried, "queue");
    dk_str queue_name = {json_string_value(name), json_string_length(name)};
    queue->arrived += is_named(w, queue_name);
  }
  queue->taken += !begins && json_integer_value(json_object_get(payload, "took")) != 0;
  json_decref(payload);
}

static int32_t
take_entry(void *context, const struct dk_history_entry *entry)
{
  struct watch *w = context;

  if (strcmp(entry->kind, "unreadable") == 0)
    w->failed = true;
  take_payload(w, entry);
  for (size_t i = 0; i < 2; i++) {
    struct calls *calls = &w->calls[i];
    if (strcmp(entry->kind, "dropped") == 0)
      drop_call(calls, entry->source);
    else if (is_named(w, entry->name) && strcmp(entry->kind, calls->call) == 0)
      w->failed = !add_call(calls, entry->event_id) || w->failed;
    else if (is_named(w, entry->name) && strcmp(entry->kind, calls->arrival) == 0)
      calls->arrived++;
  }
  return 0;
}

/* How many have arrived and were not taken yet. */
static int32_t
take_waiting(void *context, const struct dk_waiting *message)
{
  struct watch *w = context;

  for (size_t i = 0; i < 2; i++) {
    if (is_named(w, message->name) && strcmp(message->kind, w->calls[i].arrival) == 0)
      w->calls[i].arrived++;
  }
  return 0;
}

enum waits
waits_of(struct dk_client *client, dk_str instance, const char *name)
{
  struct watch w = {.name = dk_str_of(name),
                    .calls = {{.call = "wait", .arrival = "raised"},
                              {.call = "dequeue", .arrival = "queued"}}};
  enum waits waits = WAITS_FOR_NOTHING;
  dk_status status = dk_client_history(client, instance, 0, 0, 0, take_entry, &w);

  if (status == DK_OK)
    status = dk_client_messages(client, instance, take_waiting, &w);
  if (w.failed || (status != DK_OK && status != DK_UNSUPPORTED))
    waits = WAITS_UNKNOWN;
  else if (w.calls[0].n > w.calls[0].arrived)
    waits |= WAITS_FOR_EVENT;
  if (!(waits & WAITS_UNKNOWN) && w.calls[1].n + w.calls[1].taken > w.calls[1].arrived)
    waits |= WAITS_FOR_QUEUE;
  free(w.calls[0].ids);
  free(w.calls[1].ids);
  return waits;
}
