/* SPDX-License-Identifier: Apache-2.0 */
/* Which of two servers is the right one, and how a handle changes from one to the other by a new
 * session; and what becomes of the idle ones. */
#include "providers/pg/test-scene.h"

#include <stdio.h>
#include <string.h>

#include "conformance/tap/tap.h"

/* ---- the right server ------------------------------------------------------------------------ */

static void
test_judgement(void)
{
  static const struct {
    const char *name, *met_system, *met_file, *system, *file;
    const char *words;       /* of the refusal; NULL: it is none */
  } rows[] = {
    {"the first", NULL, NULL, SYSTEM, "000000010000000000000001", NULL},
    {"the same again", SYSTEM, "000000010000000000000001", SYSTEM, "0000000100000000000000FF",
     NULL},
    {"one on a higher timeline", SYSTEM, "000000090000000000000001", SYSTEM,
     "0000000A0000000000000001", NULL},
    {"one on a lower timeline", SYSTEM, "0000000A0000000000000001", SYSTEM,
     "000000090000000000000001",
     "was superseded: it is on timeline 9, and this store has been on timeline 10, at "
     "host=/nowhere"},
    {"another cluster", SYSTEM, "000000010000000000000001", "7709876934548409746",
     "000000020000000000000001",
     "its system identifier is 7709876934548409746; expected 7709876934548409745"},
    {"a standby, which writes no timeline", SYSTEM, "000000020000000000000001", SYSTEM, NULL, NULL},
    {"a standby of another cluster", SYSTEM, "000000020000000000000001", "1", NULL,
     "belongs to another database cluster"},
    {"one that says nothing", SYSTEM, "000000020000000000000001", NULL, NULL, NULL},
    {"the first, when the cluster is not known", NULL, "000000020000000000000001", SYSTEM,
     "000000020000000000000002", NULL},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct connection c;
    struct scene s;

    scene_begin(&s, 1);
    meet(&s, rows[i].met_system, rows[i].met_file);
    s.play[OLD].session.system = rows[i].system;
    s.play[OLD].session.file = rows[i].file;
    dk_status status = open_connection(&s, &c);
    cmp_ok(status, "==", rows[i].words ? DK_UNAVAILABLE : DK_OK, "%s", rows[i].name);
    if (rows[i].words)
      has_words(s.why.text, rows[i].words, "its words");
    cmp_ok(c.pg != NULL, "==", !rows[i].words, "the connection");
    connection_close(&c);
    scene_end(&s);
  }
}

/* The next host is tried, that is logged, and from then on it is the first. */
static void
test_next_host(void)
{
  struct connection c, second;
  struct scene s;

  scene_begin(&s, 2);
  meet(&s, SYSTEM, "0000000A0000000000000001");
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "with another host the refusal is not the end");
  expect_at(&s, &c, NEW, "the next host is tried");
  cmp_ok(atomic_load(&s.n_lines), "==", 1, "that is logged");
  has_words(s.lines[0], "was superseded", "why");
  has_words(s.lines[0], "trying the next host", "and what is done");
  cmp_ok(open_connection(&s, &second), "==", DK_OK, "another session");
  expect_at(&s, &second, NEW, "at once");
  cmp_ok(fake_connections(s.fake[OLD]), "==", 1, "the old server is no longer tried");
  cmp_ok(atomic_load(&s.n_lines), "==", 1, "and nothing more is logged");
  connection_close(&c);
  connection_close(&second);

  /* When the new one is unreachable, the others are tried again. */
  s.play[OLD].session.file = "0000000B0000000000000001";
  atomic_store(&s.play[NEW].is_frozen, true);
  s.settings.host_ms = 1000;
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "the first host again");
  expect_at(&s, &c, OLD, "the new one is frozen");
  has_words(s.lines[1], "on timeline 11, has replaced the one at", "which is logged");
  cmp_ok(open_connection(&s, &second), "==", DK_OK, "another session");
  cmp_ok(fake_connections(s.fake[NEW]), "==", 3, "the frozen one is no longer tried first");
  connection_close(&c);
  connection_close(&second);
  scene_end(&s);
}

/* Of several hosts the first has little time by default, one alone has more. */
static void
test_limits(void)
{
  struct connection c;
  struct scene s;

  for (int n_hosts = 1; n_hosts <= 2; n_hosts++) {
    scene_begin(&s, n_hosts);
    cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
    cmp_ok(c.limit_ms, "==", n_hosts == 1 ? 10000 : 3000, "time for one of %d hosts", n_hosts);
    connection_close(&c);
    scene_end(&s);
  }
}

/* A server that does not give its identity: sessions do without, and it is logged once. */
static void
test_withheld(void)
{
  static const char *const states[] = {"42501", "42883", "0A000", "55000", "XX000"};

  for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
    struct connection c, second;
    struct scene s;

    scene_begin(&s, 1);
    s.play[OLD].denies = states[i];
    cmp_ok(open_connection(&s, &c), "==", DK_OK, "%s: no right, no identity", states[i]);
    cmp_ok(atomic_load(&s.n_lines), "==", 1, "it is logged");
    has_words(s.lines[0], "no right to ask", "with the server's message");
    int before = atomic_load(&s.play[OLD].n_requests);
    cmp_ok(open_connection(&s, &second), "==", DK_OK, "another session");
    cmp_ok(atomic_load(&s.play[OLD].n_requests), "==", before + 2, "asks again");
    cmp_ok(atomic_load(&s.n_lines), "==", 1, "and it is not logged again");
    connection_close(&c);
    connection_close(&second);
    scene_end(&s);
  }
}

/* Once a server has given its identity, none that withholds it is used, whatever the reason: the
 * guard holds for the life of the handle, and the next session that receives it goes on. */
static void
test_withheld_later(void)
{
  struct connection before, c;
  struct scene s;

  scene_begin(&s, 1);
  s.play[OLD].denies = "XX000";
  cmp_ok(open_connection(&s, &before), "==", DK_OK, "a session on an unknown server");
  ok(connection_is_alive(&before), "is alive while nothing is known");
  s.play[OLD].denies = NULL;
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "the next session receives it");
  connection_close(&c);
  ok(!connection_is_alive(&before), "the first one can no longer be used");
  connection_close(&before);
  s.play[OLD].denies = "XX000";
  cmp_ok(open_connection(&s, &c), "==", DK_UNAVAILABLE, "a server that withholds it is refused");
  has_words(s.why.text, "does not give its identity", "its words");
  has_words(s.why.text, "no right to ask", "the server's words");
  s.play[OLD].denies = NULL;
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "one that gives it again is used");
  connection_close(&c);
  meet(&s, SYSTEM, "0000000A0000000000000001");
  s.play[OLD].denies = "42501";
  cmp_ok(open_connection(&s, &c), "==", DK_UNAVAILABLE, "so is a superseded one");
  scene_end(&s);
}

/* ---- idle ------------------------------------------------------------------------------------ */

static void
test_idle(void)
{
  struct connection *c[3], *taken;
  struct pool *pool;
  int connected = 0;
  struct scene s;

  scene_begin(&s, 1);
  if (pool_new(&s.host.host, &s.settings, s.servers, &pool, &s.why) != DK_OK)
    BAIL_OUT("no pool");
  for (int i = 0; i < 3; i++)
    if (pool_take(pool, &s.call, &c[i], &s.why) != DK_OK)
      BAIL_OUT("take: %s", s.why.text);
  pool_give_back(pool, c[0]);
  pool_give_back(pool, c[1]);
  ok(connection_is_alive(c[2]), "a session is alive");
  meet(&s, SYSTEM, "0000000A0000000000000001");
  ok(!connection_is_alive(c[2]), "and unusable once its server was superseded");
  pool_give_back(pool, c[2]);
  s.play[OLD].session.file = "0000000A0000000000000002";
  if (pool_take(pool, &s.call, &taken, &s.why) != DK_OK)
    BAIL_OUT("take: %s", s.why.text);
  cmp_ok(taken->identity.timeline, "==", 10, "a call is given a session on the right server");
  cmp_ok(fake_connections(s.fake[OLD]), "==", 4, "a new one");
  for (int i = 0; i < 3; i++)
    connected += c[i]->pg != NULL;
  cmp_ok(connected, "==", 1, "those that are idle are dropped all at once");
  pool_give_back(pool, taken);
  pool_free(pool);
  scene_end(&s);
}

int
main(void)
{
  plan(NO_PLAN);
  test_judgement();
  int before = n_descriptors();
  test_next_host();
  test_limits();
  test_withheld();
  test_withheld_later();
  test_idle();
  cmp_ok(n_descriptors(), "==", before, "no descriptor is left");
  return done_testing();
}
