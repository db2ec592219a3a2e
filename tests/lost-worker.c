/* SPDX-License-Identifier: Apache-2.0 */
/* The README's own order, for tests/lost-worker.sh, which makes order.c of the README's lines.
 *
 *   lost-worker start PROVIDER key=value...   stores the starts of all orders
 *   lost-worker hang PROVIDER key=value...    works; its charges begin and do not return
 *   lost-worker work PROVIDER key=value...    works, and prints how each order has ended */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "examples/runtime/example.h"

enum { ORDERS = 6 };

dk_orchestration_fn order; /* in order.c */
static int hangs;

static dk_result
charge(dk_task *task, dk_str input)
{
  printf("%s begins\n", dk_task_info(task)->instance.ptr);
  while (hangs)
    pause();
  return dk_done(task, input);
}

static void
print_ends(struct dk_client *client)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  char id[16];

  for (int i = 0; i < ORDERS; i++) {
    snprintf(id, sizeof(id), "order-%d", i);
    if (dk_client_wait(client, dk_str_of(id), 600 * 1000, &info) != DK_OK)
      example_failed(id, DK_UNAVAILABLE, dk_client_error(client));
    example_print_end(id, &info);
  }
}

static void
start_all(struct dk_client *client)
{
  char id[16];

  for (int i = 0; i < ORDERS; i++) {
    snprintf(id, sizeof(id), "order-%d", i);
    dk_status status = dk_client_start(client, dk_str_of(id), "order", dk_str_of("paid"), NULL);
    if (status != DK_OK)
      example_failed(id, status, dk_client_error(client));
  }
}

static void
work(struct dk_store *store, struct dk_client *client)
{
  struct dk_registry *registry = dk_registry_new();
  const struct dk_runtime_options options = {
    .struct_size = sizeof(options), .registry = registry, .activity_slots = ORDERS};
  struct dk_runtime *runtime;
  struct dk_refusal refusal;

  if (!registry || dk_register_orchestration(registry, "order", NULL, order) != DK_OK ||
      dk_register_activity(registry, "charge", charge, NULL) != DK_OK)
    example_failed("lost-worker", DK_NO_MEMORY, "nothing can be registered");
  if (dk_runtime_start(store, &options, &runtime, &refusal) != DK_OK)
    example_refused("lost-worker", &refusal);
  print_ends(client);
  if (dk_runtime_stop(runtime, 10 * 1000, NULL))
    dk_registry_free(registry);
}

int
main(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "";
  struct example_store s;

  setvbuf(stdout, NULL, _IOLBF, 0);
  hangs = strcmp(what, "hang") == 0;
  example_open(&s, argc - 1, argv + 1);
  struct dk_client *client = dk_client_new(s.store, NULL);
  if (!client)
    example_failed("lost-worker", DK_NO_MEMORY, "no client");
  if (strcmp(what, "start") == 0)
    start_all(client);
  else
    work(s.store, client);
  dk_client_free(client);
  example_close(&s);
  return 0;
}
