/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between SQLite and the system, for tests.  It counts the calls that change a file or take
 * a resource of the system.  One of them can kill the process, or all of a range can fail.  Nothing
 * is synced: a process that dies loses nothing that the system has.  The watcher simulates a power
 * cut (test-disk.h). */
#ifndef DK_SQLITE_TEST_CALLS_H
#define DK_SQLITE_TEST_CALLS_H

#include <stdbool.h>
#include <sys/types.h>

enum call_kind {
  CALL_WRITE = 1, CALL_SYNC = 2, CALL_CUT = 4, CALL_UNLINK = 8, CALL_ANY = 15,
  CALL_READ = 16, CALL_MAP = 32, CALL_OPEN = 64, CALL_MEMORY = 128
};

/* A call that has changed a file, or a sync that failed. */
struct change {
  enum call_kind kind;
  int fd;
  const void *bytes;    /* written */
  size_t size;
  off_t offset;         /* where; of a cut: the new size */
  bool has_failed;
};

struct calls {
  int count;            /* of the kinds that are counted */
  unsigned kinds;       /* enum call_kind */
  int dies_before;      /* the count at which it is killed; 0: never */
  int fails_from;       /* from which count on they fail; 0: never */
  int fails_until;      /* the last that does; 0: there is none */
  int error;            /* with this errno */
  void (*watch)(const struct change *change);
};
extern struct calls calls;

void calls_begin(void); /* from now on */
/* Counts CALL_MEMORY as well; before SQLite is used. */
void calls_begin_with_memory(void);

/* 1: every call is tried.  Under Valgrind, which is slow, one of several. */
int calls_step(void);

#endif
