/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of the turn pool, as its turn sees it.
 *
 * The deadlines thread cancels a call of the provider that hangs, and detects code that does not
 * return.
 */
#ifndef DK_RUNTIME_TURN_TURN_THREAD_H
#define DK_RUNTIME_TURN_TURN_THREAD_H

#include "core/runtime/lease/leases.h"

struct turn_thread;

/* Call these around a call of the provider, which is cancelled at that tick.  Both are false when
 * the runtime was freed; then the call must not be made. */
bool turn_thread_call_begins(struct turn_thread *thread, int64_t at);
bool turn_thread_call_ends(struct turn_thread *thread);
/* Call these around the user's code.  The second is false if the turn was given up: its lease is
 * not kept. */
void turn_thread_code_begins(struct turn_thread *thread, dk_str instance);
bool turn_thread_code_ends(struct turn_thread *thread);
/* For struct past: the code has run too long, or the runtime ends. */
int32_t turn_thread_overdue(void *thread);
/* Whether the code of another thread is stuck with this instance. */
bool turn_thread_stuck_with(struct turn_thread *thread, dk_str instance);
/* Pauses; false: the runtime ends (turn_pool_end), and there is no time to try again. */
bool turn_thread_pause(struct turn_thread *thread, int64_t ms);
bool turn_thread_is_abandoned(struct turn_thread *thread);
/* turn_pool_end no longer waits for this turn: it must be given back. */
bool turn_thread_ends(struct turn_thread *thread);
/* Counts a turn that was given back because the runtime ends; `worked`: successfully. */
void turn_thread_gave_back(struct turn_thread *thread, bool worked);

#endif
