/* SPDX-License-Identifier: Apache-2.0 */
/* Limits: see short-limits.h.  A place is remembered by a hash of its names. */
#include "core/runtime/turn/short-limits.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/runtime/turn/turn-thread.h"
#include "core/runtime/turn/turn.h"

enum { MOST_PLACES = 256 };

struct limits {
  pthread_mutex_t lock;
  uint64_t places[MOST_PLACES];
  size_t n_places;
};

struct limits *
limits_new(void)
{
  struct limits *limits = calloc(1, sizeof(*limits));

  if (limits)
    pthread_mutex_init(&limits->lock, NULL);
  return limits;
}

void
limits_free(struct limits *limits)
{
  if (!limits)
    return;
  pthread_mutex_destroy(&limits->lock);
  free(limits);
}

/* FNV-1a of the text and of an end, so that "ab" "c" is not "a" "bc". */
static uint64_t
add_text(uint64_t hash, dk_str text)
{
  for (size_t i = 0; i < text.len; i++)
    hash = (hash ^ (unsigned char)text.ptr[i]) * UINT64_C(0x100000001b3);
  return (hash ^ 0x100) * UINT64_C(0x100000001b3);
}

static bool
is_known(const struct limits *limits, uint64_t place)
{
  for (size_t i = 0; i < limits->n_places; i++)
    if (limits->places[i] == place)
      return true;
  return false;
}

bool
limits_are_news(struct limits *limits, dk_str orchestration, dk_str activity, const char *line)
{
  uint64_t place = UINT64_C(0xcbf29ce484222325);

  place = add_text(place, orchestration);
  place = add_text(place, activity);
  place = add_text(place, dk_str_of(line));
  pthread_mutex_lock(&limits->lock);
  bool are_news = limits->n_places < MOST_PLACES && !is_known(limits, place);
  if (are_news)
    limits->places[limits->n_places++] = place;
  pthread_mutex_unlock(&limits->lock);
  return are_news;
}

void
job_limited(void *context, dk_str activity, int64_t ms, const char *line)
{
  struct job *job = context;
  struct dk_log_event event = job_event(job, DK_LOG_SHORT_LIMIT);
  int64_t lease_ms = job->w->options->activity_lock_ms;

  if (seat_is_left(job->seat))
    return; /* whoever listened may be gone */
  if (ms > lease_ms || !limits_are_news(job->w->too_short, job->name, activity, line))
    return;
  event.activity = activity;
  event.ms = ms;
  journal_tell(job->w->journal, &event,
               "%s%sits limit, %lld ms, is not above the lease of activities, %lld ms: if its "
               "worker is lost, the limit ends before it is run again; give a limit above the "
               "lease by the time of the work, or a shorter activity_lock_ms",
               line ? line : "", line ? ": " : "", (long long)ms, (long long)lease_ms);
}
