/* SPDX-License-Identifier: Apache-2.0 */
/* To be preloaded: of the process that it comes with, and of none that this one forks or becomes,
 * the FAIL_AT-th request for memory fails, once.  The number of requests is written to COUNT_TO. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);

static pid_t first;
static long fails_at;
static atomic_long requests;
static int count_to = -1;

__attribute__((constructor)) static void
begin(void)
{
  const char *at = getenv("FAIL_AT");
  const char *path = getenv("COUNT_TO");

  fails_at = at ? atol(at) : 0;
  count_to = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
  unsetenv("LD_PRELOAD");
  unsetenv("COUNT_TO");
  first = getpid();
}

__attribute__((destructor)) static void
end(void)
{
  if (getpid() == first && count_to >= 0)
    dprintf(count_to, "%ld\n", atomic_load(&requests));
}

static int
fails(void)
{
  if (first == 0 || getpid() != first || atomic_fetch_add(&requests, 1) + 1 != fails_at)
    return 0;
  errno = ENOMEM;
  return 1;
}

void *
malloc(size_t size)
{
  return fails() ? NULL : __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
  return fails() ? NULL : __libc_calloc(n, size);
}

void *
realloc(void *block, size_t size)
{
  return fails() ? NULL : __libc_realloc(block, size);
}
