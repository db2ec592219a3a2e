/* SPDX-License-Identifier: Apache-2.0 */
/* The model: the contract as a provider, in plain steps.  A reference, not a store for use.
 *
 *   provider.c   the descriptor: what it offers, open, close, destroy_store
 *   queue.c turn.c commit.c cancel.c work.c history.c
 *                the operations, in the contract's order and words
 *   release.c    what a fetch has locked whose answer was lost
 *   pin.c tag.c  which instances and which work items a fetch may be given
 *   admin.c delete.c prune.c
 *                looking at instances, and removing those that have ended
 *   fate.c       which instances a filter selects, and which go with a deletion
 *   extension.c  key-values, custom status, sessions: of model-full only
 *   token.c      lock tokens, and how a dead one is refused
 *   wait.c       the long poll
 *   log.c        the file: locking, appending, following what others appended
 *   step.c       a change of the store as bytes
 *   apply.c apply-values.c
 *                what each step does to the store in memory
 *   state.c      how its rows are found
 *
 * How an operation runs.  It enters: it takes the lock of the store and applies the records that
 * others have appended to the log.  It decides, refuses, hands up, and writes its changes as steps.
 * It leaves: the steps become one record of the log, all or nothing, synced.  Only then are they
 * applied to the state in memory.  So the log alone defines the state, for every reader, and only
 * steps change it; only the order in which a handle keeps it may be a mutant's own.  An operation
 * sees the store as it was before the operation, whatever it has written: so duplicates are judged.
 *
 * Locks.  store.mutex guards all of struct store; the file's lock (of the open file description) is
 * taken and given back under it.  An operation holds neither while it waits for work or for the
 * file's lock.
 */
#ifndef DK_MODEL_H
#define DK_MODEL_H

#include <durakit/admin.h>

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "conformance/contract/mutants.h"
#include "conformance/model/choice.h"
#include "conformance/model/extension.h"
#include "core/base/bytes.h"
#include "core/base/text.h"

#define TRY(call)                                                                                  \
  do {                                                                                             \
    dk_status tried_ = (call);                                                                     \
    if (tried_ != DK_OK)                                                                           \
      return tried_;                                                                               \
  } while (0)

/* ---- mutants --------------------------------------------------------------------------------- */

/* Marks at the rules, which name the common errors of each (areas.def).  Each gives the condition
 * alone, unless the store was opened with that mutant.  `s` is the store. */
#define MUTANT(id)             is_mutant(s, id)
#define HOLDS(id, condition)   ((condition) || MUTANT(id))  /* the mutant takes it as true */
#define REFUSED(id, condition) ((condition) && !MUTANT(id)) /* the mutant lets it pass */
#define DEFECT(id, condition)  ((condition) && MUTANT(id))  /* the mutant then does what is wrong */

/* ---- the store in memory --------------------------------------------------------------------- */

struct link {
  struct link *previous, *next;
};
#define OWNER_OF(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))
#define FOR_EACH(at, list)                                                                         \
  for (struct link *at = (list)->next, *at##_next = at->next; at != (list);                        \
       at = at##_next, at##_next = at->next)

/* A hash table whose entries lie in the rows themselves. */
struct entry {
  struct entry *next;
  uint64_t hash;
};
struct table {
  struct entry **slots;
  size_t n_slots, n;
};

struct lock {
  uint64_t epoch;  /* number of the last token; 0: none yet */
  int64_t until;
  bool held;       /* no longer after it was given back or used up */
  uint64_t handle; /* of which handle: only mutants use it */
  uint64_t fetch_id;
};

struct message {
  struct link link; /* in its instance's queue: by visible_at, then by arrival */
  struct entry entry;
  struct instance *of;
  uint64_t arrival;
  uint64_t turn;    /* epoch of the turn that brought it last */
  uint64_t attempt;
  int64_t visible_at, enqueued_at;
  struct dk_bytes id, payload;
};

struct event {
  struct event *next;
  uint64_t event_id;
  struct dk_bytes payload;
};

struct execution {
  struct execution *next;
  uint64_t execution_id, last_event_id;
  struct event *first, *last;
  int32_t status;
  int64_t started_at, completed_at;
  bool is_pinned;
  bool is_hidden; /* a mutant has pruned it, and left its history */
  struct dk_version pin;
  struct dk_bytes output; /* in memory of its own */
};

struct facts {
  struct dk_bytes name, version, parent, owner;
};

struct key {
  struct key *next; /* by name, bytewise */
  struct dk_bytes name, value;
  int64_t updated_at;
};

/* An address with a queue; known, an instance proper, once it has a birth.  Only a deletion frees
 * it. */
struct instance {
  struct link link; /* in store.waiting, while there are messages; the one served last is last */
  struct entry entry;
  struct dk_bytes id;
  struct link messages;
  struct lock lock;
  uint64_t committed; /* epoch of the last turn committed; 0: none yet */
  uint64_t birth;
  int64_t created_at; /* given by the first commit */
  struct facts *facts;
  struct execution *first, *current;
  struct key *keys;
  struct dk_bytes custom_status; /* in memory of its own */
  uint64_t custom_version;       /* how often it was set or cleared */
  /* of one operation, by its number: see fate.c */
  uint64_t listed_by, named_by, judged_by;
  enum fate { STAYS, GOES, IS_ASKED } fate;
  bool is_of_others; /* another handle has made it: only mutants use it */
};

struct identity {
  struct dk_bytes instance;
  uint64_t execution_id, activity_id;
};

struct row {
  struct link link; /* in store.rows; the one changed last is last */
  struct entry entry;
  struct identity identity;
  struct lock lock;
  struct dk_bytes owner; /* the lock's owner; in memory of its own */
  uint64_t attempt, seen_by;
  int64_t visible_at;
  struct dk_bytes tag, session, payload;
};

/* Of the whole store, for whichever instances name it.  Never freed. */
struct session {
  struct session *next;
  struct dk_bytes id;
  struct dk_bytes owner; /* in memory of its own */
  int64_t until;
};

enum { MAX_WATCHES = 4 };

struct op;
/* A server that appends to the log for this handle, and is asked before each operation, in some
 * fixtures.  NULL for the model itself. */
struct elsewhere {
  dk_status (*hello)(struct op *op, const struct elsewhere *elsewhere);
  dk_status (*append)(struct op *op, const struct elsewhere *elsewhere, struct dk_bytes record);
  bool is_deaf; /* a fixture's fault: nothing wakes a call that waits for work */
  bool is_open; /* a fixture's fault: while it appends the store is not locked */
};

struct store {
  const struct dk_host *host;
  struct model_status status_table;
  const struct elsewhere *elsewhere;
  pthread_mutex_t mutex;
  /* the state */
  struct table instances, messages, activities;
  struct instance **in_order; /* all instances by id, as long as is_in_order is set */
  bool is_in_order;
  struct link waiting, rows;
  struct session *sessions;
  uint64_t life;        /* random, made with the store: part of each token */
  uint64_t epochs;      /* tokens given out so far, by all handles */
  uint64_t arrivals;    /* messages stored so far */
  /* the log */
  int fd;
  bool is_file, is_read_only;
  bool has_extensions;  /* it is opened as model-full */
  bool own_clock;       /* it uses the system's clock, not the host's */
  bool is_stale;        /* the state must be built again */
  bool is_opening;      /* earlier handles have stored what is applied: only mutants use it */
  bool is_following;    /* other handles have stored what is applied: only mutants use it */
  off_t end;            /* the log has been applied up to here */
  /* the handle */
  uint64_t handle;
  uint64_t own_epochs, operations, cancelled_fetches;
  struct link waiters;
  int watches[MAX_WATCHES]; /* of the file, for the next wait */
  size_t n_watches;
  int32_t mutant;       /* its number; -1: none, this is the model itself */
  const struct dk_mutant_reached *reached;
  const struct dk_model_choice *choice; /* the host's; NULL: it makes none */
  /* of mutants */
  struct dk_text unwritten;        /* what is answered but not yet in the log */
  int64_t first_now;               /* of the handle's first operation */
  uint32_t fetching;               /* fetches that look for the first time */
  size_t listed;                   /* where the last page ended */
  uint64_t gone_hash, gone_attempt; /* of the message with an id that was removed last */
};

static inline bool
is_mutant(const struct store *s, int32_t number)
{
  if (s->reached && (uint32_t)number < s->reached->n)
    __atomic_store_n(&s->reached->reached[number], 1, __ATOMIC_RELAXED);
  return s->mutant == number;
}

/* The host has chosen what a fetch is to hand out, or what not. */
static inline bool
follows_choice(const struct store *s)
{
  return s->choice && s->choice->what != DK_CHOICE_FREE;
}
/* The host only asks when a fetch would get something. */
static inline bool
is_only_asked(const struct store *s)
{
  return s->choice && s->choice->what == DK_CHOICE_NONE;
}
static inline bool
is_passed_over(const struct store *s, bool is_chosen)
{
  return is_chosen != (s->choice->what == DK_CHOICE_ONLY);
}

dk_status state_init(struct store *s);
void state_done(struct store *s);
struct instance *find_instance(const struct store *s, struct dk_bytes id);
struct message *find_message(const struct store *s, struct dk_bytes instance, struct dk_bytes id);
struct row *find_row(const struct store *s, const struct identity *identity);
struct session *find_session(const struct store *s, struct dk_bytes id);
/* All instances, s->instances.n, in the order of their ids, until the next step; NULL: no memory.
 */
struct instance *const *instances_in_order(struct store *s);
bool equal_bytes(struct dk_bytes a, struct dk_bytes b);

/* ---- steps ----------------------------------------------------------------------------------- */

enum step_kind {
  MESSAGE_COMES = 1, /* instance, id, payload, visible_at, enqueued_at */
  MESSAGES_TAKEN,    /* instance, arrivals (of each), epoch, attempt: to be added */
  MESSAGES_BACK,     /* instance, epoch (0: all), visible_at (0: keeps), attempt: to be taken off */
  MESSAGES_GO,       /* instance, epoch (0: all); of mutants: see may_go_by */
  MESSAGE_GOES,      /* instance, id */
  TURN_LOCK,         /* instance, epoch, until, held, handle, fetch_id, committed */
  FACTS,             /* instance, birth, name, version, parent, owner, created_at in enqueued_at */
  EXECUTION,         /* instance, execution_id, status, started_at, completed_at, pin, output */
  EVENT,             /* instance, event_id, payload */
  ROW_COMES,         /* identity, tag, session, payload, visible_at */
  ROW_CHANGES,       /* identity, epoch, until, held, handle, fetch_id, owner, visible_at,
                        attempt */
  ROW_GOES,          /* identity */
  KEY_COMES,         /* instance, id, payload, updated_at in enqueued_at */
  KEY_GOES,          /* instance, id (absent: all) */
  CUSTOM_STATUS,     /* instance, payload (absent: it is cleared) */
  SESSION,           /* id, owner, until */
  INSTANCE_GOES,     /* instance: all but its messages and rows; of mutants: what is kept of it, the
                        lock (held), the facts (committed), the executions (execution_id) */
  EXECUTION_GOES,    /* instance, execution_id: with its history; of mutants: the others get new
                        numbers (epoch), the current one loses its events (event_id) */
  STEP_KINDS
};

/* One change of one thing.  Zero and absent are not written. */
struct step {
  union {
    struct {
      uint64_t kind, execution_id, activity_id, event_id, epoch, held, handle, committed, birth,
        attempt, is_pinned, major, minor, patch, fetch_id;
      int64_t until, visible_at, enqueued_at, status, started_at, completed_at;
    };
    uint64_t numbers[21];
  };
  union {
    struct {
      struct dk_bytes instance, id, payload, tag, owner, name, version, parent, output, arrivals,
        session;
    };
    struct dk_bytes texts[11];
  };
};

void step_write(struct dk_text *record, const struct step *step);
bool step_read(struct dk_bytes *rest, struct step *ret_step); /* false: these bytes are no step */
/* Applies all steps of a record: DK_OK, DK_NO_MEMORY or DK_CORRUPT; then the state is stale. */
dk_status state_apply(struct store *s, struct dk_bytes record);

/* ---- operations ------------------------------------------------------------------------------ */

enum { MAX_ID = 1024, MAX_TOKEN = 2 * MAX_ID + 128 };

/* One running operation. */
struct op {
  struct store *s;
  struct dk_call *call;
  const char *name;
  uint64_t number;        /* no other operation of this handle has it */
  int64_t now;
  int64_t lease_from;     /* `now`, but for a mutant */
  int64_t due;            /* a fetch that found nothing: when the first becomes due */
  struct dk_text record;  /* its steps */
  char first_token[MAX_TOKEN]; /* a fetch of work: of its first item */
  bool leaves_traces;     /* although it is refused: mutants only */
  bool is_again;          /* a fetch that has looked before: only mutants use it */
};

enum { DONE_ALREADY = -1 }; /* inside the model: nothing is left to do, return DK_OK */

/* Takes the lock, follows the log, reads the clock.  [TIME-1] */
dk_status enter(struct op *op, void *self, struct dk_call *call, const char *name);
/* Appends and applies what `op` has written if status is DK_OK, and gives the lock back. */
dk_status leave(struct op *op, dk_status status);
/* Mutants only: gives the lock back in the middle of an operation and takes it again; and, where
 * nothing is locked, waits before that until another handle has written, or for a while. */
dk_status let_others_in(struct op *op);
dk_status write_so_far(struct op *op); /* as a record of its own */
dk_status write_in_between(struct op *op); /* the same, and then others come in */
void let_others_pass(const struct store *s);
void write_step(struct op *op, const struct step *step);
#define STEP(op, ...) write_step(op, &(struct step){__VA_ARGS__})

dk_status refuse(struct op *op, dk_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
dk_status refuse_unknown(struct op *op, bool is_unknown, const char *what);
int64_t visible_from(const struct op *op, const struct dk_item *item);
int64_t lease_end(const struct op *op, int64_t from, int64_t ms);
int64_t delayed_until(const struct op *op, int64_t delay_ms);

/* queue.c */
bool is_stored_message(const struct store *s, const struct dk_item *item);
dk_status refuse_stored_message(struct op *op, const struct dk_item *item);
void write_message(struct op *op, struct dk_bytes instance, const struct dk_item *item,
                   int64_t visible_at);
int64_t due_at(const struct op *op, const struct message *message);

/* turn.c, work.c */
dk_status find_live_turn(struct op *op, struct dk_bytes token, int32_t expired_mutant,
                         struct instance **ret_turn);
void release_turn(struct op *op, const struct instance *turn, bool is_kept);
void write_row(struct op *op, const struct identity *identity, const struct dk_item *item,
               struct dk_bytes tag, int64_t visible_at);
void change_row(struct op *op, const struct row *row, struct lock lock, struct dk_bytes owner,
                int64_t visible_at, uint64_t attempt);
void note_due(struct op *op, int64_t visible_at, int64_t free_at);

/* release.c: of an older host's request 0 */
uint64_t fetch_id_of_turn(const struct op *op, const struct dk_fetch_turn *request,
                          const struct lock *before);
uint64_t fetch_id_of_work(const struct op *op, const struct dk_fetch_work *request,
                          const struct lock *before);

/* pin.c, tag.c */
bool fits_ranges(const struct op *op, const struct instance *turn,
                 const struct dk_fetch_turn *request);
void pass_by_pinned(struct op *op, const struct instance *turn,
                    const struct dk_fetch_turn *request);
bool fits_tags(const struct op *op, const struct row *row, const struct dk_fetch_work *request);

/* extension.c */
dk_status refuse_unknown_changes(struct op *op, const struct dk_turn_result *r);
void change_keys(struct op *op, const struct instance *turn, const struct dk_turn_result *r);
void change_custom_status(struct op *op, const struct instance *turn,
                          const struct dk_turn_result *r);
void make_tables(struct store *s);
const void *table_of(const struct store *s, const char *id); /* of one that is declared */
dk_status hand_up_keys(struct op *op, const struct instance *turn);
/* INT64_MAX: this fetch gets none of it, however long it waits. */
int64_t session_free_at(const struct op *op, const struct row *row,
                        const struct dk_fetch_work *request);
void hold_session(struct op *op, const struct row *row, const struct dk_fetch_work *request);

/* fate.c */
bool is_there(const struct instance *instance); /* committed once, or it has messages */
bool is_over(const struct op *op, const struct instance *instance);
int32_t status_of(const struct instance *instance);
int64_t created_at(const struct op *op, const struct instance *instance);
/* DK_UNSUPPORTED for what is not known; else marks what the filter (NULL: none) lists. */
dk_status begin_filter(struct op *op, const struct dk_instance_filter *filter);
bool is_selected(const struct op *op, const struct instance *instance,
                 const struct dk_instance_filter *filter);
/* The first of all instances in their order that comes after this id. */
size_t place_after(const struct op *op, struct instance *const *all, struct dk_bytes after);
/* NULL: none that is there. */
struct instance *parent_of(const struct op *op, const struct instance *instance);
void let_go(const struct op *op, struct instance *instance);   /* and its descendants with it */
void let_stay(const struct op *op, struct instance *instance); /* and its ancestors with it */
bool has_to_stay(const struct op *op, const struct instance *instance);
bool is_named(const struct op *op, const struct instance *instance); /* let go itself */
uint64_t generations(const struct op *op, const struct instance *instance);
/* True: it was let go, or an ancestor of it was.  Call it when the fate of every instance is known.
 */
bool goes(const struct op *op, struct instance *instance);

/* history.c */
struct dk_execution told_execution(const struct execution *e);

/* admin.c, delete.c, prune.c: the table of durakit.admin/1 */
extern const struct dk_admin model_admin;
dk_delete_instances_fn model_delete_instances;
dk_delete_matching_fn model_delete_matching;
dk_prune_fn model_prune_executions;
dk_status refuse_reader(struct op *op); /* DK_REFUSED where the store was opened read-only */
bool is_held(const struct op *op, const struct lock *lock); /* by a live lease */
/* Of mutants: the row that makes it known, in passing. */
void make_instance(struct op *op, struct dk_bytes id);

/* err.c */
dk_status refuse_wrongly(struct op *op, const struct dk_item *item);

/* cancel.c */
void delete_cancelled_activities(struct op *op, const struct instance *turn,
                                 const struct dk_turn_result *r);
void delete_row(struct op *op, struct dk_bytes instance, const struct dk_activity *activity);

/* token.c */
struct token {
  uint64_t epoch;
  struct identity of; /* a turn's has an instance only */
};
struct dk_bytes turn_token(const struct store *s, char room[MAX_TOKEN],
                           const struct instance *turn, uint64_t epoch);
struct dk_bytes work_token(const struct store *s, char room[MAX_TOKEN],
                           const struct identity *row, uint64_t epoch);
/* True if this store may have given it. */
bool parse_turn_token(const struct store *s, struct dk_bytes text, struct token *ret_token);
bool parse_work_token(const struct store *s, struct dk_bytes text, struct token *ret_token);
uint64_t fresh_epoch(const struct op *op, uint64_t given_in_this_call);
dk_status lost(struct op *op, const char *format, ...) __attribute__((format(printf, 2, 3)));
dk_status lost_because(struct op *op, const struct lock *lock, uint64_t epoch);

/* wait.c */
typedef dk_status look_fn(struct op *op, const void *request);
dk_status long_poll(struct store *s, struct dk_call *call, const char *name, look_fn *look,
                    const void *request, int64_t wait_until);
void ring_waiters(struct store *s);
void close_watches(struct store *s);

/* log.c */
int64_t clock_now(const struct store *s); /* TIME-7: of the clock that this store uses */
dk_status log_open(struct op *op, const char *path, uint32_t flags);
void log_close(struct store *s);
dk_status log_destroy(struct op *op, const char *path);

/* the operations: see provider.h */
dk_enqueue_fn model_enqueue_for_orchestrator, model_enqueue_for_worker;
dk_fetch_turn_fn model_fetch_orchestration_item;
dk_ack_turn_fn model_ack_orchestration_item;
dk_abandon_fn model_abandon_orchestration_item, model_abandon_work_item;
dk_renew_fn model_renew_orchestration_item_lock, model_renew_work_item_lock;
dk_fetch_work_fn model_fetch_work_item;
dk_ack_work_fn model_ack_work_item;
dk_read_history_fn model_read_history;
dk_release_fetch_fn model_release_fetch;

#endif
