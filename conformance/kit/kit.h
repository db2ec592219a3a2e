/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the kit share.  Checks and runner see only check.h and engine.h.
 *
 * Two kinds of memory.  `struct kit_shared` is one map, made before any fork and at one address in
 * all processes: report, clock, and each actor's operation with its request and reply.  A process
 * runs an operation just as a thread does, and nothing is marshalled.  `struct dk_check` belongs to
 * the check's own thread alone: only that thread expects, traces and judges; actors only run
 * operations.  An operation belongs to its actor from kit_give until its `done` is set, and to the
 * check's thread at all other times.
 */
#ifndef DK_KIT_KIT_H
#define DK_KIT_KIT_H

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "conformance/kit/disk.h"
#include "conformance/kit/engine.h"
#include "conformance/kit/shortage.h"
#include "core/base/arena.h"
#include "core/base/text.h"

enum {
  KIT_PROCESSES = MOST_PROCESSES, /* that one check may use */
  KIT_ACTORS = 13,          /* the check itself, the processes, and handles and threads */
  KIT_MAX_SETTINGS = 64,
  KIT_MAX_ROUNDS = 400,     /* of a race */
  KIT_MEMCHECK_ROUNDS = 3,  /* of one under Valgrind, where nothing overlaps */
  KIT_MAX_FETCHES = 10000,  /* of a drain, or of a search for one instance */
  KIT_MAX_VALUE = 2048      /* bytes of a store's name */
};

/* A virtual clock starts here in each pass of each check. */
#define KIT_START INT64_C(1700000000000)
/* Where a drain ends: far beyond every lease and timer. */
#define KIT_FAR (INT64_C(10) * 365 * 24 * 3600 * 1000)

/* ---- operations (ops.c) ---------------------------------------------------------------------- */

enum op_kind {
  OP_NONE,
  OP_QUIT,
  OP_OPEN,
  OP_CLOSE,
  OP_ENQUEUE,
  OP_ENQUEUE_WORK,
  OP_FETCH_TURN,
  OP_ACK_TURN,
  OP_ABANDON_TURN,
  OP_RENEW_TURN,
  OP_FETCH_WORK,
  OP_ACK_WORK,
  OP_ABANDON_WORK,
  OP_RENEW_WORK,
  OP_RELEASE_FETCH,
  OP_READ_HISTORY,
  OP_LIST_INSTANCES, /* from here on: durakit.admin/1 (admin.c) */
  OP_LIST_EXECUTIONS,
  OP_READ_MESSAGES,
  OP_READ_STATS,
  OP_DELETE_INSTANCES,
  OP_DELETE_MATCHING,
  OP_PRUNE,
  OP_RAW /* a call that a check makes without a function of the kit */
};

/* One call: every request, and the reply. */
struct op {
  enum op_kind kind;
  int32_t at_line;                 /* it waits first at the line of a race */
  int32_t unchecked;               /* a newer host's: the host does not check the request */
  struct dk_bytes token;
  int64_t ms;                      /* renew: the extension; abandon: the delay */
  int32_t ignore_attempt;
  uint64_t fetch_id;               /* release_fetch */
  struct dk_item item;             /* enqueue; completion of an acknowledged work item */
  struct dk_fetch_turn fetch_turn;
  struct dk_fetch_work fetch_work;
  struct dk_read_history read_history;
  struct dk_work_result work_result;
  const struct dk_turn_result *result;
  struct dk_instance_filter filter; /* of the requests that have one */
  struct dk_list_instances list_instances;
  struct dk_list_executions list_executions;
  struct dk_read_messages read_messages;
  struct dk_delete_instances delete_instances;
  struct dk_delete_matching delete_matching;
  struct dk_prune prune;

  dk_status status;
  int32_t by_host;
  char text[512];                  /* of the failure */
  struct named_item duplicate;     /* of a commit that was refused as a duplicate */
  int32_t broken;                  /* the actor could not load or open; `text` says why */
  struct dk_turn *turn;
  struct dk_works *works;
  struct dk_history *history;
  struct dk_commit_outcome outcome;
  struct dk_instances *instances;
  struct dk_executions *executions;
  struct dk_messages *waiting;     /* of read_messages */
  struct dk_stats stats;
  struct dk_removed removed;
  int64_t began_ns, ended_ns;      /* real time, for the witness of a race */
  struct kit_doom doom;            /* what it meets */
  const struct variation *variation; /* NULL: none */
  struct dk_limits limits;         /* the provider's, for a variation */
  char distorted[80];              /* what came back otherwise than it was sent; "": nothing */
};

const char *kit_op_name(enum op_kind kind); /* "ack_work_item" */
/* Runs an operation of struct dk_ops or of struct dk_admin, and fills the reply; the caller holds
 * the results. */
void kit_op_run(struct op *op, struct dk_store *store, struct dk_caller *caller);

/* ---- actors (actors.c, process.c) ------------------------------------------------------------ */

enum actor_kind { IS_MAIN, IS_HANDLE, IS_THREAD, IS_PROCESS };

struct actor {
  enum actor_kind kind;
  int32_t in_use;                  /* in this pass */
  char name[16];                   /* "thread 1" */
  int32_t clock_actor;             /* its number on the virtual clock, in this pass */
  struct kit_shared *shared;
  const struct kit_job *job;

  /* In the check's process; an actor that is a process has its own store and caller. */
  struct dk_store *store;
  struct dk_caller *caller;
  struct dk_canceller *canceller;
  pthread_t thread;
  int32_t has_thread, given, held; /* given: it has an operation that is not yet concluded */
  uint32_t trace_line;             /* of the operation that runs */
  pid_t pid;
  int life_fd, done_fd, wait_fd;   /* done_fd: it is done; wait_fd: it is done or has died */
  struct kit_doom doom;            /* of its next call */
  struct dk_arena requests;        /* of a process: its part of the map */
  void *reply;
  size_t reply_size;

  sem_t go;
  _Atomic int32_t done;
  _Atomic int32_t begun;           /* the call has begun on the actor's own thread */
  _Atomic int32_t loads;           /* of a process: it has begun to load the plugin */
  struct op op;
};

struct kit_violation {
  _Atomic int32_t happened;        /* 1: being written, 2: written */
  char operation[48], clause[16], text[512];
};

/* Between the virtual clock and its users: see stall.c. */
struct kit_gate {
  struct dk_clock clock;           /* the clock that stores get */
  struct dk_clock *behind;
  sem_t go;
  sem_t met;                       /* both racing calls have begun */
  _Atomic int32_t countdown;       /* questions until a call is held; 0: not armed */
  _Atomic int32_t holds;
  _Atomic int32_t asked;           /* questions of other calls since then */
  _Atomic int32_t answers;         /* calls that wait for a server's answer */
  _Atomic int64_t pushed;          /* the time is at least this */
  _Atomic int64_t ahead;           /* of the clock behind the gate, where stores use their own */
  struct kit_shared *shared;
};
/* What shall happen at a wait for a server (hurt.c).  Only in the check's own process. */
struct kit_cut {
  _Atomic int32_t countdown;       /* waits until then; 0: not armed */
  _Atomic int32_t done;
  int32_t what;                    /* enum cut */
  struct dk_check *by;
  char trouble[512];               /* why the server could not be crashed; "": it was */
};
bool kit_gate_init(struct kit_gate *gate, struct dk_clock *behind);
void kit_gate_reset(struct kit_gate *gate, int64_t ahead);
enum { KIT_HOST_BEHIND_MS = 3600000 }; /* where stores use their own clock */

/* The process between provider and server, and what it shall do (proxy.c). */
struct kit_proxy {
  pid_t pid;
  _Atomic int32_t countdown;       /* pieces until then; 0: not armed */
  _Atomic int32_t done;
  _Atomic int32_t holds;           /* a piece, until `go` */
  _Atomic int32_t go;
  _Atomic uint32_t n_connections;
  struct message_cut cut;
  char key[64], value[KIT_MAX_VALUE]; /* the setting that connects through it; "": there is none */
};

/* A copy of the check's process, or of one beside it, that has ended without exec (forks.c). */
struct kit_fork {
  _Atomic int32_t copy;            /* its number; 0: there was none */
  char operation[48];              /* in which it was made */
};

struct kit_shared {
  struct kit_report report;
  struct kit_probe probe;
  struct dk_mutant_reached mutants;
  struct kit_violation violation;
  struct dk_virtual_clock *clock;  /* NULL: the system's */
  struct kit_gate gate;            /* before that clock */
  int32_t runtime_stays;           /* the provider declares DK_RUNTIME_STAYS */
  int32_t own_clock;               /* stores use their own; the host's is not the system's */
  int32_t is_gated;                /* in real time too, stores are given the gate */
  struct kit_cut cut;
  struct kit_proxy proxy;
  struct kit_fork fork;
  _Atomic int32_t at_line;         /* how many actors wait at the line of a race */
  _Atomic int32_t ready;           /* ... and are ready to go */
  _Atomic int64_t go_ns;           /* when both go; 0: not yet known */
  _Atomic int32_t begun;           /* how many of the two have begun their calls */
  char store_key[64];              /* "": the provider has no such parameter */
  char store_value[KIT_MAX_VALUE]; /* of this pass */
  struct actor actors[KIT_ACTORS]; /* 0: the check itself; then the processes */
};

/* Where the parts of the map lie (shared.c). */
/* In a child: unmaps all but the parts of `processes` processes, because memcheck would search all
 * of them. */
void kit_shared_trim(struct kit_shared *shared, uint32_t processes);
/* Unmaps the rest; then the map cannot be used. */
void kit_shared_drop(struct kit_shared *shared, uint32_t processes);
void *kit_clock_region(struct kit_shared *shared);
void *kit_request_region(struct kit_shared *shared, uint32_t process, size_t *ret_size);
void *kit_reply_region(struct kit_shared *shared, uint32_t process, size_t *ret_size);

void kit_run_handle_op(struct dk_check *t, struct actor *who, enum op_kind kind);
void kit_fork_processes(struct dk_check *t);
void kit_quit_processes(struct dk_check *t, bool in_peace);
__attribute__((noreturn)) void kit_process_main(struct actor *who);
struct actor *kit_actor(struct dk_check *t, struct actor *actor); /* NULL: the check itself */
struct dk_store *kit_store_of(struct dk_check *t, struct actor *who);
void kit_give(struct dk_check *t, struct actor *who);
void kit_wait_done(struct dk_check *t, struct actor *who);
/* The actor's side: the operation is done. */
void kit_done(struct actor *who);
/* Returns when both actors are at the line, or the time limit has passed; then the call of this
 * actor begins. */
void kit_stand_at_line(struct actor *who);
/* One of the two racing calls has begun; and the race has ended (stall.c). */
void kit_race_begins(struct kit_shared *shared);
void kit_race_is_over(struct kit_shared *shared);
void kit_end_actors(struct dk_check *t);
bool kit_call_actors_back(struct dk_check *t);
/* False: the started call of this actor has returned, and waits no longer. */
bool kit_waits(struct dk_check *t, struct actor *who);
/* True: the started call of this actor has returned, or returns within this time. */
bool kit_is_done(struct actor *who, int wait_ms);
int64_t kit_real_ns(void);

/* ---- whose fault (trouble.c) ----------------------------------------------------------------- */

/* Notes this answer, because of which a check will now fail, if it alone shows the failure. */
void kit_note_answer(struct dk_check *t, const char *operation, dk_status status,
                     const char *text);
/* True: the kit itself can write where this store is.  False: it cannot, or it cannot check that,
 * because a server is behind the store (shared 3, an address or a URL among the settings).
 * `ret_why` continues the provider's text. */
bool kit_place_is_well(const struct dk_provider *provider, const struct kit_job *job,
                       const char *store, char *ret_why, size_t size);
/* The verdict on DK_UNAVAILABLE from a call that should succeed.  VERDICT_ERROR: the kit cannot
 * write there either; else VERDICT_FAIL, by ERR-1. */
enum verdict kit_judge_unavailable(struct dk_check *t, char *ret_why, size_t size);

/* ---- disturbing a server (hurt.c, proxy.c) --------------------------------------------------- */

/* At a wait for a server: true if the wait has ended, with this status. */
bool kit_cut_wait(struct kit_shared *shared, struct dk_clock *behind, const struct dk_wait *wait,
                  dk_status *ret_status);
void kit_note_own_sockets(struct dk_check *t);
/* Undoes what was done to the server, and closes the connection to the process that did it. */
void kit_hurt_end(struct dk_check *t);
/* For a process that only needs a working server: waits until it works. */
void kit_wait_until_mended(const struct kit_job *job);
/* Sets `why` to the options that the check needs and the user did not give; "": it can be run. */
bool kit_lacks_power(const struct kit_job *job, const struct check *check, char *why, size_t size);
/* Starts the process between provider and server, before the plugin is loaded, if the job has
 * --through. */
void kit_proxy_start(struct dk_check *t);
void kit_proxy_end(struct dk_check *t);

/* ---- one run of one check -------------------------------------------------------------------- */

struct kit_token {
  struct dk_bytes bytes;
  int32_t known;        /* of a turn: was the instance known when it was fetched? */
};

struct kit_log_line {   /* a call, which both runs of a twin must have in common */
  enum op_kind kind;
  int32_t actor;
  dk_status status;
};

struct kit_remembered { /* a call of a region */
  enum op_kind kind;
  dk_status status;
  int64_t ended;
  const char *text;
  const struct op *reply; /* the result of a look of durakit.admin/1; else NULL */
};

struct kit_line {
  int64_t at; /* since the check began */
  const char *text;
};

/* Arrays that grow in an arena. */
#define LIST(type) struct { type *items; size_t n, room; }
#define LIST_ADD(t, arena, list)                                                                   \
  ((list)->n < (list)->room                                                                        \
     ? (void)0                                                                                     \
     : (void)((list)->items = kit_grow(t, arena, (list)->items, (list)->n, &(list)->room,          \
                                       sizeof(*(list)->items))),                                   \
   &(list)->items[(list)->n++])

typedef LIST(struct kit_line) kit_lines;

struct kit_drained {
  kit_lines seen;   /* from fetches and reads of histories */
  kit_lines listed; /* from durakit.admin/1, where it is declared */
};

struct kit_twin {
  uint32_t region, regions;      /* the last one begun; how many pass 0 had */
  bool inside, skips;            /* inside a region; its calls are left out */
  struct dk_arena arena;         /* lives through both runs of one region */
  LIST(struct kit_log_line) log; /* of the run with the calls, up to the region */
  size_t n_compared;             /* of the run without them: how many lines agreed */
  LIST(struct kit_remembered) calls;
  size_t n_skipped;
  struct kit_drained with;       /* the lines of the drain with the calls */
};

struct dk_check {
  struct kit_shared *shared;
  struct kit_report *report;
  const struct kit_job *job;
  struct dk_library *library;
  const struct dk_provider *provider;
  bool has_sessions, has_admin, real_time;
  int64_t waited_ms;             /* in real time, by the check itself, in this pass */
  int hand_fd;                   /* to the process for commands on the server; -1: not asked yet */
  int *own_sockets;              /* that existed before the plugin was loaded */
  size_t n_own_sockets;
  size_t host_size;              /* of the table that stores see; 0: all of it */
  bool only_reads;               /* open the next handle read-only */
  struct dk_library *through;    /* opens the next handle; NULL: the plugin's own */
  bool (*ending)(struct dk_check *t); /* called at the end of the pass; NULL: none */
  struct dk_clock *clock;
  struct dk_arena arena;         /* lives through one pass */
  int64_t start;
  int32_t pass;
  jmp_buf leave;
  bool may_leave;
  enum verdict verdict;
  bool runs_again;               /* only to see what stays in the process */
  uint32_t enough;               /* overlaps that a race needs */
  int64_t rounds_began;
  char pass_suffix[48];
  struct actor *last;            /* the actor whose call was concluded last */
  LIST(struct kit_token) tokens;
  LIST(struct dk_bytes) instances;
  LIST(int64_t) instants;
  LIST(struct dk_bytes) owners;           /* of turns, that requests have named */
  LIST(struct dk_version) pins;
  LIST(struct dk_turn *) spare_turns;     /* fetched on the way to another */
  LIST(struct dk_work_item *) spare_work;
  bool is_short;                 /* the next call of its own meets this */
  struct kit_shortage shortage;
  /* Of a variation (between.c, neighbours.c). */
  struct dk_store *second;       /* another handle for the check's own calls */
  struct actor *helper;          /* another process for them; NULL: none yet */
  LIST(struct dk_bytes) late;    /* tokens of first deliveries that were taken over */
  size_t n_neighbours;           /* those that have not been deleted; 0: there are none */
  size_t calls_beside_neighbours;
  struct kit_twin twin;
  /* Of a check that asks for passes of its own. */
  int32_t passes;                /* in all; 0: as many as its regions need */
  struct dk_arena lasting;       /* lives through all passes */
  void *plan;                    /* in it, from the first pass on */
};

/* The check is to be run once more after this pass, in a fresh store: for one without regions. */
void kit_want_pass(struct dk_check *t);

/* ---- trace (trace.c) ------------------------------------------------------------------------- */

uint32_t kit_trace(struct kit_report *report, int64_t at, const char *text);
void kit_trace_add(struct kit_report *report, uint32_t line, const char *text);
void kit_say_op(struct dk_check *t, struct dk_text *text, const struct op *op);
void kit_say_reply(struct dk_check *t, struct dk_text *text, const struct op *op);
void kit_say_bytes(struct dk_text *text, struct dk_bytes bytes);
void kit_say_id(struct dk_text *text, struct dk_bytes id); /* without quotes; "-": absent */
void kit_say_time(struct dk_check *t, struct dk_text *text, int64_t time);
struct kit_token *kit_token(struct dk_check *t, struct dk_bytes bytes); /* NULL: never handed out */
void kit_meet_tokens(struct dk_check *t, const struct op *op);

/* ---- copies (copy.c) ------------------------------------------------------------------------- */

struct dk_bytes kit_copy_bytes(struct dk_check *t, struct dk_arena *arena, struct dk_bytes bytes);
void kit_copy_reply(struct dk_check *t, struct dk_arena *arena, struct op *op);
const struct dk_turn_result *kit_copy_result(struct dk_check *t, struct dk_arena *arena,
                                             const struct dk_turn_result *result);
const struct dk_bytes *kit_copy_list(struct dk_check *t, struct dk_arena *arena,
                                     const struct dk_bytes *list, size_t n); /* NULL: NULL */
/* A copy of the request: kind, token and all that is sent. */
void kit_copy_request(struct dk_check *t, struct dk_arena *arena, const struct op *from,
                      struct op *to);
/* Overwrites the texts of a request, which are the kit's own copies, after the call, when nothing
 * may read them any longer. */
void kit_take_back(const struct op *op);
void kit_overwrite(struct dk_bytes lent);
void *kit_alloc(struct dk_check *t, struct dk_arena *arena, size_t n, size_t size);
void *kit_grow(struct dk_check *t, struct dk_arena *arena, void *old, size_t n, size_t *room,
               size_t size);

/* ---- faults (faults.c) ----------------------------------------------------------------------- */

/* What this actor's next call is to meet becomes that of its operation. */
void kit_take_doom(struct actor *who);
/* From here on, until the end, this process meets what the operation is to meet. */
void kit_faults_begin(struct dk_check *t, struct op *op);
void kit_faults_end(struct dk_check *t);

/* ---- calls (call.c) -------------------------------------------------------------------------- */

struct op *kit_begin(struct dk_check *t, struct actor *who, enum op_kind kind);
struct dk_arena *kit_requests(struct dk_check *t, struct actor *who);
dk_status kit_call(struct dk_check *t, struct actor *who, bool start);
dk_status kit_conclude(struct dk_check *t, struct actor *who);
/* A call without trace, log and judgement, for the drain. */
dk_status kit_call_quietly(struct dk_check *t);
/* As advance_to, however long it takes. */
void kit_go_to(struct dk_check *t, int64_t time);
/* Sets the operation in the report, until kit_left. */
void kit_enter(struct dk_check *t, const char *operation);
void kit_left(struct dk_check *t);
void kit_name_instant(struct dk_check *t, int64_t time);
void kit_name_instance(struct dk_check *t, struct dk_bytes instance);

/* A request in the making: whose, and where its texts go (words.c). */
struct kit_request {
  struct dk_check *t;
  struct actor *who;
  struct dk_arena *arena;
  struct op *op;
};
struct kit_request kit_request(struct dk_check *t, struct actor *actor, enum op_kind kind);
struct dk_bytes kit_keep(const struct kit_request *r, const char *text);

/* ---- variations (between.c, neighbours.c) ---------------------------------------------------- */

/* Makes a call of the check's own thread, with whatever its variation has happen before it. */
void kit_run_varied(struct dk_check *t, struct actor *who);
/* Of a drain: the same without what happens before it. */
void kit_run_plain(struct dk_check *t, struct actor *who);
/* Makes the neighbours, before the check begins; deletes one of them, before some of its calls; and
 * checks, at its end, that each is as it was made. */
void kit_make_neighbours(struct dk_check *t);
void kit_delete_neighbour(struct dk_check *t);
void kit_judge_neighbours(struct dk_check *t);

/* ---- durakit.admin/1 (admin.c) --------------------------------------------------------------- */

bool kit_is_admin(enum op_kind kind);
dk_status kit_admin_operation(struct op *op, struct dk_store *store, struct dk_caller *caller);
/* Each does for these operations the same as the function without `admin` in its name for all. */
void kit_name_admin(struct dk_check *t, const struct op *op);
void kit_say_admin_op(struct dk_check *t, struct dk_text *text, const struct op *op);
void kit_say_admin_reply(struct dk_check *t, struct dk_text *text, const struct op *op);
void kit_copy_admin_reply(struct dk_check *t, struct dk_arena *arena, struct op *op);
void kit_take_back_admin(const struct op *op);
void kit_copy_admin_request(struct dk_check *t, struct dk_arena *arena, struct op *op);
/* Gives an operation the reply of another one. */
void kit_give_admin_reply(struct op *op, const struct op *reply);

/* ---- failures (expect.c) --------------------------------------------------------------------- */

/* Ends the check as skipped, for this reason. */
__attribute__((noreturn, format(printf, 2, 3))) void
kit_skip(struct dk_check *t, const char *format, ...);
/* Ends the check: expected and found may be NULL. */
__attribute__((noreturn, format(printf, 6, 7))) void
kit_fail(struct dk_check *t, enum verdict verdict, const char *where, const char *expected,
         const char *found, const char *format, ...);
/* Ends the check because of a fault of the kit or of its user. */
__attribute__((noreturn, format(printf, 2, 3))) void
kit_trouble(struct dk_check *t, const char *format, ...);
__attribute__((noreturn)) void kit_leave(struct dk_check *t);
void kit_judge_violation(struct dk_check *t);
/* "checks/cancel.c:17" */
const char *kit_place(char *buffer, size_t size, const char *file, int line);
const char *kit_status_name(dk_status status, char *buffer, size_t size);

/* ---- twin runs (twin.c, drain.c) ------------------------------------------------------------- */

bool kit_twin_skips(struct dk_check *t);
dk_status kit_twin_remembered(struct dk_check *t, struct actor *who);
void kit_twin_remember(struct dk_check *t, const struct op *op);
void kit_twin_log(struct dk_check *t, const struct actor *who, const struct op *op);
/* How many passes the check needs in all, after pass 0. */
int32_t kit_twin_passes(const struct dk_check *t);
void kit_twin_begin_pass(struct dk_check *t);
void kit_drain(struct dk_check *t, struct dk_arena *arena, struct kit_drained *ret_lines);

/* ---- stores (store.c) ------------------------------------------------------------------------ */

void kit_options(struct kit_shared *shared, struct dk_host_options *ret_options);
uint32_t kit_open_flags(const struct kit_shared *shared, const struct dk_provider *provider);
/* The user's settings with the store's; false if there are too many. */
struct kit_settings {
  struct dk_setting items[KIT_MAX_SETTINGS + 2];
  size_t n;
};
bool kit_settings(const struct kit_shared *shared, const struct kit_job *job, const char *value,
                  struct kit_settings *ret_settings);
/* How the job's plugin is to be loaded. */
uint32_t kit_library_flags(const struct kit_job *job);
bool kit_find_store_key(struct kit_shared *shared, const struct kit_job *job,
                        const struct dk_provider *provider);
/* The name of the store with this suffix; false if it is too long. */
bool kit_store_value(const struct kit_shared *shared, const struct kit_job *job,
                     const char *suffix, char *buffer, size_t size);
/* false: no room left in the list. */
bool kit_announce(struct kit_report *report, const char *suffix);
/* Notes the answer to the open that makes it; until then it is being made. */
void kit_announce_made(struct kit_report *report, const char *suffix, dk_status status);
void kit_announce_gone(struct kit_report *report, const char *suffix);
dk_status kit_open(struct dk_check *t, struct actor *who);
void kit_close(struct dk_check *t, struct actor *who);
void kit_reopen(struct dk_check *t, struct actor *who); /* after kit_close; a failure ends it */
void kit_new_store(struct dk_check *t);
void kit_destroy_store(struct dk_check *t);
void kit_refuse_existing_store(struct dk_check *t);
/* Comes before the provider's text, when it refuses to open a store that must not be made. */
#define KIT_MAY_EXIST "it may exist already, or the provider refuses for another reason: "
/* Checks, with a handle of its own, that the store can be reached and answers a call.  `ret_why`
 * gets the answer. */
bool kit_store_answers(struct dk_check *t, char *ret_why, size_t size);

/* ---- the process (state.h) ------------------------------------------------------------------- */

struct kit_state;
/* `before`: the one that it will be compared with; NULL: it is the first.  NULL: no memory. */
struct kit_state *kit_state_take(struct kit_shared *shared, const struct kit_job *job,
                                 const struct kit_state *before);
void kit_state_free(struct kit_state *state);
/* Reports the first difference; false if there is none. */
bool kit_state_differs(const struct kit_state *before, const struct kit_state *after,
                       struct kit_report *report);
/* From here on, in this process: a plugin that forks and does not exec is a difference. */
void kit_watch_forks(struct kit_shared *shared, const struct kit_job *job);
/* fork, by the kit itself: no difference. */
pid_t kit_fork(void);
/* Makes the check's own folder its $TMPDIR. */
void kit_set_temporary(const struct kit_job *job);
uint32_t kit_count_threads(void);
/* True: a thread of it, other than the caller's, has a processor or waits for one. */
bool kit_process_runs(pid_t pid);

/* Writes the verdict, as the last word. */
void kit_say_verdict(struct kit_report *report, const struct kit_job *job, enum verdict verdict);

#endif
