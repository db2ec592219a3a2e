/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of recorded values, key-values and the custom status. */
#include "conformance/tap/tap.h"
#include "core/runtime/testing/written-history.h"

static struct scene s;

/* The commands of the last run become history. */
static void
commit(void)
{
  for (size_t i = 0; i < s.ran.n_commands; i++)
    s.events[s.past.n_events++] = s.ran.commands[i];
  s.past.n_committed = s.past.n_events;
}

/* ---- time and chance --------------------------------------------------------------------------*/

static dk_result
values(dk_orch *o, dk_str input)
{
  char guid[37];
  int64_t now = dk_now(o);
  uint64_t random = dk_random(o);

  (void)input;
  dk_guid(o, guid);
  return dk_completed(o, dk_format(o, "%lld %llx %s", (long long)now, (unsigned long long)random,
                                   guid));
}

static bool
is_guid(const char *guid)
{
  static const char shape[] = "xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx";

  for (size_t i = 0; i < sizeof(shape) - 1; i++)
    if (shape[i] == 'x' ? !strchr("0123456789abcdef", guid[i])
        : shape[i] == 'v' ? !strchr("89ab", guid[i]) : guid[i] != shape[i])
      return false;
  return guid[sizeof(shape) - 1] == '\0';
}

static void
recorded_values(void)
{
  char first[200];

  SET_START(&s);
  is(scene_run(&s, values), "completed", "time, a number and a guid");
  snprintf(first, sizeof(first), "%s", scene_text(&s));
  ok(strncmp(first, "1000 ", 5) == 0, "the time is the turn's: %s", first);
  ok(is_guid(strrchr(first, ' ') + 1), "the guid is one: %s", strrchr(first, ' ') + 1);
  commit();
  s.past.time = 2000;
  s.past.seed = 7;
  is(scene_run(&s, values), "completed", "in a later turn");
  is(scene_text(&s), first, "they are the same");
  SET_START(&s);
  s.past.seed = 7;
  scene_run(&s, values);
  isnt(strrchr(scene_text(&s), ' '), strrchr(first, ' '), "another seed gives others");
}

static dk_result
now_twice(dk_orch *o, dk_str input)
{
  int64_t first = dk_now(o);

  dk_await(o, dk_external(o, "go"));
  (void)input;
  return dk_completed(o, dk_format(o, "%lld %lld", (long long)first, (long long)dk_now(o)));
}

static void
time_stays(void)
{
  SET(&s, VALUE("now", 5000), WAIT("go"), RAISED("go", ""));
  scene_run(&s, now_twice);
  is(scene_text(&s), "5000 5000", "a host with a slow clock does not set the time back");
  s.past.time = 6000;
  scene_run(&s, now_twice);
  is(scene_text(&s), "5000 6000", "otherwise time advances");
}

static dk_result
one_guid(dk_orch *o, dk_str input)
{
  char guid[37];

  dk_guid(o, guid);
  return dk_completed(o, input);
}

static void
damaged_guid(void)
{
  SET(&s, VALUE("guid", 0));
  is(scene_run(&s, one_guid), "nondeterminism", "a recorded guid that is invalid is reported");
}

/* ---- key-values -------------------------------------------------------------------------------*/

static struct dk_kv snapshot[] = {{.key = S("k"), .value = S("5")},
                                  {.key = S("empty"), .value = S("")}};

/* Reads, changes, and reads again in the next turn. */
static dk_result
counts(dk_orch *o, dk_str input)
{
  dk_str before = dk_str_of("none"), after = dk_str_of("none");

  (void)input;
  dk_kv_get(o, "k", &before);
  dk_kv_set(o, "k", dk_format(o, "%s+1", before.ptr));
  dk_await(o, dk_external(o, "go"));
  dk_kv_get(o, "k", &after);
  return dk_completed(o, dk_format(o, "%s %s", before.ptr, after.ptr));
}

static void
read_modify_write(void)
{
  struct event go = RAISED("go", "");

  SET_START(&s);
  s.past.kv = snapshot;
  s.past.n_kv = 2;
  is(scene_run(&s, counts), "waits", "a key is read and changed");
  is(scene_commands(&s), "kv k, kv k, wait go", "the read is recorded, for it was the store's");
  commit();
  go.id = s.past.n_events + 1;
  s.events[s.past.n_events++] = go;
  snapshot[0].value = dk_str_of("5+1"); /* as the store has it after that commit */
  is(scene_run(&s, counts), "completed", "the next turn");
  is(scene_text(&s), "5 5+1", "reads the recorded value, not the present snapshot");
  is(scene_commands(&s), "", "and records nothing more");
  s.past.n_kv = 0;
  scene_run(&s, counts);
  is(scene_text(&s), "5 5+1", "even without a snapshot");
  snapshot[0].value = dk_str_of("5");
}

static dk_result
clears(dk_orch *o, dk_str input)
{
  dk_str value = dk_str_of("none"), empty = dk_str_of("none");
  int32_t unknown = dk_kv_get(o, "unknown", NULL), there = dk_kv_get(o, "empty", &empty);

  (void)input;
  dk_kv_set(o, "a", dk_str_of("1"));
  dk_kv_clear(o, "a");
  int32_t cleared = dk_kv_get(o, "a", &value);
  dk_kv_set(o, "a", dk_str_of("2"));
  dk_kv_clear_all(o);
  int32_t gone = dk_kv_get(o, "a", &value), snapped = dk_kv_get(o, "k", &value);
  dk_kv_set(o, "a", dk_str_of(NULL));
  int32_t again = dk_kv_get(o, "a", &value);
  return dk_completed(o, dk_format(o, "%d %d%s %d %d %d %d%s", unknown, there, empty.ptr, cleared,
                                   gone, snapped, again, value.ptr));
}

static void
clearing(void)
{
  SET_START(&s);
  s.past.kv = snapshot;
  s.past.n_kv = 2;
  is(scene_run(&s, clears), "completed", "keys are set and cleared");
  is(scene_text(&s), "0 1 0 0 0 1", "a key that is absent, empty, cleared, and all cleared");
  commit();
  s.past.n_kv = 0;
  scene_run(&s, clears);
  is(scene_text(&s), "0 1 0 0 0 1", "in a later turn too");
  is(scene_commands(&s), "", "without a new command");
}

/* ---- status -----------------------------------------------------------------------------------*/

static dk_result
statuses(dk_orch *o, dk_str input)
{
  dk_set_status(o, dk_str_of("busy"));
  dk_set_status(o, dk_str_of(""));
  dk_set_status(o, dk_str_of(NULL));
  return dk_completed(o, input);
}

static void
status(void)
{
  SET_START(&s);
  is(scene_run(&s, statuses), "completed", "a status is set, emptied and cleared");
  is(s.ran.commands[0].text.ptr, "busy", "busy");
  is(s.ran.commands[1].text.ptr, "", "empty");
  ok(!s.ran.commands[2].text.ptr, "cleared");
  commit();
  is(scene_run(&s, statuses), "completed", "and that is replayed");
  is(scene_commands(&s), "", "without a new command");
}

int
main(void)
{
  plan(NO_PLAN);
  recorded_values();
  time_stays();
  damaged_guid();
  read_modify_write();
  clearing();
  status();
  scene_done(&s);
  return done_testing();
}
