/* SPDX-License-Identifier: Apache-2.0 */
/* A result that the store refuses: its activity is delayed, visible and can be cancelled, its slot
 * is free for others; and if the store takes nothing at all, the result is held until it does. */
#include <stdatomic.h>

#include <durakit/manage.h>

#include "conformance/tap/tap.h"
#include "core/runtime/testing/whole-runtime.h"

enum { SOME = 3, LONG_MS = 600000, MAX_ATTEMPTS = 2 };

static atomic_int n_deeds;

static dk_result
deed(dk_task *task, dk_str input)
{
  atomic_fetch_add(&n_deeds, 1);
  return dk_done(task, input);
}

static dk_result
work(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "deed", input)));
}

/* A runtime with one slot. */
static struct rig
begin(void)
{
  struct rig rig = rig_begin();

  atomic_store(&n_deeds, 0);
  rig_orchestration(&rig, "work", work);
  rig_activity(&rig, "deed", deed);
  rig.options.activity_slots = 1;
  rig.options.max_attempts = MAX_ATTEMPTS;
  return rig;
}

static uint64_t
n_delays(struct rig *rig)
{
  return rig_counters(rig).activities_put_off;
}

static int32_t
look_for_reason(void *context, const struct dk_waiting *message)
{
  if (strcmp(message->kind, "delayed") == 0 && strcmp(message->name.ptr, "refused") == 0)
    *(bool *)context = strstr(message->text.ptr, "activity 2 (deed): the store refuses its result");
  return 0;
}

static bool
is_told(struct rig *rig, const char *instance)
{
  bool is_told = false;
  dk_status status =
    dk_client_messages(rig->client, dk_str_of(instance), look_for_reason, &is_told);

  if (status != DK_OK && status != DK_NOT_FOUND)
    BAIL_OUT("no messages: %s", dk_client_error(rig->client));
  return is_told;
}

static bool
is_told_by_health(struct rig *rig)
{
  char reason[512];

  return dk_runtime_healthy(rig->runtime, reason, sizeof(reason)) &&
         strstr(reason, "delayed: 1 activities, one of them: refused");
}

static void
keep_metrics(void *context, dk_str text)
{
  const char *line = strstr(text.ptr, "dk_delayed_total{code=\"refused\"} ");

  *(bool *)context = line && strncmp(strchr(line, ' '), " 0", 2) != 0;
}

static bool
is_counted(struct rig *rig)
{
  bool is_counted = false;

  dk_runtime_metrics(rig->runtime, keep_metrics, &is_counted);
  return is_counted;
}

/* ---- one result is refused ------------------------------------------------------------------- */

static void
test_others_go_on(dk_status refusal, const char *name)
{
  struct rig rig = begin();

  faulty_refuse_results(rig.faulty, "bad", refusal);
  rig_start(&rig);
  rig_run(&rig, "bad", "work", "dear");
  ok(UNTIL(n_delays(&rig) >= 1), "%s: a refused result delays its activity", name);
  rig_run(&rig, "good", "work", "1");
  is(rig_result(&rig, "good"), "completed: 1", "its slot is free for others");
  ok(UNTIL(n_delays(&rig) > 2 * MAX_ATTEMPTS), "it is tried more often than poison may be");
  ok(UNTIL(is_told(&rig, "bad")), "the store has the reason, and the activity");
  ok(UNTIL(is_told_by_health(&rig)), "so does health, which is good");
  ok(is_counted(&rig), "it is counted by its code");
  cmp_ok(listener_matching(rig.listener, DK_LOG_STALLED, -1, -1), "==", 1, "one warning is logged");
  rig_is_told(&rig, DK_LOG_STALLED, "bad", "the store refuses its result", "will be run again");
  faulty_heal(rig.faulty);
  is(rig_result(&rig, "bad"), "completed: dear", "when the store accepts it, it completes");
  ok(UNTIL(!is_told(&rig, "bad")), "and no delay is reported any more");
  rig_end(&rig);
}

static void
test_cancelled(void)
{
  struct rig rig = begin();

  rig.options.backoff_ms = rig.options.max_backoff_ms = LONG_MS;
  faulty_refuse_results(rig.faulty, "bad", DK_REFUSED);
  rig_start(&rig);
  rig_run(&rig, "bad", "work", "dear");
  ok(UNTIL(n_delays(&rig) == 1), "delayed for long");
  if (dk_client_cancel(rig.client, dk_str_of("bad"), "enough", "me") != DK_OK)
    BAIL_OUT("no cancellation: %s", dk_client_error(rig.client));
  is(rig_result(&rig, "bad"), "cancelled: enough (me)", "it is cancelled at once");
  rig_end(&rig);
}

/* Its row is deleted between the two calls. */
static void
test_gone_meanwhile(void)
{
  struct rig rig = begin();

  faulty_refuse_results(rig.faulty, "bad", DK_REFUSED);
  faulty_plan(rig.faulty, FAULTY_ABANDON_WORK, 0, 1, FAULT_REFUSE, DK_LOCK_LOST);
  rig_start(&rig);
  rig_run(&rig, "bad", "work", "dear");
  ok(listener_until(rig.listener, DK_LOG_RESULT_REFUSED, 1),
     "its row was deleted: its result is dropped");
  cmp_ok(n_delays(&rig), "==", 0, "and nothing is delayed");
  rig_end(&rig);
}

static void
test_failed(void)
{
  struct rig rig = begin();

  rig.options.flags = DK_RUNTIME_FAIL_DELAYED;
  faulty_plan(rig.faulty, FAULTY_ACK_WORK, 0, 1, FAULT_REFUSE, DK_REFUSED);
  rig_start(&rig);
  rig_run(&rig, "bad", "work", "dear");
  ok(rig_says(rig_result(&rig, "bad"), "its result of 4 bytes was refused"),
     "if delayed work is to fail, the orchestration receives the error");
  rig_end(&rig);
}

/* ---- the store takes nothing ----------------------------------------------------------------- */

/* For longer than its lease. */
static void
test_held(void)
{
  struct rig rig = begin();

  rig.options.activity_lock_ms = 1000;
  rig.options.activity_renewal_buffer_ms = 400;
  faulty_plan(rig.faulty, FAULTY_ACK_WORK, 0, UINT32_MAX, FAULT_REFUSE, DK_REFUSED);
  faulty_plan(rig.faulty, FAULTY_ABANDON_WORK, 0, UINT32_MAX, FAULT_REFUSE, DK_REFUSED);
  rig_start(&rig);
  rig_run(&rig, "bad", "work", "dear");
  ok(UNTIL(atomic_load(&n_deeds) == 1), "the store takes neither a result nor the activity back");
  uint64_t before = faulty_successes(rig.faulty, FAULTY_RENEW_WORK);
  ok(UNTIL(faulty_successes(rig.faulty, FAULTY_RENEW_WORK) >= before + SOME),
     "its lease is renewed");
  cmp_ok(listener_matching(rig.listener, DK_LOG_ACK_RETRIED, -1, -1), "==", 1,
         "one warning is logged");
  faulty_heal(rig.faulty);
  is(rig_result(&rig, "bad"), "completed: dear", "until the store takes the result");
  cmp_ok(atomic_load(&n_deeds), "==", 1, "it has run once");
  rig_end(&rig);
}

int
main(void)
{
  test_others_go_on(DK_REFUSED, "refused");
  test_others_go_on(DK_CORRUPT, "damaged");
  test_cancelled();
  test_gone_meanwhile();
  test_failed();
  test_held();
  return done_testing();
}
