/* SPDX-License-Identifier: Apache-2.0 */
/* The host and durakit.admin/1: what it refuses before it calls, which results it accepts, and how
 * it uses a provider that lacks a part of the extension. */
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/plugin/testing/puppet.h"

/* ---- a puppet that has the extension --------------------------------------------------------- */

static dk_status
play(void *self, struct dk_call *call, const char *operation)
{
  struct puppet *puppet = self;

  atomic_fetch_add(&puppet->acts, 1);
  puppet->operation = operation;
  return puppet->act ? puppet->act(puppet, call) : DK_OK;
}


static dk_status
play_list(void *self, struct dk_call *call, const struct dk_list_instances *request)
{
  (void)request;
  return play(self, call, "list_instances");
}

static dk_status
play_executions(void *self, struct dk_call *call, const struct dk_list_executions *request)
{
  (void)request;
  return play(self, call, "list_executions");
}

static dk_status
play_messages(void *self, struct dk_call *call, const struct dk_read_messages *request)
{
  (void)request;
  return play(self, call, "read_messages");
}

static dk_status
play_stats(void *self, struct dk_call *call, const struct dk_read_stats *request)
{
  (void)request;
  return play(self, call, "read_stats");
}

static dk_status
give_removed(struct puppet *puppet, struct dk_call *call)
{
  const struct dk_removed removed = {.struct_size = sizeof(removed), .instances = 3};

  puppet->host->removed(call, &removed);
  return DK_OK;
}

/* Operations that remove report what they have removed. */
static dk_status
play_removal(void *self, struct dk_call *call, const char *operation)
{
  struct puppet *puppet = self;

  if (puppet->act)
    return play(self, call, operation);
  play(self, call, operation);
  return give_removed(puppet, call);
}

static dk_status
play_delete(void *self, struct dk_call *call, const struct dk_delete_instances *request)
{
  (void)request;
  return play_removal(self, call, "delete_instances");
}

static dk_status
play_delete_matching(void *self, struct dk_call *call, const struct dk_delete_matching *request)
{
  (void)request;
  return play_removal(self, call, "delete_matching");
}

static dk_status
play_prune(void *self, struct dk_call *call, const struct dk_prune *request)
{
  (void)request;
  return play_removal(self, call, "prune_executions");
}

static struct dk_admin table = {
  .struct_size = sizeof(table),
  .list_instances = play_list,
  .list_executions = play_executions,
  .read_messages = play_messages,
  .read_stats = play_stats,
  .delete_instances = play_delete,
  .delete_matching = play_delete_matching,
  .prune_executions = play_prune,
};

static const void *
admin_only(void *self, const char *id)
{
  (void)self;
  return strcmp(id, DK_ADMIN) == 0 ? &table : NULL;
}

static const void *
nothing(void *self, const char *id)
{
  (void)self;
  (void)id;
  return NULL;
}

/* Declares the extension, and has it on this store if `is_offered`. */
static void
open_puppet(struct puppet *puppet, bool is_offered)
{
  static const char *const extensions[] = {DK_ADMIN, NULL};
  struct puppet_descriptor descriptor;

  puppet_describe(&descriptor);
  descriptor.provider.extensions = extensions;
  descriptor.provider.extension = is_offered ? admin_only : nothing;
  puppet_open(puppet, &descriptor);
}

/* ---- requests -------------------------------------------------------------------------------- */

static dk_status
list(struct puppet *puppet, const struct dk_list_instances *request)
{
  struct dk_instances *instances;

  return dk_store_list_instances(puppet->store, puppet->caller, request, &instances);
}

static dk_status
list_filtered(struct puppet *puppet, const struct dk_instance_filter *filter)
{
  const struct dk_list_instances request = {.struct_size = sizeof(request), .filter = filter};

  return list(puppet, &request);
}

#define LIST(puppet, ...)                                                                          \
  list(puppet, &(struct dk_list_instances){.struct_size = sizeof(struct dk_list_instances),        \
                                           __VA_ARGS__})
#define FILTER(puppet, ...)                                                                        \
  list_filtered(puppet,                                                                            \
                &(struct dk_instance_filter){.struct_size = sizeof(struct dk_instance_filter),     \
                                             __VA_ARGS__})
#define EXECUTIONS(puppet, ret, ...)                                                               \
  dk_store_list_executions((puppet)->store, (puppet)->caller,                                      \
                           &(struct dk_list_executions){                                           \
                             .struct_size = sizeof(struct dk_list_executions), __VA_ARGS__},       \
                           ret)
#define MESSAGES(puppet, ret, ...)                                                                 \
  dk_store_read_messages((puppet)->store, (puppet)->caller,                                        \
                         &(struct dk_read_messages){                                               \
                           .struct_size = sizeof(struct dk_read_messages), __VA_ARGS__},           \
                         ret)
#define DELETE(puppet, ret, ...)                                                                   \
  dk_store_delete_instances((puppet)->store, (puppet)->caller,                                     \
                            &(struct dk_delete_instances){                                         \
                              .struct_size = sizeof(struct dk_delete_instances), __VA_ARGS__},     \
                            ret)
#define DELETE_MATCHING(puppet, ret, ...)                                                          \
  dk_store_delete_matching((puppet)->store, (puppet)->caller,                                      \
                           &(struct dk_delete_matching){                                           \
                             .struct_size = sizeof(struct dk_delete_matching), __VA_ARGS__},       \
                           ret)
#define PRUNE(puppet, ret, ...)                                                                    \
  dk_store_prune_executions(                                                                       \
    (puppet)->store, (puppet)->caller,                                                             \
    &(struct dk_prune){.struct_size = sizeof(struct dk_prune), __VA_ARGS__}, ret)

/* The provider was not called, and the text names this. */
static void
expect_refused(struct puppet *puppet, dk_status status, dk_status expected, const char *words)
{
  int acts = atomic_exchange(&puppet->acts, 0);
  const struct dk_failure *failure = dk_caller_failure(puppet->caller);

  cmp_ok(status, "==", expected, "refused: %s", words);
  ok(strstr(failure->text, words), "its text has '%s': %s", words, failure->text);
  ok(acts == 0 && failure->by_host, "the provider was not asked");
}

static void
expect_passed(struct puppet *puppet, dk_status status, const char *what)
{
  cmp_ok(status, "==", DK_OK, "%s passes: %s", what, failure_text(puppet));
  cmp_ok(atomic_exchange(&puppet->acts, 0), "==", 1, "to the provider");
}

static const struct dk_instance_filter all = {.struct_size = sizeof(all)};

static void
test_filters(void)
{
  struct puppet puppet = {.act = NULL};
  const struct dk_bytes ids[] = {text("a"), text("a")}, bad[] = {text("a"), {"\xff", 1}};

  open_puppet(&puppet, true);
  expect_passed(&puppet, LIST(&puppet), "a list of all");
  expect_passed(&puppet, FILTER(&puppet, .flags = DK_FILTER_IDS), "an empty list of ids");
  expect_passed(&puppet, FILTER(&puppet, .flags = DK_FILTER_IDS, .ids = ids, .n_ids = 2),
                "an id twice");
  expect_passed(&puppet, FILTER(&puppet, .statuses = 0x3f), "every status");
  expect_refused(&puppet, FILTER(&puppet, .ids = ids, .n_ids = 2), DK_INVALID,
                 "filter.ids: expected none without DK_FILTER_IDS, found 2");
  expect_refused(&puppet, FILTER(&puppet, .flags = DK_FILTER_IDS, .ids = bad, .n_ids = 2),
                 DK_INVALID, "filter.ids[1].id: expected UTF-8");
  expect_refused(&puppet, FILTER(&puppet, .flags = DK_FILTER_IDS, .n_ids = 1), DK_INVALID,
                 "expected a list, found 1 elements at NULL");
  expect_refused(&puppet, FILTER(&puppet, .statuses = 0x40), DK_UNSUPPORTED,
                 "filter.statuses: expected bits of 0x3f, found 0x40");
  expect_refused(&puppet, FILTER(&puppet, .flags = 4), DK_UNSUPPORTED, "filter.flags");
  expect_refused(&puppet, FILTER(&puppet, .name = text("")), DK_INVALID, "filter.name");
  expect_refused(&puppet, FILTER(&puppet, .version = {"1\n", 0}), DK_INVALID, "filter.version");
  expect_refused(&puppet, FILTER(&puppet, .parent_instance = {"x\0y", 3}), DK_INVALID,
                 "filter.parent_instance: expected text without NUL");
  expect_refused(&puppet, FILTER(&puppet, .created_from = -1), DK_INVALID, "created_from");
  expect_refused(&puppet, FILTER(&puppet, .created_before = -1), DK_INVALID, "created_before");
  expect_refused(&puppet, FILTER(&puppet, .completed_from = -1), DK_INVALID, "completed_from");
  expect_refused(&puppet, FILTER(&puppet, .completed_before = -1), DK_INVALID,
                 "completed_before");
  expect_refused(&puppet, LIST(&puppet, .flags = 2), DK_UNSUPPORTED, "flags");
  expect_refused(&puppet, LIST(&puppet, .after = text("")), DK_INVALID, "after");
  puppet_close(&puppet);
}

static void
test_requests(void)
{
  struct puppet puppet = {.act = NULL};
  const struct dk_bytes one = text("a");
  struct dk_executions *executions;
  struct dk_messages *messages;

  open_puppet(&puppet, true);
  expect_refused(&puppet, EXECUTIONS(&puppet, &executions, .after = 1), DK_INVALID,
                 "list_executions: instance: expected 1 to 255 bytes, found nothing");
  expect_refused(&puppet,
                 EXECUTIONS(&puppet, &executions, .instance = one, .after = UINT64_C(1) << 63),
                 DK_INVALID, "after: expected 1 to 2^63 - 1");
  expect_refused(&puppet, MESSAGES(&puppet, &messages, .max_messages = 1), DK_INVALID, "instance");
  expect_passed(&puppet, DELETE(&puppet, NULL, .flags = DK_DELETE_FORCE),
                "a deletion of no instance");
  expect_refused(&puppet, DELETE(&puppet, NULL, .flags = 2), DK_UNSUPPORTED, "flags");
  expect_refused(&puppet, DELETE(&puppet, NULL, .instances = &(struct dk_bytes){NULL, 0},
                                 .n_instances = 1),
                 DK_INVALID, "instances[0].id");
  expect_refused(&puppet, DELETE_MATCHING(&puppet, NULL, .max_instances = 1), DK_INVALID,
                 "delete_matching: filter: expected one (an empty one selects all), found none");
  expect_refused(&puppet, DELETE_MATCHING(&puppet, NULL, .filter = &all), DK_INVALID,
                 "max_instances: expected at least 1, found 0");
  expect_refused(&puppet, DELETE_MATCHING(&puppet, NULL, .filter = &all, .max_instances = 1,
                                          .flags = DK_DELETE_FORCE),
                 DK_UNSUPPORTED, "flags: expected none");
  puppet_close(&puppet);
}

static void
test_prunes(void)
{
  struct puppet puppet = {.act = NULL};
  const struct dk_bytes one = text("a");

  open_puppet(&puppet, true);
  expect_passed(&puppet, PRUNE(&puppet, NULL, .instance = one), "a prune of one");
  expect_passed(&puppet, PRUNE(&puppet, NULL, .filter = &all, .max_instances = 1, .after = one),
                "a page of a prune");
  expect_refused(&puppet, PRUNE(&puppet, NULL, .keep = 1), DK_INVALID, "filter");
  expect_refused(&puppet, PRUNE(&puppet, NULL, .instance = one, .filter = &all), DK_INVALID,
                 "filter: expected none together with an instance");
  expect_refused(&puppet, PRUNE(&puppet, NULL, .instance = one, .after = one), DK_INVALID,
                 "after: expected it to be absent (a single instance has no pages)");
  expect_refused(&puppet, PRUNE(&puppet, NULL, .instance = one, .max_instances = 7), DK_INVALID,
                 "max_instances: expected 0 together with an instance, found 7");
  expect_refused(&puppet, PRUNE(&puppet, NULL, .filter = &all), DK_INVALID,
                 "max_instances: expected at least 1");
  expect_refused(&puppet, PRUNE(&puppet, NULL, .instance = one, .completed_before = -1),
                 DK_INVALID, "completed_before");
  puppet_close(&puppet);
}

/* ---- results --------------------------------------------------------------------------------- */

static struct dk_instance
an_instance(const char *id)
{
  return (struct dk_instance){
    .struct_size = sizeof(struct dk_instance), .status = DK_RUNNING, .instance = text(id),
    .name = text("order"), .version = text("1.0.0"), .execution_id = 1};
}

/* The ids that the test put into `data`, NULL at the end. */
static dk_status
give_instances(struct puppet *puppet, struct dk_call *call)
{
  for (const char *const *id = puppet->data; *id; id++) {
    struct dk_instance instance = an_instance(*id);
    dk_status status = puppet->host->instance(call, &instance);
    if (status != DK_OK)
      return status;
  }
  return DK_OK;
}

#define IDS(...) ((const char *[]){__VA_ARGS__, NULL})

static void
expect_violation(struct puppet *puppet, dk_status status, const char *clause, const char *words)
{
  cmp_ok(status, "==", DK_INTERNAL, "what breaks %s is not accepted", clause);
  is(puppet->clause, clause, "and is reported as that");
  ok(strstr(puppet->text, words), "with the text '%s': %s", words, puppet->text);
  puppet->clause[0] = '\0';
}

static void
test_instances(void)
{
  struct puppet puppet = {.act = give_instances, .data = (void *)IDS("B", "a", "aa")};
  const struct dk_list_instances request = {.struct_size = sizeof(request)};
  struct dk_instances *instances = NULL;

  open_puppet(&puppet, true);
  dk_status status =
    dk_store_list_instances(puppet.store, puppet.caller, &request, &instances);
  cmp_ok(status, "==", DK_OK, "a list: %s", failure_text(&puppet));
  cmp_ok(instances->n_items, "==", 3, "has all of them");
  is(instances->items[2].instance.ptr, "aa", "with their ids");
  is(instances->items[0].name.ptr, "order", "and their names");
  ok(!instances->items[0].output.ptr, "and no output");
  puppet.data = (void *)IDS("a", "B");
  expect_violation(&puppet, LIST(&puppet), "ADMIN-1", "instance \"B\" after \"a\"");
  puppet.data = (void *)IDS("a", "a");
  expect_violation(&puppet, LIST(&puppet), "ADMIN-1", "instance \"a\" after \"a\"");
  puppet.data = (void *)IDS("m");
  expect_violation(&puppet, LIST(&puppet, .after = text("m")), "ADMIN-1", "\"m\" after \"m\"");
  puppet.data = (void *)IDS("a", "b", "c");
  expect_violation(&puppet, LIST(&puppet, .max_instances = 2), "ADMIN-1",
                   "more than the 2 instances");
  puppet.data = (void *)IDS("");
  expect_violation(&puppet, LIST(&puppet), "ADMIN-1", "not a valid id");
  puppet_close(&puppet);
}

static dk_status
give_odd_instance(struct puppet *puppet, struct dk_call *call)
{
  struct dk_instance instance = an_instance("a");

  if (puppet->n == 0)
    instance.status = 6;
  else if (puppet->n == 1)
    instance.name = (struct dk_bytes){"\xff", 1};
  else
    instance.struct_size = 4;
  return puppet->host->instance(call, &instance);
}

static void
test_odd_instances(void)
{
  struct puppet puppet = {.act = give_odd_instance};

  open_puppet(&puppet, true);
  expect_violation(&puppet, LIST(&puppet), "ADMIN-3", "status 6");
  puppet.n = 1;
  expect_violation(&puppet, LIST(&puppet), "ADMIN-3", "a name");
  puppet.n = 2;
  expect_violation(&puppet, LIST(&puppet), "ABI-9", "struct_size 4");
  puppet_close(&puppet);
}

static dk_status
give_executions(struct puppet *puppet, struct dk_call *call)
{
  for (const uint64_t *id = puppet->data; *id; id++) {
    const struct dk_execution execution = {
      .struct_size = sizeof(execution), .status = DK_COMPLETED, .execution_id = *id};
    dk_status status = puppet->host->execution(call, &execution);
    if (status != DK_OK)
      return status;
  }
  return DK_OK;
}

static void
test_executions(void)
{
  struct puppet puppet = {.act = give_executions, .data = (uint64_t[]){2, 9, 10, 0}};
  struct dk_executions *executions = NULL;

  open_puppet(&puppet, true);
  dk_status status = EXECUTIONS(&puppet, &executions, .instance = text("a"), .after = 1,
                                .max_executions = 3);
  cmp_ok(status, "==", DK_OK, "executions: %s", failure_text(&puppet));
  cmp_ok(executions->n_items, "==", 3, "all of them");
  cmp_ok(executions->items[2].execution_id, "==", 10, "in their order");
  expect_violation(&puppet, EXECUTIONS(&puppet, &executions, .instance = text("a"), .after = 2),
                   "ADMIN-5", "execution 2 after 2");
  expect_violation(
    &puppet, EXECUTIONS(&puppet, &executions, .instance = text("a"), .max_executions = 2),
    "ADMIN-5", "more than the 2 executions");
  puppet.data = (uint64_t[]){10, 9, 0};
  expect_violation(&puppet, EXECUTIONS(&puppet, &executions, .instance = text("a")), "ADMIN-5",
                   "execution 9 after 10");
  puppet_close(&puppet);
}

static dk_status
give_messages(struct puppet *puppet, struct dk_call *call)
{
  struct dk_message message = a_message("m");

  message.attempt = 0;
  for (int i = 0; i < puppet->n; i++) {
    dk_status status = puppet->host->message(call, &message);
    if (status != DK_OK)
      return status;
  }
  return DK_OK;
}

static void
test_messages(void)
{
  struct puppet puppet = {.act = give_messages, .n = 2};
  struct dk_messages *messages = NULL;

  open_puppet(&puppet, true);
  dk_status status = MESSAGES(&puppet, &messages, .instance = text("a"), .max_messages = 2);
  cmp_ok(status, "==", DK_OK, "messages without attempts: %s", failure_text(&puppet));
  cmp_ok(messages->n_items, "==", 2, "all of them");
  is(messages->items[1].id.ptr, "m", "with their ids");
  expect_violation(&puppet, MESSAGES(&puppet, &messages, .instance = text("a"), .max_messages = 1),
                   "ADMIN-8", "more than the 1 messages");
  puppet.n = 0;
  status = MESSAGES(&puppet, &messages, .instance = text("a"));
  ok(status == DK_OK && messages->n_items == 0, "none is none");
  puppet_close(&puppet);
}

static dk_status
give_stats(struct puppet *puppet, struct dk_call *call)
{
  const struct dk_stats stats = {.struct_size = sizeof(stats), .now = 5, .oldest_activity = 7};
  dk_status status = DK_OK;

  for (int i = 0; i < puppet->n && status == DK_OK; i++)
    status = puppet->host->stats(call, &stats);
  return status;
}

static void
test_stats(void)
{
  struct puppet puppet = {.act = give_stats, .n = 1};
  struct dk_stats stats = {.now = 0};

  open_puppet(&puppet, true);
  cmp_ok(dk_store_read_stats(puppet.store, puppet.caller, &stats), "==", DK_OK, "stats: %s",
         failure_text(&puppet));
  ok(stats.now == 5 && stats.oldest_activity == 7, "come as they are");
  puppet.n = 0;
  expect_violation(&puppet, dk_store_read_stats(puppet.store, puppet.caller, &stats), "ADMIN-6",
                   "DK_OK without stats");
  puppet.n = 2;
  expect_violation(&puppet, dk_store_read_stats(puppet.store, puppet.caller, &stats), "ABI-4",
                   "stats was called twice");
  puppet_close(&puppet);
}

/* ---- what was removed ------------------------------------------------------------------------ */

static dk_status
give_page(struct puppet *puppet, struct dk_call *call)
{
  struct dk_removed removed = {.struct_size = sizeof(removed), .executions = 4,
                               .next = text(puppet->data)};

  for (int i = 0; i < puppet->n; i++)
    puppet->host->removed(call, &removed);
  return DK_OK;
}

static void
test_removed(void)
{
  struct puppet puppet = {.act = give_page, .n = 1, .data = (char []){"last"}};
  struct dk_removed removed = {.instances = 0};

  open_puppet(&puppet, true);
  dk_status status = PRUNE(&puppet, &removed, .filter = &all, .max_instances = 1);
  cmp_ok(status, "==", DK_OK, "a page: %s", failure_text(&puppet));
  ok(removed.executions == 4 && strcmp(removed.next.ptr, "last") == 0, "and where it ended");
  puppet.n = 0;
  expect_violation(&puppet, PRUNE(&puppet, &removed, .filter = &all, .max_instances = 1), "DEL-7",
                   "DK_OK without removed");
  puppet.n = 1;
  expect_violation(&puppet, DELETE(&puppet, &removed, .n_instances = 0), "DEL-7",
                   "DK_OK without removed");
  cmp_ok(puppet.violations, "==", 3, "a next without a requested page is reported too");
  puppet.n = 2;
  cmp_ok(PRUNE(&puppet, &removed, .filter = &all, .max_instances = 1), "==", DK_OK,
         "what is removed stays removed, however often it is reported");
  ok(strstr(puppet.text, "removed was called twice"), "which is a violation: %s", puppet.text);
  puppet_close(&puppet);
}

/* Like a plugin that was built before there were roots: its struct ends before them. */
static dk_status
give_shorter_page(struct puppet *puppet, struct dk_call *call)
{
  const struct dk_removed removed = {.struct_size = offsetof(struct dk_removed, roots),
                                     .instances = 2, .roots = 4711};

  puppet->host->removed(call, &removed);
  return DK_OK;
}

static void
test_removed_without_roots(void)
{
  struct puppet puppet = {.act = give_shorter_page};
  struct dk_removed removed = {.roots = 7};

  open_puppet(&puppet, true);
  dk_status status = DELETE(&puppet, &removed, .n_instances = 0);
  cmp_ok(status, "==", DK_OK, "a shorter struct: %s", failure_text(&puppet));
  ok(removed.instances == 2 && removed.roots == 0, "what it does not have is 0");
  puppet_close(&puppet);
}

/* The rows are deleted even if there is no memory for the end of the page. */
static void
test_removed_without_memory(void)
{
  static char region[64 * 1024];
  char *next = calloc(1, 60 * 1024);
  struct puppet puppet = {.act = give_page, .n = 1, .data = next};
  struct dk_removed removed;

  if (!next)
    bail_out("no memory");
  memset(next, 'n', 255);
  open_puppet(&puppet, true);
  struct dk_caller *caller = dk_caller_new(region, sizeof(region));
  if (!caller)
    bail_out("no caller");
  dk_status status = DK_OK;
  int pages = 0;
  do
    status = dk_store_prune_executions(
      puppet.store, caller,
      &(struct dk_prune){.struct_size = sizeof(struct dk_prune), .filter = &all,
                         .max_instances = 1},
      &removed);
  while (status == DK_OK && ++pages < 10000);
  ok(pages > 0, "%d pages had room", pages);
  cmp_ok(status, "==", DK_OUTCOME_UNKNOWN, "the next one might have been removed: %s",
         dk_caller_failure(caller)->text);
  cmp_ok(puppet.violations, "==", 0, "and the provider is not blamed");
  dk_caller_free(caller);
  puppet_close(&puppet);
  free(next);
}

/* ---- without it ------------------------------------------------------------------------------ */

static void
test_not_offered(void)
{
  struct puppet puppet = {.act = NULL};
  struct dk_admin whole = table;

  puppet_open(&puppet, NULL);
  expect_refused(&puppet, LIST(&puppet), DK_UNSUPPORTED,
                 "list_instances: the provider does not declare durakit.admin/1");
  puppet_close(&puppet);
  open_puppet(&puppet, false);
  expect_refused(&puppet, LIST(&puppet), DK_UNSUPPORTED,
                 "list_instances: the provider does not offer durakit.admin/1 on this store");
  puppet_close(&puppet);
  /* One that was compiled when the table was shorter. */
  table.struct_size = offsetof(struct dk_admin, prune_executions);
  open_puppet(&puppet, true);
  expect_refused(&puppet, PRUNE(&puppet, NULL, .instance = text("a")), DK_UNSUPPORTED,
                 "prune_executions");
  expect_passed(&puppet, LIST(&puppet), "an operation that such a table has");
  puppet_close(&puppet);
  table = whole;
}

int
main(void)
{
  plan(NO_PLAN);
  test_filters();
  test_requests();
  test_prunes();
  test_instances();
  test_odd_instances();
  test_executions();
  test_messages();
  test_stats();
  test_removed();
  test_removed_without_roots();
  test_removed_without_memory();
  test_not_offered();
  return done_testing();
}
