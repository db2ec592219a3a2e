/* SPDX-License-Identifier: 0BSD */
/* durakit/clock.h - the clock that a host hands to a provider: the system's, or a virtual one.
 *
 * A host with a virtual clock decides what time it is.  Time then moves only when all actors wait.
 * Each thread or process that makes calls is an *actor*, which is idle (no call), running or
 * waiting (in host->wait).  When no actor runs, and every waiting actor has checked its descriptor
 * since the last change of any actor's state, the clock jumps to the smallest deadline.  An actor
 * runs from the moment when a call is given to it until that call has finished.  A call that is
 * blocked in a lock of the store counts as running, and so does one that waits for an answer
 * (DK_WAIT_ANSWER); if the answer has not come after DK_ANSWER_MS of real time
 * (dk_virtual_clock_answer_within), it counts as waiting.  When all actors wait and none has a
 * limit, nothing could ever happen: this is a "deadlock in virtual time", and every wait returns
 * DK_CALL_CANCELLED.
 *
 * A virtual clock is stored in a region that the caller provides.  Several processes share it if
 * the region is mapped with MAP_SHARED and the clock is made before the fork.
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
  int32_t actor;      /* its number, for a virtual clock; the system's clock ignores it */
  int32_t cancel_fd;  /* readable once the wait must end with DK_CALL_CANCELLED */
  int32_t fd;
  uint32_t events;    /* DK_WAIT_... */
  int64_t until;      /* in the clock's time; INT64_MAX: no limit */
};

/* A clock.  Embed it as the first member of your own clock's struct. */
struct dk_clock {
  int64_t (*now)(struct dk_clock *clock);
  /* DK_CALL_CANCELLED, DK_OK (fd is ready) or DK_NOTHING (the time has come): the first that
   * holds. */
  dk_status (*wait)(struct dk_clock *clock, const struct dk_wait *wait);
};

/* CLOCK_REALTIME, but it never goes back: after a step back it stands still until time has caught
 * up. */
struct dk_clock *dk_clock_system(void);

enum { DK_MAX_ACTORS = 16 };

enum { DK_ANSWER_MS = 15000 };

struct dk_virtual_clock;
size_t dk_virtual_clock_size(void);
/* Makes a clock in `region` (dk_virtual_clock_size() bytes, aligned to 64). settle_ms: how much
 * real time each waiting actor watches its descriptor before time may jump: 0 if wake-ups are
 * synchronous (one host), a few round trips if a server sends them.  Returns NULL when descriptors
 * run out. */
struct dk_virtual_clock *dk_virtual_clock_init(void *region, int64_t start, int32_t settle_ms);
/* Answers may take `ms` of real time instead of DK_ANSWER_MS, for example on a busy machine.  Call
 * it before any actor waits. */
void dk_virtual_clock_answer_within(struct dk_virtual_clock *clock, int32_t ms);
void dk_virtual_clock_done(struct dk_virtual_clock *clock);
struct dk_clock *dk_virtual_clock_as_clock(struct dk_virtual_clock *clock);

int64_t dk_virtual_clock_now(struct dk_virtual_clock *clock);
/* Sets the time for a new run, while no actor waits and no handle is open.  Removes all actors but
 * 0, makes actor 0 run, and ends a deadlock. */
void dk_virtual_clock_restart(struct dk_virtual_clock *clock, int64_t now);

/* Adds an idle actor and returns its number; -1 when there are DK_MAX_ACTORS already.  Actor 0
 * exists from the start, and runs: it is the thread that made the clock. */
int32_t dk_virtual_clock_add_actor(struct dk_virtual_clock *clock);
/* The actor runs from now on.  The thread that gives it work calls this, before the actor can see
 * that work. */
void dk_virtual_clock_give(struct dk_virtual_clock *clock, int32_t actor);
/* The actor has finished its work and is idle.  Called by the actor, or by the thread that saw its
 * process end. */
void dk_virtual_clock_finished(struct dk_virtual_clock *clock, int32_t actor);
/* `watcher` waits until `actor` is idle.  The wait has no limit, and time may move.  Returns DK_OK,
 * or DK_CALL_CANCELLED after a deadlock. */
dk_status dk_virtual_clock_join(struct dk_virtual_clock *clock, int32_t watcher, int32_t actor);
/* `watcher` watches, and counts as running, until `actor` waits (returns true) or is idle (false).
 * Time stands still.  `actor` waits once it has checked its descriptor since this call began, and
 * found nothing. */
int32_t dk_virtual_clock_until_it_waits(struct dk_virtual_clock *clock, int32_t watcher,
                                        int32_t actor);
/* `actor` waits until the time has come; the deadlines of other actors are met on the way.  Returns
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
