/* SPDX-License-Identifier: Apache-2.0 */
/* QUEUE-9, ACK-1, WORK-4, DEL-4: a process is killed in an operation, at each call by which it
 * changes or syncs a file, one after the other; then the store is opened again.  The operation is
 * there whole or not at all, and whole if it was answered; and made once more it has no second
 * effect. ERR-1: or such a call fails, or one by which it reads a file, and the process lives
 * on. */
#include "conformance/checks/admin.h"
#include "conformance/kit/engine.h"

#include <errno.h>
#include <stdio.h>

/* One operation: what it needs, how it is made, and what it leaves. */
struct scene {
  const char *name;
  bool is_admin;        /* of durakit.admin/1, if it is declared */
  /* Gives the token, if the operation takes one. */
  struct dk_bytes (*given)(struct dk_check *t, const char *id);
  dk_status (*act)(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
                   bool repeated);
  /* True: it is there, whole.  False: nothing of it is.  Half of it ends the check. */
  bool (*is_there)(struct dk_check *t, const char *id);
  /* Takes what is left, so that the next round finds no turn and no work. */
  void (*clear)(struct dk_check *t, const char *id);
};

static void
take_everything(struct dk_check *t)
{
  struct dk_turn *turn = NULL;
  struct dk_works *works = NULL;

  advance(t, 2 * LEASE_MS);
  while (try_fetch_turn(t, &turn) == DK_OK)
    must(t, ack_turn(t, turn, .empty = true));
  while (try_fetch_work(t, &works) == DK_OK)
    must(t, ack_work(t, works->items[0].work.lock_token));
}

static void
clear_all(struct dk_check *t, const char *id)
{
  (void)id;
  take_everything(t);
}

/* So large that a write of it can be torn. */
static struct dk_bytes
large(struct dk_check *t)
{
  enum { LARGE = 3000 };

  return filled(t, LARGE, 'p');
}

/* ---- enqueue --------------------------------------------------------------------------------- */

static struct dk_bytes
nothing_given(struct dk_check *t, const char *id)
{
  (void)t;
  (void)id;
  return bytes(NULL);
}

static dk_status
make_enqueue(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
             bool repeated)
{
  (void)token;
  dk_status status = enqueue(t, id, .on = on, .id = "once", .bytes = large(t),
                             .repeated = repeated);
  return repeated && status == DK_DUPLICATE ? DK_OK : status;
}

static bool
is_enqueued(struct dk_check *t, const char *id)
{
  struct dk_turn *turn = NULL;
  dk_status status = try_fetch_turn(t, &turn);

  if (status == DK_NOTHING)
    return false;
  expect_status(t, status, DK_OK);
  expect_text(t, turn->head.instance, id, "instance of the message");
  expect_ids(t, turn, "once");
  expect_bytes(t, turn->messages[0].payload, large(t), "payload of the message");
  must(t, abandon_turn(t, turn->head.lock_token));
  return true;
}

/* ---- commit ---------------------------------------------------------------------------------- */

static struct dk_bytes
given_turn(struct dk_check *t, const char *id)
{
  given_instance_with_activities(t, id, 2);
  return next_turn(t, id)->head.lock_token;
}

static dk_status
make_commit(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
            bool repeated)
{
  (void)id;
  return ack_token(t, token, .on = on, .repeated = repeated, .events = {{2}, {3}},
                   .schedule = {{7, .bytes = large(t)}, {8}}, .cancel = {2}, .send = {{"sink"}},
                   .status = DK_COMPLETED, .output = "result");
}

static bool
is_committed(struct dk_check *t, const char *id)
{
  struct dk_history *history = read_history(t, id);
  bool there = history->execution.status == DK_COMPLETED;
  struct taken_work work = take_work(t);
  struct dk_turn *turn = NULL;

  expect_equal(t, history->n_events, there ? 3 : 1, "events, where the status is %s",
               there ? "completed" : "running");
  expect_text(t, history->execution.output, there ? "result" : NULL, "output");
  expect_equal(t, work.n, there ? 3 : 2, "activities, as the history says");
  expect(t, (item_of(&work, id, 1, 2) == NULL) == there, "activity 2, as the history says");
  expect(t, (item_of(&work, id, 1, 7) != NULL) == there, "activity 7, as the history says");
  for (size_t i = 0; i < work.n; i++)
    must(t, abandon_work(t, work.items[i]->work.lock_token, .ignore_attempt = true));
  expect_status(t, try_fetch_turn(t, &turn), there ? DK_OK : DK_NOTHING);
  if (turn != NULL) {
    expect_text(t, turn->head.instance, "sink", "the instance that the commit has sent to");
    must(t, abandon_turn(t, turn->head.lock_token));
  }
  return there;
}

/* ---- ack of work ----------------------------------------------------------------------------- */

static struct dk_bytes
given_work(struct dk_check *t, const char *id)
{
  given_instance_with_activities(t, id, 1);
  return fetch_work(t)->work.lock_token;
}

static dk_status
make_ack(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
         bool repeated)
{
  (void)id;
  dk_status status = ack_work(t, token, .on = on, .to = "sink", .repeated = repeated);
  return repeated && status == DK_LOCK_LOST ? DK_OK : status;
}

/* Its completion is stored. */
static bool
is_acked(struct dk_check *t, const char *id)
{
  struct dk_turn *turn = NULL;
  dk_status status = try_fetch_turn(t, &turn);

  (void)id;
  if (turn != NULL) {
    expect_text(t, turn->head.instance, "sink", "the instance that has the completion");
    expect_equal(t, turn->n_messages, 1, "completions");
    must(t, abandon_turn(t, turn->head.lock_token));
  }
  return status == DK_OK;
}

/* When the lease has ended: no activity, and one completion. */
static void
clear_ack(struct dk_check *t, const char *id)
{
  struct dk_works *works = NULL;

  advance(t, 2 * LEASE_MS);
  expect_status(t, try_fetch_work(t, &works), DK_NOTHING);
  expect(t, is_acked(t, id), "the activity was acknowledged, and its completion is there");
  take_everything(t);
}

/* ---- delete and prune ------------------------------------------------------------------------ */

struct other {
  char id[80];
};

static struct other
other_than(const char *id)
{
  struct other other;

  snprintf(other.id, sizeof(other.id), "%s-other", id);
  return other;
}

static struct dk_bytes
given_two_ended(struct dk_check *t, const char *id)
{
  given_root(t, id, DK_COMPLETED);
  given_root(t, other_than(id).id, DK_COMPLETED);
  return bytes(NULL);
}

static dk_status
make_delete(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
            bool repeated)
{
  (void)token;
  dk_status status = delete_instances(t, .on = on, .ids = {id, other_than(id).id});
  return repeated && status == DK_NOT_FOUND ? DK_OK : status;
}

/* DEL-4: both or none. */
static bool
are_deleted(struct dk_check *t, const char *id)
{
  bool is_there = read_history(t, id)->found;

  expect_equal(t, read_history(t, other_than(id).id)->found, is_there,
               "the other instance of the list is there, as the first one is");
  return !is_there;
}

static void
clear_none(struct dk_check *t, const char *id)
{
  (void)t;
  (void)id;
}

static struct dk_bytes
given_three_executions(struct dk_check *t, const char *id)
{
  given_executions(t, id, 3, 0);
  return bytes(NULL);
}

static dk_status
make_prune(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
           bool repeated)
{
  (void)token;
  (void)repeated;
  return prune(t, id, .on = on, .keep = 1);
}

static bool
is_pruned(struct dk_check *t, const char *id)
{
  expect_equal(t, read_history(t, id)->execution.execution_id, 3, "the current execution");
  return list_executions(t, id)->n_items == 1;
}

static void
clear_pruned(struct dk_check *t, const char *id)
{
  must(t, delete_instances(t, .ids = {id}, .force = true));
}

/* ---- through all of them --------------------------------------------------------------------- */

static const struct scene scenes[] = {
  {"enqueue_for_orchestrator", false, nothing_given, make_enqueue, is_enqueued, clear_all},
  {"ack_orchestration_item", false, given_turn, make_commit, is_committed, clear_all},
  {"ack_work_item", false, given_work, make_ack, is_acked, clear_ack},
  {"delete_instances", true, given_two_ended, make_delete, are_deleted, clear_none},
  {"prune_executions", true, given_three_executions, make_prune, is_pruned, clear_pruned},
};
enum { SCENES = sizeof(scenes) / sizeof(scenes[0]), MOST_CALLS = 200 };

static bool
is_for(struct dk_check *t, const struct scene *scene)
{
  return !scene->is_admin || dk_store_extension(store_of(t, NULL), DK_ADMIN) != NULL;
}

/* How many of four ways to fail are tried, the last two of which last. */
static size_t
ways_for(const struct scene *scene)
{
  return scene->is_admin || kit_under_memcheck() ? 2 : 4;
}

/* Under Valgrind, where a round takes fifty times as long and a killed process is not judged, some
 * of the calls are enough. */
static uint32_t
rounds_to_next(void)
{
  enum { AMONG = 12 };

  return kit_under_memcheck() ? AMONG : 1;
}

/* One round: killed at the n-th call, or with n 0 after the answer.  Gives what was seen. */
static struct last_call
kill_once(struct dk_check *t, struct actor *victim, const struct scene *scene, const char *id,
          enum end_of_process how, uint32_t n)
{
  struct dk_bytes token = scene->given(t, id);

  close_handle(t, NULL);
  kill_in_next_call(t, victim, how, n);
  scene->act(t, victim, id, token, false);
  struct last_call last = last_call_of(t, victim);
  if (last.answered)
    say_in_trace(t, "it has answered, after %u writes and %u syncs, and is killed", last.writes,
                 last.syncs);
  else
    say_in_trace(t, "it is killed at call %u: %s", last.calls, last.at);
  open_handle(t, NULL);
  if (last.answered && how != FAILED)
    expect_status(t, last.status, DK_OK);
  bool there = scene->is_there(t, id), is_refused = dk_status_class(last.status) == 1;
  expect(t, there || !last.answered || last.status != DK_OK,
         "%s answered DK_OK, its process was killed then, and what it did is lost", scene->name);
  expect(t, !there || !last.answered || !is_refused,
         "%s answered that it may be tried again, because call %u failed; its process was killed "
         "then, and what it was to do is done all the same", scene->name, n);
  expect_status(t, scene->act(t, NULL, id, token, true), DK_OK);
  expect(t, scene->is_there(t, id), "%s was made again, and is there", scene->name);
  scene->clear(t, id);
  return last;
}

/* At each call: as many as the operation makes, which is seen when it is not killed in one. */
static void
kill_in_each_call(struct dk_check *t, enum end_of_process how)
{
  struct actor *victim = another_process(t);
  uint32_t seen = 0;

  for (size_t s = 0; s < SCENES && is_for(t, &scenes[s]); s++) {
    if (scenes[s].is_admin && kit_under_memcheck())
      break; /* what is killed is not judged there, and has been tried enough */
    char id[64];
    uint32_t n = how == FAILED ? 1 : 0; /* none that fails: the same as none that kills */
    bool is_reached;
    do {
      snprintf(id, sizeof(id), "inst-%zu-%u", s, n);
      struct last_call last = kill_once(t, victim, &scenes[s], id, how, n);
      is_reached = n == 0 || (how == FAILED ? last.calls >= n : !last.answered);
      is_reached = is_reached && last.calls > 0;
      seen += last.calls;
      n += n == 0 ? 1 : rounds_to_next();
    } while (is_reached && n < MOST_CALLS);
  }
  if (seen == 0)
    skip_check(t, "does not see how this provider writes: not by functions of the C library that "
               "the kit can stand in for (write, pwrite, fsync, ...)");
}

/* QUEUE-9: killed in any of its calls, a process leaves an operation whole, or nothing of it. */
void
disk_killed_at_each_call(struct dk_check *t)
{
  kill_in_each_call(t, KILLED);
}

/* QUEUE-9: the same, and all that was not synced is lost. */
void
disk_power_cut(struct dk_check *t)
{
  kill_in_each_call(t, POWER_CUT);
}

/* QUEUE-9: the same, in the midst of a write. */
void
disk_torn_write(struct dk_check *t)
{
  kill_in_each_call(t, TORN);
}

/* ERR-1: the same, where the call fails, and the process is killed when the operation has answered:
 * what was answered as not done is not there when the store has been recovered. */
void
disk_failed_then_killed(struct dk_check *t)
{
  kill_in_each_call(t, FAILED);
}

/* ---- the store itself ------------------------------------------------------------------------ */

/* ABI-13: whatever was there of a store when its making ended, it is made by the next open. */
static void
kill_while_made(struct dk_check *t, enum end_of_process how)
{
  struct actor *maker = another_process(t);
  struct last_call last = {.calls = 1};

  for (uint32_t n = 1; !last.answered && last.calls > 0 && n < MOST_CALLS; n += rounds_to_next()) {
    close_handle(t, NULL);
    must(t, destroy_store(t, NULL));
    kill_in_next_call(t, maker, how, n);
    open_handle(t, maker);
    last = last_call_of(t, maker);
    say_in_trace(t, "it is killed at call %u of its open: %s", last.calls, last.at);
    open_handle(t, NULL);
    must(t, enqueue(t, "inst", .bytes = large(t)));
    expect_bytes(t, the_turn_of(t, "inst")->messages[0].payload, large(t), "payload");
  }
  if (last.calls == 0)
    skip_check(t, "does not see how this provider writes");
}

/* ABI-13: killed at any call that makes a store. */
void
disk_killed_while_made(struct dk_check *t)
{
  kill_while_made(t, KILLED);
}

/* ---- a disk that is full or broken ----------------------------------------------------------- */

/* As a runtime would: what may be tried again is, and what may have happened is repeated. */
static void
repeat_until_done(struct dk_check *t, struct actor *worker, const struct scene *scene,
                  const char *id, struct dk_bytes token)
{
  enum { FEW = 5 };
  dk_status status = DK_BUSY;

  for (int tries = 0; tries < FEW && status != DK_OK; tries++) {
    status = scene->act(t, worker, id, token, true);
    expect(t, status == DK_OK || dk_status_class(status) == 1 || dk_status_class(status) == 3,
           "%s, made again when the disk was well, may say that it should be tried again, and "
           "nothing else", scene->name);
  }
  expect_status(t, status, DK_OK);
}

/* One round; true: the call that was to fail was reached. */
static bool
fail_once(struct dk_check *t, struct actor *worker, const struct scene *scene, const char *id,
          int error, bool lasts, uint32_t n)
{
  struct dk_bytes token = scene->given(t, id);

  close_handle(t, NULL);
  open_handle(t, worker);
  fail_in_next_call(t, worker, (struct fault){CHANGES_FILE, error, lasts, n});
  dk_status status = scene->act(t, worker, id, token, false);
  struct last_call last = last_call_of(t, worker);
  say_in_trace(t, "call %u was to fail, of %u: %s", n, last.calls, last.at);
  expect(t, status == DK_OK || dk_status_class(status) == 1 || dk_status_class(status) == 3,
         "%s met a disk that is %s (%s): it may be tried again, or its outcome is unknown",
         scene->name, error == ENOSPC ? "full" : "broken", last.at);
  repeat_until_done(t, worker, scene, id, token);
  close_handle(t, worker);
  open_handle(t, NULL);
  expect(t, scene->is_there(t, id), "%s was made again, and is there", scene->name);
  scene->clear(t, id);
  return last.calls >= n;
}

/* ERR-1: what fails because of the disk may be tried again; nothing is half done, and when the disk
 * is well the same handle works. */
void
disk_full_or_broken(struct dk_check *t)
{
  static const int errors[] = {ENOSPC, EIO};
  struct actor *worker = another_process(t);

  for (size_t s = 0; s < SCENES && is_for(t, &scenes[s]); s++) {
    for (size_t e = 0; e < ways_for(&scenes[s]); e++) {
      char id[64];
      uint32_t n = 1;
      for (bool reached = true; reached && n < MOST_CALLS; n += rounds_to_next()) {
        snprintf(id, sizeof(id), "inst-%zu-%zu-%u", s, e, n);
        reached = fail_once(t, worker, &scenes[s], id, errors[e % 2], e >= 2, n);
      }
    }
  }
}

/* ---- a store that cannot be read ------------------------------------------------------------- */

/* A fetch keeps what it was given: a lease that a failed one has kept is missed by the next. */
static dk_status
look_for_turn(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
              bool repeated)
{
  struct dk_turn *turn = NULL;
  dk_status status = try_fetch_turn(t, &turn, .on = on);

  (void)token;
  (void)repeated;
  if (status == DK_OK) {
    expect_text(t, turn->head.instance, id, "instance of the message");
    expect_bytes(t, turn->messages[0].payload, large(t), "payload of the message");
  }
  return status;
}

static struct dk_bytes
given_message(struct dk_check *t, const char *id)
{
  must(t, enqueue(t, id, .id = "once", .bytes = large(t)));
  return bytes(NULL);
}

static bool
is_enqueued_still(struct dk_check *t, const char *id)
{
  advance(t, 2 * LEASE_MS);
  return is_enqueued(t, id);
}

static dk_status
look_for_work(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
              bool repeated)
{
  struct dk_works *works = NULL;
  dk_status status = try_fetch_work(t, &works, .on = on);

  (void)token;
  (void)repeated;
  if (status == DK_OK)
    expect_text(t, works->items[0].item.instance, id, "instance of the activity");
  return status;
}

static dk_status
look_at_history(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
                bool repeated)
{
  (void)token;
  (void)repeated;
  return try_read_history(t, id, .on = on);
}

static struct dk_bytes
given_activity(struct dk_check *t, const char *id)
{
  given_instance_with_activities(t, id, 1);
  return bytes(NULL);
}

static bool
has_activity_still(struct dk_check *t, const char *id)
{
  advance(t, 2 * LEASE_MS);
  the_item_of(t, id, 1);
  return read_history(t, id)->n_events == 1;
}

static dk_status
look_at_list(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
             bool repeated)
{
  dk_status status = try_list_instances(t, .on = on, .only = {.ids = {id}});

  (void)token;
  (void)repeated;
  if (status == DK_OK)
    expect_listed(t, finished_instances(t, on), id);
  return status;
}

static dk_status
look_at_executions(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
                   bool repeated)
{
  dk_status status = try_list_executions(t, id, .on = on);

  (void)token;
  (void)repeated;
  if (status == DK_OK)
    expect_equal(t, finished_executions(t, on)->n_items, 1, "executions");
  return status;
}

static dk_status
look_at_messages(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
                 bool repeated)
{
  dk_status status = try_read_messages(t, id, .on = on);

  (void)token;
  (void)repeated;
  if (status == DK_OK)
    expect_equal(t, finished_messages(t, on)->n_items, 1, "messages");
  return status;
}

static dk_status
look_at_counts(struct dk_check *t, struct actor *on, const char *id, struct dk_bytes token,
               bool repeated)
{
  dk_status status = try_read_stats(t, .on = on);

  (void)id;
  (void)token;
  (void)repeated;
  if (status == DK_OK)
    expect_equal(t, finished_stats(t, on)->activities_ready, 1, "activities that are ready");
  return status;
}

static const struct scene looks[] = {
  {"fetch_orchestration_item", false, given_message, look_for_turn, is_enqueued_still, clear_all},
  {"fetch_work_item", false, given_activity, look_for_work, has_activity_still, clear_all},
  {"read_history", false, given_activity, look_at_history, has_activity_still, clear_all},
  {"list_instances", true, given_activity, look_at_list, has_activity_still, clear_all},
  {"list_executions", true, given_activity, look_at_executions, has_activity_still, clear_all},
  {"read_messages", true, given_message, look_at_messages, is_enqueued_still, clear_all},
  {"read_stats", true, given_activity, look_at_counts, has_activity_still, clear_all},
};
enum { LOOKS = sizeof(looks) / sizeof(looks[0]) };

/* Its disk does not answer in time, which does not last; EIO might mean a sector that is lost for
 * good.  Or it has no descriptor left to open a file. */
static const struct fault unread[] = {
  {READS_FILE, ETIMEDOUT, .lasts = false},
  {ASKS_DESCRIPTOR, EMFILE, .lasts = false},
  {READS_FILE, ETIMEDOUT, .lasts = true},
  {ASKS_DESCRIPTOR, EMFILE, .lasts = true},
};

/* One round: the worker has the store open while another handle writes what it has to read.  Gives
 * how many calls there were that might have failed. */
static uint32_t
fail_to_read(struct dk_check *t, struct actor *worker, const struct scene *scene, const char *id,
             struct fault fault)
{
  open_handle(t, worker);
  struct dk_bytes token = scene->given(t, id);
  fail_in_next_call(t, worker, fault);
  dk_status status = scene->act(t, worker, id, token, false);
  struct last_call last = last_call_of(t, worker);
  say_in_trace(t, "call %u was to fail, of %u: %s", fault.n, last.calls, last.at);
  expect(t, status == DK_OK || dk_status_class(status) == 1 || dk_status_class(status) == 3,
         "%s could not read the store (%s): it may be tried again, or its outcome is unknown",
         scene->name, last.at);
  if (status != DK_OK)
    repeat_until_done(t, worker, scene, id, token);
  close_handle(t, worker);
  expect(t, scene->is_there(t, id), "%s was made again, and is there", scene->name);
  scene->clear(t, id);
  return last.calls;
}

/* ERR-1: what fails because the store cannot be read may be tried again; nothing is half done, no
 * lease is kept, and when it can be read again the same handle works. */
void
disk_unreadable(struct dk_check *t)
{
  struct actor *worker = another_process(t);
  uint32_t seen = 0;

  for (size_t s = 0; s < SCENES + LOOKS; s++) {
    const struct scene *scene = s < SCENES ? &scenes[s] : &looks[s - SCENES];
    for (size_t w = 0; w < ways_for(scene) && is_for(t, scene); w++) {
      struct fault fault = unread[w];
      fault.n = 1;
      for (bool reached = true; reached && fault.n < MOST_CALLS; fault.n += rounds_to_next()) {
        char id[64];
        snprintf(id, sizeof(id), "inst-%zu-%zu-%u", s, w, fault.n);
        uint32_t calls = fail_to_read(t, worker, scene, id, fault);
        seen += calls;
        reached = calls >= fault.n;
      }
    }
  }
  if (seen == 0)
    skip_check(t, "does not see how this provider reads: not by functions of the C library that "
               "the kit can stand in for (read, pread, ...)");
}
