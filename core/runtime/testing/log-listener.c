/* SPDX-License-Identifier: Apache-2.0 */
/* Listens to the log: see log-listener.h.  Locking: `lock` guards all; nothing is called under
 * it. */
#include "core/runtime/testing/log-listener.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/plugin/look.h"

enum { PATIENCE_MS = 60000 };

struct listener *
listener_new(void)
{
  struct listener *listener = calloc(1, sizeof(*listener));

  if (!listener)
    BAIL_OUT("no memory to listen");
  dk_lock_init(&listener->lock);
  ticks_cond_init(&listener->changed);
  return listener;
}

/* Checks that an event has a reason, or states that it has none. */
static bool
lacks_reason(dk_str text)
{
  bool ends_open = text.len > 1 && memcmp(text.ptr + text.len - 2, ": ", 2) == 0;

  return ends_open || memmem(text.ptr, text.len, ":  [", 4) ||
         memmem(text.ptr, text.len, "[DK_NOTHING]", 12);
}

void
listener_free(struct listener *listener)
{
  if (listener->without_reason[0])
    fail("each line has its reason: %s", listener->without_reason);
  pthread_cond_destroy(&listener->changed);
  dk_lock_done(&listener->lock);
  free(listener);
}

#define COPY(to, text)                                                                             \
  snprintf(to, sizeof(to), "%.*s", (int)(text).len, (text).ptr ? (text).ptr : "")

static void
keep(struct heard *heard, const struct dk_log_event *event)
{
  *heard = (struct heard){
    .number = event->number,
    .level = event->level,
    .cause = event->cause,
    .learnt = event->learnt,
    .status = event->status,
    .execution_id = event->execution_id,
    .activity_id = event->activity_id,
    .at = ticks_now(),
    .ms = event->ms,
  };
  COPY(heard->instance, event->instance);
  COPY(heard->activity, event->activity);
  COPY(heard->orchestration, event->orchestration);
  COPY(heard->token, event->token);
  COPY(heard->worker, event->worker);
  COPY(heard->text, event->text);
}

void
listener_log(void *context, const struct dk_log_event *event)
{
  struct listener *listener = context;

  dk_lock(&listener->lock);
  listener->numbers[event->number]++;
  listener->levels[event->level + 1]++;
  if (lacks_reason(event->text))
    COPY(listener->without_reason, event->text);
  if (event->level > DK_LEVEL_TRACE)
    keep(&listener->heard[listener->n_heard++ % LISTENER_HEARD], event);
  else
    keep(&listener->traced[event->number], event);
  pthread_cond_broadcast(&listener->changed);
  dk_unlock(&listener->lock);
}

uint32_t
listener_count(struct listener *listener, int32_t number)
{
  dk_lock(&listener->lock);
  uint32_t n = listener->numbers[number];
  dk_unlock(&listener->lock);
  return n;
}

uint32_t
listener_level(struct listener *listener, int32_t level)
{
  dk_lock(&listener->lock);
  uint32_t n = listener->levels[level + 1];
  dk_unlock(&listener->lock);
  return n;
}

bool
listener_until(struct listener *listener, int32_t number, uint32_t n)
{
  int64_t until = ticks_now() + PATIENCE_MS;

  dk_lock(&listener->lock);
  while (listener->numbers[number] < n && ticks_now() < until)
    ticks_cond_wait(&listener->changed, &listener->lock, until);
  bool is_there = listener->numbers[number] >= n;
  dk_unlock(&listener->lock);
  return is_there;
}

static uint32_t
n_kept(const struct listener *listener)
{
  return listener->n_heard < LISTENER_HEARD ? listener->n_heard : LISTENER_HEARD;
}

struct heard
listener_latest_saying(struct listener *listener, int32_t number, const char *word)
{
  struct heard latest = {.number = 0}, saying = {.number = 0};

  dk_lock(&listener->lock);
  for (uint32_t i = 0; i < n_kept(listener); i++)
    if (listener->heard[i].number == number) {
      latest = listener->heard[i];
      if (strstr(latest.text, word))
        saying = latest;
    }
  dk_unlock(&listener->lock);
  return saying.number ? saying : latest;
}

struct heard
listener_latest(struct listener *listener, int32_t number)
{
  return listener_latest_saying(listener, number, "");
}

struct heard
listener_latest_trace(struct listener *listener, int32_t number)
{
  dk_lock(&listener->lock);
  struct heard latest = listener->traced[number];
  dk_unlock(&listener->lock);
  return latest;
}

static bool
is_named(const char *what, const char *heard, const char *expected)
{
  if (strcmp(heard, expected ? expected : "") == 0)
    return true;
  diag("%s: \"%s\", expected \"%s\"", what, heard, expected ? expected : "");
  return false;
}

static bool
is_numbered(const char *what, uint64_t heard, uint64_t expected)
{
  if (heard == expected)
    return true;
  diag("%s: %llu, expected %llu", what, (unsigned long long)heard, (unsigned long long)expected);
  return false;
}

/* Checks all members, so that every difference is printed. */
bool
heard_names(const struct heard *heard, const struct whom *whom)
{
  const bool is_right[] = {
    is_named("instance", heard->instance, whom->instance),
    is_numbered("execution", heard->execution_id, whom->execution_id),
    is_numbered("activity id", heard->activity_id, whom->activity_id),
    is_named("activity", heard->activity, whom->activity),
    is_named("orchestration", heard->orchestration, whom->orchestration),
    is_named("token", heard->token, whom->token),
    is_named("worker", heard->worker, whom->worker),
  };
  bool is_all = true;

  for (size_t i = 0; i < sizeof(is_right) / sizeof(is_right[0]); i++)
    is_all = is_all && is_right[i];
  return is_all;
}

uint32_t
listener_matching(struct listener *listener, int32_t number, int32_t cause, int32_t learnt)
{
  uint32_t n = 0;

  dk_lock(&listener->lock);
  for (uint32_t i = 0; i < n_kept(listener); i++) {
    const struct heard *heard = &listener->heard[i];
    if (heard->number == number && (cause < 0 || heard->cause == cause) &&
        (learnt < 0 || heard->learnt == learnt))
      n++;
  }
  dk_unlock(&listener->lock);
  return n;
}

void
listener_show(struct listener *listener, int32_t level)
{
  dk_lock(&listener->lock);
  for (uint32_t i = 0; i < n_kept(listener); i++)
    if (listener->heard[i].level >= level)
      diag("level %d, number %d: %s", listener->heard[i].level, listener->heard[i].number,
           listener->heard[i].text);
  dk_unlock(&listener->lock);
}

void
a_moment(void)
{
  struct dk_wait nothing = {.cancel_fd = -1, .fd = -1};

  dk_look(&nothing, -1, 1);
}
