/* SPDX-License-Identifier: Apache-2.0 */
/* A call whose server is silent: which server is looked for meanwhile, and how the call ends. */
#include "providers/pg/test-scene.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "conformance/tap/tap.h"

/* A server falls silent, and the other one is on a higher timeline: the call ends. */
static void
test_frozen(void)
{
  for (int writes = 0; writes < 2; writes++) {
    struct connection c, second;
    struct scene s;

    scene_begin(&s, 2);
    cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
    expect_at(&s, &c, OLD, "before");
    atomic_store(&s.play[OLD].is_frozen, true);
    cmp_ok(ask(&s, &s.call, &c, writes != 0, 0, &s.why), "==",
           writes ? DK_OUTCOME_UNKNOWN : DK_UNAVAILABLE, "%s on a frozen server ends",
           writes ? "what writes" : "what reads");
    has_words(s.why.text, "on timeline 1, was superseded by the one at", "its words");
    has_words(s.why.text, writes ? "unknown" : "nothing was done", "what is known of it");
    ok(!c.pg, "the session is dropped");
    has_words(s.lines[0], "has replaced the one at", "it is logged");
    cmp_ok(atomic_load(&s.n_lines), "==", 1, "once");
    int tried = fake_connections(s.fake[OLD]);
    cmp_ok(open_connection(&s, &second), "==", DK_OK, "the next session");
    expect_at(&s, &second, NEW, "afterwards");
    cmp_ok(fake_connections(s.fake[OLD]), "==", tried, "without a try at the frozen one");
    connection_close(&second);
    scene_end(&s);
  }
}

/* The other one is still a standby for a while, and is promoted then. */
static void *
promote_later(void *context)
{
  struct scene *s = context;

  while (fake_connections(s->fake[NEW]) < 3)
    poll(NULL, 0, 1);
  atomic_store(&s->play[NEW].is_standby, false);
  return NULL;
}

static void
test_promoted_later(void)
{
  struct connection c;
  struct scene s;
  pthread_t thread;

  scene_begin(&s, 2);
  atomic_store(&s.play[NEW].is_standby, true);
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
  atomic_store(&s.play[OLD].is_frozen, true);
  if (pthread_create(&thread, NULL, promote_later, &s) != 0)
    BAIL_OUT("no thread");
  cmp_ok(ask(&s, &s.call, &c, true, 0, &s.why), "==", DK_OUTCOME_UNKNOWN,
         "it is looked for again until there is one");
  has_words(s.why.text, "was superseded", "its words");
  pthread_join(thread, NULL);
  scene_end(&s);
}

/* The server runs, and reports what the session waits for: the call continues to wait. */
static void *
answer_when_logged(void *context)
{
  struct scene *s = context;

  while (atomic_load(&s->n_lines) == 0 || fake_connections(s->fake[OLD]) < 4)
    poll(NULL, 0, 1);
  atomic_store(&s->play[OLD].lets_first_go_on, true);
  return NULL;
}

static void
test_busy(void)
{
  struct connection c;
  struct scene s;
  pthread_t thread;

  scene_begin(&s, 1);
  s.play[OLD].text = "the server waits for its synchronous standby";
  atomic_store(&s.play[OLD].first_is_silent, true);
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
  if (pthread_create(&thread, NULL, answer_when_logged, &s) != 0)
    BAIL_OUT("no thread");
  cmp_ok(ask(&s, &s.call, &c, true, 0, &s.why), "==", DK_OK,
         "a call on a running server continues to wait, until it is answered");
  pthread_join(thread, NULL);
  has_words(s.lines[0], "ask: no answer yet: the server waits for its synchronous standby",
            "what it waits for is logged");
  cmp_ok(atomic_load(&s.n_lines), "==", 1, "once, however often it was looked");
  connection_close(&c);
  scene_end(&s);
}

/* It lives, and waits for a standby that was promoted: that one has taken its place. */
static void
test_lives_on(void)
{
  struct connection c, second;
  struct scene s;

  scene_begin(&s, 2);
  s.play[OLD].text = "the server waits for its synchronous standby";
  atomic_store(&s.play[OLD].first_is_silent, true);
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
  expect_at(&s, &c, OLD, "before");
  cmp_ok(ask(&s, &s.call, &c, true, 0, &s.why), "==", DK_OUTCOME_UNKNOWN,
         "a call on a running server that was superseded ends");
  has_words(s.why.text, "on timeline 1, was superseded by the one at", "its words");
  int last = atomic_load(&s.n_lines) - 1;
  has_words(s.lines[last], "has replaced the one at",
            "it is logged, and after that not what the old one waits for");
  for (int i = 0; i < last; i++) /* on a busy machine the first look may end too early */
    has_words(s.lines[i], "ask: no answer yet: the server waits", "what was logged before");
  int tried = fake_connections(s.fake[OLD]);
  cmp_ok(open_connection(&s, &second), "==", DK_OK, "the next session");
  expect_at(&s, &second, NEW, "afterwards");
  cmp_ok(fake_connections(s.fake[OLD]), "==", tried, "without a try at the old one");
  connection_close(&second);
  scene_end(&s);
}

/* The server runs, and the other host has a standby: the call continues to wait, and the order
 * stays. */
static void
test_lives_beside_standby(void)
{
  struct connection c, second;
  struct scene s;
  pthread_t thread;

  scene_begin(&s, 2);
  s.play[OLD].text = "it waits for a lock";
  atomic_store(&s.play[OLD].first_is_silent, true);
  atomic_store(&s.play[NEW].is_standby, true);
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
  if (pthread_create(&thread, NULL, answer_when_logged, &s) != 0)
    BAIL_OUT("no thread");
  cmp_ok(ask(&s, &s.call, &c, true, 0, &s.why), "==", DK_OK, "the call continues to wait");
  pthread_join(thread, NULL);
  cmp_ok(fake_connections(s.fake[NEW]), ">", 0, "the other host was looked at");
  int tried = fake_connections(s.fake[NEW]);
  cmp_ok(open_connection(&s, &second), "==", DK_OK, "the next session");
  expect_at(&s, &second, OLD, "on the same server");
  cmp_ok(fake_connections(s.fake[NEW]), "==", tried, "without a try at the standby");
  connection_close(&c);
  connection_close(&second);
  scene_end(&s);
}

/* A call that has waited in vain reports what it waited for. */
static void
test_told_in_the_end(void)
{
  struct connection c;
  struct scene s;

  scene_begin(&s, 1);
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
  atomic_store(&s.play[OLD].is_frozen, true);
  servers_note_wait(s.servers, "another", "the server waits for its synchronous standby");
  s.settings.silence_ms = s.settings.answer_ms;
  cmp_ok(ask(&s, &s.call, &c, true, 50, &s.why), "==", DK_OUTCOME_UNKNOWN, "no answer");
  has_words(s.why.text, "within 50ms: the server waits for its synchronous standby; the outcome",
            "its words");
  scene_end(&s);
}

/* The answer comes during the probe: the probe is given up, no other host is tried. */
static void
test_answer_beside(void)
{
  struct connection c;
  struct scene s;

  scene_begin(&s, 2);
  atomic_store(&s.play[OLD].first_is_silent, true);
  atomic_store(&s.play[OLD].lets_go_on_at_next, true);
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
  s.settings.silence_ms = 3000;
  cmp_ok(ask(&s, &s.call, &c, true, 0, &s.why), "==", DK_OK, "the answer is taken");
  cmp_ok(fake_connections(s.fake[OLD]), "==", 2, "it was looked");
  cmp_ok(fake_connections(s.fake[NEW]), "==", 0, "and not waited to the end of that");
  connection_close(&c);
  scene_end(&s);
}

/* No server answers: it waits to the end of its time, which passes once each was tried again. */
static void
pass_when_tried(struct dk_call *call)
{
  const struct scene *s = call->context;

  call->passes = fake_connections(s->fake[NEW]) > 1 ? s->settings.answer_ms : 0;
}

static void
test_nobody(void)
{
  struct connection c;
  struct scene s;

  scene_begin(&s, 2);
  cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
  atomic_store(&s.play[OLD].is_frozen, true);
  atomic_store(&s.play[NEW].is_frozen, true);
  s.call.host = &s.host;
  s.call.at_wait = pass_when_tried;
  s.call.context = &s;
  cmp_ok(ask(&s, &s.call, &c, true, s.settings.answer_ms - 1, &s.why), "==", DK_OUTCOME_UNKNOWN,
         "no server answers");
  has_words(s.why.text, "within 599999ms; the outcome is unknown; by then the lease",
            "its words");
  scene_end(&s);
}

/* Cancelled while it looks. */
static void
test_taken_back(void)
{
  for (int at = 2; at <= 4; at++) {
    struct connection c;
    struct scene s;

    scene_begin(&s, 2);
    cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
    atomic_store(&s.play[OLD].is_frozen, true);
    atomic_store(&s.play[NEW].is_frozen, true);
    s.call.cancel_at = s.call.n_waits + at;
    cmp_ok(ask(&s, &s.call, &c, false, 0, &s.why), "==", DK_CALL_CANCELLED,
           "cancelled at wait %d", at);
    cmp_ok(s.call.n_cancelled, "==", 1, "which then is the last");
    scene_end(&s);
  }
}

/* Another session meets the new server while this one is answered by the old: that is no
 * acknowledgement. */
static void
meet_and_go_on(struct dk_call *call)
{
  struct scene *s = call->context;

  meet(s, SYSTEM, "0000000A0000000000000001");
  atomic_store(&s->play[OLD].lets_first_go_on, true);
}

static void
test_answered_too_late(void)
{
  for (int writes = 0; writes < 2; writes++) {
    struct connection c;
    struct scene s;

    scene_begin(&s, 1);
    atomic_store(&s.play[OLD].first_is_silent, true);
    cmp_ok(open_connection(&s, &c), "==", DK_OK, "a session");
    s.settings.silence_ms = s.settings.answer_ms;
    s.call.at_wait = meet_and_go_on;
    s.call.context = &s;
    cmp_ok(ask(&s, &s.call, &c, writes != 0, 0, &s.why), "==",
           writes ? DK_OUTCOME_UNKNOWN : DK_OK, "an answer of a server that was superseded, to %s",
           writes ? "what writes" : "what reads");
    if (writes)
      has_words(s.why.text, "was superseded by the one at", "its words");
    connection_close(&c);
    scene_end(&s);
  }
}

struct asker {
  struct scene *scene;
  struct dk_call call;
  struct connection c;
  pthread_t thread;
  dk_status status;
  struct why why;
};

static void *
ask_in_vain(void *context)
{
  struct asker *a = context;

  a->status = ask(a->scene, &a->call, &a->c, true, 0, &a->why);
  return NULL;
}

/* Of many waiting calls one looks at a time, and its finding ends all of them. */
static void
test_many(void)
{
  enum { MANY = 8 };
  struct asker askers[MANY];
  int n_ended = 0;
  struct scene s;

  scene_begin(&s, 2);
  atomic_store(&s.play[NEW].is_standby, true);
  for (int i = 0; i < MANY; i++) {
    askers[i] = (struct asker){.scene = &s};
    call_init(&askers[i].call);
    if (open_connection(&s, &askers[i].c) != DK_OK)
      BAIL_OUT("no session: %s", s.why.text);
  }
  atomic_store(&s.play[OLD].is_frozen, true);
  for (int i = 0; i < MANY; i++)
    if (pthread_create(&askers[i].thread, NULL, ask_in_vain, &askers[i]) != 0)
      BAIL_OUT("no thread");
  promote_later(&s);
  for (int i = 0; i < MANY; i++) {
    pthread_join(askers[i].thread, NULL);
    n_ended += askers[i].status == DK_OUTCOME_UNKNOWN &&
               strstr(askers[i].why.text, "was superseded") != NULL;
    call_done(&askers[i].call);
  }
  cmp_ok(n_ended, "==", MANY, "all calls end");
  cmp_ok(atomic_load(&s.play[OLD].most_frozen), "==", 1, "one of them has looked at a time");
  scene_end(&s);
}

int
main(void)
{
  plan(NO_PLAN);
  int before = n_descriptors();
  test_frozen();
  test_promoted_later();
  test_busy();
  test_lives_on();
  test_lives_beside_standby();
  test_told_in_the_end();
  test_answer_beside();
  test_nobody();
  test_taken_back();
  test_many();
  test_answered_too_late();
  cmp_ok(n_descriptors(), "==", before, "no descriptor is left");
  return done_testing();
}
