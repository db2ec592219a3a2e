/* SPDX-License-Identifier: Apache-2.0 */
/* The leases on a store that fails on request: what is renewed, tried again, lost, and when. */
#include <stdatomic.h>
#include <stdlib.h>

#include "conformance/tap/tap.h"
#include "core/runtime/lease/heap.h"
#include "core/runtime/lease/leases.h"
#include "core/runtime/testing/failing-store.h"
#include "core/runtime/testing/log-listener.h"

/* A store, leases, and the log; each test has its own. */
struct rig {
  struct faulty *faulty;
  struct listener *listener;
  struct log log;
  struct leases *leases;
  struct dk_caller *caller;
  uint64_t activities;
};

/* A lease as its owner sees it. */
struct kept {
  struct lease *lease;
  dk_str token;
  char bytes[256];
  int64_t deadline;
  atomic_int losses;
  enum loss loss;
  _Atomic int64_t lost_at;
};

static struct rig
begin(void)
{
  struct rig rig = {.faulty = faulty_open_model(), .listener = listener_new(),
                    .caller = dk_caller_new(NULL, 0)};

  return rig;
}

static void
go(struct rig *rig)
{
  struct leases_setup setup = {faulty_store(rig->faulty), &rig->log};

  log_init(&rig->log, listener_log, rig->listener, "w");
  if (leases_start(&setup, &rig->leases) != DK_OK)
    BAIL_OUT("the leases do not start");
}

static void
end(struct rig *rig)
{
  leases_stop(rig->leases);
  log_done(&rig->log);
  dk_caller_free(rig->caller);
  faulty_close(rig->faulty);
  listener_free(rig->listener);
}

static uint64_t
counted(struct rig *rig, enum counter counter)
{
  return atomic_load(&rig->log.counters[counter]);
}

static void
lost(void *context, enum loss loss)
{
  struct kept *kept = context;

  kept->loss = loss;
  atomic_store(&kept->lost_at, ticks_now());
  atomic_fetch_add(&kept->losses, 1);
}

/* A work item of the store, locked. */
static void
fetch(struct rig *rig, struct kept *kept, int64_t lock_ms)
{
  struct dk_item item = {.struct_size = sizeof(item), .instance = dk_str_of("i"),
                         .execution_id = 1, .activity_id = ++rig->activities,
                         .payload = dk_str_of("{}")};
  struct dk_fetch_work request = {.struct_size = sizeof(request), .max_items = 1,
                                  .lock_ms = lock_ms};
  struct dk_works *works = NULL;
  struct dk_store *store = faulty_store(rig->faulty);

  dk_caller_reset(rig->caller);
  if (dk_store_enqueue_for_worker(store, rig->caller, &item) != DK_OK ||
      dk_store_fetch_work_item(store, rig->caller, &request, &works) != DK_OK)
    BAIL_OUT("no work item: %s", dk_caller_failure(rig->caller)->text);
  kept->token = works->items[0].work.lock_token;
  memcpy(kept->bytes, kept->token.ptr, kept->token.len + 1);
  kept->token.ptr = kept->bytes;
  kept->deadline = ticks_of(store, works->items[0].deadline);
}

static void
keep(struct rig *rig, struct kept *kept, int64_t lock_ms, int64_t every_ms)
{
  fetch(rig, kept, lock_ms);
  struct lease_terms terms = {
    .kind = LEASE_WORK, .token = kept->token, .lock_ms = lock_ms,
    .buffer_ms = lock_ms - every_ms, .deadline = kept->deadline, .instance = dk_str_of("i"),
    .activity = dk_str_of("a"), .orchestration = dk_str_of("o"), .execution_id = 1,
    .activity_id = rig->activities, .lost = lost, .context = kept,
  };
  kept->lease = leases_keep(rig->leases, &terms);
  if (!kept->lease)
    BAIL_OUT("no lease is kept");
}

/* What the log must name for it. */
static struct whom
whom(const struct rig *rig, const struct kept *kept)
{
  return (struct whom){.instance = "i", .execution_id = 1, .activity_id = rig->activities,
                       .activity = "a", .orchestration = "o", .token = kept->bytes,
                       .worker = "w"};
}

/* ---- kept ------------------------------------------------------------------------------------ */

static void
test_renewed(void)
{
  struct rig rig = begin();
  struct kept kept = {.losses = 0};

  go(&rig);
  keep(&rig, &kept, 30000, 20);
  int64_t first = lease_deadline(kept.lease);
  ok(first <= ticks_now() + 30000, "the deadline is not beyond the lock");
  ok(faulty_until_calls(rig.faulty, FAULTY_RENEW_WORK, 5), "it is renewed again and again");
  ok(UNTIL(lease_deadline(kept.lease) > first), "each time the deadline moves");
  cmp_ok(atomic_load(&kept.losses), "==", 0, "nothing is lost");
  ok(listener_until(rig.listener, DK_LOG_RENEWED, 4), "each renewal is logged");
  cmp_ok(listener_level(rig.listener, DK_LEVEL_INFO), "==", 0, "but only as trace");
  struct whom ours = whom(&rig, &kept);
  struct heard heard = listener_latest_trace(rig.listener, DK_LOG_RENEWED);
  ok(heard_names(&heard, &ours), "with all the names of its owner");
  leases_let_go(rig.leases, kept.lease);
  uint64_t calls = faulty_calls(rig.faulty, FAULTY_RENEW_WORK);
  struct kept other = {.losses = 0};
  keep(&rig, &other, 30000, 20);
  ok(faulty_until_calls(rig.faulty, FAULTY_RENEW_WORK, calls + 3), "another is renewed");
  leases_let_go(rig.leases, other.lease);
  end(&rig);
}

static void
test_not_before_its_time(void)
{
  struct rig rig = begin();
  struct kept kept = {.losses = 0};

  go(&rig);
  keep(&rig, &kept, 30000, 300);
  int64_t from = ticks_now();
  ok(faulty_until_calls(rig.faulty, FAULTY_RENEW_WORK, 3), "renewed three times");
  cmp_ok(ticks_now() - from, ">=", 850, "every lock - buffer, not sooner");
  leases_let_go(rig.leases, kept.lease);
  end(&rig);
}

static void
test_turn(void)
{
  struct rig rig = begin();
  struct kept kept = {.losses = 0};
  struct dk_item message = {.struct_size = sizeof(message), .instance = dk_str_of("i"),
                            .payload = dk_str_of("{}")};
  struct dk_fetch_turn request = {.struct_size = sizeof(request), .lock_ms = 30000};
  struct dk_turn *turn = NULL;
  struct dk_store *store = faulty_store(rig.faulty);

  go(&rig);
  if (dk_store_enqueue_for_orchestrator(store, rig.caller, &message) != DK_OK ||
      dk_store_fetch_orchestration_item(store, rig.caller, &request, &turn) != DK_OK)
    BAIL_OUT("no turn: %s", dk_caller_failure(rig.caller)->text);
  struct lease_terms terms = {.kind = LEASE_TURN, .token = turn->head.lock_token,
                              .lock_ms = 30000, .buffer_ms = 29980,
                              .deadline = ticks_of(store, turn->deadline),
                              .instance = dk_str_of("i"), .lost = lost, .context = &kept};
  kept.lease = leases_keep(rig.leases, &terms);
  ok(UNTIL(faulty_successes(rig.faulty, FAULTY_RENEW_TURN) >= 2), "a turn is renewed as a turn");
  cmp_ok(faulty_calls(rig.faulty, FAULTY_RENEW_WORK), "==", 0, "and not as work");
  leases_let_go(rig.leases, kept.lease);
  cmp_ok(atomic_load(&kept.losses), "==", 0, "nothing is lost");
  end(&rig);
}

static void
test_many(void)
{
  enum { MANY = 200 };
  struct rig rig = begin();
  struct kept *kept = calloc(MANY, sizeof(*kept));
  int losses = 0;

  go(&rig);
  for (int i = 0; i < MANY; i++)
    keep(&rig, &kept[i], 30000, 10 + i);
  ok(UNTIL(counted(&rig, COUNT_RENEWALS) > (uint64_t)3 * MANY), "200 leases are kept");
  for (int i = 0; i < MANY; i++) {
    leases_let_go(rig.leases, kept[i].lease);
    losses += atomic_load(&kept[i].losses);
  }
  cmp_ok(losses, "==", 0, "and none is lost");
  end(&rig);
  free(kept);
}

/* ---- tried again ----------------------------------------------------------------------------- */

/* For every answer of the store except DK_LOCK_LOST. */
static void
test_retried(void)
{
  static const dk_status statuses[] = {DK_BUSY, DK_OUTCOME_UNKNOWN, DK_INTERNAL};
  struct rig rig = begin();
  struct kept kept = {.losses = 0};

  go(&rig);
  faulty_plan(rig.faulty, FAULTY_RENEW_WORK, 0, 1, FAULT_REFUSE, statuses[0]);
  keep(&rig, &kept, 6000, 20);
  for (unsigned i = 1; i <= 3; i++) {
    ok(faulty_until_calls(rig.faulty, FAULTY_RENEW_WORK, i), "renewal %u, which fails", i);
    if (i < 3)
      faulty_plan(rig.faulty, FAULTY_RENEW_WORK, 0, 1, FAULT_REFUSE, statuses[i]);
  }
  ok(UNTIL(faulty_successes(rig.faulty, FAULTY_RENEW_WORK) >= 2), "the next are made");
  ok(UNTIL(listener_level(rig.listener, DK_LEVEL_INFO) == 1),
     "one line says that the failures have ended");
  struct whom ours = whom(&rig, &kept);
  struct heard over = listener_latest(rig.listener, DK_LOG_RENEWED);
  ok(heard_names(&over, &ours), "with all the names");
  struct heard retried = listener_latest(rig.listener, DK_LOG_RENEWAL_RETRIED);
  ok(heard_names(&retried, &ours), "which the warning had, too");
  cmp_ok(retried.level, "==", DK_LEVEL_WARNING, "and it was a warning");
  cmp_ok(retried.status, "==", statuses[0], "with the answer of the store");
  cmp_ok(atomic_load(&kept.losses), "==", 0, "nothing is lost");
  cmp_ok(listener_count(rig.listener, DK_LOG_RENEWAL_RETRIED), "==", 3, "each failure is logged");
  cmp_ok(listener_level(rig.listener, DK_LEVEL_WARNING), "==", 1,
         "but only the first as a warning");
  cmp_ok(counted(&rig, COUNT_RENEWALS_RETRIED), "==", 3, "and counted");
  leases_let_go(rig.leases, kept.lease);
  end(&rig);
}

/* Cancelled after a quarter of the lock, and tried again; the other lease is not affected. */
static void
test_hangs(void)
{
  struct rig rig = begin();
  struct kept kept = {.losses = 0}, other = {.losses = 0};

  go(&rig);
  faulty_plan(rig.faulty, FAULTY_RENEW_WORK, 0, 1, FAULT_HANG, DK_OK);
  keep(&rig, &kept, 6000, 20);
  ok(faulty_until_hanging(rig.faulty, 1), "a renewal hangs");
  keep(&rig, &other, 30000, 20);
  ok(faulty_until_calls(rig.faulty, FAULTY_RENEW_WORK, 4), "another lease is renewed");
  cmp_ok(faulty_hanging(rig.faulty), "==", 1, "while it hangs");
  ok(UNTIL(faulty_hanging(rig.faulty) == 0), "it is cancelled");
  int64_t old = kept.deadline;
  ok(UNTIL(lease_deadline(kept.lease) > old), "and tried again");
  cmp_ok(atomic_load(&kept.losses), "==", 0, "in time");
  leases_let_go(rig.leases, kept.lease);
  leases_let_go(rig.leases, other.lease);
  end(&rig);
}

/* ---- lost ------------------------------------------------------------------------------------ */

static void
test_refused(void)
{
  struct rig rig = begin();
  struct kept kept = {.losses = 0};
  struct dk_work_result nothing = {.struct_size = sizeof(nothing)};

  go(&rig);
  keep(&rig, &kept, 30000, 20);
  if (dk_store_ack_work_item(faulty_store(rig.faulty), rig.caller, kept.token, &nothing) != DK_OK)
    BAIL_OUT("the row cannot be removed");
  ok(UNTIL(atomic_load(&kept.losses) == 1), "when the row is deleted, the owner is notified");
  cmp_ok(kept.loss, "==", LOSS_REFUSED, "that the store has refused it");
  cmp_ok(lease_deadline(kept.lease), "<", ticks_now(), "its deadline is in the past");
  uint64_t calls = faulty_calls(rig.faulty, FAULTY_RENEW_WORK);
  struct kept other = {.losses = 0};
  keep(&rig, &other, 30000, 5000);
  ok(UNTIL(counted(&rig, COUNT_RENEWALS_LOST) == 1), "it is counted");
  cmp_ok(faulty_calls(rig.faulty, FAULTY_RENEW_WORK), "==", calls, "it is not renewed any more");
  leases_let_go(rig.leases, other.lease);
  leases_let_go(rig.leases, kept.lease);
  cmp_ok(atomic_load(&kept.losses), "==", 1, "the owner is notified once");
  end(&rig);
}

static void
test_deadline(enum fault fault, const char *what)
{
  struct rig rig = begin();
  struct kept kept = {.losses = 0};

  go(&rig);
  faulty_plan(rig.faulty, FAULTY_RENEW_WORK, 0, UINT32_MAX, fault, DK_UNAVAILABLE);
  keep(&rig, &kept, 900, 100);
  int64_t deadline = lease_deadline(kept.lease);
  ok(UNTIL(atomic_load(&kept.losses) == 1), "a store %s: lost", what);
  cmp_ok(kept.loss, "==", LOSS_DEADLINE, "by the deadline");
  cmp_ok(atomic_load(&kept.lost_at), ">=", deadline, "not before it");
  leases_let_go(rig.leases, kept.lease);
  cmp_ok(atomic_load(&kept.losses), "==", 1, "the owner is notified once");
  faulty_heal(rig.faulty);
  faulty_release(rig.faulty);
  end(&rig);
}

/* ---- left alone ------------------------------------------------------------------------------ */

static void
test_rests(void)
{
  struct rig rig = begin();
  struct kept kept = {.losses = 0}, clock = {.losses = 0};

  go(&rig);
  keep(&rig, &kept, 2000, 1800);
  lease_rest(kept.lease);
  int64_t deadline = lease_deadline(kept.lease);
  keep(&rig, &clock, 30000, 20);
  ok(UNTIL(ticks_now() > deadline + 50), "a lease that rests expires");
  cmp_ok(atomic_load(&kept.losses), "==", 0, "the owner is not notified");
  cmp_ok(lease_deadline(kept.lease), "==", deadline, "it was not renewed");
  leases_let_go(rig.leases, kept.lease);
  leases_let_go(rig.leases, clock.lease);
  end(&rig);
}

/* Its own acknowledgement has removed the row: the renewal under way is refused, which is not a
 * loss.
 */
static void
test_rests_while_renewed(void)
{
  struct rig rig = begin();
  struct kept kept = {.losses = 0};
  struct dk_work_result nothing = {.struct_size = sizeof(nothing)};

  go(&rig);
  faulty_plan(rig.faulty, FAULTY_RENEW_WORK, 0, 1, FAULT_HANG, DK_OK);
  keep(&rig, &kept, 30000, 20);
  faulty_until_hanging(rig.faulty, 1);
  lease_rest(kept.lease);
  cmp_ok(dk_store_ack_work_item(faulty_store(rig.faulty), rig.caller, kept.token, &nothing), "==",
         DK_OK, "acknowledged while a renewal is under way");
  faulty_release(rig.faulty);
  leases_let_go(rig.leases, kept.lease);
  leases_stop(rig.leases);
  cmp_ok(atomic_load(&kept.losses), "==", 0, "the renewal's DK_LOCK_LOST does not count as a loss");
  cmp_ok(counted(&rig, COUNT_RENEWALS_LOST), "==", 0, "and is not counted");
  go(&rig);
  end(&rig);
}

static void
test_let_go_while_it_hangs(enum fault fault, const char *what)
{
  struct rig rig = begin();
  struct kept kept = {.losses = 0};

  go(&rig);
  faulty_plan(rig.faulty, FAULTY_RENEW_WORK, 0, 1, fault, DK_OK);
  keep(&rig, &kept, 30000, 20);
  faulty_until_hanging(rig.faulty, 1);
  leases_let_go(rig.leases, kept.lease);
  cmp_ok(faulty_hanging(rig.faulty), "==", 1, "letting go waits for no renewal that %s", what);
  if (fault == FAULT_DEAF)
    faulty_release(rig.faulty);
  end(&rig);
  pass("and it is cancelled when the leases stop");
}

/* A provider that ignores a cancellation does not delay a stop. */
static void
test_stop_while_it_hangs(void)
{
  struct rig rig = begin();
  struct kept kept = {.losses = 0};

  go(&rig);
  faulty_plan(rig.faulty, FAULTY_RENEW_WORK, 0, 1, FAULT_DEAF, DK_OK);
  keep(&rig, &kept, 30000, 20);
  faulty_until_hanging(rig.faulty, 1);
  leases_let_go(rig.leases, kept.lease);
  cmp_ok(leases_stop(rig.leases), "==", 1,
         "a renewal that ignores its cancellation is abandoned when the leases stop");
  cmp_ok(faulty_hanging(rig.faulty), "==", 1, "while it still hangs");
  faulty_release(rig.faulty);
  cmp_ok(faulty_hanging(rig.faulty), "==", 0, "it may return later");
  go(&rig);
  end(&rig);
}

/* ---- the heap -------------------------------------------------------------------------------- */

static void
test_heap(void)
{
  enum { DUES = 100, STEPS = 20000 };
  struct heap heap = {NULL, 0, 0};
  struct due dues[DUES] = {{0, 0}};
  unsigned random = 1;
  int wrong = 0;

  for (int step = 0; step < STEPS; step++) {
    random = random * 1103515245u + 12345u;
    struct due *due = &dues[(random >> 8) % DUES];
    if (!heap_reserve(&heap, DUES))
      BAIL_OUT("no memory for a heap");
    if ((random >> 20) % 3 == 0)
      heap_remove(&heap, due);
    else
      heap_set(&heap, due, (random >> 4) % 1000);
    const struct due *least = NULL;
    for (int i = 0; i < DUES; i++)
      if (dues[i].place > 0 && (!least || dues[i].at < least->at))
        least = &dues[i];
    const struct due *top = heap_top(&heap);
    wrong += (top == NULL) != (least == NULL) || (top && top->at != least->at);
  }
  cmp_ok(wrong, "==", 0, "the earliest is on top of the heap, after each of 20,000 changes");
  heap_done(&heap);
}

int
main(void)
{
  plan(NO_PLAN);
  test_heap();
  test_renewed();
  test_not_before_its_time();
  test_turn();
  test_many();
  test_retried();
  test_hangs();
  test_refused();
  test_deadline(FAULT_REFUSE, "that is unreachable");
  test_deadline(FAULT_HANG, "that hangs");
  test_deadline(FAULT_DEAF, "that hangs and ignores cancellation");
  test_rests();
  test_rests_while_renewed();
  test_let_go_while_it_hangs(FAULT_HANG, "hangs");
  test_let_go_while_it_hangs(FAULT_DEAF, "is deaf");
  test_stop_while_it_hangs();
  return done_testing();
}
