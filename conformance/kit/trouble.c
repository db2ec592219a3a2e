/* SPDX-License-Identifier: Apache-2.0 */
/* Whose fault it is that a store is unavailable: the surroundings', if the kit itself finds what is
 * missing there, or cannot look (a server); else the provider's. */
#include "conformance/kit/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What the store needs at least for one operation. */
enum { ROOM = 64 * 1024 };

/* A file without a name, where the store lies: made, written and synced. */
static int
write_beside(const char *folder)
{
  static const char zeros[ROOM];
  int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  int reason = fd < 0 ? errno : 0;

  if (fd >= 0 && write(fd, zeros, sizeof(zeros)) != (ssize_t)sizeof(zeros))
    reason = errno != 0 ? errno : ENOSPC;
  else if (fd >= 0 && fsync(fd) != 0)
    reason = errno;
  if (fd >= 0)
    close(fd);
  /* A file system without such files says nothing of its room. */
  return reason == EOPNOTSUPP || reason == EISDIR || reason == EINVAL ? 0 : reason;
}

/* Of a store that is a path; else the check's own. */
static void
folder_of_store(const struct dk_check *t, char *folder, size_t size)
{
  const char *value = t->shared->store_value;
  const char *slash = value[0] == '/' ? strrchr(value, '/') : NULL;

  if (slash != NULL && slash != value)
    snprintf(folder, size, "%.*s", (int)(slash - value), value);
  else
    snprintf(folder, size, "%s", t->job->folder != NULL ? t->job->folder : ".");
}

enum verdict
kit_judge_unavailable(struct dk_check *t, char *ret_why, size_t size)
{
  char folder[KIT_MAX_VALUE];

  ret_why[0] = '\0';
  if (t->provider == NULL || t->provider->shared >= 3)
    return VERDICT_ERROR;
  errno = 0;
  folder_of_store(t, folder, sizeof(folder));
  int reason = write_beside(folder);
  if (reason != 0) {
    snprintf(ret_why, size, " (nor can the kit write in %.200s: %s)", folder, strerror(reason));
    return VERDICT_ERROR;
  }
  snprintf(ret_why, size, " (the kit itself can write there)");
  snprintf(t->report->clause, sizeof(t->report->clause), "ERR-1");
  return VERDICT_FAIL;
}
