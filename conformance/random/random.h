/* SPDX-License-Identifier: Apache-2.0 */
/* Random runs: a provider and the model get the same calls, and must give the same answers.
 *
 * A plan is a list of steps: a call of one handle, time that passes, a handle that is closed and
 * opened again.  In the first pass the steps are drawn one by one (draw.c) from odd values (odd.c)
 * and from the answers so far.  Each step is made on both sides (play.c), and the two answers are
 * compared (compare.c).  After the drawn steps, further ones take all that is left in the stores,
 * as time passes (settle.c).  If an answer differs, further passes try shorter plans, until no step
 * can be left out (shrink.c) and no request can be made simpler (simplify.c).  The last pass plays
 * the shortest plan and fails, with its trace, and with the plan as the source of a check
 * (story.c).
 *
 * Where the contract leaves a choice, the provider chooses and the model follows: which instance,
 * which work items, the bytes of tokens and the numbers of births.  Everything else must be equal.
 *
 * The seed determines the plan, as long as the provider makes the same choices.  All of this runs
 * in the thread of the check. */
#ifndef DK_RANDOM_H
#define DK_RANDOM_H

#include "conformance/kit/kit.h"
#include "conformance/model/choice.h"
#include "core/plugin/library.h"

/* ---- odd values (odd.c) ---------------------------------------------------------------------- */

struct chance {
  uint64_t state;
};
uint64_t draw(struct chance *chance);
uint64_t draw_below(struct chance *chance, uint64_t n); /* 0 to n - 1; n > 0 */
bool one_in(struct chance *chance, uint64_t n);

/* Sizes around powers of two, and others, up to `most`. */
size_t odd_size(struct chance *chance, size_t most);
/* Lengths of leases and extensions, at least 1; delays, 0 mostly; times to wait until. */
int64_t odd_lease(struct chance *chance);
int64_t odd_delay(struct chance *chance);
int64_t odd_passing(struct chance *chance);
/* Ids that are easily taken for one another: this many, of which number 0 is the plainest. */
enum { LOOK_ALIKES = 20 };
const char *look_alike(size_t number);
/* Numbers of activities: small ones, and those at the ends of number types. */
uint64_t odd_number(struct chance *chance);

/* ---- plans ----------------------------------------------------------------------------------- */

enum { RESPELLINGS = 10 };
/* A token that an earlier step was given. */
struct token_ref {
  uint32_t fetch;   /* the number of that step; 0: no step, the token is made up */
  uint32_t item;    /* of those it was given */
  uint32_t spelled; /* 0: as it is; else how it is changed */
};

enum step_kind { STEP_CALL, STEP_TIME, STEP_REOPEN, STEP_ANEW, STEP_FAIR, STEP_CANCEL };
struct step {
  enum step_kind kind;
  uint32_t number;          /* from 1; it stays when other steps are left out */
  uint32_t handle;          /* 0: the check's own */
  int64_t ms;               /* of STEP_TIME; of a fetch, how long it waits */
  const struct step *during; /* of a fetch that waits: what happens meanwhile; NULL: nothing */
  bool is_cancelled;        /* of STEP_CALL: before it begins */
  bool only_reads;          /* of STEP_CALL: by a handle that was opened to read */
  struct token_ref token;
  const struct op *request; /* of STEP_CALL, without its token; of STEP_FAIR, the fetch */
};
typedef LIST(struct step) steps;

/* What a check draws, and on what. */
enum { DRAWS_TIME = OP_RAW, DRAWS_REOPEN, DRAWS_FAIR, STEP_KINDS_DRAWN };
struct profile {
  uint8_t weights[STEP_KINDS_DRAWN]; /* by enum op_kind; how often, relative to each other */
  uint32_t n_steps;
  uint32_t n_handles;       /* besides the check's own */
  bool processes;           /* which are processes */
  bool ends;                /* instances end often */
  bool families;            /* most have parents, and what is stored of each is little */
  uint32_t n_ids;           /* of instances; 0: FEW_IDS */
  bool made_anew;           /* the store is destroyed after a while, and made once more */
  bool has_crowds;          /* hundreds of instances and activities that are never due */
};

enum { FEW_IDS = 6, MOST_IDS = 12 };

/* ---- one pass -------------------------------------------------------------------------------- */

/* A token that was handed out: what it was on each side, and what came with it. */
struct handed {
  uint32_t fetch, item;
  bool is_turn, is_used, is_acked;
  bool is_within;           /* a step of many calls, and used up there */
  struct dk_bytes theirs, ours;
  struct dk_bytes instance;
  uint64_t execution_id, last_event_id, activity_id;
  bool is_known;
  const struct dk_turn_result *result; /* that was committed with it, in lasting memory */
};

struct birth {
  struct dk_bytes instance;
  uint64_t theirs, ours;
};

/* The first answer that differs. */
struct difference {
  bool found;
  uint32_t step;            /* its number */
  char clause[16];
  char what[400], expected[1000], got[1000];
};

/* What happened while a fetch waited. */
struct meanwhile {
  uint32_t step;            /* the number of the fetch */
  bool has_waited;          /* else there was something to fetch at once */
  dk_status status;
};

struct random_run;
struct pass {
  struct dk_check *t;
  struct random_run *run;
  struct actor *handles[KIT_ACTORS];
  uint32_t n_handles;
  struct dk_store *model;
  struct dk_caller *caller; /* of the model */
  struct op *theirs;        /* the reply of the provider, copied */
  struct op ours;           /* the reply of the model; its arrays live until its next call */
  uint32_t step;            /* the number of the present one */
  struct handed *present;   /* whose token it has; NULL: it has none, or another one */
  LIST(struct handed) handed;
  LIST(struct birth) births;
  struct difference difference;
  LIST(dk_status) statuses; /* of the model, of each step of the plan */
  LIST(struct meanwhile) meanwhile;
};

/* What lives through all passes of a check. */
struct random_run {
  const struct profile *profile;
  struct chance chance;
  struct dk_library *model;
  struct dk_model_choice choice;
  struct pass *pass;
  steps plan;
  uint32_t n_drawn;             /* steps so far, also those that were left out since */
  struct dk_bytes ids[MOST_IDS]; /* of instances */
  struct dk_bytes tags[8], long_ids[2];
  uint64_t last_fetch_id;
  int64_t moments[200];         /* when calls were made: the last ones, and where the next goes */
  uint32_t n_moments;
  bool has_crowd[2];            /* one of messages, one of activities was drawn */
  bool has_long_list, has_large_history; /* the one of each that a run has */
  const uint8_t *script;        /* draw.c: the calls that follow, by enum op_kind; NULL: none */
  /* of shrink.c */
  steps candidate;
  size_t chunk, at;             /* how many steps are left out, from where; chunk 0: the request of
                                   this step is made simpler */
  bool is_shorter;              /* since the last look at all steps began */
  uint32_t simpler;             /* how the request was made simpler */
  uint32_t tries;
  int64_t until_ns;             /* no more tries after this time */
  bool is_telling;              /* the last pass */
  struct difference difference; /* of the plan */
};

/* ---- drawing (draw.c, draw-fetch.c, draw-commit.c, draw-admin.c) -----------------------------*/

void draw_world(struct pass *p);                  /* what the whole run shares */
void draw_step(struct pass *p, struct step *ret_step);
uint32_t n_ids(const struct random_run *run);
struct dk_bytes draw_payload(struct pass *p);
struct dk_bytes draw_instance(struct pass *p);
struct dk_bytes draw_parent(struct pass *p); /* often the same one, sometimes one that never was */
struct dk_bytes draw_text(struct pass *p, const char *const *texts, size_t n); /* absent: 1 of 4 */
struct dk_bytes draw_message_id(struct pass *p);
struct dk_bytes lasting_bytes(struct pass *p, const char *text);
void *lasting(struct pass *p, size_t n, size_t size);
void draw_item(struct pass *p, struct dk_item *ret_item);
void draw_activity(struct pass *p, struct dk_item *ret_item);
const struct dk_turn_result *draw_result(struct pass *p, const struct handed *turn);
void draw_admin(struct pass *p, struct op *op);
void draw_fetch_turn(struct pass *p, struct op *op);
void draw_fetch_work(struct pass *p, struct op *op);
struct dk_bytes draw_tag(struct pass *p);
uint32_t draw_most(struct pass *p); /* how many at most */
/* Within a script most requests are what a runtime would send. */
bool is_plain(struct pass *p);
enum { PLAIN_LEASE = 30000 };
/* Makes some requests what only a newer host would send. */
void draw_newer(struct pass *p, struct op *op);

/* ---- playing (play.c) ------------------------------------------------------------------------ */

void pass_begin(struct pass *p);
/* The request of the step, for the provider. */
struct op *make_request(struct pass *p, const struct step *step);
void call_provider(struct pass *p, const struct step *step);
void call_model(struct pass *p, const struct step *step);
/* When the model would hand out something to this fetch, if nothing else happens. */
int64_t ask_model_when(struct pass *p, const struct step *step);
/* The same, if these items were not there. */
int64_t ask_model_beside(struct pass *p, const struct step *step,
                         const struct dk_work_item *items, size_t n);
/* Compares, and takes what the replies have brought; true: no difference so far. */
bool take_replies(struct pass *p, const struct step *step);
/* A fetch that waits (wait.c). */
bool play_wait(struct pass *p, const struct step *step);
/* A call of a handle that was opened to read (reader.c). */
bool play_reader(struct pass *p, const struct step *step);
/* Fetches and gives back until all has come (fair.c). */
bool play_fair(struct pass *p, const struct step *step);
void draw_fair(struct pass *p, struct step *ret_step);
/* The operations whose first argument is a token. */
bool takes_token(enum op_kind kind);
/* Makes the step on both sides and compares; true: no difference so far. */
bool play_step(struct pass *p, const struct step *step);
/* Adds the step to the plan and plays it. */
bool play_new(struct pass *p, struct step step);
/* After the last drawn step: takes everything, as time passes. */
void settle(struct pass *p);

/* ---- comparing (compare.c, compare-admin.c) -------------------------------------------------- */

/* True if the two replies agree; else the difference is noted. */
bool replies_agree(struct pass *p);
/* The one of this identity; NULL: there is none. */
const struct dk_work_item *find_work(const struct dk_works *works, const struct dk_item *like);
/* What the model tells of an instance; false: it has no message. */
bool look_at_model(struct pass *p, struct dk_bytes instance, int64_t *ret_visible_at,
                   int64_t *ret_locked_until);
bool admin_replies_agree(struct pass *p);
/* Each notes a difference and returns false if the two are not equal. */
bool differs(struct pass *p, const char *clause, const char *what, const char *expected,
             const char *got);
bool same_number(struct pass *p, const char *clause, const char *what, uint64_t ours,
                 uint64_t theirs);
bool same_time(struct pass *p, const char *clause, const char *what, int64_t ours, int64_t theirs);
bool same_text(struct pass *p, const char *clause, const char *what, struct dk_bytes ours,
               struct dk_bytes theirs);
bool same_birth(struct pass *p, const char *clause, struct dk_bytes instance, uint64_t ours,
                uint64_t theirs);
bool same_execution(struct pass *p, const char *clause, const struct dk_execution *ours,
                    const struct dk_execution *theirs);

/* ---- shrinking (shrink.c), and the result (story.c) ------------------------------------------ */

void shrink_begin(struct random_run *run, const struct difference *difference);
/* The next plan to try, in run->candidate; false: there is none, run->plan is the shortest. */
bool shrink_next(struct pass *p);
void shrink_take(struct random_run *run, const struct difference *difference);
/* False: there is nothing to be made simpler in this way. */
bool make_simpler(struct pass *p, struct step *step, uint32_t how);
enum { WAYS_TO_SIMPLIFY = 16 };
/* Adds the plan to the trace, as the source of a check. */
void tell_as_check(struct pass *p);

/* The whole of a check. */
void random_check(struct dk_check *t, const struct profile *profile);

#endif
