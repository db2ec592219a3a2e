/* SPDX-License-Identifier: Apache-2.0 */
/* What a store that fails on request remembers: for failing-store.c, which does what was planned,
 * and failing-store-orders.c, which takes the plans.
 *
 * Locking: `lock` guards the plans and the counts; nothing is called under it.  A call that hangs
 * polls `gate`, an eventfd that faulty_release sets and the next plan clears. */
#ifndef DK_RUNTIME_TESTING_FAILING_STORE_STATE_H
#define DK_RUNTIME_TESTING_FAILING_STORE_STATE_H

#include "core/base/lock.h"
#include "core/runtime/testing/failing-store.h"

struct plan {
  uint32_t skip, times;
  enum fault fault;
  dk_status status;
};

struct faulty {
  struct dk_library *inner, *outer;
  struct dk_store *store;
  const struct dk_host *host;
  void *self;               /* the real provider's handle */

  struct dk_lock lock;
  pthread_cond_t changed;
  struct plan plans[N_FAULTY_OPERATIONS], later[N_FAULTY_OPERATIONS];
  uint64_t calls[N_FAULTY_OPERATIONS], successes[N_FAULTY_OPERATIONS];
  uint32_t hanging;
  bool is_away;
  const char *refused;      /* whose results are; or NULL */
  dk_status refusal;
  bool is_plain;            /* offers no extension */
  uint32_t most_in_page;    /* of a deletion, roots; 0: as many as requested */
  char custom_status[64];
  int gate;
};

#endif
