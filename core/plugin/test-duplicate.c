/* SPDX-License-Identifier: Apache-2.0 */
/* ACK-15: the provider names the item that makes a commit a duplicate, and the caller receives it,
 * if the commit has it. */
#include <stddef.h>

#include "conformance/tap/tap.h"
#include "core/plugin/call.h"
#include "core/plugin/testing/puppet.h"

static dk_status
commit_two_events(struct puppet *puppet)
{
  static const struct dk_event events[] = {{1, {"a", 1}}, {2, {"b", 1}}};
  struct dk_turn_result result = a_result();

  result.events = events;
  result.n_events = 2;
  return dk_store_ack_orchestration_item(puppet->store, puppet->caller, text("t"), &result, NULL);
}

static dk_status
say_stored(struct puppet *puppet, struct dk_call *call)
{
  return failing(puppet, call, DK_DUPLICATE, text("it is stored"));
}

/* ---- what is passed on ----------------------------------------------------------------------- */

static dk_status
name_second_event(struct puppet *puppet, struct dk_call *call)
{
  puppet->host->duplicate(call, DK_LIST_EVENTS, 1);
  return say_stored(puppet, call);
}

static dk_status
name_first_after_reset(struct puppet *puppet, struct dk_call *call)
{
  name_second_event(puppet, call);
  puppet->host->reset(call);
  puppet->host->duplicate(call, DK_LIST_EVENTS, 0);
  return say_stored(puppet, call);
}

static dk_status
fail_otherwise_after_reset(struct puppet *puppet, struct dk_call *call)
{
  name_second_event(puppet, call);
  puppet->host->reset(call);
  return failing(puppet, call, DK_BUSY, text("busy"));
}

static void
expect_told(struct puppet *puppet, act_fn *act, dk_status status, int32_t list, uint64_t index,
            const char *what)
{
  const struct dk_failure *failure = dk_caller_failure(puppet->caller);

  puppet->act = act;
  cmp_ok(commit_two_events(puppet), "==", status, "%s: its status", what);
  cmp_ok(failure->list, "==", list, "the list");
  cmp_ok(failure->index, "==", index, "and the item");
  cmp_ok(puppet->violations, "==", 0, "no rule was broken: %s", puppet->text);
}

static void
test_told(void)
{
  struct puppet puppet = {.act = NULL};

  puppet_open(&puppet, NULL);
  expect_told(&puppet, name_second_event, DK_DUPLICATE, DK_LIST_EVENTS, 1, "the second event");
  expect_told(&puppet, NULL, DK_OK, 0, 0, "the next call does not have it");
  expect_told(&puppet, name_first_after_reset, DK_DUPLICATE, DK_LIST_EVENTS, 0, "after a reset");
  expect_told(&puppet, fail_otherwise_after_reset, DK_BUSY, 0, 0, "after a reset, another error");
  expect_told(&puppet, say_stored, DK_DUPLICATE, 0, 0, "a provider of an ABI before 2.3");
  puppet_close(&puppet);
}

/* A host of ABI 2.2 has no such member, and a provider that looks for it sees that. */
static void
test_older_host(void)
{
  struct puppet puppet = {.options = {.host_size = offsetof(struct dk_host, duplicate)}};

  puppet_open(&puppet, NULL);
  ok(!DK_HAS(dk_host, puppet.host, duplicate), "a host of ABI 2.2 does not have it");
  ok(DK_HAS(dk_host, puppet.host, removed), "but all that came before");
  puppet_close(&puppet);
}

/* ---- what is a violation --------------------------------------------------------------------- */

/* The commit brings two events, no activity and no message. */
static dk_status
name_no_activity(struct puppet *puppet, struct dk_call *call)
{
  puppet->host->duplicate(call, DK_LIST_WORKER_ITEMS, 0);
  return say_stored(puppet, call);
}

static dk_status
name_third_event(struct puppet *puppet, struct dk_call *call)
{
  puppet->host->duplicate(call, DK_LIST_EVENTS, 2);
  return say_stored(puppet, call);
}

static dk_status
name_no_list(struct puppet *puppet, struct dk_call *call)
{
  puppet->host->duplicate(call, DK_LIST_ORCHESTRATOR_ITEMS + 1, 0);
  return say_stored(puppet, call);
}

static dk_status
name_two(struct puppet *puppet, struct dk_call *call)
{
  puppet->host->duplicate(call, DK_LIST_EVENTS, 0);
  puppet->host->duplicate(call, DK_LIST_EVENTS, 1);
  return say_stored(puppet, call);
}

static dk_status
name_and_succeed(struct puppet *puppet, struct dk_call *call)
{
  puppet->host->duplicate(call, DK_LIST_EVENTS, 1);
  return DK_OK;
}

static dk_status
name_too_late(struct puppet *puppet, struct dk_call *call)
{
  say_stored(puppet, call);
  puppet->host->duplicate(call, DK_LIST_EVENTS, 1);
  return DK_DUPLICATE;
}

static const struct row {
  const char *what;
  dk_status (*call)(struct puppet *puppet);
  act_fn *act;
  const char *clause;
  dk_status status;
} rows[] = {
  {"an activity that was not sent", commit_two_events, name_no_activity, "ACK-15", DK_DUPLICATE},
  {"an event that was not sent", commit_two_events, name_third_event, "ACK-15", DK_DUPLICATE},
  {"no list", commit_two_events, name_no_list, "ACK-15", DK_DUPLICATE},
  {"two items", commit_two_events, name_two, "ACK-15", DK_DUPLICATE},
  {"an item, and DK_OK", commit_two_events, name_and_succeed, "ACK-15", DK_OK},
  {"an item after fail", commit_two_events, name_too_late, "ABI-4", DK_DUPLICATE},
  {"an item of an enqueue", enqueue, name_second_event, "ABI-4", DK_DUPLICATE},
};

static void
test_row(const struct row *row)
{
  struct puppet puppet = {.act = row->act};

  puppet_open(&puppet, NULL);
  cmp_ok(row->call(&puppet), "==", row->status, "%s is named: the status that counts", row->what);
  is(puppet.clause, row->clause, "its clause: %s", puppet.text);
  cmp_ok(puppet.violations, "==", 1, "reported once");
  puppet_close(&puppet);
}

int
main(void)
{
  plan(NO_PLAN);
  test_told();
  test_older_host();
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    test_row(&rows[i]);
  return done_testing();
}
