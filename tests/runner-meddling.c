/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that answers as another one does (MODEL, a path).  When it is loaded it lowers a limit
 * (LIMIT, VALUE) of the process that started it; with HARD the hard limit too, so that the process
 * cannot raise it again. */
#include <dlfcn.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

__attribute__((visibility("default"))) const void *durakit_provider_2(uint32_t host_minor);

const void *
durakit_provider_2(uint32_t host_minor)
{
  union {
    void *found;
    const void *(*call)(uint32_t);
  } entry = {dlsym(dlopen(MODEL, RTLD_NOW | RTLD_LOCAL), "durakit_provider_2")};

  return entry.call(host_minor);
}

__attribute__((constructor)) static void
lower(void)
{
  struct rlimit limit;

  if (prlimit(getppid(), LIMIT, NULL, &limit) != 0)
    return;
  limit.rlim_cur = VALUE;
#ifdef HARD
  limit.rlim_max = VALUE;
#endif
  prlimit(getppid(), LIMIT, &limit, NULL);
}
