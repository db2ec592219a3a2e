/* SPDX-License-Identifier: 0BSD */
/* minimal.c - a whole storage provider in one file, in memory, to copy and change.
 *
 * It implements the contract with the simplest means: one list of rows for each instance, linear
 * search, one call at a time; a store lives as long as its handle.  It is correct, not fast:
 * replace the lists by tables and indexes, and put a transaction around each operation.
 *
 * The parts are in the order in which you write them most easily.  After each operation
 * `durakit check ./minimal.so --next` shows what works, and which one is next. */
#include <durakit/provider.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So that an operation reads as its steps, and a refusal as a line.  [ERR-2] */
#define TRY(step) do { dk_status st_ = (step); if (st_ != DK_OK) return st_; } while (0)
#define REFUSE_IF(op, what, status, why) do { if (what) return refuse(op, status, why); } while (0)
#define ITEM(...) (&(struct dk_item){.struct_size = sizeof(struct dk_item), __VA_ARGS__})
#define MAX_ID 255   /* the smallest limit that is allowed; enough here */
#define MAX_TOKEN 24 /* of our tokens; 2 * MAX_ID + 128 is allowed */

/* ---- 1. What is stored ----------------------------------------------------------------------- */

struct name { /* an id, a tag: short, and so kept in place; absent and empty differ */
  size_t len;
  bool there;
  char text[MAX_ID];
};

/* Which fetch holds a turn or an activity: the number of the one that handed it out last (0: none,
 * or it was given back), and until when.  At that instant the token is dead.  [TIME-4] */
struct lease {
  uint64_t token;
  int64_t until;
};

/* What a commit can change of an instance.  It is in the row of the execution. */
struct facts {
  struct name name, version, parent, owner;
  uint64_t first_event_id, last_event_id;
  int64_t started_at, completed_at;
  int32_t status;
  bool is_pinned;
  struct dk_version pin;
};

/* A row of any kind; members of other kinds are 0.  The row with the lowest place is handed out
 * first and then gets a new place: that is why nothing starves.  [TURN-10, WORK-2] */
enum kind { EXECUTION, EVENT, MESSAGE, ACTIVITY };
struct row {
  struct row *next;
  struct instance *of;
  enum kind kind;
  uint32_t attempt;
  struct dk_item item; /* as it came, with texts and payload in `bytes`; an event's id is in
                          activity_id, an execution's output in payload */
  uint64_t arrival, place;
  int64_t enqueued_at;
  struct lease lease;  /* of a message: the token of the turn that brought it last */
  struct name worker;
  struct facts facts;  /* of an execution */
  char bytes[];
};

/* An instance exists here as soon as a message names it, but is known only once a turn was
 * committed: birth is 0 until then.  [QUEUE-1, TURN-11]  Its rows are in the order of delivery. */
struct instance {
  struct instance *next;
  struct name id;
  uint64_t birth, committed, place;
  struct lease lease;
  struct row *rows, *current; /* current: the row of its execution */
};

struct store {
  const struct dk_host *host; /* the pointer, never a copy of the table */
  struct instance *instances;
  uint64_t counter; /* gives tokens, arrivals, places: so none ever repeats.  [TOKEN-1] */
};

/* One running operation.  It reads the clock once, at its beginning: with the thread model declared
 * below nothing waits in here, and so that is after the last wait.  [TIME-1] */
struct op {
  struct store *s;
  struct dk_call *call;
  const char *name;
  int64_t now;
  struct instance *turn; /* what the token refers to; see find_held */
  struct lease *lease;
  size_t list, index; /* of a commit: the item (DK_LIST_...) that is looked for in the store */
  struct row *rows; /* new ones.  They are made before the first change, so that running out of
                       memory changes nothing.  [ACK-1] */
};

/* ---- 2. Helpers ------------------------------------------------------------------------------ */

static struct op begin(struct store *s, struct dk_call *call, const char *name) {
  return (struct op){.s = s, .call = call, .name = name, .now = s->host->now(s->host)};
}

/* Every refusal says which operation refuses, and why.  [ERR-2, TOKEN-7] */
static dk_status refuse(const struct op *op, dk_status status, const char *why) {
  char text[200];
  snprintf(text, sizeof text, "%s: %s", op->name, why);
  if (status == DK_DUPLICATE && op->list && DK_HAS(dk_host, op->s->host, duplicate))
    op->s->host->duplicate(op->call, (int32_t)op->list, op->index); /* [ACK-15] */
  return op->s->host->fail(op->call, status, (struct dk_bytes){text, strlen(text)});
}

static void keep(struct name *to, struct dk_bytes from) { /* an absent text changes nothing */
  if (from.ptr) {
    to->there = true;
    to->len = from.len < MAX_ID ? from.len : MAX_ID; /* the host has refused longer texts */
    memcpy(to->text, from.ptr, to->len);
  }
}
static struct dk_bytes bytes(const struct name *name) {
  return (struct dk_bytes){name->there ? name->text : NULL, name->there ? name->len : 0};
}
static bool same(struct dk_bytes a, struct dk_bytes b) { /* absent equals nothing.  [TURN-5] */
  return a.ptr && b.ptr && a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}
/* Sums saturate.  [TIME-5] */
static int64_t later(int64_t a, int64_t ms) { return a > INT64_MAX - ms ? INT64_MAX : a + ms; }

/* t17 for a turn, w18 for an activity, so that neither is taken for the other.  [TOKEN-8] */
static struct dk_bytes write_token(char text[MAX_TOKEN], char letter, uint64_t number) {
  int len = snprintf(text, MAX_TOKEN, "%c%" PRIu64, letter, number);
  return (struct dk_bytes){text, (size_t)len};
}
static bool is_token(uint64_t number, char letter, struct dk_bytes token) {
  char text[MAX_TOKEN];
  return number && same(token, write_token(text, letter, number));
}
static bool is_free(const struct op *op, const struct lease *lease) {
  return !lease->token || lease->until <= op->now;
}

/* Finds an instance, or makes one that no host can see yet.  NULL: out of memory. */
static struct instance *find_instance(struct store *s, struct dk_bytes id) {
  struct instance *i = s->instances;
  while (i && !same(bytes(&i->id), id))
    i = i->next;
  if (!i && (i = calloc(1, sizeof *i))) {
    keep(&i->id, id);
    i->place = ++s->counter;
    i->next = s->instances;
    s->instances = i;
  }
  return i;
}

/* The row with the identity of an item: messages have an id, the others their numbers. */
static struct row **find(struct instance *i, enum kind kind, const struct dk_item *item) {
  struct row **at = &i->rows;
  while (*at && ((*at)->kind != kind || (*at)->item.execution_id != item->execution_id ||
                 (*at)->item.activity_id != item->activity_id ||
                 (kind == MESSAGE && !same((*at)->item.id, item->id))))
    at = &(*at)->next;
  return at;
}

/* By effective visible time, then by arrival.  [QUEUE-2] */
static void put(struct row *row) {
  struct row **at = &row->of->rows;
  while (*at && ((*at)->item.visible_at < row->item.visible_at ||
                 ((*at)->item.visible_at == row->item.visible_at && (*at)->arrival < row->arrival)))
    at = &(*at)->next;
  row->next = *at;
  *at = row;
}

static void put_all(struct row *row) {
  for (struct row *next; row; row = next) {
    next = row->next;
    put(row);
  }
}

static void free_row(struct row **at) {
  struct row *row = *at;
  *at = row->next;
  free(row);
}
static void free_all(struct row *rows) {
  while (rows)
    free_row(&rows);
}

/* Takes out what one fetch has handed out: the messages of a turn, or one activity. */
static struct row *take(struct instance *i, uint64_t token) {
  struct row *taken = NULL;
  for (struct row **at = &i->rows, *row; (row = *at);)
    if (row->lease.token == token) {
      *at = row->next;
      row->next = taken;
      taken = row;
    } else {
      at = &row->next;
    }
  return taken;
}

/* Bytes that are passed in die with the call: copy what is needed later.  [ABI-10] */
static char *move(struct dk_bytes *bytes, char *to) {
  if (bytes->len)
    memcpy(to, bytes->ptr, bytes->len);
  bytes->ptr = bytes->ptr ? to : NULL;
  return to + bytes->len;
}

static dk_status make(struct op *op, enum kind kind, struct dk_bytes instance,
                      const struct dk_item *item) {
  struct instance *of = find_instance(op->s, instance);
  size_t size = item->id.len + item->tag.len + item->payload.len;
  struct row *row = of ? calloc(1, sizeof *row + size) : NULL;
  if (!row) {
    free_all(op->rows);
    return refuse(op, DK_NO_MEMORY, "out of memory");
  }
  row->next = op->rows;
  row->of = of;
  row->kind = kind;
  memcpy(&row->item, item, /* an older host's may be shorter.  [ABI-9] */
         item->struct_size < sizeof *item ? item->struct_size : sizeof *item);
  row->item.struct_size = sizeof *item;
  row->item.instance = bytes(&of->id);
  move(&row->item.payload, move(&row->item.tag, move(&row->item.id, row->bytes)));
  if (item->visible_at < later(op->now, item->delay_ms))
    row->item.visible_at = later(op->now, item->delay_ms);
  row->item.delay_ms = 0;
  row->enqueued_at = op->now;
  row->arrival = row->place = ++op->s->counter;
  op->rows = row;
  return DK_OK;
}

/* ---- 3. Enqueue ------------------------------------------------------------------------------ */

/* A flag of a newer host is refused, not ignored [ABI-11].  While an identity is stored, a second
 * row with it is a duplicate [QUEUE-4, CANCEL-11]. */
static dk_status refuse_item(const struct op *op, enum kind kind, const struct dk_item *item,
                             uint32_t flags) {
  struct instance *i = item->instance.ptr ? find_instance(op->s, item->instance) : op->turn;
  REFUSE_IF(op, item->flags & ~flags, DK_UNSUPPORTED, "a flag that is not known here");
  REFUSE_IF(op, !i, DK_NO_MEMORY, "out of memory");
  REFUSE_IF(op, *find(i, kind, item), DK_DUPLICATE, "this message or activity is stored");
  return DK_OK;
}

static dk_status enqueue(struct op op, enum kind kind, const struct dk_item *item) {
  TRY(refuse_item(&op, kind, item, DK_REPEATED));
  TRY(make(&op, kind, item->instance, item));
  put_all(op.rows);
  return DK_OK;
}

static dk_status enqueue_for_orchestrator(void *self, struct dk_call *call,
                                          const struct dk_item *item) {
  return enqueue(begin(self, call, "enqueue_for_orchestrator"), MESSAGE, item);
}
static dk_status enqueue_for_worker(void *self, struct dk_call *call, const struct dk_item *item) {
  return enqueue(begin(self, call, "enqueue_for_worker"), ACTIVITY, item);
}

/* ---- 4. Turns: look, hand up, and only then write -------------------------------------------- */

static struct row *due(const struct op *op, struct row *row) { /* the first message due from here */
  while (row && (row->kind != MESSAGE || row->item.visible_at > op->now))
    row = row->next;
  return row;
}

static bool is_at_most(struct dk_version a, struct dk_version b) { /* as numbers.  [PIN-4] */
  return a.major != b.major ? a.major < b.major
         : a.minor != b.minor ? a.minor < b.minor : a.patch <= b.patch;
}

static bool fits(const struct instance *i, const struct dk_fetch_turn *request) {
  const struct facts *f = i->current && i->current->facts.is_pinned ? &i->current->facts : NULL;
  bool fits_one = !request->ranges;
  for (size_t n = 0; n < request->n_ranges && !fits_one; n++)
    fits_one = !f || (is_at_most(request->ranges[n].min, f->pin) &&
                      is_at_most(f->pin, request->ranges[n].max));
  return fits_one;
}

static dk_status hand_up_events(const struct op *op, const struct instance *i,
                                uint64_t execution_id, uint64_t from, uint64_t most) {
  for (const struct row *e = i->rows; e && most > 0; e = e->next)
    if (e->kind == EVENT && e->item.execution_id == execution_id && e->item.activity_id >= from) {
      TRY(op->s->host->event(op->call, &(struct dk_event){e->item.activity_id, e->item.payload}));
      most--;
    }
  return DK_OK;
}

/* For an unknown instance all this stays absent.  [TURN-3] */
static void fill_known(struct dk_turn_head *head, const struct instance *i, bool is_warm) {
  const struct facts *f = &i->current->facts;
  head->known = 1;
  head->status = f->status;
  head->name = bytes(&f->name);
  head->version = bytes(&f->version);
  head->parent_instance = bytes(&f->parent);
  head->birth = i->birth;
  head->execution_id = i->current->item.execution_id;
  head->last_event_id = f->last_event_id;
  head->history_from = is_warm || !f->last_event_id ? f->last_event_id + 1 : f->first_event_id;
}

/* Head, history, messages; the bounds cut from the end, but one message always comes.  [TURN-2]
 * The token that is written into the messages means nothing until the instance has it as well: a
 * fetch that fails in here has changed nothing.  [TURN-12] */
static dk_status hand_up_turn(const struct op *op, const struct instance *i,
                              const struct dk_turn_head *head, const struct dk_fetch_turn *request,
                              bool is_warm, uint64_t token) {
  uint64_t n = 0, total = 0;
  TRY(op->s->host->turn(op->call, head));
  if (i->birth && !is_warm)
    TRY(hand_up_events(op, i, i->current->item.execution_id, 0, UINT64_MAX));
  for (struct row *m = due(op, i->rows); m; m = due(op, m->next), n++) {
    total += m->item.payload.len;
    if (n > 0 && ((request->max_messages && n == request->max_messages) ||
                  (request->max_bytes && total > request->max_bytes)))
      break;
    struct dk_message message = {sizeof message, m->attempt + 1, m->item.id, m->item.payload,
                                 m->item.visible_at, m->enqueued_at};
    TRY(op->s->host->message(op->call, &message));
    m->lease.token = token;
  }
  return DK_OK;
}

static dk_status fetch_orchestration_item(void *self, struct dk_call *call,
                                          const struct dk_fetch_turn *request) {
  struct op op = begin(self, call, "fetch_orchestration_item");
  int64_t until = later(op.now, request->lock_ms);
  struct instance *found = NULL;
  char text[MAX_TOKEN];
  for (struct instance *i = op.s->instances; i; i = i->next)
    if (is_free(&op, &i->lease) && (!found || i->place < found->place) && due(&op, i->rows) &&
        fits(i, request))
      found = i;
  if (!found)
    return DK_NOTHING; /* with this thread model the host waits in our place */
  uint64_t token = ++op.s->counter;
  bool is_warm = found->birth && same(request->owner, bytes(&found->current->facts.owner));
  struct dk_turn_head head = {.struct_size = sizeof head, .instance = bytes(&found->id),
                              .lock_token = write_token(text, 't', token), .now = op.now,
                              .lease_left_ms = until - op.s->host->now(op.s->host)};
  REFUSE_IF(&op, head.lease_left_ms < 1, DK_BUSY, "the lease ran out meanwhile");
  if (found->birth)
    fill_known(&head, found, is_warm);
  TRY(hand_up_turn(&op, found, &head, request, is_warm, token));
  for (struct row *m = due(&op, found->rows); m; m = due(&op, m->next))
    m->attempt += m->lease.token == token;
  found->lease = (struct lease){token, until};
  found->place = token;
  return DK_OK;
}

/* ---- 5. Tokens: renew and give back ---------------------------------------------------------- */

/* A token is valid while its lease lives, and not a millisecond longer, even if no other fetch has
 * taken over.  If a row was deleted, its lock is lost for good.  [TOKEN-2 to TOKEN-6] */
static dk_status find_held(struct op *op, char letter, struct dk_bytes token) {
  for (struct instance *i = op->s->instances; i && !op->lease; i = i->next) {
    op->turn = i;
    if (is_token(i->lease.token, letter, token) && letter == 't')
      op->lease = &i->lease;
    for (struct row *row = i->rows; row && letter == 'w' && !op->lease; row = row->next)
      if (row->kind == ACTIVITY && is_token(row->lease.token, letter, token))
        op->lease = &row->lease;
  }
  REFUSE_IF(op, !op->lease, DK_LOCK_LOST, "done, cancelled, taken over, or never handed out");
  REFUSE_IF(op, is_free(op, op->lease), DK_LOCK_LOST, "the lease has run out");
  return DK_OK;
}

static dk_status renew(struct op op, char letter, struct dk_bytes token, int64_t extend_ms) {
  TRY(find_held(&op, letter, token));
  op.lease->until = later(op.now, extend_ms); /* later or sooner than before.  [TURN-9] */
  return DK_OK;
}

static dk_status abandon(struct op op, char letter, struct dk_bytes token, int64_t delay_ms,
                         int32_t ignore_attempt) {
  TRY(find_held(&op, letter, token));
  struct row *rows = take(op.turn, op.lease->token);
  op.lease->token = 0;
  for (struct row *row = rows; row; row = row->next) {
    row->lease.token = 0;
    if (delay_ms || letter == 'w') /* a message keeps its time, an item does not.  [WORK-7] */
      row->item.visible_at = later(op.now, delay_ms);
    if (ignore_attempt && row->attempt > 0)
      row->attempt--;
  }
  put_all(rows); /* each at its place again, or by arrival.  [TURN-7] */
  return DK_OK;
}

static dk_status renew_orchestration_item_lock(void *self, struct dk_call *call,
                                               struct dk_bytes token, int64_t extend_ms) {
  return renew(begin(self, call, "renew_orchestration_item_lock"), 't', token, extend_ms);
}
static dk_status renew_work_item_lock(void *self, struct dk_call *call, struct dk_bytes token,
                                      int64_t extend_ms) {
  return renew(begin(self, call, "renew_work_item_lock"), 'w', token, extend_ms);
}
static dk_status abandon_orchestration_item(void *self, struct dk_call *call,
                                            struct dk_bytes token, int64_t delay, int32_t ignore) {
  return abandon(begin(self, call, "abandon_orchestration_item"), 't', token, delay, ignore);
}
static dk_status abandon_work_item(void *self, struct dk_call *call, struct dk_bytes token,
                                   int64_t delay, int32_t ignore) {
  return abandon(begin(self, call, "abandon_work_item"), 'w', token, delay, ignore);
}

/* ---- 6. The commit: refuse, make all rows, then change what cannot fail ---------------------- */

static bool is_bare(const struct dk_turn_result *r) { /* messages and nothing else.  [ACK-8] */
  return !r->status && !r->n_events && !r->n_worker_items && !r->n_cancelled_activities &&
         !r->n_cancelled_messages && !r->output.ptr && !r->name.ptr && !r->version.ptr &&
         !r->parent_instance.ptr && !r->owner.ptr && !r->pinned;
}

/* Form first, then what is stored, and that as it was before the commit.  [ERR-5] */
static dk_status refuse_commit(struct op *op, const struct dk_turn_result *r) {
  const struct row *current = op->turn->current;
  uint64_t next = current ? current->item.execution_id + 1 : 1;
  bool is_current = current && r->execution_id == current->item.execution_id;
  REFUSE_IF(op, (r->flags & ~(uint32_t)DK_REPEATED) || r->status < 0 || r->status > DK_CANCELLED,
            DK_UNSUPPORTED, "a flag or status that is not known here");
  REFUSE_IF(op, !r->execution_id && !is_bare(r), DK_INVALID, "an empty one brings messages only");
  if (r->execution_id) {
    REFUSE_IF(op, !current && (!r->name.ptr || !r->version.ptr), DK_INVALID,
              "the first commit needs name and version");
    REFUSE_IF(op, !is_current && r->execution_id != next, DK_INVALID,
              "this execution is neither the current one nor the next");
    op->list = DK_LIST_EVENTS;
    REFUSE_IF(op, is_current && r->n_events &&
              r->events[0].event_id <= current->facts.last_event_id, DK_DUPLICATE,
              "an event id is not above the last one");
  }
  for (op->list = DK_LIST_WORKER_ITEMS, op->index = 0; op->index < r->n_worker_items; op->index++)
    TRY(refuse_item(op, ACTIVITY, r->worker_items[op->index], 0));
  op->list = DK_LIST_ORCHESTRATOR_ITEMS;
  for (op->index = 0; op->index < r->n_orchestrator_items; op->index++)
    TRY(refuse_item(op, MESSAGE, r->orchestrator_items[op->index], 0));
  return DK_OK;
}

/* The execution as this commit leaves it: a new row, which replaces the old one. */
static dk_status make_execution(struct op *op, const struct dk_turn_result *r) {
  const struct row *old = op->turn->current;
  bool begins = !old || old->item.execution_id != r->execution_id;
  struct dk_bytes kept = begins ? (struct dk_bytes){NULL, 0} : old->item.payload;
  TRY(make(op, EXECUTION, bytes(&op->turn->id), ITEM(.execution_id = r->execution_id,
           .payload = r->status ? r->output : kept))); /* [ACK-9] */
  struct facts *f = &op->rows->facts;
  if (old)
    *f = old->facts;
  if (begins) { /* events, times and pin are of one execution.  [EXEC-1, EXEC-3, PIN-6] */
    f->first_event_id = f->last_event_id = 0;
    f->started_at = op->now;
    f->is_pinned = false;
  }
  if (begins || r->status) {
    f->status = r->status ? r->status : DK_RUNNING;
    f->completed_at = f->status == DK_RUNNING ? 0 : op->now;
  }
  if (r->n_events) {
    f->first_event_id = f->last_event_id ? f->first_event_id : r->events[0].event_id;
    f->last_event_id = r->events[r->n_events - 1].event_id;
  }
  if (r->pinned) {
    f->is_pinned = true;
    f->pin = *r->pinned;
  }
  keep(&f->name, r->name);
  keep(&f->version, r->version);
  keep(&f->parent, r->parent_instance);
  f->owner.there = false; /* this one is replaced in any case.  [TURN-5] */
  keep(&f->owner, r->owner);
  return DK_OK;
}

static dk_status make_all(struct op *op, const struct dk_turn_result *r) {
  struct dk_bytes id = bytes(&op->turn->id);
  for (size_t n = 0; n < r->n_events; n++)
    TRY(make(op, EVENT, id, ITEM(.execution_id = r->execution_id, .payload = r->events[n].payload,
                                 .activity_id = r->events[n].event_id)));
  for (size_t n = 0; n < r->n_worker_items; n++)
    TRY(make(op, ACTIVITY, id, r->worker_items[n]));
  for (size_t n = 0; n < r->n_orchestrator_items; n++)
    TRY(make(op, MESSAGE, r->orchestrator_items[n]->instance, r->orchestrator_items[n]));
  return r->execution_id ? make_execution(op, r) : DK_OK;
}

/* Deletes the rows, locked or not.  That is all of cancelling: the worker's next renew and its ack
 * find no row.  Rows with a token are reported as stolen, even if their lease has expired; rows
 * that this commit has inserted are not counted.  [CANCEL-1, CANCEL-4, CANCEL-6] */
static void delete_activities(const struct op *op, const struct dk_turn_result *r,
                              uint64_t before) {
  struct dk_cancel_report report = {.struct_size = sizeof report};
  char text[MAX_TOKEN];
  for (size_t n = 0; n < r->n_cancelled_activities; n++) {
    struct dk_activity id = r->cancelled_activities[n];
    struct row **at = find(op->turn, ACTIVITY, ITEM(.execution_id = id.execution_id,
                                                   .activity_id = id.activity_id));
    struct row *row = *at;
    if (!row)
      continue; /* done already, or listed twice */
    if (row->lease.token)
      op->s->host->stolen(op->call, &(struct dk_stolen){
        sizeof(struct dk_stolen), 0, id.execution_id, id.activity_id,
        write_token(text, 'w', row->lease.token), bytes(&row->worker)});
    report.locked_rows += row->lease.token != 0;
    report.free_rows += !row->lease.token && row->arrival <= before;
    free_row(at);
  }
  if (r->n_cancelled_activities)
    op->s->host->cancelled_rows(op->call, &report);
}

static dk_status ack_orchestration_item(void *self, struct dk_call *call, struct dk_bytes token,
                                        const struct dk_turn_result *r) {
  struct op op = begin(self, call, "ack_orchestration_item");
  uint64_t before = op.s->counter;
  for (struct instance *i = op.s->instances; i && (r->flags & DK_REPEATED); i = i->next)
    if (is_token(i->committed, 't', token))
      return DK_OK; /* it was applied, and only the answer was lost.  [ACK-11] */
  TRY(find_held(&op, 't', token));
  TRY(refuse_commit(&op, r));
  TRY(make_all(&op, r));
  struct instance *turn = op.turn; /* from here on nothing can fail */
  free_all(take(turn, turn->lease.token)); /* the messages that it was given, no more.  [ACK-3] */
  if (r->execution_id) {
    if (turn->current && turn->current->item.execution_id == r->execution_id)
      free_row(find(turn, EXECUTION, ITEM(.execution_id = r->execution_id)));
    turn->current = op.rows; /* it was made last */
    turn->birth = turn->birth ? turn->birth : turn->lease.token;
  }
  put_all(op.rows);                  /* insert first, */
  delete_activities(&op, r, before); /* delete second.  [CANCEL-3, ACK-13] */
  for (size_t n = 0; n < r->n_cancelled_messages; n++) {
    struct row **at = find(turn, MESSAGE, ITEM(.id = r->cancelled_messages[n]));
    if (*at)
      free_row(at);
  }
  turn->committed = turn->lease.token;
  turn->lease.token = 0;
  return DK_OK;
}

/* ---- 7. Activities: if the row is there, it is work ------------------------------------------ */

static bool fits_tag(const struct row *row, const struct dk_fetch_work *request) {
  if (!row->item.tag.ptr || request->tag_rule == DK_TAG_ANY)
    return request->tag_rule != DK_TAG_LISTED;
  for (size_t n = 0; n < request->n_tags && request->tag_rule != DK_TAG_UNTAGGED; n++)
    if (same(row->item.tag, request->tags[n]))
      return true;
  return false;
}

/* One item a call, whatever max_items says: fewer may come.  [WORK-8] */
static dk_status fetch_work_item(void *self, struct dk_call *call,
                                 const struct dk_fetch_work *request) {
  struct op op = begin(self, call, "fetch_work_item");
  int64_t until = later(op.now, request->lock_ms);
  struct row *found = NULL;
  char text[MAX_TOKEN];
  REFUSE_IF(&op, request->tag_rule < 0 || request->tag_rule > DK_TAG_ANY || request->session_rule,
            DK_UNSUPPORTED, "a rule that is not known here");
  for (struct instance *i = op.s->instances; i; i = i->next)
    for (struct row *row = i->rows; row; row = row->next)
      if (row->kind == ACTIVITY && row->item.visible_at <= op.now && is_free(&op, &row->lease) &&
          fits_tag(row, request) && (!found || row->place < found->place))
        found = row;
  if (!found)
    return DK_NOTHING;
  uint64_t token = ++op.s->counter;
  struct dk_work work = {.struct_size = sizeof work, .attempt = found->attempt + 1,
                         .lock_token = write_token(text, 'w', token), .item = &found->item,
                         .now = op.now, .lease_left_ms = until - op.s->host->now(op.s->host)};
  REFUSE_IF(&op, work.lease_left_ms < 1, DK_BUSY, "the lease ran out meanwhile");
  TRY(op.s->host->work(call, &work));
  found->attempt++;
  found->lease = (struct lease){token, until};
  found->place = token;
  found->worker.there = false;
  keep(&found->worker, request->owner);
  return DK_OK;
}

/* No row, no completion: a cancelled activity ends here for its worker.  [WORK-4, CANCEL-5] */
static dk_status ack_work_item(void *self, struct dk_call *call, struct dk_bytes token,
                               const struct dk_work_result *result) {
  struct op op = begin(self, call, "ack_work_item");
  const struct dk_item *message = result->completion;
  TRY(find_held(&op, 'w', token));
  REFUSE_IF(&op, result->flags & ~(uint32_t)DK_REPEATED, DK_UNSUPPORTED, "a flag not known here");
  if (message) {
    TRY(refuse_item(&op, MESSAGE, message, 0));
    TRY(make(&op, MESSAGE, message->instance, message));
  }
  free_all(take(op.turn, op.lease->token));
  put_all(op.rows);
  return DK_OK;
}

/* ---- 8. Reading ------------------------------------------------------------------------------ */

static dk_status read_history(void *self, struct dk_call *call,
                              const struct dk_read_history *request) {
  struct op op = begin(self, call, "read_history");
  struct instance *i = op.s->instances;
  while (i && !same(bytes(&i->id), request->instance))
    i = i->next;
  if (!i || !i->current)
    return DK_OK; /* an unknown instance brings nothing.  [HIST-2] */
  struct row *e = request->execution_id == 0 ? i->current
    : *find(i, EXECUTION, ITEM(.execution_id = request->execution_id));
  if (!e)
    return DK_OK;
  TRY(op.s->host->execution(call, &(struct dk_execution){
        sizeof(struct dk_execution), e->facts.status, e->item.execution_id, e->facts.last_event_id,
        e->facts.started_at, e->facts.completed_at, e->item.payload}));
  return hand_up_events(&op, i, e->item.execution_id, request->from_event,
                        request->max_events ? request->max_events : UINT64_MAX);
}

/* ---- 9. The handle, and what the file declares ----------------------------------------------- */

static dk_status store_open(const struct dk_host *host, struct dk_call *call,
                            const struct dk_open *open, void **ret_self) {
  struct store empty = {.host = host}, *s;
  struct op op = begin(&empty, call, "open");
  REFUSE_IF(&op, open->flags & ~(uint32_t)(DK_OPEN_CREATE | DK_OPEN_READ_ONLY | DK_OPEN_HOST_CLOCK),
            DK_UNSUPPORTED, "a flag that is not known here");
  REFUSE_IF(&op, !(open->flags & DK_OPEN_HOST_CLOCK), DK_REFUSED, "the clock is the host's");
  REFUSE_IF(&op, !(open->flags & DK_OPEN_CREATE) || (open->flags & DK_OPEN_READ_ONLY), DK_NOT_FOUND,
            "a store in memory is always a new one");
  REFUSE_IF(&op, !(s = malloc(sizeof *s)), DK_NO_MEMORY, "out of memory");
  *s = empty;
  *ret_self = s;
  return DK_OK;
}

static void store_close(void *self) {
  struct store *s = self;
  for (struct instance *i = s->instances, *next; i; i = next) {
    next = i->next;
    free_all(i->rows);
    free(i);
  }
  free(s);
}

/* Nothing outlives its handle, so there is nothing to remove.  [ABI-14] */
static dk_status store_destroy(const struct dk_host *host, struct dk_call *call,
                               const struct dk_open *open) { return DK_OK; }

/* NULL for every unknown id.  [ABI-3] */
static const void *store_extension(void *self, const char *id) { return NULL; }

static const struct dk_ops ops = {
  .struct_size = sizeof ops,
  .enqueue_for_orchestrator = enqueue_for_orchestrator,
  .fetch_orchestration_item = fetch_orchestration_item,
  .ack_orchestration_item = ack_orchestration_item,
  .abandon_orchestration_item = abandon_orchestration_item,
  .renew_orchestration_item_lock = renew_orchestration_item_lock,
  .fetch_work_item = fetch_work_item, .ack_work_item = ack_work_item,
  .abandon_work_item = abandon_work_item, .renew_work_item_lock = renew_work_item_lock,
  .read_history = read_history,
  .enqueue_for_worker = enqueue_for_worker, /* optional */
};
static const struct dk_limits limits = {sizeof limits, MAX_ID, 1 << 20, 16 << 20, 1000};
static const struct dk_param params[] = {{.key = NULL}}; /* no settings */
static const char *const extensions[] = {NULL};

/* Declare what is true, no more: it is tested.  [ABI-12] */
static const struct dk_provider provider = {
  .magic = DK_MAGIC, .struct_size = sizeof provider, .stamp = DK_STAMP, .abi_minor = DK_ABI_MINOR,
  .clocks = DK_CLOCK_HOST,
  .thread_model = DK_ONE_AT_A_TIME, /* the host serialises: there is no lock in this file */
  .durable = 0, .shared = 0,        /* a store dies with its one handle */
  .unload = 1, .abi_vendor = "durakit", .name = "minimal", .version = "1", .built_with = "C",
  .help = "In memory, one call at a time: an example to copy.",
  .params = params, .extensions = extensions, .limits = &limits, .ops = &ops,
  .open = store_open, .close = store_close, .destroy_store = store_destroy,
  .extension = store_extension,
};

const struct dk_provider *durakit_provider_2(uint32_t host_minor) { return &provider; }
