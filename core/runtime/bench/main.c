/* SPDX-License-Identifier: Apache-2.0 */
/* The bench of the runtime: the command, stores and runtimes: see bench.h.
 *
 *   bench [-o rate|warm|told|back|pages|prune] [-f FLOOR] [-s SLICE_MS] [-n INSTANCES]
 *         [-e KEY=VARIABLE]
 *         PLUGIN [KEY=VALUE]... STOREKEY=VALUE */
#include "core/runtime/bench/bench.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct turn_seen turns_seen[MOST_NUMBERS];

void
die(const char *format, ...)
{
  va_list args;

  va_start(args, format);
  fputs("bench: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}

void
judge(struct bench *bench, bool is_reached)
{
  puts(is_reached ? ": reached" : ": missed");
  bench->has_missed |= !is_reached;
}

void
pause_a_moment(void)
{
  poll(NULL, 0, 1);
}

static int
main_compare(const void *a, const void *b)
{
  const double *one = a, *other = b;

  return (*one > *other) - (*one < *other);
}

double
quantile_of(const double *sorted, size_t n, double q)
{
  size_t i = (size_t)(q * (double)n);

  return n == 0 ? 0 : sorted[i < n ? i : n - 1];
}

double
median_of(double *values, size_t n)
{
  qsort(values, n, sizeof *values, main_compare);
  return quantile_of(values, n, 0.5);
}

/* ---- the store's door ------------------------------------------------------------------------ */

/* One thread fetches a turn and commits it. */
static _Thread_local struct {
  int number;
  bool is_warm;
  int64_t at;
} fetched;

int
number_of(dk_str instance)
{
  const char *dash = instance.ptr ? strrchr(instance.ptr, '-') : NULL;
  int number = dash ? atoi(dash + 1) : 0;

  return number > 0 && number < MOST_NUMBERS ? number : 0;
}

dk_status __real_dk_store_fetch_orchestration_item(struct dk_store *store,
                                                   struct dk_caller *caller,
                                                   const struct dk_fetch_turn *request,
                                                   struct dk_turn **ret_turn);
dk_status __wrap_dk_store_fetch_orchestration_item(struct dk_store *store,
                                                   struct dk_caller *caller,
                                                   const struct dk_fetch_turn *request,
                                                   struct dk_turn **ret_turn);
dk_status
__wrap_dk_store_fetch_orchestration_item(struct dk_store *store, struct dk_caller *caller,
                                         const struct dk_fetch_turn *request,
                                         struct dk_turn **ret_turn)
{
  dk_status status = __real_dk_store_fetch_orchestration_item(store, caller, request, ret_turn);

  if (status == DK_OK) {
    fetched.number = number_of((*ret_turn)->head.instance);
    fetched.is_warm = (*ret_turn)->head.known && (*ret_turn)->n_events == 0;
    fetched.at = ticks_ns();
  }
  return status;
}

dk_status __real_dk_store_ack_orchestration_item(struct dk_store *store, struct dk_caller *caller,
                                                 struct dk_bytes token,
                                                 const struct dk_turn_result *result,
                                                 struct dk_commit_outcome *ret_outcome);
dk_status __wrap_dk_store_ack_orchestration_item(struct dk_store *store, struct dk_caller *caller,
                                                 struct dk_bytes token,
                                                 const struct dk_turn_result *result,
                                                 struct dk_commit_outcome *ret_outcome);
dk_status
__wrap_dk_store_ack_orchestration_item(struct dk_store *store, struct dk_caller *caller,
                                       struct dk_bytes token, const struct dk_turn_result *result,
                                       struct dk_commit_outcome *ret_outcome)
{
  int64_t called_at = ticks_ns();
  dk_status status = __real_dk_store_ack_orchestration_item(store, caller, token, result,
                                                            ret_outcome);
  struct turn_seen *seen = &turns_seen[fetched.number];

  if (status == DK_OK) {
    atomic_store(&seen->committed_at, ticks_ns());
    atomic_store(&seen->decided, called_at - fetched.at);
    atomic_store(&seen->whole, ticks_ns() - fetched.at);
    atomic_store(&seen->is_warm, fetched.is_warm);
    atomic_fetch_add(&seen->n, 1);
  }
  return status;
}

/* ---- scenes ---------------------------------------------------------------------------------- */

/* A host may end the name of a store with "-" and more. */
static void
name_store(struct bench *bench, const char *name)
{
  snprintf(bench->place, sizeof bench->place, "%s-%s", bench->store_name, name);
  bench->settings[bench->n_settings - 1].value = dk_str_of(bench->place);
}

struct scene
scene_open(struct bench *bench, const char *name)
{
  struct scene s = {.bench = bench, .caller = dk_caller_new(NULL, 0),
                    .registry = dk_registry_new()};

  name_store(bench, name);
  memset(turns_seen, 0, sizeof turns_seen);
  dk_store_destroy(bench->library, NULL, s.caller, bench->settings, bench->n_settings);
  if (dk_store_open(bench->library, NULL, s.caller, DK_OPEN_CREATE, bench->settings,
                    bench->n_settings, &s.store) != DK_OK)
    die("the store cannot be opened: %s", dk_caller_failure(s.caller)->text);
  s.client = dk_client_new(s.store, NULL);
  s.options = (struct dk_runtime_options){.struct_size = sizeof s.options,
                                          .registry = s.registry,
                                          .orchestration_slots = SLOTS,
                                          .activity_slots = SLOTS};
  return s;
}

void
scene_orchestration(struct scene *scene, const char *name, dk_orchestration_fn *function)
{
  if (dk_register_orchestration(scene->registry, name, NULL, function) != DK_OK)
    die("%s cannot be registered", name);
}

void
scene_activity(struct scene *scene, const char *name, dk_activity_fn *function)
{
  if (dk_register_activity(scene->registry, name, function, NULL) != DK_OK)
    die("%s cannot be registered", name);
}

void
scene_start(struct scene *scene)
{
  struct dk_refusal refusal;

  if (dk_runtime_start(scene->store, &scene->options, &scene->runtime, &refusal) != DK_OK)
    die("the runtime cannot start: %s: %s", refusal.where, refusal.what);
}

void
scene_close(struct scene *scene)
{
  struct dk_leftover left = {.struct_size = sizeof left};
  struct bench *bench = scene->bench;

  if (!dk_runtime_stop(scene->runtime, 5000, &left) || dk_store_close(scene->store))
    die("the runtime has not stopped completely");
  dk_client_free(scene->client);
  if (dk_store_destroy(bench->library, NULL, scene->caller, bench->settings, bench->n_settings)
      != DK_OK)
    die("the store cannot be removed: %s", dk_caller_failure(scene->caller)->text);
  dk_caller_free(scene->caller);
  dk_registry_free(scene->registry);
}

void
scene_begin(struct scene *scene, const char *instance, const char *name, const char *input)
{
  if (dk_client_start(scene->client, dk_str_of(instance), name, dk_str_of(input), NULL) != DK_OK)
    die("%s cannot be started: %s", instance, dk_client_error(scene->client));
}

/* ---- the command ----------------------------------------------------------------------------- */

static void
add_setting(struct bench *bench, char *word, bool is_variable)
{
  char *value = strchr(word, '=');

  if (!value || bench->n_settings == MOST_SETTINGS)
    die("not of the form KEY=VALUE, or too many settings: %s", word);
  *value++ = '\0';
  if (is_variable && !(value = getenv(value)))
    die("%s: the environment variable is not set", word);
  bench->settings[bench->n_settings++] = (struct dk_setting){word, dk_str_of(value)};
}

static void
read_words(struct bench *bench, int argc, char **argv)
{
  struct dk_refusal refusal;

  for (int option; (option = getopt(argc, argv, "f:n:o:s:e:")) != -1;)
    if (option == 'f')
      bench->floor = optarg;
    else if (option == 'o')
      bench->only = optarg;
    else if (option == 'n')
      bench->instances = (unsigned)atoi(optarg);
    else if (option == 's')
      bench->slice_ms = atoi(optarg);
    else if (option == 'e')
      add_setting(bench, optarg, true);
    else
      die("usage: bench [-o rate|warm|told|back|pages|prune] [-f FLOOR] [-s MS] [-n INSTANCES]"
          " [-e KEY=VARIABLE]"
          " PLUGIN [KEY=VALUE]... KEY=STORE");
  if (optind + 1 >= argc)
    die("name a plugin, and last the setting that identifies the store");
  if (dk_library_open(argv[optind], 0, &bench->library, &refusal) != 0)
    die("%s: %s", refusal.where, refusal.what);
  for (int i = optind + 1; i < argc; i++)
    add_setting(bench, argv[i], false);
  const struct dk_setting *last = &bench->settings[bench->n_settings - 1];
  snprintf(bench->store_name, sizeof bench->store_name, "%s", last->value.ptr);
}

static const struct {
  const char *name;
  void (*run)(struct bench *bench);
} parts[] = {{"rate", bench_rate}, {"warm", bench_warm}, {"told", bench_told},
             {"back", bench_back}, {"pages", bench_pages}, {"prune", bench_prune}};

int
main(int argc, char **argv)
{
  struct bench bench = {.slice_ms = 2000, .instances = 1000000};
  double load[1] = {0};

  setvbuf(stdout, NULL, _IOLBF, 0);
  read_words(&bench, argc, argv);
  if (getloadavg(load, 1) == 1)
    printf("provider %s, load %.1f on %ld processors\n",
           dk_library_provider(bench.library)->name, load[0], sysconf(_SC_NPROCESSORS_ONLN));
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!bench.only || strcmp(bench.only, parts[i].name) == 0)
      parts[i].run(&bench);
  dk_library_close(bench.library);
  return bench.has_missed;
}
