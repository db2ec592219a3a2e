/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes a decision for the store: see commit-encode.h. */
#include "core/runtime/turn/commit-encode.h"

#include <assert.h>

/* ---- payloads -------------------------------------------------------------------------------- */

/* The encoding; it remembers the first lack of memory. */
struct encoder {
  struct dk_arena *arena;
  struct dk_text text;
  bool failed;
};

static dk_str
taken_out(struct encoder *encoder)
{
  size_t length = encoder->text.length;
  const char *copy = NULL;

  if (!dk_text_failed(&encoder->text))
    copy = dk_arena_copy(encoder->arena, dk_text_str(&encoder->text), length);
  if (!copy)
    encoder->failed = true;
  dk_text_reset(&encoder->text);
  return (dk_str){copy, copy ? length : 0};
}

static void *
array(struct encoder *encoder, size_t n, size_t size)
{
  void *list = dk_arena_array(encoder->arena, n, size);

  if (!list)
    encoder->failed = true;
  return list;
}

/* ---- its parts ------------------------------------------------------------------------------- */

static void
encode_events(struct encoder *encoder, const struct decision *d, struct dk_turn_result *result)
{
  struct dk_event *events = array(encoder, d->n_events, sizeof(*events));

  for (size_t i = 0; i < d->n_events && !encoder->failed; i++) {
    assert(i == 0 || d->events[i].id == d->events[i - 1].id + 1);
    event_encode(&encoder->text, &d->events[i]);
    events[i] = (struct dk_event){d->events[i].id, taken_out(encoder)};
  }
  result->events = events;
  result->n_events = d->n_events;
}

static void
encode_activities(struct encoder *encoder, const struct decision *d, struct dk_turn_result *result)
{
  struct dk_item *items = array(encoder, d->n_scheduled, sizeof(*items));
  const struct dk_item **list = array(encoder, d->n_scheduled, sizeof(*list));

  for (size_t i = 0; i < d->n_scheduled && !encoder->failed; i++) {
    const struct scheduled *scheduled = &d->scheduled[i];
    assert(i == 0 || scheduled->activity_id > d->scheduled[i - 1].activity_id);
    task_order_encode(&encoder->text, &scheduled->order);
    items[i] = (struct dk_item){.struct_size = sizeof(items[i]),
                                .execution_id = d->execution,
                                .activity_id = scheduled->activity_id,
                                .session = scheduled->session,
                                .tag = scheduled->tag,
                                .payload = taken_out(encoder)};
    list[i] = &items[i];
  }
  result->worker_items = list;
  result->n_worker_items = d->n_scheduled;
}

static void
encode_messages(struct encoder *encoder, const struct outgoing *outgoing, size_t n,
                struct dk_turn_result *result)
{
  struct dk_item *items = array(encoder, n, sizeof(*items));
  const struct dk_item **list = array(encoder, n, sizeof(*list));

  for (size_t i = 0; i < n && !encoder->failed; i++) {
    message_encode(&encoder->text, &outgoing[i].message);
    items[i] = (struct dk_item){.struct_size = sizeof(items[i]),
                                .instance = outgoing[i].instance,
                                .id = outgoing[i].id,
                                .visible_at = outgoing[i].visible_at,
                                .payload = taken_out(encoder)};
    list[i] = &items[i];
  }
  result->orchestrator_items = list;
  result->n_orchestrator_items = n;
}

static void
encode_cancelled(struct encoder *encoder, const struct decision *d, struct dk_turn_result *result)
{
  struct dk_activity *cancelled = array(encoder, d->n_cancelled, sizeof(*cancelled));

  for (size_t i = 0; i < d->n_cancelled && !encoder->failed; i++)
    cancelled[i] = (struct dk_activity){d->execution, d->cancelled[i].activity_id};
  result->cancelled_activities = cancelled;
  result->n_cancelled_activities = d->n_cancelled;
  result->cancelled_messages = d->withdrawn;
  result->n_cancelled_messages = d->n_withdrawn;
}

/* Fills in what is stored about the instance and the execution. */
static void
fill_in(const struct decision *d, dk_str owner, struct dk_turn_result *result)
{
  result->execution_id = d->execution;
  result->status = d->status;
  result->output = d->output;
  result->name = d->name;
  result->version = d->version;
  result->parent_instance = d->parent;
  result->kv = d->kv;
  result->n_kv = d->n_kv;
  result->custom_status_op = d->custom_status_op;
  result->custom_status = d->custom_status;
  result->owner = owner;
}

static struct dk_turn_result *
commit_encode_finish(struct encoder *encoder, struct dk_turn_result *result)
{
  dk_text_done(&encoder->text);
  return encoder->failed ? NULL : result;
}

struct dk_turn_result *
commit_encode(struct dk_arena *arena, const struct decision *decision, dk_str owner)
{
  struct encoder encoder = {.arena = arena};
  struct dk_turn_result *result = dk_arena_alloc(arena, sizeof(*result));

  if (!result)
    return NULL;
  result->struct_size = sizeof(*result);
  fill_in(decision, owner, result);
  encode_events(&encoder, decision, result);
  encode_activities(&encoder, decision, result);
  encode_messages(&encoder, decision->outgoing, decision->n_outgoing, result);
  encode_cancelled(&encoder, decision, result);
  return commit_encode_finish(&encoder, result);
}

struct dk_turn_result *
commit_encode_nothing(struct dk_arena *arena, const struct outgoing *answers, size_t n_answers)
{
  struct encoder encoder = {.arena = arena};
  struct dk_turn_result *result = dk_arena_alloc(arena, sizeof(*result));

  if (!result)
    return NULL;
  result->struct_size = sizeof(*result);
  encode_messages(&encoder, answers, n_answers, result);
  return commit_encode_finish(&encoder, result);
}
