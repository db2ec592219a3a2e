/* SPDX-License-Identifier: Apache-2.0 */
/* A hand-written history, and an orchestration that is run against it.  For one test at a time. */
#ifndef DK_RUNTIME_TESTING_WRITTEN_HISTORY_H
#define DK_RUNTIME_TESTING_WRITTEN_HISTORY_H

#include "core/runtime/code/replay.h"

struct scene {
  struct dk_arena arena;
  struct event events[40];
  size_t n_events;
  struct past past;  /* may be changed between scene_set and scene_run */
  struct dk_orch *run;
  struct ran ran;    /* the run's */
  size_t n_said;     /* lines of dk_say, and the last */
  char said[200];
};

/* ids that are 0 get the next number; all are committed. */
void scene_set(struct scene *scene, const struct event *events, size_t n_events);
/* Runs it against the scene; the ending's name. */
const char *scene_run(struct scene *scene, dk_orchestration_fn *function);
/* The error or output; "" for none. */
const char *scene_text(const struct scene *scene);
/* "activity a, timer 50, dropped 2": the commands that were made. */
const char *scene_commands(struct scene *scene);
/* Frees everything. */
void scene_done(struct scene *scene);

const char *ending_name(enum ending ending);

/* A history of these events after the start. */
#define SET(scene, ...)                                                                            \
  scene_set(scene, (const struct event[]){START, __VA_ARGS__},                                     \
            sizeof((const struct event[]){START, __VA_ARGS__}) / sizeof(struct event))
#define SET_START(scene) scene_set(scene, (const struct event[]){START}, 1)

#define S(string)                                                                                  \
  {                                                                                                \
    string, sizeof(string) - 1                                                                     \
  }
#define START                                                                                      \
  {                                                                                                \
    .kind = EVENT_STARTED, .name = S("order"), .version = S("1.0.0"), .text = S("input")           \
  }
#define ACTIVITY(n, in) {.kind = EVENT_ACTIVITY, .name = S(n), .text = S(in)}
#define DONE(of, result) {.kind = EVENT_ACTIVITY_COMPLETED, .source = of, .text = S(result)}
#define FAULT(of, error) {.kind = EVENT_ACTIVITY_FAILED, .source = of, .text = S(error)}
#define TIMER(ms) {.kind = EVENT_TIMER, .number = ms, .time2 = ms}
#define FIRED(of) {.kind = EVENT_TIMER_FIRED, .source = of}
#define CHILD(n, in, id)                                                                           \
  {                                                                                                \
    .kind = EVENT_CHILD, .name = S(n), .text = S(in), .instance = S(id)                            \
  }
#define CHILD_DONE(of, result) {.kind = EVENT_CHILD_COMPLETED, .source = of, .text = S(result)}
#define CHILD_FAULT(of, error) {.kind = EVENT_CHILD_FAILED, .source = of, .text = S(error)}
#define DETACHED(n, in, id)                                                                        \
  {                                                                                                \
    .kind = EVENT_DETACHED, .name = S(n), .text = S(in), .instance = S(id)                         \
  }
#define WAIT(n) {.kind = EVENT_WAIT, .name = S(n)}
#define RAISED(n, data) {.kind = EVENT_RAISED, .name = S(n), .text = S(data)}
#define DEQUEUE(n) {.kind = EVENT_DEQUEUE, .name = S(n)}
#define QUEUED(n, data) {.kind = EVENT_QUEUED, .name = S(n), .text = S(data)}
#define TRIED(n, took, of) {.kind = EVENT_TRY_DEQUEUE, .name = S(n), .number = took, .source = of}
#define DROPPED(of) {.kind = EVENT_DROPPED, .source = of, .code = CODE_DROPPED}
#define VALUE(n, value) {.kind = EVENT_VALUE, .name = S(n), .number = value}
#define KV(op, key, value) {.kind = EVENT_KV, .number = op, .name = S(key), .text = S(value)}
#define STATUS(value) {.kind = EVENT_STATUS, .text = S(value)}

#endif
