/* SPDX-License-Identifier: Apache-2.0 */
/* Finds Valgrind, writes our suppressions where it can read them, and makes its command line. */
#include "runner/memory/memcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config.h"
#include "runner/memory/findings.h"
#include "runner/memory/suppressions.h"

/* Finds valgrind on PATH, as a shell would. */
static bool
find_valgrind(char *buffer, size_t size)
{
  const char *path = getenv("PATH");

  for (const char *at = path ? path : ""; *at; at += strspn(at, ":")) {
    size_t length = strcspn(at, ":");
    int n = snprintf(buffer, size, "%.*s/valgrind", (int)length, at);
    if (n > 0 && (size_t)n < size && access(buffer, X_OK) == 0)
      return true;
    at += length;
  }
  return false;
}

/* They are not in the folder of the run, where a plugin could replace them. */
static bool
write_own(struct memcheck *memcheck)
{
  const size_t size = strlen(suppressions_own);
  int fd = memfd_create("durakit.supp", MFD_CLOEXEC | MFD_ALLOW_SEALING);

  if (fd < 0)
    return false;
  memcheck->own_fd = fd;
  snprintf(memcheck->own, sizeof(memcheck->own), "/proc/%ld/fd/%d", (long)getpid(), fd);
  return pwrite(fd, suppressions_own, size, 0) == (ssize_t)size
         && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0;
}

void
memcheck_done(struct memcheck *memcheck)
{
  suppressions_done(&memcheck->authors);
  if (memcheck->own_fd > 0)
    close(memcheck->own_fd);
  memcheck->own_fd = 0;
}

bool
memcheck_find(struct memcheck *memcheck, char *why, size_t size)
{
  *memcheck = (struct memcheck){.files = {memcheck->own}};
#if !HAVE_VALGRIND
  snprintf(why, size, "this durakit was built without Valgrind");
  return false;
#elif defined(__SANITIZE_ADDRESS__)
  snprintf(why, size, "this durakit was built with sanitizers, which do not run under Valgrind");
  return false;
#endif
  if (!find_valgrind(memcheck->valgrind, sizeof(memcheck->valgrind))) {
    snprintf(why, size, "there is no valgrind on PATH (Debian: valgrind)");
    return false;
  }
  ssize_t n = readlink("/proc/self/exe", memcheck->self, sizeof(memcheck->self) - 1);
  if (n <= 0 || !write_own(memcheck)) {
    snprintf(why, size, "%s: %s", n <= 0 ? "/proc/self/exe" : "the suppressions",
             strerror(errno));
    return false;
  }
  return true;
}

bool
memcheck_add_file(struct memcheck *memcheck, const char *path)
{
  size_t n = 1;

  while (memcheck->files[n])
    n++;
  if (n + 1 >= MEMCHECK_FILES || strlen(path) >= sizeof(memcheck->author[0]))
    return false;
  snprintf(memcheck->author[n - 1], sizeof(memcheck->author[0]), "%s", path);
  memcheck->files[n] = memcheck->author[n - 1];
  return true;
}

/* No option file of the user must change the findings, and no limit must hide any. */
static const char *const always[] = {
  "--tool=memcheck", "--command-line-only=yes", "--xml=yes", "--leak-check=no",
  "--show-leak-kinds=all", "--keep-debuginfo=yes", "--error-limit=no", "--fair-sched=yes",
  "--vgdb=no", "--child-silent-after-fork=no", "--trace-children=no", "--read-var-info=no"};

void
memcheck_words(struct memcheck_words *words, const struct memcheck *memcheck, const char *folder,
               const char *way, const int fds[2], const char *plugin, bool origins)
{
  size_t n = 0;

  words->items[n++] = memcheck->valgrind;
  for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
    words->items[n++] = always[i];
  if (origins)
    words->items[n++] = "--track-origins=yes";
  snprintf(words->xml, sizeof(words->xml), "--xml-file=%.330s/%%p.xml", folder);
  words->items[n++] = words->xml;
  snprintf(words->callers, sizeof(words->callers), "--num-callers=%d", FINDING_CALLERS);
  words->items[n++] = words->callers;
  snprintf(words->suppressions, sizeof(words->suppressions), "--suppressions=%.330s",
           memcheck->own);
  words->items[n++] = words->suppressions;
  words->items[n++] = memcheck->self;
  words->items[n++] = MEMCHECK_WORD;
  words->items[n++] = way;
  for (size_t i = 0; i < 2; i++) {
    snprintf(words->fds[i], sizeof(words->fds[i]), "%d", fds[i]);
    words->items[n++] = words->fds[i];
  }
  if (plugin)
    words->items[n++] = plugin;
  words->items[n] = NULL;
}
