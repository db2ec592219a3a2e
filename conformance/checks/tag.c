/* SPDX-License-Identifier: Apache-2.0 */
/* TAG: which worker gets which activity. */
#include <stdio.h>

#include "conformance/checks/checks.h"

enum { WAIT_MS = 60000 };

static bool
is_among(uint64_t id, const uint64_t *ids)
{
  while (*ids && *ids != id)
    ids++;
  return *ids == id;
}

/* All that such a fetch may have: these activities of "inst", and no others.  They are abandoned,
 * uncounted.  The list of ids ends with 0. */
static void
expect_taken(struct dk_check *t, const uint64_t *ids, const struct fetch_work_args *asked)
{
  struct taken_work taken = {.n = 0};
  struct dk_works *works;
  dk_status status;
  size_t n = 0;

  while ((status = kit_try_fetch_work(t, &works, asked)) == DK_OK)
    for (size_t i = 0; i < works->n_items; i++) {
      const struct dk_item *item = &works->items[i].item;

      expect(t, is_among(item->activity_id, ids),
             "activity %lld, with %s%.*s, does not fit the rule of the fetch that brought it",
             (long long)item->activity_id, item->tag.ptr ? "tag " : "no tag", (int)item->tag.len,
             item->tag.ptr ? item->tag.ptr : "");
      expect(t, taken.n < MOST_TAKEN, "no end of work: some is handed out again while locked");
      taken.items[taken.n++] = &works->items[i];
    }
  expect_status(t, status, DK_NOTHING);
  for (; ids[n]; n++)
    expect(t, item_of(&taken, "inst", 1, ids[n]),
           "activity %lld fits the rule of the fetch, and is returned", (long long)ids[n]);
  expect_equal(t, taken.n, n, "activities that fit the rule of the fetch");
  for (size_t i = 0; i < n; i++)
    must(t, abandon_work(t, taken.items[i]->work.lock_token, .ignore_attempt = true));
}
#define IDS(...) ((const uint64_t[]){__VA_ARGS__, 0})
#define expect_gets(t, ids, ...) expect_taken(t, ids, &(struct fetch_work_args){__VA_ARGS__})

/* The next activity with this tag. */
static struct dk_work_item *
item_with(struct dk_check *t, const char *tag, int64_t lock_ms)
{
  struct dk_works *works;
  dk_status status = try_fetch_work(t, &works, .tag_rule = DK_TAG_LISTED, .tags = {tag},
                                    .lock_ms = lock_ms);

  expect(t, status != DK_NOTHING,
         "the activity with tag %s is returned by a fetch for this tag", tag);
  expect_status(t, status, DK_OK);
  expect_text(t, works->items[0].item.tag, tag, "tag of the activity that was fetched");
  return &works->items[0];
}

/* ---- the rules ------------------------------------------------------------------------------- */

/* TAG-1: each rule takes what it says; the list counts only for the two that name it. */
void
tag_four_rules(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{1}, {2, .tag = "gpu"}, {3, .tag = "cpu"}, {4},
                                {5, .tag = "gpu"}}));
  expect_gets(t, IDS(1, 4), .tag_rule = TAG_UNTAGGED);
  expect_gets(t, IDS(2, 5), .tag_rule = DK_TAG_LISTED, .tags = {"gpu"});
  expect_gets(t, IDS(2, 3, 5), .tag_rule = DK_TAG_LISTED, .tags = {"gpu", "cpu"});
  expect_gets(t, IDS(0), .tag_rule = DK_TAG_LISTED, .tags = {"fpga"});
  expect_gets(t, IDS(1, 3, 4), .tag_rule = DK_TAG_UNTAGGED_OR_LISTED, .tags = {"cpu", "fpga"});
  expect_gets(t, IDS(1, 4), .tag_rule = DK_TAG_UNTAGGED_OR_LISTED, .tags = {"fpga"});
  expect_gets(t, IDS(1, 2, 3, 4, 5), .tag_rule = DK_TAG_ANY);
  expect_gets(t, IDS(2, 3, 5), .tag_rule = DK_TAG_LISTED, .tags = {"cpu", "gpu", "cpu"},
              .max_items = 10);
  expect_gets(t, IDS(1, 4), .tag_rule = TAG_UNTAGGED, .max_items = 10);
}

/* TAG-1: an empty list of tags holds no tag. */
void
tag_empty_list(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1}, {2, .tag = "gpu"}}));
  expect_gets(t, IDS(0), .tag_rule = DK_TAG_LISTED);
  expect_gets(t, IDS(1), .tag_rule = DK_TAG_UNTAGGED_OR_LISTED);
  expect_gets(t, IDS(1, 2), .tag_rule = DK_TAG_ANY);
}

enum { LISTED = 100 };

/* TAG-1: a list may be long, and its last tag counts as its first one does. */
void
tag_long_list(struct dk_check *t)
{
  static const uint64_t scheduled[] = {1, 5, 6, 9, 17, 32, 33, 64, 65, 100, 101};
  enum { ITEMS = sizeof scheduled / sizeof scheduled[0] };
  struct ack_turn_args schedule = {0};
  struct dk_bytes tags[LISTED];
  char names[ITEMS + LISTED][8];

  given_instance(t, "inst");
  for (size_t i = 0; i < ITEMS; i++) {
    snprintf(names[i], sizeof names[i], "t%u", (unsigned)scheduled[i]);
    schedule.schedule[i] = (struct activity){.activity_id = scheduled[i], .tag = names[i]};
  }
  must(t, kit_ack_turn(t, next_turn(t, "inst"), &schedule));
  for (size_t i = 0; i < LISTED; i++) {
    snprintf(names[ITEMS + i], sizeof names[0], "t%zu", i + 1);
    tags[i] = bytes(names[ITEMS + i]);
  }
  expect_gets(t, IDS(1, 5, 6, 9), .tag_rule = DK_TAG_LISTED,
              .tags = {"t1", "t2", "t3", "t4", "t5", "t6", "t8", "t9"});

  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 1,
                                  .lock_ms = LEASE_MS, .tag_rule = DK_TAG_LISTED, .tags = tags,
                                  .n_tags = LISTED};
  for (size_t n = 0; n < ITEMS; n++) {
    struct dk_works *works = NULL;
    dk_status wanted = n < ITEMS - 1 ? DK_OK : DK_NOTHING;
    dk_status got = traced(t, dk_store_fetch_work_item(store_of(t, NULL), caller_of(t, NULL),
                                                       &request, &works));
    expect(t, got == wanted, "10 of 11 activities fit a list of %d tags; %zu came", LISTED,
           n);
    if (got == DK_OK)
      expect(t, works->items[0].item.activity_id <= LISTED, "the tag of this one is in the list");
  }
}

/* TAG-1: a tag is one text: what is part of another, or two of them, is a tag of its own. */
void
tag_list_is_no_text(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{1, .tag = "a"}, {2, .tag = "b"}, {3, .tag = "a,b"},
                                {4, .tag = "'a'"}, {5, .tag = "a','b"}, {6, .tag = "%"},
                                {7, .tag = "[\"a\"]"}, {8, .tag = "NULL"}, {9}}));
  expect_gets(t, IDS(1, 2), .tag_rule = DK_TAG_LISTED, .tags = {"a", "b"});
  expect_gets(t, IDS(3), .tag_rule = DK_TAG_LISTED, .tags = {"a,b"});
  expect_gets(t, IDS(4), .tag_rule = DK_TAG_LISTED, .tags = {"'a'"});
  expect_gets(t, IDS(5), .tag_rule = DK_TAG_LISTED, .tags = {"a','b"});
  expect_gets(t, IDS(6), .tag_rule = DK_TAG_LISTED, .tags = {"%"});
  expect_gets(t, IDS(7, 9), .tag_rule = DK_TAG_UNTAGGED_OR_LISTED, .tags = {"[\"a\"]"});
  expect_gets(t, IDS(8), .tag_rule = DK_TAG_LISTED, .tags = {"NULL"});
  expect_gets(t, IDS(9), .tag_rule = TAG_UNTAGGED);
}

/* ---- left out -------------------------------------------------------------------------------- */

/* TAG-2: what a rule leaves out is neither locked nor counted nor moved. */
void
tag_left_out_stays_as_it_is(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1, .tag = "gpu"}, {2, .tag = "cpu"}}));
  before(t);
  expect_no_work(t, .tag_rule = TAG_UNTAGGED);
  expect_no_work(t, .tag_rule = DK_TAG_LISTED, .tags = {"fpga"}, .max_items = 10);
  expect_no_work(t, .tag_rule = DK_TAG_UNTAGGED_OR_LISTED, .tags = {"fpga", "tpu"});
  expect_unchanged(t);
  struct dk_work_item *work = item_with(t, "cpu", LEASE_MS);
  expect_equal(t, work->work.attempt, 1, "attempt of what was left out three times");
  work = item_with(t, "gpu", LEASE_MS);
  expect_equal(t, work->work.attempt, 1, "attempt of what was left out, while another was taken");
}

/* TAG-2: what fits is found behind what does not, however few are asked for. */
void
tag_left_out_hold_up_nobody(struct dk_check *t)
{
  struct ack_turn_args schedule = {0};

  given_instance(t, "inst");
  for (uint64_t i = 0; i < 16; i++)
    schedule.schedule[i] = (struct activity){.activity_id = i + 1, .tag = "gpu"};
  must(t, kit_ack_turn(t, next_turn(t, "inst"), &schedule));
  advance(t, 10);
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{17}, {18, .tag = "cpu"}, {19}}));
  expect_gets(t, IDS(18), .tag_rule = DK_TAG_LISTED, .tags = {"cpu"});
  expect_gets(t, IDS(17, 19), .tag_rule = TAG_UNTAGGED, .max_items = 3);
  expect_gets(t, IDS(17, 18, 19), .tag_rule = DK_TAG_UNTAGGED_OR_LISTED, .tags = {"cpu"},
              .max_items = 2);
  expect_equal(t, item_with(t, "gpu", LEASE_MS)->work.attempt, 1, "attempt of what was left out");
}

/* TAG-2: a waiting fetch returns what fits its tags, and nothing that does not. */
void
tag_waits_for_what_fits(struct dk_check *t)
{
  struct actor *waiter = another_thread(t);
  struct dk_works *works;

  given_instance(t, "inst");
  given_instance(t, "other");
  struct dk_turn *first = next_turn(t, "inst"), *second = next_turn(t, "other");
  must(t, try_fetch_work(t, &works, .on = waiter, .start = true, .wait_ms = WAIT_MS,
                         .tag_rule = DK_TAG_UNTAGGED_OR_LISTED, .tags = {"cpu"}));
  until_it_waits(t, waiter);
  insist(t, ack_turn(t, first, .schedule = {{1, .tag = "gpu"}}));
  advance(t, 10);
  until_it_waits(t, waiter);
  insist(t, ack_turn(t, second, .schedule = {{2, .tag = "cpu"}}));
  expect_status(t, finish(t, waiter), DK_OK);
  works = finished_work(t, waiter);
  expect(t, works && works->n_items == 1, "the waiting fetch brings an item");
  expect_equal(t, works->items[0].item.activity_id, 2, "the activity whose tag was asked for");
  expect_equal(t, item_with(t, "gpu", LEASE_MS)->work.attempt, 1,
               "attempt of what did not fit the waiting fetch");
}

/* ---- compared -------------------------------------------------------------------------------- */

/* TAG-3: tags that look alike are different ones. */
void
tag_bytewise(struct dk_check *t)
{
  static const char *const tags[] = {
    "gpu",  "GPU",  "Gpu",  "gpu ",   " gpu",         "gpu\t",
    "gp",   "gpuu", "g_u",  "gp%",    "g\xc3\xbc",    "gu\xcc\x88",
    "gu",   "g\xc3\x9c", "g\xc2\xa0",
  };
  enum { TAGS = sizeof tags / sizeof tags[0] };
  struct ack_turn_args schedule = {0};

  given_instance(t, "inst");
  for (size_t i = 0; i < TAGS; i++)
    schedule.schedule[i] = (struct activity){.activity_id = i + 1, .tag = tags[i]};
  must(t, kit_ack_turn(t, next_turn(t, "inst"), &schedule));
  for (size_t i = 0; i < TAGS; i++) {
    struct dk_works *works;

    item_with(t, tags[i], LEASE_MS);
    dk_status again = try_fetch_work(t, &works, .tag_rule = DK_TAG_LISTED, .tags = {tags[i]});
    struct dk_bytes other = again == DK_OK ? works->items[0].item.tag : bytes(NULL);
    expect(t, again != DK_OK, "a fetch for tag \"%s\" brings no other; one came with \"%.*s\"",
           tags[i], (int)other.len, other.ptr ? other.ptr : "");
    expect_status(t, again, DK_NOTHING);
  }
}

/* As long as an id may be, of one letter but for the last byte. */
static const char *
long_tag(struct dk_check *t, size_t n, char last)
{
  char *text = (char *)filled(t, n, 't').ptr;

  text[n - 1] = last;
  return text;
}

/* TAG-3: to the last byte, at the greatest length too. */
void
tag_long_tags(struct dk_check *t)
{
  uint32_t most = provider(t)->limits->max_id;
  size_t longest = most < 4096 ? most : 4096;
  const char *one = long_tag(t, longest, '1'), *two = long_tag(t, longest, '2');
  const char *shorter = long_tag(t, longest - 1, 't'), *medium = long_tag(t, 100, '1');

  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{1, .tag = one}, {2, .tag = two}, {3, .tag = shorter},
                                {4, .tag = medium}}));
  expect_gets(t, IDS(1), .tag_rule = DK_TAG_LISTED, .tags = {one});
  expect_gets(t, IDS(2), .tag_rule = DK_TAG_LISTED, .tags = {two});
  expect_gets(t, IDS(3), .tag_rule = DK_TAG_LISTED, .tags = {shorter});
  expect_gets(t, IDS(2, 4), .tag_rule = DK_TAG_LISTED, .tags = {medium, two});
  expect_text(t, fetch_activity(t, "inst", 1, .tag_rule = DK_TAG_LISTED, .tags = {one})->item.tag,
              one, "the longest tag");
}

/* ---- kept ------------------------------------------------------------------------------------ */

static struct dk_work_item *
fetch_by_tag(struct dk_check *t, const char *tag, int64_t lock_ms)
{
  expect_no_work(t, .tag_rule = TAG_UNTAGGED);
  expect_no_work(t, .tag_rule = DK_TAG_LISTED, .tags = {"cpu"});
  return item_with(t, tag, lock_ms);
}

/* TAG-4: an item that was abandoned, or whose lease has ended, still has its tag. */
void
tag_kept_when_it_comes_again(struct dk_check *t)
{
  enum { SHORT_LEASE_MS = 500 };

  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1, .tag = "gpu"}}));
  must(t, abandon_work(t, fetch_by_tag(t, "gpu", LEASE_MS)->work.lock_token));
  must(t, abandon_work(t, fetch_by_tag(t, "gpu", LEASE_MS)->work.lock_token, .ms = 100));
  advance(t, 100);
  fetch_by_tag(t, "gpu", SHORT_LEASE_MS);
  advance(t, SHORT_LEASE_MS);
  struct dk_work_item *work = fetch_by_tag(t, "gpu", LEASE_MS);
  must(t, renew_work(t, work->work.lock_token));
  must(t, ack_work(t, work->work.lock_token));
}

/* TAG-4: tags are stored. */
void
tag_same_after_reopening(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"), .schedule = {{1, .tag = "gpu"}}));
  close_handle(t, NULL);
  open_handle(t, NULL);
  must(t, ack_work(t, fetch_by_tag(t, "gpu", LEASE_MS)->work.lock_token));
}

/* TAG-4: through a commit or through enqueue_for_worker, a tag is the same tag. */
void
tag_same_directly(struct dk_check *t)
{
  given_instance(t, "inst");
  must(t, ack_turn(t, next_turn(t, "inst"),
                   .schedule = {{1}, {2, .tag = "gpu"}, {3, .tag = "GPU"}, {4, .tag = " gpu"}}));
  must(t, enqueue_work(t, "inst", .activity = {5}));
  must(t, enqueue_work(t, "inst", .activity = {6, .tag = "gpu"}));
  must(t, enqueue_work(t, "inst", .activity = {7, .tag = "GPU"}));
  must(t, enqueue_work(t, "inst", .activity = {8, .tag = " gpu"}));
  expect_gets(t, IDS(1, 5), .tag_rule = TAG_UNTAGGED);
  expect_gets(t, IDS(2, 6), .tag_rule = DK_TAG_LISTED, .tags = {"gpu"});
  expect_gets(t, IDS(3, 7), .tag_rule = DK_TAG_LISTED, .tags = {"GPU"});
  expect_gets(t, IDS(1, 4, 5, 8), .tag_rule = DK_TAG_UNTAGGED_OR_LISTED, .tags = {" gpu"});
  expect_gets(t, IDS(1, 2, 3, 4, 5, 6, 7, 8), .tag_rule = DK_TAG_ANY);
}
