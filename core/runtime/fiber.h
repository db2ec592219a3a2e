/* SPDX-License-Identifier: Apache-2.0 */
/* A fiber: a function on a stack of its own, which steps out in its middle and goes on later.
 *
 * One thread at a time runs it, and it need not be the same each time.  What its frames hold is
 * nobody's when it is freed before it has returned: they own nothing.
 */
#ifndef DK_RUNTIME_FIBER_H
#define DK_RUNTIME_FIBER_H

#include <stdbool.h>
#include <stddef.h>

/* The room on its stack.  Pages that were never touched cost no memory; what runs over its end is
 * a fault, as on a thread's. */
enum { FIBER_STACK = 1024 * 1024 };

struct fiber;

/* Nothing of it runs yet.  NULL: no memory. */
struct fiber *fiber_new(void (*function)(void *context), void *context);
/* Runs it from where it stands until it steps out or returns; not again once it has returned. */
void fiber_run(struct fiber *fiber);
/* For the function itself: fiber_run returns, and the next one goes on here. */
void fiber_step_out(struct fiber *fiber);
/* NULL is allowed. */
void fiber_free(struct fiber *fiber);
/* What it costs where it stands, about. */
size_t fiber_bytes(const struct fiber *fiber);

#endif
