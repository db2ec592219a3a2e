/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of loaded libraries, open stores and their tables: the one place where the host keeps
 * something for the whole process, because a file is loaded once whoever asks, and a canceller
 * finds the calls made with it wherever they run.
 *
 * Locking.  `loading` is held while a file is loaded, and so over its constructors and its entry
 * function.  `lock` guards the three lists and the libraries' counts; it is held for moments only,
 * so that neither dk_cancel nor an upcall ever waits for a load.  Order: loading, lock, a store's
 * lock.  Under `lock` nothing of a provider or of the host's options is called. */
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
