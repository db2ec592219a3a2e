/* SPDX-License-Identifier: Apache-2.0 */
/* A seat: one thread of the turns, as its job sees it.
 *
 * A watcher calls a hanging call of the provider back, and finds code that does not come back.
 */
#ifndef DK_RUNTIME_TURN_TURN_THREAD_H
#define DK_RUNTIME_TURN_TURN_THREAD_H

#include "core/runtime/lease/leases.h"

struct seat;

/* Around a call of the provider, which is called back at that tick.  Both are false when the
 * runtime has gone; then there is no call. */
bool seat_call_begins(struct seat *seat, int64_t at);
bool seat_call_ends(struct seat *seat);
/* Around the user's code.  The end is false when it was given up: its lease is not kept. */
void seat_code_begins(struct seat *seat, dk_str instance);
bool seat_code_ends(struct seat *seat);
/* For struct past: too long, or the runtime ends. */
int32_t seat_overdue(void *seat);
/* Is another seat's code stuck with this instance? */
bool seat_stuck_with(struct seat *seat, dk_str instance);
/* Waits; false: the runtime ends (turns_end), and there is no time to try again. */
bool seat_pause(struct seat *seat, int64_t ms);
bool seat_is_left(struct seat *seat);
/* turns_end waits for this job no longer: it is to be given back. */
bool seat_ends(struct seat *seat);
/* A turn was given back because the runtime ends; whether that worked. */
void seat_gave_back(struct seat *seat, bool worked);

#endif
