/* SPDX-License-Identifier: Apache-2.0 */
/* A mutex that knows which thread holds it, so that a function that must run under a lock can
 * assert it.
 *
 * Only the holder writes `owner`, and a condition's wait gives up both.  So a thread that reads its
 * own name there holds the mutex, and no other thread ever reads that name; `owner` is atomic
 * because threads read it without holding the mutex. */
#ifndef DK_BASE_LOCK_H
#define DK_BASE_LOCK_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct dk_lock {
  pthread_mutex_t mutex;
  _Atomic(const void *) owner; /* NULL: no thread holds it */
};

#define DK_LOCK_INITIALIZER {.mutex = PTHREAD_MUTEX_INITIALIZER}

/* What no other running thread has: the place of its errno. */
static inline const void *
dk_lock_self(void)
{
  return &errno;
}

static inline void
dk_lock_set_owner(struct dk_lock *lock, const void *owner)
{
  atomic_store_explicit(&lock->owner, owner, memory_order_relaxed);
}

/* For asserts: does this thread hold it? */
static inline bool
dk_lock_is_held(const struct dk_lock *lock)
{
  return atomic_load_explicit(&lock->owner, memory_order_relaxed) == dk_lock_self();
}

/* False: the system has no room for it. */
static inline bool
dk_lock_init(struct dk_lock *lock)
{
  dk_lock_set_owner(lock, NULL);
  return pthread_mutex_init(&lock->mutex, NULL) == 0;
}

static inline void
dk_lock_done(struct dk_lock *lock)
{
  pthread_mutex_destroy(&lock->mutex);
}

static inline void
dk_lock(struct dk_lock *lock)
{
  pthread_mutex_lock(&lock->mutex);
  dk_lock_set_owner(lock, dk_lock_self());
}

static inline void
dk_unlock(struct dk_lock *lock)
{
  dk_lock_set_owner(lock, NULL);
  pthread_mutex_unlock(&lock->mutex);
}

/* Opens the lock while it waits; may return early. */
static inline void
dk_lock_wait(struct dk_lock *lock, pthread_cond_t *condition)
{
  dk_lock_set_owner(lock, NULL);
  pthread_cond_wait(condition, &lock->mutex);
  dk_lock_set_owner(lock, dk_lock_self());
}

/* The same, until a time of the condition's clock; then ETIMEDOUT, else 0. */
static inline int
dk_lock_wait_until(struct dk_lock *lock, pthread_cond_t *condition, const struct timespec *until)
{
  dk_lock_set_owner(lock, NULL);
  int error = pthread_cond_timedwait(condition, &lock->mutex, until);
  dk_lock_set_owner(lock, dk_lock_self());
  return error;
}

#endif
