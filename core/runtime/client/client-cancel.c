/* SPDX-License-Identifier: Apache-2.0 */
/* A client that cancels many: finds the state of each, sends requests, and reports outcomes.  Owns
 * nothing.
 *
 * The ids come in batches, from a list or from a filter.  First the state of all in a batch is
 * read; then requests are sent to those that have not ended, many at once; then all outcomes are
 * reported.  An instance that ends between check and request ignores the request. */
#include <stdio.h>

#include "core/base/names.h"
#include "core/base/utf8.h"
#include "core/plugin/call.h"
#include "core/runtime/client/client-filter.h"
#include "core/runtime/client/client-send-many.h"

enum { BATCH = 500 };

struct cancelling {
  struct dk_client *client;
  struct info_reader l;
  struct message request;
  bool is_dry;
  dk_cancel_fn *each;
  void *context;
  struct dk_cancel_counts counts;
  char no_id[80];        /* for the text about an id that is invalid */
};

/* The request, copied from the user's options. */
struct asked {
  struct dk_cancel_options options;
  dk_cancel_fn *each;
  void *context;
};

/* One pass over all instances; `what` is the list or the filter. */
typedef dk_status pass_fn(struct cancelling *c, const void *what);

/* ---- options --------------------------------------------------------------------------------- */

static dk_status
read_options(struct dk_client *client, const struct dk_cancel_options *given,
             struct dk_cancel_options *ret_options)
{
  *ret_options =
    (struct dk_cancel_options){.struct_size = sizeof(*ret_options), .expect = UINT64_MAX};
  if (!given)
    return DK_OK;
  if (given->struct_size != sizeof(*given))
    return client_refuse(client, DK_INVALID,
                         "struct_size of the options is %u, expected %zu: set it to sizeof, and "
                         "use the manage.h of this library",
                         (unsigned)given->struct_size, sizeof(*given));
  if (given->flags & ~(uint32_t)DK_CANCEL_DRY_RUN)
    return client_refuse(client, DK_UNSUPPORTED, "flags of the options are 0x%x, expected bits of "
                         "0x%x", (unsigned)given->flags, (unsigned)DK_CANCEL_DRY_RUN);
  *ret_options = *given;
  return client_check_words(client, given->reason, given->by);
}

/* ---- one batch ------------------------------------------------------------------------------- */

/* The outcomes of some instances, in order; 0: a request must be sent. */
struct batch {
  struct dk_cancel_outcome *outcomes;
  size_t n;
};

/* Uses the memory of the page. */
static dk_status
new_batch(struct cancelling *c, size_t most, struct batch *ret_batch)
{
  *ret_batch =
    (struct batch){.outcomes = dk_arena_array(&c->l.page, most, sizeof(*ret_batch->outcomes))};
  if (ret_batch->outcomes)
    return DK_OK;
  return client_refuse(c->client, DK_NO_MEMORY, "no memory for %zu outcomes", most);
}

static const char unknown_start[] =
  "no turn of it was committed; a provider without " DK_ADMIN
  " cannot show whether a start is stored: dk_client_cancel sends the request anyway";

/* info NULL: it does not exist. */
static void
client_cancel_add(struct cancelling *c, struct batch *batch, dk_str instance,
                  const struct dk_instance_info *info)
{
  struct dk_cancel_outcome *outcome = &batch->outcomes[batch->n++];

  *outcome = (struct dk_cancel_outcome){.struct_size = sizeof(*outcome), .instance = instance};
  if (!info) {
    outcome->outcome = DK_CANCEL_NOT_FOUND;
    if (!client_has_admin(c->client))
      outcome->text = dk_str_of(unknown_start);
    return;
  }
  outcome->status = info->status;
  if (info->status != DK_RUNNING && info->status != DK_NOT_STARTED)
    outcome->outcome = DK_CANCEL_OVER;
}

static void
client_cancel_fail(struct dk_cancel_outcome *outcome, dk_status error, const char *words)
{
  outcome->outcome = DK_CANCEL_FAILED;
  outcome->error = error;
  outcome->text = dk_str_of(words);
}

static void
add_failed(struct batch *batch, dk_str instance, dk_status error, const char *words)
{
  struct dk_cancel_outcome *outcome = &batch->outcomes[batch->n++];

  *outcome = (struct dk_cancel_outcome){.struct_size = sizeof(*outcome), .instance = instance};
  client_cancel_fail(outcome, error, words);
}

/* ---- requesting ------------------------------------------------------------------------------ */

static dk_status
refuse_cancelled(struct cancelling *c)
{
  return client_refuse(c->client, DK_CALL_CANCELLED, "the call was cancelled");
}

/* For a dry run: checks whether a request is stored already. */
static dk_status
look_for_request(struct cancelling *c, struct dk_cancel_outcome *outcome)
{
  const dk_str id = dk_str_of(CLIENT_CANCEL_ID);
  struct dk_messages *messages;
  bool is_there = false;

  if (client_has_admin(c->client)) {
    TRY(info_messages(&c->l, outcome->instance, 0, &messages));
    for (size_t i = 0; i < messages->n_items; i++)
      is_there |= messages->items[i].id.ptr && str_equal(messages->items[i].id, id);
  }
  outcome->outcome = is_there ? DK_CANCEL_ALREADY_REQUESTED : DK_CANCEL_REQUESTED;
  return DK_OK;
}

static void
end_of(struct batch *batch, const struct dk_instance *row)
{
  for (size_t i = 0; i < batch->n; i++) {
    struct dk_cancel_outcome *outcome = &batch->outcomes[i];
    if (outcome->outcome != DK_CANCEL_REQUESTED || !str_equal(outcome->instance, row->instance))
      continue;
    outcome->outcome = DK_CANCEL_OVER;
    outcome->status = client_shown_status(row->status);
  }
}

/* If no request was found, one might have been taken since the instance was listed: then the
 * instance has ended.  An instance that runs after no request was found has none. */
static dk_status
look_for_ends(struct cancelling *c, struct batch *batch)
{
  struct dk_instance_filter filter = {
    .struct_size = sizeof(filter), .flags = DK_FILTER_IDS,
    .statuses = 1 << DK_COMPLETED | 1 << DK_FAILED | 1 << DK_CANCELLED};
  const struct dk_list_instances request = {.struct_size = sizeof(request), .filter = &filter};
  struct dk_bytes *ids = dk_arena_array(&c->l.page, batch->n, sizeof(*ids));
  struct dk_instances *rows;

  if (!ids)
    return client_refuse(c->client, DK_NO_MEMORY, "no memory for a list of ids");
  for (size_t i = 0; i < batch->n; i++)
    if (batch->outcomes[i].outcome == DK_CANCEL_REQUESTED)
      ids[filter.n_ids++] = batch->outcomes[i].instance;
  filter.ids = ids;
  if (filter.n_ids == 0 || !client_has_admin(c->client))
    return DK_OK;
  TRY(info_list(&c->l, c->l.again, &request, &rows));
  for (size_t i = 0; i < rows->n_items; i++)
    end_of(batch, &rows->items[i]);
  return DK_OK;
}

static dk_status
look_for_requests(struct cancelling *c, struct batch *batch)
{
  for (size_t i = 0; i < batch->n; i++) {
    if (client_is_cancelled(c->client))
      return refuse_cancelled(c);
    if (batch->outcomes[i].outcome == 0)
      TRY(look_for_request(c, &batch->outcomes[i]));
  }
  return look_for_ends(c, batch);
}

/* *ret_status: the store's answer, if the store has failed. */
static void
read_receipt(struct cancelling *c, const struct recipient *recipient,
             struct dk_cancel_outcome *outcome, dk_status *ret_status)
{
  dk_status status = recipient->status;

  if (!recipient->was_sent)
    return;
  if (status == DK_OK || (status == DK_DUPLICATE && recipient->is_ours))
    outcome->outcome = DK_CANCEL_REQUESTED;
  else if (status == DK_DUPLICATE)
    outcome->outcome = DK_CANCEL_ALREADY_REQUESTED;
  else
    client_cancel_fail(outcome, status, recipient->words);
  if (senders_fail_all(status) && *ret_status == DK_OK)
    *ret_status = client_refuse(c->client, status, "%s", recipient->words ? recipient->words : "");
}

/* With the store's text, if it gave one. */
static dk_status
end_cancelled(struct cancelling *c, const struct recipient *recipients, size_t n)
{
  for (size_t i = 0; i < n; i++)
    if (!recipients[i].was_sent && recipients[i].words)
      return client_refuse(c->client, DK_CALL_CANCELLED, "%s", recipients[i].words);
  return refuse_cancelled(c);
}

static dk_status
send_requests(struct cancelling *c, struct batch *batch)
{
  struct recipient *recipients = dk_arena_array(&c->l.page, batch->n, sizeof(*recipients));
  dk_status status = DK_OK;
  size_t n = 0;

  if (!recipients)
    return client_refuse(c->client, DK_NO_MEMORY, "no memory for %zu requests", batch->n);
  for (size_t i = 0; i < batch->n; i++)
    if (batch->outcomes[i].outcome == 0)
      recipients[n++].instance = batch->outcomes[i].instance;
  senders_send(c->client, c->l.detail, &c->request, &c->l.page, recipients, n);
  n = 0;
  for (size_t i = 0; i < batch->n; i++)
    if (batch->outcomes[i].outcome == 0)
      read_receipt(c, &recipients[n++], &batch->outcomes[i], &status);
  return status == DK_OK && client_is_cancelled(c->client) ? end_cancelled(c, recipients, n)
                                                             : status;
}

/* ---- reporting ------------------------------------------------------------------------------- */

static void
client_cancel_count(struct dk_cancel_counts *counts, int32_t outcome)
{
  counts->requested += outcome == DK_CANCEL_REQUESTED;
  counts->already_requested += outcome == DK_CANCEL_ALREADY_REQUESTED;
  counts->over += outcome == DK_CANCEL_OVER;
  counts->not_found += outcome == DK_CANCEL_NOT_FOUND;
  counts->failed += outcome == DK_CANCEL_FAILED;
}

/* Everything that was done is counted, even after `each` has ended the call. */
static dk_status
report(struct cancelling *c, const struct batch *batch)
{
  for (size_t i = 0; i < batch->n; i++)
    client_cancel_count(&c->counts, batch->outcomes[i].outcome);
  for (size_t i = 0; i < batch->n && c->each; i++)
    if (batch->outcomes[i].outcome != 0 && c->each(c->context, &batch->outcomes[i]) != 0)
      return client_refuse(c->client, DK_CALL_CANCELLED, "the callback has ended the call");
  return DK_OK;
}

/* Sends the requests of a batch, and reports all its outcomes.  If the store fails, all instances
 * whose request was not sent fail with its answer. */
static dk_status
client_cancel_finish(struct cancelling *c, struct batch *batch)
{
  char words[CLIENT_ERROR];
  dk_status status = c->is_dry ? look_for_requests(c, batch) : send_requests(c, batch);

  client_copy_error(c->client, words);
  for (size_t i = 0; i < batch->n && status != DK_OK && status != DK_CALL_CANCELLED; i++)
    if (batch->outcomes[i].outcome == 0)
      client_cancel_fail(&batch->outcomes[i], status, words);
  TRY(report(c, batch));
  return status == DK_OK ? DK_OK : client_refuse(c->client, status, "%s", words);
}

/* ---- a list of ids --------------------------------------------------------------------------- */

struct ids {
  const dk_str *first;  /* each once, followed by a NUL */
  size_t n;
};

static bool
is_id(const struct cancelling *c, dk_str id)
{
  return id.ptr && dk_text_id_valid(id.ptr, id.len, client_max_id(c->client));
}

/* Reads their states from the store, by id. */
static dk_status
look_at_batch(struct cancelling *c, const dk_str *ids, size_t n, struct names *ret_found)
{
  struct dk_instance_filter filter = {.struct_size = sizeof(filter), .flags = DK_FILTER_IDS};
  struct selection selection;
  struct page page = {.n = 0};

  struct dk_bytes *good = dk_arena_array(&c->l.page, n, sizeof(*good));
  if (!good)
    return client_refuse(c->client, DK_NO_MEMORY, "no memory for a list of ids");
  for (size_t i = 0; i < n; i++)
    if (is_id(c, ids[i]))
      good[filter.n_ids++] = ids[i];
  filter.ids = good;
  dk_status status = selection_begin(c->client, &selection, &filter, dk_str_of(NULL));
  selection.page = 0;
  if (status == DK_OK)
    status = select_page(&c->l, &selection, &page);
  for (size_t i = 0; i < page.n && status == DK_OK; i++) {
    void **at = names_at(ret_found, &c->l.page, page.infos[i].instance);
    if (at)
      *at = &page.infos[i];
    else
      status = client_refuse(c->client, DK_NO_MEMORY, "no memory for the instances found");
  }
  selection_end(&selection);
  return status;
}

/* Without durakit.admin/1. */
static dk_status
look_at_one(struct cancelling *c, dk_str id, struct dk_instance_info *info,
            const struct dk_instance_info **ret_found)
{
  dk_status status = info_from_history(&c->l, id, info);

  *ret_found = status == DK_OK ? info : NULL;
  return status == DK_NOT_FOUND ? DK_OK : status;
}

static dk_status
look_at_ids(struct cancelling *c, const dk_str *ids, size_t n, struct batch *ret_batch)
{
  bool has_admin = client_has_admin(c->client);
  struct dk_instance_info info;
  struct names found = {.n_entries = 0};

  info_reader_next_page(&c->l);
  if (has_admin)
    TRY(look_at_batch(c, ids, n, &found));
  TRY(new_batch(c, n, ret_batch));
  for (size_t i = 0; i < n; i++) {
    const struct dk_instance_info *known = has_admin ? names_find(&found, ids[i]) : NULL;
    if (!is_id(c, ids[i])) {
      add_failed(ret_batch, ids[i], DK_INVALID, c->no_id);
      continue;
    }
    if (!has_admin)
      TRY(look_at_one(c, ids[i], &info, &known));
    client_cancel_add(c, ret_batch, ids[i], known);
  }
  return DK_OK;
}

/* The store has failed: reports that as the outcome of all the others. */
static dk_status
client_cancel_give_up(struct cancelling *c, const dk_str *ids, size_t n, dk_status error)
{
  char words[CLIENT_ERROR];
  struct batch batch;

  client_copy_error(c->client, words);
  info_reader_next_page(&c->l);
  TRY(new_batch(c, n, &batch));
  for (size_t i = 0; i < n; i++)
    add_failed(&batch, ids[i], error, words);
  TRY(report(c, &batch));
  return client_refuse(c->client, error, "%s", words);
}

static dk_status
cancel_list(struct cancelling *c, const void *what)
{
  const struct ids *ids = what;
  dk_status status = DK_OK;
  struct batch batch;
  size_t done = 0, n;

  for (; done < ids->n && status == DK_OK; done += n) {
    n = ids->n - done < BATCH ? ids->n - done : BATCH;
    status = look_at_ids(c, ids->first + done, n, &batch);
    if (status != DK_OK)
      break;
    status = client_cancel_finish(c, &batch);
  }
  if (status == DK_OK || status == DK_CALL_CANCELLED)
    return status;
  return client_cancel_give_up(c, ids->first + done, ids->n - done, status);
}

/* Copies each id once, in the order of the list, followed by a NUL. */
static dk_status
gather(struct dk_client *client, struct dk_arena *arena, const dk_str *given, size_t n,
       struct ids *ret_ids)
{
  dk_str *ids = dk_arena_array(arena, n, sizeof(*ids));
  struct names seen = {.n_entries = 0};
  size_t n_ids = 0;

  for (size_t i = 0; i < n && ids; i++) {
    dk_str id = {dk_arena_copy(arena, given[i].ptr, given[i].ptr ? given[i].len : 0),
                 given[i].ptr ? given[i].len : 0};
    void **at = id.ptr ? names_at(&seen, arena, id) : NULL;
    if (!at)
      return client_refuse(client, DK_NO_MEMORY, "no memory for a list of %zu ids", n);
    if (!*at)
      ids[n_ids++] = id;
    *at = ids;
  }
  *ret_ids = (struct ids){ids, n_ids};
  return ids ? DK_OK : client_refuse(client, DK_NO_MEMORY, "no memory for a list of %zu ids", n);
}

/* ---- a filter -------------------------------------------------------------------------------- */

static dk_status
cancel_pages(struct cancelling *c, struct selection *selection)
{
  struct page page = {.is_last = false};
  struct batch batch;

  while (!page.is_last) {
    if (client_is_cancelled(c->client))
      return refuse_cancelled(c);
    TRY(select_page(&c->l, selection, &page));
    TRY(new_batch(c, page.n, &batch));
    for (size_t i = 0; i < page.n; i++)
      client_cancel_add(c, &batch, page.infos[i].instance, &page.infos[i]);
    TRY(client_cancel_finish(c, &batch));
  }
  return DK_OK;
}

static dk_status
cancel_selected(struct cancelling *c, const void *what)
{
  struct selection selection;
  dk_status status = selection_begin(c->client, &selection, what, dk_str_of(NULL));

  if (status == DK_OK) {
    selection_leave_over(&selection);
    selection.page = BATCH;
    selection.in_turn = true;
    status = cancel_pages(c, &selection);
  }
  selection_end(&selection);
  return status;
}

/* ---- all batches ----------------------------------------------------------------------------- */

static dk_status
pass(struct dk_client *client, const struct asked *asked, bool is_dry, bool is_reported,
     pass_fn *function, const void *what, struct dk_cancel_counts *ret_counts)
{
  struct cancelling c = {
    .client = client,
    .request = {.kind = MESSAGE_CANCEL,
                .text = dk_str_of(asked->options.reason),
                .by = dk_str_of(asked->options.by)},
    .is_dry = is_dry,
    .each = is_reported ? asked->each : NULL,
    .context = asked->context,
  };
  dk_status status = info_reader_begin(&c.l, client, false);

  c.l.is_patient = true;
  snprintf(c.no_id, sizeof(c.no_id), "an id must be 1 to %zu bytes of UTF-8 without NUL",
           client_max_id(client));
  if (status == DK_OK)
    status = function(&c, what);
  info_reader_end(&c.l);
  *ret_counts = c.counts;
  return status;
}

static dk_status
unexpected(struct dk_client *client, uint64_t found, uint64_t expected)
{
  return client_refuse(client, DK_INVALID, "%llu cancellations would be requested, expected %llu: "
                       "nothing was sent", (unsigned long long)found, (unsigned long long)expected);
}

/* If a number is expected, counts before anything is sent. */
static dk_status
pass_as_expected(struct dk_client *client, const struct asked *asked, pass_fn *function,
                 const void *what, struct dk_cancel_counts *ret_counts)
{
  bool is_dry = asked->options.flags & DK_CANCEL_DRY_RUN;
  uint64_t expected = asked->options.expect;

  if (!is_dry && expected != UINT64_MAX) {
    struct dk_cancel_counts found;
    TRY(pass(client, asked, true, false, function, what, &found));
    if (found.requested != expected) {
      *ret_counts = found;
      return unexpected(client, found.requested, expected);
    }
  }
  TRY(pass(client, asked, is_dry, true, function, what, ret_counts));
  if (is_dry && expected != UINT64_MAX && ret_counts->requested != expected)
    return unexpected(client, ret_counts->requested, expected);
  return DK_OK;
}

static const struct dk_cancel_counts none;

static void
give_counts(const struct dk_cancel_counts *counts, struct dk_cancel_counts *ret_counts)
{
  uint32_t size = ret_counts ? ret_counts->struct_size : 0;

  if (size < sizeof(uint32_t))
    return;
  memcpy(ret_counts, counts, size < sizeof(*counts) ? size : sizeof(*counts));
  ret_counts->struct_size = size;
}

static dk_status
client_cancel_run(struct dk_client *client, const struct dk_cancel_options *options,
                  dk_cancel_fn *each, void *context, pass_fn *function, const void *what,
                  struct dk_cancel_counts *ret_counts)
{
  struct dk_cancel_counts counts = {.struct_size = 0};
  struct asked asked = {.each = each, .context = context};
  dk_status status = read_options(client, options, &asked.options);

  if (status == DK_OK)
    status = pass_as_expected(client, &asked, function, what, &counts);
  if (status == DK_OK)
    client_forget_error(client); /* of one id, which was reported */
  give_counts(&counts, ret_counts);
  return status;
}

dk_status
dk_cancel_many(struct dk_client *client, const dk_str *instances, size_t n,
               const struct dk_cancel_options *options, dk_cancel_fn *each, void *context,
               struct dk_cancel_counts *ret_counts)
{
  struct dk_arena arena;
  struct ids ids;

  give_counts(&none, ret_counts);
  client_forget_error(client);
  if (n > 0 && !instances)
    return client_refuse(client, DK_INVALID, "the number of ids is %zu, but their list is NULL", n);
  dk_arena_init(&arena);
  dk_status status = gather(client, &arena, instances, n, &ids);
  if (status == DK_OK)
    status = client_cancel_run(client, options, each, context, cancel_list, &ids, ret_counts);
  dk_arena_done(&arena);
  return status;
}

dk_status
dk_cancel_matching(struct dk_client *client, const struct dk_instance_filter *filter,
                   const struct dk_cancel_options *options, dk_cancel_fn *each, void *context,
                   struct dk_cancel_counts *ret_counts)
{
  give_counts(&none, ret_counts);
  TRY(client_needs_admin(client, "dk_cancel_matching"));
  if (selecting_all(filter))
    return client_refuse(client, DK_INVALID,
                         "the filter selects everything: select what to cancel, or, if you mean "
                         "all, give the statuses not started and running");
  return client_cancel_run(client, options, each, context, cancel_selected, filter, ret_counts);
}

dk_status
dk_cancel_by_name(struct dk_client *client, const char *name,
                  const struct dk_cancel_options *options, dk_cancel_fn *each, void *context,
                  struct dk_cancel_counts *ret_counts)
{
  const struct dk_instance_filter filter = {.struct_size = sizeof(filter), .name = dk_str_of(name)};

  give_counts(&none, ret_counts);
  TRY(client_needs_admin(client, "dk_cancel_by_name"));
  if (!name)
    return client_refuse(client, DK_INVALID, "the name given to dk_cancel_by_name is NULL");
  return client_cancel_run(client, options, each, context, cancel_selected, &filter, ret_counts);
}

/* ---- one of them ----------------------------------------------------------------------------- */

struct single {
  struct dk_client *client;
  struct dk_cancel_outcome outcome;
};

/* Keeps a copy of its text. */
static int32_t
keep_outcome(void *context, const struct dk_cancel_outcome *outcome)
{
  struct single *single = context;
  struct dk_client *client = single->client;

  single->outcome = *outcome;
  if (!outcome->text.ptr)
    return 0;
  dk_lock(&client->lock);
  dk_arena_reset(&client->arena);
  single->outcome.text = dk_str_of(dk_arena_strdup(&client->arena, outcome->text.ptr));
  dk_unlock(&client->lock);
  return 0;
}

static void
give_outcome(const struct dk_cancel_outcome *outcome, struct dk_cancel_outcome *ret_outcome)
{
  uint32_t size = ret_outcome ? ret_outcome->struct_size : 0;

  if (outcome->outcome == 0 || size < sizeof(uint32_t))
    return;
  memcpy(ret_outcome, outcome, size < sizeof(*outcome) ? size : sizeof(*outcome));
  ret_outcome->struct_size = size;
}

dk_status
dk_cancel_one(struct dk_client *client, dk_str instance, const struct dk_cancel_options *options,
              struct dk_cancel_outcome *ret_outcome)
{
  struct single single = {.client = client};
  dk_status status =
    dk_cancel_many(client, &instance, 1, options, keep_outcome, &single, NULL);

  single.outcome.instance = instance;
  give_outcome(&single.outcome, ret_outcome);
  if (status != DK_OK || single.outcome.outcome != DK_CANCEL_FAILED)
    return status;
  return client_refuse(client, single.outcome.error, "%s",
                       single.outcome.text.ptr ? single.outcome.text.ptr : "");
}
