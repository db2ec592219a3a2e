/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to one server whose answers a test defines: see test-lone.h. */
#include "providers/pg/test-lone.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "conformance/tap/tap.h"

void
lone_begin(struct lone *s, uint32_t flags, fake_serve_fn *serve, void *context)
{
  memset(s, 0, sizeof *s);
  test_host_init(&s->host);
  call_init(&s->call);
  s->fake = fake_start(serve, context);
  char conninfo[100];
  snprintf(conninfo, sizeof conninfo, "host=%s user=me dbname=it", fake_folder(s->fake));
  s->settings = SETTINGS(flags, "conninfo", conninfo, "connect_timeout", "20s", "answer_timeout",
                         "20s", "password", "hunter2");
  s->c = (struct connection){.host = &s->host.host, .settings = &s->settings};
}

void
lone_end(struct lone *s)
{
  connection_close(&s->c);
  fake_stop(s->fake);
  settings_done(&s->settings);
  call_done(&s->call);
  ok(!strstr(s->why.text, "hunter2"), "no password is shown");
}

void
expect_open(struct lone *s, dk_status expected, const char *words, const char *name)
{
  dk_status status = connection_open(&s->c, &s->call, &s->why);

  cmp_ok(status, "==", expected, "%s", name);
  if (status == DK_OK)
    return;
  has_words(s->why.text, words, name);
  ok(!s->c.pg, "%s: there is no connection", name);
}

void
serve_silence(int fd, void *context)
{
  char byte;

  (void)context;
  while (recv(fd, &byte, 1, 0) == 1)
    continue;
}
