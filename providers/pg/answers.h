/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that the functions of schema/ and the C beside them share: what a row of an answer is,
 * and why something is refused.  schema/text.awk reads this file and durakit/provider.h, and puts
 * the number where the SQL says @NAME@; a name that neither has stops the build.  So there is one
 * place for each number, and each has its name on both sides. */
#ifndef DK_PG_ANSWERS_H
#define DK_PG_ANSWERS_H

/* fetch_turn: the kinds of its rows; and what the first one says. */
enum { TURN_ANSWER = 0, TURN_HEAD = 1, TURN_EVENT = 2, TURN_MESSAGE = 3 };
enum {
  TURN_FOUND = 0,
  TURN_NOTHING = 1,
  TURN_AGAIN = 100,  /* what is ready is held by others for a moment */
  TURN_IN_VAIN = 101 /* the same, and this one has waited for it */
};

/* fetch_work: the kinds of its rows. */
enum {
  WORK_NOTHING = 0,
  WORK_ITEM = 1,
  WORK_AGAIN = 2,
  WORK_IN_VAIN = 3
};

/* commit_turn: the kinds of its rows; and why a commit is DK_INVALID.  Which list makes it a
 * DK_DUPLICATE is said by DK_LIST_.... */
enum { COMMIT_ANSWER = 0, COMMIT_CANCELLED = 1, COMMIT_STOLEN = 2 };
enum {
  UNFIT_NOT_BARE = 1,  /* an empty commit with something in it */
  UNFIT_NAMELESS = 2,  /* a first one without name or version */
  UNFIT_EXECUTION = 3  /* neither the current one nor the next */
};

/* read_history: the kinds of its rows. */
enum { HISTORY_EXECUTION = 0, HISTORY_EVENT = 1 };

#endif
