/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a call: checks the request, waits at the turnstile, calls the provider, and checks its
 * answer. */
#include "core/plugin/call.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/sat.h"
#include "core/plugin/library.h"
#include "core/plugin/memory.h"
#include "core/plugin/status.h"
#include "core/plugin/store.h"

/* How often a fetch for which the host waits tries again, to find work that other processes have
 * committed or that has become due. */
enum { LOOK_AGAIN_MS = 200, VIOLATION_TEXT = 512 };

/* ---- words ----------------------------------------------------------------------------------- */

dk_status
dk_call_refuse(struct dk_call *call, dk_status status, const char *format, ...)
{
  struct dk_caller *caller = call->caller;
  va_list args;

  va_start(args, format);
  vsnprintf(caller->text, sizeof(caller->text), format, args);
  va_end(args);
  caller->failure = (struct dk_failure){
    .status = status,
    .operation = call->operation->name,
    .text = caller->text,
    .by_host = 1,
  };
  return status;
}

/* Reports the violation with this text, and writes the text into `text`. */
__attribute__((format(printf, 4, 0))) static void
format_violation(struct dk_call *call, const char *clause, char text[VIOLATION_TEXT],
                 const char *format, va_list args)
{
  vsnprintf(text, VIOLATION_TEXT, format, args);
  if (call->violation)
    call->violation(call->context, call->operation->name, clause, text);
}

void
dk_call_report(struct dk_call *call, const char *clause, const char *format, ...)
{
  char text[VIOLATION_TEXT];
  va_list args;

  va_start(args, format);
  format_violation(call, clause, text, format, args);
  va_end(args);
}

dk_status
dk_call_violated(struct dk_call *call, const char *clause, const char *format, ...)
{
  char text[VIOLATION_TEXT];
  va_list args;

  va_start(args, format);
  format_violation(call, clause, text, format, args);
  va_end(args);
  call->refused = dk_call_refuse(call, DK_INTERNAL, "the provider broke %s: %s", clause, text);
  call->caller->failure.by_host = 0;
  return call->refused;
}

/* ---- cancelling ------------------------------------------------------------------------------ */

bool
dk_call_is_cancelled(struct dk_call *call)
{
  const struct dk_canceller *canceller = call->caller->canceller;

  if ((canceller && atomic_load(&canceller->is_cancelled)) ||
      atomic_load(&call->store->is_closing))
    call->is_cancelled = true;
  return call->is_cancelled;
}

/* Two can cancel a call: its canceller, and the store when it closes.  One descriptor stands for
 * both, and is open as long as the call runs. */
static int
make_gate(int canceller_fd, int closing_fd)
{
  struct epoll_event readable = {.events = EPOLLIN};
  int gate = epoll_create1(EPOLL_CLOEXEC);

  if (gate < 0)
    return -1;
  if (epoll_ctl(gate, EPOLL_CTL_ADD, canceller_fd, &readable) != 0 ||
      epoll_ctl(gate, EPOLL_CTL_ADD, closing_fd, &readable) != 0) {
    close(gate);
    return -1;
  }
  return gate;
}

int
dk_call_cancel_fd(struct dk_call *call)
{
  const struct dk_canceller *canceller = call->caller->canceller;

  if (!canceller)
    return call->store->closing_fd;
  if (call->gate < 0)
    call->gate = make_gate(canceller->fd, call->store->closing_fd);
  return call->gate;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

void
dk_call_forget(struct dk_call *call)
{
  call->failed = DK_OK;
  call->refused = DK_OK;
  call->caller->text[0] = '\0';
  memset(&call->results, 0, sizeof(call->results));
  dk_arena_rewind(&call->caller->arena, call->begin);
}

static struct dk_call *
call_begin(struct dk_store *store, struct dk_caller *caller, const struct dk_operation *operation,
           const struct dk_request *request)
{
  struct dk_call *call = &caller->call;

  assert(!atomic_load(&call->is_running)); /* a caller makes one call at a time */
  memset(&call->results, 0, sizeof(call->results));
  call->operation = operation;
  call->request = request;
  call->caller = caller;
  call->store = store;
  call->violation = store->options.violation;
  call->context = store->options.context;
  call->is_cancelled = false;
  call->cancelled_waits = 0;
  call->gate = -1;
  call->failed = DK_OK;
  call->refused = DK_OK;
  call->begin = dk_arena_mark(&caller->arena);
  caller->text[0] = '\0';
  caller->failure = (struct dk_failure){.operation = operation->name, .text = caller->text};
  caller->overdue = (struct dk_overdue){.turn = NULL};
  return call;
}

static bool
is_overdue(const struct dk_caller *caller)
{
  return caller->overdue.turn || caller->overdue.n_items > 0;
}

/* A call that failed has no results, except overdue ones; a call that succeeded has no failure. */
static dk_status
end(struct dk_call *call, dk_status status)
{
  struct dk_caller *caller = call->caller;

  assert(!atomic_load(&call->is_running));
  if (status == DK_CALL_CANCELLED && !caller->text[0])
    snprintf(caller->text, sizeof(caller->text),
             "%s was cancelled: it was not answered in time, or is no longer needed",
             call->operation->name);

  if (call->gate >= 0)
    close(call->gate);
  call->gate = -1;
  if (status == DK_DUPLICATE) {
    caller->failure.list = call->results.duplicate_list;
    caller->failure.index = call->results.duplicate_index;
  }
  if (status == DK_OK) {
    caller->text[0] = '\0';
    caller->failure.by_host = 0;
  } else if (!is_overdue(caller)) {
    dk_arena_rewind(&caller->arena, call->begin);
  }
  caller->failure.status = status;
  return status;
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool
is_status(const struct dk_call *call, dk_status status)
{
  /* A newer provider may return codes that this host does not know; their class decides. */
  bool is_newer = call->store->library->provider.abi_minor > DK_ABI_MINOR;

  return dk_status_known_name(status) || (is_newer && status >= 100 && status <= 399);
}

/* Reports the violation, and gives its text to the caller if the provider has given none. */
__attribute__((format(printf, 3, 4))) static void
broke(struct dk_call *call, const char *clause, const char *format, ...)
{
  char text[VIOLATION_TEXT];
  va_list args;

  va_start(args, format);
  format_violation(call, clause, text, format, args);
  va_end(args);
  if (!call->caller->text[0])
    snprintf(call->caller->text, sizeof(call->caller->text), "the provider broke %s: %s", clause,
             text);
}

/* ERR-1: the answers that this operation must not give. */
static dk_status
judge_status(struct dk_call *call, dk_status status)
{
  const char *name = call->operation->name;

  if (!is_status(call, status))
    broke(call, "ERR-1", "%s returned %d, which is not a status", name, (int)status);
  else if (status == DK_NOTHING && !call->operation->may_find_nothing)
    broke(call, "ERR-1", "%s returned DK_NOTHING, which only a fetch may", name);
  else if (status == DK_CALL_CANCELLED && !dk_call_is_cancelled(call))
    broke(call, "ERR-1", "%s returned DK_CALL_CANCELLED, but the call was not cancelled", name);
  else
    return status;
  return status >= 100 && status <= 399 ? status : DK_INTERNAL;
}

/* ERR-2 and ABI-4: the returned status must match fail and the refused upcalls. */
static void
judge_words(struct dk_call *call, dk_status status)
{
  const char *name = call->operation->name;

  if (call->refused != DK_OK && status != call->refused)
    broke(call, "ABI-4", "%s returned %s after an upcall had answered %s", name,
          DK_STATUS_NAME(status), DK_STATUS_NAME(call->refused));
  else if (call->refused != DK_OK)
    return;
  else if (status == DK_OK && call->failed != DK_OK)
    broke(call, "ERR-2", "%s returned DK_OK after fail(%s): %s", name,
          DK_STATUS_NAME(call->failed), call->caller->text);
  else if (status >= 100 && call->failed == DK_OK)
    broke(call, "ERR-2", "%s returned %s without a text: fail was not called", name,
          DK_STATUS_NAME(status));
  else if (status >= 100 && call->failed != status)
    broke(call, "ERR-2", "%s returned %s after fail(%s)", name, DK_STATUS_NAME(status),
          DK_STATUS_NAME(call->failed));
  else if (status != DK_DUPLICATE && call->results.duplicate_list != 0)
    broke(call, "ACK-15", "%s returned %s after it had named a duplicate", name,
          DK_STATUS_NAME(status));
}

/* The status that is valid: a provider that returns DK_OK after an error has not succeeded. */
static dk_status
call_judge(struct dk_call *call, dk_status returned)
{
  dk_status status = judge_status(call, returned);

  judge_words(call, returned);
  if (status != DK_OK)
    return status;
  if (call->refused != DK_OK)
    return call->refused;
  return call->failed != DK_OK ? call->failed : dk_sink_complete(call);
}

/* ---- calling --------------------------------------------------------------------------------- */

static dk_status
refuse_closing(struct dk_call *call)
{
  return dk_call_refuse(call, DK_CALL_CANCELLED, "%s: the store is being closed",
                        call->operation->name);
}

/* Waits until the call before has left.  That call may be waiting in the clock's time, so this one
 * waits in it too. */
static dk_status
wait_for_turnstile(struct dk_call *call)
{
  struct dk_store *store = call->store;

  while (!dk_turnstile_try(store->turnstile)) {
    struct dk_wait wait = {
      .actor = call->caller->actor,
      .cancel_fd = dk_call_cancel_fd(call),
      .fd = store->turnstile->fd,
      .events = 1,
      .until = INT64_MAX,
    };
    if (wait.cancel_fd < 0)
      return dk_call_refuse(call, DK_UNAVAILABLE, "%s: no file descriptors are left to wait with",
                            call->operation->name);
    if (store->clock->wait(store->clock, &wait) == DK_CALL_CANCELLED)
      return dk_call_refuse(call, DK_CALL_CANCELLED,
                            "%s: cancelled while it waited for another call to return",
                            call->operation->name);
  }
  return DK_OK;
}

static dk_status
call_attempt(struct dk_call *call)
{
  struct dk_store *store = call->store;
  dk_status turn = wait_for_turnstile(call);

  if (turn != DK_OK)
    return turn;
  if (atomic_load(&store->is_closing)) {
    dk_turnstile_leave(store->turnstile);
    return refuse_closing(call);
  }
  assert(!atomic_load(&call->is_running));
  atomic_store(&call->is_running, true);
  dk_status status = call->operation->attempt(call, call->request);
  atomic_store(&call->is_running, false);
  dk_turnstile_leave(store->turnstile);
  return call_judge(call, dk_memory_returned(call, status));
}

/* The clock's time at which the fetch gives up; 0: at once.  An unchecked request might be too
 * short to have it. */
static int64_t
wait_until(const struct dk_request *request)
{
  const struct dk_fetch_turn *turn = request->fetch_turn;
  const struct dk_fetch_work *work = request->fetch_work;

  if (turn && DK_HAS_FIELD(dk_fetch_turn, turn, wait_until))
    return turn->wait_until;
  return work && DK_HAS_FIELD(dk_fetch_work, work, wait_until) ? work->wait_until : 0;
}

/* CALL-2 and CALL-3, done by the host for the provider: attempts, with waits between them. */
static dk_status
fetch_and_wait(struct dk_call *call, struct dk_bell *bell)
{
  struct dk_store *store = call->store;
  int64_t until = wait_until(call->request);
  dk_status waited = DK_OK, status = call_attempt(call);

  while (status == DK_NOTHING && waited != DK_NOTHING && waited != DK_CALL_CANCELLED) {
    int64_t next_look = dk_sat_add(dk_store_now(store), LOOK_AGAIN_MS);
    bool is_last = next_look >= until;
    struct dk_wait wait = {
      .actor = call->caller->actor,
      .cancel_fd = dk_call_cancel_fd(call),
      .fd = bell->fd,
      .events = 1,
      .until = is_last ? until : next_look,
    };
    waited = store->clock->wait(store->clock, &wait);
    if (waited == DK_NOTHING && !is_last)
      waited = DK_OK;
    if (waited == DK_CALL_CANCELLED)
      return dk_call_refuse(call, DK_CALL_CANCELLED, "%s was cancelled", call->operation->name);
    dk_bell_quiet(bell);
    dk_call_forget(call);
    status = call_attempt(call);
  }
  return status;
}

/* With the lower thread models the host waits, so that no call blocks the others. */
static dk_status
call_run(struct dk_call *call)
{
  struct dk_bells *bells = &call->store->library->bells;
  struct dk_bell bell;

  if (!call->store->turnstile || wait_until(call->request) <= dk_store_now(call->store))
    return call_attempt(call);
  if (dk_call_cancel_fd(call) < 0 || !dk_bells_add(bells, &bell))
    return dk_call_refuse(call, DK_UNAVAILABLE, "%s: no file descriptors are left to wait with",
                          call->operation->name);
  dk_status status = fetch_and_wait(call, &bell);
  dk_bells_remove(bells, &bell);
  return status;
}

static bool
is_null(const void *table, size_t member)
{
  static const char nothing[sizeof(void *)];

  return memcmp((const char *)table + member, nothing, sizeof(nothing)) == 0;
}

static bool
is_offered(const struct dk_call *call)
{
  const struct dk_operation *operation = call->operation;

  return !(operation->member && is_null(&call->store->library->ops, operation->member)) &&
         !(operation->admin_member && is_null(&call->store->admin, operation->admin_member));
}

/* Distinguishes an extension that is not declared from one that this store does not offer. */
static dk_status
refuse_absent(struct dk_call *call)
{
  const char *name = call->operation->name;

  if (!call->operation->admin_member)
    return dk_call_refuse(call, DK_UNSUPPORTED, "%s: the provider does not offer this operation",
                          name);
  if (!dk_library_declares(call->store->library, DK_ADMIN))
    return dk_call_refuse(call, DK_UNSUPPORTED,
                          "%s: the provider does not declare " DK_ADMIN, name);
  return dk_call_refuse(call, DK_UNSUPPORTED,
                        "%s: the provider does not offer " DK_ADMIN " on this store", name);
}

static dk_status
check(struct dk_call *call)
{
  if (!is_offered(call))
    return refuse_absent(call);
  if (call->caller->is_unchecked || !call->operation->check)
    return DK_OK;
  return call->operation->check(call, call->request);
}

dk_status
dk_call_make(struct dk_store *store, struct dk_caller *caller,
             const struct dk_operation *operation, const struct dk_request *request)
{
  struct dk_call *call = call_begin(store, caller, operation, request);
  dk_status status = check(call);

  if (status == DK_OK && !dk_store_add_call(store, call))
    status = refuse_closing(call);
  else if (status == DK_OK) {
    status = call_run(call);
    if (status == DK_OK)
      status = dk_overdue_judge(call);
    if (status == DK_OK && store->turnstile && operation->may_bring_work)
      dk_bells_ring(&store->library->bells);
    dk_store_remove_call(store, call, status); /* from here on the store may be freed */
  }
  return end(call, status);
}
