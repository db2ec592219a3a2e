/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of durakit.admin/1 in the model, beside those that the kit makes of it: the order in which
 * a handle keeps its instances, what another handle has removed, what the log says of it, and a
 * handle that may only read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/model/test-handle.h"
#include "conformance/tap/tap.h"

/* ---- helpers --------------------------------------------------------------------------------- */

/* A turn of it that ends in this status, in this execution. */
static void
commit(struct handle *h, const char *id, const char *parent, uint64_t execution_id, int32_t status)
{
  struct dk_event event = {1, text("event")};
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = execution_id,
                                  .status = status, .name = text("order"), .version = text("1"),
                                  .parent_instance = text(parent), .events = &event,
                                  .n_events = 1};
  struct dk_commit_outcome outcome;
  struct dk_turn *turn = enqueue(h, id, NULL) == DK_OK ? fetch_turn(h) : NULL;

  if (!turn || dk_store_ack_orchestration_item(h->store, h->caller, kept(turn->head.lock_token),
                                               &result, &outcome) != DK_OK)
    BAIL_OUT("no commit of %s: %s", id, dk_caller_failure(h->caller)->text);
}

/* The ids of a list, with a blank behind each. */
static const char *
listed(struct handle *h, const char *after, uint32_t most)
{
  static char words[512];
  size_t length = 0;
  struct dk_list_instances request = {.struct_size = sizeof request, .after = text(after),
                                      .max_instances = most};
  struct dk_instances *list = NULL;

  words[0] = '\0';
  if (dk_store_list_instances(h->store, h->caller, &request, &list) != DK_OK)
    BAIL_OUT("no list: %s", dk_caller_failure(h->caller)->text);
  for (size_t i = 0; i < list->n_items && length < sizeof words; i++)
    length += (size_t)snprintf(words + length, sizeof words - length, "%.*s ",
                               (int)list->items[i].instance.len, list->items[i].instance.ptr);
  return words;
}

static dk_status
delete(struct handle *h, const char *id, bool force, struct dk_removed *ret_removed)
{
  struct dk_bytes ids[] = {text(id)};
  struct dk_delete_instances request = {.struct_size = sizeof request,
                                        .flags = force ? DK_DELETE_FORCE : 0u, .instances = ids,
                                        .n_instances = 1};

  return dk_store_delete_instances(h->store, h->caller, &request, ret_removed);
}

static dk_status
prune(struct handle *h, const char *id, struct dk_removed *ret_removed)
{
  struct dk_prune request = {.struct_size = sizeof request, .instance = text(id)};

  return dk_store_prune_executions(h->store, h->caller, &request, ret_removed);
}

static struct dk_instance
only_instance(struct handle *h)
{
  struct dk_list_instances request = {.struct_size = sizeof request};
  struct dk_instances *list = NULL;

  if (dk_store_list_instances(h->store, h->caller, &request, &list) != DK_OK ||
      list->n_items != 1)
    BAIL_OUT("not one instance");
  return list->items[0];
}

/* ---- the order ------------------------------------------------------------------------------- */

static void
order(void)
{
  struct handle h;
  void *region;
  struct dk_virtual_clock *clock = new_clock(&region);

  open_handle(&h, clock, NULL);
  is(listed(&h, NULL, 0), "", "the list is empty");
  commit(&h, "b", NULL, 1, DK_COMPLETED);
  commit(&h, "a", NULL, 1, DK_COMPLETED);
  enqueue(&h, "B", NULL);
  is(listed(&h, NULL, 0), "B a b ", "by their bytes, even one that has not started");
  commit(&h, "ab", NULL, 1, DK_COMPLETED);
  commit(&h, "\xc3\xa9", NULL, 1, DK_COMPLETED);
  is(listed(&h, NULL, 0), "B a ab b \xc3\xa9 ", "new ones are in their places");
  is(listed(&h, "a", 2), "ab b ", "a page after an id that exists");
  is(listed(&h, "aa", 1), "ab ", "a page after an id that does not");
  is(listed(&h, "\xc3\xa9", 0), "", "a page after the last");
  cmp_ok(delete(&h, "ab", false, NULL), "==", DK_OK, "one is deleted");
  is(listed(&h, NULL, 0), "B a b \xc3\xa9 ", "and is no longer in the list");
  close_handle(&h);
  free(region);
}

/* ---- another handle -------------------------------------------------------------------------- */

static void
held_by_another(struct handle *h, struct handle *other)
{
  struct dk_removed removed;
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1};
  struct dk_commit_outcome outcome;
  struct dk_turn *turn = enqueue(h, "inst", "m") == DK_OK ? fetch_turn(h) : NULL;
  struct dk_bytes token = turn ? kept(turn->head.lock_token) : text("no turn");
  struct dk_work_item *work = fetch_work(h);
  struct dk_bytes work_token = work ? kept(work->work.lock_token) : text("no work");

  cmp_ok(delete(other, "inst", false, NULL), "==", DK_REFUSED, "it runs, and is not deleted");
  cmp_ok(delete(other, "inst", true, &removed), "==", DK_OK, "with force it is");
  ok(removed.instances == 1 && removed.executions == 1 && removed.events == 1 &&
       removed.messages == 1 && removed.activities == 3 && !removed.next.ptr,
     "all that was deleted is counted");
  cmp_ok(dk_store_ack_orchestration_item(h->store, h->caller, token, &result, &outcome), "==",
         DK_LOCK_LOST, "a commit of the held turn comes too late");
  ok(strstr(dk_caller_failure(h->caller)->text, "deleted"), "and its text says why");
  cmp_ok(ack_work(h, work_token, "inst"), "==", DK_LOCK_LOST, "and so does an ack");
  ok(strstr(dk_caller_failure(h->caller)->text, "deleted"), "and its text says why");
  is(listed(h, NULL, 0), "", "nothing is left of it");
  cmp_ok(delete(h, "inst", true, NULL), "==", DK_NOT_FOUND, "and nothing can be deleted");
}

static void
another_handle(void)
{
  struct handle h, other;
  void *region;
  struct dk_virtual_clock *clock = new_clock(&region);
  struct dk_turn *turn;

  open_handle(&h, clock, store_path("both"));
  open_handle(&other, clock, store_path("both"));
  enqueue(&h, "inst", NULL);
  turn = fetch_turn(&h);
  cmp_ok(commit_first(&h, kept(turn->head.lock_token), 3), "==", DK_OK, "an instance with work");
  held_by_another(&h, &other);
  commit(&h, "inst", NULL, 1, DK_COMPLETED);
  is(listed(&other, NULL, 0), "inst ", "its id is used again, and the other one sees it");
  close_handle(&other);
  close_handle(&h);
  free(region);
}

/* ---- the log --------------------------------------------------------------------------------- */

static void
expect_stored(struct handle *h)
{
  struct dk_list_executions request = {.struct_size = sizeof request, .instance = text("chain")};
  struct dk_executions *list = NULL;
  struct dk_instance chain = only_instance(h);

  ok(same(chain.instance, "chain") && chain.execution_id == 3 && chain.created_at == START,
     "only the other instance is there, of the age that it had");
  cmp_ok(dk_store_list_executions(h->store, h->caller, &request, &list), "==", DK_OK,
         "list_executions");
  ok(list->n_items == 1 && list->items[0].execution_id == 3, "it has its last execution only");
}

static void
stored(void)
{
  struct handle h;
  void *region;
  struct dk_virtual_clock *clock = new_clock(&region);
  struct dk_removed removed;

  open_handle(&h, clock, store_path("stored"));
  commit(&h, "chain", NULL, 1, DK_CONTINUED_AS_NEW);
  dk_virtual_clock_advance(clock, 0, START + 1000);
  commit(&h, "chain", NULL, 2, DK_CONTINUED_AS_NEW);
  commit(&h, "chain", NULL, 3, DK_RUNNING);
  commit(&h, "root", NULL, 1, DK_COMPLETED);
  commit(&h, "child", "root", 1, DK_FAILED);
  commit(&h, "ring", "round", 1, DK_COMPLETED);
  commit(&h, "round", "ring", 1, DK_COMPLETED);
  cmp_ok(delete(&h, "child", true, NULL), "==", DK_REFUSED,
         "a child is not deleted without its root");
  cmp_ok(delete(&h, "root", false, &removed), "==", DK_OK, "but with it");
  cmp_ok(removed.instances, "==", 2, "two were deleted");
  cmp_ok(delete(&h, "ring", false, &removed), "==", DK_OK, "a ring is deleted");
  cmp_ok(removed.instances, "==", 2, "both of it");
  cmp_ok(prune(&h, "chain", &removed), "==", DK_OK, "prune_executions");
  ok(removed.executions == 2 && removed.events == 2,
     "two executions were deleted, with an event each");
  expect_stored(&h);
  close_handle(&h);
  open_handle(&h, clock, store_path("stored"));
  expect_stored(&h);
  commit(&h, "chain", NULL, 4, DK_COMPLETED);
  cmp_ok(only_instance(&h).execution_id, "==", 4, "and continues from there");
  close_handle(&h);
  free(region);
}

/* ---- a handle that may only read ------------------------------------------------------------- */

static void
reader(void)
{
  struct handle h;
  void *region;
  struct dk_virtual_clock *clock = new_clock(&region);
  struct dk_stats stats;

  open_handle(&h, clock, store_path("read"));
  commit(&h, "inst", NULL, 1, DK_COMPLETED);
  close_handle(&h);
  cmp_ok(open_with(&h, clock, store_path("read"), NULL, DK_OPEN_READ_ONLY), "==", DK_OK,
         "opened to be read");
  is(listed(&h, NULL, 0), "inst ", "the list is there");
  cmp_ok(dk_store_read_stats(h.store, h.caller, &stats), "==", DK_OK, "so are the counts");
  ok(stats.completed == 1 && stats.executions == 1 && stats.events == 1, "and they are right");
  cmp_ok(delete(&h, "inst", true, NULL), "==", DK_REFUSED, "nothing is deleted");
  cmp_ok(prune(&h, "inst", NULL), "==", DK_REFUSED, "nothing is pruned");
  close_handle(&h);
  free(region);
}

int
main(void)
{
  plan(NO_PLAN);
  begin();
  order();
  another_handle();
  stored();
  reader();
  end();
  return done_testing();
}
