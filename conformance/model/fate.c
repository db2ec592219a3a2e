/* SPDX-License-Identifier: Apache-2.0 */
/* ADMIN, DEL, PRUNE: which instances a filter selects, and which go with a deletion.  What is noted
 * at an instance counts for the operation that noted it, and for no other. */
#include "conformance/model/model.h"

/* ---- what an instance is --------------------------------------------------------------------- */

bool
is_there(const struct instance *instance)
{
  return instance && (instance->birth || instance->messages.next != &instance->messages);
}

/* ADMIN-4. */
int32_t
status_of(const struct instance *instance)
{
  return instance->birth ? instance->current->status : DK_NOT_STARTED;
}

/* DEL-2: an end, and not one behind which another execution begins. */
bool
is_over(const struct op *op, const struct instance *instance)
{
  int32_t status = status_of(instance);

  (void)op;
  return status == DK_COMPLETED || status == DK_FAILED || status == DK_CANCELLED;
}

/* ADMIN-3, ADMIN-4: its first commit, or the oldest of its messages. */
int64_t
created_at(const struct op *op, const struct instance *instance)
{
  int64_t oldest = INT64_MAX;

  (void)op;
  if (instance->birth)
    return instance->created_at;
  FOR_EACH(at, &instance->messages) {
    const struct message *message = OWNER_OF(at, struct message, link);
    if (message->enqueued_at < oldest)
      oldest = message->enqueued_at;
  }
  return oldest;
}

/* ADMIN-3, ADMIN-6. */
bool
is_held(const struct op *op, const struct lock *lock)
{
  return lock->held && lock->until > op->now;
}

/* ---- filters --------------------------------------------------------------------------------- */

dk_status
begin_filter(struct op *op, const struct dk_instance_filter *filter)
{
  const uint32_t flags = DK_FILTER_IDS | DK_FILTER_ROOTS, statuses = (2u << DK_CANCELLED) - 1;

  if (!filter)
    return DK_OK;
  TRY(refuse_unknown(op, filter->flags & ~flags, "a flag of the filter"));
  TRY(refuse_unknown(op, filter->statuses & ~statuses, "a status of the filter"));
  for (size_t i = 0; filter->flags & DK_FILTER_IDS && i < filter->n_ids; i++) {
    struct instance *listed = find_instance(op->s, filter->ids[i]);
    if (listed)
      listed->listed_by = op->s->operations;
  }
  return DK_OK;
}

/* Absent is not asked for. */
static bool
is_text(struct dk_bytes wanted, struct dk_bytes text)
{
  return !wanted.ptr || same_bytes(wanted, text);
}

/* From <= time < before; 0 is not asked for. */
static bool
is_between(int64_t time, int64_t from, int64_t before)
{
  return (!from || time >= from) && (!before || time < before);
}

/* ADMIN-2: all that is given has to hold. */
bool
is_selected(const struct op *op, const struct instance *instance,
            const struct dk_instance_filter *filter)
{
  static const struct facts none;
  const struct facts *facts = instance->birth ? instance->facts : &none;
  int64_t completed_at = instance->birth ? instance->current->completed_at : 0;

  if (!is_there(instance))
    return false;
  if (!filter)
    return true;
  if (filter->flags & DK_FILTER_IDS && instance->listed_by != op->s->operations)
    return false;
  if (filter->flags & DK_FILTER_ROOTS && facts->parent.ptr)
    return false;
  if (filter->statuses && !(filter->statuses >> status_of(instance) & 1))
    return false;
  if ((filter->completed_from || filter->completed_before) && !completed_at)
    return false;
  return is_text(filter->name, facts->name) && is_text(filter->version, facts->version) &&
         is_text(filter->parent_instance, facts->parent) &&
         is_between(created_at(op, instance), filter->created_from, filter->created_before) &&
         is_between(completed_at, filter->completed_from, filter->completed_before);
}

/* ADMIN-1, DEL-9: whether that id is there or not. */
size_t
place_after(const struct op *op, struct instance *const *all, struct dk_bytes after)
{
  size_t from = 0, to = op->s->instances.n;

  while (after.ptr && from < to) {
    size_t middle = from + (to - from) / 2;
    if (compare_bytes(all[middle]->id, after) > 0)
      to = middle;
    else
      from = middle + 1;
  }
  return from;
}

/* ---- who goes -------------------------------------------------------------------------------- */

/* DEL-3: one that is not there is none. */
struct instance *
parent_of(const struct op *op, const struct instance *instance)
{
  struct dk_bytes parent = instance->birth ? instance->facts->parent : (struct dk_bytes){NULL, 0};
  struct instance *found = parent.ptr ? find_instance(op->s, parent) : NULL;

  return is_there(found) ? found : NULL;
}

static bool
is_judged(const struct op *op, const struct instance *instance)
{
  return instance->judged_by == op->s->operations;
}

static void
judge(const struct op *op, struct instance *instance, enum fate fate)
{
  instance->judged_by = op->s->operations;
  instance->fate = fate;
}

void
let_go(const struct op *op, struct instance *instance)
{
  judge(op, instance, GOES);
}

void
let_stay(const struct op *op, struct instance *instance)
{
  for (; instance && !is_judged(op, instance); instance = parent_of(op, instance))
    judge(op, instance, STAYS);
}

bool
has_to_stay(const struct op *op, const struct instance *instance)
{
  return is_judged(op, instance) && instance->fate == STAYS;
}

/* DEL-3: however deep; a ring of parents that nobody has let go stays. */
bool
goes(const struct op *op, struct instance *instance)
{
  struct instance *top = instance;

  for (; top && !is_judged(op, top); top = parent_of(op, top))
    judge(op, top, IS_ASKED);
  enum fate fate = top && top->fate == GOES ? GOES : STAYS;
  for (struct instance *at = instance; at && at->fate == IS_ASKED; at = parent_of(op, at))
    at->fate = fate;
  return instance && instance->fate == GOES;
}
