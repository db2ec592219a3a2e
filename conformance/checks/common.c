/* SPDX-License-Identifier: Apache-2.0 */
/* The words that the checks of several areas share. */
#include "conformance/checks/checks.h"
#include "conformance/kit/engine.h"

struct taken_turns
take_turns(struct dk_check *t)
{
  struct taken_turns taken = {.n = 0};
  struct dk_turn *turn;
  dk_status status;

  while ((status = try_fetch_turn(t, &turn)) == DK_OK) {
    expect(t, taken.n < MOST_TAKEN, "no end of turns: some are handed out again while locked");
    taken.turns[taken.n++] = turn;
  }
  expect_status(t, status, DK_NOTHING);
  return taken;
}

struct taken_work
take_work(struct dk_check *t)
{
  struct taken_work taken = {.n = 0};
  struct dk_works *works;
  dk_status status;

  while ((status = try_fetch_work(t, &works)) == DK_OK) {
    expect(t, taken.n < MOST_TAKEN, "no end of work: some is handed out again while locked");
    expect_equal(t, works->n_items, 1, "items of a fetch that asked for one");
    taken.items[taken.n++] = &works->items[0];
  }
  expect_status(t, status, DK_NOTHING);
  return taken;
}

struct dk_turn *
turn_of(const struct taken_turns *taken, const char *instance)
{
  for (size_t i = 0; i < taken->n; i++)
    if (same_bytes(taken->turns[i]->head.instance, bytes(instance)))
      return taken->turns[i];
  return NULL;
}

struct dk_work_item *
item_of(const struct taken_work *taken, const char *instance, uint64_t execution_id,
        uint64_t activity_id)
{
  for (size_t i = 0; i < taken->n; i++) {
    const struct dk_item *item = &taken->items[i]->item;

    if (same_bytes(item->instance, bytes(instance)) && item->execution_id == execution_id &&
        item->activity_id == activity_id)
      return taken->items[i];
  }
  return NULL;
}

struct dk_turn *
the_turn_of(struct dk_check *t, const char *instance)
{
  struct dk_turn *turn;
  dk_status status = try_fetch_turn(t, &turn);

  expect(t, status != DK_NOTHING, "a turn of \"%s\" is ready, but the fetch found none", instance);
  expect_status(t, status, DK_OK);
  expect_text(t, turn->head.instance, instance, "the one instance that is ready");
  expect_no_turn(t);
  return turn;
}

struct dk_work_item *
the_item_of(struct dk_check *t, const char *instance, uint64_t activity_id)
{
  struct dk_works *works;
  dk_status status = try_fetch_work(t, &works);

  expect(t, status != DK_NOTHING, "activity %llu of \"%s\" is ready, but the fetch found none",
         (unsigned long long)activity_id, instance);
  expect_status(t, status, DK_OK);
  expect(t, works->n_items > 0, "fetch_work_item answered DK_OK and returned no item");
  struct dk_work_item *work = &works->items[0];
  expect_text(t, work->item.instance, instance, "instance of the one activity that is ready");
  expect_equal(t, work->item.activity_id, activity_id, "the one activity that is ready");
  expect_no_work(t);
  return work;
}

void
expect_dead_turn(struct dk_check *t, struct dk_bytes token)
{
  expect_status(t, renew_turn(t, token, .ms = 4 * LEASE_MS), DK_LOCK_LOST);
  expect_status(t, abandon_turn(t, token, .ms = 7000, .ignore_attempt = true), DK_LOCK_LOST);
  expect_status(t,
                ack_token(t, token, .name = "order", .version = "1.0.0", .status = DK_COMPLETED,
                          .output = "stale", .events = {{1000}}, .schedule = {{1000}},
                          .send = {{"elsewhere", .id = "stale"}}),
                DK_LOCK_LOST);
}

void
expect_dead_work(struct dk_check *t, struct dk_bytes token)
{
  expect_status(t, renew_work(t, token, .ms = 4 * LEASE_MS), DK_LOCK_LOST);
  expect_status(t, abandon_work(t, token, .ms = 7000, .ignore_attempt = true), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token, .to = "elsewhere", .id = "stale"), DK_LOCK_LOST);
  expect_status(t, ack_work(t, token), DK_LOCK_LOST);
}

void
expect_messages(struct dk_check *t, const struct dk_turn *turn, const char *const *ids)
{
  size_t n = 0;

  while (ids[n])
    n++;
  for (size_t i = 0; i < n && i < turn->n_messages; i++)
    expect_text(t, turn->messages[i].id, ids[i], "message %zu of the turn", i + 1);
  expect_equal(t, turn->n_messages, n, "messages of the turn");
}

void
schedule_many(struct dk_check *t, struct dk_item like, uint64_t n)
{
  uint64_t end = like.activity_id + n, most = provider(t)->limits->max_commit_items;

  like.struct_size = sizeof like;
  like.execution_id = 1;
  while (like.activity_id < end) {
    struct dk_item items[MOST_IN_COMMIT];
    const struct dk_item *pointers[MOST_IN_COMMIT];
    size_t count = 0;

    for (; count < MOST_IN_COMMIT && count < most && like.activity_id < end; count++) {
      items[count] = like;
      pointers[count] = &items[count];
      like.activity_id++;
    }
    struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                    .worker_items = pointers, .n_worker_items = count};
    must(t, ack_turn(t, next_turn(t, "inst"), .raw = &result));
  }
}

uint32_t
clock_flag(struct dk_check *t)
{
  return provider(t)->clocks & DK_CLOCK_HOST ? (uint32_t)DK_OPEN_HOST_CLOCK : 0u;
}

void
expect_no_store(struct dk_check *t, const char *store_suffix)
{
  const char *left = left_of_store(t, store_suffix);

  expect(t, left == NULL, "destroy_store removes all files of the store, but left %s", left);
  expect_status(t, open_status(t, clock_flag(t), store_suffix), DK_NOT_FOUND);
}

bool
takes_long(struct dk_check *t)
{
  return kit_under_memcheck() || provider(t)->shared >= 3;
}

uint32_t
further_request(struct dk_check *t, uint32_t n)
{
  enum { FIRST = 4 };

  return n < FIRST ? n + 1 : takes_long(t) ? 2 * n : n + n / 2;
}

struct actor *
racer(struct dk_check *t)
{
  return provider(t)->thread_model >= DK_PARALLEL ? another_thread(t) : another_handle(t);
}

bool
is_retryable(dk_status status)
{
  return dk_status_class(status) == 1;
}
