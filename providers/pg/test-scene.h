/* SPDX-License-Identifier: Apache-2.0 */
/* Two servers whose answers a test defines, and a handle that has conninfo for both. */
#ifndef DK_PG_TEST_SCENE_H
#define DK_PG_TEST_SCENE_H

#include <stdatomic.h>

#include "providers/pg/test-fake.h"
#include "providers/pg/test-host.h"

/* The answers of a server, and how often it was asked.  `is_frozen`: from now on it answers
 * nothing. */
struct play {
  struct fake_session session;
  const char *denies;        /* SQLSTATE for a request of its identity; NULL: it gives it */
  const char *text;          /* to every request after that; NULL: a row of two */
  atomic_bool is_frozen, is_standby;
  atomic_bool first_is_silent; /* to its first session, which it settles, nothing else */
  atomic_bool lets_first_go_on, lets_go_on_at_next; /* the latter: when the next one comes */
  atomic_int n_sessions, n_requests, n_frozen, most_frozen; /* most_frozen: at one time */
};

struct scene {
  struct test_host host;
  struct dk_call call;
  struct settings settings;
  struct play play[2];       /* "old" and "new", in the order of conninfo */
  struct fake *fake[2];
  struct servers *servers;
  struct why why;
  char lines[10][400];       /* of the log, from info on */
  atomic_int n_lines;
};

enum { OLD, NEW };

/* Of the cluster that both belong to. */
#define SYSTEM "7709876934548409745"

/* Two hosts, or the first alone.  The old server is on timeline 1, the new one on 10. */
void scene_begin(struct scene *s, int n_hosts);
void scene_end(struct scene *s);
/* It stays where it is. */
dk_status open_connection(struct scene *s, struct connection *c);
void expect_at(const struct scene *s, const struct connection *c, int which, const char *name);
/* The handle has had a session on the new server, through a host of its own. */
void meet(struct scene *s, const char *system, const char *file);
dk_status ask(struct scene *s, struct dk_call *call, struct connection *c, bool writes,
              int64_t answer_ms, struct why *why);

#endif
