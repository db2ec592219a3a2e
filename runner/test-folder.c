/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a run: removed whole, and nothing outside of it; a lock that tells the dead. */
#include "runner/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

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
  ok(folder_remove_tree(in_base("tree")), "a tree is removed");
  ok(!is_there(in_base("tree")), "and gone");
  ok(is_there(in_base("outside/file")), "what a link in it points to stays");
  ok(folder_remove_tree(in_base("tree")), "what is not there is removed");
  if (symlink(in_base("outside"), in_base("link")) != 0)
    BAIL_OUT("no link can be made");
  ok(!folder_remove_tree(in_base("link")), "a link is no tree");
  ok(is_there(in_base("outside/file")), "and what it points to stays");
}

static void
tells_the_dead(void)
{
  struct folder folder;
  char path[sizeof(folder.path)];

  if (folder_make(&folder, "test") != 0)
    BAIL_OUT("no folder of a run can be made");
  snprintf(path, sizeof(path), "%s", folder.path);
  cmp_ok(folder_lock_dead(path), "==", -1, "a run that lives");
  folder_note(&folder, '+', 3);
  folder_note_store(&folder, "dktest-3-a");
  folder_done(&folder);
  ok(is_there(path), "with stores left over the journal stays");
  int lock = folder_lock_dead(path);
  cmp_ok(lock, ">=", 0, "a run that is dead");
  if (lock >= 0)
    close(lock);
  ok(folder_remove_tree(path), "and is removed");

  if (folder_make(&folder, "test") != 0)
    BAIL_OUT("no folder of a run can be made");
  snprintf(path, sizeof(path), "%s", folder.path);
  folder_done(&folder);
  ok(!is_there(path), "without leftovers nothing stays");
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
  ok(folder_remove_tree(base), "the test leaves nothing");
  return done_testing();
}
