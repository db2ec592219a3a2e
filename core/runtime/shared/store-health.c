/* SPDX-License-Identifier: Apache-2.0 */
/* How the store answers: see store-health.h. */
#include "core/runtime/shared/store-health.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/runtime/shared/ticks.h"

enum {
  REFUSED_MS = 1000,   /* a shorter refusal does not affect health */
  SILENT_MS = 5000,    /* as long as the default lease of a turn */
  OLD_MS = 60 * 1000,  /* a refusal after which there was no other request */
  FLAPS_MS = 60 * 1000, SETTLE_MS = 5000
};

static const struct {
  const char *cannot, *request;
} words[N_HEALTH_KINDS] = {
    [HEALTH_TURNS] = {"turns cannot be fetched", "a fetch of turns"},
    [HEALTH_WORK] = {"activities cannot be fetched", "a fetch of activities"},
    [HEALTH_COMMITS] = {"turns cannot be committed", "the commit of a turn"},
    [HEALTH_ACKS] = {"ends of activities cannot be stored", "the end of an activity"},
    [HEALTH_RENEWALS] = {"leases cannot be renewed", "the renewal of a lease"},
};

void
health_init(struct health *health)
{
  memset(health, 0, sizeof(*health));
  dk_lock_init(&health->lock);
}

void
health_done(struct health *health)
{
  dk_lock_done(&health->lock);
}

/* ---- askers, under the lock ------------------------------------------------------------------ */

static void
store_health_begin(struct line *line, struct asker *asker, int64_t now)
{
  assert(!asker->at); /* it is in one line at most */
  asker->since = now;
  asker->is_refused = false;
  asker->next = line->askers;
  asker->at = &line->askers;
  if (asker->next)
    asker->next->at = &asker->next;
  line->askers = asker;
}

static void
rest(struct asker *asker)
{
  if (!asker->at)
    return;
  assert(*asker->at == asker && (!asker->next || asker->next->at == &asker->next));
  *asker->at = asker->next;
  if (asker->next)
    asker->next->at = asker->at;
  asker->at = NULL;
}

static bool
is_longer(int64_t since, int64_t now, int64_t ms)
{
  return since < now && now - since > ms;
}

/* An asker that gives up without success does not change the line: a lease is lost because the
 * store was unhealthy. */
static void
store_health_leave(struct line *line, const struct asker *asker, int64_t now)
{
  bool is_refused = asker->is_refused && is_longer(asker->since, now, REFUSED_MS);
  bool is_silent = is_longer(asker->due, now, SILENT_MS);

  if (is_refused && (line->left.refused == 0 || asker->since < line->left.refused))
    line->left.refused = asker->since;
  if (is_silent && (line->left.silent == 0 || asker->due < line->left.silent))
    line->left.silent = asker->due;
  if (is_refused || is_silent)
    line->left.at = now;
}

static void
forget_left(struct health *health)
{
  assert(dk_lock_is_held(&health->lock));
  for (int kind = 0; kind < N_HEALTH_KINDS; kind++)
    memset(&health->lines[kind].left, 0, sizeof(health->lines[kind].left));
}

static bool
is_any_refused(const struct line *line)
{
  for (const struct asker *asker = line->askers; asker; asker = asker->next)
    if (asker->is_refused)
      return true;
  return false;
}

/* ---- asking and answers ---------------------------------------------------------------------- */

void
health_ask(struct health *health, struct asker *asker, enum health_kind kind, int64_t wait_ms)
{
  int64_t now = ticks_now();

  dk_lock(&health->lock);
  if (!asker->at) {
    asker->kind = kind;
    store_health_begin(&health->lines[kind], asker, now);
  }
  assert(asker->kind == kind); /* it asks for one thing until it rests */
  asker->due = ticks_after(now, wait_ms);
  dk_unlock(&health->lock);
}

bool
health_good(struct health *health, struct asker *asker, int64_t *ret_ms)
{
  int64_t now = ticks_now();

  dk_lock(&health->lock);
  struct line *line = &health->lines[asker->kind];
  rest(asker);
  forget_left(health);
  line->good_at = now;
  bool is_news =
    line->fails && !is_any_refused(line) && now - line->refused_at >= line->settle_ms;
  if (is_news) {
    line->fails = false;
    line->back_at = now;
    if (ret_ms)
      *ret_ms = now - line->since;
  }
  dk_unlock(&health->lock);
  return is_news;
}

/* A failure that comes and goes is reported at once the first time, and after that only when it
 * lasts. */
bool
health_refused(struct health *health, struct asker *asker, dk_status status, const char *why)
{
  int64_t now = ticks_now();

  dk_lock(&health->lock);
  struct line *line = &health->lines[asker->kind];
  bool is_news = !line->fails;
  asker->is_refused = true;
  asker->due = INT64_MAX;
  line->refused_at = now;
  line->status = status;
  snprintf(line->why, sizeof(line->why), "%s", why);
  if (is_news) {
    line->fails = true;
    line->since = asker->since;
    line->settle_ms = line->back_at > 0 && now - line->back_at < FLAPS_MS ? SETTLE_MS : 0;
  }
  dk_unlock(&health->lock);
  return is_news;
}

void
health_rest(struct health *health, struct asker *asker)
{
  dk_lock(&health->lock);
  if (asker->at)
    store_health_leave(&health->lines[asker->kind], asker, ticks_now());
  rest(asker);
  dk_unlock(&health->lock);
}

bool
health_may_pass(dk_status status)
{
  int32_t class = dk_status_class(status);

  return class == 1 || class == 3 || status == DK_CALL_CANCELLED;
}

bool
health_fails(struct health *health, enum health_kind kind)
{
  dk_lock(&health->lock);
  bool fails = health->lines[kind].fails;
  dk_unlock(&health->lock);
  return fails;
}

/* ---- health ---------------------------------------------------------------------------------- */

/* Since when requests have been refused; INT64_MAX: the last one was not.  A turn that was dropped
 * is fetched again, so a commit that was given up counts until another one succeeds, or until no
 * request was made for a long time.  So does any other asker that gave up after a long refusal. */
static int64_t
refused_since(const struct line *line, enum health_kind kind, int64_t now)
{
  int64_t since = INT64_MAX;

  if (kind == HEALTH_COMMITS && line->fails && line->good_at < line->refused_at &&
      now - line->refused_at < OLD_MS)
    since = line->since;
  if (line->left.refused > 0 && now - line->left.at < OLD_MS && line->left.refused < since)
    since = line->left.refused;
  for (const struct asker *asker = line->askers; asker; asker = asker->next)
    if (asker->is_refused && asker->since < since)
      since = asker->since;
  return since;
}

/* Since when the oldest request should have been answered. */
static int64_t
silent_since(const struct line *line, int64_t now)
{
  int64_t since = INT64_MAX;

  if (line->left.silent > 0 && now - line->left.at < OLD_MS)
    since = line->left.silent;
  for (const struct asker *asker = line->askers; asker; asker = asker->next)
    if (asker->due < since)
      since = asker->due;
  return since;
}

/* False, with the reason.  Under the lock. */
static bool
is_line_well(const struct line *line, enum health_kind kind, int64_t now, char *reason, size_t size)
{
  int64_t refused = refused_since(line, kind, now), silent = silent_since(line, now);
  char name[32];

  if (is_longer(refused, now, REFUSED_MS))
    snprintf(reason, size, "%s for %lld ms: %s [%s]", words[kind].cannot,
             (long long)(now - refused), line->why,
             dk_status_name(line->status, name, sizeof(name)));
  else if (is_longer(silent, now, SILENT_MS))
    snprintf(reason, size, "the store does not answer: %s has had no answer for %lld ms",
             words[kind].request, (long long)(now - silent));
  else
    return true;
  return false;
}

bool
health_is_well(struct health *health, char *reason, size_t size)
{
  int64_t now = ticks_now();
  bool is_well = true;

  dk_lock(&health->lock);
  for (int kind = 0; is_well && kind < N_HEALTH_KINDS; kind++)
    is_well = is_line_well(&health->lines[kind], (enum health_kind)kind, now, reason, size);
  dk_unlock(&health->lock);
  return is_well;
}
