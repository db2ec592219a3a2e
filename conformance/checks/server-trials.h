/* SPDX-License-Identifier: Apache-2.0 */
/* Trials: each operation once, with something that may happen to it on its way to a server.
 *
 * A trial prepares what its operation needs, in an instance of its own, makes the call, and then
 * finds out the truth: it repeats what may be repeated, and looks at the effects.  Whatever
 * happened, they are there once or not at all, as the answers said.
 */
#ifndef DK_CONFORMANCE_SERVER_TRIALS_H
#define DK_CONFORMANCE_SERVER_TRIALS_H

#include "conformance/checks/checks.h"

enum deed {
  DEED_ENQUEUE,
  DEED_FETCH_TURN,
  DEED_ACK_TURN,
  DEED_ABANDON_TURN,
  DEED_RENEW_TURN,
  DEED_FETCH_WORK,
  DEED_ACK_WORK,
  DEED_ABANDON_WORK,
  DEED_RENEW_WORK,
  DEED_CANCEL,           /* a commit that cancels an activity that is held and one that is free */
  DEED_READ_HISTORY,
  DEED_ENQUEUE_WORK,     /* optional */
  DEED_DELETE,           /* of durakit.admin/1: of an instance with an activity that is held */
  DEED_PRUNE,
  DEED_ENQUEUE_NAMELESS, /* a message without an id: nothing but the answer tells two from one; the
                            last, because one of unknown outcome may come late */
  DEEDS
};

struct trial {
  struct dk_check *t;
  enum deed deed;
  char instance[32], other[32];
  struct actor *on;            /* makes the call under trial; NULL: the check */
  struct dk_turn *turn;        /* that is held, or was fetched */
  struct dk_work_item *work;
  uint32_t fetches;            /* that may each have counted an attempt */
  bool is_unknown;             /* an answer said so */
  dk_status denied;            /* the last answer that says that nothing happened; DK_OK: none */
};

const char *deed_name(enum deed deed); /* "ack_orchestration_item" */
/* The first of the provider's after this one; DEEDS: there is none. */
enum deed next_deed(struct dk_check *t, enum deed deed);
#define FOR_EACH_DEED(t, deed) \
  for (enum deed deed = DEED_ENQUEUE; deed < DEEDS; deed = next_deed(t, deed))

/* A new instance with what the deed needs; everything else is out of the way. */
struct trial trial_of(struct dk_check *t, enum deed deed);
/* The call, for the first time; with `start` on trial->on, and the status comes from finish. */
dk_status trial_call(struct trial *trial, bool start);
/* What a started fetch has brought. */
void trial_take(struct trial *trial);
/* SRV-1: DK_OK, DK_CALL_CANCELLED, or a class that says what may be done next. */
void trial_judge_status(const struct trial *trial, dk_status status);
/* From the answer to the truth, on a store that is well again; then nothing of it is left. */
void trial_settle(struct trial *trial, dk_status status);

/* Until calls are answered again, on whatever connections the provider keeps: without a new open,
 * and within a time that is far away. */
void until_well(struct dk_check *t);
/* Nothing was there, and nothing changes: what a call answers now.  DK_OK: all is well. */
dk_status ask_for_nothing(struct dk_check *t);

#endif
