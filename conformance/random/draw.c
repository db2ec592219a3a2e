/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the next step: which call, by the weights of the profile, and with which request, from odd
 * values and from what the calls before have brought. */
#include "conformance/random/random.h"

#include <string.h>

#include "core/base/sat.h"

/* ---- memory and texts that outlive a pass ---------------------------------------------------- */

void *
lasting(struct pass *p, size_t n, size_t size)
{
  return kit_alloc(p->t, &p->t->lasting, n, size);
}

struct dk_bytes
lasting_bytes(struct pass *p, const char *text)
{
  return kit_copy_bytes(p->t, &p->t->lasting, bytes(text));
}

struct dk_bytes
draw_text(struct pass *p, const char *const *texts, size_t n)
{
  uint64_t k = draw_below(&p->run->chance, n + (n + 2) / 3);

  return k < n ? bytes(texts[k]) : bytes(NULL);
}

static size_t
most_payload(const struct pass *p)
{
  enum { LARGE = (1 << 16) + 1 }; /* ten of them are less than the smallest limit of a commit */
  uint64_t limit = p->t->provider->limits->max_payload;

  return limit < LARGE ? (size_t)limit : LARGE;
}

/* Any bytes: NUL and invalid UTF-8 too, and each payload its own.  Texts may end with blanks. */
struct dk_bytes
draw_payload(struct pass *p)
{
  struct chance *chance = &p->run->chance;
  enum { LITTLE = 8 };
  size_t size = p->run->profile->families ? (size_t)draw_below(chance, LITTLE)
                                          : odd_size(chance, most_payload(p));
  char *payload = lasting(p, size + 1, 1);
  bool is_text = !one_in(chance, 4);

  for (size_t i = 0; i < size; i++) {
    uint64_t any = draw(chance);
    payload[i] = is_text ? (char)('a' + any % 26) : (char)(unsigned char)(any >> 8);
  }
  if (is_text && size > 0 && one_in(chance, 8))
    payload[size - 1] = ' ';
  return (struct dk_bytes){payload, size};
}

uint32_t
n_ids(const struct random_run *run)
{
  return run->profile->n_ids > 0 ? run->profile->n_ids : FEW_IDS;
}

/* Among few, half of the calls meet at one. */
struct dk_bytes
draw_instance(struct pass *p)
{
  struct random_run *run = p->run;
  uint32_t n = n_ids(run);

  return run->ids[one_in(&run->chance, n <= FEW_IDS ? 2 : 4) ? 0 : draw_below(&run->chance, n)];
}

/* The longest id that both sides take. */
static struct dk_bytes
longest_id(struct pass *p, char last)
{
  enum { OF_MODEL = 1024 };
  uint32_t most = p->t->provider->limits->max_id;
  size_t size = most < OF_MODEL ? most : OF_MODEL;
  char *id = lasting(p, size + 1, 1);

  memset(id, 'i', size);
  id[size - 1] = last;
  return (struct dk_bytes){id, size};
}

/* A few tags, of which each has one that is easily taken for it: so they meet. */
static void
draw_tags_of_world(struct pass *p)
{
  static const char *const pairs[][2] = {{"gpu", "GPU"}, {"gpu", "gpu "}, {"gpu", "gp%"},
                                         {"gpu", "gpu,cpu"}, {"gr\xc3\xbcn", "gru\xcc\x88n"}};
  struct random_run *run = p->run;
  enum { PAIRS = sizeof(pairs) / sizeof(pairs[0]) };
  size_t first = (size_t)draw_below(&run->chance, PAIRS);

  for (size_t i = 0; i < 6; i++)
    run->tags[i] = bytes(pairs[(first + i / 2) % PAIRS][i % 2]);
  run->tags[6] = longest_id(p, 'g');
  run->tags[7] = longest_id(p, 'h');
}

void
draw_world(struct pass *p)
{
  struct random_run *run = p->run;
  enum { OFTEN = 2 }; /* the plainest, and itself in another case */
  size_t n = n_ids(run);
  size_t first = (size_t)draw_below(&run->chance, LOOK_ALIKES);

  run->long_ids[0] = longest_id(p, 'i'); /* two that differ at the very end */
  run->long_ids[1] = longest_id(p, 'j');
  for (size_t i = 0; i < n; i++)
    run->ids[i] = bytes(look_alike(i < OFTEN ? i : OFTEN + (first + i) % (LOOK_ALIKES - OFTEN)));
  if (one_in(&run->chance, 2)) {
    run->ids[n - 2] = run->long_ids[0];
    run->ids[n - 1] = run->long_ids[1];
  }
  draw_tags_of_world(p);
}

bool
is_plain(struct pass *p)
{
  return p->run->script != NULL && !one_in(&p->run->chance, 5);
}

/* ---- items ----------------------------------------------------------------------------------- */

static int64_t
draw_visible_at(struct pass *p)
{
  struct chance *chance = &p->run->chance;
  int64_t here = now(p->t);

  if (!one_in(chance, 4))
    return 0;
  switch (draw_below(chance, 6)) {
  case 0: return here - 1;
  case 1: return here;
  case 2: return here + 1;
  case 3: return 1;
  case 4: return INT64_MAX;
  default: return dk_sat_add(here, odd_delay(chance));
  }
}

/* Sometimes one that begins with the id of an instance. */
struct dk_bytes
draw_message_id(struct pass *p)
{
  static const char *const ids[] = {"m1", "m2", "M1", "m1 ", "m%", "order-1"};
  struct random_run *run = p->run;

  if (one_in(&run->chance, 16))
    return run->long_ids[draw_below(&run->chance, 2)];
  return draw_text(p, ids, sizeof(ids) / sizeof(ids[0]));
}

void
draw_item(struct pass *p, struct dk_item *ret_item)
{
  struct chance *chance = &p->run->chance;

  *ret_item = (struct dk_item){
    .struct_size = sizeof(*ret_item),
    .instance = draw_instance(p),
    .id = one_in(chance, 2) ? bytes(NULL) : draw_message_id(p),
    .visible_at = draw_visible_at(p),
    .delay_ms = odd_delay(chance),
    .payload = draw_payload(p),
  };
}

struct dk_bytes
draw_tag(struct pass *p)
{
  struct random_run *run = p->run;

  return run->tags[draw_below(&run->chance, sizeof(run->tags) / sizeof(run->tags[0]))];
}

void
draw_activity(struct pass *p, struct dk_item *ret_item)
{
  draw_item(p, ret_item);
  ret_item->id = bytes(NULL);
  ret_item->execution_id = one_in(&p->run->chance, 3) ? 2 : 1;
  ret_item->activity_id = odd_number(&p->run->chance);
  if (one_in(&p->run->chance, 2))
    ret_item->tag = draw_tag(p);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* Mostly one that was not used yet, the last ones more often; sometimes a used one, one of the
 * other queue, or one that is respelled.  NULL: a token that was made up. */
static const struct handed *
draw_token(struct pass *p, bool for_turn, struct token_ref *ret_ref)
{
  struct chance *chance = &p->run->chance;
  bool used_too = one_in(chance, 6), any_queue = one_in(chance, 40);
  bool is_last = p->run->script != NULL && !one_in(chance, 8);
  const struct handed *found = NULL;

  *ret_ref = (struct token_ref){0, 0, (uint32_t)draw_below(chance, 16)};
  if (one_in(chance, 60))
    return NULL;
  for (size_t i = p->handed.n; i > 0; i--) {
    const struct handed *h = &p->handed.items[i - 1];
    if ((h->is_turn != for_turn && !any_queue) || (h->is_used && !used_too) || h->is_within)
      continue;
    found = h;
    if (is_last || one_in(chance, 3))
      break;
  }
  if (found != NULL) {
    *ret_ref = (struct token_ref){.fetch = found->fetch, .item = found->item};
    if (one_in(chance, 16))
      ret_ref->spelled = 1 + (uint32_t)draw_below(chance, RESPELLINGS);
  }
  return found;
}

/* ---- scripts --------------------------------------------------------------------------------- */

/* What follows one another when work is done, so that not chance alone has to bring it together. */
static const uint8_t *
draw_script(struct pass *p)
{
  static const uint8_t scripts[][8] = {
    {OP_ENQUEUE, OP_FETCH_TURN, DRAWS_TIME, OP_FETCH_TURN, OP_RELEASE_FETCH, OP_FETCH_TURN},
    {OP_ENQUEUE, OP_FETCH_TURN, DRAWS_TIME, OP_ABANDON_TURN, OP_FETCH_TURN, OP_ACK_TURN},
    {OP_FETCH_WORK, DRAWS_TIME, OP_RELEASE_FETCH, OP_FETCH_WORK, OP_RELEASE_FETCH, OP_FETCH_WORK},
    {OP_ENQUEUE, OP_FETCH_TURN, OP_ACK_TURN},
    {OP_ENQUEUE, OP_FETCH_TURN, OP_ACK_TURN, OP_READ_HISTORY},
    {OP_ENQUEUE, OP_FETCH_TURN, OP_ACK_TURN, OP_FETCH_WORK, OP_ACK_WORK},
    {OP_FETCH_WORK, OP_ENQUEUE, OP_FETCH_TURN, OP_ACK_TURN, OP_ACK_WORK},
    {OP_FETCH_WORK, OP_ENQUEUE, OP_FETCH_TURN, OP_ACK_TURN, OP_RENEW_WORK, OP_ABANDON_WORK},
    {OP_ENQUEUE, OP_ENQUEUE, OP_FETCH_TURN, OP_ABANDON_TURN, OP_FETCH_TURN, OP_ACK_TURN},
    {OP_ENQUEUE, OP_FETCH_TURN, OP_RENEW_TURN, OP_ENQUEUE, OP_ACK_TURN, OP_ACK_TURN},
    {OP_ENQUEUE, OP_FETCH_TURN, OP_ACK_TURN, OP_ACK_TURN, OP_FETCH_TURN, OP_ACK_TURN},
    {OP_FETCH_WORK, OP_ABANDON_WORK, OP_FETCH_WORK, OP_ACK_WORK},
    {OP_ENQUEUE, OP_FETCH_TURN, OP_RENEW_TURN, OP_RELEASE_FETCH, OP_FETCH_TURN, OP_ACK_TURN},
    {OP_FETCH_WORK, OP_RENEW_WORK, OP_RELEASE_FETCH, OP_FETCH_WORK},
    {OP_ENQUEUE, OP_FETCH_TURN, OP_FETCH_WORK, OP_RELEASE_FETCH, OP_ACK_TURN},
    {OP_ENQUEUE, OP_FETCH_TURN, OP_FETCH_WORK, OP_ABANDON_WORK, OP_ACK_TURN},
    {OP_ENQUEUE, OP_FETCH_TURN, OP_ACK_TURN, OP_DELETE_INSTANCES, OP_ENQUEUE, OP_FETCH_TURN,
     OP_ACK_TURN},
    {OP_ENQUEUE, OP_FETCH_TURN, OP_ACK_TURN, OP_PRUNE, OP_LIST_EXECUTIONS, OP_READ_STATS},
  };

  return scripts[draw_below(&p->run->chance, sizeof(scripts) / sizeof(scripts[0]))];
}

/* The next call of a script, if the profile has such calls at all; 0: there is none. */
static uint32_t
next_of_script(struct pass *p)
{
  struct random_run *run = p->run;

  if (run->script == NULL && one_in(&run->chance, 4))
    run->script = draw_script(p);
  while (run->script != NULL) {
    uint32_t kind = *run->script;
    run->script = kind == 0 ? NULL : run->script + 1;
    if (kind != 0 && run->profile->weights[kind] > 0)
      return kind;
  }
  return 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static uint32_t
draw_kind(struct pass *p)
{
  const struct profile *profile = p->run->profile;
  uint64_t sum = 0;

  for (size_t i = 0; i < STEP_KINDS_DRAWN; i++)
    sum += profile->weights[i];
  uint64_t at = draw_below(&p->run->chance, sum);
  for (uint32_t i = 0; i < STEP_KINDS_DRAWN; i++) {
    if (at < profile->weights[i])
      return i;
    at -= profile->weights[i];
  }
  return DRAWS_TIME;
}

static void
draw_ack_work(struct pass *p, struct op *op)
{
  op->work_result = (struct dk_work_result){
    .struct_size = sizeof(op->work_result),
    .flags = one_in(&p->run->chance, 8) ? (uint32_t)DK_REPEATED : 0u,
  };
  if (one_in(&p->run->chance, 4))
    return;
  draw_item(p, &op->item);
  op->work_result.completion = &op->item;
}

/* Where pages begin and end: beside the last event that a turn of it has shown, or that of a commit
 * since. */
static void
draw_near_last_event(struct pass *p, struct dk_read_history *request)
{
  struct chance *chance = &p->run->chance;

  for (size_t i = p->handed.n; i > 0; i--) {
    const struct handed *h = &p->handed.items[i - 1];
    if (!h->is_turn || !same_bytes(h->instance, request->instance))
      continue;
    const struct dk_turn_result *r = h->result;
    bool has_added = r != NULL && r->n_events > 0;
    uint64_t last = has_added ? r->events[r->n_events - 1].event_id : h->last_event_id;
    request->execution_id = has_added ? r->execution_id : h->execution_id;
    request->from_event = last - (last > 2 ? 2 : 0) + draw_below(chance, 5);
    return;
  }
}

static void
draw_read_history(struct pass *p, struct op *op)
{
  struct chance *chance = &p->run->chance;

  op->read_history = (struct dk_read_history){
    .struct_size = sizeof(op->read_history),
    .max_events = one_in(chance, 3) ? draw_most(p) : 0,
    .instance = draw_instance(p),
    .execution_id = draw_below(chance, 4),
    .from_event = one_in(chance, 3) ? odd_number(chance) : draw_below(chance, 3),
  };
  if (one_in(chance, 2))
    draw_near_last_event(p, &op->read_history);
}

/* A request that needs a token: which one decides about the rest. */
static void
draw_with_token(struct pass *p, struct op *op, struct token_ref *ret_ref)
{
  struct chance *chance = &p->run->chance;
  bool for_turn =
    op->kind == OP_ACK_TURN || op->kind == OP_ABANDON_TURN || op->kind == OP_RENEW_TURN;
  const struct handed *handed = draw_token(p, for_turn, ret_ref);

  switch (op->kind) {
  case OP_ACK_TURN:
    op->result = draw_result(p, handed);
    break;
  case OP_ACK_WORK:
    draw_ack_work(p, op);
    break;
  case OP_RENEW_TURN:
  case OP_RENEW_WORK:
    op->ms = odd_lease(chance);
    break;
  default:
    op->ms = odd_delay(chance);
    op->ignore_attempt = one_in(chance, 2);
  }
}

/* Mostly one of the last few. */
static uint64_t
draw_released(struct random_run *run)
{
  uint64_t last = run->last_fetch_id, back = draw_below(&run->chance, 5);

  if (one_in(&run->chance, 8))
    return 1 + draw_below(&run->chance, last + 1);
  return last > back ? last - back : 1;
}

static void
draw_call(struct pass *p, struct op *op, struct token_ref *ret_ref)
{
  struct random_run *run = p->run;

  switch (op->kind) {
  case OP_ENQUEUE:
    draw_item(p, &op->item);
    if (is_plain(p)) {
      op->item.delay_ms = op->item.visible_at = 0;
      op->item.id = bytes(NULL);
    }
    op->item.flags = one_in(&run->chance, 20) ? (uint32_t)DK_REPEATED : 0u;
    break;
  case OP_ENQUEUE_WORK:
    draw_activity(p, &op->item);
    op->item.flags = one_in(&run->chance, 8) ? (uint32_t)DK_REPEATED : 0u;
    break;
  case OP_FETCH_TURN:
    draw_fetch_turn(p, op);
    break;
  case OP_FETCH_WORK:
    draw_fetch_work(p, op);
    break;
  case OP_READ_HISTORY:
    draw_read_history(p, op);
    break;
  case OP_RELEASE_FETCH:
    op->fetch_id = draw_released(run);
    break;
  default:
    if (kit_is_admin(op->kind))
      draw_admin(p, op);
    else
      draw_with_token(p, op, ret_ref);
  }
}

static bool
is_offered(const struct pass *p, uint32_t kind)
{
  const struct dk_provider *provider = p->t->provider;

  if (kind == OP_ENQUEUE_WORK)
    return provider->ops->enqueue_for_worker != NULL;
  if (kind == OP_RELEASE_FETCH)
    return provider->ops->release_fetch != NULL;
  if (kind == DRAWS_REOPEN)
    return provider->durable >= 1 && p->t->shared->store_key[0] != '\0';
  return kind >= OP_RAW || !kit_is_admin((enum op_kind)kind) || p->t->has_admin;
}

static bool
is_fetch(uint32_t kind)
{
  return kind == OP_FETCH_TURN || kind == OP_FETCH_WORK;
}

/* Where the host waits in the provider's place, it looks from time to time.  Behind a server each
 * wait takes real time: there they are few. */
static bool
may_wait(struct pass *p)
{
  enum { A_SERVER = 3, FEWER = 5 };
  const struct dk_provider *provider = p->t->provider;

  return provider->thread_model == DK_PARALLEL &&
         (provider->shared < A_SERVER || one_in(&p->run->chance, FEWER));
}

static bool
is_enqueue(uint32_t kind)
{
  return kind == OP_ENQUEUE || kind == OP_ENQUEUE_WORK;
}

/* What the check's own handle does while another one waits: mostly what may bring work. */
static const struct step *
draw_meanwhile(struct pass *p, const struct step *wait)
{
  struct random_run *run = p->run;
  struct step *step = lasting(p, 1, sizeof(*step));
  uint32_t kind = wait->request->kind == OP_FETCH_TURN ? OP_ENQUEUE : OP_ENQUEUE_WORK;

  if (p->handles[wait->handle]->kind == IS_HANDLE && one_in(&run->chance, 5)) {
    step->kind = STEP_CANCEL;
    return step;
  }
  if (one_in(&run->chance, 2) || !is_offered(p, kind))
    do
      kind = draw_kind(p);
    while (kind >= OP_RAW || is_fetch(kind) || !is_offered(p, kind));
  struct op *op = lasting(p, 1, sizeof(*op));
  op->kind = (enum op_kind)kind;
  draw_call(p, op, &step->token);
  if (is_enqueue(kind) && one_in(&run->chance, 2)) { /* due while the fetch still waits */
    op->item.visible_at = 0;
    op->item.delay_ms = 1 + (int64_t)draw_below(&run->chance, (uint64_t)wait->ms);
  }
  step->request = op;
  step->number = ++run->n_drawn;
  return step;
}

/* A call that the check's own thread makes. */
static bool
can_be_cancelled(const struct pass *p, uint32_t handle)
{
  const struct actor *who = p->handles[handle];

  return who == NULL || (who->kind == IS_HANDLE && !who->has_thread);
}

static void
draw_wait(struct pass *p, struct step *step)
{
  enum { LONGEST = 60000 }; /* some providers look again every few seconds */
  struct chance *chance = &p->run->chance;

  step->ms = odd_passing(chance);
  if (step->ms > LONGEST)
    step->ms = LONGEST;
  if (can_be_cancelled(p, step->handle) && one_in(chance, 6))
    step->is_cancelled = true;
  else if (step->handle > 0 && !one_in(chance, 4))
    step->during = draw_meanwhile(p, step);
}

/* Calls that only look, and those that write whenever they succeed. */
static bool
may_only_read(const struct pass *p, enum op_kind kind)
{
  return is_offered(p, DRAWS_REOPEN) &&
         (is_enqueue(kind) || is_fetch(kind) || kind == OP_READ_HISTORY ||
          (kind >= OP_LIST_INSTANCES && kind <= OP_READ_STATS));
}

void
draw_step(struct pass *p, struct step *ret_step)
{
  struct random_run *run = p->run;
  uint32_t kind = next_of_script(p);

  while (kind == 0 || !is_offered(p, kind))
    kind = draw_kind(p);
  *ret_step = (struct step){.handle = (uint32_t)draw_below(&run->chance, p->n_handles)};
  if (kind == DRAWS_TIME) {
    ret_step->kind = STEP_TIME;
    ret_step->ms = is_plain(p) ? PLAIN_LEASE + (int64_t)draw_below(&run->chance, 3) - 1
                               : odd_passing(&run->chance);
    return;
  }
  if (kind == DRAWS_REOPEN) {
    ret_step->kind = STEP_REOPEN;
    return;
  }
  if (kind == DRAWS_FAIR) {
    draw_fair(p, ret_step);
    return;
  }
  struct op *op = lasting(p, 1, sizeof(*op));
  op->kind = (enum op_kind)kind;
  draw_call(p, op, &ret_step->token);
  draw_newer(p, op);
  ret_step->request = op;
  if (may_only_read(p, op->kind) && one_in(&run->chance, 100)) {
    ret_step->handle = 0;
    ret_step->only_reads = true;
  } else if (is_fetch(kind) && may_wait(p) && one_in(&run->chance, 8)) {
    draw_wait(p, ret_step);
  } else {
    ret_step->is_cancelled = one_in(&run->chance, 60) && can_be_cancelled(p, ret_step->handle);
  }
}
