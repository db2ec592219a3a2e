/* SPDX-License-Identifier: Apache-2.0 */
/* ADMIN-1, ADMIN-2, ADMIN-7: lists of instances, page by page, and what a filter selects. */
#include "conformance/checks/admin.h"

#include <stdio.h>

/* ---- all of them ----------------------------------------------------------------------------- */

/* ADMIN-1: every instance is listed once, in whatever state; an id with neither a commit nor a
 * message is not. */
void
admin_every_instance_once(struct dk_check *t)
{
  expect_none_listed(t, list_instances(t));
  given_root(t, "running", DK_RUNNING);
  given_root(t, "failed", DK_FAILED);
  given_child(t, "child", "running", DK_COMPLETED);
  given_executions(t, "chain", 3, 0);
  given_root(t, "cancelled", DK_CANCELLED);
  must(t, ack_turn(t, next_turn(t, "continued"), .status = DK_CONTINUED_AS_NEW));
  must(t, ack_turn(t, next_turn(t, "dropped"), .empty = true));
  must(t, enqueue(t, "running"));
  fetch_turn_of(t, "running");
  must(t, enqueue(t, "awaited"));
  must(t, enqueue(t, "awaited"));
  expect_listed(t, list_instances(t), "awaited", "cancelled", "chain", "child", "continued",
                "failed", "running");
  expect_listed(t, list_instances(t, .filtered = true), "awaited", "cancelled", "chain", "child",
                "continued", "failed", "running");
}

/* Ids that other ways of comparing would order differently, in the order of their bytes. */
static const char *const odd_ids[] = {
  " ", "%", "10", "9", "A", "B", "_", "a", "a ", "a.", "aA", "aa", "ab", "b", "z",
  "\xc3\x89", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
};
enum { ODD_IDS = sizeof odd_ids / sizeof odd_ids[0] };

/* ADMIN-1: ids are compared as bytes, not as letters or numbers; so is `after`. */
void
admin_bytewise_order(struct dk_check *t)
{
  struct dk_bytes longest = filled(t, provider(t)->limits->max_id, 'y');

  for (size_t i = 0; i < ODD_IDS; i++)
    must(t, enqueue(t, odd_ids[(i * 7) % ODD_IDS]));
  must(t, enqueue(t, longest.ptr));
  const struct dk_instances *list = list_instances(t);
  expect_equal(t, list->n_items, ODD_IDS + 1, "instances in the list");
  for (size_t i = 0, n = 0; i < ODD_IDS; i++, n++) {
    if (n == 14)
      expect_bytes(t, list->items[n++].instance, longest, "the id of the greatest length");
    expect_text(t, list->items[n].instance, odd_ids[i], "instance %zu of the list", n + 1);
    const struct dk_instances *page = list_instances(t, .after = odd_ids[i], .max = 1);
    expect_equal(t, page->n_items, n < ODD_IDS ? 1 : 0, "instances after \"%s\"", odd_ids[i]);
    if (page->n_items == 1)
      expect_bytes(t, page->items[0].instance, list->items[n + 1].instance, "the one after \"%s\"",
                   odd_ids[i]);
  }
  expect_listed(t, list_instances(t, .after = "a", .max = 3), "a ", "a.", "aA");
  expect_listed(t, list_instances(t, .after = "10", .max = 2), "9", "A");
  expect_listed(t, list_instances(t, .after = longest.ptr, .max = 1), "z");
  expect_listed(t, list_instances(t, .after = "\xe2\x82\xac"), "\xf0\x9f\x98\x80");
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* ADMIN-1: only the last page has fewer than were asked for, filtered or not. */
void
admin_pages(struct dk_check *t)
{
  enum { INSTANCES = 12 };
  char id[16];

  for (int i = 0; i < INSTANCES; i++) {
    snprintf(id, sizeof id, "inst-%02d", 2 * i);
    given_root(t, id, i % 3 == 0 ? DK_FAILED : DK_COMPLETED);
  }
  for (uint32_t size = 1; size <= INSTANCES + 1; size++) {
    const struct dk_instances *page;
    size_t n = 0;

    id[0] = '\0';
    do {
      page = list_instances(t, .after = id[0] ? id : NULL, .max = size);
      for (size_t i = 0; i < page->n_items; i++, n++)
        snprintf(id, sizeof id, "%.*s", (int)page->items[i].instance.len,
                 page->items[i].instance.ptr);
      expect(t, page->n_items == size || n == INSTANCES,
             "a page of %u that is not full is the last one", size);
    } while (page->n_items == size);
    expect_equal(t, n, INSTANCES, "instances in pages of %u", size);
  }
  expect_listed(t, list_instances(t, .after = "inst-03", .max = 2), "inst-04", "inst-06");
  expect_listed(t, list_instances(t, .after = "inst-", .max = 1), "inst-00");
  expect_none_listed(t, list_instances(t, .after = "inst-22"));
  expect_none_listed(t, list_instances(t, .after = "j"));
  struct filter failed = {.statuses = WITH_STATUS(DK_FAILED)};
  expect_listed(t, list_instances(t, .only = failed, .max = 3), "inst-00", "inst-06", "inst-12");
  expect_listed(t, list_instances(t, .only = failed, .max = 3, .after = "inst-06"), "inst-12",
                "inst-18");
}

/* Expects these ids, in pages of all sizes that begin after each of them. */
static void
expect_pages(struct dk_check *t, struct filter only, const char *const *ids, size_t n)
{
  for (uint32_t size = 1; size <= n + 1; size++)
    for (size_t from = 0; from <= n; from++) {
      const struct dk_instances *page =
        list_instances(t, .only = only, .after = from > 0 ? ids[from - 1] : NULL, .max = size);
      size_t left = n - from;

      expect_equal(t, page->n_items, left < size ? left : size, "instances after %zu", from);
      for (size_t i = 0; i < page->n_items; i++)
        expect_text(t, page->items[i].instance, ids[from + i], "the instance after %zu", from + i);
    }
}

/* ADMIN-1: pages are in the order of the ids, even if the store finds the instances in another
 * way. */
void
admin_pages_of_some(struct dk_check *t)
{
  static const char *const ids[] = {"10", "9", "B", "a", "aa", "b", "\xc3\xa9"};
  enum { IDS = sizeof ids / sizeof ids[0] };

  for (size_t i = 0; i < IDS; i++)
    given_child(t, ids[(i * 3 + 4) % IDS], "parent", DK_COMPLETED);
  given_child(t, "A", "other", DK_COMPLETED);
  given_child(t, "c", "other", DK_COMPLETED);
  given_root(t, "parent", DK_RUNNING);
  expect_pages(t, (struct filter){.parent = "parent"}, ids, IDS);
  expect_pages(t, (struct filter){.ids = {"a", "\xc3\xa9", "9", "b", "aa", "10", "B", "absent"}},
               ids, IDS);
  expect_pages(t, (struct filter){.statuses = WITH_STATUS(DK_COMPLETED), .parent = "parent"}, ids,
               IDS);
}

/* ADMIN-1: what existed all the time is shown once, even if the last one of a page is deleted. */
void
admin_pages_while_rows_change(struct dk_check *t)
{
  static const char *const ids[] = {"b", "d", "f", "h", "j", "l"};

  for (size_t i = 0; i < 6; i++)
    given_root(t, ids[i], DK_COMPLETED);
  expect_listed(t, list_instances(t, .max = 2), "b", "d");
  must(t, delete_instances(t, .ids = {"b", "d"}));
  expect_listed(t, list_instances(t, .max = 2, .after = "d"), "f", "h");
  must(t, enqueue(t, "a"));
  given_root(t, "c", DK_COMPLETED);
  given_root(t, "i", DK_COMPLETED);
  expect_listed(t, list_instances(t, .max = 2, .after = "h"), "i", "j");
  must(t, delete_instances(t, .ids = {"j", "f"}));
  expect_listed(t, list_instances(t, .max = 2, .after = "j"), "l");
  expect_none_listed(t, list_instances(t, .max = 2, .after = "l"));
}

/* ADMIN-1: a list comes from the store, not from the memory of this process. */
void
admin_other_process_lists(struct dk_check *t)
{
  struct actor *other = another_process(t);

  given_root(t, "ours", DK_RUNNING);
  expect_listed(t, list_instances(t, .on = other), "ours");
  must(t, enqueue(t, "theirs", .on = other));
  struct dk_turn *turn = fetch_turn(t, .on = other);
  must(t, ack_turn(t, turn, .on = other, .status = DK_COMPLETED, .output = "their output"));
  must(t, enqueue(t, "awaited", .on = other));
  const struct dk_instances *list = list_instances(t, .outputs = true);
  expect_listed(t, list, "awaited", "ours", "theirs");
  expect_text(t, list->items[2].output, "their output", "output");
  must(t, enqueue(t, "ours too"));
  expect_listed(t, list_instances(t, .on = other), "awaited", "ours", "ours too", "theirs");
  expect_equal(t, read_stats(t, .on = other)->not_started, 2, "instances that have not started");
}

/* ---- filters --------------------------------------------------------------------------------- */

/* Roots "a" and "b", "c" as the child of "b", and others whose words only look alike. */
static void
given_names(struct dk_check *t)
{
  must(t, ack_turn(t, next_turn(t, "a"), .name = "order", .version = "1.0"));
  must(t, ack_turn(t, next_turn(t, "b"), .name = "orders", .version = "1.0.0",
                   .status = DK_COMPLETED));
  must(t, ack_turn(t, next_turn(t, "c"), .name = "order", .version = "2.0", .parent = "b",
                   .status = DK_FAILED));
  must(t, ack_turn(t, next_turn(t, "d"), .name = "Order", .version = "1%", .parent = "B"));
  must(t, ack_turn(t, next_turn(t, "e"), .name = "ord_r", .version = "1.0", .parent = "bb"));
  must(t, enqueue(t, "f"));
}

/* ADMIN-2: each condition by itself, equal byte for byte. */
void
admin_filter_by_words(struct dk_check *t)
{
  given_names(t);
  expect_listed(t, list_instances(t, .only = {.name = "order"}), "a", "c");
  expect_listed(t, list_instances(t, .only = {.name = "Order"}), "d");
  expect_listed(t, list_instances(t, .only = {.name = "ord_r"}), "e");
  expect_none_listed(t, list_instances(t, .only = {.name = "ord"}));
  expect_none_listed(t, list_instances(t, .only = {.name = "ord%"}));
  expect_listed(t, list_instances(t, .only = {.version = "1.0"}), "a", "e");
  expect_listed(t, list_instances(t, .only = {.version = "1%"}), "d");
  expect_none_listed(t, list_instances(t, .only = {.version = "1"}));
  expect_listed(t, list_instances(t, .only = {.parent = "b"}), "c");
  expect_listed(t, list_instances(t, .only = {.parent = "B"}), "d");
  expect_none_listed(t, list_instances(t, .only = {.parent = "a"}));
  expect_listed(t, list_instances(t, .only = {.roots = true}), "a", "b", "f");
  must(t, ack_turn(t, next_turn(t, "g"), .name = "order ", .version = "1.0 ", .parent = "b "));
  expect_listed(t, list_instances(t, .only = {.name = "order"}), "a", "c");
  expect_listed(t, list_instances(t, .only = {.version = "1.0"}), "a", "e");
  expect_listed(t, list_instances(t, .only = {.parent = "b"}), "c");
  expect_listed(t, list_instances(t, .only = {.name = "order "}), "g");
}

/* ADMIN-2: a status selects by that of the current execution, or by having none. */
void
admin_filter_by_status(struct dk_check *t)
{
  const uint32_t over =
    WITH_STATUS(DK_COMPLETED) | WITH_STATUS(DK_FAILED) | WITH_STATUS(DK_CANCELLED);

  given_root(t, "cancelled", DK_CANCELLED);
  given_executions(t, "chain", 3, 0);
  must(t, ack_turn(t, next_turn(t, "continued"), .status = DK_CONTINUED_AS_NEW));
  given_root(t, "done", DK_COMPLETED);
  given_root(t, "failed", DK_FAILED);
  given_root(t, "again", DK_COMPLETED);
  must(t, ack_turn(t, next_turn(t, "again"), .execution_id = 2));
  must(t, enqueue(t, "pending"));
  expect_listed(t, list_instances(t, .only = {.statuses = WITH_STATUS(DK_RUNNING)}), "again",
                "chain");
  expect_listed(t, list_instances(t, .only = {.statuses = WITH_STATUS(DK_CONTINUED_AS_NEW)}),
                "continued");
  expect_listed(t, list_instances(t, .only = {.statuses = WITH_STATUS(DK_COMPLETED)}), "done");
  expect_listed(t, list_instances(t, .only = {.statuses = WITH_STATUS(DK_FAILED)}), "failed");
  expect_listed(t, list_instances(t, .only = {.statuses = WITH_STATUS(DK_CANCELLED)}), "cancelled");
  expect_listed(t, list_instances(t, .only = {.statuses = WITH_STATUS(DK_NOT_STARTED)}), "pending");
  expect_listed(t, list_instances(t, .only = {.statuses = over}), "cancelled", "done", "failed");
  expect_listed(t, list_instances(t, .only = {.statuses = WITH_STATUS(DK_NOT_STARTED) |
                                                          WITH_STATUS(DK_FAILED)}),
                "failed", "pending");
}

/* ADMIN-2: of several conditions all have to hold. */
void
admin_filter_together(struct dk_check *t)
{
  given_names(t);
  expect_listed(t, list_instances(t, .only = {.name = "order",
                                              .statuses = WITH_STATUS(DK_FAILED)}), "c");
  expect_none_listed(t, list_instances(t, .only = {.name = "orders",
                                                   .statuses = WITH_STATUS(DK_FAILED)}));
  expect_listed(t, list_instances(t, .only = {.name = "order", .version = "1.0"}), "a");
  expect_listed(t, list_instances(t, .only = {.version = "1.0", .roots = true}), "a");
  expect_listed(t, list_instances(t, .only = {.name = "order", .roots = true}), "a");
  expect_listed(t, list_instances(t, .only = {.ids = {"c", "a", "f"}, .name = "order"}), "a", "c");
  expect_none_listed(t, list_instances(t, .only = {.ids = {"a", "b"}, .parent = "b"}));
  expect_none_listed(t, list_instances(t, .only = {.roots = true, .parent = "b"}));
  expect_listed(t, list_instances(t, .only = {.ids = {"c"}, .name = "order", .version = "2.0",
                                              .parent = "b", .statuses = WITH_STATUS(DK_FAILED),
                                              .created_from = 1, .completed_from = 1}), "c");
  expect_none_listed(t, list_instances(t, .only = {.name = "order",
                                                   .statuses = WITH_STATUS(DK_NOT_STARTED)}));
}

/* ---- any two conditions ---------------------------------------------------------------------- */

/* The conditions of a filter; "0" is the instance for which the first of them does not hold, and
 * all others do, "1" that of the second, and so on.  For "fits" all hold. */
enum {
  BY_IDS, BY_NAME, BY_VERSION, BY_PARENT, BY_STATUS, BY_CREATED_FROM, BY_CREATED_BEFORE,
  BY_COMPLETED_FROM, BY_COMPLETED_BEFORE, CONDITIONS
};

static void
add_condition(struct filter *f, const struct filter *all, int condition)
{
  switch (condition) {
  case BY_IDS: f->list = all->list; f->n = all->n; break;
  case BY_NAME: f->name = all->name; break;
  case BY_VERSION: f->version = all->version; break;
  case BY_PARENT: f->parent = all->parent; break;
  case BY_STATUS: f->statuses = all->statuses; break;
  case BY_CREATED_FROM: f->created_from = all->created_from; break;
  case BY_CREATED_BEFORE: f->created_before = all->created_before; break;
  case BY_COMPLETED_FROM: f->completed_from = all->completed_from; break;
  default: f->completed_before = all->completed_before; break;
  }
}

static void
number_id(char id[8], int condition)
{
  snprintf(id, 8, condition == CONDITIONS ? "fits" : "%d", condition);
}

static void
create(struct dk_check *t, int condition)
{
  char id[8];

  number_id(id, condition);
  must(t, ack_turn(t, next_turn(t, id), .name = condition == BY_NAME ? "orders" : "order",
                   .version = condition == BY_VERSION ? "2.0" : "1.0",
                   .parent = condition == BY_PARENT ? "other" : "parent"));
}

static void
complete(struct dk_check *t, int condition)
{
  char id[8];

  number_id(id, condition);
  must(t, ack_turn(t, next_turn(t, id),
                   .status = condition == BY_STATUS ? DK_CANCELLED : DK_COMPLETED));
}

static void
given_one_for_each(struct dk_check *t)
{
  create(t, BY_CREATED_FROM);
  advance(t, 100);
  for (int i = 0; i <= CONDITIONS; i++)
    if (i != BY_CREATED_FROM && i != BY_CREATED_BEFORE)
      create(t, i);
  advance(t, 100);
  create(t, BY_CREATED_BEFORE);
  complete(t, BY_COMPLETED_FROM);
  advance(t, 100);
  for (int i = 0; i <= CONDITIONS; i++)
    if (i != BY_COMPLETED_FROM && i != BY_COMPLETED_BEFORE)
      complete(t, i);
  advance(t, 100);
  complete(t, BY_COMPLETED_BEFORE);
}

/* ADMIN-2: of any two conditions neither is forgotten for the other. */
void
admin_filter_by_each_two(struct dk_check *t)
{
  int64_t start = now(t);
  struct dk_bytes ids[CONDITIONS]; /* all but "0" */
  char names[CONDITIONS][8];
  const struct filter all = {
    .list = ids, .n = CONDITIONS, .name = "order", .version = "1.0", .parent = "parent",
    .statuses = WITH_STATUS(DK_COMPLETED),
    .created_from = start + 100, .created_before = start + 200,
    .completed_from = start + 300, .completed_before = start + 400};

  for (int i = 0; i < CONDITIONS; i++) {
    number_id(names[i], i + 1);
    ids[i] = bytes(names[i]);
  }
  given_one_for_each(t);
  expect_listed(t, list_instances(t, .only = all), "fits");
  for (int one = 0; one < CONDITIONS; one++)
    for (int two = one + 1; two < CONDITIONS; two++) {
      struct filter both = {.by_ids = false};

      add_condition(&both, &all, one);
      add_condition(&both, &all, two);
      const struct dk_instances *list = list_instances(t, .only = both);
      for (int i = 0; i <= CONDITIONS; i++) {
        char id[8];

        number_id(id, i);
        expect(t, (listed(list, id) != NULL) == (i != one && i != two),
               "\"%s\" is listed unless condition %d or %d excludes it", id, one, two);
      }
    }
}

/* ---- times and ids --------------------------------------------------------------------------- */

/* ADMIN-2: from <= time < before, to the millisecond; what runs has not completed. */
void
admin_filter_by_times(struct dk_check *t)
{
  int64_t born = now(t) + 1300, ended = born + 450;

  given_root(t, "older", DK_COMPLETED);
  advance(t, 1300);
  given_root(t, "inst", DK_RUNNING);
  advance(t, 450);
  must(t, ack_turn(t, next_turn(t, "inst"), .status = DK_COMPLETED));
  advance(t, 900);
  given_root(t, "runs", DK_RUNNING);
  expect_listed(t, list_instances(t, .only = {.created_from = born}), "inst", "runs");
  expect_listed(t, list_instances(t, .only = {.created_from = born + 1}), "runs");
  expect_listed(t, list_instances(t, .only = {.created_from = born, .created_before = born + 1}),
                "inst");
  expect_listed(t, list_instances(t, .only = {.created_before = born}), "older");
  expect_listed(t, list_instances(t, .only = {.created_before = born + 1}), "inst", "older");
  expect_listed(t, list_instances(t, .only = {.completed_from = ended}), "inst");
  expect_none_listed(t, list_instances(t, .only = {.completed_from = ended + 1}));
  expect_listed(t, list_instances(t, .only = {.completed_before = ended}), "older");
  expect_listed(t, list_instances(t, .only = {.completed_before = ended + 1}), "inst", "older");
  expect_listed(t, list_instances(t, .only = {.completed_from = ended,
                                              .completed_before = ended + 1}), "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .execution_id = 2));
  must(t, enqueue(t, "pending"));
  expect_listed(t, list_instances(t, .only = {.completed_before = now(t) + 1000}), "older");
  expect_listed(t, list_instances(t, .only = {.created_before = born + 1}), "inst", "older");
  must(t, ack_turn(t, next_turn(t, "runs"), .status = DK_CONTINUED_AS_NEW));
  expect_listed(t, list_instances(t, .only = {.completed_from = now(t)}), "runs");
}

/* ADMIN-2: an empty list of ids selects nothing; unknown and repeated ids are not an error. */
void
admin_filter_by_ids(struct dk_check *t)
{
  static const char *const ids[] = {"a", "b", "c", "d"};

  for (size_t i = 0; i < 4; i++)
    given_root(t, ids[i], i == 2 ? DK_FAILED : DK_COMPLETED);
  expect_none_listed(t, list_instances(t, .only = {.by_ids = true}));
  expect_none_listed(t, list_instances(t, .only = {.by_ids = true, .name = "order"}));
  expect_listed(t, list_instances(t, .only = {.ids = {"d", "b"}}), "b", "d");
  expect_listed(t, list_instances(t, .only = {.ids = {"d", "b", "d", "d"}}), "b", "d");
  expect_listed(t, list_instances(t, .only = {.ids = {"absent", "c", "C", "cc"}}), "c");
  expect_none_listed(t, list_instances(t, .only = {.ids = {"absent"}}));
  expect_listed(t, list_instances(t, .only = {.ids = {"a", "b", "c"}}, .after = "a", .max = 1),
                "b");
}

/* ADMIN-2: a list of ids may be long: tens of thousands, of which few exist. */
void
admin_filter_by_many_ids(struct dk_check *t)
{
  enum { IDS = 20000, WIDTH = 16, EVERY = 4999 };
  char names[IDS][WIDTH];
  struct dk_bytes ids[IDS];
  size_t there = 0;

  for (size_t i = 0; i < IDS; i++) {
    snprintf(names[i], WIDTH, "inst-%05zu", i);
    ids[i] = bytes(names[i]);
    if (i % EVERY == EVERY - 1) {
      must(t, enqueue(t, ids[i].ptr));
      there++;
    }
  }
  must(t, enqueue(t, "another"));
  const struct dk_instances *list = list_instances(t, .only = {.list = ids, .n = IDS});
  expect_equal(t, list->n_items, there, "instances, of a list of %d ids", IDS);
  for (size_t i = 0; i < there; i++)
    expect_bytes(t, list->items[i].instance, ids[(i + 1) * EVERY - 1], "instance %zu", i + 1);
}

/* ---- reading changes nothing ----------------------------------------------------------------- */

/* ADMIN-7: what is read stays as it was, and an unknown id stays unknown. */
void
admin_looking_changes_nothing(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 3);
  fetch_activity(t, "inst", 1);
  must(t, enqueue(t, "free", .id = "first"));
  must(t, enqueue(t, "free", .id = "later", .delay_ms = 5000));
  must(t, enqueue(t, "inst", .id = "held"));
  fetch_turn_of(t, "inst");
  abandon_turn(t, fetch_turn_of(t, "free")->head.lock_token);
  before(t);
  list_instances(t, .outputs = true);
  list_instances(t, .only = {.ids = {"inst", "absent"}});
  list_executions(t, "inst");
  list_executions(t, "absent");
  list_executions(t, "free");
  read_messages(t, "inst");
  read_messages(t, "free");
  read_messages(t, "absent");
  read_stats(t);
  expect_unchanged(t);
}

/* ADMIN-7: what others hold is reported at once, and their tokens live. */
void
admin_looks_at_what_is_held(struct dk_check *t)
{
  given_instance_with_activities(t, "inst", 1);
  struct dk_bytes work = fetch_work(t)->work.lock_token;
  struct dk_turn *turn = next_turn(t, "inst");

  expect_listed(t, list_instances(t), "inst");
  expect_executions(t, "inst", 1);
  expect_equal(t, read_messages(t, "inst")->n_items, 1, "messages");
  expect_equal(t, read_stats(t)->messages_locked, 1, "messages of the turn");
  expect_no_turn(t);
  must(t, renew_work(t, work));
  must(t, ack_turn(t, turn, .events = {{2}}));
  expect_equal(t, look_at(t, "inst")->last_event_id, 2, "last event");
}
