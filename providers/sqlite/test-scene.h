/* SPDX-License-Identifier: Apache-2.0 */
/* Scenes for the tests of durakit.admin/1: instances with all that may belong to one, a clock that
 * stands where it is put, and what the tables hold.  A failure of the environment bails out. */
#ifndef DK_SQLITE_TEST_SCENE_H
#define DK_SQLITE_TEST_SCENE_H

#include "providers/sqlite/test-handle.h"

enum { LARGE = 5000, NOON = 1000000 };

/* By the clock of the scene, which stands at NOON until it is moved; while a store is open only
 * forward. */
void open_scene(struct handle_under_test *h, const char *name);
void set_time(int64_t now);

/* An instance, made by as many commits as it has executions.  0: the default. */
struct making {
  bool given;                   /* so that nothing else need be */
  const char *name, *version;   /* "order", "1" */
  const char *parent, *owner;
  int executions;               /* 1; all but the last have continued as new */
  int32_t status;               /* of the last: DK_RUNNING */
  size_t events;                /* of each execution: 2 */
  size_t activities;            /* of each execution: none */
  size_t payload;               /* bytes of an event, an activity and an output: 10 */
};
#define make(h, instance, ...)                                                                     \
  make_instance(h, instance, &(struct making){.given = true, __VA_ARGS__})
void make_instance(struct handle_under_test *h, const char *instance, const struct making *making);
/* Another commit, with this execution and status. */
void commit_next(struct handle_under_test *h, const char *instance, uint64_t execution,
                 int32_t status);

/* A message that is visible at that time; id NULL: none. */
void send(struct handle_under_test *h, const char *instance, const char *id, int64_t visible_at,
          size_t payload);
/* A token that is kept: it lives until 64 others were. */
struct dk_bytes keep(struct dk_bytes token);
/* Sends a message and takes the turn, which must be this instance's. */
struct dk_bytes take_turn(struct handle_under_test *h, const char *instance);
struct dk_bytes take_work(struct handle_under_test *h);
/* The empty commit: the turn's messages are deleted. */
void drop_turn(struct handle_under_test *h, struct dk_bytes token);

/* What a number of SQL is in the store's file. */
int64_t number_in(const char *name, const char *sql);
void run_in(const char *name, const char *sql);
/* One point: each row belongs to an existing instance, and each payload to a row. */
void expect_no_leftovers(const char *name, const char *what);

/* One point: the status, and a part of the text. */
void expect(struct handle_under_test *h, dk_status found, dk_status expected, const char *part,
            const char *what);

dk_status delete_ids(struct handle_under_test *h, const char *ids, uint32_t flags,
                     struct dk_removed *ret_removed); /* separated by one space */

#endif
