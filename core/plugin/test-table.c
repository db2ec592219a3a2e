/* SPDX-License-Identifier: Apache-2.0 */
/* The table of upcalls as a provider sees it: guarded, of an older host. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "core/plugin/testing/puppet.h"

/* Does reading this byte kill a process? */
static bool
is_unreadable(const volatile char *byte)
{
  int status = 0;
  pid_t process = fork();

  if (process == 0) {
    signal(SIGSEGV, SIG_DFL);
    char read = *byte;
    _exit(read == 0 ? 0 : 1);
  }
  waitpid(process, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void
test_guarded(void)
{
  size_t size = sizeof(struct dk_host);
  struct puppet puppet = {.options = {.flags = DK_HOST_GUARDED}};
  struct dk_turn *turn = NULL;

  puppet_open(&puppet, NULL);
  const char *table = (const char *)puppet.host;
  cmp_ok(puppet.host->struct_size, "==", size, "the table has its size");
  cmp_ok(fetch_turn(&puppet, &turn), "==", DK_OK, "a store with a guarded table works");
  ok(!is_unreadable(table + size - 1), "the table's last byte is readable");
  ok(is_unreadable(table + size), "the byte behind it is not");
  puppet_close(&puppet);
  ok(is_unreadable(table), "after close nothing of it is");
}

/* An older host, whose table ends before `service`: the puppet is found by other means. */
static dk_status
open_without_service(const struct dk_host *host, struct dk_call *call, const struct dk_open *open,
                     void **ret_self)
{
  static int handle;

  (void)call;
  (void)open;
  *ret_self = &handle;
  handle = DK_HAS(dk_host, host, service) ? 1 : DK_HAS(dk_host, host, log) ? 2 : 3;
  return DK_OK;
}

static void
close_plain(void *self)
{
  (void)self;
}

static const void *
no_extension(void *self, const char *id)
{
  (void)id;
  return *(int *)self == 2 ? NULL : self;
}

static void
test_older_host(void)
{
  struct puppet puppet = {
    .options = {.flags = DK_HOST_GUARDED, .host_size = offsetof(struct dk_host, service)}};
  struct puppet_descriptor described;

  puppet_describe(&described);
  described.provider.open = open_without_service;
  described.provider.close = close_plain;
  described.provider.extension = no_extension;
  cmp_ok(puppet_open(&puppet, &described), "==", DK_OK, "a host without service");
  cmp_ok(puppet.violations, "==", 0, "is seen to lack it, and nothing else");
  puppet_close(&puppet);
}

int
main(void)
{
  plan(NO_PLAN);
  test_guarded();
  test_older_host();
  return done_testing();
}
