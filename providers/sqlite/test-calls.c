/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between SQLite and the system: see test-calls.h. */
#include "config.h"

#include "providers/sqlite/test-calls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
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
  if (calls.fails_until && calls.count > calls.fails_until)
    return false;
  errno = calls.error;
  return true;
}

static void
tell(struct change change)
{
  int error = errno;

  if (calls.watch)
    calls.watch(&change);
  errno = error;
}

/* ---- files ----------------------------------------------------------------------------------- */

static ssize_t
call_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
  ssize_t n = fails(CALL_WRITE) ? -1 : pwrite(fd, bytes, size, offset);

  if (n > 0)
    tell((struct change){CALL_WRITE, fd, bytes, (size_t)n, offset, false});
  return n;
}

static ssize_t
call_write(int fd, const void *bytes, size_t size)
{
  off_t offset = lseek(fd, 0, SEEK_CUR);
  ssize_t n = fails(CALL_WRITE) ? -1 : write(fd, bytes, size);

  if (n > 0)
    tell((struct change){CALL_WRITE, fd, bytes, (size_t)n, offset, false});
  return n;
}

static ssize_t
call_pread(int fd, void *bytes, size_t size, off_t offset)
{
  return fails(CALL_READ) ? -1 : pread(fd, bytes, size, offset);
}

static int
call_ftruncate(int fd, off_t size)
{
  int result = fails(CALL_CUT) ? -1 : ftruncate(fd, size);

  if (result == 0)
    tell((struct change){CALL_CUT, fd, NULL, 0, size, false});
  return result;
}

static int
call_unlink(const char *path)
{
  return fails(CALL_UNLINK) ? -1 : unlink(path);
}

static int
call_open(const char *path, int flags, int mode)
{
  return fails(CALL_OPEN) ? -1 : open(path, flags, mode);
}

static void *
call_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
  return fails(CALL_MAP) ? MAP_FAILED : mmap(at, size, protection, flags, fd, offset);
}

/* SQLite has no hook for these: its library finds ours first. */
__attribute__((visibility("default"))) int
fdatasync(int fd)
{
  bool has_failed = fails(CALL_SYNC);

  tell((struct change){CALL_SYNC, fd, NULL, 0, 0, has_failed});
  return has_failed ? -1 : 0;
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
    {"pread", (sqlite3_syscall_ptr)call_pread},
    {"pread64", (sqlite3_syscall_ptr)call_pread},
    {"open", (sqlite3_syscall_ptr)call_open},
    {"mmap", (sqlite3_syscall_ptr)call_mmap},
    {"ftruncate", (sqlite3_syscall_ptr)call_ftruncate},
    {"unlink", (sqlite3_syscall_ptr)call_unlink},
  };
  sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
  int n = 0;

  /* Which of the names there are depends on how SQLite was compiled. */
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (vfs->xGetSystemCall(vfs, table[i].name))
      n += vfs->xSetSystemCall(vfs, table[i].name, table[i].call) == SQLITE_OK;
  if (n < 7)
    BAIL_OUT("SQLite's system calls cannot be replaced");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static sqlite3_mem_methods memory;

static void *
call_malloc(int size)
{
  return fails(CALL_MEMORY) ? NULL : memory.xMalloc(size);
}

static void *
call_realloc(void *block, int size)
{
  return fails(CALL_MEMORY) ? NULL : memory.xRealloc(block, size);
}

void
calls_begin_with_memory(void)
{
  if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory) != SQLITE_OK)
    BAIL_OUT("SQLite's memory cannot be had");
  sqlite3_mem_methods ours = memory;
  ours.xMalloc = call_malloc;
  ours.xRealloc = call_realloc;
  if (sqlite3_config(SQLITE_CONFIG_MALLOC, &ours) != SQLITE_OK)
    BAIL_OUT("SQLite's memory cannot be replaced");
  calls_begin();
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
