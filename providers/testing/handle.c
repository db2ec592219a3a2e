/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a provider in short: see handle.h. */
#include "providers/testing/handle.h"

#include <stdio.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"

void
must(struct handle_under_test *h, dk_status status, const char *what)
{
  if (status != DK_OK)
    BAIL_OUT("%s: status %d: %s", what, (int)status, dk_caller_failure(h->caller)->text);
}

void
open_with(struct handle_under_test *h, struct dk_library *library, uint32_t flags,
          const struct dk_host_options *options, const struct dk_setting *settings,
          size_t n_settings)
{
  h->caller = new_caller();
  must(h, dk_store_open(library, options, h->caller, flags, settings, n_settings, &h->store),
       "open");
}

void
close_store(struct handle_under_test *h)
{
  if (dk_store_close(h->store) != 0)
    BAIL_OUT("close: an operation did not return");
  dk_caller_free(h->caller);
}

struct handle_under_test
with_caller(const struct handle_under_test *h)
{
  return (struct handle_under_test){new_caller(), h->store};
}

/* ---- operations ------------------------------------------------------------------------------ */

void
enqueue(struct handle_under_test *h, const char *instance)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = text(instance),
                         .payload = text("hello")};

  must(h, dk_store_enqueue_for_orchestrator(h->store, h->caller, &item), "enqueue");
}

struct dk_turn *
fetch_turn_as(struct handle_under_test *h, const char *owner)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE};
  struct dk_turn *turn = NULL;

  if (owner)
    request.owner = text(owner);
  must(h, dk_store_fetch_orchestration_item(h->store, h->caller, &request, &turn), "fetch a turn");
  return turn;
}

struct dk_bytes
fetch_turn(struct handle_under_test *h)
{
  return fetch_turn_as(h, NULL)->head.lock_token;
}

struct dk_bytes
fetch_work(struct handle_under_test *h)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 1, .lock_ms = LEASE,
                                  .owner = text("worker"), .tag_rule = DK_TAG_ANY};
  struct dk_works *works = NULL;

  must(h, dk_store_fetch_work_item(h->store, h->caller, &request, &works), "fetch work");
  return works->items[0].work.lock_token;
}

void
ack_work(struct handle_under_test *h, struct dk_bytes token, const char *completes)
{
  struct dk_item done = {.struct_size = sizeof done, .payload = text("done")};
  struct dk_work_result result = {.struct_size = sizeof result};

  if (completes) {
    done.instance = text(completes);
    result.completion = &done;
  }
  must(h, dk_store_ack_work_item(h->store, h->caller, token, &result), "ack work");
}

void
commit_first(struct handle_under_test *h, struct dk_bytes token, size_t n_activities)
{
  struct dk_item *items = calloc(n_activities + 1, sizeof *items);
  const struct dk_item **list = calloc(n_activities + 1, sizeof *list);
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .name = text("order"), .version = text("1"),
                                  .worker_items = list, .n_worker_items = n_activities};
  struct dk_commit_outcome outcome;

  if (!items || !list)
    BAIL_OUT("out of memory");
  for (size_t i = 0; i < n_activities; i++) {
    items[i] = (struct dk_item){.struct_size = sizeof items[i], .execution_id = 1,
                                .activity_id = i + 1, .payload = text("do")};
    list[i] = &items[i];
  }
  must(h, dk_store_ack_orchestration_item(h->store, h->caller, token, &result, &outcome),
       "the first commit");
  free(list);
  free(items);
}

void
commit_cancelling(struct handle_under_test *h, struct dk_bytes token, uint64_t first, size_t n,
                  struct dk_commit_outcome *ret_outcome)
{
  struct dk_activity *cancelled = calloc(n + 1, sizeof *cancelled);
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .cancelled_activities = cancelled, .n_cancelled_activities = n};

  if (!cancelled)
    BAIL_OUT("out of memory");
  for (size_t i = 0; i < n; i++)
    cancelled[i] = (struct dk_activity){1, first + i};
  must(h, dk_store_ack_orchestration_item(h->store, h->caller, token, &result, ret_outcome),
       "the cancelling commit");
  free(cancelled);
}

void
commit_timers(struct handle_under_test *h, struct dk_bytes token, size_t n)
{
  struct dk_item *items = calloc(n + 1, sizeof *items);
  const struct dk_item **list = calloc(n + 1, sizeof *list);
  char (*names)[32] = calloc(n + 1, sizeof *names);
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .name = text("clock"), .version = text("1"),
                                  .orchestrator_items = list, .n_orchestrator_items = n};
  struct dk_commit_outcome outcome;

  if (!items || !list || !names)
    BAIL_OUT("out of memory");
  for (size_t i = 0; i < n; i++) {
    snprintf(names[i], sizeof names[i], "timer-%zu", i);
    items[i] = (struct dk_item){.struct_size = sizeof items[i], .instance = text(names[i]),
                                .delay_ms = A_DAY, .payload = text("ring")};
    list[i] = &items[i];
  }
  must(h, dk_store_ack_orchestration_item(h->store, h->caller, token, &result, &outcome),
       "a commit with timers");
  free(names);
  free(list);
  free(items);
}

void
given_activities(struct handle_under_test *h, const char *instance, size_t n)
{
  enqueue(h, instance);
  commit_first(h, fetch_turn(h), n);
  enqueue(h, instance);
}
