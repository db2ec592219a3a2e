/* SPDX-License-Identifier: Apache-2.0 */
/* A host for tests: see test-host.h. */
#include "providers/pg/test-host.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

static int64_t
host_now(const struct dk_host *host)
{
  const struct test_host *me = (const struct test_host *)(uintptr_t)host;
  struct timespec t;

  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000 + (me ? me->passed : 0);
}

static int32_t
host_cancelled(struct dk_call *call)
{
  struct pollfd fd = {.fd = call->cancel_fd, .events = POLLIN};

  return poll(&fd, 1, 0) > 0;
}

static int32_t
host_cancel_fd(struct dk_call *call)
{
  return call->cancel_fd;
}

static int
milliseconds_until(const struct dk_call *call, int64_t until)
{
  int64_t left = until - host_now(call->host ? &call->host->host : NULL);

  return until == INT64_MAX ? -1 : left < 0 ? 0 : left > 100000 ? 100000 : (int)left;
}

/* The answer comes in real time, and the call's time moves to the end of the wait. */
static dk_status
wait_blindly(struct dk_call *call, struct pollfd fds[2], int64_t until)
{
  int64_t now = host_now(&call->host->host);

  poll(fds, 2, 20000);
  call->host->passed += until > now ? until - now : 0;
  return DK_NOTHING;
}

static dk_status
host_wait(struct dk_call *call, int32_t fd, uint32_t events, int64_t until)
{
  struct pollfd fds[] = {
    {.fd = fd, .events = (short)((events & DK_WAIT_READ ? POLLIN : 0) |
                                 (events & DK_WAIT_WRITE ? POLLOUT : 0))},
    {.fd = call->cancel_fd, .events = POLLIN},
  };

  call->events = events;
  call->n_waits++;
  if (call->at_wait)
    call->at_wait(call);
  if (call->n_waits == call->cancel_at) {
    if (call->is_late)
      poll(fds, 1, -1);
    call_cancel(call);
  }
  if (call->host)
    call->host->passed += call->passes;
  if (call->is_blind)
    return wait_blindly(call, fds, until);
  int n = poll(fds, 2, milliseconds_until(call, until));
  if (fds[1].revents) {
    call->n_cancelled++;
    return DK_CALL_CANCELLED;
  }
  return n > 0 ? DK_OK : DK_NOTHING;
}

static void
host_log(const struct dk_host *host, int32_t level, struct dk_bytes line)
{
  struct test_host *me = (struct test_host *)(uintptr_t)host;

  me->level = level;
  snprintf(me->log, sizeof me->log, "%.*s", (int)line.len, line.ptr);
}

static dk_status
host_fail(struct dk_call *call, dk_status status, struct dk_bytes why)
{
  (void)why_set(&call->why, status, "%.*s", (int)why.len, why.ptr);
  return status;
}

void
test_host_init(struct test_host *host)
{
  *host = (struct test_host){
    .host = {.struct_size = sizeof host->host, .abi_minor = DK_ABI_MINOR, .fail = host_fail,
             .cancelled = host_cancelled, .cancel_fd = host_cancel_fd, .wait = host_wait,
             .now = host_now, .log = host_log},
    .level = -1,
  };
}

void
call_init(struct dk_call *call)
{
  *call = (struct dk_call){.cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (call->cancel_fd < 0)
    BAIL_OUT("no eventfd");
}

void
call_done(struct dk_call *call)
{
  cmp_ok(call->n_cancelled, "<=", 2, "the call did not go on after it was cancelled");
  close(call->cancel_fd);
}

void
call_cancel(struct dk_call *call)
{
  const uint64_t one = 1;

  if (write(call->cancel_fd, &one, sizeof one) < 0)
    BAIL_OUT("the call cannot be cancelled");
}

struct dk_bytes
as_bytes(const char *text)
{
  return (struct dk_bytes){text, text ? strlen(text) : 0};
}

struct settings
settings_of(uint32_t flags, const char *const *pairs, size_t n_pairs)
{
  struct dk_setting given[10];
  struct settings settings;
  struct why why;

  for (size_t i = 0; i < n_pairs && i < sizeof given / sizeof given[0]; i++)
    given[i] = (struct dk_setting){pairs[2 * i], as_bytes(pairs[2 * i + 1])};
  struct dk_open open = {.struct_size = sizeof open, .flags = flags, .settings = given,
                         .n_settings = n_pairs};
  if (settings_read(&open, &settings, &why) != DK_OK)
    BAIL_OUT("settings: %s", why.text);
  return settings;
}

int
n_descriptors(void)
{
  DIR *folder = opendir("/proc/self/fd");
  int n = 0;

  if (!folder)
    BAIL_OUT("no /proc");
  while (readdir(folder))
    n++;
  closedir(folder);
  return n;
}

void
has_words(const char *text, const char *words, const char *name)
{
  if (!ok(strstr(text, words) != NULL, "%s: \"%s\"", name, words))
    diag("in: %s", text);
}
