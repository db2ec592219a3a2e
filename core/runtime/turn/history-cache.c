/* SPDX-License-Identifier: Apache-2.0 */
/* The cache: see history-cache.h.
 *
 * The lock guards the table, the list by age and the sum.  Only free is called under it. */
#include "core/runtime/turn/history-cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"
#include "core/base/checksum.h"
#include "core/base/grow.h"
#include "core/base/lock.h"

enum { ROWS = 4096 };

struct cache {
  struct dk_lock lock;
  struct remembered *rows[ROWS];
  struct remembered *oldest, *newest;
  struct remembered *first_run;  /* the oldest with a run; NULL: none has one */
  uint64_t bytes, most;
  size_t n, n_runs, most_runs;
};

/* ---- an entry -------------------------------------------------------------------------------- */

/* Absent stays absent. */
static bool
copy_text(struct remembered *to, dk_str *text)
{
  if (!text->ptr)
    return true;
  text->ptr = dk_arena_copy(&to->arena, text->ptr, text->len);
  return text->ptr != NULL;
}

struct remembered *
remembered_new(dk_str instance, uint64_t birth, uint64_t execution)
{
  struct remembered *made = calloc(1, sizeof(*made));

  if (!made)
    return NULL;
  dk_arena_init(&made->arena);
  made->instance = instance;
  made->birth = birth;
  made->execution = execution;
  if (!copy_text(made, &made->instance)) {
    remembered_free(made);
    return NULL;
  }
  return made;
}

void
remembered_free(struct remembered *remembered)
{
  if (!remembered)
    return;
  replay_free(remembered->run);
  dk_arena_done(&remembered->arena);
  free(remembered->events);
  free(remembered->kv);
  free(remembered);
}

struct event *
remembered_next(struct remembered *remembered)
{
  struct event *events = dk_grown(remembered->events, remembered->n_events, &remembered->room,
                                  sizeof(*events));

  if (!events)
    return NULL;
  remembered->events = events;
  memset(&events[remembered->n_events], 0, sizeof(*events));
  return &events[remembered->n_events++];
}

static bool
copy_carried(struct remembered *to, struct event *event)
{
  if (event->n_carried == 0)
    return true;
  struct carried *copy = dk_arena_array(&to->arena, event->n_carried, sizeof(*copy));

  if (!copy)
    return false;
  for (size_t i = 0; i < event->n_carried; i++) {
    copy[i] = event->carried[i];
    if (!copy_text(to, &copy[i].queue) || !copy_text(to, &copy[i].data))
      return false;
  }
  event->carried = copy;
  return true;
}

static bool
copy_event(struct remembered *to, struct event *event)
{
  dk_str *texts[] = {&event->name, &event->text,    &event->version, &event->instance, &event->tag,
                     &event->by,   &event->session, &event->message_id,
                     &event->parent.instance};

  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
    if (!copy_text(to, texts[i]))
      return false;
  return copy_carried(to, event);
}

bool
remembered_add(struct remembered *remembered, const struct event *events, size_t n_events)
{
  for (size_t i = 0; i < n_events; i++) {
    struct event *event = remembered_next(remembered);
    if (!event)
      return false;
    *event = events[i];
    if (!copy_event(remembered, event))
      return false;
  }
  return true;
}

struct history *
remembered_index(struct remembered *remembered)
{
  if (!remembered->index)
    remembered->index =
      history_new(&remembered->arena, remembered->events, remembered->n_events);
  return remembered->index;
}

void
remembered_drop_run(struct remembered *remembered)
{
  replay_free(remembered->run);
  remembered->run = NULL;
}

uint64_t
remembered_last(const struct remembered *remembered)
{
  return remembered->n_events ? remembered->events[remembered->n_events - 1].id : 0;
}

static size_t
bytes_of(const struct remembered *remembered)
{
  return sizeof(*remembered) + remembered->room * sizeof(struct event) +
         remembered->kv_room * sizeof(struct dk_kv) + dk_arena_size(&remembered->arena) +
         (remembered->run ? replay_bytes(remembered->run) : 0);
}

/* ---- its key-values -------------------------------------------------------------------------- */

static struct dk_kv *
find_key(struct remembered *remembered, dk_str key)
{
  for (size_t i = 0; i < remembered->n_kv; i++)
    if (str_equal(remembered->kv[i].key, key))
      return &remembered->kv[i];
  return NULL;
}

static bool
add_key(struct remembered *remembered, struct dk_kv added)
{
  struct dk_kv *kv = dk_grown(remembered->kv, remembered->n_kv, &remembered->kv_room, sizeof(*kv));

  if (!kv)
    return false;
  remembered->kv = kv;
  added.struct_size = sizeof(added);
  if (!copy_text(remembered, &added.key) || !copy_text(remembered, &added.value))
    return false;
  kv[remembered->n_kv++] = added;
  return true;
}

bool
remembered_kv(struct remembered *remembered, const struct dk_kv *kv, size_t n_kv)
{
  for (size_t i = 0; i < n_kv; i++)
    if (!add_key(remembered, kv[i]))
      return false;
  return true;
}

static bool
set_key(struct remembered *remembered, const struct dk_kv_change *change)
{
  struct dk_kv *there = find_key(remembered, change->key);
  struct dk_kv added = {
    .key = change->key, .value = change->value, .updated_at = change->updated_at};

  if (!there)
    return add_key(remembered, added);
  there->value = change->value;
  there->updated_at = change->updated_at;
  return copy_text(remembered, &there->value);
}

static void
clear_key(struct remembered *remembered, dk_str key)
{
  struct dk_kv *there = find_key(remembered, key);

  if (there)
    *there = remembered->kv[--remembered->n_kv];
}

bool
remembered_change(struct remembered *remembered, const struct dk_kv_change *changes,
                  size_t n_changes)
{
  for (size_t i = 0; i < n_changes; i++) {
    if (changes[i].op == DK_KV_CLEAR_ALL)
      remembered->n_kv = 0;
    else if (changes[i].op == DK_KV_CLEAR)
      clear_key(remembered, changes[i].key);
    else if (!set_key(remembered, &changes[i]))
      return false;
  }
  return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

struct cache *
cache_new(uint64_t bytes, size_t runs)
{
  struct cache *cache = calloc(1, sizeof(*cache));

  if (!cache)
    return NULL;
  dk_lock_init(&cache->lock);
  cache->most = bytes;
  cache->most_runs = runs;
  return cache;
}

void
cache_free(struct cache *cache)
{
  if (!cache)
    return;
  while (cache->oldest) {
    struct remembered *entry = cache->oldest;
    cache->oldest = entry->newer;
    remembered_free(entry);
  }
  dk_lock_done(&cache->lock);
  free(cache);
}

static struct remembered **
row_of(struct cache *cache, dk_str instance)
{
  uint64_t hash = dk_fnv1a64(DK_FNV1A64_START, instance.ptr, instance.len);

  return &cache->rows[(hash ^ hash >> 32) % ROWS];
}

/* Moves to the next entry that has a run. */
static void
pass_run(struct cache *cache)
{
  while (cache->first_run && !cache->first_run->run)
    cache->first_run = cache->first_run->newer;
}

/* Removes it from its row, the list and the sums. */
static void
unlink_entry(struct cache *cache, struct remembered *entry)
{
  struct remembered **link = row_of(cache, entry->instance);

  assert(dk_lock_is_held(&cache->lock));
  assert(cache->n > 0 && cache->bytes >= entry->bytes);
  while (*link != entry) {
    assert(*link);
    link = &(*link)->next;
  }
  *link = entry->next;
  if (entry == cache->first_run) {
    cache->first_run = entry->newer;
    pass_run(cache);
  }
  *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
  *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
  entry->next = entry->older = entry->newer = NULL;
  cache->bytes -= entry->bytes;
  cache->n--;
  cache->n_runs -= entry->run != NULL;
  assert((cache->n == 0) == !cache->oldest && (cache->n_runs == 0) == !cache->first_run);
}

static void
link_entry(struct cache *cache, struct remembered *entry)
{
  struct remembered **row = row_of(cache, entry->instance);

  assert(dk_lock_is_held(&cache->lock));
  assert(!cache->newest || !cache->newest->newer);
  entry->next = *row;
  *row = entry;
  entry->older = cache->newest;
  entry->newer = NULL;
  *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
  cache->newest = entry;
  cache->bytes += entry->bytes;
  cache->n++;
  cache->n_runs += entry->run != NULL;
  if (entry->run && !cache->first_run)
    cache->first_run = entry;
}

/* Removes the instance's entry, whatever it contains. */
static struct remembered *
take_out(struct cache *cache, dk_str instance)
{
  struct remembered *entry = *row_of(cache, instance);

  while (entry && !str_equal(entry->instance, instance))
    entry = entry->next;
  if (entry)
    unlink_entry(cache, entry);
  return entry;
}

struct remembered *
cache_take(struct cache *cache, dk_str instance, uint64_t birth, uint64_t execution,
           uint64_t last_event)
{
  dk_lock(&cache->lock);
  struct remembered *entry = take_out(cache, instance);
  dk_unlock(&cache->lock);

  if (!entry)
    return NULL;
  if (entry->birth == 0)
    entry->birth = birth;
  if (entry->birth == birth && entry->execution == execution &&
      remembered_last(entry) == last_event)
    return entry;
  remembered_free(entry);
  return NULL;
}

/* Removes the oldest until the sum fits; returns them as a list, to be freed without the lock. */
static struct remembered *
history_cache_make_room(struct cache *cache)
{
  struct remembered *gone = NULL;

  assert(dk_lock_is_held(&cache->lock));
  while (cache->bytes > cache->most && cache->oldest) {
    struct remembered *entry = cache->oldest;
    unlink_entry(cache, entry);
    entry->next = gone;
    gone = entry;
  }
  return gone;
}

/* Removes the least recently used run, if there are more than `most`; to be freed without the lock.
 */
static struct dk_orch *
take_run(struct cache *cache, size_t most)
{
  struct remembered *entry = cache->first_run;

  assert(dk_lock_is_held(&cache->lock));
  if (cache->n_runs <= most)
    return NULL;
  assert(entry && entry->run && entry->bytes <= cache->bytes);
  struct dk_orch *run = entry->run;
  size_t bytes = replay_bytes(run);
  entry->run = NULL;
  entry->bytes -= bytes;
  cache->bytes -= bytes;
  cache->n_runs--;
  pass_run(cache);
  return run;
}

/* False: the entry is too large for the cache, so nothing else is removed for it. */
static bool
fits(const struct cache *cache, struct remembered *remembered)
{
  remembered->bytes = bytes_of(remembered);
  if (remembered->bytes > cache->most && remembered->run) {
    remembered_drop_run(remembered);
    remembered->bytes = bytes_of(remembered);
  }
  return remembered->bytes <= cache->most;
}

void
cache_put(struct cache *cache, struct remembered *remembered)
{
  if (!fits(cache, remembered)) {
    cache_forget(cache, remembered->instance);
    remembered_free(remembered);
    return;
  }
  dk_lock(&cache->lock);
  struct remembered *earlier = take_out(cache, remembered->instance);
  link_entry(cache, remembered);
  struct remembered *gone = history_cache_make_room(cache);
  struct dk_orch *run = take_run(cache, cache->most_runs);
  assert(cache->bytes <= cache->most && cache->n_runs <= cache->most_runs);
  dk_unlock(&cache->lock);

  remembered_free(earlier);
  replay_free(run);
  while (gone) {
    struct remembered *next = gone->next;
    remembered_free(gone);
    gone = next;
  }
}

void
cache_forget(struct cache *cache, dk_str instance)
{
  dk_lock(&cache->lock);
  struct remembered *entry = take_out(cache, instance);
  dk_unlock(&cache->lock);
  remembered_free(entry);
}

void
cache_drop_runs(struct cache *cache)
{
  for (struct dk_orch *run = NULL;; replay_free(run)) {
    dk_lock(&cache->lock);
    run = take_run(cache, 0);
    dk_unlock(&cache->lock);
    if (!run)
      return;
  }
}

size_t
cache_size(struct cache *cache, uint64_t *ret_bytes)
{
  dk_lock(&cache->lock);
  size_t n = cache->n;
  *ret_bytes = cache->bytes;
  dk_unlock(&cache->lock);
  return n;
}

size_t
cache_runs(struct cache *cache)
{
  dk_lock(&cache->lock);
  size_t n = cache->n_runs;
  dk_unlock(&cache->lock);
  return n;
}
