/* SPDX-License-Identifier: Apache-2.0 */
/* TURN: fetching, renewing and giving back one instance with its messages. */
#include "conformance/model/model.h"

#include <string.h>

#include "core/base/sat.h"

/* ---- which instance -------------------------------------------------------------------------- */

/* TURN-1, TIME-4: from when no caller holds the instance. */
static int64_t
turn_free_at(const struct op *op, const struct lock *lock)
{
  const struct store *s = op->s;
  bool is_live = lock->held && lock->until > op->now;

  if (!lock->held || DEFECT(M_TURN_LOCK_IGNORED, is_live) ||
      DEFECT(M_TURN_LOCK_PER_HANDLE, is_live && lock->handle != s->handle) ||
      DEFECT(M_TURN_LOCK_PER_PROCESS, is_live && lock->handle >> 32 != s->handle >> 32))
    return INT64_MIN;
  if (DEFECT(M_TURN_LEASE_NEVER_ENDS, !is_live) ||
      DEFECT(M_TIME_OWN_LEASE_FOR_EVER, !is_live && s->own_clock))
    return INT64_MAX;
  return lock->until + (DEFECT(M_TIME_LEASE_ONE_LONGER, lock->until == op->now) ? 1 : 0);
}

/* TURN-2: how many messages come: the visible ones, within the bounds, but at least one. */
static uint64_t
messages_that_come(const struct op *op, const struct instance *turn,
                   const struct dk_fetch_turn *request)
{
  const struct store *s = op->s;
  uint64_t n = 0, bytes = 0;

  FOR_EACH(at, &turn->messages) {
    const struct message *message = OWNER_OF(at, struct message, link);
    bool is_large = request->max_bytes && bytes + message->payload.len > request->max_bytes;

    if (!HOLDS(M_TURN_EARLY_DELIVERY, due_at(op, message) <= op->now) ||
        REFUSED(M_TURN_MAX_MESSAGES_IGNORED, request->max_messages && n == request->max_messages) ||
        REFUSED(M_TURN_MAX_BYTES_IGNORED, is_large && n > 0) ||
        DEFECT(M_TURN_MAX_BYTES_SIGNED, request->max_bytes > INT64_MAX && n > 0) ||
        DEFECT(M_TURN_NOTHING_WHEN_TOO_LARGE, is_large && n == 0) ||
        DEFECT(M_TURN_UNKNOWN_DROPPED, turn->birth == 0 && n > 0))
      break;
    n++;
    bytes += message->payload.len;
  }
  return n;
}

/* CALL-6: a waiting fetch wakes up for this. */
void
note_due(struct op *op, int64_t visible_at, int64_t free_at)
{
  const struct store *s = op->s;
  int64_t due = visible_at > free_at ? visible_at : free_at;

  if (DEFECT(M_CALL_POLL_IGNORES_TIMERS, visible_at > op->now) ||
      DEFECT(M_CALL_POLL_IGNORES_LEASES, free_at > op->now))
    return;
  if (due < op->due)
    op->due = due;
}

/* QUEUE-8: the instance that was served last is last, and one that cannot be served is skipped. */
static struct instance *
choose_instance(struct op *op, const struct dk_fetch_turn *request, uint64_t *ret_n)
{
  const struct store *s = op->s;
  uint64_t passed = 0, looked = 0;

  FOR_EACH(at, &s->waiting) {
    struct instance *turn = OWNER_OF(at, struct instance, link);
    int64_t visible_at = due_at(op, OWNER_OF(turn->messages.next, struct message, link));
    int64_t free_at = turn_free_at(op, &turn->lock);

    if (follows_choice(s) && is_passed_over(s, equal_bytes(turn->id, s->choice->instance)))
      continue;
    if (DEFECT(M_QUEUE_LOOKS_AT_A_HUNDRED, ++looked == 100))
      break;
    if (!fits_ranges(op, turn, request)) {
      if (DEFECT(M_TURN_NOTHING_COUNTS, visible_at <= op->now))
        OWNER_OF(turn->messages.next, struct message, link)->attempt++;
      if (visible_at <= op->now && free_at <= op->now)
        pass_by_pinned(op, turn, request);
      if (DEFECT(M_PIN_LOOKS_AT_A_HUNDRED, ++passed == 100))
        break;
      continue;
    }
    if (DEFECT(M_POISON_LOCKED_COUNTS, visible_at <= op->now && free_at > op->now))
      OWNER_OF(turn->messages.next, struct message, link)->attempt++;
    if (visible_at > op->now || free_at > op->now || is_only_asked(s))
      note_due(op, visible_at, free_at);
    else if ((*ret_n = messages_that_come(op, turn, request)) > 0)
      return turn;
  }
  return NULL;
}

/* ---- handing it up --------------------------------------------------------------------------- */

/* TURN-5: the owner that the last commit named has the history in memory. */
static bool
is_warm(const struct op *op, const struct instance *turn, const struct dk_fetch_turn *request)
{
  const struct store *s = op->s;

  if (!turn->birth || !turn->facts->owner.ptr)
    return false;
  struct dk_bytes a = turn->facts->owner, b = request->owner;
  size_t shorter = a.len < b.len ? a.len : b.len;
  if (b.ptr && (DEFECT(M_TURN_OWNER_BY_LENGTH, a.len == b.len) ||
                DEFECT(M_TURN_OWNER_BY_PREFIX, memcmp(a.ptr, b.ptr, shorter) == 0)))
    return true;
  return REFUSED(M_TURN_AFFINITY_IGNORED, HOLDS(M_TURN_ANYBODY_IS_OWNER, equal_bytes(a, b)));
}

/* TURN-4, TURN-11, TURN-13: what the head reports of a known instance. */
static void
fill_known(const struct op *op, const struct instance *turn, bool warm, struct dk_turn_head *head)
{
  const struct store *s = op->s;
  const struct execution *e = turn->current;
  bool none_follows = warm || !e->first;
  uint64_t from = none_follows ? e->last_event_id + 1 : e->first->event_id;

  head->known = 1;
  head->status = e->status;
  if (DEFECT(M_EXEC_CANCELLED_SHOWN_AS_FAILED, e->status == DK_CANCELLED))
    head->status = DK_FAILED;
  if (!DEFECT(M_TURN_NAME_LOST, turn->facts->name.ptr != NULL))
    head->name = turn->facts->name;
  head->version = turn->facts->version;
  head->parent_instance = turn->facts->parent;
  head->birth = turn->birth;
  head->execution_id = e->execution_id;
  head->last_event_id =
    e->last_event_id + (DEFECT(M_TURN_LAST_EVENT_WRONG, e->last_event_id > 0) ? 1 : 0);
  head->history_from = DEFECT(M_TURN_HISTORY_FROM_WRONG, from > 1) ? 1 : from;
  if (DEFECT(M_TURN_OWNER_LEARNS_NO_LAST, warm && e->last_event_id > 0)) {
    head->last_event_id = 0;
    head->history_from = 1;
  }
}

static dk_status
hand_up_history(struct op *op, const struct instance *turn)
{
  const struct store *s = op->s;
  const struct execution *e = turn->current;

  if (DEFECT(M_TURN_HISTORY_OF_ALL_EXECUTIONS, turn->first != turn->current))
    e = turn->first;
  uint64_t n = 0, bytes = 0;
  for (; e; e = e->next)
    for (const struct event *v = e->first; v; v = v->next) {
      bytes += v->payload.len;
      if (DEFECT(M_HIST_FETCH_BRINGS_1000, n++ == 1000))
        return DK_OK;
      if (DEFECT(M_HIST_LARGE_IS_REFUSED, bytes > 1 << 20))
        return refuse(op, DK_INTERNAL, "the history is too large for one value");
      bool is_cut = DEFECT(M_TURN_EVENT_ID_32_BITS, v->event_id > UINT32_MAX);
      uint64_t event_id = is_cut ? (uint32_t)v->event_id : v->event_id;
      TRY(s->host->event(op->call, &(struct dk_event){event_id, v->payload}));
    }
  return DK_OK;
}

/* Notes in `taken` which they were: their order is this handle's. */
static dk_status
hand_up_messages(struct op *op, const struct instance *turn, uint64_t n, uint64_t attempts,
                 struct dk_text *taken)
{
  const struct store *s = op->s;
  const struct message *oldest = OWNER_OF(turn->messages.next, const struct message, link);

  for (const struct link *at = turn->messages.next; n > 0; at = at->next, n--) {
    const struct message *message = OWNER_OF(at, const struct message, link);
    struct dk_bytes payload = message->payload;
    uint64_t attempt = message->attempt + attempts;
    if (DEFECT(M_TURN_ATTEMPT_STOPS, attempt > 3))
      attempt = 3;
    if (DEFECT(M_POISON_TOLD_BEFORE_INCREMENT, message->attempt > 0))
      attempt = message->attempt;
    if (DEFECT(M_POISON_COUNT_OF_BATCH, message->attempt < oldest->attempt))
      attempt = oldest->attempt + attempts;
    int64_t visible = message->visible_at, stored = message->enqueued_at;
    bool is_untold = DEFECT(M_QUEUE_VISIBLE_AT_WRONG, visible != stored);
    bool is_lost = DEFECT(M_QUEUE_ENQUEUED_AT_WRONG, visible != stored);
    dk_text_add(taken, &message->arrival, sizeof message->arrival);
    if (DEFECT(M_TURN_LARGE_PAYLOAD_CUT, payload.len > UINT16_MAX))
      payload.len = UINT16_MAX;
    if (DEFECT(M_QUEUE_LARGE_EMPTY_AGAIN, payload.len > 1024 && message->attempt > 0))
      payload.len = 0;
    TRY(s->host->message(op->call, &(struct dk_message){
                                     .struct_size = sizeof(struct dk_message),
                                     .attempt = (uint32_t)attempt,
                                     .id = message->id,
                                     .payload = payload,
                                     .visible_at = is_untold ? stored : visible,
                                     .enqueued_at = is_lost ? visible : stored,
                                   }));
  }
  return DK_OK;
}

static dk_status
take_messages(struct op *op, const struct instance *turn, uint64_t n, uint64_t epoch,
              uint64_t attempts)
{
  struct dk_text taken = DK_TEXT_EMPTY;
  dk_status status = hand_up_messages(op, turn, n, attempts, &taken);

  if (status == DK_OK && dk_text_failed(&taken))
    status = refuse(op, DK_NO_MEMORY, "out of memory");
  if (status == DK_OK)
    STEP(op, .kind = MESSAGES_TAKEN, .instance = turn->id, .epoch = epoch, .attempt = attempts,
         .arrivals = {taken.bytes, taken.length});
  dk_text_done(&taken);
  return status;
}

static dk_status
hand_up_turn(struct op *op, const struct instance *turn, const struct dk_fetch_turn *request,
             uint64_t epoch, int64_t until)
{
  const struct store *s = op->s;
  char room[MAX_TOKEN];
  bool warm = is_warm(op, turn, request);
  struct dk_turn_head head = {
    .struct_size = sizeof head,
    .lock_token = turn_token(op->s, room, turn, epoch),
    .instance = turn->id,
    .now = DEFECT(M_TIME_OWN_NOW_STANDS, s->own_clock) ? s->first_now : op->now, /* TIME-1 */
    .lease_left_ms = MUTANT(M_TIME_LEASE_LEFT_WRONG) ? until : until - clock_now(s),
  };

  if (turn->birth)
    fill_known(op, turn, warm, &head);
  else if (MUTANT(M_TURN_BIRTH_BEFORE_COMMIT))
    head.birth = epoch;
  TRY(s->host->turn(op->call, &head));
  if (!turn->birth || warm)
    return DK_OK;
  TRY(hand_up_keys(op, turn));
  return hand_up_history(op, turn);
}

/* ---- the operations -------------------------------------------------------------------------- */

/* One that is eligible and was last committed by this owner; NULL: none. */
static struct instance *
own_instance(const struct op *op, const struct dk_fetch_turn *request)
{
  FOR_EACH(at, &op->s->waiting) {
    struct instance *turn = OWNER_OF(at, struct instance, link);

    if (request->owner.len > 0 && turn->facts && equal_bytes(turn->facts->owner, request->owner) &&
        due_at(op, OWNER_OF(turn->messages.next, struct message, link)) <= op->now &&
        turn_free_at(op, &turn->lock) <= op->now && fits_ranges(op, turn, request))
      return turn;
  }
  return NULL;
}

/* The choice is made, others come between, and they were quicker. */
static bool
is_lost_in_race(struct op *op, const struct instance *turn)
{
  return let_others_in(op) != DK_OK || turn_free_at(op, &turn->lock) > op->now ||
         turn->messages.next == &turn->messages;
}

static dk_status
look_for_turn(struct op *op, const void *asked)
{
  const struct dk_fetch_turn *request = asked;
  struct store *s = op->s;
  int64_t until = lease_end(op, op->lease_from, request->lock_ms); /* TIME-1 */
  uint64_t n = 0, epoch = fresh_epoch(op, 0);            /* TOKEN-1 */
  struct instance *turn = choose_instance(op, request, &n);
  struct instance *own = turn ? own_instance(op, request) : NULL;

  if (DEFECT(M_QUEUE_OWN_FIRST, own && own != turn)) { /* QUEUE-8 */
    turn = own;
    n = messages_that_come(op, turn, request);
  }
  if (!turn || (MUTANT(M_TURN_LOST_RACE_IS_NOTHING) && is_lost_in_race(op, turn)))
    return DK_NOTHING;
  if (DEFECT(M_TOKEN_TURN_SAME_AFTER_ABANDON,
             turn->lock.epoch && !turn->lock.held && turn->lock.epoch != turn->committed))
    epoch = turn->lock.epoch;
  if (DEFECT(M_DEL_LEASES_PER_INSTANCE, epoch != turn->lock.epoch + 1)) /* DEL-6 */
    epoch = turn->lock.epoch + 1;
  uint64_t attempts = DEFECT(M_CALL_CANCELLED_FETCH_COUNTS, s->cancelled_fetches > 0) ? 2 : 1;
  if (DEFECT(M_POISON_OTHER_HANDLE_UNCOUNTED, turn->lock.epoch && turn->lock.handle != s->handle))
    attempts = 0;
  if (DEFECT(M_POISON_EXPIRED_NOT_COUNTED, turn->lock.held && turn->lock.until <= op->now))
    attempts = 0;

  dk_status handed = hand_up_turn(op, turn, request, epoch, until);
  if (DEFECT(M_ERR_REFUSED_RESULT_IS_NOTHING, handed == DK_NO_MEMORY)) /* ERR-1 */
    return DK_NOTHING;
  TRY(handed);
  TRY(take_messages(op, turn, n, epoch, attempts));                  /* POISON-1 */
  STEP(op, .kind = TURN_LOCK, .instance = turn->id, .epoch = epoch, .until = until, .held = true,
       .handle = s->handle, .fetch_id = fetch_id_of_turn(op, request, &turn->lock),
       .committed = turn->committed);                                /* TURN-1, REL-1 */
  s->own_epochs++;
  return DK_OK;
}

dk_status
model_fetch_orchestration_item(void *self, struct dk_call *call,
                               const struct dk_fetch_turn *request)
{
  return long_poll(self, call, "fetch_orchestration_item", look_for_turn, request,
                   request->wait_until);
}

/* TOKEN-2: every byte of a token counts. */
static struct instance *
instance_of_token(const struct store *s, struct dk_bytes id)
{
  struct instance *found = find_instance(s, id);

  if (found || id.len < 2)
    return found;
  struct instance *shorter = find_instance(s, (struct dk_bytes){id.ptr, id.len - 1});
  return DEFECT(M_TOKEN_TAIL_IGNORED, shorter != NULL) ? shorter : NULL;
}

/* TOKEN-2 to TOKEN-8: the instance whose turn this token holds. */
dk_status
find_live_turn(struct op *op, struct dk_bytes text, int32_t expired_mutant,
               struct instance **ret_turn)
{
  const struct store *s = op->s;
  struct token token;
  bool is_token = parse_turn_token(s, text, &token);
  struct instance *turn = is_token ? instance_of_token(s, token.of.instance) : NULL;

  if (!is_token && DEFECT(M_TOKEN_ONE_NAMESPACE, parse_work_token(s, text, &token)))
    return DONE_ALREADY;
  if (!turn || token.epoch > s->epochs)
    return MUTANT(M_TOKEN_UNKNOWN_TURN_IS_OK) ? DONE_ALREADY
                                              : lost(op, "this token was never given out, or its "
                                                         "instance was deleted");
  if (REFUSED(M_TOKEN_TURN_TOKEN_NOT_COMPARED, token.epoch != turn->lock.epoch) ||
      REFUSED(M_TOKEN_ABANDONED_TURN_LIVES, !turn->lock.held) ||
      (REFUSED(expired_mutant, turn->lock.until <= op->now) &&
       !DEFECT(M_TIME_TURN_ALIVE_AT_ITS_END, turn->lock.until == op->now) && /* TIME-4 */
       !DEFECT(M_TIME_OWN_TOKEN_OUTLIVES, s->own_clock && op->now - turn->lock.until < 1000)))
    return lost_because(op, &turn->lock, token.epoch);
  *ret_turn = turn;
  return DK_OK;
}

/* TURN-6, TURN-7. */
void
release_turn(struct op *op, const struct instance *turn, bool is_kept)
{
  STEP(op, .kind = TURN_LOCK, .instance = turn->id, .epoch = turn->lock.epoch,
       .until = turn->lock.until, .held = is_kept, .handle = turn->lock.handle,
       .committed = turn->committed);
}

/* ERR-3.  What a mutant does to the messages before it looks at the lock. */
static void
delay_before_looking(struct op *op, struct dk_bytes text, int64_t delay_ms)
{
  struct token token;
  const struct instance *turn =
    parse_turn_token(op->s, text, &token) ? find_instance(op->s, token.of.instance) : NULL;

  if (!turn || delay_ms == 0 || token.epoch != turn->lock.epoch)
    return;
  STEP(op, .kind = MESSAGES_BACK, .instance = turn->id, .epoch = token.epoch,
       .visible_at = dk_sat_add(op->now, delay_ms));
  op->leaves_traces = true;
}

static uint64_t
taken_back(const struct op *op, int32_t ignore_attempt)
{
  const struct store *s = op->s;

  if (DEFECT(M_POISON_IGNORE_RESETS, ignore_attempt))
    return UINT64_MAX;
  return REFUSED(M_POISON_IGNORE_FORGOTTEN, ignore_attempt) ? 1 : 0;
}

static dk_status
abandon_orchestration_item(struct op *op, struct dk_bytes token, int64_t delay_ms,
                           int32_t ignore_attempt)
{
  const struct store *s = op->s;
  struct instance *turn = NULL;

  if (MUTANT(M_ERR_LOST_ABANDON_DELAYS))
    delay_before_looking(op, token, delay_ms);
  TRY(find_live_turn(op, token, M_TOKEN_EXPIRED_TURN_ABANDONS, &turn)); /* TOKEN-2 to TOKEN-8 */
  if (DEFECT(M_TURN_DELAY_31_BITS, delay_ms > INT32_MAX))
    delay_ms &= INT32_MAX;
  bool is_delayed = REFUSED(M_TURN_ABANDON_DELAY_IGNORED, delay_ms > 0);
  STEP(op, .kind = MESSAGES_BACK, .instance = turn->id,                 /* TURN-8: its own only */
       .epoch = MUTANT(M_TURN_ABANDON_DELAYS_ALL) ? 0 : turn->lock.epoch,
       .visible_at = is_delayed ? delayed_until(op, delay_ms)           /* TURN-7 */
                   : MUTANT(M_TURN_ABANDON_REORDERS) ? op->now : 0,
       .attempt = taken_back(op, ignore_attempt));                      /* POISON-4 */
  release_turn(op, turn, MUTANT(M_TURN_ABANDON_KEEPS_LOCK));            /* TURN-7 */
  return DK_OK;
}

dk_status
model_abandon_orchestration_item(void *self, struct dk_call *call, struct dk_bytes token,
                                 int64_t delay_ms, int32_t ignore_attempt)
{
  struct op op;

  TRY(enter(&op, self, call, "abandon_orchestration_item"));
  return leave(&op, abandon_orchestration_item(&op, token, delay_ms, ignore_attempt));
}

static bool
is_of_deleted(const struct store *s, struct dk_bytes text)
{
  struct token token;

  return parse_turn_token(s, text, &token) && token.epoch <= s->epochs &&
         !find_instance(s, token.of.instance);
}

static dk_status
renew_orchestration_item_lock(struct op *op, struct dk_bytes token, int64_t extend_ms)
{
  const struct store *s = op->s;
  struct instance *turn = NULL;

  if (DEFECT(M_DEL_RENEW_IS_OK, is_of_deleted(s, token)))               /* DEL-5 */
    return DK_OK;
  TRY(find_live_turn(op, token, M_TOKEN_EXPIRED_TURN_RENEWS, &turn));   /* TOKEN-2 to TOKEN-8 */
  enum { A_DAY = 24 * 3600 * 1000 };
  if (DEFECT(M_TURN_RENEW_AT_MOST_A_DAY, extend_ms > A_DAY))
    extend_ms = A_DAY;
  int64_t until = lease_end(op, op->now, extend_ms);                    /* TURN-9 */
  if (DEFECT(M_TURN_RENEW_DOES_NOTHING, until != turn->lock.until) ||
      DEFECT(M_TURN_RENEW_NEVER_SHORTENS, until < turn->lock.until) ||
      DEFECT(M_TIME_OWN_RENEW_IS_LOST, s->own_clock))
    until = turn->lock.until;
  if (MUTANT(M_TURN_RENEW_ADDS))
    until = dk_sat_add(turn->lock.until, extend_ms);
  STEP(op, .kind = TURN_LOCK, .instance = turn->id, .epoch = turn->lock.epoch, .until = until,
       .held = true, .handle = turn->lock.handle, .committed = turn->committed,
       .fetch_id = MUTANT(M_REL_RENEWED_STAYS) ? 0 : turn->lock.fetch_id);     /* REL-1 */
  return DK_OK;
}

dk_status
model_renew_orchestration_item_lock(void *self, struct dk_call *call, struct dk_bytes token,
                                    int64_t extend_ms)
{
  struct op op;

  TRY(enter(&op, self, call, "renew_orchestration_item_lock"));
  return leave(&op, renew_orchestration_item_lock(&op, token, extend_ms));
}
