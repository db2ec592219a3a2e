/* SPDX-License-Identifier: Apache-2.0 */
/* The words that the checks of durakit.admin/1 share: see admin.h. */
#include "conformance/checks/admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- beginnings ------------------------------------------------------------------------------ */

void
given_child(struct dk_check *t, const char *id, const char *parent, int32_t status)
{
  must(t, enqueue(t, id));
  must(t, ack_turn(t, fetch_turn_of(t, id), .events = {{1}}, .parent = parent, .status = status));
}

void
given_root(struct dk_check *t, const char *id, int32_t status)
{
  given_child(t, id, NULL, status);
}

void
given_executions(struct dk_check *t, const char *id, uint64_t n, int64_t apart_ms)
{
  char output[40];

  for (uint64_t number = 1; number <= n; number++) {
    if (number > 1 && apart_ms > 0)
      advance(t, apart_ms);
    snprintf(output, sizeof output, "execution %" PRIu64, number);
    must(t, enqueue(t, id));
    must(t, ack_turn(t, fetch_turn_of(t, id), .execution_id = number, .events = {{1}},
                     .status = number < n ? DK_CONTINUED_AS_NEW : DK_RUNNING, .output = output));
  }
}

void
given_many_waiting(struct dk_check *t, struct dk_bytes *ret_ids, size_t n)
{
  enum { AT_ONCE = 3000, WIDTH = 16 };
  uint64_t limit = provider(t)->limits->max_commit_items;
  size_t most = limit < AT_ONCE ? (size_t)limit : AT_ONCE;
  struct dk_item items[AT_ONCE];
  const struct dk_item *pointers[AT_ONCE];
  struct dk_turn_result sends = {.struct_size = sizeof sends, .execution_id = 1,
                                 .orchestrator_items = pointers};

  given_root(t, "other", DK_RUNNING);
  for (size_t i = 0; i < n;) {
    size_t *count = &sends.n_orchestrator_items;
    for (*count = 0; *count < most && i < n; (*count)++, i++) {
      struct dk_bytes room = filled(t, WIDTH, '\0');
      int length = snprintf((char *)room.ptr, WIDTH, "inst-%05zu", i);
      ret_ids[i] = (struct dk_bytes){room.ptr, (size_t)length};
      items[*count] = (struct dk_item){.struct_size = sizeof items[0], .instance = ret_ids[i],
                                       .delay_ms = 1000, .payload = bytes("start")};
      pointers[*count] = &items[*count];
    }
    must(t, ack_turn(t, next_turn(t, "other"), .raw = &sends));
  }
}

/* ---- lists ----------------------------------------------------------------------------------- */

const struct dk_instance *
listed(const struct dk_instances *list, const char *id)
{
  for (size_t i = 0; i < list->n_items; i++)
    if (same_bytes(list->items[i].instance, bytes(id)))
      return &list->items[i];
  return NULL;
}

const struct dk_instance *
look_at(struct dk_check *t, const char *id)
{
  const struct dk_instances *list = list_instances(t, .only = {.ids = {id}});

  expect_listed(t, list, id);
  return &list->items[0];
}

void
expect_ids_listed(struct dk_check *t, const struct dk_instances *list, const char *const *ids)
{
  size_t n = 0;

  for (; ids[n]; n++)
    if (n < list->n_items)
      expect_text(t, list->items[n].instance, ids[n], "instance %zu of the list", n + 1);
  expect_equal(t, list->n_items, n, "instances in the list");
}

void
expect_executions_of(struct dk_check *t, const char *id, const uint64_t *numbers)
{
  const struct dk_executions *list = list_executions(t, id);
  size_t n = 0;

  for (; numbers[n]; n++)
    if (n < list->n_items)
      expect_equal(t, list->items[n].execution_id, numbers[n], "execution %zu of the list", n + 1);
  expect_equal(t, list->n_items, n, "executions of \"%s\"", id);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void
add_removed(struct dk_removed *sum, const struct dk_removed *page)
{
  sum->instances += page->instances;
  sum->executions += page->executions;
  sum->events += page->events;
  sum->messages += page->messages;
  sum->activities += page->activities;
  sum->roots += page->roots;
}

typedef dk_status page_fn(struct dk_check *t, const struct remove_args *a);

static dk_status
prune_page(struct dk_check *t, const struct remove_args *a)
{
  return kit_prune(t, NULL, a);
}

static struct dk_removed
go_through_pages(struct dk_check *t, page_fn *remove, const struct remove_args *a)
{
  enum { MOST_PAGES = 5000 /* of one instance, perhaps */ };
  struct dk_removed sum = {.instances = 0}, page = {.next = {NULL, 0}};
  struct remove_args args = *a;

  args.ret = &page;
  for (int pages = 0; pages < MOST_PAGES; pages++) {
    must(t, remove(t, &args));
    add_removed(&sum, &page);
    if (!page.next.ptr)
      return sum;
    expect(t, !args.after || strcmp(page.next.ptr, args.after) > 0,
           "the next page begins behind \"%s\"", args.after);
    args.after = page.next.ptr;
  }
  expect(t, false, "the pages come to an end");
  return sum;
}

struct dk_removed
delete_pages(struct dk_check *t, const struct remove_args *a)
{
  return go_through_pages(t, kit_delete_matching, a);
}

struct dk_removed
prune_pages_of(struct dk_check *t, const struct remove_args *a)
{
  return go_through_pages(t, prune_page, a);
}

/* ---- what was removed ------------------------------------------------------------------------ */

void
expect_gone(struct dk_check *t, const char *id)
{
  expect_none_listed(t, list_instances(t, .only = {.ids = {id}}));
  expect_equal(t, list_executions(t, id)->n_items, 0, "executions of \"%s\"", id);
  expect_equal(t, read_messages(t, id)->n_items, 0, "messages for \"%s\"", id);
  expect(t, !read_history(t, id)->found, "\"%s\" was deleted, and has no history", id);
}

void
expect_removed(struct dk_check *t, const struct dk_removed *got, struct dk_removed wanted)
{
  expect_equal(t, got->instances, wanted.instances, "instances reported as removed");
  expect_equal(t, got->executions, wanted.executions, "executions reported as removed");
  expect_equal(t, got->events, wanted.events, "events reported as removed");
  expect_equal(t, got->messages, wanted.messages, "messages reported as removed");
  expect_equal(t, got->activities, wanted.activities, "work items reported as removed");
}
