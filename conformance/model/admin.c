/* SPDX-License-Identifier: Apache-2.0 */
/* ADMIN: reading.  Takes no lock of an instance and changes nothing; each answer is of the moment
 * at which the operation has entered. */
#include "conformance/model/model.h"

#include <string.h>

/* ---- instances ------------------------------------------------------------------------------- */

/* ADMIN-3, ADMIN-6. */
bool
is_held(const struct op *op, const struct lock *lock)
{
  return lock->held && lock->until > op->now;
}

/* ADMIN-3: 0 as soon as no caller holds it. */
static int64_t
held_until(const struct op *op, const struct lock *lock, bool is_ended)
{
  const struct store *s = op->s;

  if (DEFECT(M_ADMIN_LEASE_OF_RUNNING_ONLY, is_held(op, lock) && is_ended))
    return 0;
  if (is_held(op, lock) || DEFECT(M_ADMIN_LEASE_SHOWN_AT_ITS_END, lock->until == op->now) ||
      DEFECT(M_ADMIN_LEASE_OVER_SHOWN, lock->held && lock->until < op->now) ||
      DEFECT(M_ADMIN_LEASE_GIVEN_BACK_SHOWN, !lock->held && lock->until > op->now))
    return lock->until;
  return 0;
}

enum { KEPT_BESIDE = 1024 }; /* from here on mutants have another table for it */

/* ADMIN-3: what was asked for. */
static struct dk_bytes
output_of(const struct op *op, const struct instance *instance, bool is_asked)
{
  const struct store *s = op->s;
  const struct execution *e = instance->current;

  if (!HOLDS(M_ADMIN_OUTPUT_UNASKED, is_asked) || DEFECT(M_ADMIN_OUTPUT_NOT_TOLD, e->output.ptr) ||
      DEFECT(M_ADMIN_LARGE_NOT_TOLD, e->output.len > KEPT_BESIDE))
    return (struct dk_bytes){NULL, 0};
  if (DEFECT(M_ADMIN_OUTPUT_CUT, e->output.len > 4096))
    return (struct dk_bytes){e->output.ptr, 4096};
  if (DEFECT(M_ADMIN_OUTPUT_OF_EARLIER, !e->output.ptr && instance->first->output.ptr))
    return instance->first->output;
  return DEFECT(M_ADMIN_ABSENT_IS_EMPTY, !e->output.ptr) ? (struct dk_bytes){"", 0} : e->output;
}

static int32_t
told_status(const struct op *op, const struct instance *instance)
{
  const struct store *s = op->s;
  int32_t status = status_of(instance);

  if (DEFECT(M_ADMIN_CANCELLED_AS_FAILED, status == DK_CANCELLED))
    return DK_FAILED;
  if (DEFECT(M_ADMIN_CONTINUED_AS_RUNNING, status == DK_CONTINUED_AS_NEW))
    return DK_RUNNING;
  if (DEFECT(M_ADMIN_PENDING_AS_RUNNING, status == DK_NOT_STARTED))
    return DK_RUNNING;
  return status;
}

/* ADMIN-3: as the last commit has set it.  A mutant reads it with the first execution. */
static struct dk_bytes
version_of(const struct op *op, const struct instance *instance)
{
  const struct store *s = op->s;
  static const struct dk_bytes first = {"1.0.0", 5};
  bool is_later = instance->current != instance->first;

  return DEFECT(M_ADMIN_VERSION_OF_FIRST, is_later && !equal_bytes(instance->facts->version, first))
           ? first : instance->facts->version;
}

static void
fill_started(const struct op *op, const struct instance *instance, bool with_output,
             struct dk_instance *told)
{
  const struct store *s = op->s;
  const struct execution *e = instance->current;
  const struct facts *facts = instance->facts;

  told->owner = facts->owner;
  if (DEFECT(M_ADMIN_OWNER_NOT_TOLD, facts->owner.ptr != NULL))
    told->owner = (struct dk_bytes){NULL, 0};
  told->name = facts->name;
  told->version = version_of(op, instance);
  bool is_ended_again = e->execution_id > 1 && e->status > DK_RUNNING;
  if (!DEFECT(M_ADMIN_PARENT_NOT_TOLD, facts->parent.ptr != NULL) &&
      !DEFECT(M_ADMIN_PARENT_OF_FIRST, facts->parent.ptr && is_ended_again))
    told->parent_instance = facts->parent;
  told->birth = DEFECT(M_ADMIN_BIRTH_IS_ANOTHER, instance->birth != instance->lock.epoch)
                  ? instance->lock.epoch : instance->birth;
  told->execution_id = e->execution_id;
  told->last_event_id = e->last_event_id;
  if (DEFECT(M_ADMIN_LAST_EVENT_OF_ALL, instance->first->last_event_id > e->last_event_id))
    told->last_event_id = instance->first->last_event_id;
  told->started_at = e->started_at;
  if (DEFECT(M_ADMIN_STARTED_IS_CREATED, e->started_at != instance->created_at))
    told->started_at = instance->created_at;
  told->completed_at = e->completed_at;
  told->output = output_of(op, instance, with_output);
}

/* ADMIN-3, ADMIN-4. */
static dk_status
hand_up_instance(struct op *op, const struct instance *instance, bool with_output)
{
  const struct store *s = op->s;
  struct dk_instance told = {
    .struct_size = sizeof told,
    .status = told_status(op, instance),
    .instance = instance->id,
    .created_at = created_at(op, instance),
    .locked_until = held_until(op, &instance->lock, status_of(instance) > DK_RUNNING),
  };

  if (DEFECT(M_ADMIN_PENDING_LEASE_NOT_TOLD, !instance->birth && told.locked_until))
    told.locked_until = 0;
  if (instance->birth)
    fill_started(op, instance, with_output, &told);
  return s->host->instance(op->call, &told);
}

/* ADMIN-1. */
static size_t
first_of_page(struct op *op, struct instance *const *all, struct dk_bytes after)
{
  struct store *s = op->s;
  size_t from = place_after(op, all, after);

  if (!after.ptr)
    s->listed = 0;
  if (DEFECT(M_ADMIN_PAGES_BY_OFFSET, s->listed && s->listed != from))
    return s->listed;
  if (DEFECT(M_ADMIN_AFTER_MUST_BE_THERE, after.ptr && !find_instance(s, after)))
    return s->instances.n;
  if (DEFECT(M_ADMIN_AFTER_IS_INCLUDED, from > 0 && after.ptr))
    return from - 1;
  return from;
}

/* ADMIN-1.  How a mutant's index of children pages: by their births, and not by their ids. */
static bool
is_of_earlier_page(const struct op *op, const struct instance *instance,
                   const struct dk_list_instances *request)
{
  const struct store *s = op->s;
  const struct instance *last = request->after.ptr ? find_instance(s, request->after) : NULL;
  bool is_by_parent = request->filter && request->filter->parent_instance.ptr;

  return DEFECT(M_ADMIN_CHILDREN_BY_BIRTH, is_by_parent && last && last->birth > instance->birth);
}

/* ADMIN-1, ADMIN-4: all of them. */
static bool
is_left_out(const struct op *op, const struct instance *instance)
{
  const struct store *s = op->s;
  const struct link *first = instance->messages.next;
  bool is_pending = !instance->birth && first != &instance->messages;

  return DEFECT(M_ADMIN_PENDING_NOT_LISTED, is_pending) ||
         DEFECT(M_ADMIN_DELAYED_NOT_LISTED,
                is_pending && OWNER_OF(first, struct message, link)->visible_at > op->now) ||
         DEFECT(M_ADMIN_ENDED_NOT_LISTED, status_of(instance) > DK_RUNNING) ||
         DEFECT(M_ADMIN_LISTS_OWN, instance->is_of_others);
}

/* ADMIN-7.  What mutants do to what they list. */
static dk_status
disturb(struct op *op, const struct instance *instance)
{
  enum { A_WHILE = 10000 };
  const struct store *s = op->s;
  bool is_free = !is_held(op, &instance->lock);

  if (DEFECT(M_ADMIN_LIST_WANTS_LOCK, !is_free))
    return refuse(op, DK_BUSY, "a turn of this instance is held");
  if (DEFECT(M_ADMIN_LIST_TAKES_LEASE, is_free))
    STEP(op, .kind = TURN_LOCK, .instance = instance->id, .epoch = instance->lock.epoch,
         .until = op->now + A_WHILE, .held = true, .committed = instance->committed);
  if (DEFECT(M_ADMIN_LIST_PROLONGS, !is_free))
    STEP(op, .kind = TURN_LOCK, .instance = instance->id, .epoch = instance->lock.epoch,
         .until = instance->lock.until + A_WHILE, .held = true, .handle = instance->lock.handle,
         .committed = instance->committed);
  return DK_OK;
}

static dk_status
list_instances(struct op *op, const struct dk_list_instances *request)
{
  struct store *s = op->s;
  uint32_t n = 0, most = request->max_instances ? request->max_instances : UINT32_MAX;

  TRY(refuse_unknown(op, REFUSED(M_ADMIN_LIST_FLAGS_IGNORED,
                                 request->flags & ~(uint32_t)DK_LIST_OUTPUT),
                     "a flag of the list"));
  TRY(begin_filter(op, request->filter));
  struct instance *const *all = instances_in_order(s);
  if (!all)
    return refuse(op, DK_NO_MEMORY, "out of memory");
  if (DEFECT(M_ADMIN_PAGE_ONE_SHORT, request->max_instances > 1))
    most--;
  size_t i = first_of_page(op, all, request->after);
  for (; i < s->instances.n && (n < most || DEFECT(M_ADMIN_MAX_IGNORED, n == most)); i++) {
    if (!is_selected(op, all[i], request->filter) || is_left_out(op, all[i]) ||
        is_of_earlier_page(op, all[i], request)) {
      n += DEFECT(M_ADMIN_LIMIT_BEFORE_FILTER, request->filter != NULL) ? 1 : 0;
      continue;
    }
    TRY(disturb(op, all[i]));
    TRY(hand_up_instance(op, all[i], request->flags & DK_LIST_OUTPUT));
    n++;
  }
  s->listed = i;
  return DK_OK;
}

static dk_status
model_list_instances(void *self, struct dk_call *call, const struct dk_list_instances *request)
{
  struct op op;

  TRY(enter(&op, self, call, "list_instances"));
  return leave(&op, list_instances(&op, request));
}

/* ---- executions ------------------------------------------------------------------------------ */

/* ADMIN-7.  What mutants do where there is nothing. */
static dk_status
answer_absent(struct op *op, struct dk_bytes id)
{
  const struct store *s = op->s;

  if (MUTANT(M_ADMIN_NO_EXECUTIONS_IS_ERROR))
    return refuse(op, DK_NOT_FOUND, "there is no such instance");
  if (MUTANT(M_ADMIN_LOOKING_MAKES_KNOWN)) {
    STEP(op, .kind = MESSAGE_COMES, .instance = id, .id = {"look", 4}, .enqueued_at = op->now);
    STEP(op, .kind = MESSAGE_GOES, .instance = id, .id = {"look", 4});
    make_instance(op, id);
  }
  return DK_OK;
}

static bool
begins_with_nine(uint64_t number)
{
  while (number > 9)
    number /= 10;
  return number == 9;
}

static struct dk_execution
listed_execution(const struct op *op, const struct instance *of, const struct execution *e)
{
  const struct store *s = op->s;
  struct dk_execution told = told_execution(e);

  if (DEFECT(M_ADMIN_EXECUTIONS_WITHOUT_OUTPUT, told.output.ptr != NULL) ||
      DEFECT(M_ADMIN_LARGE_OF_EXECUTION_NOT_TOLD, told.output.len > KEPT_BESIDE))
    told.output = (struct dk_bytes){NULL, 0};
  if (DEFECT(M_ADMIN_EXECUTIONS_OF_ONE_STATUS, told.status != of->current->status))
    told.status = of->current->status;
  if (DEFECT(M_ADMIN_EXECUTIONS_NEVER_COMPLETE, told.completed_at != 0))
    told.completed_at = 0;
  return told;
}

/* ADMIN-5. */
static dk_status
list_executions(struct op *op, const struct dk_list_executions *request)
{
  const struct store *s = op->s;
  const struct instance *of = find_instance(s, request->instance);
  uint32_t n = 0, most = request->max_executions ? request->max_executions : UINT32_MAX;
  uint64_t after = request->after;

  if (!of)
    return answer_absent(op, request->instance);
  for (const struct execution *e = of->first; e && n < most; e = e->next) {
    struct dk_execution told = listed_execution(op, of, e);
    if (e->is_hidden || DEFECT(M_ADMIN_CURRENT_EXECUTION_ONLY, e->next != NULL) ||
        DEFECT(M_ADMIN_NINE_AFTER_TEN, begins_with_nine(e->execution_id) && after < 9))
      continue;
    if (DEFECT(M_ADMIN_EXECUTION_MUST_BE_THERE, after && after < of->first->execution_id))
      break;
    if (e->execution_id <= after && !DEFECT(M_ADMIN_EXECUTIONS_FROM_AFTER,
                                            e->execution_id == after))
      continue;
    TRY(s->host->execution(op->call, &told));
    n++;
  }
  return DK_OK;
}

static dk_status
model_list_executions(void *self, struct dk_call *call, const struct dk_list_executions *request)
{
  struct op op;

  TRY(enter(&op, self, call, "list_executions"));
  return leave(&op, list_executions(&op, request));
}

/* ---- messages -------------------------------------------------------------------------------- */

static dk_status
hand_up_message(struct op *op, const struct message *message)
{
  const struct store *s = op->s;
  struct dk_message told = {
    .struct_size = sizeof told,
    .id = message->id,
    .payload = message->payload,
    .visible_at = message->visible_at,
    .enqueued_at = message->enqueued_at,
  };
  const char *nul = told.payload.len ? memchr(told.payload.ptr, 0, told.payload.len) : NULL;

  if (DEFECT(M_ADMIN_ATTEMPTS_TOLD, message->attempt > 0))
    told.attempt = (uint32_t)message->attempt;
  if (DEFECT(M_ADMIN_LARGE_MESSAGE_NOT_TOLD, told.payload.len > KEPT_BESIDE))
    told.payload = (struct dk_bytes){"", 0};
  if (DEFECT(M_ADMIN_MESSAGE_ENDS_AT_NUL, nul != NULL))
    told.payload.len = (size_t)(nul - told.payload.ptr);
  if (DEFECT(M_ADMIN_ENQUEUED_NOT_TOLD, told.enqueued_at != told.visible_at))
    told.enqueued_at = told.visible_at;
  return s->host->message(op->call, &told);
}

/* ADMIN-7.  A mutant reads by means of the fetch. */
static void
count_delivery(struct op *op, const struct instance *of, const struct message *message)
{
  const struct store *s = op->s;

  if (DEFECT(M_ADMIN_LOOKING_COUNTS, !is_held(op, &of->lock)))
    STEP(op, .kind = MESSAGES_TAKEN, .instance = of->id, .epoch = of->lock.epoch, .attempt = 1,
         .arrivals = {(const char *)&message->arrival, sizeof message->arrival});
}

/* The other end of the queue: only a mutant begins there, and goes by arrival. */
static const struct message *
next_by_arrival(const struct instance *of, const struct message *last)
{
  const struct message *found = NULL;

  FOR_EACH(at, &of->messages) {
    const struct message *message = OWNER_OF(at, struct message, link);
    if ((!last || message->arrival > last->arrival) &&
        (!found || message->arrival < found->arrival))
      found = message;
  }
  return found;
}

static const struct message *
next_message(const struct op *op, const struct instance *of, const struct message *last)
{
  const struct store *s = op->s;
  const struct link *at = last ? last->link.next : of->messages.next;
  const struct message *next =
    at == &of->messages ? NULL : OWNER_OF(at, const struct message, link);

  return DEFECT(M_ADMIN_MESSAGES_BY_ARRIVAL, next != next_by_arrival(of, last))
           ? next_by_arrival(of, last) : next;
}

/* ADMIN-8. */
static dk_status
read_messages(struct op *op, const struct dk_read_messages *request)
{
  const struct store *s = op->s;
  const struct instance *of = find_instance(s, request->instance);
  uint32_t n = 0, most = request->max_messages ? request->max_messages : UINT32_MAX;

  for (const struct message *m = of ? next_message(op, of, NULL) : NULL; m && n < most;
       m = next_message(op, of, m)) {
    bool is_in_turn = is_held(op, &of->lock) && m->turn == of->lock.epoch;
    if (DEFECT(M_ADMIN_VISIBLE_MESSAGES_ONLY, m->visible_at > op->now) ||
        DEFECT(M_ADMIN_FREE_MESSAGES_ONLY, is_in_turn))
      continue;
    count_delivery(op, of, m);
    TRY(hand_up_message(op, m));
    n++;
  }
  return DK_OK;
}

static dk_status
model_read_messages(void *self, struct dk_call *call, const struct dk_read_messages *request)
{
  struct op op;

  TRY(enter(&op, self, call, "read_messages"));
  return leave(&op, read_messages(&op, request));
}

/* ---- counts ---------------------------------------------------------------------------------- */

struct depth {
  uint64_t ready, delayed, locked;
  int64_t oldest;
};

/* ADMIN-6.  What mutants take for held. */
static bool
is_taken_for_held(const struct op *op, const struct lock *lock, bool is_work)
{
  const struct store *s = op->s;
  bool given_back = lock->epoch && !lock->held && lock->until > op->now;
  bool expired = lock->held && lock->until <= op->now;

  if (is_work)
    return DEFECT(M_ADMIN_WORK_GIVEN_BACK_IS_HELD, given_back) ||
           DEFECT(M_ADMIN_WORK_EXPIRED_IS_HELD, expired);
  return DEFECT(M_ADMIN_GIVEN_BACK_IS_HELD, given_back) || DEFECT(M_ADMIN_EXPIRED_IS_HELD, expired);
}

/* ADMIN-6: what is not due is delayed, even if it is held; then what is held is locked. */
static void
count_waiting(const struct op *op, int64_t visible_at, bool is_locked, struct depth *depth)
{
  const struct store *s = op->s;
  bool is_delayed = visible_at > op->now;

  if (DEFECT(M_ADMIN_HELD_BEFORE_DELAYED, is_delayed && is_locked))
    is_delayed = false;
  bool is_ready = !is_delayed && !is_locked;
  if (REFUSED(M_ADMIN_DELAYED_IS_READY, is_delayed))
    depth->delayed++;
  else if (is_locked)
    depth->locked++;
  else
    depth->ready++;
  if ((is_ready || DEFECT(M_ADMIN_OLDEST_OF_ALL, !is_ready)) &&
      (!depth->oldest || visible_at < depth->oldest))
    depth->oldest = visible_at;
}

static void
count_messages(const struct op *op, const struct instance *of, struct depth *depth)
{
  const struct store *s = op->s;

  FOR_EACH(at, &of->messages) {
    const struct message *message = OWNER_OF(at, struct message, link);
    bool is_locked = is_held(op, &of->lock) || is_taken_for_held(op, &of->lock, false);
    if (DEFECT(M_ADMIN_ARRIVALS_ARE_READY, is_locked && message->turn != of->lock.epoch))
      is_locked = false;
    count_waiting(op, message->visible_at, is_locked, depth);
  }
}

static void
count_work(const struct op *op, struct depth *depth)
{
  FOR_EACH(at, &op->s->rows) {
    const struct row *row = OWNER_OF(at, struct row, link);
    count_waiting(op, row->visible_at,
                  is_held(op, &row->lock) || is_taken_for_held(op, &row->lock, true), depth);
  }
}

static void
count_status(const struct op *op, const struct instance *instance, struct dk_stats *stats)
{
  const struct store *s = op->s;
  uint64_t *const by_status[] = {
    [DK_NOT_STARTED] = &stats->not_started, [DK_RUNNING] = &stats->running,
    [DK_COMPLETED] = &stats->completed,     [DK_FAILED] = &stats->failed,
    [DK_CANCELLED] = &stats->cancelled,     [DK_CONTINUED_AS_NEW] = &stats->continued_as_new,
  };
  int32_t status = status_of(instance);

  if (!HOLDS(M_ADMIN_LEFTOVERS_COUNTED, is_there(instance)) ||
      DEFECT(M_ADMIN_PENDING_NOT_COUNTED, status == DK_NOT_STARTED))
    return;
  if (DEFECT(M_ADMIN_COUNTS_FIRST_STATUS, instance->first && instance->first->status != status))
    status = instance->first->status;
  ++*by_status[status];
}

static void
count_executions(const struct op *op, const struct instance *instance, struct dk_stats *stats)
{
  const struct store *s = op->s;

  for (const struct execution *e = instance->first; e; e = e->next) {
    if (DEFECT(M_ADMIN_COUNTS_CURRENT_ONLY, e->next != NULL))
      continue;
    stats->executions += e->is_hidden ? 0 : 1;
    for (const struct event *v = e->first; v; v = v->next)
      stats->events += DEFECT(M_ADMIN_EVENTS_BY_LAST_ID, v->event_id != 1 && v == e->first)
                         ? v->event_id : 1;
  }
}

static dk_status
read_stats(struct op *op, const struct dk_read_stats *request)
{
  struct store *s = op->s;
  struct depth messages = {0}, activities = {0};
  struct dk_stats stats = {.struct_size = sizeof stats,
                           .now = MUTANT(M_ADMIN_COUNTED_AT_NO_TIME) ? 0 : op->now};

  TRY(refuse_unknown(op, request->flags != 0, "a flag of the counts"));
  count_work(op, &activities);
  if (MUTANT(M_ADMIN_COUNTS_BIT_BY_BIT))                             /* ADMIN-6: of one moment */
    TRY(let_others_in(op));
  struct instance *const *all = instances_in_order(s);
  if (!all)
    return refuse(op, DK_NO_MEMORY, "out of memory");
  for (size_t i = 0; i < s->instances.n; i++) {
    count_status(op, all[i], &stats);
    count_executions(op, all[i], &stats);
    count_messages(op, all[i], &messages);
  }
  stats.messages_ready = messages.ready;
  stats.messages_delayed = messages.delayed;
  stats.messages_locked = messages.locked;
  stats.oldest_message = messages.oldest;
  stats.activities_ready = activities.ready;
  stats.activities_delayed = activities.delayed;
  stats.activities_locked = activities.locked;
  stats.oldest_activity = activities.oldest;
  return s->host->stats(op->call, &stats);
}

static dk_status
model_read_stats(void *self, struct dk_call *call, const struct dk_read_stats *request)
{
  struct op op;

  TRY(enter(&op, self, call, "read_stats"));
  return leave(&op, read_stats(&op, request));
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct dk_admin model_admin = {
  .struct_size = sizeof model_admin,
  .list_instances = model_list_instances,
  .list_executions = model_list_executions,
  .read_messages = model_read_messages,
  .read_stats = model_read_stats,
  .delete_instances = model_delete_instances,
  .delete_matching = model_delete_matching,
  .prune_executions = model_prune_executions,
};
