/* SPDX-License-Identifier: 0BSD */
/* hello.c - one orchestration, one activity, on any provider.
 *
 *   ./hello sqlite store=/tmp/hello.db
 *   ./hello pg conninfo='host=... dbname=...' schema=hello Ada
 *
 * Run it again with the same name: the instance exists already, so nothing runs again, and the
 * program reads the result from the store. */
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

/* ---- 1. What is to be done ------------------------------------------------------------------- */

/* An activity does the work: it may read, write, wait and call as it likes.  It is run at least
 * once: if this process dies in the middle, another process runs it again. */
static dk_result
greet(dk_task *task, dk_str input)
{
  char text[300];

  snprintf(text, sizeof(text), "Hello, %.*s!", (int)input.len, input.ptr);
  return dk_done(task, dk_str_of(text)); /* copied */
}

/* An orchestration describes what is to be done, and in which order.  After a wait it either
 * continues, or is run again from its top, in this process or in another: it arrives at the same
 * place. */
static dk_result
hello(dk_orch *o, dk_str input)
{
  dk_future *greeting = dk_activity(o, "greet", input);

  return dk_completed(o, dk_await(o, greeting));
}

static struct dk_registry *
what_can_be_run(void)
{
  struct dk_registry *registry = dk_registry_new();

  if (!registry || dk_register_orchestration(registry, "hello", NULL, hello) != DK_OK ||
      dk_register_activity(registry, "greet", greet, NULL) != DK_OK)
    example_failed("hello", DK_NO_MEMORY, "nothing can be registered");
  return registry;
}

/* ---- 2. Asking for it ------------------------------------------------------------------------ */

/* The message is in the store when this returns.  Any process might take it, at any time: this one,
 * another one, or this one after a restart. */
static void
start(struct dk_client *client, const char *instance, const char *name)
{
  dk_status status = dk_client_start(client, dk_str_of(instance), "hello", dk_str_of(name), NULL);

  if (status == DK_OK)
    printf("%s is started\n", instance);
  else if (status == DK_DUPLICATE)
    printf("%s exists already\n", instance);
  else
    example_failed(instance, status, dk_client_error(client));
}

static void
print_result(struct dk_client *client, const char *instance)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};
  dk_status status = dk_client_wait(client, dk_str_of(instance), 60 * 1000, &info);

  if (status != DK_OK)
    example_failed(instance, status, dk_client_error(client));
  example_print_end(instance, &info);
}

/* ---- 3. A process with a runtime in it ------------------------------------------------------- */

int
main(int argc, char **argv)
{
  struct example_store s;
  int used = example_open(&s, argc, argv);
  const char *name = used < argc ? argv[used] : "world";
  char instance[200];

  snprintf(instance, sizeof(instance), "hello-%s", name);

  /* Every option that is not set has its default: docs/runtime.md lists them. */
  struct dk_registry *registry = what_can_be_run();
  const struct dk_runtime_options options = {.struct_size = sizeof(options), .registry = registry};
  struct dk_runtime *runtime;
  struct dk_refusal refusal;
  if (dk_runtime_start(s.store, &options, &runtime, &refusal) != DK_OK)
    example_refused("hello", &refusal);

  struct dk_client *client = dk_client_new(s.store, NULL);
  if (!client)
    example_failed("hello", DK_NO_MEMORY, "no client");
  start(client, instance, name);
  print_result(client, instance);
  dk_client_free(client);

  /* Waits at most ten seconds for what runs, then cancels the rest and gives it back. */
  if (!dk_runtime_stop(runtime, 10 * 1000, NULL))
    return 1; /* a thread did not return: what it uses has to stay, so nothing is freed */
  dk_registry_free(registry);
  example_close(&s);
  return 0;
}
