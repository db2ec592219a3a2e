/* SPDX-License-Identifier: Apache-2.0 */
/* A lock knows which thread holds it: this one, another one, or none; even around a wait. */
#include <time.h>

#include "conformance/tap/tap.h"
#include "core/base/lock.h"

struct other {
  struct dk_lock *lock;
  pthread_cond_t *changed;
  bool held_before, held_inside, has_been; /* what the other thread saw; has_been: under the lock */
};

static void *
other_main(void *argument)
{
  struct other *other = argument;

  other->held_before = dk_lock_is_held(other->lock);
  dk_lock(other->lock);
  other->held_inside = dk_lock_is_held(other->lock);
  other->has_been = true;
  pthread_cond_signal(other->changed);
  dk_unlock(other->lock);
  return NULL;
}

static void
test_one_thread(struct dk_lock *lock)
{
  ok(!dk_lock_is_held(lock), "no thread holds a new lock");
  dk_lock(lock);
  ok(dk_lock_is_held(lock), "the thread that has locked it holds it");
  dk_unlock(lock);
  ok(!dk_lock_is_held(lock), "and does not after the unlock");
}

static void
test_two_threads(struct dk_lock *lock)
{
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  struct other other = {.lock = lock, .changed = &changed};
  pthread_t thread;

  dk_lock(lock);
  if (pthread_create(&thread, NULL, other_main, &other) != 0)
    BAIL_OUT("no thread");
  while (!other.has_been)
    dk_lock_wait(lock, &changed);
  ok(dk_lock_is_held(lock), "a thread that has waited holds it again");
  dk_unlock(lock);
  pthread_join(thread, NULL);
  ok(!other.held_before, "another thread does not hold what this one does");
  ok(other.held_inside, "and holds it while this one waits");
}

static void
test_time(struct dk_lock *lock)
{
  const struct timespec past = {.tv_sec = 1};
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

  dk_lock(lock);
  cmp_ok(dk_lock_wait_until(lock, &changed, &past), "==", ETIMEDOUT,
         "a wait whose time has passed");
  ok(dk_lock_is_held(lock), "ends with the lock held");
  dk_unlock(lock);
}

int
main(void)
{
  struct dk_lock lock, fixed = DK_LOCK_INITIALIZER;

  plan(NO_PLAN);
  ok(dk_lock_init(&lock), "a lock is made");
  test_one_thread(&lock);
  test_two_threads(&lock);
  test_time(&lock);
  test_one_thread(&fixed);
  dk_lock_done(&lock);
  return exit_status();
}
