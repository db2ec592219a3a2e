/* SPDX-License-Identifier: Apache-2.0 */
/* How the store answers, by the test's own clock: when it is healthy, since when it is not, and
 * what of that is logged. */
#include "core/runtime/shared/store-health.h"

#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/shared/ticks.h"

static int64_t now;

int64_t __wrap_ticks_now(void);
int64_t
__wrap_ticks_now(void)
{
  return now;
}

static struct health health;

static void
begin(void)
{
  now = 1000 * 1000;
  health_init(&health);
}

static const char *
well(void)
{
  static char reason[512];

  return health_is_well(&health, reason, sizeof(reason)) ? "well" : reason;
}

static bool
good(struct asker *asker)
{
  return health_good(&health, asker, NULL);
}

static bool
refused(struct asker *asker)
{
  return health_refused(&health, asker, DK_UNAVAILABLE, "the disk is full");
}

/* ---- health ---------------------------------------------------------------------------------- */

static void
test_refused(void)
{
  struct asker commit = {.kind = 0}, fetch = {.kind = 0};

  begin();
  is(well(), "well", "no request was made");
  health_ask(&health, &commit, HEALTH_COMMITS, 0);
  now += 20;
  refused(&commit);
  now += 900;
  is(well(), "well", "a refusal says nothing for a second");
  health_ask(&health, &fetch, HEALTH_TURNS, 30000);
  good(&fetch);
  health_ask(&health, &commit, HEALTH_COMMITS, 0);
  now += 100;
  is(well(), "turns cannot be committed for 1020 ms: the disk is full [DK_UNAVAILABLE]",
     "then it does, although turns are fetched: from the first request on");
  now += 1000;
  int64_t ms = 0;
  ok(health_good(&health, &commit, &ms), "that it works again is news");
  cmp_ok(ms, "==", 2020, "with the time since it had not");
  is(well(), "well", "and it is well");
  health_done(&health);
}

static void
test_silent(void)
{
  struct asker waits = {.kind = 0}, ack = {.kind = 0};

  begin();
  health_ask(&health, &waits, HEALTH_WORK, 30000);
  health_ask(&health, &ack, HEALTH_ACKS, 0);
  now += 5000;
  is(well(), "well", "a request may take five seconds");
  now += 1;
  is(well(), "the store does not answer: the end of an activity has had no answer for 5001 ms",
     "and not more");
  good(&ack);
  now += 25000 + 4999;
  is(well(), "well", "a fetch that waits may take as long as it waits");
  now += 1;
  is(well(), "the store does not answer: a fetch of activities has had no answer for 5001 ms",
     "and not longer");
  health_rest(&health, &waits);
  health_ask(&health, &waits, HEALTH_WORK, 30000);
  is(well(), "the store does not answer: a fetch of activities has had no answer for 5001 ms",
     "a cancelled request has still had no answer");
  now += 1000;
  good(&waits);
  is(well(), "well", "until there is one");
  health_ask(&health, &waits, HEALTH_WORK, 30000);
  now += 10;
  health_rest(&health, &waits);
  now += 40000;
  is(well(), "well", "a request that was cancelled in time shows nothing");
  health_done(&health);
}

/* The lease of an activity is lost because the store has not renewed it. */
static void
test_lost_lease(void)
{
  struct asker renewal = {.kind = 0}, ack = {.kind = 0};

  begin();
  health_ask(&health, &renewal, HEALTH_RENEWALS, 0);
  now += 5001;
  health_rest(&health, &renewal);
  now += 1000;
  is(well(), "the store does not answer: the renewal of a lease has had no answer for 6001 ms",
     "that it is not renewed any more makes nothing well");
  health_ask(&health, &ack, HEALTH_ACKS, 0);
  good(&ack);
  is(well(), "well", "an answer does, of whatever kind");
  health_ask(&health, &renewal, HEALTH_RENEWALS, 0);
  now += 5001;
  health_rest(&health, &renewal);
  now += 60000;
  is(well(), "well", "after a minute without a request nothing is known");
  health_done(&health);
}

/* One has no success while others have. */
static void
test_one_of_many(void)
{
  struct asker stuck = {.kind = 0}, other = {.kind = 0};

  begin();
  health_ask(&health, &stuck, HEALTH_COMMITS, 0);
  refused(&stuck);
  now += 1001;
  health_ask(&health, &other, HEALTH_COMMITS, 0);
  ok(!good(&other), "the success of another asker is not logged");
  ok(strstr(well(), "turns cannot be committed for 1001 ms"),
     "and health reports the one that fails");
  health_rest(&health, &stuck);
  ok(strstr(well(), "turns cannot be committed for 1001 ms"), "even after it has given up,");
  good(&other);
  is(well(), "well", "until another one succeeds");
  health_done(&health);
}

/* An asker that has given up asks again soon, as another: a dropped turn is fetched again. */
static void
test_given_up(void)
{
  struct asker asker = {.kind = 0};

  begin();
  health_ask(&health, &asker, HEALTH_COMMITS, 0);
  refused(&asker);
  health_rest(&health, &asker);
  now += 3000;
  ok(strstr(well(), "turns cannot be committed for 3000 ms"), "no success since: it is not well");
  health_ask(&health, &asker, HEALTH_COMMITS, 0);
  ok(!refused(&asker), "the next failure is not logged");
  health_rest(&health, &asker);
  ok(strstr(well(), "turns cannot be committed for 3000 ms"), "and the time still counts");
  now += 60000;
  is(well(), "well", "after a minute without a request nothing is known");
  health_ask(&health, &asker, HEALTH_RENEWALS, 0);
  refused(&asker);
  now += 1001;
  ok(strstr(well(), "leases cannot be renewed for 1001 ms"), "a lease is not renewed");
  health_rest(&health, &asker);
  ok(strstr(well(), "leases cannot be renewed for 1001 ms"), "nor when its activity has ended");
  health_ask(&health, &asker, HEALTH_ACKS, 0);
  good(&asker);
  is(well(), "well", "until that is stored");
  health_done(&health);
}

/* ---- news ------------------------------------------------------------------------------------ */

/* Commits that fail and succeed by turns for an hour, five a second. */
static void
test_flapping(void)
{
  struct asker asker = {.kind = 0};
  int n_fails = 0, n_works = 0;

  begin();
  for (int i = 0; i < 3600 * 5; i++) {
    health_ask(&health, &asker, HEALTH_COMMITS, 0);
    n_fails += refused(&asker);
    now += 100;
    health_ask(&health, &asker, HEALTH_COMMITS, 0);
    n_works += good(&asker);
    now += 100;
  }
  cmp_ok(n_fails, "==", 2, "the failure is reported twice");
  cmp_ok(n_works, "==", 1, "the recovery is reported once");
  ok(health_fails(&health, HEALTH_COMMITS), "according to the reports it still fails");
  now += 5000;
  health_ask(&health, &asker, HEALTH_COMMITS, 0);
  ok(good(&asker), "after five seconds without a failure it works again");
  now += 60000;
  health_ask(&health, &asker, HEALTH_COMMITS, 0);
  ok(refused(&asker) && good(&asker), "and a minute later every change is reported at once again");
  health_done(&health);
}

static void
test_kinds_apart(void)
{
  struct asker commit = {.kind = 0}, renewal = {.kind = 0};

  begin();
  health_ask(&health, &commit, HEALTH_COMMITS, 0);
  health_ask(&health, &renewal, HEALTH_RENEWALS, 0);
  ok(refused(&commit) && refused(&renewal), "each kind has its own news");
  ok(good(&commit) && good(&renewal), "of both");
  health_rest(&health, &commit);
  health_rest(&health, &commit);
  is(well(), "well", "one that rests may rest");
  health_done(&health);
}

int
main(void)
{
  test_refused();
  test_silent();
  test_lost_lease();
  test_one_of_many();
  test_given_up();
  test_flapping();
  test_kinds_apart();
  return done_testing();
}
