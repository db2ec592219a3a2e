/* SPDX-License-Identifier: Apache-2.0 */
/* Work that a fetch with a lost answer has locked runs again at once, although its lease lasts an
 * hour; on the model and on SQLite. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

/* Answers that are lost; more of them than deliveries make poison. */
enum { LOST = 5, MAX_ATTEMPTS = 2, AN_HOUR_MS = 3600 * 1000 };

static atomic_int n_bodies;
static char folder[] = "/tmp/test-releasing-XXXXXX";
static bool on_sqlite;
static int n_stores;

static dk_result
body(dk_task *task, dk_str input)
{
  atomic_fetch_add(&n_bodies, 1);
  return dk_done(task, input);
}

static dk_result
has_activity(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "body", input)));
}

static struct faulty *
open_store(void)
{
  struct dk_setting settings[2] = {{"store", {NULL, 0}}, {"synchronous", {"normal", 6}}};
  char path[64];

  if (!on_sqlite)
    return faulty_open_model();
  snprintf(path, sizeof(path), "%s/store-%d", folder, n_stores++);
  settings[0].value = dk_str_of(path);
  return faulty_open(getenv("SQLITE_PLUGIN"), settings, 2);
}

static struct rig
begin(void)
{
  struct rig rig = rig_begin_on(open_store());

  atomic_store(&n_bodies, 0);
  rig_orchestration(&rig, "has activity", has_activity);
  rig_activity(&rig, "body", body);
  rig.options.max_attempts = MAX_ATTEMPTS;
  rig.options.turn_lock_ms = rig.options.activity_lock_ms = AN_HOUR_MS;
  return rig;
}

static void
test_lost(enum faulty_operation fetch, const char *what)
{
  struct rig rig = begin();

  rig.options.orchestration_slots = 1; /* so that each fetch finds it, until one answer arrives */
  faulty_plan(rig.faulty, fetch, 0, LOST, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  rig_run(&rig, "order", "has activity", "1");
  rig_start(&rig);
  is(rig_result(&rig, "order"), "completed: 1", "%s: answers are lost, and it completes", what);
  cmp_ok(atomic_load(&n_bodies), "==", 1, "its activity ran once");
  cmp_ok(faulty_successes(rig.faulty, FAULTY_RELEASE_FETCH), ">=", LOST,
         "each lost fetch was given back");
  rig_end(&rig);
}

/* The store stays unreachable for a while: it gets no other request before the release. */
static void
test_away_meanwhile(void)
{
  struct rig rig = begin();

  faulty_plan(rig.faulty, FAULTY_FETCH_TURN, 0, 1, FAULT_FORGET, DK_UNAVAILABLE);
  faulty_plan(rig.faulty, FAULTY_RELEASE_FETCH, 0, 3, FAULT_REFUSE, DK_UNAVAILABLE);
  rig_run(&rig, "order", "has activity", "2");
  rig_start(&rig);
  is(rig_result(&rig, "order"), "completed: 2",
     "the store is unreachable for a while, and it completes");
  cmp_ok(faulty_calls(rig.faulty, FAULTY_RELEASE_FETCH), ">=", 4, "the release was tried again");
  rig_end(&rig);
}

/* The answer is lost while the runtime stops: the next one does not wait for its lease. */
static void
test_stop(enum faulty_operation fetch, const char *what)
{
  struct rig rig = begin();

  faulty_plan(rig.faulty, fetch, 0, UINT32_MAX, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  rig_run(&rig, "order", "has activity", "3");
  rig_start(&rig);
  ok(faulty_until_calls(rig.faulty, fetch, 1), "%s: the answer to a fetch is lost", what);
  rig_stop(&rig, 0);
  faulty_heal(rig.faulty);
  rig_start(&rig);
  is(rig_result(&rig, "order"), "completed: 3", "the runtime stops, and the next one completes it");
  rig_end(&rig);
}

/* The runtime stops while it gives back what a lost fetch has locked: it completes that
 * nevertheless. */
static void
test_stop_of_release(enum faulty_operation fetch, const char *what)
{
  struct rig rig = begin();

  rig.options.orchestration_slots = 1;
  faulty_plan(rig.faulty, fetch, 0, UINT32_MAX, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  faulty_plan(rig.faulty, FAULTY_RELEASE_FETCH, 0, 1, FAULT_HANG, DK_OK);
  rig_run(&rig, "order", "has activity", "5");
  rig_start(&rig);
  ok(faulty_until_hanging(rig.faulty, 1), "%s: a lost fetch is being given back", what);
  rig_stop(&rig, 0);
  faulty_heal(rig.faulty);
  rig_start(&rig);
  is(rig_result(&rig, "order"), "completed: 5", "the runtime stops, and the next one completes it");
  rig_end(&rig);
}

/* The store refuses to give it back, and would again: the lease expires, and work continues. */
static void
test_refused(enum faulty_operation fetch, const char *what)
{
  struct rig rig = begin();

  rig.options.turn_lock_ms = rig.options.activity_lock_ms = 1000;
  rig.options.turn_renewal_buffer_ms = rig.options.activity_renewal_buffer_ms = 300;
  rig.options.orchestration_slots = 1;
  faulty_plan(rig.faulty, fetch, 0, 1, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  faulty_plan(rig.faulty, FAULTY_RELEASE_FETCH, 0, UINT32_MAX, FAULT_REFUSE, DK_REFUSED);
  rig_run(&rig, "order", "has activity", "6");
  rig_start(&rig);
  is(rig_result(&rig, "order"), "completed: 6", "%s: a lost fetch is not given back", what);
  cmp_ok(faulty_calls(rig.faulty, FAULTY_RELEASE_FETCH), "==", 1, "the release is asked for once");
  rig_end(&rig);
}

/* The threads keep what they hold, while another thread's fetch is given back. */
static void
test_many(void)
{
  enum { INSTANCES = 50 };
  struct rig rig = begin();
  char name[32];
  int n = 0;

  rig.options.turn_lock_ms = rig.options.activity_lock_ms = AN_HOUR_MS;
  for (int i = 0; i < INSTANCES; i++) {
    snprintf(name, sizeof(name), "i-%d", i);
    rig_run(&rig, name, "has activity", "4");
  }
  faulty_plan(rig.faulty, FAULTY_FETCH_TURN, 7, LOST, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  faulty_plan(rig.faulty, FAULTY_FETCH_WORK, 3, LOST, FAULT_FORGET, DK_OUTCOME_UNKNOWN);
  rig_start(&rig);
  for (int i = 0; i < INSTANCES; i++) {
    snprintf(name, sizeof(name), "i-%d", i);
    n += strcmp(rig_result(&rig, name), "completed: 4") == 0;
  }
  cmp_ok(n, "==", INSTANCES, "all of many complete, while answers are lost");
  cmp_ok(atomic_load(&n_bodies), "==", INSTANCES, "each activity ran once");
  cmp_ok(rig_counters(&rig).turns_lost, "==", 0, "no turn was taken from a thread that had it");
  rig_end(&rig);
}

static void
test_all(const char *store)
{
  diag("on %s", store);
  test_lost(FAULTY_FETCH_TURN, "turns");
  test_lost(FAULTY_FETCH_WORK, "activities");
  test_away_meanwhile();
  test_stop(FAULTY_FETCH_TURN, "turns");
  test_stop(FAULTY_FETCH_WORK, "activities");
  test_stop_of_release(FAULTY_FETCH_TURN, "turns");
  test_stop_of_release(FAULTY_FETCH_WORK, "activities");
  test_refused(FAULTY_FETCH_TURN, "turns");
  test_refused(FAULTY_FETCH_WORK, "activities");
  test_many();
}

int
main(void)
{
  const char *plugin = getenv("SQLITE_PLUGIN");
  char command[64];

  plan(NO_PLAN);
  test_all("the model");
  if (plugin && access(plugin, R_OK) == 0) {
    if (!mkdtemp(folder))
      BAIL_OUT("no folder: %s", strerror(errno));
    on_sqlite = true;
    test_all("SQLite");
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    ok(system(command) == 0, "the folder is removed");
  }
  return done_testing();
}
