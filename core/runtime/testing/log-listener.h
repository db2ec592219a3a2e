/* SPDX-License-Identifier: Apache-2.0 */
/* Listens to the log of a runtime, for its tests: what was logged, and how often. */
#ifndef DK_RUNTIME_TESTING_LOG_LISTENER_H
#define DK_RUNTIME_TESTING_LOG_LISTENER_H

#include <durakit/runtime.h>

#include <stdbool.h>

#include "core/runtime/shared/ticks.h"

enum { LISTENER_NUMBERS = 32, LISTENER_LEVELS = 5, LISTENER_HEARD = 4096 };

/* One event; text and names are cut to the room that there is. */
struct heard {
  int32_t number, level, cause, learnt;
  dk_status status;
  uint64_t execution_id, activity_id;
  int64_t at, ms; /* at: the tick */
  char instance[64], activity[64], orchestration[64], token[256], worker[64];
  char text[300];
};

/* What an event must name; NULL: it must not name one. */
struct whom {
  const char *instance;
  uint64_t execution_id, activity_id;
  const char *activity, *orchestration, *token, *worker;
};

struct listener {
  struct dk_lock lock;
  pthread_cond_t changed;
  uint32_t numbers[LISTENER_NUMBERS], levels[LISTENER_LEVELS];
  struct heard heard[LISTENER_HEARD]; /* except for what is traced: */
  struct heard traced[LISTENER_NUMBERS]; /* the latest of each number */
  uint32_t n_heard;
  char without_reason[300]; /* a line that reports a failure without a reason */
};

/* Never NULL: without memory it ends the program. */
struct listener *listener_new(void);
/* Fails a point if a line had no reason. */
void listener_free(struct listener *listener);
/* A dk_log_fn; the context is the listener. */
void listener_log(void *context, const struct dk_log_event *event);
uint32_t listener_count(struct listener *listener, int32_t number);
uint32_t listener_level(struct listener *listener, int32_t level);
/* Waits until it was logged n times; false after 60 s. */
bool listener_until(struct listener *listener, int32_t number, uint32_t n);
/* A copy of the latest with that number; all zero if there is none. */
struct heard listener_latest(struct listener *listener, int32_t number);
/* The latest of these whose text has this word; if none has, the latest. */
struct heard listener_latest_saying(struct listener *listener, int32_t number, const char *word);
/* The same for traced events, which listener_latest does not include. */
struct heard listener_latest_trace(struct listener *listener, int32_t number);
/* Whether the event names exactly these, in its members; if not, prints the differences. */
bool heard_names(const struct heard *heard, const struct whom *whom);
/* How many of that number have this cause, and were learnt in this way (-1: any). */
uint32_t listener_matching(struct listener *listener, int32_t number, int32_t cause,
                           int32_t learnt);
/* Prints all that was logged from a level on, as comments. */
void listener_show(struct listener *listener, int32_t level);

/* Sleeps for a moment, in which other threads run. */
void a_moment(void);
/* Checks until the condition holds; whether it does after 60 s. */
#define UNTIL(condition)                                                                           \
  __extension__({                                                                                  \
    int64_t until_tick_ = ticks_now() + 60000;                                                     \
    bool holds_;                                                                                   \
    while (!(holds_ = (condition)) && ticks_now() < until_tick_)                                   \
      a_moment();                                                                                  \
    holds_;                                                                                        \
  })

#endif
