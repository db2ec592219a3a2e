/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that step out and continue, each in its own thread, whichever thread runs them. */
#include <alloca.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/runtime/code/coroutine.h"

struct counting {
  struct coroutine *coroutine;
  int count;
  int strays;    /* how often a thread has found the data of another */
  bool over;
};

static _Thread_local int of_this_thread;
/* The part of a thread's memory that is no stack. */
enum { LARGE = 400 * 1024 };
static _Thread_local unsigned char large[LARGE];

/* Its own number is on its own stack, and is unchanged when it continues; so are the variables of
 * its thread, even if the compiler has kept their addresses. */
static void
count(void *context)
{
  struct counting *counting = context;
  pthread_t self = pthread_self();

  for (int own = 1; own <= 3; own++) {
    counting->count = own;
    of_this_thread = own;
    errno = own;
    coroutine_step_out(counting->coroutine);
    counting->strays += of_this_thread != own || !pthread_equal(self, pthread_self());
    errno = 0;
    counting->strays += strtol("99999999999999999999", NULL, 10) != LONG_MAX || errno != ERANGE;
  }
  counting->over = true;
}

static struct counting
new_counting(struct counting *counting)
{
  *counting = (struct counting){.coroutine = coroutine_new(count, counting)};
  if (!counting->coroutine)
    BAIL_OUT("no memory for a stack");
  return *counting;
}

static void
test_steps(void)
{
  struct counting one, other;

  new_counting(&one);
  new_counting(&other);
  cmp_ok(one.count, "==", 0, "nothing runs before coroutine_run");
  coroutine_run(one.coroutine);
  coroutine_run(one.coroutine);
  coroutine_run(other.coroutine);
  cmp_ok(one.count, "==", 2, "each run continues where it stepped out");
  cmp_ok(other.count, "==", 1, "and so does another one in between");
  coroutine_run(one.coroutine);
  ok(!one.over, "it waits at its last step");
  coroutine_run(one.coroutine);
  ok(one.over, "and comes to its end");
  coroutine_free(one.coroutine);
  coroutine_free(other.coroutine);
  coroutine_free(NULL);
  pass("one that has returned, one in its middle and none are freed");
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *
run_on(void *context)
{
  struct counting *counting = context;

  coroutine_run(counting->coroutine);
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
  of_this_thread = 7;
  coroutine_run(counting.coroutine);
  ok(counting.over, "this one to its end");
  cmp_ok(counting.strays, "==", 0, "what is the thread's is its own all the while");
  cmp_ok(of_this_thread, "==", 7, "and this one's is this one's");
  coroutine_free(counting.coroutine);
}

/* The memory that a stack returns is its own, and not that of threads beside it. */
static void
fill(void *context)
{
  struct counting *counting = context;
  unsigned char number = (unsigned char)(counting->count + 1);

  memset(large, number, LARGE);
  coroutine_step_out(counting->coroutine);
  for (size_t i = 0; i < LARGE; i++)
    counting->strays += large[i] != number;
}

static void
test_neighbours(void)
{
  enum { N = 8 };
  struct counting countings[N];
  int strays = 0;

  for (int i = 0; i < N; i++) {
    countings[i] = (struct counting){.count = i};
    countings[i].coroutine = coroutine_new(fill, &countings[i]);
    if (!countings[i].coroutine)
      BAIL_OUT("no memory for a stack");
  }
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < N; i++)
      coroutine_run(countings[i].coroutine);
  for (int i = 0; i < N; i++) {
    strays += countings[i].strays;
    coroutine_free(countings[i].coroutine);
  }
  cmp_ok(strays, "==", 0, "a stack returns no memory of the threads beside it");
}

/* ---- its stack ------------------------------------------------------------------------------- */

enum { DEEP = COROUTINE_STACK / 2, SOME = 40000 };

struct using {
  struct coroutine *coroutine;
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
  coroutine_step_out(using->coroutine);
  for (size_t i = 0; i < using->size; i++)
    using->sum += bytes[i] == (unsigned char)i;
}

static size_t
cost_of(size_t size)
{
  struct using using = {.size = size};

  using.coroutine = coroutine_new(use_stack, &using);
  if (!using.coroutine)
    BAIL_OUT("no memory for a stack");
  coroutine_run(using.coroutine);
  size_t cost = coroutine_bytes(using.coroutine);
  coroutine_run(using.coroutine);
  cmp_ok(using.sum, "==", size, "%zu bytes of its stack are as they were", size);
  coroutine_free(using.coroutine);
  return cost;
}

static void
test_stack(void)
{
  size_t small = cost_of(16), more = cost_of(SOME);

  cmp_ok(small, "<", 65536, "one that needs little costs little: %zu bytes", small);
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
  if (using->size < 2 * COROUTINE_STACK)
    overflow(&deeper);
  using->sum = deeper.sum + bytes[0];
}

/* No memory of other threads is hit: the process ends before it writes there. */
static void
test_overflow(void)
{
  int status = 0;
  pid_t child = fork();

  if (child == 0) {
    struct using using = {.size = 0};
    signal(SIGSEGV, SIG_DFL);
    using.coroutine = coroutine_new(overflow, &using);
    coroutine_run(using.coroutine);
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
  test_neighbours();
  test_stack();
  test_overflow();
  return done_testing();
}
