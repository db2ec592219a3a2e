/* SPDX-License-Identifier: Apache-2.0 */
/* Common steps of several calls: fetch exactly this one, a usual beginning, a usual turn.
 *
 * Which instance or work item comes first is the provider's choice.  Others that a search fetches
 * on its way stay locked, and are kept as spare: a later search of the same kind returns them if
 * their lease still runs. */
#include "conformance/kit/kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- exactly one ----------------------------------------------------------------------------- */

static void
need_result(struct dk_check *t, dk_status status, const char *what, const char *file, int line)
{
  kit_expect_status(t, status, DK_OK, what, file, line);
}

struct dk_turn *
kit_fetch_turn(struct dk_check *t, const struct fetch_turn_args *a, const char *file, int line)
{
  struct dk_turn *turn;

  need_result(t, kit_try_fetch_turn(t, &turn, a), "fetch_turn", file, line);
  return turn;
}

struct dk_work_item *
kit_fetch_work(struct dk_check *t, const struct fetch_work_args *a, const char *file, int line)
{
  struct dk_works *works;

  need_result(t, kit_try_fetch_work(t, &works, a), "fetch_work", file, line);
  if (a->start)
    return NULL;
  kit_expect(t, works->n_items > 0, "n_items > 0", file, line,
             "fetch_work_item answered DK_OK and returned no item");
  return &works->items[0];
}

static struct dk_turn *
take_spare_turn(struct dk_check *t, struct dk_bytes instance)
{
  for (size_t i = 0; i < t->spare_turns.n; i++) {
    struct dk_turn *turn = t->spare_turns.items[i];

    if (!same_bytes(turn->head.instance, instance) || turn->deadline <= now(t))
      continue;
    t->spare_turns.items[i] = t->spare_turns.items[--t->spare_turns.n];
    return turn;
  }
  return NULL;
}

struct dk_turn *
kit_fetch_turn_of(struct dk_check *t, const char *instance, const struct fetch_turn_args *a,
                  const char *file, int line)
{
  struct dk_turn *turn = take_spare_turn(t, bytes(instance));
  struct fetch_turn_args args = *a;
  dk_status status;

  args.start = false;
  for (int i = 0; turn == NULL && i < KIT_MAX_FETCHES; i++) {
    status = kit_try_fetch_turn(t, &turn, &args);
    if (status != DK_OK) {
      char call[200];

      snprintf(call, sizeof(call), "fetch_turn_of(%s), after %d other turns,", instance, i);
      need_result(t, status, call, file, line);
    }
    if (same_bytes(turn->head.instance, bytes(instance)))
      return turn;
    *LIST_ADD(t, &t->arena, &t->spare_turns) = turn;
    turn = NULL;
  }
  kit_expect(t, turn != NULL, "the fetches end", file, line,
             "%d turns were fetched, and that of %s was not among them", KIT_MAX_FETCHES, instance);
  return turn;
}

static bool
is_activity(const struct dk_work_item *work, const char *instance, uint64_t execution_id,
            uint64_t activity_id)
{
  return same_bytes(work->item.instance, bytes(instance)) &&
         work->item.execution_id == execution_id && work->item.activity_id == activity_id;
}

static struct dk_work_item *
take_spare_work(struct dk_check *t, const char *instance, uint64_t execution_id,
                uint64_t activity_id)
{
  struct dk_work_item *found = NULL;

  for (size_t i = t->spare_work.n; found == NULL && i > 0; i--) {
    struct dk_work_item *work = t->spare_work.items[i - 1];

    if (!is_activity(work, instance, execution_id, activity_id) || work->deadline <= now(t))
      continue;
    found = work;
    t->spare_work.items[i - 1] = t->spare_work.items[--t->spare_work.n];
  }
  return found;
}

/* Fetches all work items, one by one, in any order. */
static void
take_all_work(struct dk_check *t, const struct fetch_work_args *a, const char *file, int line)
{
  struct fetch_work_args args = *a;
  struct dk_works *works;
  dk_status status = DK_OK;

  args.start = false;
  for (int i = 0; i < KIT_MAX_FETCHES; i++) {
    status = kit_try_fetch_work(t, &works, &args);
    if (status == DK_NOTHING)
      return;
    need_result(t, status, "fetch_work", file, line);
    for (size_t k = 0; k < works->n_items; k++)
      *LIST_ADD(t, &t->arena, &t->spare_work) = &works->items[k];
  }
  kit_expect(t, false, "the fetches end", file, line,
             "%d fetches brought work, and there is still more", KIT_MAX_FETCHES);
}

struct dk_work_item *
kit_fetch_activity(struct dk_check *t, const char *instance, uint64_t execution_id,
                   uint64_t activity_id, const struct fetch_work_args *a, const char *file,
                   int line)
{
  struct dk_work_item *work = take_spare_work(t, instance, execution_id, activity_id);

  if (work != NULL)
    return work;
  take_all_work(t, a, file, line);
  work = take_spare_work(t, instance, execution_id, activity_id);
  kit_expect(t, work != NULL, "it is among the work that can be fetched", file, line,
             "activity %s/%" PRIu64 "/%" PRIu64 " should be there to be fetched", instance,
             execution_id, activity_id);
  return work;
}

/* ---- usual beginnings ------------------------------------------------------------------------ */

uint64_t
next_event(const struct dk_turn *turn)
{
  return turn->head.last_event_id + 1;
}

struct dk_turn *
next_turn(struct dk_check *t, const char *instance)
{
  must(t, enqueue(t, instance));
  return fetch_turn_of(t, instance);
}

void
given_instance(struct dk_check *t, const char *instance)
{
  given_instance_with_activities(t, instance, 0);
}

static struct dk_item
plain_activity(struct dk_check *t, uint64_t number)
{
  char *text = dk_arena_printf(&t->arena, "activity %" PRIu64, number);

  if (text == NULL)
    kit_trouble(t, "no memory");
  return (struct dk_item){
    .struct_size = sizeof(struct dk_item),
    .execution_id = 1,
    .activity_id = number,
    .payload = bytes(text),
  };
}

/* Any number of activities, even more than fit into the options of a commit. */
void
given_instance_with_activities(struct dk_check *t, const char *instance, uint64_t n)
{
  struct dk_turn *turn = next_turn(t, instance);
  struct dk_item *items = kit_alloc(t, &t->arena, n, sizeof(*items));
  const struct dk_item **list = kit_alloc(t, &t->arena, n, sizeof(*list));
  struct dk_event *event = kit_alloc(t, &t->arena, 1, sizeof(*event));
  struct dk_turn_result *result = kit_alloc(t, &t->arena, 1, sizeof(*result));

  for (uint64_t i = 0; i < n; i++) {
    items[i] = plain_activity(t, i + 1);
    list[i] = &items[i];
  }
  *event = (struct dk_event){next_event(turn), bytes("started")};
  *result = (struct dk_turn_result){
    .struct_size = sizeof(*result),
    .execution_id = 1,
    .status = DK_RUNNING,
    .events = event,
    .n_events = 1,
    .worker_items = list,
    .n_worker_items = n,
    .name = bytes("order"),
    .version = bytes("1.0.0"),
  };
  must(t, ack_turn(t, turn, .raw = result));
}

void
commit_cancelling(struct dk_check *t, const char *instance, uint64_t activity_id)
{
  struct dk_turn *turn = next_turn(t, instance);

  must(t, ack_turn(t, turn, .events = {{.id = next_event(turn)}},
                   .cancel_of = {{1, activity_id}},
                   .execution_id = turn->head.execution_id));
}
