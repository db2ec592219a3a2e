/* SPDX-License-Identifier: Apache-2.0 */
/* A fiber: see fiber.h.
 *
 * Its stack is a map of its own with a page before it that nobody may touch.  Valgrind and the
 * sanitizers follow a program by its stack, so they are told of each step. */
#include "config.h"

#include "core/runtime/fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if HAVE_VALGRIND
#include <valgrind/valgrind.h>
#endif
#if defined __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

struct fiber {
  void (*function)(void *context);
  void *context;
  ucontext_t own, caller;
  char *map;                 /* the untouchable page, then the stack */
  size_t map_size;
  size_t depth;              /* where it has stepped out, from the top */
  unsigned stack_id;         /* Valgrind's */
  /* The address sanitizer's words of the two stacks. */
  void *own_frames, *caller_frames;
  const void *caller_stack;
  size_t caller_size;
  /* The thread sanitizer's. */
  void *own_flow, *caller_flow;
};

static char *
stack_of(const struct fiber *fiber)
{
  return fiber->map + (fiber->map_size - FIBER_STACK);
}

/* The thread sanitizer counts the frames of each stack: a step has to be in the frame that steps.
 */
#define STEP static inline __attribute__((always_inline))

/* ---- who looks on ---------------------------------------------------------------------------- */

static void
appear(struct fiber *fiber)
{
#if HAVE_VALGRIND
  fiber->stack_id = VALGRIND_STACK_REGISTER(stack_of(fiber), stack_of(fiber) + FIBER_STACK);
#endif
#if defined __SANITIZE_THREAD__
  fiber->own_flow = __tsan_create_fiber(0);
#endif
  (void)fiber;
}

static void
disappear(struct fiber *fiber)
{
#if HAVE_VALGRIND
  VALGRIND_STACK_DEREGISTER(fiber->stack_id);
#endif
#if defined __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(stack_of(fiber), FIBER_STACK);
#endif
#if defined __SANITIZE_THREAD__
  __tsan_destroy_fiber(fiber->own_flow);
#endif
  (void)fiber;
}

STEP void
before_stepping_in(struct fiber *fiber)
{
#if defined __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&fiber->caller_frames, stack_of(fiber), FIBER_STACK);
#endif
#if defined __SANITIZE_THREAD__
  fiber->caller_flow = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber->own_flow, 0);
#endif
  (void)fiber;
}

STEP void
after_stepping_in(struct fiber *fiber)
{
#if defined __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fiber->own_frames, &fiber->caller_stack, &fiber->caller_size);
#endif
  (void)fiber;
}

STEP void
before_stepping_out(struct fiber *fiber, bool for_good)
{
#if defined __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(for_good ? NULL : &fiber->own_frames, fiber->caller_stack,
                                 fiber->caller_size);
#endif
#if defined __SANITIZE_THREAD__
  __tsan_switch_to_fiber(fiber->caller_flow, 0);
#endif
  (void)fiber;
  (void)for_good;
}

STEP void
after_stepping_out(struct fiber *fiber)
{
#if defined __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fiber->caller_frames, NULL, NULL);
#endif
  (void)fiber;
}

/* ---- coming and going ------------------------------------------------------------------------ */

/* A context takes ints, so that the pointer comes in two pieces. */
static void
begin(unsigned high, unsigned low)
{
  struct fiber *fiber = (void *)(uintptr_t)((uint64_t)high << 32 | low);

  after_stepping_in(fiber);
  fiber->function(fiber->context);
  before_stepping_out(fiber, true);
  setcontext(&fiber->caller);
  abort(); /* it does not come back */
}

/* Two pages: the one that cannot be touched, and what is touched in any case. */
static bool
make_stack(struct fiber *fiber)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);

  fiber->map_size = FIBER_STACK + page;
  fiber->map = mmap(NULL, fiber->map_size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (fiber->map == MAP_FAILED)
    return false;
  if (mprotect(fiber->map, page, PROT_NONE) == 0)
    return true;
  munmap(fiber->map, fiber->map_size);
  return false;
}

static void
make_context(struct fiber *fiber)
{
  getcontext(&fiber->own);
  fiber->own.uc_stack.ss_sp = stack_of(fiber);
  fiber->own.uc_stack.ss_size = FIBER_STACK;
  fiber->own.uc_link = NULL;
  makecontext(&fiber->own, (void (*)(void))begin, 2, (unsigned)((uint64_t)(uintptr_t)fiber >> 32),
              (unsigned)(uintptr_t)fiber);
}

struct fiber *
fiber_new(void (*function)(void *context), void *context)
{
  struct fiber *fiber = calloc(1, sizeof(*fiber));

  if (!fiber || !make_stack(fiber)) {
    free(fiber);
    return NULL;
  }
  fiber->function = function;
  fiber->context = context;
  make_context(fiber);
  appear(fiber);
  return fiber;
}

void
fiber_run(struct fiber *fiber)
{
  before_stepping_in(fiber);
  swapcontext(&fiber->caller, &fiber->own);
  after_stepping_out(fiber);
}

void
fiber_step_out(struct fiber *fiber)
{
  char here;

  fiber->depth = (size_t)((uintptr_t)(stack_of(fiber) + FIBER_STACK) - (uintptr_t)&here);
  before_stepping_out(fiber, false);
  swapcontext(&fiber->own, &fiber->caller);
  after_stepping_in(fiber);
}

void
fiber_free(struct fiber *fiber)
{
  if (!fiber)
    return;
  disappear(fiber);
  munmap(fiber->map, fiber->map_size);
  free(fiber);
}

/* Whole pages, one for what was deeper for a moment, and the kernel's own for the map. */
size_t
fiber_bytes(const struct fiber *fiber)
{
  size_t page = fiber->map_size - FIBER_STACK;

  return sizeof(*fiber) + (fiber->depth / page + 3) * page;
}
