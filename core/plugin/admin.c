/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of durakit.admin/1: what is checked before each, how the provider is called, and
 * what is returned.  Owns nothing. */
#include <durakit/admin.h>

#include "core/plugin/call.h"
#include "core/plugin/field.h"
#include "core/plugin/library.h"
#include "core/plugin/store.h"

#define MEMBER(name) offsetof(struct dk_admin, name)

enum { EVERY_STATUS = (1u << (DK_CANCELLED + 1)) - 1 };

static const struct dk_admin *
admin_of(const struct dk_call *call)
{
  return &call->store->admin;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static dk_status
check_ids(struct dk_form *form, const char *list, const struct dk_bytes *ids, size_t n)
{
  const char *outside = form->list;

  TRY(dk_form_list(form, list, ids, n));
  form->list = list;
  for (form->index = 0; form->index < n; form->index++)
    TRY(dk_form_text(form, "id", ids[form->index], false));
  form->list = outside;
  form->index = DK_NO_INDEX;
  return DK_OK;
}

/* Ids without the flag that enables them are a mistake that would otherwise go unnoticed. */
static dk_status
check_selection(struct dk_form *form, const struct dk_instance_filter *filter)
{
  if (filter->n_ids > 0 && !(filter->flags & DK_FILTER_IDS))
    return dk_form_refuse(form, DK_INVALID, "ids",
                          "expected none without DK_FILTER_IDS, found %zu", filter->n_ids);
  if (filter->statuses & ~(uint32_t)EVERY_STATUS)
    return dk_form_refuse(form, DK_UNSUPPORTED, "statuses",
                          "expected bits of 0x%x, found 0x%x", (unsigned)EVERY_STATUS,
                          filter->statuses);
  return check_ids(form, "filter.ids", filter->ids, filter->n_ids);
}

static dk_status
check_filter(struct dk_form *form, const struct dk_instance_filter *filter)
{
  if (!filter)
    return DK_OK;
  form->list = "filter";
  form->index = DK_NO_INDEX;
  TRY(dk_form_struct(form, filter->struct_size, DK_SIZE_TO(dk_instance_filter, completed_before)));
  TRY(dk_form_flags(form, filter->flags, DK_FILTER_IDS | DK_FILTER_ROOTS));
  TRY(check_selection(form, filter));
  TRY(dk_form_text(form, "name", filter->name, true));
  TRY(dk_form_text(form, "version", filter->version, true));
  TRY(dk_form_text(form, "parent_instance", filter->parent_instance, true));
  TRY(dk_form_at_least(form, "created_from", filter->created_from, 0));
  TRY(dk_form_at_least(form, "created_before", filter->created_before, 0));
  TRY(dk_form_at_least(form, "completed_from", filter->completed_from, 0));
  TRY(dk_form_at_least(form, "completed_before", filter->completed_before, 0));
  form->list = NULL;
  return DK_OK;
}

static dk_status
check_list_instances(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);
  const struct dk_list_instances *asked = request->list_instances;

  TRY(dk_form_struct(&form, asked->struct_size, DK_SIZE_TO(dk_list_instances, max_instances)));
  TRY(dk_form_flags(&form, asked->flags, DK_LIST_OUTPUT));
  TRY(check_filter(&form, asked->filter));
  return dk_form_text(&form, "after", asked->after, true);
}

static dk_status
check_list_executions(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);
  const struct dk_list_executions *asked = request->list_executions;

  TRY(dk_form_struct(&form, asked->struct_size, DK_SIZE_TO(dk_list_executions, after)));
  TRY(dk_form_text(&form, "instance", asked->instance, false));
  return asked->after == 0 ? DK_OK : dk_form_number(&form, "after", asked->after);
}

static dk_status
check_read_messages(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);
  const struct dk_read_messages *asked = request->read_messages;

  TRY(dk_form_struct(&form, asked->struct_size, DK_SIZE_TO(dk_read_messages, instance)));
  return dk_form_text(&form, "instance", asked->instance, false);
}

static dk_status
check_delete_instances(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);
  const struct dk_delete_instances *asked = request->delete_instances;

  TRY(dk_form_struct(&form, asked->struct_size, DK_SIZE_TO(dk_delete_instances, n_instances)));
  TRY(dk_form_flags(&form, asked->flags, DK_DELETE_FORCE));
  return check_ids(&form, "instances", asked->instances, asked->n_instances);
}

static dk_status
refuse_without_filter(const struct dk_form *form)
{
  return dk_form_refuse(form, DK_INVALID, "filter",
                        "expected one (an empty one selects all), found none");
}

static dk_status
check_delete_matching(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);
  const struct dk_delete_matching *asked = request->delete_matching;

  TRY(dk_form_struct(&form, asked->struct_size, DK_SIZE_TO(dk_delete_matching, max_instances)));
  TRY(dk_form_flags(&form, asked->flags, 0));
  if (!asked->filter)
    return refuse_without_filter(&form);
  TRY(check_filter(&form, asked->filter));
  TRY(dk_form_text(&form, "after", asked->after, true));
  return dk_form_at_least(&form, "max_instances", asked->max_instances, 1);
}

/* One instance: then nothing else may select. */
static dk_status
check_prune_one(struct dk_form *form, const struct dk_prune *asked)
{
  TRY(dk_form_text(form, "instance", asked->instance, false));
  if (asked->filter)
    return dk_form_refuse(form, DK_INVALID, "filter", "expected none together with an instance");
  TRY(dk_form_absent(form, "after", asked->after, "a single instance has no pages"));
  if (asked->max_instances == 0)
    return DK_OK;
  return dk_form_refuse(form, DK_INVALID, "max_instances",
                        "expected 0 together with an instance, found %u", asked->max_instances);
}

static dk_status
check_prune(struct dk_call *call, const struct dk_request *request)
{
  struct dk_form form = dk_form_begin(call);
  const struct dk_prune *asked = request->prune;

  TRY(dk_form_struct(&form, asked->struct_size, DK_SIZE_TO(dk_prune, completed_before)));
  TRY(dk_form_flags(&form, asked->flags, 0));
  TRY(dk_form_at_least(&form, "completed_before", asked->completed_before, 0));
  if (asked->instance.ptr || asked->instance.len > 0)
    return check_prune_one(&form, asked);
  if (!asked->filter)
    return refuse_without_filter(&form);
  TRY(check_filter(&form, asked->filter));
  TRY(dk_form_text(&form, "after", asked->after, true));
  return dk_form_at_least(&form, "max_instances", asked->max_instances, 1);
}

/* ---- inspecting ------------------------------------------------------------------------------ */

static dk_status
attempt_list_instances(struct dk_call *call, const struct dk_request *request)
{
  return admin_of(call)->list_instances(call->store->self, call, request->list_instances);
}

static const struct dk_operation list_instances = {
  .name = "list_instances",
  .admin_member = MEMBER(list_instances),
  .takes = DK_TAKES_INSTANCES,
  .check = check_list_instances,
  .attempt = attempt_list_instances,
};

dk_status
dk_store_list_instances(struct dk_store *store, struct dk_caller *caller,
                        const struct dk_list_instances *request,
                        struct dk_instances **ret_instances)
{
  struct dk_request asked = {.list_instances = request};

  TRY(dk_call_make(store, caller, &list_instances, &asked));
  *ret_instances = caller->call.results.instances;
  return DK_OK;
}

static dk_status
attempt_list_executions(struct dk_call *call, const struct dk_request *request)
{
  return admin_of(call)->list_executions(call->store->self, call, request->list_executions);
}

static const struct dk_operation list_executions = {
  .name = "list_executions",
  .admin_member = MEMBER(list_executions),
  .takes = DK_TAKES_EXECUTIONS,
  .check = check_list_executions,
  .attempt = attempt_list_executions,
};

dk_status
dk_store_list_executions(struct dk_store *store, struct dk_caller *caller,
                         const struct dk_list_executions *request,
                         struct dk_executions **ret_executions)
{
  struct dk_request asked = {.list_executions = request};

  TRY(dk_call_make(store, caller, &list_executions, &asked));
  *ret_executions = caller->call.results.executions;
  return DK_OK;
}

static dk_status
attempt_read_messages(struct dk_call *call, const struct dk_request *request)
{
  return admin_of(call)->read_messages(call->store->self, call, request->read_messages);
}

static const struct dk_operation read_messages = {
  .name = "read_messages",
  .admin_member = MEMBER(read_messages),
  .takes = DK_TAKES_MESSAGES,
  .check = check_read_messages,
  .attempt = attempt_read_messages,
};

dk_status
dk_store_read_messages(struct dk_store *store, struct dk_caller *caller,
                       const struct dk_read_messages *request, struct dk_messages **ret_messages)
{
  struct dk_request asked = {.read_messages = request};

  TRY(dk_call_make(store, caller, &read_messages, &asked));
  *ret_messages = caller->call.results.waiting;
  return DK_OK;
}

static dk_status
attempt_read_stats(struct dk_call *call, const struct dk_request *request)
{
  return admin_of(call)->read_stats(call->store->self, call, request->read_stats);
}

static const struct dk_operation read_stats = {
  .name = "read_stats",
  .admin_member = MEMBER(read_stats),
  .takes = DK_TAKES_STATS,
  .attempt = attempt_read_stats,
};

dk_status
dk_store_read_stats(struct dk_store *store, struct dk_caller *caller, struct dk_stats *ret_stats)
{
  const struct dk_read_stats nothing = {.struct_size = sizeof(nothing)};
  struct dk_request asked = {.read_stats = &nothing};

  TRY(dk_call_make(store, caller, &read_stats, &asked));
  *ret_stats = caller->call.results.stats;
  return DK_OK;
}

/* ---- removing -------------------------------------------------------------------------------- */

static dk_status
remove_by(struct dk_store *store, struct dk_caller *caller, const struct dk_operation *operation,
          const struct dk_request *request, struct dk_removed *ret_removed)
{
  TRY(dk_call_make(store, caller, operation, request));
  if (ret_removed)
    *ret_removed = caller->call.results.removed;
  return DK_OK;
}

static dk_status
attempt_delete_instances(struct dk_call *call, const struct dk_request *request)
{
  return admin_of(call)->delete_instances(call->store->self, call, request->delete_instances);
}

static const struct dk_operation delete_instances = {
  .name = "delete_instances",
  .admin_member = MEMBER(delete_instances),
  .takes = DK_TAKES_REMOVED,
  .check = check_delete_instances,
  .attempt = attempt_delete_instances,
};

dk_status
dk_store_delete_instances(struct dk_store *store, struct dk_caller *caller,
                          const struct dk_delete_instances *request,
                          struct dk_removed *ret_removed)
{
  struct dk_request asked = {.delete_instances = request};

  return remove_by(store, caller, &delete_instances, &asked, ret_removed);
}

static dk_status
attempt_delete_matching(struct dk_call *call, const struct dk_request *request)
{
  return admin_of(call)->delete_matching(call->store->self, call, request->delete_matching);
}

static const struct dk_operation delete_matching = {
  .name = "delete_matching",
  .admin_member = MEMBER(delete_matching),
  .takes = DK_TAKES_REMOVED | DK_TAKES_NEXT,
  .check = check_delete_matching,
  .attempt = attempt_delete_matching,
};

dk_status
dk_store_delete_matching(struct dk_store *store, struct dk_caller *caller,
                         const struct dk_delete_matching *request, struct dk_removed *ret_removed)
{
  struct dk_request asked = {.delete_matching = request};

  return remove_by(store, caller, &delete_matching, &asked, ret_removed);
}

static dk_status
attempt_prune(struct dk_call *call, const struct dk_request *request)
{
  return admin_of(call)->prune_executions(call->store->self, call, request->prune);
}

static const struct dk_operation prune_executions = {
  .name = "prune_executions",
  .admin_member = MEMBER(prune_executions),
  .takes = DK_TAKES_REMOVED | DK_TAKES_NEXT,
  .check = check_prune,
  .attempt = attempt_prune,
};

dk_status
dk_store_prune_executions(struct dk_store *store, struct dk_caller *caller,
                          const struct dk_prune *request, struct dk_removed *ret_removed)
{
  struct dk_request asked = {.prune = request};

  return remove_by(store, caller, &prune_executions, &asked, ret_removed);
}
