/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of loaded libraries, open stores and their tables: the only state that the host keeps
 * for the whole process.  It is needed because a file is loaded only once, whichever caller loads
 * it, and because a canceller must find its calls in every store.
 *
 * Locking.  `loading` is held while a file is loaded, and so over its constructors and its entry
 * function.  `lock` guards the three lists and the libraries' counts; it is only held briefly, so
 * that neither dk_cancel nor an upcall ever waits for a load.  Order: loading, lock, a store's
 * lock.  No function of a provider or of the host's options is called under `lock`. */
#include "core/plugin/process.h"

struct dk_process *
dk_process(void)
{
  static struct dk_process the_process = {
    .loading = DK_LOCK_INITIALIZER,
    .lock = DK_LOCK_INITIALIZER,
    .table_unused = PTHREAD_COND_INITIALIZER,
  };

  return &the_process;
}
