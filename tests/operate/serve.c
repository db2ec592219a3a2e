/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime for the tests of the commands: works on a store until its standard input ends.
 *
 *   serve PLUGIN [KEY=VALUE]...
 *   serve --metrics FILE PLUGIN [KEY=VALUE]...   saves them with each line of its input, "saved"
 *   serve --start N NAME PLUGIN [KEY=VALUE]...   stores so many starts, NAME-00001 and on, and ends
 *
 * "serve: ready" is its first line; then a line for each orchestration and activity that is entered
 * or told to end:
 *
 *   quick     completes with its input              broken   fails with its input
 *   order     waits for an activity that lasts      waiting  waits for the event "paid"
 *   booking   waits for a message of the queue "bookings"
 *   late      begins to wait for "paid", drops it, looks into the queue "bookings", and waits for
 *             "done"
 *   family    two children, NAME of the input       account  continues INPUT times, then waits
 */
#include <durakit/runtime.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_SETTINGS = 8 };

/* One call for each line, so that none is torn by another thread's. */
__attribute__((format(printf, 1, 2))) static void
note(const char *format, ...)
{
  char line[1200];
  va_list args;

  va_start(args, format);
  int n = vsnprintf(line, sizeof(line) - 1, format, args);
  va_end(args);
  if (n < 0 || (size_t)n >= sizeof(line) - 1)
    exit(2);
  line[n] = '\n';
  if (write(STDOUT_FILENO, line, (size_t)n + 1) != n + 1)
    exit(2);
}

static void
note_run(dk_orch *o)
{
  if (!dk_replaying(o))
    note("%s runs", dk_orch_instance(o).ptr);
}

/* ---- what can be run ------------------------------------------------------------------------- */

static dk_result
last(dk_task *task, dk_str input)
{
  const struct dk_task_info *info = dk_task_info(task);

  (void)input;
  note("%s works", info->instance.ptr);
  int32_t cause = dk_task_sleep(task, 3600 * 1000);
  note("%s must end: %s", info->instance.ptr,
       cause == DK_CAUSE_CANCELLED ? "cancelled" : "otherwise");
  return dk_done(task, dk_str_of(""));
}

static dk_result
quick(dk_orch *o, dk_str input)
{
  note_run(o);
  return dk_completed(o, input);
}

static dk_result
broken(dk_orch *o, dk_str input)
{
  note_run(o);
  return dk_failed(o, input.ptr);
}

static dk_result
order(dk_orch *o, dk_str input)
{
  note_run(o);
  return dk_completed(o, dk_await(o, dk_activity(o, "last", input)));
}

static dk_result
waiting(dk_orch *o, dk_str input)
{
  (void)input;
  note_run(o);
  return dk_completed(o, dk_await(o, dk_external(o, "paid")));
}

static dk_result
booking(dk_orch *o, dk_str input)
{
  (void)input;
  note_run(o);
  return dk_completed(o, dk_await(o, dk_dequeue(o, "bookings")));
}

static dk_result
late(dk_orch *o, dk_str input)
{
  dk_future *paid = dk_external(o, "paid");

  (void)input;
  note_run(o);
  dk_await(o, dk_timer(o, 1));
  dk_drop(o, paid);
  dk_try_dequeue(o, "bookings", NULL);
  return dk_completed(o, dk_await(o, dk_external(o, "done")));
}

static dk_result
family(dk_orch *o, dk_str input)
{
  dk_future *children[2];

  note_run(o);
  for (int i = 0; i < 2; i++) {
    const struct dk_child_options options = {
      .struct_size = sizeof(options),
      .instance = dk_format(o, "%s.%d", dk_orch_instance(o).ptr, i + 1)};
    children[i] = dk_child(o, input.ptr, input, &options);
  }
  dk_all_of(o, children, 2);
  return dk_completed(o, dk_str_of(""));
}

static dk_result
account(dk_orch *o, dk_str input)
{
  long left = strtol(input.ptr, NULL, 10);

  note_run(o);
  if (left > 0)
    dk_continue_as_new(o, dk_format(o, "%ld", left - 1), NULL);
  return dk_completed(o, dk_await(o, dk_external(o, "paid")));
}

static struct dk_registry *
what_can_be_run(void)
{
  static const struct {
    const char *name;
    dk_orchestration_fn *function;
  } all[] = {{"quick", quick},     {"broken", broken}, {"order", order},
             {"waiting", waiting}, {"family", family}, {"account", account},
             {"booking", booking}, {"late", late}};
  struct dk_registry *registry = dk_registry_new();
  dk_status status = registry ? dk_register_activity(registry, "last", last, NULL) : DK_NO_MEMORY;

  for (size_t i = 0; status == DK_OK && i < sizeof(all) / sizeof(all[0]); i++)
    status = dk_register_orchestration(registry, all[i].name, NULL, all[i].function);
  if (status != DK_OK)
    exit(2);
  return registry;
}

/* ---- the process ----------------------------------------------------------------------------- */

static void
refused(const struct dk_refusal *refusal)
{
  fprintf(stderr, "serve: %s: %s; found %s\n", refusal->where, refusal->what, refusal->found);
  exit(2);
}

static size_t
read_settings(char **arguments, struct dk_setting settings[MOST_SETTINGS])
{
  size_t n = 0;

  for (; arguments[n] && n < MOST_SETTINGS; n++) {
    char *equals = strchr(arguments[n], '=');
    if (!equals)
      exit(2);
    *equals = '\0';
    settings[n] = (struct dk_setting){arguments[n], dk_str_of(equals + 1)};
  }
  return n;
}

static struct dk_store *
open_store(const char *path, char **arguments)
{
  struct dk_setting settings[MOST_SETTINGS];
  struct dk_library *library;
  struct dk_refusal refusal;
  struct dk_store *store;
  struct dk_caller *caller = dk_caller_new(NULL, 0);

  if (!caller)
    exit(2);
  if (dk_library_open(path, 0, &library, &refusal) != 0)
    refused(&refusal);
  if (dk_store_open(library, NULL, caller, DK_OPEN_CREATE, settings,
                    read_settings(arguments, settings), &store) != DK_OK) {
    fprintf(stderr, "serve: %s\n", dk_caller_failure(caller)->text);
    exit(2);
  }
  dk_caller_free(caller);
  return store;
}

static int
close_store(struct dk_store *store)
{
  struct dk_library *library = dk_store_library(store);

  if (dk_store_close(store))
    return 1;
  dk_library_close(library);
  return 0;
}

static int
start_many(struct dk_store *store, long n, const char *name)
{
  struct dk_client *client = dk_client_new(store, NULL);
  dk_status status = client ? DK_OK : DK_NO_MEMORY;
  char id[200];

  for (long i = 1; status == DK_OK && i <= n; i++) {
    snprintf(id, sizeof(id), "%s-%05ld", name, i);
    status = dk_client_start(client, dk_str_of(id), name, dk_str_of(""), NULL);
  }
  if (status != DK_OK)
    fprintf(stderr, "serve: status %d: %s\n", (int)status, client ? dk_client_error(client) : "");
  dk_client_free(client);
  return close_store(store) == 0 && status == DK_OK ? 0 : 1;
}

/* Until the input ends. */
static void
wait_for_end(struct dk_runtime *runtime, const char *metrics)
{
  char byte, reason[256];

  while (read(STDIN_FILENO, &byte, 1) > 0)
    if (metrics)
      note("serve: %s", dk_runtime_save_metrics(runtime, metrics, reason, sizeof(reason)) == DK_OK
                          ? "saved" : reason);
}

int
main(int argc, char **argv)
{
  struct dk_runtime *runtime;
  struct dk_refusal refusal = {.number = 0};
  const char *metrics = NULL;

  if (argc > 4 && strcmp(argv[1], "--start") == 0)
    return start_many(open_store(argv[4], argv + 5), strtol(argv[2], NULL, 10), argv[3]);
  if (argc > 3 && strcmp(argv[1], "--metrics") == 0) {
    metrics = argv[2];
    argv += 2;
    argc -= 2;
  }
  if (argc < 2)
    return 2;
  struct dk_store *store = open_store(argv[1], argv + 2);
  struct dk_registry *registry = what_can_be_run();
  const struct dk_runtime_options options = {
    .struct_size = sizeof(options), .registry = registry, .activity_slots = 8};
  if (dk_runtime_start(store, &options, &runtime, &refusal) != DK_OK)
    refused(&refusal);
  note("serve: ready");
  wait_for_end(runtime, metrics);
  if (!dk_runtime_stop(runtime, 1000, NULL))
    return 1;
  dk_registry_free(registry);
  return close_store(store);
}
