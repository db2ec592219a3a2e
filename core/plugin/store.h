/* SPDX-License-Identifier: Apache-2.0 */
/* An open store, as the host keeps it.
 *
 * Locking.  `lock` guards the list of running calls and the count of pins, and is only held
 * briefly.  No function of a provider is called under it, and no upcall takes it, so that a
 * provider may make upcalls under its own locks.  A thread that interrupts holds a pin instead,
 * which keeps the handle open and the store in the process's list. */
#ifndef DK_PLUGIN_STORE_H
#define DK_PLUGIN_STORE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <durakit/admin.h>
#include <durakit/host.h>

#include "core/base/lock.h"
#include "core/plugin/serialise.h"

struct dk_library;
struct dk_table;

struct dk_store {
  struct dk_store *next;          /* in the process's list, under its lock */
  struct dk_library *library;
  struct dk_host_options options; /* copied and completed */
  struct dk_clock *clock;
  struct dk_table *table;
  void *self;                     /* the provider's handle */
  struct dk_admin admin;          /* durakit.admin/1, copied and completed; zero: not offered */
  _Atomic int64_t latest;         /* the latest time that the provider was given */
  struct dk_turnstile own_turn;   /* for DK_ONE_PER_HANDLE */
  struct dk_turnstile *turnstile; /* NULL: calls run in parallel */
  struct dk_lock lock;
  pthread_cond_t idle;            /* signalled when no call is running any more */
  struct dk_call *calls;
  int64_t fails_since;            /* when the first of the calls began that found it busy or
                                     unreachable, with no other answer since; 0: the last answer was
                                     another */
  uint32_t pins;                  /* number of cancellers that are interrupting it */
  bool is_watched;                /* by Valgrind: what is handed up is checked (memory.h) */
  bool is_opened;                 /* the provider has returned `self`, and has not closed it */
  atomic_bool is_closing;
  int closing_fd;                 /* an eventfd, readable once it closes */
};

int64_t dk_store_now(struct dk_store *store);

/* The table that the provider is given; NULL: no memory. */
struct dk_table *dk_table_new(struct dk_store *store);
const struct dk_host *dk_table_host(const struct dk_table *table);
void dk_table_free(struct dk_table *table);

/* Pins the store while it is interrupted, if one of its running calls was made with this canceller;
 * false: none was, or it is being closed, which interrupts anyway. */
bool dk_store_pin(struct dk_store *store, const struct dk_canceller *canceller);
void dk_store_unpin(struct dk_store *store);
/* The store must not be freed meanwhile; called with no lock held. */
void dk_store_interrupt(struct dk_store *store);

/* Adds to and removes from the running calls; false: the store is being closed. */
bool dk_store_add_call(struct dk_store *store, struct dk_call *call);
/* `status` is its answer. */
void dk_store_remove_call(struct dk_store *store, struct dk_call *call, dk_status status);

#endif
