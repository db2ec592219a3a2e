/* SPDX-License-Identifier: Apache-2.0 */
/* REL: releasing the locks of a fetch whose answer was lost. */
#include "conformance/model/model.h"

/* REL-3: from now on the lock is another fetch's, even if that has the id 0. */
static uint64_t
id_of(const struct op *op, uint64_t fetch_id, const struct lock *before)
{
  const struct store *s = op->s;

  return DEFECT(M_REL_NEXT_HOLDER_TOO, fetch_id == 0) ? before->fetch_id : fetch_id;
}

uint64_t
fetch_id_of_turn(const struct op *op, const struct dk_fetch_turn *request,
                 const struct lock *before)
{
  return id_of(op, DK_HAS_FIELD(dk_fetch_turn, request, fetch_id) ? request->fetch_id : 0, before);
}

uint64_t
fetch_id_of_work(const struct op *op, const struct dk_fetch_work *request,
                 const struct lock *before)
{
  return id_of(op, DK_HAS_FIELD(dk_fetch_work, request, fetch_id) ? request->fetch_id : 0, before);
}

/* REL-1, REL-2: alive or run out, whichever handle fetched it. */
static bool
is_of_fetch(const struct op *op, const struct lock *lock, uint64_t fetch_id)
{
  const struct store *s = op->s;

  if (!lock->held || lock->fetch_id != fetch_id)
    return DEFECT(M_REL_ALL_LEASES, lock->held);
  return !DEFECT(M_REL_RUN_OUT_STAYS, lock->until <= op->now) &&
         !DEFECT(M_REL_OWN_HANDLE_ONLY, lock->handle != s->handle); /* REL-4 */
}

static uint64_t
release_turns(struct op *op, uint64_t fetch_id)
{
  const struct store *s = op->s;
  uint64_t n = 0;

  FOR_EACH(at, &s->waiting) {
    const struct instance *turn = OWNER_OF(at, const struct instance, link);
    if (!is_of_fetch(op, &turn->lock, fetch_id) || MUTANT(M_REL_TURN_STAYS))
      continue;
    STEP(op, .kind = MESSAGES_BACK, .instance = turn->id, .epoch = turn->lock.epoch,
         .visible_at = MUTANT(M_REL_TURN_MOVES) ? op->now : 0,
         .attempt = MUTANT(M_REL_TURN_COUNTED) ? 0 : 1);
    release_turn(op, turn, false);
    n++;
  }
  return n;
}

static uint64_t
release_work(struct op *op, uint64_t fetch_id)
{
  const struct store *s = op->s;
  uint64_t n = 0;

  FOR_EACH(at, &s->rows) {
    const struct row *row = OWNER_OF(at, const struct row, link);
    if (!is_of_fetch(op, &row->lock, fetch_id) || MUTANT(M_REL_WORK_STAYS) ||
        DEFECT(M_REL_FIRST_ITEM_ONLY, n > 0))
      continue;
    struct lock freed = row->lock;
    freed.held = false;
    bool is_counted = MUTANT(M_REL_WORK_COUNTED) || row->attempt == 0;
    change_row(op, row, freed, row->owner, op->now, row->attempt - (is_counted ? 0 : 1));
    n++;
  }
  return n;
}

static dk_status
release_fetch(struct op *op, uint64_t fetch_id)
{
  const struct store *s = op->s;
  uint64_t n = release_turns(op, fetch_id) + release_work(op, fetch_id);

  if (DEFECT(M_REL_NOTHING_IS_NOT_FOUND, n == 0)) /* REL-3 */
    return refuse(op, DK_NOT_FOUND, "this fetch holds no lock");
  return DK_OK;
}

dk_status
model_release_fetch(void *self, struct dk_call *call, uint64_t fetch_id)
{
  struct op op;

  TRY(enter(&op, self, call, "release_fetch"));
  return leave(&op, release_fetch(&op, fetch_id));
}
