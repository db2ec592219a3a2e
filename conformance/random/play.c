/* SPDX-License-Identifier: Apache-2.0 */
/* One pass: each step is made on the provider, then on the model, which follows the provider's
 * choices, and the two replies are compared.  The model lives in the same process and goes by the
 * same virtual clock. */
#include "conformance/random/random.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- tokens ---------------------------------------------------------------------------------- */

static struct handed *
find_handed(const struct pass *p, const struct token_ref *ref)
{
  for (size_t i = 0; i < p->handed.n; i++) {
    struct handed *h = &p->handed.items[i];
    if (h->fetch == ref->fetch && h->item == ref->item)
      return h;
  }
  return NULL;
}

/* Tokens that were never issued, of forms that a provider might parse and trust. */
static struct dk_bytes
made_up_token(uint32_t which)
{
  static const char *const tokens[] = {"0", "1", "-1", "x", "1:1", "order:1", "%", "00000000",
                                       "order", "null", "' or 1=1 --", "0x1", " ", "\xff", "1.0",
                                       "9223372036854775807"};

  return bytes(tokens[which % (sizeof(tokens) / sizeof(tokens[0]))]);
}

/* A token that is nearly this one. */
static void
change_case(char *text, size_t size)
{
  for (size_t i = 0; i < size; i++)
    if (isalpha((unsigned char)text[i]))
      text[i] = (char)(text[i] ^ 0x20);
}

static struct dk_bytes
respelled(struct pass *p, struct dk_bytes token, uint32_t how)
{
  char *copy = kit_alloc(p->t, &p->t->arena, token.len + 2, 1);
  char *last = copy + token.len - 1;
  struct dk_bytes result = {copy, token.len};

  memcpy(copy, token.ptr, token.len);
  switch (how % RESPELLINGS) {
  case 0: *last = (char)(*last ^ 1); break;
  case 1: result.len--; copy[result.len] = '\0'; break;
  case 2: copy[result.len++] = 'x'; break;
  case 3: copy[0] = (char)(copy[0] ^ 1); break;
  case 4: copy[result.len++] = ' '; break;
  case 5: copy[result.len++] = '0'; break;
  case 6: *last = '%'; break;
  case 7: change_case(copy, token.len); break;
  case 8:
    memcpy(copy + 1, token.ptr, token.len);
    copy[0] = ' ';
    result.len++;
    break;
  default: copy[token.len / 2] = (char)(copy[token.len / 2] ^ 0x20);
  }
  if (result.len == 0 || memchr(result.ptr, 0, result.len) != NULL || same_bytes(result, token))
    return bytes("x");
  for (size_t i = 0; i < p->handed.n; i++) /* it has become another one */
    if (same_bytes(result, p->handed.items[i].theirs) ||
        same_bytes(result, p->handed.items[i].ours))
      return bytes("x");
  return result;
}

static struct dk_bytes
token_for(struct pass *p, const struct token_ref *ref, bool of_model)
{
  const struct handed *h = find_handed(p, ref);

  if (h == NULL)
    return made_up_token(ref->spelled);
  struct dk_bytes token = of_model ? h->ours : h->theirs;
  return ref->spelled == 0 ? token : respelled(p, token, ref->spelled);
}

/* TOKEN-1: no token twice. */
static bool
hand_out(struct pass *p, struct handed handed)
{
  for (size_t i = 0; i < p->handed.n; i++)
    if (same_bytes(p->handed.items[i].theirs, handed.theirs))
      return differs(p, "TOKEN-1", "lock_token", "a token that no fetch has given before",
                     "one that an earlier fetch gave");
  *LIST_ADD(p->t, &p->t->arena, &p->handed) = handed;
  return true;
}

static bool
hand_out_turn(struct pass *p)
{
  const struct dk_turn_head *head = &p->theirs->turn->head;

  return hand_out(p, (struct handed){
    .fetch = p->step,
    .is_turn = true,
    .theirs = head->lock_token,
    .ours = kit_copy_bytes(p->t, &p->t->arena, p->ours.turn->head.lock_token),
    .instance = head->instance,
    .execution_id = head->execution_id,
    .last_event_id = head->last_event_id,
    .is_known = head->known != 0,
  });
}

static bool
hand_out_works(struct pass *p)
{
  const struct dk_works *works = p->theirs->works;

  for (size_t i = 0; i < works->n_items; i++) {
    const struct dk_item *item = &works->items[i].item;
    const struct dk_work_item *other = find_work(p->ours.works, item);
    if (!hand_out(p, (struct handed){
                       .fetch = p->step,
                       .item = (uint32_t)i,
                       .theirs = works->items[i].work.lock_token,
                       .ours = kit_copy_bytes(p->t, &p->t->arena, other->work.lock_token),
                       .instance = item->instance,
                       .execution_id = item->execution_id,
                       .activity_id = item->activity_id,
                     }))
      return false;
  }
  return true;
}

bool
takes_token(enum op_kind kind)
{
  return kind == OP_ACK_TURN || kind == OP_ABANDON_TURN || kind == OP_RENEW_TURN ||
         kind == OP_ACK_WORK || kind == OP_ABANDON_WORK || kind == OP_RENEW_WORK;
}

/* ---- one call on both sides ------------------------------------------------------------------ */

struct op *
make_request(struct pass *p, const struct step *step)
{
  struct dk_check *t = p->t;
  struct actor *who = kit_actor(t, p->handles[step->handle]);
  struct op *op = kit_begin(t, who, step->request->kind);

  kit_copy_request(t, kit_requests(t, who), step->request, op);
  if (takes_token(op->kind))
    op->token = kit_copy_bytes(t, kit_requests(t, who), token_for(p, &step->token, false));
  return op;
}

void
call_provider(struct pass *p, const struct step *step)
{
  struct dk_check *t = p->t;
  struct actor *who = kit_actor(t, p->handles[step->handle]);
  struct op *op = make_request(p, step);

  if (step->is_cancelled && !who->has_thread && who->kind != IS_PROCESS)
    cancel_call(t, who);
  kit_call(t, who, false);
  p->theirs = op;
}

/* The provider has chosen: what the model is to hand out. */
static void
note_choice(struct pass *p)
{
  struct dk_model_choice *choice = &p->run->choice;

  *choice = (struct dk_model_choice){.struct_size = sizeof(*choice)};
  if (p->theirs->status != DK_OK)
    return;
  choice->what = DK_CHOICE_ONLY;
  if (p->theirs->turn != NULL)
    choice->instance = p->theirs->turn->head.instance;
  if (p->theirs->works != NULL) {
    choice->items = p->theirs->works->items;
    choice->n_items = p->theirs->works->n_items;
  }
}

void
call_model(struct pass *p, const struct step *step)
{
  struct dk_check *t = p->t;

  kit_copy_request(t, &t->arena, step->request, &p->ours);
  if (takes_token(p->ours.kind))
    p->ours.token = token_for(p, &step->token, true);
  note_choice(p);
  kit_op_run(&p->ours, p->model, p->caller);
  p->run->choice = (struct dk_model_choice){.struct_size = sizeof(p->run->choice)};
}

int64_t
ask_model_when(struct pass *p, const struct step *step)
{
  return ask_model_beside(p, step, NULL, 0);
}

int64_t
ask_model_beside(struct pass *p, const struct step *step, const struct dk_work_item *items,
                 size_t n)
{
  struct dk_model_choice *choice = &p->run->choice;
  int64_t due = INT64_MAX;

  kit_copy_request(p->t, &p->t->arena, step->request, &p->ours);
  *choice = (struct dk_model_choice){
    .struct_size = sizeof(*choice), .what = DK_CHOICE_NONE, .items = items, .n_items = n,
    .ret_due = &due
  };
  kit_op_run(&p->ours, p->model, p->caller);
  *choice = (struct dk_model_choice){.struct_size = sizeof(*choice)};
  return p->ours.status == DK_NOTHING ? due : INT64_MIN; /* it is refused at once */
}

/* DEL-9, PRUNE-4: no more than was asked for, and each page begins above the one before. */
static bool
is_page(struct pass *p, const struct op *request, const struct dk_removed *page)
{
  bool prunes = request->kind == OP_PRUNE;
  const char *clause = prunes ? "PRUNE-4" : "DEL-9";
  uint32_t most = prunes ? request->prune.max_instances : request->delete_matching.max_instances;
  struct dk_bytes after = prunes ? request->prune.after : request->delete_matching.after;
  uint64_t n = prunes ? page->instances : page->roots;
  size_t shorter = after.len < page->next.len ? after.len : page->next.len;
  char expected[64], got[32];

  snprintf(expected, sizeof(expected), "at most %" PRIu32, most);
  snprintf(got, sizeof(got), "%" PRIu64, n);
  if (most > 0 && n > most)
    return differs(p, clause, "instances of one page", expected, got);
  if (page->next.ptr == NULL || after.ptr == NULL)
    return true;
  int order = memcmp(page->next.ptr, after.ptr, shorter);
  if (order < 0 || (order == 0 && page->next.len <= after.len))
    return differs(p, clause, "next", "an id that is greater than `after`", "one that is not");
  return true;
}

/* A page of a deletion or a prune may end early: each side goes on until it has seen all. */
static void
finish_pages(struct pass *p, const struct step *step, bool of_model)
{
  struct dk_check *t = p->t;
  struct dk_removed sum = {.struct_size = sizeof(sum)};
  struct step next = *step;
  next.is_cancelled = false;
  struct op *op = of_model ? &p->ours : p->theirs;

  if (op->kind != OP_DELETE_MATCHING && op->kind != OP_PRUNE)
    return;
  for (uint32_t n = 0; n < KIT_MAX_FETCHES && op->status == DK_OK; n++) {
    const struct dk_removed *page = &op->removed;
    if (!of_model && !is_page(p, next.request, page))
      return;
    sum.instances += page->instances;
    sum.executions += page->executions;
    sum.events += page->events;
    sum.messages += page->messages;
    sum.activities += page->activities;
    sum.roots += page->roots;
    if (page->next.ptr == NULL)
      break;
    struct op *request = kit_alloc(t, &t->arena, 1, sizeof(*request));
    kit_copy_request(t, &t->arena, step->request, request);
    request->delete_matching.after = request->prune.after =
      kit_copy_bytes(t, &t->arena, page->next);
    next.request = request;
    if (of_model)
      call_model(p, &next);
    else
      call_provider(p, &next);
  }
  if (op->status == DK_OK)
    op->removed = sum;
}

/* What a later step may do with this token. */
static void
note_use(struct pass *p, const struct step *step)
{
  struct handed *h = p->present;
  enum op_kind kind = step->request->kind;

  if (h == NULL || p->theirs->status != DK_OK)
    return;
  h->is_used = h->is_used || (kind != OP_RENEW_TURN && kind != OP_RENEW_WORK);
  h->is_acked = h->is_acked || kind == OP_ACK_WORK;
  if (kind == OP_ACK_TURN && h->result == NULL)
    h->result = step->request->result;
}

/* It was cancelled before it began, and does nothing [CALL-1, ACK-1]; or it was too late for that.
 */
static bool
is_given_up(struct pass *p, const struct step *step)
{
  if (!step->is_cancelled || p->theirs->status != DK_CALL_CANCELLED)
    return false;
  p->ours.status = DK_CALL_CANCELLED;
  return true;
}

bool
take_replies(struct pass *p, const struct step *step)
{
  if (!replies_agree(p))
    return false;
  note_use(p, step);
  if (p->theirs->status != DK_OK)
    return true;
  if (p->theirs->turn != NULL)
    return hand_out_turn(p);
  return p->theirs->works == NULL || hand_out_works(p);
}

static bool
play_call(struct pass *p, const struct step *step)
{
  struct random_run *run = p->run;

  p->present = step->token.spelled == 0 ? find_handed(p, &step->token) : NULL;
  run->moments[run->n_moments++ % (sizeof(run->moments) / sizeof(run->moments[0]))] = now(p->t);
  call_provider(p, step);
  if (is_given_up(p, step))
    return true;
  finish_pages(p, step, false);
  if (p->difference.found)
    return false;
  call_model(p, step);
  finish_pages(p, step, true);
  return take_replies(p, step);
}

/* ---- the model's side ------------------------------------------------------------------------ */

static const void *
model_service(void *context, const char *id)
{
  struct random_run *run = context;

  return strcmp(id, DK_MODEL_CHOICE) == 0 ? &run->choice : NULL;
}

static void
open_model_store(struct pass *p)
{
  struct random_run *run = p->run;
  struct dk_host_options options = {
    .struct_size = sizeof(options),
    .clock = &p->t->shared->gate.clock,
    .context = run,
    .service = model_service,
  };

  if (dk_store_open(run->model, &options, p->caller, DK_OPEN_CREATE | DK_OPEN_HOST_CLOCK, NULL, 0,
                    &p->model) != DK_OK)
    kit_trouble(p->t, "the model cannot be opened: %s", dk_caller_failure(p->caller)->text);
}

static void
open_model(struct pass *p)
{
  struct random_run *run = p->run;
  struct dk_refusal refusal = {.number = 0};

  p->caller = dk_caller_new(NULL, 0);
  if (p->caller == NULL)
    kit_trouble(p->t, "no memory for a caller");
  if (run->model == NULL &&
      dk_library_from_descriptor(dk_model_entry(DK_ABI_MINOR), 0, &run->model, &refusal) != 0)
    kit_trouble(p->t, "the model cannot be used: %s", refusal.what);
  open_model_store(p);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void
reopen(struct pass *p, struct actor *actor)
{
  if (actor != NULL && actor->kind == IS_PROCESS)
    actor = NULL;
  close_handle(p->t, actor);
  open_handle(p->t, actor);
}

/* ABI-13 to ABI-15: what was destroyed is not there, and a handle that only reads does not make it.
 */
static bool
is_gone(struct pass *p)
{
  struct dk_check *t = p->t;
  uint32_t flags = kit_open_flags(t->shared, t->provider);
  dk_status plain = open_status(t, flags & ~(uint32_t)DK_OPEN_CREATE, NULL);
  dk_status reader = plain != DK_NOT_FOUND ? plain
                                           : open_status(t, flags | DK_OPEN_READ_ONLY, NULL);
  char got[32];

  p->ours.kind = OP_OPEN;
  return reader == DK_NOT_FOUND ||
         differs(p, plain != DK_NOT_FOUND ? "ABI-14" : "ABI-15", "a store that was destroyed",
                 "DK_NOT_FOUND", kit_status_name(reader, got, sizeof(got)));
}

/* The tokens of the store that was destroyed are no tokens of the new one [TOKEN-2]. */
static bool
make_anew(struct pass *p)
{
  struct dk_check *t = p->t;

  for (uint32_t i = 0; i < p->n_handles; i++)
    close_handle(t, p->handles[i]);
  kit_destroy_store(t);
  bool is_same = is_gone(p);
  kit_new_store(t);
  for (uint32_t i = 1; i < p->n_handles; i++)
    open_handle(t, p->handles[i]);
  dk_store_close(p->model);
  open_model_store(p);
  p->births.n = 0;
  return is_same;
}

bool
play_step(struct pass *p, const struct step *step)
{
  p->step = step->number;
  p->present = NULL;
  p->ours.status = DK_OK;
  switch (step->kind) {
  case STEP_TIME:
    advance(p->t, step->ms);
    return true;
  case STEP_REOPEN:
    reopen(p, p->handles[step->handle]);
    return true;
  case STEP_ANEW:
    return make_anew(p);
  case STEP_FAIR:
    return play_fair(p, step);
  default:
    return step->ms > 0       ? play_wait(p, step)
           : step->only_reads ? play_reader(p, step)
                              : play_call(p, step);
  }
}

bool
play_new(struct pass *p, struct step step)
{
  step.number = ++p->run->n_drawn;
  *LIST_ADD(p->t, &p->t->lasting, &p->run->plan) = step;
  return play_step(p, &step);
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* At the end of each pass, however it has ended. */
static bool
close_model(struct dk_check *t)
{
  struct random_run *run = t->plan;
  struct pass *p = run->pass;

  if (p->model != NULL)
    dk_store_close(p->model);
  p->model = NULL;
  dk_caller_free(p->caller);
  p->caller = NULL;
  if (t->passes <= t->pass + 1 || t->verdict != VERDICT_NONE) {
    dk_library_close(run->model);
    run->model = NULL;
  }
  return true;
}

void
pass_begin(struct pass *p)
{
  const struct profile *profile = p->run->profile;

  p->run->pass = p;
  at_end(p->t, close_model);
  open_model(p);
  p->handles[p->n_handles++] = NULL;
  for (uint32_t i = 0; i < profile->n_handles; i++)
    p->handles[p->n_handles++] =
      profile->processes ? another_process(p->t) : another_handle(p->t);
}
