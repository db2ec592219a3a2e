/* SPDX-License-Identifier: Apache-2.0 */
/* A worker with all that it needs: see activities-alone.h. */
#include "core/runtime/testing/activities-alone.h"

#include <stdio.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/plugin/store.h"

/* ---- opening and closing --------------------------------------------------------------------- */

static const struct dk_runtime_options usual = {
  .struct_size = sizeof(usual),
  .orchestration_slots = 1,
  .activity_slots = 2,
  .max_quarantined = 4,
  .max_attempts = 3,
  .turn_lock_ms = 20000,
  .turn_renewal_buffer_ms = 10000,
  .max_turn_ms = 60000,
  .activity_lock_ms = 20000,
  .activity_renewal_buffer_ms = 19800,
  .grace_ms = 60000,
  .poll_ms = 30000,
  .backoff_ms = 10,
  .max_backoff_ms = 100,
  .session_lock_ms = 30000,
};

struct shop *
shop_open_with(struct faulty *faulty, struct dk_registry *registry)
{
  struct shop *shop = calloc(1, sizeof(*shop));

  if (!shop)
    BAIL_OUT("no memory for a shop");
  shop->faulty = faulty;
  shop->listener = listener_new();
  shop->registry = registry;
  shop->options = usual;
  shop->options.registry = registry;
  shop->caller = dk_caller_new(NULL, 0);
  if (!shop->registry || !shop->caller)
    BAIL_OUT("no memory for a shop");
  log_init(&shop->log, listener_log, shop->listener, "here");
  return shop;
}

struct shop *
shop_open(void)
{
  return shop_open_with(faulty_open_model(), dk_registry_new());
}

void
shop_register(struct shop *shop, const char *name, dk_activity_fn *function)
{
  if (dk_register_activity(shop->registry, name, function, NULL) != DK_OK)
    BAIL_OUT("%s cannot be registered", name);
}

void
shop_start(struct shop *shop)
{
  struct dk_store *store = faulty_store(shop->faulty);
  struct leases_setup leases = {store, &shop->log};
  struct dk_refusal refusal = {.number = 0};

  if (leases_start(&leases, &shop->leases) != DK_OK)
    BAIL_OUT("the leases do not start");
  struct activity_pool_setup setup = {store, &shop->options, shop->leases, &shop->log, "here"};
  if (activity_pool_start(&setup, &shop->pool, &refusal) != DK_OK)
    BAIL_OUT("the worker does not start: %s", refusal.what);
}

bool
shop_stop(struct shop *shop, int64_t drain_ms, struct dk_leftover *ret_leftover)
{
  struct activity_pool *pool = shop->pool;

  *ret_leftover = (struct dk_leftover){.struct_size = sizeof(*ret_leftover)};
  activity_pool_stop_fetching(pool);
  activity_pool_drain(pool, ticks_now() + drain_ms);
  activity_pool_end(pool, ret_leftover);
  bool is_free = activity_pool_free(pool);
  if (is_free) {
    leases_stop(shop->leases);
    shop->pool = NULL;
  }
  return is_free;
}

/* Threads in quarantine have returned by the end of a test. */
static void
stop_for_good(struct shop *shop)
{
  struct dk_leftover leftover;

  if (!shop->pool || shop_stop(shop, 1000, &leftover))
    return;
  if (!UNTIL(activity_pool_free(shop->pool)))
    BAIL_OUT("threads of the worker do not return");
  leases_stop(shop->leases);
}

void
shop_close(struct shop *shop)
{
  faulty_heal(shop->faulty);
  faulty_release(shop->faulty);
  stop_for_good(shop);
  dk_caller_free(shop->caller);
  faulty_close(shop->faulty);
  if (shop->registry)
    dk_registry_free(shop->registry);
  log_done(&shop->log);
  listener_free(shop->listener);
  free(shop);
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void
order(struct shop *shop, uint64_t id, dk_str payload)
{
  struct dk_item item = {.struct_size = sizeof(item), .instance = dk_str_of("i"),
                         .execution_id = 1, .activity_id = id, .payload = payload};

  dk_caller_reset(shop->caller);
  if (dk_store_enqueue_for_worker(faulty_store(shop->faulty), shop->caller, &item) != DK_OK)
    BAIL_OUT("no order: %s", dk_caller_failure(shop->caller)->text);
}

void
shop_order_text(struct shop *shop, uint64_t id, const char *name, dk_str input)
{
  struct task_order what = {.name = dk_str_of(name), .input = input,
                            .orchestration = dk_str_of("test"), .version = dk_str_of("1.0.0")};
  struct dk_text payload = DK_TEXT_EMPTY;

  task_order_encode(&payload, &what);
  order(shop, id, (dk_str){dk_text_str(&payload), payload.length});
  dk_text_done(&payload);
}

void
shop_order(struct shop *shop, uint64_t id, const char *name, const char *input)
{
  shop_order_text(shop, id, name, dk_str_of(input));
}

void
shop_order_raw(struct shop *shop, uint64_t id, const char *payload)
{
  order(shop, id, dk_str_of(payload));
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void
take_message(struct shop *shop, const struct dk_message *stored)
{
  struct dk_arena arena;
  struct message message;
  const char *why = NULL;

  dk_arena_init(&arena);
  if (message_decode(&arena, stored->payload, &message, &why) == DK_OK && message.source > 0 &&
      message.source < SHOP_ACTIVITIES) {
    struct came *came = &shop->came[message.source];
    came->times++;
    came->kind = message.kind;
    came->code = message.code;
    came->length = message.text.len;
    snprintf(came->text, sizeof(came->text), "%.*s", (int)message.text.len,
             message.text.ptr ? message.text.ptr : "");
  }
  dk_arena_done(&arena);
}

static void
keep_tokens(struct shop *shop, const struct dk_commit_outcome *outcome)
{
  for (size_t i = 0; i < outcome->n_stolen; i++) {
    const struct dk_stolen *stolen = &outcome->stolen[i];
    struct came *came = &shop->came[stolen->activity_id];
    snprintf(came->token, sizeof(came->token), "%.*s", (int)stolen->lock_token.len,
             stolen->lock_token.ptr);
  }
}

static void
commit(struct shop *shop, const struct dk_turn *turn, const struct dk_activity *cancelled,
       size_t n, bool is_local)
{
  struct dk_turn_result result = {
    .struct_size = sizeof(result), .execution_id = 1, .status = DK_RUNNING,
    .cancelled_activities = cancelled, .n_cancelled_activities = n,
  };
  struct dk_commit_outcome outcome;

  if (!shop->has_begun) {
    result.name = dk_str_of("test");
    result.version = dk_str_of("1.0.0");
  }
  if (dk_store_ack_orchestration_item(faulty_store(shop->faulty), shop->caller,
                                      turn->head.lock_token, &result, &outcome) != DK_OK)
    BAIL_OUT("no commit: %s", dk_caller_failure(shop->caller)->text);
  shop->has_begun = true;
  keep_tokens(shop, &outcome);
  if (is_local)
    activity_pool_signal(shop->pool, dk_str_of("i"), outcome.stolen, outcome.n_stolen);
}

/* One turn, if there is one: takes what has arrived, and cancels these activities. */
static bool
take_turn(struct shop *shop, const struct dk_activity *cancelled, size_t n, bool is_local)
{
  struct dk_store *store = faulty_store(shop->faulty);
  struct dk_fetch_turn request = {.struct_size = sizeof(request), .lock_ms = 60000,
                                  .wait_until = dk_store_now(store) + (n > 0 ? 1000 : 20)};
  struct dk_turn *turn = NULL;

  dk_caller_reset(shop->caller);
  if (dk_store_fetch_orchestration_item(store, shop->caller, &request, &turn) != DK_OK)
    return false;
  for (size_t i = 0; i < turn->n_messages; i++)
    take_message(shop, &turn->messages[i]);
  commit(shop, turn, cancelled, n, is_local);
  return true;
}

void
shop_look(struct shop *shop)
{
  while (take_turn(shop, NULL, 0, false))
    continue;
}

struct came *
shop_wait(struct shop *shop, uint64_t id)
{
  int64_t until = ticks_now() + 60000;

  while (shop->came[id].times == 0 && ticks_now() < until)
    take_turn(shop, NULL, 0, false);
  if (shop->came[id].times == 0) {
    listener_show(shop->listener, DK_LEVEL_DEBUG);
    BAIL_OUT("activity %llu has not completed within 60 s", (unsigned long long)id);
  }
  return &shop->came[id];
}

void
shop_cancel(struct shop *shop, uint64_t id, size_t n, bool is_local)
{
  struct dk_item wake = {.struct_size = sizeof(wake), .instance = dk_str_of("i"),
                         .payload = dk_str_of("{}")};
  struct dk_activity *cancelled = calloc(n, sizeof(*cancelled));

  if (!cancelled)
    BAIL_OUT("no memory to cancel with");
  for (size_t i = 0; i < n; i++)
    cancelled[i] = (struct dk_activity){1, id + i};
  dk_caller_reset(shop->caller);
  if (dk_store_enqueue_for_orchestrator(faulty_store(shop->faulty), shop->caller, &wake) != DK_OK)
    BAIL_OUT("no message: %s", dk_caller_failure(shop->caller)->text);
  if (!UNTIL(take_turn(shop, cancelled, n, is_local)))
    BAIL_OUT("no turn to cancel in");
  free(cancelled);
}

/* ---- the rest -------------------------------------------------------------------------------- */

struct whom
shop_whom(const struct shop *shop, uint64_t id, const char *name)
{
  return (struct whom){.instance = "i", .execution_id = 1, .activity_id = id, .activity = name,
                       .orchestration = "test", .token = shop->came[id].token, .worker = "here"};
}

uint64_t
shop_counter(struct shop *shop, enum counter counter)
{
  return atomic_load(&shop->log.counters[counter]);
}

bool
says(const char *text, const char *piece)
{
  if (strstr(text, piece))
    return true;
  diag("expected \"%s\" in \"%s\"", piece, text);
  return false;
}
