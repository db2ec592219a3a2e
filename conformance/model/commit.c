/* SPDX-License-Identifier: Apache-2.0 */
/* ACK: the commit.  What one turn did, whole or not at all.  cancel.c has the deletion. */
#include "conformance/model/state.h"

/* ---- refusing: all of it before the first change --------------------------------------------- */

static uint64_t
count_of_executions(const struct instance *turn)
{
  uint64_t n = 0;

  for (const struct execution *e = turn->first; e; e = e->next)
    n++;
  return n;
}

/* ACK-5; PRUNE-5: whatever is left of those before. */
static bool
is_next_or_current(const struct op *op, const struct instance *turn, uint64_t execution_id)
{
  const struct store *s = op->s;
  uint64_t current = turn->current ? turn->current->execution_id : 0;

  if (DEFECT(M_PRUNE_NEXT_BY_COUNT, count_of_executions(turn) != current))
    return execution_id == count_of_executions(turn) + 1 || execution_id == current;
  return execution_id == current + 1 || (current && execution_id == current);
}

/* ACK-8: an empty commit brings messages and nothing else. */
static bool
is_bare(const struct dk_turn_result *r)
{
  return !r->status && !r->n_events && !r->n_worker_items && !r->n_cancelled_activities &&
         !r->n_cancelled_messages && !r->output.ptr && !r->name.ptr && !r->version.ptr &&
         !r->parent_instance.ptr && !r->owner.ptr && !r->pinned && !r->n_kv &&
         !r->custom_status_op;
}

static dk_status
refuse_form(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  const struct store *s = op->s;

  if (r->execution_id == 0)
    return REFUSED(M_ACK_EMPTY_COMMIT_TAKES_ANYTHING, !is_bare(r))
             ? refuse(op, DK_INVALID, "an empty commit (execution_id 0) may bring messages only")
             : DK_OK;
  if (REFUSED(M_ACK_NAMELESS_BIRTH, !turn->birth && (!r->name.ptr || !r->version.ptr)))
    return refuse(op, DK_INVALID, "the first commit of an instance needs name and version");
  bool is_earlier = turn->current && r->execution_id < turn->current->execution_id;
  if (REFUSED(M_ACK_ANY_EXECUTION, !is_next_or_current(op, turn, r->execution_id)) &&
      !DEFECT(M_EXEC_MOVES_BACK, is_earlier))
    return refuse(op, MUTANT(M_ERR_UNFIT_COMMIT_NOT_FOUND) ? DK_NOT_FOUND : DK_INVALID,
                  "execution %llu is neither the current one nor the next",
                  (unsigned long long)r->execution_id);
  return DK_OK;
}

/* Only mutants ask. */
static size_t
count_stored_messages(const struct store *s, const struct dk_turn_result *r)
{
  size_t n = 0;

  for (size_t i = 0; i < r->n_orchestrator_items; i++)
    n += is_stored_message(s, r->orchestrator_items[i]);
  return n;
}

/* Likewise: the messages before this one that have no id. */
static size_t
count_without_id(const struct dk_turn_result *r, size_t before)
{
  size_t n = 0;

  for (size_t i = 0; i < before; i++)
    n += !r->orchestrator_items[i]->id.ptr;
  return n;
}

/* ACK-15: which item of the commit makes it a duplicate. */
static void
name_duplicate(struct op *op, const struct dk_turn_result *r, int32_t list, size_t index)
{
  const struct store *s = op->s;
  bool is_message = list == DK_LIST_ORCHESTRATOR_ITEMS;

  if (DEFECT(M_ACK_ONLY_MESSAGES_NAMED, !is_message) ||
      DEFECT(M_ACK_NO_MESSAGE_NAMED, is_message) ||
      DEFECT(M_ACK_ONE_OF_MANY_UNNAMED, is_message && count_stored_messages(s, r) > 1) ||
      !DK_HAS(dk_host, s->host, duplicate))
    return;
  if (MUTANT(M_ACK_FIRST_ITEM_NAMED))
    index = 0;
  if (is_message && MUTANT(M_ACK_NAMED_AMONG_IDS))
    index -= count_without_id(r, index);
  s->host->duplicate(op->call, list, index);
}

/* ACK-12: each event id is above the last one of its execution. */
static dk_status
refuse_old_events(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  const struct store *s = op->s;
  bool is_current = turn->current && turn->current->execution_id == r->execution_id;
  uint64_t last = is_current ? turn->current->last_event_id : 0;

  if (DEFECT(M_EXEC_EVENT_IDS_GO_ON, turn->current && !is_current))
    last = turn->current->last_event_id;

  for (size_t i = 0; i < r->n_events; i++) {
    if (!REFUSED(M_ACK_OLD_EVENT_ACCEPTED, r->events[i].event_id <= last))
      continue;
    if (!MUTANT(M_ERR_STORED_EVENT_IS_BUSY))
      name_duplicate(op, r, DK_LIST_EVENTS, i);
    return refuse(op, MUTANT(M_ERR_STORED_EVENT_IS_BUSY) ? DK_BUSY : DK_DUPLICATE,
                  "event %llu is not above the last one, which is %llu",
                  (unsigned long long)r->events[i].event_id, (unsigned long long)last);
  }
  return DK_OK;
}

static bool
is_cancelled_by(const struct dk_turn_result *r, const struct dk_item *item)
{
  for (size_t i = 0; i < r->n_cancelled_activities; i++)
    if (r->cancelled_activities[i].execution_id == item->execution_id &&
        r->cancelled_activities[i].activity_id == item->activity_id)
      return true;
  return false;
}

/* CANCEL-11: one identity, one row, even if this commit cancels it. */
static dk_status
refuse_stored_activities(struct op *op, const struct instance *turn,
                         const struct dk_turn_result *r)
{
  const struct store *s = op->s;

  for (size_t i = 0; i < r->n_worker_items; i++) {
    const struct dk_item *item = r->worker_items[i];
    struct identity identity = {turn->id, item->execution_id, item->activity_id};
    bool is_stored = find_row(s, &identity) != NULL;

    if (!REFUSED(M_CANCEL_SECOND_ROW_ACCEPTED, is_stored) ||
        (MUTANT(M_CANCEL_MAKES_ROOM) && is_cancelled_by(r, item)))
      continue;
    name_duplicate(op, r, DK_LIST_WORKER_ITEMS, i);
    return refuse(op, DK_DUPLICATE, "activity %llu of execution %llu is stored",
                  (unsigned long long)item->activity_id, (unsigned long long)item->execution_id);
  }
  return DK_OK;
}

/* CANCEL-4, ACK-13: what is listed and not there is no error. */
static dk_status
refuse_absent(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  const struct store *s = op->s;

  for (size_t i = 0; i < r->n_cancelled_activities; i++) {
    struct identity identity = {turn->id, r->cancelled_activities[i].execution_id,
                                r->cancelled_activities[i].activity_id};
    if (DEFECT(M_CANCEL_ABSENT_IS_ERROR, !find_row(s, &identity)))
      return refuse(op, DK_NOT_FOUND, "a cancelled activity is not there");
    if (DEFECT(M_CANCEL_DONE_IS_BUSY, !find_row(s, &identity)))
      return refuse(op, DK_BUSY, "a cancelled activity was deleted meanwhile");
  }
  for (size_t i = 0; i < r->n_cancelled_messages; i++)
    if (DEFECT(M_ACK_ABSENT_MESSAGE_IS_ERROR, !find_message(s, turn->id, r->cancelled_messages[i])))
      return refuse(op, DK_NOT_FOUND, "a cancelled message is not there");
  return DK_OK;
}

static dk_status
model_commit_refuse_what_is_unknown(struct op *op, const struct dk_turn_result *r)
{
  const struct store *s = op->s;

  TRY(refuse_unknown(op, r->flags & ~(uint32_t)DK_REPEATED, "a flag of the commit"));
  TRY(refuse_unknown(op, r->status < DK_STATUS_KEEP || r->status > DK_CANCELLED, "the status"));
  TRY(refuse_unknown_changes(op, r));
  for (size_t i = 0; i < r->n_worker_items; i++) {
    TRY(refuse_unknown(op, REFUSED(M_ABI_ACTIVITY_FLAGS_IGNORED, r->worker_items[i]->flags != 0),
                       "a flag of an activity"));
    TRY(refuse_unknown(op, !s->has_extensions && r->worker_items[i]->session.ptr, "a session"));
  }
  for (size_t i = 0; i < r->n_orchestrator_items; i++)
    TRY(refuse_unknown(
      op, REFUSED(M_ABI_MESSAGE_FLAGS_IGNORED, r->orchestrator_items[i]->flags != 0),
      "a flag of a message"));
  return DK_OK;
}

/* A message that this commit will remove, and that is stored until then. */
static bool
is_of_this_turn(const struct store *s, const struct instance *turn, const struct dk_item *item)
{
  const struct message *stored = find_message(s, item->instance, item->id);

  return stored && stored->of == turn && stored->turn == turn->lock.epoch;
}

/* Duplicates are judged as the store stood before. */
static dk_status
refuse_state(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  const struct store *s = op->s;

  TRY(refuse_old_events(op, turn, r));
  TRY(refuse_stored_activities(op, turn, r));
  for (size_t i = 0; i < r->n_orchestrator_items; i++) {
    const struct dk_item *item = r->orchestrator_items[i];
    if (!is_stored_message(s, item) ||
        DEFECT(M_ACK_OWN_MESSAGE_MAKES_ROOM, is_of_this_turn(s, turn, item)))
      continue;
    name_duplicate(op, r, DK_LIST_ORCHESTRATOR_ITEMS, i);
    return refuse_stored_message(op, item);
  }
  return refuse_absent(op, turn, r);
}

/* Only mutants ask. */
static uint64_t
bytes_of_events(const struct dk_turn_result *r)
{
  uint64_t bytes = 0;

  for (size_t i = 0; i < r->n_events; i++)
    bytes += r->events[i].payload.len;
  return bytes;
}

/* ERR-5: form first, then what is stored. */
static dk_status
refuse_what_cannot_be_applied(struct op *op, const struct instance *turn,
                              const struct dk_turn_result *r)
{
  const struct store *s = op->s;

  TRY(model_commit_refuse_what_is_unknown(op, r));
  if (MUTANT(M_ERR_STATE_BEFORE_FORM))
    TRY(refuse_state(op, turn, r));
  TRY(refuse_form(op, turn, r));
  if (DEFECT(M_ERR_VARIABLES_RUN_OUT, r->n_cancelled_activities > 32766))
    return refuse(op, DK_INTERNAL, "too many SQL variables");
  if (DEFECT(M_ERR_STATEMENT_TOO_LONG, bytes_of_events(r) > (12u << 20)))
    return refuse(op, DK_INTERNAL, "the statement is too long");
  return refuse_state(op, turn, r);
}

/* ---- applying -------------------------------------------------------------------------------- */

/* ACK-3: the messages that this turn was given, and no others. */
static void
remove_messages_of_turn(struct op *op, const struct instance *turn)
{
  const struct store *s = op->s;

  if (!MUTANT(M_ACK_KEEPS_MESSAGES))
    STEP(op, .kind = MESSAGES_GO, .instance = turn->id,
         .epoch = MUTANT(M_ACK_REMOVES_LATER_ARRIVALS) ? 0 : turn->lock.epoch);
}

/* EXEC-4, EXEC-5, ACK-9: a status comes with its output, and an end with its time. */
static void
give_status(const struct op *op, const struct dk_turn_result *r, struct execution *e)
{
  const struct store *s = op->s;
  int64_t was_completed_at = e->completed_at;

  e->status = r->status;
  if (DEFECT(M_EXEC_CANCELLED_STORED_AS_FAILED, r->status == DK_CANCELLED))
    e->status = DK_FAILED;
  e->completed_at = r->status == DK_RUNNING ? 0 : op->now;
  if (DEFECT(M_EXEC_RUNNING_COMPLETES, r->status == DK_RUNNING))
    e->completed_at = op->now;
  if (DEFECT(M_EXEC_RUNNING_STAYS_COMPLETED, r->status == DK_RUNNING && was_completed_at))
    e->completed_at = was_completed_at;
  if (DEFECT(M_EXEC_CONTINUED_IS_NO_END, r->status == DK_CONTINUED_AS_NEW))
    e->completed_at = 0;
  if (!DEFECT(M_ACK_ABSENT_OUTPUT_KEEPS, e->output.ptr && !r->output.ptr))
    e->output = r->output;
  if (DEFECT(M_ACK_OUTPUT_CUT, e->output.len > 4000))
    e->output.len = 4000;
}

/* PIN-6. */
static void
give_pin(const struct op *op, const struct dk_turn_result *r, bool is_current,
         struct execution *e)
{
  const struct store *s = op->s;

  if (DEFECT(M_PIN_ABSENT_CLEARS, e->is_pinned && !r->pinned))
    e->is_pinned = false;
  if (!r->pinned || DEFECT(M_PIN_WRITE_ONCE, e->is_pinned) ||
      DEFECT(M_PIN_ONLY_AT_FIRST, is_current && !e->is_pinned))
    return;
  e->is_pinned = true;
  e->pin = *r->pinned;
}

/* EXEC-1, EXEC-3: what a mutant leaves to the execution that a commit begins. */
static void
inherit(const struct op *op, const struct execution *earlier, struct execution *e)
{
  const struct store *s = op->s;

  if (DEFECT(M_EXEC_OUTPUT_GOES_ON, earlier->output.ptr != NULL))
    e->output = earlier->output;
  if (DEFECT(M_EXEC_STARTED_AT_GOES_ON, earlier->started_at != e->started_at))
    e->started_at = earlier->started_at;
  if (DEFECT(M_PIN_SURVIVES_CONTINUE, earlier->is_pinned)) {
    e->is_pinned = true;
    e->pin = earlier->pin;
  }
}

static void
write_execution(struct op *op, const struct instance *turn, const struct execution *e)
{
  STEP(op, .kind = EXECUTION, .instance = turn->id, .execution_id = e->execution_id,
       .status = e->status, .started_at = e->started_at, .completed_at = e->completed_at,
       .is_pinned = e->is_pinned, .major = e->pin.major, .minor = e->pin.minor,
       .patch = e->pin.patch, .output = e->output);
}

/* EXEC-3: an earlier execution stays as it is.  A mutant ends it. */
static void
end_earlier(struct op *op, const struct instance *turn)
{
  struct execution e = *turn->current;

  e.status = DK_CONTINUED_AS_NEW;
  e.completed_at = op->now;
  write_execution(op, turn, &e);
}

/* EXEC-1, EXEC-3 to EXEC-5, ACK-9, PIN-6: the execution as this commit leaves it. */
static void
store_execution(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  const struct store *s = op->s;
  bool is_current = turn->current && turn->current->execution_id == r->execution_id;
  struct execution e = {.execution_id = r->execution_id, .status = DK_RUNNING,
                        .started_at = op->now};

  if (is_current)
    e = *turn->current;
  else if (turn->current)
    inherit(op, turn->current, &e);
  if (DEFECT(M_EXEC_NEXT_ENDS_EARLIER, !is_current && turn->current &&
                                         turn->current->status == DK_RUNNING))
    end_earlier(op, turn);
  if (DEFECT(M_EXEC_STARTED_AT_MOVES, is_current))
    e.started_at = op->now;
  if (DEFECT(M_EXEC_KEEP_COMPLETES_AGAIN, r->status == DK_STATUS_KEEP && e.completed_at))
    e.completed_at = op->now;
  if (DEFECT(M_ACK_ABSENT_STATUS_RESETS, !r->status && e.status != DK_RUNNING))
    e.status = DK_RUNNING;
  if (r->status != DK_STATUS_KEEP)
    give_status(op, r, &e);
  if (DEFECT(M_ACK_OUTPUT_WITHOUT_STATUS, r->status == DK_STATUS_KEEP && r->output.ptr))
    e.output = r->output;
  give_pin(op, r, is_current, &e);
  write_execution(op, turn, &e);
}

/* ADMIN-3: kept from the first commit on, which takes the age that was reported until then. */
static int64_t
creation(const struct op *op, const struct instance *turn)
{
  const struct store *s = op->s;

  if (turn->birth || DEFECT(M_DEL_AGE_STAYS, turn->created_at != 0))
    return turn->created_at;
  if (MUTANT(M_ADMIN_CREATED_BY_COMMIT))
    return op->now;
  return created_at(op, turn);
}

/* ACK-4, ACK-10, TURN-5, TURN-11: what is known of the instance. */
static void
store_facts(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  const struct store *s = op->s;
  struct facts f = turn->birth ? *turn->facts : (struct facts){.owner = r->owner};
  bool is_born = turn->birth && !MUTANT(M_TURN_BIRTH_CHANGES);

  if (r->name.ptr || DEFECT(M_ACK_ABSENT_NAME_CLEARS, f.name.ptr != NULL))
    f.name = r->name;
  if (r->version.ptr)
    f.version = r->version;
  if (r->parent_instance.ptr)
    f.parent = r->parent_instance;
  bool is_next = turn->current && turn->current->execution_id != r->execution_id;
  if (!DEFECT(M_EXEC_OWNER_GOES_ON, is_next && f.owner.ptr && !r->owner.ptr))
    f.owner = r->owner;
  if (DEFECT(M_DEL_OWNER_STAYS, !turn->birth && turn->facts && !r->owner.ptr))
    f.owner = turn->facts->owner;
  uint64_t birth = is_born ? turn->birth : turn->lock.epoch; /* DEL-6: another for each life */
  if (DEFECT(M_DEL_BIRTH_BY_ID, !is_born))
    birth = hash_of_instance(turn->id);
  STEP(op, .kind = FACTS, .instance = turn->id, .birth = birth,
       .enqueued_at = creation(op, turn), .name = f.name,
       .version = f.version, .parent = f.parent, .owner = f.owner);
}

/* HIST-1. */
static void
append_events(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  for (size_t i = 0; i < r->n_events; i++)
    STEP(op, .kind = EVENT, .instance = turn->id, .event_id = r->events[i].event_id,
         .payload = r->events[i].payload);
}

/* ACK-6, TAG-4. */
static void
insert_activities(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  const struct store *s = op->s;

  for (size_t i = 0; i < r->n_worker_items; i++) {
    const struct dk_item *item = r->worker_items[i];
    struct identity identity = {turn->id, item->execution_id, item->activity_id};
    int64_t visible_at = visible_from(op, item);
    struct dk_bytes tag = item->tag;

    if (DEFECT(M_ACK_TAG_LOST, tag.ptr != NULL))
      tag.ptr = NULL;
    if (DEFECT(M_ACK_WORK_TIME_IGNORED, visible_at > op->now))
      visible_at = op->now;
    write_row(op, &identity, item, tag, visible_at);
  }
}

/* ACK-7, QUEUE-2: in the order of the list, each to whom it names, at its time. */
static void
enqueue_messages(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  const struct store *s = op->s;

  if (DEFECT(M_ACK_HALF_APPLIED, r->n_worker_items && r->n_orchestrator_items) ||
      DEFECT(M_ACK_EMPTY_COMMIT_SENDS_NOTHING, !r->execution_id && r->n_orchestrator_items))
    return;
  for (size_t i = 0, n = r->n_orchestrator_items; i < n; i++) {
    const struct dk_item *item =
      r->orchestrator_items[DEFECT(M_QUEUE_LIST_BACKWARDS, n > 1) ? n - 1 - i : i];
    int64_t visible_at = visible_from(op, item);
    struct dk_bytes to = item->instance;
    const struct instance *target = find_instance(s, to);

    if (DEFECT(M_ACK_FINISHED_GETS_NOTHING,
               target && target->current && target->current->status != DK_RUNNING))
      continue;
    if (target != turn && DEFECT(M_TURN_SENT_MESSAGE_UNLOCKS, target && target->lock.held))
      release_turn(op, target, false);
    if (DEFECT(M_ACK_TIMER_FIRES_AT_ONCE, visible_at > op->now))
      visible_at = op->now;
    if (DEFECT(M_ACK_MESSAGES_GO_TO_ITSELF, !equal_bytes(to, turn->id)))
      to = turn->id;
    write_message(op, to, item, visible_at);
  }
}

/* ACK-13: also those that this commit enqueues. */
static void
remove_cancelled_messages(struct op *op, const struct instance *turn,
                          const struct dk_turn_result *r)
{
  const struct store *s = op->s;

  for (size_t i = 0; i < r->n_cancelled_messages; i++) {
    if (MUTANT(M_ACK_CANCELLED_MESSAGES_STAY))
      continue;
    STEP(op, .kind = MESSAGE_GOES, .instance = turn->id, .id = r->cancelled_messages[i]);
    if (MUTANT(M_ACK_CANCELS_MESSAGES_OF_OTHERS)) {
      FOR_EACH(at, &s->waiting)
        STEP(op, .kind = MESSAGE_GOES, .id = r->cancelled_messages[i],
             .instance = OWNER_OF(at, struct instance, link)->id);
    }
  }
}

/* ---- the operation --------------------------------------------------------------------------- */

/* What mutants write before they look: the owner alone, and the pin alone. */
static void
change_owner(struct op *op, const struct instance *turn, struct dk_bytes owner)
{
  const struct facts *f = turn->facts;

  STEP(op, .kind = FACTS, .instance = turn->id, .birth = turn->birth,
       .enqueued_at = turn->created_at, .name = f->name, .version = f->version,
       .parent = f->parent, .owner = owner);
}

static void
change_pin(struct op *op, const struct instance *turn, const struct dk_version *pin)
{
  struct execution e = *turn->current;

  e.is_pinned = true;
  e.pin = *pin;
  write_execution(op, turn, &e);
}

/* HIST-1, EXEC-2: even of an execution that has ended, and of events that are stored already. */
static void
append_though_refused(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  const struct store *s = op->s;
  const struct execution *e = turn->current;
  bool is_late = r->execution_id && r->execution_id < e->execution_id;
  bool is_stored = r->execution_id == e->execution_id && r->events[0].event_id <= e->last_event_id;

  if (DEFECT(M_EXEC_LATE_EVENTS_APPENDED, is_late) ||
      DEFECT(M_HIST_REFUSED_OVERWRITES, is_stored))
    STEP(op, .kind = EVENT, .instance = turn->id, .execution_id = r->execution_id,
         .event_id = r->events[0].event_id, .payload = r->events[0].payload);
}

/* ACK-1, ACK-2, CANCEL-2: a refused commit changes nothing.  Mutants leave one thing behind. */
static dk_status
refused(struct op *op, const struct instance *turn, const struct dk_turn_result *r,
        dk_status status)
{
  const struct store *s = op->s;

  if (MUTANT(M_ACK_REFUSAL_LOSES_MESSAGES))
    remove_messages_of_turn(op, turn);
  if (DEFECT(M_ACK_REFUSAL_SCHEDULES, r->n_worker_items))
    insert_activities(op, turn, r);
  if (MUTANT(M_CANCEL_DELETES_THOUGH_REFUSED))
    for (size_t i = 0; i < r->n_cancelled_activities; i++)
      delete_row(op, turn->id, &r->cancelled_activities[i]);
  for (size_t i = 0; DEFECT(M_CANCEL_CHUNKS_COMMITTED, r->n_cancelled_activities > 500) && i < 500;
       i++)
    delete_row(op, turn->id, &r->cancelled_activities[i]);
  if (DEFECT(M_ACK_REFUSAL_ENQUEUES, r->n_orchestrator_items))
    enqueue_messages(op, turn, r);
  if (DEFECT(M_ACK_REFUSAL_CHANGES_OWNER, turn->birth && r->owner.ptr))
    change_owner(op, turn, r->owner);
  if (DEFECT(M_ACK_REFUSAL_PINS, turn->birth && r->pinned))
    change_pin(op, turn, r->pinned);
  if (turn->current && r->n_events)
    append_though_refused(op, turn, r);
  if (MUTANT(M_ACK_REFUSAL_DROPS_LEASE))
    release_turn(op, turn, false);
  op->leaves_traces = true;
  return status;
}

/* ACK-11: no token but the last one committed has landed, whatever the mark says. */
static bool
is_taken_for_landed(const struct op *op, const struct instance *turn, uint64_t epoch)
{
  const struct store *s = op->s;
  const struct lock *lock = &turn->lock;
  bool is_latest = epoch == lock->epoch && epoch != turn->committed;

  return DEFECT(M_ACK_REPEAT_OF_EXPIRED_IS_OK,
                is_latest && lock->held && lock->until <= op->now) ||
         DEFECT(M_ACK_REPEAT_OF_ABANDONED_IS_OK, is_latest && !lock->held) ||
         DEFECT(M_ACK_REPEAT_OF_OLDER_IS_OK, epoch < turn->committed);
}

/* ACK-11: the last commit of its instance, once more, is done already.  Else the token must be
 * live. */
static dk_status
find_turn_to_commit(struct op *op, struct dk_bytes text, const struct dk_turn_result *r,
                    struct instance **ret_turn)
{
  const struct store *s = op->s;
  struct token token;
  bool is_token = parse_turn_token(s, text, &token);
  struct instance *last = is_token ? find_instance(s, token.of.instance) : NULL;
  bool is_repeat = last && last->committed == token.epoch &&
                   HOLDS(M_ACK_UNMARKED_REPEAT_IS_OK, r->flags & DK_REPEATED) &&
                   !DEFECT(M_ACK_REPEAT_FORGOTTEN_BY_FETCH, token.epoch != last->lock.epoch);

  if (DEFECT(M_ACK_REPEAT_APPLIES_AGAIN, is_repeat)) {
    *ret_turn = last;
    return DK_OK;
  }
  if (REFUSED(M_ACK_REPEAT_IS_LOST, is_repeat) &&
      !DEFECT(M_ACK_REPEAT_OF_EMPTY_IS_LOST, r->execution_id == 0))
    return DONE_ALREADY;
  if (last && (r->flags & DK_REPEATED) && is_taken_for_landed(op, last, token.epoch))
    return DONE_ALREADY;
  if (DEFECT(M_DEL_REPEATED_COMMIT_IS_OK, is_token && !last && r->flags & DK_REPEATED)) /* DEL-5 */
    return DONE_ALREADY;
  return find_live_turn(op, text, M_TOKEN_EXPIRED_TURN_COMMITS, ret_turn);
}

/* ERR-5: the token is looked at before all else.  Mutants look at the rest first. */
static dk_status
refuse_before_the_token(struct op *op, struct dk_bytes text, const struct dk_turn_result *r)
{
  const struct store *s = op->s;
  struct token token;
  const struct instance *turn =
    parse_turn_token(s, text, &token) ? find_instance(s, token.of.instance) : NULL;

  if (turn && MUTANT(M_ERR_FORM_BEFORE_TOKEN))
    TRY(refuse_form(op, turn, r));
  if (turn && MUTANT(M_ERR_STATE_BEFORE_TOKEN))
    TRY(refuse_state(op, turn, r));
  return DK_OK;
}

/* ACK-1.  What a mutant deletes for a token that has lost its lease. */
static void
delete_before_looking(struct op *op, struct dk_bytes text, const struct dk_turn_result *r)
{
  const struct store *s = op->s;
  struct token token;
  const struct instance *turn =
    parse_turn_token(s, text, &token) ? find_instance(s, token.of.instance) : NULL;

  if (!DEFECT(M_ACK_LATE_COMMIT_CANCELS, turn && token.epoch != turn->committed &&
                                           (token.epoch != turn->lock.epoch || !turn->lock.held ||
                                            turn->lock.until <= op->now)))
    return;
  for (size_t i = 0; i < r->n_cancelled_activities; i++)
    delete_row(op, turn->id, &r->cancelled_activities[i]);
  op->leaves_traces = true;
}

/* ACK-1.  A mutant checks, when the rows are deleted, whether the call is cancelled. */
static dk_status
stop_half_done(struct op *op, const struct instance *turn, const struct dk_turn_result *r)
{
  if (!op->s->host->cancelled(op->call))
    return DK_OK;
  for (size_t i = 0; i < r->n_cancelled_activities; i++)
    delete_row(op, turn->id, &r->cancelled_activities[i]);
  op->leaves_traces = true;
  return DK_CALL_CANCELLED;
}

static dk_status
ack_orchestration_item(struct op *op, struct dk_bytes token, const struct dk_turn_result *r)
{
  const struct store *s = op->s;
  struct instance *turn = NULL;

  TRY(refuse_before_the_token(op, token, r));
  delete_before_looking(op, token, r);
  TRY(find_turn_to_commit(op, token, r, &turn));                    /* TOKEN-2 to TOKEN-8, ACK-11 */
  if (MUTANT(M_ACK_TOKEN_CHECKED_OUTSIDE))                          /* ACK-14: under one lock */
    TRY(let_others_in(op));
  dk_status status = refuse_what_cannot_be_applied(op, turn, r);
  if (status != DK_OK)
    return refused(op, turn, r, status);
  if (MUTANT(M_ACK_CANCELLED_IS_HALF_DONE))
    TRY(stop_half_done(op, turn, r));

  bool is_early = DEFECT(M_CANCEL_DELETE_FIRST, r->n_worker_items && r->n_cancelled_activities);
  if (MUTANT(M_ACK_QUEUES_FIRST)) {                                 /* ACK-1 */
    enqueue_messages(op, turn, r);
    TRY(write_in_between(op));
  }
  remove_messages_of_turn(op, turn);                                /* ACK-3 */
  if (r->execution_id || DEFECT(M_ACK_EMPTY_COMMIT_CREATES, !turn->birth)) {
    store_execution(op, turn, r);                                   /* ACK-9, EXEC-1 */
    store_facts(op, turn, r);                                       /* ACK-4, ACK-10 */
    append_events(op, turn, r);                                     /* HIST-1 */
  }
  if (MUTANT(M_ACK_TWO_TRANSACTIONS))                               /* ACK-1: one step */
    TRY(write_in_between(op));
  if (is_early)
    delete_cancelled_activities(op, turn, r);
  insert_activities(op, turn, r);                                   /* CANCEL-3: insert first, */
  if (!is_early)
    delete_cancelled_activities(op, turn, r);                       /* CANCEL-1: delete second */
  if (!MUTANT(M_ACK_QUEUES_FIRST))
    enqueue_messages(op, turn, r);                                  /* ACK-7 */
  remove_cancelled_messages(op, turn, r);                           /* ACK-13 */
  change_keys(op, turn, r);
  change_custom_status(op, turn, r);
  STEP(op, .kind = TURN_LOCK, .instance = turn->id,                 /* TURN-6, ACK-11 */
       .epoch = turn->lock.epoch, .until = turn->lock.until, .handle = turn->lock.handle,
       .held = MUTANT(M_TURN_COMMIT_KEEPS_LOCK), .committed = turn->lock.epoch);
  return DK_OK;
}

dk_status
model_ack_orchestration_item(void *self, struct dk_call *call, struct dk_bytes token,
                             const struct dk_turn_result *result)
{
  struct op op;

  TRY(enter(&op, self, call, "ack_orchestration_item"));
  return leave(&op, ack_orchestration_item(&op, token, result));
}
