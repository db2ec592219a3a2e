/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes the folders of runs.  Owns them, and the lock inside. */
#include "runner/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "core/base/text.h"

/* A container's /dev/shm may be too small for the largest check. */
enum { ROOM_MIB = 48 };

/* A folder without a lock is not made any more, or not removed any more, after so long. */
enum { MAKING_S = 60 };

static bool
has_room(const char *path)
{
  struct statvfs fs;

  if (access(path, W_OK | X_OK) != 0 || statvfs(path, &fs) != 0)
    return false;
  return (uint64_t)fs.f_bavail * fs.f_frsize >= (uint64_t)ROOM_MIB << 20;
}

size_t
folder_bases(const char *bases[FOLDER_BASES])
{
  const char *tmp = getenv("TMPDIR");
  size_t n = 0;

  bases[n++] = "/dev/shm";
  if (tmp && *tmp == '/' && strlen(tmp) < 128)
    bases[n++] = tmp;
  bases[n++] = "/tmp";
  return n;
}

static void
close_fd(int *fd)
{
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

/* -1 with errno. */
static int
make_part(int parent, const char *name)
{
  return mkdirat(parent, name, 0700) == 0
           ? openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
           : -1;
}

static int
make_parts(struct folder *folder, const char *path)
{
  folder->fd = make_part(AT_FDCWD, path);
  if (folder->fd < 0)
    return -1;
  folder->lock_fd = openat(folder->fd, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (folder->lock_fd < 0 || flock(folder->lock_fd, LOCK_EX) != 0)
    return -1;
  folder->checks = make_part(folder->fd, "checks");
  if (folder->checks < 0)
    return -1;
  folder->others = make_part(folder->fd, "others");
  if (folder->others < 0)
    return -1;
  folder->journal_fd =
    openat(folder->fd, "journal", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  return folder->journal_fd < 0 || fchmod(folder->fd, 0700) != 0 ? -1 : 0;
}

static void
close_all(struct folder *folder)
{
  close_fd(&folder->journal_fd);
  close_fd(&folder->checks);
  close_fd(&folder->others);
  close_fd(&folder->fd);
  close_fd(&folder->lock_fd);
}

/* It gets its name when its lock is held, so that a run that lives never looks dead. */
static int
make_in(struct folder *folder, const char *base, const char *run_id)
{
  char made[sizeof(folder->path) + 8];
  int length = snprintf(folder->path, sizeof(folder->path), "%s/" FOLDER_PREFIX "%s-%ld", base,
                        run_id, (long)getpid());

  if (length < 0 || (size_t)length >= sizeof(folder->path)) {
    errno = ENAMETOOLONG;
    return -1;
  }
  snprintf(made, sizeof(made), "%s.new", folder->path);
  if (make_parts(folder, made) == 0 && rename(made, folder->path) == 0)
    return 0;
  int reason = errno;
  if (folder->lock_fd >= 0)
    folder_remove_tree(made);
  close_all(folder);
  errno = reason;
  return -1;
}

/* Two runs of one id would make stores of the same names.  Each looks after it has its lock. */
static int
refuse_second(struct folder *folder, const char *run_id)
{
  char other[sizeof(folder->path)];

  if (!folder_find_live(run_id, folder->path, other, sizeof(other)))
    return 0;
  folder_done(folder, NULL);
  memcpy(folder->path, other, sizeof(other));
  errno = EADDRINUSE;
  return -1;
}

int
folder_make(struct folder *folder, const char *run_id)
{
  const char *bases[FOLDER_BASES];
  size_t n = folder_bases(bases);

  *folder = (struct folder)FOLDER_NONE;
  for (size_t i = 0; i < n; i++) {
    /* The last resort is tried whatever room it has. */
    if ((i + 1 == n || has_room(bases[i])) && make_in(folder, bases[i], run_id) == 0)
      return refuse_second(folder, run_id);
  }
  return -1;
}

/* What has its path is still this folder, and not something that was put there. */
static bool
has_its_path(const struct folder *folder)
{
  struct stat own, named;

  return fstat(folder->fd, &own) == 0 && lstat(folder->path, &named) == 0
         && own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

/* Empty, it has a name somewhere: the one that it was made with, or another. */
static void
note_moved(struct remains *left, int fd)
{
  static const char gone[] = " (deleted)"; /* as the kernel says it */
  char name[64];
  char path[sizeof(left->name)];

  snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
  ssize_t n = readlink(name, path, sizeof(path) - 1);
  path[n > 0 ? n : 0] = '\0';
  size_t length = strlen(path);
  bool is_gone = length >= strlen(gone) && strcmp(path + length - strlen(gone), gone) == 0;
  if (is_gone || !left || left->n++ > 0)
    return;
  memcpy(left->name, path, sizeof(path));
  snprintf(left->why, sizeof(left->why), "it was moved there");
}

void
folder_done(struct folder *folder, struct remains *left)
{
  if (folder->lock_fd < 0) /* it was not made: what has this path is another's */
    return;
  remove_inside(folder->checks, left);
  remove_inside(folder->others, left);
  if (!folder->keep) {
    struct remains again = {.n = 0}; /* the same once more */
    bool emptied = remove_inside(folder->fd, left && left->n == 0 ? left : &again);
    if (emptied && has_its_path(folder))
      rmdir(folder->path);
    if (emptied)
      note_moved(left, folder->fd);
    note_moved(left, folder->checks);
    note_moved(left, folder->others);
  }
  close_all(folder);
  folder->path[0] = '\0';
}

static bool
write_note(const struct folder *folder, const char *line)
{
  size_t n = strlen(line);

  return folder->journal_fd >= 0 && write(folder->journal_fd, line, n) == (ssize_t)n;
}

void
folder_note(const struct folder *folder, char sign, unsigned number)
{
  char line[32];

  snprintf(line, sizeof(line), "%c%u\n", sign, number);
  write_note(folder, line);
}

void
folder_note_store(struct folder *folder, const char *suffix)
{
  char line[72];

  snprintf(line, sizeof(line), "%.63s\n", suffix);
  folder->keep = write_note(folder, line) || folder->keep;
}

bool
folder_remove_tree(const char *path)
{
  const char *slash = strrchr(path, '/');
  char *above = strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
  int parent = above ? open(*above ? above : ".", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  bool gone = parent >= 0 ? remove_at(parent, slash ? slash + 1 : path, NULL) : errno == ENOENT;

  close_fd(&parent);
  free(above);
  return gone;
}

/* ---- of other runs --------------------------------------------------------------------------- */

/* Ours alone: what others could write says nothing. */
static bool
is_trusted(const struct stat *st)
{
  return S_ISDIR(st->st_mode) && st->st_uid == geteuid() && (st->st_mode & 07777) == 0700;
}

enum folder_state
folder_look(const char *path, int *ret_lock)
{
  struct stat st;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

  *ret_lock = -1;
  if (fd < 0 || fstat(fd, &st) != 0 || !is_trusted(&st)) {
    close_fd(&fd);
    return FOLDER_FOREIGN;
  }
  int lock = openat(fd, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  bool absent = lock < 0 && errno == ENOENT;
  close_fd(&fd);
  if (absent)
    return time(NULL) - st.st_ctime > MAKING_S ? FOLDER_DEAD : FOLDER_LIVES;
  if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
    *ret_lock = lock;
    return FOLDER_DEAD;
  }
  close_fd(&lock);
  return FOLDER_LIVES;
}

/* Shared, so that two who look do not take each other for a run. */
static bool
is_locked(const char *path)
{
  char name[512];

  if (snprintf(name, sizeof(name), "%s/lock", path) >= (int)sizeof(name))
    return false;
  int fd = open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;
  close_fd(&fd);
  return locked;
}

static bool
find_live_in(const char *base, const char *run_id, const char *own, char *ret_path, size_t size)
{
  char prefix[64];
  DIR *dir = opendir(base);
  struct dirent *entry;
  bool found = false;

  int length = snprintf(prefix, sizeof(prefix), FOLDER_PREFIX "%s-", run_id);
  while (dir && !found && (entry = readdir(dir)) != NULL) {
    char path[512];
    if (strncmp(entry->d_name, prefix, (size_t)length) != 0
        || snprintf(path, sizeof(path), "%s/%s", base, entry->d_name) >= (int)sizeof(path))
      continue;
    found = !(own && strcmp(path, own) == 0) && is_locked(path);
    if (found)
      snprintf(ret_path, size, "%s", path);
  }
  if (dir)
    closedir(dir);
  return found;
}

bool
folder_find_live(const char *run_id, const char *own, char *ret_path, size_t size)
{
  const char *bases[FOLDER_BASES];
  size_t n = folder_bases(bases);

  for (size_t i = 0; i < n; i++) {
    if (find_live_in(bases[i], run_id, own, ret_path, size))
      return true;
  }
  return false;
}

void
folder_store_pattern(struct dk_text *text, const char *value, const char *run_id)
{
  for (const char *c = value; *c; c++)
    dk_text_printf(text, strchr("*?[\\", *c) ? "\\%c" : "%c", *c);
  dk_text_printf(text, "-dk%s-*", run_id);
}

/* ---- folders of others ----------------------------------------------------------------------- */

int
folder_make_path(const char *path)
{
  char part[4096];
  size_t n = strlen(path);

  if (n == 0 || n >= sizeof(part)) {
    errno = n ? ENAMETOOLONG : ENOENT;
    return -1;
  }
  for (size_t i = 1; i <= n; i++) {
    if (i < n && path[i] != '/')
      continue;
    memcpy(part, path, i);
    part[i] = '\0';
    if (mkdir(part, 0777) != 0 && errno != EEXIST)
      return -1;
  }
  return 0;
}
