/* SPDX-License-Identifier: Apache-2.0 */
/* The cache: histories of instances whose last commit was ours, so that the next fetch needs no
 * history, and their waiting code, so that it need not run from its start.
 *
 * An entry is one execution's events with their index, its run, and the instance's key-values, in
 * its own memory.  A turn takes it out while it uses it, and puts it back only once its commit is
 * known to have succeeded.  Any thread; one lock, never held during a call.
 */
#ifndef DK_RUNTIME_TURN_HISTORY_CACHE_H
#define DK_RUNTIME_TURN_HISTORY_CACHE_H

#include "core/runtime/code/history.h"
#include "core/runtime/code/replay.h"

/* Each run has a thread.  If there are more runs than this, the least recently used are freed;
 * their histories stay. */
enum { CACHE_RUNS = 256 };

struct remembered {
  dk_str instance;
  uint64_t birth, execution;
  struct event *events;          /* by id */
  size_t n_events, room;
  struct dk_kv *kv;
  size_t n_kv, kv_room;
  struct history *index;         /* of the events; NULL: not needed so far */
  struct dk_orch *run;           /* NULL: the code begins at its start */
  struct dk_arena arena;         /* all text, and the index */
  size_t bytes;                  /* approximate size while it is in the cache */
  struct remembered *next;       /* in its row of the table */
  struct remembered *older, *newer;
};

/* NULL: no memory. */
struct remembered *remembered_new(dk_str instance, uint64_t birth, uint64_t execution);
void remembered_free(struct remembered *remembered); /* NULL is allowed */
/* Adds a zeroed event at the end; NULL: no memory. */
struct event *remembered_next(struct remembered *remembered);
/* Deep copies; false: no memory, and the entry is unusable. */
bool remembered_add(struct remembered *remembered, const struct event *events, size_t n_events);
bool remembered_kv(struct remembered *remembered, const struct dk_kv *kv, size_t n_kv);
bool remembered_change(struct remembered *remembered, const struct dk_kv_change *changes,
                       size_t n_changes);
/* The index, which is made if there is none; NULL: no memory. */
struct history *remembered_index(struct remembered *remembered);
/* Frees the run: the code begins at its start next time. */
void remembered_drop_run(struct remembered *remembered);
/* The id of the last event; 0: there is none. */
uint64_t remembered_last(const struct remembered *remembered);

struct cache;
/* With at most `bytes` and `runs`.  NULL: no memory. */
struct cache *cache_new(uint64_t bytes, size_t runs);
void cache_free(struct cache *cache); /* NULL is allowed */
/* Takes the entry, which then belongs to the caller; NULL if there is none.  An entry of this
 * instance that does not match is freed.  An entry from an instance's first commit has the birth 0,
 * because the birth was still unknown; it matches any birth: the store leaves out a history only if
 * the last commit was ours. */
struct remembered *cache_take(struct cache *cache, dk_str instance, uint64_t birth,
                              uint64_t execution, uint64_t last_event);
/* Puts it back.  The least recently used entries are removed; one that is too large is put back
 * without its run, or removed itself. */
void cache_put(struct cache *cache, struct remembered *remembered);
/* The instance was deleted and begins again: removes its entry. */
void cache_forget(struct cache *cache, dk_str instance);
/* Frees all runs, if memory or threads are needed elsewhere; the histories stay. */
void cache_drop_runs(struct cache *cache);
/* The number of entries, and their size. */
size_t cache_size(struct cache *cache, uint64_t *ret_bytes);
/* How many of them have a run. */
size_t cache_runs(struct cache *cache);

#endif
