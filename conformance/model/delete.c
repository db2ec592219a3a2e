/* SPDX-License-Identifier: Apache-2.0 */
/* DEL: removing instances with all that is theirs.  Judged and done under one lock, as one record:
 * whole or not at all. */
#include "conformance/model/model.h"

#include <string.h>
#include <strings.h>

dk_status
refuse_reader(struct op *op)
{
  return op->s->is_read_only ? refuse(op, DK_REFUSED, "the store was opened read-only") : DK_OK;
}

/* ---- which instances are deleted ------------------------------------------------------------- */

enum { LOOKS_AT_MOST = 64 }; /* mutants, where they compare all with all */

/* A deletion while it is made. */
struct deletion {
  struct op *op;
  struct instance *const *all;
  const struct dk_instance_filter *filter; /* NULL: these were named */
  struct dk_removed removed;
};

/* DEL-1.  What mutants take for one that goes: its id begins like it, or has its letters. */
static bool
is_alike(const struct deletion *d, const struct instance *instance)
{
  const struct store *s = d->op->s;
  struct dk_bytes id = instance->id;

  for (size_t i = 0; i < s->instances.n && s->instances.n <= LOOKS_AT_MOST; i++) {
    struct instance *other = d->all[i];
    size_t length = other->id.len;
    if (other == instance || !is_named(d->op, other) || length > id.len)
      continue;
    if (DEFECT(M_DEL_BY_PREFIX, length < id.len && memcmp(other->id.ptr, id.ptr, length) == 0) ||
        DEFECT(M_DEL_IN_ANY_CASE,
               length == id.len && strncasecmp(other->id.ptr, id.ptr, length) == 0))
      return true;
  }
  return false;
}

/* DEL-3, DEL-8: descendants too, whether a filter selects them or not. */
static bool
is_going(const struct deletion *d, struct instance *instance)
{
  const struct store *s = d->op->s;

  if (!instance)
    return false;
  if (!goes(d->op, instance))
    return is_alike(d, instance);
  uint64_t depth = generations(d->op, instance);
  return !DEFECT(M_DEL_DESCENDANTS_STAY, depth > 0) && !DEFECT(M_DEL_CHILDREN_ONLY, depth > 1) &&
         !DEFECT(M_DEL_HUNDRED_GENERATIONS, depth > 100) &&
         !DEFECT(M_DEL_ENDED_GRANDCHILDREN_STAY, depth > 1 && is_over(d->op, instance)) &&
         !DEFECT(M_DEL_MATCHING_SPARES_UNSELECTED,
                 d->filter && !is_selected(d->op, instance, d->filter));
}

/* ---- all that belongs to them ---------------------------------------------------------------- */

/* DEL-1: of any execution, locked, tagged or delayed. */
static bool
is_left_behind(const struct deletion *d, const struct instance *of, const struct row *row)
{
  const struct store *s = d->op->s;
  uint64_t current = of->current ? of->current->execution_id : 0;
  bool live = is_held(d->op, &row->lock);

  return DEFECT(M_DEL_EARLIER_ROWS_STAY, row->identity.execution_id != current) ||
         DEFECT(M_DEL_MATCHING_LEAVES_WORK, d->filter != NULL) ||
         DEFECT(M_DEL_HELD_ROWS_STAY, live) || DEFECT(M_DEL_TAGGED_ROWS_STAY, row->tag.ptr) ||
         DEFECT(M_DEL_DELAYED_ROWS_STAY, row->visible_at > d->op->now) ||
         DEFECT(M_DEL_ROWS_OF_CHILDREN_STAY, !is_named(d->op, of)) ||
         DEFECT(M_DEL_ROWS_PER_PROCESS, live && (row->lock.handle ^ s->handle) >> 32 != 0);
}

static void
delete_rows(struct deletion *d)
{
  const struct store *s = d->op->s;

  FOR_EACH(at, &s->rows) {
    const struct row *row = OWNER_OF(at, struct row, link);
    const struct identity *i = &row->identity;
    struct instance *of = find_instance(s, i->instance);

    if (!is_going(d, of))
      continue;
    if (!DEFECT(M_DEL_COUNTS_FREE_ROWS, is_held(d->op, &row->lock)))
      d->removed.activities++;
    if (!is_left_behind(d, of, row))
      delete_row(d->op, i->instance, &(struct dk_activity){i->execution_id, i->activity_id});
  }
}

/* DEL-1: delayed, held or by id. */
static void
delete_messages(struct deletion *d, const struct instance *instance)
{
  const struct store *s = d->op->s;
  bool any_delayed = false;

  FOR_EACH(at, &instance->messages) {
    bool is_delayed = OWNER_OF(at, struct message, link)->visible_at > d->op->now;
    any_delayed = any_delayed || is_delayed;
    if (!DEFECT(M_DEL_COUNTS_VISIBLE_MESSAGES, is_delayed) &&
        !DEFECT(M_DEL_MATCHING_COUNTS_NO_MESSAGES, d->filter != NULL))
      d->removed.messages++;
  }
  bool others_only = DEFECT(M_DEL_HELD_MESSAGES_STAY, is_held(d->op, &instance->lock));
  STEP(d->op, .kind = MESSAGES_GO, .instance = instance->id, .held = others_only,
       .epoch = others_only ? instance->lock.epoch : 0,
       .visible_at = DEFECT(M_DEL_TIMERS_STAY, any_delayed) ? d->op->now : 0);
}

/* DEL-1: what it has sent to others is theirs.  A mutant knows it by its id. */
static void
delete_what_it_sent(struct deletion *d, const struct instance *sender)
{
  const struct store *s = d->op->s;

  if (s->instances.n > LOOKS_AT_MOST)
    return;
  FOR_EACH(at, &s->waiting) {
    const struct instance *of = OWNER_OF(at, struct instance, link);
    FOR_EACH(m, &of->messages) {
      struct dk_bytes id = OWNER_OF(m, struct message, link)->id;
      if (DEFECT(M_DEL_SENT_MESSAGES_GO, of != sender && id.len >= sender->id.len &&
                                           memcmp(id.ptr, sender->id.ptr, sender->id.len) == 0))
        STEP(d->op, .kind = MESSAGE_GOES, .instance = of->id, .id = id);
    }
  }
}

/* DEL-7: each once. */
static void
count_histories(struct deletion *d, const struct instance *instance)
{
  const struct store *s = d->op->s;

  for (const struct execution *e = instance->first; e; e = e->next) {
    if (DEFECT(M_DEL_COUNTS_CURRENT_ONLY, e->next != NULL))
      continue;
    d->removed.executions++;
    for (const struct event *v = e->first; v; v = v->next)
      d->removed.events++;
  }
}

/* DEL-1: nothing of it is kept, except by mutants. */
static void
delete_instance(struct deletion *d, const struct instance *instance)
{
  const struct store *s = d->op->s;

  STEP(d->op, .kind = INSTANCE_GOES, .instance = instance->id,
       .held = DEFECT(M_DEL_LOCK_STAYS, is_held(d->op, &instance->lock)) ||
               DEFECT(M_DEL_PENDING_LOCK_STAYS,
                      !instance->birth && is_held(d->op, &instance->lock)),
       .execution_id = DEFECT(M_DEL_HISTORIES_STAY, instance->first != NULL),
       .committed = DEFECT(M_DEL_OWNER_STAYS, instance->facts && instance->facts->owner.ptr));
}

/* DEL-7: it was named, or is one that the page's limit counts. */
static bool
is_root(const struct deletion *d, const struct instance *instance)
{
  const struct store *s = d->op->s;
  bool is_named_child = !d->filter && is_named(d->op, instance) && parent_of(d->op, instance);

  if (DEFECT(M_DEL_NAMED_CHILD_IS_NO_ROOT, is_named_child))
    return false;
  return is_named(d->op, instance) || MUTANT(M_DEL_DESCENDANTS_ARE_ROOTS) ||
         DEFECT(M_DEL_SELECTED_ARE_ROOTS,
                d->filter && is_selected(d->op, instance, d->filter));
}

static void
delete_one(struct deletion *d, const struct instance *instance)
{
  const struct store *s = d->op->s;

  if (!DEFECT(M_DEL_COUNTS_NAMED_ONLY, !is_named(d->op, instance)))
    d->removed.instances++;
  d->removed.roots += is_root(d, instance) ? 1 : 0;
  count_histories(d, instance);
  delete_messages(d, instance);
  delete_what_it_sent(d, instance);
  delete_instance(d, instance);
}

/* DEL-4.  A mutant has deleted one, and others come before the rest. */
static dk_status
pause_after_the_first(struct deletion *d)
{
  struct op *op = d->op;

  TRY(write_in_between(op));
  d->all = instances_in_order(op->s);
  return d->all ? DK_OK : refuse(op, DK_NO_MEMORY, "out of memory");
}

/* DEL-1, DEL-3: the instances that were let go, with all descendants. */
static dk_status
delete_whoever_goes(struct deletion *d)
{
  const struct store *s = d->op->s;

  d->removed.struct_size = sizeof d->removed;
  delete_rows(d);
  for (size_t i = 0; i < s->instances.n; i++) {
    if (!is_going(d, d->all[i]))
      continue;
    delete_one(d, d->all[i]);
    if (d->removed.instances == 1 && MUTANT(M_DEL_BIT_BY_BIT)) {
      TRY(pause_after_the_first(d));
      i = SIZE_MAX; /* from the first again: one was deleted */
    }
  }
  return DK_OK;
}

static dk_status
hand_up_removed(struct op *op, struct dk_removed *removed)
{
  const struct store *s = op->s;

  if (DEFECT(M_DEL_ROOTS_NOT_TOLD, removed->roots > 0))
    removed->roots = 0;
  s->host->removed(op->call, removed);
  return DK_OK;
}

/* ---- these ----------------------------------------------------------------------------------- */

static dk_status
refuse_absent(struct op *op, struct dk_bytes id)
{
  return refuse(op, DK_NOT_FOUND, "there is no instance \"%.*s\"", (int)id.len, id.ptr);
}

/* DEL-4: each that is named exists, and is deleted. */
static dk_status
let_named_go(struct op *op, const struct dk_delete_instances *request)
{
  const struct store *s = op->s;

  for (size_t i = 0; i < request->n_instances; i++) {
    struct dk_bytes id = request->instances[i];

    if (DEFECT(M_DEL_LONG_ID_CUT, id.len == MAX_ID))
      id.len--;
    struct instance *named = find_instance(s, id);
    if (DEFECT(M_DEL_FIRST_500_ONLY, i >= 500))
      break;
    if (DEFECT(M_DEL_UNKNOWN_IS_OK, !is_there(named)))
      continue;
    if ((!is_there(named) && !DEFECT(M_DEL_LEFTOVER_IS_THERE, named != NULL)) ||
        DEFECT(M_DEL_PENDING_IS_NOT_FOUND, !named->birth) ||
        DEFECT(M_DEL_TWICE_IS_NOT_FOUND, is_named(op, named)))
      return refuse_absent(op, request->instances[i]);
    let_go(op, named);
  }
  return DK_OK;
}

/* DEL-3.  What mutants refuse, or let pass, although it has a parent that goes, or stays. */
static bool
is_refused_wrongly(struct op *op, const struct instance *named)
{
  const struct store *s = op->s;
  struct instance *parent = parent_of(op, named);
  bool is_bereft = named->birth && named->facts->parent.ptr && !parent;
  bool is_listed = parent && parent != named && is_named(op, parent);

  return DEFECT(M_DEL_ABSENT_PARENT_REFUSED, is_bereft) ||
         DEFECT(M_DEL_PARENT_IN_LIST_REFUSED, is_listed) ||
         DEFECT(M_DEL_RING_REFUSED, parent && !is_named(op, parent) && goes(op, parent));
}

/* DEL-3: no child is taken from a parent that stays. */
static dk_status
refuse_children_of_others(struct op *op, const struct dk_delete_instances *request)
{
  const struct store *s = op->s;
  bool by_force = request->flags & DK_DELETE_FORCE;

  for (size_t i = 0; i < request->n_instances; i++) {
    struct instance *named = find_instance(s, request->instances[i]);
    struct instance *parent = named ? parent_of(op, named) : NULL;
    bool is_taken = parent && !goes(op, parent);

    if (named && is_refused_wrongly(op, named))
      is_taken = true;
    if (DEFECT(M_DEL_CHILD_OF_RUNNING_GOES, is_taken && parent && !is_over(op, parent)) ||
        DEFECT(M_DEL_CHILD_GOES_BY_FORCE, is_taken && by_force) ||
        DEFECT(M_DEL_CHILD_GOES_ALONE, is_taken && !by_force))
      continue;
    if (is_taken)
      return refuse(op, DK_REFUSED,
                    "\"%.*s\" has the parent \"%.*s\", which is not deleted with it",
                    (int)named->id.len, named->id.ptr, (int)named->facts->parent.len,
                    named->facts->parent.ptr);
  }
  return DK_OK;
}

/* DEL-2. */
static bool
is_in_the_way(struct op *op, const struct instance *instance)
{
  const struct store *s = op->s;
  bool has_messages = instance->messages.next != &instance->messages;

  if (DEFECT(M_DEL_STATUS_OF_NAMED_ONLY, !is_over(op, instance) && !is_named(op, instance)) ||
      DEFECT(M_DEL_RUNNING_GOES, status_of(instance) == DK_RUNNING && is_named(op, instance)))
    return false;
  return !is_over(op, instance) || DEFECT(M_DEL_QUEUED_IS_NOT_OVER, has_messages);
}

static dk_status
refuse_what_is_not_over(struct op *op, struct instance *const *all)
{
  const struct store *s = op->s;

  for (size_t i = 0; i < s->instances.n; i++) {
    if (!goes(op, all[i]))
      continue;
    if (DEFECT(M_DEL_HELD_IS_BUSY, is_held(op, &all[i]->lock)) ||
        DEFECT(M_DEL_HELD_CHILD_IS_BUSY,
               is_held(op, &all[i]->lock) && !is_named(op, all[i])))
      return refuse(op, DK_BUSY, "a turn of this instance is held");
    if (is_in_the_way(op, all[i]))
      return refuse(op, DK_REFUSED,
                    "\"%.*s\" has not ended; DK_DELETE_FORCE deletes it all the same",
                    (int)all[i]->id.len, all[i]->id.ptr);
  }
  return DK_OK;
}

static dk_status
judge_deletion(struct op *op, const struct dk_delete_instances *request,
               struct instance *const *all)
{
  const struct store *s = op->s;
  bool by_force = request->flags & DK_DELETE_FORCE;

  if (DEFECT(M_DEL_VARIABLES_RUN_OUT, request->n_instances > 999))
    return refuse(op, DK_INTERNAL, "too many SQL variables");
  TRY(let_named_go(op, request));
  TRY(refuse_children_of_others(op, request));
  if (!HOLDS(M_DEL_FORCE_IGNORED, !by_force))
    return DK_OK;
  return refuse_what_is_not_over(op, all);
}

/* DEL-4: a refused deletion changes nothing.  Mutants have deleted what came before. */
static dk_status
refused(struct deletion *d, dk_status status)
{
  const struct store *s = d->op->s;

  for (size_t i = 0; i < s->instances.n; i++) {
    bool is_first = is_named(d->op, d->all[i]) && is_over(d->op, d->all[i]);
    if (!DEFECT(M_DEL_LOOP_COMMITS_EACH, status == DK_NOT_FOUND && is_first) &&
        !DEFECT(M_DEL_REFUSAL_TAKES_WHAT_IS_OVER, status == DK_REFUSED && is_first))
      continue;
    delete_messages(d, d->all[i]);
    delete_instance(d, d->all[i]);
    d->op->leaves_traces = true;
  }
  return status;
}

/* DEL-4.  Mutants judge first and let others in before they continue: one has found the instance
 * then, one its status, and one its descendants. */
static dk_status
go_on_outside(struct deletion *d, const struct dk_delete_instances *request)
{
  struct op *op = d->op;
  struct store *s = op->s;
  bool tree = MUTANT(M_DEL_TREE_READ_OUTSIDE), status = MUTANT(M_DEL_STATUS_READ_OUTSIDE);

  if (!tree && !status && !MUTANT(M_DEL_FOUND_OUTSIDE))
    return DK_OK;
  for (size_t i = 0; i < s->instances.n; i++)
    (void)goes(op, d->all[i]);
  TRY(let_others_in(op));
  d->all = instances_in_order(s);
  if (!tree)
    op->number = ++s->operations; /* no instance is let go any more */
  for (size_t i = 0; i < request->n_instances && d->all; i++) {
    struct instance *named = find_instance(s, request->instances[i]);
    if (is_there(named))
      let_go(op, named);
  }
  bool by_force = request->flags & DK_DELETE_FORCE;
  if (d->all && !tree && !status && !by_force)
    return refuse_what_is_not_over(op, d->all);
  return d->all ? DK_OK : refuse(op, DK_NO_MEMORY, "out of memory");
}

/* DEL-1, DEL-7.  Mutants have written what they will delete, or have counted it, when others
 * come. */
static dk_status
delete_outside(struct deletion *d, const struct dk_delete_instances *request)
{
  struct op *op = d->op;
  struct store *s = op->s;
  struct dk_removed counted = d->removed;

  if (MUTANT(M_DEL_ROWS_READ_OUTSIDE))
    return let_others_in(op);
  if (!MUTANT(M_DEL_COUNTED_OUTSIDE))
    return DK_OK;
  dk_text_done(&op->record);
  op->record = (struct dk_text)DK_TEXT_EMPTY;
  TRY(let_others_in(op));
  d->all = instances_in_order(s);
  op->number = ++s->operations;
  for (size_t i = 0; i < request->n_instances && d->all; i++) {
    struct instance *named = find_instance(s, request->instances[i]);
    if (is_there(named))
      let_go(op, named);
  }
  if (!d->all)
    return refuse(op, DK_NO_MEMORY, "out of memory");
  TRY(delete_whoever_goes(d));
  d->removed = counted;
  return DK_OK;
}

static dk_status
delete_instances(struct op *op, const struct dk_delete_instances *request)
{
  struct store *s = op->s;
  struct deletion d = {.op = op};

  TRY(refuse_unknown(op, REFUSED(M_DEL_FLAGS_IGNORED,
                                 request->flags & ~(uint32_t)DK_DELETE_FORCE),
                     "a flag of the deletion"));
  TRY(refuse_reader(op));
  d.all = instances_in_order(s);
  if (!d.all)
    return refuse(op, DK_NO_MEMORY, "out of memory");
  dk_status status = judge_deletion(op, request, d.all);
  if (status != DK_OK)
    return refused(&d, status);
  for (size_t i = 0; DEFECT(M_DEL_EMPTY_IS_ALL, !request->n_instances) && i < s->instances.n; i++)
    let_go(op, d.all[i]);
  TRY(go_on_outside(&d, request));
  TRY(delete_whoever_goes(&d));
  TRY(delete_outside(&d, request));
  if (DEFECT(M_DEL_COUNTS_THE_LIST, d.removed.instances != request->n_instances))
    d.removed.instances = request->n_instances;
  if (DEFECT(M_DEL_TWICE_IS_TWO_ROOTS, d.removed.roots != request->n_instances))
    d.removed.roots = request->n_instances;
  return hand_up_removed(op, &d.removed);
}

dk_status
model_delete_instances(void *self, struct dk_call *call, const struct dk_delete_instances *request)
{
  struct op op;

  TRY(enter(&op, self, call, "delete_instances"));
  return leave(&op, delete_instances(&op, request));
}

/* ---- what a filter selects ------------------------------------------------------------------- */

/* DEL-8: what has not ended stays, and so do its ancestors. */
static void
let_what_runs_stay(const struct op *op, struct instance *const *all)
{
  for (size_t i = 0; i < op->s->instances.n; i++)
    if (is_there(all[i]) && !is_over(op, all[i]))
      let_stay(op, all[i]);
}

/* DEL-8: a root, none of whose descendants has to stay. */
static bool
may_go(const struct op *op, struct instance *instance, const struct dk_instance_filter *filter)
{
  const struct store *s = op->s;
  bool is_bereft =
    instance->birth && instance->facts->parent.ptr && !parent_of(op, instance);

  int64_t completed_at = instance->birth ? instance->current->completed_at : 0;
  bool is_queued = instance->messages.next != &instance->messages;

  if (DEFECT(M_DEL_MATCHING_SPARES_HELD, is_held(op, &instance->lock)) ||
      DEFECT(M_DEL_MATCHING_SPARES_QUEUED, is_queued))
    return false;
  if (!is_selected(op, instance, filter) &&
      !DEFECT(M_DEL_MATCHING_TIME_INCLUSIVE,
              completed_at && completed_at == filter->completed_before) &&
      !DEFECT(M_DEL_EMPTY_FILTER_IS_ALL, filter->flags & DK_FILTER_IDS && !filter->n_ids))
    return false;
  return !DEFECT(M_DEL_MATCHING_WANTS_NO_PARENT, is_bereft) &&
         HOLDS(M_DEL_MATCHING_TAKES_CHILDREN, !parent_of(op, instance)) &&
         !has_to_stay(op, instance);
}

/* DEL-8.  A mutant refuses the whole page for one. */
static dk_status
refuse_what_runs(struct op *op, const struct instance *instance,
                 const struct dk_instance_filter *filter)
{
  const struct store *s = op->s;

  if (DEFECT(M_DEL_MATCHING_REFUSES, is_selected(op, instance, filter) &&
                                       !is_over(op, instance)))
    return refuse(op, DK_REFUSED, "an instance that was selected has not ended");
  return DK_OK;
}

/* DEL-9: where the page ended, if there may be more. */
static struct dk_bytes
next_of(const struct deletion *d, size_t from, size_t until, struct dk_bytes after)
{
  const struct store *s = d->op->s;
  struct dk_bytes none = {NULL, 0}, last = none;

  for (size_t i = from; i < until; i++)
    if (is_named(d->op, d->all[i]))
      last = d->all[i]->id;
  if (DEFECT(M_DEL_PAGES_NEVER_END, from == s->instances.n && after.ptr != NULL))
    return after;
  if (until == s->instances.n || MUTANT(M_DEL_NO_NEXT) || MUTANT(M_DEL_LIMIT_COUNTS_PASSED))
    return none;
  if (DEFECT(M_DEL_NEXT_IS_LAST_DELETED, !equal_bytes(last, d->all[until - 1]->id)))
    return last.ptr ? last : after;
  if (DEFECT(M_DEL_NEXT_IS_ONE_FURTHER, until < s->instances.n))
    return d->all[until]->id;
  return d->all[until - 1]->id;
}

/* DEL-8.  A mutant has selected, and others come before it deletes. */
static dk_status
force_what_was_selected(struct deletion *d)
{
  struct op *op = d->op;
  const struct store *s = op->s;

  if (!MUTANT(M_DEL_SELECTS_THEN_FORCES) && !MUTANT(M_DEL_MATCHING_READS_TREE_OUTSIDE))
    return DK_OK;
  TRY(let_others_in(op));
  d->all = instances_in_order(op->s);
  if (!d->all)
    return refuse(op, DK_NO_MEMORY, "out of memory");
  for (size_t i = 0; i < s->instances.n; i++) /* what was selected is looked at again */
    if (DEFECT(M_DEL_MATCHING_READS_TREE_OUTSIDE,
               is_named(op, d->all[i]) && !is_over(op, d->all[i])))
      d->all[i]->fate = STAYS;
  return DK_OK;
}

static size_t
rows_to_go(const struct deletion *d)
{
  size_t n = 0;

  FOR_EACH(at, &d->op->s->rows)
    n += is_going(d, find_instance(d->op->s, OWNER_OF(at, struct row, link)->identity.instance));
  return n;
}

/* Mutants end a page before its limit, and take it for the last one. */
static bool
ends_all(const struct deletion *d, size_t looked)
{
  const struct store *s = d->op->s;

  return DEFECT(M_DEL_LONG_PAGE_IS_LAST, looked == 2000) ||
         (MUTANT(M_DEL_LARGE_PAGE_IS_LAST) && rows_to_go(d) > 10000);
}

static dk_status
delete_matching(struct op *op, const struct dk_delete_matching *request)
{
  const struct store *s = op->s;
  struct deletion d = {.op = op, .filter = request->filter};
  bool is_last = false;
  uint32_t n = 0;

  TRY(refuse_unknown(op, REFUSED(M_DEL_MATCHING_FLAGS_IGNORED, request->flags != 0),
                     "a flag of the deletion"));
  TRY(begin_filter(op, request->filter));
  TRY(refuse_reader(op));
  d.all = instances_in_order(op->s);
  if (!d.all)
    return refuse(op, DK_NO_MEMORY, "out of memory");
  let_what_runs_stay(op, d.all);
  bool ignores_after = DEFECT(M_DEL_AFTER_IGNORED, request->after.ptr != NULL);
  size_t from = ignores_after ? 0 : place_after(op, d.all, request->after), i = from;
  for (; i < s->instances.n && (n < request->max_instances ||
                                DEFECT(M_DEL_LIMIT_IGNORED, n == request->max_instances)); i++) {
    is_last = ends_all(&d, i - from);
    if (is_last)
      break;
    TRY(refuse_what_runs(op, d.all[i], request->filter));
    if (!may_go(op, d.all[i], request->filter)) {
      n += MUTANT(M_DEL_LIMIT_COUNTS_PASSED) || MUTANT(M_DEL_NEXT_IS_LAST_DELETED) ? 1 : 0;
      continue;
    }
    let_go(op, d.all[i]);
    n++;
  }
  if (!is_last)
    d.removed.next = next_of(&d, from, i, request->after);
  TRY(force_what_was_selected(&d));
  TRY(delete_whoever_goes(&d));
  if (DEFECT(M_DEL_PASSED_ARE_ROOTS, i - from != d.removed.roots))
    d.removed.roots = i - from;
  return hand_up_removed(op, &d.removed);
}

dk_status
model_delete_matching(void *self, struct dk_call *call, const struct dk_delete_matching *request)
{
  struct op op;

  TRY(enter(&op, self, call, "delete_matching"));
  return leave(&op, delete_matching(&op, request));
}
