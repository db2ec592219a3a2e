/* SPDX-License-Identifier: Apache-2.0 */
/* A store under work, for the tests of docs/operating.md:
 *
 *   operating-load PROVIDER key=value... NAME BYTES
 *
 * Runs one instance after the other, NAME-1, NAME-2, ..., each with a result of so many bytes, and
 * prints the id of each that has ended, until its standard input ends. */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/runtime/example.h"

static dk_result
fill(dk_task *task, dk_str input)
{
  size_t size = (size_t)strtoul(input.ptr, NULL, 10);
  char *bytes = malloc(size + 1);

  if (!bytes)
    return dk_later(task, 100);
  memset(bytes, 'x', size);
  bytes[size] = '\0';
  dk_result result = dk_done(task, dk_str_of(bytes)); /* copied */
  free(bytes);
  return result;
}

static dk_result
load(dk_orch *o, dk_str input)
{
  return dk_completed(o, dk_await(o, dk_activity(o, "fill", input)));
}

static bool
is_to_end(void)
{
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  char byte;

  return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

static void
run_one(struct dk_client *client, const char *instance, const char *bytes)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  dk_status status = dk_client_start(client, dk_str_of(instance), "load", dk_str_of(bytes), NULL);

  if (status == DK_OK)
    status = dk_client_wait(client, dk_str_of(instance), 60 * 1000, &info);
  if (status != DK_OK || info.status != DK_COMPLETED)
    example_failed(instance, status, dk_client_error(client));
  puts(instance);
  fflush(stdout);
}

int
main(int argc, char **argv)
{
  struct example_store s;
  int used = example_open(&s, argc, argv);
  struct dk_registry *registry = dk_registry_new();
  struct dk_runtime_options options = {.struct_size = sizeof(options), .registry = registry};
  struct dk_runtime *runtime;
  struct dk_refusal refusal;

  if (argc != used + 2 || !registry ||
      dk_register_orchestration(registry, "load", NULL, load) != DK_OK ||
      dk_register_activity(registry, "fill", fill, NULL) != DK_OK)
    example_failed("load", DK_INVALID, "usage: PROVIDER key=value... NAME BYTES");
  if (dk_runtime_start(s.store, &options, &runtime, &refusal) != DK_OK)
    example_refused("load", &refusal);
  struct dk_client *client = dk_client_new(s.store, NULL);
  if (!client)
    example_failed("load", DK_NO_MEMORY, "no client");
  for (unsigned n = 1; !is_to_end(); n++) {
    char instance[200];
    snprintf(instance, sizeof(instance), "%s-%u", argv[used], n);
    run_one(client, instance, argv[used + 1]);
  }
  dk_client_free(client);
  if (!dk_runtime_stop(runtime, 10 * 1000, NULL))
    return 1;
  dk_registry_free(registry);
  example_close(&s);
  return 0;
}
