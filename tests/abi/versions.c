/* SPDX-License-Identifier: Apache-2.0 */
/* versions PLUGIN: loads it and opens it with a host table that ends at an unreadable page, then
 * asks for one operation.  Options: --older plays a host with one member less; --late calls the
 * plugin once more after close, when it reads a table that was freed.  Exit 0: success; a fault
 * kills the process. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <durakit/host.h>

static int
refused(const struct dk_refusal *refusal)
{
  fprintf(stderr, "%s: %s\n  expected  %s\n  found     %s\n", refusal->where, refusal->what,
          refusal->expected, refusal->found);
  return 3;
}

int
main(int argc, char **argv)
{
  static const struct rlimit no_core;
  struct dk_host_options options = {.struct_size = sizeof options, .flags = DK_HOST_GUARDED};
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = 1000};
  const char *mode = argc > 2 ? argv[2] : "";
  struct dk_caller *caller = dk_caller_new(NULL, 0);
  struct dk_library *library;
  struct dk_refusal refusal;
  struct dk_store *store;
  struct dk_turn *turn;
  dk_status status;

  setrlimit(RLIMIT_CORE, &no_core);
  if (argc < 2 || !caller)
    return 2;
  if (strcmp(mode, "--older") == 0)
    options.host_size = offsetof(struct dk_host, service);
  if (dk_library_open(argv[1], 0, &library, &refusal) != 0)
    return refused(&refusal);
  status = dk_store_open(library, &options, caller, DK_OPEN_CREATE | DK_OPEN_HOST_CLOCK, NULL, 0,
                         &store);
  if (status != DK_OK) {
    fprintf(stderr, "open: %s\n", dk_caller_failure(caller)->text);
    return 1;
  }
  status = dk_store_fetch_orchestration_item(store, caller, &request, &turn);
  if (status != DK_NOTHING)
    return 1;
  dk_store_close(store);
  if (strcmp(mode, "--late") == 0)
    dk_store_destroy(library, &options, caller, NULL, 0);
  dk_caller_free(caller);
  dk_library_close(library);
  puts("well");
  return 0;
}
