/* SPDX-License-Identifier: Apache-2.0 */
/* Of what disk.h counts: the calls that change a name or its rights, which are not brought back
 * after a power cut, and those that give a descriptor. */
#include "conformance/kit/disk.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conformance/kit/shortage.h"

#define EXPORTED __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* ---- names and rights ------------------------------------------------------------------------ */

EXPORTED int rename(const char *from, const char *to);
EXPORTED int renameat(int from_folder, const char *from, int to_folder, const char *to);
EXPORTED int link(const char *from, const char *to);
EXPORTED int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
EXPORTED int unlink(const char *path);
EXPORTED int unlinkat(int folder, const char *path, int flags);
EXPORTED int mkdir(const char *path, mode_t mode);
EXPORTED int rmdir(const char *path);
EXPORTED int mknod(const char *path, mode_t mode, dev_t device);
EXPORTED int chmod(const char *path, mode_t mode);
EXPORTED int fchmod(int fd, mode_t mode);

int
renameat(int from_folder, const char *from, int to_folder, const char *to)
{
  if (!kit_disk_begins(KIT_CHANGES, "rename", from))
    return -1;
  return (int)syscall(SYS_renameat, from_folder, from, to_folder, to);
}

int
rename(const char *from, const char *to)
{
  return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int
linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
  if (!kit_disk_begins(KIT_CHANGES, "link", to))
    return -1;
  return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

int
link(const char *from, const char *to)
{
  return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int
unlinkat(int folder, const char *path, int flags)
{
  if (!kit_disk_begins(KIT_CHANGES, (flags & AT_REMOVEDIR) ? "rmdir" : "unlink", path))
    return -1;
  return (int)syscall(SYS_unlinkat, folder, path, flags);
}

int
unlink(const char *path)
{
  return unlinkat(AT_FDCWD, path, 0);
}

int
rmdir(const char *path)
{
  return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int
mkdir(const char *path, mode_t mode)
{
  if (!kit_disk_begins(KIT_CHANGES, "mkdir", path))
    return -1;
  return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int
mknod(const char *path, mode_t mode, dev_t device)
{
  if (!kit_disk_begins(KIT_CHANGES, "mknod", path))
    return -1;
  return (int)syscall(SYS_mknodat, AT_FDCWD, path, mode, device);
}

int
chmod(const char *path, mode_t mode)
{
  if (!kit_disk_begins(KIT_CHANGES, "chmod", path))
    return -1;
  return (int)syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}

int
fchmod(int fd, mode_t mode)
{
  if (!kit_disk_begins(KIT_CHANGES, "fchmod", "a descriptor"))
    return -1;
  return (int)syscall(SYS_fchmod, fd, mode);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

EXPORTED int open(const char *path, int flags, ...);
EXPORTED int open64(const char *path, int flags, ...);
EXPORTED int openat(int folder, const char *path, int flags, ...);
EXPORTED int openat64(int folder, const char *path, int flags, ...);
EXPORTED int creat(const char *path, mode_t mode);
EXPORTED int creat64(const char *path, mode_t mode);
EXPORTED int socket(int family, int type, int protocol);
EXPORTED int socketpair(int family, int type, int protocol, int ends[2]);
EXPORTED int pipe(int ends[2]);
EXPORTED int pipe2(int ends[2], int flags);
EXPORTED int dup(int fd);
EXPORTED int eventfd(unsigned count, int flags);
EXPORTED int epoll_create1(int flags);
EXPORTED int timerfd_create(int clock, int flags);
EXPORTED int inotify_init1(int flags);
EXPORTED int memfd_create(const char *name, unsigned flags);

/* What the command opens itself is no call of the provider's. */
static bool
opens(const void *caller, enum kit_kind kind, const char *call, const char *name)
{
  return kit_is_own_call(caller) || kit_disk_begins(kind, call, name);
}

static int
open_for(const void *caller, int folder, const char *path, int flags, mode_t mode)
{
  if (!opens(caller, KIT_OPENS, "open", path))
    return -1;
  return (int)syscall(SYS_openat, folder, path, flags, mode);
}

/* The mode is there if a file may be made. */
#define MODE_BEHIND(flags, ret_mode)                                                               \
  do {                                                                                             \
    va_list rest_;                                                                                 \
    va_start(rest_, flags);                                                                        \
    *(ret_mode) = ((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE                   \
                    ? va_arg(rest_, mode_t)                                                        \
                    : 0;                                                                           \
    va_end(rest_);                                                                                 \
  } while (0)

int
open(const char *path, int flags, ...)
{
  mode_t mode;

  MODE_BEHIND(flags, &mode);
  return open_for(CALLER, AT_FDCWD, path, flags, mode);
}

int
open64(const char *path, int flags, ...)
{
  mode_t mode;

  MODE_BEHIND(flags, &mode);
  return open_for(CALLER, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int
openat(int folder, const char *path, int flags, ...)
{
  mode_t mode;

  MODE_BEHIND(flags, &mode);
  return open_for(CALLER, folder, path, flags, mode);
}

int
openat64(int folder, const char *path, int flags, ...)
{
  mode_t mode;

  MODE_BEHIND(flags, &mode);
  return open_for(CALLER, folder, path, flags | O_LARGEFILE, mode);
}

int
creat(const char *path, mode_t mode)
{
  return open_for(CALLER, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int
creat64(const char *path, mode_t mode)
{
  return open_for(CALLER, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC | O_LARGEFILE, mode);
}

int
socket(int family, int type, int protocol)
{
  if (!opens(CALLER, KIT_DESCRIPTORS, "socket", ""))
    return -1;
  return (int)syscall(SYS_socket, family, type, protocol);
}

int
socketpair(int family, int type, int protocol, int ends[2])
{
  if (!opens(CALLER, KIT_DESCRIPTORS, "socketpair", ""))
    return -1;
  return (int)syscall(SYS_socketpair, family, type, protocol, ends);
}

static int
pipe_for(const void *caller, int ends[2], int flags)
{
  if (!opens(caller, KIT_DESCRIPTORS, "pipe", ""))
    return -1;
  return (int)syscall(SYS_pipe2, ends, flags);
}

int
pipe(int ends[2])
{
  return pipe_for(CALLER, ends, 0);
}

int
pipe2(int ends[2], int flags)
{
  return pipe_for(CALLER, ends, flags);
}

int
dup(int fd)
{
  if (!opens(CALLER, KIT_DESCRIPTORS, "dup", ""))
    return -1;
  return (int)syscall(SYS_dup, fd);
}

int
eventfd(unsigned count, int flags)
{
  if (!opens(CALLER, KIT_DESCRIPTORS, "eventfd", ""))
    return -1;
  return (int)syscall(SYS_eventfd2, count, flags);
}

int
epoll_create1(int flags)
{
  if (!opens(CALLER, KIT_DESCRIPTORS, "epoll_create1", ""))
    return -1;
  return (int)syscall(SYS_epoll_create1, flags);
}

int
timerfd_create(int clock, int flags)
{
  if (!opens(CALLER, KIT_DESCRIPTORS, "timerfd_create", ""))
    return -1;
  return (int)syscall(SYS_timerfd_create, clock, flags);
}

int
inotify_init1(int flags)
{
  if (!opens(CALLER, KIT_DESCRIPTORS, "inotify_init1", ""))
    return -1;
  return (int)syscall(SYS_inotify_init1, flags);
}

int
memfd_create(const char *name, unsigned flags)
{
  if (!opens(CALLER, KIT_DESCRIPTORS, "memfd_create", name))
    return -1;
  return (int)syscall(SYS_memfd_create, name, flags);
}
