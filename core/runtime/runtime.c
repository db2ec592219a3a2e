/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime: starts and stops its parts, in order.  Owns the options' copies, the names and the
 * log, which the parts use until the last of their threads has ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/base/utf8.h"
#include "core/plugin/refusal.h"
#include "core/runtime/activity/activity-pool.h"
#include "core/runtime/options.h"
#include "core/runtime/shared/ticks.h"
#include "core/runtime/turn/turn-pool.h"

enum { MOST_OF_A_NAME = 128 };

struct dk_runtime {
  struct dk_runtime_options options;
  struct log log;
  struct leases *leases;
  struct activity_pool *activities;
  struct turn_pool *turn_pool;
  struct dk_arena arena;     /* names and tags */
  const char *name;          /* for logs */
  const char *owner;         /* unique: identifies the process whose memory holds a history */
};

/* ---- names ----------------------------------------------------------------------------------- */

/* The user's name or the host's, cut to a length that every store takes. */
static void
begin_of_name(const char *given, char ret_name[MOST_OF_A_NAME + 1])
{
  size_t length = given ? strnlen(given, MOST_OF_A_NAME) : 0;

  memset(ret_name, 0, MOST_OF_A_NAME + 1);
  if (given)
    memcpy(ret_name, given, length);
  else if (gethostname(ret_name, MOST_OF_A_NAME) < 0)
    ret_name[0] = '\0';
  length = strlen(ret_name);
  while (length > 0 && !dk_text_id_valid(ret_name, length, MOST_OF_A_NAME))
    length--; /* not in the middle of a character */
  ret_name[length] = '\0';
}

/* "host:pid:number" */
static bool
make_names(struct dk_runtime *runtime)
{
  char begin[MOST_OF_A_NAME + 1];
  uint64_t number;

  if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
    return false;
  begin_of_name(runtime->options.name, begin);
  runtime->owner = dk_arena_printf(&runtime->arena, "%s:%ld:%016llx", begin, (long)getpid(),
                                   (unsigned long long)number);
  runtime->name = runtime->options.name
                    ? dk_arena_strdup(&runtime->arena, runtime->options.name)
                    : runtime->owner;
  runtime->options.name = runtime->name;
  return runtime->name && runtime->owner;
}

/* Copies the tags with a NUL after each, which providers rely on. */
static bool
copy_tags(struct dk_runtime *runtime)
{
  size_t n = runtime->options.n_tags;
  dk_str *tags = dk_arena_array(&runtime->arena, n, sizeof(*tags));

  for (size_t i = 0; tags && i < n; i++) {
    const dk_str *given = &runtime->options.tags[i];
    tags[i] = (dk_str){dk_arena_copy(&runtime->arena, given->ptr, given->len), given->len};
    if (!tags[i].ptr)
      return false;
  }
  runtime->options.tags = tags;
  return tags != NULL;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static dk_status
refuse_memory(struct dk_refusal *refusal)
{
  dk_refusal_begin(refusal, 0, "dk_runtime_start", "there is not enough memory for the runtime");
  dk_refusal_say(refusal->next, "raise the memory limit of the process");
  return DK_NO_MEMORY;
}

static dk_status
refuse_need(struct dk_store *store, const char *name, const char *version, const char *extension,
            const char *call, struct dk_refusal *refusal)
{
  dk_refusal_begin(refusal, 0, "registry",
                   "the orchestration %s, version %s, needs what the store does not offer: %s",
                   name, version, call);
  dk_refusal_say(refusal->expected, "a provider with %s", extension);
  dk_refusal_say(refusal->found, "the provider %s, without it",
                 dk_library_provider(dk_store_library(store))->name);
  dk_refusal_say(refusal->next, "open a store that has it, or register an orchestration that does "
                                "not need it");
  return DK_UNSUPPORTED;
}

static dk_status
check_needs(struct dk_store *store, const struct dk_registry *registry,
            struct dk_refusal *refusal)
{
  static const struct {
    uint32_t need;
    const char *extension, *call;
  } needs[] = {
    {DK_NEEDS_KV, "durakit.kv/1", "key-values (dk_kv_set, ...)"},
    {DK_NEEDS_STATUS, "durakit.status/1", "a custom status (dk_set_status)"},
    {DK_NEEDS_SESSIONS, "durakit.sessions/1", "sessions of activities"},
  };
  const char *name, *version;

  for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
    if (registry_needs(registry, needs[i].need, &name, &version) &&
        !dk_store_extension(store, needs[i].extension))
      return refuse_need(store, name, version, needs[i].extension, needs[i].call, refusal);
  return DK_OK;
}

/* Checks that depend on the store. */
static dk_status
check_store(struct dk_store *store, const struct dk_runtime_options *options,
            struct dk_refusal *refusal)
{
  if (!store) {
    dk_refusal_begin(refusal, 0, "store", "no store is given");
    dk_refusal_say(refusal->expected, "an open store, from dk_store_open");
    return DK_INVALID;
  }
  if (options->session_rule == DK_SESSION_NONE ||
      dk_store_extension(store, "durakit.sessions/1"))
    return check_needs(store, options->registry, refusal);
  dk_refusal_begin(refusal, 0, "session_rule", "the store has no sessions");
  dk_refusal_say(refusal->expected, "DK_SESSION_NONE, or a provider with durakit.sessions/1");
  dk_refusal_say(refusal->found, "session_rule %d, and the provider %s", options->session_rule,
                 dk_library_provider(dk_store_library(store))->name);
  dk_refusal_say(refusal->next, "leave session_rule out, or open a store that has them");
  return DK_UNSUPPORTED;
}

/* ---- starting -------------------------------------------------------------------------------- */

static dk_status
start_turns(struct dk_runtime *runtime, struct dk_store *store, struct dk_refusal *refusal)
{
  const struct turn_pool_setup setup = {
      .store = store,
      .options = &runtime->options,
      .leases = runtime->leases,
      .log = &runtime->log,
      .activities = runtime->activities,
      .name = runtime->owner,
  };

  return turn_pool_start(&setup, &runtime->turn_pool, refusal);
}

static dk_status
start_worker(struct dk_runtime *runtime, struct dk_store *store, struct dk_refusal *refusal)
{
  const struct activity_pool_setup setup = {
      .store = store,
      .options = &runtime->options,
      .leases = runtime->leases,
      .log = &runtime->log,
      .name = runtime->owner,
  };

  return activity_pool_start(&setup, &runtime->activities, refusal);
}

static dk_status
start_leases(struct dk_runtime *runtime, struct dk_store *store, struct dk_refusal *refusal)
{
  const struct leases_setup setup = {.store = store, .log = &runtime->log};
  dk_status status = leases_start(&setup, &runtime->leases);

  return status == DK_OK ? status : refuse_memory(refusal);
}

/* Starts the activity pool before the turn pool, which reports stolen rows to it. */
static dk_status
start_parts(struct dk_runtime *runtime, struct dk_store *store, struct dk_refusal *refusal)
{
  dk_status status = start_leases(runtime, store, refusal);

  if (status == DK_OK)
    status = start_worker(runtime, store, refusal);
  if (status == DK_OK)
    status = start_turns(runtime, store, refusal);
  return status;
}

/* Stops what was started; 1 if no thread still runs. */
static int32_t
end_parts(struct dk_runtime *runtime, int64_t until, struct dk_leftover *leftover)
{
  if (runtime->activities)
    activity_pool_stop_fetching(runtime->activities);
  if (runtime->turn_pool) {
    turn_pool_stop_fetching(runtime->turn_pool);
    turn_pool_drain(runtime->turn_pool, until);
  }
  if (runtime->activities) {
    activity_pool_drain(runtime->activities, until);
    activity_pool_end(runtime->activities, leftover);
  }
  if (runtime->turn_pool)
    turn_pool_end(runtime->turn_pool, leftover);
  bool turns_freed = !runtime->turn_pool || turn_pool_free(runtime->turn_pool);
  bool activities_freed = !runtime->activities || activity_pool_free(runtime->activities);
  return turns_freed && activities_freed;
}

/* Only the thread of the leases might still run, which uses nothing of the runtime.  Returns 1 if
 * it has ended as well. */
static int32_t
free_runtime(struct dk_runtime *runtime, struct dk_leftover *leftover)
{
  uint32_t left = runtime->leases ? leases_stop(runtime->leases) : 0;

  leftover->quarantined += left;
  log_done(&runtime->log);
  dk_arena_done(&runtime->arena);
  free(runtime);
  return left == 0;
}

static dk_status
runtime_start(struct dk_runtime *runtime, struct dk_store *store, struct dk_refusal *refusal)
{
  dk_status status = check_store(store, &runtime->options, refusal);
  bool has_memory = make_names(runtime) && copy_tags(runtime);

  log_init(&runtime->log, runtime->options.log, runtime->options.log_context, runtime->name);
  if (status != DK_OK)
    return status;
  return has_memory ? start_parts(runtime, store, refusal) : refuse_memory(refusal);
}

dk_status
dk_runtime_start(struct dk_store *store, const struct dk_runtime_options *options,
                 struct dk_runtime **ret_runtime, struct dk_refusal *ret_refusal)
{
  struct dk_leftover leftover = {.struct_size = sizeof(leftover)};
  struct dk_runtime_options complete;
  dk_status status = options_complete(options, &complete, ret_refusal);

  if (status != DK_OK)
    return status;
  struct dk_runtime *runtime = calloc(1, sizeof(*runtime));
  if (!runtime)
    return refuse_memory(ret_refusal);
  dk_arena_init(&runtime->arena);
  runtime->options = complete;
  status = runtime_start(runtime, store, ret_refusal);
  if (status == DK_OK) {
    *ret_runtime = runtime;
    return DK_OK;
  }
  if (end_parts(runtime, ticks_now(), &leftover))
    free_runtime(runtime, &leftover);
  return status;
}

/* ---- stopping -------------------------------------------------------------------------------- */

int32_t
dk_runtime_stop(struct dk_runtime *runtime, int64_t wait_ms, struct dk_leftover *ret_leftover)
{
  struct dk_leftover leftover = {.struct_size = sizeof(leftover)};

  if (!runtime)
    return 1;
  int32_t is_freed = end_parts(runtime, ticks_after(ticks_now(), wait_ms), &leftover);
  if (is_freed)
    is_freed = free_runtime(runtime, &leftover);
  if (ret_leftover) {
    size_t size = ret_leftover->struct_size; /* an older caller's is shorter */
    leftover.struct_size = (uint32_t)size;
    memcpy(ret_leftover, &leftover, size < sizeof(leftover) ? size : sizeof(leftover));
  }
  return is_freed;
}

/* ---- health ---------------------------------------------------------------------------------- */

/* A delay that a retry cannot fix is not a fault of the process: it is healthy, and reports the
 * delay. */
static void
describe_delayed(struct dk_runtime *runtime, char *why, size_t size)
{
  char instance[80], activity[80];
  enum delay turn_why = 0, work_why = 0;
  size_t turn_pool = turn_pool_delayed(runtime->turn_pool, &turn_why, instance, sizeof(instance));
  size_t work = activity_pool_delayed(runtime->activities, &work_why, activity, sizeof(activity));
  int used = 0;

  *why = '\0';
  if (turn_pool > 0)
    used = snprintf(why, size, "delayed: %zu instances, \"%s\" among them: %s", turn_pool, instance,
                    delay_name(turn_why));
  if (work > 0 && used >= 0 && (size_t)used < size)
    snprintf(why + used, size - (size_t)used, "%sdelayed: %zu activities, one of them: %s",
             used > 0 ? "; " : "", work, delay_name(work_why));
}

int32_t
dk_runtime_healthy(struct dk_runtime *runtime, char *reason, size_t size)
{
  char why[512] = "";
  bool is_healthy = activity_pool_is_well(runtime->activities, why, sizeof(why)) &&
                    turn_pool_is_well(runtime->turn_pool, why, sizeof(why)) &&
                    health_is_well(&runtime->log.health, why, sizeof(why));

  if (is_healthy)
    describe_delayed(runtime, why, sizeof(why));
  if (reason && size > 0)
    snprintf(reason, size, "%s", why);
  return is_healthy;
}

void
dk_runtime_counters(struct dk_runtime *runtime, struct dk_counters *ret_counters)
{
  log_read(&runtime->log, ret_counters);
}

dk_status
dk_runtime_metrics(struct dk_runtime *runtime, dk_write_fn *write, void *context)
{
  struct dk_text text = DK_TEXT_EMPTY;

  metrics_write(&runtime->log, &text);
  bool has_failed = dk_text_failed(&text);
  if (!has_failed)
    write(context, (dk_str){dk_text_str(&text), text.length});
  dk_text_done(&text);
  return has_failed ? DK_NO_MEMORY : DK_OK;
}
