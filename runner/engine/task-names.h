/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that name tasks and their folders.  Every task can write to the parent folder, so it
 * may take the names of later tasks. */
#ifndef DK_RUNNER_ENGINE_TASK_NAMES_H
#define DK_RUNNER_ENGINE_TASK_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/system/folder.h"

struct task_names {
  uint64_t last;             /* that was given */
  char intruded[64];         /* a name that a task has taken, not yet part of a verdict; "": none */
};

/* Makes a folder under the next number; false with errno.  A name that is taken is freed, or
 * skipped. */
bool task_names_make_folder(struct task_names *names, int parent, char *ret_name, size_t size);
/* After a task: puts back the folders of tasks that it has moved, removes files and folders with
 * the name of a future task or of its files, and notes the first of them. */
void task_names_look(struct task_names *names, const struct folder *folder);

#endif
