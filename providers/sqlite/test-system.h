/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between the system and the plugin with its SQLite, for tests.  It counts every call of
 * either that can fail, and can let one of them fail, once, with an errno that suits it.  Calls of
 * the test itself and of the host are not counted.  Nothing is synced. */
#ifndef DK_SQLITE_TEST_SYSTEM_H
#define DK_SQLITE_TEST_SYSTEM_H

#include <stdbool.h>

enum system_kind {
  SYSTEM_OPEN, SYSTEM_READ, SYSTEM_WRITE, SYSTEM_SYNC, SYSTEM_CUT, SYSTEM_MAP, SYSTEM_LOCK,
  SYSTEM_UNLOCK, SYSTEM_LOOK, SYSTEM_NAME, SYSTEM_MODE, SYSTEM_DESCRIPTOR, SYSTEM_POLL,
  SYSTEM_RANDOM, SYSTEM_THREAD, SYSTEM_MEMORY, SYSTEM_KINDS
};

enum { MOST_CALLS = 20000 };

/* What was called since the last system_begin_counting. */
struct system_calls {
  int count;
  unsigned char kinds[MOST_CALLS];
  bool has_failed;              /* the one that was to */
};
extern struct system_calls seen;

/* When the plugin is loaded. */
void system_begin(void);
/* Whether allocations can be made to fail: not with a sanitizer, which has its own. */
bool system_has_memory(void);

/* How many errnos suit a call of that kind, and their names. */
int system_errors(enum system_kind kind);
const char *system_error(enum system_kind kind, int which);
const char *system_kind_name(enum system_kind kind);

/* The calls are counted from now on, those of memory apart or nothing else; the nth fails (0: none)
 * with the errno that is `which` of its kind. */
void system_count(bool is_memory, int nth, int which);
void system_stop(void);

#endif
