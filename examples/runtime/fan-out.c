/* SPDX-License-Identifier: 0BSD */
/* fan-out.c - many activities at once; the first few answers are enough, the rest is cancelled.
 *
 *   ./fan-out sqlite store=/tmp/trips.db                      100 suppliers, 3 offers are enough
 *   ./fan-out sqlite store=/tmp/trips.db trip-2 1000 10
 *
 * The arguments after the store: INSTANCE SUPPLIERS OFFERS.  It prints what happened to the
 * activities, as the orchestration saw it and as the runtime counted it.  Each sum is the number of
 * suppliers. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

enum { MOST_SUPPLIERS = 10 * 1000, SLOTS = 4 };

/* ---- 1. The activities ----------------------------------------------------------------------- */

enum { QUICK_MS = 20, SLOW_MS = 20 * 1000 };

static atomic_size_t begun; /* how often ask was called */

/* Of four suppliers one has nothing, and one is slow.  Four are asked at once (SLOTS); the others
 * wait in the worker queue, each as a row of its own. */
static dk_result
ask(dk_task *task, dk_str supplier)
{
  long n = strtol(supplier.ptr, NULL, 10);
  char offer[64];

  atomic_fetch_add(&begun, 1);
  if (n % 4 == 2)
    return dk_error(task, "supplier %ld has nothing", n);
  if (dk_task_sleep(task, n % 4 == 0 ? SLOW_MS : QUICK_MS) != DK_CAUSE_NONE)
    return dk_error(task, "its offer is not needed any more");
  snprintf(offer, sizeof(offer), "%ld from supplier %ld", 100 + 37 * n % 50, n);
  return dk_done(task, dk_str_of(offer));
}

static dk_result
book(dk_task *task, dk_str offer)
{
  char text[100];

  snprintf(text, sizeof(text), "booked for %.*s", (int)offer.len, offer.ptr);
  return dk_done(task, dk_str_of(text));
}

/* ---- 2. The orchestration -------------------------------------------------------------------- */

/* The futures that have not ended.  The array is the run's memory: malloc would be lost with it. */
struct asked {
  dk_future **open;
  size_t n_open;
};

static struct asked
ask_all(dk_orch *o, size_t suppliers)
{
  struct asked asked = {.open = dk_orch_alloc(o, suppliers * sizeof(*asked.open))};

  while (asked.n_open < suppliers) {
    dk_str supplier = dk_format(o, "%zu", asked.n_open + 1);
    asked.open[asked.n_open++] = dk_activity(o, "ask", supplier);
  }
  return asked;
}

/* The next future that has ended.  dk_any leaves the others open; called again with the same
 * futures it would return the same one again, so that one is removed. */
static dk_future *
next_answer(dk_orch *o, struct asked *asked)
{
  dk_future *next = dk_any_of(o, asked->open, asked->n_open);
  size_t i = 0;

  while (asked->open[i] != next)
    i++;
  asked->open[i] = asked->open[--asked->n_open];
  return next;
}

/* This needs no turn of its own: dk_drop only notes what the commit of this turn must delete.  That
 * is one commit, however many activities there are.  From then on a waiting row cannot be fetched,
 * and a running activity is notified. */
static size_t
drop_the_rest(dk_orch *o, const struct asked *asked)
{
  for (size_t i = 0; i < asked->n_open; i++)
    dk_drop(o, asked->open[i]);
  return asked->n_open;
}

/* The input is "SUPPLIERS OFFERS".
 *
 * If the first that ends were enough, dk_select_of would do it all in one call.  But a refusal has
 * ended as well.  The end of an orchestration cancels what is still open: dk_drop is needed because
 * this one continues. */
static dk_result
trip(dk_orch *o, dk_str input)
{
  char *rest;
  size_t suppliers = strtoul(input.ptr, &rest, 10);
  size_t enough = strtoul(rest, NULL, 10), offers = 0, refusals = 0;
  dk_str answer, best = dk_str_of("");
  struct asked asked = ask_all(o, suppliers);

  while (offers < enough && asked.n_open > 0) {
    if (dk_outcome(o, next_answer(o, &asked), &answer) != DK_SUCCEEDED)
      refusals++;
    else if (offers++ == 0 || strtol(answer.ptr, NULL, 10) < strtol(best.ptr, NULL, 10))
      best = answer;
  }
  if (offers < enough)
    return dk_failed_with(o, "%zu of %zu suppliers have an offer", offers, suppliers);
  size_t dropped = drop_the_rest(o, &asked);
  dk_str booked = dk_await(o, dk_activity(o, "book", best)); /* at once: no row is before it */
  return dk_completed(o, dk_format(o, "%s; offers %zu + refusals %zu + dropped %zu = %zu",
                                   booked.ptr, offers, refusals, dropped, suppliers));
}

/* ---- 3. What is printed ---------------------------------------------------------------------- */

/* The orchestration's view ends with dk_drop.  What it dropped might have been waiting, running, or
 * just ended: the runtime's counters show which.  They count this process only; if others work on
 * this store as well, what they ran has "never run" here.  1: the counters and the bodies agree. */
static int
print_counters(struct dk_runtime *runtime, size_t asked, int is_booked)
{
  struct dk_counters c;

  if (!example_counters_at_end(runtime, &c))
    return 0;
  uint64_t ended = c.activities_completed + c.activities_failed - (is_booked ? 1 : 0);
  uint64_t told = c.grace_kept + c.grace_exceeded;
  uint64_t never = asked - atomic_load(&begun);
  uint64_t together = ended + c.results_refused + told + never;

  printf("%6" PRIu64 " ran to their end, in time\n", ended);
  printf("%6" PRIu64 " ran to their end, too late: the store refused the result\n",
         c.results_refused);
  printf("%6" PRIu64 " were notified while they ran\n", told);
  printf("%6" PRIu64 " never ran\n", never);
  printf("%6" PRIu64 " together, of %zu\n", together, asked);
  return together == asked;
}

/* ---- 4. The process -------------------------------------------------------------------------- */

static struct dk_registry *
what_can_be_run(void)
{
  struct dk_registry *registry = dk_registry_new();

  if (!registry || dk_register_orchestration(registry, "trip", NULL, trip) != DK_OK ||
      dk_register_activity(registry, "ask", ask, NULL) != DK_OK ||
      dk_register_activity(registry, "book", book, NULL) != DK_OK)
    example_failed("fan-out", DK_NO_MEMORY, "nothing can be registered");
  return registry;
}

/* Starts the instance, unless it exists already, and waits for its end: DK_COMPLETED or DK_FAILED;
 * 0: it existed, and nothing ran here. */
static int32_t
run(struct dk_store *store, const char *instance, size_t suppliers, size_t offers)
{
  struct dk_client *client = dk_client_new(store, NULL);
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  char input[64];

  if (!client)
    example_failed(instance, DK_NO_MEMORY, "no client");
  snprintf(input, sizeof(input), "%zu %zu", suppliers, offers);
  dk_status started = dk_client_start(client, dk_str_of(instance), "trip", dk_str_of(input), NULL);
  if (started == DK_OK)
    printf("%s is started: %zu suppliers are asked, %zu offers are enough\n", instance, suppliers,
           offers);
  else if (started == DK_DUPLICATE)
    printf("%s exists already\n", instance);
  else
    example_failed(instance, started, dk_client_error(client));
  dk_status status = dk_client_wait(client, dk_str_of(instance), 300 * 1000, &info);
  if (status != DK_OK)
    example_failed(instance, status, dk_client_error(client));
  example_print_end(instance, &info);
  dk_client_free(client);
  return started == DK_OK ? info.status : 0;
}

static size_t
read_number(const char *text)
{
  char *end;
  unsigned long number = strtoul(text, &end, 10);

  if (end == text || *end != '\0' || number < 1 || number > MOST_SUPPLIERS) {
    fprintf(stderr, "fan-out: %s: expected a number from 1 to %d\n", text, MOST_SUPPLIERS);
    exit(2);
  }
  return number;
}

int
main(int argc, char **argv)
{
  struct example_store s;
  int used = example_open(&s, argc, argv), is_right = 1;
  const char *instance = used < argc ? argv[used] : "trip-1";
  size_t suppliers = read_number(used + 1 < argc ? argv[used + 1] : "100");
  size_t offers = read_number(used + 2 < argc ? argv[used + 2] : "3");
  struct dk_registry *registry = what_can_be_run();
  const struct dk_runtime_options options = {
    .struct_size = sizeof(options), .registry = registry, .activity_slots = SLOTS};
  struct dk_runtime *runtime;
  struct dk_refusal refusal;

  if (dk_runtime_start(s.store, &options, &runtime, &refusal) != DK_OK)
    example_refused("fan-out", &refusal);
  int32_t end = run(s.store, instance, suppliers, offers);
  if (end != 0)
    is_right = print_counters(runtime, suppliers, end == DK_COMPLETED);
  if (!dk_runtime_stop(runtime, 10 * 1000, NULL))
    return 1;
  dk_registry_free(registry);
  example_close(&s);
  return is_right ? 0 : 1;
}
