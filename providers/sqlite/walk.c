/* SPDX-License-Identifier: Apache-2.0 */
/* ADMIN-1, ADMIN-2: which instances, in which order.  A step is one row, found by a key or next to
 * the last; what it costs does not depend on how many stand before it. */
#include "providers/sqlite/admin.h"

#include <stdlib.h>
#include <string.h>

/* ---- the ids of a filter --------------------------------------------------------------------- */

static int
compare_bytes(struct dk_bytes a, struct dk_bytes b)
{
  size_t shorter = a.len < b.len ? a.len : b.len;
  int order = shorter > 0 ? memcmp(a.ptr, b.ptr, shorter) : 0;

  return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int
walk_compare_ids(const void *a, const void *b)
{
  return compare_bytes(*(const struct dk_bytes *)a, *(const struct dk_bytes *)b);
}

static bool
has_ids(const struct dk_instance_filter *filter)
{
  return filter && (filter->flags & DK_FILTER_IDS);
}

/* Those behind `after`, sorted. */
static bool
sort_ids(struct walk *walk, const struct dk_instance_filter *filter)
{
  size_t n = 0;

  if (filter->n_ids == 0)
    return true;
  walk->ids = calloc(filter->n_ids, sizeof *walk->ids);
  if (!walk->ids)
    return false;
  for (size_t i = 0; i < filter->n_ids; i++)
    if (!walk->after.ptr || compare_bytes(filter->ids[i], walk->after) > 0)
      walk->ids[n++] = filter->ids[i];
  qsort(walk->ids, n, sizeof *walk->ids, walk_compare_ids);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || compare_bytes(walk->ids[i], walk->ids[i - 1]) != 0)
      walk->ids[walk->n_ids++] = walk->ids[i];
  return true;
}

/* ---- beginning and ending -------------------------------------------------------------------- */

bool
walk_begin(struct walk *walk, const struct dk_instance_filter *filter, struct dk_bytes after)
{
  *walk = (struct walk){.filter = filter, .after = after};
  return !has_ids(filter) || sort_ids(walk, filter);
}

void
walk_end(struct walk *walk)
{
  free(walk->ids);
}

/* No stored id is longer than MAX_ID. */
static void
note_last(struct walk *walk, struct dk_bytes id)
{
  walk->last_length = id.len < sizeof walk->last ? id.len : sizeof walk->last;
  if (walk->last_length > 0)
    memcpy(walk->last, id.ptr, walk->last_length);
}

void
walk_start(struct walk *walk, struct statements *sql, int64_t now, uint64_t most)
{
  walk->sql = sql;
  walk->now = now;
  walk->left = most;
  walk->next_id = 0;
  walk->row = NULL;
  walk->is_over = false;
  note_last(walk, walk->after);
}

void
walk_stop(struct walk *walk)
{
  if (walk->row)
    sql_close(walk->row);
  walk->row = NULL;
}

/* ---- which is next --------------------------------------------------------------------------- */

static dk_status
open_rows(struct walk *walk)
{
  const struct dk_instance_filter *filter = walk->filter;
  struct dk_bytes from = walk->after.ptr ? walk->after : (struct dk_bytes){"", 0};

  if (filter && filter->parent_instance.ptr)
    return sql_open(walk->sql, SQL_WALK_CHILDREN, &walk->row, "tt", from, filter->parent_instance);
  return sql_open(walk->sql, SQL_WALK_INSTANCES, &walk->row, "t", from);
}

static dk_status
next_row(struct walk *walk, bool *ret_is_there)
{
  if (!walk->row)
    TRY(open_rows(walk));
  TRY(sql_next(walk->sql, walk->row, ret_is_there));
  walk->is_over = !*ret_is_there;
  return DK_OK;
}

/* *ret_is_there false: this one is not there; but there may be others. */
static dk_status
next_listed(struct walk *walk, bool *ret_is_there)
{
  walk_stop(walk);
  walk->is_over = walk->next_id == walk->n_ids;
  *ret_is_there = false;
  if (walk->is_over)
    return DK_OK;
  struct dk_bytes id = walk->ids[walk->next_id++];
  note_last(walk, id);
  TRY(sql_open(walk->sql, SQL_LOOK_AT_INSTANCE, &walk->row, "t", id));
  return sql_next(walk->sql, walk->row, ret_is_there);
}

/* ---- what it is ------------------------------------------------------------------------------ */

/* ADMIN-3, ADMIN-4: false if it is only an address. */
static bool
read_instance(const struct walk *walk, struct found *ret_found)
{
  sqlite3_stmt *row = walk->row;
  bool is_known = sqlite3_column_int(row, 2) != 0;
  int64_t locked_until = sqlite3_column_int64(row, 5);

  *ret_found = (struct found){
    .iid = sqlite3_column_int64(row, 0),
    .instance = {.struct_size = sizeof ret_found->instance,
                 .status = sqlite3_column_int(row, 4),
                 .instance = sql_bytes(row, 1),
                 .created_at = sqlite3_column_int64(row, 14),
                 .locked_until = locked_until > walk->now ? locked_until : 0},
  };
  if (!is_known)
    return sqlite3_column_int(row, 3) != 0;
  struct dk_instance *instance = &ret_found->instance;
  instance->owner = sql_bytes(row, 6);
  instance->name = sql_bytes(row, 7);
  instance->version = sql_bytes(row, 8);
  instance->parent_instance = sql_bytes(row, 9);
  instance->birth = (uint64_t)ret_found->iid;
  instance->execution_id = (uint64_t)sqlite3_column_int64(row, 10);
  instance->last_event_id = (uint64_t)sqlite3_column_int64(row, 11);
  instance->started_at = sqlite3_column_int64(row, 12);
  instance->completed_at = sqlite3_column_int64(row, 13);
  return true;
}

static bool
is_given_and_other(struct dk_bytes asked, struct dk_bytes found)
{
  return asked.ptr && (!found.ptr || compare_bytes(asked, found) != 0);
}

static bool
is_within(int64_t time, int64_t from, int64_t before)
{
  return (from == 0 || time >= from) && (before == 0 || time < before);
}

/* ADMIN-2: all that is given holds. */
static bool
is_selected(const struct dk_instance_filter *filter, const struct dk_instance *instance)
{
  if (!filter)
    return true;
  if (is_given_and_other(filter->name, instance->name) ||
      is_given_and_other(filter->version, instance->version) ||
      is_given_and_other(filter->parent_instance, instance->parent_instance))
    return false;
  if ((filter->flags & DK_FILTER_ROOTS) && instance->parent_instance.ptr)
    return false;
  if (filter->statuses && !(filter->statuses & 1u << instance->status))
    return false;
  if ((filter->completed_from || filter->completed_before) && instance->completed_at == 0)
    return false;
  return is_within(instance->created_at, filter->created_from, filter->created_before) &&
         is_within(instance->completed_at, filter->completed_from, filter->completed_before);
}

/* ---- a step ---------------------------------------------------------------------------------- */

dk_status
walk_step(struct walk *walk, struct found *ret_found, bool *ret_is_there)
{
  bool is_listed = has_ids(walk->filter), has_row;

  *ret_is_there = false;
  for (; walk->left > 0 && !*ret_is_there; walk->left--) {
    TRY(is_listed ? next_listed(walk, &has_row) : next_row(walk, &has_row));
    if (walk->is_over)
      break;
    if (!has_row)
      continue;
    *ret_is_there = read_instance(walk, ret_found) &&
                    is_selected(walk->filter, &ret_found->instance);
    note_last(walk, ret_found->instance.instance);
  }
  if (!*ret_is_there)
    walk_stop(walk);
  return DK_OK;
}
