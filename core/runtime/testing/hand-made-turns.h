/* SPDX-License-Identifier: Apache-2.0 */
/* A client on a store that fails on request (the model's), and turns that a test makes by hand. */
#ifndef DK_RUNTIME_TESTING_HAND_MADE_TURNS_H
#define DK_RUNTIME_TESTING_HAND_MADE_TURNS_H

#include <durakit/manage.h>

#include <pthread.h>

#include "core/runtime/format/event.h"
#include "core/runtime/testing/failing-store.h"

struct hand {
  struct faulty *faulty;
  struct dk_store *store;
  struct dk_canceller *canceller;
  struct dk_client *client;
  struct dk_caller *caller; /* of the turns */
  struct dk_arena arena;    /* what was decoded */
  struct dk_turn *turn;
  const char *name;         /* of the orchestration: "order" until a test changes it */
  const char *parent;       /* NULL: none */
};

/* is_plain: without durakit.admin/1. */
void hand_begin(struct hand *hand, bool is_plain);
/* On this store, which then belongs to the hand. */
void hand_begin_on(struct hand *hand, struct faulty *faulty);
void hand_end(struct hand *hand);

/* The turn of an instance that has messages; how many it has, 0: there is none. */
size_t hand_fetch(struct hand *hand);
struct message hand_message(struct hand *hand, size_t i);
/* Commits the turn, of version 1.2.3: events from `first` on, and this status. */
void hand_commit(struct hand *hand, uint64_t execution, uint64_t first, const struct event *events,
                 size_t n, int32_t status, const char *output);
/* Sends a message, only to fetch a turn. */
void hand_next_turn(struct hand *hand, dk_str instance);
/* Makes a running instance: its first turn is committed. */
void hand_start(struct hand *hand, dk_str instance);
/* Makes one that is not started; its start comes from hand->parent. */
void hand_store(struct hand *hand, dk_str instance);
/* One that is in this status, with the output "out" if it has ended, and cancelled by "me". */
void hand_make(struct hand *hand, dk_str instance, int32_t status);
/* Its first event. */
extern const struct event hand_started;

/* The next call of this operation is done, and its answer is lost.  Its repetition hangs, and is
 * then cancelled; hand_lost after that. */
void hand_lose(struct hand *hand, enum faulty_operation operation, pthread_t *ret_canceller);
void hand_lost(struct hand *hand, pthread_t canceller);

/* Zeroed, with its size. */
struct dk_instance_info hand_info(void);
/* These bytes with a NUL after them; NULL: absent. */
bool is_text(dk_str text, const char *expected);

#endif
