/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellers: a mark and an eventfd.  A canceller may be in memory that processes share; the stores
 * to interrupt are found in the process's list of stores, never in the canceller. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/plugin/call.h"
#include "core/plugin/look.h"
#include "core/plugin/process.h"
#include "core/plugin/store.h"

size_t
dk_canceller_size(void)
{
  return sizeof(struct dk_canceller);
}

struct dk_canceller *
dk_canceller_new(void *region)
{
  struct dk_canceller *canceller = region ? region : malloc(sizeof(*canceller));

  if (!canceller)
    return NULL;
  atomic_init(&canceller->is_cancelled, false);
  canceller->is_own = !region;
  canceller->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (canceller->fd < 0) {
    if (canceller->is_own)
      free(canceller);
    return NULL;
  }
  return canceller;
}

void
dk_canceller_free(struct dk_canceller *canceller)
{
  if (!canceller)
    return;
  close(canceller->fd);
  if (canceller->is_own)
    free(canceller);
}

/* Pins and returns the next store in the list that has such a call; the pin keeps its place in the
 * list.  A store that is opened meanwhile is added at the beginning, and its calls are cancelled
 * from their start. */
static struct dk_store *
pin_next(const struct dk_store *pinned, const struct dk_canceller *canceller)
{
  struct dk_process *process = dk_process();

  dk_lock(&process->lock);
  struct dk_store *store = pinned ? pinned->next : process->stores;
  while (store && !dk_store_pin(store, canceller))
    store = store->next;
  dk_unlock(&process->lock);
  return store;
}

void
dk_cancel(struct dk_canceller *canceller)
{
  atomic_store(&canceller->is_cancelled, true);
  dk_ring(canceller->fd);

  struct dk_store *store = pin_next(NULL, canceller);
  while (store) {
    dk_store_interrupt(store);
    struct dk_store *next = pin_next(store, canceller);
    dk_store_unpin(store);
    store = next;
  }
}

int32_t
dk_cancelled(const struct dk_canceller *canceller)
{
  return atomic_load(&canceller->is_cancelled);
}

void
dk_canceller_reset(struct dk_canceller *canceller)
{
  atomic_store(&canceller->is_cancelled, false);
  dk_unring(canceller->fd);
}
