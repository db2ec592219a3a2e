/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the process as a whole: which libraries are loaded, which stores are open,
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
  pthread_cond_t table_unused; /* a table that was used through a copy is no longer in use */
};

struct dk_process *dk_process(void);

#endif
