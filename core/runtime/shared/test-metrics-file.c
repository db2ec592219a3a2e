/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of dk_runtime_save_metrics: that the file is the text, that readers never see a part of it,
 * and that a failure leaves the old file unchanged, and no other file. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/base/text.h"
#include "core/runtime/testing/prometheus-text.h"
#include "core/runtime/testing/whole-runtime.h"

enum { SAVERS = 3, SAVES = 300, LEAST_READS = 50 };

#define OLD "# as it was\n"

/* A folder with a file in it, and a runtime. */
struct place {
  struct rig rig;
  char folder[32], path[64];
  char reason[256];
};

/* ---- functions that fail on request ---------------------------------------------------------- */

struct failing {
  int text;           /* the nth request for memory fails */
  int close, rename;  /* with this errno */
};
static _Thread_local struct failing failing;

bool __real_dk_text_failed(const struct dk_text *text);
bool __wrap_dk_text_failed(const struct dk_text *text);
bool
__wrap_dk_text_failed(const struct dk_text *text)
{
  return (failing.text > 0 && --failing.text == 0) || __real_dk_text_failed(text);
}

int __real_close(int fd);
int __wrap_close(int fd);
int
__wrap_close(int fd)
{
  int result = __real_close(fd);

  errno = failing.close ? failing.close : errno;
  return failing.close ? -1 : result;
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int
__wrap_rename(const char *from, const char *to)
{
  if (!failing.rename)
    return __real_rename(from, to);
  errno = failing.rename;
  return -1;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* NULL: it does not exist, or is not a file.  The caller frees it. */
static char *
content(const char *path)
{
  FILE *file = fopen(path, "re");
  char *text = NULL;
  size_t size = 0;

  if (!file)
    return NULL;
  if (getdelim(&text, &size, '\0', file) < 0 && text)
    text[0] = '\0';
  fclose(file);
  return text;
}

static void
put(const char *path, const char *text)
{
  FILE *file = fopen(path, "we");

  if (!file || fputs(text, file) < 0 || fclose(file) != 0)
    BAIL_OUT("%s cannot be written: %s", path, strerror(errno));
}

static size_t
n_files(const char *folder)
{
  DIR *stream = opendir(folder);
  size_t n = 0;

  if (!stream)
    BAIL_OUT("%s cannot be read: %s", folder, strerror(errno));
  while (readdir(stream))
    n++;
  closedir(stream);
  return n - 2; /* without "." and ".." */
}

static struct place
begin(void)
{
  struct place place = {.rig = rig_begin(), .folder = "/tmp/test-saving-XXXXXX"};

  if (!mkdtemp(place.folder))
    BAIL_OUT("no folder: %s", strerror(errno));
  snprintf(place.path, sizeof(place.path), "%s/dk.prom", place.folder);
  rig_start(&place.rig);
  return place;
}

static void
end(struct place *place)
{
  rig_end(&place->rig);
  unlink(place->path);
  ok(rmdir(place->folder) == 0, "nothing else is in the folder");
}

static dk_status
save_at(struct place *place, const char *path)
{
  return dk_runtime_save_metrics(place->rig.runtime, path, place->reason, sizeof(place->reason));
}

static void
keep(void *context, dk_str text)
{
  *(char **)context = strdup(text.ptr);
}

/* ---- what works ------------------------------------------------------------------------------ */

static void
test_saved(void)
{
  struct place place = begin();
  char *text = NULL, *found;
  struct stat file;

  mode_t mask = umask(027);
  cmp_ok(save_at(&place, place.path), "==", DK_OK, "it is saved");
  umask(mask);
  is(place.reason, "", "there is no reason");
  if (dk_runtime_metrics(place.rig.runtime, keep, &text) != DK_OK || !text)
    BAIL_OUT("no metrics");
  found = content(place.path);
  is(found, text, "the file is the text");
  free(found);
  ok(stat(place.path, &file) == 0 && (file.st_mode & 07777) == 0640, "less the umask");
  put(place.path, OLD);
  cmp_ok(dk_runtime_save_metrics(place.rig.runtime, place.path, NULL, 0), "==", DK_OK,
         "it replaces the old file; a buffer for a reason is not required");
  found = content(place.path);
  is(found, text, "all of it");
  free(found);
  cmp_ok(n_files(place.folder), "==", 1, "and no other file is left");
  free(text);
  end(&place);
}

static void
test_relative(void)
{
  struct place place = begin();
  char *here = getcwd(NULL, 0);

  if (!here || chdir(place.folder) != 0)
    BAIL_OUT("the folder cannot be entered");
  cmp_ok(save_at(&place, "dk.prom"), "==", DK_OK, "a relative path");
  ok(access(place.path, R_OK) == 0, "is one of the current folder");
  if (chdir(here) != 0)
    BAIL_OUT("the folder cannot be left");
  free(here);
  end(&place);
}

/* ---- what fails ------------------------------------------------------------------------------ */

/* The file has an old text; saving fails for this reason, and the file is unchanged. */
static void
refuses(struct place *place, struct failing how, dk_status expected, const char *reason,
        const char *what)
{
  failing = how;
  dk_status status = save_at(place, place->path);
  failing = (struct failing){.text = 0};
  char *found = content(place->path);

  cmp_ok(status, "==", expected, "%s", what);
  ok(rig_says(place->reason, reason), "the reason is reported");
  is(found, OLD, "the file is as it was");
  cmp_ok(n_files(place->folder), "==", 1, "and no other file is left");
  free(found);
}

static void
test_failures(void)
{
  struct place place = begin();
  struct rlimit limit, small;

  put(place.path, OLD);
  refuses(&place, (struct failing){.text = 1}, DK_NO_MEMORY, "no memory for the text",
          "no memory for the text");
  refuses(&place, (struct failing){.text = 2}, DK_NO_MEMORY, "no memory for its path",
          "no memory for the path");
  refuses(&place, (struct failing){.close = EDQUOT}, DK_UNAVAILABLE,
          "written: Disk quota exceeded: /", "a full disk that is reported by close");
  refuses(&place, (struct failing){.rename = EROFS}, DK_UNAVAILABLE,
          "the old one: Read-only file system: /", "it cannot be renamed");

  signal(SIGXFSZ, SIG_IGN);
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
    BAIL_OUT("no limit: %s", strerror(errno));
  small = limit;
  small.rlim_cur = 100;
  setrlimit(RLIMIT_FSIZE, &small);
  dk_status status = save_at(&place, place.path);
  setrlimit(RLIMIT_FSIZE, &limit);
  cmp_ok(status, "==", DK_UNAVAILABLE, "no room after the first 100 bytes");
  ok(rig_says(place.reason, "written: File too large: /"), "the reason is reported");
  char *found = content(place.path);
  is(found, OLD, "the file is as it was");
  free(found);
  cmp_ok(n_files(place.folder), "==", 1, "and no other file is left");
  end(&place);
}

/* As a user without the right to write there, which root has. */
static void
test_rights(void)
{
  struct place place = begin();
  bool is_root = geteuid() == 0;

  put(place.path, OLD);
  if (chmod(place.folder, 0555) != 0 || (is_root && seteuid(65534) != 0))
    BAIL_OUT("rights cannot be taken: %s", strerror(errno));
  refuses(&place, (struct failing){.text = 0}, DK_UNAVAILABLE, "made: Permission denied: /",
          "a folder that is not ours");
  if ((is_root && seteuid(0) != 0) || chmod(place.folder, 0700) != 0)
    BAIL_OUT("rights cannot be given back: %s", strerror(errno));
  end(&place);
}

static void
test_places(void)
{
  struct place place = begin();
  char path[128], long_name[300], target[8] = "";
  char few[24] = "";

  cmp_ok(save_at(&place, NULL), "==", DK_INVALID, "no path");
  cmp_ok(save_at(&place, ""), "==", DK_INVALID, "an empty one");
  is(place.reason, "the path is empty", "the reason is reported");
  snprintf(path, sizeof(path), "%s/none/dk.prom", place.folder);
  cmp_ok(save_at(&place, path), "==", DK_UNAVAILABLE, "a folder that does not exist");
  ok(rig_says(place.reason, "made: No such file or directory: /"), "the reason is reported");
  dk_runtime_save_metrics(place.rig.runtime, path, few, sizeof(few));
  is(few, "the new file cannot be ", "as much as there is room for");
  put(place.path, OLD);
  snprintf(path, sizeof(path), "%s/dk.prom/dk.prom", place.folder);
  cmp_ok(save_at(&place, path), "==", DK_UNAVAILABLE, "a file for a folder");
  ok(rig_says(place.reason, "inspected: Not a directory: /"), "the reason is reported");
  snprintf(long_name, sizeof(long_name), "%s/%0250d", place.folder, 0);
  cmp_ok(save_at(&place, long_name), "==", DK_UNAVAILABLE, "a name without room for the new one's");
  ok(rig_says(place.reason, "made: File name too long: /"), "the reason is reported");
  cmp_ok(save_at(&place, place.folder), "==", DK_INVALID, "a folder");
  ok(rig_says(place.reason, "is not a regular file: /"), "the reason is reported");

  snprintf(path, sizeof(path), "%s/link", place.folder);
  if (symlink("dk.prom", path) != 0)
    BAIL_OUT("no link: %s", strerror(errno));
  cmp_ok(save_at(&place, path), "==", DK_INVALID, "a symbolic link");
  ok(readlink(path, target, sizeof(target) - 1) == 7, "stays one");
  unlink(path);
  if (mkfifo(path, 0600) != 0)
    BAIL_OUT("no pipe: %s", strerror(errno));
  cmp_ok(save_at(&place, path), "==", DK_INVALID, "a pipe, without waiting for its reader");
  unlink(path);
  cmp_ok(n_files(place.folder), "==", 1, "no file is left of all that");
  end(&place);
}

/* ---- readers --------------------------------------------------------------------------------- */

static atomic_int n_failed, n_saving, n_reads;

static void *
save_often(void *context)
{
  struct place *place = context;
  char reason[256];

  for (int i = 0; i < SAVES || atomic_load(&n_reads) < LEAST_READS; i++)
    if (dk_runtime_save_metrics(place->rig.runtime, place->path, reason, sizeof(reason)) != DK_OK)
      atomic_fetch_add(&n_failed, 1);
  atomic_fetch_sub(&n_saving, 1);
  return NULL;
}

static void
test_readers(void)
{
  struct place place = begin();
  pthread_t threads[SAVERS];
  int n_wrong = 0;

  cmp_ok(save_at(&place, place.path), "==", DK_OK, "it is there");
  atomic_store(&n_saving, SAVERS);
  for (int i = 0; i < SAVERS; i++)
    if (pthread_create(&threads[i], NULL, save_often, &place) != 0)
      BAIL_OUT("no thread");
  while (atomic_load(&n_saving) > 0) {
    char *text = content(place.path);
    struct scrape *read = scrape_read(dk_str_of(text ? text : ""));
    n_wrong += read->complaint[0] != '\0' || read->n_families != 13;
    scrape_free(read);
    free(text);
    atomic_fetch_add(&n_reads, 1);
  }
  for (int i = 0; i < SAVERS; i++)
    pthread_join(threads[i], NULL);
  cmp_ok(atomic_load(&n_failed), "==", 0, "three save to one path, and each can");
  cmp_ok(n_wrong, "==", 0, "of %d texts that are read meanwhile, each is whole", (int)n_reads);
  cmp_ok(n_files(place.folder), "==", 1, "and nothing is beside the file");
  end(&place);
}

int
main(void)
{
  plan(NO_PLAN);
  test_saved();
  test_relative();
  test_failures();
  test_rights();
  test_places();
  test_readers();
  return done_testing();
}
