/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between SQLite and the system, for tests: counts the calls that change a file, and lets
 * one of them kill the process, or all from one on fail.  Nothing is synced: a process that dies
 * loses nothing that the system has, and a power cut is not played. */
#ifndef DK_SQLITE_TEST_CALLS_H
#define DK_SQLITE_TEST_CALLS_H

enum call_kind { CALL_WRITE = 1, CALL_SYNC = 2, CALL_CUT = 4, CALL_UNLINK = 8, CALL_ANY = 15 };

struct calls {
  int count;            /* of the kinds that are counted */
  unsigned kinds;       /* enum call_kind */
  int dies_before;      /* the count at which it is killed; 0: never */
  int fails_from;       /* from which count on they fail; 0: never */
  int error;            /* with this errno */
};
extern struct calls calls;

void calls_begin(void); /* from now on */

/* Every call is tried: 1.  Under Valgrind, which is slow, every so many. */
int calls_step(void);

#endif
