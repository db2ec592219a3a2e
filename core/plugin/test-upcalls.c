/* SPDX-License-Identifier: Apache-2.0 */
/* Upcalls at the wrong time, from the wrong caller or with wrong arguments: reported, answered, and
 * harmless. */
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/plugin/testing/puppet.h"

static dk_status
call_fetch_turn(struct puppet *puppet)
{
  struct dk_turn *turn = NULL;

  return fetch_turn(puppet, &turn);
}

/* ---- after a refusal, after the return ------------------------------------------------------- */

static dk_status
ignore_refusal(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  head.lock_token = text("");
  puppet->host->turn(call, &head);
  return DK_OK;
}

static void
test_refusal_ignored(void)
{
  struct puppet puppet = {.act = ignore_refusal};

  puppet_open(&puppet, NULL);
  cmp_ok(call_fetch_turn(&puppet), "==", DK_INTERNAL, "a refused upcall is not repaired by DK_OK");
  cmp_ok(puppet.violations, "==", 2, "which is reported too");
  is(puppet.clause, "ABI-4", "as: %s", puppet.text);
  puppet_close(&puppet);
}

static dk_status
keep_call(struct puppet *puppet, struct dk_call *call)
{
  puppet->data = call;
  return give_turn(puppet, call);
}

/* Every upcall of a call that has returned; none of them may do any harm. */
static void
test_late(void)
{
  struct puppet puppet = {.act = keep_call};
  struct dk_turn *turn = NULL;
  struct dk_turn_head head = a_head();
  struct dk_message message = a_message("late");
  int told = 0;

  puppet_open(&puppet, NULL);
  fetch_turn(&puppet, &turn);
  struct dk_call *call = puppet.data;
  const struct dk_host *host = puppet.host;
  isnt(host->turn(call, &head) == DK_OK ? "ok" : "no", "ok", "a late turn");
  cmp_ok(puppet.violations, "==", ++told, "is reported");
  isnt(host->message(call, &message) == DK_OK ? "ok" : "no", "ok", "a late message");
  cmp_ok(puppet.violations, "==", ++told, "is reported");
  failing(&puppet, call, DK_BUSY, text("late"));
  cmp_ok(puppet.violations, "==", ++told, "a late fail is reported");
  host->reset(call);
  cmp_ok(puppet.violations, "==", ++told, "a late reset is reported");
  cmp_ok(host->wait(call, -1, 0, INT64_MAX), "==", DK_CALL_CANCELLED, "a late wait does not wait");
  cmp_ok(puppet.violations, "==", ++told, "and is reported");
  cmp_ok(host->cancelled(call), "!=", 0, "a late question whether it is cancelled: yes");
  cmp_ok(host->cancel_fd(call), "==", -1, "no descriptor any more");
  is(puppet.clause, "ABI-4", "all of them as: %s", puppet.text);
  is(puppet.violated_in, "fetch_orchestration_item", "of the operation that it was");
  cmp_ok(turn->n_messages, "==", 1, "the turn is as it was");
  cmp_ok(dk_caller_failure(puppet.caller)->status, "==", DK_OK, "and so is the caller");
  puppet_close(&puppet);
}

/* ---- not by this table, not this answer ------------------------------------------------------ */

/* The host finds its store by the table's address; the memory before a copy is the provider's. */
static void
test_copied_table(void)
{
  struct puppet puppet = {.act = NULL};
  struct {
    char before[64];
    struct dk_host host;
  } copy = {.before = {0}};

  puppet_open(&puppet, NULL);
  copy.host = *puppet.host;
  cmp_ok(puppet.host->now(puppet.host), ">", 0, "a table is used");
  cmp_ok(puppet.violations, "==", 0, "as it should be");
  cmp_ok(copy.host.now(&copy.host), ">", 0, "a copy of it is used");
  is(puppet.clause, "ABI-12", "which is reported as: %s", puppet.text);
  copy.host.log(&copy.host, 1, text("a line"));
  ok(!copy.host.service(&copy.host, "durakit.no-such-thing/1"), "by each upcall without a call");
  cmp_ok(puppet.violations, "==", 3, "each time");
  puppet_close(&puppet);
}

static void
test_extensions(void)
{
  struct puppet puppet = {.answers_any_extension = true};

  puppet_open(&puppet, NULL);
  is(puppet.clause, "ABI-3", "an answer to an unknown id is reported at open: %s", puppet.text);
  cmp_ok(puppet.violations, ">", 1, "and one to an undeclared id");
  puppet_close(&puppet);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static dk_status
wait_on_and_on(struct puppet *puppet, struct dk_call *call)
{
  for (int i = 0; i < puppet->n; i++)
    puppet->host->wait(call, -1, 0, INT64_MAX);
  return DK_CALL_CANCELLED;
}

static void
test_deaf_waiter(void)
{
  struct puppet puppet = {.act = wait_on_and_on, .n = 2};
  struct dk_canceller *canceller = dk_canceller_new(NULL);

  puppet_open(&puppet, NULL);
  dk_caller_set_canceller(puppet.caller, canceller);
  dk_cancel(canceller);
  cmp_ok(call_fetch_turn(&puppet), "==", DK_CALL_CANCELLED, "a cancelled call returns");
  cmp_ok(puppet.violations, "==", 0, "two waits after the cancel are allowed: %s", puppet.text);
  puppet.n = 5;
  cmp_ok(call_fetch_turn(&puppet), "==", DK_CALL_CANCELLED, "one that waits on");
  cmp_ok(puppet.violations, "==", 1, "is reported once");
  is(puppet.clause, "CALL-4", "as: %s", puppet.text);
  puppet_close(&puppet);
  dk_canceller_free(canceller);
}

int
main(void)
{
  plan(NO_PLAN);
  test_refusal_ignored();
  test_late();
  test_copied_table();
  test_extensions();
  test_deaf_waiter();
  return done_testing();
}
