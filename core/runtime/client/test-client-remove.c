/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of dk_client_delete and dk_client_prune, and of the same by filter.  The turns are made by
 * hand, on the model. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/hand-made-turns.h"

static struct dk_removed
nothing_removed(void)
{
  return (struct dk_removed){.struct_size = sizeof(struct dk_removed)};
}

static struct dk_instance_filter
a_filter(void)
{
  return (struct dk_instance_filter){.struct_size = sizeof(struct dk_instance_filter)};
}

static int32_t
count(void *context, const struct dk_instance_info *info)
{
  *(unsigned *)context += info->struct_size == sizeof(*info);
  return 0;
}

/* How many instances there are. */
static unsigned
left(struct hand *h)
{
  unsigned n = 0;

  if (dk_client_list(h->client, NULL, (dk_str){NULL, 0}, 0, 0, count, &n) != DK_OK)
    BAIL_OUT("no list: %s", dk_client_error(h->client));
  return n;
}

/* ---- delete ---------------------------------------------------------------------------------- */

static void
test_delete(void)
{
  struct hand h;
  struct dk_removed removed = nothing_removed();
  const dk_str ids[] = {{"a-doneXYZ", 6}, dk_str_of("b-done")};
  const dk_str running = dk_str_of("c-runs"), absent = dk_str_of("absent");

  hand_begin(&h, false);
  hand_make(&h, dk_str_of("a-done"), DK_COMPLETED);
  hand_make(&h, dk_str_of("b-done"), DK_CANCELLED);
  hand_start(&h, running);
  cmp_ok(dk_client_delete(h.client, ids, 2, 0, &removed), "==", DK_OK,
         "two are deleted, whose ids need no NUL");
  ok(removed.instances == 2 && removed.executions == 2 && removed.events == 4 && !removed.next.ptr,
     "with all their data");
  cmp_ok(left(&h), "==", 1, "and only the other one remains");
  cmp_ok(dk_client_delete(h.client, ids, 2, 0, &removed), "==", DK_NOT_FOUND, "again");
  isnt(dk_client_error(h.client), "", "with an error text");
  cmp_ok(removed.instances, "==", 0, "removes nothing");
  cmp_ok(dk_client_delete(h.client, &running, 1, 0, &removed), "==", DK_REFUSED, "what runs");
  cmp_ok(left(&h), "==", 1, "stays");
  cmp_ok(dk_client_delete(h.client, &running, 1, DK_DELETE_FORCE, NULL), "==", DK_OK,
         "unless it is forced");
  cmp_ok(left(&h), "==", 0, "then it is deleted");
  cmp_ok(dk_client_delete(h.client, &absent, 1, 0, &removed), "==", DK_NOT_FOUND, "an unknown id");
  cmp_ok(dk_client_delete(h.client, NULL, 1, 0, &removed), "==", DK_INVALID, "no list");
  cmp_ok(dk_client_delete(h.client, &absent, 1, 8, &removed), "==", DK_UNSUPPORTED,
         "an unknown flag");
  cmp_ok(dk_client_delete(h.client, NULL, 0, 0, &removed), "==", DK_OK, "none");
  hand_end(&h);
}

static void
test_delete_unknown(void)
{
  struct hand h;
  struct dk_removed removed = nothing_removed();
  const dk_str a = dk_str_of("a"), b = dk_str_of("b");

  hand_begin(&h, false);
  hand_make(&h, a, DK_COMPLETED);
  hand_make(&h, b, DK_COMPLETED);
  faulty_plan(h.faulty, FAULTY_DELETE_INSTANCES, 0, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_delete(h.client, &a, 1, 0, &removed), "==", DK_OK,
         "a deletion that did not arrive is requested again");
  cmp_ok(removed.instances, "==", 1, "and is done");
  faulty_plan(h.faulty, FAULTY_DELETE_INSTANCES, 0, 1, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_delete(h.client, &b, 1, 0, &removed), "==", DK_OUTCOME_UNKNOWN,
         "the repetition of one that did arrive finds nothing");
  ok(strstr(dk_client_error(h.client), "check which do"), "the error says so: %s",
     dk_client_error(h.client));
  hand_end(&h);
}

/* ---- an answer that was lost, and a repetition that was cancelled ---------------------------- */

static dk_status
delete_one(struct hand *h, struct dk_removed *removed)
{
  const dk_str a = dk_str_of("a");

  return dk_client_delete(h->client, &a, 1, 0, removed);
}

static dk_status
delete_page(struct hand *h, struct dk_removed *removed)
{
  const struct dk_instance_filter filter = a_filter();

  return dk_client_delete_matching(h->client, &filter, 0, removed);
}

static dk_status
prune_one(struct hand *h, struct dk_removed *removed)
{
  return dk_client_prune(h->client, dk_str_of("a"), 1, 0, removed);
}

static dk_status
prune_page(struct hand *h, struct dk_removed *removed)
{
  const struct dk_instance_filter filter = a_filter();

  return dk_client_prune_matching(h->client, &filter, 1, 0, 0, removed);
}

/* The answer to the repetition does not prove that the first attempt was not done. */
static void
test_lost(void)
{
  static const struct {
    const char *what;
    enum faulty_operation operation;
    dk_status (*remove)(struct hand *h, struct dk_removed *removed);
  } rows[] = {
    {"delete", FAULTY_DELETE_INSTANCES, delete_one},
    {"delete by filter", FAULTY_DELETE_MATCHING, delete_page},
    {"prune", FAULTY_PRUNE, prune_one},
    {"prune by filter", FAULTY_PRUNE, prune_page},
  };
  static const dk_status later[] = {DK_UNAVAILABLE, DK_BUSY, DK_REFUSED};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct dk_removed removed = nothing_removed();
    pthread_t canceller;
    struct hand h;

    hand_begin(&h, false);
    hand_make(&h, dk_str_of("a"), DK_COMPLETED);
    hand_lose(&h, rows[i].operation, &canceller);
    cmp_ok(rows[i].remove(&h, &removed), "==", DK_OUTCOME_UNKNOWN,
           "%s: the answer is lost, and its repetition cancelled", rows[i].what);
    ok(strstr(dk_client_error(h.client), ": DK_OUTCOME_UNKNOWN: as the test has planned it"),
       "%s: in the words of the first: %s", rows[i].what, dk_client_error(h.client));
    hand_lost(&h, canceller);
    for (size_t j = 0; j < sizeof(later) / sizeof(later[0]); j++) {
      faulty_plan(h.faulty, rows[i].operation, 0, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
      faulty_then(h.faulty, rows[i].operation, UINT32_MAX, FAULT_REFUSE, later[j]);
      cmp_ok(rows[i].remove(&h, &removed), "==", DK_OUTCOME_UNKNOWN,
             "%s: nor does %d tell", rows[i].what, (int)later[j]);
      faulty_heal(h.faulty);
    }
    faulty_plan(h.faulty, rows[i].operation, 0, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
    faulty_then(h.faulty, rows[i].operation, 1, FAULT_REFUSE, DK_INVALID);
    cmp_ok(rows[i].remove(&h, &removed), "==", DK_INVALID, "%s: what is never taken does",
           rows[i].what);
    hand_end(&h);
  }
}

/* ---- by filter ------------------------------------------------------------------------------- */

enum { MANY = 250 };

static void
make_many(struct hand *h)
{
  char id[16];

  for (int i = 0; i < MANY; i++) {
    snprintf(id, sizeof(id), "i-%04d", i);
    h->name = i % 5 == 0 ? "report" : "order";
    hand_make(h, dk_str_of(id), DK_COMPLETED);
  }
  hand_start(h, dk_str_of("running"));
}

static void
test_delete_matching(void)
{
  struct hand h;
  struct dk_removed removed = nothing_removed();
  struct dk_instance_filter filter = a_filter();

  hand_begin(&h, false);
  make_many(&h);
  filter.name = (dk_str){"reports", 6};
  cmp_ok(dk_client_delete_matching(h.client, &filter, 7, &removed), "==", DK_OK, "seven of a name");
  cmp_ok(removed.instances, "==", 7, "are deleted");
  cmp_ok(left(&h), "==", MANY + 1 - 7, "and no other");
  cmp_ok(dk_client_delete_matching(h.client, &filter, 0, &removed), "==", DK_OK, "the rest of it");
  cmp_ok(removed.instances, "==", MANY / 5 - 7, "is deleted, too");
  ok(removed.executions == removed.instances && removed.events == 2 * removed.instances &&
       !removed.next.ptr,
     "with all their data");
  filter = a_filter();
  uint64_t before = faulty_calls(h.faulty, FAULTY_DELETE_MATCHING);
  faulty_plan(h.faulty, FAULTY_DELETE_MATCHING, 1, 1, FAULT_REFUSE, DK_UNAVAILABLE);
  cmp_ok(dk_client_delete_matching(h.client, &filter, 0, &removed), "==", DK_UNAVAILABLE,
         "a store that becomes unreachable midway");
  cmp_ok(removed.instances, "==", 100, "the call reports what was deleted");
  cmp_ok(left(&h), "==", 101, "and the report is right");
  faulty_plan(h.faulty, FAULTY_DELETE_MATCHING, 0, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_delete_matching(h.client, &filter, 0, &removed), "==", DK_OK, "called again");
  cmp_ok(removed.instances, "==", 100, "it does the rest");
  cmp_ok(faulty_calls(h.faulty, FAULTY_DELETE_MATCHING) - before, "<=", 6, "in pages");
  cmp_ok(left(&h), "==", 1, "but for what runs");
  cmp_ok(dk_client_delete_matching(h.client, NULL, 0, &removed), "==", DK_INVALID, "no filter");
  dk_cancel(h.canceller);
  cmp_ok(dk_client_delete_matching(h.client, &filter, 0, &removed), "==", DK_CALL_CANCELLED,
         "a cancelled call");
  hand_end(&h);
}

enum { CHILDREN = 3 };

/* Makes n roots, each with its children; all have ended. */
static void
make_families(struct hand *h, int n)
{
  char id[16], child[24];

  for (int i = 0; i < n; i++) {
    snprintf(id, sizeof(id), "root-%d", i);
    hand_make(h, dk_str_of(id), DK_COMPLETED);
    h->parent = id;
    for (int k = 0; k < CHILDREN; k++) {
      snprintf(child, sizeof(child), "%s-%d", id, k);
      hand_make(h, dk_str_of(child), DK_COMPLETED);
    }
    h->parent = NULL;
  }
}

/* As many roots are deleted as requested, with their children, even if each page ends after one. */
static void
test_descendants(void)
{
  struct hand h;
  struct dk_removed removed = nothing_removed();
  struct dk_instance_filter filter = a_filter();

  hand_begin(&h, false);
  make_families(&h, 8);
  cmp_ok(dk_client_delete_matching(h.client, &filter, 2, &removed), "==", DK_OK, "two roots");
  ok(removed.roots == 2 && removed.instances == 8, "go with their children");
  faulty_end_pages(h.faulty, 1);
  cmp_ok(dk_client_delete_matching(h.client, &filter, 4, &removed), "==", DK_OK,
         "four, each on a page of its own");
  ok(removed.roots == 4 && removed.instances == 16, "go, too: %" PRIu64 " with %" PRIu64
     " instances", removed.roots, removed.instances);
  cmp_ok(dk_client_delete_matching(h.client, &filter, 0, &removed), "==", DK_OK, "then all");
  ok(removed.roots == 2 && removed.instances == 8, "the others");
  hand_make(&h, dk_str_of("a"), DK_COMPLETED);
  cmp_ok(dk_client_delete(h.client, &(dk_str){"a", 1}, 1, 0, &removed), "==", DK_OK, "one by name");
  cmp_ok(removed.roots, "==", 1, "is a root");
  hand_end(&h);
}

/* A provider of ABI 2.1 does not report how many roots it deleted: never more than requested. */
static void
test_untold_roots(void)
{
  const struct dk_setting settings[] = {{"mutant", dk_str_of("del/roots-not-told")}};
  struct hand h;
  struct dk_removed removed = nothing_removed();
  struct dk_instance_filter filter = a_filter();
  const char *model = getenv("MODEL");

  if (!model)
    BAIL_OUT("MODEL does not name the model's plugin");
  hand_begin_on(&h, faulty_open(model, settings, 1));
  make_families(&h, 8);
  faulty_end_pages(h.faulty, 1);
  cmp_ok(dk_client_delete_matching(h.client, &filter, 4, &removed), "==", DK_OK, "four at most");
  ok(removed.roots == 0 && removed.instances > 0 && removed.instances <= 16,
     "go: %" PRIu64 " instances", removed.instances);
  hand_end(&h);
}

/* It is unknown whether a page whose answer was lost has deleted anything; the next page has other
 * roots. */
static void
test_limit_and_unknown(void)
{
  struct hand h;
  struct dk_removed removed = nothing_removed();
  struct dk_instance_filter filter = a_filter();

  hand_begin(&h, false);
  make_families(&h, 8);
  faulty_plan(h.faulty, FAULTY_DELETE_MATCHING, 0, 1, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_delete_matching(h.client, &filter, 2, &removed), "==", DK_OUTCOME_UNKNOWN,
         "two, and the answer is lost");
  cmp_ok(left(&h), "==", 24, "no more than two are deleted");
  cmp_ok(removed.roots, "==", 0, "none is reported");
  faulty_plan(h.faulty, FAULTY_DELETE_MATCHING, 0, 1, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_delete_matching(h.client, &filter, 0, &removed), "==", DK_OK,
         "if all have to be deleted, the call is repeated");
  cmp_ok(left(&h), "==", 0, "and all are deleted");
  hand_end(&h);
}

/* ---- prune ----------------------------------------------------------------------------------- */

/* Makes so many executions of each, of which the last one runs. */
static void
make_executions(struct hand *h, dk_str instance, uint64_t n)
{
  hand_store(h, instance);
  if (hand_fetch(h) == 0)
    BAIL_OUT("no turn");
  for (uint64_t i = 1; i < n; i++) {
    hand_commit(h, i, 1, &hand_started, 1, DK_CONTINUED_AS_NEW, NULL);
    hand_next_turn(h, instance);
  }
  hand_commit(h, n, 1, &hand_started, 1, DK_RUNNING, NULL);
}

static void
test_prune(void)
{
  struct hand h;
  struct dk_removed removed = nothing_removed();
  const dk_str a = {"aXYZ", 1};

  hand_begin(&h, false);
  make_executions(&h, dk_str_of("a"), 6);
  cmp_ok(dk_client_prune(h.client, a, 4, 0, &removed), "==", DK_OK, "all but four");
  ok(removed.instances == 1 && removed.executions == 2 && removed.events == 2, "two go");
  cmp_ok(dk_client_prune(h.client, a, 0, 1, &removed), "==", DK_OK, "what ended long ago");
  cmp_ok(removed.executions, "==", 0, "removes none");
  faulty_plan(h.faulty, FAULTY_PRUNE, 0, 1, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_prune(h.client, a, 0, 0, &removed), "==", DK_OK, "all that have ended");
  cmp_ok(removed.executions, "==", 3, "go, and the one that runs stays");
  cmp_ok(dk_client_prune(h.client, dk_str_of("absent"), 1, 0, &removed), "==", DK_NOT_FOUND,
         "an instance that does not exist");
  isnt(dk_client_error(h.client), "", "with an error text");
  cmp_ok(dk_client_prune(h.client, dk_str_of(""), 1, 0, &removed), "==", DK_INVALID,
         "an invalid id");
  hand_end(&h);
}

static void
test_prune_matching(void)
{
  struct hand h;
  struct dk_removed removed = nothing_removed();
  struct dk_instance_filter filter = a_filter();
  char id[16];

  hand_begin(&h, false);
  for (int i = 0; i < 120; i++) {
    snprintf(id, sizeof(id), "i-%04d", i);
    h.name = i % 2 == 0 ? "report" : "order";
    make_executions(&h, dk_str_of(id), 3);
  }
  filter.name = dk_str_of("report");
  cmp_ok(dk_client_prune_matching(h.client, &filter, 2, 0, 10, &removed), "==", DK_OK,
         "ten of a name");
  ok(removed.instances == 10 && removed.executions == 10,
     "are examined, and each loses one execution");
  filter = a_filter();
  faulty_plan(h.faulty, FAULTY_PRUNE, 1, 1, FAULT_REFUSE, DK_UNAVAILABLE);
  cmp_ok(dk_client_prune_matching(h.client, &filter, 1, 0, 0, &removed), "==", DK_UNAVAILABLE,
         "a store that becomes unreachable midway");
  cmp_ok(removed.instances, "==", 100, "what was examined is reported");
  cmp_ok(dk_client_prune_matching(h.client, &filter, 1, 0, 0, &removed), "==", DK_OK, "again");
  ok(removed.instances == 120 && removed.executions == 40 && !removed.next.ptr,
     "all are examined, and the rest is removed");
  cmp_ok(dk_client_prune_matching(h.client, NULL, 1, 0, 0, &removed), "==", DK_INVALID,
         "no filter");
  hand_end(&h);
}

static void
test_plain(void)
{
  struct hand h;
  struct dk_instance_filter filter = a_filter();
  const dk_str a = dk_str_of("a");

  hand_begin(&h, true);
  cmp_ok(dk_client_delete(h.client, &a, 1, 0, NULL), "==", DK_UNSUPPORTED,
         "without the extension: delete");
  ok(strstr(dk_client_error(h.client), "dk_client_delete needs durakit.admin/1"),
     "the error says so");
  cmp_ok(dk_client_delete_matching(h.client, &filter, 0, NULL), "==", DK_UNSUPPORTED, "by filter");
  cmp_ok(dk_client_prune(h.client, a, 1, 0, NULL), "==", DK_UNSUPPORTED, "prune");
  cmp_ok(dk_client_prune_matching(h.client, &filter, 1, 0, 0, NULL), "==", DK_UNSUPPORTED,
         "by filter");
  hand_end(&h);
}

int
main(void)
{
  plan(NO_PLAN);
  test_delete();
  test_delete_unknown();
  test_lost();
  test_delete_matching();
  test_descendants();
  test_untold_roots();
  test_limit_and_unknown();
  test_prune();
  test_prune_matching();
  test_plain();
  return exit_status();
}
