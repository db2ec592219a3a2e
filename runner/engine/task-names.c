/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers tasks, and finds numbers that a task has taken: see task-names.h. */
#include "runner/engine/task-names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/system/remove.h"

enum { MOST_TRIES = 100 }; /* for one task, if its name is taken and cannot be freed */

static void
note_intrusion(struct task_names *names, const char *name)
{
  if (!names->intruded[0])
    snprintf(names->intruded, sizeof(names->intruded), "%.60s", name);
}

static void
note_task(struct task_names *names, const char *name)
{
  char path[64];

  snprintf(path, sizeof(path), "../%.48s", name);
  note_intrusion(names, path);
}

bool
task_names_make_folder(struct task_names *names, int parent, char *ret_name, size_t size)
{
  for (int i = 0; i < MOST_TRIES; i++) {
    snprintf(ret_name, size, "%llu", (unsigned long long)++names->last);
    if (mkdirat(parent, ret_name, 0700) == 0)
      return true;
    if (errno != EEXIST)
      return false;
    note_task(names, ret_name);
    if (remove_entry(parent, ret_name, NULL) && mkdirat(parent, ret_name, 0700) == 0)
      return true;
  }
  return false;
}

/* "17", "17.out", "17.err": the names of a task that was not started yet, or of no task. */
static bool
is_to_come(const struct task_names *names, const char *name)
{
  char *end;
  uint64_t number = strtoull(name, &end, 10);

  return end > name && number > names->last
         && (*end == '\0' || strcmp(end, ".out") == 0 || strcmp(end, ".err") == 0);
}

/* Removes and notes files and folders with the name of a future task, or of its files. */
static void
clear(struct task_names *names, int folder)
{
  int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
  const struct dirent *entry;

  while (dir && (entry = readdir(dir)) != NULL) {
    if (!is_to_come(names, entry->d_name))
      continue;
    note_task(names, entry->d_name);
    remove_entry(fd, entry->d_name, NULL);
  }
  if (dir)
    closedir(dir);
  else if (fd >= 0)
    close(fd);
}

void
task_names_look(struct task_names *names, const struct folder *folder)
{
  const char *moved = folder_put_back(folder);
  char path[32];

  snprintf(path, sizeof(path), "../../%s", moved ? moved : "");
  if (moved)
    note_intrusion(names, path);
  clear(names, folder->checks);
  clear(names, folder->others);
}
