/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and removes the folders of runs.  Owns them, and the lock inside. */
#include "runner/system/folder.h"

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
#include "runner/system/file.h"

/* A container's /dev/shm may be too small for the largest check. */
enum { ROOM_MIB = 48 };

/* After this time a folder without a lock is no longer being made or removed. */
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

static int
make_parts(struct folder *folder, const char *path)
{
  folder->fd = file_make_folder(AT_FDCWD, path, 0700);
  if (folder->fd < 0)
    return -1;
  folder->lock_fd = openat(folder->fd, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (folder->lock_fd < 0 || flock(folder->lock_fd, LOCK_EX) != 0)
    return -1;
  folder->checks = file_make_folder(folder->fd, "checks", 0700);
  if (folder->checks < 0)
    return -1;
  folder->others = file_make_folder(folder->fd, "others", 0700);
  if (folder->others < 0)
    return -1;
  folder->journal_fd =
    openat(folder->fd, "journal", O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
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

/* It gets its name when its lock is held, so that a living run never looks dead. */
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
    folder_remove_tree(made, NULL);
  close_all(folder);
  errno = reason;
  return -1;
}

/* Two runs with one id would make stores with the same names.  Each run looks after it has its
 * lock. */
static int
refuse_second(struct folder *folder, const char *run_id)
{
  char other[sizeof(folder->path)];
  char own[sizeof(folder->path)];
  int found = folder_find_live(run_id, folder->path, other, sizeof(other));
  int reason = found > 0 ? EADDRINUSE : errno;

  if (found == 0)
    return 0;
  memcpy(own, folder->path, sizeof(own));
  folder_done(folder, NULL);
  memcpy(folder->path, found > 0 ? other : own, sizeof(other));
  errno = reason;
  return -1;
}

int
folder_make(struct folder *folder, const char *run_id)
{
  const char *bases[FOLDER_BASES];
  size_t n = folder_bases(bases);

  *folder = (struct folder)FOLDER_NONE;
  for (size_t i = 0; i < n; i++) {
    /* The last place is used even if it has little room. */
    if ((i + 1 == n || has_room(bases[i])) && make_in(folder, bases[i], run_id) == 0)
      return refuse_second(folder, run_id);
  }
  return -1;
}

/* True: the name still belongs to the open folder, and not to something that was put there. */
static bool
has_name(int fd, int above, const char *name)
{
  struct stat own, named;

  return fstat(fd, &own) == 0 && fstatat(above, name, &named, AT_SYMLINK_NOFOLLOW) == 0
         && own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

/* Its present path; for a folder without a name the kernel appends " (deleted)". */
static void
path_now(int fd, char *path, size_t size)
{
  char name[64];

  snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
  ssize_t n = readlink(name, path, size - 1);
  path[n > 0 ? n : 0] = '\0';
}

/* Exchanges it with anything that has its name, so that nothing is lost or followed. */
static bool
was_moved(const struct folder *folder, int part, const char *name)
{
  char path[4096];

  if (has_name(part, folder->fd, name))
    return false;
  path_now(part, path, sizeof(path));
  if (renameat2(AT_FDCWD, path, folder->fd, name, RENAME_EXCHANGE) != 0)
    renameat(AT_FDCWD, path, folder->fd, name);
  return true;
}

const char *
folder_put_back(const struct folder *folder)
{
  bool checks = was_moved(folder, folder->checks, "checks");
  bool others = was_moved(folder, folder->others, "others");

  return checks ? "checks" : others ? "others" : NULL;
}

/* Notes the folder if it still has a name after the removal: then it was moved. */
static void
note_moved(struct remains *left, int fd)
{
  static const char gone[] = " (deleted)"; /* as the kernel says it */
  char path[sizeof(left->name)];

  path_now(fd, path, sizeof(path));
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
  if (folder->lock_fd < 0) /* it was not made: the path may belong to another run */
    return;
  remove_inside(folder->checks, left);
  remove_inside(folder->others, left);
  if (!folder->keep) {
    struct remains again = {.n = 0}; /* of the second attempt */
    bool emptied = remove_inside(folder->fd, left && left->n == 0 ? left : &again);
    if (emptied && has_name(folder->fd, AT_FDCWD, folder->path))
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
folder_remove_tree(const char *path, struct remains *left)
{
  const char *slash = strrchr(path, '/');
  char *above = strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
  int parent = above ? open(*above ? above : ".", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  bool gone = parent >= 0 ? remove_at(parent, slash ? slash + 1 : path, left) : errno == ENOENT;

  if (parent < 0 && !gone && left) {
    left->n++;
    snprintf(left->why, sizeof(left->why), "%s", strerror(errno));
  }
  close_fd(&parent);
  free(above);
  return gone;
}

/* ---- of other runs --------------------------------------------------------------------------- */

/* True: only this user can write to it; a folder that others can write to proves nothing. */
static bool
is_trusted(const struct stat *st)
{
  return S_ISDIR(st->st_mode) && st->st_uid == geteuid() && (st->st_mode & 07777) == 0700;
}

/* The errors that mean that it is no folder of ours; all others are failures. */
static bool
is_out_of_reach(int reason)
{
  return reason == ENOENT || reason == ENOTDIR || reason == ELOOP || reason == EACCES
         || reason == ENAMETOOLONG;
}

void
folder_dead_run_done(struct dead_run *dead)
{
  close_fd(&dead->lock_fd);
  close_fd(&dead->fd);
}

/* The folder of a dead run has no lock, or one that can be taken. */
static enum folder_state
look_at_lock(struct dead_run *run, const struct stat *st)
{
  run->lock_fd = openat(run->fd, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (run->lock_fd < 0 && errno == ENOENT)
    return time(NULL) - st->st_ctime > MAKING_S ? FOLDER_DEAD : FOLDER_LIVES;
  if (run->lock_fd < 0)
    return FOLDER_UNKNOWN;
  if (flock(run->lock_fd, LOCK_EX | LOCK_NB) == 0)
    return FOLDER_DEAD;
  return errno == EWOULDBLOCK ? FOLDER_LIVES : FOLDER_UNKNOWN;
}

enum folder_state
folder_look(const char *path, struct dead_run *ret)
{
  struct stat st;
  enum folder_state state = FOLDER_FOREIGN;

  *ret = (struct dead_run)DEAD_RUN_NONE;
  ret->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (ret->fd < 0)
    return is_out_of_reach(errno) ? FOLDER_FOREIGN : FOLDER_UNKNOWN;
  if (fstat(ret->fd, &st) != 0)
    state = FOLDER_UNKNOWN;
  else if (is_trusted(&st))
    state = look_at_lock(ret, &st);
  int reason = errno;
  if (state != FOLDER_DEAD)
    folder_dead_run_done(ret);
  errno = reason;
  return state;
}

/* Takes the lock shared, so that two callers do not mistake each other for a run.  1, 0, or -1 with
 * errno. */
static int
is_locked(int base, const char *folder)
{
  char name[300];

  if (snprintf(name, sizeof(name), "%s/lock", folder) >= (int)sizeof(name))
    return 0;
  int fd = openat(base, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0)
    return is_out_of_reach(errno) || errno == ENXIO || errno == EISDIR ? 0 : -1;
  int locked = flock(fd, LOCK_SH | LOCK_NB) == 0 ? 0 : errno == EWOULDBLOCK ? 1 : -1;
  int reason = errno;
  close_fd(&fd);
  errno = reason;
  return locked;
}

/* A listing must not be shorter than the folder: NULL with errno 0 only at its end. */
static const struct dirent *
next_named(DIR *dir, const char *prefix)
{
  const struct dirent *entry;

  do {
    errno = 0;
    entry = readdir(dir);
  } while (entry && strncmp(entry->d_name, prefix, strlen(prefix)) != 0);
  return entry;
}

/* 1, 0, or -1 with errno; a place that does not exist has none. */
static int
find_live_in(const char *base, const char *run_id, const char *own, char *ret_path, size_t size)
{
  char prefix[64];
  DIR *dir = opendir(base);
  const struct dirent *entry;
  int found = 0;

  if (!dir)
    return is_out_of_reach(errno) ? 0 : -1;
  snprintf(prefix, sizeof(prefix), FOLDER_PREFIX "%s-", run_id);
  while (found == 0 && (entry = next_named(dir, prefix)) != NULL) {
    char path[512];
    if (snprintf(path, sizeof(path), "%s/%s", base, entry->d_name) >= (int)sizeof(path)
        || (own && strcmp(path, own) == 0))
      continue;
    found = is_locked(dirfd(dir), entry->d_name);
    if (found > 0)
      snprintf(ret_path, size, "%s", path);
  }
  int reason = errno;
  if (found == 0 && reason != 0)
    found = -1;
  closedir(dir);
  errno = reason;
  return found;
}

int
folder_find_live(const char *run_id, const char *own, char *ret_path, size_t size)
{
  const char *bases[FOLDER_BASES];
  size_t n = folder_bases(bases);
  int found = 0;

  for (size_t i = 0; i < n && found == 0; i++)
    found = find_live_in(bases[i], run_id, own, ret_path, size);
  return found;
}

int
folder_find_stores(const char *value, const char *run_id,
                   void (*take)(void *context, const char *suffix), void *context)
{
  struct dk_text above = DK_TEXT_EMPTY;
  struct dk_text prefix = DK_TEXT_EMPTY;
  const char *slash = strrchr(value, '/');
  const char *last = slash ? slash + 1 : value;
  const struct dirent *entry;

  dk_text_add(&above, slash ? value : "./", slash ? (size_t)(last - value) : 2);
  dk_text_printf(&prefix, "%s-dk%s-", last, run_id);
  bool whole = !dk_text_failed(&above) && !dk_text_failed(&prefix);
  DIR *dir = whole ? opendir(dk_text_str(&above)) : NULL;
  errno = whole ? errno : ENOMEM;
  while (dir && (entry = next_named(dir, dk_text_str(&prefix))) != NULL)
    take(context, entry->d_name + strlen(last) + 1);
  int reason = dir || !is_out_of_reach(errno) ? errno : 0;
  if (dir)
    closedir(dir);
  dk_text_done(&above);
  dk_text_done(&prefix);
  errno = reason;
  return reason == 0 ? 0 : -1;
}

/* ---- other folders --------------------------------------------------------------------------- */

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
