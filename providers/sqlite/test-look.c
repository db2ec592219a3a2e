/* SPDX-License-Identifier: Apache-2.0 */
/* ADMIN: looking at instances: which are listed, in which order, with which values, and that it
 * costs the writer nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/sqlite/test-scene.h"

/* ---- lists ----------------------------------------------------------------------------------- */

/* The ids, with a space between them; lives until the next call. */
static const char *
ids_of(const struct dk_instances *list)
{
  static char ids[4096];
  size_t n = 0;

  ids[0] = '\0';
  for (size_t i = 0; i < list->n_items; i++)
    n += (size_t)snprintf(ids + n, sizeof ids - n, "%s%.*s", i == 0 ? "" : " ",
                          (int)list->items[i].instance.len, list->items[i].instance.ptr);
  return ids;
}

static const char *
list(struct handle_under_test *h, const struct dk_instance_filter *filter, const char *after,
     uint32_t most)
{
  struct dk_list_instances request = {.struct_size = sizeof request, .filter = filter,
                                      .after = {after, after ? strlen(after) : 0},
                                      .max_instances = most};
  struct dk_instances *found = NULL;

  if (dk_store_list_instances(h->store, h->caller, &request, &found) != DK_OK)
    BAIL_OUT("a list: %s", dk_caller_failure(h->caller)->text);
  return ids_of(found);
}

#define filtered(h, ...)                                                                           \
  list(h, &(struct dk_instance_filter){.struct_size = sizeof(struct dk_instance_filter),           \
                                       __VA_ARGS__}, NULL, 0)

static const struct dk_instance *
look_at(struct handle_under_test *h, const char *instance, uint32_t flags)
{
  struct dk_bytes ids[] = {text(instance)};
  struct dk_instance_filter filter = {.struct_size = sizeof filter, .flags = DK_FILTER_IDS,
                                      .ids = ids, .n_ids = 1};
  struct dk_list_instances request = {.struct_size = sizeof request, .flags = flags,
                                      .filter = &filter};
  struct dk_instances *found = NULL;

  if (dk_store_list_instances(h->store, h->caller, &request, &found) != DK_OK)
    BAIL_OUT("a look: %s", dk_caller_failure(h->caller)->text);
  return found->n_items == 1 ? &found->items[0] : NULL;
}

static const char everyone[] = "B a a0 b pending ä";

/* Two of them are messages only, of one of which nothing is left. */
static void
given_everyone(struct handle_under_test *h)
{
  make(h, "b", .status = DK_FAILED, .parent = "a", .executions = 2);
  set_time(NOON + 100);
  make(h, "a", .name = "bill", .version = "2");
  set_time(NOON + 200);
  make(h, "ä", .status = DK_CANCELLED, .parent = "a0");
  make(h, "B", .status = DK_COMPLETED, .parent = "absent");
  set_time(NOON + 300);
  make(h, "a0", .status = DK_CONTINUED_AS_NEW, .parent = "a");
  drop_turn(h, take_turn(h, "dropped"));
  send(h, "pending", NULL, NOON + 9999, 10);
}

static void
test_order(struct handle_under_test *h)
{
  char paged[256];

  is(list(h, NULL, NULL, 0), everyone, "all, each once, in the order of their bytes");
  for (uint32_t size = 1; size <= 7; size++) {
    char last[64] = "";
    uint32_t pages = 0;
    paged[0] = '\0';
    for (;; pages++) {
      const char *page = list(h, NULL, last[0] ? last : NULL, size);
      if (page[0] == '\0')
        break;
      snprintf(paged + strlen(paged), sizeof paged - strlen(paged), "%s%s", paged[0] ? " " : "",
               page);
      snprintf(last, sizeof last, "%s", strrchr(paged, ' ') ? strrchr(paged, ' ') + 1 : paged);
    }
    ok(strcmp(paged, everyone) == 0 && pages == (6 + size - 1) / size,
       "pages of %u, %u of them: \"%s\"", size, pages, paged);
  }
  is(list(h, NULL, "a00", 2), "b pending", "after an id that does not exist");
  is(list(h, NULL, "ä", 0), "", "after the last");
}

static void
test_filters(struct handle_under_test *h)
{
  struct dk_bytes some[] = {text("pending"), text("b"), text("absent"), text("B"), text("b"),
                            text("dropped")};
  const uint32_t over = 1u << DK_COMPLETED | 1u << DK_FAILED | 1u << DK_CANCELLED;

  is(filtered(h, .flags = DK_FILTER_IDS, .ids = some, .n_ids = 6), "B b pending",
     "those listed, in order, each once, and no error for the rest");
  is(filtered(h, .flags = DK_FILTER_IDS), "", "an empty list selects nothing");
  is(filtered(h, .flags = 0), everyone, "an empty filter selects all");
  is(filtered(h, .name = text("bill")), "a", "by name");
  is(filtered(h, .name = text("bil")), "", "which is equal, not alike");
  is(filtered(h, .version = text("2")), "a", "by version");
  is(filtered(h, .name = text("order"), .version = text("2")), "", "by both: all must hold");
  is(filtered(h, .parent_instance = text("a")), "a0 b", "the children of one");
  is(filtered(h, .parent_instance = text("absent")), "B", "and of one that does not exist");
  is(filtered(h, .flags = DK_FILTER_ROOTS), "a pending", "those without a parent");
  is(filtered(h, .flags = DK_FILTER_ROOTS, .parent_instance = text("a")), "", "both: none");
  is(filtered(h, .statuses = over), "B b ä", "by status: what has ended");
  is(filtered(h, .statuses = 1u << DK_NOT_STARTED | 1u << DK_CONTINUED_AS_NEW), "a0 pending",
     "not started, or between two executions");
  is(filtered(h, .flags = DK_FILTER_IDS, .ids = some, .n_ids = 6, .statuses = over), "B b",
     "by list and status");
  is(filtered(h, .parent_instance = text("a"), .statuses = over), "b", "by parent and status");
  is(filtered(h, .created_from = NOON + 100, .created_before = NOON + 300), "B a ä",
     "by creation: from <= time < before");
  is(filtered(h, .created_from = NOON + 300), "a0 pending", "one that has not started, too");
  is(filtered(h, .completed_before = NOON + 1), "b", "by completion");
  is(filtered(h, .completed_from = NOON + 200, .completed_before = NOON + 300), "B ä",
     "by completion, between");
}

static void
test_pages_of_filters(struct handle_under_test *h)
{
  struct dk_bytes some[] = {text("ä"), text("b"), text("a0"), text("B")};
  struct dk_instance_filter ids = {.struct_size = sizeof ids, .flags = DK_FILTER_IDS, .ids = some,
                                   .n_ids = 4};
  struct dk_instance_filter children = {.struct_size = sizeof children,
                                        .parent_instance = text("a")};

  is(list(h, &ids, NULL, 2), "B a0", "a page of a list of ids");
  is(list(h, &ids, "a0", 2), "b ä", "the next");
  is(list(h, &children, NULL, 1), "a0", "a page of children");
  is(list(h, &children, "a0", 1), "b", "the next");
  is(list(h, &children, "b", 1), "", "and no more");
}

/* ---- what is listed -------------------------------------------------------------------------- */

static bool
equals(struct dk_bytes found, const char *expected)
{
  if (!expected || !found.ptr)
    return !expected && !found.ptr;
  return found.len == strlen(expected) && memcmp(found.ptr, expected, found.len) == 0;
}

static void
test_facts(struct handle_under_test *h)
{
  struct dk_fetch_turn fetch = {.struct_size = sizeof fetch, .lock_ms = 500};
  struct dk_turn *turn = NULL;

  set_time(NOON + 1000);
  make(h, "facts", .name = "bill", .version = "3", .parent = "a", .owner = "me", .executions = 2,
       .events = 7, .payload = LARGE);
  set_time(NOON + 1050);
  send(h, "facts", NULL, 0, 10);
  if (dk_store_fetch_orchestration_item(h->store, h->caller, &fetch, &turn) != DK_OK)
    BAIL_OUT("no turn");
  uint64_t birth = turn->head.birth;
  const struct dk_instance *i = look_at(h, "facts", DK_LIST_OUTPUT);
  ok(equals(i->name, "bill") && equals(i->version, "3") && equals(i->parent_instance, "a") &&
       equals(i->owner, "me"), "name, version, parent and owner");
  ok(i->birth == birth && i->execution_id == 2 && i->last_event_id == 7 && i->status == DK_RUNNING,
     "birth, execution, last event and status");
  ok(i->created_at == NOON + 1000 && i->started_at == NOON + 1000 && i->completed_at == 0 &&
       !i->output.ptr, "times; a running one has no output");
  cmp_ok(i->locked_until, "==", NOON + 1050 + 500, "its turn is held");
  set_time(NOON + 1050 + 500);
  cmp_ok(look_at(h, "facts", 0)->locked_until, "==", 0, "until the lease has ended");
  drop_turn(h, take_turn(h, "facts"));
  i = look_at(h, "b", DK_LIST_OUTPUT);
  ok(i->status == DK_FAILED && i->completed_at == NOON && i->output.len == 10 && !i->owner.ptr,
     "one that has ended has a completion and an output, and this one no owner");
  ok(!look_at(h, "b", 0)->output.ptr, "the output only if it is asked for");
  i = look_at(h, "a0", DK_LIST_OUTPUT);
  ok(i->status == DK_CONTINUED_AS_NEW && i->completed_at == NOON + 300 && i->output.len == 10,
     "between two executions: the completion and the output of the last");
}

static void
test_creation(struct handle_under_test *h)
{
  struct dk_prune prune = {.struct_size = sizeof prune, .instance = text("long")};

  set_time(NOON + 2000);
  make(h, "long", .status = DK_CONTINUED_AS_NEW, .payload = LARGE);
  set_time(NOON + 3000);
  commit_next(h, "long", 2, DK_RUNNING);
  const struct dk_instance *i = look_at(h, "long", 0);
  ok(i->created_at == NOON + 2000 && i->started_at == NOON + 3000,
     "created with the first execution, started with the current one");
  cmp_ok(dk_store_prune_executions(h->store, h->caller, &prune, NULL), "==", DK_OK, "a prune");
  i = look_at(h, "long", 0);
  ok(i->created_at == NOON + 2000 && i->started_at == NOON + 3000, "neither has changed");
}

/* ADMIN-4. */
static void
test_pending(struct handle_under_test *h)
{
  struct dk_fetch_turn fetch = {.struct_size = sizeof fetch, .lock_ms = 500, .max_messages = 1};
  struct dk_turn *turn = NULL;

  set_time(NOON + 4000);
  send(h, "soon", NULL, NOON + 4010, 10);
  set_time(NOON + 4001);
  send(h, "soon", NULL, NOON + 4020, 10);
  const struct dk_instance *i = look_at(h, "soon", DK_LIST_OUTPUT);
  ok(i && i->status == DK_NOT_STARTED && i->created_at == NOON + 4000,
     "since the oldest of its messages was stored");
  ok(!i->name.ptr && !i->version.ptr && !i->parent_instance.ptr && !i->owner.ptr &&
       !i->output.ptr && i->birth == 0 && i->execution_id == 0 && i->last_event_id == 0 &&
       i->started_at == 0 && i->completed_at == 0 && i->locked_until == 0, "and nothing else");
  set_time(NOON + 4020);
  for (int time = 0; time < 2; time++) {
    if (dk_store_fetch_orchestration_item(h->store, h->caller, &fetch, &turn) != DK_OK)
      BAIL_OUT("no turn");
    struct dk_bytes token = keep(turn->head.lock_token);
    i = look_at(h, "soon", 0);
    ok(i->locked_until == NOON + 4520 && i->created_at == NOON + 4000 + time,
       "with the lease, if it is held; since the oldest that is stored still");
    drop_turn(h, token);
  }
  ok(!look_at(h, "soon", 0), "deleted with its messages");
  make(h, "soon");
  cmp_ok(look_at(h, "soon", 0)->status, "==", DK_RUNNING, "an instance after its first commit");
}

/* ---- executions and messages ----------------------------------------------------------------- */

static void
test_executions(struct handle_under_test *h)
{
  struct dk_list_executions request = {.struct_size = sizeof request, .instance = text("many")};
  struct dk_executions *found = NULL;
  int wrong = 0;

  set_time(NOON + 5000);
  make(h, "many", .executions = 12, .status = DK_COMPLETED, .events = 3, .payload = LARGE);
  dk_store_list_executions(h->store, h->caller, &request, &found);
  for (size_t i = 0; i < found->n_items; i++)
    wrong += found->items[i].execution_id != i + 1 || found->items[i].last_event_id != 3 ||
             found->items[i].status != (i < 11 ? DK_CONTINUED_AS_NEW : DK_COMPLETED) ||
             found->items[i].output.len != LARGE || found->items[i].started_at != NOON + 5000 ||
             found->items[i].completed_at != NOON + 5000;
  ok(found->n_items == 12 && wrong == 0, "12 executions, by number, whole");
  request.after = 9;
  request.max_executions = 2;
  dk_store_list_executions(h->store, h->caller, &request, &found);
  ok(found->n_items == 2 && found->items[0].execution_id == 10, "two after the ninth");
  request.after = INT64_MAX;
  cmp_ok(dk_store_list_executions(h->store, h->caller, &request, &found), "==", DK_OK,
         "after the largest number");
  cmp_ok(found->n_items, "==", 0, "there are none");
  request = (struct dk_list_executions){.struct_size = sizeof request, .instance = text("absent")};
  cmp_ok(dk_store_list_executions(h->store, h->caller, &request, &found), "==", DK_OK,
         "of one that does not exist");
  cmp_ok(found->n_items, "==", 0, "there are none");
}

static void
test_messages(struct handle_under_test *h)
{
  struct dk_read_messages request = {.struct_size = sizeof request, .instance = text("waiting")};
  struct dk_messages *found = NULL;

  set_time(NOON + 6000);
  send(h, "waiting", "later", NOON + 9000, 20);
  send(h, "waiting", NULL, 0, LARGE);
  take_turn(h, "waiting");
  set_time(NOON + 6001);
  send(h, "waiting", "new", 0, 0);
  cmp_ok(dk_store_read_messages(h->store, h->caller, &request, &found), "==", DK_OK, "messages");
  if (found->n_items != 4)
    BAIL_OUT("%zu messages", found->n_items);
  const struct dk_message *m = found->items;
  ok(m[0].payload.len == LARGE && !m[0].id.ptr && m[1].payload.len == 10 &&
       equals(m[2].id, "new") && m[2].payload.ptr && m[2].payload.len == 0 &&
       equals(m[3].id, "later"),
     "four, in the order of the queue: held, new and delayed ones");
  ok(m[0].attempt == 0 && m[0].visible_at == NOON + 6000 && m[0].enqueued_at == NOON + 6000 &&
       m[3].visible_at == NOON + 9000 && m[3].enqueued_at == NOON + 6000 &&
       m[2].enqueued_at == NOON + 6001,
     "with both times, and attempt 0");
  request.max_messages = 2;
  dk_store_read_messages(h->store, h->caller, &request, &found);
  ok(found->n_items == 2 && found->items[1].payload.len == 10, "the first two");
  request.instance = text("absent");
  cmp_ok(dk_store_read_messages(h->store, h->caller, &request, &found), "==", DK_OK,
         "of an unknown instance");
  cmp_ok(found->n_items, "==", 0, "none");
}

/* ---- counts ---------------------------------------------------------------------------------- */

static struct dk_stats
stats_of(struct handle_under_test *h)
{
  struct dk_stats stats;

  if (dk_store_read_stats(h->store, h->caller, &stats) != DK_OK)
    BAIL_OUT("stats: %s", dk_caller_failure(h->caller)->text);
  return stats;
}

/* ADMIN-6: what was given back, or whose lease has ended, is ready, whatever token it has. */
static void
test_stats(void)
{
  struct handle_under_test h;

  open_scene(&h, "stats.db");
  struct dk_stats s = stats_of(&h);
  ok(s.now == NOON && s.running + s.executions + s.messages_ready + s.activities_ready == 0 &&
       s.oldest_message == 0, "of an empty store");
  make(&h, "one", .executions = 3, .status = DK_COMPLETED);
  make(&h, "two", .status = DK_FAILED);
  make(&h, "three", .status = DK_CANCELLED);
  make(&h, "four", .status = DK_CONTINUED_AS_NEW);
  make(&h, "five", .activities = 4);
  set_time(NOON + 10);
  struct dk_bytes given_back = take_work(&h);
  take_work(&h);
  dk_store_abandon_work_item(h.store, h.caller, given_back, 700, 0);
  send(&h, "soon", NULL, NOON + 500, 10);
  struct dk_bytes held = take_turn(&h, "five");
  send(&h, "five", NULL, 0, 10);
  send(&h, "five", NULL, NOON + 900, 10);
  send(&h, "six", NULL, NOON - 77, 10);
  s = stats_of(&h);
  ok(s.not_started == 2 && s.running == 1 && s.completed == 1 && s.failed == 1 &&
       s.cancelled == 1 && s.continued_as_new == 1, "instances by status");
  ok(s.executions == 7 && s.events == 14, "executions and events");
  ok(s.messages_delayed == 2 && s.messages_locked == 2 && s.messages_ready == 1 &&
       s.oldest_message == NOON + 10, "messages: delayed %llu, locked %llu, ready %llu",
     (unsigned long long)s.messages_delayed, (unsigned long long)s.messages_locked,
     (unsigned long long)s.messages_ready);
  ok(s.activities_delayed == 1 && s.activities_locked == 1 && s.activities_ready == 2 &&
       s.oldest_activity == NOON, "activities: delayed %llu, locked %llu, ready %llu",
     (unsigned long long)s.activities_delayed, (unsigned long long)s.activities_locked,
     (unsigned long long)s.activities_ready);
  dk_store_renew_orchestration_item_lock(h.store, h.caller, held, 100);
  set_time(NOON + 10 + LEASE);
  s = stats_of(&h);
  ok(s.messages_delayed == 0 && s.messages_locked == 0 && s.messages_ready == 5 &&
       s.activities_delayed == 0 && s.activities_locked == 0 && s.activities_ready == 4,
     "when all leases have ended, all is ready");
  close_store(&h);
}

/* ---- while another process holds the store --------------------------------------------------- */

/* ADMIN-7: the writer does not take part: another process holds the store, and keeps it. */
static void
test_while_locked(struct handle_under_test *h)
{
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  char before[1024];
  struct dk_read_messages request = {.struct_size = sizeof request, .instance = text("waiting")};
  struct dk_messages *found = NULL;

  snprintf(before, sizeof before, "%s", list(h, NULL, NULL, 0));
  int64_t commits = number_in("look.db", "SELECT commits FROM meta");
  int fd = open(place("look.db-lock"), O_RDWR | O_CLOEXEC);
  if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0)
    BAIL_OUT("the store cannot be held: %s", strerror(errno));
  is(list(h, NULL, NULL, 0), before, "a list while another process has the store");
  ok(dk_store_read_messages(h->store, h->caller, &request, &found) == DK_OK &&
       found->n_items == 4, "messages, too");
  ok(stats_of(h).running > 0, "and counts");
  close(fd);
  cmp_ok(number_in("look.db", "SELECT commits FROM meta"), "==", commits,
         "nothing was committed by all that looking");
}

/* An older host has no upcall for it. */
static void
test_older_host(void)
{
  struct dk_host_options options = {.struct_size = sizeof options,
                                    .host_size = offsetof(struct dk_host, instance)};
  struct handle_under_test h;
  struct dk_list_instances request = {.struct_size = sizeof request};
  struct dk_instances *found = NULL;
  struct dk_removed removed;

  open_store_with(&h, "look.db", 0, &options);
  expect(&h, dk_store_list_instances(h.store, h.caller, &request, &found), DK_UNSUPPORTED,
         "upcall", "a list for an older host");
  expect(&h, delete_ids(&h, "B", 0, &removed), DK_UNSUPPORTED, "upcall",
         "a deletion for an older host");
  close_store(&h);
  cmp_ok(number_in("look.db", "SELECT count(*) FROM instance WHERE instance='B'"), "==", 1,
         "deletes nothing");
}

static void
test_read_only(void)
{
  struct dk_host_options options = {.struct_size = sizeof options};
  struct dk_prune prune = {.struct_size = sizeof prune, .instance = text("many")};
  struct handle_under_test h;
  struct dk_removed removed;

  open_store_with(&h, "look.db", DK_OPEN_READ_ONLY, &options);
  ok(dk_store_extension(h.store, DK_ADMIN) != NULL, "a read-only handle offers it");
  ok(strncmp(list(&h, NULL, NULL, 0), "B a a0 b", 8) == 0, "lists");
  ok(stats_of(&h).failed == 1, "counts");
  expect(&h, delete_ids(&h, "b", 0, &removed), DK_REFUSED, "read-only", "deletes nothing");
  expect(&h, dk_store_prune_executions(h.store, h.caller, &prune, NULL), DK_REFUSED, "read-only",
         "and prunes nothing");
  close_store(&h);
}

int
main(void)
{
  struct handle_under_test h;

  begin();
  open_scene(&h, "look.db");
  given_everyone(&h);
  test_order(&h);
  test_filters(&h);
  test_pages_of_filters(&h);
  test_facts(&h);
  test_creation(&h);
  test_pending(&h);
  test_executions(&h);
  test_messages(&h);
  test_while_locked(&h);
  close_store(&h);
  test_stats();
  test_older_host();
  test_read_only();
  end();
  return done_testing();
}
