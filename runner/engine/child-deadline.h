/* SPDX-License-Identifier: Apache-2.0 */
/* How much time the child of a slot gets.  All times are those of clock_ns. */
#ifndef DK_RUNNER_ENGINE_CHILD_DEADLINE_H
#define DK_RUNNER_ENGINE_CHILD_DEADLINE_H

#include "runner/engine/slot.h"

/* Each store to be removed gets the whole time. */
void child_deadline_of_next_store(struct slot *slot);
/* Called when the deadline has passed: moves it if the child has not begun, could not run, or still
 * works, within the limits of its task.  False: the child must be ended. */
bool child_deadline_move(struct slot *slot, int64_t now);
/* Notes how far the child was when its time was up. */
void child_deadline_passed(struct slot *slot, int64_t now);

#endif
