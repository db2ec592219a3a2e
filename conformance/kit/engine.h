/* SPDX-License-Identifier: Apache-2.0 */
/* How one check is run: the boundary between the runner, which never runs provider code, and the
 * child process that does.
 *
 * The runner makes one shared map (kit_shared_new) before it forks.  The child calls kit_run,
 * which loads the plugin, opens a store, runs the check with all its passes, closes, destroys its
 * stores, compares the process with its former state, and at the end writes the verdict.  If the
 * runner finds no verdict (after an early exit, a signal, a time-out), that is a failure with a
 * name of its own.
 */
#ifndef DK_KIT_ENGINE_H
#define DK_KIT_ENGINE_H

#include <stdbool.h>

#include "conformance/contract/mutants.h"
#include "conformance/kit/check.h"

enum verdict {
  VERDICT_NONE = 0,    /* the child has written no verdict: early exit, crash, time-out */
  VERDICT_PASS,
  VERDICT_FAIL,        /* an expectation failed, or the provider broke a rule of the ABI */
  VERDICT_HOST_DAMAGE, /* process state changed, output on descriptor 1, thread or fd left */
  VERDICT_UNEXERCISED, /* a race without enough overlaps */
  VERDICT_SKIP,
  VERDICT_ERROR,       /* the kit's own fault, or the environment's (store not reachable) */
  /* The runner judges the rest from outside; but the kit itself reports CRASH or EARLY_EXIT when
   * another process of the check ended in its call. */
  VERDICT_CRASH,
  VERDICT_TIMEOUT,
  VERDICT_EARLY_EXIT,
  VERDICT_MEMORY,      /* under memcheck: nothing but memory errors or leaks of the provider */
  VERDICT_FLAKY,
  VERDICT_NOT_RUN
};
const char *verdict_name(enum verdict verdict); /* "early-exit" */

enum phase {
  PHASE_START = 0, PHASE_LOAD, PHASE_OPEN, PHASE_RUN, PHASE_TWIN, PHASE_CLOSE, PHASE_DESTROY,
  PHASE_COMPARE, PHASE_DONE
};
const char *phase_name(enum phase phase); /* "while opening the store" */

enum { KIT_TRACE_LINES = 400, KIT_TRACE_WIDTH = 240, KIT_MAX_STORES = 32, KIT_MAX_MUTANTS = 1024 };

struct kit_trace_line {
  int64_t at;                  /* milliseconds since the check began, in its clock */
  char text[KIT_TRACE_WIDTH];  /* "main renew_work_item_lock(#1, extend 5000) -> DK_OK" */
};

/* How the two calls of a race were answered, and how often; "others" if there are too many. */
enum { KIT_ANSWERS = 12 };
struct kit_answers {
  char what[96];               /* "ack_work_item DK_OK, ack_orchestration_item DK_OK" */
  uint32_t times, at_once;     /* at_once: the calls overlapped */
  int32_t is_interesting;      /* one of them may be made again, or its outcome is unknown */
};

/* What the child leaves for the runner.  Lies in the shared map; plain data only. */
struct kit_report {
  uint64_t word;               /* KIT_SAID ^ verdict: written last, by the child */
  uint64_t seal;               /* written before it: the runner's answer; see kit_ask_seal */
  int32_t n_unanswered;        /* how often the kit has asked for a seal and got none */
  int32_t verdict;
  int32_t phase;
  int32_t pass;                /* 0, or which pass of a twin run */
  char operation[48];          /* the current one, or the last */
  int32_t running;             /* 1: it has not returned yet */
  int64_t since_ns;            /* CLOCK_MONOTONIC: when it began, or the last one ended */
  char clause[16];             /* the violated clause */
  char message[1024];          /* what did not hold, in words */
  char expected[1024];
  char found[2048];
  char where[128];             /* file:line of the expectation */
  char answer[200];            /* the call that failed, if it shows the failure without regard to
                                  the check: "open answered DK_INTERNAL: ..."; "": it does not */
  char skip_reason[256];
  uint32_t regions;            /* twin regions that were judged */
  uint32_t overlaps, rounds;   /* races */
  uint32_t n_answers, last_answers; /* last_answers: the last round's; from 1 */
  struct kit_answers answers[KIT_ANSWERS]; /* of races: what was seen, in this order */
  uint32_t operations;         /* calls made */
  char command[64];            /* "--store-crash": the command that the kit waits for; "": none */
  int32_t real_time;           /* the provider cannot use the host's clock: times were real */
  int64_t virtual_ms;          /* how far the virtual clock advanced */
  uint32_t n_trace;            /* lines written; the ring keeps the last KIT_TRACE_LINES */
  struct kit_trace_line trace[KIT_TRACE_LINES];
  uint32_t n_stores;           /* announced before they were made; the suffix of each */
  char stores[KIT_MAX_STORES][64];
  uint8_t store_gone[KIT_MAX_STORES]; /* destroyed by the child itself */
  uint8_t store_making[KIT_MAX_STORES]; /* unknown whether it was made: a server may still make it,
                                           even after it was destroyed */
  uint8_t reached[KIT_MAX_MUTANTS];   /* for durakit.mutant-reached/1, by number in areas.def */
};
#define KIT_SAID UINT64_C(0x6475726b69743264)

/* What the user lets the kit do to the server behind a store.  A process beside the run executes
 * the commands (runner/engine/server-commands.c), because the processes that they start must
 * outlive the check. */
enum kit_power {
  KIT_CAN_CRASH = 1u,    /* crash and start */
  KIT_CAN_PAUSE = 2u,    /* pause and resume */
  KIT_CAN_DENY = 4u,     /* withdraw the role's rights and give them back */
  KIT_CAN_STAND_BETWEEN = 8u
};
struct kit_hurt {
  uint32_t powers;                     /* KIT_CAN_..., as far as commands were given */
  const char *hand;                    /* path of the socket for requests of commands */
  const char *through;                 /* "key=value" with {folder}, {host}, {port}: a connection
                                          that the kit stands in; NULL: not given */
  const char *address;                 /* of the server: a socket's path, or HOST:PORT */
};

struct kit_job {
  const struct check *check;
  /* Absolute path.  NULL: nothing is loaded and no store is opened; kit_run calls the check's
   * function alone, and judges and compares as usual.  So the runner's canaries use the same
   * engine, with any plugin under test; they use `expect`, and no store. */
  const char *plugin;
  const struct dk_setting *settings;   /* as the user gave them, without the STORE parameter */
  size_t n_settings;
  const char *store_key;               /* NULL: the provider has no STORE parameter */
  const char *store_value;             /* to be extended by "-dk<run>-<n>..." */
  const char *run;                     /* the run's id, [a-z0-9], at most 12 */
  uint32_t number;                     /* of the check in this run */
  const char *folder;                  /* the check's own, empty; the child's working directory */
  uint64_t seed;
  int32_t settle_ms;                   /* 20 if the provider's `shared` is 3 (see probe), else 0 */
  int32_t answer_ms;                   /* so long a server may take, in real time; 0: as usual */
  bool real_time;                      /* even if the provider can use the host's clock */
  int64_t real_wait_ms;                /* in real time: so far ahead each run of a twin looks, and
                                          so long it may take more; 0: it does not wait */
  int64_t rounds_until_ns;             /* CLOCK_MONOTONIC: later no race looks for overlaps, so that
                                          its time-out blames no call; 0: no such time */
  bool in_process;                     /* for a debugger: no comparison of the process's state */
  int64_t patience_ms;                 /* in real time, for what should happen */
  bool incomplete;                     /* --next: accept missing operations */
  bool memcheck;                       /* under Valgrind: races are short, and not judged */
  bool unload;                         /* the plugin declares that it may be unloaded, and it is */
  bool brief;                          /* whether it fails is enough: without a shortest plan */
  int seals;                           /* socket to the runner, for kit_ask_seal; 0: none */
  uint64_t seals_inode;                /* of that socket: a plugin may have put another there */
  struct kit_hurt hurt;
};

/* The name of the store with this suffix (and "-" before it): the value of the STORE parameter, and
 * what a person must remove if it is left over. */
void kit_store_name(const struct kit_job *job, const char *suffix, char *buffer, size_t size);

struct kit_shared;
/* The map, with the virtual clock, report and memory of the actors; NULL with errno. */
struct kit_shared *kit_shared_new(void);
void kit_shared_free(struct kit_shared *shared);
/* The same in two steps, for a child that is another program: a file without a name (-1 with
 * errno), to be mapped by both.  They read plain data only, so that it may lie anywhere. */
int kit_shared_file(void);
struct kit_shared *kit_shared_map(int file);
/* Resets the map for the next child. */
void kit_shared_reset(struct kit_shared *shared);
struct kit_report *kit_report_of(struct kit_shared *shared);

/* In the child: runs the job and writes the report.  It returns when the report is complete; then
 * the child leaves by _exit(0).  The process may also end in here, by a crash or an exit of the
 * provider. */
void kit_run(struct kit_shared *shared, const struct kit_job *job);

/* In a child: loads the plugin and removes these stores (by suffix) that a killed check left
 * behind; writes VERDICT_PASS, or VERDICT_ERROR with what could not be removed.  Each store is
 * announced before it is removed, so that even after a kill of the child the runner knows which
 * stores were deleted, for KIT_MAX_STORES at most; `operations` counts the attempts. */
void kit_destroy_stores(struct kit_shared *shared, const struct kit_job *job,
                        const char (*suffixes)[64], size_t n);

/* In a child, for `durakit probe`: loads the plugin and describes it: descriptor, missing
 * operations, the answer of open.  The description is in the shared map; the report has the result.
 */
struct kit_probe {
  char name[128], version[128], built_with[256], help[1024];
  int32_t thread_model, durable, shared, unload;
  uint32_t clocks, abi_minor, runtime;
  uint64_t stamp;
  struct dk_limits limits;
  uint32_t n_params, n_extensions, n_missing;
  struct { char key[64], type[32], fallback[128], help[256]; uint32_t flags; } params[32];
  char extensions[32][64];
  char missing[16][64];
  bool has_enqueue_for_worker, has_interrupt, has_release_fetch;
  struct dk_refusal refusal;   /* number != 0: the plugin could not be loaded */
  bool loaded, opened;         /* opened: a store was made, and destroyed again */
  bool exists;                 /* not opened: a store of this name exists, and was not touched */
  dk_status open_status;
  char open_text[512];
  bool place_is_well;          /* DK_UNAVAILABLE, although the kit itself can write there */
  int64_t round_trip_ns;       /* one enqueue, measured: time-outs are scaled by it */
  uint32_t threads_after_load; /* more than one: a constructor starts threads */
};
struct kit_probe *kit_probe_of(struct kit_shared *shared);
/* With `open` it also opens a store of the kit's own making, uses it once and destroys it. */
void kit_probe(struct kit_shared *shared, const struct kit_job *job, bool open);
/* ---- under memcheck (memory.c) --------------------------------------------------------------- */

/* This program runs under Valgrind. */
bool kit_under_memcheck(void);
/* Valgrind has reported no error in this process, nor in those of which it is a copy. */
bool kit_memory_is_sound(void);
uint32_t kit_threads(void); /* of this process */
/* Links the plugin, and nothing else; NULL with the reason. */
void *kit_memory_hold(const char *plugin, char *why, size_t size);
/* Blocks that have leaked before do not count for the children that are forked after this. */
void kit_memory_baseline(void);
/* In a copy of a child, after kit_run: drops what belonged to the check, but keeps the plugin;
 * children that are forked after this are judged as after kit_memory_baseline. */
void kit_memory_inherit(struct kit_shared *shared, const struct kit_job *job);
/* In a child, after kit_run, when its map is no longer needed: unloads the plugin if the job asks
 * for it (`held` may be NULL), checks that it was unmapped, and asks Valgrind for leaks.  All
 * findings are in Valgrind's output, and so is the last word.  False: that word has no seal. */
bool kit_memory_end(struct kit_shared *shared, const struct kit_job *job, void *held);
/* The check memory/cycle: repeats open, every operation, close. */
extern const struct check kit_memory_cycle;

/* The child's lines in Valgrind's output.  KIT_MEMORY_JUDGED and KIT_MEMORY_CYCLE follow the seal
 * of their use, in KIT_SEAL_DIGITS digits, and a space. */
#define KIT_MEMORY_SAID "durakit: "
#define KIT_MEMORY_JUDGED "memory was judged"       /* its last word */
#define KIT_MEMORY_MAPPED "the plugin stays mapped" /* although it was unloaded */
#define KIT_MEMORY_CYCLE "cycle "                   /* and the number of the cycle that ended */
enum { KIT_MEMORY_CYCLES = 4 };                     /* after one that warms up */

/* ---- seals ----------------------------------------------------------------------------------- */

/* The uses of seals.  A plugin runs in the process of its check, and can write all that the kit
 * writes.  So a word by which a provider passes counts only with a seal: a random number that the
 * runner draws when it is asked for it, so that it does not exist before.  The kit asks when the
 * word is due, and a seal that is asked for twice no longer counts. */
enum {
  KIT_SEAL_VERDICT,
  KIT_SEAL_MEMORY,                                  /* KIT_MEMORY_JUDGED */
  KIT_SEAL_CYCLE,                                   /* and the next: KIT_MEMORY_CYCLE, from 1 on */
  KIT_SEALS = KIT_SEAL_CYCLE + KIT_MEMORY_CYCLES + 1,
  KIT_SEAL_DIGITS = 16
};
/* Asks the runner for the seal of this use.  0: other code in the process has asked for it, or has
 * replaced the runner's socket; the report counts that (NULL: it is unmapped already), and then no
 * pass of the child counts. */
uint64_t kit_ask_seal(struct kit_report *report, const struct kit_job *job, int use);
enum { KIT_EXIT_UNSEALED = 71 };                    /* if the child's last word has no seal */

/* The settings that the user gave, checked against the parameters.  In a child; the refusal, if
 * any, is in kit_probe_of(shared)->refusal (number 0, `what` not empty). */
void kit_check_settings(struct kit_shared *shared, const struct kit_job *job);

#endif
