/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime on the check's store: see run.h.
 *
 * One check at a time runs in a process; its state is in `run`, because activities get no context.
 * Locking: `lock` guards the log lines; no function is called under it. */
#include "conformance/runtime/run.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/runtime/shared/ticks.h"

enum { HEARD = 4096, SHOWN = 40, NUMBERS = 32, ACTIVITIES = 1024, HOUR_MS = 3600000 };

struct line {
  int32_t number, level, cause, learnt;
  char text[200];
};

struct run {
  struct dk_registry *registry;
  struct dk_runtime *runtimes[2];
  struct dk_client *client;
  struct dk_caller *caller;
  struct dk_zygote *zygote;
  struct dk_library *library; /* in the place of the plugin's; NULL: none */
  bool stays;                 /* a thread of a stopped runtime still runs */
  struct dk_runtime_options options;
  struct dk_arena arena;

  pthread_mutex_t lock;
  uint32_t numbers[NUMBERS], warnings, renewals[ACTIVITIES];
  struct line lines[HEARD];
  uint32_t n_lines;
};

static struct run *run;
static bool by_renewal;
static atomic_int deaf_may_end;
struct marks marks;

/* ---- the log of the runtimes ----------------------------------------------------------------- */

static void
keep_line(const struct dk_log_event *event)
{
  struct line *line = &run->lines[run->n_lines++ % HEARD];

  *line = (struct line){event->number, event->level, event->cause, event->learnt, ""};
  snprintf(line->text, sizeof(line->text), "%.*s", (int)event->text.len, event->text.ptr);
}

/* Such warnings come on a busy machine, and not from cancellations; and limits are short here on
 * purpose. */
static bool
is_expected(int32_t number)
{
  return number == DK_LOG_RENEWAL_RETRIED || number == DK_LOG_ACK_RETRIED ||
         number == DK_LOG_STORE_AWAY || number == DK_LOG_SHORT_LIMIT;
}

static void
on_log(void *context, const struct dk_log_event *event)
{
  (void)context;
  pthread_mutex_lock(&run->lock);
  run->numbers[event->number % NUMBERS]++;
  run->warnings += event->level >= DK_LEVEL_WARNING && !is_expected(event->number);
  if (event->number == DK_LOG_RENEWED && event->activity_id < ACTIVITIES)
    run->renewals[event->activity_id]++;
  if (event->level > DK_LEVEL_TRACE)
    keep_line(event);
  pthread_mutex_unlock(&run->lock);
}

static uint32_t
locked(const uint32_t *count)
{
  pthread_mutex_lock(&run->lock);
  uint32_t n = *count;
  pthread_mutex_unlock(&run->lock);
  return n;
}

uint32_t
heard(int32_t number)
{
  return locked(&run->numbers[number]);
}

uint32_t
renewals_of(uint64_t activity_id)
{
  return locked(&run->renewals[activity_id]);
}

uint32_t
heard_how(int32_t number, int32_t cause, int32_t learnt)
{
  uint32_t n = 0;

  pthread_mutex_lock(&run->lock);
  for (uint32_t i = 0; i < run->n_lines && i < HEARD; i++) {
    const struct line *line = &run->lines[i];
    n += line->number == number && (cause < 0 || line->cause == cause) &&
         (learnt < 0 || line->learnt == learnt);
  }
  pthread_mutex_unlock(&run->lock);
  return n;
}

/* Adds the last log lines to the report of a failed check. */
static void
show_lines(struct dk_check *t)
{
  uint32_t from = run->n_lines > SHOWN ? run->n_lines - SHOWN : 0;

  for (uint32_t i = from; i < run->n_lines; i++)
    say_in_trace(t, "runtime says (%d): %s", run->lines[i % HEARD].level,
                 run->lines[i % HEARD].text);
}

/* ---- waiting --------------------------------------------------------------------------------- */

int64_t
run_out_of_patience(struct dk_check *t)
{
  return ticks_after(ticks_now(), patience_ms(t));
}

/* Waits for a moment, in which other threads run. */
bool
run_waits(int64_t until)
{
  (void)poll(NULL, 0, 2);
  return ticks_now() < until;
}

/* ---- activities ------------------------------------------------------------------------------ */

static dk_result
echo(dk_task *task, dk_str input)
{
  atomic_fetch_add(&marks.echoed, 1);
  return dk_done(task, input);
}

/* Counts how it began, and how it was notified. */
static void
until_told(dk_task *task)
{
  int32_t cause = dk_task_cancelled(task);

  atomic_fetch_add(&marks.set_at_first, cause != DK_CAUSE_NONE);
  atomic_fetch_add(&marks.began, 1);
  cause = dk_task_sleep(task, HOUR_MS);
  atomic_fetch_add(&marks.told, cause == DK_CAUSE_CANCELLED);
  atomic_fetch_add(&marks.lost, cause == DK_CAUSE_LEASE_LOST);
  atomic_fetch_add(&marks.ended, 1);
}

static dk_result
obeys(dk_task *task, dk_str input)
{
  until_told(task);
  return dk_done(task, input);
}

static dk_result
errs(dk_task *task, dk_str input)
{
  (void)input;
  until_told(task);
  return dk_error(task, "interrupted");
}

static dk_result
deaf(dk_task *task, dk_str input)
{
  atomic_fetch_add(&marks.began, 1);
  while (!atomic_load(&deaf_may_end) && run_waits(INT64_MAX))
    continue;
  atomic_fetch_add(&marks.ended, 1);
  return dk_done(task, input);
}

void
release_deaf(void)
{
  atomic_store(&deaf_may_end, 1);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static uint64_t
quarantined(struct dk_runtime *runtime)
{
  struct dk_counters c = {.struct_size = sizeof(c)};

  if (runtime)
    dk_runtime_counters(runtime, &c);
  return c.quarantined_now;
}

/* In all cases: ends everything that runs, and frees everything.  false: a thread still runs, and
 * may use the store. */
static bool
end_run(struct dk_check *t)
{
  int64_t patience = run_out_of_patience(t);
  int32_t is_gone = 1;

  release_deaf();
  show_lines(t);
  while (quarantined(run->runtimes[0]) + quarantined(run->runtimes[1]) > 0 && run_waits(patience))
    continue;
  for (int i = 1; i >= 0; i--)
    is_gone &= dk_runtime_stop(run->runtimes[i], 0, NULL);
  if (!is_gone || run->stays)
    return false;
  dk_client_free(run->client);
  dk_caller_free(run->caller);
  if (run->zygote)
    dk_zygote_stop(run->zygote);
  dk_library_close(run->library);
  dk_registry_free(run->registry);
  dk_arena_done(&run->arena);
  pthread_mutex_destroy(&run->lock);
  free(run);
  run = NULL;
  by_renewal = false;
  return true;
}

static void
forget_marks(void)
{
  atomic_store(&deaf_may_end, 0);
  memset(&marks, 0, sizeof(marks));
}

void
given_activity(struct dk_check *t, const char *name, dk_activity_fn *function,
               const struct dk_activity_traits *traits)
{
  dk_status status = dk_register_activity(run->registry, name, function, traits);

  expect(t, status == DK_OK, "the activity %s is registered: status %d", name, (int)status);
}

void
given_orchestration(struct dk_check *t, const char *name, dk_orchestration_fn *function)
{
  dk_status status = dk_register_orchestration(run->registry, name, NULL, function);

  expect(t, status == DK_OK, "the orchestration %s is registered: status %d", name, (int)status);
}

/* With the local signal no renewal is due during a check; without it renewals are frequent, and a
 * lease is long enough for a busy machine. */
static struct dk_runtime_options
usual_options(void)
{
  return (struct dk_runtime_options){
    .struct_size = sizeof(struct dk_runtime_options),
    .flags = by_renewal ? DK_RUNTIME_NO_LOCAL_SIGNAL : 0,
    .registry = run->registry,
    .name = "checked",
    .log = on_log,
    .orchestration_slots = 2,
    .activity_slots = 4,
    .max_quarantined = 100,
    .turn_lock_ms = 30000,
    .turn_renewal_buffer_ms = 5000,
    .max_turn_ms = 600000,
    .activity_lock_ms = by_renewal ? 30000 : 600000,
    .activity_renewal_buffer_ms = by_renewal ? 29400 : 5000,
    .grace_ms = 600000,
    .backoff_ms = 20,
    .max_backoff_ms = 200,
  };
}

struct dk_runtime_options *
given_runtime(struct dk_check *t)
{
  run = calloc(1, sizeof(*run));
  expect(t, run != NULL, "there is memory for a runtime");
  forget_marks();
  pthread_mutex_init(&run->lock, NULL);
  dk_arena_init(&run->arena);
  at_end(t, end_run);
  run->registry = dk_registry_new();
  run->client = dk_client_new(store_of(t, NULL), NULL);
  run->caller = dk_caller_new(NULL, 0);
  expect(t, run->registry && run->client && run->caller, "there is memory for a client");
  given_activity(t, "echo", echo, NULL);
  given_activity(t, "obeys", obeys, NULL);
  given_activity(t, "errs", errs, NULL);
  given_activity(t, "deaf", deaf, NULL);
  run->options = usual_options();
  return &run->options;
}

void
without_local_signal(void)
{
  by_renewal = true;
}

bool
is_by_renewal(void)
{
  return by_renewal;
}

/* A process without threads must make them, so before the store is opened. */
void
given_processes(struct dk_check *t)
{
  dk_client_free(run->client);
  run->client = NULL;
  close_handle(t, NULL);
  dk_status status = dk_zygote_start(run->registry, &run->zygote);
  expect(t, status == DK_OK, "the process that forks others is started: status %d", (int)status);
  run->options.zygote = run->zygote;
  open_handle(t, NULL);
  run->client = dk_client_new(store_of(t, NULL), NULL);
  expect(t, run->client != NULL, "there is memory for a client");
}

void
keep_library(struct dk_library *library)
{
  run->library = library;
}

struct dk_arena *
run_arena(void)
{
  return &run->arena;
}

/* ---- runtimes -------------------------------------------------------------------------------- */

static void
run_start(struct dk_check *t, int which, struct actor *handle)
{
  struct dk_refusal refusal = {.number = 0};

  say_in_trace(t, "runtime %d starts", which + 1);
  dk_status status = dk_runtime_start(store_of(t, handle), &run->options, &run->runtimes[which],
                                      &refusal);
  expect(t, status == DK_OK, "the runtime starts: %s: %s", refusal.where, refusal.what);
}

static void
stop(struct dk_check *t, int which)
{
  struct dk_leftover leftover = {.struct_size = sizeof(leftover)};
  struct dk_runtime *runtime = run->runtimes[which];

  say_in_trace(t, "runtime %d stops", which + 1);
  run->runtimes[which] = NULL;
  int32_t is_gone = dk_runtime_stop(runtime, patience_ms(t), &leftover);
  run->stays |= !is_gone;
  expect(t, is_gone, "the runtime stops, and none of its threads still runs");
  expect_equal(t, leftover.not_given_back, 0, "turns and activities that could not be given back");
}

void
start_runtime(struct dk_check *t)
{
  run_start(t, 0, NULL);
}

void
start_second_runtime(struct dk_check *t, struct actor *handle)
{
  run_start(t, 1, handle);
}

void
stop_runtime(struct dk_check *t)
{
  stop(t, 0);
}

void
stop_second_runtime(struct dk_check *t)
{
  stop(t, 1);
}

struct dk_counters
counters(struct dk_check *t)
{
  struct dk_counters c = {.struct_size = sizeof(c)};

  expect(t, run->runtimes[0] != NULL, "the runtime runs");
  dk_runtime_counters(run->runtimes[0], &c);
  return c;
}

/* ---- a client -------------------------------------------------------------------------------- */

static void
judge_client(struct dk_check *t, dk_status status, const char *what, const char *instance)
{
  expect(t, status == DK_OK, "%s %s: %s", what, instance, dk_client_error(run->client));
}

void
start_instance(struct dk_check *t, const char *instance, const char *name, const char *input)
{
  say_in_trace(t, "client starts %s: %s", instance, name);
  judge_client(t, dk_client_start(run->client, dk_str_of(instance), name, dk_str_of(input), NULL),
               "start of", instance);
}

void
cancel_instance(struct dk_check *t, const char *instance)
{
  say_in_trace(t, "client cancels %s", instance);
  judge_client(t, dk_client_cancel(run->client, dk_str_of(instance), "no use", "the check"),
               "cancellation of", instance);
}

void
raise_event(struct dk_check *t, const char *instance, const char *event)
{
  say_in_trace(t, "client raises %s for %s", event, instance);
  judge_client(t, dk_client_raise(run->client, dk_str_of(instance), event, dk_str_of("")),
               "event for", instance);
}

void
given_started(struct dk_check *t, const char *name, dk_orchestration_fn *function,
              const char *input)
{
  given_runtime(t);
  given_orchestration(t, name, function);
  start_runtime(t);
  start_instance(t, "i", name, input);
}

dk_result
works(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, input.ptr, input)));
}

static const char *
how_it_ended(int32_t status)
{
  return status == DK_COMPLETED   ? "completed"
         : status == DK_FAILED    ? "failed"
         : status == DK_CANCELLED ? "cancelled"
                                  : "running";
}

static void
say_end(struct dk_text *text, const struct dk_instance_info *info)
{
  dk_text_printf(text, "%s: ", how_it_ended(info->status));
  dk_text_add(text, info->output.ptr, info->output.ptr ? info->output.len : 0);
  if (!info->cancelled_by.ptr)
    return;
  dk_text_puts(text, " (");
  dk_text_add(text, info->cancelled_by.ptr, info->cancelled_by.len);
  dk_text_puts(text, ")");
}

void
run_expect_end(struct dk_check *t, const char *instance, const char *words, const char *file,
               int line)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  struct dk_text text = DK_TEXT_EMPTY;
  char ended[512];
  dk_status status =
    dk_client_wait(run->client, dk_str_of(instance), patience_ms(t), &info);

  kit_expect(t, status != DK_NOTHING, words, file, line, "%s ends in time", instance);
  kit_expect(t, status == DK_OK, words, file, line, "the client waits for %s: %s", instance,
             dk_client_error(run->client));
  say_end(&text, &info);
  snprintf(ended, sizeof(ended), "%s", dk_text_str(&text));
  dk_text_done(&text);
  say_in_trace(t, "%s: %s", instance, ended);
  kit_expect_text(t, bytes(ended), words, "end", file, line, "how %s ended", instance);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* Without a line in the trace, because it is called again and again.  NULL: no turn was
 * committed. */
static const struct dk_history *
history_of(struct dk_check *t, const char *instance, uint64_t execution)
{
  const struct dk_read_history request = {.struct_size = sizeof(request),
                                          .instance = bytes(instance),
                                          .execution_id = execution};
  struct dk_history *history = NULL;

  dk_caller_reset(run->caller);
  dk_status status = dk_store_read_history(store_of(t, NULL), run->caller, &request, &history);
  expect(t, status == DK_OK || status == DK_NOT_FOUND, "the history of %s is read: %s", instance,
         dk_caller_failure(run->caller)->text);
  return status == DK_OK ? history : NULL;
}

static bool
is_of_kind(struct dk_check *t, const struct dk_event *event, const char *kind, const char *code)
{
  const char *why = "";
  struct told told;

  expect(t, payload_event(&run->arena, event->payload, &told, &why),
         "event %" PRIu64 " of the history can be read: %s", event->event_id, why);
  return strcmp(told.kind, kind) == 0 && (code == NULL || strcmp(told.code, code) == 0);
}

uint32_t
count_events(struct dk_check *t, const char *instance, uint64_t execution, const char *kind,
             const char *code)
{
  const struct dk_history *history = history_of(t, instance, execution);
  uint32_t n = 0;

  for (size_t i = 0; history && i < history->n_events; i++)
    n += is_of_kind(t, &history->events[i], kind, code);
  return n;
}

uint64_t
event_id(struct dk_check *t, const char *instance, const char *kind, uint32_t which)
{
  const struct dk_history *history = history_of(t, instance, 1);

  for (size_t i = 0; history && i < history->n_events; i++) {
    if (is_of_kind(t, &history->events[i], kind, NULL) && --which == 0)
      return history->events[i].event_id;
  }
  expect(t, false, "the history of %s has that many events %s", instance, kind);
  return 0;
}

int32_t
learnt_here(void)
{
  return by_renewal ? DK_LEARNT_BY_RENEWAL : DK_LEARNT_BY_COMMIT;
}

void
expect_no_warning(struct dk_check *t)
{
  expect_equal(t, locked(&run->warnings), 0, "warnings and errors of the runtime");
}

void
expect_told(struct dk_check *t, uint32_t n)
{
  eventually(t, heard_how(DK_LOG_ACTIVITY_CANCELLED, DK_CAUSE_CANCELLED, learnt_here()) >= n,
             "%u activities are notified that they are cancelled, %s", n,
             by_renewal ? "by a renewal" : "by the commit");
  expect_equal(t, heard(DK_LOG_ACTIVITY_CANCELLED), n, "cancelled activities in the log");
}

void
expect_all_told(struct dk_check *t)
{
  eventually(t, atomic_load(&marks.ended) == atomic_load(&marks.began), "every body ends");
  expect_nothing_left(t);
  expect_equal(t, atomic_load(&marks.told), atomic_load(&marks.began), "bodies that were notified");
}

void
expect_queues_empty(struct dk_check *t)
{
  stop_runtime(t);
  expect_no_turn(t);
  expect_no_work(t);
}

void
expect_nothing_left(struct dk_check *t)
{
  expect_equal(t, counters(t).strays, 0, "stray messages");
  expect_equal(t, counters(t).results_refused, 0, "refused results");
  expect_queues_empty(t);
}
