/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a run: it is removed completely, and nothing outside it; its lock shows whether the
 * run is dead. */
#include "runner/system/folder.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/base/text.h"

static char base[256];

static const char *
in_base(const char *name)
{
  static char paths[4][512];
  static unsigned next;
  char *path = paths[next++ % 4];

  snprintf(path, sizeof(paths[0]), "%s/%s", base, name);
  return path;
}

static void
touch(const char *path)
{
  int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

  if (fd < 0)
    BAIL_OUT("%s cannot be made", path);
  close(fd);
}

static bool
is_there(const char *path)
{
  return access(path, F_OK) == 0;
}

static void
removes_only_its_own(void)
{
  if (folder_make_path(in_base("tree/a/b")) != 0 || folder_make_path(in_base("outside")) != 0)
    BAIL_OUT("no folder can be made");
  touch(in_base("tree/a/b/file"));
  touch(in_base("outside/file"));
  if (symlink(in_base("outside"), in_base("tree/link")) != 0)
    BAIL_OUT("no link can be made");
  chmod(in_base("tree/a/b"), 0);
  ok(folder_remove_tree(in_base("tree"), NULL), "a tree is removed");
  ok(!is_there(in_base("tree")), "and no longer exists");
  ok(is_there(in_base("outside/file")), "the target of a link in it stays");
  ok(folder_remove_tree(in_base("tree"), NULL), "a tree that does not exist counts as removed");
  if (symlink(in_base("outside"), in_base("link")) != 0)
    BAIL_OUT("no link can be made");
  ok(!folder_remove_tree(in_base("link"), NULL), "a link is not a tree");
  ok(is_there(in_base("outside/file")), "and its target stays");
}

static void
tells_the_dead(void)
{
  struct folder folder;
  char path[sizeof(folder.path)];
  struct dead_run dead;

  if (folder_make(&folder, "test") != 0)
    BAIL_OUT("no folder of a run can be made");
  snprintf(path, sizeof(path), "%s", folder.path);
  cmp_ok(folder_look(path, &dead), "==", FOLDER_LIVES, "a living run");
  struct folder second;
  cmp_ok(folder_make(&second, "test"), "==", -1, "no second run gets its id");
  is(second.path, path, "and the path of the living run is returned");
  folder_done(&second, NULL);
  cmp_ok(folder_look(path, &dead), "==", FOLDER_LIVES, "it lives on");
  folder_note(&folder, '+', 3);
  folder_note_store(&folder, "dktest-3-a");
  folder_done(&folder, NULL);
  ok(is_there(path), "with stores left over the journal stays");
  cmp_ok(folder_look(path, &dead), "==", FOLDER_DEAD, "a dead run");
  cmp_ok(dead.lock_fd, ">=", 0, "it is locked while it is cleaned");
  folder_dead_run_done(&dead);
  ok(folder_remove_tree(path, NULL), "and is removed");

  if (folder_make(&folder, "test") != 0)
    BAIL_OUT("no folder of a run can be made");
  snprintf(path, sizeof(path), "%s", folder.path);
  folder_done(&folder, NULL);
  ok(!is_there(path), "without leftovers nothing stays");
}

/* A folder with a lock that is not held, as a dead run leaves it. */
static const char *
left_folder(const char *name, mode_t mode)
{
  const char *path = in_base(name);
  char lock[600];

  snprintf(lock, sizeof(lock), "%s/lock", path);
  if (mkdir(path, 0700) != 0)
    BAIL_OUT("%s cannot be made", path);
  touch(lock);
  if (chmod(path, mode) != 0)
    BAIL_OUT("%s cannot be changed", path);
  return path;
}

static void
is_state(const char *path, enum folder_state expected, const char *name)
{
  struct dead_run dead;

  cmp_ok(folder_look(path, &dead), "==", expected, "%s", name);
  folder_dead_run_done(&dead);
}

static void
believes_only_its_own(void)
{
  is_state(left_folder("own", 0700), FOLDER_DEAD, "a dead one of our own");
  is_state(left_folder("open", 0770), FOLDER_FOREIGN, "one that others can write to");
  is_state(left_folder("sticky", 01777), FOLDER_FOREIGN, "one that all can write to");
  if (symlink(in_base("own"), in_base("link-to-own")) != 0)
    BAIL_OUT("no link can be made");
  is_state(in_base("link-to-own"), FOLDER_FOREIGN, "a link");
  is_state(in_base("gone"), FOLDER_FOREIGN, "a missing one");
  unlink(in_base("own/lock"));
  is_state(in_base("own"), FOLDER_LIVES, "a young one without a lock may still get one");
  const char *other = left_folder("other", 0700);
  if (geteuid() == 0 && chown(other, 65534, 65534) == 0)
    is_state(other, FOLDER_FOREIGN, "one of another user");
  else
    skip(1, "only root can give a folder away");
}

static void
note_suffix(void *context, const char *suffix)
{
  dk_text_printf(context, "[%s]", suffix);
}

static void
finds_the_stores_of_a_run(void)
{
  struct dk_text text = DK_TEXT_EMPTY;

  touch(in_base("s*.db-dkrun-1-a"));
  touch(in_base("s*.db-dkother-1-a"));
  touch(in_base("sx.db-dkrun-1-a"));
  cmp_ok(folder_find_stores(in_base("s*.db"), "run", note_suffix, &text), "==", 0,
         "the stores of a run can be looked for");
  is(dk_text_str(&text), "[dkrun-1-a]", "by their exact name");
  dk_text_reset(&text);
  cmp_ok(folder_find_stores(in_base("nowhere/s"), "run", note_suffix, &text), "==", 0,
         "a missing folder has none");
  cmp_ok(folder_find_stores("server", "run", note_suffix, &text), "==", 0,
         "nor has a name that is not a path");
  is(dk_text_str(&text), "", "none is found there");
  dk_text_done(&text);
}

/* A plugin replaces or moves the folder of its run. */
static void
follows_no_swapped_name(void)
{
  struct folder folder;
  struct remains left = {.n = 0};
  char moved[512], checks[300];

  if (setenv("TMPDIR", base, 1) != 0 || folder_make(&folder, "swapped") != 0
      || folder_make_path(in_base("target/7")) != 0)
    BAIL_OUT("no folder can be made");
  touch(in_base("target/7/file"));
  snprintf(moved, sizeof(moved), "%s/old", folder.path);
  snprintf(checks, sizeof(checks), "%s/checks", folder.path);
  if (rename(checks, moved) != 0 || symlink(in_base("target"), checks) != 0)
    BAIL_OUT("the name cannot be swapped");
  mkdirat(folder.checks, "7", 0700);
  ok(remove_at(folder.checks, "7", &left), "a check's folder is removed where it is now");
  ok(is_there(in_base("target/7/file")), "and not where its name leads");
  folder_done(&folder, &left);
  ok(!is_there(moved) && left.n == 0, "the rest is removed with the run's folder");
  ok(is_there(in_base("target/7/file")), "and the target of the link stays");

  if (folder_make(&folder, "moved") != 0)
    BAIL_OUT("no folder can be made");
  snprintf(checks, sizeof(checks), "%s/checks", folder.path);
  snprintf(moved, sizeof(moved), "%s.old", folder.path);
  if (rename(checks, moved) != 0)
    BAIL_OUT("it cannot be moved");
  folder_done(&folder, &left);
  ok(left.n == 1 && strcmp(left.name, moved) == 0, "a folder that was moved out of it is reported");
  rmdir(moved);

  left = (struct remains){.n = 0};
  if (folder_make(&folder, "replaced") != 0)
    BAIL_OUT("no folder can be made");
  snprintf(moved, sizeof(moved), "%s.old", folder.path);
  snprintf(checks, sizeof(checks), "%s", folder.path);
  if (rename(folder.path, moved) != 0 || mkdir(checks, 0700) != 0)
    BAIL_OUT("it cannot be replaced");
  folder_done(&folder, &left);
  ok(left.n == 1 && strcmp(left.name, moved) == 0, "a run's folder with another name is reported");
  ok(is_there(checks), "and the folder with its name is not touched");
  rmdir(moved);
  rmdir(checks);
}

/* In a mount namespace of its own, if it may have one. */
static void
crosses_no_mount(void)
{
  if (folder_make_path(in_base("mounted/in/here")) != 0
      || folder_make_path(in_base("precious")) != 0)
    BAIL_OUT("no folder can be made");
  touch(in_base("precious/file"));
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0
      || mount(in_base("precious"), in_base("mounted/in/here"), "none", MS_BIND, NULL) != 0) {
    skip(3, "mounting needs rights that this user does not have");
    return;
  }
  struct remains left = {.n = 0};
  int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ok(!remove_at(fd, "mounted", &left), "a folder with a mount in it is not removed");
  ok(left.n > 0 && strcmp(left.name, "here") == 0, "the mount is reported");
  ok(is_there(in_base("precious/file")), "the mounted folder stays");
  umount(in_base("mounted/in/here"));
  close(fd);
}

int
main(void)
{
  const char *tmp = getenv("TMPDIR");

  plan(NO_PLAN);
  snprintf(base, sizeof(base), "%s/durakit-folder-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(base))
    BAIL_OUT("%s cannot be made", base);
  removes_only_its_own();
  tells_the_dead();
  believes_only_its_own();
  finds_the_stores_of_a_run();
  follows_no_swapped_name();
  crosses_no_mount();
  ok(folder_remove_tree(base, NULL), "the test leaves nothing");
  return done_testing();
}
