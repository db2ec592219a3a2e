/* SPDX-License-Identifier: Apache-2.0 */
/* A worker with all that it needs, for its tests: a store that fails on request, leases, a registry
 * and a listener of the log.  The test itself is the orchestration: instance "i", execution 1. */
#ifndef DK_RUNTIME_TESTING_ACTIVITIES_ALONE_H
#define DK_RUNTIME_TESTING_ACTIVITIES_ALONE_H

#include "core/runtime/activity/activity-pool.h"
#include "core/runtime/testing/failing-store.h"
#include "core/runtime/testing/log-listener.h"

enum { SHOP_ACTIVITIES = 1200 };

/* The completion of an activity. */
struct came {
  uint32_t times;      /* how often */
  enum message_kind kind;
  enum code code;
  char text[400];
  size_t length;       /* of the whole text */
  char token[256];     /* that its worker had when it was cancelled, as reported by the store; "":
                          none */
};

struct shop {
  struct faulty *faulty;
  struct listener *listener;
  struct log log;
  struct dk_registry *registry;
  struct dk_runtime_options options;
  struct leases *leases;
  struct activity_pool *pool;
  struct dk_caller *caller;
  bool has_begun;      /* the instance has had its first commit */
  struct came came[SHOP_ACTIVITIES];
};

/* With the usual options, but short times: lock 20 s, renewed every 200 ms, grace 60 s, back-off 10
 * ms to 100, three attempts, two slots.  Change them, register, then shop_start. */
struct shop *shop_open(void);
struct shop *shop_open_with(struct faulty *faulty, struct dk_registry *registry);
void shop_start(struct shop *shop);
void shop_register(struct shop *shop, const char *name, dk_activity_fn *function);
/* Schedules activity `id`. */
void shop_order(struct shop *shop, uint64_t id, const char *name, const char *input);
void shop_order_text(struct shop *shop, uint64_t id, const char *name, dk_str input);
/* A row with this payload, whatever it is. */
void shop_order_raw(struct shop *shop, uint64_t id, const char *payload);
/* A commit that cancels n activities from `id` on; the pool is notified of it (local), or not. */
void shop_cancel(struct shop *shop, uint64_t id, size_t n, bool is_local);
/* Waits until it has completed; ends the program if it does not within 60 s. */
struct came *shop_wait(struct shop *shop, uint64_t id);
/* Takes what has arrived so far from the store; `came` has it afterwards. */
void shop_look(struct shop *shop);
/* What the log must name for an activity of that name, once it was cancelled. */
struct whom shop_whom(const struct shop *shop, uint64_t id, const char *name);
uint64_t shop_counter(struct shop *shop, enum counter counter);
/* The phases of dk_runtime_stop, with this time to drain; the store stays open. */
bool shop_stop(struct shop *shop, int64_t drain_ms, struct dk_leftover *ret_leftover);
/* Stops the worker if it runs, and closes everything. */
void shop_close(struct shop *shop);
bool says(const char *text, const char *piece);

#endif
