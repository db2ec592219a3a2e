/* SPDX-License-Identifier: Apache-2.0 */
/* Each step opens one name in an open folder, and checks where it leads. */
#include "runner/system/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Leaves errno as it is. */
static bool
note_remains(struct remains *left, const char *name, const char *why)
{
  if (left && left->n++ == 0) {
    snprintf(left->name, sizeof(left->name), "%s", name);
    snprintf(left->why, sizeof(left->why), "%s", why);
  }
  return false;
}

/* A bind mount has the same device, but a mount number of its own. */
static bool
is_same_mount(int one, int other)
{
  struct statx a, b;

  if (statx(one, "", AT_EMPTY_PATH, STATX_MNT_ID, &a) != 0
      || statx(other, "", AT_EMPTY_PATH, STATX_MNT_ID, &b) != 0)
    return false;
  return a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor
         && (!(a.stx_mask & b.stx_mask & STATX_MNT_ID) || a.stx_mnt_id == b.stx_mnt_id);
}

/* Opens the folder `path` (an O_PATH descriptor) for reading; -1 with errno.  Its owner might no
 * longer have the right to enter it. */
static int
open_to_read(int path)
{
  int fd = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  char name[64];

  if (fd >= 0)
    return fd;
  snprintf(name, sizeof(name), "/proc/self/fd/%d", path);
  return chmod(name, 0700) == 0 ? openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* Only a folder gives these errors. */
bool
remove_entry(int folder, const char *name, struct remains *left)
{
  if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
    return true;
  return errno == EISDIR || errno == EPERM ? remove_at(folder, name, left)
                                           : note_remains(left, name, strerror(errno));
}

bool
remove_inside(int folder, struct remains *left)
{
  int fd = open_to_read(folder);
  DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
  bool all_gone = true;
  struct dirent *entry;

  if (!dir) {
    int reason = errno;
    note_remains(left, ".", strerror(reason));
    if (fd >= 0)
      close(fd);
    errno = reason;
    return false;
  }
  while ((entry = readdir(dir)) != NULL) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      all_gone = remove_entry(fd, entry->d_name, left) && all_gone;
  }
  closedir(dir);
  return all_gone;
}

bool
remove_at(int parent, const char *name, struct remains *left)
{
  int path = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

  if (path < 0)
    return errno == ENOENT || note_remains(left, name, strerror(errno));
  bool gone = is_same_mount(parent, path);
  if (!gone)
    note_remains(left, name, "another file system is mounted there");
  else
    gone = remove_inside(path, left);
  close(path);
  if (gone && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
    gone = note_remains(left, name, strerror(errno));
  return gone;
}
