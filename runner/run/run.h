/* SPDX-License-Identifier: Apache-2.0 */
/* One run over one plugin: what is known of it, and what came of its checks. */
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

/* What came of one check. */
struct result {
  const struct check *check;
  enum mode mode;
  char id[96];                /* the check's, with the mode: "turn/birth@memcheck" */
  uint32_t number;            /* from 1, in plan order */
  bool done;
  enum verdict verdict;
  struct outcome *outcome;    /* of the run that decided; NULL: it was not run */
  char reason[256];           /* of a skip, of not having been run */
  bool repeated;              /* it ended as those before it, so that no rerun tells more */
  bool shared;                /* another one got the same answer of the same operation */
  bool twin_failed;           /* spared, for natively it has failed as `spared_by` did */
  const struct result *spared_by; /* not run, for this one has told what it would (cause.c) */
  unsigned reruns, failed_reruns;
};

/* What the first checks of a mode have in common: see cause.h. */
struct cause {
  const struct result *first; /* NULL: nothing, so far */
  bool came_through;          /* one has passed, or would have but for an overlap or by chance */
};

struct out;
struct results_file;

struct run {
  const struct options *options;
  struct secrets secrets;
  char *plugin;               /* absolute */
  struct kit_probe *probe;    /* what the plugin says of itself; else all zero */
  bool described;
  char trouble[256];          /* how the probe ended, if not well; "": well */
  struct dk_setting *settings;/* as given, without the STORE parameter */
  size_t n_settings;
  const char *store_key;      /* in probe; NULL: none */
  const char *store_value;    /* NULL: a path in the check's folder */
  struct folder folder;
  struct engine *engine;
  struct server_commands *server_commands; /* NULL: no command was given for a server */
  int64_t deadline_ms;        /* of a check, before any time-out */
  int64_t least_ms;           /* of a check, whatever has hung before */
  unsigned timeouts;          /* so far */
  unsigned slow;              /* so far: ended while their operations still ended */
  int64_t slowest_ms[2];      /* that passed so far: of races [1], of all others [0] */
  unsigned memcheck_timeouts; /* the same under Valgrind */
  int64_t memcheck_slowest_ms;
  struct result *results;
  size_t n_results;
  struct cause causes[2];     /* by mode */
  size_t n_leftovers;
  char (*unsure)[64];         /* stores that were being made when their check was ended */
  size_t n_unsure;
  int64_t unsure_ns;          /* when the last of them was */
  bool native;                /* checks run without Valgrind */
  bool memcheck;              /* checks run under Valgrind, too or only */
  char no_memcheck[256];      /* why not, when certify wants it; "": they do */
  struct memcheck valgrind;
  struct suppressed *suppressed; /* names of suppressions that were used, with how often */
  size_t n_suppressed;
  struct out *out;
  struct results_file *file;  /* NULL: none was asked for */
  int64_t started_ns;
};

/* ---- run.c ----------------------------------------------------------------------------------- */

enum { RUN_PROBE_MS = 5000 }; /* for a child that only describes the plugin, before scaling */

/* A job of this run; number and check are the caller's. */
struct task run_task(const struct run *run, enum task_kind kind);
/* By --timeout-scale. */
int64_t run_scaled(const struct run *run, int64_t ms);
/* The value of a setting must not be shown, not even in part. */
bool run_is_secret(const struct run *run, const struct given *given);

/* ---- run-deadlines.c ------------------------------------------------------------------------- */

void run_set_deadline(struct run *run);
/* What the probe measured, or met; what came of the checks. */
void run_note_round_trip(struct run *run, int64_t ns);
void run_note_hung_probe(struct run *run);
void run_note_time(struct run *run, bool race, const struct outcome *outcome);
/* Of the next check, in milliseconds. */
int64_t run_deadline(const struct run *run, bool race);
/* How much longer it may take while its operations end. */
int64_t run_more(const struct run *run);
/* Of one that takes real time: at least this, whatever has hung before. */
int64_t run_slow_deadline(const struct run *run, const struct result *result);
/* For each of the waits of a check of the runtime. */
int64_t run_patience(const struct run *run, const struct result *result);
/* The same under Valgrind. */
void run_note_memcheck_time(struct run *run, const struct outcome *outcome);
int64_t run_memcheck_deadline(const struct run *run);

/* ---- run-totals.c ---------------------------------------------------------------------------- */

struct totals {
  unsigned counts[VERDICTS];
  unsigned passed, failed, skipped, advised, memory, other;
  unsigned spared;            /* of those that were not run */
  int exit_code;
  const char *word;           /* "PASS" */
  const char *memcheck;       /* why certify has not tested memory; "": it has, or need not */
  double seconds;
};
/* `canaries_missed` and a run that was interrupted are incomplete, whatever passed. */
struct totals run_totals(const struct run *run, bool canaries_missed);
/* The verdict is one of a clause that is violated. */
bool run_is_violation(enum verdict verdict);

/* The clause that a result is about: the broken one, else the check's first. */
struct dk_clause;
const struct dk_clause *run_result_clause(const struct result *result);
/* It failed, but the clause is a SHOULD: reported, and not needed. */
bool run_result_is_advice(const struct result *result);

#endif
