/* SPDX-License-Identifier: Apache-2.0 */
/* A client that deletes and prunes instances that have ended.  Owns nothing. */
#include "core/plugin/call.h"
#include "core/runtime/client/client-filter.h"

enum { PAGE = 100 }; /* roots to delete in one transaction, instances to prune */

/* ---- what was removed ------------------------------------------------------------------------ */

static void
give_removed(const struct dk_removed *removed, struct dk_removed *ret_removed)
{
  uint32_t size = ret_removed ? ret_removed->struct_size : 0;
  struct dk_removed whole = *removed;

  if (size < sizeof(uint32_t))
    return;
  whole.next = dk_str_of(NULL);
  memcpy(ret_removed, &whole, size < sizeof(whole) ? size : sizeof(whole));
  ret_removed->struct_size = size;
}

static void
client_remove_add(struct dk_removed *sum, const struct dk_removed *removed)
{
  sum->instances += removed->instances;
  sum->executions += removed->executions;
  sum->events += removed->events;
  sum->messages += removed->messages;
  sum->activities += removed->activities;
  sum->roots += removed->roots;
}

/* ---- repetitions ----------------------------------------------------------------------------- */

/* Whether to repeat it: its outcome is still unknown. */
static bool
removes_again(const struct dk_client *client, struct attempts *attempts,
              const struct dk_caller *caller, dk_status status)
{
  char words[CLIENT_ERROR];

  client_words(caller, status, words);
  return client_changes_again(client, attempts, status, words);
}

/* A page that the repetition refuses was not removed by the first attempt either. */
static dk_status
removed(struct dk_client *client, const struct attempts *attempts, const struct dk_caller *caller,
        dk_status status)
{
  bool tells = status == DK_INVALID || status == DK_NOT_FOUND || status == DK_UNSUPPORTED;
  dk_status answer = attempts_answer(attempts, status, tells);

  if (attempts->is_unknown && client_is_unknown(answer))
    return client_refuse(client, answer, "%s", attempts->words);
  return client_keep_error(client, caller, status);
}

/* ---- by ids ---------------------------------------------------------------------------------- */

static dk_status
copy_ids(struct dk_client *client, struct dk_arena *arena, const dk_str *given, size_t n,
         struct dk_bytes **ret_ids)
{
  struct dk_bytes *ids = dk_arena_array(arena, n, sizeof(*ids));

  if (n > 0 && !given)
    return client_refuse(client, DK_INVALID, "the number of ids is %zu, but their list is NULL", n);
  for (size_t i = 0; i < n && ids; i++) {
    ids[i] = (struct dk_bytes){
      given[i].ptr ? dk_arena_copy(arena, given[i].ptr, given[i].len) : NULL, given[i].len};
    if (given[i].ptr && !ids[i].ptr)
      ids = NULL;
  }
  *ret_ids = ids;
  return ids ? DK_OK : client_refuse(client, DK_NO_MEMORY, "no memory for a list of %zu ids", n);
}

/* If the first outcome was unknown, this call itself might have deleted the ones that do not
 * exist. */
static dk_status
delete_surely(struct dk_client *client, struct dk_caller *caller,
              const struct dk_delete_instances *request, struct dk_removed *ret_removed)
{
  struct attempts attempts = attempts_begin();
  dk_status status;

  do {
    dk_caller_reset(caller);
    status = dk_store_delete_instances(client->store, caller, request, ret_removed);
  } while (removes_again(client, &attempts, caller, status));
  if (status == DK_NOT_FOUND && attempts.is_unknown)
    return client_refuse(client, DK_OUTCOME_UNKNOWN,
                         "it is unknown whether they were deleted: the answer was lost, and now "
                         "one of them does not exist; check which do (dk_client_list)");
  return removed(client, &attempts, caller, status);
}

dk_status
dk_client_delete(struct dk_client *client, const dk_str *instances, size_t n, uint32_t flags,
                 struct dk_removed *ret_removed)
{
  struct dk_removed deleted = {.struct_size = sizeof(deleted)};
  struct dk_delete_instances request = {.struct_size = sizeof(request), .flags = flags};
  struct dk_bytes *ids;
  struct info_reader l;

  give_removed(&deleted, ret_removed);
  TRY(client_needs_admin(client, "dk_client_delete"));
  dk_status status = info_reader_begin(&l, client, false);
  if (status == DK_OK)
    status = copy_ids(client, &l.page, instances, n, &ids);
  if (status == DK_OK) {
    request.instances = ids;
    request.n_instances = n;
    status = delete_surely(client, l.detail, &request, &deleted);
  }
  info_reader_end(&l);
  if (status == DK_OK)
    give_removed(&deleted, ret_removed);
  return status;
}

/* ---- page by page ---------------------------------------------------------------------------- */

/* The state of a removal, page by page. */
struct removing {
  struct info_reader l;
  struct dk_instance_filter filter;
  struct dk_text after;
  uint32_t keep;
  int64_t completed_before;
  uint64_t max;             /* roots to delete, or instances to examine; 0: all */
  struct dk_removed sum;
};
typedef dk_status remove_page_fn(struct removing *r, uint32_t max, struct dk_removed *removed);
/* The functions of one kind of removal. */
struct removal {
  remove_page_fn *remove;
  uint64_t (*count)(const struct dk_removed *page); /* how much of max the page has used */
  bool is_repeatable; /* to repeat a page whose answer was lost removes nothing else */
};

static dk_str
after_of(const struct removing *r)
{
  return (dk_str){r->after.length > 0 ? dk_text_str(&r->after) : NULL, r->after.length};
}

static dk_status
delete_page(struct removing *r, uint32_t max, struct dk_removed *removed)
{
  const struct dk_delete_matching request = {.struct_size = sizeof(request),
                                             .filter = &r->filter,
                                             .after = after_of(r),
                                             .max_instances = max};

  return dk_store_delete_matching(r->l.client->store, r->l.detail, &request, removed);
}

static dk_status
prune_page(struct removing *r, uint32_t max, struct dk_removed *removed)
{
  const struct dk_prune request = {.struct_size = sizeof(request),
                                   .filter = &r->filter,
                                   .after = after_of(r),
                                   .max_instances = max,
                                   .keep = r->keep,
                                   .completed_before = r->completed_before};

  return dk_store_prune_executions(r->l.client->store, r->l.detail, &request, removed);
}

/* roots 0: a provider of ABI 2.1.  At most all deleted instances were roots. */
static uint64_t
count_deleted(const struct dk_removed *page)
{
  return page->roots > 0 ? page->roots : page->instances;
}

static uint64_t
count_looked_at(const struct dk_removed *page)
{
  return page->instances;
}

static const struct removal deletion = {delete_page, count_deleted, false};
static const struct removal pruning = {prune_page, count_looked_at, true};

/* An attempt whose answer was lost is in no sum.  With a max, a page is not repeated if it would
 * then remove other instances. */
static dk_status
remove_page(struct removing *r, const struct removal *kind, uint32_t max,
            struct dk_removed *ret_removed)
{
  bool is_repeatable = kind->is_repeatable || r->max == 0;
  struct attempts attempts = attempts_begin();
  struct dk_client *client = r->l.client;
  dk_status status;

  do {
    *ret_removed = (struct dk_removed){.struct_size = sizeof(*ret_removed)};
    dk_caller_reset(r->l.detail);
    status = kind->remove(r, max, ret_removed);
  } while (is_repeatable && removes_again(client, &attempts, r->l.detail, status));
  return removed(client, &attempts, r->l.detail, status);
}

static dk_status
go_on_behind(struct removing *r, dk_str next)
{
  dk_text_reset(&r->after);
  dk_text_add(&r->after, next.ptr, next.len);
  return dk_text_failed(&r->after)
           ? client_refuse(r->l.client, DK_NO_MEMORY, "no memory for the id of the next page")
           : DK_OK;
}

static dk_status
remove_pages(struct removing *r, const struct removal *kind)
{
  uint64_t left = r->max > 0 ? r->max : UINT64_MAX;
  struct dk_removed page;

  do {
    if (client_is_cancelled(r->l.client))
      return client_refuse(r->l.client, DK_CALL_CANCELLED, "the call was cancelled");
    uint32_t most = left < PAGE ? (uint32_t)left : PAGE;
    TRY(remove_page(r, kind, most, &page));
    client_remove_add(&r->sum, &page);
    uint64_t n = kind->count(&page);
    left -= n < most ? n : most;
    if (page.next.ptr)
      TRY(go_on_behind(r, page.next));
  } while (page.next.ptr && left > 0);
  return DK_OK;
}

static dk_status
remove_matching(struct dk_client *client, struct removing *r,
                const struct dk_instance_filter *filter, const struct removal *kind,
                struct dk_removed *ret_removed)
{
  struct dk_arena texts;

  dk_arena_init(&texts);
  dk_text_init(&r->after);
  dk_status status = info_reader_begin(&r->l, client, false);
  if (status == DK_OK)
    status = selecting_copy(client, &texts, filter, &r->filter);
  if (status == DK_OK && !filter)
    status = client_refuse(client, DK_INVALID, "the filter is NULL: give a filter; an empty "
                           "one selects all");
  if (status == DK_OK)
    status = remove_pages(r, kind);
  info_reader_end(&r->l);
  dk_text_done(&r->after);
  dk_arena_done(&texts);
  give_removed(&r->sum, ret_removed);
  return status;
}

dk_status
dk_client_delete_matching(struct dk_client *client, const struct dk_instance_filter *filter,
                          uint64_t max, struct dk_removed *ret_removed)
{
  struct removing r = {.max = max};

  give_removed(&r.sum, ret_removed);
  TRY(client_needs_admin(client, "dk_client_delete_matching"));
  return remove_matching(client, &r, filter, &deletion, ret_removed);
}

dk_status
dk_client_prune_matching(struct dk_client *client, const struct dk_instance_filter *filter,
                         uint32_t keep, int64_t completed_before, uint64_t max,
                         struct dk_removed *ret_removed)
{
  struct removing r = {.keep = keep, .completed_before = completed_before, .max = max};

  give_removed(&r.sum, ret_removed);
  TRY(client_needs_admin(client, "dk_client_prune_matching"));
  return remove_matching(client, &r, filter, &pruning, ret_removed);
}

static dk_status
prune_surely(struct dk_client *client, struct dk_caller *caller, const struct dk_prune *request,
             struct dk_removed *ret_removed)
{
  struct attempts attempts = attempts_begin();
  dk_status status;

  do {
    dk_caller_reset(caller);
    status = dk_store_prune_executions(client->store, caller, request, ret_removed);
  } while (removes_again(client, &attempts, caller, status));
  return removed(client, &attempts, caller, status);
}

dk_status
dk_client_prune(struct dk_client *client, dk_str instance, uint32_t keep, int64_t completed_before,
                struct dk_removed *ret_removed)
{
  struct dk_removed pruned = {.struct_size = sizeof(pruned)};
  struct dk_prune request = {
    .struct_size = sizeof(request), .keep = keep, .completed_before = completed_before};
  struct dk_text id = DK_TEXT_EMPTY;
  struct info_reader l;

  give_removed(&pruned, ret_removed);
  TRY(client_needs_admin(client, "dk_client_prune"));
  dk_text_add(&id, instance.ptr, instance.ptr ? instance.len : 0);
  request.instance = (dk_str){dk_text_str(&id), id.length};
  dk_status status = info_reader_begin(&l, client, false);
  if (status == DK_OK && dk_text_failed(&id))
    status = client_refuse(client, DK_NO_MEMORY, "no memory for the instance's id");
  if (status == DK_OK)
    status = prune_surely(client, l.detail, &request, &pruned);
  info_reader_end(&l);
  dk_text_done(&id);
  if (status == DK_OK)
    give_removed(&pruned, ret_removed);
  return status;
}
