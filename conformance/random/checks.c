/* SPDX-License-Identifier: Apache-2.0 */
/* The random checks: which calls each of them draws, and how often. */
#include "conformance/checks/checks.h"
#include "conformance/random/random.h"

/* One handle, all operations of the two queues. */
void
random_one_handle(struct dk_check *t)
{
  static const struct profile profile = {
    .n_steps = 1400,
    .made_anew = true,
    .has_crowds = true,
    .weights = {
      [OP_ENQUEUE] = 20, [OP_ENQUEUE_WORK] = 4, [OP_FETCH_TURN] = 22, [OP_ACK_TURN] = 22,
      [OP_ABANDON_TURN] = 5, [OP_RENEW_TURN] = 4, [OP_FETCH_WORK] = 14, [OP_ACK_WORK] = 8,
      [OP_ABANDON_WORK] = 5, [OP_RENEW_WORK] = 4, [OP_RELEASE_FETCH] = 2, [OP_READ_HISTORY] = 4,
      [DRAWS_TIME] = 10, [DRAWS_REOPEN] = 2, [DRAWS_FAIR] = 1,
    },
  };

  random_check(t, &profile);
}

/* Little but activities: scheduled, fetched, cancelled, given back. */
void
random_activities(struct dk_check *t)
{
  static const struct profile profile = {
    .n_steps = 1200,
    .has_crowds = true,
    .weights = {
      [OP_ENQUEUE] = 10, [OP_ENQUEUE_WORK] = 14, [OP_FETCH_TURN] = 12, [OP_ACK_TURN] = 14,
      [OP_FETCH_WORK] = 28, [OP_ACK_WORK] = 14, [OP_ABANDON_WORK] = 12, [OP_RENEW_WORK] = 8,
      [OP_RELEASE_FETCH] = 3, [DRAWS_TIME] = 10, [DRAWS_REOPEN] = 1, [DRAWS_FAIR] = 1,
    },
  };

  random_check(t, &profile);
}

/* Messages, and turns that are not committed: given back, expired, bounded. */
void
random_messages(struct dk_check *t)
{
  static const struct profile profile = {
    .n_steps = 1200,
    .weights = {
      [OP_ENQUEUE] = 40, [OP_FETCH_TURN] = 36, [OP_ACK_TURN] = 8, [OP_ABANDON_TURN] = 16,
      [OP_RENEW_TURN] = 6, [OP_RELEASE_FETCH] = 4, [DRAWS_TIME] = 12, [DRAWS_REOPEN] = 2,
      [DRAWS_FAIR] = 1,
    },
  };

  random_check(t, &profile);
}

/* Three handles on one store. */
void
random_handles(struct dk_check *t)
{
  static const struct profile profile = {
    .n_steps = 1200,
    .n_handles = 2,
    .has_crowds = true,
    .weights = {
      [OP_ENQUEUE] = 20, [OP_ENQUEUE_WORK] = 4, [OP_FETCH_TURN] = 22, [OP_ACK_TURN] = 22,
      [OP_ABANDON_TURN] = 5, [OP_RENEW_TURN] = 4, [OP_FETCH_WORK] = 14, [OP_ACK_WORK] = 8,
      [OP_ABANDON_WORK] = 5, [OP_RENEW_WORK] = 4, [OP_RELEASE_FETCH] = 3, [OP_READ_HISTORY] = 4,
      [DRAWS_TIME] = 10, [DRAWS_REOPEN] = 3, [DRAWS_FAIR] = 1,
    },
  };

  random_check(t, &profile);
}

/* Two processes on one store. */
void
random_processes(struct dk_check *t)
{
  static const struct profile profile = {
    .n_steps = 900,
    .n_handles = 1,
    .processes = true,
    .weights = {
      [OP_ENQUEUE] = 20, [OP_ENQUEUE_WORK] = 4, [OP_FETCH_TURN] = 22, [OP_ACK_TURN] = 22,
      [OP_ABANDON_TURN] = 5, [OP_RENEW_TURN] = 4, [OP_FETCH_WORK] = 14, [OP_ACK_WORK] = 8,
      [OP_ABANDON_WORK] = 5, [OP_RENEW_WORK] = 4, [OP_RELEASE_FETCH] = 3, [OP_READ_HISTORY] = 4,
      [DRAWS_TIME] = 10,
    },
  };

  random_check(t, &profile);
}

/* Instances that end, are listed, pruned and deleted, and begin again under the same ids. */
void
random_lives(struct dk_check *t)
{
  static const struct profile profile = {
    .n_steps = 1500,
    .n_handles = 1,
    .n_ids = 8,
    .ends = true,
    .weights = {
      [OP_ENQUEUE] = 20, [OP_ENQUEUE_WORK] = 4, [OP_FETCH_TURN] = 22, [OP_ACK_TURN] = 26,
      [OP_ABANDON_TURN] = 3, [OP_FETCH_WORK] = 8, [OP_ACK_WORK] = 5, [OP_READ_HISTORY] = 4,
      [OP_LIST_INSTANCES] = 12, [OP_LIST_EXECUTIONS] = 4, [OP_READ_MESSAGES] = 5,
      [OP_READ_STATS] = 5, [OP_DELETE_INSTANCES] = 6, [OP_DELETE_MATCHING] = 5, [OP_PRUNE] = 8,
      [DRAWS_TIME] = 10, [DRAWS_REOPEN] = 2, [DRAWS_FAIR] = 1,
    },
  };

  random_check(t, &profile);
}

/* Parents and children, which are listed, counted and pruned; and little else. */
void
random_families(struct dk_check *t)
{
  static const struct profile profile = {
    .n_steps = 2300,
    .n_handles = 1,
    .n_ids = MOST_IDS,
    .ends = true,
    .families = true,
    .weights = {
      [OP_ENQUEUE] = 20, [OP_ENQUEUE_WORK] = 2, [OP_FETCH_TURN] = 20, [OP_ACK_TURN] = 24,
      [OP_FETCH_WORK] = 4, [OP_LIST_INSTANCES] = 24, [OP_LIST_EXECUTIONS] = 8,
      [OP_READ_MESSAGES] = 3, [OP_READ_STATS] = 6, [OP_DELETE_INSTANCES] = 1, [OP_PRUNE] = 10,
      [DRAWS_TIME] = 10,
    },
  };

  random_check(t, &profile);
}

/* Parents and children, which are deleted one by one, together, and in pages. */
void
random_deletions(struct dk_check *t)
{
  static const struct profile profile = {
    .n_steps = 2300,
    .n_handles = 1,
    .n_ids = MOST_IDS,
    .ends = true,
    .families = true,
    .weights = {
      [OP_ENQUEUE] = 20, [OP_ENQUEUE_WORK] = 2, [OP_FETCH_TURN] = 20, [OP_ACK_TURN] = 24,
      [OP_FETCH_WORK] = 6, [OP_READ_STATS] = 5, [OP_DELETE_INSTANCES] = 6,
      [OP_DELETE_MATCHING] = 10, [DRAWS_TIME] = 8,
    },
  };

  random_check(t, &profile);
}
