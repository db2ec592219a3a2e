/* SPDX-License-Identifier: Apache-2.0 */
/* How the store answers, for health and the log.  Each kind of request is judged separately,
 * because a store that still hands out turns might refuse commits (a full disk), and one that has
 * stopped answers nothing at all.
 *
 * An asker needs one thing from the store and repeats its request until that is done: a thread that
 * fetches, a turn to commit, an activity whose end must be stored, a lease to renew.  It is active
 * from its first request until a request succeeds or it gives up (health_rest).  So health depends
 * on the time since the last success while there was something to do; a request without an answer
 * counts just like one that was refused.
 *
 * Any thread; one lock, under which nothing is called.  An asker belongs to one thread at a time,
 * begins zeroed, and must not move until it rests. */
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
  int64_t due;               /* when the request should have an answer; INT64_MAX: there is no
                                request */
  bool is_refused;           /* its last answer */
};

struct health {
  struct dk_lock lock;
  struct line {
    struct asker *askers;
    bool fails;              /* the failure was logged, and the recovery not yet */
    int64_t since;           /* the first request that failed */
    int64_t refused_at, good_at, back_at; /* the last of these; 0: none */
    int64_t settle_ms;       /* how long without a refusal before the recovery is logged */
    dk_status status;        /* of the last refusal, */
    char why[256];           /* the store's text */
    struct {
      int64_t refused, silent; /* since when, of askers that gave up meanwhile; 0: none */
      int64_t at;              /* when the last of them gave up */
    } left;
  } lines[N_HEALTH_KINDS];
};

void health_init(struct health *health);
void health_done(struct health *health);

/* Begins a request.  The store may wait `wait_ms`, and should answer soon after that. */
void health_ask(struct health *health, struct asker *asker, enum health_kind kind, int64_t wait_ms);
/* The request succeeded, and the asker rests.  True: this kind works again, and the caller must log
 * it; *ret_ms (may be NULL): for how long it did not. */
bool health_good(struct health *health, struct asker *asker, int64_t *ret_ms);
/* The request was refused, and will be repeated.  True: this kind fails from now on, and the caller
 * must log it. */
bool health_refused(struct health *health, struct asker *asker, dk_status status, const char *why);
/* The asker gives up.  This does not change the store's health: if it was unhealthy, it remains so
 * until a request succeeds, or until none was made for a minute.  The asker may be resting
 * already. */
void health_rest(struct health *health, struct asker *asker);
/* A request that ended like this may succeed if it is repeated.  DK_CALL_CANCELLED: it hung, was
 * cancelled, and nothing was done. */
bool health_may_pass(dk_status status);
/* It was logged that this kind fails, and not yet that it works again. */
bool health_fails(struct health *health, enum health_kind kind);

/* False, with the reason: requests of one kind have been refused for a second, or one has not been
 * answered for five. */
bool health_is_well(struct health *health, char *reason, size_t size);

#endif
