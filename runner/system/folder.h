/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of one run, with one folder for each check in it (under checks/, what else the engine
 * runs under others/): in memory (/dev/shm) if there is room, else in $TMPDIR or /tmp.  It is 0700,
 * and its lock, which says that the run is alive, is held before it has its name; `durakit clean`
 * removes those of dead runs. */
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
  int fd, checks, others; /* itself and its two parts: they are removed, whatever has their names */
  bool keep;         /* stores are left over: the journal stays for `durakit clean` */
};

/* 0, or -1 with errno and `path` the folder that could not be made; EADDRINUSE: a run of this id
 * lives, and `path` is its folder. */
int folder_make(struct folder *folder, const char *run_id);
/* Before it is made, so that folder_done may be called. */
#define FOLDER_NONE {.lock_fd = -1, .journal_fd = -1, .fd = -1, .checks = -1, .others = -1}
/* Removes it, unless it is kept: then only the journal stays.  `left`, which may be NULL, tells
 * what could not be removed. */
void folder_done(struct folder *folder, struct remains *left);
/* Puts back those of its two parts that a plugin has moved, in the place of what it has put there.
 * NULL: none was moved; else the name of one. */
const char *folder_put_back(const struct folder *folder);
/* A line in the journal: the check of this number begins ('+') to make stores, or has removed them
 * ('-'). */
void folder_note(const struct folder *folder, char sign, unsigned number);
/* A line in the journal: this store could not be removed.  The folder is kept. */
void folder_note_store(struct folder *folder, const char *suffix);

/* Removes a folder with all in it: see remove.h.  False if something is left: `left` tells, and may
 * be NULL. */
bool folder_remove_tree(const char *path, struct remains *left);

/* The places where runs have their folders; as many as there are, at most FOLDER_BASES. */
size_t folder_bases(const char *bases[FOLDER_BASES]);

enum folder_state {
  FOLDER_LIVES,   /* its lock is held, or it is so young that it may get one still */
  FOLDER_DEAD,
  FOLDER_FOREIGN, /* of another user, open to others, or no folder at all: never to be believed */
  FOLDER_UNKNOWN  /* it could not be looked at: errno */
};
/* That of a dead run, open and locked. */
struct dead_run {
  int fd;
  int lock_fd;       /* -1: it has no lock any more */
};
#define DEAD_RUN_NONE {.fd = -1, .lock_fd = -1}
/* `ret` is filled in for a dead one only, and then closed by dead_run_done. */
enum folder_state folder_look(const char *path, struct dead_run *ret);
void folder_dead_run_done(struct dead_run *dead);
/* A folder of a run of this id whose lock is held, but `own`, which may be NULL: 1; 0: there is
 * none; -1 with errno: that cannot be known. */
int folder_find_live(const char *run_id, const char *own, char *ret_path, size_t size);

/* Takes the names of stores that are paths, named after this value, made by the run of this id: the
 * part behind the value and a dash, "dkID-...".  0; -1 with errno: there may be more. */
int folder_find_stores(const char *value, const char *run_id,
                       void (*take)(void *context, const char *suffix), void *context);

/* mkdir -p; 0, or -1 with errno. */
int folder_make_path(const char *path);

#endif
