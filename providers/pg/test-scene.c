/* SPDX-License-Identifier: Apache-2.0 */
/* Two servers, and a handle before them: see test-scene.h. */
#include "providers/pg/test-scene.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "conformance/tap/tap.h"

/* ---- two servers ----------------------------------------------------------------------------- */

static void
be_silent(int fd)
{
  char byte;

  while (recv(fd, &byte, 1, 0) == 1)
    continue;
}

/* A session on a frozen server. */
static void
freeze(int fd, struct play *p)
{
  int n = atomic_fetch_add(&p->n_frozen, 1) + 1, most = atomic_load(&p->most_frozen);

  while (n > most && !atomic_compare_exchange_weak(&p->most_frozen, &most, n))
    continue;
  be_silent(fd);
  atomic_fetch_sub(&p->n_frozen, 1);
}

static void
answer(int fd, struct play *p)
{
  if (p->text)
    fake_text(fd, p->text);
  else
    fake_row(fd, true, "yes", 3);
  fake_ready(fd, 'I');
}

static void
wait_to_go_on(struct play *p)
{
  while (!atomic_load(&p->lets_first_go_on) && !atomic_load(&p->is_frozen))
    poll(NULL, 0, 1);
}

static bool
settle(int fd, struct play *p)
{
  struct fake_session session = p->session;

  if (!fake_read_start(fd))
    return false;
  fake_welcome(fd);
  fake_greet(fd, "15.1", "UTF8");
  if (p->denies && fake_read_request(fd)) {
    atomic_fetch_add(&p->n_requests, 1);
    fake_error(fd, 'E', "ERROR", p->denies, "no right to ask");
    fake_ready(fd, 'I');
  }
  if (!fake_read_request(fd))
    return false;
  atomic_fetch_add(&p->n_requests, 1);
  session.is_standby = atomic_load(&p->is_standby);
  fake_session(fd, &session);
  return true;
}

static void
serve(int fd, void *context)
{
  struct play *p = context;
  bool is_first = atomic_fetch_add(&p->n_sessions, 1) == 0;

  if (!is_first && atomic_load(&p->lets_go_on_at_next))
    atomic_store(&p->lets_first_go_on, true);
  if (atomic_load(&p->is_frozen) || (!is_first && atomic_load(&p->lets_go_on_at_next))) {
    freeze(fd, p);
    return;
  }
  if (!settle(fd, p))
    return;
  while (fake_read_request(fd)) {
    atomic_fetch_add(&p->n_requests, 1);
    if (is_first && atomic_load(&p->first_is_silent))
      wait_to_go_on(p);
    if (atomic_load(&p->is_frozen)) {
      be_silent(fd);
      return;
    }
    answer(fd, p);
  }
}

/* ---- a handle before them -------------------------------------------------------------------- */

static struct scene *logging;

static void
keep_line(const struct dk_host *host, int32_t level, struct dk_bytes line)
{
  int n = level > 0 ? atomic_fetch_add(&logging->n_lines, 1) : 10;

  (void)host;
  if (n < 10)
    snprintf(logging->lines[n], sizeof logging->lines[n], "%.*s", (int)line.len, line.ptr);
}

void
scene_begin(struct scene *s, int n_hosts)
{
  char conninfo[200];

  memset(s, 0, sizeof *s);
  logging = s;
  test_host_init(&s->host);
  s->host.host.log = keep_line;
  call_init(&s->call);
  for (int i = 0; i < 2; i++) {
    s->play[i].session = (struct fake_session){
      .is_own = true, .system = SYSTEM,
      .file = i == OLD ? "000000010000000000000001" : "0000000A0000000000000001"};
    s->fake[i] = fake_start(serve, &s->play[i]);
  }
  snprintf(conninfo, sizeof conninfo, "host=%s%s%s user=me", fake_folder(s->fake[OLD]),
           n_hosts > 1 ? "," : "", n_hosts > 1 ? fake_folder(s->fake[NEW]) : "");
  s->settings = SETTINGS(0, "conninfo", conninfo, "answer_timeout", "10m");
  s->settings.silence_ms = 250; /* within which a busy machine makes a session */
  if (servers_new(&s->host.host, &s->settings, &s->servers, &s->why) != DK_OK)
    BAIL_OUT("no memory of servers");
}

void
scene_end(struct scene *s)
{
  atomic_store(&s->play[OLD].lets_first_go_on, true);
  for (int i = 0; i < 2; i++)
    fake_stop(s->fake[i]);
  servers_free(s->servers);
  settings_done(&s->settings);
  call_done(&s->call);
}

dk_status
open_connection(struct scene *s, struct connection *c)
{
  *c = (struct connection){
    .host = &s->host.host, .settings = &s->settings, .servers = s->servers};
  dk_status status = connection_open(c, &s->call, &s->why);
  if (status != DK_OK)
    diag("a session is refused: %s", s->why.text);
  return status;
}

void
expect_at(const struct scene *s, const struct connection *c, int which, const char *name)
{
  is(c->pg ? PQhost(c->pg) : "none", fake_folder(s->fake[which]), "%s: it is on the %s server",
     name, which == OLD ? "old" : "new");
}

void
meet(struct scene *s, const char *system, const char *file)
{
  const struct identity identity = identity_of(as_bytes(system), as_bytes(file));
  PGconn *pg = PQconnectStart("host=/nowhere");

  if (servers_judge(s->servers, &identity, pg, &s->why) != DK_OK)
    BAIL_OUT("the first server is refused: %s", s->why.text);
  PQfinish(pg);
}

dk_status
ask(struct scene *s, struct dk_call *call, struct connection *c, bool writes, int64_t answer_ms,
    struct why *why)
{
  struct values none;
  const struct request request = {.what = "ask", .sql = "SELECT", .values = &none,
                                  .writes = writes, .answer_ms = answer_ms};
  PGresult *result = NULL;

  (void)s;
  values_begin(&none);
  dk_status status = connection_run(c, call, &request, &result, why);
  PQclear(result);
  values_done(&none);
  return status;
}
