/* SPDX-License-Identifier: Apache-2.0 */
/* How much time the child of a slot gets.  Times are those of clock_ns. */
#ifndef DK_RUNNER_ENGINE_CHILD_DEADLINE_H
#define DK_RUNNER_ENGINE_CHILD_DEADLINE_H

#include "runner/engine/slot.h"

/* Each store that is removed has the whole time. */
void child_deadline_of_next_store(struct slot *slot);
/* Its deadline is over: moves it if the child has not begun, could not run, or still works, within
 * the bounds of its task.  False: its time is up. */
bool child_deadline_move(struct slot *slot, int64_t now);
/* Notes how far it was when its time was up. */
void child_deadline_passed(struct slot *slot, int64_t now);

#endif
