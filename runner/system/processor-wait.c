/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what the kernel's scheduler counts for each thread: /proc/PID/task/TID/schedstat has the
 * time on a processor, the time in its queue, and how often it ran. */
#include "runner/system/processor-wait.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

static int64_t
starved_thread(pid_t pid, const char *thread)
{
  char path[300];
  int64_t ran = 0;
  int64_t queued = 0;

  snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)pid, thread);
  FILE *file = fopen(path, "re");
  if (!file)
    return 0;
  if (fscanf(file, "%" SCNd64 " %" SCNd64, &ran, &queued) != 2)
    queued = 0;
  fclose(file);
  return queued;
}

int64_t
processor_wait_ns(pid_t pid)
{
  char path[64];
  int64_t most = 0;

  snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
  DIR *threads = opendir(path);
  if (!threads)
    return 0;
  for (const struct dirent *entry; (entry = readdir(threads)) != NULL;) {
    int64_t starved = entry->d_name[0] == '.' ? 0 : starved_thread(pid, entry->d_name);
    most = starved > most ? starved : most;
  }
  closedir(threads);
  return most;
}
