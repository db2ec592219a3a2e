/* SPDX-License-Identifier: 0BSD */
/* example.c - how a program opens a store, and what else the examples share: see example.h.
 *
 * A plugin is loaded by its absolute path (dk_library_open), and a store of it is opened with the
 * settings that this provider knows (dk_store_open): `durakit probe PROVIDER` lists them. */
#include "example.h"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_SETTINGS = 16, LOOK_EVERY_MS = 10, LOOK_FOR_MS = 60 * 1000 };

void
example_refused(const char *what, const struct dk_refusal *refusal)
{
  fprintf(stderr, "%s: %s: %s\n  expected  %s\n  found     %s\n  next      %s\n", what,
          refusal->where, refusal->what, refusal->expected, refusal->found, refusal->next);
  exit(1);
}

void
example_failed(const char *what, dk_status status, const char *why)
{
  char name[32];

  fprintf(stderr, "%s: %s: %s\n", what, dk_status_name(status, name, sizeof(name)), why);
  exit(1);
}

/* NAME.so in the first folder of a list (with colons between them) that has it. */
static int
find_in(const char *list, const char *name, char path[PATH_MAX])
{
  char file[PATH_MAX];

  while (*list != '\0') {
    size_t n = strcspn(list, ":");
    int length = snprintf(file, sizeof(file), "%.*s/%s.so", (int)n, list, name);
    if (length > 0 && (size_t)length < sizeof(file) && realpath(file, path))
      return 1;
    list += n + (list[n] == ':');
  }
  return 0;
}

/* A path has a slash; a name is looked for in DURAKIT_PLUGIN_PATH, then where plugins are
 * installed. */
static void
find_plugin(const char *provider, char path[PATH_MAX])
{
  const char *list = getenv("DURAKIT_PLUGIN_PATH");

  if (strchr(provider, '/') ? realpath(provider, path) != NULL
                            : (list && find_in(list, provider, path)) ||
                                find_in(PLUGIN_DIR, provider, path))
    return;
  perror(provider);
  exit(1);
}

/* The arguments of the form key=value, up to the first that has another form. */
static size_t
read_settings(char **arguments, struct dk_setting settings[MOST_SETTINGS])
{
  size_t n = 0;

  while (n < MOST_SETTINGS && arguments[n] && strchr(arguments[n], '=')) {
    char *equals = strchr(arguments[n], '=');
    *equals = '\0';
    settings[n].key = arguments[n];
    settings[n++].value = dk_str_of(equals + 1);
  }
  return n;
}

int
example_open(struct example_store *s, int argc, char **argv)
{
  struct dk_setting settings[MOST_SETTINGS];
  struct dk_refusal refusal;
  char path[PATH_MAX];

  if (argc < 2) {
    fprintf(stderr, "usage: %s PROVIDER key=value... [ARGUMENT...]\n", argv[0]);
    exit(2);
  }
  find_plugin(argv[1], path);
  if (dk_library_open(path, 0, &s->library, &refusal) != 0)
    example_refused(argv[1], &refusal);
  size_t n = read_settings(argv + 2, settings);
  if (dk_settings_check(s->library, settings, n, &refusal) != 0)
    example_refused(argv[1], &refusal);
  s->caller = dk_caller_new(NULL, 0);
  if (!s->caller)
    example_failed(argv[1], DK_NO_MEMORY, "no caller");
  /* If the server of a store is down, the program reports that at once and does not wait. */
  dk_status status = dk_store_open(s->library, NULL, s->caller, DK_OPEN_CREATE, settings, n,
                                   &s->store);
  if (status != DK_OK)
    example_failed(argv[1], status, dk_caller_failure(s->caller)->text);
  return 2 + (int)n;
}

void
example_close(struct example_store *s)
{
  const char *hangs = dk_store_close(s->store);

  if (hangs)
    fprintf(stderr, "the store cannot be closed: %s does not return\n", hangs);
  dk_caller_free(s->caller);
  dk_library_close(s->library);
}

void
example_print_end(const char *instance, const struct dk_instance_info *info)
{
  const char *how = info->status == DK_COMPLETED   ? "completed"
                    : info->status == DK_FAILED    ? "failed"
                    : info->status == DK_CANCELLED ? "cancelled"
                                                   : "still running";

  printf("%s is %s: %.*s\n", instance, how, (int)info->output.len,
         info->output.ptr ? info->output.ptr : "");
}

int64_t
example_ticks_ms(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The ways in which an activity that has begun can end, except dk_later: with a result that the
 * store accepted or refused; or cancelled, and then within its grace or not. */
static uint64_t
n_over(const struct dk_counters *c)
{
  return c->activities_completed + c->activities_failed + c->results_refused + c->grace_kept +
         c->grace_exceeded;
}

/* A counter changes a moment after the event that it counts, and no call waits for it. */
int
example_counters_at_end(struct dk_runtime *runtime, struct dk_counters *ret_counters)
{
  int64_t until = example_ticks_ms() + LOOK_FOR_MS;

  *ret_counters = (struct dk_counters){.struct_size = sizeof(*ret_counters)};
  dk_runtime_counters(runtime, ret_counters);
  while (n_over(ret_counters) < ret_counters->activities_started) {
    if (example_ticks_ms() >= until) {
      fprintf(stderr, "%" PRIu64 " activities have begun, and %" PRIu64 " have ended\n",
              ret_counters->activities_started, n_over(ret_counters));
      return 0;
    }
    poll(NULL, 0, LOOK_EVERY_MS);
    dk_runtime_counters(runtime, ret_counters);
  }
  return 1;
}
