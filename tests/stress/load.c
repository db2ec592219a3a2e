/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread does: the operations at random, for whatever instance comes.  Nobody waits for
 * anybody: a turn is committed, given back or left to its lease; a few work items are held and
 * ended later, so that commits cancel what somebody holds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stress/stress.h"

enum { HELD = 6, LARGEST_FILL = 24000, SHORT_LEASE_MS = 3 };

struct held {
  struct entry *entry;
  uint64_t instance;
  char token[512];
  size_t token_size;
};

struct worker {
  const struct run *run;
  struct journal *j;
  struct dk_store *store;
  struct dk_caller *caller, *waiter;
  int slot;
  uint64_t state; /* of chance */
  struct held held[HELD];
  size_t n_held;
};

static uint64_t
chance(struct worker *w, uint64_t below)
{
  w->state ^= w->state << 13;
  w->state ^= w->state >> 7;
  w->state ^= w->state << 17;
  return (w->state >> 11) % below;
}

static int64_t
clock_now(void)
{
  struct dk_clock *clock = dk_clock_system();

  return clock->now(clock);
}

/* If the lease is short: a fetch that no instance fits, until it has ended and others may have what
 * was held.  What is done then is done with a dead token. */
static void
outwait(struct worker *w, const struct entry *held)
{
  const struct dk_version_range none = {.min = {0, 0, 0}};
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = 1,
                                  .wait_until = held->until + 2, .ranges = &none};
  struct dk_turn *turn;

  dk_caller_reset(w->waiter);
  if (held->until - held->since == SHORT_LEASE_MS && clock_now() < held->until &&
      dk_store_fetch_orchestration_item(w->store, w->waiter, &request, &turn) == DK_OK)
    broken(w->j, "a fetch for no version at all brought a turn");
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Whatever else it is, no operation of ours may be answered so. */
static void
judge_answer(struct worker *w, dk_status status)
{
  const struct dk_failure *failure = dk_caller_failure(w->caller);
  char name[32];
  enum answer answer = WAS_OK;

  if (status == DK_NOTHING)
    answer = WAS_NOTHING;
  else if (status == DK_LOCK_LOST)
    answer = WAS_LOST;
  else if (dk_status_class(status) == 1)
    answer = WAS_RETRYABLE;
  else if (dk_status_class(status) == 3)
    answer = WAS_UNKNOWN;
  else if (status != DK_OK)
    broken(w->j, "%s: %s: %s", failure->operation, dk_status_name(status, name, sizeof name),
           failure->text);
  atomic_fetch_add(&w->j->answers[answer], 1);
  atomic_fetch_add(&w->j->operations[w->slot], 1);
}

/* Nothing was changed by what is answered otherwise; an unknown outcome is no answer. */
static dk_status
answer(struct worker *w, struct entry *entry, dk_status status)
{
  judge_answer(w, status);
  entry->answered = tick(w->j);
  entry->since = clock_now();
  if (dk_status_class(status) != 3)
    atomic_store(&entry->status, status);
  return status;
}

/* ---- payloads -------------------------------------------------------------------------------- */

static struct dk_bytes
make_body(struct worker *w, char room[sizeof(struct body) + LARGEST_FILL], uint64_t number,
          uint64_t activity, int64_t not_before)
{
  struct body body = {.number = number, .activity = activity, .not_before = not_before,
                      .fill = chance(w, 8) == 0 ? chance(w, LARGEST_FILL) : chance(w, 200)};

  memcpy(room, &body, sizeof body);
  memset(room + sizeof body, (int)(number % 251), body.fill);
  return (struct dk_bytes){room, sizeof body + body.fill};
}

static bool
read_body(struct journal *j, struct dk_bytes payload, struct body *ret_body)
{
  if (payload.len >= sizeof *ret_body) {
    memcpy(ret_body, payload.ptr, sizeof *ret_body);
    size_t fill = payload.len - sizeof *ret_body, same = 0;
    while (same < fill &&
           payload.ptr[sizeof *ret_body + same] == (char)(ret_body->number % 251))
      same++;
    if (ret_body->fill == fill && same == fill)
      return true;
  }
  broken(j, "a payload of %zu bytes is not what was sent", payload.len);
  return false;
}

/* ---- messages -------------------------------------------------------------------------------- */

static struct dk_item
make_message(struct worker *w, char *room, char name[16], uint64_t number, uint64_t activity)
{
  int64_t at = chance(w, 4) == 0 ? clock_now() + (int64_t)chance(w, 30) : 0;

  return (struct dk_item){.struct_size = sizeof(struct dk_item),
                          .instance = text(name),
                          .visible_at = at,
                          .payload = make_body(w, room, number, activity, at)};
}

static void
send_message(struct worker *w)
{
  char room[sizeof(struct body) + LARGEST_FILL], name[16], id[32];
  uint64_t number = fresh(w->j);
  struct entry *entry = enter(w->j, SENT, number, 0);
  uint64_t target = chance(w, INSTANCES);

  name_instance(name, target);
  struct dk_item item = make_message(w, room, name, number, 0);
  snprintf(id, sizeof id, "m%llu", (unsigned long long)number);
  if (chance(w, 2) == 0)
    item.id = text(id);
  answer(w, entry, dk_store_enqueue_for_orchestrator(w->store, w->caller, &item));
}

/* ---- turns ----------------------------------------------------------------------------------- */

void
add_fact(struct decision *d, enum what what, uint64_t number)
{
  if (d->n_facts < MOST_FACTS)
    d->facts[d->n_facts++] = (struct fact){.what = what, .number = number};
}

bool
consume(struct journal *j, const struct dk_turn *turn, struct decision *d)
{
  struct body body;

  for (size_t i = 0; i < turn->n_messages; i++) {
    if (!read_body(j, turn->messages[i].payload, &body))
      return false;
    if (body.not_before > turn->head.now)
      broken(j, "message %llu is %lld ms early", (unsigned long long)body.number,
             (long long)(body.not_before - turn->head.now));
    add_fact(d, CONSUMES, body.number);
    if (body.activity)
      add_fact(d, COMPLETES, body.activity);
  }
  return true;
}

/* The activities that this instance's history leaves open. */
static size_t
open_activities(const struct dk_turn *turn, uint64_t open[MOST_OPEN])
{
  size_t n = 0;

  for (size_t i = 0; i < turn->n_events; i++) {
    struct fact fact;
    memcpy(&fact, turn->events[i].payload.ptr, sizeof fact);
    if (fact.what == SCHEDULES && n < MOST_OPEN)
      open[n++] = fact.number;
    for (size_t k = 0; k < n && (fact.what == CANCELS || fact.what == COMPLETES); k++)
      if (open[k] == fact.number)
        open[k--] = open[--n];
  }
  return n;
}

/* In the order of what is listed, now and then twice, and one that never was. */
static void
decide_cancels(struct worker *w, const struct dk_turn *turn, struct decision *d)
{
  uint64_t open[MOST_OPEN], one_in = chance(w, 6) == 0 ? 1 : 4;
  size_t n = open_activities(turn, open);

  for (size_t i = 0; i < n; i++) {
    if (chance(w, one_in) != 0)
      continue;
    add_fact(d, CANCELS, open[i]);
    d->cancelled[d->n_cancelled++] = (struct dk_activity){1, open[i]};
    if (chance(w, 8) == 0)
      d->cancelled[d->n_cancelled++] = (struct dk_activity){1, open[i]};
  }
  if (chance(w, 8) == 0)
    d->cancelled[d->n_cancelled++] = (struct dk_activity){1, fresh(w->j)};
}

struct rooms {
  char bodies[2 * MOST_SENT][sizeof(struct body) + LARGEST_FILL];
  char names[MOST_SENT][16];
};

static void
decide_new(struct worker *w, struct decision *d, struct rooms *rooms)
{
  d->n_activities = chance(w, MOST_SENT);
  for (size_t i = 0; i < d->n_activities; i++) {
    uint64_t number = fresh(w->j);
    int64_t at = chance(w, 5) == 0 ? clock_now() + (int64_t)chance(w, 20) : 0;
    d->activities[i] = (struct dk_item){
      .struct_size = sizeof(struct dk_item), .execution_id = 1, .activity_id = number,
      .visible_at = at,
      .tag = chance(w, 4) == 0 ? text("gpu") : (struct dk_bytes){NULL, 0},
      .payload = make_body(w, rooms->bodies[i], number, 0, at)};
    add_fact(d, SCHEDULES, number);
    if (chance(w, 12) == 0) {
      add_fact(d, CANCELS, number);
      d->cancelled[d->n_cancelled++] = (struct dk_activity){1, number};
    }
  }
  d->n_messages = chance(w, 4) == 0 ? chance(w, MOST_SENT) : 0;
  for (size_t i = 0; i < d->n_messages; i++) {
    name_instance(rooms->names[i], chance(w, INSTANCES));
    d->messages[i] = make_message(w, rooms->bodies[MOST_SENT + i], rooms->names[i], fresh(w->j), 0);
  }
}

static uint64_t
number_of(const struct dk_item *item)
{
  struct body body;

  memcpy(&body, item->payload.ptr, sizeof body);
  return body.number;
}

/* What it will do is in the journal before it is tried. */
static void
note_decision(struct journal *j, struct decision *d, uint64_t number, uint64_t last_event)
{
  for (size_t i = 0; i < d->n_facts; i++) {
    struct fact *fact = &d->facts[i];
    fact->commit = number;
    fact->n = (uint32_t)d->n_facts;
    d->events[i] = (struct dk_event){last_event + 1 + i, {(const char *)fact, sizeof *fact}};
    if (fact->what == SCHEDULES || fact->what == CANCELS)
      enter(j, fact->what == SCHEDULES ? SCHEDULED : CANCELLED, fact->number, number);
  }
  for (size_t i = 0; i < d->n_activities; i++)
    d->activity_list[i] = &d->activities[i];
  for (size_t i = 0; i < d->n_messages; i++) {
    d->message_list[i] = &d->messages[i];
    enter(j, SENT, number_of(&d->messages[i]), number);
  }
}

dk_status
commit(struct journal *j, struct dk_store *store, struct dk_caller *caller,
       const struct dk_turn *turn, struct decision *d, struct dk_commit_outcome *outcome)
{
  uint64_t last = turn->head.known ? turn->head.last_event_id : 0;

  note_decision(j, d, d->facts[0].commit, last);
  struct dk_turn_result result = {
    .struct_size = sizeof result, .execution_id = 1, .status = DK_RUNNING,
    .events = d->events, .n_events = d->n_facts,
    .worker_items = d->activity_list, .n_worker_items = d->n_activities,
    .orchestrator_items = d->message_list, .n_orchestrator_items = d->n_messages,
    .cancelled_activities = d->cancelled, .n_cancelled_activities = d->n_cancelled,
  };
  if (!turn->head.known) {
    result.name = text("stress");
    result.version = text("1");
  }
  return dk_store_ack_orchestration_item(store, caller, turn->head.lock_token, &result, outcome);
}

static void
commit_turn(struct worker *w, const struct dk_turn *turn, struct entry *held)
{
  struct decision d = {.n_facts = 0};
  struct rooms *rooms = malloc(sizeof *rooms);
  struct dk_commit_outcome outcome = {.reported = 0};

  if (!rooms || !consume(w->j, turn, &d)) {
    free(rooms);
    return;
  }
  decide_cancels(w, turn, &d);
  decide_new(w, &d, rooms);
  uint64_t number = fresh(w->j);
  d.facts[0].commit = number;
  struct entry *entry = enter(w->j, COMMITTED, number, d.n_cancelled);
  entry->until = held->until;
  held->released = tick(w->j);
  dk_status status = commit(w->j, w->store, w->caller, turn, &d, &outcome);
  entry->rows = outcome.report.free_rows + outcome.report.locked_rows;
  answer(w, entry, status);
  free(rooms);
}

static void
prolong_turn(struct worker *w, struct dk_bytes token, struct entry *held)
{
  int64_t until = clock_now() + w->run->lease_ms;
  dk_status status =
    dk_store_renew_orchestration_item_lock(w->store, w->caller, token, w->run->lease_ms);

  judge_answer(w, status);
  if (status == DK_OK)
    held->until = until;
}

static void
take_turn(struct worker *w)
{
  int64_t lease = chance(w, 12) == 0 ? SHORT_LEASE_MS : w->run->lease_ms;
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = lease,
                                  .max_messages = MOST_MESSAGES};
  struct dk_turn *turn;
  uint64_t asked = tick(w->j);

  if (chance(w, 4) == 0)
    request.wait_until = clock_now() + 5;
  dk_status status = dk_store_fetch_orchestration_item(w->store, w->caller, &request, &turn);
  judge_answer(w, status);
  if (status != DK_OK)
    return;
  unsigned instance = 0;
  sscanf(turn->head.instance.ptr, "inst-%u", &instance);
  struct entry *held = enter(w->j, TURN_HELD, instance, 0);
  held->answered = held->asked;
  held->asked = asked;
  held->since = turn->head.now;
  held->until = turn->head.now + lease;
  atomic_store(&held->status, DK_OK);
  if (chance(w, 6) == 0)
    prolong_turn(w, turn->head.lock_token, held);
  if (chance(w, 8) == 0) {
    held->released = tick(w->j);
    judge_answer(w, dk_store_abandon_orchestration_item(w->store, w->caller, turn->head.lock_token,
                                                        (int64_t)chance(w, 5), chance(w, 2) == 0));
  } else if (lease != SHORT_LEASE_MS || chance(w, 3) > 0) {
    outwait(w, held);
    commit_turn(w, turn, held);
  }
}

/* ---- work ------------------------------------------------------------------------------------ */

static void
end_work(struct worker *w, size_t at)
{
  char room[sizeof(struct body) + LARGEST_FILL], name[16];
  struct held held = w->held[at];
  struct dk_bytes token = {held.token, held.token_size};
  struct dk_work_result result = {.struct_size = sizeof result};
  uint64_t completion = chance(w, 5) == 0 ? 0 : fresh(w->j);
  struct dk_item item;

  w->held[at] = w->held[--w->n_held];
  outwait(w, held.entry);
  held.entry->released = tick(w->j);
  if (chance(w, 8) == 0) {
    judge_answer(w, dk_store_abandon_work_item(w->store, w->caller, token, (int64_t)chance(w, 5),
                                               chance(w, 2) == 0));
    return;
  }
  name_instance(name, held.instance);
  struct entry *entry = enter(w->j, ACKED, held.entry->number, completion);
  entry->until = held.entry->until;
  if (completion) {
    item = make_message(w, room, name, completion, held.entry->number);
    result.completion = &item;
  }
  answer(w, entry, dk_store_ack_work_item(w->store, w->caller, token, &result));
}

static void
prolong_work(struct worker *w, struct held *held)
{
  int64_t until = clock_now() + w->run->lease_ms;
  dk_status status = dk_store_renew_work_item_lock(
    w->store, w->caller, (struct dk_bytes){held->token, held->token_size}, w->run->lease_ms);

  judge_answer(w, status);
  if (status == DK_OK)
    held->entry->until = until;
}

static void
hold(struct worker *w, const struct dk_work_item *item, uint64_t asked, int64_t lease)
{
  struct held *held = &w->held[w->n_held++];
  unsigned instance = 0;
  struct body body;

  if (!read_body(w->j, item->item.payload, &body) || body.number != item->item.activity_id)
    broken(w->j, "an activity has the payload of another");
  else if (body.not_before > item->work.now)
    broken(w->j, "activity %llu is early", (unsigned long long)body.number);
  sscanf(item->item.instance.ptr, "inst-%u", &instance);
  held->instance = instance;
  held->token_size = item->work.lock_token.len < sizeof held->token ? item->work.lock_token.len : 0;
  memcpy(held->token, item->work.lock_token.ptr, held->token_size);
  held->entry = enter(w->j, WORK_HELD, item->item.activity_id, 0);
  held->entry->answered = held->entry->asked;
  held->entry->asked = asked;
  held->entry->since = item->work.now;
  held->entry->until = item->work.now + lease;
  atomic_store(&held->entry->status, DK_OK);
}

static void
take_work(struct worker *w)
{
  int64_t lease = chance(w, 12) == 0 ? SHORT_LEASE_MS : w->run->lease_ms;
  struct dk_fetch_work request = {.struct_size = sizeof request, .lock_ms = lease,
                                  .max_items = (uint32_t)(1 + chance(w, HELD - w->n_held)),
                                  .owner = text("stress"), .tag_rule = DK_TAG_ANY};
  struct dk_works *works;
  uint64_t asked = tick(w->j);

  if (chance(w, 4) == 0)
    request.wait_until = clock_now() + 5;
  dk_status status = dk_store_fetch_work_item(w->store, w->caller, &request, &works);
  judge_answer(w, status);
  for (size_t i = 0; status == DK_OK && i < works->n_items && w->n_held < HELD; i++)
    hold(w, &works->items[i], asked, lease);
}

/* ---- a thread -------------------------------------------------------------------------------- */

static void
step(struct worker *w)
{
  uint64_t which = chance(w, 100);

  dk_caller_reset(w->caller);
  if (which < 22)
    send_message(w);
  else if (which < 52)
    take_turn(w);
  else if (which < 72 && w->n_held < HELD)
    take_work(w);
  else if (which < 76 && w->n_held > 0)
    prolong_work(w, &w->held[chance(w, w->n_held)]);
  else if (w->n_held > 0)
    end_work(w, chance(w, w->n_held));
}

static void *
work_on(void *context)
{
  struct worker *w = context;
  const struct run *run = w->run;

  while (!atomic_load(&w->j->stops) && !atomic_load(&w->j->is_broken) &&
         (!run->operations || atomic_load(&w->j->operations[w->slot]) < run->operations))
    step(w);
  while (w->n_held > 0)
    end_work(w, 0);
  return NULL;
}

static void
note_violation(void *context, const char *operation, const char *clause, const char *what)
{
  broken(context, "%s breaks %s: %s", operation, clause, what);
}

void
run_load(const struct run *run, int slot, uint64_t seed)
{
  struct dk_host_options options = {.struct_size = sizeof options, .context = run->journal,
                                    .violation = note_violation};
  struct worker *workers = calloc((size_t)run->threads, sizeof *workers);
  pthread_t *threads = calloc((size_t)run->threads, sizeof *threads);
  struct dk_caller *caller = dk_caller_new(NULL, 0);
  struct dk_store *store = NULL;
  int n = 0;

  if (workers && threads && caller && open_store(run, &options, 0, caller, &store))
    for (; n < run->threads; n++) {
      workers[n] = (struct worker){.run = run, .j = run->journal, .store = store, .slot = slot,
                                   .caller = dk_caller_new(NULL, 0),
                                   .waiter = dk_caller_new(NULL, 0),
                                   .state = (seed + (uint64_t)n * 7919) * 2654435761u | 1};
      if (!workers[n].caller || !workers[n].waiter ||
          pthread_create(&threads[n], NULL, work_on, &workers[n]) != 0) {
        dk_caller_free(workers[n].caller);
        dk_caller_free(workers[n].waiter);
        broken(run->journal, "no thread could be started");
        break;
      }
    }
  for (int i = 0; i < n; i++) {
    pthread_join(threads[i], NULL);
    dk_caller_free(workers[i].caller);
    dk_caller_free(workers[i].waiter);
  }
  if (store && dk_store_close(store))
    broken(run->journal, "close: an operation did not come back");
  dk_caller_free(caller);
  free(threads);
  free(workers);
}
