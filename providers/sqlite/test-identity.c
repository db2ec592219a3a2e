/* SPDX-License-Identifier: Apache-2.0 */
/* A store differs from every other store, and from a removed one of its name: its tokens are valid
 * nowhere else.  The new numbers of a migrated store do not collide with its old ones.  And the
 * removal of a store can be cancelled. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/sqlite/test-handle.h"

/* ---- tokens ---------------------------------------------------------------------------------- */

struct tokens {
  char room[2][200];
  struct dk_bytes turn, work;
};

static struct dk_bytes
keep(char room[200], struct dk_bytes token)
{
  if (token.len > 200)
    BAIL_OUT("a token has %zu bytes", token.len);
  memcpy(room, token.ptr, token.len);
  return (struct dk_bytes){room, token.len};
}

/* A turn and a work item, held; a store that is made alike holds them under the same numbers. */
static void
hold_both(struct handle_under_test *h, struct tokens *tokens)
{
  given_activities(h, "inst", 1);
  tokens->work = keep(tokens->room[1], fetch_work(h));
  tokens->turn = keep(tokens->room[0], fetch_turn(h));
}

static void
expect_anothers(struct handle_under_test *h, dk_status status, const char *what)
{
  const char *why = dk_caller_failure(h->caller)->text;

  if (!ok(status == DK_LOCK_LOST && strstr(why, "another store"), "%s", what))
    diag("status %d: %s", (int)status, why);
}

static void
expect_none_works(struct handle_under_test *h, const struct tokens *tokens)
{
  struct dk_turn_result turn = {.struct_size = sizeof turn};
  struct dk_work_result work = {.struct_size = sizeof work};
  struct dk_commit_outcome outcome;

  expect_anothers(h,
                  dk_store_ack_orchestration_item(h->store, h->caller, tokens->turn, &turn,
                                                  &outcome),
                  "a commit");
  expect_anothers(h,
                  dk_store_renew_orchestration_item_lock(h->store, h->caller, tokens->turn, LEASE),
                  "a renewal");
  expect_anothers(h, dk_store_ack_work_item(h->store, h->caller, tokens->work, &work), "an ack");
  expect_anothers(h, dk_store_renew_work_item_lock(h->store, h->caller, tokens->work, LEASE),
                  "the renewal of a work item");
}

static void
test_two_stores(void)
{
  struct handle_under_test a, b;
  struct tokens of_a, of_b;

  open_store(&a, "a.db");
  open_store(&b, "b.db");
  hold_both(&a, &of_a);
  hold_both(&b, &of_b);
  note("a's tokens at b");
  expect_none_works(&b, &of_a);
  ack_work(&b, of_b.work, NULL);
  ack_work(&a, of_a.work, NULL);
  close_store(&a);
  close_store(&b);
}

static void
test_next_life(void)
{
  struct handle_under_test h;
  struct tokens before, after;

  open_store(&h, "lives.db");
  hold_both(&h, &before);
  close_store(&h);
  cmp_ok(destroy_store("lives.db", NULL), "==", DK_OK, "the store is removed");
  open_store(&h, "lives.db");
  hold_both(&h, &after);
  note("the tokens of its life before");
  expect_none_works(&h, &before);
  ack_work(&h, after.work, NULL);
  close_store(&h);
}

/* ---- after a migration ----------------------------------------------------------------------- */

static void
make_version_1(const char *path)
{
  char sql[65536], name[4096];
  const char *top = getenv("top_srcdir");
  sqlite3 *db;

  snprintf(name, sizeof name, "%s/providers/sqlite/fixtures/version-1.sql", top ? top : ".");
  FILE *file = fopen(name, "r");
  if (!file)
    BAIL_OUT("%s: %s", name, strerror(errno));
  sql[fread(sql, 1, sizeof sql - 1, file)] = '\0';
  fclose(file);
  if (sqlite3_open(path, &db) != SQLITE_OK ||
      sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
    BAIL_OUT("%s: %s", path, sqlite3_errmsg(db));
  sqlite3_close(db);
}

/* Payloads above 1 KiB have a number each. */
static void
test_migrated(void)
{
  static char payload[2000];
  struct handle_under_test h;
  struct dk_item item = {.struct_size = sizeof item, .instance = text("new"),
                         .payload = {payload, sizeof payload}};

  make_version_1(place("old.db"));
  open_store(&h, "old.db");
  int failed = 0;
  for (int i = 0; i < 60; i++) {
    failed += dk_store_enqueue_for_orchestrator(h.store, h.caller, &item) != DK_OK;
    if (failed == 1)
      diag("%s", dk_caller_failure(h.caller)->text);
  }
  cmp_ok(failed, "==", 0, "a migrated store takes 60 large payloads");
  close_store(&h);
}

/* ---- removing -------------------------------------------------------------------------------- */

static void *
cancel(void *canceller)
{
  dk_cancel(canceller);
  return NULL;
}

static void
test_destroy_is_called_back(void)
{
  struct handle_under_test h;
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
  pthread_t thread;

  open_store(&h, "held.db");
  close_store(&h);
  int fd = open(place("held.db-lock"), O_RDWR | O_CLOEXEC);
  if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0)
    BAIL_OUT("the store cannot be held: %s", strerror(errno));
  struct dk_canceller *canceller = dk_canceller_new(NULL);
  if (!canceller || pthread_create(&thread, NULL, cancel, canceller) != 0)
    BAIL_OUT("no canceller");
  cmp_ok(destroy_store("held.db", canceller), "==", DK_CALL_CANCELLED,
         "removing a store that another process holds is cancelled");
  pthread_join(thread, NULL);
  dk_canceller_free(canceller);
  cmp_ok(access(place("held.db"), F_OK), "==", 0, "and the store is there still");
  close(fd);
  cmp_ok(destroy_store("held.db", NULL), "==", DK_OK, "until it is free");
}

int
main(void)
{
  begin();
  test_two_stores();
  test_next_life();
  test_migrated();
  test_destroy_is_called_back();
  end();
  return done_testing();
}
