/* SPDX-License-Identifier: Apache-2.0 */
/* Draws what a turn did: mostly what a runtime would commit, sometimes what it must not. */
#include "conformance/random/random.h"

#include <string.h>

enum { FEW = 3, MANY = 1500, LONG_LIST = 33000 };

/* A share of what a commit of this provider may hold: all lists together stay below its limit. */
static size_t
some_of_limit(const struct pass *p, size_t most, uint64_t share)
{
  uint64_t limit = p->t->provider->limits->max_commit_items / share;

  return limit < most ? (size_t)limit : most;
}

static size_t
draw_few(struct pass *p)
{
  return (size_t)draw_below(&p->run->chance, p->run->profile->families ? 2 : FEW + 1);
}

static uint64_t
draw_execution(struct pass *p, const struct handed *turn)
{
  struct chance *chance = &p->run->chance;
  uint64_t current = turn != NULL && turn->is_known ? turn->execution_id : 0;

  if (one_in(chance, 25))
    return current + 2;
  if (one_in(chance, 40) && current > 1)
    return current - 1;
  if (current == 0 || one_in(chance, p->run->profile->ends ? 3 : 6))
    return current + 1;
  return current;
}

/* What makes a run slow, and happens once in it. */
static bool
once(struct pass *p, bool *has_been)
{
  if (*has_been || !p->run->profile->has_crowds || p->t->job->memcheck ||
      !one_in(&p->run->chance, 20))
    return false;
  return *has_been = true;
}

/* Several of them are more than 1 MiB. */
enum { LARGE_EVENTS = 18 };
static struct dk_bytes
draw_large(struct pass *p)
{
  enum { LARGE = 1 << 16 };
  uint64_t limit = p->t->provider->limits->max_payload;
  size_t size = limit < LARGE ? (size_t)limit : LARGE;
  char *payload = lasting(p, size, 1);

  for (size_t i = 0; i < size; i++)
    payload[i] = (char)('a' + i % 26);
  return (struct dk_bytes){payload, size};
}

/* Ascending, above the last one, with gaps; sometimes one that is stored already. */
static void
draw_events(struct pass *p, const struct handed *turn, struct dk_turn_result *r)
{
  struct chance *chance = &p->run->chance;
  size_t n = one_in(chance, 50) ? some_of_limit(p, MANY, 4)
                                : draw_few(p);
  bool is_large = r->execution_id > 0 && once(p, &p->run->has_large_history);
  if (is_large)
    n = LARGE_EVENTS;
  struct dk_bytes many = is_large ? draw_large(p) : bytes("event");
  struct dk_event *events = lasting(p, n, sizeof(*events));
  bool goes_on = turn != NULL && turn->is_known && r->execution_id == turn->execution_id;
  uint64_t id = goes_on ? turn->last_event_id : 0;

  if (id > 0 && one_in(chance, 20))
    id--;
  for (size_t i = 0; i < n && id < INT64_MAX - 3; i++) {
    id += one_in(chance, 5) ? 1 + draw_below(chance, 3) : 1;
    if (one_in(chance, 40) && n <= FEW && id <= UINT32_MAX)
      id += UINT32_MAX;
    events[r->n_events++] = (struct dk_event){id, n > FEW ? many : draw_payload(p)};
  }
  r->events = events;
}

/* Never due, and before all that comes after them. */
enum { CROWD = 120, FIRST_OF_CROWD = 1000000 };
static struct dk_bytes
crowd_id(struct pass *p, size_t i)
{
  char *id = dk_arena_printf(&p->t->lasting, "crowd-%zu", i);

  if (id == NULL)
    kit_trouble(p->t, "no memory for an id");
  return bytes(id);
}

/* No identity twice: the host refuses that. */
static bool
has_activity(const struct dk_item *items, size_t n, uint64_t activity_id)
{
  for (size_t i = 0; i < n; i++)
    if (items[i].activity_id == activity_id)
      return true;
  return false;
}

static void
draw_worker_items(struct pass *p, struct dk_turn_result *r)
{
  struct chance *chance = &p->run->chance;
  bool is_crowd = r->execution_id > 0 && once(p, &p->run->has_crowd[0]);
  size_t n = is_crowd ? CROWD : draw_few(p);
  struct dk_item *items = lasting(p, n, sizeof(*items));
  const struct dk_item **list = lasting(p, n, sizeof(*list));

  for (size_t i = 0; i < n; i++) {
    struct dk_item *item = &items[r->n_worker_items];
    draw_activity(p, item);
    if (is_crowd)
      *item = (struct dk_item){.struct_size = sizeof(*item), .activity_id = FIRST_OF_CROWD + i,
                               .visible_at = INT64_MAX, .payload = bytes("never")};
    item->instance = bytes(NULL);
    item->execution_id = one_in(chance, 8) ? 1 + draw_below(chance, 3) : r->execution_id;
    if (has_activity(items, r->n_worker_items, item->activity_id))
      continue;
    list[r->n_worker_items++] = item;
  }
  r->worker_items = list;
}

static bool
has_message(const struct dk_item *items, size_t n, const struct dk_item *item)
{
  for (size_t i = 0; i < n && item->id.ptr != NULL; i++)
    if (same_bytes(items[i].id, item->id) && same_bytes(items[i].instance, item->instance))
      return true;
  return false;
}

static void
draw_messages(struct pass *p, struct dk_turn_result *r)
{
  bool is_crowd = once(p, &p->run->has_crowd[1]);
  size_t n = is_crowd ? CROWD : draw_few(p);
  struct dk_item *items = lasting(p, n, sizeof(*items));
  const struct dk_item **list = lasting(p, n, sizeof(*list));

  for (size_t i = 0; i < n; i++) {
    struct dk_item *item = &items[r->n_orchestrator_items];
    draw_item(p, item);
    if (is_crowd)
      *item = (struct dk_item){.struct_size = sizeof(*item), .instance = crowd_id(p, i),
                               .visible_at = INT64_MAX, .payload = bytes("never")};
    if (has_message(items, r->n_orchestrator_items, item))
      continue;
    list[r->n_orchestrator_items++] = item;
  }
  r->orchestrator_items = list;
}

/* One of this instance that a worker was given, the last ones more often, wherever it is now. */
static bool
draw_given_activity(struct pass *p, const struct handed *turn, struct dk_activity *ret)
{
  const struct handed *found = NULL;

  for (size_t i = p->handed.n; turn != NULL && i > 0; i--) {
    const struct handed *h = &p->handed.items[i - 1];
    if (h->is_turn || !same_bytes(h->instance, turn->instance))
      continue;
    found = h;
    if (one_in(&p->run->chance, 2))
      break;
  }
  if (found != NULL)
    *ret = (struct dk_activity){found->execution_id, found->activity_id};
  return found != NULL;
}

/* In no order, with holes and repetitions, of several executions; in a long one the first and the
 * last few are those that may be stored. */
static void
draw_cancelled(struct pass *p, struct dk_turn_result *r, const struct handed *turn)
{
  struct chance *chance = &p->run->chance;
  size_t n = one_in(chance, 20) ? 1 + (size_t)draw_below(chance, some_of_limit(p, MANY, 2))
                                : draw_few(p);
  if (once(p, &p->run->has_long_list))
    n = some_of_limit(p, LONG_LIST, 2);
  struct dk_activity *list = lasting(p, n, sizeof(*list));

  for (size_t i = 0; i < n; i++) {
    uint64_t execution_id = one_in(chance, 5) ? 1 + draw_below(chance, 3) : r->execution_id;
    bool is_between = i >= FEW && i + FEW < n && !one_in(chance, 900);
    if (!is_between && one_in(chance, 4) && draw_given_activity(p, turn, &list[i]))
      continue;
    list[i] = (struct dk_activity){
      execution_id, is_between ? 10 + draw_below(chance, 9000) * 2 : odd_number(chance)
    };
  }
  r->cancelled_activities = list;
  r->n_cancelled_activities = n;
}

static void
draw_cancelled_messages(struct pass *p, struct dk_turn_result *r)
{
  size_t n = (size_t)draw_below(&p->run->chance, FEW);
  struct dk_bytes *list = lasting(p, n, sizeof(*list));

  for (size_t i = 0; i < n; i++) {
    struct dk_bytes id = draw_message_id(p);
    list[i] = id.ptr != NULL ? id : bytes("none");
  }
  r->cancelled_messages = list;
  r->n_cancelled_messages = n;
}

static int32_t
draw_status(struct pass *p)
{
  static const int32_t ends[] = {DK_RUNNING, DK_COMPLETED, DK_COMPLETED, DK_FAILED,
                                 DK_CONTINUED_AS_NEW, DK_CANCELLED};

  if (!one_in(&p->run->chance, p->run->profile->ends ? 1 : 3))
    return DK_STATUS_KEEP;
  return ends[draw_below(&p->run->chance, sizeof(ends) / sizeof(ends[0]))];
}

struct dk_bytes
draw_parent(struct pass *p)
{
  if (one_in(&p->run->chance, 5))
    return bytes("stranger");
  return one_in(&p->run->chance, 3) ? p->run->ids[0] : draw_instance(p);
}

static void
draw_facts(struct pass *p, const struct handed *turn, struct dk_turn_result *r)
{
  static const char *const names[] = {"pay", "Pay", "pay ", "ship"};
  static const char *const versions[] = {"1.0.0", "1.0", "2.0.0"};
  static const char *const owners[] = {"worker-1", "worker-2", "Worker-1", "worker-10"};
  struct chance *chance = &p->run->chance;
  bool is_first = turn == NULL || !turn->is_known;

  if (is_first || one_in(chance, 8)) {
    r->name = is_first && !one_in(chance, 12) ? bytes("pay") : draw_text(p, names, 4);
    r->version = is_first && !one_in(chance, 12) ? bytes("1.0.0") : draw_text(p, versions, 3);
  }
  if (one_in(chance, p->run->profile->families && is_first ? 1 : 4))
    r->parent_instance = draw_parent(p);
  r->owner = draw_text(p, owners, 4);
  if (one_in(chance, 5)) {
    struct dk_version *pin = lasting(p, 1, sizeof(*pin));
    *pin = (struct dk_version){1, (uint32_t)draw_below(chance, 3), 0};
    if (one_in(chance, 4))
      *pin = (struct dk_version){UINT32_MAX, (uint32_t)draw_below(chance, 11), UINT32_MAX};
    else if (one_in(chance, 4))
      *pin = (struct dk_version){0, 0, 0};
    r->pinned = pin;
  }
}

const struct dk_turn_result *
draw_result(struct pass *p, const struct handed *turn)
{
  struct dk_turn_result *r = lasting(p, 1, sizeof(*r));
  struct chance *chance = &p->run->chance;
  bool is_used = turn != NULL && turn->is_used;

  if (is_used && turn->result != NULL && one_in(chance, 2)) { /* a repeat repeats all of it */
    *r = *turn->result;
    r->flags = DK_REPEATED;
    return r;
  }
  r->struct_size = sizeof(*r);
  bool is_committed = is_used && turn->result != NULL;
  bool is_repeat = !is_committed && one_in(chance, is_used ? 2 : 12); /* of what did not land */
  r->flags = is_repeat ? (uint32_t)DK_REPEATED : 0u;
  draw_messages(p, r);
  if (one_in(chance, 7)) /* an empty commit, and sometimes one that only says so */
    return one_in(chance, 8) ? (draw_cancelled_messages(p, r), r) : r;
  r->execution_id = draw_execution(p, turn);
  r->status = draw_status(p);
  if (one_in(chance, 2))
    r->output = draw_payload(p);
  draw_events(p, turn, r);
  draw_worker_items(p, r);
  draw_cancelled(p, r, turn);
  draw_cancelled_messages(p, r);
  draw_facts(p, turn, r);
  return r;
}
