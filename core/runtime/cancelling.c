/* SPDX-License-Identifier: Apache-2.0 */
/* A client that cancels many: what is known of each, what is sent, and what is told of it.  Owns
 * nothing.
 *
 * The ids come in batches, from a list or from a filter.  Each is looked at before anything is sent
 * to it; between look and sending it may end, and the request is nobody's then. */
#include "core/runtime/selecting.h"

#include "core/base/utf8.h"
#include "core/plugin/call.h"
#include "core/runtime/names.h"

enum { BATCH = 500 };

struct cancelling {
  struct dk_client *client;
  struct looking l;
  struct message request;
  bool is_dry;
  dk_cancel_fn *each;
  void *context;
  struct dk_cancel_counts counts;
};

/* What is asked for, copied from what the user gave. */
struct asked {
  struct dk_cancel_options options;
  dk_cancel_fn *each;
  void *context;
};

/* Goes through all of it once; the second is what it goes through. */
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

/* ---- one instance ---------------------------------------------------------------------------- */

static void
count(struct dk_cancel_counts *counts, int32_t outcome)
{
  counts->requested += outcome == DK_CANCEL_REQUESTED;
  counts->already_requested += outcome == DK_CANCEL_ALREADY_REQUESTED;
  counts->over += outcome == DK_CANCEL_OVER;
  counts->not_found += outcome == DK_CANCEL_NOT_FOUND;
  counts->failed += outcome == DK_CANCEL_FAILED;
}

static dk_status
tell(struct cancelling *c, const struct dk_cancel_outcome *outcome)
{
  count(&c->counts, outcome->outcome);
  if (!c->each || c->each(c->context, outcome) == 0)
    return DK_OK;
  return client_refuse(c->client, DK_CALL_CANCELLED, "the function that it calls has ended it");
}

/* A store that is busy or away is asked again, for about a second. */
static dk_status
send(struct cancelling *c, dk_str instance, bool *ret_is_ours)
{
  struct letter letter;
  bool repeated = false;
  dk_status status = letter_write(c->client, &letter, instance, CLIENT_CANCEL_ID, 0, &c->request);

  if (status == DK_OK)
    status = letter_send(c->client, &letter, &repeated);
  for (unsigned n = 0; n < CLIENT_REPEATS && dk_status_class(status) == 1; n++) {
    if (!client_pause_for(c->client, client_pause_of(n)))
      break;
    status = letter_send(c->client, &letter, &repeated);
  }
  letter_burn(&letter);
  *ret_is_ours = repeated;
  return status;
}

/* Dry: DK_DUPLICATE if the store would say so. */
static dk_status
look_for_request(struct cancelling *c, dk_str instance)
{
  const dk_str id = dk_str_of(CLIENT_CANCEL_ID);
  struct dk_messages *messages;

  if (!client_has_admin(c->client))
    return DK_OK;
  TRY(look_messages(&c->l, instance, 0, &messages));
  for (size_t i = 0; i < messages->n_items; i++)
    if (messages->items[i].id.ptr && str_equal(messages->items[i].id, id))
      return DK_DUPLICATE;
  return DK_OK;
}

/* What keeps this one from being asked keeps others from it, too. */
static bool
is_of_the_store(dk_status status)
{
  return status != DK_OK && status != DK_BUSY && status != DK_INVALID && status != DK_TOO_LARGE;
}

static dk_status
tell_failure(struct cancelling *c, struct dk_cancel_outcome *outcome, dk_status error)
{
  char words[sizeof(c->client->error)];

  outcome->outcome = DK_CANCEL_FAILED;
  outcome->error = error;
  client_copy_error(c->client, words, sizeof(words));
  outcome->text = dk_str_of(words);
  return tell(c, outcome);
}

static dk_status
was_called_back(struct cancelling *c)
{
  return client_refuse(c->client, DK_CALL_CANCELLED, "the cancelling was called back");
}

static dk_status
tell_sending(struct cancelling *c, struct dk_cancel_outcome *outcome)
{
  bool is_ours = false;
  dk_status status = c->is_dry ? look_for_request(c, outcome->instance)
                               : send(c, outcome->instance, &is_ours);

  if (status == DK_OK || (status == DK_DUPLICATE && is_ours))
    outcome->outcome = DK_CANCEL_REQUESTED;
  else if (status == DK_DUPLICATE)
    outcome->outcome = DK_CANCEL_ALREADY_REQUESTED;
  else if (status == DK_CALL_CANCELLED || client_is_called_back(c->client))
    return was_called_back(c);
  if (outcome->outcome == 0) {
    TRY(tell_failure(c, outcome, status));
    return is_of_the_store(status) ? status : DK_OK;
  }
  client_forget_error(c->client);
  return tell(c, outcome);
}

static const char cannot_tell[] =
  "no turn of it was committed, and whether a start is stored a provider without " DK_ADMIN
  " cannot tell: dk_client_cancel asks all the same";

/* info NULL: it is not there. */
static dk_status
cancel(struct cancelling *c, dk_str instance, const struct dk_instance_info *info)
{
  struct dk_cancel_outcome outcome = {.struct_size = sizeof(outcome), .instance = instance};

  if (client_is_called_back(c->client))
    return was_called_back(c);
  outcome.status = info ? info->status : 0;
  if (info && (info->status == DK_RUNNING || info->status == DK_NOT_STARTED))
    return tell_sending(c, &outcome);
  outcome.outcome = info ? DK_CANCEL_OVER : DK_CANCEL_NOT_FOUND;
  if (!info && !client_has_admin(c->client))
    outcome.text = dk_str_of(cannot_tell);
  return tell(c, &outcome);
}

/* ---- a list of ids --------------------------------------------------------------------------- */

struct ids {
  const dk_str *first;  /* each once, with a NUL behind it */
  size_t n;
};

static bool
is_id(const struct cancelling *c, dk_str id)
{
  return id.ptr && dk_text_id_valid(id.ptr, id.len, client_max_id(c->client));
}

static dk_status
refuse_id(struct cancelling *c, dk_str id)
{
  struct dk_cancel_outcome outcome = {.struct_size = sizeof(outcome), .instance = id};

  client_refuse(c->client, DK_INVALID, "an id has to be 1 to %zu bytes of UTF-8 without NUL",
                client_max_id(c->client));
  return tell_failure(c, &outcome, DK_INVALID);
}

/* What the store knows of a batch, by id. */
static dk_status
look_at_batch(struct cancelling *c, const dk_str *ids, size_t n, struct names *ret_found)
{
  struct dk_instance_filter filter = {.struct_size = sizeof(filter), .flags = DK_FILTER_IDS};
  struct selection selection;
  struct page page = {.n = 0};
  void **at = NULL;

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
    at = names_at(ret_found, &c->l.page, page.infos[i].instance);
    if (at)
      *at = &page.infos[i];
    else
      status = client_refuse(c->client, DK_NO_MEMORY, "no memory for what was found");
  }
  selection_end(&selection);
  return status;
}

/* Without durakit.admin/1. */
static dk_status
look_at_one(struct cancelling *c, dk_str id, struct dk_instance_info *info,
            const struct dk_instance_info **ret_found)
{
  dk_status status = look_by_history(&c->l, id, info);

  *ret_found = status == DK_OK ? info : NULL;
  return status == DK_NOT_FOUND ? DK_OK : status;
}

static dk_status
cancel_batch(struct cancelling *c, const dk_str *ids, size_t n, size_t *ret_done)
{
  bool has_admin = client_has_admin(c->client);
  struct dk_instance_info info;
  struct names found = {.n_entries = 0};

  looking_turn(&c->l);
  if (has_admin)
    TRY(look_at_batch(c, ids, n, &found));
  for (size_t i = 0; i < n; i++) {
    const struct dk_instance_info *known = has_admin ? names_find(&found, ids[i]) : NULL;
    if (!is_id(c, ids[i])) {
      (*ret_done)++;
      TRY(refuse_id(c, ids[i]));
      continue;
    }
    if (!has_admin)
      TRY(look_at_one(c, ids[i], &info, &known));
    (*ret_done)++;
    TRY(cancel(c, ids[i], known));
  }
  return DK_OK;
}

/* The store has failed: that is the outcome of all that is left. */
static void
give_up(struct cancelling *c, const dk_str *ids, size_t n, dk_status error)
{
  struct dk_cancel_outcome outcome = {.struct_size = sizeof(outcome)};

  for (size_t i = 0; i < n; i++) {
    outcome.instance = ids[i];
    outcome.status = 0;
    if (tell_failure(c, &outcome, error) != DK_OK)
      return;
  }
}

static dk_status
cancel_list(struct cancelling *c, const void *what)
{
  const struct ids *ids = what;
  dk_status status = DK_OK;
  size_t done = 0;

  while (done < ids->n && status == DK_OK) {
    size_t n = ids->n - done < BATCH ? ids->n - done : BATCH;
    status = cancel_batch(c, ids->first + done, n, &done);
  }
  if (status != DK_OK && status != DK_CALL_CANCELLED)
    give_up(c, ids->first + done, ids->n - done, status);
  return status;
}

/* Each once, in the order of the list, copied for the NULs. */
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

  while (!page.is_last) {
    TRY(select_page(&c->l, selection, &page));
    for (size_t i = 0; i < page.n; i++)
      TRY(cancel(c, page.infos[i].instance, &page.infos[i]));
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
    status = cancel_pages(c, &selection);
  }
  selection_end(&selection);
  return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static dk_status
pass(struct dk_client *client, const struct asked *asked, bool is_dry, bool is_told,
     pass_fn *function, const void *what, struct dk_cancel_counts *ret_counts)
{
  struct cancelling c = {
    .client = client,
    .request = {.kind = MESSAGE_CANCEL,
                .text = dk_str_of(asked->options.reason),
                .by = dk_str_of(asked->options.by)},
    .is_dry = is_dry,
    .each = is_told ? asked->each : NULL,
    .context = asked->context,
  };
  dk_status status = looking_begin(&c.l, client, false);

  c.l.is_patient = true;
  if (status == DK_OK)
    status = function(&c, what);
  looking_end(&c.l);
  *ret_counts = c.counts;
  return status;
}

static dk_status
unexpected(struct dk_client *client, uint64_t found, uint64_t expected)
{
  return client_refuse(client, DK_INVALID, "%llu cancellations would be asked for, expected %llu: "
                       "nothing is sent", (unsigned long long)found, (unsigned long long)expected);
}

/* A number that is expected is counted before anything is sent. */
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
run(struct dk_client *client, const struct dk_cancel_options *options, dk_cancel_fn *each,
    void *context, pass_fn *function, const void *what, struct dk_cancel_counts *ret_counts)
{
  struct dk_cancel_counts counts = {.struct_size = 0};
  struct asked asked = {.each = each, .context = context};
  dk_status status = read_options(client, options, &asked.options);

  if (status == DK_OK)
    status = pass_as_expected(client, &asked, function, what, &counts);
  if (status == DK_OK)
    client_forget_error(client); /* of one id, which was told */
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
    return client_refuse(client, DK_INVALID, "there are %zu ids, and their list is NULL", n);
  dk_arena_init(&arena);
  dk_status status = gather(client, &arena, instances, n, &ids);
  if (status == DK_OK)
    status = run(client, options, each, context, cancel_list, &ids, ret_counts);
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
                         "the filter selects everything: say what is to be cancelled, or give the "
                         "statuses not started and running, if that is meant");
  return run(client, options, each, context, cancel_selected, filter, ret_counts);
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
    return client_refuse(client, DK_INVALID, "dk_cancel_by_name wants a name, and has NULL");
  return run(client, options, each, context, cancel_selected, &filter, ret_counts);
}

/* ---- one of them ----------------------------------------------------------------------------- */

struct single {
  struct dk_client *client;
  struct dk_cancel_outcome outcome;
};

/* Its text has to live on. */
static int32_t
keep_outcome(void *context, const struct dk_cancel_outcome *outcome)
{
  struct single *single = context;
  struct dk_client *client = single->client;

  single->outcome = *outcome;
  if (!outcome->text.ptr)
    return 0;
  pthread_mutex_lock(&client->lock);
  dk_arena_reset(&client->arena);
  single->outcome.text = dk_str_of(dk_arena_strdup(&client->arena, outcome->text.ptr));
  pthread_mutex_unlock(&client->lock);
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
