/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of durakit.admin/1 as the host calls them: a look reads beside the writer, a
 * removal becomes an operation of the writer.  The caller's thread sorts the ids that a filter
 * lists.  Owns nothing. */
#include "providers/sqlite/admin.h"

enum { EVERY_STATUS = (1u << (DK_CANCELLED + 1)) - 1 };

/* ---- refusing -------------------------------------------------------------------------------- */

/* ABI-11. */
static dk_status
sqlite_admin_refuse_what_is_unknown(const struct handle *h, struct dk_call *call, const char *name,
                                    bool is_unknown, const char *what)
{
  struct why why;

  if (!is_unknown)
    return DK_OK;
  why_set(&why, DK_UNSUPPORTED, "%s: %s is not known to this version", name, what);
  return why_tell(&why, h->host, call);
}

static dk_status
refuse_unknown_filter(const struct handle *h, struct dk_call *call, const char *name,
                      const struct dk_instance_filter *filter)
{
  const uint32_t known = DK_FILTER_IDS | DK_FILTER_ROOTS;

  if (!filter)
    return DK_OK;
  TRY(sqlite_admin_refuse_what_is_unknown(h, call, name, filter->flags & ~known,
                                          "a flag of the filter"));
  return sqlite_admin_refuse_what_is_unknown(
      h, call, name, filter->statuses & ~(uint32_t)EVERY_STATUS, "a status of the filter");
}

/* A host of an earlier minor has no upcall for the results. */
static dk_status
refuse_old_host(const struct handle *h, struct dk_call *call, const char *name, bool has_upcall)
{
  struct why why;

  if (has_upcall)
    return DK_OK;
  why_set(&why, DK_UNSUPPORTED, "%s: the host has no upcall for what it brings; expected abi_minor "
          "1 or later, found %u; use a later host", name, (unsigned)h->host->abi_minor);
  return why_tell(&why, h->host, call);
}

static dk_status
refuse_without_memory(const struct handle *h, struct dk_call *call, const char *name, size_t n)
{
  struct why why;

  why_set(&why, DK_NO_MEMORY, "%s: out of memory for the %zu ids of the filter", name, n);
  return why_tell(&why, h->host, call);
}

/* ---- looking --------------------------------------------------------------------------------- */

static dk_status
sqlite_list_instances(void *self, struct dk_call *call, const struct dk_list_instances *request)
{
  static const char name[] = "list_instances";
  const uint32_t unknown = request->flags & ~(uint32_t)DK_LIST_OUTPUT;
  struct listing listing = {.request = request};
  struct handle *h = self;
  dk_status status;

  TRY(refuse_old_host(h, call, name, DK_HAS(dk_host, h->host, instance)));
  TRY(sqlite_admin_refuse_what_is_unknown(h, call, name, unknown, "a flag of the list"));
  TRY(refuse_unknown_filter(h, call, name, request->filter));
  if (walk_begin(&listing.walk, request->filter, request->after))
    status = read_beside_writer(h, call, &listing, read_instances);
  else
    status = refuse_without_memory(h, call, name, request->filter->n_ids);
  walk_end(&listing.walk);
  return status;
}

static dk_status
sqlite_list_executions(void *self, struct dk_call *call, const struct dk_list_executions *request)
{
  if (request->after > INT64_MAX)
    return DK_OK; /* no execution has such a number */
  return read_beside_writer(self, call, request, read_executions);
}

static dk_status
sqlite_read_messages(void *self, struct dk_call *call, const struct dk_read_messages *request)
{
  return read_beside_writer(self, call, request, read_messages);
}

static dk_status
sqlite_read_stats(void *self, struct dk_call *call, const struct dk_read_stats *request)
{
  static const char name[] = "read_stats";
  struct handle *h = self;

  TRY(refuse_old_host(h, call, name, DK_HAS(dk_host, h->host, stats)));
  TRY(sqlite_admin_refuse_what_is_unknown(h, call, name, request->flags != 0, "a flag"));
  return read_beside_writer(h, call, request, read_stats);
}

/* ---- removing -------------------------------------------------------------------------------- */

static dk_status
submit_removal(struct handle *h, struct dk_call *call, const char *name, apply_fn *apply,
               const void *request)
{
  return submit(h, &(struct operation){.name = name,
                                       .call = call,
                                       .apply = apply,
                                       .turn = LARGE_CHANGE,
                                       .request = request}, 0);
}

static dk_status
sqlite_delete_instances(void *self, struct dk_call *call, const struct dk_delete_instances *request)
{
  static const char name[] = "delete_instances";
  const uint32_t unknown = request->flags & ~(uint32_t)DK_DELETE_FORCE;
  struct handle *h = self;

  TRY(refuse_old_host(h, call, name, DK_HAS(dk_host, h->host, removed)));
  TRY(sqlite_admin_refuse_what_is_unknown(h, call, name, unknown, "a flag of the deletion"));
  return submit_removal(h, call, name, apply_delete_instances, request);
}

/* The host checks this; but if it did not, everything would be deleted. */
static dk_status
refuse_without_filter(const struct handle *h, struct dk_call *call, const char *name,
                      const struct dk_instance_filter *filter)
{
  struct why why;

  if (filter)
    return DK_OK;
  why_set(&why, DK_INVALID, "%s: expected a filter (an empty one selects all), found none", name);
  return why_tell(&why, h->host, call);
}

static dk_status
submit_page(struct handle *h, struct dk_call *call, const char *name, apply_fn *apply,
            struct page *page, const struct dk_instance_filter *filter, struct dk_bytes after)
{
  dk_status status;

  TRY(refuse_without_filter(h, call, name, filter));
  TRY(refuse_unknown_filter(h, call, name, filter));
  if (walk_begin(&page->walk, filter, after))
    status = submit_removal(h, call, name, apply, page);
  else
    status = refuse_without_memory(h, call, name, filter->n_ids);
  walk_end(&page->walk);
  return status;
}

static dk_status
sqlite_delete_matching(void *self, struct dk_call *call, const struct dk_delete_matching *request)
{
  static const char name[] = "delete_matching";
  struct page page = {.request = request, .most = request->max_instances};
  struct handle *h = self;

  TRY(refuse_old_host(h, call, name, DK_HAS(dk_host, h->host, removed)));
  TRY(sqlite_admin_refuse_what_is_unknown(h, call, name, request->flags != 0,
                                          "a flag of the deletion"));
  return submit_page(h, call, name, apply_delete_matching, &page, request->filter, request->after);
}

static dk_status
sqlite_prune_executions(void *self, struct dk_call *call, const struct dk_prune *request)
{
  static const char name[] = "prune_executions";
  struct page page = {.request = request, .most = request->max_instances};
  struct handle *h = self;

  TRY(refuse_old_host(h, call, name, DK_HAS(dk_host, h->host, removed)));
  TRY(sqlite_admin_refuse_what_is_unknown(h, call, name, request->flags != 0,
                                          "a flag of the prune"));
  if (request->instance.ptr)
    return submit_removal(h, call, name, apply_prune, &page);
  return submit_page(h, call, name, apply_prune_page, &page, request->filter, request->after);
}

const struct dk_admin sqlite_admin = {
  .struct_size = sizeof(struct dk_admin),
  .list_instances = sqlite_list_instances,
  .list_executions = sqlite_list_executions,
  .read_messages = sqlite_read_messages,
  .read_stats = sqlite_read_stats,
  .delete_instances = sqlite_delete_instances,
  .delete_matching = sqlite_delete_matching,
  .prune_executions = sqlite_prune_executions,
};
