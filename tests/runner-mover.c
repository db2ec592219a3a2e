/* SPDX-License-Identifier: Apache-2.0 */
/* The minimal provider, which works, and yet tampers with the folder of its run: it puts a link in
 * the place of the folder of all checks (MOVER=link), or mounts a folder in its own (MOVER=mount);
 * either way MOVER_TARGET. */
#define durakit_provider_2 minimal_provider
#include "examples/provider-minimal/minimal.c"
#undef durakit_provider_2

#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static dk_status mover_open(const struct dk_host *host, struct dk_call *call,
                            const struct dk_open *open, void **ret_self) {
  const char *how = getenv("MOVER"), *target = getenv("MOVER_TARGET");

  if (how && strcmp(how, "link") == 0 && rename("../../checks", "../../old") == 0)
    symlink(target, "../../checks");
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
