/* SPDX-License-Identifier: Apache-2.0 */
/* Deeds: operations of a host on one prepared store, each on an instance of its own, and the SQL
 * that shows whether one is done, wholly or not at all.  The tests of failures in the middle of
 * operations use them.  Time stands still. */
#ifndef DK_SQLITE_TEST_DEEDS_H
#define DK_SQLITE_TEST_DEEDS_H

#include <durakit/host.h>

#include "providers/sqlite/test-files.h"

enum {
  DEEDS = 19, COMMITTING = 5,
  REMOVING = 15, /* from here on a deed removes, */
  READING = 18   /* but the last, which changes nothing */
};

/* The plugin, and a store that is open with it. */
struct doer {
  struct dk_caller *caller;
  struct dk_store *store;
};

void deeds_begin(void);
void deeds_end(void);
/* Makes the store in which no deed is done; deeds are tried on copies of it. */
void deeds_prepare(const char *path);

dk_status doer_open(struct doer *doer, const char *path, uint32_t flags);
void doer_close(struct doer *doer);
struct doer doer_with_caller(const struct doer *doer);
const char *failure_of(const struct doer *doer);

const char *deed_name(int deed);
dk_status deed_do(int deed, struct doer *doer, bool is_repeated);
/* The answer of a done deed when it is repeated and marked so; -1: it cannot be marked. */
dk_status deed_answer_when_repeated(int deed);

enum state { UNDONE = -1, HALF_DONE = 0, DONE = 1 };
/* Gives how far each deed is, and the number of inconsistencies in the store. */
int deeds_look(const char *path, enum state ret_states[DEEDS]);

/* Waits for work that does not come: DK_NOTHING when time has passed, which then goes back. */
dk_status wait_in_vain(struct doer *doer);

/* Another message, of any size. */
dk_status enqueue_bytes(struct doer *doer, const char *instance, size_t size);

#endif
