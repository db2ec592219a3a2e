/* SPDX-License-Identifier: 0BSD */
/* durakit/clock.h - the clock that a host hands to a provider: the system's, or a virtual one.
 *
 * A host that gives a virtual clock decides what time it is.  Time then moves only when everybody
 * waits: each thread or process that makes calls is an *actor*, which is idle (no call), running or
 * waiting (in host->wait).  When no actor runs, and every waiter has looked at its descriptor since
 * the last change of any actor's state, the clock jumps to the smallest deadline.  An actor runs
 * from the moment a call is given to it until that is finished; a call that blocks in a lock of the
 * store runs, and so does one that waits for an answer (DK_WAIT_ANSWER): only if that has not come
 * after DK_ANSWER_MS of real time (dk_virtual_clock_answer_within) does it wait like others.
 * When all wait and none has a limit nothing could ever happen: "deadlock in virtual time", and
 * every wait answers DK_CALL_CANCELLED.
 *
 * A virtual clock lies in a region that the caller gives: with MAP_SHARED, and made before the
 * fork, several processes share it.
 */
#ifndef DURAKIT_CLOCK_H
#define DURAKIT_CLOCK_H

#include <durakit/provider.h>

#if defined __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* One wait: which actor waits, and for what.  A descriptor of -1: none. */
struct dk_wait {
  int32_t actor;      /* its number with a virtual clock; the system's clock ignores it */
  int32_t cancel_fd;  /* readable once the wait is to end with DK_CALL_CANCELLED */
  int32_t fd;
  uint32_t events;    /* DK_WAIT_... */
  int64_t until;      /* in the clock's time; INT64_MAX: no limit */
};

/* A clock.  Embed it as the first member of your own. */
struct dk_clock {
  int64_t (*now)(struct dk_clock *clock);
  /* DK_CALL_CANCELLED, DK_OK (fd is ready), DK_NOTHING (the time has come), in this order. */
  dk_status (*wait)(struct dk_clock *clock, const struct dk_wait *wait);
};

/* CLOCK_REALTIME, which here never goes back (a step back is held until time has caught up). */
struct dk_clock *dk_clock_system(void);

enum { DK_MAX_ACTORS = 16 };

enum { DK_ANSWER_MS = 15000 };

struct dk_virtual_clock;
size_t dk_virtual_clock_size(void);
/* Makes a clock in `region` (dk_virtual_clock_size() bytes, aligned to 64). settle_ms: how much
 * real time each waiter gives its descriptor before time may jump: 0 where wake-ups are synchronous
 * (one host), a few round trips where a server brings them.  Returns NULL when descriptors run
 * out. */
struct dk_virtual_clock *dk_virtual_clock_init(void *region, int64_t start, int32_t settle_ms);
/* Answers may take so much real time instead of DK_ANSWER_MS: on a busy machine, say.  Before
 * anybody waits. */
void dk_virtual_clock_answer_within(struct dk_virtual_clock *clock, int32_t ms);
void dk_virtual_clock_done(struct dk_virtual_clock *clock);
struct dk_clock *dk_virtual_clock_as_clock(struct dk_virtual_clock *clock);

int64_t dk_virtual_clock_now(struct dk_virtual_clock *clock);
/* Sets the time while nobody waits and no handle is open: a new run begins.  All actors but 0 are
 * forgotten, actor 0 runs, and a deadlock is over. */
void dk_virtual_clock_restart(struct dk_virtual_clock *clock, int64_t now);

/* Actor 0 is there from the start, and runs: it is whoever made the clock.  Adds another, idle, and
 * returns its number; -1 when there are DK_MAX_ACTORS. */
int32_t dk_virtual_clock_add_actor(struct dk_virtual_clock *clock);
/* The actor runs from now on; called by whoever gives it work, before it can have seen it. */
void dk_virtual_clock_give(struct dk_virtual_clock *clock, int32_t actor);
/* The actor has finished what it was given and is idle.  Called by the actor, or by whoever saw its
 * process end. */
void dk_virtual_clock_finished(struct dk_virtual_clock *clock, int32_t actor);
/* `watcher` waits until `actor` is idle.  This is a wait without a limit: time may move.  DK_OK, or
 * DK_CALL_CANCELLED after a deadlock. */
dk_status dk_virtual_clock_join(struct dk_virtual_clock *clock, int32_t watcher, int32_t actor);
/* `watcher` looks on, running, until `actor` waits (true) or is idle (false).  Time stands still.
 * It waits when it has looked at its descriptor since this call began, and found nothing. */
int32_t dk_virtual_clock_until_it_waits(struct dk_virtual_clock *clock, int32_t watcher,
                                        int32_t actor);
/* `actor` waits until the time has come: others' deadlines on the way are met.
 * DK_OK, or DK_CALL_CANCELLED after a deadlock. */
dk_status dk_virtual_clock_advance(struct dk_virtual_clock *clock, int32_t actor, int64_t until);
int32_t dk_virtual_clock_deadlocked(struct dk_virtual_clock *clock);

#ifdef __cplusplus
}
#endif
#if defined __GNUC__
#pragma GCC visibility pop
#endif
#endif
