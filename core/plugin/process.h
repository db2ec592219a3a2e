/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to the process as a whole: which libraries are loaded, which stores are open,
 * which tables of upcalls are in use. */
#ifndef DK_PLUGIN_PROCESS_H
#define DK_PLUGIN_PROCESS_H

#include "core/base/lock.h"

struct dk_library;
struct dk_store;
struct dk_table;

struct dk_process {
  struct dk_lock loading;
  struct dk_lock lock;
  struct dk_library *libraries;
  struct dk_store *stores;
  struct dk_table *tables;     /* the newest first */
  pthread_cond_t table_unused; /* a table that a copy stood for is not used any more */
};

struct dk_process *dk_process(void);

#endif
