/* SPDX-License-Identifier: Apache-2.0 */
/* The minimal provider, which works, and yet tampers with the folder of its run.  MOVER says how:
 *
 *   link      a link to MOVER_TARGET in the place of the folder of all checks
 *   memcheck  the same in the place of the folder for Valgrind's output
 *   mount     MOVER_TARGET is mounted in its own folder
 *   fifo      a FIFO that looks like Valgrind's output
 *   names     the names of the next checks are taken
 *   results   a link to MOVER_TARGET where the results of its check will lie in MOVER_OUT; it fails
 */
#define durakit_provider_2 minimal_provider
#include "examples/provider-minimal/minimal.c"
#undef durakit_provider_2

#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of this check is called by a number. */
static void take_names(void) {
  char here[400], name[64];
  const char *own = getcwd(here, sizeof here) ? strrchr(here, '/') : NULL;

  for (int i = 1; own && i < 40; i++) {
    snprintf(name, sizeof name, "../%d", atoi(own + 1) + i);
    mkdir(name, 0700);
    snprintf(name, sizeof name, "../%d.out", atoi(own + 1) + i);
    mkfifo(name, 0600);
  }
}

static dk_status take_results(const struct dk_host *host, struct dk_call *call,
                              const char *target) {
  const char *out = getenv("MOVER_OUT");

  if (out && chdir(out) == 0 && mkdir("checks", 0700) == 0) symlink(target, "checks/turn");
  return host->fail(call, DK_INTERNAL, (struct dk_bytes){"it fails", 8});
}

static dk_status mover_open(const struct dk_host *host, struct dk_call *call,
                            const struct dk_open *open, void **ret_self) {
  const char *how = getenv("MOVER"), *target = getenv("MOVER_TARGET");

  if (how && strcmp(how, "link") == 0 && rename("../../checks", "../../old") == 0)
    symlink(target, "../../checks");
  if (how && strcmp(how, "memcheck") == 0 && rename("../../memcheck-0", "../../old") == 0)
    symlink(target, "../../memcheck-0");
  if (how && strcmp(how, "fifo") == 0) mkfifo("../../memcheck-0/77.xml", 0600);
  if (how && strcmp(how, "names") == 0) take_names();
  if (how && strcmp(how, "results") == 0) return take_results(host, call, target);
  if (how && strcmp(how, "mount") == 0 && mkdir("here", 0700) == 0)
    mount(target, "here", NULL, MS_BIND, NULL);
  return store_open(host, call, open, ret_self);
}

const struct dk_provider *durakit_provider_2(uint32_t host_minor) {
  static struct dk_provider mover;

  mover = *minimal_provider(host_minor);
  mover.open = mover_open;
  return &mover;
}
