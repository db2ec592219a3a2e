/* SPDX-License-Identifier: Apache-2.0 */
/* A thread: one thread of the turns, as its turn sees it.
 *
 * A deadlines thread calls a hanging call of the provider back, and finds code that does not come
 * back.
 */
#ifndef DK_RUNTIME_TURN_TURN_THREAD_H
#define DK_RUNTIME_TURN_TURN_THREAD_H

#include "core/runtime/lease/leases.h"

struct turn_thread;

/* Around a call of the provider, which is called back at that tick.  Both are false when the
 * runtime has gone; then there is no call. */
bool turn_thread_call_begins(struct turn_thread *thread, int64_t at);
bool turn_thread_call_ends(struct turn_thread *thread);
/* Around the user's code.  The end is false when it was given up: its lease is not kept. */
void turn_thread_code_begins(struct turn_thread *thread, dk_str instance);
bool turn_thread_code_ends(struct turn_thread *thread);
/* For struct past: too long, or the runtime ends. */
int32_t turn_thread_overdue(void *thread);
/* Is another thread's code stuck with this instance? */
bool turn_thread_stuck_with(struct turn_thread *thread, dk_str instance);
/* Waits; false: the runtime ends (turn_pool_end), and there is no time to try again. */
bool turn_thread_pause(struct turn_thread *thread, int64_t ms);
bool turn_thread_is_left(struct turn_thread *thread);
/* turn_pool_end waits for this turn no longer: it is to be given back. */
bool turn_thread_ends(struct turn_thread *thread);
/* A turn was given back because the runtime ends; whether that worked. */
void turn_thread_gave_back(struct turn_thread *thread, bool worked);

#endif
