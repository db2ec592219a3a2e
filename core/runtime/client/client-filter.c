/* SPDX-License-Identifier: Apache-2.0 */
/* Selecting instances: see client-filter.h. */
#include "core/runtime/client/client-filter.h"

#include "core/base/names.h"
#include "core/plugin/call.h"

enum {
  UNBORN = 1 << DK_NOT_STARTED,
  IN_LIFE = UNBORN | 1 << DK_RUNNING | 1 << DK_CONTINUED_AS_NEW,
  EVERY = IN_LIFE | 1 << DK_COMPLETED | 1 << DK_FAILED | 1 << DK_CANCELLED,
  /* The most in one answer; outputs may be long. */
  PAGE = 500,
  PAGE_WITH_OUTPUT = 50
};

/* ---- filters --------------------------------------------------------------------------------- */

static bool
copy_text(struct dk_arena *arena, dk_str *text)
{
  if (!text->ptr)
    return true;
  text->ptr = dk_arena_copy(arena, text->ptr, text->len);
  return text->ptr != NULL;
}

static bool
copy_ids(struct dk_arena *arena, struct dk_instance_filter *filter)
{
  struct dk_bytes *ids = dk_arena_array(arena, filter->n_ids, sizeof(*ids));

  if (!ids)
    return false;
  for (size_t i = 0; i < filter->n_ids; i++) {
    ids[i] = filter->ids[i];
    if (!copy_text(arena, &ids[i]))
      return false;
  }
  filter->ids = ids;
  return true;
}

dk_status
selecting_copy(struct dk_client *client, struct dk_arena *arena,
               const struct dk_instance_filter *filter, struct dk_instance_filter *ret_copy)
{
  *ret_copy = (struct dk_instance_filter){.struct_size = sizeof(*ret_copy)};
  if (!filter)
    return DK_OK;
  /* Conditions of a newer caller that this version does not know must not be ignored. */
  if (filter->struct_size != sizeof(*filter))
    return client_refuse(client, DK_INVALID,
                         "struct_size of the filter is %u, expected %zu: set it to sizeof, and use "
                         "the admin.h of this library",
                         (unsigned)filter->struct_size, sizeof(*filter));
  if (filter->n_ids > 0 && !filter->ids)
    return client_refuse(client, DK_INVALID, "the filter has %zu ids, but their list is NULL",
                         filter->n_ids);
  *ret_copy = *filter;
  if (copy_text(arena, &ret_copy->name) && copy_text(arena, &ret_copy->version) &&
      copy_text(arena, &ret_copy->parent_instance) && copy_ids(arena, ret_copy))
    return DK_OK;
  return client_refuse(client, DK_NO_MEMORY, "no memory for the filter");
}

bool
selecting_all(const struct dk_instance_filter *filter)
{
  return !filter ||
         (!(filter->flags & DK_FILTER_IDS) && !filter->name.ptr && !filter->version.ptr &&
          !filter->parent_instance.ptr && filter->statuses == 0 && filter->created_from == 0 &&
          filter->created_before == 0 && filter->completed_from == 0 &&
          filter->completed_before == 0);
}

/* ---- requests to the store ------------------------------------------------------------------- */

static bool
is_about_starts(const struct dk_instance_filter *filter)
{
  return filter->name.ptr || filter->version.ptr || filter->parent_instance.ptr ||
         filter->flags & DK_FILTER_ROOTS;
}

static bool
may_be_unborn(const struct dk_instance_filter *filter)
{
  return (filter->statuses == 0 || filter->statuses & UNBORN) && filter->completed_from == 0 &&
         filter->completed_before == 0;
}

/* One request, if the store can evaluate the whole filter; else two, of which the one for instances
 * that are not started leaves out the conditions that only a start can answer. */
static void
divide(struct selection *selection)
{
  struct dk_instance_filter *filter = &selection->filter;
  struct dk_instance_filter *unborn = &selection->unborn.filter;

  if (filter->statuses & 1 << DK_RUNNING)
    filter->statuses |= 1 << DK_CONTINUED_AS_NEW;
  selection->started.filter = *unborn = *filter;
  selection->started.is_over = false;
  selection->unborn.is_over = true;
  if (!is_about_starts(filter))
    return;
  selection->started.filter.statuses =
    (filter->statuses ? filter->statuses : EVERY) & ~(uint32_t)UNBORN;
  selection->started.is_over = selection->started.filter.statuses == 0;
  selection->unborn.is_over = !may_be_unborn(filter);
  unborn->flags &= ~(uint32_t)DK_FILTER_ROOTS;
  unborn->statuses = UNBORN;
  unborn->name = unborn->version = unborn->parent_instance = dk_str_of(NULL);
}

static const struct dk_instances nothing;

static bool
begin_behind(struct stream *stream, dk_str after)
{
  stream->rows = &nothing;
  dk_text_init(&stream->after);
  dk_text_add(&stream->after, after.ptr, after.ptr ? after.len : 0);
  return !dk_text_failed(&stream->after);
}

dk_status
selection_begin(struct dk_client *client, struct selection *selection,
                const struct dk_instance_filter *filter, dk_str after)
{
  *selection = (struct selection){.page = PAGE};
  dk_arena_init(&selection->texts);
  bool enough = begin_behind(&selection->unborn, after);
  enough = begin_behind(&selection->started, after) && enough;
  TRY(selecting_copy(client, &selection->texts, filter, &selection->filter));
  divide(selection);
  if (enough)
    return DK_OK;
  return client_refuse(client, DK_NO_MEMORY, "no memory for the id after which it begins");
}

/* Removes the statuses of ended instances from those selected; none might remain. */
void
selection_leave_over(struct selection *selection)
{
  struct dk_instance_filter *filter = &selection->filter;

  filter->statuses = (filter->statuses ? filter->statuses : EVERY) & IN_LIFE;
  if (filter->statuses != 0)
    divide(selection);
  else
    selection->started.is_over = selection->unborn.is_over = true;
}

void
selection_end(struct selection *selection)
{
  dk_text_done(&selection->unborn.after);
  dk_text_done(&selection->started.after);
  dk_arena_done(&selection->texts);
}

/* ---- what is not started --------------------------------------------------------------------- */

static bool
is_as_wanted(dk_str wanted, dk_str found)
{
  return !wanted.ptr || (found.ptr && str_equal(wanted, found));
}

static bool
fits(const struct dk_instance_filter *filter, const struct message *start)
{
  return is_as_wanted(filter->name, start->name) && is_as_wanted(filter->version, start->version) &&
         is_as_wanted(filter->parent_instance, start->parent.instance) &&
         !(filter->flags & DK_FILTER_ROOTS && start->parent.instance.ptr);
}

/* Reports it from its start, if the filter selects that. */
static dk_status
list_unborn(struct info_reader *l, const struct selection *selection, struct dk_instance_info *info,
            bool *ret_is_there, bool *ret_is_wanted)
{
  struct message start;

  *ret_is_wanted = false;
  TRY(info_find_start(l, info->instance, &start, ret_is_there));
  *ret_is_wanted = *ret_is_there && fits(&selection->filter, &start);
  return *ret_is_wanted ? info_from_start(l, &start, info) : DK_OK;
}

/* There is no start (any more): the instance might have begun since it was listed. */
static dk_status
look_again(struct info_reader *l, const struct selection *selection, struct dk_instance_info *info,
           bool *ret_is_wanted)
{
  struct dk_instance_filter filter = selection->started.filter;
  const struct dk_list_instances request = {
    .struct_size = sizeof(request),
    .flags = l->with_output ? DK_LIST_OUTPUT : 0,
    .filter = &filter,
  };
  struct dk_instances *found;

  filter.flags |= DK_FILTER_IDS;
  filter.ids = &info->instance;
  filter.n_ids = 1;
  TRY(info_list(l, l->again, &request, &found));
  *ret_is_wanted = found->n_items == 1 && found->items[0].status != DK_NOT_STARTED;
  if (!*ret_is_wanted)
    return DK_OK;
  TRY(info_from_row(l, &found->items[0], info));
  return info_keep(l, info); /* the next answer overwrites this one */
}

/* ---- pages ----------------------------------------------------------------------------------- */

static bool
has_next(const struct stream *stream)
{
  return stream->next < stream->rows->n_items;
}

static bool
is_through(const struct stream *stream)
{
  return stream->is_over && !has_next(stream);
}

/* Requests more, when all of the last answer was reported. */
static dk_status
fill(struct info_reader *l, const struct selection *selection, struct stream *stream,
     struct dk_caller *caller)
{
  struct dk_text *after = &stream->after;
  const struct dk_list_instances request = {
    .struct_size = sizeof(request),
    .flags = l->with_output ? DK_LIST_OUTPUT : 0,
    .filter = &stream->filter,
    .after = {after->length > 0 ? dk_text_str(after) : NULL, after->length},
    .max_instances = selection->page,
  };
  struct dk_instances *rows;

  if (stream->is_over || has_next(stream))
    return DK_OK;
  TRY(info_list(l, caller, &request, &rows));
  stream->rows = rows;
  stream->next = 0;
  stream->is_over = selection->page == 0 || rows->n_items < selection->page;
  if (stream->is_over)
    return DK_OK;
  dk_str last = rows->items[rows->n_items - 1].instance;
  dk_text_reset(after);
  dk_text_add(after, last.ptr, last.len);
  return dk_text_failed(after)
           ? client_refuse(l->client, DK_NO_MEMORY, "no memory for the id of the next page")
           : DK_OK;
}

/* Which to report next: below 0 the unborn one, above 0 the started one, 0: both are the same
 * instance. */
static int
next_of(const struct stream *unborn, const struct stream *started)
{
  if (!has_next(unborn) || !has_next(started))
    return has_next(unborn) ? -1 : 1;
  return str_compare(unborn->rows->items[unborn->next].instance,
                     started->rows->items[started->next].instance);
}

static dk_status
list_row(struct info_reader *l, const struct selection *selection, const struct dk_instance *row,
         struct page *page)
{
  struct dk_instance_info *info = &page->infos[page->n];
  bool is_there = true, is_wanted = true;

  TRY(info_from_row(l, row, info));
  if (row->status == DK_NOT_STARTED)
    TRY(list_unborn(l, selection, info, &is_there, &is_wanted));
  if (!is_there)
    TRY(look_again(l, selection, info, &is_wanted));
  page->n += is_wanted;
  return DK_OK;
}

/* Merges until one of them needs another request, whose answer overwrites its rows. */
static dk_status
merge(struct info_reader *l, struct selection *selection, struct page *page)
{
  struct stream *unborn = &selection->unborn, *started = &selection->started;

  while ((has_next(unborn) || unborn->is_over) && (has_next(started) || started->is_over) &&
         (has_next(unborn) || has_next(started))) {
    int order = next_of(unborn, started);
    const struct stream *next = order < 0 ? unborn : started;
    TRY(list_row(l, selection, &next->rows->items[next->next], page));
    unborn->next += order <= 0;
    started->next += order >= 0;
  }
  return DK_OK;
}

static dk_status
list_all(struct info_reader *l, const struct selection *selection, struct stream *stream,
         struct page *page)
{
  for (; has_next(stream); stream->next++)
    TRY(list_row(l, selection, &stream->rows->items[stream->next], page));
  return DK_OK;
}

static size_t
n_left(const struct stream *stream)
{
  return stream->rows->n_items - stream->next;
}

/* Requests instances that are not started first: the second request finds one that begins
 * meanwhile. */
dk_status
select_page(struct info_reader *l, struct selection *selection, struct page *ret_page)
{
  struct stream *unborn = &selection->unborn, *started = &selection->started;
  struct page page = {.n = 0};

  info_reader_next_page(l);
  TRY(fill(l, selection, unborn, l->unborn));
  bool is_first_part = selection->in_turn && has_next(unborn);
  if (!is_first_part)
    TRY(fill(l, selection, started, l->started));
  page.infos = dk_arena_array(&l->page, n_left(unborn) + n_left(started), sizeof(*page.infos));
  if (!page.infos)
    return client_refuse(l->client, DK_NO_MEMORY, "no memory for a page of instances");
  TRY(is_first_part ? list_all(l, selection, unborn, &page) : merge(l, selection, &page));
  page.is_last = is_through(unborn) && is_through(started);
  *ret_page = page;
  return DK_OK;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* *ret_n: how many were reported. */
static dk_status
list_page(struct dk_client *client, const struct page *page, uint64_t most, dk_instance_fn *each,
          void *context, uint64_t *ret_n)
{
  for (size_t i = 0; i < page->n && *ret_n < most; i++) {
    (*ret_n)++;
    if (each(context, &page->infos[i]) != 0)
      return client_refuse(client, DK_CALL_CANCELLED, "the callback has ended the call");
  }
  return DK_OK;
}

static dk_status
list(struct info_reader *l, struct selection *selection, uint64_t max, dk_instance_fn *each,
     void *context)
{
  uint64_t most = max > 0 ? max : UINT64_MAX, told = 0;
  struct page page = {.is_last = false};
  uint32_t longest = l->with_output ? PAGE_WITH_OUTPUT : PAGE;

  while (!page.is_last && told < most) {
    selection->page = most - told < longest ? (uint32_t)(most - told) : longest;
    TRY(select_page(l, selection, &page));
    TRY(list_page(l->client, &page, most, each, context, &told));
  }
  return DK_OK;
}

dk_status
dk_client_list(struct dk_client *client, const struct dk_instance_filter *filter, dk_str after,
               uint64_t max, int32_t with_output, dk_instance_fn *each, void *context)
{
  struct info_reader l;
  struct selection selection;

  TRY(client_needs_admin(client, "dk_client_list"));
  if (!each)
    return client_refuse(client, DK_INVALID, "dk_client_list has no callback: each is NULL");
  dk_status status = selection_begin(client, &selection, filter, after);
  if (status == DK_OK) {
    status = info_reader_begin(&l, client, with_output != 0);
    if (status == DK_OK)
      status = list(&l, &selection, max, each, context);
    info_reader_end(&l);
  }
  selection_end(&selection);
  return status;
}
