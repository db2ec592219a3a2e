/* SPDX-License-Identifier: Apache-2.0 */
/* PRUNE: which executions are deleted, that nothing else is, and the deletion in pages. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "providers/sqlite/test-scene.h"

static struct dk_removed
prune(struct handle_under_test *h, const char *instance, uint32_t keep, int64_t completed_before)
{
  struct dk_prune request = {.struct_size = sizeof request, .instance = text(instance),
                             .keep = keep, .completed_before = completed_before};
  struct dk_removed removed;

  if (dk_store_prune_executions(h->store, h->caller, &request, &removed) != DK_OK)
    BAIL_OUT("a prune: %s", dk_caller_failure(h->caller)->text);
  return removed;
}

static struct dk_removed
prune_page(struct handle_under_test *h, const char *after, uint32_t most, uint32_t keep)
{
  const struct dk_instance_filter orders = {.struct_size = sizeof orders, .name = text("order")};
  struct dk_prune request = {.struct_size = sizeof request, .filter = &orders,
                             .after = {after, after ? strlen(after) : 0}, .max_instances = most,
                             .keep = keep};
  struct dk_removed removed;

  if (dk_store_prune_executions(h->store, h->caller, &request, &removed) != DK_OK)
    BAIL_OUT("a page: %s", dk_caller_failure(h->caller)->text);
  return removed;
}

/* The numbers of its executions, with a space between them; lives until the next call. */
static const char *
executions_of(struct handle_under_test *h, const char *instance)
{
  struct dk_list_executions request = {.struct_size = sizeof request, .instance = text(instance)};
  struct dk_executions *found = NULL;
  static char numbers[1024];
  size_t n = 0;

  if (dk_store_list_executions(h->store, h->caller, &request, &found) != DK_OK)
    BAIL_OUT("executions: %s", dk_caller_failure(h->caller)->text);
  numbers[0] = '\0';
  for (size_t i = 0; i < found->n_items; i++)
    n += (size_t)snprintf(numbers + n, sizeof numbers - n, "%s%llu", i == 0 ? "" : " ",
                          (unsigned long long)found->items[i].execution_id);
  return numbers;
}

/* ---- which ----------------------------------------------------------------------------------- */

/* PRUNE-1, PRUNE-2. */
static void
test_which(void)
{
  struct handle_under_test h;

  open_scene(&h, "which.db");
  for (int i = 1; i <= 9; i++) {
    set_time(NOON + i);
    if (i == 1)
      make(&h, "inst", .status = DK_CONTINUED_AS_NEW, .events = 3, .payload = LARGE);
    else
      commit_next(&h, "inst", (uint64_t)i, i == 4 || i == 9 ? DK_RUNNING : DK_CONTINUED_AS_NEW);
  }
  struct dk_removed removed = prune(&h, "inst", 5, NOON + 3);
  is(executions_of(&h, "inst"), "3 4 5 6 7 8 9", "before that time, not at it");
  ok(removed.instances == 1 && removed.executions == 2 && removed.events == 5 &&
       removed.messages == 0 && removed.activities == 0 && !removed.next.ptr,
     "the deleted rows are counted");
  prune(&h, "inst", 3, NOON + 900);
  is(executions_of(&h, "inst"), "4 7 8 9", "the newest stay, by number; so does an unfinished one");
  prune(&h, "inst", 4, 0);
  is(executions_of(&h, "inst"), "4 7 8 9", "the newest four are these, whatever their numbers are");
  removed = prune(&h, "inst", 900, 0);
  ok(removed.instances == 1 && removed.executions == 0, "one of which nothing is deleted counts");
  prune(&h, "inst", 0, 0);
  is(executions_of(&h, "inst"), "4 9", "0 is 1");
  expect_no_leftovers("which.db", "prunes");
  cmp_ok(number_in("which.db", "SELECT count(*) FROM history h WHERE NOT EXISTS (SELECT 1 FROM"
                               " execution e WHERE e.iid=h.iid AND e.execution=h.execution)"),
         "==", 0, "no event is without its execution");
  cmp_ok(number_in("which.db", "SELECT count(*) FROM history"), "==", 4,
         "and those that stay have theirs");
  struct dk_prune nobody = {.struct_size = sizeof nobody, .instance = text("pending")};
  send(&h, "pending", NULL, NOON + 99, 10);
  expect(&h, dk_store_prune_executions(h.store, h.caller, &nobody, NULL), DK_NOT_FOUND,
         "was ever committed", "of one that has not started");
  close_store(&h);
}

/* PRUNE-3, PRUNE-5: during a turn, with work of an execution that is deleted. */
static void
test_nothing_else(void)
{
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 4};
  struct handle_under_test h;
  struct dk_commit_outcome outcome;

  open_scene(&h, "else.db");
  make(&h, "inst", .executions = 3, .activities = 2, .payload = LARGE, .owner = "me",
       .status = DK_CONTINUED_AS_NEW);
  send(&h, "inst", "timer", NOON + 99, LARGE);
  make(&h, "child", .parent = "inst", .executions = 2);
  struct dk_bytes work = take_work(&h), turn = take_turn(&h, "inst");
  struct dk_removed removed = prune(&h, "inst", 0, 0);
  ok(removed.executions == 2 && removed.events == 4, "two executions are deleted, during a turn");
  cmp_ok(number_in("else.db", "SELECT count(*) FROM work WHERE payload IS NULL AND large IN"
                              " (SELECT id FROM large)"), "==", 6, "work stays, with its payloads");
  cmp_ok(number_in("else.db", "SELECT count(*) FROM message"), "==", 2, "so do messages");
  expect(&h, dk_store_renew_work_item_lock(h.store, h.caller, work, LEASE), DK_OK, "",
         "work of a deleted execution is still held");
  expect(&h, dk_store_ack_orchestration_item(h.store, h.caller, turn, &result, &outcome), DK_OK, "",
         "the turn is committed, and the next execution continues from there");
  is(executions_of(&h, "inst"), "3 4", "by its number");
  is(executions_of(&h, "child"), "1 2", "nothing of others is deleted");
  expect_no_leftovers("else.db", "a prune during a turn");
  close_store(&h);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void
test_pages(void)
{
  struct handle_under_test h;

  open_scene(&h, "pages.db");
  make(&h, "a", .executions = 3);
  make(&h, "b", .status = DK_COMPLETED);
  make(&h, "c", .name = "bill", .executions = 3);
  make(&h, "d", .executions = 4, .status = DK_FAILED);
  send(&h, "pending", NULL, NOON + 99, 10);
  struct dk_removed removed = prune_page(&h, NULL, 2, 0);
  ok(removed.instances == 2 && removed.executions == 2 && removed.next.len == 1 &&
       removed.next.ptr[0] == 'b', "a page of two, with nothing to delete");
  removed = prune_page(&h, "b", 2, 2);
  ok(removed.instances == 1 && removed.executions == 2 && !removed.next.ptr,
     "the next is the last; the filter has passed over one");
  is(executions_of(&h, "c"), "1 2 3", "of which nothing was deleted");
  close_store(&h);
}

/* So many instances with so many executions of two events each. */
static void
given_chains(const char *name, int n, int length)
{
  char sql[1400];

  snprintf(sql, sizeof sql,
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%d)"
           "INSERT INTO instance(iid, known, status, execution, last_event, name, version,"
           " instance, created_at)"
           " SELECT i, 1, 1, %d, 2, 'order', '1', printf('i-%%07d', i), 1 FROM n;"
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<%d)"
           "INSERT INTO execution(iid, execution, status, started_at, completed_at)"
           " SELECT iid, i, iif(i<%d, 4, 1), i, iif(i<%d, i+1, 0) FROM instance, n;"
           "INSERT INTO history(iid, execution, event, payload) SELECT iid, execution, 1, x'01'"
           " FROM execution;"
           "INSERT INTO history(iid, execution, event, payload) SELECT iid, execution, 2, x'02'"
           " FROM execution; UPDATE meta SET counter=%d",
           n, length, length, length, length, n);
  run_in(name, sql);
}

struct load {
  struct handle_under_test h;
  atomic_bool is_over;
  int turns;
};

/* Turns of one instance, one after the other, until the prune has ended. */
static void *
run_turns(void *context)
{
  struct load *load = context;

  while (!atomic_load(&load->is_over)) {
    drop_turn(&load->h, take_turn(&load->h, "busy"));
    load->turns++;
  }
  return NULL;
}

struct pruned {
  uint64_t executions, most; /* rows of one page */
  int pages, turns;
};

static void
prune_beside_turns(const char *name, int n, struct pruned *ret)
{
  struct load load = {.is_over = false};
  pthread_t thread;
  char last[32];
  const char *after = NULL;

  *ret = (struct pruned){.pages = 0};
  open_scene(&load.h, name);
  given_chains(name, n, 11);
  struct handle_under_test h = with_caller(&load.h);
  if (pthread_create(&thread, NULL, run_turns, &load) != 0)
    BAIL_OUT("no thread");
  do {
    struct dk_removed removed = prune_page(&h, after, 100000, 0);
    uint64_t rows = removed.executions + removed.events;
    ret->executions += removed.executions;
    ret->most = rows > ret->most ? rows : ret->most;
    snprintf(last, sizeof last, "%.*s", (int)removed.next.len, removed.next.ptr);
    after = removed.next.ptr ? last : NULL;
    ret->pages++;
  } while (after);
  atomic_store(&load.is_over, true);
  pthread_join(thread, NULL);
  ret->turns = load.turns;
  dk_caller_free(h.caller);
  close_store(&load.h);
}

/* 100,000 executions go in pages, between which others have their turns: on a busy machine perhaps
 * not each time, for a thread that gets no processor asks for nothing. */
static void
test_many(int n)
{
  enum { TRIES = 4 };
  struct pruned pruned;
  char name[20];
  int tries = 0;

  do {
    snprintf(name, sizeof name, "many-%d.db", ++tries);
    prune_beside_turns(name, n, &pruned);
  } while (pruned.turns <= pruned.pages / 4 && tries < TRIES);
  ok(pruned.executions == (uint64_t)n * 10, "%llu executions are pruned",
     (unsigned long long)pruned.executions);
  ok(pruned.most <= 10000 + 30 && pruned.pages >= n * 30 / 10030,
     "in %d pages of %llu rows at most", pruned.pages, (unsigned long long)pruned.most);
  ok(pruned.turns > pruned.pages / 4, "meanwhile %d turns are taken and committed", pruned.turns);
  cmp_ok(number_in(name, "SELECT count(*) FROM execution"), "==", n, "one of each stays");
  cmp_ok(number_in(name, "SELECT count(*) FROM history"), "==", 2 * n, "with its history");
  cmp_ok(number_in(name, "SELECT count(*) FROM instance WHERE known AND created_at IS NOT 1"),
         "==", 0, "and each knows when it was created");
}

int
main(void)
{
  begin();
  test_which();
  test_nothing_else();
  test_pages();
  test_many(is_slow() ? 500 : 10000);
  end();
  return done_testing();
}
