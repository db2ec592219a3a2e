/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a handle: see connection.h.  They are made when they are needed, up to the
 * setting `pool`, and the one that was used last is used next.  A call that finds all in use waits
 * in the order of arrival, and is handed a place: with a connection, or with the right to make one.
 *
 * A server that has no connection left is not asked for another for a while: then there are as many
 * places as it has granted this handle, at least one, and now and then one more is tried.
 *
 * Owns the places.  A place is in the idle list, in use by a call, or not made yet.
 *
 * Locking: `mutex` guards the lists, the number of places and the waiters.  No thread holds it
 * during a wait or a call of libpq; under it are only such upcalls as are allowed everywhere. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "providers/pg/connection.h"
#include "providers/shared/mutex.h"

/* On the stack of the call that waits. */
struct queued {
  int fd;                       /* readable once `place` is there */
  struct connection *place;
  struct queued *next;
};

struct pool {
  const struct dk_host *host;
  const struct settings *settings;
  struct servers *servers;
  struct mutex mutex;
  struct connection *idle;      /* last used first; those without a connection at the end */
  uint32_t n_places, most;      /* most: the setting, or as many as the server has */
  int64_t grow_at;              /* the host's clock: then one more than `most` is tried */
  bool has_said_full;
  uint32_t timeline;            /* of the servers when idle connections were last looked through */
  struct queued *first, **last; /* in the order of arrival */
};

dk_status
pool_new(const struct dk_host *host, const struct settings *settings, struct servers *servers,
         struct pool **ret_pool, struct why *why)
{
  struct pool *pool = calloc(1, sizeof *pool);

  if (!pool)
    return why_set(why, DK_NO_MEMORY, "open: out of memory for the connections");
  pool->host = host;
  pool->settings = settings;
  pool->servers = servers;
  pool->most = settings->pool;
  pool->last = &pool->first;
  mutex_init(&pool->mutex);
  *ret_pool = pool;
  return DK_OK;
}

void
pool_free(struct pool *pool)
{
  if (!pool)
    return;
  assert(!pool->first); /* no call waits */
  while (pool->idle) {
    struct connection *c = pool->idle;
    pool->idle = c->next;
    connection_close(c);
    free(c);
  }
  mutex_done(&pool->mutex);
  free(pool);
}

/* ---- places ---------------------------------------------------------------------------------- */

enum { GROW_MS = 30000 };

/* Under the mutex. */
static bool
may_grow(struct pool *pool)
{
  int64_t now = pool->host->now(pool->host);

  assert(mutex_is_held(&pool->mutex));
  if (pool->n_places < pool->most || pool->n_places == 0)
    return true;
  if (pool->n_places >= pool->settings->pool || now < pool->grow_at)
    return false;
  pool->grow_at = time_add(now, GROW_MS);
  return true;
}

/* Gives a free place, or NULL; then `queued`, if given, is in the queue. */
static struct connection *
place_or_queue(struct pool *pool, struct connection *fresh, struct queued *queued)
{
  struct connection *place = NULL;

  mutex_lock(&pool->mutex);
  assert(!pool->idle || !pool->first); /* an idle one is handed to a waiting call */
  if (pool->idle) {
    place = pool->idle;
    pool->idle = place->next;
  } else if (fresh && may_grow(pool)) {
    assert(pool->n_places < pool->settings->pool);
    pool->n_places++;
    place = fresh;
  } else if (queued) {
    assert(!*pool->last && !queued->place);
    *pool->last = queued;
    pool->last = &queued->next;
  }
  mutex_unlock(&pool->mutex);
  return place;
}

static void
hand_to(struct pool *pool, struct queued *queued, struct connection *place)
{
  static const char failed[] =
    "cannot write to an eventfd: a call that waits for a connection is not woken";
  const uint64_t one = 1;

  assert(mutex_is_held(&pool->mutex));
  assert(queued == pool->first && !queued->place);
  pool->first = queued->next;
  if (!pool->first)
    pool->last = &pool->first;
  queued->place = place;
  if (write(queued->fd, &one, sizeof one) < 0)
    pool->host->log(pool->host, 3, (struct dk_bytes){failed, sizeof failed - 1});
}

static void
give_place(struct pool *pool, struct connection *place)
{
  struct connection **at = &pool->idle;

  mutex_lock(&pool->mutex);
  if (pool->first) {
    hand_to(pool, pool->first, place); /* under the lock, because the waiter may leave */
  } else {
    while (!place->pg && *at)
      at = &(*at)->next;
    place->next = *at;
    *at = place;
  }
  mutex_unlock(&pool->mutex);
}

/* Leaves the queue.  If a place was given meanwhile, that one is the result. */
static struct connection *
leave_queue(struct pool *pool, struct queued *queued)
{
  mutex_lock(&pool->mutex);
  for (struct queued **at = &pool->first; *at && !queued->place; at = &(*at)->next) {
    if (*at != queued)
      continue;
    *at = queued->next;
    if (!queued->next)
      pool->last = at;
    break;
  }
  mutex_unlock(&pool->mutex);
  return queued->place;
}

static dk_status
wait_in_queue(struct pool *pool, struct dk_call *call, struct queued *queued,
              struct connection **ret_place, struct why *why)
{
  assert(!mutex_is_held(&pool->mutex));
  dk_status status = pool->host->wait(call, queued->fd, DK_WAIT_READ, INT64_MAX);
  struct connection *place = leave_queue(pool, queued);

  if (status == DK_OK && place) {
    *ret_place = place;
    return DK_OK;
  }
  if (place)
    give_place(pool, place);
  return why_set(why, status == DK_OK ? DK_INTERNAL : status,
                 "cancelled while it waited for a free connection");
}

/* Gives a new place, if one more is allowed; else waits for one. */
static dk_status
make_place(struct pool *pool, struct dk_call *call, struct connection **ret_place, struct why *why)
{
  struct connection *fresh = calloc(1, sizeof *fresh);
  struct queued queued = {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  dk_status status = DK_OK;

  if (!fresh || (queued.fd < 0 && errno == ENOMEM))
    status = why_set(why, DK_NO_MEMORY, "out of memory for a connection");
  else if (queued.fd < 0)
    status = why_set(why, DK_UNAVAILABLE,
                     "no descriptor is left to wait for a connection (ulimit -n)");
  struct connection *place = status == DK_OK ? place_or_queue(pool, fresh, &queued) : NULL;
  if (place != fresh)
    free(fresh);
  if (status == DK_OK && !place)
    status = wait_in_queue(pool, call, &queued, &place, why);
  if (queued.fd >= 0)
    close(queued.fd);
  if (status == DK_OK)
    *ret_place = place;
  return status;
}

static dk_status
find_place(struct pool *pool, struct dk_call *call, struct connection **ret_place, struct why *why)
{
  struct connection *place = place_or_queue(pool, NULL, NULL);

  if (!place)
    return make_place(pool, call, ret_place, why);
  *ret_place = place;
  return DK_OK;
}

/* ---- a server that is full ------------------------------------------------------------------- */

/* Gives up this additional place if there are others to wait for; false: there are none. */
static bool
settle_for_fewer(struct pool *pool, struct connection *place, const struct why *why)
{
  char line[sizeof why->text + 200];

  mutex_lock(&pool->mutex);
  assert(pool->n_places > 0 && !place->pg);
  bool are_others = pool->n_places > 1;
  if (are_others) {
    pool->n_places--;
    pool->most = pool->n_places;
    pool->grow_at = time_add(pool->host->now(pool->host), GROW_MS);
  }
  bool is_news = are_others && !pool->has_said_full;
  pool->has_said_full = pool->has_said_full || is_news;
  mutex_unlock(&pool->mutex);
  if (is_news) {
    snprintf(line, sizeof line, "the calls of this handle share its present connections, and "
             "it asks for one more every %d s: %.700s", GROW_MS / 1000, why->text);
    pool->host->log(pool->host, 2, (struct dk_bytes){line, strlen(line)});
  }
  if (are_others)
    free(place);
  return are_others;
}

/* The server has granted one. */
static void
note_growth(struct pool *pool)
{
  mutex_lock(&pool->mutex);
  assert(pool->n_places <= pool->settings->pool);
  if (pool->n_places > pool->most) {
    pool->most = pool->n_places;
    pool->grow_at = 0;
  }
  pool->has_said_full = pool->has_said_full && pool->most < pool->settings->pool;
  mutex_unlock(&pool->mutex);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* Another server has taken the place of theirs: all of them are dropped at once, and not only when
 * they are needed. */
static void
drop_superseded(struct pool *pool)
{
  uint32_t timeline = servers_timeline(pool->servers);
  struct connection *idle = NULL, *next;

  mutex_lock(&pool->mutex);
  if (timeline != pool->timeline) {
    pool->timeline = timeline;
    idle = pool->idle;
    pool->idle = NULL;
  }
  mutex_unlock(&pool->mutex);
  for (; idle; idle = next) {
    next = idle->next;
    if (idle->pg && servers_have_superseded(pool->servers, &idle->identity))
      connection_close(idle);
    give_place(pool, idle);
  }
}

static dk_status
connect_place(struct pool *pool, struct connection *c, struct dk_call *call, struct why *why)
{
  c->host = pool->host;
  c->settings = pool->settings;
  c->servers = pool->servers;
  if (c->pg && !connection_is_alive(c))
    connection_close(c);
  if (c->pg)
    return DK_OK;
  TRY(connection_open(c, call, why));
  note_growth(pool);
  return DK_OK;
}

dk_status
pool_take(struct pool *pool, struct dk_call *call, struct connection **ret, struct why *why)
{
  struct connection *c;
  dk_status status;

  if (pool->host->cancelled(call))
    return why_set(why, DK_CALL_CANCELLED, "cancelled before it began");
  drop_superseded(pool);
  do {
    TRY(find_place(pool, call, &c, why));
    status = connect_place(pool, c, call, why);
    if (status == DK_OK) {
      *ret = c;
      return DK_OK;
    }
  } while (why_server_is_full(why) && settle_for_fewer(pool, c, why));
  give_place(pool, c); /* a waiting call may succeed */
  return status;
}

void
pool_give_back(struct pool *pool, struct connection *c)
{
  if (c->pg && (c->is_bloated || connection_is_changed(c) ||
                PQtransactionStatus(c->pg) != PQTRANS_IDLE))
    connection_close(c);
  give_place(pool, c);
}
