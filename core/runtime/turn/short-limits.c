/* SPDX-License-Identifier: Apache-2.0 */
/* Limits: see short-limits.h.  A place is remembered by a hash of its names. */
#include "core/runtime/turn/short-limits.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/checksum.h"
#include "core/runtime/turn/turn-thread.h"
#include "core/runtime/turn/turn.h"

enum { MOST_PLACES = 256 };

struct short_limits {
  struct dk_lock lock;
  uint64_t places[MOST_PLACES];
  size_t n_places;
};

struct short_limits *
short_limits_new(void)
{
  struct short_limits *limits = calloc(1, sizeof(*limits));

  if (limits)
    dk_lock_init(&limits->lock);
  return limits;
}

void
short_limits_free(struct short_limits *limits)
{
  if (!limits)
    return;
  dk_lock_done(&limits->lock);
  free(limits);
}

/* FNV-1a of the text and a terminator, so that "ab" "c" differs from "a" "bc". */
static uint64_t
add_text(uint64_t hash, dk_str text)
{
  return (dk_fnv1a64(hash, text.ptr, text.len) ^ 0x100) * UINT64_C(0x100000001b3);
}

static bool
short_limits_is_known(const struct short_limits *limits, uint64_t place)
{
  assert(dk_lock_is_held(&limits->lock) && limits->n_places <= MOST_PLACES);
  for (size_t i = 0; i < limits->n_places; i++)
    if (limits->places[i] == place)
      return true;
  return false;
}

bool
short_limits_are_news(struct short_limits *limits, dk_str orchestration, dk_str activity,
                      const char *line)
{
  uint64_t place = add_text(DK_FNV1A64_START, orchestration);

  place = add_text(place, activity);
  place = add_text(place, dk_str_of(line));
  dk_lock(&limits->lock);
  bool are_news = limits->n_places < MOST_PLACES && !short_limits_is_known(limits, place);
  if (are_news)
    limits->places[limits->n_places++] = place;
  dk_unlock(&limits->lock);
  return are_news;
}

void
turn_note_limit(void *context, dk_str activity, int64_t ms, const char *line)
{
  struct turn *turn = context;
  struct dk_log_event event = turn_event(turn, DK_LOG_SHORT_LIMIT);
  int64_t lease_ms = turn->shared->options->activity_lock_ms;

  if (turn_thread_is_abandoned(turn->thread))
    return; /* the logger may be freed already */
  if (ms > lease_ms || !short_limits_are_news(turn->shared->too_short, turn->name, activity, line))
    return;
  event.activity = activity;
  event.ms = ms;
  log_report(turn->shared->log, &event,
             "%s%sits limit, %lld ms, is not above the lease of activities, %lld ms: if its "
             "worker is lost, the limit ends before it is run again; give a limit of the "
             "lease plus the time of the work, or a shorter activity_lock_ms",
             line ? line : "", line ? ": " : "", (long long)ms, (long long)lease_ms);
}
