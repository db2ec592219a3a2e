/* SPDX-License-Identifier: Apache-2.0 */
/* The model's descriptor: what it declares, and how a handle begins and ends.
 *
 * Compiled with MODEL_FULL it is that of model-full, which declares more extensions.  The model
 * itself does not: what it declares, checks have to be there for. */
#include <stdlib.h>
#include <string.h>

#include "conformance/model/state.h"

#ifdef MODEL_FULL
#define NAME "model-full"
static const bool has_extensions = true;
static const char *const extensions[] = {DK_ADMIN, "durakit.kv/1", "durakit.sessions/1",
                                         "durakit.status/1", NULL};
#else
#define NAME "model"
static const bool has_extensions = false;
static const char *const extensions[] = {DK_ADMIN, NULL};
#endif

struct settings {
  const char *store;  /* NULL: in memory */
  const char *mutant; /* NULL: none */
};

static struct settings
settings_of(const struct dk_open *open)
{
  struct settings found = {NULL, NULL};

  for (size_t i = 0; i < open->n_settings; i++) {
    const struct dk_setting *setting = &open->settings[i];
    if (strcmp(setting->key, "store") == 0)
      found.store = setting->value.ptr;
    else if (strcmp(setting->key, "mutant") == 0)
      found.mutant = setting->value.ptr; /* a fixture may have others */
  }
  return found;
}

/* Which mutant it is, if any, and where its host wants the ids of those that would matter. */
static dk_status
choose_mutant(struct op *op, const char *id)
{
  struct store *s = op->s;
  const struct dk_host *host = s->host;

  s->mutant = id ? dk_mutant_number(id) : -1;
  if (DK_HAS(dk_host, host, service))
    s->reached = host->service(host, DK_MUTANT_REACHED);
  if (s->reached && !DK_HAS_FIELD(dk_mutant_reached, s->reached, reached))
    s->reached = NULL;
  if (DK_HAS(dk_host, host, service))
    s->choice = host->service(host, DK_MODEL_CHOICE);
  if (id && s->mutant < 0)
    return refuse(op, DK_INVALID, "there is no mutant \"%s\"; the nearest is \"%s\"", id,
                  dk_mutant_nearest(id));
  return DK_OK;
}

static dk_status
model_provider_begin(struct op *op, const struct dk_open *open)
{
  const uint32_t known = DK_OPEN_CREATE | DK_OPEN_READ_ONLY | DK_OPEN_HOST_CLOCK;
  struct settings settings = settings_of(open);

  TRY(choose_mutant(op, settings.mutant));
  TRY(refuse_unknown(op, open->flags & ~known, "a flag of open"));
  const struct store *s = op->s;
  if (state_init(op->s) != DK_OK)
    return refuse(op, MUTANT(M_ERR_NO_MEMORY_REFUSES_OPEN) ? DK_REFUSED : DK_NO_MEMORY,
                  "out of memory");
  return log_open(op, settings.store, open->flags);
}

static void
model_close(void *self)
{
  struct store *s = self;

  log_close(s);
  state_done(s);
  pthread_mutex_destroy(&s->mutex);
  if (REFUSED(M_CALL_CLOSE_LEAVES_MEMORY, true))
    free(s);
}

static dk_status
model_open(const struct dk_host *host, struct dk_call *call, const struct dk_open *open,
           void **ret_self)
{
  struct store *s = calloc(1, sizeof *s);
  struct op op = {.s = s, .call = call, .name = "open"};

  if (!s)
    return host->fail(call, DK_NO_MEMORY, (struct dk_bytes){"open: out of memory", 19});
  s->host = host;
  s->fd = -1;
  s->has_extensions = has_extensions;
  make_tables(s);
  pthread_mutex_init(&s->mutex, NULL);
  list_init(&s->waiters);
  list_init(&s->waiting);
  list_init(&s->rows);
  dk_status status = model_provider_begin(&op, open);
  if (status != DK_OK) {
    model_close(s);
    return status;
  }
  *ret_self = s;
  return DK_OK;
}

static dk_status
model_destroy_store(const struct dk_host *host, struct dk_call *call, const struct dk_open *open)
{
  struct store s = {.host = host};
  struct op op = {.s = &s, .call = call, .name = "destroy_store"};
  struct settings settings = settings_of(open);

  TRY(choose_mutant(&op, settings.mutant));
  return settings.store ? log_destroy(&op, settings.store) : DK_OK;
}

static const void *
model_extension(void *self, const char *id)
{
  const struct store *s = self;

  if (DEFECT(M_ADMIN_NOT_FOR_READERS, s->is_read_only))
    return NULL;
  for (size_t i = 0; extensions[i]; i++)
    if (strcmp(extensions[i], id) == 0)
      return table_of(s, id);
  return MUTANT(M_ABI_ANSWERS_ANY_EXTENSION) ? s->host : NULL;                      /* ABI-3 */
}

static const struct dk_param params[] = {
  {.key = "store", .type = "path", .flags = DK_PARAM_STORE,
   .help = "file that holds the store; without it the store lives as long as its handle"},
  {.key = "mutant", .type = "string",
   .help = "one defect, by its id, that a check must catch: durakit list mutants"},
  {.key = NULL},
};

static const struct dk_limits limits = {
  .struct_size = sizeof limits,
  .max_id = MAX_ID,
  .max_payload = 16u << 20,
  .max_commit_bytes = 64u << 20,
  .max_commit_items = 200000,
};

/* No interrupt: the only wait outside of host->wait, for the file's lock, looks at cancel_fd. */
static const struct dk_ops ops = {
  .struct_size = sizeof ops,
  .enqueue_for_orchestrator = model_enqueue_for_orchestrator,
  .fetch_orchestration_item = model_fetch_orchestration_item,
  .ack_orchestration_item = model_ack_orchestration_item,
  .abandon_orchestration_item = model_abandon_orchestration_item,
  .renew_orchestration_item_lock = model_renew_orchestration_item_lock,
  .fetch_work_item = model_fetch_work_item,
  .ack_work_item = model_ack_work_item,
  .abandon_work_item = model_abandon_work_item,
  .renew_work_item_lock = model_renew_work_item_lock,
  .read_history = model_read_history,
  .enqueue_for_worker = model_enqueue_for_worker,
  .release_fetch = model_release_fetch,
};

static const struct dk_provider provider = {
  .magic = DK_MAGIC,
  .struct_size = sizeof provider,
  .stamp = DK_STAMP,
  .abi_minor = DK_ABI_MINOR,
  .clocks = DK_CLOCK_HOST | DK_CLOCK_STORE,
  .thread_model = DK_PARALLEL,
  .durable = 2,
  .shared = 2,
  .unload = 1,
  .abi_vendor = "durakit",
  .name = NAME,
  .version = "1",
  .built_with = "gcc " __VERSION__,
  .help = "The contract as a provider, for reference and for the tests of the kit; with mutants.",
  .params = params,
  .extensions = extensions,
  .limits = &limits,
  .ops = &ops,
  .open = model_open,
  .close = model_close,
  .destroy_store = model_destroy_store,
  .extension = model_extension,
};

const struct dk_provider *
durakit_provider_2(uint32_t host_minor)
{
  (void)host_minor;
  return &provider;
}
