/* SPDX-License-Identifier: Apache-2.0 */
/* The minimal provider, which works, and yet shouts its secret wherever it can: in what it says of
 * itself, the log, standard error, Valgrind's output, a file's name and the name of a process that
 * it leaves behind.  From the environment variable LOUD it knows it before it is opened. */
#define durakit_provider_2 minimal_provider
#include "examples/provider-minimal/minimal.c"
#undef durakit_provider_2

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define SHOUT_THROUGH_VALGRIND(text) VALGRIND_PRINTF_BACKTRACE("it is %s here\n", text)
#else
#define SHOUT_THROUGH_VALGRIND(text) ((void)0)
#endif

/* Named by the secret; the kernel cuts that to 15 bytes.  It is so named when this returns. */
static void leave_a_process(const char *secret) {
  int named[2];
  char end;

  if (pipe(named) != 0) return;
  if (fork() == 0) {
    setsid();
    prctl(PR_SET_NAME, secret);
    close(named[0]);
    close(named[1]);
    for (;;) pause();
  }
  close(named[1]);
  while (read(named[0], &end, 1) > 0) continue;
  close(named[0]);
}

/* A file that is left is reported before a process: without LOUD_FILE there is none. */
static void leave_a_file(const char *secret) {
  int fd = getenv("LOUD_FILE") ? open(secret, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

  if (fd >= 0) close(fd);
}

static void shout(const struct dk_host *host, const char *secret) {
  char text[300];

  leave_a_file(secret);
  snprintf(text, sizeof text, "it is %s, or %.9s", secret, secret);
  fprintf(stderr, "%s\n", text);
  host->log(host, 2, (struct dk_bytes){text, strlen(text)});
  SHOUT_THROUGH_VALGRIND(secret);
  leave_a_process(secret);
}

static dk_status loud_open(const struct dk_host *host, struct dk_call *call,
                           const struct dk_open *open, void **ret_self) {
  struct dk_open inner = *open;
  char secret[200] = "";

  for (size_t i = 0; i < open->n_settings; i++)
    if (strcmp(open->settings[i].key, "password") == 0)
      snprintf(secret, sizeof secret, "%.*s", (int)open->settings[i].value.len,
               (const char *)open->settings[i].value.ptr);
  if (secret[0] && getenv("LOUD_FAIL"))
    return host->fail(call, DK_UNAVAILABLE, (struct dk_bytes){secret, strlen(secret)});
  if (secret[0]) shout(host, secret);
  inner.n_settings = 0;
  return store_open(host, call, &inner, ret_self);
}

const struct dk_provider *durakit_provider_2(uint32_t host_minor) {
  static struct dk_param loud_params[] = {
    {.key = "password", .type = "string", .help = "the password", .flags = DK_PARAM_SECRET},
    {.key = NULL},
  };
  static struct dk_provider loud;

  if (loud.magic == 0) {
    const char *secret = getenv("LOUD");

    loud = *minimal_provider(host_minor);
    loud.open = loud_open;
    loud.params = loud_params;
    if (secret) {
      loud.name = loud.version = loud.built_with = loud.help = secret;
      loud_params[0].help = loud_params[0].fallback = secret;
    }
  }
  return &loud;
}
