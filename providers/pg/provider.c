/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor of the PostgreSQL plugin, and how a handle begins and ends. */
#include <stdlib.h>
#include <string.h>

#include "providers/pg/handle.h"

/* ---- the handle ------------------------------------------------------------------------------ */

/* Also of one that was not opened to its end. */
static void
pg_close(void *self)
{
  struct handle *h = self;

  if (h->bell)
    bell_free(h->bell);
  if (h->pool)
    pool_free(h->pool);
  servers_free(h->servers);
  settings_done(&h->settings);
  free(h);
}

/* Makes, migrates or only finds the store, on a connection that the operations go on with. */
static dk_status
open_store(struct handle *h, struct dk_call *call, const struct dk_open *open, struct why *why)
{
  struct connection *c;

  TRY(pool_take(h->pool, call, &c, why));
  dk_status status = store_open(c, call, open, &h->store, why);
  pool_give_back(h->pool, c);
  return status;
}

static dk_status
open_handle(struct handle *h, struct dk_call *call, const struct dk_open *open, struct why *why)
{
  TRY(settings_read(open, &h->settings, why));
  TRY(servers_new(h->host, &h->settings, &h->servers, why));
  TRY(pool_new(h->host, &h->settings, h->servers, &h->pool, why));
  TRY(open_store(h, call, open, why));
  return h->store.is_read_only ? DK_OK : bell_new(h, &h->bell, why);
}

static dk_status
check_flags(const struct dk_open *open, struct why *why)
{
  const uint32_t known = DK_OPEN_CREATE | DK_OPEN_READ_ONLY | DK_OPEN_HOST_CLOCK;

  if (open->flags & ~known)
    return why_set(why, DK_UNSUPPORTED, "open: flags 0x%x are not known to this version",
                   open->flags & ~known);
  return DK_OK;
}

static dk_status
pg_open(const struct dk_host *host, struct dk_call *call, const struct dk_open *open,
        void **ret_self)
{
  struct why why = {.status = DK_OK};

  if (check_flags(open, &why) != DK_OK)
    return why_tell(&why, host, call);
  struct handle *h = calloc(1, sizeof *h);
  if (!h) {
    why_set(&why, DK_NO_MEMORY, "open: out of memory for the handle");
    return why_tell(&why, host, call);
  }
  h->host = host;
  dk_status status = open_handle(h, call, open, &why);
  if (status != DK_OK) {
    pg_close(h);
    return status == why.status ? why_tell(&why, host, call) : status;
  }
  *ret_self = h;
  return DK_OK;
}

static dk_status
destroy(const struct dk_host *host, struct dk_call *call, const struct dk_open *open,
        struct settings *settings, struct why *why)
{
  TRY(settings_read(open, settings, why));
  struct connection c = {.host = host, .settings = settings};
  dk_status status = connection_open(&c, call, why);
  if (status == DK_OK)
    status = store_destroy(&c, call, why);
  connection_close(&c);
  return status;
}

static dk_status
pg_destroy_store(const struct dk_host *host, struct dk_call *call, const struct dk_open *open)
{
  struct settings settings = {0};
  struct why why = {.status = DK_OK};
  dk_status status = destroy(host, call, open, &settings, &why);

  settings_done(&settings);
  return status == why.status ? why_tell(&why, host, call) : status;
}

/* ABI-3.  An earlier host does not have the upcalls. */
static const void *
pg_extension(void *self, const char *id)
{
  const struct handle *h = self;

  return strcmp(id, DK_ADMIN) == 0 && DK_HAS(dk_host, h->host, removed) ? &pg_admin : NULL;
}

/* ---- the descriptor -------------------------------------------------------------------------- */

static const char *const extensions[] = {DK_ADMIN, NULL};

static const struct dk_limits limits = {
  .struct_size = sizeof limits,
  .max_id = MAX_ID,
  .max_payload = MAX_PAYLOAD,
  .max_commit_bytes = MAX_COMMIT_BYTES,
  .max_commit_items = MAX_COMMIT_ITEMS,
};

static const struct dk_provider provider = {
  .magic = DK_MAGIC,
  .struct_size = sizeof provider,
  .stamp = DK_STAMP,
  .abi_minor = DK_ABI_MINOR,
  .clocks = DK_CLOCK_HOST | DK_CLOCK_STORE,
  .thread_model = DK_PARALLEL,
  .durable = 2,
  .shared = 3,
  .unload = 0, /* libpq keeps in statics what it has made for OpenSSL, once: unmapped, it is lost */
  .abi_vendor = "durakit",
  .name = "pg",
  .version = "1",
  .built_with = "gcc " __VERSION__,
  .help = "A store in a schema of a PostgreSQL database (13 or later, encoding UTF8), for all "
          "processes on all machines that reach it.  The role needs only CREATE on the "
          "database, or a schema of its own.  Without DK_OPEN_HOST_CLOCK all times are those of "
          "the server's clock.",
  .params = pg_params,
  .extensions = extensions,
  .limits = &limits,
  .ops = &pg_ops,
  .open = pg_open,
  .close = pg_close,
  .destroy_store = pg_destroy_store,
  .extension = pg_extension,
};

const struct dk_provider *
durakit_provider_2(uint32_t host_minor)
{
  (void)host_minor;
  return &provider;
}
