/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of the file <store>-lock: see lockfile.h.  No lock of this process: a struct lockfile
 * belongs to one thread at a time. */
#include "providers/sqlite/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>


/* The bytes that are locked; the first is also the one that is written to ring for the lock.
 * Behind them a number for each queue, larger with each ring for it. */
enum { STORE_BYTE = 0, GATE_BYTE = 1, USE_BYTE = 2, NUMBERS = 16 };

/* A wait looks again after 1, 2, 4, 4, ... ms: no event reports that a process died, which releases
 * its lock. */
enum { LONGEST_STEP_MS = 4 };

char *
lockfile_path(const char *store)
{
  size_t length = strlen(store);
  char *path = malloc(length + sizeof "-lock");

  if (path) {
    memcpy(path, store, length);
    memcpy(path + length, "-lock", sizeof "-lock");
  }
  return path;
}

static int
set_byte(const struct lockfile *l, int byte, int type)
{
  struct flock lock = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

  return fcntl(l->fd, F_OFD_SETLK, &lock);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* A right to read is enough to lock the file, so only users who may write the store get any.  If
 * its group is not the store's, the group gets none. */
static mode_t
mode_for_writers(const struct stat *store, gid_t group)
{
  mode_t mode = 0600;

  if ((store->st_mode & S_IWGRP) && store->st_gid == group)
    mode |= 0060;
  if (store->st_mode & S_IWOTH)
    mode |= 0006;
  return mode;
}

/* Gives a new file the database's owner if the process is root, as SQLite does with its own files:
 * otherwise root would lock the owner out.  It also gives the database's group, if the process is
 * in it, and the rights of the store's writers, which must not depend on the umask. */
static bool
make_like(int fd, const struct stat *store)
{
  struct stat made;

  if (geteuid() == 0 && fchown(fd, store->st_uid, store->st_gid) < 0)
    return false;
  if (fstat(fd, &made) < 0)
    return false;
  if (made.st_gid != store->st_gid && store->st_gid != (gid_t)-1 &&
      fchown(fd, (uid_t)-1, store->st_gid) == 0)
    made.st_gid = store->st_gid;
  return fchmod(fd, mode_for_writers(store, made.st_gid)) == 0;
}

/* Takes rights from a file that was made earlier, or changed with the store (chmod 644 store*):
 * those of users who must not write the store.  It gives none.  It does so only if the file is ours
 * and has no other name, because a link could lead root to any file. */
static bool
take_rights(int fd, const struct stat *store)
{
  struct stat file;

  if (fstat(fd, &file) < 0)
    return false;
  mode_t kept = file.st_mode & mode_for_writers(store, file.st_gid);
  if (kept == (file.st_mode & 0777) || !S_ISREG(file.st_mode) || file.st_nlink != 1 ||
      (geteuid() != 0 && geteuid() != file.st_uid))
    return true;
  return fchmod(fd, kept) == 0 || errno == EPERM; /* a filesystem without modes */
}

/* The results of close and unlink do not matter. */
static int
lockfile_give_up(int fd, const char *made)
{
  int error = errno;

  if (made)
    unlink(made);
  close(fd);
  errno = error;
  return -1;
}

/* The file gets its name only when it has its rights, so that a process that opens it by the name
 * is never refused in between.  -1: it exists already (EEXIST), or this way is not possible,
 * because there is no /proc or the filesystem has no files without a name. */
static int
make_then_name(const char *path, const struct stat *store)
{
  char *folder = strdup(path), by_number[64];

  if (!folder)
    return -1;
  char *slash = strrchr(folder, '/');
  if (slash)
    slash[slash == folder] = '\0';
  int fd = open(slash ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  free(folder);
  if (fd < 0)
    return -1;
  snprintf(by_number, sizeof by_number, "/proc/self/fd/%d", fd);
  if (!make_like(fd, store) ||
      linkat(AT_FDCWD, by_number, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0)
    return lockfile_give_up(fd, NULL);
  return fd;
}

static const char cannot_give_rights[] =
  "cannot give the lock file the rights of the users who may write the store";

static int
make_file(const char *path, const struct stat *store, const char **ret_what)
{
  int fd = make_then_name(path, store);

  if (fd >= 0 || errno == EEXIST)
    return fd;
  fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0 || make_like(fd, store))
    return fd;
  *ret_what = cannot_give_rights;
  return lockfile_give_up(fd, path);
}

static int
open_file(const char *path, const char *store, bool create, bool *ret_is_new,
          const char **ret_what)
{
  struct stat there;
  bool is_there = stat(store, &there) == 0;

  if (!is_there && errno != ENOENT) {
    *ret_what = "the store's rights, which its lock file gets, cannot be read";
    return -1;
  }
  if (!is_there) /* it is about to be made: ours */
    there = (struct stat){.st_mode = 0600, .st_uid = (uid_t)-1, .st_gid = (gid_t)-1};
  /* Another process may make it, or remove it with the store, between our two attempts. */
  for (int attempt = 0; attempt < 100; attempt++) {
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && is_there && !take_rights(fd, &there)) {
      *ret_what = cannot_give_rights;
      return lockfile_give_up(fd, NULL);
    }
    if (fd >= 0 || errno != ENOENT || !create)
      return fd;
    fd = make_file(path, &there, ret_what);
    *ret_is_new = fd >= 0;
    if (fd >= 0 || errno != EEXIST)
      return fd;
  }
  return -1;
}

dk_status
lockfile_open(struct lockfile *l, struct bell *bell, const char *store, bool create,
              struct why *why)
{
  *l = (struct lockfile){.fd = -1, .bell = bell, .path = lockfile_path(store)};
  if (!l->path)
    return why_set(why, DK_NO_MEMORY, "%s-lock: out of memory", store);
  const char *what = "the lock file of the store cannot be opened";
  l->fd = open_file(l->path, store, create, &l->is_new, &what);
  if (l->fd >= 0)
    return DK_OK;
  why_errno(why, errno, what, l->path);
  lockfile_close(l);
  return why->status;
}

void
lockfile_close(struct lockfile *l)
{
  if (l->ear)
    bell_take_back(l->bell, l->ear);
  if (l->fd >= 0)
    close(l->fd); /* releases what it holds */
  free(l->path);
  *l = (struct lockfile){.fd = -1};
}

dk_status
lockfile_unlink(struct lockfile *l, struct why *why)
{
  if (unlink(l->path) == 0 || errno == ENOENT)
    return DK_OK;
  return why_errno(why, errno, "the lock file cannot be removed", l->path);
}

/* A process that is about to use the file has to take the store first, and then sees that it was
 * deleted. */
void
lockfile_unlink_if_unused(struct lockfile *l)
{
  if (l->is_held && set_byte(l, USE_BYTE, F_WRLCK) == 0)
    unlink(l->path);
}

dk_status
lockfile_use(struct lockfile *l, struct why *why)
{
  if (set_byte(l, USE_BYTE, F_RDLCK) == 0)
    return DK_OK;
  return why_errno(why, errno, "the lock file cannot be marked as used", l->path);
}

dk_status
lockfile_look(const struct lockfile *l, bool *ret_is_current, struct why *why)
{
  struct stat mine, there;
  bool is_seen = fstat(l->fd, &mine) == 0 && stat(l->path, &there) == 0;

  if (!is_seen && errno != ENOENT)
    return why_errno(why, errno, "the lock file cannot be examined", l->path);
  *ret_is_current = is_seen && mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
  return DK_OK;
}

/* ---- the lock -------------------------------------------------------------------------------- */

/* DK_OK, or DK_BUSY: another has it. */
static dk_status
try_byte(const struct lockfile *l, int byte, struct why *why)
{
  if (set_byte(l, byte, F_WRLCK) == 0)
    return DK_OK;
  if (errno == EAGAIN || errno == EACCES)
    return DK_BUSY;
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)
    return why_set(why, DK_REFUSED,
                   "%s: this filesystem has no locks by open file description, without which two "
                   "processes would damage the store; put the store on a disk of this machine",
                   l->path);
  return why_errno(why, errno, "the store cannot be locked", l->path);
}

/* DK_OK: look again.  DK_CALL_CANCELLED: the caller's descriptor is readable. */
static dk_status
wait_a_step(struct lockfile *l, int step_ms, int wake_fd, struct why *why)
{
  struct pollfd fds[2] = {{.fd = l->ear ? l->ear->fd : -1, .events = POLLIN},
                          {.fd = wake_fd, .events = POLLIN}};

  if (poll(fds, 2, step_ms) < 0 && errno != EINTR)
    return why_errno(why, errno, "waiting for the store failed", l->path);
  if (fds[1].revents)
    return why_set(why, DK_CALL_CANCELLED, "%s: cancelled while another process held it", l->path);
  if (fds[0].revents)
    bell_hear_out(l->bell, l->ear);
  return DK_OK;
}

static dk_status
wait_for_byte(struct lockfile *l, int byte, int64_t busy_ms, int64_t since, int wake_fd,
              struct why *why)
{
  dk_status status;

  for (int step = 1; (status = try_byte(l, byte, why)) == DK_BUSY;) {
    int64_t waited = real_ms() - since;
    if (waited >= busy_ms)
      return why_set(why, DK_BUSY,
                     "%s: another process has held the store for %lld ms; expected it to be free "
                     "within busy_timeout, %lld ms; try again, and look for a stopped process",
                     l->path, (long long)waited, (long long)busy_ms);
    /* With a new ear look once more: what was rung before was not heard.  If there is none (the
     * user's inotify descriptors are used up, for example), the steps are short enough. */
    if (!l->ear && bell_lend(l->bell, &l->ear, why) == DK_OK)
      continue;
    int64_t left = busy_ms - waited;
    TRY(wait_a_step(l, left < step ? (int)left : step, wake_fd, why));
    step = step < LONGEST_STEP_MS ? 2 * step : LONGEST_STEP_MS;
  }
  return status;
}

dk_status
lockfile_take(struct lockfile *l, int64_t busy_ms, int wake_fd, struct why *why)
{
  int64_t since = real_ms();

  TRY(wait_for_byte(l, GATE_BYTE, busy_ms, since, wake_fd, why));
  dk_status status = wait_for_byte(l, STORE_BYTE, busy_ms, since, wake_fd, why);
  l->holds_gate = set_byte(l, GATE_BYTE, F_UNLCK) < 0;
  l->is_held = status == DK_OK;
  return status;
}

dk_status
lockfile_try(struct lockfile *l, struct why *why)
{
  struct flock gate = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = GATE_BYTE, .l_len = 1};

  /* Does not pass one that waits. */
  dk_status status = fcntl(l->fd, F_OFD_GETLK, &gate) == 0 && gate.l_type != F_UNLCK
                       ? DK_BUSY
                       : try_byte(l, STORE_BYTE, why);
  if (status == DK_BUSY)
    why_set(why, DK_BUSY, "%s: another process holds the store", l->path);
  l->is_held = status == DK_OK;
  return status;
}

bool
lockfile_release(struct lockfile *l)
{
  struct flock gate = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = GATE_BYTE, .l_len = 1};

  if (l->holds_gate)
    l->holds_gate = set_byte(l, GATE_BYTE, F_UNLCK) < 0;
  if (!l->is_held)
    return !l->holds_gate;
  l->is_held = set_byte(l, STORE_BYTE, F_UNLCK) < 0;
  if (fcntl(l->fd, F_OFD_GETLK, &gate) < 0 || gate.l_type != F_UNLCK)
    lockfile_ring(l);
  return !l->is_held && !l->holds_gate;
}

/* If no byte can be written (on a full disk that copies on write, for example), the time of the
 * file is changed, which is also heard. */
bool
lockfile_ring(struct lockfile *l)
{
  return pwrite(l->fd, "!", 1, STORE_BYTE) == 1 || futimens(l->fd, NULL) == 0;
}

/* One write, so that one event is heard.  A file that is new has no numbers: they are 0. */
bool
lockfile_ring_for(struct lockfile *l, unsigned queues)
{
  uint64_t numbers[QUEUES] = {0};

  if (pread(l->fd, numbers, sizeof numbers, NUMBERS) < 0)
    return futimens(l->fd, NULL) == 0;
  for (int queue = 0; queue < QUEUES; queue++)
    numbers[queue] += queues >> queue & 1;
  return pwrite(l->fd, numbers, sizeof numbers, NUMBERS) == (ssize_t)sizeof numbers ||
         futimens(l->fd, NULL) == 0;
}

uint64_t
lockfile_rung_for(const struct lockfile *l, enum queue queue)
{
  uint64_t number = 0;
  bool failed = pread(l->fd, &number, sizeof number,
                      NUMBERS + (off_t)queue * (off_t)sizeof number) < 0;

  return number + bell_alarms(l->bell, failed);
}
