/* SPDX-License-Identifier: 0BSD */
/* serve.c - a process that works on a store until it gets a signal (Ctrl-C, SIGTERM).
 *
 *   ./serve sqlite store=/tmp/orders.db
 *
 * It starts no order itself.  Another process starts, inspects and cancels orders: the command
 * durakit, or any program with a client:
 *
 *   durakit start order-1 --name order --provider sqlite --set store=/tmp/orders.db
 *   durakit cancel order-1 --reason 'wrong address' --provider sqlite --set store=/tmp/orders.db
 *
 * With --metrics it saves its counts every two seconds, for a collector of text files or for
 * durakit stats --metrics:
 *
 *   ./serve --metrics serve.prom sqlite store=/tmp/orders.db */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "example.h"

/* ---- 1. What is done ------------------------------------------------------------------------- */

/* Takes the given number of seconds, or ten minutes; ends as soon as it is cancelled. */
static dk_result
charge(dk_task *task, dk_str input)
{
  const char *instance = dk_task_info(task)->instance.ptr;
  long seconds = strtol(input.ptr, NULL, 10);

  printf("%s: charge begins\n", instance);
  int32_t cause = dk_task_sleep(task, (seconds > 0 ? seconds : 600) * 1000L);
  if (cause != DK_CAUSE_NONE) {
    printf("%s: charge ends early: %s\n", instance,
           cause == DK_CAUSE_CANCELLED ? "cancelled" : "this process ends, or lost its lease");
    return dk_error(task, "ended early");
  }
  printf("%s: charge is done\n", instance);
  return dk_done(task, dk_str_of("paid"));
}

static dk_result
order(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "charge", input)));
}

static struct dk_registry *
what_can_be_run(void)
{
  struct dk_registry *registry = dk_registry_new();

  if (!registry || dk_register_orchestration(registry, "order", NULL, order) != DK_OK ||
      dk_register_activity(registry, "charge", charge, NULL) != DK_OK)
    example_failed("serve", DK_NO_MEMORY, "nothing can be registered");
  return registry;
}

/* ---- 2. The process -------------------------------------------------------------------------- */

/* Blocks the signals that main waits for.  All threads inherit that, so that no signal ends one;
 * hence this comes first. */
static void
block_signals(sigset_t *set)
{
  sigemptyset(set);
  sigaddset(set, SIGINT);
  sigaddset(set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, set, NULL);
}

/* Called by main's thread, so that a slow disk delays no other. */
static void
save(struct dk_runtime *runtime, const char *path)
{
  char reason[256];

  if (path && dk_runtime_save_metrics(runtime, path, reason, sizeof(reason)) != DK_OK)
    fprintf(stderr, "serve: the metrics are not saved: %s\n", reason);
}

int
main(int argc, char **argv)
{
  const struct timespec while_it_waits = {.tv_sec = 2};
  const char *path = argc > 2 && strcmp(argv[1], "--metrics") == 0 ? argv[2] : NULL;
  struct example_store s;
  sigset_t signals;

  setvbuf(stdout, NULL, _IOLBF, 0);
  block_signals(&signals);
  if (path) { /* the rest is as without it */
    argv[2] = argv[0];
    argc -= 2;
    argv += 2;
  }
  example_open(&s, argc, argv);
  struct dk_registry *registry = what_can_be_run();
  const struct dk_runtime_options options = {.struct_size = sizeof(options), .registry = registry};
  struct dk_runtime *runtime;
  struct dk_refusal refusal;
  if (dk_runtime_start(s.store, &options, &runtime, &refusal) != DK_OK)
    example_refused("serve", &refusal);
  printf("serve: works on orders; Ctrl-C ends it\n");

  do
    save(runtime, path);
  while (sigtimedwait(&signals, NULL, &while_it_waits) < 0);
  save(runtime, path);
  printf("serve: ends; what it works on is given back\n");
  if (!dk_runtime_stop(runtime, 1000, NULL))
    return 1; /* a thread did not return: what it uses has to stay, so nothing is freed */
  dk_registry_free(registry);
  example_close(&s);
  return 0;
}
