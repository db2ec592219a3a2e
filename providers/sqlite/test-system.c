/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between the system and the plugin: see test-system.h.  The program's functions are found
 * before the C library's, by the plugin and by SQLite; the return address shows the caller. */
#include "providers/sqlite/test-system.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define HAS_SANITIZER 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER 0
#endif

struct system_calls seen;

/* ---- whose call it is ------------------------------------------------------------------------ */

enum { MOST_RANGES = 32 };

static struct {
  uintptr_t begin, end;
} ranges[MOST_RANGES];
static int n_ranges;

static int
note_library(struct dl_phdr_info *info, size_t size, void *context)
{
  (void)size;
  (void)context;
  if (!strstr(info->dlpi_name, "sqlite") || !strstr(info->dlpi_name, ".so"))
    return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || n_ranges == MOST_RANGES)
      continue;
    ranges[n_ranges].begin = (uintptr_t)info->dlpi_addr + part->p_vaddr;
    ranges[n_ranges].end = ranges[n_ranges].begin + part->p_memsz;
    n_ranges++;
  }
  return 0;
}

void
system_begin(void)
{
  n_ranges = 0;
  dl_iterate_phdr(note_library, NULL);
  if (n_ranges < 2)
    BAIL_OUT("the plugin and SQLite are not found in memory");
}

static bool
is_ours(const void *caller)
{
  for (int i = 0; i < n_ranges; i++)
    if ((uintptr_t)caller >= ranges[i].begin && (uintptr_t)caller < ranges[i].end)
      return true;
  return false;
}

bool
system_has_memory(void)
{
  return !HAS_SANITIZER;
}

/* ---- what fails ------------------------------------------------------------------------------ */

enum { MOST_ERRORS = 5 };

static const struct {
  const char *name;
  int errors[MOST_ERRORS];      /* that pass; 0: no more */
} kinds[SYSTEM_KINDS] = {
  [SYSTEM_OPEN] = {"open", {EMFILE, ENFILE, ENOMEM, EIO, EINTR}},
  [SYSTEM_READ] = {"read", {EIO, EINTR, ENOMEM}},
  [SYSTEM_WRITE] = {"write", {EIO, ENOSPC, EINTR, ENOMEM}},
  [SYSTEM_SYNC] = {"sync", {EIO, ENOSPC}},
  [SYSTEM_CUT] = {"ftruncate", {EIO, ENOSPC, EINTR}},
  [SYSTEM_MAP] = {"mmap", {ENOMEM, ENFILE, EAGAIN}},
  [SYSTEM_LOCK] = {"lock", {ENOLCK, EAGAIN, EINTR, EIO}},
  [SYSTEM_UNLOCK] = {"unlock", {ENOLCK, EINTR, EIO}},
  [SYSTEM_LOOK] = {"stat", {ENOMEM, EIO}},
  [SYSTEM_NAME] = {"a name", {ENOSPC, EIO, ENOMEM}},
  [SYSTEM_MODE] = {"a mode", {EIO, ENOSPC}},
  [SYSTEM_DESCRIPTOR] = {"a descriptor", {EMFILE, ENFILE, ENOMEM, ENOSPC}},
  [SYSTEM_POLL] = {"poll", {EINTR, ENOMEM}},
  [SYSTEM_RANDOM] = {"getrandom", {EINTR, EAGAIN}},
  [SYSTEM_THREAD] = {"a thread", {EAGAIN}},
  [SYSTEM_MEMORY] = {"memory", {ENOMEM}},
};

int
system_errors(enum system_kind kind)
{
  int n = 0;

  while (n < MOST_ERRORS && kinds[kind].errors[n] != 0)
    n++;
  return n;
}

const char *
system_error(enum system_kind kind, int which)
{
  return strerrorname_np(kinds[kind].errors[which]);
}

const char *
system_kind_name(enum system_kind kind)
{
  return kinds[kind].name;
}

/* By the writer's thread and by the caller, which take turns but for a few calls. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool counts, counts_memory;
static int fails_at, fails_how;

void
system_count(bool is_memory, int nth, int which)
{
  pthread_mutex_lock(&mutex);
  seen.count = 0;
  seen.has_failed = false;
  fails_at = nth;
  fails_how = which;
  counts_memory = is_memory;
  counts = true;
  pthread_mutex_unlock(&mutex);
}

void
system_stop(void)
{
  pthread_mutex_lock(&mutex);
  counts = false;
  pthread_mutex_unlock(&mutex);
}

static int
error_of(enum system_kind kind)
{
  int n = system_errors(kind);

  return kinds[kind].errors[fails_how < n ? fails_how : n - 1];
}

/* Whether it is to fail; errno is set. */
static bool
fails(enum system_kind kind, const void *caller)
{
  bool is_hit = false;

  if (!counts || (kind == SYSTEM_MEMORY) != counts_memory || !is_ours(caller))
    return false;
  pthread_mutex_lock(&mutex);
  if (counts && seen.count < MOST_CALLS) {
    seen.kinds[seen.count++] = (unsigned char)kind;
    is_hit = seen.count == fails_at;
    seen.has_failed |= is_hit;
  }
  if (is_hit)
    errno = error_of(kind);
  pthread_mutex_unlock(&mutex);
  return is_hit;
}

/* ---- the calls ------------------------------------------------------------------------------- */

#define OURS __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* real: the C library's function of this name. */
#define REAL(type, name)                                                                           \
  static type *real;                                                                               \
  if (!real) {                                                                                     \
    void *found = dlsym(RTLD_NEXT, name);                                                          \
    memcpy(&real, &found, sizeof real);                                                            \
  }

/* A call that gives -1 if it fails, under both of its names. */
#define CALL(result, kind, name, parameters, arguments)                                            \
  OURS result name parameters;                                                                     \
  OURS result name parameters                                                                      \
  {                                                                                                \
    typedef result function parameters;                                                            \
    REAL(function, #name)                                                                          \
    return fails(kind, CALLER) ? (result)-1 : real arguments;                                      \
  }

CALL(ssize_t, SYSTEM_READ, read, (int fd, void *bytes, size_t size), (fd, bytes, size))
CALL(ssize_t, SYSTEM_READ, pread, (int fd, void *bytes, size_t size, off_t at),
     (fd, bytes, size, at))
CALL(ssize_t, SYSTEM_READ, pread64, (int fd, void *bytes, size_t size, off64_t at),
     (fd, bytes, size, at))
CALL(ssize_t, SYSTEM_WRITE, write, (int fd, const void *bytes, size_t size), (fd, bytes, size))
CALL(ssize_t, SYSTEM_WRITE, pwrite, (int fd, const void *bytes, size_t size, off_t at),
     (fd, bytes, size, at))
CALL(ssize_t, SYSTEM_WRITE, pwrite64, (int fd, const void *bytes, size_t size, off64_t at),
     (fd, bytes, size, at))
CALL(int, SYSTEM_CUT, ftruncate, (int fd, off_t size), (fd, size))
CALL(int, SYSTEM_CUT, ftruncate64, (int fd, off64_t size), (fd, size))
CALL(int, SYSTEM_LOOK, access, (const char *path, int mode), (path, mode))
CALL(int, SYSTEM_LOOK, faccessat, (int folder, const char *path, int mode, int flags),
     (folder, path, mode, flags))
CALL(int, SYSTEM_LOOK, stat, (const char *restrict path, struct stat *restrict file), (path, file))
CALL(int, SYSTEM_LOOK, stat64, (const char *restrict path, struct stat64 *restrict file),
     (path, file))
CALL(int, SYSTEM_LOOK, lstat, (const char *restrict path, struct stat *restrict file),
     (path, file))
CALL(int, SYSTEM_LOOK, lstat64, (const char *restrict path, struct stat64 *restrict file),
     (path, file))
CALL(int, SYSTEM_LOOK, fstat, (int fd, struct stat *file), (fd, file))
CALL(int, SYSTEM_LOOK, fstat64, (int fd, struct stat64 *file), (fd, file))
CALL(int, SYSTEM_NAME, mknod, (const char *path, mode_t mode, dev_t device), (path, mode, device))
CALL(int, SYSTEM_NAME, mkdir, (const char *path, mode_t mode), (path, mode))
CALL(int, SYSTEM_NAME, unlink, (const char *path), (path))
CALL(int, SYSTEM_NAME, linkat,
     (int from_folder, const char *from, int to_folder, const char *to, int flags),
     (from_folder, from, to_folder, to, flags))
CALL(int, SYSTEM_MODE, chmod, (const char *path, mode_t mode), (path, mode))
CALL(int, SYSTEM_MODE, fchmod, (int fd, mode_t mode), (fd, mode))
CALL(int, SYSTEM_MODE, fchown, (int fd, uid_t user, gid_t group), (fd, user, group))
CALL(int, SYSTEM_MODE, futimens, (int fd, const struct timespec times[2]), (fd, times))
CALL(int, SYSTEM_DESCRIPTOR, eventfd, (unsigned first, int flags), (first, flags))
CALL(int, SYSTEM_DESCRIPTOR, epoll_create1, (int flags), (flags))
CALL(int, SYSTEM_DESCRIPTOR, epoll_ctl, (int set, int what, int fd, struct epoll_event *event),
     (set, what, fd, event))
CALL(int, SYSTEM_DESCRIPTOR, inotify_init1, (int flags), (flags))
CALL(int, SYSTEM_DESCRIPTOR, inotify_add_watch, (int fd, const char *path, uint32_t mask),
     (fd, path, mask))
CALL(int, SYSTEM_POLL, poll, (struct pollfd *fds, nfds_t n, int timeout_ms), (fds, n, timeout_ms))
CALL(ssize_t, SYSTEM_RANDOM, getrandom, (void *bytes, size_t size, unsigned flags),
     (bytes, size, flags))

/* Those that take more, or say otherwise that they have failed. */

OURS int
fdatasync(int fd)
{
  (void)fd;
  return fails(SYSTEM_SYNC, CALLER) ? -1 : 0;
}

OURS int
fsync(int fd)
{
  (void)fd;
  return fails(SYSTEM_SYNC, CALLER) ? -1 : 0;
}

#define OPEN(name)                                                                                 \
  OURS int name(const char *path, int flags, ...)                                                  \
  {                                                                                                \
    typedef int function(const char *, int, ...);                                                  \
    REAL(function, #name)                                                                          \
    va_list args;                                                                                  \
    va_start(args, flags);                                                                         \
    unsigned mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, unsigned) : 0;                  \
    va_end(args);                                                                                  \
    return fails(SYSTEM_OPEN, CALLER) ? -1 : real(path, flags, mode);                              \
  }
OPEN(open)
OPEN(open64)

static bool
is_lock(int command)
{
  return command == F_SETLK || command == F_OFD_SETLK;
}

/* A query for a lock of the file is also a lock call. */
static bool
fails_to_lock(int command, const void *what, const void *caller)
{
  if (is_lock(command) && ((const struct flock *)what)->l_type == F_UNLCK)
    return fails(SYSTEM_UNLOCK, caller);
  if (is_lock(command) || command == F_GETLK || command == F_OFD_GETLK)
    return fails(SYSTEM_LOCK, caller);
  return false;
}

#define FCNTL(name)                                                                                \
  OURS int name(int fd, int command, ...)                                                          \
  {                                                                                                \
    typedef int function(int, int, ...);                                                           \
    REAL(function, #name)                                                                          \
    va_list args;                                                                                  \
    va_start(args, command);                                                                       \
    void *what = va_arg(args, void *);                                                             \
    va_end(args);                                                                                  \
    return fails_to_lock(command, what, CALLER) ? -1 : real(fd, command, what);                    \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

#define MMAP(name, offset)                                                                         \
  OURS void *name(void *at, size_t size, int protection, int flags, int fd, offset from)           \
  {                                                                                                \
    typedef void *function(void *, size_t, int, int, int, offset);                                 \
    REAL(function, #name)                                                                          \
    return fails(SYSTEM_MAP, CALLER) ? MAP_FAILED                                                  \
                                     : real(at, size, protection, flags, fd, from);                \
  }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

OURS char *
realpath(const char *restrict path, char *restrict room)
{
  typedef char *function(const char *restrict, char *restrict);
  REAL(function, "realpath")
  return fails(SYSTEM_LOOK, CALLER) ? NULL : real(path, room);
}

OURS int
pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict how,
               void *(*begin)(void *), void *restrict context)
{
  typedef int function(pthread_t *restrict, const pthread_attr_t *restrict, void *(*)(void *),
                       void *restrict);
  REAL(function, "pthread_create")
  return fails(SYSTEM_THREAD, CALLER) ? errno : real(thread, how, begin, context);
}

/* ---- memory ---------------------------------------------------------------------------------- */

#if !HAS_SANITIZER
OURS void *
malloc(size_t size)
{
  typedef void *function(size_t);
  REAL(function, "malloc")
  return fails(SYSTEM_MEMORY, CALLER) ? NULL : real(size);
}

OURS void *
calloc(size_t n, size_t size)
{
  typedef void *function(size_t, size_t);
  REAL(function, "calloc")
  return fails(SYSTEM_MEMORY, CALLER) ? NULL : real(n, size);
}

OURS void *
realloc(void *block, size_t size)
{
  typedef void *function(void *, size_t);
  REAL(function, "realloc")
  return fails(SYSTEM_MEMORY, CALLER) ? NULL : real(block, size);
}

OURS char *
strdup(const char *string)
{
  typedef char *function(const char *);
  REAL(function, "strdup")
  return fails(SYSTEM_MEMORY, CALLER) ? NULL : real(string);
}

OURS char *
strndup(const char *string, size_t size)
{
  typedef char *function(const char *, size_t);
  REAL(function, "strndup")
  return fails(SYSTEM_MEMORY, CALLER) ? NULL : real(string, size);
}
#endif
