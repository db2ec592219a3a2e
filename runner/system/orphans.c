/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, names, ends and reaps orphaned processes. */
#include "runner/system/orphans.h"

#include <ctype.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/grow.h"

enum {
  ROUNDS = 64,
  STEP_MS = 10, STEPS = 100 /* of the wait for a killed process */
};

struct process {
  pid_t pid, parent, group;
  unsigned long long started;
  char state;
  char name[32];
};

struct pids {
  pid_t *items;
  size_t n, room;
};

/* /proc/PID/stat: "17 (name of it) S 1 ..."; the name may hold anything. */
static bool
read_process(pid_t pid, struct process *ret)
{
  char path[64];
  char line[1024];
  int parent;
  int group;

  snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
  FILE *file = fopen(path, "re");
  size_t n = file ? fread(line, 1, sizeof(line) - 1, file) : 0;
  if (file)
    fclose(file);
  line[n] = '\0';
  char *name = strchr(line, '(');
  char *end = strrchr(line, ')');
  /* The start is the 20th after the name. */
  if (!name || !end || end < name
      || sscanf(end + 1, " %c %d %d%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s %llu",
                &ret->state, &parent, &group, &ret->started) != 4)
    return false;
  *end = '\0';
  ret->pid = pid;
  ret->parent = (pid_t)parent;
  ret->group = (pid_t)group;
  snprintf(ret->name, sizeof(ret->name), "%.31s", name + 1);
  return true;
}

static bool
add_pid(struct pids *pids, long pid)
{
  pid_t *grown = dk_grown(pids->items, pids->n, &pids->room, sizeof(*grown));

  if (!grown)
    return false;
  pids->items = grown;
  pids->items[pids->n++] = (pid_t)pid;
  return true;
}

/* Reads the numbers in /proc/self/task/PID/children; false: this kernel does not have the file. */
static bool
children_listed(struct pids *pids)
{
  char path[64];
  long pid;

  snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
  FILE *file = fopen(path, "re");
  if (!file)
    return false;
  while (fscanf(file, "%ld", &pid) == 1 && add_pid(pids, pid))
    continue;
  fclose(file);
  return true;
}

static void
children_searched(struct pids *pids)
{
  DIR *dir = opendir("/proc");
  struct dirent *entry;
  struct process process;
  bool room = true;

  while (dir && room && (entry = readdir(dir)) != NULL) {
    if (isdigit((unsigned char)entry->d_name[0])
        && read_process((pid_t)strtol(entry->d_name, NULL, 10), &process)
        && process.parent == getpid())
      room = add_pid(pids, process.pid);
  }
  if (dir)
    closedir(dir);
}

static void
find_children(struct pids *pids)
{
  pids->n = 0;
  if (!children_listed(pids))
    children_searched(pids);
}

/* ---- strangers ------------------------------------------------------------------------------- */

static bool
add_stranger(struct strangers *strangers, const struct process *process)
{
  struct stranger *grown =
    dk_grown(strangers->items, strangers->n, &strangers->room, sizeof(*grown));

  if (!grown)
    return false;
  strangers->items = grown;
  strangers->items[strangers->n++] =
    (struct stranger){process->pid, process->group, process->started};
  return true;
}

bool
orphans_note_strangers(struct strangers *strangers)
{
  struct pids pids = {0};
  struct process process;
  bool all = true;

  find_children(&pids);
  for (size_t i = 0; all && i < pids.n; i++) {
    if (read_process(pids.items[i], &process))
      all = add_stranger(strangers, &process);
  }
  free(pids.items);
  return all;
}

void
orphans_forget_strangers(struct strangers *strangers)
{
  free(strangers->items);
  *strangers = (struct strangers){0};
}

/* True: a stranger, or a process that a stranger has started and left: that stays in its group,
 * while each of our children makes a group of its own. */
static bool
is_stranger(const struct strangers *strangers, pid_t pid)
{
  struct process process;

  if (strangers->n == 0 || !read_process(pid, &process))
    return false;
  for (size_t i = 0; i < strangers->n; i++) {
    const struct stranger *stranger = &strangers->items[i];
    if (process.group == stranger->group
        || (process.pid == stranger->pid && process.started == stranger->started))
      return true;
  }
  return false;
}

/* ---- whose it is ----------------------------------------------------------------------------- */

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

/* True: the task's own child, or a process that uses the task's folder or output.  A process that
 * uses none of them counts for the first task that asks. */
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
describe_process(const struct process *process, char *text, size_t size)
{
  size_t used = strlen(text);

  if (used + 48 < size)
    snprintf(text + used, size - used, "%sprocess %ld (%s)", used ? ", " : "", (long)process->pid,
             process->name);
}

/* Waits for a killed process, for a limited time, because the kernel may hold it.  Does not wait if
 * it could not be killed. */
static bool
reap(pid_t pid, bool killed)
{
  pid_t found = waitpid(pid, NULL, WNOHANG);

  for (int step = 0; killed && found == 0 && step < STEPS; step++) {
    poll(NULL, 0, STEP_MS);
    found = waitpid(pid, NULL, WNOHANG);
  }
  return found != 0;
}

/* Ends one orphan; a zombie was dead already.  True: it was alive. */
static bool
end_one(struct strangers *strangers, pid_t pid, char *text, size_t size)
{
  struct process process = {0};
  bool seen = read_process(pid, &process);
  bool lived = seen && process.state != 'Z' && process.state != 'X';

  if (lived)
    describe_process(&process, text, size);
  bool gone = reap(pid, kill(pid, SIGKILL) == 0);
  if (!gone && seen) {
    process.group = pid; /* as a stranger it must not protect others of its group */
    add_stranger(strangers, &process);
  }
  return lived;
}

size_t
orphans_end(struct strangers *strangers, const struct running *running, size_t n_running,
            char *text, size_t size)
{
  struct pids pids = {0};
  size_t alive = 0;
  bool found = true;

  text[0] = '\0';
  /* Each one that ends may bring its own children. */
  for (int round = 0; found && round < ROUNDS; round++) {
    find_children(&pids);
    found = false;
    for (size_t i = 0; i < pids.n; i++) {
      pid_t pid = pids.items[i];
      if (is_of_another(pid, running, n_running) || is_stranger(strangers, pid))
        continue;
      found = true;
      alive += end_one(strangers, pid, text, size) ? 1 : 0;
    }
  }
  free(pids.items);
  return alive;
}
