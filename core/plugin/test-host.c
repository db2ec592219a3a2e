/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: results are provisional and the caller's own; failures have texts; structs of other sizes,
 * of either side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/plugin/call.h"
#include "core/plugin/testing/puppet.h"

/* With the NUL that results have behind them. */
static bool
is_text(struct dk_bytes bytes, const char *expected)
{
  return bytes.ptr && bytes.len == strlen(expected) &&
         memcmp(bytes.ptr, expected, bytes.len + 1) == 0;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Known, with three events and two messages, all from memory that is overwritten after each
 * upcall. */
static dk_status
give_known_turn(struct puppet *puppet, struct dk_call *call)
{
  const struct dk_host *host = puppet->host;
  char buffer[16];
  struct dk_turn_head head = a_head();

  head.known = 1;
  head.name = text("order");
  head.execution_id = 2;
  head.last_event_id = 7;
  head.history_from = 4;
  TRY(host->turn(call, &head));
  for (uint64_t id = 4; id <= 7; id++) {
    struct dk_event event = {.event_id = id};
    snprintf(buffer, sizeof(buffer), "event %d", (int)id);
    event.payload = text(buffer);
    TRY(host->event(call, &event));
  }
  for (int i = 0; i < 40; i++) {
    struct dk_message message;
    snprintf(buffer, sizeof(buffer), "m%d", i);
    message = a_message(buffer);
    message.payload = (struct dk_bytes){"", 0};
    TRY(host->message(call, &message));
  }
  memset(buffer, 'x', sizeof(buffer));
  return DK_OK;
}

static void
test_turn(void)
{
  struct puppet puppet = {.act = give_known_turn};
  struct dk_turn *turn = NULL, *second = NULL;

  cmp_ok(puppet_open(&puppet, NULL), "==", DK_OK, "the puppet opens");
  cmp_ok(fetch_turn(&puppet, &turn), "==", DK_OK, "a turn is fetched");
  ok(is_text(turn->head.lock_token, "turn-token"), "its token");
  ok(is_text(turn->head.name, "order"), "its name");
  ok(!turn->head.version.ptr, "what is absent stays absent");
  cmp_ok(turn->n_events, "==", 4, "all events");
  cmp_ok(turn->events[3].event_id, "==", 7, "in their order");
  ok(is_text(turn->events[0].payload, "event 4"), "copied at once");
  cmp_ok(turn->n_messages, "==", 40, "all messages");
  ok(is_text(turn->messages[39].id, "m39"), "in their order");
  ok(turn->messages[0].payload.ptr && turn->messages[0].payload.len == 0, "empty stays empty");
  cmp_ok(turn->deadline, ">", dk_clock_system()->now(dk_clock_system()) + 29000,
         "the deadline is on the host's clock");
  cmp_ok(fetch_turn(&puppet, &second), "==", DK_OK, "a second turn");
  ok(is_text(turn->messages[39].id, "m39"), "leaves the first as it is");
  cmp_ok(dk_caller_failure(puppet.caller)->status, "==", DK_OK, "no failure is reported");
  cmp_ok(puppet.violations, "==", 0, "and no rule was broken: %s", puppet.text);
  puppet_close(&puppet);
}

static void
test_works(void)
{
  struct puppet puppet = {.act = NULL};
  struct dk_fetch_work request = a_fetch_work(20);
  struct dk_works *works = NULL;

  puppet_open(&puppet, NULL);
  cmp_ok(dk_store_fetch_work_item(puppet.store, puppet.caller, &request, &works), "==", DK_OK,
         "work is fetched");
  cmp_ok(works->n_items, "==", 20, "as many as were asked for");
  ok(works->items[19].work.item == &works->items[19].item, "each row has its item");
  cmp_ok(works->items[19].item.activity_id, "==", 20, "and its own");
  ok(is_text(works->items[19].work.lock_token, "work-19"), "and its token");
  puppet_close(&puppet);
}

static dk_status
give_history(struct puppet *puppet, struct dk_call *call)
{
  struct dk_execution execution = {.struct_size = sizeof(execution),
                                   .status = DK_COMPLETED,
                                   .execution_id = 3,
                                   .last_event_id = 1,
                                   .output = text("42")};
  struct dk_event event = {.event_id = 1, .payload = text("e")};

  if (puppet->n == 0)
    return DK_OK;
  TRY(puppet->host->execution(call, &execution));
  return puppet->host->event(call, &event);
}

static void
test_history(void)
{
  struct puppet puppet = {.act = give_history};
  struct dk_read_history request = {.struct_size = sizeof(request), .instance = text("inst")};
  struct dk_history *history = NULL;

  puppet_open(&puppet, NULL);
  cmp_ok(dk_store_read_history(puppet.store, puppet.caller, &request, &history), "==", DK_OK,
         "a history that does not exist is read");
  cmp_ok(history->found, "==", 0, "and reported as absent");
  puppet.n = 1;
  dk_store_read_history(puppet.store, puppet.caller, &request, &history);
  cmp_ok(history->found, "==", 1, "one that exists is found");
  ok(is_text(history->execution.output, "42"), "with its output");
  cmp_ok(history->n_events, "==", 1, "and its events");
  puppet_close(&puppet);
}

static dk_status
commit_with_stolen(struct puppet *puppet, struct dk_call *call)
{
  struct dk_stolen stolen = {.struct_size = sizeof(stolen),
                             .execution_id = 1,
                             .activity_id = 5,
                             .lock_token = text("t"),
                             .owner = text("worker")};
  struct dk_cancel_report report = {
    .struct_size = sizeof(report), .free_rows = 2, .locked_rows = 1};

  puppet->host->stolen(call, &stolen);
  puppet->host->cancelled_rows(call, &report);
  return DK_OK;
}

static void
test_commit(void)
{
  struct puppet puppet = {.act = commit_with_stolen};
  struct dk_turn_result result = a_result();
  struct dk_commit_outcome outcome;

  puppet_open(&puppet, NULL);
  cmp_ok(dk_store_ack_orchestration_item(puppet.store, puppet.caller, text("t"), &result, &outcome),
         "==", DK_OK, "a commit");
  cmp_ok(outcome.reported, "==", 1, "reports");
  cmp_ok(outcome.report.free_rows, "==", 2, "what it deleted");
  cmp_ok(outcome.n_stolen, "==", 1, "and from whom");
  ok(is_text(outcome.stolen[0].owner, "worker"), "by owner");
  cmp_ok(outcome.incomplete, "==", 0, "all of it");
  cmp_ok(dk_store_ack_orchestration_item(puppet.store, puppet.caller, text("t"), &result, NULL),
         "==", DK_OK, "the outcome is optional");
  puppet_close(&puppet);
}

/* ---- failures -------------------------------------------------------------------------------- */

static dk_status
fail_after_results(struct puppet *puppet, struct dk_call *call)
{
  TRY(give_turn(puppet, call));
  return failing(puppet, call, DK_BUSY, (struct dk_bytes){"held by an\0other", 16});
}

static dk_status
nothing(struct puppet *puppet, struct dk_call *call)
{
  (void)puppet;
  (void)call;
  return DK_NOTHING;
}

static dk_status
reset_and_try_again(struct puppet *puppet, struct dk_call *call)
{
  fail_after_results(puppet, call);
  puppet->host->reset(call);
  return give_turn(puppet, call);
}

static void
test_failures(void)
{
  struct puppet puppet = {.act = fail_after_results};
  struct dk_turn *turn = NULL;

  puppet_open(&puppet, NULL);
  struct dk_arena_mark before = dk_arena_mark(&puppet.caller->arena);
  cmp_ok(fetch_turn(&puppet, &turn), "==", DK_BUSY, "a call fails");
  const struct dk_failure *failure = dk_caller_failure(puppet.caller);
  ok(!turn, "what it had handed up is dropped");
  is(failure->text, "held by an?other", "its text, without the NUL");
  is(failure->operation, "fetch_orchestration_item", "its operation");
  cmp_ok(failure->status, "==", DK_BUSY, "its status");
  cmp_ok(failure->by_host, "==", 0, "it was the provider's");
  puppet.act = nothing;
  cmp_ok(fetch_turn(&puppet, &turn), "==", DK_NOTHING, "nothing is found");
  is(failure->text, "", "which has no text");
  struct dk_arena_mark after = dk_arena_mark(&puppet.caller->arena);
  cmp_ok(after.used, "==", before.used, "neither takes memory");
  puppet.act = reset_and_try_again;
  cmp_ok(fetch_turn(&puppet, &turn), "==", DK_OK, "after reset it is done again");
  cmp_ok(turn->n_messages, "==", 1, "with the second attempt's results only");
  is(failure->text, "", "and without the first one's failure");
  cmp_ok(puppet.violations, "==", 0, "and no rule was broken: %s", puppet.text);
  puppet_close(&puppet);
}

static dk_status
open_after_fail(const struct dk_host *host, struct dk_call *call, const struct dk_open *open,
                void **ret_self)
{
  struct puppet *puppet = (struct puppet *)(uintptr_t)host->service(host, "test.puppet/1");

  (void)open;
  puppet->host = host;
  puppet->is_open = true;
  *ret_self = puppet;
  failing(puppet, call, DK_BUSY, text("busy"));
  return DK_OK;
}

/* A handle is closed even if open has failed. */
static void
test_open_after_fail(void)
{
  struct puppet puppet = {.act = NULL};
  struct puppet_descriptor described;

  puppet_describe(&described);
  described.provider.open = open_after_fail;
  cmp_ok(puppet_open(&puppet, &described), "==", DK_BUSY, "an open that fails and returns DK_OK");
  is(puppet.clause, "ERR-2", "is reported as: %s", puppet.text);
  ok(!puppet.is_open, "and what it opened is closed");
  puppet_close(&puppet);
}

static void
test_open_failure(void)
{
  struct puppet puppet = {.open_status = DK_NOT_FOUND};
  struct puppet_descriptor described;

  cmp_ok(puppet_open(&puppet, NULL), "==", DK_NOT_FOUND, "open may fail");
  is(failure_text(&puppet), "the puppet does not open", "with its text");
  ok(!puppet.store, "and gives no store");
  cmp_ok(puppet.violations, "==", 0, "no rule was broken: %s", puppet.text);

  struct dk_setting setting = {.key = "stroe", .value = text("x")};
  cmp_ok(dk_store_open(puppet.library, &puppet.options, puppet.caller, 0, &setting, 1,
                       &puppet.store), "==", DK_INVALID, "an unknown setting is refused");
  ok(strstr(failure_text(&puppet), "there is no setting 'stroe'"), "by name: %s",
     failure_text(&puppet));
  cmp_ok(dk_store_open(puppet.library, &puppet.options, puppet.caller, 64, NULL, 0, &puppet.store),
         "==", DK_UNSUPPORTED, "so is a flag");
  puppet.options.struct_size = 0;
  cmp_ok(dk_store_destroy(puppet.library, &puppet.options, puppet.caller, NULL, 0), "==",
         DK_INVALID, "options without their size are refused");
  ok(strstr(failure_text(&puppet), "options.struct_size: expected"), "by name: %s",
     failure_text(&puppet));
  puppet_close(&puppet);

  puppet_describe(&described);
  described.provider.clocks = DK_CLOCK_STORE;
  puppet.open_status = DK_OK;
  cmp_ok(puppet_open(&puppet, &described), "==", DK_OK, "a store's own clock");
  struct dk_store *store = NULL;
  cmp_ok(dk_store_open(puppet.library, &puppet.options, puppet.caller, DK_OPEN_HOST_CLOCK, NULL, 0,
                       &store), "==", DK_UNSUPPORTED, "is not the host's");
  cmp_ok(dk_store_destroy(puppet.library, &puppet.options, puppet.caller, NULL, 0), "==", DK_OK,
         "a store is destroyed");
  is(puppet.operation, "destroy", "by the provider");
  puppet_close(&puppet);
}

/* ---- leases that have ended ------------------------------------------------------------------ */

/* Time passes only when a test advances it. */
struct hand_clock {
  struct dk_clock clock;
  int64_t now;
};

static int64_t
hand_now(struct dk_clock *clock)
{
  return ((struct hand_clock *)clock)->now;
}

static dk_status
hand_wait(struct dk_clock *clock, const struct dk_wait *wait)
{
  (void)clock;
  (void)wait;
  return DK_NOTHING;
}

static struct hand_clock
a_hand_clock(void)
{
  return (struct hand_clock){.clock = {.now = hand_now, .wait = hand_wait}, .now = 1000};
}

/* The lease is handed up in time, then `n` ms pass: the sync of a slow disk. */
static dk_status
give_turn_slowly(struct puppet *puppet, struct dk_call *call)
{
  struct hand_clock *clock = puppet->data;
  dk_status status = give_turn(puppet, call);

  clock->now += puppet->n;
  return status;
}

static void
test_overdue_turn(void)
{
  struct hand_clock clock = a_hand_clock();
  struct puppet puppet = {
    .act = give_turn_slowly, .data = &clock, .n = 30000, .options = {.clock = &clock.clock}};
  struct dk_turn *turn = NULL;

  puppet_open(&puppet, NULL);
  cmp_ok(fetch_turn(&puppet, &turn), "==", DK_BUSY, "a turn whose lease has ended is not returned");
  ok(!turn, "not even in part");
  is(failure_text(&puppet),
     "fetch_orchestration_item: the turn of instance inst came too late: its lease of 30000 ms had "
     "ended 0 ms before; it can be fetched again; give longer leases, or a faster store",
     "which the text says");
  const struct dk_overdue *overdue = dk_caller_overdue(puppet.caller);
  ok(overdue->turn && is_text(overdue->turn->head.instance, "inst"),
     "the caller learns whose it is");
  cmp_ok(overdue->turn ? overdue->turn->messages[0].attempt : 0, "==", 1, "and which attempt");
  puppet.n = 29999;
  cmp_ok(fetch_turn(&puppet, &turn), "==", DK_OK, "a lease of one more millisecond is returned");
  ok(turn && !dk_caller_overdue(puppet.caller)->turn, "and nothing is overdue any more");
  cmp_ok(puppet.violations, "==", 0, "no rule was broken: %s", puppet.text);
  puppet_close(&puppet);
}

/* Every second lease is short: 10 ms; then `n` ms pass. */
static dk_status
give_works_slowly(struct puppet *puppet, struct dk_call *call)
{
  struct hand_clock *clock = puppet->data;

  for (uint32_t i = 0; i < 4; i++) {
    char token[32];
    struct dk_item item = an_activity(i + 1);
    snprintf(token, sizeof(token), "work-%u", i);
    item.instance = text("inst");
    struct dk_work work = a_work(&item, token);
    work.lease_left_ms = i % 2 == 0 ? 10 : 30000;
    TRY(puppet->host->work(call, &work));
  }
  clock->now += puppet->n;
  return DK_OK;
}

static bool
has_activity(const struct dk_work_item *items, size_t n, uint64_t activity_id)
{
  bool found = false;

  for (size_t i = 0; i < n; i++)
    found |= items[i].work.item == &items[i].item && items[i].item.activity_id == activity_id;
  return found;
}

static void
test_overdue_works(void)
{
  struct hand_clock clock = a_hand_clock();
  struct puppet puppet = {
    .act = give_works_slowly, .data = &clock, .n = 10, .options = {.clock = &clock.clock}};
  struct dk_fetch_work request = a_fetch_work(4);
  struct dk_works *works = NULL;

  puppet_open(&puppet, NULL);
  cmp_ok(dk_store_fetch_work_item(puppet.store, puppet.caller, &request, &works), "==", DK_OK,
         "of four activities two come in time");
  cmp_ok(works->n_items, "==", 2, "and are returned");
  ok(has_activity(works->items, 2, 2) && has_activity(works->items, 2, 4), "the right ones");
  const struct dk_overdue *overdue = dk_caller_overdue(puppet.caller);
  cmp_ok(overdue->n_items, "==", 2, "the others are overdue");
  ok(has_activity(overdue->items, 2, 1) && has_activity(overdue->items, 2, 3), "those");

  puppet.n = 30000;
  works = NULL;
  cmp_ok(dk_store_fetch_work_item(puppet.store, puppet.caller, &request, &works), "==", DK_BUSY,
         "if all are late the answer is DK_BUSY");
  ok(!works, "and nothing is returned");
  ok(strstr(failure_text(&puppet), "fetch_work_item: the activity of instance inst came too late"),
     "which the text says: %s", failure_text(&puppet));
  cmp_ok(dk_caller_overdue(puppet.caller)->n_items, "==", 4, "all are overdue");
  dk_caller_reset(puppet.caller);
  cmp_ok(dk_caller_overdue(puppet.caller)->n_items, "==", 0, "until the caller forgets them");
  puppet_close(&puppet);
}

/* ---- memory of the caller -------------------------------------------------------------------- */

static dk_status
give_endless_turn(struct puppet *puppet, struct dk_call *call)
{
  struct dk_turn_head head = a_head();
  struct dk_message message = a_message("m");

  TRY(puppet->host->turn(call, &head));
  for (int i = 0; i < 100000; i++)
    TRY(puppet->host->message(call, &message));
  return DK_OK;
}

static void
test_caller_in_region(void)
{
  enum { SIZE = 256 * 1024 };
  struct puppet puppet = {.act = give_endless_turn};
  char *region = malloc(SIZE);
  struct dk_caller *caller = dk_caller_new(region + 1, SIZE - 1);
  struct dk_fetch_turn request = a_fetch_turn();
  struct dk_turn *turn = NULL;

  ok(!dk_caller_new(region, 64), "a region may be too small for a caller");
  puppet_open(&puppet, NULL);
  cmp_ok(dk_store_fetch_orchestration_item(puppet.store, caller, &request, &turn), "==",
         DK_NO_MEMORY, "what does not fit the region is refused");
  cmp_ok(puppet.violations, "==", 0, "which is not the provider's fault: %s", puppet.text);
  puppet.act = NULL;
  cmp_ok(dk_store_fetch_orchestration_item(puppet.store, caller, &request, &turn), "==", DK_OK,
         "what fits is returned");
  ok((char *)turn > region && (char *)turn < region + SIZE, "in the region");
  dk_caller_reset(caller);
  cmp_ok(dk_store_fetch_orchestration_item(puppet.store, caller, &request, &turn), "==", DK_OK,
         "after a reset it is used again");
  dk_caller_free(caller);
  puppet_close(&puppet);
  free(region);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* A provider from before `visible_at` came in, so to speak; and one from a distant future. */
static dk_status
give_other_sizes(struct puppet *puppet, struct dk_call *call)
{
  struct {
    struct dk_message message;
    char future[64];
  } larger = {.message = a_message("larger")};
  struct dk_message smaller = a_message("smaller");
  struct dk_turn_head head = a_head();

  memset(larger.future, 0xff, sizeof(larger.future));
  larger.message.struct_size = sizeof(larger);
  smaller.struct_size = offsetof(struct dk_message, visible_at);
  TRY(puppet->host->turn(call, &head));
  TRY(puppet->host->message(call, &smaller));
  return puppet->host->message(call, &larger.message);
}

static void
test_sizes(void)
{
  struct puppet puppet = {.act = give_other_sizes};
  struct dk_turn *turn = NULL;

  puppet_open(&puppet, NULL);
  cmp_ok(fetch_turn(&puppet, &turn), "==", DK_OK, "structs of other sizes are taken");
  cmp_ok(turn->messages[0].visible_at, "==", 0, "what the smaller one lacks is zero");
  ok(is_text(turn->messages[0].payload, "payload"), "what it has is there");
  cmp_ok(turn->messages[1].visible_at, "==", 900, "the larger one has all");
  cmp_ok(turn->messages[1].struct_size, "==", sizeof(struct dk_message), "in the host's own size");
  puppet_close(&puppet);
}

/* The end of readable memory; nothing of a struct that ends there may be read beyond it. */
static char *
end_of_memory(void)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  mprotect(pages + page, page, PROT_NONE);
  return pages + page;
}

static void
free_memory_before(char *end)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);

  munmap(end - page, 2 * page);
}

/* Requests of an older caller, so to speak: what its structs lack is not read, even if the host
 * makes a copy for the lower thread models. */
static void
test_smaller_requests(void)
{
  static const uint32_t turn_sizes[] = {8, offsetof(struct dk_fetch_turn, ranges)};
  static const uint32_t work_sizes[] = {8, offsetof(struct dk_fetch_work, tags)};
  struct puppet puppet = {.act = nothing};
  struct puppet_descriptor described;
  struct dk_fetch_turn turn_request = a_fetch_turn();
  struct dk_fetch_work work_request = a_fetch_work(1);
  struct dk_turn *turn;
  struct dk_works *works;
  char *end = end_of_memory();

  puppet_describe(&described);
  described.provider.thread_model = DK_ONE_PER_HANDLE;
  puppet_open(&puppet, &described);
  dk_caller_set_unchecked(puppet.caller, 1);
  for (size_t i = 0; i < 2; i++) {
    turn_request.struct_size = turn_sizes[i];
    void *at = memcpy(end - turn_sizes[i], &turn_request, turn_sizes[i]);
    cmp_ok(dk_store_fetch_orchestration_item(puppet.store, puppet.caller, at, &turn), "==",
           DK_NOTHING, "a request for a turn of %u bytes is passed on", turn_sizes[i]);
    work_request.struct_size = work_sizes[i];
    at = memcpy(end - work_sizes[i], &work_request, work_sizes[i]);
    cmp_ok(dk_store_fetch_work_item(puppet.store, puppet.caller, at, &works), "==", DK_NOTHING,
           "and one for work of %u", work_sizes[i]);
  }
  puppet_close(&puppet);
  free_memory_before(end);
}

/* ---- upcalls without results ----------------------------------------------------------------- */

static dk_status
use_host(struct puppet *puppet, struct dk_call *call)
{
  const struct dk_host *host = puppet->host;

  puppet->n = host->cancelled(call) == 0 && host->cancel_fd(call) >= 0 && host->now(host) > 0 &&
              host->service(host, "durakit.no-such-thing/1") == NULL;
  host->log(host, 2, text("a line"));
  return DK_OK;
}

static void
test_upcalls(void)
{
  struct puppet puppet = {.act = use_host};

  puppet_open(&puppet, NULL);
  enqueue(&puppet);
  cmp_ok(puppet.n, "==", 1, "cancelled, cancel_fd, now and service answer");
  is(puppet.line, "a line", "log reaches the host");
  cmp_ok(puppet.logs, "==", 2, "with its level");
  ok(dk_store_extension(puppet.store, "durakit.inspect/1") == &puppet, "a declared extension");
  ok(!dk_store_extension(puppet.store, "durakit.kv/1"), "an undeclared one is not");
  puppet_close(&puppet);
}

static void
test_status_names(void)
{
  char buffer[32];

  is(dk_status_name(DK_LOCK_LOST, buffer, sizeof(buffer)), "DK_LOCK_LOST", "a status has a name");
  is(dk_status_name(137, buffer, sizeof(buffer)), "status 137", "or a number");
  cmp_ok(dk_status_class(DK_NOTHING), "==", 0, "class 0");
  cmp_ok(dk_status_class(137), "==", 1, "class 1, of an unknown status");
  cmp_ok(dk_status_class(DK_LOCK_LOST), "==", 2, "class 2");
  cmp_ok(dk_status_class(DK_OUTCOME_UNKNOWN), "==", 3, "class 3");
  cmp_ok(dk_status_class(-1), "==", 2, "what is no status is permanent");
}

int
main(void)
{
  plan(NO_PLAN);
  test_turn();
  test_works();
  test_history();
  test_commit();
  test_failures();
  test_open_failure();
  test_open_after_fail();
  test_overdue_turn();
  test_overdue_works();
  test_caller_in_region();
  test_sizes();
  test_smaller_requests();
  test_upcalls();
  test_status_names();
  return done_testing();
}
