/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: ends each process of durakit that goes to the folder of a check whose number is
 * above FROM, by SIGKILL, as a kernel does that has no memory.  So it has not loaded anything. */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
chdir(const char *path)
{
  union {
    void *found;
    int (*call)(const char *path);
  } next = {dlsym(RTLD_NEXT, "chdir")};
  const char *number = strstr(path, "/checks/");
  const char *from = getenv("FROM");

  if (number && from && atoi(number + strlen("/checks/")) > atoi(from))
    raise(SIGKILL);
  return next.call(path);
}
