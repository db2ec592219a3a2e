/* SPDX-License-Identifier: Apache-2.0 */
/* ADMIN, DEL, PRUNE: which instances a filter selects, and which go with a deletion.  What is noted
 * at an instance counts for the operation that noted it, and for no other. */
#include "conformance/model/model.h"

#include <string.h>
#include <strings.h>

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

/* DEL-2: it has ended, and is not about to begin another execution. */
bool
is_over(const struct op *op, const struct instance *instance)
{
  const struct store *s = op->s;
  int32_t status = status_of(instance);

  return status == DK_COMPLETED || status == DK_FAILED ||
         REFUSED(M_DEL_CANCELLED_IS_NOT_OVER, status == DK_CANCELLED) ||
         DEFECT(M_DEL_CONTINUED_IS_OVER, status == DK_CONTINUED_AS_NEW) ||
         DEFECT(M_DEL_NOT_STARTED_IS_OVER, status == DK_NOT_STARTED);
}

static int64_t
age_of_messages(const struct op *op, const struct instance *instance)
{
  const struct store *s = op->s;
  const struct message *oldest = NULL, *newest = NULL;

  FOR_EACH(at, &instance->messages) {
    const struct message *message = OWNER_OF(at, struct message, link);
    if (!oldest || message->enqueued_at < oldest->enqueued_at)
      oldest = message;
    if (!newest || message->enqueued_at > newest->enqueued_at)
      newest = message;
  }
  if (!oldest)
    return 0;
  if (DEFECT(M_ADMIN_PENDING_AGE_BY_NEWEST, newest->enqueued_at != oldest->enqueued_at))
    return newest->enqueued_at;
  if (DEFECT(M_ADMIN_PENDING_AGE_BY_VISIBLE, oldest->visible_at != oldest->enqueued_at))
    return oldest->visible_at;
  return oldest->enqueued_at;
}

/* ADMIN-3, ADMIN-4, PRUNE-3: by the oldest of its messages, and after its first commit for good. */
int64_t
created_at(const struct op *op, const struct instance *instance)
{
  const struct store *s = op->s;
  int64_t created = instance->created_at;

  if (!instance->birth)
    return age_of_messages(op, instance);
  if (DEFECT(M_ADMIN_CREATED_MOVES, instance->current->started_at != created))
    return instance->current->started_at;
  if (DEFECT(M_PRUNE_CREATED_FROM_FIRST_LEFT, instance->first->started_at != created))
    return instance->first->started_at;
  return created;
}

/* ---- filters --------------------------------------------------------------------------------- */

dk_status
begin_filter(struct op *op, const struct dk_instance_filter *filter)
{
  const struct store *s = op->s;
  const uint32_t flags = DK_FILTER_IDS | DK_FILTER_ROOTS, statuses = (2u << DK_CANCELLED) - 1;

  if (!filter)
    return DK_OK;
  TRY(refuse_unknown(op, REFUSED(M_ADMIN_FILTER_FLAGS_IGNORED, filter->flags & ~flags),
                     "a flag of the filter"));
  TRY(refuse_unknown(op, filter->statuses & ~statuses, "a status of the filter"));
  for (size_t i = 0; filter->flags & DK_FILTER_IDS && i < filter->n_ids; i++) {
    struct instance *listed = find_instance(s, filter->ids[i]);
    if (DEFECT(M_ADMIN_UNKNOWN_ID_IS_ERROR, !is_there(listed)))
      return refuse(op, DK_NOT_FOUND, "there is no such instance");
    if (listed && !DEFECT(M_ADMIN_MANY_IDS_CUT, i >= 1000))
      listed->listed_by = op->number;
  }
  return DK_OK;
}

static bool
begins_with(struct dk_bytes text, struct dk_bytes beginning)
{
  return text.len >= beginning.len && memcmp(text.ptr, beginning.ptr, beginning.len) == 0;
}

/* ADMIN-2: equal byte for byte; absent is not asked for. */
static bool
is_text(const struct op *op, struct dk_bytes wanted, struct dk_bytes text)
{
  const struct store *s = op->s;

  if (!wanted.ptr || equal_bytes(wanted, text))
    return true;
  return text.ptr && (DEFECT(M_ADMIN_FILTER_BY_PREFIX, begins_with(text, wanted)) ||
                      DEFECT(M_ADMIN_FILTER_PADDED,
                             text.len == wanted.len + 1 && begins_with(text, wanted) &&
                               text.ptr[wanted.len] == ' ') ||
                      DEFECT(M_ADMIN_FILTER_IN_ANY_CASE,
                             text.len == wanted.len &&
                               strncasecmp(text.ptr, wanted.ptr, text.len) == 0));
}

/* From <= time < before; 0 is not asked for. */
static bool
is_between(const struct op *op, int64_t time, int64_t from, int64_t before)
{
  enum { SECOND = 1000 };
  const struct store *s = op->s;

  if (DEFECT(M_ADMIN_TIMES_IN_SECONDS, time % SECOND != 0))
    time -= time % SECOND;
  if ((from && time < from) || DEFECT(M_ADMIN_FROM_EXCLUSIVE, from && time == from))
    return false;
  return !before || time < before || DEFECT(M_ADMIN_BEFORE_INCLUSIVE, time == before);
}

static bool
is_of_status(const struct op *op, const struct instance *instance, uint32_t statuses)
{
  const struct store *s = op->s;
  int32_t status = status_of(instance);

  if (DEFECT(M_ADMIN_STATUS_OF_FIRST, instance->first && instance->first->status != status))
    status = instance->first->status;
  for (const struct execution *e = instance->first; e; e = e->next)
    if (DEFECT(M_ADMIN_STATUS_OF_ANY, statuses >> e->status & 1 && e->status != status))
      return true;
  if (DEFECT(M_ADMIN_NOT_STARTED_ALONE, status == DK_NOT_STARTED && (statuses & (statuses - 1))))
    return false;
  return !statuses || statuses >> status & 1;
}

/* ADMIN-2: what runs has not completed. */
static bool
is_of_time(const struct op *op, const struct instance *instance,
           const struct dk_instance_filter *filter)
{
  const struct store *s = op->s;
  int64_t completed_at = instance->birth ? instance->current->completed_at : 0;
  bool asks = filter->completed_from || filter->completed_before;
  bool is_pending = !instance->birth;

  if (DEFECT(M_ADMIN_CONTINUED_RUNS,
             asks && !is_pending && instance->current->status == DK_CONTINUED_AS_NEW))
    return false;
  if (asks && !HOLDS(M_ADMIN_RUNNING_HAS_COMPLETED, completed_at != 0) &&
      !DEFECT(M_ADMIN_PENDING_HAS_COMPLETED, is_pending))
    return false;
  return is_between(op, created_at(op, instance), filter->created_from, filter->created_before) &&
         (!asks || is_between(op, completed_at, filter->completed_from, filter->completed_before));
}

/* ADMIN-2: all that is given has to hold. */
bool
is_selected(const struct op *op, const struct instance *instance,
            const struct dk_instance_filter *filter)
{
  static const struct facts none;
  const struct store *s = op->s;
  const struct facts *facts = instance->birth ? instance->facts : &none;

  if (!is_there(instance) && !DEFECT(M_ADMIN_LEFTOVERS_LISTED, !instance->first))
    return false;
  if (!filter)
    return true;
  bool by_ids = filter->flags & DK_FILTER_IDS;
  if (by_ids && instance->listed_by != op->number &&
      !DEFECT(M_ADMIN_EMPTY_IDS_IS_ALL, filter->n_ids == 0))
    return false;
  if (REFUSED(M_ADMIN_ROOTS_IGNORED, filter->flags & DK_FILTER_ROOTS && facts->parent.ptr))
    return false;
  if (!DEFECT(M_ADMIN_STATUS_FORGOTTEN, filter->name.ptr && filter->statuses) &&
      !is_of_status(op, instance, filter->statuses))
    return false;
  return is_text(op, filter->name, facts->name) &&
         (HOLDS(M_ADMIN_VERSION_IGNORED, is_text(op, filter->version, facts->version))) &&
         (is_text(op, filter->parent_instance, facts->parent) ||
          DEFECT(M_ADMIN_PARENT_FORGOTTEN, filter->name.ptr != NULL)) &&
         (is_of_time(op, instance, filter) || DEFECT(M_ADMIN_TIMES_FORGOTTEN, by_ids));
}

/* ADMIN-1, DEL-9: whether that id is there or not. */
size_t
place_after(const struct op *op, struct instance *const *all, struct dk_bytes after)
{
  size_t from = 0, to = op->s->instances.n;

  while (after.ptr && from < to) {
    size_t middle = from + (to - from) / 2;
    if (str_compare(all[middle]->id, after) > 0)
      to = middle;
    else
      from = middle + 1;
  }
  return from;
}

/* ---- which instances are deleted ------------------------------------------------------------- */

/* DEL-3: a parent that does not exist is none. */
struct instance *
parent_of(const struct op *op, const struct instance *instance)
{
  struct dk_bytes parent = instance->birth ? instance->facts->parent : (struct dk_bytes){NULL, 0};
  const struct store *s = op->s;
  struct instance *found = parent.ptr ? find_instance(s, parent) : NULL;

  if (DEFECT(M_DEL_PENDING_IS_NO_PARENT, is_there(found) && !found->birth))
    return NULL;
  return is_there(found) || DEFECT(M_DEL_LEFTOVER_IS_PARENT, found != NULL) ? found : NULL;
}

static bool
is_judged(const struct op *op, const struct instance *instance)
{
  return instance->judged_by == op->number;
}

static void
model_fate_judge(const struct op *op, struct instance *instance, enum fate fate)
{
  instance->judged_by = op->number;
  instance->fate = fate;
}

void
let_go(const struct op *op, struct instance *instance)
{
  model_fate_judge(op, instance, GOES);
  instance->named_by = op->number;
}

bool
is_named(const struct op *op, const struct instance *instance)
{
  return instance->named_by == op->number;
}

/* DEL-8. */
void
let_stay(const struct op *op, struct instance *instance)
{
  const struct store *s = op->s;

  for (; instance && !is_judged(op, instance); instance = parent_of(op, instance)) {
    model_fate_judge(op, instance, STAYS);
    if (DEFECT(M_DEL_MATCHING_LOOKS_AT_ROOTS, parent_of(op, instance) != NULL))
      break;
  }
}

bool
has_to_stay(const struct op *op, const struct instance *instance)
{
  return is_judged(op, instance) && instance->fate == STAYS;
}

/* DEL-3: however deep; a ring of parents stays if none of them was let go. */
bool
goes(const struct op *op, struct instance *instance)
{
  struct instance *top = instance;

  for (; top && !is_judged(op, top); top = parent_of(op, top))
    model_fate_judge(op, top, IS_ASKED);
  enum fate fate = top && top->fate == GOES ? GOES : STAYS;
  for (struct instance *at = instance; at && at->fate == IS_ASKED; at = parent_of(op, at))
    at->fate = fate;
  return instance && instance->fate == GOES;
}

/* How far it is above the one that was let go; only mutants ask. */
uint64_t
generations(const struct op *op, const struct instance *instance)
{
  uint64_t n = 0;

  for (; instance && !is_named(op, instance); instance = parent_of(op, instance))
    n++;
  return n;
}
