/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of model-full: what it keeps of key-values and custom statuses, and which caller is given
 * the items of a session, to the millisecond. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/model/extension.h"
#include "conformance/model/test-handle.h"
#include "conformance/tap/tap.h"

enum { HOLD = 500 };

/* ---- helpers --------------------------------------------------------------------------------- */

static struct dk_turn *
fetch_as(struct handle *h, const char *owner)
{
  const struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE,
                                        .owner = text(owner)};
  struct dk_turn *turn = NULL;

  dk_caller_reset(h->caller);
  if (dk_store_fetch_orchestration_item(h->store, h->caller, &request, &turn) != DK_OK)
    BAIL_OUT("no turn: %s", dk_caller_failure(h->caller)->text);
  return turn;
}

/* A turn that commits this result in the name of this owner. */
static dk_status
commit_as(struct handle *h, const char *owner, struct dk_turn_result result)
{
  struct dk_commit_outcome outcome;
  static int n;
  char id[16];

  snprintf(id, sizeof id, "m-%d", n++);
  if (enqueue(h, "inst", id) != DK_OK)
    BAIL_OUT("no message: %s", dk_caller_failure(h->caller)->text);
  const struct dk_turn *turn = fetch_as(h, NULL);
  struct dk_bytes token = kept(turn->head.lock_token);
  result.struct_size = sizeof result;
  if (!result.execution_id)
    result.execution_id = 1;
  result.name = text("order");
  result.version = text("1");
  result.owner = text(owner);
  dk_status status =
    dk_store_ack_orchestration_item(h->store, h->caller, token, &result, &outcome);
  if (status != DK_OK)
    dk_store_abandon_orchestration_item(h->store, h->caller, token, 0, 0);
  return status;
}
#define COMMIT(h, owner, ...) commit_as(h, owner, (struct dk_turn_result){__VA_ARGS__})

/* The keys that a fetch by this owner brings: "a=1@5 b=2@6 ". */
static const char *
keys_for(struct handle *h, const char *owner)
{
  static char words[256];
  size_t length = 0;

  words[0] = '\0';
  enqueue(h, "inst", "look");
  const struct dk_turn *turn = fetch_as(h, owner);
  for (size_t i = 0; i < turn->n_kv && length < sizeof words; i++)
    length += (size_t)snprintf(words + length, sizeof words - length, "%.*s=%.*s@%d ",
                               (int)turn->kv[i].key.len, turn->kv[i].key.ptr,
                               (int)turn->kv[i].value.len, turn->kv[i].value.ptr,
                               (int)turn->kv[i].updated_at);
  dk_store_abandon_orchestration_item(h->store, h->caller, kept(turn->head.lock_token), 0, 1);
  return words;
}

static struct dk_kv_change
set(const char *key, const char *value, int64_t at)
{
  return (struct dk_kv_change){
    .op = DK_KV_SET, .key = text(key), .value = text(value), .updated_at = at};
}

/* ---- key-values ------------------------------------------------------------------------------ */

static void
keys(struct handle *h)
{
  const struct dk_kv_change first[] = {set("b", "2", 6), set("a", "1", 5), set("ab", "", 7)};
  const struct dk_kv_change second[] = {set("c", "3", 8), {.op = DK_KV_CLEAR, .key = text("b")},
                                        {.op = DK_KV_CLEAR, .key = text("x")}, set("a", "9", 9)};
  const struct dk_event stored = {1, text("again")};

  cmp_ok(COMMIT(h, "me", .kv = first, .n_kv = 3, .events = &stored, .n_events = 1), "==", DK_OK,
         "three keys are set by the first commit");
  is(keys_for(h, "me"), "", "the owner of that commit does not get them");
  is(keys_for(h, "you"), "a=1@5 ab=@7 b=2@6 ", "another owner does, in order");
  is(keys_for(h, NULL), "a=1@5 ab=@7 b=2@6 ", "and so does a fetch without an owner");
  cmp_ok(COMMIT(h, "me", .kv = second, .n_kv = 4, .events = &stored, .n_events = 1), "==",
         DK_DUPLICATE, "what is refused");
  is(keys_for(h, "you"), "a=1@5 ab=@7 b=2@6 ", "changes no key");
  cmp_ok(COMMIT(h, "me", .kv = second, .n_kv = 4, .execution_id = 2), "==", DK_OK,
         "keys are set, set again and cleared with the next execution");
  is(keys_for(h, "you"), "a=9@9 ab=@7 c=3@8 ", "which has the rest still");
}

static void
keys_cleared(struct handle *h)
{
  const struct dk_kv_change changes[] = {set("x", "1", 1), {.op = DK_KV_CLEAR_ALL},
                                         set("y", "2", 2)};

  cmp_ok(COMMIT(h, "me", .kv = changes, .n_kv = 3, .execution_id = 2), "==", DK_OK,
         "all are cleared, between two that are set");
  is(keys_for(h, "you"), "y=2@2 ", "and the second is there");
}

/* ---- custom status --------------------------------------------------------------------------- */

/* "2 busy", or "3" if there is none. */
static const char *
status_of(struct handle *h, const char *instance)
{
  static char words[64];
  const struct model_status *table = dk_store_extension(h->store, "durakit.status/1");
  struct dk_bytes found;

  if (!table || table->head.struct_size != sizeof *table)
    BAIL_OUT("durakit.status/1 has no such table");
  uint64_t version = table->look(table->self, text(instance), &found);
  snprintf(words, sizeof words, "%d%s%.*s", (int)version, found.ptr ? " " : "", (int)found.len,
           found.ptr ? found.ptr : "");
  return words;
}

static void
custom_status(struct handle *h)
{
  is(status_of(h, "inst"), "0", "there is no custom status");
  COMMIT(h, "me", .execution_id = 2, .custom_status_op = DK_CUSTOM_SET,
         .custom_status = text("busy"));
  is(status_of(h, "inst"), "1 busy", "it is set");
  COMMIT(h, "me", .execution_id = 3);
  is(status_of(h, "inst"), "1 busy", "and kept, by the next execution too");
  COMMIT(h, "me", .execution_id = 3, .custom_status_op = DK_CUSTOM_CLEAR);
  is(status_of(h, "inst"), "2", "and cleared, which is a version of its own");
  COMMIT(h, "me", .execution_id = 3, .custom_status_op = DK_CUSTOM_SET, .custom_status = text(""));
  is(status_of(h, "inst"), "3 ", "an empty one is one");
  is(status_of(h, "other"), "0", "of this instance only");
}

static void
values(void)
{
  struct handle h;
  void *region;
  struct dk_virtual_clock *clock = new_clock(&region);

  open_handle(&h, clock, store_path("values"));
  keys(&h);
  keys_cleared(&h);
  custom_status(&h);
  close_handle(&h);
  open_handle(&h, clock, store_path("values"));
  is(keys_for(&h, "you"), "y=2@2 ", "opened again, the store has its keys");
  is(status_of(&h, "inst"), "3 ", "and its custom status, of the same version");
  close_handle(&h);
  free(region);
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* One item for this owner: its number, 0 if there is none.  It stays locked. */
static uint64_t
item_for(struct handle *h, const char *owner, int32_t rule, int64_t wait_until)
{
  const struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 1,
                                        .lock_ms = LEASE, .owner = text(owner),
                                        .tag_rule = DK_TAG_ANY, .session_rule = rule,
                                        .session_lock_ms = rule ? HOLD : 0,
                                        .wait_until = wait_until};
  struct dk_works *works = NULL;
  dk_status status = dk_store_fetch_work_item(h->store, h->caller, &request, &works);

  return status == DK_OK ? works->items[0].item.activity_id : 0;
}

static void
add_item(struct handle *h, uint64_t number, const char *session)
{
  const struct dk_item item = {.struct_size = sizeof item, .instance = text("inst"),
                               .execution_id = 1, .activity_id = number,
                               .session = text(session), .payload = text("do")};

  if (dk_store_enqueue_for_worker(h->store, h->caller, &item) != DK_OK)
    BAIL_OUT("no item: %s", dk_caller_failure(h->caller)->text);
}

/* Only the holder of a session gets its items; other callers ask in vain before. */
static void
held(struct handle *h)
{
  cmp_ok(item_for(h, "me", DK_SESSION_NONE, 0), "==", 3, "a fetch without sessions gets none");
  cmp_ok(item_for(h, "me", DK_SESSION_HELD, 0), "==", 0, "nor does one that holds none");
  cmp_ok(item_for(h, NULL, DK_SESSION_ANY, 0), "==", 0, "nor does one without an owner");
  cmp_ok(item_for(h, "me", DK_SESSION_ANY, 0), "==", 1,
         "a session without a holder goes to any owner");
  cmp_ok(item_for(h, "you", DK_SESSION_ANY, 0), "==", 4, "which then holds it: others get others");
  cmp_ok(item_for(h, "you", DK_SESSION_HELD, 0), "==", 0, "and nothing else");
  cmp_ok(item_for(h, "me", DK_SESSION_HELD, 0), "==", 2, "its holder gets the rest");
}

/* The hold ends HOLD after the last item was handed out. */
static void
hold_ends(struct handle *h, struct dk_virtual_clock *clock)
{
  int64_t from = START + 100;

  add_item(h, 5, "one");
  add_item(h, 6, "one");
  dk_virtual_clock_advance(clock, 0, from);
  cmp_ok(item_for(h, "me", DK_SESSION_ANY, 0), "==", 5, "a later item of it");
  dk_virtual_clock_advance(clock, 0, from + HOLD - 1);
  cmp_ok(item_for(h, "you", DK_SESSION_ANY, 0), "==", 0,
         "another owner has to wait to the last moment");
  cmp_ok(item_for(h, "you", DK_SESSION_ANY, from + HOLD), "==", 6, "and then gets it");
  add_item(h, 7, "one");
  cmp_ok(item_for(h, "me", DK_SESSION_ANY, 0), "==", 0, "and the first owner no longer does");
  dk_virtual_clock_advance(clock, 0, from + 2 * HOLD);
  cmp_ok(item_for(h, "you", DK_SESSION_HELD, 0), "==", 0, "at its end it has no holder");
  cmp_ok(item_for(h, "you", DK_SESSION_ANY, 0), "==", 7, "it can be fetched again");
  add_item(h, 8, "one");
}

static void
sessions(void)
{
  struct handle h;
  void *region;
  struct dk_virtual_clock *clock = new_clock(&region);

  open_handle(&h, clock, store_path("sessions"));
  add_item(&h, 1, "one");
  add_item(&h, 2, "one");
  add_item(&h, 3, NULL);
  add_item(&h, 4, "two");
  held(&h);
  hold_ends(&h, clock);
  close_handle(&h);
  open_handle(&h, clock, store_path("sessions"));
  cmp_ok(item_for(&h, "me", DK_SESSION_ANY, 0), "==", 0,
         "opened again, the store still has the hold");
  cmp_ok(item_for(&h, "you", DK_SESSION_ANY, 0), "==", 8, "and by whom");
  close_handle(&h);
  free(region);
}

int
main(void)
{
  plan(NO_PLAN);
  begin_full();
  values();
  sessions();
  end();
  return done_testing();
}
