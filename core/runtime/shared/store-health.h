/* SPDX-License-Identifier: Apache-2.0 */
/* How the store answers, for health and the log: each kind of request is judged by itself, for a
 * store that hands out turns may take no commit (a full disk), and one that has stopped answers
 * nothing at all.
 *
 * An asker is one who wants one thing of the store and asks until it is done: a thread that
 * fetches, a turn to be committed, an activity whose end is to be stored, a lease to be renewed.
 * It asks from its first request on until that was answered well, or it gives up (health_rest).
 * So what is judged is the time since the last success, as long as there was something to do; and a
 * request that has no answer counts as well as one that was refused.
 *
 * Any thread; one lock, under which nothing is called.  An asker belongs to one thread at a time,
 * begins zeroed, and stays where it is until it rests. */
#ifndef DK_RUNTIME_SHARED_STORE_HEALTH_H
#define DK_RUNTIME_SHARED_STORE_HEALTH_H

#include <durakit/host.h>

#include <stdbool.h>

#include "core/base/lock.h"

enum health_kind {
  HEALTH_TURNS, /* fetches of turns */
  HEALTH_WORK,  /* fetches of activities */
  HEALTH_COMMITS,
  HEALTH_ACKS, /* ends of activities: acknowledged or given back */
  HEALTH_RENEWALS,
  N_HEALTH_KINDS
};

struct asker {
  struct asker *next, **at;  /* at: NULL when it rests */
  enum health_kind kind;
  int64_t since;             /* the tick of its first request */
  int64_t due;               /* when the request should have an answer; INT64_MAX: none is made */
  bool is_refused;           /* its last answer */
};

struct health {
  struct dk_lock lock;
  struct line {
    struct asker *askers;
    bool fails;              /* was told, and not yet that it works again */
    int64_t since;           /* the first request that failed */
    int64_t refused_at, good_at, back_at; /* the last of these; 0: none */
    int64_t settle_ms;       /* without a refusal, before it is told that it works again */
    dk_status status;        /* of the last refusal, */
    char why[256];           /* in the store's words */
    struct {
      int64_t refused, silent; /* since when those were that gave up meanwhile; 0: none */
      int64_t at;              /* when the last of them did */
    } left;
  } lines[N_HEALTH_KINDS];
};

void health_init(struct health *health);
void health_done(struct health *health);

/* A request that the store is to answer within so many milliseconds (that it may wait). */
void health_ask(struct health *health, struct asker *asker, enum health_kind kind, int64_t wait_ms);
/* It was answered well, and the asker rests.  True: this kind works again, which is to be told;
 * *ret_ms (may be NULL): since so long it had not. */
bool health_good(struct health *health, struct asker *asker, int64_t *ret_ms);
/* It was refused, and is asked again.  True: this kind fails from now on, which is to be told. */
bool health_refused(struct health *health, struct asker *asker, dk_status status, const char *why);
/* The asker wants nothing any more.  That says nothing of the store: if it was not well, it is so
 * until somebody has success, or nobody has asked for a minute.  The asker may be resting. */
void health_rest(struct health *health, struct asker *asker);
/* It was told that this kind fails, and not yet that it works again. */
bool health_fails(struct health *health, enum health_kind kind);

/* False, with the reason: requests of a kind have been refused for a second, or one has had no
 * answer for five. */
bool health_is_well(struct health *health, char *reason, size_t size);

#endif
