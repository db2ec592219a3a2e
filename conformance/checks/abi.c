/* SPDX-License-Identifier: Apache-2.0 */
/* ABI: what of the binary interface shows only when operations are called. */
#include "conformance/checks/checks.h"

/* ---- what the provider does not know --------------------------------------------------------- */

/* ABI-3: an id that is not declared has no table, and a declared one always the same answer. */
void
abi_unknown_extension(struct dk_check *t)
{
  static const char *const unknown[] = {"durakit.no-such-thing/1", "durakit.kv/99", "kv", "x", ""};
  struct dk_store *store = store_of(t, NULL);

  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
    expect(t, !dk_store_extension(store, unknown[i]),
           "extension returns NULL for \"%s\"", unknown[i]);
  for (const char *const *id = provider(t)->extensions; id && *id; id++)
    expect(t, dk_store_extension(store, *id) == dk_store_extension(store, *id),
           "%s is answered the same way twice", *id);
}

/* From here on the host passes on what it would refuse itself, as a newer host might send it. */
static struct dk_caller *
newer_host(struct dk_check *t)
{
  struct dk_caller *caller = caller_of(t, NULL);

  dk_caller_set_unchecked(caller, 1);
  return caller;
}

/* ABI-11: a flag, rule or status that the provider does not know is refused, and does nothing. */
void
abi_unknown_flags(struct dk_check *t)
{
  const uint32_t bit = 1u << 30;

  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *work = fetch_work(t);
  struct dk_turn *turn = next_turn(t, "inst");
  must(t, ack_turn(t, next_turn(t, "free"), .schedule = {{1}}));
  struct dk_store *store = store_of(t, NULL);
  struct dk_caller *caller = newer_host(t);

  struct dk_item item = {.struct_size = sizeof item, .flags = bit, .instance = bytes("other"),
                         .payload = bytes("message")};
  expect_status(t, dk_store_enqueue_for_orchestrator(store, caller, &item), DK_UNSUPPORTED);
  struct dk_turn_result commit = {.struct_size = sizeof commit, .flags = bit, .execution_id = 1};
  expect_status(t, ack_turn(t, turn, .raw = &commit), DK_UNSUPPORTED);
  commit = (struct dk_turn_result){.struct_size = sizeof commit, .execution_id = 1, .status = 77};
  expect_status(t, ack_turn(t, turn, .raw = &commit), DK_UNSUPPORTED);
  struct dk_work_result done = {.struct_size = sizeof done, .flags = bit};
  expect_status(t, dk_store_ack_work_item(store, caller, work->work.lock_token, &done),
                DK_UNSUPPORTED);
  struct dk_works *works;
  expect_status(t, try_fetch_work(t, &works, .tag_rule = 77), DK_UNSUPPORTED);
  dk_caller_set_unchecked(caller, 0);

  expect_no_turn(t);
  expect_text(t, fetch_work(t)->item.instance, "free",
              "instance of the free work: nothing was locked");
  must(t, ack_work(t, work->work.lock_token));
  must(t, ack_turn(t, turn, .events = {{next_event(turn)}}));
}

/* ABI-11: each item of a commit, and a completion, has flags of its own. */
void
abi_unknown_flags_of_items(struct dk_check *t)
{
  struct dk_item item = {.struct_size = sizeof item, .flags = 1u << 30, .payload = bytes("item")};
  const struct dk_item *items[] = {&item};
  struct dk_turn_result schedules = {.struct_size = sizeof schedules, .execution_id = 1,
                                     .worker_items = items, .n_worker_items = 1};
  struct dk_turn_result sends = {.struct_size = sizeof sends, .execution_id = 1,
                                 .orchestrator_items = items, .n_orchestrator_items = 1};
  struct dk_work_result done = {.struct_size = sizeof done, .completion = &item};

  given_instance_with_activities(t, "inst", 1);
  struct dk_work_item *work = fetch_work(t);
  struct dk_turn *turn = next_turn(t, "inst");
  struct dk_store *store = store_of(t, NULL);
  struct dk_caller *caller = newer_host(t);

  before(t);
  item.execution_id = 1;
  item.activity_id = 7;
  expect_status(t, ack_turn(t, turn, .raw = &schedules), DK_UNSUPPORTED);
  item.execution_id = item.activity_id = 0;
  item.instance = bytes("other");
  expect_status(t, ack_turn(t, turn, .raw = &sends), DK_UNSUPPORTED);
  expect_status(t, traced(t, dk_store_ack_work_item(store, caller, work->work.lock_token, &done)),
                DK_UNSUPPORTED);
  expect_unchanged(t);
  dk_caller_set_unchecked(caller, 0);
  must(t, ack_work(t, work->work.lock_token));
  must(t, ack_turn(t, turn, .events = {{next_event(turn)}}));
}

/* ABI-11: the same for work that is enqueued directly. */
void
abi_unknown_flags_directly(struct dk_check *t)
{
  struct dk_item item = {.struct_size = sizeof item, .flags = 1u << 30, .instance = bytes("inst"),
                         .execution_id = 1, .activity_id = 1, .payload = bytes("item")};
  struct dk_store *store = store_of(t, NULL);
  struct dk_caller *caller = newer_host(t);

  before(t);
  expect_status(t, traced(t, dk_store_enqueue_for_worker(store, caller, &item)), DK_UNSUPPORTED);
  expect_unchanged(t);
  dk_caller_set_unchecked(caller, 0);
  item.flags = 0;
  must(t, traced(t, dk_store_enqueue_for_worker(store, caller, &item)));
  the_item_of(t, "inst", 1);
}

/* ABI-10: memory handed to the provider may be freed when the call has returned: the kit writes
 * over the texts of every request that it has made. */
void
abi_keeps_no_pointer(struct dk_check *t)
{
  must(t, enqueue(t, "inst", .id = "id-1", .payload = "payload"));
  struct dk_turn *turn = fetch_turn(t);
  expect_text(t, turn->head.instance, "inst", "instance");
  expect_ids(t, turn, "id-1");
  expect_text(t, turn->messages[0].payload, "payload", "payload");
}

/* ---- stores ---------------------------------------------------------------------------------- */

/* ABI-13: without DK_OPEN_CREATE a store that does not exist is not found, and not made. */
void
abi_open_without_create(struct dk_check *t)
{
  uint32_t flags = clock_flag(t);

  expect_status(t, open_status(t, flags, "absent"), DK_NOT_FOUND);
  expect_status(t, open_status(t, flags, "absent"), DK_NOT_FOUND);
  must(t, open_status(t, flags | DK_OPEN_CREATE, "absent"));
  if (provider(t)->durable > 0)
    must(t, open_status(t, flags, "absent"));
  must(t, destroy_store(t, "absent"));
}

/* ABI-14: a destroyed store no longer exists, and destroying it again is not an error. */
void
abi_destroy_removes_all(struct dk_check *t)
{
  must(t, destroy_store(t, "brief"));
  must(t, open_status(t, clock_flag(t) | DK_OPEN_CREATE, "brief"));
  must(t, destroy_store(t, "brief"));
  expect_no_store(t, "brief");
  must(t, destroy_store(t, "brief"));
}

/* ABI-14: destroying one store removes nothing that belongs to another. */
void
abi_destroy_spares_others(struct dk_check *t)
{
  uint32_t flags = clock_flag(t);

  given_instance_with_activities(t, "inst", 1);
  must(t, open_status(t, flags | DK_OPEN_CREATE, "neighbour"));
  must(t, destroy_store(t, "neighbour"));
  must(t, ack_work(t, the_item_of(t, "inst", 1)->work.lock_token, .to = "inst", .id = "done"));
  expect_ids(t, the_turn_of(t, "inst"), "done");
}

/* ABI-14: a store that is made anew after it was destroyed is empty. */
void
abi_made_anew_is_empty(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  must(t, enqueue(t, "inst"));
  close_handle(t, NULL);
  must(t, destroy_store(t, NULL));
  open_handle(t, NULL);
  expect_no_turn(t);
  expect_no_work(t);
  expect_equal(t, read_history(t, "inst")->found, 0, "an execution in the new store");
}
