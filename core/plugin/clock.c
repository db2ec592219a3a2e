/* SPDX-License-Identifier: Apache-2.0 */
/* The system's clock: CLOCK_REALTIME that never goes back.  Owns the latest time that it returned,
 * one for the whole process; it is atomic, and there is no lock. */
#include <stdatomic.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <durakit/clock.h>

#include "core/plugin/look.h"

struct system_clock {
  struct dk_clock clock;
  _Atomic int64_t latest;
};

static int64_t
system_now(struct dk_clock *clock)
{
  struct system_clock *system = (struct system_clock *)clock;
  int64_t latest = atomic_load(&system->latest);
  struct timespec time;
  int64_t now;

  clock_gettime(CLOCK_REALTIME, &time);
  now = (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
  while (latest < now && !atomic_compare_exchange_weak(&system->latest, &latest, now))
    continue;
  return latest < now ? now : latest;
}

/* Sets the timer so that it is readable at that time, and when the system's clock is set: then the
 * wait computes again how long it must last. */
static void
set_timer(int timer, int64_t until)
{
  struct itimerspec at = {
    .it_value = {.tv_sec = (time_t)(until / 1000), .tv_nsec = (long)(until % 1000) * 1000000},
  };

  timerfd_settime(timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL);
}

/* Waits until something may have changed. */
static void
wait_for_change(const struct dk_wait *wait, int timer)
{
  enum { WITHOUT_TIMER_MS = 100 };

  if (wait->until == INT64_MAX) {
    dk_look(wait, -1, -1);
  } else if (timer >= 0) {
    set_timer(timer, wait->until);
    dk_look(wait, timer, -1);
  } else {
    dk_look(wait, -1, WITHOUT_TIMER_MS); /* descriptors have run out: coarse, but it still works */
  }
}

static dk_status
system_wait(struct dk_clock *clock, const struct dk_wait *wait)
{
  dk_status status;
  int timer = -1;

  for (;;) {
    unsigned seen = dk_look(wait, -1, 0);
    if (seen || system_now(clock) >= wait->until) {
      status = seen & DK_LOOK_CANCELLED ? DK_CALL_CANCELLED : seen ? DK_OK : DK_NOTHING;
      break;
    }
    if (timer < 0 && wait->until != INT64_MAX)
      timer = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    wait_for_change(wait, timer);
  }
  if (timer >= 0)
    close(timer);
  return status;
}

struct dk_clock *
dk_clock_system(void)
{
  static struct system_clock the_system = {.clock = {.now = system_now, .wait = system_wait}};

  return &the_system.clock;
}
