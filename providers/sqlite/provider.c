/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor of the SQLite plugin, and how a handle begins and ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "providers/sqlite/admin.h"

/* ---- the handle ------------------------------------------------------------------------------ */

static void
sqlite_close(void *self)
{
  struct handle *h = self;

  writer_stop(h);
  readers_close(h);
  group_disconnect(h); /* a read-only handle has no writer that did */
  store_files_close(&h->files);
  close(h->wake_fd);
  pthread_cond_destroy(&h->work);
  mutex_done(&h->mutex);
  mutex_done(&h->readers_mutex);
  pthread_cond_destroy(&h->readers_go);
  free(h);
}

static dk_status
handle_new(const struct dk_host *host, struct handle **ret_handle, struct why *why)
{
  struct handle *h = calloc(1, sizeof *h);

  if (!h)
    return why_set(why, DK_NO_MEMORY, "open: out of memory for the handle");
  h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (h->wake_fd < 0) {
    free(h);
    return why_errno(why, errno, "open: no eventfd could be made", "the writer thread");
  }
  h->host = host;
  h->files.lock.fd = -1;
  h->next_checkpoint = CHECKPOINT_PAGES;
  mutex_init(&h->mutex);
  mutex_init(&h->readers_mutex);
  pthread_cond_init(&h->readers_go, NULL);
  pthread_cond_init(&h->work, NULL);
  *ret_handle = h;
  return DK_OK;
}

static dk_status
open_files(struct handle *h, struct dk_call *call, const struct dk_open *open, struct why *why)
{
  const uint32_t known = DK_OPEN_CREATE | DK_OPEN_READ_ONLY | DK_OPEN_HOST_CLOCK;

  if (open->flags & ~known)
    return why_set(why, DK_UNSUPPORTED, "open: flags 0x%x are not known to this version",
                   open->flags & ~known);
  if (!(open->flags & DK_OPEN_HOST_CLOCK))                             /* TIME-7 */
    return why_set(why, DK_REFUSED, "open: this plugin uses only the host's clock; open the store "
                                    "with DK_OPEN_HOST_CLOCK");
  TRY(store_files_open(&h->files, open, h->host->cancel_fd(call), &h->writer, why));
  h->ids = h->files.ids;
  return DK_OK;
}

static dk_status
sqlite_open(const struct dk_host *host, struct dk_call *call, const struct dk_open *open,
            void **ret_self)
{
  struct why why;
  struct handle *h = NULL;

  if (handle_new(host, &h, &why) != DK_OK)
    return why_tell(&why, host, call);
  dk_status status = open_files(h, call, open, &why);
  if (status == DK_OK && !h->files.is_read_only)
    status = writer_start(h, &why);
  if (status != DK_OK) {
    sqlite_close(h);
    return why_tell(&why, host, call);
  }
  *ret_self = h;
  return DK_OK;
}

static dk_status
sqlite_destroy_store(const struct dk_host *host, struct dk_call *call, const struct dk_open *open)
{
  struct why why;
  dk_status status = store_files_destroy(open, host->cancel_fd(call), &why);

  return status == DK_OK ? status : why_tell(&why, host, call);
}

static const void *
sqlite_extension(void *self, const char *id)
{
  (void)self;
  return strcmp(id, DK_ADMIN) == 0 ? &sqlite_admin : NULL;
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
  .clocks = DK_CLOCK_HOST,
  .thread_model = DK_PARALLEL,
  .durable = 2,
  .shared = 2,
  .unload = 1,
  .abi_vendor = "durakit",
  .name = "sqlite",
  .version = "1",
  .built_with = "gcc " __VERSION__ ", SQLite " SQLITE_VERSION,
  .help = "A store in one SQLite file, for all processes of one machine.  All writes of a store "
          "wait for one another, and a commit at the limits takes seconds: if there are such "
          "commits, make leases 30 s or longer.",
  .params = sqlite_params,
  .extensions = extensions,
  .limits = &limits,
  .ops = &sqlite_ops,
  .open = sqlite_open,
  .close = sqlite_close,
  .destroy_store = sqlite_destroy_store,
  .extension = sqlite_extension,
};

const struct dk_provider *
durakit_provider_2(uint32_t host_minor)
{
  (void)host_minor;
  return &provider;
}
