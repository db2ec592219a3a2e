/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two replies to one request: the model's and the provider's.  All that the contract
 * determines must be equal; the first thing that is not becomes the difference, with the clause
 * that speaks of it. */
#include "conformance/random/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- one value ------------------------------------------------------------------------------- */

bool
differs(struct pass *p, const char *clause, const char *what, const char *expected,
        const char *got)
{
  struct difference *d = &p->difference;

  d->found = true;
  d->step = p->step;
  snprintf(d->clause, sizeof(d->clause), "%s", clause);
  snprintf(d->what, sizeof(d->what), "%s: %s", kit_op_name(p->ours.kind), what);
  snprintf(d->expected, sizeof(d->expected), "%s", expected);
  snprintf(d->got, sizeof(d->got), "%s", got);
  return false;
}

bool
same_number(struct pass *p, const char *clause, const char *what, uint64_t ours, uint64_t theirs)
{
  char expected[32], got[32];

  if (ours == theirs)
    return true;
  snprintf(expected, sizeof(expected), "%" PRIu64, ours);
  snprintf(got, sizeof(got), "%" PRIu64, theirs);
  return differs(p, clause, what, expected, got);
}

static void
say_time(struct pass *p, int64_t time, char *buffer, size_t size)
{
  struct dk_text text = DK_TEXT_EMPTY;

  kit_say_time(p->t, &text, time);
  snprintf(buffer, size, "%s", dk_text_str(&text));
  dk_text_done(&text);
}

bool
same_time(struct pass *p, const char *clause, const char *what, int64_t ours, int64_t theirs)
{
  char expected[64], got[64];

  if (ours == theirs)
    return true;
  say_time(p, ours, expected, sizeof(expected));
  say_time(p, theirs, got, sizeof(got));
  return differs(p, clause, what, expected, got);
}

bool
same_text(struct pass *p, const char *clause, const char *what, struct dk_bytes ours,
          struct dk_bytes theirs)
{
  struct dk_text expected = DK_TEXT_EMPTY, got = DK_TEXT_EMPTY;

  if (same_bytes(ours, theirs))
    return true;
  kit_say_bytes(&expected, ours);
  kit_say_bytes(&got, theirs);
  differs(p, clause, what, dk_text_str(&expected), dk_text_str(&got));
  dk_text_done(&expected);
  dk_text_done(&got);
  return false;
}

/* Two lives of one id have two numbers, and one life has one: on both sides, whichever they are. */
bool
same_birth(struct pass *p, const char *clause, struct dk_bytes instance, uint64_t ours,
           uint64_t theirs)
{
  char expected[64], got[64];

  if ((ours == 0) != (theirs == 0))
    return same_number(p, clause, "birth", ours, theirs);
  for (size_t i = 0; ours != 0 && i < p->births.n; i++) {
    const struct birth *b = &p->births.items[i];
    if (!same_bytes(b->instance, instance) || (b->ours == ours) == (b->theirs == theirs))
      continue;
    snprintf(expected, sizeof(expected), "%s life as before",
             b->ours == ours ? "the same" : "not the same");
    snprintf(got, sizeof(got), "birth %" PRIu64 ", where it was %" PRIu64, theirs, b->theirs);
    return differs(p, "TURN-11", "birth", expected, got);
  }
  if (ours != 0)
    *LIST_ADD(p->t, &p->t->arena, &p->births) = (struct birth){
      kit_copy_bytes(p->t, &p->t->arena, instance), theirs, ours
    };
  return true;
}

/* ---- statuses -------------------------------------------------------------------------------- */

static const char *
clause_of_duplicate(enum op_kind kind)
{
  return kind == OP_ACK_TURN ? "ACK-12" : kind == OP_ENQUEUE_WORK ? "CANCEL-11" : "QUEUE-4";
}

/* What the contract says where one side answers so, and the other otherwise. */
static const char *
clause_of_status(const struct pass *p, dk_status ours, dk_status theirs)
{
  enum op_kind kind = p->ours.kind;
  bool fetches = kind == OP_FETCH_TURN || kind == OP_FETCH_WORK;

  if (p->ours.unchecked)
    return "ABI-11";
  if (dk_status_class(theirs) == 1 || dk_status_class(theirs) == 3)
    return "ERR-1";
  if (fetches && theirs == DK_NOTHING)
    return kind == OP_FETCH_TURN ? "TURN-10" : "WORK-2";
  if (takes_token(kind) && (ours == DK_LOCK_LOST || theirs == DK_LOCK_LOST))
    return ours == DK_LOCK_LOST ? "TOKEN-3" : kind == OP_ACK_TURN ? "ACK-2" : "TOKEN-4";
  if (ours == DK_DUPLICATE || theirs == DK_DUPLICATE)
    return clause_of_duplicate(kind);
  if (kind == OP_ACK_TURN)
    return "ACK-5";
  if (kind == OP_DELETE_INSTANCES)
    return ours == DK_NOT_FOUND ? "DEL-4" : "DEL-2";
  return kind == OP_PRUNE ? "PRUNE-4" : "ERR-1";
}

static bool
is_refusal(dk_status status)
{
  return dk_status_class(status) == 2;
}

/* The freedoms of repeated calls: WORK-10, and the last sentence but one of ACK-11.  And of a
 * request that must be refused for more than one reason, any may be given. */
static bool
is_free_answer(const struct pass *p)
{
  const struct op *ours = &p->ours;
  dk_status theirs = p->theirs->status;

  if (ours->unchecked && is_refusal(ours->status) && is_refusal(theirs))
    return true;
  if (ours->kind == OP_ACK_WORK && (ours->work_result.flags & DK_REPEATED) != 0)
    return p->present != NULL && p->present->is_acked &&
           (theirs == DK_OK || theirs == DK_LOCK_LOST);
  return ours->kind == OP_ACK_TURN && (ours->result->flags & DK_REPEATED) != 0 &&
         ours->result->execution_id == 0 && p->present != NULL && p->present->result != NULL &&
         !p->present->is_known && (theirs == DK_OK || theirs == DK_LOCK_LOST);
}

bool
look_at_model(struct pass *p, struct dk_bytes instance, int64_t *ret_visible_at,
              int64_t *ret_locked_until)
{
  struct dk_instance_filter filter = {
    .struct_size = sizeof(filter), .flags = DK_FILTER_IDS, .ids = &instance, .n_ids = 1
  };
  struct dk_list_instances list = {.struct_size = sizeof(list), .filter = &filter};
  struct dk_read_messages read = {.struct_size = sizeof(read), .instance = instance};
  struct dk_instances *found = NULL;
  struct dk_messages *waiting = NULL;

  if (dk_store_read_messages(p->model, p->caller, &read, &waiting) != DK_OK)
    kit_trouble(p->t, "the model does not tell its messages");
  if (waiting->n_items == 0)
    return false;
  *ret_visible_at = waiting->items[0].visible_at;
  if (dk_store_list_instances(p->model, p->caller, &list, &found) != DK_OK)
    kit_trouble(p->t, "the model does not list its instances");
  *ret_locked_until = found->n_items > 0 ? found->items[0].locked_until : 0;
  return true;
}

/* The model was asked for what the provider has handed out, and does not hand it out: why, by
 * what the model tells of itself. */
static bool
refuse_turn(struct pass *p, struct dk_bytes instance)
{
  int64_t visible_at, locked_until;
  char got[200];

  snprintf(got, sizeof(got), "a turn of \"%.*s\"", (int)(instance.len < 100 ? instance.len : 100),
           instance.ptr);
  if (!look_at_model(p, instance, &visible_at, &locked_until))
    return differs(p, "ACK-3", "which instance", "not one that has no message", got);
  if (visible_at > now(p->t))
    return differs(p, "TIME-3", "which instance", "not one whose messages are not yet visible",
                   got);
  if (locked_until > now(p->t))
    return differs(p, "TURN-1", "which instance", "not one whose turn is locked", got);
  return differs(p, "PIN-1", "which instance", "not one that is pinned to another version", got);
}

static bool
refuse_choice(struct pass *p)
{
  const struct dk_works *works = p->theirs->works;
  char got[200];

  if (p->theirs->turn != NULL)
    return refuse_turn(p, p->theirs->turn->head.instance);
  if (works == NULL || works->n_items == 0)
    return differs(p, "ERR-1", "status", "DK_NOTHING", "DK_OK, without a result");
  snprintf(got, sizeof(got), "activity %" PRIu64 " of execution %" PRIu64 " of \"%.80s\"",
           works->items[0].item.activity_id, works->items[0].item.execution_id,
           works->items[0].item.instance.ptr);
  return differs(p, "WORK-1", "which item",
                 "not one that is deleted, locked, delayed, or has another tag", got);
}

static bool
same_status(struct pass *p)
{
  char expected[96], got[640], name[32];
  dk_status ours = p->ours.status, theirs = p->theirs->status;

  if (ours == theirs || is_free_answer(p))
    return true;
  if (ours == DK_NOTHING && theirs == DK_OK)
    return refuse_choice(p);
  snprintf(expected, sizeof(expected), "%s", kit_status_name(ours, name, sizeof(name)));
  snprintf(got, sizeof(got), "%s%s%s", kit_status_name(theirs, name, sizeof(name)),
           p->theirs->text[0] != '\0' ? ": " : "", p->theirs->text);
  return differs(p, clause_of_status(p, ours, theirs), "status", expected, got);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static bool
same_head(struct pass *p, const struct dk_turn_head *ours, const struct dk_turn_head *theirs)
{
  return same_text(p, "TURN-1", "instance", ours->instance, theirs->instance) &&
         same_number(p, "TURN-3", "known", (uint64_t)ours->known, (uint64_t)theirs->known) &&
         same_number(p, "TURN-4", "status", (uint64_t)ours->status, (uint64_t)theirs->status) &&
         same_text(p, "TURN-4", "name", ours->name, theirs->name) &&
         same_text(p, "TURN-4", "version", ours->version, theirs->version) &&
         same_text(p, "TURN-4", "parent_instance", ours->parent_instance,
                   theirs->parent_instance) &&
         same_birth(p, "TURN-11", ours->instance, ours->birth, theirs->birth) &&
         same_number(p, "TURN-4", "execution_id", ours->execution_id, theirs->execution_id) &&
         same_number(p, "TURN-13", "last_event_id", ours->last_event_id, theirs->last_event_id) &&
         same_number(p, "TURN-13", "history_from", ours->history_from, theirs->history_from) &&
         same_time(p, "TIME-1", "now", ours->now, theirs->now) &&
         same_number(p, "TIME-2", "lease_left_ms", (uint64_t)ours->lease_left_ms,
                     (uint64_t)theirs->lease_left_ms);
}

static bool
same_events(struct pass *p, const char *clause, const struct dk_event *ours, size_t n_ours,
            const struct dk_event *theirs, size_t n_theirs)
{
  char what[64];

  for (size_t i = 0; i < n_ours && i < n_theirs; i++) {
    snprintf(what, sizeof(what), "id of event %zu of %zu", i + 1, n_ours);
    if (!same_number(p, clause, what, ours[i].event_id, theirs[i].event_id))
      return false;
    snprintf(what, sizeof(what), "payload of event %" PRIu64, ours[i].event_id);
    if (!same_text(p, "HIST-1", what, ours[i].payload, theirs[i].payload))
      return false;
  }
  return same_number(p, clause, "number of events", n_ours, n_theirs);
}

static bool
same_message(struct pass *p, size_t i, const struct dk_message *ours,
             const struct dk_message *theirs)
{
  char what[64];

#define OF_MESSAGE(field) (snprintf(what, sizeof(what), field " of message %zu", i + 1), what)
  return same_text(p, "QUEUE-2", OF_MESSAGE("id"), ours->id, theirs->id) &&
         same_text(p, "QUEUE-6", OF_MESSAGE("payload"), ours->payload, theirs->payload) &&
         same_time(p, "QUEUE-6", OF_MESSAGE("visible_at"), ours->visible_at, theirs->visible_at) &&
         same_time(p, "QUEUE-6", OF_MESSAGE("enqueued_at"), ours->enqueued_at,
                   theirs->enqueued_at) &&
         same_number(p, "POISON-1", OF_MESSAGE("attempt"), ours->attempt, theirs->attempt);
#undef OF_MESSAGE
}

static bool
same_messages(struct pass *p, const char *clause, const struct dk_message *ours, size_t n_ours,
              const struct dk_message *theirs, size_t n_theirs)
{
  if (!same_number(p, clause, "number of messages", n_ours, n_theirs))
    return false;
  for (size_t i = 0; i < n_ours; i++)
    if (!same_message(p, i, &ours[i], &theirs[i]))
      return false;
  return true;
}

static bool
same_turn(struct pass *p)
{
  const struct dk_turn *ours = p->ours.turn, *theirs = p->theirs->turn;

  return same_head(p, &ours->head, &theirs->head) &&
         same_events(p, "TURN-4", ours->events, ours->n_events, theirs->events,
                     theirs->n_events) &&
         same_messages(p, "TURN-2", ours->messages, ours->n_messages, theirs->messages,
                       theirs->n_messages);
}

/* ---- work ------------------------------------------------------------------------------------ */

const struct dk_work_item *
find_work(const struct dk_works *works, const struct dk_item *like)
{
  for (size_t i = 0; i < works->n_items; i++) {
    const struct dk_item *item = &works->items[i].item;
    if (item->activity_id == like->activity_id && item->execution_id == like->execution_id &&
        same_bytes(item->instance, like->instance))
      return &works->items[i];
  }
  return NULL;
}

static bool
same_work_item(struct pass *p, const struct dk_work_item *ours, const struct dk_work_item *theirs)
{
  const struct dk_item *a = &ours->item, *b = &theirs->item;

  return same_text(p, "WORK-3", "tag", a->tag, b->tag) &&
         same_text(p, "WORK-3", "session", a->session, b->session) &&
         same_text(p, "WORK-3", "payload", a->payload, b->payload) &&
         same_time(p, "WORK-3", "visible_at", a->visible_at, b->visible_at) &&
         same_number(p, "POISON-5", "attempt", ours->work.attempt, theirs->work.attempt) &&
         same_time(p, "TIME-1", "now", ours->work.now, theirs->work.now) &&
         same_number(p, "TIME-2", "lease_left_ms", (uint64_t)ours->work.lease_left_ms,
                     (uint64_t)theirs->work.lease_left_ms);
}

static bool
same_works(struct pass *p)
{
  const struct dk_works *ours = p->ours.works, *theirs = p->theirs->works;
  char got[200];

  for (size_t i = 0; i < theirs->n_items; i++) {
    const struct dk_item *item = &theirs->items[i].item;
    const struct dk_work_item *other = find_work(ours, item);
    if (other == NULL) {
      snprintf(got, sizeof(got), "activity %" PRIu64 " of execution %" PRIu64 " of \"%.80s\"",
               item->activity_id, item->execution_id, item->instance.ptr);
      return differs(p, "WORK-8", "an item that this fetch must not bring", "not this one", got);
    }
    if (!same_work_item(p, other, &theirs->items[i]))
      return false;
  }
  return same_number(p, "WORK-12", "number of items", ours->n_items, theirs->n_items);
}

/* ---- commits --------------------------------------------------------------------------------- */

static const struct handed *
handed_as(const struct pass *p, struct dk_bytes token, bool by_model)
{
  for (size_t i = 0; i < p->handed.n; i++) {
    const struct handed *h = &p->handed.items[i];
    if (same_bytes(by_model ? h->ours : h->theirs, token))
      return h;
  }
  return NULL;
}

static const struct dk_stolen *
find_stolen(const struct dk_commit_outcome *outcome, const struct dk_stolen *like)
{
  for (size_t i = 0; i < outcome->n_stolen; i++)
    if (outcome->stolen[i].activity_id == like->activity_id &&
        outcome->stolen[i].execution_id == like->execution_id)
      return &outcome->stolen[i];
  return NULL;
}

static bool
same_stolen(struct pass *p, const struct dk_stolen *ours, const struct dk_stolen *theirs)
{
  const struct handed *mine = handed_as(p, ours->lock_token, true);
  const struct handed *yours = handed_as(p, theirs->lock_token, false);

  if (mine != yours)
    return differs(p, "CANCEL-6", "token of a deleted row", "that of its last fetch",
                   yours == NULL ? "one that was not handed out" : "that of another fetch");
  return same_text(p, "CANCEL-6", "holder of a deleted row", ours->owner, theirs->owner);
}

static bool
same_outcome(struct pass *p)
{
  const struct dk_commit_outcome *ours = &p->ours.outcome, *theirs = &p->theirs->outcome;

  if ((p->ours.result->flags & DK_REPEATED) != 0 && theirs->reported == 0)
    return true; /* ACK-11 */
  if (!same_number(p, "CANCEL-6", "free rows deleted", ours->report.free_rows,
                   theirs->report.free_rows) ||
      !same_number(p, "CANCEL-6", "locked rows deleted", ours->report.locked_rows,
                   theirs->report.locked_rows) ||
      !same_number(p, "CANCEL-6", "stolen rows", ours->n_stolen, theirs->n_stolen))
    return false;
  for (size_t i = 0; i < ours->n_stolen; i++) {
    const struct dk_stolen *other = find_stolen(theirs, &ours->stolen[i]);
    if (other == NULL)
      return same_number(p, "CANCEL-6", "stolen activity", ours->stolen[i].activity_id, 0);
    if (!same_stolen(p, &ours->stolen[i], other))
      return false;
  }
  return true;
}

/* ---- histories ------------------------------------------------------------------------------- */

bool
same_execution(struct pass *p, const char *clause, const struct dk_execution *ours,
               const struct dk_execution *theirs)
{
  return same_number(p, clause, "execution_id", ours->execution_id, theirs->execution_id) &&
         same_number(p, "EXEC-3", "status", (uint64_t)ours->status, (uint64_t)theirs->status) &&
         same_number(p, clause, "last_event_id", ours->last_event_id, theirs->last_event_id) &&
         same_time(p, "EXEC-3", "started_at", ours->started_at, theirs->started_at) &&
         same_time(p, "EXEC-4", "completed_at", ours->completed_at, theirs->completed_at) &&
         same_text(p, "ACK-9", "output", ours->output, theirs->output);
}

static bool
same_history(struct pass *p)
{
  const struct dk_history *ours = p->ours.history, *theirs = p->theirs->history;

  return same_number(p, "HIST-2", "found", (uint64_t)ours->found, (uint64_t)theirs->found) &&
         (ours->found == 0 ||
          (same_execution(p, "HIST-2", &ours->execution, &theirs->execution) &&
           same_events(p, "HIST-3", ours->events, ours->n_events, theirs->events,
                       theirs->n_events)));
}

/* The commit with that item alone is a duplicate as well. */
static bool
is_stored(struct pass *p, const struct named_item *named)
{
  struct dk_turn_result alone = *p->ours.result;
  struct dk_commit_outcome outcome;

  alone.n_events = named->list == DK_LIST_EVENTS ? 1 : 0;
  alone.n_worker_items = named->list == DK_LIST_WORKER_ITEMS ? 1 : 0;
  alone.n_orchestrator_items = named->list == DK_LIST_ORCHESTRATOR_ITEMS ? 1 : 0;
  alone.events += alone.n_events > 0 ? named->index : 0;
  alone.worker_items += alone.n_worker_items > 0 ? named->index : 0;
  alone.orchestrator_items += alone.n_orchestrator_items > 0 ? named->index : 0;
  return dk_store_ack_orchestration_item(p->model, p->caller, p->ours.token, &alone, &outcome) ==
         DK_DUPLICATE;
}

/* ACK-15: one of the items that are stored is named; which one is the provider's choice. */
static bool
same_naming(struct pass *p)
{
  enum { NAMES_THEM = 3 }; /* the minor of the ABI */
  const struct dk_turn_result *r = p->ours.result;
  const struct named_item *named = &p->theirs->duplicate;
  size_t n = named->list == DK_LIST_EVENTS ? r->n_events
             : named->list == DK_LIST_WORKER_ITEMS ? r->n_worker_items
             : named->list == DK_LIST_ORCHESTRATOR_ITEMS ? r->n_orchestrator_items : 0;
  char got[64];

  if (p->t->provider->abi_minor < NAMES_THEM || p->theirs->by_host != 0 || p->ours.unchecked)
    return true;
  if (named->index < n && is_stored(p, named))
    return true;
  snprintf(got, sizeof(got), "item %" PRIu64 " of list %" PRId32, named->index, named->list);
  return differs(p, "ACK-15", "the item that is stored", "one of those that are stored",
                 named->list == 0 ? "none is named" : got);
}

/* ---- all ------------------------------------------------------------------------------------- */

bool
replies_agree(struct pass *p)
{
  if (!same_status(p))
    return false;
  if (p->ours.kind == OP_ACK_TURN && p->theirs->status == DK_DUPLICATE)
    return same_naming(p);
  if (p->ours.status != DK_OK || p->theirs->status != DK_OK)
    return true;
  switch (p->ours.kind) {
  case OP_FETCH_TURN:
    return same_turn(p);
  case OP_FETCH_WORK:
    return same_works(p);
  case OP_ACK_TURN:
    return same_outcome(p);
  case OP_READ_HISTORY:
    return same_history(p);
  case OP_READ_MESSAGES:
    return same_messages(p, "ADMIN-8", p->ours.waiting->items, p->ours.waiting->n_items,
                         p->theirs->waiting->items, p->theirs->waiting->n_items);
  default:
    return !kit_is_admin(p->ours.kind) || admin_replies_agree(p);
  }
}
