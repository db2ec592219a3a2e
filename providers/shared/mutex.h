/* SPDX-License-Identifier: Apache-2.0 */
/* A mutex that knows which thread holds it, so that code which must run under it can assert it.
 *
 * Only the holder writes `owner`, and a condition's wait gives up both. */
#ifndef DK_PROVIDERS_MUTEX_H
#define DK_PROVIDERS_MUTEX_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mutex {
  pthread_mutex_t mutex;
  _Atomic(const void *) owner; /* the place of a thread's errno; NULL: no thread holds it */
};

static inline void
mutex_set_owner(struct mutex *mutex, const void *owner)
{
  atomic_store_explicit(&mutex->owner, owner, memory_order_relaxed);
}

/* For asserts: does this thread hold it? */
static inline bool
mutex_is_held(const struct mutex *mutex)
{
  return atomic_load_explicit(&mutex->owner, memory_order_relaxed) == &errno;
}

static inline void
mutex_init(struct mutex *mutex)
{
  mutex_set_owner(mutex, NULL);
  pthread_mutex_init(&mutex->mutex, NULL);
}

static inline void
mutex_done(struct mutex *mutex)
{
  pthread_mutex_destroy(&mutex->mutex);
}

static inline void
mutex_lock(struct mutex *mutex)
{
  pthread_mutex_lock(&mutex->mutex);
  mutex_set_owner(mutex, &errno);
}

static inline void
mutex_unlock(struct mutex *mutex)
{
  mutex_set_owner(mutex, NULL);
  pthread_mutex_unlock(&mutex->mutex);
}

/* Opens the mutex while it waits; may return early. */
static inline void
mutex_wait(struct mutex *mutex, pthread_cond_t *condition)
{
  mutex_set_owner(mutex, NULL);
  pthread_cond_wait(condition, &mutex->mutex);
  mutex_set_owner(mutex, &errno);
}

/* The same, until a time of the condition's clock at the longest. */
static inline void
mutex_wait_until(struct mutex *mutex, pthread_cond_t *condition, const struct timespec *until)
{
  mutex_set_owner(mutex, NULL);
  pthread_cond_timedwait(condition, &mutex->mutex, until);
  mutex_set_owner(mutex, &errno);
}

#endif
