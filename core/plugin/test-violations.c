/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that breaks a rule of the ABI: each violation is reported once, under its clause, and
 * what the provider handed up is dropped. */
#include <stdio.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/plugin/call.h"
#include "core/plugin/testing/puppet.h"

/* ---- what it returns ------------------------------------------------------------------------- */

static dk_status
ok_after_fail(struct puppet *puppet, struct dk_call *call)
{
  TRY(give_turn(puppet, call));
  failing(puppet, call, DK_BUSY, text("busy"));
  return DK_OK;
}

static dk_status
wordless(struct puppet *puppet, struct dk_call *call)
{
  (void)puppet;
  (void)call;
  return DK_BUSY;
}

static dk_status
other_than_said(struct puppet *puppet, struct dk_call *call)
{
  failing(puppet, call, DK_BUSY, text("busy"));
  return DK_LOCK_LOST;
}

static dk_status
fail_with_ok(struct puppet *puppet, struct dk_call *call)
{
  return failing(puppet, call, DK_OK, text("well"));
}

static dk_status
no_status(struct puppet *puppet, struct dk_call *call)
{
  (void)puppet;
  (void)call;
  return -7;
}

static dk_status
unknown_status(struct puppet *puppet, struct dk_call *call)
{
  return failing(puppet, call, 137, text("something new"));
}

static dk_status
cancelled_by_itself(struct puppet *puppet, struct dk_call *call)
{
  (void)puppet;
  (void)call;
  return DK_CALL_CANCELLED;
}

static dk_status
nothing(struct puppet *puppet, struct dk_call *call)
{
  (void)puppet;
  (void)call;
  return DK_NOTHING;
}

static dk_status
empty_handed(struct puppet *puppet, struct dk_call *call)
{
  (void)puppet;
  (void)call;
  return DK_OK;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* A turn of one message with this head. */
static dk_status
give_head(struct puppet *puppet, struct dk_call *call, const struct dk_turn_head *head)
{
  struct dk_message message = a_message("m");

  TRY(puppet->host->turn(call, head));
  return puppet->host->message(call, &message);
}

static dk_status
no_token(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  head.lock_token = text(NULL);
  return give_head(puppet, call, &head);
}

static dk_status
empty_token(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  head.lock_token = text("");
  return give_head(puppet, call, &head);
}

static dk_status
token_with_nul(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  head.lock_token = (struct dk_bytes){"a\0b", 3};
  return give_head(puppet, call, &head);
}

static dk_status
long_token(struct puppet *puppet, struct dk_call *call)
{
  char token[2 * 255 + 129];
  struct dk_turn_head head = a_head();

  memset(token, 't', sizeof(token));
  head.lock_token = (struct dk_bytes){token, sizeof(token)};
  return give_head(puppet, call, &head);
}

static dk_status
no_instance(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  head.instance = text(NULL);
  return give_head(puppet, call, &head);
}

static dk_status
lease_too_long(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  head.lease_left_ms = 30001;
  return give_head(puppet, call, &head);
}

static dk_status
lease_over(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  head.lease_left_ms = 0;
  return give_head(puppet, call, &head);
}

static dk_status
name_with_nul(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  head.name = (struct dk_bytes){"a\0b", 3};
  return give_head(puppet, call, &head);
}

static dk_status
version_too_long(struct puppet *puppet, struct dk_call *call)
{
  char version[256];
  struct dk_turn_head head = a_head();

  memset(version, '1', sizeof(version));
  head.version = (struct dk_bytes){version, sizeof(version)};
  return give_head(puppet, call, &head);
}

static dk_status
parent_of_other_bytes(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  head.parent_instance = text("a\xff");
  return give_head(puppet, call, &head);
}

static dk_status
bytes_at_null(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  head.name = (struct dk_bytes){NULL, 3};
  return give_head(puppet, call, &head);
}

static dk_status
no_struct_size(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  head.struct_size = 0;
  return give_head(puppet, call, &head);
}

static dk_status
turn_of_null(struct puppet *puppet, struct dk_call *call)
{
  return puppet->host->turn(call, NULL);
}

static dk_status
two_heads(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  TRY(give_turn(puppet, call));
  return puppet->host->turn(call, &head);
}

static dk_status
message_first(struct puppet *puppet, struct dk_call *call)
{
  struct dk_message message = a_message("m");

  return puppet->host->message(call, &message);
}

static dk_status
event_after_message(struct puppet *puppet, struct dk_call *call)
{
  struct dk_event event = {.event_id = 1};

  TRY(give_turn(puppet, call));
  return puppet->host->event(call, &event);
}

static dk_status
no_message(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();

  return puppet->host->turn(call, &head);
}

static dk_status
attempt_zero(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();
  struct dk_message message = a_message("m");

  message.attempt = 0;
  TRY(puppet->host->turn(call, &head));
  return puppet->host->message(call, &message);
}

static dk_status
empty_message_id(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();
  struct dk_message message = a_message("");

  TRY(puppet->host->turn(call, &head));
  return puppet->host->message(call, &message);
}

static dk_status
large_payload(struct puppet *puppet, struct dk_call *call)
{
  static char payload[64 * 1024 + 1];
  struct dk_turn_head head = a_head();
  struct dk_message message = a_message("m");

  message.payload = (struct dk_bytes){payload, sizeof(payload)};
  TRY(puppet->host->turn(call, &head));
  return puppet->host->message(call, &message);
}

static dk_status
undeclared_kv(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();
  struct dk_kv kv = {.struct_size = sizeof(kv), .key = text("k"), .value = text("v")};

  TRY(puppet->host->turn(call, &head));
  return puppet->host->kv(call, &kv);
}

/* A turn that announces "events `from` to `last`" and hands up those up to `brought`. */
static dk_status
give_events(struct puppet *puppet, struct dk_call *call, int32_t known, uint64_t from,
            uint64_t last, uint64_t first_brought, uint64_t last_brought)
{
  struct dk_turn_head head = a_head();
  struct dk_message message = a_message("m");

  head.known = known;
  head.history_from = from;
  head.last_event_id = last;
  TRY(puppet->host->turn(call, &head));
  for (uint64_t id = first_brought; id <= last_brought; id++) {
    struct dk_event event = {.event_id = id, .payload = text("e")};
    TRY(puppet->host->event(call, &event));
  }
  return puppet->host->message(call, &message);
}

static dk_status
first_event_missing(struct puppet *puppet, struct dk_call *call)
{
  return give_events(puppet, call, 1, 1, 5, 2, 5);
}

static dk_status
last_event_missing(struct puppet *puppet, struct dk_call *call)
{
  return give_events(puppet, call, 1, 1, 5, 1, 4);
}

static dk_status
all_events_missing(struct puppet *puppet, struct dk_call *call)
{
  return give_events(puppet, call, 1, 1, 5, 1, 0);
}

static dk_status
events_of_nobody(struct puppet *puppet, struct dk_call *call)
{
  return give_events(puppet, call, 0, 1, 2, 1, 2);
}

static dk_status
events_backwards(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();
  struct dk_event event = {.event_id = 2};

  TRY(puppet->host->turn(call, &head));
  TRY(puppet->host->event(call, &event));
  return puppet->host->event(call, &event);
}

static dk_status
work_for_turn(struct puppet *puppet, struct dk_call *call)
{
  struct dk_item item = an_activity(1);
  struct dk_work work = a_work(&item, "t");

  return puppet->host->work(call, &work);
}

static dk_status
result_after_fail(struct puppet *puppet, struct dk_call *call)
{
  dk_status status = failing(puppet, call, DK_BUSY, text("busy"));

  give_turn(puppet, call);
  return status;
}

/* ---- work, history, commits ------------------------------------------------------------------ */

static dk_status
give_one_work(struct puppet *puppet, struct dk_call *call, const struct dk_work *work)
{
  return puppet->host->work(call, work);
}

static dk_status
work_without_item(struct puppet *puppet, struct dk_call *call)
{
  struct dk_work work = a_work(NULL, "t");

  return give_one_work(puppet, call, &work);
}

static dk_status
work_without_instance(struct puppet *puppet, struct dk_call *call)
{
  struct dk_item item = an_activity(1);
  struct dk_work work = a_work(&item, "t");

  return give_one_work(puppet, call, &work);
}

static dk_status
work_attempt_zero(struct puppet *puppet, struct dk_call *call)
{
  struct dk_item item = an_item("inst");
  struct dk_work work = a_work(&item, "t");

  work.attempt = 0;
  return give_one_work(puppet, call, &work);
}

static dk_status
work_lease_too_long(struct puppet *puppet, struct dk_call *call)
{
  struct dk_item item = an_item("inst");
  struct dk_work work = a_work(&item, "t");

  work.lease_left_ms = INT64_MAX;
  return give_one_work(puppet, call, &work);
}

static dk_status
work_lease_over(struct puppet *puppet, struct dk_call *call)
{
  struct dk_item item = an_item("inst");
  struct dk_work work = a_work(&item, "t");

  work.lease_left_ms = -5;
  return give_one_work(puppet, call, &work);
}

static dk_status
half_an_item(struct puppet *puppet, struct dk_call *call)
{
  struct dk_item item = an_item("inst");
  struct dk_work work = a_work(&item, "t");

  work.struct_size = offsetof(struct dk_work, item) + 4;
  return give_one_work(puppet, call, &work);
}

static dk_status
give_item(struct puppet *puppet, struct dk_call *call, struct dk_bytes id, struct dk_bytes session,
          struct dk_bytes tag)
{
  struct dk_item item = an_item("inst");
  struct dk_work work = a_work(&item, "t");

  item.id = id;
  item.session = session;
  item.tag = tag;
  return give_one_work(puppet, call, &work);
}

static dk_status
empty_work_id(struct puppet *puppet, struct dk_call *call)
{
  return give_item(puppet, call, text(""), text(NULL), text(NULL));
}

static dk_status
session_of_other_bytes(struct puppet *puppet, struct dk_call *call)
{
  return give_item(puppet, call, text(NULL), text("\xc3"), text(NULL));
}

static dk_status
tag_with_nul(struct puppet *puppet, struct dk_call *call)
{
  return give_item(puppet, call, text(NULL), text(NULL), (struct dk_bytes){"a\0", 2});
}

static dk_status
too_much_work(struct puppet *puppet, struct dk_call *call)
{
  struct dk_item item = an_item("inst");
  struct dk_work work = a_work(&item, "t");

  for (int i = 0; i < 3; i++)
    TRY(puppet->host->work(call, &work));
  return DK_OK;
}

static dk_status
event_without_execution(struct puppet *puppet, struct dk_call *call)
{
  struct dk_event event = {.event_id = 5};

  return puppet->host->event(call, &event);
}

static dk_status
give_history(struct puppet *puppet, struct dk_call *call, uint64_t from, uint64_t to)
{
  struct dk_execution execution = {.struct_size = sizeof(execution), .execution_id = 1};

  TRY(puppet->host->execution(call, &execution));
  for (struct dk_event event = {.event_id = from}; event.event_id <= to; event.event_id++)
    TRY(puppet->host->event(call, &event));
  return DK_OK;
}

static dk_status
event_too_early(struct puppet *puppet, struct dk_call *call)
{
  return give_history(puppet, call, 2, 5);
}

static dk_status
too_many_events(struct puppet *puppet, struct dk_call *call)
{
  return give_history(puppet, call, 3, 5);
}

static dk_status
two_executions(struct puppet *puppet, struct dk_call *call)
{
  TRY(give_history(puppet, call, 1, 0));
  return give_history(puppet, call, 1, 0);
}

static dk_status
two_reports(struct puppet *puppet, struct dk_call *call)
{
  struct dk_cancel_report report = {.struct_size = sizeof(report)};

  puppet->host->cancelled_rows(call, &report);
  puppet->host->cancelled_rows(call, &report);
  return DK_OK;
}

static dk_status
stolen_by_enqueue(struct puppet *puppet, struct dk_call *call)
{
  struct dk_stolen stolen = {.struct_size = sizeof(stolen)};

  puppet->host->stolen(call, &stolen);
  return DK_OK;
}

static dk_status
stolen_from_nobody(struct puppet *puppet, struct dk_call *call)
{
  struct dk_stolen stolen = {
    .struct_size = sizeof(stolen), .lock_token = text("t"), .owner = text("")};

  puppet->host->stolen(call, &stolen);
  return DK_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

static dk_status
call_enqueue(struct puppet *puppet)
{
  return enqueue(puppet);
}

static dk_status
call_fetch_turn(struct puppet *puppet)
{
  struct dk_turn *turn = NULL;

  return fetch_turn(puppet, &turn);
}

static dk_status
call_fetch_work(struct puppet *puppet)
{
  struct dk_fetch_work request = a_fetch_work(2);
  struct dk_works *works = NULL;

  return dk_store_fetch_work_item(puppet->store, puppet->caller, &request, &works);
}

static dk_status
call_ack(struct puppet *puppet)
{
  struct dk_turn_result result = a_result();

  return dk_store_ack_orchestration_item(puppet->store, puppet->caller, text("t"), &result, NULL);
}

static dk_status
call_read(struct puppet *puppet)
{
  struct dk_read_history request = {
    .struct_size = sizeof(request), .instance = text("i"), .from_event = 3, .max_events = 2};
  struct dk_history *history = NULL;

  return dk_store_read_history(puppet->store, puppet->caller, &request, &history);
}

struct row {
  const char *what;
  dk_status (*call)(struct puppet *puppet);
  act_fn *act;
  const char *clause;
  dk_status status;
};

static const struct row rows[] = {
  {"DK_OK after fail", call_fetch_turn, ok_after_fail, "ERR-2", DK_BUSY},
  {"an error without a text", call_enqueue, wordless, "ERR-2", DK_BUSY},
  {"another error than that of fail", call_enqueue, other_than_said, "ERR-2", DK_LOCK_LOST},
  {"fail with DK_OK", call_enqueue, fail_with_ok, "ERR-2", DK_INTERNAL},
  {"a number that is not a status", call_enqueue, no_status, "ERR-1", DK_INTERNAL},
  {"a status that the host does not know", call_enqueue, unknown_status, "ERR-1", 137},
  {"cancelled, but not by the host", call_fetch_turn, cancelled_by_itself, "ERR-1", DK_INTERNAL},
  {"nothing, by an enqueue", call_enqueue, nothing, "ERR-1", DK_INTERNAL},
  {"DK_OK without a turn", call_fetch_turn, empty_handed, "ERR-1", DK_INTERNAL},
  {"DK_OK without work", call_fetch_work, empty_handed, "ERR-1", DK_INTERNAL},
  {"no token", call_fetch_turn, no_token, "TOKEN-1", DK_INTERNAL},
  {"an empty token", call_fetch_turn, empty_token, "TOKEN-1", DK_INTERNAL},
  {"a NUL in a token", call_fetch_turn, token_with_nul, "TOKEN-1", DK_INTERNAL},
  {"a token too long", call_fetch_turn, long_token, "TOKEN-1", DK_INTERNAL},
  {"no instance", call_fetch_turn, no_instance, "TURN-4", DK_INTERNAL},
  {"a lease longer than requested", call_fetch_turn, lease_too_long, "TIME-2", DK_INTERNAL},
  {"a lease that has ended", call_fetch_turn, lease_over, "TIME-2", DK_INTERNAL},
  {"a NUL in a name", call_fetch_turn, name_with_nul, "TURN-4", DK_INTERNAL},
  {"a version too long", call_fetch_turn, version_too_long, "TURN-4", DK_INTERNAL},
  {"a parent that is not text", call_fetch_turn, parent_of_other_bytes, "TURN-4", DK_INTERNAL},
  {"bytes at NULL", call_fetch_turn, bytes_at_null, "ABI-4", DK_INTERNAL},
  {"no struct_size", call_fetch_turn, no_struct_size, "ABI-9", DK_INTERNAL},
  {"NULL for a struct", call_fetch_turn, turn_of_null, "ABI-9", DK_INTERNAL},
  {"two heads", call_fetch_turn, two_heads, "ABI-4", DK_INTERNAL},
  {"a message before its head", call_fetch_turn, message_first, "ABI-4", DK_INTERNAL},
  {"an event after a message", call_fetch_turn, event_after_message, "ABI-4", DK_INTERNAL},
  {"a turn without a message", call_fetch_turn, no_message, "TURN-2", DK_INTERNAL},
  {"attempt 0 of a message", call_fetch_turn, attempt_zero, "POISON-1", DK_INTERNAL},
  {"an empty id of a message", call_fetch_turn, empty_message_id, "QUEUE-6", DK_INTERNAL},
  {"a payload beyond the limit", call_fetch_turn, large_payload, "ERR-4", DK_INTERNAL},
  {"kv without the extension", call_fetch_turn, undeclared_kv, "ABI-3", DK_INTERNAL},
  {"the first event is missing", call_fetch_turn, first_event_missing, "TURN-13", DK_INTERNAL},
  {"the last event is missing", call_fetch_turn, last_event_missing, "TURN-13", DK_INTERNAL},
  {"all events are missing", call_fetch_turn, all_events_missing, "TURN-13", DK_INTERNAL},
  {"events of an unknown instance", call_fetch_turn, events_of_nobody, "TURN-13", DK_INTERNAL},
  {"event ids that do not ascend", call_fetch_turn, events_backwards, "HIST-1", DK_INTERNAL},
  {"work in a turn", call_fetch_turn, work_for_turn, "ABI-4", DK_INTERNAL},
  {"a result after fail", call_fetch_turn, result_after_fail, "ABI-4", DK_BUSY},
  {"work without its item", call_fetch_work, work_without_item, "WORK-3", DK_INTERNAL},
  {"work without an instance", call_fetch_work, work_without_instance, "WORK-3", DK_INTERNAL},
  {"attempt 0 of work", call_fetch_work, work_attempt_zero, "POISON-1", DK_INTERNAL},
  {"a longer lease of work", call_fetch_work, work_lease_too_long, "TIME-2", DK_INTERNAL},
  {"a lease of work that has ended", call_fetch_work, work_lease_over, "TIME-2", DK_INTERNAL},
  {"a size that ends inside a member", call_fetch_work, half_an_item, "ABI-9", DK_INTERNAL},
  {"an empty id of work", call_fetch_work, empty_work_id, "WORK-3", DK_INTERNAL},
  {"a session that is not text", call_fetch_work, session_of_other_bytes, "WORK-3", DK_INTERNAL},
  {"a NUL in a tag", call_fetch_work, tag_with_nul, "WORK-3", DK_INTERNAL},
  {"more work than requested", call_fetch_work, too_much_work, "WORK-8", DK_INTERNAL},
  {"an event before its execution", call_read, event_without_execution, "ABI-4", DK_INTERNAL},
  {"an event before from_event", call_read, event_too_early, "HIST-3", DK_INTERNAL},
  {"more events than requested", call_read, too_many_events, "HIST-3", DK_INTERNAL},
  {"two executions", call_read, two_executions, "ABI-4", DK_INTERNAL},
  {"two reports of a commit", call_ack, two_reports, "ABI-4", DK_OK},
  {"an empty owner of a stolen row", call_ack, stolen_from_nobody, "CANCEL-6", DK_OK},
  {"a stolen row in an enqueue", call_enqueue, stolen_by_enqueue, "ABI-4", DK_OK},
};

static void
test_row(const struct row *row)
{
  struct puppet puppet = {.act = row->act};

  puppet_open(&puppet, NULL);
  dk_status status = row->call(&puppet);
  cmp_ok(status, "==", row->status, "%s: the status that counts", row->what);
  is(puppet.clause, row->clause, "its clause: %s", puppet.text);
  /* A provider that hands something up after fail also returns another status than that upcall
   * answered. */
  cmp_ok(puppet.violations, "==", row->act == result_after_fail ? 2 : 1, "reported once");
  ok(status == DK_OK || failure_text(&puppet)[0], "with a text for the caller: %s",
     failure_text(&puppet));
  puppet.act = NULL;
  cmp_ok(call_fetch_turn(&puppet), "==", DK_OK, "the next call succeeds");
  puppet_close(&puppet);
}

int
main(void)
{
  plan(NO_PLAN);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    test_row(&rows[i]);
  return done_testing();
}
