/* SPDX-License-Identifier: Apache-2.0 */
/* See disk.h.  The state is the process's own, for it stands in for functions of the C library,
 * which have no handle; `guard` is held while a call is counted, noted and made, so that no other
 * thread comes between what is noted and what is written. */
#include "conformance/kit/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SECTOR = 512 };

/* What a file was before it was changed. */
struct change {
  struct change *older;
  int fd;
  dev_t device;
  ino_t inode;
  off_t at, size;   /* where; and the file's size before */
  size_t n;         /* of bytes that were there */
  char bytes[];
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t syncs;
static _Atomic bool is_recording;
static struct kit_doom *_Atomic armed;
static struct change *newest; /* under guard */

/* ---- the calls themselves -------------------------------------------------------------------- */

static ssize_t
really_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
  return (ssize_t)syscall(SYS_pwrite64, fd, bytes, n, at);
}

static int
really_truncate(int fd, off_t size)
{
  return (int)syscall(SYS_ftruncate, fd, size);
}

/* ---- noting and undoing ---------------------------------------------------------------------- */

/* A process that cannot note what it writes would later lie about a power cut. */
static void
note_change(int fd, off_t at, size_t n)
{
  struct stat now;

  if (fstat(fd, &now) != 0)
    return;
  size_t there = at >= now.st_size ? 0 : (size_t)(now.st_size - at);
  if (there > n)
    there = n;
  struct change *change = malloc(sizeof(*change) + there);
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (change == NULL || copy < 0 ||
      (there > 0 && syscall(SYS_pread64, fd, change->bytes, there, at) != (long)there))
    abort();
  *change = (struct change){newest, copy, now.st_dev, now.st_ino, at, now.st_size, there};
  newest = change;
}

static void
forget_change(struct change **at)
{
  struct change *change = *at;

  *at = change->older;
  close(change->fd);
  free(change);
}

/* It is on the disk now, and no longer lost. */
static void
forget_changes_of(int fd)
{
  struct stat now;

  if (fstat(fd, &now) != 0)
    return;
  for (struct change **at = &newest; *at != NULL;) {
    if ((*at)->device == now.st_dev && (*at)->inode == now.st_ino)
      forget_change(at);
    else
      at = &(*at)->older;
  }
}

static void
undo_all(void)
{
  while (newest != NULL) {
    if (newest->n > 0)
      (void)really_pwrite(newest->fd, newest->bytes, newest->n, newest->at);
    (void)really_truncate(newest->fd, newest->size);
    forget_change(&newest);
  }
}

void
kit_disk_end(const struct kit_doom *doom)
{
  if (doom->end == KIT_POWER_CUT) {
    pthread_mutex_trylock(&guard); /* it may be held already; no other thread goes on anyway */
    undo_all();
  }
  kill(getpid(), SIGKILL);
  for (;;)
    pause();
}

/* ---- counting -------------------------------------------------------------------------------- */

static bool
is_file(int fd)
{
  struct stat now;

  return fstat(fd, &now) == 0 && S_ISREG(now.st_mode);
}

static const char *
last_part_of(const char *path)
{
  const char *slash = strrchr(path, '/');

  return slash != NULL ? slash + 1 : path;
}

static void
name_file(int fd, char *buffer, size_t size)
{
  char link[40], path[512];
  ssize_t n;

  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  n = readlink(link, path, sizeof(path) - 1);
  path[n > 0 ? n : 0] = '\0';
  snprintf(buffer, size, "%.60s", last_part_of(path));
}

/* What counts the calls of this kind; NULL: nothing does. */
static struct kit_doom *
armed_for(enum kit_kind kind)
{
  struct kit_doom *doom = atomic_load(&armed);
  bool is_counted = doom != NULL && (doom->kind == (int32_t)kind ||
                                     (doom->kind == KIT_DESCRIPTORS && kind == KIT_OPENS));

  return is_counted ? doom : NULL;
}

/* Counts it; true: this is the call that `doom` is about. */
static bool
is_the_one(struct kit_doom *doom, bool syncs_it)
{
  uint32_t number = atomic_fetch_add(&doom->n_calls, 1) + 1;

  if (doom->kind == KIT_CHANGES)
    atomic_fetch_add(syncs_it ? &doom->n_syncs : &doom->n_writes, 1);
  return number == doom->at || (doom->lasts != 0 && doom->at > 0 && number > doom->at);
}

/* The same, of a call on a descriptor. */
static bool
is_reached(struct kit_doom *doom, const char *call, int fd, size_t n, bool syncs_it)
{
  char name[64] = "";

  if (fd >= 0)
    name_file(fd, name, sizeof(name));
  if (n > 0)
    snprintf(doom->call, sizeof(doom->call), "%s of %zu bytes to %s", call, n, name);
  else
    snprintf(doom->call, sizeof(doom->call), "%s of %s", call, name);
  return is_the_one(doom, syncs_it);
}

/* What is to happen to a call, once `guard` is held.  0: it is made; else its errno. */
static int
meet(struct kit_doom *doom, bool reached)
{
  if (!reached)
    return 0;
  if (doom->end == KIT_FAILED)
    return EIO;
  if (doom->end != KIT_LIVES_ON)
    kit_disk_end(doom);
  return doom->error;
}

/* Whole sectors of a write, but not all of it. */
static void
tear(int fd, const void *bytes, size_t n, off_t at)
{
  size_t whole = (n - 1) / SECTOR * SECTOR;

  if (n > 0 && whole > 0)
    (void)really_pwrite(fd, bytes, whole, at);
}

enum { WHERE_IT_IS = -1 }; /* a write that names no place */

static off_t
place_of_write(int fd)
{
  struct stat now;
  int flags = fcntl(fd, F_GETFL);

  if (flags >= 0 && (flags & O_APPEND) != 0 && fstat(fd, &now) == 0)
    return now.st_size;
  return lseek(fd, 0, SEEK_CUR);
}

static bool
is_watched(void)
{
  return armed_for(KIT_CHANGES) != NULL || atomic_load(&is_recording);
}

/* Of a write: not watched, so that it is made at once; to be made under `guard`; to fail. */
enum course { UNWATCHED, WATCHED, FAILS };

static enum course
begin_write(const char *call, int fd, const void *bytes, size_t n, off_t at)
{
  struct kit_doom *doom = armed_for(KIT_CHANGES);
  int reason = errno;

  if (!is_watched() || !is_file(fd)) {
    errno = reason;
    return UNWATCHED;
  }
  if (at == WHERE_IT_IS)
    at = place_of_write(fd);
  pthread_mutex_lock(&guard);
  bool reached = doom != NULL && is_reached(doom, call, fd, n, false);
  if (reached && doom->end == KIT_TORN && bytes != NULL)
    tear(fd, bytes, n, at);
  int error = doom != NULL ? meet(doom, reached) : 0;
  if (error != 0) {
    pthread_mutex_unlock(&guard);
    errno = error;
    return FAILS;
  }
  if (atomic_load(&is_recording))
    note_change(fd, at, n);
  errno = reason;
  return WATCHED;
}

static void
end_write(enum course course)
{
  if (course == WATCHED)
    pthread_mutex_unlock(&guard);
}

void
kit_disk_record(void)
{
  atomic_store(&is_recording, true);
}

void
kit_disk_arm(struct kit_doom *doom)
{
  atomic_store(&armed, doom);
}

uint64_t
kit_disk_syncs(void)
{
  return atomic_load_explicit(&syncs, memory_order_relaxed);
}

/* ---- in place of the C library's ------------------------------------------------------------- */

#define EXPORTED __attribute__((visibility("default")))
EXPORTED ssize_t write(int fd, const void *bytes, size_t n);
EXPORTED ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at);
EXPORTED ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t at);
EXPORTED ssize_t writev(int fd, const struct iovec *pieces, int n);
EXPORTED ssize_t pwritev(int fd, const struct iovec *pieces, int n, off_t at);
EXPORTED ssize_t read(int fd, void *room, size_t n);
EXPORTED ssize_t pread(int fd, void *room, size_t n, off_t at);
EXPORTED ssize_t pread64(int fd, void *room, size_t n, off_t at);
EXPORTED ssize_t readv(int fd, const struct iovec *pieces, int n);
EXPORTED ssize_t preadv(int fd, const struct iovec *pieces, int n, off_t at);
EXPORTED int ftruncate(int fd, off_t size);
EXPORTED int ftruncate64(int fd, off_t size);
EXPORTED int fsync(int fd);
EXPORTED int fdatasync(int fd);
EXPORTED int msync(void *address, size_t length, int flags);

ssize_t
write(int fd, const void *bytes, size_t n)
{
  enum course course = begin_write("write", fd, bytes, n, WHERE_IT_IS);
  ssize_t written = course == FAILS ? -1 : (ssize_t)syscall(SYS_write, fd, bytes, n);

  end_write(course);
  return written;
}

ssize_t
pwrite(int fd, const void *bytes, size_t n, off_t at)
{
  enum course course = begin_write("pwrite", fd, bytes, n, at);
  ssize_t written = course == FAILS ? -1 : really_pwrite(fd, bytes, n, at);

  end_write(course);
  return written;
}

ssize_t
pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
  return pwrite(fd, bytes, n, at);
}

static size_t
size_of_pieces(const struct iovec *pieces, int n)
{
  size_t size = 0;

  for (int i = 0; i < n; i++)
    size += pieces[i].iov_len;
  return size;
}

ssize_t
writev(int fd, const struct iovec *pieces, int n)
{
  enum course course = begin_write("writev", fd, NULL, size_of_pieces(pieces, n), WHERE_IT_IS);
  ssize_t written = course == FAILS ? -1 : (ssize_t)syscall(SYS_writev, fd, pieces, n);

  end_write(course);
  return written;
}

ssize_t
pwritev(int fd, const struct iovec *pieces, int n, off_t at)
{
  enum course course = begin_write("pwritev", fd, NULL, size_of_pieces(pieces, n), at);
  ssize_t written = course == FAILS ? -1 : (ssize_t)syscall(SYS_pwritev, fd, pieces, n, at, 0L);

  end_write(course);
  return written;
}

/* Of a file; false: it fails. */
static bool
begin_read(const char *call, int fd, size_t n)
{
  struct kit_doom *doom = armed_for(KIT_READS);
  int reason = errno, error = 0;

  if (doom != NULL && is_file(fd)) {
    pthread_mutex_lock(&guard);
    error = meet(doom, is_reached(doom, call, fd, n, false));
    pthread_mutex_unlock(&guard);
  }
  errno = error != 0 ? error : reason;
  return error == 0;
}

ssize_t
read(int fd, void *room, size_t n)
{
  return begin_read("read", fd, n) ? (ssize_t)syscall(SYS_read, fd, room, n) : -1;
}

ssize_t
pread(int fd, void *room, size_t n, off_t at)
{
  return begin_read("pread", fd, n) ? (ssize_t)syscall(SYS_pread64, fd, room, n, at) : -1;
}

ssize_t
pread64(int fd, void *room, size_t n, off_t at)
{
  return pread(fd, room, n, at);
}

ssize_t
readv(int fd, const struct iovec *pieces, int n)
{
  if (!begin_read("readv", fd, size_of_pieces(pieces, n)))
    return -1;
  return (ssize_t)syscall(SYS_readv, fd, pieces, n);
}

ssize_t
preadv(int fd, const struct iovec *pieces, int n, off_t at)
{
  if (!begin_read("preadv", fd, size_of_pieces(pieces, n)))
    return -1;
  return (ssize_t)syscall(SYS_preadv, fd, pieces, n, at, 0L);
}

/* What is cut off is what changes. */
int
ftruncate(int fd, off_t size)
{
  struct stat now;
  size_t lost = 0;

  if (is_watched() && fstat(fd, &now) == 0 && now.st_size > size)
    lost = (size_t)(now.st_size - size);
  enum course course = begin_write("ftruncate", fd, NULL, lost, size);
  int result = course == FAILS ? -1 : really_truncate(fd, size);

  end_write(course);
  return result;
}

int
ftruncate64(int fd, off_t size)
{
  return ftruncate(fd, size);
}

/* A sync of this file; -1: of one that is not known.  False: it fails. */
static bool
begin_sync(const char *call, int fd)
{
  struct kit_doom *doom = armed_for(KIT_CHANGES);
  int reason = errno;

  atomic_fetch_add_explicit(&syncs, 1, memory_order_relaxed);
  if (doom != NULL) {
    pthread_mutex_lock(&guard);
    int error = meet(doom, is_reached(doom, call, fd, 0, true));
    pthread_mutex_unlock(&guard);
    reason = error != 0 ? error : reason;
    errno = reason;
    return error == 0;
  }
  errno = reason;
  return true;
}

static void
end_sync(int fd, int result)
{
  if (result != 0 || !atomic_load(&is_recording))
    return;
  pthread_mutex_lock(&guard);
  forget_changes_of(fd);
  pthread_mutex_unlock(&guard);
}

int
fsync(int fd)
{
  int result = begin_sync("fsync", fd) ? (int)syscall(SYS_fsync, fd) : -1;
  end_sync(fd, result);
  return result;
}

int
fdatasync(int fd)
{
  int result = begin_sync("fdatasync", fd) ? (int)syscall(SYS_fdatasync, fd) : -1;
  end_sync(fd, result);
  return result;
}

int
msync(void *address, size_t length, int flags)
{
  if ((flags & MS_SYNC) && !begin_sync("msync", -1))
    return -1;
  return (int)syscall(SYS_msync, address, length, flags);
}

/* ---- names ----------------------------------------------------------------------------------- */

bool
kit_disk_begins(enum kit_kind kind, const char *call, const char *name)
{
  struct kit_doom *doom = armed_for(kind);
  int reason = errno;

  if (doom == NULL)
    return true;
  pthread_mutex_lock(&guard);
  snprintf(doom->call, sizeof(doom->call), "%s of %.60s", call, last_part_of(name));
  int error = meet(doom, is_the_one(doom, false));
  pthread_mutex_unlock(&guard);
  errno = error != 0 ? error : reason;
  return error == 0;
}
