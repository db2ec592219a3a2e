/* SPDX-License-Identifier: Apache-2.0 */
/* What the process may do with the files of a store: see rights.h. */
#include "providers/sqlite/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_NAME = 4096 + 16 };

/* The errno of a lasting lack, or 0. */
static int
lack_of(const char *name, int right)
{
  if (faccessat(AT_FDCWD, name, right, AT_EACCESS) == 0)
    return 0;
  return errno == EACCES || errno == EPERM || errno == EROFS ? errno : 0;
}

static bool
lacks(const char *name, int right, struct why *why)
{
  int error = lack_of(name, right);
  char room[128];

  if (error == 0)
    return false;
  if (right & W_OK)
    why_set(why, DK_REFUSED,
            "%s: the file cannot be written: %s; give the process the right to write it and its "
            "folder, or open the store read-only",
            name, strerror_r(error, room, sizeof room));
  else
    why_set(why, DK_REFUSED, "%s: the file cannot be read: %s; give the process the right to "
            "read it", name, strerror_r(error, room, sizeof room));
  return true;
}

static bool
folder_lacks(const char *path, struct why *why)
{
  char folder[MAX_NAME], room[128];
  const char *slash = strrchr(path, '/');
  int size = slash && slash != path ? (int)(slash - path) : 1;

  snprintf(folder, sizeof folder, "%.*s", size, slash ? path : ".");
  int error = lack_of(folder, W_OK | X_OK);
  if (error)
    why_set(why, DK_REFUSED,
            "%s: the folder cannot be written: %s; SQLite makes files beside the store; give the "
            "process the right to write the folder",
            folder, strerror_r(error, room, sizeof room));
  return error != 0;
}

/* A reader writes SQLite's index of the log if it may; without the log and its index it has to
 * make them. */
bool
rights_are_lacking(const char *path, bool to_write, struct why *why)
{
  static const char *const beside[] = {"-wal", "-shm", "-journal"};
  char name[MAX_NAME];
  bool is_missing = false;

  if (lacks(path, to_write ? R_OK | W_OK : R_OK, why))
    return true;
  for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
    snprintf(name, sizeof name, "%s%s", path, beside[i]);
    if (lacks(name, to_write ? R_OK | W_OK : R_OK, why))
      return true;
    if (i < 2 && faccessat(AT_FDCWD, name, F_OK, AT_EACCESS) != 0 && errno == ENOENT)
      is_missing = true;
  }
  if (is_missing && folder_lacks(path, why))
    return true;
  snprintf(name, sizeof name, "%s-shm", path);
  return lacks(name, W_OK, why);
}
