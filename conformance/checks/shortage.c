/* SPDX-License-Identifier: Apache-2.0 */
/* ERR-1, ABI-7: memory runs out, at each request for it that the provider makes in an operation,
 * once or from then on.  The operation may answer that it should be tried again, and nothing else;
 * made again it succeeds, at once, and in the end it was done once.
 *
 * The operations make one story, and those of durakit.admin/1 another one.  Each is repeated for
 * each of its calls and for each request. */
#include <stdio.h>

#include "conformance/checks/admin.h"
#include "conformance/kit/engine.h"

/* Which call of the story meets the shortage, and where. */
struct poverty {
  struct dk_check *t;
  uint32_t victim, at; /* the call, and the request for memory in it; from 1 */
  bool lasts;
  uint32_t call;       /* the one that runs, or has run */
  int tries;
  bool is_doubtful;    /* it may have been done by a try before */
  uint32_t seen;       /* requests of the victim */
};

enum { MOST_TRIES = 5 };

static void
next_call(struct poverty *p)
{
  p->call++;
  p->tries = 0;
  p->is_doubtful = false;
}

/* A shortage that lasts comes in a handle that has done nothing yet, and so keeps nothing that it
 * would ask for only once; but not where that would take minutes: under Valgrind, and with a
 * server. */
static void
before_try(struct poverty *p)
{
  if (p->call != p->victim || p->tries > 0)
    return;
  bool is_quick = provider(p->t)->durable > 0 && provider(p->t)->shared < 3;
  if (p->lasts && is_quick && !kit_under_memcheck()) {
    close_handle(p->t, NULL);
    open_handle(p->t, NULL);
  }
  run_out_of_memory(p->t, p->at, p->lasts);
}

/* True: the call is to be made once more. */
static bool
after_try(struct poverty *p, const char *what, dk_status status, dk_status if_done)
{
  bool is_victim = p->call == p->victim && p->tries == 0;
  bool may_fail = is_victim || (p->tries > 0 && p->tries < MOST_TRIES);

  if (is_victim)
    p->seen = requests_for_memory(p->t);
  if (status == DK_OK || (p->is_doubtful && status == if_done))
    return false;
  expect(p->t, may_fail && (dk_status_class(status) == 1 || dk_status_class(status) == 3),
         "%s is answered with DK_OK; or, where memory runs out in it (request %u%s), with a status "
         "that it may be tried again, and then with DK_OK", what, p->at,
         p->lasts ? " and all later ones" : "");
  p->is_doubtful = p->is_doubtful || dk_status_class(status) == 3;
  p->tries++;
  return true;
}

/* A fetch whose outcome is not known may have locked what is there. */
static dk_status
fetched(struct poverty *p, dk_status status)
{
  if (dk_status_class(status) == 3)
    advance(p->t, LEASE_MS);
  return status;
}

/* Makes a call of the story; `if_done` is the answer to one that was done by an earlier try, whose
 * outcome is not known. */
#define make(p, what, call_, if_done)                                                              \
  do {                                                                                             \
    dk_status answer_;                                                                             \
    next_call(p);                                                                                  \
    do {                                                                                           \
      before_try(p);                                                                               \
      answer_ = (call_);                                                                           \
    } while (after_try(p, what, answer_, if_done));                                                \
  } while (0)

/* ---- the story ------------------------------------------------------------------------------- */

static struct dk_turn *
told_turn(struct poverty *p, const char *id)
{
  struct dk_turn *turn = NULL;

  make(p, "a fetch of the turn that is there", fetched(p, try_fetch_turn(p->t, &turn)), DK_OK);
  expect_text(p->t, turn->head.instance, id, "instance of the turn");
  return turn;
}

static struct dk_work_item *
told_work(struct poverty *p, uint64_t activity_id)
{
  struct dk_works *works = NULL;

  make(p, "a fetch of the activity that is there", fetched(p, try_fetch_work(p->t, &works)), DK_OK);
  expect_equal(p->t, works->n_items, 1, "items of the fetch");
  expect_equal(p->t, works->items[0].item.activity_id, activity_id, "the activity");
  return &works->items[0];
}

static void
tell_turns(struct poverty *p, const char *id)
{
  struct dk_check *t = p->t;

  make(p, "the enqueue", enqueue(t, id, .id = "first", .repeated = p->tries > 0), DK_DUPLICATE);
  struct dk_turn *turn = told_turn(p, id);
  make(p, "renew of the turn", renew_turn(t, turn->head.lock_token, .ms = 2 * LEASE_MS), DK_OK);
  make(p, "abandon of the turn", abandon_turn(t, turn->head.lock_token), DK_LOCK_LOST);
  turn = told_turn(p, id);
  expect_ids(t, turn, "first");
  make(p, "the commit",
       ack_turn(t, turn, .repeated = p->tries > 0, .status = DK_RUNNING, .owner = "me",
                .events = {{1}, {2}}, .schedule = {{1}, {2, .delay_ms = 4 * LEASE_MS}},
                .send = {{id, .id = "second"}, {id, .id = "dropped", .delay_ms = 4 * LEASE_MS}}),
       DK_OK);
}

static void
tell_work(struct poverty *p, const char *id)
{
  struct dk_check *t = p->t;

  struct dk_work_item *work = told_work(p, 1);
  make(p, "renew of the activity", renew_work(t, work->work.lock_token, .ms = 2 * LEASE_MS), DK_OK);
  make(p, "abandon of the activity", abandon_work(t, work->work.lock_token), DK_LOCK_LOST);
  work = told_work(p, 1);
  make(p, "ack of the activity",
       ack_work(t, work->work.lock_token, .to = id, .id = "done", .repeated = p->tries > 0),
       DK_LOCK_LOST);
  expect_no_work(t);
}

static void
tell_end(struct poverty *p, const char *id)
{
  struct dk_check *t = p->t;
  struct dk_commit_outcome outcome = {.reported = 0};

  struct dk_turn *turn = told_turn(p, id);
  expect_equal(t, turn->n_events, 2, "events of the turn");
  expect_ids(t, turn, "second", "done");
  make(p, "the last commit",
       ack_turn(t, turn, .repeated = p->tries > 0, .status = DK_COMPLETED, .output = "result",
                .events = {{3}}, .cancel = {2}, .cancel_messages = {"dropped"},
                .ret_outcome = &outcome),
       DK_OK);
  make(p, "read_history", try_read_history(t, id), DK_OK);
  struct dk_history *history = read_history(t, id);
  expect_equal(t, history->n_events, 3, "events of the history");
  expect_text(t, history->execution.output, "result", "output");
}

static void
tell_operations(struct poverty *p, const char *id)
{
  tell_turns(p, id);
  tell_work(p, id);
  tell_end(p, id);
  advance(p->t, 8 * LEASE_MS);
  expect_no_turn(p->t);
  expect_no_work(p->t);
}

static void
tell_admin(struct poverty *p, const char *id)
{
  struct dk_check *t = p->t;

  given_root(t, id, DK_COMPLETED);
  make(p, "list_instances", try_list_instances(t), DK_OK);
  make(p, "list_executions", try_list_executions(t, id), DK_OK);
  make(p, "read_messages", try_read_messages(t, id), DK_OK);
  make(p, "read_stats", try_read_stats(t), DK_OK);
  make(p, "prune_executions", prune(t, id, .keep = 1), DK_OK);
  make(p, "delete_instances", delete_instances(t, .ids = {id}), DK_NOT_FOUND);
  expect(t, !read_history(t, id)->found, "the deleted instance is no longer there");
  given_root(t, id, DK_COMPLETED);
  make(p, "delete_matching", delete_matching(t, .only = {.ids = {id}}), DK_OK);
  expect(t, !read_history(t, id)->found, "the instance that the filter selects is deleted");
}

/* ---- through all calls ----------------------------------------------------------------------- */

typedef void story_fn(struct poverty *p, const char *id);

/* Once for each of its calls as the victim, and each request in it.  Gives how many there were. */
static uint32_t
tell_again_and_again(struct dk_check *t, story_fn *story)
{
  struct poverty p = {.t = t, .call = 1};
  uint32_t all = 0;
  char id[64];

  for (p.victim = 1; p.victim <= p.call; p.victim++)
    for (int lasts = 0; lasts < 2; lasts++) {
      p.lasts = lasts;
      p.seen = p.at = 0;
      while (p.seen >= p.at) { /* it was reached */
        p.at = further_request(t, p.at);
        p.call = 0;
        snprintf(id, sizeof id, "inst-%u-%d-%u", p.victim, lasts, p.at);
        story(&p, id);
        all += p.seen;
      }
    }
  return all;
}

/* ERR-1: in whichever request of an operation memory runs out. */
void
err_no_memory(struct dk_check *t)
{
  uint32_t all = 0;

  if (provider(t)->runtime & DK_RUNTIME_ABORTS)
    skip_check(t, "does not judge a provider whose library ends the process where memory runs out "
               "(DK_RUNTIME_ABORTS)");
  if (dk_store_extension(store_of(t, NULL), DK_ADMIN) != NULL)
    all += tell_again_and_again(t, tell_admin);
  all += tell_again_and_again(t, tell_operations);
  if (all == 0)
    skip_check(t, "does not see how this provider asks for memory: not by functions of the C "
               "library that the kit can stand in for (malloc, calloc, realloc, ...)");
}
