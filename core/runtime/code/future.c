/* SPDX-License-Identifier: Apache-2.0 */
/* Futures, and which future gets what arrives.
 *
 * The arrivals of a name are kept in order for the waits for that name in order: the k-th open wait
 * gets the k-th arrival that is not taken.  So a wait that is dropped passes its arrival to the
 * next wait, and no arrival is lost to a wait that is never read.  See orch.h. */
#include "core/runtime/code/orch.h"

enum { FIRST_BLOCK = 16 };

/* ---- what arrives -----------------------------------------------------------------------------*/

static struct mailbox *
mailbox_of(struct dk_orch *o, struct names *names, dk_str name)
{
  void **at = orch_name(o, names, name);

  if (!*at)
    *at = orch_array(o, 1, sizeof(struct mailbox));
  return *at;
}

static void
keep_for(struct dk_future *future, struct arrival *arrival)
{
  future->arrival = arrival;
  future->position = arrival ? arrival->position : POSITION_NONE;
}

/* Gives the arrival to a wait, if there is one already. */
static void
deliver(struct mailbox *box, struct arrival *arrival)
{
  if (box->without) {
    keep_for(box->without, arrival);
    box->without = box->without->after;
    return;
  }
  if (box->last_free)
    box->last_free->next = arrival;
  else
    box->free = arrival;
  box->last_free = arrival;
}

static struct arrival *
post(struct dk_orch *o, struct names *names, dk_str name, uint64_t position, dk_str data)
{
  struct mailbox *box = mailbox_of(o, names, name);
  struct arrival *arrival = orch_array(o, 1, sizeof(*arrival));

  *arrival = (struct arrival){.data = data, .position = position};
  deliver(box, arrival);
  return arrival;
}

static void
post_queued(struct dk_orch *o, dk_str queue, uint64_t position, dk_str data)
{
  struct queued *queued = orch_array(o, 1, sizeof(*queued));

  *queued =
    (struct queued){.arrival = post(o, &o->queues, queue, position, data), .queue = queue};
  if (o->last_queued)
    o->last_queued->next = queued;
  else
    o->queued = queued;
  o->last_queued = queued;
}

void
orch_post_carried(struct dk_orch *o)
{
  const struct event *started = o->started;

  for (size_t i = 0; i < started->n_carried; i++)
    post_queued(o, started->carried[i].queue, started->id, started->carried[i].data);
}

/* What arrived in this turn is in memory that is freed with the turn. */
static dk_str
kept(struct dk_orch *o, size_t place, dk_str text)
{
  return place < o->past->n_events ? text : orch_copy(o, text);
}

void
orch_post_arrivals(struct dk_orch *o)
{
  const struct outside *next = o->posted ? o->posted->next : o->history->outside;

  for (; next; next = next->next) {
    const struct event *event = history_event(o->history, next->place);
    dk_str name = kept(o, next->place, event->name), data = kept(o, next->place, event->text);
    if (event->kind == EVENT_QUEUED)
      post_queued(o, name, event->id, data);
    else
      post(o, &o->raised, name, event->id, data);
    o->posted = next;
  }
}

/* ---- waits -------------------------------------------------------------------------*/

static bool
waits_for_arrival(const struct dk_future *future)
{
  return future->kind == EVENT_WAIT || future->kind == EVENT_DEQUEUE;
}

static struct mailbox *
mailbox_for(struct dk_orch *o, const struct dk_future *future)
{
  return mailbox_of(o, future->kind == EVENT_WAIT ? &o->raised : &o->queues, future->name);
}

static struct arrival *
pop_free(struct mailbox *box)
{
  struct arrival *arrival = box->free;

  if (arrival) {
    box->free = arrival->next;
    if (!box->free)
      box->last_free = NULL;
  }
  return arrival;
}

static void
line_up(struct mailbox *box, struct dk_future *future)
{
  future->before = box->last;
  if (box->last)
    box->last->after = future;
  else
    box->first = future;
  box->last = future;
  keep_for(future, pop_free(box));
  if (!future->arrival && !box->without)
    box->without = future;
}

static void
step_out(struct mailbox *box, struct dk_future *future)
{
  if (box->without == future)
    box->without = future->after;
  if (future->before)
    future->before->after = future->after;
  else
    box->first = future->after;
  if (future->after)
    future->after->before = future->before;
  else
    box->last = future->before;
}

/* Each later wait gets the arrival of the one before it; the arrival of the last one becomes free.
 * All arrivals that are kept are older than all that are free, so it is added at the front. */
static void
future_give_back(struct mailbox *box, struct dk_future *future)
{
  struct arrival *moving = future->arrival;

  for (struct dk_future *next = future->after; next && moving; next = next->after) {
    struct arrival *kept = next->arrival;
    keep_for(next, moving);
    moving = kept;
    if (box->without == next)
      box->without = next->after;
  }
  step_out(box, future);
  keep_for(future, NULL);
  if (!moving)
    return;
  moving->next = box->free;
  box->free = moving;
  if (!box->last_free)
    box->last_free = moving;
}

struct arrival *
orch_unclaimed(struct dk_orch *o, dk_str queue)
{
  struct mailbox *box = names_find(&o->queues, queue);

  return box ? box->free : NULL;
}

void
orch_take_unclaimed(struct dk_orch *o, dk_str queue)
{
  struct arrival *arrival = pop_free(mailbox_of(o, &o->queues, queue));

  if (arrival)
    arrival->taken = true;
}

/* ---- futures ----------------------------------------------------------------------------------*/

static struct dk_future *
new_future(struct dk_orch *o)
{
  struct future_block *block = o->futures;

  if (!block || block->used == block->size) {
    size_t size = block ? block->size * 2 : FIRST_BLOCK;
    struct future_block *added =
      orch_array(o, 1, sizeof(*added) + size * sizeof(struct dk_future));
    added->older = block;
    added->size = size;
    o->futures = block = added;
  }
  return &block->futures[block->used++];
}

struct dk_future *
orch_future(struct dk_orch *o, const struct event *command)
{
  struct dk_future *future = new_future(o);

  *future = (struct dk_future){.kind = command->kind, .id = command->id, .name = command->name,
                               .ms = command->kind == EVENT_TIMER ? command->number : 0,
                               .position = POSITION_NONE};
  if (waits_for_arrival(future))
    line_up(mailbox_for(o, future), future);
  return future;
}

uint64_t
orch_position(const struct dk_orch *o, struct dk_future *future)
{
  if (future->position == POSITION_NONE && !waits_for_arrival(future)) {
    const struct event *end = history_end_of(o->history, future->id);
    if (end)
      future->position = end->id;
  }
  return future->position;
}

/* Decided by its address alone: the memory of another turn may be freed. */
static bool
is_one_of(const struct future_block *block, const struct dk_future *future)
{
  uintptr_t first = (uintptr_t)block->futures, at = (uintptr_t)future;

  return at >= first && at - first < block->used * sizeof(struct dk_future) &&
         (at - first) % sizeof(struct dk_future) == 0;
}

struct dk_future *
orch_check_future(struct dk_orch *o, const dk_future *future)
{
  if (!future)
    orch_wrong(o, "the future is NULL; pass one that a call such as dk_activity has returned");
  for (struct future_block *block = o->futures; block; block = block->older)
    if (is_one_of(block, future))
      return &block->futures[future - block->futures];
  orch_wrong(o, "the future is of another run; do not keep futures outside of the function");
}

void
orch_take(struct dk_orch *o, struct dk_future *future)
{
  if (future->dropped || future->taken)
    return;
  future->taken = true;
  if (orch_position(o, future) > o->now)
    o->now = future->position;
  if (!waits_for_arrival(future))
    return;
  future->arrival->taken = true;
  step_out(mailbox_for(o, future), future);
}

/* A wait has ended only once it was read: before that, what is kept for it can still go to
 * another. */
static bool
is_over(const struct dk_orch *o, struct dk_future *future)
{
  if (future->taken || future->dropped)
    return true;
  return !waits_for_arrival(future) && rule_is_over(orch_position(o, future), o->now);
}

void
orch_drop(struct dk_orch *o, struct dk_future *future, enum code code)
{
  bool made;

  if (is_over(o, future))
    return;
  orch_record_command(o, &(struct event){.kind = EVENT_DROPPED, .source = future->id, .code = code},
                   &made);
  if (waits_for_arrival(future))
    future_give_back(mailbox_for(o, future), future);
  future->dropped = true;
}
