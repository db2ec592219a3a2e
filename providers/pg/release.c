/* SPDX-License-Identifier: Apache-2.0 */
/* REL: frees, by the id of a fetch, what that fetch has locked, after its answer was lost.
 * schema/release.sql defines what is given back. */
#include "providers/pg/handle.h"

/* The store has a signed number of as many bits.  A fetch without an id leaves the parameter out.
 * [REL-3] */
void
value_fetch_id(struct values *v, uint64_t fetch_id)
{
  if (fetch_id != 0)
    value_bigint(v, (int64_t)fetch_id);
}

uint64_t
fetch_id_of_turn(const struct dk_fetch_turn *request)
{
  return DK_HAS_FIELD(dk_fetch_turn, request, fetch_id) ? request->fetch_id : 0;
}

uint64_t
fetch_id_of_work(const struct dk_fetch_work *request)
{
  return DK_HAS_FIELD(dk_fetch_work, request, fetch_id) ? request->fetch_id : 0;
}

/* REL-4: rings for the waiting fetches. */
dk_status
apply_release_fetch(struct operation *op, uint64_t fetch_id)
{
  dk_status status = DK_OK;
  struct values v;
  PGresult *r;

  operation_values(op, &v);
  value_bigint(&v, (int64_t)fetch_id);
  TRY(operation_run(op, "release_fetch", true, &v, "ib", &r));
  if (PQntuples(r) != 1)
    status = refuse(op, DK_CORRUPT, "the function returned %d rows", PQntuples(r));
  else if (!field_is_null(r, 0, 1))
    bell_ring(op->h->bell, RING_TURNS | RING_WORK, field_bigint(r, 0, 1));
  PQclear(r);
  return status;
}
