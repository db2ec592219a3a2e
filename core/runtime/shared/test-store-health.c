/* SPDX-License-Identifier: Apache-2.0 */
/* How the store answers, by a clock of the test's own: when it is well, since when it is not, and
 * what of that is told. */
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

static struct contact contact;

static void
begin(void)
{
  now = 1000 * 1000;
  contact_init(&contact);
}

static const char *
health(void)
{
  static char reason[512];

  return contact_healthy(&contact, reason, sizeof(reason)) ? "well" : reason;
}

static bool
good(struct asker *asker)
{
  return contact_good(&contact, asker, NULL);
}

static bool
refused(struct asker *asker)
{
  return contact_refused(&contact, asker, DK_UNAVAILABLE, "the disk is full");
}

/* ---- health ---------------------------------------------------------------------------------- */

static void
test_refused(void)
{
  struct asker commit = {.kind = 0}, fetch = {.kind = 0};

  begin();
  is(health(), "well", "nobody has asked");
  contact_ask(&contact, &commit, CONTACT_COMMITS, 0);
  now += 20;
  refused(&commit);
  now += 900;
  is(health(), "well", "a refusal says nothing for a second");
  contact_ask(&contact, &fetch, CONTACT_TURNS, 30000);
  good(&fetch);
  contact_ask(&contact, &commit, CONTACT_COMMITS, 0);
  now += 100;
  is(health(), "turns cannot be committed for 1020 ms: the disk is full [DK_UNAVAILABLE]",
     "then it does, although turns are fetched: from the first request on");
  now += 1000;
  int64_t ms = 0;
  ok(contact_good(&contact, &commit, &ms), "that it works again is news");
  cmp_ok(ms, "==", 2020, "with the time since it had not");
  is(health(), "well", "and it is well");
  contact_done(&contact);
}

static void
test_silent(void)
{
  struct asker waits = {.kind = 0}, ack = {.kind = 0};

  begin();
  contact_ask(&contact, &waits, CONTACT_WORK, 30000);
  contact_ask(&contact, &ack, CONTACT_ACKS, 0);
  now += 5000;
  is(health(), "well", "a request may take five seconds");
  now += 1;
  is(health(), "the store does not answer: the end of an activity has had no answer for 5001 ms",
     "and not more");
  good(&ack);
  now += 25000 + 4999;
  is(health(), "well", "a fetch that waits may take as long as it waits");
  now += 1;
  is(health(), "the store does not answer: a fetch of activities has had no answer for 5001 ms",
     "and not longer");
  contact_rest(&contact, &waits);
  contact_ask(&contact, &waits, CONTACT_WORK, 30000);
  is(health(), "the store does not answer: a fetch of activities has had no answer for 5001 ms",
     "one that was called back has still had no answer");
  now += 1000;
  good(&waits);
  is(health(), "well", "until there is one");
  contact_ask(&contact, &waits, CONTACT_WORK, 30000);
  now += 10;
  contact_rest(&contact, &waits);
  now += 40000;
  is(health(), "well", "one that was called back in time says nothing");
  contact_done(&contact);
}

/* The lease of an activity is lost, since the store has not renewed it. */
static void
test_lost_lease(void)
{
  struct asker renewal = {.kind = 0}, ack = {.kind = 0};

  begin();
  contact_ask(&contact, &renewal, CONTACT_RENEWALS, 0);
  now += 5001;
  contact_rest(&contact, &renewal);
  now += 1000;
  is(health(), "the store does not answer: the renewal of a lease has had no answer for 6001 ms",
     "that it is not renewed any more makes nothing well");
  contact_ask(&contact, &ack, CONTACT_ACKS, 0);
  good(&ack);
  is(health(), "well", "an answer does, of whatever kind");
  contact_ask(&contact, &renewal, CONTACT_RENEWALS, 0);
  now += 5001;
  contact_rest(&contact, &renewal);
  now += 60000;
  is(health(), "well", "when nobody has asked for a minute, nothing is known");
  contact_done(&contact);
}

/* One has no success while others have. */
static void
test_one_of_many(void)
{
  struct asker stuck = {.kind = 0}, other = {.kind = 0};

  begin();
  contact_ask(&contact, &stuck, CONTACT_COMMITS, 0);
  refused(&stuck);
  now += 1001;
  contact_ask(&contact, &other, CONTACT_COMMITS, 0);
  ok(!good(&other), "the success of another is no news");
  ok(strstr(health(), "turns cannot be committed for 1001 ms"), "and health goes by the one");
  contact_rest(&contact, &stuck);
  ok(strstr(health(), "turns cannot be committed for 1001 ms"), "also when it gives up,");
  good(&other);
  is(health(), "well", "until another has success");
  contact_done(&contact);
}

/* Who has given up asks again soon, as another: a turn that was dropped is fetched again. */
static void
test_given_up(void)
{
  struct asker asker = {.kind = 0};

  begin();
  contact_ask(&contact, &asker, CONTACT_COMMITS, 0);
  refused(&asker);
  contact_rest(&contact, &asker);
  now += 3000;
  ok(strstr(health(), "turns cannot be committed for 3000 ms"), "no success since: it is not well");
  contact_ask(&contact, &asker, CONTACT_COMMITS, 0);
  ok(!refused(&asker), "the next one is no news");
  contact_rest(&contact, &asker);
  ok(strstr(health(), "turns cannot be committed for 3000 ms"), "and time goes on");
  now += 60000;
  is(health(), "well", "when nobody has asked for a minute, nothing is known");
  contact_ask(&contact, &asker, CONTACT_RENEWALS, 0);
  refused(&asker);
  now += 1001;
  ok(strstr(health(), "leases cannot be renewed for 1001 ms"), "a lease is not renewed");
  contact_rest(&contact, &asker);
  ok(strstr(health(), "leases cannot be renewed for 1001 ms"), "nor when its activity has ended");
  contact_ask(&contact, &asker, CONTACT_ACKS, 0);
  good(&asker);
  is(health(), "well", "until that is stored");
  contact_done(&contact);
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
    contact_ask(&contact, &asker, CONTACT_COMMITS, 0);
    n_fails += refused(&asker);
    now += 100;
    contact_ask(&contact, &asker, CONTACT_COMMITS, 0);
    n_works += good(&asker);
    now += 100;
  }
  cmp_ok(n_fails, "==", 2, "it fails: told twice");
  cmp_ok(n_works, "==", 1, "it works: told once");
  ok(contact_fails(&contact, CONTACT_COMMITS), "so far as was told it fails");
  now += 5000;
  contact_ask(&contact, &asker, CONTACT_COMMITS, 0);
  ok(good(&asker), "when it has been steady for five seconds it works again");
  now += 60000;
  contact_ask(&contact, &asker, CONTACT_COMMITS, 0);
  ok(refused(&asker) && good(&asker), "and a minute later all is told at once again");
  contact_done(&contact);
}

static void
test_kinds_apart(void)
{
  struct asker commit = {.kind = 0}, renewal = {.kind = 0};

  begin();
  contact_ask(&contact, &commit, CONTACT_COMMITS, 0);
  contact_ask(&contact, &renewal, CONTACT_RENEWALS, 0);
  ok(refused(&commit) && refused(&renewal), "each kind has its own news");
  ok(good(&commit) && good(&renewal), "of both");
  contact_rest(&contact, &commit);
  contact_rest(&contact, &commit);
  is(health(), "well", "one that rests may rest");
  contact_done(&contact);
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
