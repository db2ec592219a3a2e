/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's shared memory in the hands of a connection: see shm.h. */
#include "providers/sqlite/shm.h"

#include <poll.h>
#include <stddef.h>

#include "providers/sqlite/rights.h"

/* An unlock fails where the system has no memory left for it; real time, 1 ms each. */
enum { UNLOCK_ATTEMPTS = 1000, NEWEST_VERSION = 3 };

static const struct shm_methods *
methods_of(const sqlite3_file *file)
{
  return (const struct shm_methods *)(const void *)file->pMethods;
}

static int
lock(sqlite3_file *file, int first, int n, int flags)
{
  const sqlite3_io_methods *real = methods_of(file)->real;
  int code = real->xShmLock(file, first, n, flags);

  if (!(flags & SQLITE_SHM_UNLOCK))
    return code;
  for (int i = 0; (code & 0xff) == SQLITE_BUSY && i < UNLOCK_ATTEMPTS; i++) {
    poll(NULL, 0, i == 0 ? 0 : 1);
    code = real->xShmLock(file, first, n, flags);
  }
  return code;
}

static int
map(sqlite3_file *file, int region, int size, int extends, void volatile **ret_memory)
{
  const struct shm_methods *methods = methods_of(file);
  struct why why;
  int code = methods->real->xShmMap(file, region, size, extends, ret_memory);

  if ((code & 0xff) != SQLITE_READONLY || rights_are_lacking(methods->path, true, &why))
    return code;
  return SQLITE_IOERR_SHMOPEN;
}

int
shm_watch(sqlite3 *db, struct shm_methods *methods, const char *path)
{
  sqlite3_file *file = NULL;
  int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);

  if (code != SQLITE_OK || !file || !file->pMethods || file->pMethods->iVersion < 2)
    return code;
  *methods = (struct shm_methods){.real = file->pMethods, .path = path};
  methods->ours = *file->pMethods;
  if (methods->ours.iVersion > NEWEST_VERSION)
    methods->ours.iVersion = NEWEST_VERSION;
  methods->ours.xShmLock = lock;
  methods->ours.xShmMap = map;
  file->pMethods = &methods->ours;
  return SQLITE_OK;
}
