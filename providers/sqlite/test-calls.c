/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between SQLite and the system: see test-calls.h. */
#include "config.h"

#include "providers/sqlite/test-calls.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

#include <sqlite3.h>

#ifdef HAVE_VALGRIND
#include <valgrind/valgrind.h>
#endif

struct calls calls;

/* Whether the call is to fail. */
static bool
fails(enum call_kind kind)
{
  if (!(calls.kinds & kind))
    return false;
  if (++calls.count == calls.dies_before)
    raise(SIGKILL);
  if (!calls.fails_from || calls.count < calls.fails_from)
    return false;
  errno = calls.error;
  return true;
}

static ssize_t
call_write(int fd, const void *bytes, size_t size)
{
  return fails(CALL_WRITE) ? -1 : write(fd, bytes, size);
}

static ssize_t
call_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
  return fails(CALL_WRITE) ? -1 : pwrite(fd, bytes, size, offset);
}

static int
call_ftruncate(int fd, off_t size)
{
  return fails(CALL_CUT) ? -1 : ftruncate(fd, size);
}

static int
call_unlink(const char *path)
{
  return fails(CALL_UNLINK) ? -1 : unlink(path);
}

/* SQLite has no hook for these: its library finds ours first. */
__attribute__((visibility("default"))) int
fdatasync(int fd)
{
  (void)fd;
  return fails(CALL_SYNC) ? -1 : 0;
}

__attribute__((visibility("default"))) int
fsync(int fd)
{
  return fdatasync(fd);
}

void
calls_begin(void)
{
  static const struct {
    const char *name;
    sqlite3_syscall_ptr call;
  } table[] = {
    {"write", (sqlite3_syscall_ptr)call_write},
    {"pwrite", (sqlite3_syscall_ptr)call_pwrite},
    {"pwrite64", (sqlite3_syscall_ptr)call_pwrite},
    {"ftruncate", (sqlite3_syscall_ptr)call_ftruncate},
    {"unlink", (sqlite3_syscall_ptr)call_unlink},
  };
  sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
  int n = 0;

  /* Which of the names there are depends on how SQLite was compiled. */
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (vfs->xGetSystemCall(vfs, table[i].name))
      n += vfs->xSetSystemCall(vfs, table[i].name, table[i].call) == SQLITE_OK;
  if (n < 4)
    BAIL_OUT("SQLite's system calls cannot be replaced");
}

int
calls_step(void)
{
#ifdef HAVE_VALGRIND
  if (RUNNING_ON_VALGRIND)
    return 19;
#endif
  return 1;
}
