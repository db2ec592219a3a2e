/* SPDX-License-Identifier: Apache-2.0 */
/* A coroutine: see coroutine.h.
 *
 * Locking: `lock` guards `turn` and `is_over`; nothing is called under it.  Everything else belongs
 * to the side that runs. */
#include "core/runtime/code/coroutine.h"

#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD = 256 * 1024, KERNEL_BYTES = 32 * 1024 };

enum whose { OURS, ITS }; /* which side runs: the caller, or the function */

struct coroutine {
  void (*function)(void *context);
  void *context;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t has_changed;
  enum whose turn;
  bool is_over;              /* it is being freed: the function must be abandoned */
  jmp_buf bottom;
  uintptr_t low, top;        /* of its stack: the end, and roughly the beginning; 0: unknown */
  size_t depth;              /* of the stack where it stepped out, from the top */
};

/* ---- switching sides ------------------------------------------------------------------------- */

/* Lets the other side run, and waits until this side may run again. */
static void
pass(struct coroutine *coroutine, enum whose to, enum whose back)
{
  pthread_mutex_lock(&coroutine->lock);
  assert(coroutine->turn == back && !coroutine->is_over);
  coroutine->turn = to;
  pthread_cond_signal(&coroutine->has_changed);
  while (coroutine->turn != back)
    pthread_cond_wait(&coroutine->has_changed, &coroutine->lock);
  pthread_mutex_unlock(&coroutine->lock);
}

static void
wait_for_turn(struct coroutine *coroutine)
{
  pthread_mutex_lock(&coroutine->lock);
  while (coroutine->turn != ITS)
    pthread_cond_wait(&coroutine->has_changed, &coroutine->lock);
  pthread_mutex_unlock(&coroutine->lock);
}

static void
give_turn_away(struct coroutine *coroutine)
{
  pthread_mutex_lock(&coroutine->lock);
  assert(coroutine->turn == ITS);
  coroutine->turn = OURS;
  pthread_cond_signal(&coroutine->has_changed);
  pthread_mutex_unlock(&coroutine->lock);
}

/* ---- its thread ------------------------------------------------------------------------------ */

/* Queried, not computed: other things in a thread's memory (thread-local variables) may be large,
 * and the memory below belongs to others. */
static void
find_stack(struct coroutine *coroutine)
{
  pthread_attr_t attributes;
  void *low = NULL;
  size_t size;

  if (pthread_getattr_np(pthread_self(), &attributes) != 0)
    return;
  if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
    coroutine->low = (uintptr_t)low;
    coroutine->top = (uintptr_t)__builtin_frame_address(0);
  }
  pthread_attr_destroy(&attributes);
}

/* The only setjmp: a function that will not continue is abandoned where it waits. */
static void
run_function(struct coroutine *coroutine)
{
  if (setjmp(coroutine->bottom) == 0 && !coroutine->is_over)
    coroutine->function(coroutine->context);
}

static void *
thread_main(void *context)
{
  struct coroutine *coroutine = context;

  find_stack(coroutine);
  wait_for_turn(coroutine);
  run_function(coroutine);
  give_turn_away(coroutine);
  return NULL;
}

/* Returns the pages below the current position, which were in use only for a moment. */
static void
trim_stack(struct coroutine *coroutine)
{
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  uintptr_t low = (coroutine->low + page - 1) / page * page;
  uintptr_t unused = here / page * page - 2 * page; /* some are used while it steps out */

  if (here < coroutine->low || here > coroutine->top || unused <= low)
    return; /* the code switched stacks, or almost nothing can be returned */
  coroutine->depth = coroutine->top - unused;
  madvise((void *)low, unused - low, MADV_DONTNEED);
}

void
coroutine_step_out(struct coroutine *coroutine)
{
  trim_stack(coroutine);
  pass(coroutine, OURS, ITS);
  if (coroutine->is_over)
    longjmp(coroutine->bottom, 1);
}

/* ---- from outside ---------------------------------------------------------------------------- */

static bool
start_thread(struct coroutine *coroutine)
{
  pthread_attr_t attributes;

  if (pthread_attr_init(&attributes) != 0)
    return false;
  bool has_begun = pthread_attr_setstacksize(&attributes, COROUTINE_STACK) == 0 &&
                   pthread_attr_setguardsize(&attributes, GUARD) == 0 &&
                   pthread_create(&coroutine->thread, &attributes, thread_main, coroutine) == 0;
  pthread_attr_destroy(&attributes);
  return has_begun;
}

static void
discard(struct coroutine *coroutine)
{
  pthread_cond_destroy(&coroutine->has_changed);
  pthread_mutex_destroy(&coroutine->lock);
  free(coroutine);
}

struct coroutine *
coroutine_new(void (*function)(void *context), void *context)
{
  struct coroutine *coroutine = calloc(1, sizeof(*coroutine));

  if (!coroutine)
    return NULL;
  coroutine->function = function;
  coroutine->context = context;
  pthread_mutex_init(&coroutine->lock, NULL);
  pthread_cond_init(&coroutine->has_changed, NULL);
  if (start_thread(coroutine))
    return coroutine;
  discard(coroutine);
  return NULL;
}

void
coroutine_run(struct coroutine *coroutine)
{
  pass(coroutine, ITS, OURS);
}

void
coroutine_free(struct coroutine *coroutine)
{
  if (!coroutine)
    return;
  pthread_mutex_lock(&coroutine->lock);
  assert(coroutine->turn == OURS && !coroutine->is_over);
  coroutine->is_over = true;
  coroutine->turn = ITS;
  pthread_cond_signal(&coroutine->has_changed);
  pthread_mutex_unlock(&coroutine->lock);
  pthread_join(coroutine->thread, NULL);
  discard(coroutine);
}

size_t
coroutine_bytes(const struct coroutine *coroutine)
{
  return sizeof(*coroutine) + KERNEL_BYTES + coroutine->depth;
}
