/* SPDX-License-Identifier: 0BSD */
/* select-timeout.c - an activity against a timer; the loser is cancelled, and notices.
 *
 *   ./select-timeout sqlite store=/tmp/orders.db                       the timer wins
 *   ./select-timeout sqlite store=/tmp/orders.db order-2 60000 10      the activity wins
 *
 * The arguments after the store: INSTANCE LIMIT_MS WORK_MS (order-1 3000 60000).  It prints which
 * one won, how and when the activity was notified, that the store has no row of it any more, and
 * the history. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

/* ---- 1. The activity ------------------------------------------------------------------------- */

/* What it noticed.  Written by the activity's thread, read when the runtime has been stopped. */
static struct {
  int has_ended;
  int32_t cause;
  int64_t ms;
} noticed;

/* Works for the given number of milliseconds, but ends as soon as it is cancelled: dk_task_sleep
 * returns at once when the token is set.  What the activity returns then has no effect. */
static dk_result
charge(dk_task *task, dk_str input)
{
  int64_t began = example_ticks_ms();

  noticed.cause = dk_task_sleep(task, atoll(input.ptr));
  noticed.ms = example_ticks_ms() - began;
  noticed.has_ended = 1;
  if (noticed.cause != DK_CAUSE_NONE)
    return dk_error(task, "its result is not needed any more");
  return dk_done(task, dk_str_of("paid"));
}

/* ---- 2. The orchestration -------------------------------------------------------------------- */

/* The input is "LIMIT WORK".  The commit that decides for the timer also deletes the activity's
 * row, so that from then on no worker can start it, renew it or report its end. */
static dk_result
order(dk_orch *o, dk_str input)
{
  char *work;
  int64_t limit_ms = strtoll(input.ptr, &work, 10);
  dk_future *pay = dk_activity(o, "charge", dk_str_of(work + 1));
  dk_future *limit = dk_timer(o, limit_ms); /* longer than the lease, see main */

  if (dk_select(o, pay, limit) == limit)
    return dk_failed_with(o, "charge took longer than %" PRId64 " ms", limit_ms);
  return dk_completed(o, dk_await(o, pay));
}

/* ---- 3. The log ------------------------------------------------------------------------------ */

/* What the runtime logged about the cancellation.  Its text lives during the call: it is copied. */
static struct {
  char token[1024];
  int32_t learnt;
} told;

/* Any thread of the runtime calls this, several at once.  Here one thread writes, and main reads
 * after it has stopped the runtime. */
static void
take_log(void *context, const struct dk_log_event *event)
{
  (void)context;
  if (event->number == DK_LOG_ACTIVITY_CANCELLED && event->token.len < sizeof(told.token)) {
    memcpy(told.token, event->token.ptr, event->token.len);
    told.learnt = event->learnt;
  }
  if (event->level >= DK_LEVEL_WARNING)
    fprintf(stderr, "select-timeout: %.*s\n", (int)event->text.len, event->text.ptr);
}

/* ---- 4. What is printed ---------------------------------------------------------------------- */

static const char *
name_of(const char *const names[], size_t n, int32_t number)
{
  return number >= 0 && (size_t)number < n ? names[number] : "?";
}

static void
print_activity(void)
{
  static const char *const causes[] = {"none", "cancelled", "lease lost", "shutdown"};
  static const char *const ways[] = {"not", "by the commit", "by a renewal", "by its end",
                                     "by the deadline", "by the stop"};

  if (!noticed.has_ended)
    printf("charge was cancelled before it began\n");
  else if (noticed.cause == DK_CAUSE_NONE)
    printf("charge ended after %" PRId64 " ms, and was not cancelled\n", noticed.ms);
  else
    printf("charge was notified after %" PRId64 " ms: %s, learnt %s\n", noticed.ms,
           name_of(causes, 4, noticed.cause), name_of(ways, 6, told.learnt));
}

/* Renews the lease that the activity had: the store does not know such a row any more. */
static void
print_row(const struct example_store *s)
{
  char name[32];

  if (told.token[0] == '\0')
    return;
  dk_caller_reset(s->caller);
  dk_status status =
    dk_store_renew_work_item_lock(s->store, s->caller, dk_str_of(told.token), 30 * 1000);
  printf("a renewal of its lease is answered %s: its row was deleted\n",
         dk_status_name(status, name, sizeof(name)));
}

/* A history is a list of JSON texts. */
static void
print_history(const struct example_store *s, const char *instance)
{
  const struct dk_read_history request = {.struct_size = sizeof(request),
                                          .instance = dk_str_of(instance)};
  struct dk_history *history;

  dk_caller_reset(s->caller);
  dk_status status = dk_store_read_history(s->store, s->caller, &request, &history);
  if (status != DK_OK)
    example_failed(instance, status, dk_caller_failure(s->caller)->text);
  for (size_t i = 0; i < history->n_events; i++)
    printf("%3" PRIu64 " %.*s\n", history->events[i].event_id,
           (int)history->events[i].payload.len, history->events[i].payload.ptr);
}

/* ---- 5. The process -------------------------------------------------------------------------- */

static struct dk_registry *
what_can_be_run(void)
{
  struct dk_registry *registry = dk_registry_new();

  if (!registry || dk_register_orchestration(registry, "order", NULL, order) != DK_OK ||
      dk_register_activity(registry, "charge", charge, NULL) != DK_OK)
    example_failed("select-timeout", DK_NO_MEMORY, "nothing can be registered");
  return registry;
}

/* Starts the instance, unless it exists already, and waits for its end.  1: it was started. */
static int
run(struct dk_store *store, const char *instance, const char *limit, const char *work)
{
  struct dk_client *client = dk_client_new(store, NULL);
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  char input[64];

  if (!client)
    example_failed(instance, DK_NO_MEMORY, "no client");
  snprintf(input, sizeof(input), "%s %s", limit, work);
  dk_status started =
    dk_client_start(client, dk_str_of(instance), "order", dk_str_of(input), NULL);
  if (started == DK_OK)
    printf("%s is started: charge needs %s ms, the limit is %s ms\n", instance, work, limit);
  else if (started == DK_DUPLICATE)
    printf("%s exists already\n", instance);
  else
    example_failed(instance, started, dk_client_error(client));
  dk_status status = dk_client_wait(client, dk_str_of(instance), 300 * 1000, &info);
  if (status != DK_OK)
    example_failed(instance, status, dk_client_error(client));
  example_print_end(instance, &info);
  dk_client_free(client);
  return started == DK_OK;
}

int
main(int argc, char **argv)
{
  struct example_store s;
  int used = example_open(&s, argc, argv);
  const char *instance = used < argc ? argv[used] : "order-1";
  const char *limit = used + 1 < argc ? argv[used + 1] : "3000";
  const char *work = used + 2 < argc ? argv[used + 2] : "60000";
  struct dk_registry *registry = what_can_be_run();
  /* A limit must exceed the lease by the time of the work: if a worker is lost, its activity is run
   * again when its lease has expired.  For a limit of seconds the default lease, 30 s, is too long.
   * This one is renewed every 2 s, so a limit of 3 s ends between two renewals. */
  const struct dk_runtime_options options = {.struct_size = sizeof(options),
                                             .registry = registry,
                                             .log = take_log,
                                             .activity_lock_ms = 2500,
                                             .activity_renewal_buffer_ms = 500};
  struct dk_runtime *runtime;
  struct dk_refusal refusal;

  if (dk_runtime_start(s.store, &options, &runtime, &refusal) != DK_OK)
    example_refused("select-timeout", &refusal);
  int was_started = run(s.store, instance, limit, work);
  if (!dk_runtime_stop(runtime, 10 * 1000, NULL))
    return 1;
  if (was_started) {
    print_activity();
    print_row(&s);
  }
  print_history(&s, instance);
  dk_registry_free(registry);
  example_close(&s);
  return 0;
}
