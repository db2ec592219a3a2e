/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of dk_client_list: which instances are listed, in which order, once each, and what of them;
 * and of what happens meanwhile.  The turns are made by hand, on the model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/plugin/call.h"
#include "core/runtime/client/client-filter.h"
#include "core/runtime/testing/hand-made-turns.h"

/* Happens immediately before a call of the store. */
static void (*before_list)(struct hand *h, unsigned n), (*before_messages)(struct hand *h);
static struct hand *hooked;
static unsigned n_lists;

__typeof__(dk_store_list_instances) __real_dk_store_list_instances, __wrap_dk_store_list_instances;
dk_status
__wrap_dk_store_list_instances(struct dk_store *store, struct dk_caller *caller,
                               const struct dk_list_instances *request,
                               struct dk_instances **ret_instances)
{
  n_lists++;
  if (before_list)
    before_list(hooked, n_lists);
  return __real_dk_store_list_instances(store, caller, request, ret_instances);
}

__typeof__(dk_store_read_messages) __real_dk_store_read_messages, __wrap_dk_store_read_messages;
dk_status
__wrap_dk_store_read_messages(struct dk_store *store, struct dk_caller *caller,
                              const struct dk_read_messages *request,
                              struct dk_messages **ret_messages)
{
  void (*hook)(struct hand *h) = before_messages;

  before_messages = NULL;
  if (hook)
    hook(hooked);
  return __real_dk_store_read_messages(store, caller, request, ret_messages);
}

/* ---- what was listed ------------------------------------------------------------------------- */

struct told {
  struct dk_client *client;
  struct dk_text text;        /* "id:status " of each */
  struct dk_instance_info last;
  unsigned n, stop_after;     /* 0: never */
};

static int32_t
hear(void *context, const struct dk_instance_info *info)
{
  struct told *told = context;

  dk_text_printf(&told->text, "%s:%d ", info->instance.ptr, (int)info->status);
  told->last = *info;
  return ++told->n == told->stop_after;
}

static struct dk_instance_filter
a_filter(void)
{
  return (struct dk_instance_filter){.struct_size = sizeof(struct dk_instance_filter)};
}

static const dk_str none = {NULL, 0};

/* What the filter selects, as text that is valid until the next call. */
static const char *
listed(struct hand *h, const struct dk_instance_filter *filter)
{
  static struct dk_text text = DK_TEXT_EMPTY;
  struct told told = {.text = DK_TEXT_EMPTY};
  dk_status status = dk_client_list(h->client, filter, none, 0, 0, hear, &told);

  dk_text_done(&text);
  text = told.text;
  if (status != DK_OK)
    diag("status %d: %s", (int)status, dk_client_error(h->client));
  return status == DK_OK ? dk_text_str(&text) : "not listed";
}

/* ---- which ----------------------------------------------------------------------------------- */

/* Two of each kind; as they are in the order of their ids. */
static void
make_all(struct hand *h)
{
  hand_make(h, dk_str_of("a-done"), DK_COMPLETED);
  hand_make(h, dk_str_of("b-failed"), DK_FAILED);
  hand_make(h, dk_str_of("c-cancelled"), DK_CANCELLED);
  hand_make(h, dk_str_of("d-continued"), DK_CONTINUED_AS_NEW);
  hand_make(h, dk_str_of("e-running"), DK_RUNNING);
  h->name = "report";
  h->parent = "e-running";
  hand_make(h, dk_str_of("f-child"), DK_RUNNING);
  hand_store(h, dk_str_of("g-child"));
  h->parent = NULL;
  hand_store(h, dk_str_of("h-new"));
  h->name = "order";
  hand_store(h, dk_str_of("i-new"));
  dk_client_raise(h->client, dk_str_of("j-absent"), "early", none);
}

static void
test_filters(void)
{
  struct hand h;
  struct dk_instance_filter filter = a_filter();

  hand_begin(&h, false);
  make_all(&h);
  const char *all = "a-done:2 b-failed:3 c-cancelled:5 d-continued:1 e-running:1 f-child:1 "
                    "g-child:0 h-new:0 i-new:0 ";
  is(listed(&h, NULL), all, "all of them, but not what has no start");
  is(listed(&h, &filter), all, "an empty filter selects all");
  filter.name = (dk_str){"reports", 6};
  is(listed(&h, &filter), "f-child:1 g-child:0 h-new:0 ",
     "by name, those too whose name is in their start only; it needs no NUL");
  filter.statuses = 1 << DK_NOT_STARTED;
  is(listed(&h, &filter), "g-child:0 h-new:0 ", "of these, what is not started");
  filter.flags = DK_FILTER_ROOTS;
  is(listed(&h, &filter), "h-new:0 ", "and without those that have a parent");
  filter.statuses = 1 << DK_RUNNING | 1 << DK_COMPLETED;
  filter.flags = 0;
  is(listed(&h, &filter), "f-child:1 ", "and what runs");
  filter = a_filter();
  filter.statuses = 1 << DK_RUNNING;
  is(listed(&h, &filter), "d-continued:1 e-running:1 f-child:1 ",
     "what is between two executions runs, for the filter too");
  filter = a_filter();
  filter.parent_instance = dk_str_of("e-running");
  is(listed(&h, &filter), "f-child:1 g-child:0 ", "children, born or not");
  filter = a_filter();
  filter.flags = DK_FILTER_ROOTS;
  filter.statuses = 1 << DK_NOT_STARTED | 1 << DK_FAILED;
  is(listed(&h, &filter), "b-failed:3 h-new:0 i-new:0 ", "roots");
  filter = a_filter();
  filter.version = dk_str_of("1.2.3");
  is(listed(&h, &filter), all, "by version");
  filter.version = dk_str_of("1.2.4");
  is(listed(&h, &filter), "", "which no instance has");
  filter.version = dk_str_of("1.2.3");
  filter.completed_from = 1;
  is(listed(&h, &filter), "a-done:2 b-failed:3 c-cancelled:5 d-continued:1 ",
     "by the time of completion, which no unborn one has");
  const dk_str ids[] = {dk_str_of("i-new"), dk_str_of("b-failed"), dk_str_of("absent")};
  filter = a_filter();
  filter.flags = DK_FILTER_IDS;
  filter.ids = ids;
  filter.n_ids = 3;
  is(listed(&h, &filter), "b-failed:3 i-new:0 ", "by ids");
  hand_end(&h);
}

static void
test_refusals(void)
{
  struct hand h;
  struct dk_instance_filter filter = a_filter();

  hand_begin(&h, false);
  filter.struct_size += 8;
  cmp_ok(dk_client_list(h.client, &filter, none, 0, 0, hear, NULL), "==", DK_INVALID,
         "a filter of a newer caller");
  ok(strstr(dk_client_error(h.client), "struct_size of the filter is "), "with the error: %s",
     dk_client_error(h.client));
  filter = a_filter();
  filter.n_ids = 1;
  cmp_ok(dk_client_list(h.client, &filter, none, 0, 0, hear, NULL), "==", DK_INVALID,
         "a number of ids, and no list");
  filter = a_filter();
  filter.statuses = 1 << 6;
  cmp_ok(dk_client_list(h.client, &filter, none, 0, 0, hear, NULL), "==", DK_UNSUPPORTED,
         "an unknown status");
  isnt(dk_client_error(h.client), "", "with an error text");
  cmp_ok(dk_client_list(h.client, NULL, none, 0, 0, NULL, NULL), "==", DK_INVALID,
         "no callback");
  hand_end(&h);

  hand_begin(&h, true);
  cmp_ok(dk_client_list(h.client, NULL, none, 0, 0, hear, NULL), "==", DK_UNSUPPORTED,
         "a provider without the extension");
  is(dk_client_error(h.client),
     "dk_client_list needs durakit.admin/1, which the provider model does not offer; without it, "
     "use dk_client_status, dk_client_history, dk_client_cancel or dk_cancel_many",
     "and what goes without");
  hand_end(&h);
}

/* ---- pages ----------------------------------------------------------------------------------- */

enum { MANY = 1203 };

/* Every third has begun, every fifth is a report. */
static void
make_some(struct hand *h, bool begun)
{
  char id[16];

  for (int i = 0; i < MANY; i++) {
    if ((i % 3 == 0) != begun)
      continue;
    snprintf(id, sizeof(id), "i-%04d", i);
    h->name = i % 5 == 0 ? "report" : "order";
    if (begun)
      hand_start(h, dk_str_of(id));
    else
      hand_store(h, dk_str_of(id));
  }
}

static char *
expected(int step)
{
  struct dk_text text = DK_TEXT_EMPTY;

  for (int i = 0; i < MANY; i += step)
    dk_text_printf(&text, "i-%04d:%d ", i, i % 3 == 0);
  return text.bytes;
}

static void
test_pages(void)
{
  struct hand h;
  struct dk_instance_filter filter = a_filter();
  char *all = expected(1), *reports = expected(5);

  hand_begin(&h, false);
  make_some(&h, true);
  make_some(&h, false);
  n_lists = 0;
  ok(strcmp(listed(&h, NULL), all) == 0, "each of %d once, in their order", MANY);
  cmp_ok(n_lists, "==", 3, "in three pages");
  filter.name = dk_str_of("report");
  n_lists = 0;
  ok(strcmp(listed(&h, &filter), reports) == 0, "those of a name, too");
  cmp_ok(n_lists, "<=", 6, "with two questions a page");
  n_lists = 0;
  filter.statuses = 1 << DK_NOT_STARTED;
  listed(&h, &filter);
  cmp_ok(n_lists, "==", 2, "or one, for what is not started");

  struct told told = {.text = DK_TEXT_EMPTY};
  n_lists = 0;
  cmp_ok(dk_client_list(h.client, NULL, (dk_str){"i-0002?", 6}, 7, 0, hear, &told), "==", DK_OK,
         "from an id on, at most 7");
  is(dk_text_str(&told.text), "i-0003:1 i-0004:0 i-0005:0 i-0006:1 i-0007:0 i-0008:0 i-0009:1 ",
     "are these");
  cmp_ok(n_lists, "==", 1, "asked for once");
  dk_text_reset(&told.text);
  filter.statuses = 0;
  cmp_ok(dk_client_list(h.client, &filter, dk_str_of("i-0600"), 3, 0, hear, &told), "==", DK_OK,
         "by name, too");
  is(dk_text_str(&told.text), "i-0605:0 i-0610:0 i-0615:1 ", "are these");
  dk_text_reset(&told.text);
  told.n = 0;
  told.stop_after = 2;
  cmp_ok(dk_client_list(h.client, NULL, none, 0, 0, hear, &told), "==", DK_CALL_CANCELLED,
         "a callback that ends the list");
  is(dk_text_str(&told.text), "i-0000:1 i-0001:0 ", "is not called again");
  isnt(dk_client_error(h.client), "", "and the error says so");
  dk_text_done(&told.text);
  free(all);
  free(reports);
  hand_end(&h);
}

/* A page costs the same at the end of a large store: no earlier page is kept. */
static void
test_memory(void)
{
  const size_t large = getenv("DURAKIT_DEEP") ? 100000 : 20000;
  struct hand h;
  struct info_reader l;
  struct selection selection;
  struct page page = {.is_last = false};
  struct dk_instance_filter filter = a_filter();
  size_t first = 0, most = 0, n = 0;
  char id[16];

  hand_begin(&h, false);
  for (size_t i = 0; i < large; i++) {
    snprintf(id, sizeof(id), "i-%06zu", i);
    hand_store(&h, dk_str_of(id));
  }
  filter.name = dk_str_of("order");
  if (info_reader_begin(&l, h.client, true) != DK_OK ||
      selection_begin(h.client, &selection, &filter, none) != DK_OK)
    BAIL_OUT("no memory");
  while (!page.is_last && select_page(&l, &selection, &page) == DK_OK) {
    size_t size = dk_arena_size(&l.page) + dk_arena_size(&l.scratch) +
                  dk_arena_size(&l.started->arena) + dk_arena_size(&l.unborn->arena) +
                  dk_arena_size(&l.detail->arena) + dk_arena_size(&l.again->arena);
    first = first > 0 ? first : size;
    most = size > most ? size : most;
    n += page.n;
  }
  cmp_ok(n, "==", large, "all pages of a large store");
  cmp_ok(most, "<=", 2 * first, "take what the first has taken, %zu bytes, or little more", first);
  selection_end(&selection);
  info_reader_end(&l);
  hand_end(&h);
}

/* ---- while things begin ---------------------------------------------------------------------- */

static void
begin_order(struct hand *h)
{
  if (hand_fetch(h) == 0)
    BAIL_OUT("no turn");
  hand_commit(h, 1, 1, &hand_started, 1, DK_RUNNING, NULL);
}

static void
begin_before_second(struct hand *h, unsigned n)
{
  if (n == 2)
    begin_order(h);
}

/* Listed as not started, but begins before its start is read, or before the other request. */
static void
test_beginning(void)
{
  struct hand h;
  struct dk_instance_filter filter = a_filter();

  hand_begin(&h, false);
  hooked = &h;
  hand_store(&h, dk_str_of("a"));
  before_messages = begin_order;
  is(listed(&h, NULL), "a:1 ", "one that begins while its start is looked for");
  filter.name = dk_str_of("order");
  hand_store(&h, dk_str_of("b"));
  before_messages = begin_order;
  is(listed(&h, &filter), "a:1 b:1 ", "by name, too");
  hand_store(&h, dk_str_of("c"));
  n_lists = 0;
  before_list = begin_before_second;
  is(listed(&h, &filter), "a:1 b:1 c:1 ", "one that begins between the two questions, once");
  before_list = NULL;
  filter.statuses = 1 << DK_NOT_STARTED;
  filter.name = none;
  hand_store(&h, dk_str_of("d"));
  before_messages = begin_order;
  is(listed(&h, &filter), "", "one that is not any more what was asked for is left out");
  hand_end(&h);
}

static void
take_request(struct hand *h)
{
  static const struct event ends[] = {
    {.kind = EVENT_CANCEL_REQUESTED}, {.kind = EVENT_CANCELLED, .by = {"x", 1}}};

  if (hand_fetch(h) == 0)
    BAIL_OUT("no turn");
  hand_commit(h, 1, 2, ends, 2, DK_CANCELLED, NULL);
}

/* A request that was stored when its instance was listed, and is taken before it is looked for. */
static void
test_request_is_taken(void)
{
  struct hand h;
  struct dk_cancel_counts counts = {.struct_size = sizeof(counts)};
  const struct dk_cancel_options options = {
    .struct_size = sizeof(options), .flags = DK_CANCEL_DRY_RUN, .expect = UINT64_MAX};

  hand_begin(&h, false);
  hooked = &h;
  hand_start(&h, dk_str_of("a"));
  hand_start(&h, dk_str_of("b"));
  dk_cancel_one(h.client, dk_str_of("a"), NULL, NULL);
  before_messages = take_request;
  cmp_ok(dk_cancel_by_name(h.client, "order", &options, NULL, NULL, &counts), "==", DK_OK,
         "a request that is taken while it is looked for");
  ok(counts.over == 1 && counts.requested == 1 && counts.already_requested == 0,
     "would not be made once more");
  hand_end(&h);
}

/* ---- what of them ---------------------------------------------------------------------------- */

static void
list_one(struct hand *h, const char *id, int32_t with_output, struct told *told)
{
  const dk_str ids[] = {dk_str_of(id)};
  struct dk_instance_filter filter = a_filter();

  filter.flags = DK_FILTER_IDS;
  filter.ids = ids;
  filter.n_ids = 1;
  told->n = 0;
  dk_text_reset(&told->text);
  if (dk_client_list(h->client, &filter, none, 0, with_output, hear, told) != DK_OK || told->n != 1)
    BAIL_OUT("%s is not listed", id);
}

/* Texts of an info live during the call: here, what does not need them. */
static int32_t
info_from_output(void *context, const struct dk_instance_info *info)
{
  struct dk_text *text = context;

  dk_text_printf(text, "%s=%s/%s/%s/%s ", info->instance.ptr,
                 info->output.ptr ? info->output.ptr : "-",
                 info->cancelled_by.ptr ? info->cancelled_by.ptr : "-", info->name.ptr,
                 info->parent.ptr ? info->parent.ptr : "-");
  return 0;
}

static void
test_infos(void)
{
  struct hand h;
  struct told told = {.text = DK_TEXT_EMPTY};
  struct dk_text text = DK_TEXT_EMPTY;

  hand_begin(&h, false);
  make_all(&h);
  dk_client_list(h.client, NULL, none, 0, 1, info_from_output, &text);
  is(dk_text_str(&text),
     "a-done=out/-/order/- b-failed=out/-/order/- c-cancelled=out/me/order/- "
     "d-continued=-/-/order/- e-running=-/-/order/- f-child=-/-/report/e-running "
     "g-child=in/-/report/e-running h-new=in/-/report/- i-new=in/-/order/- ",
     "outputs, inputs, who has cancelled, names and parents");
  dk_text_reset(&text);
  dk_client_list(h.client, NULL, none, 4, 0, info_from_output, &text);
  is(dk_text_str(&text),
     "a-done=-/-/order/- b-failed=-/-/order/- c-cancelled=-/-/order/- d-continued=-/-/order/- ",
     "not, if they are not asked for");
  list_one(&h, "c-cancelled", 0, &told);
  ok(told.last.created_at > 0 && told.last.started_at > 0 &&
       told.last.ended_at >= told.last.started_at && told.last.execution_id == 1 &&
       told.last.n_events == 2 && told.last.locked_until == 0,
     "an ended one has begun and ended");
  list_one(&h, "d-continued", 0, &told);
  ok(told.last.ended_at == 0, "a running one has not ended");
  list_one(&h, "h-new", 0, &told);
  ok(told.last.created_at > 0 && told.last.started_at == 0 && told.last.execution_id == 0,
     "one that is not started has not begun");
  hand_fetch(&h);
  list_one(&h, h.turn->head.instance.ptr, 0, &told);
  ok(told.last.locked_until > 0, "a worker has its turn");
  dk_text_done(&told.text);
  dk_text_done(&text);
  hand_end(&h);
}

/* The callback may use the client. */
static int32_t
ask_for_more(void *context, const struct dk_instance_info *info)
{
  struct told *told = context;
  struct dk_instance_info more = hand_info();

  if (dk_client_status(told->client, info->instance, &more) == DK_OK &&
      more.status == info->status && strcmp(more.instance.ptr, info->instance.ptr) == 0)
    told->n++;
  return 0;
}

static void
test_use_within(void)
{
  struct hand h;
  struct told told = {.n = 0};

  hand_begin(&h, false);
  make_all(&h);
  told.client = h.client;
  cmp_ok(dk_client_list(h.client, NULL, none, 0, 1, ask_for_more, &told), "==", DK_OK,
         "a function that asks the client, too");
  cmp_ok(told.n, "==", 9, "has its answers");
  hand_end(&h);
}

static void
test_failures(void)
{
  struct hand h;
  struct told told = {.text = DK_TEXT_EMPTY};

  hand_begin(&h, false);
  make_all(&h);
  faulty_plan(h.faulty, FAULTY_LIST_INSTANCES, 0, 2, FAULT_REFUSE, DK_OUTCOME_UNKNOWN);
  cmp_ok(dk_client_list(h.client, NULL, none, 0, 0, hear, &told), "==", DK_OK,
         "an answer that was lost is asked for again");
  cmp_ok(told.n, "==", 9, "and all are listed");
  faulty_plan(h.faulty, FAULTY_READ_MESSAGES, 1, 1, FAULT_REFUSE, DK_UNAVAILABLE);
  cmp_ok(dk_client_list(h.client, NULL, none, 0, 0, hear, &told), "==", DK_UNAVAILABLE,
         "a store that becomes unreachable");
  ok(strstr(dk_client_error(h.client), "read_messages: DK_UNAVAILABLE: "), "with the error: %s",
     dk_client_error(h.client));
  cmp_ok(told.n, "==", 9, "an incomplete page is not listed");
  dk_cancel(h.canceller);
  faulty_plan(h.faulty, FAULTY_LIST_INSTANCES, 0, 1, FAULT_HANG, DK_OK);
  cmp_ok(dk_client_list(h.client, NULL, none, 0, 0, hear, &told), "==", DK_CALL_CANCELLED,
         "a cancelled call");
  dk_text_done(&told.text);
  hand_end(&h);
}

int
main(void)
{
  plan(NO_PLAN);
  test_filters();
  test_refusals();
  test_pages();
  test_memory();
  test_beginning();
  test_request_is_taken();
  test_infos();
  test_use_within();
  test_failures();
  return exit_status();
}
