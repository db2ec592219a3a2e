/* SPDX-License-Identifier: Apache-2.0 */
/* Children under Valgrind's memcheck.  Warm: a zygote has linked the plugin, and each check is a
 * fork of it, which becomes the runner's own child.  A check that warms leaves an heir, which takes
 * the zygote's place: a copy of its process, in which Valgrind has translated the code that the
 * check has run; translating is nearly all that a short check costs.  Cold: each check is an exec
 * of its own, for a plugin of which no copy can be made.  Either way a child writes PID.xml in the
 * zygote's folder, which it reaches through the runner's descriptor: a plugin may take its name
 * away. */
#ifndef DK_RUNNER_ENGINE_ZYGOTE_H
#define DK_RUNNER_ENGINE_ZYGOTE_H

#include <sys/types.h>

#include "runner/engine/engine.h"
#include "runner/memory/memcheck.h"

struct zygote {
  pid_t pid;                 /* 0: none */
  pid_t linker;              /* that has linked the plugin: pid, or it has ended since */
  int socket;
  char plugin[4096];         /* that it has linked, or has refused to */
  bool cold;                 /* that plugin is not to be forked */
  char why[160];             /* not */
  int run_folder;            /* the caller's */
  unsigned number;           /* of its own folder in that */
  int folder;                /* its XML, and that of the checks; -1: it is not made yet */
};

void zygote_init(struct zygote *zygote, int run_folder, unsigned number);
/* Ends the zygote, if there is one. */
void zygote_done(struct zygote *zygote);

/* The way of memcheck_child_main, as its arguments say it. */
#define ZYGOTE_WARM "warm"
#define ZYGOTE_COLD "cold"

/* What the zygote says, in answers of this form. */
enum zygote_word { ZYGOTE_READY = 1, ZYGOTE_THREADS, ZYGOTE_FAILED, ZYGOTE_FORKED, ZYGOTE_HEIR };
struct zygote_answer {
  int32_t word, value;       /* FORKED, HEIR: the process; THREADS: how many */
};

/* Makes a child for this task, whose folder and files exist.  0 with errno.  `file` is that of the
 * shared map.  Makes a zygote if there is none for this plugin; if that fails, or the zygote ends,
 * the plugin's checks run in cold children. */
pid_t zygote_start_child(struct zygote *zygote, const struct memcheck *memcheck,
                         const struct task *task, const struct kit_job *job, int file);
/* A check that warms has ended: from now on its heir is the zygote, if it has left one. */
void zygote_take_heir(struct zygote *zygote);

/* In the other program: returns only if it was called wrongly, with an exit code. */
struct check;
int memcheck_child_main(int argc, char **argv, const struct check *(*find)(const char *id));

#endif
