/* SPDX-License-Identifier: Apache-2.0 */
/* A coroutine: a function that steps out in its middle and goes on later.
 *
 * It has a thread of its own, and runs there and nowhere else, while whoever has told it to run
 * waits: so what compilers and libraries take for granted of a thread holds (errno, thread-local
 * variables, exceptions that are handled), which it would not if a stack went from thread to
 * thread.  What its frames hold is nobody's when it is freed before it has returned: they own
 * nothing.
 */
#ifndef DK_RUNTIME_CODE_COROUTINE_H
#define DK_RUNTIME_CODE_COROUTINE_H

#include <stdbool.h>
#include <stddef.h>

/* The room on its stack.  Pages that are not in use cost no memory; what runs over its end is a
 * fault. */
enum { COROUTINE_STACK = 1024 * 1024 };

struct coroutine;

/* Nothing of it runs yet.  NULL: no memory, no threads. */
struct coroutine *coroutine_new(void (*function)(void *context), void *context);
/* Runs it from where it stands until it steps out or returns; not again once it has returned.  One
 * caller at a time. */
void coroutine_run(struct coroutine *coroutine);
/* For the function itself: coroutine_run returns, and the next one goes on here. */
void coroutine_step_out(struct coroutine *coroutine);
/* Its thread has ended when this returns.  NULL is allowed. */
void coroutine_free(struct coroutine *coroutine);
/* What it costs where it stands, about. */
size_t coroutine_bytes(const struct coroutine *coroutine);

#endif
