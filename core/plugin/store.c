/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, closing and destroying stores; the calls that run in them.  Owns the stores.  Locking:
 * see store.h and process.c. */
#include "core/plugin/store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/plugin/call.h"
#include "core/plugin/library.h"
#include "core/plugin/look.h"
#include "core/plugin/memory.h"
#include "core/plugin/process.h"

enum { CLOSE_WAIT_MS = 5000 };

/* ---- running calls --------------------------------------------------------------------------- */

bool
dk_store_add_call(struct dk_store *store, struct dk_call *call)
{
  call->began = dk_monotonic_ms();
  dk_lock(&store->lock);
  bool is_open = !atomic_load(&store->is_closing);
  if (is_open) {
    call->next = store->calls;
    store->calls = call;
  }
  dk_unlock(&store->lock);
  return is_open;
}

int64_t
dk_store_waits_ms(struct dk_store *store)
{
  int64_t now = dk_monotonic_ms(), began = now;

  dk_lock(&store->lock);
  if (store->fails_since > 0)
    began = store->fails_since;
  for (const struct dk_call *call = store->calls; call; call = call->next)
    if (call->began < began)
      began = call->began;
  dk_unlock(&store->lock);
  return now - began;
}

static bool
is_in_use(const struct dk_store *store)
{
  assert(dk_lock_is_held(&store->lock));
  return store->calls || store->pins > 0;
}

/* A call that was cancelled shows nothing about the store. */
static void
note_answer(struct dk_store *store, const struct dk_call *call, dk_status status)
{
  int32_t class = dk_status_class(status);

  assert(dk_lock_is_held(&store->lock));
  if (class != 1 && class != 3)
    store->fails_since = status == DK_CALL_CANCELLED ? store->fails_since : 0;
  else if (store->fails_since == 0)
    store->fails_since = call->began;
}

void
dk_store_remove_call(struct dk_store *store, struct dk_call *call, dk_status status)
{
  dk_lock(&store->lock);
  note_answer(store, call, status);
  for (struct dk_call **at = &store->calls; *at; at = &(*at)->next)
    if (*at == call) {
      *at = call->next;
      break;
    }
  if (!is_in_use(store))
    pthread_cond_broadcast(&store->idle);
  dk_unlock(&store->lock);
}

static bool
runs_call_of(const struct dk_store *store, const struct dk_canceller *canceller)
{
  assert(dk_lock_is_held(&store->lock));
  for (const struct dk_call *call = store->calls; call; call = call->next)
    if (call->caller->canceller == canceller)
      return true;
  return false;
}

bool
dk_store_pin(struct dk_store *store, const struct dk_canceller *canceller)
{
  dk_lock(&store->lock);
  bool is_pinned = !atomic_load(&store->is_closing) && runs_call_of(store, canceller);
  if (is_pinned)
    store->pins++;
  dk_unlock(&store->lock);
  return is_pinned;
}

void
dk_store_unpin(struct dk_store *store)
{
  dk_lock(&store->lock);
  assert(store->pins > 0);
  store->pins--;
  if (!is_in_use(store))
    pthread_cond_broadcast(&store->idle);
  dk_unlock(&store->lock);
}

void
dk_store_interrupt(struct dk_store *store)
{
  if (store->library->ops.interrupt)
    store->library->ops.interrupt(store->self);
}

/* One of the calls that still run, preferably one that is inside the provider. */
static const char *
name_of_stuck_call(const struct dk_store *store)
{
  assert(dk_lock_is_held(&store->lock));
  for (const struct dk_call *call = store->calls; call; call = call->next)
    if (atomic_load(&call->is_running))
      return call->operation->name;
  return store->calls ? store->calls->operation->name : store->pins > 0 ? "interrupt" : NULL;
}

static int64_t
close_wait_ms(const struct dk_store *store)
{
  return store->options.close_wait_ms > 0 ? store->options.close_wait_ms : CLOSE_WAIT_MS;
}

/* NULL when all have returned; else the name of one that has not. */
static const char *
wait_for_calls(struct dk_store *store)
{
  int64_t end = dk_monotonic_ms() + close_wait_ms(store);
  struct timespec until = {
    .tv_sec = (time_t)(end / 1000),
    .tv_nsec = (long)(end % 1000) * 1000000,
  };
  int error = 0;

  dk_lock(&store->lock);
  while (is_in_use(store) && error != ETIMEDOUT)
    error = dk_lock_wait_until(&store->lock, &store->idle, &until);
  const char *stuck = name_of_stuck_call(store);
  dk_unlock(&store->lock);
  return stuck;
}

/* ---- making and freeing ---------------------------------------------------------------------- */

/* The caller has forgotten struct_size, so that no member would count. */
static bool
are_blank(const struct dk_host_options *options)
{
  return options && options->struct_size < offsetof(struct dk_host_options, clock);
}

static void
copy_options(struct dk_store *store, const struct dk_host_options *options)
{
  size_t size = options ? options->struct_size : 0;

  if (size > 0)
    memcpy(&store->options, options, size < sizeof(*options) ? size : sizeof(*options));
  store->clock = store->options.clock ? store->options.clock : dk_clock_system();
}

static bool
make_locks(struct dk_store *store)
{
  pthread_condattr_t attributes;

  if (!dk_turnstile_init(&store->own_turn))
    return false;
  dk_lock_init(&store->lock);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&store->idle, &attributes);
  pthread_condattr_destroy(&attributes);
  return true;
}

static void
free_store(struct dk_store *store)
{
  assert(!store->is_opened && store->pins == 0);
  dk_table_free(store->table);
  if (store->closing_fd >= 0)
    close(store->closing_fd);
  pthread_cond_destroy(&store->idle);
  dk_lock_done(&store->lock);
  dk_turnstile_done(&store->own_turn);
  dk_library_drop(store->library);
  free(store);
}

static struct dk_turnstile *
turnstile_for(struct dk_store *store)
{
  switch (dk_library_thread_model(store->library)) {
  case DK_ONE_AT_A_TIME:
    return &store->library->turnstile;
  case DK_ONE_PER_HANDLE:
    return &store->own_turn;
  default:
    return NULL;
  }
}

/* NULL: memory or descriptors have run out, or the options are blank. */
static struct dk_store *
new_store(struct dk_library *library, const struct dk_host_options *options)
{
  struct dk_store *store = are_blank(options) ? NULL : calloc(1, sizeof(*store));

  if (!store)
    return NULL;
  if (!make_locks(store)) {
    free(store);
    return NULL;
  }
  store->library = library;
  store->is_watched = dk_memory_is_watched();
  dk_library_keep(library);
  copy_options(store, options);
  store->turnstile = turnstile_for(store);
  atomic_init(&store->latest, INT64_MIN);
  store->closing_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  store->table = dk_table_new(store);
  if (store->closing_fd < 0 || !store->table) {
    free_store(store);
    return NULL;
  }
  return store;
}

static void
add_to_list(struct dk_store *store)
{
  struct dk_process *process = dk_process();

  dk_lock(&process->lock);
  store->next = process->stores;
  process->stores = store;
  dk_unlock(&process->lock);
}

static void
remove_from_list(struct dk_store *store)
{
  struct dk_process *process = dk_process();

  dk_lock(&process->lock);
  for (struct dk_store **at = &process->stores; *at; at = &(*at)->next)
    if (*at == store) {
      *at = store->next;
      break;
    }
  dk_unlock(&process->lock);
}

static void
close_handle(struct dk_store *store)
{
  if (store->is_opened)
    store->library->provider.close(store->self);
  store->is_opened = false;
}

/* ---- opening and destroying ------------------------------------------------------------------ */

static dk_status
check_settings(struct dk_call *call, const struct dk_open *open)
{
  struct dk_refusal refusal;

  if (dk_settings_check(call->store->library, open->settings, open->n_settings, &refusal) == 0)
    return DK_OK;
  return dk_call_refuse(call, DK_INVALID, "%s: expected %s, found %s", refusal.what,
                        refusal.expected, refusal.found);
}

static dk_status
check_open(struct dk_call *call, const struct dk_request *request)
{
  uint32_t known = DK_OPEN_CREATE | DK_OPEN_READ_ONLY | DK_OPEN_HOST_CLOCK;
  const struct dk_open *open = request->open;
  const struct dk_provider *provider = &call->store->library->provider;

  if (open->flags & ~known)
    return dk_call_refuse(call, DK_UNSUPPORTED, "open: flags: expected none but 0x%x, found 0x%x",
                          known, open->flags);
  if ((open->flags & DK_OPEN_HOST_CLOCK) && !(provider->clocks & DK_CLOCK_HOST))
    return dk_call_refuse(call, DK_UNSUPPORTED, "open: flags: DK_OPEN_HOST_CLOCK, but the provider "
                                                "supports the store's clock only");
  return check_settings(call, open);
}

static dk_status
attempt_open(struct dk_call *call, const struct dk_request *request)
{
  struct dk_store *store = call->store;
  void *const untouched = &store->self;
  void *self = untouched;
  struct dk_memory_fault fault;
  dk_status status = dk_memory_returned(
    call, store->library->provider.open(dk_table_host(store->table), call, request->open, &self));

  if (dk_memory_finds(store, "*ret_self", &self, sizeof(self), true, &fault))
    return dk_call_violated(call, fault.clause, "open: %s", fault.text);
  if (status == DK_OK && self != untouched) {
    store->self = self;
    store->is_opened = true;
  } else if (status == DK_OK)
    return dk_call_violated(call, "ABI-4", "open returned DK_OK but no handle");
  else if (self != untouched)
    dk_call_report(call, "ABI-4", "open wrote *ret_self although it did not return DK_OK");
  return status;
}

static dk_status
check_destroy(struct dk_call *call, const struct dk_request *request)
{
  return check_settings(call, request->open);
}

static dk_status
attempt_destroy(struct dk_call *call, const struct dk_request *request)
{
  struct dk_store *store = call->store;

  return store->library->provider.destroy_store(dk_table_host(store->table), call, request->open);
}

static const struct dk_operation open_store = {
  .name = "open",
  .check = check_open,
  .attempt = attempt_open,
};

static const struct dk_operation destroy_store = {
  .name = "destroy_store",
  .check = check_destroy,
  .attempt = attempt_destroy,
};

/* There is no store yet, but the caller gets the failure all the same. */
static dk_status
refuse_store(struct dk_caller *caller, const struct dk_operation *operation,
             const struct dk_host_options *options)
{
  struct dk_call *call = &caller->call;

  call->operation = operation;
  call->caller = caller;
  if (are_blank(options))
    return dk_call_refuse(call, DK_INVALID, "%s: options.struct_size: expected %zu, found %u",
                          operation->name, sizeof(*options), options->struct_size);
  return dk_call_refuse(call, DK_NO_MEMORY, "%s: out of memory or file descriptors",
                        operation->name);
}

static const void *
ask_extension(struct dk_store *store, const char *id)
{
  const struct dk_host_options *options = &store->options;
  struct dk_memory_fault fault;

  dk_turnstile_enter(store->turnstile, -1);
  const void *extension = store->library->provider.extension(store->self, id);
  dk_turnstile_leave(store->turnstile);
  if (!dk_memory_finds(store, "the pointer returned", &extension, sizeof(extension), true, &fault))
    return extension;
  if (options->violation)
    options->violation(options->context, "extension", fault.clause, fault.text);
  return NULL;
}

/* ABI-3, once for each library: unknown ids and undeclared extensions must return NULL. */
static void
probe_extensions(struct dk_store *store, struct dk_call *call)
{
  static const char *const ids[] = {
    "durakit.no-such-thing/1", "durakit.admin/1",   "durakit.sessions/1", "durakit.kv/1",
    "durakit.status/1",        "durakit.locks/1",   "durakit.inspect/1",  "durakit.control/1",
    "durakit.batch/1",
  };

  if (atomic_exchange(&store->library->probed, true))
    return;
  for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
    if (!dk_library_declares(store->library, ids[i]) && ask_extension(store, ids[i]))
      dk_call_report(call, "ABI-3", "extension returned something for %s, which is not declared",
                     ids[i]);
}

/* The extension is not requested again: operations that are not offered are NULL. */
static void
copy_admin(struct dk_store *store)
{
  const struct dk_extension *head = dk_store_extension(store, DK_ADMIN);
  struct dk_memory_fault fault;

  if (!head || dk_memory_finds(store, "the extension's table", head, sizeof(*head), true, &fault))
    return;
  memcpy(&store->admin, head,
         head->struct_size < sizeof(store->admin) ? head->struct_size : sizeof(store->admin));
}

dk_status
dk_store_open(struct dk_library *library, const struct dk_host_options *options,
              struct dk_caller *caller, uint32_t open_flags, const struct dk_setting *settings,
              size_t n_settings, struct dk_store **ret_store)
{
  struct dk_store *store = new_store(library, options);
  /* A provider that supports only the host's clock gets the flag without being asked. */
  uint32_t implied = library->provider.clocks & DK_CLOCK_STORE ? 0 : DK_OPEN_HOST_CLOCK;
  struct dk_open open = {
    .struct_size = sizeof(open),
    .flags = open_flags | implied,
    .settings = settings,
    .n_settings = n_settings,
  };
  struct dk_request request = {.open = &open};

  if (!store)
    return refuse_store(caller, &open_store, options);
  dk_status status = dk_call_make(store, caller, &open_store, &request);
  if (status != DK_OK) {
    dk_turnstile_enter(store->turnstile, -1);
    close_handle(store); /* a handle that was returned but is not used */
    dk_turnstile_leave(store->turnstile);
    free_store(store);
    return status;
  }
  probe_extensions(store, &caller->call);
  copy_admin(store);
  add_to_list(store);
  *ret_store = store;
  return DK_OK;
}

dk_status
dk_store_destroy(struct dk_library *library, const struct dk_host_options *options,
                 struct dk_caller *caller, const struct dk_setting *settings, size_t n_settings)
{
  struct dk_store *store = new_store(library, options);
  struct dk_open open = {
    .struct_size = sizeof(open),
    .settings = settings,
    .n_settings = n_settings,
  };
  struct dk_request request = {.open = &open};

  if (!store)
    return refuse_store(caller, &destroy_store, options);
  dk_status status = dk_call_make(store, caller, &destroy_store, &request);
  free_store(store);
  return status;
}

/* ---- use and closing ------------------------------------------------------------------------- */

const char *
dk_store_close(struct dk_store *store)
{
  if (!store)
    return NULL;
  dk_lock(&store->lock);
  atomic_store(&store->is_closing, true);
  bool runs_calls = store->calls != NULL;
  dk_unlock(&store->lock);
  dk_ring(store->closing_fd);
  if (runs_calls)
    dk_store_interrupt(store);

  /* Nothing is closed under a running call: a call that does not return keeps everything that it
   * might use. */
  const char *stuck = wait_for_calls(store);
  if (stuck)
    return stuck;
  if (!dk_turnstile_enter(store->turnstile, close_wait_ms(store)))
    return "close";
  remove_from_list(store);
  close_handle(store);
  dk_turnstile_leave(store->turnstile);
  free_store(store);
  return NULL;
}

const void *
dk_store_extension(struct dk_store *store, const char *id)
{
  return dk_library_declares(store->library, id) ? ask_extension(store, id) : NULL;
}

struct dk_library *
dk_store_library(const struct dk_store *store)
{
  return store->library;
}
