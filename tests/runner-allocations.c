/* SPDX-License-Identifier: Apache-2.0 */
/* To be preloaded: of the process that it comes with, and of none that this one forks or becomes,
 * the FAIL_AT-th request for memory fails, once.  The number of requests is written to COUNT_TO. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/* The command stands in for malloc and its like itself, and asks these of the C library.  It is
 * linked first, so that none of its own names could be taken here. */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);

void *
__libc_malloc(size_t size)
{
  return fails() ? NULL : NEXT(__libc_malloc)(size);
}

void *
__libc_calloc(size_t n, size_t size)
{
  return fails() ? NULL : NEXT(__libc_calloc)(n, size);
}

void *
__libc_realloc(void *block, size_t size)
{
  return fails() ? NULL : NEXT(__libc_realloc)(block, size);
}
