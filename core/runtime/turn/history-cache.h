/* SPDX-License-Identifier: Apache-2.0 */
/* The cache: histories of instances whose last commit was ours, so that the next fetch needs none,
 * with the code where it waits, so that it need not be run from its start.
 *
 * An entry is one execution's events with their index, its run, and the instance's key-values, in
 * memory of its own.  It is taken out while a turn uses it, and put back only once that turn's
 * commit is known to have landed.  Any thread; one lock, held for no call.
 */
#ifndef DK_RUNTIME_TURN_HISTORY_CACHE_H
#define DK_RUNTIME_TURN_HISTORY_CACHE_H

#include "core/runtime/code/history.h"
#include "core/runtime/code/replay.h"

/* Runs have a thread each: with more of them, those that were not used longest are freed, and their
 * histories stay.  A runtime has at most so many: */
enum { CACHE_RUNS = 256 };

struct remembered {
  dk_str instance;
  uint64_t birth, execution;
  struct event *events;          /* by id */
  size_t n_events, room;
  struct dk_kv *kv;
  size_t n_kv, kv_room;
  struct history *index;         /* of the events; NULL: it was not needed yet */
  struct dk_orch *run;           /* NULL: the code begins at its start */
  struct dk_arena arena;         /* all text, and the index */
  size_t bytes;                  /* what it costs, about, while it is in the cache */
  struct remembered *next;       /* in its row of the table */
  struct remembered *older, *newer;
};

/* NULL: no memory. */
struct remembered *remembered_new(dk_str instance, uint64_t birth, uint64_t execution);
void remembered_free(struct remembered *remembered); /* NULL is allowed */
/* Room for one more event at the end, zeroed; NULL: no memory. */
struct event *remembered_next(struct remembered *remembered);
/* Deep copies; false: no memory, and the entry is of no use any more. */
bool remembered_add(struct remembered *remembered, const struct event *events, size_t n_events);
bool remembered_kv(struct remembered *remembered, const struct dk_kv *kv, size_t n_kv);
bool remembered_change(struct remembered *remembered, const struct dk_kv_change *changes,
                       size_t n_changes);
/* The index, which is made now if it is not there; NULL: no memory. */
struct history *remembered_index(struct remembered *remembered);
/* The code begins at its start next time. */
void remembered_drop_run(struct remembered *remembered);
/* The id of the last event; 0: there is none. */
uint64_t remembered_last(const struct remembered *remembered);

struct cache;
/* With at most so many bytes and runs.  NULL: no memory. */
struct cache *cache_new(uint64_t bytes, size_t runs);
void cache_free(struct cache *cache); /* NULL is allowed */
/* The entry, which is the caller's then; NULL if there is none.  One of this instance that does not
 * fit is freed.  What was put in by an instance's first commit has the birth 0, for nobody knew it
 * yet; it fits any: the store keeps a history back only if the last commit was ours. */
struct remembered *cache_take(struct cache *cache, dk_str instance, uint64_t birth,
                              uint64_t execution, uint64_t last_event);
/* Gives it back.  The least recently used go; one that is too large goes itself, first without its
 * run. */
void cache_put(struct cache *cache, struct remembered *remembered);
/* Another life of the instance begins. */
void cache_forget(struct cache *cache, dk_str instance);
/* Memory or threads are needed elsewhere: the histories stay. */
void cache_drop_runs(struct cache *cache);
/* How many entries, and what they cost. */
size_t cache_size(struct cache *cache, uint64_t *ret_bytes);
/* How many of them have a run. */
size_t cache_runs(struct cache *cache);

#endif
