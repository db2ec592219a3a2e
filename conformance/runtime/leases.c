/* SPDX-License-Identifier: Apache-2.0 */
/* Events that are no cancellation: a store that cannot be reached for a moment, a lost lease; and a
 * cancellation that no orchestration has decided. */
#include "conformance/runtime/runs.h"
#include "conformance/runtime/unsteady.h"

static void
given_unsteady_runtime(struct dk_check *t, int64_t lock_ms)
{
  struct dk_library *library = make_unsteady(t);
  struct dk_runtime_options *options = given_runtime(t);

  keep_library(library);
  options->flags = DK_RUNTIME_NO_LOCAL_SIGNAL;
  options->activity_lock_ms = lock_ms;
  options->activity_renewal_buffer_ms = lock_ms - 600;
  given_orchestration(t, "works", works);
}

/* A renewal with a retryable failure is tried again, and no body is notified. */
void
run_renewal_retried(struct dk_check *t)
{
  without_local_signal();
  given_unsteady_runtime(t, 12000);
  set_unsteadiness(RENEWS_SOMETIMES);
  start_runtime(t);
  start_instance(t, "i", "works", "obeys");
  eventually(t, refused_renewals() >= 2 && counters(t).renewals >= 2,
             "renewals are refused and succeed in turn");
  eventually(t, heard(DK_LOG_RENEWAL_RETRIED) > 0, "the log says that the renewal is tried again");
  expect_equal(t, atomic_load(&marks.ended), 0, "bodies that have ended");
  expect_equal(t, heard(DK_LOG_ACTIVITY_CANCELLED) + heard(DK_LOG_LEASE_LOST), 0, "lost leases");
  set_unsteadiness(RENEWS);
  cancel_and_expect(t, "i");
  expect_told(t, 1);
  eventually(t, atomic_load(&marks.told) == 1, "a real cancellation still reaches the body");
  expect_equal(t, atomic_load(&marks.began), 1, "activities that have begun");
  expect_nothing_left(t);
}

/* The body learns the cause, its result is not used, and the activity is run again. */
void
run_lease_lost(struct dk_check *t)
{
  without_local_signal();
  given_unsteady_runtime(t, 2000);
  set_unsteadiness(RENEWS_NEVER);
  start_runtime(t);
  start_instance(t, "i", "works", "obeys");
  eventually(t, atomic_load(&marks.lost) > 0, "the body learns that its lease is lost");
  eventually(t, heard(DK_LOG_LEASE_LOST) > 0, "the log has the lost lease");
  expect_equal(t, atomic_load(&marks.told), 0, "bodies that were notified of a cancellation");
  set_unsteadiness(RENEWS);
  eventually(t, atomic_load(&marks.began) > atomic_load(&marks.lost), "the activity begins again");
  cancel_and_expect(t, "i");
  eventually(t, atomic_load(&marks.ended) == atomic_load(&marks.began), "it ends");
  expect_equal(t, counters(t).activities_completed + counters(t).activities_failed, 0, "results");
  expect_equal(t, counters(t).strays, 0, "stray messages");
  expect_queues_empty(t);
}

/* A client that is no runtime deletes the row, as a command that removes an instance does: the
 * worker learns it by its next renewal. */
void
run_force_deleted(struct dk_check *t)
{
  without_local_signal();
  given_runtime(t);
  given_instance(t, "i");
  must(t, ack_turn(t, next_turn(t, "i"),
                   .schedule = {{.activity_id = 1,
                                 .bytes = payload_order(run_arena(), "obeys", "")}}));
  must(t, enqueue(t, "i"));
  struct dk_turn *turn = fetch_turn_of(t, "i", .lock_ms = 3600000);
  start_runtime(t);
  eventually(t, atomic_load(&marks.began) == 1, "the activity begins");
  must(t, ack_turn(t, turn, .cancel = {1}));
  uint32_t renewed = renewals_of(1);
  expect_told(t, 1);
  expect(t, renewals_of(1) <= renewed + 1, "its second renewal at the latest finds no row");
  eventually(t, atomic_load(&marks.told) == 1, "the body sees that it is cancelled");
  expect_no_warning(t);
  expect_nothing_left(t);
}
