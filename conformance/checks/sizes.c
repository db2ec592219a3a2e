/* SPDX-License-Identifier: Apache-2.0 */
/* ABI-9: structs grow from one minor version of the ABI to the next.  What the other side has not
 * written, by its struct_size, is not there: not to be read, and not to be missed. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance/checks/checks.h"

/* ---- a host that is older than the provider -------------------------------------------------- */

/* The whole life of a message and of an activity, by words of the kit. */
static void
use_store(struct dk_check *t, const char *instance)
{
  struct dk_commit_outcome outcome;

  given_instance_with_activities(t, instance, 2);
  struct dk_work_item *work = fetch_activity(t, instance, 1);
  must(t, renew_work(t, work->work.lock_token));
  must(t, ack_turn(t, next_turn(t, instance), .events = {{2}}, .cancel = {2},
                   .ret_outcome = &outcome));
  expect_equal(t, outcome.report.free_rows + outcome.report.locked_rows, 1,
               "rows that were deleted");
  must(t, ack_work(t, work->work.lock_token, .to = instance, .id = "done"));
  struct dk_turn *turn = the_turn_of(t, instance);
  expect_ids(t, turn, "done");
  must(t, abandon_turn(t, turn->head.lock_token));
  must(t, ack_turn(t, the_turn_of(t, instance), .empty = true));
  expect_equal(t, read_history(t, instance)->n_events, 2, "events");
}

/* ABI-9: the host's table may end before its last member, and behind it is nothing to be read. */
void
abi_older_host(struct dk_check *t)
{
  use_store(t, "before");
  close_handle(t, NULL);
  open_handle_of_older_host(t, offsetof(struct dk_host, service));
  use_store(t, "later");
}

/* ---- nothing behind a request ---------------------------------------------------------------- */

/* Where requests are put: at the end of a page that an inaccessible page follows; or, with a gap,
 * so that bytes follow which belong to no member. */
struct guarded_pages {
  char *request, *item;
  size_t gap;
};

enum { GAP = 256 };

static char *
end_of_page(struct dk_check *t)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *room = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  expect(t, room != MAP_FAILED && mprotect(room + page, page, PROT_NONE) == 0,
         "there is room for a guarded page");
  return room + page;
}

static const void *
put_before(char *end, size_t gap, const void *request, size_t size)
{
  memset(end - gap, 'Z', gap);
  return memcpy(end - gap - size, request, size);
}

#define guarded(pages, where, request)                                                             \
  put_before((pages)->where, (pages)->gap, &(request), sizeof(request))

static void
send_guarded(struct dk_check *t, const struct guarded_pages *pages)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = bytes("inst"), .id = bytes("one"),
                         .payload = bytes("message")};

  must(t, traced(t, dk_store_enqueue_for_orchestrator(store_of(t, NULL), caller_of(t, NULL),
                                                      guarded(pages, item, item))));
}

static struct dk_bytes
fetch_turn_guarded(struct dk_check *t, const struct guarded_pages *pages)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE_MS};
  struct dk_turn *turn = NULL;

  must(t, traced(t, dk_store_fetch_orchestration_item(store_of(t, NULL), caller_of(t, NULL),
                                                      guarded(pages, request, request), &turn)));
  struct dk_bytes token = filled(t, turn->head.lock_token.len, 0);
  memcpy((char *)token.ptr, turn->head.lock_token.ptr, token.len);
  return token;
}

static struct dk_bytes
fetch_work_guarded(struct dk_check *t, const struct guarded_pages *pages)
{
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 1,
                                  .lock_ms = LEASE_MS, .tag_rule = DK_TAG_ANY};
  struct dk_works *works = NULL;

  must(t, traced(t, dk_store_fetch_work_item(store_of(t, NULL), caller_of(t, NULL),
                                             guarded(pages, request, request), &works)));
  struct dk_bytes token = filled(t, works->items[0].work.lock_token.len, 0);
  memcpy((char *)token.ptr, works->items[0].work.lock_token.ptr, token.len);
  return token;
}

static void
commit_guarded(struct dk_check *t, const struct guarded_pages *pages, struct dk_bytes token)
{
  struct dk_item item = {.struct_size = sizeof item, .execution_id = 1, .activity_id = 1,
                         .payload = bytes("activity")};
  const struct dk_item *list[] = {guarded(pages, item, item)};
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 1,
                                  .worker_items = list, .n_worker_items = 1,
                                  .name = bytes("order"), .version = bytes("1.0.0")};

  must(t, traced(t, dk_store_ack_orchestration_item(store_of(t, NULL), caller_of(t, NULL), token,
                                                    guarded(pages, request, result), NULL)));
}

static void
ack_guarded(struct dk_check *t, const struct guarded_pages *pages, struct dk_bytes token)
{
  struct dk_item item = {.struct_size = sizeof item, .instance = bytes("inst"), .id = bytes("done"),
                         .payload = bytes("result")};
  struct dk_work_result result = {.struct_size = sizeof result,
                                  .completion = guarded(pages, item, item)};

  must(t, traced(t, dk_store_ack_work_item(store_of(t, NULL), caller_of(t, NULL), token,
                                           guarded(pages, request, result))));
}

static void
sizes_send_all(struct dk_check *t, const struct guarded_pages *pages)
{
  struct dk_read_history request = {.struct_size = sizeof request, .instance = bytes("inst")};
  struct dk_history *history = NULL;

  send_guarded(t, pages);
  commit_guarded(t, pages, fetch_turn_guarded(t, pages));
  ack_guarded(t, pages, fetch_work_guarded(t, pages));
  must(t, traced(t, dk_store_read_history(store_of(t, NULL), caller_of(t, NULL),
                                          guarded(pages, request, request), &history)));
  expect(t, history->found, "the history of the instance is found");
  struct dk_turn *turn = the_turn_of(t, "inst");
  expect_ids(t, turn, "done");
  must(t, ack_turn(t, turn, .empty = true));
}

/* ABI-9: nothing behind the struct_size of a request is read.  An older host has put nothing there:
 * first there is whatever the memory held, then a page that cannot be read. */
void
abi_nothing_beyond(struct dk_check *t)
{
  struct guarded_pages pages = {end_of_page(t), end_of_page(t), GAP};

  sizes_send_all(t, &pages);
  pages.gap = 0;
  sizes_send_all(t, &pages);
}

/* ---- a host that is newer -------------------------------------------------------------------- */

enum { BEYOND = 64 };

/* The request with members behind it that the provider cannot know, and that are not zero. */
static const void *
longer(struct dk_check *t, const void *request, size_t size)
{
  char *made = (char *)filled(t, size + BEYOND, 'Z').ptr;
  uint32_t struct_size = (uint32_t)(size + BEYOND);

  memcpy(made, request, size);
  memcpy(made, &struct_size, sizeof struct_size);
  return made;
}

#define newer(t, request) longer(t, &(request), sizeof(request))

/* ABI-9: a request may be longer than the provider's own: what it does not know it leaves alone. */
void
abi_newer_host(struct dk_check *t)
{
  struct dk_store *store = store_of(t, NULL);
  struct dk_caller *caller = caller_of(t, NULL);
  struct dk_item message = {.instance = bytes("inst"), .id = bytes("one"),
                            .payload = bytes("message")};
  struct dk_item activity = {.execution_id = 1, .activity_id = 7, .payload = bytes("activity")};
  struct dk_turn *turn = NULL;
  struct dk_works *works = NULL;

  must(t, traced(t, dk_store_enqueue_for_orchestrator(store, caller, newer(t, message))));
  const struct dk_item *list[] = {newer(t, activity)};
  struct dk_turn_result commit = {.execution_id = 1, .worker_items = list, .n_worker_items = 1,
                                  .name = bytes("order"), .version = bytes("1.0.0")};
  struct dk_bytes token = fetch_turn(t)->head.lock_token;
  must(t, traced(t, dk_store_ack_orchestration_item(store, caller, token, newer(t, commit), NULL)));
  struct dk_fetch_work fetch = {.max_items = 1, .lock_ms = LEASE_MS, .tag_rule = DK_TAG_ANY};
  must(t, traced(t, dk_store_fetch_work_item(store, caller, newer(t, fetch), &works)));
  expect_equal(t, works->items[0].item.activity_id, 7, "the activity that was scheduled");
  must(t, abandon_work(t, works->items[0].work.lock_token));
  message.id = bytes("done");
  struct dk_work_result done = {.completion = newer(t, message)};
  token = fetch_work(t)->work.lock_token;
  must(t, traced(t, dk_store_ack_work_item(store, caller, token, newer(t, done))));
  struct dk_fetch_turn next = {.lock_ms = LEASE_MS};
  must(t, traced(t, dk_store_fetch_orchestration_item(store, caller, newer(t, next), &turn)));
  expect_equal(t, turn->n_messages, 1, "messages: the completion");
}
