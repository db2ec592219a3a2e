/* SPDX-License-Identifier: Apache-2.0 */
/* One run over one plugin: the state of the run, and the results of its checks. */
#ifndef DK_RUNNER_RUN_RUN_H
#define DK_RUNNER_RUN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conformance/kit/engine.h"
#include "runner/cli/message.h"
#include "runner/cli/options.h"
#include "runner/cli/secrets.h"
#include "runner/engine/engine.h"
#include "runner/memory/memcheck.h"
#include "runner/system/folder.h"

enum { VERDICTS = VERDICT_NOT_RUN + 1 };

enum mode { MODE_NATIVE, MODE_MEMCHECK };

/* The result of one check. */
struct result {
  const struct check *check;
  enum mode mode;
  char id[96];                /* the check's, with the mode: "turn/birth@memcheck" */
  uint32_t number;            /* from 1, in plan order */
  bool done;
  enum verdict verdict;
  struct outcome *outcome;    /* of the run that decided; NULL: it was not run */
  char reason[256];           /* why it was skipped or not run */
  bool repeated;              /* it ended as those before it, so a rerun would show nothing new */
  bool shared;                /* another check got the same answer of the same operation */
  bool twin_failed;           /* not run, because natively it failed as `spared_by` did */
  const struct result *spared_by; /* not run, because it would end as this one did (cause.c) */
  unsigned reruns, failed_reruns;
};

/* The common cause of the first failures of a mode: see cause.h. */
struct cause {
  const struct result *first; /* NULL: nothing, so far */
  bool came_through;          /* a check has passed, or failed only for lack of an overlap or by
                                 chance */
};

struct out;
struct results_file;

struct run {
  const struct options *options;
  struct secrets secrets;
  char *plugin;               /* absolute */
  struct kit_probe *probe;    /* the plugin's description; all zero if there is none */
  bool described;
  char trouble[256];          /* how the probe failed; "": it did not */
  struct dk_setting *settings;/* as given, without the STORE parameter */
  size_t n_settings;
  const char *store_key;      /* in the probe; NULL: none */
  const char *store_value;    /* NULL: a path in the check's folder */
  struct folder folder;
  struct engine *engine;
  struct server_commands *server_commands; /* NULL: no command was given for a server */
  int64_t deadline_ms;        /* of a check, before any time-out */
  int64_t least_ms;           /* of a check, even if others have hung */
  unsigned timeouts;          /* so far */
  unsigned slow;              /* so far: checks whose time was up while their operations ended */
  int64_t slowest_ms[2];      /* of the checks that passed so far: races [1], all others [0] */
  unsigned memcheck_timeouts; /* the same under Valgrind */
  int64_t memcheck_slowest_ms;
  struct result *results;
  size_t n_results;
  struct cause causes[2];     /* by mode */
  size_t n_leftovers;
  char (*unsure)[64];         /* stores that were being made when their check was ended */
  size_t n_unsure;
  int64_t unsure_ns;          /* when that happened last */
  bool native;                /* checks run without Valgrind */
  bool memcheck;              /* checks run under Valgrind, also or only */
  char no_memcheck[256];      /* why not, if certify wants it; "": they do */
  struct memcheck valgrind;
  struct suppressed *suppressed; /* suppressions, with how often each was used */
  size_t n_suppressed;
  struct out *out;
  struct results_file *file;  /* NULL: none was asked for */
  int64_t started_ns;
};

/* ---- run.c ----------------------------------------------------------------------------------- */

enum { RUN_PROBE_MS = 5000 }; /* for a child that only probes the plugin, before scaling */

/* A task of this run; the caller fills in number and check. */
struct task run_task(const struct run *run, enum task_kind kind);
/* Scales a time by --timeout-scale. */
int64_t run_scaled(const struct run *run, int64_t ms);
/* True: no part of the setting's value must be shown. */
bool run_is_secret(const struct run *run, const struct given *given);

/* ---- run-deadlines.c ------------------------------------------------------------------------- */

void run_set_deadline(struct run *run);
/* Notes what the probe measured or met, and the results of checks. */
void run_note_round_trip(struct run *run, int64_t ns);
void run_note_hung_probe(struct run *run);
void run_note_time(struct run *run, bool race, const struct outcome *outcome);
/* The deadline of the next check, in milliseconds. */
int64_t run_deadline(const struct run *run, bool race);
/* How much longer it may take while its operations still end. */
int64_t run_more(const struct run *run);
/* The least deadline of a check that takes real time, even if others have hung. */
int64_t run_slow_deadline(const struct run *run, const struct result *result);
/* The time for each wait of a check of the runtime. */
int64_t run_patience(const struct run *run, const struct result *result);
/* The deadline under Valgrind. */
void run_note_memcheck_time(struct run *run, const struct outcome *outcome);
int64_t run_memcheck_deadline(const struct run *run);

/* ---- run-totals.c ---------------------------------------------------------------------------- */

struct totals {
  unsigned counts[VERDICTS];
  unsigned passed, failed, skipped, advised, memory, other;
  unsigned spared;            /* not run, because others showed their result */
  int exit_code;
  const char *word;           /* "PASS" */
  const char *memcheck;       /* why certify has not tested memory; "": it has, or was not asked */
  double seconds;
};
/* With `canaries_missed`, or interrupted, a run is incomplete, even if all checks passed. */
struct totals run_totals(const struct run *run, bool canaries_missed);
/* The verdict says that a clause is violated. */
bool run_is_violation(enum verdict verdict);

/* The clause of a result: the violated one, else the check's first. */
struct dk_clause;
const struct dk_clause *run_result_clause(const struct result *result);
/* It failed, but the clause is a SHOULD: reported, and not needed. */
bool run_result_is_advice(const struct result *result);

#endif
