/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that is another one (MODEL, a path).  The process ends when it is loaded, but for the
 * first two times (durakit looks at it) and the seventh, which takes a second: of four checks side
 * by side that is as a rule the second run of the first.  COUNT, a path, is a byte longer each
 * time. */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/stat.h>
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
end_but_now_and_then(void)
{
  int file = open(COUNT, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  struct stat found = {0};

  if (write(file, "+", 1) != 1 || fstat(file, &found) != 0)
    _exit(9);
  close(file);
  if (found.st_size == 7)
    poll(NULL, 0, 1000);
  else if (found.st_size > 2)
    _exit(3);
}
