/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that step out and go on, in whichever thread runs them. */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/runtime/fiber.h"

struct counting {
  struct fiber *fiber;
  int count;
  bool over;
};

/* Its own number is on its own stack, and is still there when it goes on. */
static void
count(void *context)
{
  struct counting *counting = context;

  for (int own = 1; own <= 3; own++) {
    counting->count = own;
    fiber_step_out(counting->fiber);
  }
  counting->over = true;
}

static struct counting
new_counting(struct counting *counting)
{
  *counting = (struct counting){.fiber = fiber_new(count, counting)};
  if (!counting->fiber)
    BAIL_OUT("no memory for a stack");
  return *counting;
}

static void
test_steps(void)
{
  struct counting one, other;

  new_counting(&one);
  new_counting(&other);
  cmp_ok(one.count, "==", 0, "nothing runs before it is told to");
  fiber_run(one.fiber);
  fiber_run(one.fiber);
  fiber_run(other.fiber);
  cmp_ok(one.count, "==", 2, "each run goes on where it stepped out");
  cmp_ok(other.count, "==", 1, "and so does another between");
  fiber_run(one.fiber);
  ok(!one.over, "it waits at its last step");
  fiber_run(one.fiber);
  ok(one.over, "and comes to its end");
  fiber_free(one.fiber);
  fiber_free(other.fiber);
  fiber_free(NULL);
  pass("one that has returned, one in its middle and none are freed");
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *
run_on(void *context)
{
  struct counting *counting = context;

  fiber_run(counting->fiber);
  return NULL;
}

static void
test_threads(void)
{
  struct counting counting;
  pthread_t thread;

  new_counting(&counting);
  for (int i = 1; i <= 3; i++) {
    if (pthread_create(&thread, NULL, run_on, &counting) != 0)
      BAIL_OUT("no thread");
    pthread_join(thread, NULL);
    cmp_ok(counting.count, "==", i, "thread %d takes it one step on", i);
  }
  fiber_run(counting.fiber);
  ok(counting.over, "this one to its end");
  fiber_free(counting.fiber);
}

/* ---- its stack ------------------------------------------------------------------------------- */

enum { DEEP = FIBER_STACK * 3 / 4, SOME = 40000 };

struct using {
  struct fiber *fiber;
  size_t size;
  unsigned sum;
};

static void
use_stack(void *context)
{
  struct using *using = context;
  volatile unsigned char *bytes = alloca(using->size);

  for (size_t i = 0; i < using->size; i++)
    bytes[i] = (unsigned char)i;
  fiber_step_out(using->fiber);
  for (size_t i = 0; i < using->size; i++)
    using->sum += bytes[i] == (unsigned char)i;
}

static size_t
cost_of(size_t size)
{
  struct using using = {.size = size};

  using.fiber = fiber_new(use_stack, &using);
  if (!using.fiber)
    BAIL_OUT("no memory for a stack");
  fiber_run(using.fiber);
  size_t cost = fiber_bytes(using.fiber);
  fiber_run(using.fiber);
  cmp_ok(using.sum, "==", size, "%zu bytes of its stack are as they were", size);
  fiber_free(using.fiber);
  return cost;
}

static void
test_stack(void)
{
  size_t small = cost_of(16), more = cost_of(SOME);

  cmp_ok(small, "<", 32768, "one that needs little costs little: %zu bytes", small);
  ok(more > small + SOME / 2 && more < small + 2 * SOME, "one that needs more costs that: %zu",
     more);
  cost_of(DEEP);
}

static void
overflow(void *context)
{
  struct using *using = context;
  struct using deeper = {.size = using->size + 1};
  volatile unsigned char bytes[4096];

  memset((void *)bytes, (int)using->size, sizeof(bytes));
  if (using->size < 2 * FIBER_STACK)
    overflow(&deeper);
  using->sum = deeper.sum + bytes[0];
}

/* What would be another's memory is nobody's: the process ends before it writes there. */
static void
test_overflow(void)
{
  int status = 0;
  pid_t child = fork();

  if (child == 0) {
    struct using using = {.size = 0};
    signal(SIGSEGV, SIG_DFL);
    using.fiber = fiber_new(overflow, &using);
    fiber_run(using.fiber);
    _exit(0);
  }
  waitpid(child, &status, 0);
  ok(child > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
     "what runs over the end of its stack is stopped");
}

int
main(void)
{
  plan(NO_PLAN);
  test_steps();
  test_threads();
  test_stack();
  test_overflow();
  return done_testing();
}
