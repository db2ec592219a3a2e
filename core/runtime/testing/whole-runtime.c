/* SPDX-License-Identifier: Apache-2.0 */
/* A whole runtime for its tests: see whole-runtime.h. */
#include "core/runtime/testing/whole-runtime.h"

#include <stdio.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"

struct rig
rig_begin_on(struct faulty *faulty)
{
  struct rig rig = {.faulty = faulty,
                    .listener = listener_new(),
                    .registry = dk_registry_new(),
                    .caller = dk_caller_new(NULL, 0)};

  rig.store = faulty_store(rig.faulty);
  rig.client = dk_client_new(rig.store, NULL);
  if (!rig.registry || !rig.caller || !rig.client)
    BAIL_OUT("no memory");
  rig.options = (struct dk_runtime_options){
    .struct_size = sizeof(rig.options),
    .registry = rig.registry,
    .log = listener_log,
    .log_context = rig.listener,
    .backoff_ms = 10,
    .max_backoff_ms = 100,
    .orchestration_slots = 4,
    .activity_slots = 4,
  };
  return rig;
}

struct rig
rig_begin(void)
{
  return rig_begin_on(faulty_open_model());
}

struct rig
rig_begin_full(void)
{
  return rig_begin_on(faulty_open_full_model());
}

void
rig_end(struct rig *rig)
{
  rig_stop(rig, 0);
  dk_client_free(rig->client);
  dk_caller_free(rig->caller);
  faulty_close(rig->faulty);
  dk_registry_free(rig->registry);
  listener_free(rig->listener);
}

void
rig_orchestration(struct rig *rig, const char *name, dk_orchestration_fn *function)
{
  if (dk_register_orchestration(rig->registry, name, NULL, function) != DK_OK)
    BAIL_OUT("%s is not registered", name);
}

void
rig_activity(struct rig *rig, const char *name, dk_activity_fn *function)
{
  if (dk_register_activity(rig->registry, name, function, NULL) != DK_OK)
    BAIL_OUT("%s is not registered", name);
}

struct dk_runtime *
rig_start_another(struct rig *rig)
{
  struct dk_runtime *runtime = NULL;
  struct dk_refusal refusal;

  if (dk_runtime_start(rig->store, &rig->options, &runtime, &refusal) != DK_OK)
    BAIL_OUT("the runtime does not start: %s: %s", refusal.where, refusal.what);
  return runtime;
}

void
rig_start(struct rig *rig)
{
  rig->runtime = rig_start_another(rig);
}

struct dk_leftover
rig_stop(struct rig *rig, int64_t wait_ms)
{
  struct dk_leftover leftover = {.struct_size = sizeof(leftover)};

  if (rig->runtime)
    dk_runtime_stop(rig->runtime, wait_ms, &leftover);
  rig->runtime = NULL;
  return leftover;
}

void
rig_run(struct rig *rig, const char *instance, const char *name, const char *input)
{
  dk_status status = dk_client_start(rig->client, dk_str_of(instance), name, dk_str_of(input),
                                     NULL);

  /* A plan of the store may have dropped the first answer. */
  if (status != DK_OK && status != DK_DUPLICATE)
    BAIL_OUT("%s is not started: status %d, %s", instance, (int)status,
             dk_client_error(rig->client));
}

static const char *
in_words(const struct dk_instance_info *info)
{
  static char words[2048];
  const char *how = info->status == DK_COMPLETED   ? "completed"
                    : info->status == DK_FAILED    ? "failed"
                    : info->status == DK_CANCELLED ? "cancelled"
                                                   : "still running";

  snprintf(words, sizeof(words), "%s: %.*s%s%.*s%s", how, (int)info->output.len,
           info->output.ptr ? info->output.ptr : "", info->cancelled_by.ptr ? " (" : "",
           (int)info->cancelled_by.len, info->cancelled_by.ptr ? info->cancelled_by.ptr : "",
           info->cancelled_by.ptr ? ")" : "");
  return words;
}

const char *
rig_result(struct rig *rig, const char *instance)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  int64_t until = ticks_now() + RIG_WAIT_MS;
  dk_status status;

  do
    status = dk_client_wait(rig->client, dk_str_of(instance), 1000, &info);
  while (status != DK_OK && ticks_now() < until);
  if (status == DK_OK)
    return in_words(&info);
  diag("%s has not ended: status %d, %s", instance, (int)status, dk_client_error(rig->client));
  listener_show(rig->listener, DK_LEVEL_INFO);
  return "not ended";
}

static void
send_payload(struct rig *rig, const char *instance, const char *id, dk_str payload)
{
  const struct dk_item item = {.struct_size = sizeof(item),
                               .instance = dk_str_of(instance),
                               .id = dk_str_of(id),
                               .payload = payload};

  dk_caller_reset(rig->caller);
  if (dk_store_enqueue_for_orchestrator(rig->store, rig->caller, &item) != DK_OK)
    BAIL_OUT("no message for %s: %s", instance, dk_caller_failure(rig->caller)->text);
}

void
rig_send(struct rig *rig, const char *instance, const char *id, const struct message *message)
{
  struct dk_text text = DK_TEXT_EMPTY;

  message_encode(&text, message);
  send_payload(rig, instance, id, (dk_str){dk_text_str(&text), text.length});
  dk_text_done(&text);
}

void
rig_send_raw(struct rig *rig, const char *instance, const char *payload)
{
  send_payload(rig, instance, NULL, dk_str_of(payload));
}

struct dk_counters
rig_counters(struct rig *rig)
{
  struct dk_counters counters = {.struct_size = sizeof(counters)};

  dk_runtime_counters(rig->runtime, &counters);
  return counters;
}

struct event *
rig_events(struct rig *rig, struct dk_arena *arena, const char *instance, uint64_t execution,
           size_t *ret_n)
{
  const struct dk_read_history request = {.struct_size = sizeof(request),
                                          .instance = dk_str_of(instance),
                                          .execution_id = execution};
  struct dk_history *history = NULL;
  const char *why = "";

  dk_caller_reset(rig->caller);
  if (dk_store_read_history(rig->store, rig->caller, &request, &history) != DK_OK)
    BAIL_OUT("no history of %s: %s", instance, dk_caller_failure(rig->caller)->text);
  struct event *events = dk_arena_array(arena, history->n_events, sizeof(*events));
  for (size_t i = 0; i < history->n_events; i++) {
    if (event_decode(arena, history->events[i].payload, &events[i], &why) != DK_OK)
      BAIL_OUT("an event of %s cannot be read: %s", instance, why);
    events[i].id = history->events[i].event_id;
  }
  *ret_n = history->n_events;
  return events;
}

uint32_t
rig_count_events(struct rig *rig, const char *instance, enum event_kind kind)
{
  struct dk_arena arena;
  uint32_t count = 0;
  size_t n;

  dk_arena_init(&arena);
  const struct event *events = rig_events(rig, &arena, instance, 0, &n);
  for (size_t i = 0; i < n; i++)
    count += events[i].kind == kind;
  dk_arena_done(&arena);
  return count;
}

void
rig_ten_complete(struct rig *rig, const char *orchestration)
{
  char name[16];
  int completed = 0;

  for (int i = 0; i < 10; i++) {
    snprintf(name, sizeof(name), "other-%d", i);
    rig_run(rig, name, orchestration, "you");
    completed += strcmp(rig_result(rig, name), "completed: hello you") == 0;
  }
  cmp_ok(completed, "==", 10, "ten other instances complete meanwhile");
}

void
rig_is_told(struct rig *rig, int32_t number, const char *whom, const char *what, const char *next)
{
  struct heard heard = listener_latest_saying(rig->listener, number, whom);

  ok(rig_says(heard.text, what), "the log says what happened: %s", what);
  ok(rig_says(heard.text, whom), "and to which instance: %s", whom);
  ok(rig_says(heard.text, next), "and what to do next: %s", next);
}

bool
rig_says(const char *text, const char *part)
{
  if (strstr(text, part))
    return true;
  diag("\"%s\" does not say \"%s\"", text, part);
  return false;
}
