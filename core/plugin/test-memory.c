/* SPDX-License-Identifier: Apache-2.0 */
/* What the host reports about undefined and missing bytes that are handed up.  Under Valgrind (make
 * check-valgrind, tests/valgrind.sh) each case is found; natively nothing is checked, and the same
 * calls must succeed. */
#include <stdlib.h>
#include <string.h>

#include "config.h"

#include "conformance/tap/tap.h"
#include "core/plugin/memory.h"
#include "core/plugin/testing/puppet.h"

#if HAVE_VALGRIND
#include <valgrind/memcheck.h>

/* These findings are expected: Valgrind need not print them, but still detects them. */
static void
begin_quiet(void)
{
  VALGRIND_DISABLE_ERROR_REPORTING;
}

static void
end_quiet(void)
{
  VALGRIND_ENABLE_ERROR_REPORTING;
}

static void
make_undefined(void *bytes, size_t size)
{
  VALGRIND_MAKE_MEM_UNDEFINED(bytes, size);
}

static void
make_missing(void *bytes, size_t size)
{
  VALGRIND_MAKE_MEM_NOACCESS(bytes, size);
}

static void
make_defined(void *bytes, size_t size)
{
  VALGRIND_MAKE_MEM_DEFINED(bytes, size);
}

#else

static void begin_quiet(void) { }
static void end_quiet(void) { }

static void
make_undefined(void *bytes, size_t size)
{
  (void)bytes;
  (void)size;
}

static void
make_missing(void *bytes, size_t size)
{
  make_undefined(bytes, size);
}

static void
make_defined(void *bytes, size_t size)
{
  make_undefined(bytes, size);
}

#endif

/* ---- one defect, one operation --------------------------------------------------------------- */

enum { ROOM = 64 };

/* What is wrong in the next call: some bytes of a block or of a struct on the stack. */
struct defect {
  const char *clause, *text;   /* that the host must find */
  const char *operation;
  enum { IN_TURN, IN_MESSAGE, IN_EVENT, IN_WORK, IN_ITEM, IN_BYTES, IN_FAIL, IN_STOLEN,
         IN_REPORT, IN_EXECUTION, IN_STATUS, IN_LINE, IN_WAIT } place;
  size_t offset, size;
  bool missing;
};

/* In a block of its own, as a provider's rows are. */
static char *
four_bytes(void)
{
  char *bytes = malloc(ROOM);

  if (!bytes)
    abort();
  memset(bytes, 'x', ROOM);
  return bytes;
}

static void
spoil(const struct defect *defect, int place, void *bytes)
{
  char *at = (char *)bytes + defect->offset;

  if ((int)defect->place != place)
    return;
  if (defect->missing)
    make_missing(at, defect->size);
  else
    make_undefined(at, defect->size);
}

static dk_status
give_spoiled_turn(struct puppet *puppet, struct dk_call *call, const struct defect *defect,
                  char *bytes)
{
  const struct dk_host *host = puppet->host;
  struct dk_turn_head head = a_head();
  struct dk_event event = {.event_id = 1, .payload = {bytes, 4}};
  struct dk_message message = a_message("m1");
  dk_status status;

  head.known = 1;
  head.last_event_id = 1;
  head.history_from = 1;
  message.payload = (struct dk_bytes){bytes, 4};
  spoil(defect, IN_TURN, &head);
  spoil(defect, IN_EVENT, &event);
  spoil(defect, IN_MESSAGE, &message);
  status = host->turn(call, &head);
  if (status == DK_OK)
    status = host->event(call, &event);
  return status == DK_OK ? host->message(call, &message) : status;
}

static dk_status
give_spoiled_work(struct puppet *puppet, struct dk_call *call, const struct defect *defect,
                  char *bytes)
{
  struct dk_item item = an_activity(1);
  struct dk_work work = a_work(&item, "token");

  item.instance = text("inst");
  item.payload = (struct dk_bytes){bytes, 4};
  spoil(defect, IN_ITEM, &item);
  spoil(defect, IN_WORK, &work);
  return puppet->host->work(call, &work);
}

static dk_status
give_spoiled_outcome(struct puppet *puppet, struct dk_call *call, const struct defect *defect)
{
  struct dk_stolen stolen = {.struct_size = sizeof(stolen), .lock_token = text("token")};
  struct dk_cancel_report report = {.struct_size = sizeof(report), .locked_rows = 1};

  spoil(defect, IN_STOLEN, &stolen);
  spoil(defect, IN_REPORT, &report);
  puppet->host->stolen(call, &stolen);
  puppet->host->cancelled_rows(call, &report);
  return DK_OK;
}

static dk_status
give_spoiled_execution(struct puppet *puppet, struct dk_call *call, const struct defect *defect)
{
  struct dk_execution execution = {.struct_size = sizeof(execution), .execution_id = 1};

  spoil(defect, IN_EXECUTION, &execution);
  return puppet->host->execution(call, &execution);
}

/* An enqueue that fails, waits, logs or returns with something undefined. */
static dk_status
answer_spoiled(struct puppet *puppet, struct dk_call *call, const struct defect *defect,
               char *bytes)
{
  volatile dk_status status = DK_OK;
  volatile int64_t until = 0;

  spoil(defect, IN_STATUS, (void *)(uintptr_t)&status);
  spoil(defect, IN_WAIT, (void *)(uintptr_t)&until);
  if (defect->place == IN_FAIL)
    return failing(puppet, call, DK_BUSY, (struct dk_bytes){bytes, 4});
  if (defect->place == IN_LINE)
    puppet->host->log(puppet->host, 1, (struct dk_bytes){bytes, 4});
  if (defect->place == IN_WAIT && puppet->host->wait(call, -1, 0, until) == DK_INTERNAL)
    return DK_INTERNAL;
  return status;
}

static dk_status
act_with_defect(struct puppet *puppet, struct dk_call *call)
{
  const struct defect *defect = puppet->data;
  const char *operation = puppet->operation;
  char *bytes = four_bytes();
  dk_status status;

  spoil(defect, IN_BYTES, bytes);
  spoil(defect, IN_FAIL, bytes);
  spoil(defect, IN_LINE, bytes);
  if (strcmp(operation, "fetch_turn") == 0)
    status = give_spoiled_turn(puppet, call, defect, bytes);
  else if (strcmp(operation, "fetch_work") == 0)
    status = give_spoiled_work(puppet, call, defect, bytes);
  else if (strcmp(operation, "commit") == 0)
    status = give_spoiled_outcome(puppet, call, defect);
  else if (strcmp(operation, "read_history") == 0)
    status = give_spoiled_execution(puppet, call, defect);
  else
    status = answer_spoiled(puppet, call, defect, bytes);
  make_defined(bytes, ROOM);
  free(bytes);
  return status;
}

static dk_status
call_operation(struct puppet *puppet, const char *operation)
{
  struct dk_fetch_work work = a_fetch_work(1);
  struct dk_turn_result result = a_result();
  struct dk_read_history history = {.struct_size = sizeof(history), .instance = text("inst")};
  struct dk_commit_outcome outcome;
  struct dk_turn *turn;
  struct dk_works *works;
  struct dk_history *read;

  if (strcmp(operation, "fetch_orchestration_item") == 0)
    return fetch_turn(puppet, &turn);
  if (strcmp(operation, "fetch_work_item") == 0)
    return dk_store_fetch_work_item(puppet->store, puppet->caller, &work, &works);
  if (strcmp(operation, "ack_orchestration_item") == 0)
    return dk_store_ack_orchestration_item(puppet->store, puppet->caller, text("token"), &result,
                                           &outcome);
  if (strcmp(operation, "read_history") == 0)
    return dk_store_read_history(puppet->store, puppet->caller, &history, &read);
  return enqueue(puppet);
}

#define FETCH_TURN "fetch_orchestration_item"
#define FETCH_WORK "fetch_work_item"
#define COMMIT "ack_orchestration_item"
#define ENQUEUE "enqueue_for_orchestrator"
#define OF(type, member) offsetof(struct type, member), sizeof(((struct type *)NULL)->member)

static const struct defect defects[] = {
  {"MEM-1", "turn: head.birth, byte 1 of 8 is undefined", FETCH_TURN, IN_TURN,
   OF(dk_turn_head, birth), false},
  {"MEM-1", "turn: head.name (ptr and len), byte 1 of 16 is undefined", FETCH_TURN, IN_TURN,
   OF(dk_turn_head, name), false},
  {"MEM-1", "turn: struct_size, byte 1 of 4 is undefined", FETCH_TURN, IN_TURN,
   OF(dk_turn_head, struct_size), false},
  {"MEM-1", "event: event.event_id, byte 8 of 8 is undefined", FETCH_TURN, IN_EVENT, 7, 1, false},
  {"MEM-1", "message: message.enqueued_at, byte 1 of 8 is undefined", FETCH_TURN, IN_MESSAGE,
   OF(dk_message, enqueued_at), false},
  {"MEM-1", "event: event.payload, byte 2 of 4 is undefined", FETCH_TURN, IN_BYTES, 1, 1, false},
  {"MEM-1", "work: item.payload, byte 3 of 4 is undefined", FETCH_WORK, IN_BYTES, 2, 2, false},
  {"MEM-2", "work: item.payload, byte 4 of 4 is not there: beyond its block, or freed", FETCH_WORK,
   IN_BYTES, 3, ROOM - 3, true},
  {"MEM-1", "work: work.item, byte 1 of 8 is undefined", FETCH_WORK, IN_WORK, OF(dk_work, item),
   false},
  {"MEM-1", "work: item.visible_at, byte 1 of 8 is undefined", FETCH_WORK, IN_ITEM,
   OF(dk_item, visible_at), false},
  {"MEM-1", "stolen: stolen.activity_id, byte 1 of 8 is undefined", COMMIT, IN_STOLEN,
   OF(dk_stolen, activity_id), false},
  {"MEM-1", "cancelled_rows: report.free_rows, byte 1 of 8 is undefined", COMMIT, IN_REPORT,
   OF(dk_cancel_report, free_rows), false},
  {"MEM-1", "execution: execution.completed_at, byte 1 of 8 is undefined", "read_history",
   IN_EXECUTION, OF(dk_execution, completed_at), false},
  {"MEM-1", "fail: why, byte 1 of 4 is undefined", ENQUEUE, IN_FAIL, 0, 1, false},
  {"MEM-1", "line, byte 4 of 4 is undefined", "log", IN_LINE, 3, 1, false},
  {"MEM-1", "wait: until, byte 1 of 8 is undefined", ENQUEUE, IN_WAIT, 0, 8, false},
  {"MEM-1", "enqueue_for_orchestrator returned: the status, byte 1 of 4 is undefined", ENQUEUE,
   IN_STATUS, 0, 4, false},
};

static void
judge(struct puppet *puppet, const struct defect *defect, dk_status status)
{
  bool is_watched = dk_memory_is_watched();

  /* A caller to which the defect is reported does not get what is spoiled; a log line, a stolen row
   * and the report have no answer, and a call that fails anyway fails as before. */
  bool refused = defect->place != IN_LINE && defect->place != IN_STOLEN &&
                 defect->place != IN_REPORT;
  dk_status natively = defect->place == IN_FAIL ? DK_BUSY : DK_OK;

  cmp_ok(status, "==", is_watched && refused ? DK_INTERNAL : natively, "%s", defect->text);
  cmp_ok(puppet->violations > 0, "==", is_watched, "is reported under Valgrind");
  is(puppet->clause, is_watched ? defect->clause : "", "under its clause");
  is(puppet->text, is_watched ? defect->text : "", "with this text");
  is(puppet->violated_in, is_watched ? defect->operation : "", "of this operation");
}

static void
test_defect(const struct defect *defect)
{
  struct puppet puppet = {.act = act_with_defect, .data = (void *)(uintptr_t)defect};
  const char *operation = strcmp(defect->operation, "log") == 0 ? ENQUEUE : defect->operation;

  puppet_open(&puppet, NULL);
  begin_quiet();
  dk_status status = call_operation(&puppet, operation);
  end_quiet();
  judge(&puppet, defect, status);
  dk_caller_reset(puppet.caller);
  puppet_close(&puppet);
}

/* Nothing is wrong: nothing is found, watched or not. */
static void
test_innocent(void)
{
  static const struct defect none = {.place = IN_STATUS, .size = 0};
  static const char *const operations[] = {FETCH_TURN, FETCH_WORK, COMMIT, "read_history", ENQUEUE};
  struct puppet puppet = {.act = act_with_defect, .data = (void *)(uintptr_t)&none};

  puppet_open(&puppet, NULL);
  for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
    cmp_ok(call_operation(&puppet, operations[i]), "==", DK_OK, "%s: all is written",
           operations[i]);
  cmp_ok(puppet.violations, "==", 0, "nothing is reported: %s", puppet.text);
  puppet_close(&puppet);
}

/* ---- what comes by value, with no operation around it ---------------------------------------- */

static dk_status
open_with_undefined_handle(const struct dk_host *host, struct dk_call *call,
                           const struct dk_open *open, void **ret_self)
{
  struct puppet *puppet = (struct puppet *)(uintptr_t)host->service(host, "test.puppet/1");

  (void)call;
  (void)open;
  *ret_self = puppet;
  make_undefined(ret_self, sizeof(*ret_self));
  return DK_OK;
}

static const void *
extension_undefined(void *self, const char *id)
{
  const void *volatile nothing = NULL;

  (void)self;
  (void)id;
  make_undefined((void *)(uintptr_t)&nothing, sizeof(nothing));
  return nothing;
}

static void
test_values(void)
{
  struct puppet first = {.n = 0}, second = {.n = 0};
  struct puppet_descriptor descriptor;
  bool is_watched = dk_memory_is_watched();

  puppet_describe(&descriptor);
  descriptor.provider.open = open_with_undefined_handle;
  cmp_ok(puppet_open(&first, &descriptor), "==", is_watched ? DK_INTERNAL : DK_OK,
         "a handle that is undefined");
  is(first.text, is_watched ? "open: *ret_self, byte 1 of 8 is undefined" : "", "is reported");
  puppet_close(&first);

  puppet_describe(&descriptor);
  descriptor.provider.extension = extension_undefined;
  cmp_ok(puppet_open(&second, &descriptor), "==", DK_OK, "an extension that is undefined");
  is(second.text, is_watched ? "the pointer returned, byte 1 of 8 is undefined" : "",
     "is reported");
  is(second.violated_in, is_watched ? "extension" : "", "of the call that returned it");
  puppet_close(&second);
}

int
main(void)
{
  plan(NO_PLAN);
  diag("%s", dk_memory_is_watched() ? "under Valgrind" : "natively: nothing is watched");
  test_innocent();
  for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++)
    test_defect(&defects[i]);
  test_values();
  return done_testing();
}
