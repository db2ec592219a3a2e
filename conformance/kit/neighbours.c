/* SPDX-License-Identifier: Apache-2.0 */
/* Of a variation: instances with ids that a store might take for those of the check.  They have
 * what the checks have: a history, activities of the same numbers, a message, all of it delayed far
 * beyond the end of the check, so that no fetch brings it.  Meanwhile some of them are deleted, and
 * the last one, which has two executions, is pruned.  In the end each of the others must be as it
 * was made, and of the deleted ones nothing may be left. */
#include "conformance/kit/vary.h"

#include <stdio.h>
#include <string.h>

#include "conformance/kit/kit.h"

/* Most checks use "inst"; with the variation its id ends in " e", a combining accent, and "A". */
#define ACCENT "\xcc\x81"
static const char *const names[] = {
  "inst e" ACCENT "a",   /* another case */
  "inst \xc3\xa9" "A",   /* the same character, composed */
  "inst e" ACCENT "A ",  /* a space behind it */
  "inst e" ACCENT,       /* the beginning of it */
  "inst e" ACCENT "B",   /* another last byte */
};
enum {
  NEIGHBOURS = sizeof(names) / sizeof(names[0]),
  PRUNED = NEIGHBOURS - 1,
  DELETED = 3,
  ACTIVITIES = 3
};
#define BEYOND (3 * KIT_FAR) /* their delay */

bool
kit_is_neighbour(const struct variation *by, struct dk_bytes id)
{
  for (size_t i = 0; by->has_neighbours && i < NEIGHBOURS; i++)
    if (same_bytes(bytes(names[i]), id))
      return true;
  return false;
}

static const struct variation *
variation_of(const struct dk_check *t)
{
  const struct check *check = t->job->check;

  return check != NULL && check->variation != NULL && check->variation->has_neighbours
           ? check->variation : NULL;
}

/* A call of the kit's own: with payloads of the variation's sizes, and with the ids as they are. */
static void
neighbour_call(struct dk_check *t, struct op *op, dk_status wanted)
{
  struct actor *me = kit_actor(t, NULL);
  struct variation plain = *variation_of(t);
  char name[32];

  plain.before_ids = plain.after_ids = NULL;
  op->variation = &plain;
  op->limits = *t->provider->limits;
  kit_enter(t, kit_op_name(op->kind));
  kit_op_run(op, me->store, me->caller);
  kit_left(t);
  kit_judge_violation(t);
  if (op->distorted[0] != '\0')
    kit_fail(t, VERDICT_FAIL, NULL, "what was stored, byte for byte", op->distorted,
             "%s of an instance with a similar id: %s", kit_op_name(op->kind), op->distorted);
  if (op->status != wanted && !(wanted == DK_OK && op->status == DK_NOTHING))
    kit_fail(t, VERDICT_FAIL, NULL, "DK_OK", op->text,
             "%s of an instance with a similar id answered %s: %s", kit_op_name(op->kind),
             kit_status_name(op->status, name, sizeof(name)), op->text);
}

/* ---- making them ----------------------------------------------------------------------------- */

/* The first execution has all that there is; a second one has only an event. */
static void
commit_neighbour(struct dk_check *t, const struct dk_turn *turn, uint64_t execution_id)
{
  bool is_first = execution_id == 1;
  struct dk_item items[ACTIVITIES], later;
  const struct dk_item *list[ACTIVITIES], *messages[] = {&later};
  struct dk_event event = {1, bytes("event 1")};

  for (uint64_t i = 0; i < ACTIVITIES; i++) {
    items[i] = (struct dk_item){.struct_size = sizeof(items[i]), .execution_id = 1,
                                .activity_id = i + 1, .delay_ms = BEYOND,
                                .payload = bytes("activity 1")};
    list[i] = &items[i];
  }
  later = (struct dk_item){.struct_size = sizeof(later), .id = bytes("message"),
                           .instance = kit_copy_bytes(t, &t->arena, turn->head.instance),
                           .delay_ms = BEYOND, .payload = bytes("message")};
  struct dk_turn_result result = {
    .struct_size = sizeof(result), .execution_id = execution_id,
    .status = is_first ? DK_CONTINUED_AS_NEW : DK_RUNNING,
    .events = &event, .n_events = 1,
    .worker_items = list, .n_worker_items = is_first ? ACTIVITIES : 0,
    .orchestrator_items = messages, .n_orchestrator_items = is_first ? 1 : 0,
    .name = bytes("order"), .version = bytes("1.0.0"),
  };
  struct op op = {.kind = OP_ACK_TURN, .result = &result,
                  .token = kit_copy_bytes(t, &t->arena, turn->head.lock_token)};
  neighbour_call(t, &op, DK_OK);
}

static void
make_neighbour(struct dk_check *t, size_t number, uint64_t execution_id)
{
  struct op send = {.kind = OP_ENQUEUE,
                    .item = {.struct_size = sizeof(struct dk_item),
                             .instance = bytes(names[number]), .payload = bytes("message")}};
  struct op fetch = {.kind = OP_FETCH_TURN,
                     .fetch_turn = {.struct_size = sizeof(struct dk_fetch_turn),
                                    .lock_ms = 30000}};

  neighbour_call(t, &send, DK_OK);
  neighbour_call(t, &fetch, DK_OK);
  if (fetch.turn == NULL)
    kit_fail(t, VERDICT_FAIL, NULL, "a turn", "DK_NOTHING",
             "the message to an instance was stored, and no turn came");
  commit_neighbour(t, fetch.turn, execution_id);
}

void
kit_make_neighbours(struct dk_check *t)
{
  if (variation_of(t) == NULL)
    return;
  for (size_t i = 0; i < NEIGHBOURS; i++)
    make_neighbour(t, i, 1);
  make_neighbour(t, PRUNED, 2);
  t->n_neighbours = NEIGHBOURS;
  say_in_trace(t, "(%s)", variation_of(t)->says);
}

/* ---- while the check runs -------------------------------------------------------------------- */

static void
delete_next(struct dk_check *t)
{
  struct dk_bytes id = bytes(names[NEIGHBOURS - t->n_neighbours]);
  struct op op = {.kind = OP_DELETE_INSTANCES,
                  .delete_instances = {.struct_size = sizeof(struct dk_delete_instances),
                                       .flags = DK_DELETE_FORCE, .instances = &id,
                                       .n_instances = 1}};

  neighbour_call(t, &op, DK_OK);
  t->n_neighbours--;
  say_in_trace(t, "(an instance with a similar id is deleted)");
}

static void
prune_last(struct dk_check *t)
{
  struct op op = {.kind = OP_PRUNE,
                  .prune = {.struct_size = sizeof(struct dk_prune),
                            .instance = bytes(names[PRUNED]), .keep = 1}};

  neighbour_call(t, &op, DK_OK);
  say_in_trace(t, "(an instance with a similar id is pruned)");
}

/* Before every fourth call: one is deleted, then one is pruned, then two are deleted. */
void
kit_delete_neighbour(struct dk_check *t)
{
  enum { EVERY = 4, PRUNES = 2, ALL = DELETED + 1 };

  if (t->n_neighbours == 0 || !t->has_admin || t->twin.inside || kit_actor(t, NULL)->store == NULL)
    return;
  size_t n = ++t->calls_beside_neighbours;
  if (n % EVERY != 0 || n / EVERY > ALL)
    return;
  if (n / EVERY == PRUNES)
    prune_last(t);
  else
    delete_next(t);
}

/* ---- at the end ------------------------------------------------------------------------------ */

static size_t
number_of(struct dk_bytes id)
{
  size_t i = 0;

  while (i < NEIGHBOURS && !same_bytes(bytes(names[i]), id))
    i++;
  return i;
}

static void
judge_history(struct dk_check *t, size_t number, bool exists)
{
  struct op op = {.kind = OP_READ_HISTORY,
                  .read_history = {.struct_size = sizeof(struct dk_read_history),
                                   .instance = bytes(names[number])}};

  neighbour_call(t, &op, DK_OK);
  size_t n = op.history->found ? op.history->n_events : 0;
  if (n != (exists ? 1 : 0))
    kit_fail(t, VERDICT_FAIL, NULL, exists ? "1 event" : "none", NULL,
             "%zu events of %s, which %s (%s)", n, names[number],
             exists ? "no call has named" : "was deleted", variation_of(t)->says);
}

static void
count_work(struct dk_check *t, size_t seen[NEIGHBOURS])
{
  struct op op = {.kind = OP_NONE};

  do {
    op = (struct op){.kind = OP_FETCH_WORK,
                     .fetch_work = {.struct_size = sizeof(struct dk_fetch_work), .max_items = 50,
                                    .lock_ms = KIT_FAR, .tag_rule = DK_TAG_ANY}};
    neighbour_call(t, &op, DK_OK);
    for (size_t i = 0; op.status == DK_OK && i < op.works->n_items; i++) {
      size_t number = number_of(op.works->items[i].item.instance);
      if (number < NEIGHBOURS)
        seen[number]++;
    }
  } while (op.status == DK_OK);
}

static void
count_messages(struct dk_check *t, size_t seen[NEIGHBOURS])
{
  struct op op = {.kind = OP_NONE};

  do {
    op = (struct op){.kind = OP_FETCH_TURN,
                     .fetch_turn = {.struct_size = sizeof(struct dk_fetch_turn),
                                    .lock_ms = KIT_FAR}};
    neighbour_call(t, &op, DK_OK);
    size_t number = op.status == DK_OK ? number_of(op.turn->head.instance) : NEIGHBOURS;
    if (number < NEIGHBOURS)
      seen[number] += op.turn->n_messages;
  } while (op.status == DK_OK);
}

static void
judge_count(struct dk_check *t, size_t number, bool exists, size_t n, size_t wanted,
            const char *what)
{
  char expected[32], found[32];

  wanted = exists ? wanted : 0;
  snprintf(expected, sizeof(expected), "%zu", wanted);
  snprintf(found, sizeof(found), "%zu", n);
  if (n != wanted)
    kit_fail(t, VERDICT_FAIL, NULL, expected, found, "%zu %s of %s, which %s (%s)", n, what,
             names[number], exists ? "no call has named" : "was deleted",
             variation_of(t)->says);
}

void
kit_judge_neighbours(struct dk_check *t)
{
  size_t activities[NEIGHBOURS] = {0}, messages[NEIGHBOURS] = {0};

  if (t->n_neighbours == 0 || kit_actor(t, NULL)->store == NULL)
    return;
  for (size_t i = 0; i < NEIGHBOURS; i++)
    judge_history(t, i, i >= NEIGHBOURS - t->n_neighbours);
  if (t->real_time)
    return;
  kit_go_to(t, t->start + 2 * BEYOND);
  count_work(t, activities);
  count_messages(t, messages);
  for (size_t i = 0; i < NEIGHBOURS; i++) {
    bool exists = i >= NEIGHBOURS - t->n_neighbours;
    judge_count(t, i, exists, activities[i], ACTIVITIES, "activities");
    judge_count(t, i, exists, messages[i], 1, "messages");
  }
}
