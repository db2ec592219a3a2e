/* SPDX-License-Identifier: Apache-2.0 */
/* When all has ended: what is left is consumed, and the histories are read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stress/stress.h"

enum {
  AN_HOUR = 3600000,
  MOST_ROUNDS = 200000,
  MOST_REPEATS = 10000,    /* a server may be busy with what the dead have left */
  MOST_ITEMS = 100
};

/* A clock by which every lease of the load has ended, and every timer is due. */
static int64_t
later_now(struct dk_clock *clock)
{
  struct dk_clock *system = dk_clock_system();

  (void)clock;
  return system->now(system) + AN_HOUR;
}

/* The drain asks for what there is and never waits, but for the answer of a server. */
static dk_status
later_wait(struct dk_clock *clock, const struct dk_wait *wait)
{
  struct dk_clock *system = dk_clock_system();
  struct dk_wait now = *wait;

  (void)clock;
  if (!(wait->events & DK_WAIT_ANSWER))
    return DK_NOTHING;
  if (now.until != INT64_MAX)
    now.until -= AN_HOUR;
  return system->wait(system, &now);
}

static dk_status
drain_turn(const struct run *run, struct dk_store *store, struct dk_caller *caller)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = AN_HOUR,
                                  .max_messages = MOST_MESSAGES, .owner = text("drain")};
  struct dk_commit_outcome outcome;
  struct decision d = {.n_facts = 0};
  struct dk_turn *turn;
  dk_status status = dk_store_fetch_orchestration_item(store, caller, &request, &turn);

  if (status != DK_OK)
    return status;
  if (!consume(run->journal, turn, &d))
    return DK_CORRUPT;
  d.facts[0].commit = fresh(run->journal);
  struct entry *entry = enter(run->journal, COMMITTED, d.facts[0].commit, 0);
  struct dk_turn_result result = {.owner = text("drain")};
  note_decision(run->journal, turn, &d);
  status = commit(store, caller, turn, &d, &result, &outcome);
  entry->answered = tick(run->journal);
  atomic_store(&entry->status, status);
  return status;
}

static dk_status
drain_work(const struct run *run, struct dk_store *store, struct dk_caller *caller)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .lock_ms = AN_HOUR,
                                  .max_items = MOST_ITEMS, .tag_rule = DK_TAG_ANY};
  struct dk_works *works;
  uint64_t asked = tick(run->journal);
  dk_status status = dk_store_fetch_work_item(store, caller, &request, &works);

  for (size_t i = 0; status == DK_OK && i < works->n_items; i++) {
    struct dk_work_result result = {.struct_size = sizeof result};
    uint64_t number = works->items[i].item.activity_id;
    struct entry *held = enter(run->journal, WORK_HELD, number, 0);
    held->answered = held->asked;
    held->asked = asked;
    held->since = held->until = works->items[i].work.now;
    atomic_store(&held->status, DK_OK);
    struct entry *entry = enter(run->journal, ACKED, number, 0);
    status = dk_store_ack_work_item(store, caller, works->items[i].work.lock_token, &result);
    entry->answered = tick(run->journal);
    atomic_store(&entry->status, status);
  }
  return status;
}

static bool
drain_all(const struct run *run, struct dk_store *store, struct dk_caller *caller, bool *ret_found)
{
  int repeats = 0;

  *ret_found = false;
  for (int i = 0; i < MOST_ROUNDS; i++) {
    dk_caller_reset(caller);
    dk_status turn = drain_turn(run, store, caller), work = DK_OK;
    if (turn == DK_OK || turn == DK_NOTHING)
      work = drain_work(run, store, caller);
    *ret_found |= turn == DK_OK || work == DK_OK;
    if ((dk_status_class(turn) == 1 || dk_status_class(work) == 1) && repeats++ < MOST_REPEATS) {
      let_pass(1);
      continue;
    }
    if (turn > DK_NOTHING || work > DK_NOTHING) {
      const struct dk_failure *failure = dk_caller_failure(caller);
      broken(run->journal, "the drain: %s: status %d: %s", failure->operation,
             (int)failure->status, failure->text);
      return false;
    }
    if (turn == DK_NOTHING && work == DK_NOTHING)
      return true;
  }
  broken(run->journal, "the drain does not end: after %d rounds there is still work", MOST_ROUNDS);
  return false;
}

/* ---- histories ------------------------------------------------------------------------------- */

static bool
take_fact(const struct run *run, const struct dk_event *event, struct told *told)
{
  if (told->n == told->room) {
    size_t room = told->room ? 2 * told->room : 4096;
    struct fact *facts = reallocarray(told->facts, room, sizeof *facts);
    if (!facts)
      return false;
    told->facts = facts;
    told->room = room;
  }
  if (event->payload.len != sizeof *told->facts) {
    broken(run->journal, "event %llu has %zu bytes, not %zu", (unsigned long long)event->event_id,
           event->payload.len, sizeof *told->facts);
    return false;
  }
  memcpy(&told->facts[told->n++], event->payload.ptr, sizeof *told->facts);
  return true;
}

/* HIST-1: each number once, ascending, none left out: commits count on from the last. */
static bool
read_history(const struct run *run, struct dk_store *store, struct dk_caller *caller,
             uint64_t instance, struct told *told)
{
  char name[16];
  struct dk_history *history;

  name_instance(name, instance);
  struct dk_read_history request = {.struct_size = sizeof request, .instance = text(name),
                                    .from_event = 1};
  dk_caller_reset(caller);
  if (dk_store_read_history(store, caller, &request, &history) != DK_OK) {
    broken(run->journal, "read_history: %s", dk_caller_failure(caller)->text);
    return false;
  }
  for (size_t i = 0; i < history->n_events; i++) {
    if (history->events[i].event_id != i + 1)
      broken(run->journal, "%s: event %zu has the number %llu", name, i + 1,
             (unsigned long long)history->events[i].event_id);
    if (!take_fact(run, &history->events[i], told))
      return false;
    if (told->facts[told->n - 1].instance != instance)
      broken(run->journal, "%s: event %zu belongs to another instance", name, i + 1);
  }
  return true;
}

bool
drain(const struct run *run, struct told *told)
{
  struct dk_clock clock = {.now = later_now, .wait = later_wait};
  struct dk_host_options options = {.struct_size = sizeof options, .clock = &clock};
  struct dk_caller *caller = dk_caller_new(NULL, 0);
  struct dk_store *store;

  if (!caller || !open_store(run, &options, 0, caller, &store)) {
    dk_caller_free(caller);
    return false;
  }
  bool has_more, is_done = drain_all(run, store, caller, &has_more);
  do {
    told->n = 0;
    for (uint64_t i = 0; is_done && i < run->instances; i++)
      is_done = read_history(run, store, caller, i, told);
    /* What a killed process had sent may have landed as late as this. */
    is_done = is_done && drain_all(run, store, caller, &has_more);
  } while (is_done && has_more);
  if (dk_store_close(store))
    broken(run->journal, "close: an operation did not return");
  dk_caller_free(caller);
  return is_done;
}
