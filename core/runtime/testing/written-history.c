/* SPDX-License-Identifier: Apache-2.0 */
/* A hand-written history: see written-history.h. */
#include "core/runtime/testing/written-history.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/runtime/code/orch.h"

const char *
ending_name(enum ending ending)
{
  static const char *const names[] = {"waits", "completed", "failed", "continued",
                                      "nondeterminism", "limit", "wrong use", "overdue",
                                      "no memory", "corrupt"};

  return (size_t)ending < sizeof(names) / sizeof(names[0]) ? names[ending] : "?";
}

static void
hear(void *context, int32_t level, dk_str line)
{
  struct scene *scene = context;

  (void)level;
  scene->n_said++;
  snprintf(scene->said, sizeof(scene->said), "%.*s", (int)line.len, line.ptr);
}

void
scene_set(struct scene *scene, const struct event *events, size_t n_events)
{
  const size_t most = sizeof(scene->events) / sizeof(scene->events[0]);

  if (n_events > most)
    abort();
  scene_done(scene);
  for (size_t i = 0; i < n_events; i++) {
    scene->events[i] = events[i];
    if (events[i].id == 0)
      scene->events[i].id = i + 1;
  }
  scene->n_events = n_events;
  scene->past = (struct past){.instance = S("order-7"), .execution = 3, .events = scene->events,
                              .n_events = n_events, .n_committed = n_events, .time = 1000,
                              .seed = 42, .max_events = 1000, .max_id = 255,
                              .max_payload = 65536, .has_kv = true, .has_status = true,
                              .has_sessions = true, .say = hear, .context = scene};
}

const char *
scene_run(struct scene *scene, dk_orchestration_fn *function)
{
  replay_free(scene->run);
  scene->run = replay_new(function);
  if (!scene->run)
    abort();
  scene->run->arena = &scene->arena; /* texts of an earlier run stay valid */
  replay_turn(scene->run, &scene->past, &scene->ran);
  return ending_name(scene->ran.ending);
}

const char *
scene_text(const struct scene *scene)
{
  return scene->ran.text.ptr ? scene->ran.text.ptr : "";
}

static char *
add_command(struct scene *scene, char *so_far, const struct event *event)
{
  const char *comma = *so_far ? ", " : "", *kind = event_kind_name(event->kind);

  if (event->kind == EVENT_DROPPED)
    return dk_arena_printf(&scene->arena, "%s%s%s %llu %s", so_far, comma, kind,
                           (unsigned long long)event->source, code_name(event->code));
  if (event->kind == EVENT_TIMER)
    return dk_arena_printf(&scene->arena, "%s%s%s %lld", so_far, comma, kind,
                           (long long)event->number);
  return dk_arena_printf(&scene->arena, "%s%s%s%s%.*s", so_far, comma, kind,
                         event->name.len > 0 ? " " : "", (int)event->name.len,
                         event->name.len > 0 ? event->name.ptr : "");
}

const char *
scene_commands(struct scene *scene)
{
  char *text = dk_arena_strdup(&scene->arena, "");

  for (size_t i = 0; text && i < scene->ran.n_commands; i++)
    text = add_command(scene, text, &scene->ran.commands[i]);
  return text;
}

void
scene_done(struct scene *scene)
{
  dk_arena_done(&scene->arena);
  replay_free(scene->run);
  *scene = (struct scene){.n_events = 0};
}
