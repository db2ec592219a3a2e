/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, names, ends and reaps processes that nobody waits for. */
#include "runner/orphans.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, ROUNDS = 64 };

struct process {
  pid_t pid;
  pid_t parent;
  char state;
  char name[32];
};

/* /proc/PID/stat: "17 (name of it) S 1 ..."; the name may hold anything. */
static bool
look_at(pid_t pid, struct process *ret)
{
  char path[64];
  char line[512];
  int parent;

  snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
  FILE *file = fopen(path, "re");
  size_t n = file ? fread(line, 1, sizeof(line) - 1, file) : 0;
  if (file)
    fclose(file);
  line[n] = '\0';
  char *name = strchr(line, '(');
  char *end = strrchr(line, ')');
  if (!name || !end || end < name || sscanf(end + 1, " %c %d", &ret->state, &parent) != 2)
    return false;
  *end = '\0';
  ret->pid = pid;
  ret->parent = (pid_t)parent;
  snprintf(ret->name, sizeof(ret->name), "%.31s", name + 1);
  return true;
}

/* The numbers in /proc/self/task/PID/children; -1: this kernel does not keep them. */
static int
children_listed(pid_t *pids)
{
  char path[64];
  int n = 0;
  long pid;

  snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
  FILE *file = fopen(path, "re");
  if (!file)
    return -1;
  while (n < MOST && fscanf(file, "%ld", &pid) == 1)
    pids[n++] = (pid_t)pid;
  fclose(file);
  return n;
}

static int
children_searched(pid_t *pids)
{
  DIR *dir = opendir("/proc");
  struct dirent *entry;
  struct process process;
  int n = 0;

  while (dir && n < MOST && (entry = readdir(dir)) != NULL) {
    if (isdigit((unsigned char)entry->d_name[0])
        && look_at((pid_t)strtol(entry->d_name, NULL, 10), &process)
        && process.parent == getpid())
      pids[n++] = process.pid;
  }
  if (dir)
    closedir(dir);
  return n;
}

/* Is the link "folder", "folder/..." or "folder.out"? */
static bool
leads_to(pid_t pid, const char *link, const char *folder)
{
  char path[64];
  char target[512];
  size_t length = strlen(folder);

  snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, link);
  ssize_t n = readlink(path, target, sizeof(target) - 1);
  target[n > 0 ? n : 0] = '\0';
  return strncmp(target, folder, length) == 0 && strchr("/.", target[length]) != NULL;
}

/* The task's own child, or a process that has the task's folder or output as its own.  What has
 * given up all of them belongs to whoever asks first. */
static bool
belongs_to(pid_t pid, const struct running *task)
{
  if (pid == task->pid)
    return true;
  return task->folder
         && (leads_to(pid, "cwd", task->folder) || leads_to(pid, "fd/1", task->folder)
             || leads_to(pid, "fd/2", task->folder));
}

static bool
is_of_another(pid_t pid, const struct running *running, size_t n_running)
{
  for (size_t i = 0; i < n_running; i++) {
    if (belongs_to(pid, &running[i]))
      return true;
  }
  return false;
}

static void
describe(const struct process *process, char *text, size_t size)
{
  size_t used = strlen(text);

  if (used + 48 < size)
    snprintf(text + used, size - used, "%sprocess %ld (%s)", used ? ", " : "", (long)process->pid,
             process->name);
}

/* Ends one child that is not ours; a zombie was dead already.  True if it lived. */
static bool
end_one(pid_t pid, char *text, size_t size)
{
  struct process process = {0};
  bool lived = look_at(pid, &process) && process.state != 'Z' && process.state != 'X';

  if (lived)
    describe(&process, text, size);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  return lived;
}

size_t
orphans_end(const struct running *running, size_t n_running, char *text, size_t size)
{
  pid_t pids[MOST];
  size_t alive = 0;
  bool found = true;

  text[0] = '\0';
  /* Each one that ends may bring its own children. */
  for (int round = 0; found && round < ROUNDS; round++) {
    int n = children_listed(pids);
    if (n < 0)
      n = children_searched(pids);
    found = false;
    for (int i = 0; i < n; i++) {
      if (is_of_another(pids[i], running, n_running))
        continue;
      found = true;
      alive += end_one(pids[i], text, size) ? 1 : 0;
    }
  }
  return alive;
}
