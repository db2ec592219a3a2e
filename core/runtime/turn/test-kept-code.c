/* SPDX-License-Identifier: Apache-2.0 */
/* Code that waits is kept from turn to turn: it continues where it waited as long as all its
 * commits have succeeded, and otherwise begins at its start; what it does is the same. */
#include <stdatomic.h>
#include <stdio.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

enum { EVENTS = 3 };

static atomic_int begun;

/* It returns in its last turn what it received in the earlier ones. */
static dk_result
gathers(dk_orch *o, dk_str input)
{
  dk_str instance = dk_orch_instance(o), name = dk_orch_name(o), told[EVENTS];

  atomic_fetch_add(&begun, 1);
  for (int i = 0; i < EVENTS; i++)
    told[i] = dk_await(o, dk_external(o, "go"));
  return dk_completed(o, dk_format(o, "%s %s %s: %s %s %s", instance.ptr, name.ptr, input.ptr,
                                   told[0].ptr, told[1].ptr, told[2].ptr));
}

static dk_result
twice(dk_task *task, dk_str input)
{
  char text[64];

  snprintf(text, sizeof(text), "%s%s", input.ptr, input.ptr);
  return dk_done(task, dk_str_of(text));
}

/* Results, failures and values of several turns, returned in the last. */
static dk_result
works(dk_orch *o, dk_str input)
{
  dk_str first = dk_await(o, dk_activity(o, "twice", input));
  int64_t then = dk_now(o);
  dk_str second = dk_await(o, dk_activity(o, "twice", first));

  atomic_fetch_add(&begun, 1); /* in the code's last turn only, if that continues */
  dk_str third = dk_await(o, dk_activity(o, "twice", second));
  return dk_completed(o, dk_format(o, "%s %s %s %d", first.ptr, second.ptr, third.ptr,
                                   then > 0 && dk_now(o) >= then));
}

static struct rig
begin(void)
{
  struct rig rig = rig_begin();

  atomic_store(&begun, 0);
  rig.options.orchestration_slots = 1; /* else the next turn may begin before this one is kept */
  rig_orchestration(&rig, "gathers", gathers);
  rig_orchestration(&rig, "works", works);
  rig_activity(&rig, "twice", twice);
  return rig;
}

/* One turn for each event, with a fault before the last. */
static void
gather(struct rig *rig, enum fault fault, dk_status status)
{
  rig_start(rig);
  rig_run(rig, "i", "gathers", "in");
  for (int i = 0; i < EVENTS; i++) {
    ok(UNTIL(rig_counters(rig).turns_committed == (uint64_t)i + 1), "turn %d is committed", i + 1);
    if (i == EVENTS - 2 && status != DK_OK)
      faulty_plan(rig->faulty, FAULTY_ACK_TURN, 0, 1, fault, status);
    const char *const data[EVENTS] = {"one", "two", "three"};
    if (dk_client_raise(rig->client, dk_str_of("i"), "go", dk_str_of(data[i])) != DK_OK)
      BAIL_OUT("the event is not raised: %s", dk_client_error(rig->client));
  }
  is(rig_result(rig, "i"), "completed: i gathers in: one two three",
     "it returns what it received in all turns");
}

static void
test_goes_on(void)
{
  struct rig rig = begin();

  gather(&rig, FAULT_REFUSE, DK_OK);
  cmp_ok(atomic_load(&begun), "==", 1, "the code has begun once");
  rig_end(&rig);
}

static void
test_fail_fast(void)
{
  struct rig rig = begin();

  rig.options.flags |= DK_RUNTIME_FAIL_FAST;
  gather(&rig, FAULT_REFUSE, DK_OK);
  cmp_ok(atomic_load(&begun), "==", EVENTS + 1, "with fail-fast it begins at each turn");
  rig_end(&rig);
}

static void
test_no_room(void)
{
  struct rig rig = begin();

  rig.options.cache_bytes = 1;
  gather(&rig, FAULT_REFUSE, DK_OK);
  cmp_ok(atomic_load(&begun), "==", EVENTS + 1, "without room for it, too");
  rig_end(&rig);
}

static void
test_tried_again(void)
{
  struct rig rig = begin();

  gather(&rig, FAULT_REFUSE, DK_BUSY);
  cmp_ok(atomic_load(&begun), "==", 1,
         "a commit that is tried again does not begin the code again");
  rig_end(&rig);
}

/* The turn is fetched again, and the code must not be where that commit would have left it. */
static void
test_lost(void)
{
  struct rig rig = begin();

  rig.options.turn_lock_ms = 2000;
  rig.options.turn_renewal_buffer_ms = 1000;
  gather(&rig, FAULT_REFUSE, DK_LOCK_LOST);
  cmp_ok(atomic_load(&begun), "==", 2, "after a turn that was lost it begins again");
  rig_end(&rig);
}

static void
test_unsure(void)
{
  struct rig rig = begin();

  gather(&rig, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  cmp_ok(atomic_load(&begun), "==", 2, "and after one whose outcome is unknown");
  rig_end(&rig);
}

static void
test_results(void)
{
  struct rig rig = begin();

  rig_start(&rig);
  rig_run(&rig, "i", "works", "a");
  is(rig_result(&rig, "i"), "completed: aa aaaa aaaaaaaa 1", "results stay as they were");
  cmp_ok(atomic_load(&begun), "==", 1, "and earlier steps were not run again");
  rig_end(&rig);
}

int
main(void)
{
  plan(NO_PLAN);
  test_goes_on();
  test_fail_fast();
  test_no_room();
  test_tried_again();
  test_lost();
  test_unsure();
  test_results();
  return done_testing();
}
