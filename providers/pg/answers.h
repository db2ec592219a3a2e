/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that the functions of schema/ share with the C code: the kind of a row of an answer, and
 * why something is refused.  schema/text.awk reads this file and durakit/provider.h, and puts the
 * number in place of @NAME@ in the SQL; a name that neither file has stops the build.  So each
 * number has one place, and the same name on both sides. */
#ifndef DK_PG_ANSWERS_H
#define DK_PG_ANSWERS_H

/* fetch_turn: the kinds of its rows, and the answers in the first one. */
enum { TURN_ANSWER = 0, TURN_HEAD = 1, TURN_EVENT = 2, TURN_MESSAGE = 3 };
enum {
  TURN_FOUND = 0,
  TURN_NOTHING = 1,
  TURN_AGAIN = 100,  /* what is ready is held by others for a moment */
  TURN_IN_VAIN = 101 /* the same, and this attempt has waited for it */
};

/* fetch_work: the kinds of its rows. */
enum {
  WORK_NOTHING = 0,
  WORK_ITEM = 1,
  WORK_AGAIN = 2,
  WORK_IN_VAIN = 3
};

/* commit_turn: the kinds of its rows; and why a commit is DK_INVALID.  DK_LIST_... names the list
 * that makes it a DK_DUPLICATE. */
enum { COMMIT_ANSWER = 0, COMMIT_CANCELLED = 1, COMMIT_STOLEN = 2 };
enum {
  UNFIT_NOT_BARE = 1,  /* an empty commit with something in it */
  UNFIT_NAMELESS = 2,  /* a first one without name or version */
  UNFIT_EXECUTION = 3  /* neither the current one nor the next */
};

/* read_history: the kinds of its rows. */
enum { HISTORY_EXECUTION = 0, HISTORY_EVENT = 1 };

#endif
