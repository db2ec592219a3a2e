/* SPDX-License-Identifier: Apache-2.0 */
/* One slot of the engine, in which one task runs at a time: its folder, its files for output, and
 * the outcome that is collected from them at its end.  For engine.c and slot.c. */
#ifndef DK_RUNNER_ENGINE_SLOT_H
#define DK_RUNNER_ENGINE_SLOT_H

#include <sys/types.h>

#include "runner/engine/engine.h"
#include "runner/engine/zygote.h"
#include "runner/system/seal.h"

struct slot {
  struct kit_shared *shared;
  int file;                  /* of the shared map */
  struct zygote zygote;
  struct seals seals;        /* of the child that runs, or has just ended */
  bool busy;
  pid_t pid;
  struct task task;
  struct kit_job job;
  char folder[320];          /* of the task; beside it are FOLDER.out and FOLDER.err */
  int parent;                /* the folder in which it has this name */
  char name[24];
  int output, errors;
  int64_t started_ns, deadline_ns;
  int64_t granted_ns;        /* part of the deadline: time that it waited for a processor */
  int signals;               /* 0: none yet; 1: SIGTERM was sent; 2: SIGKILL */
  int64_t worked_ns;         /* part of the deadline: because operations still ended */
  bool timed_out, slow, flooded;
  int64_t called_ns;         /* timed out: how long the call had run that had not returned */
  struct outcome *outcome;   /* of the task that runs, made before its child */
  struct outcome *pending;   /* the check's, while its stores are removed */
  char stores[KIT_MAX_STORES][64]; /* stores to be removed */
  size_t n_stores;
  uint32_t tried;            /* of the stores that this task removes */
};

/* Its map; false with errno. */
bool slot_init(struct slot *slot, const struct folder *folder, unsigned number);
void slot_done(struct slot *slot);

/* Makes the outcome of its task, with all the memory that the end of the child needs: so no failure
 * while a task runs loses its result.  false: no memory. */
bool slot_reserve(struct slot *slot);

/* Makes the file FOLDER.ending, new and empty, and replaces anything with this name; -1 with
 * errno. */
int slot_open_file(const struct slot *slot, const char *ending);
void slot_close_output(struct slot *slot);
/* The folder and the files beside it. */
void slot_remove_folder(struct slot *slot);

/* The task makes stores that are not removed with its folder. */
bool slot_makes_stores(const struct task *task);
/* Takes the stores that the check announced and did not remove, into the slot. */
void slot_list_stores(struct slot *slot, const struct kit_report *report);
/* Takes the stores that it was making, without an answer yet, into the outcome. */
void slot_list_unsure(const struct slot *slot, struct outcome *outcome);
/* Drops the stores that the removing child has removed. */
void slot_forget_gone(struct slot *slot, const struct outcome *removal);

uint64_t slot_stdout_bytes(const struct slot *slot);
uint64_t slot_output_bytes(const struct slot *slot); /* with standard error */
/* What the ended child left, without a verdict: the reserved outcome, which is the caller's. */
struct outcome *slot_collect(struct slot *slot, const struct memcheck *memcheck);

#endif
