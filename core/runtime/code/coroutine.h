/* SPDX-License-Identifier: Apache-2.0 */
/* A coroutine: a function that steps out before it returns, and continues later.
 *
 * It has its own thread and runs only there, while the thread that runs it waits.  So everything
 * that compilers and libraries assume about a thread holds (errno, thread-local variables,
 * exceptions being handled); it would not hold if a stack moved between threads.  Its frames must
 * own nothing: if it is freed before it has returned, they are abandoned.
 */
#ifndef DK_RUNTIME_CODE_COROUTINE_H
#define DK_RUNTIME_CODE_COROUTINE_H

#include <stdbool.h>
#include <stddef.h>

/* The size of its stack.  Pages that are not in use cost no memory; an overflow is a fault. */
enum { COROUTINE_STACK = 1024 * 1024 };

struct coroutine;

/* Does not run it yet.  NULL: no memory, no threads. */
struct coroutine *coroutine_new(void (*function)(void *context), void *context);
/* Runs it from where it stepped out until it steps out again or returns; not again once it has
 * returned.  One caller at a time. */
void coroutine_run(struct coroutine *coroutine);
/* Called by the function itself: coroutine_run returns, and the next coroutine_run continues
 * here. */
void coroutine_step_out(struct coroutine *coroutine);
/* Its thread has ended when this returns.  NULL is allowed. */
void coroutine_free(struct coroutine *coroutine);
/* The memory that it uses at present, approximately. */
size_t coroutine_bytes(const struct coroutine *coroutine);

#endif
