/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread does: the operations at random, for any instance that it fetches.  No thread waits
 * for another: a turn is committed, given back or left to its lease; a few work items are held and
 * ended later, so that commits cancel held items.  A holder tries again while the store cannot be
 * reached. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stress/stress.h"

enum {
  HELD = 6,
  LARGEST_FILL = 24000,
  SHORT_LEASE_MS = 3,
  BREATH_MS = 1,           /* after what is to be repeated */
  MOST_ATTEMPTS = 30000
};

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
  if (answer == WAS_RETRYABLE || answer == WAS_UNKNOWN)
    let_pass(BREATH_MS);
  else if (answer != WAS_NOTHING)
    atomic_fetch_add(&w->j->operations[w->slot], 1);
}

/* Of one attempt.  True: there is to be another one; after an unknown outcome it must bring to
 * light what became of the first. */
static bool
is_to_be_repeated(struct worker *w, struct entry *entry, dk_status status, unsigned *attempts)
{
  judge_answer(w, status);
  if (dk_status_class(status) == 3 && entry->unknown++ == 0)
    atomic_fetch_add(&w->j->unknown, 1);
  if (dk_status_class(status) != 1 && dk_status_class(status) != 3)
    return false;
  if (++*attempts < MOST_ATTEMPTS && !atomic_load(&w->j->is_broken))
    return true;
  if (entry->unknown > 0)
    atomic_fetch_add(&w->j->unresolved, 1);
  return false;
}

static uint32_t
flags_of(const struct entry *entry)
{
  return entry->unknown > 0 ? DK_REPEATED : 0;
}

/* The last attempt's.  Nothing was changed by what is answered otherwise than with DK_OK. */
static void
answer(struct worker *w, struct entry *entry, dk_status status)
{
  entry->answered = tick(w->j);
  entry->since = clock_now();
  if (entry->unknown == 0 || (dk_status_class(status) != 1 && dk_status_class(status) != 3))
    atomic_store(&entry->status, status);
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
  uint64_t target = chance(w, w->run->instances);
  unsigned attempts = 0;
  dk_status status;

  name_instance(name, target);
  struct dk_item item = make_message(w, room, name, number, 0);
  snprintf(id, sizeof id, "m%llu", (unsigned long long)number);
  if (chance(w, 2) == 0)
    item.id = text(id);
  do {
    item.flags = flags_of(entry);
    status = dk_store_enqueue_for_orchestrator(w->store, w->caller, &item);
    if (status == DK_DUPLICATE && entry->unknown > 0)
      status = DK_OK; /* the first attempt's message is there */
  } while (is_to_be_repeated(w, entry, status, &attempts) && (item.id.ptr || !entry->unknown));
  if (entry->unknown == 0 || item.id.ptr)
    answer(w, entry, status); /* else it would be stored twice */
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

/* A worker that keeps histories in memory gets none with a turn: the journal has what these tests
 * need of them.  What is taken out of it is cancelled by no other worker. */
static size_t
remembered_activities(struct worker *w, const struct dk_turn *turn, uint64_t open[MOST_OPEN])
{
  atomic_uint_fast64_t *recent = w->j->recent[number_of_instance(turn->head.instance)];
  size_t n = 0;

  for (size_t i = 0; w->run->keeps_histories && i < MOST_RECENT && n < MOST_OPEN; i++)
    if (chance(w, 4) == 0 && (open[n] = atomic_exchange(&recent[i], 0)) != 0)
      n++;
  return n;
}

static bool
is_cancelled(const struct decision *d, uint64_t activity)
{
  for (size_t i = 0; i < d->n_cancelled; i++)
    if (d->cancelled[i].activity_id == activity)
      return true;
  return false;
}

static void
remember_activities(struct worker *w, const struct dk_turn *turn, const struct decision *d)
{
  atomic_uint_fast64_t *recent = w->j->recent[number_of_instance(turn->head.instance)];

  for (size_t i = 0; w->run->keeps_histories && i < d->n_activities; i++)
    if (!is_cancelled(d, d->activities[i].activity_id))
      atomic_store(&recent[d->activities[i].activity_id % MOST_RECENT],
                   d->activities[i].activity_id);
}

/* In the order of what is listed, now and then twice, and one that never was. */
static void
decide_cancels(struct worker *w, const struct dk_turn *turn, struct decision *d)
{
  uint64_t open[MOST_OPEN], one_in = chance(w, 6) == 0 ? 1 : 4;
  size_t n = w->run->keeps_histories ? remembered_activities(w, turn, open)
                                     : open_activities(turn, open);

  for (size_t i = 0; i < n; i++) {
    if (!w->run->keeps_histories && chance(w, one_in) != 0)
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
    name_instance(rooms->names[i], chance(w, w->run->instances));
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

void
note_decision(struct journal *j, const struct dk_turn *turn, struct decision *d)
{
  const uint64_t number = d->facts[0].commit;

  for (size_t i = 0; i < d->n_facts; i++) {
    struct fact *fact = &d->facts[i];
    fact->commit = number;
    fact->instance = number_of_instance(turn->head.instance);
    fact->n = (uint32_t)d->n_facts;
    d->events[i] = (struct dk_event){turn->head.last_event_id + 1 + i,
                                     {(const char *)fact, sizeof *fact}};
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
commit(struct dk_store *store, struct dk_caller *caller, const struct dk_turn *turn,
       const struct decision *d, struct dk_turn_result *result, struct dk_commit_outcome *outcome)
{
  result->struct_size = sizeof *result;
  result->execution_id = 1;
  result->status = DK_RUNNING;
  result->events = d->events;
  result->n_events = d->n_facts;
  result->worker_items = d->activity_list;
  result->n_worker_items = d->n_activities;
  result->orchestrator_items = d->message_list;
  result->n_orchestrator_items = d->n_messages;
  result->cancelled_activities = d->cancelled;
  result->n_cancelled_activities = d->n_cancelled;
  if (!turn->head.known) {
    result->name = text("stress");
    result->version = text("1");
  }
  return dk_store_ack_orchestration_item(store, caller, turn->head.lock_token, result, outcome);
}

/* Until it is known whether it landed. */
static dk_status
commit_for_sure(struct worker *w, const struct dk_turn *turn, const struct decision *d,
                struct entry *entry)
{
  struct dk_commit_outcome outcome;
  unsigned attempts = 0;
  dk_status status;

  do {
    struct dk_turn_result result = {.flags = flags_of(entry)};
    if (w->run->keeps_histories)
      result.owner = text("stress");
    outcome = (struct dk_commit_outcome){.reported = 0};
    status = commit(w->store, w->caller, turn, d, &result, &outcome);
    entry->rows = outcome.report.free_rows + outcome.report.locked_rows;
  } while (is_to_be_repeated(w, entry, status, &attempts));
  return status;
}

static void
commit_turn(struct worker *w, const struct dk_turn *turn, struct entry *held)
{
  struct decision d = {.n_facts = 0};
  struct rooms *rooms = malloc(sizeof *rooms);

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
  note_decision(w->j, turn, &d);
  dk_status status = commit_for_sure(w, turn, &d, entry);
  answer(w, entry, status);
  if (status == DK_OK)
    remember_activities(w, turn, &d);
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

  if (w->run->keeps_histories)
    request.owner = text("stress");
  if (chance(w, 4) == 0)
    request.wait_until = clock_now() + 5;
  dk_status status = dk_store_fetch_orchestration_item(w->store, w->caller, &request, &turn);
  judge_answer(w, status);
  if (status != DK_OK)
    return;
  struct entry *held = enter(w->j, TURN_HELD, number_of_instance(turn->head.instance), 0);
  held->answered = held->asked;
  held->asked = asked;
  held->seen = clock_now();
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
  unsigned attempts = 0;
  struct dk_item item;
  dk_status status;

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
  do {
    result.flags = flags_of(entry);
    status = dk_store_ack_work_item(w->store, w->caller, token, &result);
  } while (is_to_be_repeated(w, entry, status, &attempts));
  if (entry->unknown == 0 || status != DK_LOCK_LOST)
    answer(w, entry, status); /* else it may have landed, or not */
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
  struct body body;

  if (!read_body(w->j, item->item.payload, &body) || body.number != item->item.activity_id)
    broken(w->j, "an activity has the payload of another");
  else if (body.not_before > item->work.now)
    broken(w->j, "activity %llu is early", (unsigned long long)body.number);
  held->instance = number_of_instance(item->item.instance);
  held->token_size = item->work.lock_token.len < sizeof held->token ? item->work.lock_token.len : 0;
  memcpy(held->token, item->work.lock_token.ptr, held->token_size);
  held->entry = enter(w->j, WORK_HELD, item->item.activity_id, 0);
  held->entry->answered = held->entry->asked;
  held->entry->asked = asked;
  held->entry->seen = clock_now();
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

/* As many as can be started; fewer are reported. */
static int
start_workers(const struct run *run, int slot, uint64_t seed, struct dk_store *store,
              struct worker *workers, pthread_t *threads)
{
  for (int n = 0; n < run->threads; n++) {
    workers[n] = (struct worker){.run = run, .j = run->journal, .store = store, .slot = slot,
                                 .caller = dk_caller_new(NULL, 0),
                                 .waiter = dk_caller_new(NULL, 0),
                                 .state = (seed + (uint64_t)n * 7919) * 2654435761u | 1};
    if (!workers[n].caller || !workers[n].waiter ||
        pthread_create(&threads[n], NULL, work_on, &workers[n]) != 0) {
      dk_caller_free(workers[n].caller);
      dk_caller_free(workers[n].waiter);
      broken(run->journal, "no thread could be started");
      return n;
    }
  }
  return run->threads;
}

void
run_load(const struct run *run, int slot, uint64_t seed)
{
  struct dk_host_options options = {.struct_size = sizeof options, .context = run->journal,
                                    .violation = note_violation};
  struct worker *workers = calloc((size_t)run->threads, sizeof *workers);
  pthread_t *threads = calloc((size_t)run->threads, sizeof *threads);
  struct cutter *cutter = run->harm == CUT_SOCKETS ? cutter_new(run, seed) : NULL;
  struct dk_caller *caller = dk_caller_new(NULL, 0);
  struct dk_store *store = NULL;
  int n = 0;

  if (workers && threads && caller && open_store(run, &options, 0, caller, &store))
    n = start_workers(run, slot, seed, store, workers, threads);
  if (n > 0 && run->harm == CUT_SOCKETS && !cutter_start(cutter))
    broken(run->journal, "the thread that cuts sockets could not be started");
  for (int i = 0; i < n; i++) {
    pthread_join(threads[i], NULL);
    dk_caller_free(workers[i].caller);
    dk_caller_free(workers[i].waiter);
  }
  cutter_end(cutter);
  if (store && dk_store_close(store))
    broken(run->journal, "close: an operation did not return");
  dk_caller_free(caller);
  free(threads);
  free(workers);
}
