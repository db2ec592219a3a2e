/* SPDX-License-Identifier: Apache-2.0 */
/* Runs provider code in children, and only there: forks, watches, ends and judges them.
 *
 * Each task has a process group, a folder, and files for its output of its own; its deadline is
 * real time.  Only the verdict word in the shared map, with its seal, and an exit of 0 after it are
 * a pass.  The engine is for one thread, and is a subreaper: processes that a child leaves behind
 * are found, reported and ended.  If a child lowers the limits of the process that started it, they
 * are restored, and that is reported as well.
 */
#ifndef DK_RUNNER_ENGINE_ENGINE_H
#define DK_RUNNER_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conformance/kit/engine.h"
#include "runner/system/folder.h"

enum task_kind {
  TASK_CHECK,
  TASK_PROBE,      /* loads and describes */
  TASK_PROBE_OPEN, /* opens a store, too */
  TASK_SETTINGS,   /* checks the settings */
  TASK_DESTROY     /* removes the stores in `suffixes` */
};

/* A task to run.  All pointers are the caller's and must last until the outcome is returned. */
struct task {
  enum task_kind kind;
  struct kit_job job;        /* its folder is the engine's to fill in */
  bool store_in_folder;      /* its stores lie in the task's folder, and are removed with it */
  bool memcheck;             /* under Valgrind; a check only */
  bool origins;              /* under memcheck: find where undefined bytes come from, in a cold
                                child */
  bool warms;                /* under memcheck: if it passes without a finding, the next checks of
                                its slot are copies of its process */
  int64_t deadline_ms;       /* to remove stores: of each */
  int64_t more_ms;           /* of a check: so much longer at most, while its operations end */
  int64_t removal_ms;        /* to remove each store that the task leaves behind; 0: as usual */
  const char (*suffixes)[64];
  size_t n_suffixes;         /* at most KIT_MAX_STORES */
  uint64_t tag;              /* the caller's */
};

enum {
  OUTPUT_KEPT = 64 * 1024,
  /* A task that writes more to its standard output and error is ended.  This is less than the room
   * that the run's folder has at least, so that one check takes none from the others. */
  OUTPUT_MOST_MIB = 32
};

/* How it ended. */
struct outcome {
  uint64_t tag;
  enum verdict verdict;
  struct kit_report *report;  /* with the runner's own words where the child wrote none */
  struct kit_probe *probe;    /* for the kinds that probe, else NULL */
  char ended[96];             /* "by SIGSEGV (Segmentation fault)", "with exit 0" */
  char orphans[160];          /* processes that it left behind; "": none */
  char *output;               /* of standard output and error, at most OUTPUT_KEPT bytes */
  size_t output_size;
  uint64_t output_total;
  int64_t wall_ns;
  struct findings *findings;  /* of memcheck, NULL natively */
  bool cold;                  /* under memcheck: the child was an exec of its own */
  bool slow;                  /* its time was up while its operations still ended: not blamed */
  bool interrupted;           /* the runner was asked to stop: there is no verdict */
  char leftovers[KIT_MAX_STORES][64]; /* stores that could not be removed, by suffix */
  size_t n_leftovers;
  char unsure[KIT_MAX_STORES][64]; /* those it was making when it ended: a server may still make
                                      them after they were removed */
  size_t n_unsure;
};
struct findings;
struct memcheck;
void outcome_free(struct outcome *outcome);
/* Of TASK_DESTROY: this store was removed. */
bool outcome_removed(const struct outcome *outcome, const char *suffix);
/* The child crashed, exited early or hung. */
bool outcome_was_ended(const struct outcome *outcome);

struct engine;
/* `slots` tasks at a time; NULL with errno.  The folder is the caller's. */
struct engine *engine_new(const struct folder *folder, unsigned slots);
void engine_free(struct engine *engine); /* ends what still runs */

/* Tasks under memcheck may be started from now on; the set-up is the caller's, and must last. */
void engine_use_memcheck(struct engine *engine, const struct memcheck *memcheck);
/* Why the plugin cannot be copied under memcheck, so that each check costs a start of Valgrind; ""
 * if it can, or no check was started under memcheck. */
const char *engine_cold_reason(const struct engine *engine);

unsigned engine_running(const struct engine *engine);
bool engine_has_room(const struct engine *engine);
/* false with errno: no child could be made, or no memory be reserved for its outcome. */
bool engine_start(struct engine *engine, const struct task *task);
/* What failed when the last task could not be started, with the reason: "fork: ..."; "": it was. */
const char *engine_reason(const struct engine *engine);
/* Waits for one task to end; NULL: none runs.  Each task that was started has its outcome.  After
 * an interruption all tasks end at once. */
struct outcome *engine_wait(struct engine *engine);
/* Starts a task and waits for it, while nothing else runs. */
struct outcome *engine_run(struct engine *engine, const struct task *task);
/* Calls `wait` again and again, many times a second, while an outcome is waited for. */
typedef void engine_wait_fn(void *context);
void engine_on_wait(struct engine *engine, engine_wait_fn *wait, void *context);
/* For callers that wait for something else: looks whether a signal has come. */
void engine_hear(struct engine *engine);
/* The signal that asked the runner to stop; 0: none. */
int engine_interrupted(const struct engine *engine);

#endif
