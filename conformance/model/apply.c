/* SPDX-License-Identifier: Apache-2.0 */
/* What each step does to the store in memory.  Owns the rows, from malloc; under store.mutex.
 *
 * Each piece of memory holds its own texts behind itself.  A step that fails leaves the state
 * stale, and it is made anew from the log. */
#include <stdlib.h>
#include <string.h>

#include "conformance/model/apply.h"
#include "conformance/model/state.h"

/* ---- making ---------------------------------------------------------------------------------- */

size_t
room_for(struct dk_bytes text)
{
  return text.ptr ? text.len + 1 : 0;
}

void *
new_piece(size_t size, size_t tail, char **ret_tail)
{
  char *piece = calloc(1, size + tail);

  *ret_tail = piece ? piece + size : NULL;
  return piece;
}

struct dk_bytes
keep(char **tail, struct dk_bytes text)
{
  struct dk_bytes kept = {text.ptr ? *tail : NULL, text.len};

  if (text.len)
    memcpy(*tail, text.ptr, text.len);
  *tail += room_for(text);
  return kept;
}

bool
replace(struct dk_bytes *place, struct dk_bytes text)
{
  char *tail, *copy = NULL;

  if (text.ptr && !(copy = new_piece(0, room_for(text), &tail)))
    return false;
  free((char *)place->ptr);
  *place = copy ? keep(&tail, text) : (struct dk_bytes){NULL, 0};
  return true;
}

static struct instance *
find_or_make_instance(struct store *s, struct dk_bytes id)
{
  char *tail;
  struct instance *instance = find_instance(s, id);

  if (instance || !(instance = new_piece(sizeof *instance, room_for(id), &tail)))
    return instance;
  instance->id = keep(&tail, id);
  list_init(&instance->link);
  list_init(&instance->messages);
  table_add(&s->instances, &instance->entry, hash_of_instance(id));
  instance->is_of_others = s->is_following;
  s->is_in_order = false;
  return instance;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* What mutants go by where two have one time. */
static bool
has_smaller_id(const struct message *a, const struct message *b)
{
  return str_compare(a->id, b->id) < 0;
}

/* QUEUE-2: by effective visible time, then by arrival. */
static bool
comes_before(const struct store *s, const struct message *a, const struct message *waiting)
{
  bool by_time = REFUSED(M_QUEUE_BY_ARRIVAL_ONLY, a->visible_at != waiting->visible_at);

  if (!by_time && (DEFECT(M_QUEUE_TIES_BY_ID, has_smaller_id(a, waiting)) ||
                   DEFECT(M_TIME_ORDER_BY_ENQUEUED_AT, a->enqueued_at < waiting->enqueued_at)))
    return true;

  return HOLDS(M_QUEUE_NEWEST_FIRST, by_time ? a->visible_at < waiting->visible_at
                                             : a->arrival < waiting->arrival);
}

static void
put_in_queue(struct store *s, struct message *message)
{
  struct instance *of = message->of;
  struct link *place = of->messages.previous;

  while (place != &of->messages && comes_before(s, message, OWNER_OF(place, struct message, link)))
    place = place->previous;
  link_after(place, &message->link);
  if (of->link.next == &of->link)
    link_to_end(&s->waiting, &of->link);
}

static void
remove_message(struct store *s, struct message *message)
{
  struct instance *of = message->of;

  link_remove(&message->link);
  if (message->id.ptr) {
    s->gone_hash = message->entry.hash;
    s->gone_attempt = message->attempt;
    table_remove(&s->messages, &message->entry);
  }
  if (of->messages.next == &of->messages)
    link_remove(&of->link);
  free(message);
}

static dk_status
message_comes(struct store *s, const struct step *p)
{
  char *tail;

  if (DEFECT(M_QUEUE_NOT_STORED, s->is_opening))
    return DK_OK;
  struct instance *of = find_or_make_instance(s, p->instance);
  size_t room = room_for(p->id) + room_for(p->payload);
  struct message *message = of ? new_piece(sizeof *message, room, &tail) : NULL;

  if (!message)
    return DK_NO_MEMORY;
  message->of = of;
  message->arrival = ++s->arrivals;
  message->id = keep(&tail, p->id);
  message->payload = keep(&tail, p->payload);
  message->visible_at = p->visible_at;
  message->enqueued_at = p->enqueued_at;
  message->turn = p->epoch; /* 0, but for a mutant */
  if (message->id.ptr) {
    table_add(&s->messages, &message->entry, hash_of_message(of->id, message->id));
    if (DEFECT(M_POISON_COUNT_BY_ID, message->entry.hash == s->gone_hash && s->gone_attempt > 0))
      message->attempt = s->gone_attempt;
  }
  put_in_queue(s, message);
  return DK_OK;
}

/* From a place in the queue once around: a handle that took several mostly took them in this
 * order. */
static struct message *
find_arrival(const struct instance *of, const struct link *from, uint64_t arrival)
{
  struct link *at = from->next;

  do {
    if (at != &of->messages && OWNER_OF(at, struct message, link)->arrival == arrival)
      return OWNER_OF(at, struct message, link);
    at = at->next;
  } while (at != from->next);
  return NULL;
}

/* POISON-1: how much a delivery counts, which other handles or earlier ones may have made. */
static uint64_t
counted(const struct store *s, uint64_t attempts)
{
  if (DEFECT(M_POISON_COUNT_PER_HANDLE, s->is_following && attempts > 0) ||
      DEFECT(M_POISON_COUNT_NOT_STORED, s->is_opening && attempts > 0))
    return 0;
  return attempts;
}

/* POISON-6: of mutants, which count all that an instance has. */
static void
count_others(struct store *s, const struct instance *of, const struct step *p)
{
  FOR_EACH(at, &of->messages) {
    struct message *message = OWNER_OF(at, struct message, link);
    if (DEFECT(M_POISON_BOUND_COUNTS_ALL, message->turn != p->epoch))
      message->attempt += p->attempt;
  }
}

static dk_status
messages_taken(struct store *s, const struct step *p)
{
  uint64_t arrival;
  struct instance *of = find_instance(s, p->instance);
  const struct link *last = of ? &of->messages : NULL;

  if (!of || p->arrivals.len % sizeof arrival)
    return DK_CORRUPT;
  for (size_t i = 0; i < p->arrivals.len; i += sizeof arrival) {
    memcpy(&arrival, p->arrivals.ptr + i, sizeof arrival);
    struct message *message = find_arrival(of, last, arrival);
    if (!message)
      return DK_CORRUPT;
    message->turn = p->epoch;
    message->attempt += counted(s, p->attempt);
    if (DEFECT(M_QUEUE_DELIVERED_COME_LAST, message->link.next != &of->messages))
      link_to_end(&of->messages, &message->link);
    else
      last = &message->link;
  }
  count_others(s, of, p);
  if (!DEFECT(M_QUEUE_BUSY_STAYS_FIRST, of->link.next != &s->waiting))
    link_to_end(&s->waiting, &of->link);
  return DK_OK;
}

static bool
is_of_turn(const struct message *message, const struct step *p)
{
  return p->epoch == 0 || message->turn == p->epoch;
}

static dk_status
messages_back(struct store *s, const struct step *p)
{
  struct link back;
  struct instance *of = find_instance(s, p->instance);

  if (!of)
    return DK_CORRUPT;
  list_init(&back);
  FOR_EACH(at, &of->messages) {
    struct message *message = OWNER_OF(at, struct message, link);
    bool is_own = is_of_turn(message, p);
    if (is_own || DEFECT(M_POISON_IGNORE_LOWERS_ALL, p->attempt > 0))
      message->attempt -= message->attempt < p->attempt ? message->attempt : p->attempt;
    if (DEFECT(M_QUEUE_DELAYED_KEEPS_PLACE, is_own && p->visible_at))
      message->visible_at = p->visible_at;
    else if (is_own && p->visible_at) /* else it keeps its place among those of its time: TURN-7 */
      link_to_end(&back, at);
  }
  FOR_EACH(at, &back) {
    struct message *message = OWNER_OF(at, struct message, link);
    link_remove(at);
    message->visible_at = p->visible_at;
    put_in_queue(s, message);
  }
  if (DEFECT(M_QUEUE_GIVEN_BACK_FIRST, of->link.previous != &s->waiting)) {
    link_remove(&of->link);
    link_after(&s->waiting, &of->link);
  }
  return DK_OK;
}

/* Mutants leave those that are not due yet, or those of a turn. */
static bool
may_go_by(const struct message *message, const struct step *p)
{
  if (p->visible_at && message->visible_at > p->visible_at)
    return false;
  return p->held ? message->turn != p->epoch : is_of_turn(message, p);
}

static dk_status
messages_go(struct store *s, const struct step *p)
{
  struct instance *of = find_instance(s, p->instance);

  if (!of)
    return DK_CORRUPT;
  FOR_EACH(at, &of->messages)
    if (may_go_by(OWNER_OF(at, struct message, link), p))
      remove_message(s, OWNER_OF(at, struct message, link));
  return DK_OK;
}

static dk_status
message_goes(struct store *s, const struct step *p)
{
  struct message *message = find_message(s, p->instance, p->id);

  if (message)
    remove_message(s, message);
  return DK_OK;
}

/* ---- instances ------------------------------------------------------------------------------- */

static struct lock
lock_of(struct store *s, const struct step *p)
{
  if (p->epoch > s->epochs)
    s->epochs = p->epoch;
  return (struct lock){p->epoch, p->until, p->held, p->handle, p->fetch_id};
}

static dk_status
turn_lock(struct store *s, const struct step *p)
{
  struct instance *instance = find_instance(s, p->instance);

  if (!instance)
    return DK_CORRUPT;
  instance->lock = lock_of(s, p);
  if (DEFECT(M_TURN_LOCK_NOT_STORED, s->is_opening && p->held))
    instance->lock.held = false;
  instance->committed =
    DEFECT(M_ACK_REPEAT_FORGOTTEN_BY_OPEN, s->is_opening && p->committed) ? 0 : p->committed;
  return DK_OK;
}

static dk_status
facts(struct store *s, const struct step *p)
{
  char *tail;
  struct instance *instance = find_instance(s, p->instance);
  size_t room =
    room_for(p->name) + room_for(p->version) + room_for(p->parent) + room_for(p->owner);
  struct facts *made = new_piece(sizeof *made, room, &tail);

  if (!instance || !made) {
    free(made);
    return instance ? DK_NO_MEMORY : DK_CORRUPT;
  }
  *made = (struct facts){keep(&tail, p->name), keep(&tail, p->version), keep(&tail, p->parent),
                         keep(&tail, p->owner)};
  if (DEFECT(M_TURN_OWNER_NOT_STORED, s->is_opening && p->owner.ptr))
    made->owner = (struct dk_bytes){NULL, 0};
  free(instance->facts);
  instance->facts = made;
  instance->birth = p->birth + (DEFECT(M_TURN_BIRTH_PER_OPENING, s->is_opening) ? 1 : 0);
  instance->created_at =
    DEFECT(M_ADMIN_CREATED_NOT_STORED, s->is_opening) ? s->host->now(s->host) : p->enqueued_at;
  return DK_OK;
}

static struct execution *
begin_execution(const struct store *s, struct instance *instance, uint64_t execution_id)
{
  struct execution *begun = calloc(1, sizeof *begun);

  if (!begun)
    return NULL;
  begun->execution_id = execution_id;
  if (DEFECT(M_HIST_EARLIER_NOT_STORED, s->is_opening && instance->current))
    instance->current->execution_id = 0;
  if (DEFECT(M_EXEC_LAST_EVENT_GOES_ON, instance->current && instance->current->last_event_id))
    begun->last_event_id = instance->current->last_event_id;
  *(instance->current ? &instance->current->next : &instance->first) = begun;
  instance->current = begun;
  return begun;
}

static dk_status
execution(struct store *s, const struct step *p)
{
  struct instance *instance = find_instance(s, p->instance);
  struct execution *e = instance ? instance->current : NULL;

  if (!instance)
    return DK_CORRUPT;
  if (!e || e->execution_id != p->execution_id)
    e = begin_execution(s, instance, p->execution_id);
  bool is_lost = DEFECT(M_ACK_OUTPUT_NOT_STORED, s->is_opening && p->output.ptr);
  if (!e || !replace(&e->output, is_lost ? (struct dk_bytes){NULL, 0} : p->output))
    return DK_NO_MEMORY;
  e->status = (int32_t)p->status;
  e->started_at = p->started_at;
  if (DEFECT(M_EXEC_TIMES_NOT_STORED, s->is_opening))
    e->started_at = s->host->now(s->host);
  e->completed_at = p->completed_at;
  e->is_pinned = p->is_pinned && !DEFECT(M_PIN_NOT_STORED, s->is_opening && p->is_pinned);
  e->pin = (struct dk_version){(uint32_t)p->major, (uint32_t)p->minor, (uint32_t)p->patch};
  return DK_OK;
}

/* Into the execution of this number, in its place; what is there already is overwritten. */
static dk_status
late_event(struct instance *instance, uint64_t execution_id, struct event *made)
{
  struct execution *e = instance->first;

  while (e && e->execution_id != execution_id)
    e = e->next;
  struct event **place = e ? &e->first : NULL;
  while (place && *place && (*place)->event_id < made->event_id)
    place = &(*place)->next;
  struct event *old = place ? *place : NULL;
  bool is_overwritten = old && old->event_id == made->event_id;
  made->next = is_overwritten ? old->next : old;
  *(place ? place : &made->next) = place ? made : NULL;
  if (e && !made->next) {
    e->last = made;
    e->last_event_id = made->event_id;
  }
  free(is_overwritten ? old : place ? NULL : made);
  return place ? DK_OK : DK_CORRUPT;
}

static dk_status
event(struct store *s, const struct step *p)
{
  char *tail;
  struct instance *instance = find_instance(s, p->instance);
  struct execution *e = instance ? instance->current : NULL;
  struct event *made = new_piece(sizeof *made, room_for(p->payload), &tail);

  if (!e || !made) {
    free(made);
    return e ? DK_NO_MEMORY : DK_CORRUPT;
  }
  made->event_id = p->event_id;
  made->payload = keep(&tail, p->payload);
  if (p->execution_id) /* mutants name it: those that write where nothing is written any more */
    return late_event(instance, p->execution_id, made);
  *(e->last ? &e->last->next : &e->first) = made;
  e->last = made;
  e->last_event_id = p->event_id;
  return DK_OK;
}

/* ---- what is deleted ------------------------------------------------------------------------- */

static void
free_execution(struct execution *e)
{
  for (struct event *v = e->first, *after; v; v = after) {
    after = v->next;
    free(v);
  }
  free((char *)e->output.ptr);
  free(e);
}

static void
forget_executions(struct instance *instance)
{
  for (struct execution *e = instance->first, *next; e; e = next) {
    next = e->next;
    free_execution(e);
  }
  instance->first = instance->current = NULL;
}

/* Forgets all that is the instance's own, except what must be kept: then it is an address, as
 * before its first commit. */
static void
model_apply_forget(struct instance *instance, const struct step *kept)
{
  struct instance address = {.link = instance->link,
                             .entry = instance->entry,
                             .id = instance->id,
                             .messages = instance->messages,
                             .created_at = instance->created_at}; /* of which one mutant asks */

  if (kept->held)
    address.lock = instance->lock;
  if (!kept->execution_id)
    forget_executions(instance);
  address.first = instance->first;
  address.current = instance->current;
  remove_keys(instance);
  free((char *)instance->custom_status.ptr);
  if (kept->committed)
    address.facts = instance->facts;
  else
    free(instance->facts);
  *instance = address;
}

static void
free_instance(struct store *s, struct instance *instance)
{
  static const struct step nothing;

  FOR_EACH(at, &instance->messages)
    remove_message(s, OWNER_OF(at, struct message, link));
  model_apply_forget(instance, &nothing);
  free(instance);
}

/* Its messages and its work items go by steps of their own, before. */
static dk_status
instance_goes(struct store *s, const struct step *p)
{
  struct instance *gone = find_instance(s, p->instance);

  if (!gone)
    return DK_CORRUPT;
  if (DEFECT(M_DEL_NOT_STORED, s->is_opening) || DEFECT(M_DEL_NOT_FOLLOWED, s->is_following))
    return DK_OK;
  bool has_messages = gone->messages.next != &gone->messages; /* as mutants leave them */
  if (has_messages || MUTANT(M_DEL_AGE_STAYS) || p->held || p->execution_id || p->committed) {
    model_apply_forget(gone, p);
    return DK_OK;
  }
  table_remove(&s->instances, &gone->entry);
  s->is_in_order = false;
  free_instance(s, gone);
  return DK_OK;
}

/* PRUNE-5.  What mutants do to those that are left. */
static void
change_rest(struct instance *instance, const struct step *p)
{
  uint64_t number = 0;

  for (struct execution *e = instance->first; e && p->epoch; e = e->next)
    e->execution_id = ++number;
  while (p->event_id && instance->current->first) {
    struct event *gone = instance->current->first;
    instance->current->first = gone->next;
    free(gone);
  }
  if (p->event_id)
    instance->current->last = NULL;
}

static dk_status
execution_goes(struct store *s, const struct step *p)
{
  struct instance *instance = find_instance(s, p->instance);
  struct execution **place = instance ? &instance->first : NULL, *before = NULL;

  while (place && *place && (*place)->execution_id != p->execution_id) {
    before = *place;
    place = &(*place)->next;
  }
  struct execution *gone = place ? *place : NULL;
  if (!gone || (gone == instance->current && !before))
    return DK_CORRUPT;
  if (DEFECT(M_PRUNE_NOT_STORED, s->is_opening) || DEFECT(M_PRUNE_NOT_FOLLOWED, s->is_following))
    return DK_OK;
  if (DEFECT(M_PRUNE_HISTORY_STAYS, gone->first != NULL)) {
    gone->is_hidden = true;
    return DK_OK;
  }
  *place = gone->next;
  if (gone == instance->current) /* as a mutant prunes it */
    instance->current = before;
  free_execution(gone);
  change_rest(instance, p);
  return DK_OK;
}

/* ---- work ------------------------------------------------------------------------------------ */

static struct identity
identity_of(const struct step *p)
{
  return (struct identity){p->instance, p->execution_id, p->activity_id};
}

static dk_status
row_comes(struct store *s, const struct step *p)
{
  char *tail;
  size_t room =
    room_for(p->instance) + room_for(p->tag) + room_for(p->session) + room_for(p->payload);
  struct row *row = new_piece(sizeof *row, room, &tail);

  if (!row)
    return DK_NO_MEMORY;
  row->identity = identity_of(p);
  row->identity.instance = keep(&tail, p->instance);
  row->tag = keep(&tail, p->tag);
  if (DEFECT(M_TAG_NOT_STORED, s->is_opening && p->tag.ptr))
    row->tag = (struct dk_bytes){NULL, 0};
  row->session = keep(&tail, p->session);
  row->payload = keep(&tail, p->payload);
  row->visible_at = p->visible_at;
  table_add(&s->activities, &row->entry, hash_of_identity(&row->identity));
  link_after(DEFECT(M_WORK_NEWEST_FIRST, s->rows.next != &s->rows) ? &s->rows : s->rows.previous,
             &row->link);
  return DK_OK;
}

static dk_status
row_changes(struct store *s, const struct step *p)
{
  struct identity identity = identity_of(p);
  struct row *row = find_row(s, &identity);

  if (!row)
    return DK_CORRUPT;
  if (!replace(&row->owner, p->owner))
    return DK_NO_MEMORY;
  if (DEFECT(M_TAG_LOST_BY_ABANDON, row->tag.ptr && row->lock.held && !p->held))
    row->tag = (struct dk_bytes){NULL, 0};
  row->lock = lock_of(s, p);
  row->visible_at = p->visible_at;
  row->attempt = DEFECT(M_WORK_ATTEMPT_NOT_STORED, s->is_opening && p->attempt) ? 0 : p->attempt;
  link_to_end(&s->rows, &row->link);
  return DK_OK;
}

static void
remove_row(struct store *s, struct row *row)
{
  link_remove(&row->link);
  table_remove(&s->activities, &row->entry);
  free((char *)row->owner.ptr);
  free(row);
}

static dk_status
row_goes(struct store *s, const struct step *p)
{
  struct identity identity = identity_of(p);
  struct row *row = find_row(s, &identity);

  if (row && !DEFECT(M_CANCEL_COMES_BACK, s->is_opening))
    remove_row(s, row);
  return DK_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

dk_status
state_init(struct store *s)
{
  enum { FIRST_SLOTS = 64 };
  struct table *tables[] = {&s->instances, &s->messages, &s->activities};

  list_init(&s->waiting);
  list_init(&s->rows);
  s->epochs = s->arrivals = 0;
  for (size_t i = 0; i < 3; i++)
    *tables[i] = (struct table){calloc(FIRST_SLOTS, sizeof(struct entry *)), FIRST_SLOTS, 0};
  return s->instances.slots && s->messages.slots && s->activities.slots ? DK_OK : DK_NO_MEMORY;
}

void
state_done(struct store *s)
{
  FOR_EACH(at, &s->rows)
    remove_row(s, OWNER_OF(at, struct row, link));
  for (size_t i = 0; s->instances.slots && i < s->instances.n_slots; i++) {
    for (struct entry *e = s->instances.slots[i], *next; e; e = next) {
      next = e->next;
      free_instance(s, OWNER_OF(e, struct instance, entry));
    }
  }
  free_sessions(s);
  free(s->in_order);
  s->in_order = NULL;
  s->is_in_order = false;
  free(s->instances.slots);
  free(s->messages.slots);
  free(s->activities.slots);
}

dk_status
state_apply(struct store *s, struct dk_bytes record)
{
  static dk_status (*const apply[STEP_KINDS])(struct store *, const struct step *) = {
    [MESSAGE_COMES] = message_comes, [MESSAGES_TAKEN] = messages_taken,
    [MESSAGES_BACK] = messages_back, [MESSAGES_GO] = messages_go,
    [MESSAGE_GOES] = message_goes,   [TURN_LOCK] = turn_lock,
    [FACTS] = facts,                 [EXECUTION] = execution,
    [EVENT] = event,                 [ROW_COMES] = row_comes,
    [ROW_CHANGES] = row_changes,     [ROW_GOES] = row_goes,
    [KEY_COMES] = apply_key_comes,   [KEY_GOES] = apply_key_goes,
    [SESSION] = apply_session,       [CUSTOM_STATUS] = apply_custom_status,
    [INSTANCE_GOES] = instance_goes, [EXECUTION_GOES] = execution_goes,
  };
  struct step step;

  while (record.len) {
    dk_status status = step_read(&record, &step) ? apply[step.kind](s, &step) : DK_CORRUPT;
    if (status != DK_OK) {
      s->is_stale = true;
      return status;
    }
  }
  return DK_OK;
}
