/* SPDX-License-Identifier: Apache-2.0 */
/* Why something is delayed, as the store shows it: the present reason, stored once, for as long as
 * it is true. */
#include <stdatomic.h>
#include <stdio.h>

#include <durakit/manage.h>

#include "conformance/tap/tap.h"
#include "core/runtime/shared/delay-reason.h"
#include "core/runtime/testing/whole-runtime.h"

enum { SOME = 4, LONG_MS = 600000 };

/* ---- code ------------------------------------------------------------------------------------ */

static atomic_int n_deeds;

static dk_result
deed(dk_task *task, dk_str input)
{
  atomic_fetch_add(&n_deeds, 1);
  return dk_done(task, input);
}

static dk_result
good(dk_orch *o, dk_str input)
{
  dk_await(o, dk_external(o, "go"));
  dk_await(o, dk_external(o, "end"));
  return dk_completed(o, input);
}

static dk_result
deed_and_go(dk_orch *o, dk_str input)
{
  dk_future *both[] = {dk_activity(o, "deed", input), dk_external(o, "go")};

  dk_all_of(o, both, 2);
  return dk_completed(o, input);
}

/* Code that differs from the recorded one, in two ways. */
static dk_result
waits_for_come(dk_orch *o, dk_str input)
{
  dk_await(o, dk_external(o, "come"));
  return dk_completed(o, input);
}

static dk_result
waits_for_stay(dk_orch *o, dk_str input)
{
  dk_await(o, dk_external(o, "stay"));
  return dk_completed(o, input);
}

/* ---- deployments ----------------------------------------------------------------------------- */

static struct dk_registry *
registry_of(dk_orchestration_fn *code, bool has_deed)
{
  struct dk_registry *registry = dk_registry_new();

  if (!registry || (code && dk_register_orchestration(registry, "work", NULL, code) != DK_OK) ||
      (has_deed && dk_register_activity(registry, "deed", deed, NULL) != DK_OK))
    BAIL_OUT("no registry");
  return registry;
}

/* Replaces the present runtime by one with this code. */
static void
deploy(struct rig *rig, dk_orchestration_fn *code, bool has_deed)
{
  struct dk_registry *earlier = rig->options.registry;

  rig_stop(rig, 10000);
  rig->options.registry = registry_of(code, has_deed);
  rig_start(rig);
  dk_registry_free(earlier);
}

static uint64_t
n_delays(struct rig *rig)
{
  return rig_counters(rig).turns_stalled + rig_counters(rig).activities_put_off;
}

/* An instance whose first turn this code has made. */
static struct rig
begin(dk_orchestration_fn *code, bool has_deed)
{
  struct rig rig = rig_begin();

  atomic_store(&n_deeds, 0);
  rig.options.registry = registry_of(code, has_deed);
  /* Far longer than it takes to store a reason, so that the next turn does not come before it. */
  rig.options.backoff_ms = rig.options.max_backoff_ms = 200;
  rig_start(&rig);
  rig_run(&rig, "i", "work", "in");
  if (!UNTIL(rig_counters(&rig).turns_committed >= 1))
    BAIL_OUT("no first turn");
  return rig;
}

static void
end(struct rig *rig)
{
  struct dk_registry *last = rig->options.registry;

  rig_end(rig);
  dk_registry_free(last);
}

static void
raise_event(struct rig *rig, const char *name)
{
  if (dk_client_raise(rig->client, dk_str_of("i"), name, dk_str_of("")) != DK_OK)
    BAIL_OUT("the event is not raised: %s", dk_client_error(rig->client));
}

/* ---- what is shown --------------------------------------------------------------------------- */

/* All reasons, each with a line of its own. */
struct told {
  char lines[4096];
  size_t used;
  uint32_t n;
};

static int32_t
take_reason(void *context, const struct dk_waiting *message)
{
  struct told *told = context;

  if (strcmp(message->kind, "delayed") != 0)
    return 0;
  int more = snprintf(told->lines + told->used, sizeof(told->lines) - told->used, "%s: %s\n",
                      message->name.ptr, message->text.ptr);
  if (more > 0 && told->used + (size_t)more < sizeof(told->lines))
    told->used += (size_t)more;
  told->n++;
  return 0;
}

static struct told
reasons(struct rig *rig)
{
  struct told told = {.n = 0};
  dk_status status = dk_client_messages(rig->client, dk_str_of("i"), take_reason, &told);

  if (status != DK_OK && status != DK_NOT_FOUND)
    BAIL_OUT("no messages: %s", dk_client_error(rig->client));
  return told;
}

/* Whether exactly this reason is shown. */
static bool
is_told(struct rig *rig, const char *code, const char *word)
{
  struct told told = reasons(rig);

  return told.n == 1 && strncmp(told.lines, code, strlen(code)) == 0 && strstr(told.lines, word);
}

static uint32_t
n_stored(struct rig *rig)
{
  const struct dk_read_messages request = {.struct_size = sizeof(request),
                                           .instance = dk_str_of("i")};
  struct dk_messages *messages = NULL;
  struct reason_id id;
  uint32_t n = 0;

  dk_caller_reset(rig->caller);
  if (dk_store_read_messages(rig->store, rig->caller, &request, &messages) != DK_OK)
    BAIL_OUT("no messages: %s", dk_caller_failure(rig->caller)->text);
  for (size_t i = 0; i < messages->n_items; i++)
    n += reason_read_id(messages->items[i].id, &id);
  return n;
}

static void
is_told_soon(struct rig *rig, const char *code, const char *word, const char *name)
{
  if (!ok(UNTIL(is_told(rig, code, word)), "%s", name))
    diag("%s", reasons(rig).lines);
}

/* Delayed again and again, for the same reason. */
static void
is_stored_once(struct rig *rig, uint32_t n)
{
  uint64_t before = n_delays(rig), stored = faulty_calls(rig->faulty, FAULTY_ENQUEUE_MESSAGE);

  ok(UNTIL(n_delays(rig) >= before + SOME), "it is delayed again and again");
  cmp_ok(faulty_calls(rig->faulty, FAULTY_ENQUEUE_MESSAGE), "==", stored, "nothing is written");
  cmp_ok(n_stored(rig), "==", n, "%u messages are stored for it", n);
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* One deployment after the other that cannot continue, each for another reason. */
static void
test_changes(void)
{
  struct rig rig = begin(good, true);

  deploy(&rig, NULL, true);
  raise_event(&rig, "go");
  is_told_soon(&rig, "unregistered", "\"work\"", "a turn is delayed, and the store tells why");
  deploy(&rig, waits_for_come, true);
  is_told_soon(&rig, "nondeterminism", "come", "for another reason: the store tells that");
  is_stored_once(&rig, 2);
  deploy(&rig, waits_for_stay, true);
  is_told_soon(&rig, "nondeterminism", "stay", "in other words: the store has these");
  deploy(&rig, NULL, true);
  is_told_soon(&rig, "unregistered", "\"work\"", "for the first reason again");
  is_stored_once(&rig, 4);
  deploy(&rig, good, true);
  ok(UNTIL(n_stored(&rig) == 0), "it is mended, and runs: no reason is left");
  raise_event(&rig, "end");
  is(rig_result(&rig, "i"), "completed: in", "and it completes");
  end(&rig);
}

/* Before its first commit it cannot have a turn that removes anything. */
static void
test_changes_before_start(void)
{
  struct rig rig = rig_begin();

  rig.options.registry = registry_of(NULL, false);
  rig_start(&rig);
  rig_run(&rig, "i", "work", "in");
  is_told_soon(&rig, "unregistered", "\"work\"", "a start is delayed, and the store tells why");
  faulty_plan(rig.faulty, FAULTY_ACK_TURN, 0, UINT32_MAX, FAULT_REFUSE, DK_TOO_LARGE);
  deploy(&rig, good, false);
  is_told_soon(&rig, "limit", "does not accept", "for another reason: the store tells that");
  faulty_heal(rig.faulty);
  ok(UNTIL(n_stored(&rig) == 0), "it is mended: no reason is left");
  end(&rig);
}

/* What comes meanwhile is delayed for its own time, for the same reason. */
static void
test_arrivals(void)
{
  struct rig rig = begin(good, true);

  rig.options.backoff_ms = rig.options.max_backoff_ms = LONG_MS;
  deploy(&rig, NULL, true);
  raise_event(&rig, "go");
  ok(UNTIL(n_delays(&rig) == 1), "one event is delayed for long");
  is_told_soon(&rig, "unregistered", "\"work\"", "and the store tells why");
  raise_event(&rig, "end");
  ok(UNTIL(n_delays(&rig) == 2), "so is another");
  cmp_ok(n_stored(&rig), "==", 1, "the reason is stored once");
  deploy(&rig, waits_for_come, true);
  raise_event(&rig, "more");
  is_told_soon(&rig, "nondeterminism", "come",
               "the store tells the present reason, though the first two are delayed yet");
  end(&rig);
}

/* It changes so often only if the workers differ permanently. */
static void
test_many_changes(void)
{
  struct reason reason = {.instance = dk_str_of("i"),
                          .why = DELAY_NO_MEMORY,
                          .text = dk_str_of("none"),
                          .by = dk_str_of("w")};
  struct rig rig = begin(good, true);

  rig_stop(&rig, 10000);
  raise_event(&rig, "go");
  for (; reason.number < MOST_REASONS - 1; reason.number++)
    if (reason_store(rig.store, rig.caller, &reason) != DK_OK)
      BAIL_OUT("the reason is not stored");
  cmp_ok(n_stored(&rig), "==", MOST_REASONS - 1, "it has changed often");
  cmp_ok(reasons(&rig).n, "==", 1, "and only one is shown");
  deploy(&rig, NULL, true);
  is_told_soon(&rig, "unregistered", "the log of the workers", "the last one says so");
  deploy(&rig, waits_for_come, true);
  is_stored_once(&rig, MOST_REASONS);
  end(&rig);
}

/* ---- activities ------------------------------------------------------------------------------ */

/* While no turn can be taken, which would remove the reasons. */
static void
test_activity(void)
{
  struct rig rig = begin(deed_and_go, false);
  uint64_t before;

  is_told_soon(&rig, "unregistered", "(deed)", "an activity is delayed, and the store tells why");
  faulty_plan(rig.faulty, FAULTY_FETCH_TURN, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  before = n_delays(&rig);
  ok(UNTIL(n_delays(&rig) >= before + SOME), "again and again");
  is_told_soon(&rig, "unregistered", "(deed)", "the store tells it once, until the newest time");
  faulty_heal(rig.faulty);
  deploy(&rig, deed_and_go, true);
  ok(UNTIL(atomic_load(&n_deeds) == 1 && n_stored(&rig) == 0), "it is mended: none is left");
  end(&rig);
}

/* The reason of the activity is due together with a turn that is delayed, so it is delayed, too. */
static void
test_activity_beside_turn(void)
{
  struct rig rig = begin(deed_and_go, false);

  faulty_plan(rig.faulty, FAULTY_FETCH_TURN, 0, UINT32_MAX, FAULT_REFUSE, DK_UNAVAILABLE);
  uint64_t before = n_delays(&rig);
  ok(UNTIL(n_delays(&rig) >= before + SOME && n_stored(&rig) > 0), "an activity is delayed");
  rig_stop(&rig, 10000);
  raise_event(&rig, "go");
  faulty_heal(rig.faulty);
  deploy(&rig, waits_for_come, true);
  ok(UNTIL(atomic_load(&n_deeds) == 1), "the next deployment runs it, but not the turn");
  is_told_soon(&rig, "nondeterminism", "come",
               "the turn's reason is shown, and no longer the activity's");
  end(&rig);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static void
test_ids(void)
{
  static const char *const others[] = {"delayed.", "delayed.x", "delayed", "a1.2", "", "delayed.1.",
                                       "delayed.1234567890123456789"};
  struct reason_id id;

  ok(reason_read_id(dk_str_of("delayed.12"), &id) && !id.is_activity && id.number == 12,
     "the id of a turn's reason");
  ok(reason_read_id(dk_str_of("delayed.1.2.9000"), &id) && id.is_activity && id.number == 9000 &&
       id.whose.len == strlen("delayed.1.2."),
     "the id of an activity's");
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
    ok(!reason_read_id(dk_str_of(others[i]), &id), "no reason's: \"%s\"", others[i]);
  ok(!reason_read_id((dk_str){NULL, 0}, &id), "nor is that of a message that has none");
}

#define MESSAGE(text, at)                                                                          \
  {                                                                                                \
    .struct_size = sizeof(struct dk_message), .id = {text, sizeof(text) - 1}, .visible_at = at     \
  }

static void
test_newest(void)
{
  const struct dk_message messages[] = {
    MESSAGE("delayed.9", 70), MESSAGE("delayed.10", 60), MESSAGE("delayed.1.2.80", 80),
    MESSAGE("delayed.1.3.50", 90), MESSAGE("delayed.1.2.81", 81), MESSAGE("a1.2", 0),
  };
  const size_t n = sizeof(messages) / sizeof(messages[0]);
  static const bool outdated[] = {true, false, true, true, false, false};

  ok(reason_newest(messages, n) == &messages[1], "the turn's newest has the greatest number");
  ok(!reason_newest(messages + 2, n - 2), "an activity's is not the turn's");
  for (size_t i = 0; i < n; i++)
    ok(reason_is_outdated(messages, n, &messages[i]) == outdated[i], "%s is %s",
       messages[i].id.ptr, outdated[i] ? "outdated" : "not");
}

int
main(void)
{
  test_ids();
  test_newest();
  test_changes();
  test_changes_before_start();
  test_arrivals();
  test_many_changes();
  test_activity();
  test_activity_beside_turn();
  return done_testing();
}
