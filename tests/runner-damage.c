/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that do their damage as soon as they are loaded: FILL writes over all memory that the
 * process shares with others, FLOOD prints without end. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) const void *durakit_provider_2(uint32_t host_minor);

const void *
durakit_provider_2(uint32_t host_minor)
{
  (void)host_minor;
  return NULL;
}

#ifdef FILL
__attribute__((constructor)) static void
fill(void)
{
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "re");

  while (maps && fgets(line, sizeof(line), maps)) {
    unsigned long begin;
    unsigned long end;
    char rights[8];
    if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) == 3 && rights[1] == 'w'
        && rights[3] == 's')
      memset((void *)begin, 0xff, end - begin);
  }
  _exit(0);
}
#endif

#ifdef FLOOD
__attribute__((constructor)) static void
flood(void)
{
  static char much[1 << 16];

  memset(much, 'x', sizeof(much));
  for (;;) {
    if (write(FLOOD, much, sizeof(much)) < 0)
      pause();
  }
}
#endif
