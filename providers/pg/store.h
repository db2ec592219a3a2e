/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a schema is a store of ours, which version its tables have, and how they are made,
 * migrated and removed. */
#ifndef DK_PG_STORE_H
#define DK_PG_STORE_H

#include "providers/pg/connection.h"

/* The versions between 1 and this one were never released, and are refused. */
enum { SCHEMA_VERSION = 4 };

struct store {
  int64_t number;         /* random, of this store: in every token */
  bool is_read_only;
  bool host_clock;        /* DK_OPEN_HOST_CLOCK, as the store was made */
};

/* Opens, makes or migrates the store by the flags of `open`, in one transaction under a lock for
 * which several processes may compete.  A read-only open changes nothing. */
dk_status store_open(struct connection *c, struct dk_call *call, const struct dk_open *open,
                     struct store *ret_store, struct why *why);
/* Drops the schema if it is ours.  A missing schema is DK_OK, another program's schema DK_REFUSED.
 */
dk_status store_destroy(struct connection *c, struct dk_call *call, struct why *why);

#endif
