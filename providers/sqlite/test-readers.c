/* SPDX-License-Identifier: Apache-2.0 */
/* A user who may read a store, but not write it, cannot block the writers by its lock file: only
 * users who may write have rights to that file.  The others can still read. */
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/sqlite/test-files.h"

enum { NOBODY = 65534 };

static const char *
lock_of(const char *path)
{
  char name[300];

  snprintf(name, sizeof name, "%s-lock", strrchr(path, '/') + 1);
  return place(name);
}

/* ---- modes ----------------------------------------------------------------------------------- */

static const struct {
  mode_t store, lock;
} modes[] = {
  {0600, 0600}, {0640, 0600}, {0644, 0600}, {0660, 0660}, {0664, 0660}, {0666, 0666}, {0602, 0606},
};

/* Made beside a store of that mode, whatever the umask is; and one of an earlier build. */
static void
test_modes(mode_t umask_bits)
{
  const char *path = place("modes"), *lock = lock_of(path);
  mode_t before = umask(umask_bits);

  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    chmod(path, 0600);
    try_open(path, DK_OPEN_CREATE);
    chmod(path, modes[i].store);
    unlink(lock);
    cmp_ok(try_open(path, 0), "==", DK_OK, "a store of mode 0%o", (unsigned)modes[i].store);
    cmp_ok(mode_of(lock), "==", modes[i].lock, "its lock file has mode 0%o",
           (unsigned)modes[i].lock);
    chmod(lock, modes[i].store);
    cmp_ok(try_open(path, 0), "==", DK_OK, "an earlier build gave it that of the store");
    cmp_ok(mode_of(lock), "==", modes[i].lock & (modes[i].store | 0600),
           "the rights of users who only read are removed");
  }
  umask(before);
  destroy(path);
}

/* A link to another file is no way to take rights from that file. */
static void
test_other_name(void)
{
  const char *path = place("linked"), *other = place("other");

  try_open(path, DK_OPEN_CREATE);
  unlink(lock_of(path));
  make_file(other, "", 0);
  chmod(other, 0644);
  if (link(other, lock_of(path)) < 0)
    BAIL_OUT("no link");
  try_open(path, 0);
  cmp_ok(mode_of(other), "==", 0644, "a lock file with another name is left as it is");
  unlink(lock_of(path));
  destroy(path);
}

/* ---- users who only read --------------------------------------------------------------------- */

static void
become_nobody(void)
{
  if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
    _exit(9);
}

/* Locks what can be opened for reading, reports whether it could, and holds it until it is killed.
 */
static void
hold_lock(const char *path, int said)
{
  struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 2};
  int fd = open(lock_of(path), O_RDONLY | O_CLOEXEC);
  char has_it = fd >= 0 && fcntl(fd, F_OFD_SETLK, &all) == 0 ? 'y' : 'n';

  if (write(said, &has_it, 1) == 1)
    pause();
  _exit(0);
}

static pid_t
begin_holding(const char *path, char *ret_has_it)
{
  int said[2];

  if (pipe(said) < 0)
    BAIL_OUT("no pipe");
  pid_t child = fork();
  if (child == 0) {
    become_nobody();
    hold_lock(path, said[1]);
  }
  close(said[1]);
  if (child < 0 || read(said[0], ret_has_it, 1) != 1)
    BAIL_OUT("no process of another user");
  close(said[0]);
  return child;
}

static void
read_as_nobody(void *context)
{
  struct store_files files;
  struct connection c;
  int64_t n;

  become_nobody();
  if (open_files(context, DK_OPEN_READ_ONLY, &files, &c) != DK_OK)
    _exit(1);
  _exit(connection_integer(&c, "SELECT count(*) FROM instance", &n, &why) == DK_OK ? 0 : 2);
}

static void
expect_unhindered(const char *path, const char *name)
{
  char has_it = 'n';
  pid_t holder = begin_holding(path, &has_it);

  cmp_ok(has_it, "==", 'n', "%s: a user who only reads gets no lock", name);
  cmp_ok(try_open(path, 0), "==", DK_OK, "%s: and the store is written meanwhile", name);
  kill(holder, SIGKILL);
  waitpid(holder, NULL, 0);
  cmp_ok(in_child(read_as_nobody, (void *)path), "==", 0, "%s: but reads", name);
}

static void
test_reader(void)
{
  const char *path = place("read");

  if (chmod(place(""), 0755) < 0 || try_open(path, DK_OPEN_CREATE) != DK_OK)
    BAIL_OUT("%s", why.text);
  chmod(path, 0644);
  unlink(lock_of(path));
  sql_at(path, "SELECT count(*) FROM meta"); /* the next makes log and index as the store is */
  try_open(path, 0);
  expect_unhindered(path, "made by this build");
  chmod(lock_of(path), 0644);
  try_open(path, 0);
  expect_unhindered(path, "of an earlier build, opened once");
  destroy(path);
}

int
main(void)
{
  plan(NO_PLAN);
  begin();
  test_modes(0);
  test_modes(0077);
  test_other_name();
  if (geteuid() == 0)
    test_reader();
  else
    skip(1, "needs another user, whom only root can become");
  return end();
}
