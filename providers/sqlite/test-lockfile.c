/* SPDX-License-Identifier: Apache-2.0 */
/* The lock file: it has one owner over handles and processes, no waiter is passed, and waits end.
 * And its bell: no listener takes a ring from another. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "providers/sqlite/test-files.h"

struct handle {
  struct bell bell;
  struct lockfile lock;
};

static void
open_handle(struct handle *h, const char *store)
{
  if (bell_init(&h->bell, store, &why) != DK_OK ||
      lockfile_open(&h->lock, &h->bell, store, true, &why) != DK_OK)
    BAIL_OUT("%s", why.text);
}

static void
close_handle(struct handle *h)
{
  lockfile_close(&h->lock);
  bell_done(&h->bell);
}

static bool
is_current(const struct lockfile *l)
{
  bool is = false;

  if (lockfile_look(l, &is, &why) != DK_OK)
    BAIL_OUT("%s", why.text);
  return is;
}

static bool
is_readable(int fd, int timeout_ms)
{
  struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

  return poll(&poll_fd, 1, timeout_ms) == 1;
}

/* ---- the lock -------------------------------------------------------------------------------- */

static void
test_one_owner(void)
{
  struct handle a, b;
  const char *store = place("owner");

  expect_refused(lockfile_open(&a.lock, &a.bell, store, false, &why), DK_NOT_FOUND, "owner-lock",
                 "cannot be opened", "without leave none is made");
  open_handle(&a, store);
  open_handle(&b, store);
  cmp_ok(a.lock.is_new, "==", true, "the first has made it");
  cmp_ok(b.lock.is_new, "==", false, "the second has not");
  cmp_ok(lockfile_take(&a.lock, 0, -1, &why), "==", DK_OK, "it is taken");
  expect_refused(lockfile_try(&b.lock, &why), DK_BUSY, "another process", "", "and by no other");
  int64_t before = real_ms();
  expect_refused(lockfile_take(&b.lock, 60, -1, &why), DK_BUSY, "busy_timeout, 60 ms", "owner-lock",
                 "a waiter gets the reason");
  cmp_ok(real_ms() - before, ">=", 60, "after the time");
  lockfile_release(&a.lock);
  cmp_ok(lockfile_try(&b.lock, &why), "==", DK_OK, "it is free after the release");
  expect_refused(lockfile_try(&a.lock, &why), DK_BUSY, "", "", "and taken again");
  close_handle(&b);
  cmp_ok(lockfile_take(&a.lock, 0, -1, &why), "==", DK_OK, "it is free after the close");
  ok(is_current(&a.lock), "it is the file of its name");
  cmp_ok(lockfile_unlink(&a.lock, &why), "==", DK_OK, "it is removed");
  ok(!is_current(&a.lock), "and is not when it was removed");
  open_handle(&b, store);
  ok(!is_current(&a.lock), "nor when there is another");
  close_handle(&a);
  close_handle(&b);
}

/* destroy_store must not answer that nothing is left. */
static void
test_removal_fails(void)
{
  const char *store = place("stays");
  struct handle h;

  open_handle(&h, store);
  unlink(h.lock.path);
  if (mkdir(h.lock.path, 0700) != 0)
    BAIL_OUT("mkdir %s", h.lock.path);
  expect_refused(lockfile_unlink(&h.lock, &why), DK_REFUSED, "stays-lock", "cannot be removed",
                 "a file that cannot be removed is reported");
  rmdir(h.lock.path);
  cmp_ok(lockfile_unlink(&h.lock, &why), "==", DK_OK, "one that is removed already is not");
  close_handle(&h);
}

/* A failed open removes the lock file that it has made, unless other handles use it. */
static void
test_in_use(void)
{
  const char *store = place("in-use");
  struct handle maker, user;

  open_handle(&maker, store);
  open_handle(&user, store);
  cmp_ok(lockfile_take(&user.lock, 0, -1, &why), "==", DK_OK, "another was faster");
  cmp_ok(lockfile_use(&user.lock, &why), "==", DK_OK, "and uses it");
  lockfile_release(&user.lock);
  lockfile_take(&maker.lock, 0, -1, &why);
  cmp_ok(lockfile_use(&maker.lock, &why), "==", DK_OK, "so does the handle that has made it");
  lockfile_unlink_if_unused(&maker.lock);
  ok(is_current(&user.lock), "a handle does not remove it while others use it");
  close_handle(&user);
  lockfile_unlink_if_unused(&maker.lock);
  ok(!is_current(&maker.lock), "and removes it when no other handle uses it");
  close_handle(&maker);
}

static void
test_woken(void)
{
  struct handle a, b;
  int wake = eventfd(1, EFD_CLOEXEC);

  open_handle(&a, place("woken"));
  open_handle(&b, place("woken"));
  lockfile_take(&a.lock, 0, -1, &why);
  int64_t before = real_ms();
  cmp_ok(lockfile_take(&b.lock, 60000, wake, &why), "==", DK_CALL_CANCELLED, "a wait is ended");
  ok(strstr(why.text, "cancelled while another process held it"), "and says what held it");
  cmp_ok(real_ms() - before, "<", 30000, "at once");
  lockfile_release(&a.lock);
  cmp_ok(lockfile_try(&a.lock, &why), "==", DK_OK, "and leaves nothing locked");
  close_handle(&a);
  close_handle(&b);
  close(wake);
}

struct waiter {
  struct handle handle;
  int took[2];          /* a byte: it holds the store */
  int go_on[2];         /* a byte: it may release it */
};

static void *
wait_for_store(void *context)
{
  struct waiter *w = context;
  char byte = 0;

  if (lockfile_take(&w->handle.lock, 60000, -1, &why) == DK_OK)
    byte = 1;
  if (write(w->took[1], &byte, 1) != 1 || read(w->go_on[0], &byte, 1) != 1)
    return NULL;
  lockfile_release(&w->handle.lock);
  return NULL;
}

/* The gate is held: its holder waits for the store. */
static bool
gate_is_held(const char *store)
{
  char *path = lockfile_path(store);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  struct flock gate = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1};
  bool is_held = fcntl(fd, F_OFD_GETLK, &gate) == 0 && gate.l_type != F_UNLCK;

  close(fd);
  free(path);
  return is_held;
}

static void
test_nobody_passes(void)
{
  const char *store = place("gate");
  struct handle a;
  struct waiter w;
  pthread_t thread;
  char byte = 0;

  open_handle(&a, store);
  open_handle(&w.handle, store);
  if (pipe(w.took) < 0 || pipe(w.go_on) < 0)
    BAIL_OUT("no pipe");
  lockfile_take(&a.lock, 0, -1, &why);
  if (pthread_create(&thread, NULL, wait_for_store, &w) != 0)
    BAIL_OUT("no thread");
  for (int64_t since = real_ms(); !gate_is_held(store); is_readable(w.took[0], 1))
    if (real_ms() - since > 60000)
      BAIL_OUT("the waiter does not hold the gate");
  /* The waiter has the gate, then the store: the handle that releases comes behind it. */
  lockfile_release(&a.lock);
  expect_refused(lockfile_take(&a.lock, 0, -1, &why), DK_BUSY, "", "", "no handle passes a waiter");
  expect_refused(lockfile_try(&a.lock, &why), DK_BUSY, "", "", "nor by a try");
  ok(is_readable(w.took[0], 60000) && read(w.took[0], &byte, 1) == 1 && byte == 1,
     "the waiter has it");
  ok(write(w.go_on[1], &byte, 1) == 1, "and releases it");
  pthread_join(thread, NULL);
  cmp_ok(lockfile_take(&a.lock, 60000, -1, &why), "==", DK_OK, "then it is free");
  close_handle(&a);
  close_handle(&w.handle);
  close(w.took[0]), close(w.took[1]), close(w.go_on[0]), close(w.go_on[1]);
}

static void
test_owner_dies(void)
{
  const char *store = place("dies");
  struct handle a;
  int pipes[2];
  char byte;

  if (pipe(pipes) < 0)
    BAIL_OUT("no pipe");
  pid_t child = fork();
  if (child == 0) {
    struct handle h;
    open_handle(&h, store);
    if (lockfile_take(&h.lock, 0, -1, &why) != DK_OK || write(pipes[1], "x", 1) != 1)
      _exit(1);
    for (;;)
      pause();
  }
  if (read(pipes[0], &byte, 1) != 1)
    BAIL_OUT("no child");
  open_handle(&a, store);
  expect_refused(lockfile_take(&a.lock, 20, -1, &why), DK_BUSY, "", "", "another process has it");
  kill(child, SIGKILL);
  cmp_ok(lockfile_take(&a.lock, 60000, -1, &why), "==", DK_OK, "it is free when that was killed");
  waitpid(child, NULL, 0);
  close_handle(&a);
  close(pipes[0]), close(pipes[1]);
}

/* Nothing is lost for lack of a descriptor. */
static void
test_taken_without_an_ear(void)
{
  struct handle a, b;
  const char *store = place("deaf");

  open_handle(&a, store);
  open_handle(&b, store);
  cmp_ok(lockfile_take(&a.lock, 0, -1, &why), "==", DK_OK, "one has the store");
  free(b.bell.path);
  b.bell.path = strdup("/nowhere/to-be-watched");
  expect_refused(lockfile_take(&b.lock, 20, -1, &why), DK_BUSY, "busy_timeout, 20 ms", "deaf-lock",
                 "a handle that cannot hear the bell waits too");
  close_handle(&b);
  close_handle(&a);
}

/* ---- whose it is ----------------------------------------------------------------------------- */

enum { OWNER = 54321, GROUP = 54322, MEMBER = 54323 };

/* The linkat of the lock file's code.  What else is to happen at that moment, and what was seen of
 * the file before it had its name. */
static bool no_proc;
static const char *another_makes;
static struct stat unnamed;

int
linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
  if (stat(from, &unnamed) < 0)
    BAIL_OUT("%s: no such descriptor", from);
  if (another_makes)
    make_file(another_makes, "", 0);
  if (no_proc) {
    errno = ENOENT;
    return -1;
  }
  return (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

static void
is_owned(const char *path, uid_t uid, gid_t gid, mode_t mode, const char *name)
{
  struct stat file = {0};

  ok(stat(path, &file) == 0 && file.st_uid == uid && file.st_gid == gid &&
       (file.st_mode & 07777) == mode,
     "%s", name);
  if (file.st_uid != uid || file.st_gid != gid || (file.st_mode & 07777) != mode)
    diag("found: %u:%u, 0%o", (unsigned)file.st_uid, (unsigned)file.st_gid,
         (unsigned)file.st_mode & 07777u);
}

struct person {
  const char *store;
  uid_t uid;
  gid_t gid;
};

/* Opens the lock file as that person, and takes it. */
static void
use_as(void *context)
{
  const struct person *p = context;
  struct handle h;

  if (setgroups(0, NULL) < 0 || setgid(p->gid) < 0 || setuid(p->uid) < 0)
    _exit(1);
  if (bell_init(&h.bell, p->store, &why) != DK_OK ||
      lockfile_open(&h.lock, &h.bell, p->store, true, &why) != DK_OK)
    _exit(3);
  _exit(lockfile_take(&h.lock, 0, -1, &why) == DK_OK ? 0 : 2);
}

static int
used_by(const char *store, uid_t uid, gid_t gid)
{
  return in_child(use_as, &(struct person){store, uid, gid});
}

/* A folder of that name and mode, and a store in it; both are the owner's. */
static const char *
owned_store(const char *name, mode_t folder_mode, mode_t mode)
{
  char store[300];
  const char *folder = place(name);

  snprintf(store, sizeof store, "%s/store", name);
  if (mkdir(folder, 0700) < 0 || chmod(place(""), 0711) < 0)
    BAIL_OUT("no folder %s", folder);
  make_file(place(store), "", 0);
  if (chown(folder, OWNER, GROUP) < 0 || chmod(folder, folder_mode) < 0 ||
      chown(place(store), OWNER, GROUP) < 0 || chmod(place(store), mode) < 0)
    BAIL_OUT("%s cannot be given away", folder);
  return place(store);
}

/* A command that root types once, after a restore for example. */
static void
test_made_by_root(void)
{
  const char *store = owned_store("given", 0700, 0600);
  const char *path = place("given/store-lock");
  struct handle h;

  for (int direct = 0; direct <= 1; direct++) {
    no_proc = direct;
    unnamed = (struct stat){0};
    open_handle(&h, store);
    no_proc = false;
    cmp_ok(h.lock.is_new, "==", true, "root makes the lock file of another's store");
    ok(unnamed.st_uid == OWNER && unnamed.st_gid == GROUP && (unnamed.st_mode & 07777) == 0600,
       "it is the owner's before it has its name");
    is_owned(path, OWNER, GROUP, 0600, direct ? "and without /proc" : "and with it");
    ok(is_current(&h.lock), "it is the file of its name");
    close_handle(&h);
    cmp_ok(used_by(store, OWNER, GROUP), "==", 0, "the owner uses it");
    unlink(path);
  }
}

/* What was not made by this open is left as it is. */
static void
test_not_made_by_root(void)
{
  const char *store = owned_store("left", 0700, 0600);
  const char *path = place("left/store-lock");
  struct handle h;

  make_file(path, "", 0);
  open_handle(&h, store);
  is_owned(path, 0, 0, 0600, "a lock file that is there stays whose it is");
  close_handle(&h);
  unlink(path);
  another_makes = path;
  open_handle(&h, store);
  another_makes = NULL;
  cmp_ok(h.lock.is_new, "==", false, "two make it at once: one has");
  is_owned(path, 0, 0, 0600, "and the other leaves it as it is");
  close_handle(&h);
  unlink(path);
  make_file(place("left/other"), "", 0);
  if (symlink(place("left/other"), path) < 0)
    BAIL_OUT("no link");
  expect_refused(lockfile_open(&h.lock, &h.bell, store, true, &why), DK_REFUSED, path,
                 "cannot be opened", "a link is not followed");
  is_owned(place("left/other"), 0, 0, 0600, "nor what it leads to given away");

  open_handle(&h, place("new"));
  is_owned(place("new-lock"), 0, getegid(), 0600, "that of a store to be made is root's own");
  close_handle(&h);
}

static void
test_group_store(void)
{
  const char *store = owned_store("group", 02770, 0660);
  const char *path = place("group/store-lock");
  struct handle h;

  open_handle(&h, store);
  is_owned(path, OWNER, GROUP, 0660, "root, a store of a group: owner, group, mode");
  close_handle(&h);
  cmp_ok(used_by(store, OWNER, GROUP), "==", 0, "the owner uses it");
  cmp_ok(used_by(store, MEMBER, GROUP), "==", 0, "and another of the group");
  unlink(path);
  cmp_ok(used_by(store, MEMBER, GROUP), "==", 0, "another of the group makes it");
  is_owned(path, MEMBER, GROUP, 0660, "it is the group's, as the folder hands it down");
  cmp_ok(used_by(store, OWNER, GROUP), "==", 0, "and the owner uses it");
}

/* ---- the bell -------------------------------------------------------------------------------- */

static struct ear *
lend(struct handle *h)
{
  struct ear *ear = NULL;

  if (bell_lend(&h->bell, &ear, &why) != DK_OK)
    BAIL_OUT("%s", why.text);
  bell_hear_out(&h->bell, ear);
  return ear;
}

static int
inotify_descriptors(void)
{
  DIR *folder = opendir("/proc/self/fd");
  char path[300], target[64];
  int n = 0;

  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
    ssize_t size = readlink(path, target, sizeof target);
    n += size > 0 && memmem(target, (size_t)size, "inotify", 7);
  }
  closedir(folder);
  return n;
}

/* What both numbers are for an ear that has heard all. */
static void
hear_numbers(struct handle *h, struct ear *ear, uint64_t ret_numbers[QUEUES])
{
  bell_hear_out(&h->bell, ear);
  for (int queue = 0; queue < QUEUES; queue++)
    ret_numbers[queue] = lockfile_rung_for(&h->lock, (enum queue)queue);
}

static void
test_numbers(void)
{
  uint64_t before[QUEUES], after[QUEUES];
  struct handle a, b;

  open_handle(&a, place("numbers"));
  open_handle(&b, place("numbers"));
  struct ear *far = lend(&b);
  hear_numbers(&b, far, before);
  lockfile_ring_for(&a.lock, RING_WORK);
  ok(is_readable(far->fd, 0), "a ring for a queue is heard");
  hear_numbers(&b, far, after);
  ok(after[QUEUE_WORK] != before[QUEUE_WORK], "its number has changed");
  ok(after[QUEUE_TURNS] == before[QUEUE_TURNS], "and not that of the other");
  lockfile_ring(&a.lock);
  hear_numbers(&b, far, before);
  ok(memcmp(before, after, sizeof before) == 0, "a ring for the lock changes neither");
  lockfile_ring_for(&a.lock, RING_ALL);
  hear_numbers(&b, far, after);
  ok(after[QUEUE_WORK] != before[QUEUE_WORK] && after[QUEUE_TURNS] != before[QUEUE_TURNS],
     "a ring for all changes both");

  /* As on a full disk: nothing can be written. */
  int fd = a.lock.fd;
  a.lock.fd = open(a.lock.path, O_RDONLY | O_CLOEXEC);
  ok(lockfile_ring_for(&a.lock, RING_WORK), "if no number can be written there is a ring still");
  close(a.lock.fd);
  a.lock.fd = fd;
  ok(is_readable(far->fd, 0), "which is heard");
  hear_numbers(&b, far, before);
  ok(after[QUEUE_WORK] != before[QUEUE_WORK] && after[QUEUE_TURNS] != before[QUEUE_TURNS],
     "and makes all waiters look");
  close_handle(&a);
  close_handle(&b);
}

static void
test_bell(void)
{
  struct handle a, b;
  struct ear *ears[100];

  open_handle(&a, place("bell"));
  open_handle(&b, place("bell"));
  struct ear *one = lend(&a), *two = lend(&a), *far = lend(&b);
  ok(!is_readable(one->fd, 0) && !is_readable(far->fd, 0), "nothing was rung");
  ok(lockfile_ring(&a.lock), "it is rung");
  ok(is_readable(one->fd, 0), "an ear hears it at once");
  bell_hear_out(&a.bell, one);
  ok(!is_readable(one->fd, 0), "and has heard it");
  ok(is_readable(two->fd, 0), "the other ear hears it still");
  ok(is_readable(far->fd, 0), "and that of another handle");
  bell_hear_out(&a.bell, two);
  ok(!is_readable(two->fd, 0) && !is_readable(one->fd, 0), "each hears it once");
  bell_hear_out(&b.bell, far);
  pid_t child = fork();
  if (child == 0) {
    struct handle h;
    open_handle(&h, place("bell"));
    _exit(lockfile_ring(&h.lock) ? 0 : 1);
  }
  waitpid(child, NULL, 0);
  ok(is_readable(one->fd, 0) && is_readable(far->fd, 0), "another process rings");
  bell_take_back(&a.bell, two);
  bell_hear_out(&a.bell, one);
  two = lend(&a);
  ok(!is_readable(two->fd, 0), "a borrowed ear has heard all earlier rings");
  for (size_t i = 0; i < 100; i++)
    ears[i] = lend(&a);
  cmp_ok(inotify_descriptors(), "==", 2, "two handles have two inotify descriptors");
  lockfile_ring(&b.lock);
  size_t heard = 0;
  for (size_t i = 0; i < 100; i++) {
    heard += is_readable(ears[i]->fd, 0);
    bell_hear_out(&a.bell, ears[i]);
  }
  cmp_ok(heard, "==", 100, "a hundred ears hear one ring");
  close_handle(&a);
  close_handle(&b);
  cmp_ok(inotify_descriptors(), "==", 0, "none is left");
}

/* Listeners that look, and then wait for a ring: none may sleep through the last one. */
struct listener {
  struct handle *handle;
  const uint64_t *work;
  uint64_t last;
  bool slept;
};

static void *
listen_until_last(void *context)
{
  struct listener *l = context;
  struct ear *ear;
  struct why my_why;

  if (bell_lend(&l->handle->bell, &ear, &my_why) != DK_OK)
    return NULL;
  for (l->slept = false; !l->slept;) {
    bell_hear_out(&l->handle->bell, ear);
    if (__atomic_load_n(l->work, __ATOMIC_SEQ_CST) == l->last)
      break;
    l->slept = !is_readable(ear->fd, 20000);
  }
  bell_take_back(&l->handle->bell, ear);
  return l;
}

static void
test_no_ring_is_lost(void)
{
  enum { LISTENERS = 8, RINGS = 3000 };
  struct handle h;
  struct listener listeners[LISTENERS];
  pthread_t threads[LISTENERS];
  uint64_t work = 0;
  int slept = 0, done = 0;
  void *result;

  open_handle(&h, place("rings"));
  for (int i = 0; i < LISTENERS; i++) {
    listeners[i] = (struct listener){&h, &work, RINGS, true};
    if (pthread_create(&threads[i], NULL, listen_until_last, &listeners[i]) != 0)
      BAIL_OUT("no thread");
  }
  for (int i = 0; i < RINGS; i++) {
    __atomic_add_fetch(&work, 1, __ATOMIC_SEQ_CST);
    lockfile_ring(&h.lock);
  }
  for (int i = 0; i < LISTENERS; i++) {
    pthread_join(threads[i], &result);
    done += result != NULL;
    slept += listeners[i].slept;
  }
  cmp_ok(done, "==", LISTENERS, "all listeners returned");
  cmp_ok(slept, "==", 0, "none slept through a ring");
  close_handle(&h);
}

int
main(void)
{
  plan(NO_PLAN);
  begin();
  test_one_owner();
  test_removal_fails();
  test_in_use();
  test_woken();
  test_nobody_passes();
  test_owner_dies();
  test_taken_without_an_ear();
  if (geteuid() == 0) {
    test_made_by_root();
    test_not_made_by_root();
    test_group_store();
  } else {
    skip(1, "the owner of a lock file that root makes: only root can make it");
  }
  test_bell();
  test_numbers();
  test_no_ring_is_lost();
  return end();
}
