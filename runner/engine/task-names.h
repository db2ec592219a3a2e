/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers by which tasks and their folders are called, in folders that every task can write to:
 * one may take those of the tasks after it. */
#ifndef DK_RUNNER_ENGINE_TASK_NAMES_H
#define DK_RUNNER_ENGINE_TASK_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runner/system/folder.h"

struct task_names {
  uint64_t last;             /* that was given */
  char intruded[64];         /* what a task has taken, and nobody was blamed for yet; "": nothing */
};

/* A new folder under the next number; false with errno.  What has that name is removed, or passed
 * by. */
bool task_names_make_folder(struct task_names *names, int parent, char *ret_name, size_t size);
/* After a task: puts back the folders of tasks that it has moved, removes what has the name of a
 * task to come or of its files, and notes the first of them. */
void task_names_look(struct task_names *names, const struct folder *folder);

#endif
