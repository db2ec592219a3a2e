/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of one run, with a folder for each check (under checks/; the engine's other tasks are
 * under others/): in memory (/dev/shm) if there is room, else in $TMPDIR or /tmp.  Its mode is
 * 0700. Its lock, which shows that the run is alive, is held before the folder gets its name;
 * `durakit clean` removes the folders of dead runs. */
#ifndef DK_RUNNER_SYSTEM_FOLDER_H
#define DK_RUNNER_SYSTEM_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/system/remove.h"

#define FOLDER_PREFIX "durakit-run-"

enum { FOLDER_BASES = 3 };

struct folder {
  char path[256];    /* "" before it is made */
  int lock_fd;       /* its file "lock", locked for as long as the run lives */
  int journal_fd;    /* its file "journal": for `durakit clean`, see folder_note */
  int fd, checks, others; /* itself and its two parts: removed even if their names have changed */
  bool keep;         /* stores are left over: the journal stays for `durakit clean` */
};

/* 0, or -1 with errno and `path` the folder that could not be made; EADDRINUSE: a run with this id
 * is alive, and `path` is its folder. */
int folder_make(struct folder *folder, const char *run_id);
/* A folder that is not made yet, for which folder_done may be called. */
#define FOLDER_NONE {.lock_fd = -1, .journal_fd = -1, .fd = -1, .checks = -1, .others = -1}
/* Removes it; if it is kept, only the journal stays.  `left`, which may be NULL, gets what could
 * not be removed. */
void folder_done(struct folder *folder, struct remains *left);
/* Puts back its two parts, if a plugin has moved them, and replaces what the plugin has put there.
 * NULL: none was moved; else the name of one. */
const char *folder_put_back(const struct folder *folder);
/* Adds a line to the journal: the check with this number begins ('+') to make stores, or has
 * removed them ('-'). */
void folder_note(const struct folder *folder, char sign, unsigned number);
/* Adds a line to the journal: this store could not be removed.  The folder is kept. */
void folder_note_store(struct folder *folder, const char *suffix);

/* Removes a folder with all its contents: see remove.h.  False: something is left, as `left` says,
 * which may be NULL. */
bool folder_remove_tree(const char *path, struct remains *left);

/* The places where runs have their folders, at most FOLDER_BASES; returns their number. */
size_t folder_bases(const char *bases[FOLDER_BASES]);

enum folder_state {
  FOLDER_LIVES,   /* its lock is held, or it is so young that it may still get one */
  FOLDER_DEAD,
  FOLDER_FOREIGN, /* of another user, open to others, or no folder: never trusted */
  FOLDER_UNKNOWN  /* it could not be examined: errno */
};
/* The folder of a dead run, open and locked. */
struct dead_run {
  int fd;
  int lock_fd;       /* -1: it no longer has a lock */
};
#define DEAD_RUN_NONE {.fd = -1, .lock_fd = -1}
/* `ret` is filled in only for a dead run, and then closed by dead_run_done. */
enum folder_state folder_look(const char *path, struct dead_run *ret);
void folder_dead_run_done(struct dead_run *dead);
/* Looks for the folder of a living run with this id, other than `own`, which may be NULL.  1: there
 * is one; 0: none; -1 with errno: unknown. */
int folder_find_live(const char *run_id, const char *own, char *ret_path, size_t size);

/* Passes on the names of stores that are paths, named after this value, made by the run with this
 * id: the part after the value and a dash, "dkID-...".  0; -1 with errno: there may be more. */
int folder_find_stores(const char *value, const char *run_id,
                       void (*take)(void *context, const char *suffix), void *context);

/* mkdir -p; 0, or -1 with errno. */
int folder_make_path(const char *path);

#endif
