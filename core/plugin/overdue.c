/* SPDX-License-Identifier: Apache-2.0 */
/* Leases that have ended when a fetch returns: a provider checks a lease when it hands it up, but
 * what follows (the sync of a slow disk, the transfer of an answer) may outlast it.  The caller is
 * not given such a lease, only the information which one it was.  Owns nothing. */
#include "core/plugin/call.h"
#include "core/plugin/store.h"

static dk_status
overdue_refuse(struct dk_call *call, const char *what, struct dk_bytes instance, int64_t late_ms,
               int64_t lock_ms)
{
  dk_status status = dk_call_refuse(
    call, DK_BUSY,
    "%s: %s of instance %.*s came too late: its lease of %lld ms had ended %lld ms before; it can "
    "be fetched again; give longer leases, or a faster store",
    call->operation->name, what, (int)(instance.len < 255 ? instance.len : 255), instance.ptr,
    (long long)lock_ms, (long long)late_ms);

  call->caller->failure.by_host = 0; /* the provider was called */
  return status;
}

static dk_status
judge_turn(struct dk_call *call, int64_t now)
{
  const struct dk_turn *turn = call->results.turn;

  if (turn->deadline > now)
    return DK_OK;
  call->caller->overdue.turn = turn;
  return overdue_refuse(call, "the turn", turn->head.instance, now - turn->deadline,
                        call->request->fetch_turn->lock_ms);
}

/* Moves those that have ended behind the others; returns the number of the others. */
static size_t
sort_out(struct dk_work_item *items, size_t n, int64_t now)
{
  size_t n_live = n;

  for (size_t i = 0; i < n_live;) {
    if (items[i].deadline > now) {
      i++;
      continue;
    }
    struct dk_work_item over = items[i];
    items[i] = items[--n_live];
    items[n_live] = over;
  }
  for (size_t i = 0; i < n && n_live < n; i++)
    items[i].work.item = &items[i].item;
  return n_live;
}

static dk_status
judge_works(struct dk_call *call, int64_t now)
{
  struct dk_works *works = call->results.works;
  size_t n_live = sort_out(works->items, works->n_items, now);
  struct dk_overdue *overdue = &call->caller->overdue;

  overdue->items = works->items + n_live;
  overdue->n_items = works->n_items - n_live;
  works->n_items = n_live;
  if (n_live > 0)
    return DK_OK;
  return overdue_refuse(call, "the activity", overdue->items[0].item.instance,
                        now - overdue->items[0].deadline, call->request->fetch_work->lock_ms);
}

dk_status
dk_overdue_judge(struct dk_call *call)
{
  uint32_t takes = call->operation->takes;

  if (!(takes & (DK_TAKES_TURN | DK_TAKES_WORK)))
    return DK_OK;
  int64_t now = dk_store_now(call->store);
  return takes & DK_TAKES_TURN ? judge_turn(call, now) : judge_works(call, now);
}
