/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of durakit.admin/1: their functions for checks, and all that the kit does with a
 * request and its reply, as words.c, trace.c and copy.c do for the others.  Owns nothing. */
#include "conformance/kit/kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool
kit_is_admin(enum op_kind kind)
{
  return kind >= OP_LIST_INSTANCES && kind <= OP_PRUNE;
}

dk_status
kit_admin_operation(struct op *op, struct dk_store *s, struct dk_caller *c)
{
  switch (op->kind) {
  case OP_LIST_INSTANCES:
    return dk_store_list_instances(s, c, &op->list_instances, &op->instances);
  case OP_LIST_EXECUTIONS:
    return dk_store_list_executions(s, c, &op->list_executions, &op->executions);
  case OP_READ_MESSAGES:
    return dk_store_read_messages(s, c, &op->read_messages, &op->waiting);
  case OP_READ_STATS:
    return dk_store_read_stats(s, c, &op->stats);
  case OP_DELETE_INSTANCES:
    return dk_store_delete_instances(s, c, &op->delete_instances, &op->removed);
  case OP_DELETE_MATCHING:
    return dk_store_delete_matching(s, c, &op->delete_matching, &op->removed);
  case OP_PRUNE:
    return dk_store_prune_executions(s, c, &op->prune, &op->removed);
  default:
    return DK_INTERNAL;
  }
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Those of both lists; absent if both are empty. */
static const struct dk_bytes *
keep_ids(const struct kit_request *r, const char *const ids[8], const struct dk_bytes *list,
         size_t n_list, size_t *ret_n)
{
  struct dk_bytes *kept = kit_alloc(r->t, r->arena, n_list + 8, sizeof(*kept));
  size_t n = 0;

  for (size_t i = 0; i < 8 && ids[i] != NULL; i++)
    kept[n++] = kit_keep(r, ids[i]);
  for (size_t i = 0; i < n_list; i++)
    kept[n++] = kit_copy_bytes(r->t, r->arena, list[i]);
  *ret_n = n;
  return n > 0 ? kept : NULL;
}

static const struct dk_instance_filter *
keep_filter(const struct kit_request *r, const struct filter *f)
{
  struct dk_instance_filter *filter = &r->op->filter;
  bool by_ids = f->by_ids || f->ids[0] != NULL || f->n > 0;

  *filter = (struct dk_instance_filter){
    .struct_size = sizeof(*filter),
    .flags = (by_ids ? (uint32_t)DK_FILTER_IDS : 0u) | (f->roots ? (uint32_t)DK_FILTER_ROOTS : 0u),
    .name = kit_keep(r, f->name),
    .version = kit_keep(r, f->version),
    .parent_instance = kit_keep(r, f->parent),
    .statuses = f->statuses,
    .created_from = f->created_from,
    .created_before = f->created_before,
    .completed_from = f->completed_from,
    .completed_before = f->completed_before,
  };
  filter->ids = keep_ids(r, f->ids, f->list, f->n, &filter->n_ids);
  return filter;
}

static bool
asks_for_nothing(const struct filter *f)
{
  static const struct filter nothing;

  return memcmp(f, &nothing, sizeof(nothing)) == 0;
}

dk_status
kit_try_list_instances(struct dk_check *t, const struct look_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_LIST_INSTANCES);

  r.op->list_instances = (struct dk_list_instances){
    .struct_size = sizeof(struct dk_list_instances),
    .flags = a->outputs ? (uint32_t)DK_LIST_OUTPUT : 0u,
    .after = kit_keep(&r, a->after),
    .max_instances = a->max,
  };
  if (a->filtered || !asks_for_nothing(&a->only))
    r.op->list_instances.filter = keep_filter(&r, &a->only);
  return kit_call(t, r.who, a->start);
}

dk_status
kit_try_list_executions(struct dk_check *t, const char *instance, const struct look_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_LIST_EXECUTIONS);

  r.op->list_executions = (struct dk_list_executions){
    .struct_size = sizeof(struct dk_list_executions),
    .max_executions = a->max,
    .instance = kit_keep(&r, instance),
    .after = a->after_number,
  };
  return kit_call(t, r.who, a->start);
}

dk_status
kit_try_read_messages(struct dk_check *t, const char *instance, const struct look_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_READ_MESSAGES);

  r.op->read_messages = (struct dk_read_messages){
    .struct_size = sizeof(struct dk_read_messages),
    .max_messages = a->max,
    .instance = kit_keep(&r, instance),
  };
  return kit_call(t, r.who, a->start);
}

dk_status
kit_try_read_stats(struct dk_check *t, const struct look_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_READ_STATS);

  return kit_call(t, r.who, a->start);
}

dk_status
kit_delete_instances(struct dk_check *t, const struct delete_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_DELETE_INSTANCES);
  struct dk_delete_instances *request = &r.op->delete_instances;

  *request = (struct dk_delete_instances){
    .struct_size = sizeof(*request), .flags = a->force ? (uint32_t)DK_DELETE_FORCE : 0u
  };
  request->instances = keep_ids(&r, a->ids, a->list, a->n, &request->n_instances);
  dk_status status = kit_call(t, r.who, a->start);
  if (a->ret != NULL && !a->start)
    *a->ret = r.op->removed;
  return status;
}

enum { USUAL_PAGE = 1000 };

dk_status
kit_delete_matching(struct dk_check *t, const struct remove_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_DELETE_MATCHING);

  r.op->delete_matching = (struct dk_delete_matching){
    .struct_size = sizeof(struct dk_delete_matching),
    .filter = keep_filter(&r, &a->only),
    .after = kit_keep(&r, a->after),
    .max_instances = a->max != 0 ? a->max : USUAL_PAGE,
  };
  dk_status status = kit_call(t, r.who, a->start);
  if (a->ret != NULL && !a->start)
    *a->ret = r.op->removed;
  return status;
}

dk_status
kit_prune(struct dk_check *t, const char *instance, const struct remove_args *a)
{
  struct kit_request r = kit_request(t, a->on, OP_PRUNE);
  struct dk_prune *request = &r.op->prune;

  *request = (struct dk_prune){
    .struct_size = sizeof(*request),
    .instance = kit_keep(&r, instance),
    .after = kit_keep(&r, a->after),
    .keep = a->keep,
    .completed_before = a->completed_before,
  };
  if (instance == NULL) {
    request->filter = keep_filter(&r, &a->only);
    request->max_instances = a->max != 0 ? a->max : USUAL_PAGE;
  }
  dk_status status = kit_call(t, r.who, a->start);
  if (a->ret != NULL && !a->start)
    *a->ret = r.op->removed;
  return status;
}

/* ---- results --------------------------------------------------------------------------------- */

static const struct op *
finished(struct dk_check *t, struct actor *actor)
{
  struct actor *who = kit_actor(t, actor);

  if (who->given)
    finish(t, who);
  return &who->op;
}

const struct dk_instances *
finished_instances(struct dk_check *t, struct actor *actor)
{
  return finished(t, actor)->instances;
}

const struct dk_executions *
finished_executions(struct dk_check *t, struct actor *actor)
{
  return finished(t, actor)->executions;
}

const struct dk_messages *
finished_messages(struct dk_check *t, struct actor *actor)
{
  return finished(t, actor)->waiting;
}

const struct dk_stats *
finished_stats(struct dk_check *t, struct actor *actor)
{
  return &finished(t, actor)->stats;
}

const struct dk_removed *
finished_removal(struct dk_check *t, struct actor *actor)
{
  return &finished(t, actor)->removed;
}

static struct look_args
at_once(const struct look_args *a)
{
  struct look_args args = *a;

  args.start = false;
  return args;
}

const struct dk_instances *
kit_list_instances(struct dk_check *t, const struct look_args *a, const char *file, int line)
{
  struct look_args args = at_once(a);

  kit_expect_status(t, kit_try_list_instances(t, &args), DK_OK, "list_instances", file, line);
  return finished_instances(t, a->on);
}

const struct dk_executions *
kit_list_executions(struct dk_check *t, const char *instance, const struct look_args *a,
                    const char *file, int line)
{
  struct look_args args = at_once(a);

  kit_expect_status(t, kit_try_list_executions(t, instance, &args), DK_OK, "list_executions", file,
                    line);
  return finished_executions(t, a->on);
}

const struct dk_messages *
kit_read_messages(struct dk_check *t, const char *instance, const struct look_args *a,
                  const char *file, int line)
{
  struct look_args args = at_once(a);

  kit_expect_status(t, kit_try_read_messages(t, instance, &args), DK_OK, "read_messages", file,
                    line);
  return finished_messages(t, a->on);
}

/* A copy of its own: the next call of this actor has its reply in the same place. */
const struct dk_stats *
kit_read_stats(struct dk_check *t, const struct look_args *a, const char *file, int line)
{
  struct look_args args = at_once(a);
  struct dk_stats *stats = kit_alloc(t, &t->arena, 1, sizeof(*stats));

  kit_expect_status(t, kit_try_read_stats(t, &args), DK_OK, "read_stats", file, line);
  *stats = *finished_stats(t, a->on);
  return stats;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static struct dk_instances *
copy_instances(struct dk_check *t, struct dk_arena *arena, const struct dk_instances *list)
{
  struct dk_instances *copy = kit_alloc(t, arena, 1, sizeof(*copy));

  copy->n_items = list->n_items;
  copy->items = kit_alloc(t, arena, list->n_items, sizeof(*copy->items));
  for (size_t i = 0; i < list->n_items; i++) {
    struct dk_instance *to = &copy->items[i];

    *to = list->items[i];
    to->instance = kit_copy_bytes(t, arena, to->instance);
    to->owner = kit_copy_bytes(t, arena, to->owner);
    to->name = kit_copy_bytes(t, arena, to->name);
    to->version = kit_copy_bytes(t, arena, to->version);
    to->parent_instance = kit_copy_bytes(t, arena, to->parent_instance);
    to->output = kit_copy_bytes(t, arena, to->output);
  }
  return copy;
}

static struct dk_executions *
copy_executions(struct dk_check *t, struct dk_arena *arena, const struct dk_executions *list)
{
  struct dk_executions *copy = kit_alloc(t, arena, 1, sizeof(*copy));

  copy->n_items = list->n_items;
  copy->items = kit_alloc(t, arena, list->n_items, sizeof(*copy->items));
  for (size_t i = 0; i < list->n_items; i++) {
    copy->items[i] = list->items[i];
    copy->items[i].output = kit_copy_bytes(t, arena, list->items[i].output);
  }
  return copy;
}

static struct dk_messages *
copy_messages(struct dk_check *t, struct dk_arena *arena, const struct dk_messages *list)
{
  struct dk_messages *copy = kit_alloc(t, arena, 1, sizeof(*copy));

  copy->n_items = list->n_items;
  copy->items = kit_alloc(t, arena, list->n_items, sizeof(*copy->items));
  for (size_t i = 0; i < list->n_items; i++) {
    copy->items[i] = list->items[i];
    copy->items[i].id = kit_copy_bytes(t, arena, list->items[i].id);
    copy->items[i].payload = kit_copy_bytes(t, arena, list->items[i].payload);
  }
  return copy;
}

void
kit_copy_admin_reply(struct dk_check *t, struct dk_arena *arena, struct op *op)
{
  if (op->instances != NULL)
    op->instances = copy_instances(t, arena, op->instances);
  if (op->executions != NULL)
    op->executions = copy_executions(t, arena, op->executions);
  if (op->waiting != NULL)
    op->waiting = copy_messages(t, arena, op->waiting);
  op->removed.next = kit_copy_bytes(t, arena, op->removed.next);
}

void
kit_give_admin_reply(struct op *op, const struct op *reply)
{
  op->instances = reply->instances;
  op->executions = reply->executions;
  op->waiting = reply->waiting;
  op->stats = reply->stats;
  op->removed = reply->removed;
}

static void
take_back_ids(const struct dk_bytes *ids, size_t n)
{
  for (size_t i = 0; i < n; i++)
    kit_overwrite(ids[i]);
}

/* `op` is a copy that still has the texts of another one. */
void
kit_copy_admin_request(struct dk_check *t, struct dk_arena *arena, struct op *op)
{
  struct dk_instance_filter *filter = &op->filter;

  filter->ids = kit_copy_list(t, arena, filter->ids, filter->n_ids);
  filter->name = kit_copy_bytes(t, arena, filter->name);
  filter->version = kit_copy_bytes(t, arena, filter->version);
  filter->parent_instance = kit_copy_bytes(t, arena, filter->parent_instance);
  if (op->list_instances.filter != NULL)
    op->list_instances.filter = filter;
  if (op->delete_matching.filter != NULL)
    op->delete_matching.filter = filter;
  if (op->prune.filter != NULL)
    op->prune.filter = filter;
  op->list_instances.after = kit_copy_bytes(t, arena, op->list_instances.after);
  op->list_executions.instance = kit_copy_bytes(t, arena, op->list_executions.instance);
  op->read_messages.instance = kit_copy_bytes(t, arena, op->read_messages.instance);
  op->delete_instances.instances = kit_copy_list(t, arena, op->delete_instances.instances,
                                                 op->delete_instances.n_instances);
  op->delete_matching.after = kit_copy_bytes(t, arena, op->delete_matching.after);
  op->prune.instance = kit_copy_bytes(t, arena, op->prune.instance);
  op->prune.after = kit_copy_bytes(t, arena, op->prune.after);
}

void
kit_take_back_admin(const struct op *op)
{
  take_back_ids(op->filter.ids, op->filter.n_ids);
  kit_overwrite(op->filter.name);
  kit_overwrite(op->filter.version);
  kit_overwrite(op->filter.parent_instance);
  kit_overwrite(op->list_instances.after);
  kit_overwrite(op->list_executions.instance);
  kit_overwrite(op->read_messages.instance);
  take_back_ids(op->delete_instances.instances, op->delete_instances.n_instances);
  kit_overwrite(op->delete_matching.after);
  kit_overwrite(op->prune.instance);
  kit_overwrite(op->prune.after);
}

/* ---- for the drain --------------------------------------------------------------------------- */

static void
name_ids(struct dk_check *t, const struct dk_bytes *ids, size_t n)
{
  enum { FEW = 64 }; /* other calls meet the instances of a longer list */

  for (size_t i = 0; i < n && i < FEW; i++)
    kit_name_instance(t, ids[i]);
}

void
kit_name_admin(struct dk_check *t, const struct op *op)
{
  name_ids(t, op->filter.ids, op->filter.n_ids);
  name_ids(t, op->delete_instances.instances, op->delete_instances.n_instances);
  kit_name_instance(t, op->list_executions.instance);
  kit_name_instance(t, op->read_messages.instance);
  kit_name_instance(t, op->prune.instance);
}

/* ---- words for the trace --------------------------------------------------------------------- */

static void
say_ids(struct dk_text *text, const char *what, const struct dk_bytes *ids, size_t n)
{
  enum { SHOWN = 4 };

  dk_text_printf(text, "%s%s", what, n == 0 ? " none" : "");
  for (size_t i = 0; i < n && i < SHOWN; i++) {
    dk_text_puts(text, " ");
    kit_say_id(text, ids[i]);
  }
  if (n > SHOWN)
    dk_text_printf(text, " ... (%zu)", n);
}

static void
say_text(struct dk_text *text, const char *what, struct dk_bytes value)
{
  if (value.ptr == NULL)
    return;
  dk_text_printf(text, ", %s ", what);
  kit_say_bytes(text, value);
}

static void
say_times(struct dk_check *t, struct dk_text *text, const char *what, int64_t from, int64_t before)
{
  if (from == 0 && before == 0)
    return;
  dk_text_printf(text, ", %s", what);
  if (from != 0) {
    dk_text_puts(text, " from ");
    kit_say_time(t, text, from);
  }
  if (before != 0) {
    dk_text_puts(text, " before ");
    kit_say_time(t, text, before);
  }
}

static void
say_filter(struct dk_check *t, struct dk_text *text, const struct dk_instance_filter *f)
{
  dk_text_puts(text, f == NULL ? "no filter" : "filter");
  if (f == NULL)
    return;
  if ((f->flags & DK_FILTER_IDS) != 0)
    say_ids(text, ", ids", f->ids, f->n_ids);
  if ((f->flags & DK_FILTER_ROOTS) != 0)
    dk_text_puts(text, ", roots");
  say_text(text, "name", f->name);
  say_text(text, "version", f->version);
  say_text(text, "parent", f->parent_instance);
  if (f->statuses != 0)
    dk_text_printf(text, ", statuses 0x%" PRIx32, f->statuses);
  say_times(t, text, "created", f->created_from, f->created_before);
  say_times(t, text, "completed", f->completed_from, f->completed_before);
}

static void
say_most(struct dk_text *text, uint32_t most)
{
  if (most != 0)
    dk_text_printf(text, ", at most %" PRIu32, most);
}

static void
say_prune(struct dk_check *t, struct dk_text *text, const struct dk_prune *r)
{
  if (r->instance.ptr != NULL)
    kit_say_id(text, r->instance);
  else
    say_filter(t, text, r->filter);
  say_text(text, "after", r->after);
  say_most(text, r->max_instances);
  if (r->keep != 0)
    dk_text_printf(text, ", keep %" PRIu32, r->keep);
  say_times(t, text, "executions completed", 0, r->completed_before);
}

void
kit_say_admin_op(struct dk_check *t, struct dk_text *text, const struct op *op)
{
  switch (op->kind) {
  case OP_LIST_INSTANCES:
    say_filter(t, text, op->list_instances.filter);
    say_text(text, "after", op->list_instances.after);
    say_most(text, op->list_instances.max_instances);
    break;
  case OP_LIST_EXECUTIONS:
    kit_say_id(text, op->list_executions.instance);
    dk_text_printf(text, ", after %" PRIu64, op->list_executions.after);
    say_most(text, op->list_executions.max_executions);
    break;
  case OP_READ_MESSAGES:
    kit_say_id(text, op->read_messages.instance);
    say_most(text, op->read_messages.max_messages);
    break;
  case OP_DELETE_INSTANCES:
    say_ids(text, "ids", op->delete_instances.instances, op->delete_instances.n_instances);
    if ((op->delete_instances.flags & DK_DELETE_FORCE) != 0)
      dk_text_puts(text, ", by force");
    break;
  case OP_DELETE_MATCHING:
    say_filter(t, text, op->delete_matching.filter);
    say_text(text, "after", op->delete_matching.after);
    say_most(text, op->delete_matching.max_instances);
    break;
  case OP_PRUNE:
    say_prune(t, text, &op->prune);
    break;
  default:
    break;
  }
}

static void
say_instances(struct dk_text *text, const struct dk_instances *list)
{
  dk_text_printf(text, ", instances %zu", list->n_items);
  for (size_t i = 0; i < list->n_items && i < 4; i++) {
    dk_text_puts(text, " ");
    kit_say_id(text, list->items[i].instance);
    dk_text_printf(text, " status %" PRId32, list->items[i].status);
  }
}

static void
say_stats(struct dk_text *text, const struct dk_stats *s)
{
  dk_text_printf(text, ", not started %" PRIu64 " running %" PRIu64 " over %" PRIu64
                 ", executions %" PRIu64 " events %" PRIu64, s->not_started, s->running,
                 s->completed + s->failed + s->cancelled + s->continued_as_new, s->executions,
                 s->events);
  dk_text_printf(text, ", ready/delayed/locked: messages %" PRIu64 "/%" PRIu64 "/%" PRIu64
                 " activities %" PRIu64 "/%" PRIu64 "/%" PRIu64, s->messages_ready,
                 s->messages_delayed, s->messages_locked, s->activities_ready,
                 s->activities_delayed, s->activities_locked);
}

static void
say_removed(struct dk_text *text, const struct dk_removed *r)
{
  dk_text_printf(text, ", instances %" PRIu64 " executions %" PRIu64 " events %" PRIu64
                 " messages %" PRIu64 " activities %" PRIu64, r->instances, r->executions,
                 r->events, r->messages, r->activities);
  if (r->roots > 0)
    dk_text_printf(text, " roots %" PRIu64, r->roots);
  if (r->next.ptr == NULL)
    return;
  dk_text_puts(text, ", next ");
  kit_say_id(text, r->next);
}

void
kit_say_admin_reply(struct dk_check *t, struct dk_text *text, const struct op *op)
{
  (void)t;
  if (op->instances != NULL)
    say_instances(text, op->instances);
  if (op->executions != NULL)
    dk_text_printf(text, ", executions %zu", op->executions->n_items);
  if (op->waiting != NULL)
    dk_text_printf(text, ", messages %zu", op->waiting->n_items);
  if (op->kind == OP_READ_STATS)
    say_stats(text, &op->stats);
  if (op->kind == OP_DELETE_INSTANCES || op->kind == OP_DELETE_MATCHING || op->kind == OP_PRUNE)
    say_removed(text, &op->removed);
}
