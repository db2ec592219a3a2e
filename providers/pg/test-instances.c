/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of durakit.admin/1 share: see test-instances.h. */
#include "providers/pg/test-instances.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"

struct dk_turn *
turn_of(struct handle_under_test *h, const char *instance)
{
  enqueue(h, instance);
  struct dk_turn *turn = fetch_turn_as(h, NULL);
  if (strcmp(turn->head.instance.ptr, instance) != 0)
    BAIL_OUT("a turn of %s, not of %s", turn->head.instance.ptr, instance);
  return turn;
}

dk_status
try_to_commit(struct handle_under_test *h, struct dk_bytes token, struct dk_turn_result result,
              struct dk_commit_outcome *ret_outcome)
{
  struct dk_commit_outcome ignored;

  result.struct_size = sizeof result;
  if (!result.execution_id)
    result.execution_id = 1;
  if (!result.name.ptr)
    result.name = text("order");
  if (!result.version.ptr)
    result.version = text("1");
  dk_status status = dk_store_ack_orchestration_item(h->store, h->caller, token, &result,
                                                     ret_outcome ? ret_outcome : &ignored);
  snprintf(said, sizeof said, "%s", dk_caller_failure(h->caller)->text);
  return status;
}

void
commit_of(struct handle_under_test *h, const char *instance, struct dk_turn_result result)
{
  must(h, try_to_commit(h, turn_of(h, instance)->head.lock_token, result, NULL), "commit");
}

const char *
listed(struct handle_under_test *h, const struct dk_instance_filter *filter, const char *after,
       uint32_t most)
{
  static char ids[8000];
  struct dk_list_instances request = {.struct_size = sizeof request, .filter = filter,
                                      .max_instances = most};
  struct dk_instances *instances;
  size_t n = 0;

  if (after)
    request.after = text(after);
  must(h, dk_store_list_instances(h->store, h->caller, &request, &instances), "list_instances");
  ids[0] = '\0';
  for (size_t i = 0; i < instances->n_items && n < sizeof ids; i++)
    n += (size_t)snprintf(ids + n, sizeof ids - n, "%s%s", i ? " " : "",
                          instances->items[i].instance.ptr);
  return ids;
}

struct dk_instance
told(struct handle_under_test *h, const char *instance)
{
  struct dk_bytes id = text(instance);
  struct dk_instance_filter filter = {.struct_size = sizeof filter, .flags = DK_FILTER_IDS,
                                      .ids = &id, .n_ids = 1};
  struct dk_list_instances request = {.struct_size = sizeof request, .flags = DK_LIST_OUTPUT,
                                      .filter = &filter};
  struct dk_instances *instances;

  must(h, dk_store_list_instances(h->store, h->caller, &request, &instances), "list_instances");
  if (instances->n_items != 1)
    BAIL_OUT("%zu instances with the id %s", instances->n_items, instance);
  return instances->items[0];
}

/* Splits a copy of the list; to be freed, as the copy is. */
static struct dk_bytes *
split(char *ids, size_t *ret_n)
{
  struct dk_bytes *list = calloc(MOST_IDS, sizeof *list);
  char *rest = ids;

  if (!list)
    BAIL_OUT("out of memory");
  *ret_n = 0;
  for (char *id; (id = strtok_r(rest, " ", &rest)) && *ret_n < MOST_IDS;)
    list[(*ret_n)++] = text(id);
  return list;
}

dk_status
try_to_delete(struct handle_under_test *h, const char *ids, uint32_t flags,
              struct dk_removed *ret_removed)
{
  struct dk_delete_instances request = {.struct_size = sizeof request, .flags = flags};
  char *copy = strdup(ids);

  struct dk_bytes *list = split(copy, &request.n_instances);
  request.instances = list;
  dk_status status = dk_store_delete_instances(h->store, h->caller, &request, ret_removed);
  snprintf(said, sizeof said, "%s", dk_caller_failure(h->caller)->text);
  free(list);
  free(copy);
  return status;
}

void
is_removed(const struct dk_removed *r, const char *expected, const char *name)
{
  char found[300];

  snprintf(found, sizeof found,
           "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s", r->instances,
           r->executions, r->events, r->messages, r->activities, r->next.ptr ? r->next.ptr : "-");
  is(found, expected, "%s", name);
}
