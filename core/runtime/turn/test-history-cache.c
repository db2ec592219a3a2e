/* SPDX-License-Identifier: Apache-2.0 */
/* What the turns remember: histories (the cache), and instances whose turns did not end in a commit
 * (the retry counts). */
#include <stdio.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/code/orch.h"
#include "core/runtime/shared/retry-counts.h"
#include "core/runtime/turn/history-cache.h"

static dk_str
text(const char *string)
{
  return dk_str_of(string);
}

static struct event
an_event(uint64_t id, const char *words)
{
  return (struct event){.id = id, .kind = EVENT_RAISED, .name = text("e"), .text = text(words)};
}

/* An entry of so many events. */
static struct remembered *
an_entry(const char *instance, uint64_t birth, uint64_t n_events)
{
  struct remembered *entry = remembered_new(text(instance), birth, 1);
  bool added = entry != NULL;

  for (uint64_t i = 1; i <= n_events && added; i++) {
    struct event event = an_event(i, "some words");
    added = remembered_add(entry, &event, 1);
  }
  if (!added)
    BAIL_OUT("no memory");
  return entry;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void
test_copies(void)
{
  char words[] = "words", queue[] = "queue", key[] = "key";
  struct carried carried = {text(queue), text(words)};
  struct event event = an_event(7, words);
  struct dk_kv kv = {.struct_size = sizeof(kv), .key = text(key), .value = text(words)};
  struct remembered *entry = remembered_new(text("i"), 1, 1);

  event.carried = &carried;
  event.n_carried = 1;
  event.message_id = text(words);
  ok(remembered_add(entry, &event, 1) && remembered_kv(entry, &kv, 1), "an event and a key");
  memset(words, 'x', 5);
  memset(queue, 'x', 5);
  memset(key, 'x', 3);
  is(entry->events[0].text.ptr, "words", "the text is its own");
  is(entry->events[0].message_id.ptr, "words", "the message's id too");
  is(entry->events[0].carried[0].queue.ptr, "queue", "and what is carried");
  is(entry->kv[0].key.ptr, "key", "and keys");
  ok(!entry->events[0].by.ptr, "absent stays absent");
  cmp_ok(remembered_last(entry), "==", 7, "the last event's id");
  remembered_free(entry);
}

static void
test_keys(void)
{
  struct remembered *entry = remembered_new(text("i"), 1, 1);
  const struct dk_kv_change changes[] = {
    {.op = DK_KV_SET, .key = text("a"), .value = text("1")},
    {.op = DK_KV_SET, .key = text("b"), .value = text("2")},
    {.op = DK_KV_SET, .key = text("a"), .value = text("3")},
    {.op = DK_KV_CLEAR, .key = text("b")},
    {.op = DK_KV_CLEAR, .key = text("absent")},
  };
  const struct dk_kv_change all = {.op = DK_KV_CLEAR_ALL};

  ok(remembered_change(entry, changes, 5), "keys change");
  cmp_ok(entry->n_kv, "==", 1, "one is left");
  is(entry->kv[0].value.ptr, "3", "with its last value");
  ok(remembered_change(entry, &all, 1) && entry->n_kv == 0, "all are cleared");
  remembered_free(entry);
}

/* ---- the cache ------------------------------------------------------------------------------- */

static void
test_take(void)
{
  struct cache *cache = cache_new(1 << 20, CACHE_RUNS);
  uint64_t bytes;

  ok(!cache_take(cache, text("i"), 1, 1, 3), "an empty cache has nothing");
  cache_put(cache, an_entry("i", 1, 3));
  struct remembered *entry = cache_take(cache, text("i"), 1, 1, 3);
  ok(entry && entry->n_events == 3, "what was put in can be taken");
  ok(!cache_take(cache, text("i"), 1, 1, 3), "once");
  cache_put(cache, entry);
  ok(!cache_take(cache, text("i"), 2, 1, 3), "another life is another instance");
  cmp_ok(cache_size(cache, &bytes), "==", 0, "what does not match is removed");
  cache_put(cache, an_entry("i", 1, 3));
  ok(!cache_take(cache, text("i"), 1, 2, 3), "another execution does not match");
  cache_put(cache, an_entry("i", 1, 3));
  ok(!cache_take(cache, text("i"), 1, 1, 4), "nor another length");
  cache_put(cache, an_entry("i", 0, 2));
  entry = cache_take(cache, text("i"), 9, 1, 2);
  ok(entry && entry->birth == 9, "what was put in by the first commit learns its birth");
  cache_put(cache, entry);
  cache_put(cache, an_entry("i", 9, 5));
  cmp_ok(cache_size(cache, &bytes), "==", 1, "an instance has one entry");
  cache_free(cache);
  ok(bytes > 0, "the rest is freed with it");
}

static void
test_room(void)
{
  enum { N = 1000, MOST = 100000 };
  struct cache *cache = cache_new(MOST, CACHE_RUNS);
  uint64_t bytes, most = 0;
  char name[16];

  for (int i = 0; i < N; i++) {
    snprintf(name, sizeof(name), "i-%d", i);
    cache_put(cache, an_entry(name, 1, 2));
    struct remembered *first = cache_take(cache, text("i-0"), 1, 1, 2);
    if (first)
      cache_put(cache, first);
    cache_size(cache, &bytes);
    most = bytes > most ? bytes : most;
  }
  cmp_ok(most, "<=", MOST, "it never has more than it may");
  cmp_ok(most, ">", MOST / 2, "but uses what it has");
  struct remembered *entry = cache_take(cache, text("i-0"), 1, 1, 2);
  ok(entry, "what is used again and again stays");
  remembered_free(entry);
  ok(!cache_take(cache, text("i-1"), 1, 1, 2), "what was used long ago goes");
  entry = cache_take(cache, text("i-999"), 1, 1, 2);
  ok(entry, "the newest is there");
  remembered_free(entry);
  cache_put(cache, an_entry("huge", 1, 10000));
  ok(!cache_take(cache, text("huge"), 1, 1, 10000), "what is too large alone is not kept");
  cmp_ok((cache_size(cache, &bytes), bytes), "<=", MOST, "nor does it break the sum");
  cache_free(cache);
}

static dk_result
waits(dk_orch *o, dk_str input)
{
  (void)input;
  return dk_completed(o, dk_await(o, dk_external(o, "go")));
}

/* An entry whose code waits. */
static struct remembered *
an_entry_with_run(const char *instance)
{
  const struct event started = {.id = 1, .kind = EVENT_STARTED, .name = text("o")};
  struct remembered *entry = remembered_new(text(instance), 1, 1);
  struct ran ran;

  if (!entry || !remembered_add(entry, &started, 1) || !remembered_index(entry) ||
      !(entry->run = replay_new(waits)))
    BAIL_OUT("no memory");
  const struct past past = {.instance = entry->instance, .execution = 1, .events = entry->events,
                            .n_events = 1, .index = entry->index};
  replay_turn(entry->run, &past, &ran);
  if (!replay_waits(entry->run))
    BAIL_OUT("the code does not wait");
  return entry;
}

/* There are fewer threads than histories. */
static void
test_runs(void)
{
  enum { MOST_RUNS = 16, MORE = 100, N = MOST_RUNS + MORE };
  struct cache *cache = cache_new(1 << 30, MOST_RUNS);
  uint64_t bytes, with, without;
  unsigned n_runs = 0;
  char name[16];

  cache_put(cache, an_entry_with_run("i-0"));
  cache_size(cache, &with);
  struct remembered *entry = cache_take(cache, text("i-0"), 1, 1, 1);
  remembered_drop_run(entry);
  cache_put(cache, entry);
  cache_size(cache, &without);
  ok(with > without + 4096, "a run counts: %zu bytes, and %zu without", (size_t)with,
     (size_t)without);
  for (int i = 1; i <= N; i++) {
    snprintf(name, sizeof(name), "i-%d", i);
    cache_put(cache, an_entry_with_run(name));
  }
  cmp_ok(cache_runs(cache), "==", MOST_RUNS, "so many runs are kept, and no more");
  cmp_ok(cache_size(cache, &bytes), "==", N + 1, "and all histories");
  for (int i = 1; i <= N; i++) {
    snprintf(name, sizeof(name), "i-%d", i);
    entry = cache_take(cache, text(name), 1, 1, 1);
    n_runs += entry->run && i > MORE;
    remembered_free(entry);
  }
  cmp_ok(n_runs, "==", MOST_RUNS, "the newest have them");
  cmp_ok(cache_runs(cache), "==", 0, "none is left when they are taken");
  cmp_ok((cache_size(cache, &bytes), bytes), "==", without, "nor is their size counted");
  cache_free(cache);
}

/* No other entry is removed for one that is too large. */
static void
test_too_large(void)
{
  enum { OTHERS = 4, N = 100 };
  struct cache *cache = cache_new(1 << 20, CACHE_RUNS);
  struct remembered *large = an_entry_with_run("large");
  uint64_t bytes;
  char name[16];

  for (int i = 0; i < OTHERS; i++) {
    snprintf(name, sizeof(name), "i-%d", i);
    cache_put(cache, an_entry_with_run(name));
  }
  cache_put(cache, an_entry_with_run("large"));
  if (!dk_arena_alloc(large->run->arena, 1 << 20))
    BAIL_OUT("no memory");
  cache_put(cache, large);
  cmp_ok(cache_size(cache, &bytes), "==", OTHERS + 1, "with a run that is too large it is kept");
  cmp_ok(cache_runs(cache), "==", OTHERS, "without the run");
  large = an_entry("large", 1, N);
  if (!dk_arena_alloc(&large->arena, 1 << 20))
    BAIL_OUT("no memory");
  cache_put(cache, large);
  cmp_ok(cache_size(cache, &bytes), "==", OTHERS, "if it is too large itself, only it is removed");
  ok(!cache_take(cache, text("large"), 1, 1, N), "with what was there before");
  cache_drop_runs(cache);
  cmp_ok(cache_runs(cache), "==", 0, "all runs can be dropped");
  cmp_ok(cache_size(cache, &bytes), "==", OTHERS, "and the histories stay");
  cache_forget(cache, text("i-0"));
  cmp_ok(cache_size(cache, &bytes), "==", OTHERS - 1, "one can be forgotten");
  cache_free(cache);
}

/* ---- the notes ------------------------------------------------------------------------------- */

static void
test_retry_counts(void)
{
  struct retry_counts *retries = retry_counts_new();
  bool is_first;

  cmp_ok(retry_counts_judged(retries, text("i"), 5), "==", 5, "all deliveries count");
  retry_counts_pardon(retries, text("i"), 5);
  cmp_ok(retry_counts_judged(retries, text("i"), 7), "==", 2,
         "without those that were the store's fault");
  cmp_ok(retry_counts_judged(retries, text("i"), 3), "==", 1, "the present one always counts");
  cmp_ok(retry_counts_judged(retries, text("j"), 7), "==", 7, "others are judged separately");
  retry_counts_forget(retries, text("i"));
  cmp_ok(retry_counts_judged(retries, text("i"), 7), "==", 7, "after a commit it begins anew");
  cmp_ok(retry_counts_delayed_again(retries, text("i"), DELAY_CORRUPT, &is_first), "==", 1,
         "delayed once");
  ok(is_first, "which is logged");
  cmp_ok(retry_counts_delayed_again(retries, text("i"), DELAY_CORRUPT, &is_first), "==", 2,
         "and again");
  ok(!is_first, "which is not");
  retry_counts_delayed_again(retries, text("i"), DELAY_OVERDUE, &is_first);
  ok(is_first, "another reason is");
  retry_counts_free(retries);
}

static void
test_many_retry_counts(void)
{
  struct retry_counts *retries = retry_counts_new();
  char name[16];

  for (int i = 0; i < 100000; i++) {
    snprintf(name, sizeof(name), "i-%d", i);
    retry_counts_pardon(retries, text(name), 3);
  }
  cmp_ok(retry_counts_judged(retries, text("i-99999"), 5), "==", 2, "the newest of many is there");
  int n = 0;
  for (int i = 0; i < 100000; i++) {
    snprintf(name, sizeof(name), "i-%d", i);
    n += retry_counts_judged(retries, text(name), 5) == 2;
  }
  cmp_ok(n, "<=", 1024 * 32, "old ones go when there are too many");
  cmp_ok(n, ">", 10000, "but not before");
  retry_counts_free(retries);
}

int
main(void)
{
  test_copies();
  test_keys();
  test_take();
  test_room();
  test_runs();
  test_too_large();
  test_retry_counts();
  test_many_retry_counts();
  return done_testing();
}
