/* SPDX-License-Identifier: Apache-2.0 */
/* A client that reads the status of one instance, and waits for its end.  Locking: client.h. */
#include <assert.h>
#include <stdio.h>

#include "core/base/sat.h"
#include "core/plugin/call.h"
#include "core/plugin/look.h"
#include "core/runtime/client/client-filter.h"

/* ---- its status ------------------------------------------------------------------------------ */

/* Uses the client's memory; called under the lock. */
static dk_status
read_head(struct dk_client *client, const struct dk_text *instance, struct dk_history **ret_history)
{
  const struct dk_read_history request = {
    .struct_size = sizeof(request),
    .max_events = 1,
    .instance = {dk_text_str(instance), instance->length},
    .from_event = INT64_MAX,
  };
  dk_status status;
  struct attempts attempts = attempts_begin();

  assert(dk_lock_is_held(&client->lock));
  do {
    dk_caller_reset(client->caller);
    status = dk_store_read_history(client->store, client->caller, &request, ret_history);
  } while (client_reads_again(client, &attempts, status, false));
  return status;
}

dk_status
client_read_status(struct dk_client *client, const struct dk_text *instance, int32_t *ret_status)
{
  struct dk_history *history;

  dk_lock(&client->lock);
  dk_status status =
    client_set_error(client, client->caller, read_head(client, instance, &history));
  if (status == DK_OK && !history->found)
    status = DK_NOT_FOUND;
  if (status == DK_OK)
    *ret_status = history->execution.status;
  dk_unlock(&client->lock);
  return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Fills in the members that the caller's struct has. */
static void
give_info(const struct dk_instance_info *info, struct dk_instance_info *ret_info)
{
  uint32_t size = ret_info->struct_size;

  memcpy(ret_info, info, size < sizeof(*info) ? size : sizeof(*info));
  ret_info->struct_size = size;
}

/* Copies its texts to where they are valid until the client's next call. */
static dk_status
give_texts(struct dk_client *client, struct info_reader *l, struct dk_instance_info *info)
{
  dk_status status = info_keep(l, info);

  dk_lock(&client->lock);
  if (status == DK_OK) {
    dk_arena_done(&client->arena);
    client->arena = l->page;
    dk_arena_init(&l->page);
  }
  dk_unlock(&client->lock);
  return status;
}

static dk_status
client_status_find(struct info_reader *l, dk_str instance, struct dk_instance_info *ret_info)
{
  const struct dk_instance_filter filter = {
    .struct_size = sizeof(filter), .flags = DK_FILTER_IDS, .ids = &instance, .n_ids = 1};
  struct selection selection;
  struct page page;

  if (!client_has_admin(l->client))
    return info_from_history(l, instance, ret_info);
  dk_status status = selection_begin(l->client, &selection, &filter, dk_str_of(NULL));
  selection.page = 0;
  if (status == DK_OK)
    status = select_page(l, &selection, &page);
  if (status == DK_OK && page.n == 0)
    status = DK_NOT_FOUND;
  if (status == DK_OK)
    *ret_info = page.infos[0];
  selection_end(&selection);
  return status;
}

static dk_status
fetch_info(struct dk_client *client, const struct dk_text *instance,
           struct dk_instance_info *ret_info)
{
  struct dk_instance_info info;
  struct info_reader l;

  if (!DK_HAS_FIELD(dk_instance_info, ret_info, status))
    return client_refuse(client, DK_INVALID, "struct_size of the info is %u: set it to its size",
                         (unsigned)ret_info->struct_size);
  dk_status status = info_reader_begin(&l, client, true);
  if (status == DK_OK)
    status = client_status_find(&l, (dk_str){dk_text_str(instance), instance->length}, &info);
  if (status == DK_OK)
    status = give_texts(client, &l, &info);
  info_reader_end(&l);
  if (status == DK_OK)
    give_info(&info, ret_info);
  return status;
}

/* Copies the id, followed by a NUL. */
static dk_status
copy_id(struct dk_client *client, dk_str instance, struct dk_text *ret_copy)
{
  client_forget_error(client);
  dk_text_add(ret_copy, instance.ptr, instance.ptr ? instance.len : 0);
  return dk_text_failed(ret_copy)
           ? client_refuse(client, DK_NO_MEMORY, "no memory for the instance's id")
           : DK_OK;
}

dk_status
dk_client_status(struct dk_client *client, dk_str instance, struct dk_instance_info *ret_info)
{
  struct dk_text copy = DK_TEXT_EMPTY;
  dk_status status = copy_id(client, instance, &copy);

  if (status == DK_OK)
    status = fetch_info(client, &copy, ret_info);
  dk_text_done(&copy);
  return status;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* The time is up, and the last check has found this. */
static dk_status
refuse_unfinished(struct dk_client *client, const struct dk_text *instance, dk_status seen)
{
  struct dk_instance_info info = {.struct_size = sizeof(info)};

  if (seen == DK_NOT_FOUND && client_has_admin(client))
    seen = fetch_info(client, instance, &info);
  if (seen == DK_OK)
    return client_refuse(client, DK_NOTHING, "%.200s is %s", dk_text_str(instance),
                         info.status == DK_NOT_STARTED && info.created_at > 0
                           ? "not started: its start is stored, and no turn of it was committed yet"
                           : "still running");
  if (seen != DK_NOT_FOUND)
    return seen;
  return client_refuse(client, DK_NOTHING, "%.200s does not exist: no %s", dk_text_str(instance),
                       client_has_admin(client) ? "start of it is stored"
                                                : "turn of it was committed yet");
}

/* Checks until the instance has ended, the time is up, or no check can succeed any more.  It waits
 * too while the store is unreachable, and returns the store's error only when the time is up. */
static dk_status
wait_until_over(struct dk_client *client, const struct dk_text *instance, int64_t until)
{
  int32_t status_of = DK_RUNNING;

  for (unsigned n = 0;; n++) {
    dk_status status = client_read_status(client, instance, &status_of);
    if (status == DK_OK && client_shown_status(status_of) != DK_RUNNING)
      return DK_OK;
    if (status == DK_CALL_CANCELLED ||
        (dk_status_class(status) == 2 && status != DK_NOT_FOUND))
      return status;
    int64_t left = until - dk_monotonic_ms();
    if (left <= 0)
      return refuse_unfinished(client, instance, status);
    if (!client_pause_for(client, left < client_pause_of(n) ? left : client_pause_of(n)))
      return client_refuse(client, DK_CALL_CANCELLED, "the wait was cancelled");
  }
}

dk_status
dk_client_wait(struct dk_client *client, dk_str instance, int64_t wait_ms,
               struct dk_instance_info *ret_info)
{
  const int64_t until = dk_sat_add(dk_monotonic_ms(), wait_ms);
  struct dk_text copy = DK_TEXT_EMPTY;
  dk_status status = copy_id(client, instance, &copy);

  if (status == DK_OK && wait_ms < 0)
    status = client_refuse(client, DK_INVALID, "wait_ms is negative");
  if (status == DK_OK)
    status = wait_until_over(client, &copy, until);
  if (status == DK_OK)
    status = fetch_info(client, &copy, ret_info);
  dk_text_done(&copy);
  return status;
}
