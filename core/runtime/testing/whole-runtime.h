/* SPDX-License-Identifier: Apache-2.0 */
/* A whole runtime on a store that fails on request (the model's), for its tests. */
#ifndef DK_RUNTIME_TESTING_WHOLE_RUNTIME_H
#define DK_RUNTIME_TESTING_WHOLE_RUNTIME_H

#include "core/runtime/format/event.h"
#include "core/runtime/testing/failing-store.h"
#include "core/runtime/testing/log-listener.h"

/* Nothing that succeeds takes that long. */
enum { RIG_WAIT_MS = 120000 };

struct rig {
  struct faulty *faulty;
  struct dk_store *store;
  struct listener *listener;
  struct dk_registry *registry;
  struct dk_runtime_options options;  /* small backoffs; a test changes what it needs */
  struct dk_runtime *runtime;
  struct dk_client *client;
  struct dk_caller *caller;
};

/* The model in memory; nothing runs yet. */
struct rig rig_begin(void);
/* The same on the model that has extensions. */
struct rig rig_begin_full(void);
/* The same on this store, which the rig then owns. */
struct rig rig_begin_on(struct faulty *faulty);
/* Stops the runtime, if it runs, and frees everything. */
void rig_end(struct rig *rig);
void rig_orchestration(struct rig *rig, const char *name, dk_orchestration_fn *function);
void rig_activity(struct rig *rig, const char *name, dk_activity_fn *function);
/* Starts the runtime; ends the program if it is refused. */
void rig_start(struct rig *rig);
/* A second runtime with these options; the caller stops it. */
struct dk_runtime *rig_start_another(struct rig *rig);
/* Stops it; prints what is unfinished. */
struct dk_leftover rig_stop(struct rig *rig, int64_t wait_ms);

/* Starts an instance; its input may be any text. */
void rig_run(struct rig *rig, const char *instance, const char *name, const char *input);
/* "completed: output", "failed: error", "cancelled: reason (by)", or how else it ended, after it
 * has ended; in memory of the rig until the next call. */
const char *rig_result(struct rig *rig, const char *instance);
/* A message without any client. */
void rig_send(struct rig *rig, const char *instance, const char *id,
              const struct message *message);
void rig_send_raw(struct rig *rig, const char *instance, const char *payload);
struct dk_counters rig_counters(struct rig *rig);
/* The events of an instance's execution (0: the latest), decoded into the arena; ends the program
 * if they cannot be read. */
struct event *rig_events(struct rig *rig, struct dk_arena *arena, const char *instance,
                         uint64_t execution, size_t *ret_n);
/* How many of that kind there are in the latest execution. */
uint32_t rig_count_events(struct rig *rig, const char *instance, enum event_kind kind);
/* Tests that ten instances of this orchestration, given "you", complete with "hello you",
 * whatever else runs. */
void rig_ten_complete(struct rig *rig, const char *orchestration);
/* Tests that the latest event of that number names the instance, what has happened, and what to do
 * next. */
void rig_is_told(struct rig *rig, int32_t number, const char *whom, const char *what,
                 const char *next);
/* Whether this is in the text; if not, prints the text. */
bool rig_says(const char *text, const char *part);

#endif
