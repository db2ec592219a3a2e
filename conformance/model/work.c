/* SPDX-License-Identifier: Apache-2.0 */
/* WORK, TAG: the worker queue.  If the row is there it is work; nothing asks for the state of an
 * orchestration. */
#include "conformance/model/model.h"

#include <string.h>

#include "core/base/sat.h"

/* ---- rows ------------------------------------------------------------------------------------ */

/* WORK-3.  The item is as it was sent, but for its tag. */
void
write_row(struct op *op, const struct identity *identity, const struct dk_item *item,
          struct dk_bytes tag, int64_t visible_at)
{
  const struct store *s = op->s;
  struct dk_bytes payload = item->payload;
  const char *nul = payload.len ? memchr(payload.ptr, 0, payload.len) : NULL;

  if (DEFECT(M_WORK_PAYLOAD_CUT, nul != NULL))
    payload.len = (size_t)(nul - payload.ptr);
  if (DEFECT(M_ERR_LONGEST_TAG_CUT, tag.len == MAX_ID))       /* ERR-4 */
    tag.len--;
  STEP(op, .kind = ROW_COMES, .instance = identity->instance,
       .execution_id = identity->execution_id, .activity_id = identity->activity_id, .tag = tag,
       .session = item->session, .payload = payload, .visible_at = visible_at);
}

/* The row with another lock, visible time and count.  `lock.held` false: it is given back. */
void
change_row(struct op *op, const struct row *row, struct lock lock, struct dk_bytes owner,
           int64_t visible_at, uint64_t attempt)
{
  const struct identity *i = &row->identity;

  STEP(op, .kind = ROW_CHANGES, .instance = i->instance, .execution_id = i->execution_id,
       .activity_id = i->activity_id, .epoch = lock.epoch, .until = lock.until, .held = lock.held,
       .handle = lock.handle, .fetch_id = lock.fetch_id, .owner = owner,
       .visible_at = visible_at, .attempt = attempt);
}

static bool
is_running(const struct store *s, struct dk_bytes id)
{
  const struct instance *instance = find_instance(s, id);

  return instance && instance->current && instance->current->status == DK_RUNNING;
}

static bool
has_ended(const struct store *s, struct dk_bytes id)
{
  const struct instance *instance = find_instance(s, id);

  return instance && instance->current && instance->current->status > DK_RUNNING;
}

static bool
model_work_is_known(const struct store *s, struct dk_bytes id)
{
  const struct instance *instance = find_instance(s, id);

  return instance && instance->birth;
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* WORK-1, WORK-5. */
static int64_t
row_free_at(const struct op *op, const struct lock *lock)
{
  const struct store *s = op->s;
  bool is_live = lock->held && lock->until > op->now;

  if (!lock->held || DEFECT(M_WORK_LOCK_IGNORED, is_live) ||
      DEFECT(M_WORK_LOCK_PER_HANDLE, is_live && lock->handle != s->handle))
    return INT64_MIN;
  if (DEFECT(M_TIME_WORK_LEASE_ONE_LONGER, lock->until == op->now))
    return lock->until + 1;
  return DEFECT(M_WORK_LEASE_NEVER_ENDS, !is_live) ? INT64_MAX : lock->until;
}

/* TAG-2: mutants claim an item first and then look at its tag. */
static void
pass_by_tagged(struct op *op, const struct row *row, const struct dk_fetch_work *request)
{
  const struct store *s = op->s;
  struct lock lock = row->lock;
  int64_t later = dk_sat_add(op->now, request->lock_ms);
  bool is_counted = MUTANT(M_TAG_LEFT_OUT_IS_COUNTED);

  lock.held = MUTANT(M_TAG_LEFT_OUT_IS_LOCKED);
  lock.until = later;
  bool is_moved = MUTANT(M_TAG_LEFT_OUT_IS_MOVED);
  if (!lock.held && !is_moved && !is_counted)
    return;
  change_row(op, row, lock, row->owner, is_moved ? later : row->visible_at,
             row->attempt + (is_counted ? 1 : 0));
  op->leaves_traces = true;
}

/* WORK-8: a fetch may bring fewer than there are, and any of them. */
static bool
is_left_out(const struct store *s, const struct row *row)
{
  bool is_chosen = false;

  if (!follows_choice(s))
    return false;
  for (size_t i = 0; i < s->choice->n_items; i++) {
    const struct dk_item *item = &s->choice->items[i].item;
    is_chosen = is_chosen || (item->activity_id == row->identity.activity_id &&
                              item->execution_id == row->identity.execution_id &&
                              equal_bytes(item->instance, row->identity.instance));
  }
  return is_passed_over(s, is_chosen);
}

/* WORK-2, TAG-2: what does not fit is skipped and stays as it is. */
static bool
is_eligible(struct op *op, const struct row *row, const struct dk_fetch_work *request)
{
  const struct store *s = op->s;
  int64_t free_at = row_free_at(op, &row->lock);

  if (!fits_tags(op, row, request)) {
    if (row->visible_at <= op->now && free_at <= op->now)
      pass_by_tagged(op, row, request);
    return false;
  }
  if (session_free_at(op, row, request) > free_at)
    free_at = session_free_at(op, row, request);
  if (DEFECT(M_CANCEL_FETCH_LOOKS_AT_STATE, !is_running(s, row->identity.instance)) ||
      DEFECT(M_CANCEL_ENDED_TAGGED_HIDDEN,
             row->tag.ptr && row->attempt > 0 && has_ended(s, row->identity.instance)))
    return false;
  if (DEFECT(M_WORK_TIME_IN_SECONDS, row->visible_at > op->now &&
                                       row->visible_at / 1000 == op->now / 1000))
    return free_at <= op->now;
  if (DEFECT(M_TIME_WORK_ROUNDED, row->visible_at % 10 && row->visible_at / 10 == op->now / 10))
    return false;
  if (row->visible_at <= op->now && free_at <= op->now && !is_only_asked(s))
    return true;
  note_due(op, row->visible_at, free_at);
  return false;
}

/* WORK-8: the bounds of a fetch, of which this is item n after `bytes`. */
static bool
is_beyond(const struct op *op, const struct row *row, const struct dk_fetch_work *request,
          uint64_t n, uint64_t bytes)
{
  const struct store *s = op->s;
  bool is_large = request->max_bytes && bytes + row->payload.len > request->max_bytes;

  return REFUSED(M_WORK_MAX_ITEMS_IGNORED, n > 0 && n >= request->max_items) ||
         REFUSED(M_WORK_MAX_BYTES_IGNORED, n > 0 && is_large);
}

static dk_status
claim(struct op *op, const struct row *row, const struct dk_fetch_work *request, uint64_t n)
{
  enum { FIXED_ROOM = 65 };
  struct store *s = op->s;
  char room[MAX_TOKEN];
  struct lock lock = {fresh_epoch(op, n), lease_end(op, op->lease_from, request->lock_ms), true,
                      s->handle, fetch_id_of_work(op, request, &row->lock)};
  uint64_t attempt = row->attempt + 1; /* POISON-5 */

  if (DEFECT(M_TOKEN_WORK_SAME_AFTER_ABANDON, row->lock.epoch && !row->lock.held))
    lock.epoch = row->lock.epoch;
  if (DEFECT(M_POISON_WORK_EXPIRED_NOT_COUNTED, row->lock.held && row->attempt > 0))
    attempt--;
  if (DEFECT(M_POISON_OTHER_PROCESS_UNCOUNTED,
             row->lock.epoch && row->lock.handle >> 32 != s->handle >> 32))
    attempt--;
  if (DEFECT(M_WORK_ATTEMPT_STUCK, attempt > 1))
    attempt = 1;
  if (DEFECT(M_WORK_ATTEMPT_STOPS, attempt > 3))
    attempt = 3;
  if (DEFECT(M_CALL_CANCELLED_FETCH_COUNTS, s->cancelled_fetches > 0))
    attempt++;
  struct dk_item item = {
    .struct_size = sizeof item,
    .instance = row->identity.instance,
    .execution_id = row->identity.execution_id,
    .activity_id = row->identity.activity_id,
    .session = row->session,
    .tag = row->tag,
    .visible_at = row->visible_at,
    .payload = row->payload,
  };
  if (DEFECT(M_WORK_CUT_WHEN_GIVEN_BACK, row->lock.epoch != 0 && item.payload.len > 4095))
    item.payload.len = 4095;
  if (DEFECT(M_WORK_INSTANCE_CUT, item.instance.len > FIXED_ROOM))
    item.instance.len = FIXED_ROOM;
  if (DEFECT(M_WORK_TAG_CUT, item.tag.len > FIXED_ROOM))
    item.tag.len = FIXED_ROOM;
  if (MUTANT(M_WORK_TELLS_CLAIM_TIME))
    item.visible_at = op->now;
  struct dk_bytes token = work_token(op->s, n ? room : op->first_token, &row->identity, lock.epoch);
  if (DEFECT(M_WORK_ONE_TOKEN_FOR_ALL, n > 0))
    token = (struct dk_bytes){op->first_token, strlen(op->first_token)};
  TRY(s->host->work(op->call, &(struct dk_work){
                                .struct_size = sizeof(struct dk_work),
                                .attempt = (uint32_t)attempt,
                                .lock_token = token,
                                .item = &item,
                                .now = op->now,
                                .lease_left_ms = lock.until - clock_now(s),
                              }));
  change_row(op, row, lock, request->owner, row->visible_at, attempt);
  hold_session(op, row, request);
  s->own_epochs++;
  return DK_OK;
}

/* What was chosen before others came between is taken without another look. */
static dk_status
claim_unseen(struct op *op, const struct row *row, const struct dk_fetch_work *request)
{
  char room[MAX_TOKEN];
  struct token token;
  struct dk_bytes address = work_token(op->s, room, &row->identity, 1);

  TRY(let_others_in(op));
  row = parse_work_token(op->s, address, &token) ? find_row(op->s, &token.of) : NULL;
  return row ? claim(op, row, request, 0) : DK_NOTHING;
}

static dk_status
look_for_work(struct op *op, const void *asked)
{
  const struct dk_fetch_work *request = asked;
  const struct store *s = op->s;
  uint64_t n = 0, bytes = 0, passed = 0, misfits = 0;

  TRY(refuse_unknown(op, request->tag_rule < DK_TAG_UNTAGGED || request->tag_rule > DK_TAG_ANY,
                     "the tag rule"));
  int32_t highest = s->has_extensions ? DK_SESSION_ANY : DK_SESSION_NONE;
  TRY(refuse_unknown(op, request->session_rule < DK_SESSION_NONE || request->session_rule > highest,
                     "the session rule"));
  if (DEFECT(M_ABI_SIZE_MUST_BE_EQUAL, request->struct_size != sizeof *request)) /* ABI-9 */
    return refuse(op, DK_INVALID, "the request has another size than expected");
  FOR_EACH(at, &s->rows) {
    const struct row *row = OWNER_OF(at, struct row, link);
    if (is_left_out(s, row))
      continue;
    if (!is_eligible(op, row, request)) {
      misfits += !fits_tags(op, row, request) && row_free_at(op, &row->lock) <= op->now ? 1 : 0;
      if (DEFECT(M_WORK_LOOKS_AT_A_HUNDRED, ++passed == 100) ||
          DEFECT(M_TAG_LIMIT_BEFORE_FILTER, misfits + n >= request->max_items))
        break;
      continue;
    }
    if (is_beyond(op, row, request, n, bytes)) {
      if (MUTANT(M_POISON_CANDIDATES_COUNT))
        change_row(op, row, row->lock, row->owner, row->visible_at, row->attempt + 1);
      break;
    }
    if (MUTANT(M_WORK_CHOSEN_OUTSIDE_LOCK))
      return claim_unseen(op, row, request);
    TRY(claim(op, row, request, n++));
    bytes += row->payload.len;
  }
  return n ? DK_OK : DK_NOTHING;
}

dk_status
model_fetch_work_item(void *self, struct dk_call *call, const struct dk_fetch_work *request)
{
  return long_poll(self, call, "fetch_work_item", look_for_work, request, request->wait_until);
}

/* ---- with a token ---------------------------------------------------------------------------- */

/* CANCEL-5, TOKEN-6: the row was deleted, and so the token has no effect. */
static dk_status
lost_with_its_row(struct op *op)
{
  const struct store *s = op->s;

  if (MUTANT(M_TOKEN_DELETED_ROW_FOUND))
    return DONE_ALREADY;
  if (MUTANT(M_CANCEL_LOST_IS_RETRYABLE))
    return refuse(op, DK_BUSY, "this row is not there now");
  return lost(op, "this row was deleted: the activity was cancelled by a commit, is done, or "
              "was deleted with its instance");
}

/* TOKEN-2 to TOKEN-8: the row that this token holds.  Only mutants get a row of NULL: with one of
 * them (deleted_mutant) the operation continues although the row was deleted. */
static dk_status
find_live_row(struct op *op, struct dk_bytes text, int32_t expired_mutant, int32_t deleted_mutant,
              struct token *ret_token, struct row **ret_row)
{
  const struct store *s = op->s;
  bool is_token = parse_work_token(s, text, ret_token);
  struct row *row = is_token ? find_row(s, &ret_token->of) : NULL;

  if (!is_token && DEFECT(M_TOKEN_ONE_NAMESPACE, parse_turn_token(s, text, ret_token)))
    return DONE_ALREADY;
  if (!is_token || ret_token->epoch > s->epochs)
    return MUTANT(M_TOKEN_UNKNOWN_WORK_IS_OK) ? DONE_ALREADY
                                              : lost(op, "this token was never given out");
  if (!row && REFUSED(deleted_mutant, true))
    return lost_with_its_row(op);
  if (row && !DEFECT(M_TOKEN_FREE_ROW_MEANT, row->lock.epoch == 0) &&
      !DEFECT(M_CANCEL_ACK_MEETS_REMADE,
              ret_token->epoch < row->lock.epoch && row->attempt == 1) &&
      (REFUSED(M_TOKEN_WORK_TOKEN_NOT_COMPARED, ret_token->epoch != row->lock.epoch) ||
       REFUSED(M_TOKEN_ABANDONED_WORK_LIVES, !row->lock.held) ||
       (REFUSED(expired_mutant, row->lock.until <= op->now) &&
        !DEFECT(M_TIME_WORK_ALIVE_AT_ITS_END, row->lock.until == op->now)))) /* TIME-4 */
    return lost_because(op, &row->lock, ret_token->epoch);
  *ret_row = row;
  return DK_OK;
}

/* WORK-4: the row is deleted.  Mutants keep it, and only unlock it. */
static void
remove_row_of(struct op *op, const struct token *token, const struct row *row, bool is_kept)
{
  const struct identity *i = &token->of;

  if (row && is_kept)
    change_row(op, row, (struct lock){.epoch = row->lock.epoch}, (struct dk_bytes){NULL, 0},
               row->visible_at, row->attempt);
  else
    STEP(op, .kind = ROW_GOES, .instance = i->instance, .execution_id = i->execution_id,
         .activity_id = i->activity_id);
}

/* WORK-4, WORK-11: to the instance that it names, at its time. */
static void
enqueue_completion(struct op *op, const struct identity *of, const struct dk_item *completion)
{
  const struct store *s = op->s;
  int64_t visible_at = visible_from(op, completion);

  if (MUTANT(M_WORK_COMPLETION_LOST))
    return;
  if (DEFECT(M_WORK_COMPLETION_TIME_IGNORED, visible_at > op->now) ||
      DEFECT(M_CANCEL_ENDED_DONE_AT_ONCE, visible_at > op->now && has_ended(s, of->instance)))
    visible_at = op->now;
  const struct instance *target = find_instance(s, completion->instance);
  if (DEFECT(M_TURN_COMPLETION_UNLOCKS, target && target->lock.held))
    release_turn(op, target, false);
  write_message(op, completion->instance, completion, visible_at);
}

static dk_status
refuse_stored_completion(struct op *op, const struct token *token, const struct row *row,
                         const struct dk_item *completion)
{
  const struct store *s = op->s;

  if (!REFUSED(M_WORK_DUPLICATE_COMPLETION_STORED,
               find_message(s, completion->instance, completion->id) != NULL))
    return DK_OK;
  if (MUTANT(M_WORK_REFUSED_ACK_LOSES_ROW)) {
    remove_row_of(op, token, row, false);
    op->leaves_traces = true;
  }
  if (DEFECT(M_ERR_REFUSED_ACK_EXTENDS, row != NULL)) { /* ERR-3 */
    struct lock longer = row->lock;
    longer.until = dk_sat_add(longer.until, 30000);
    change_row(op, row, longer, row->owner, row->visible_at, row->attempt);
    op->leaves_traces = true;
  }
  if (MUTANT(M_ERR_STORED_COMPLETION_IS_UNKNOWN))       /* ERR-1 */
    return refuse(op, DK_OUTCOME_UNKNOWN, "the transaction failed");
  return refuse_stored_message(op, completion);
}

/* CANCEL-5: its row was deleted. */
static bool
is_of_deleted_row(const struct store *s, struct dk_bytes text)
{
  struct token token;

  return parse_work_token(s, text, &token) && token.epoch <= s->epochs && !find_row(s, &token.of);
}

/* CANCEL-5: no row, no completion.  A mutant sends one to another instance all the same. */
static void
send_though_deleted(struct op *op, struct dk_bytes text, const struct dk_item *completion)
{
  const struct store *s = op->s;
  struct token token;

  if (!completion || !parse_work_token(s, text, &token) ||
      (!DEFECT(M_CANCEL_LATE_COMPLETION_TO_OTHERS,
               is_of_deleted_row(s, text) &&
                 !equal_bytes(completion->instance, token.of.instance)) &&
       !DEFECT(M_DEL_LATE_ACK_ENQUEUES, token.epoch <= s->epochs && /* DEL-5 */
                                          !find_instance(s, token.of.instance))))
    return;
  enqueue_completion(op, &token.of, completion);
  op->leaves_traces = true;
}

/* WORK-10: another one holds the row now. */
static bool
is_of_former_holder(const struct store *s, struct dk_bytes text)
{
  struct token token;
  const struct row *row = parse_work_token(s, text, &token) ? find_row(s, &token.of) : NULL;

  return row && token.epoch < row->lock.epoch;
}

static dk_status
ack_work_item(struct op *op, struct dk_bytes text, const struct dk_work_result *result)
{
  const struct store *s = op->s;
  const struct dk_item *completion = result->completion;
  bool is_repeat = result->flags & DK_REPEATED;
  struct token token;
  struct row *row = NULL;

  if (DEFECT(M_WORK_REPEATED_ACK_OF_FORMER, is_repeat && is_of_former_holder(s, text)))
    return DONE_ALREADY;
  if (DEFECT(M_CANCEL_MARKED_ACK_IS_DONE, is_repeat && is_of_deleted_row(s, text)))
    return DONE_ALREADY;
  send_though_deleted(op, text, completion);
  if (completion && MUTANT(M_ERR_COMPLETION_BEFORE_TOKEN))              /* ERR-5 */
    TRY(refuse_stored_message(op, completion));
  TRY(find_live_row(op, text,                                          /* TOKEN-2 to TOKEN-8 */
                    is_repeat ? M_WORK_REPEATED_ACK_OF_EXPIRED : M_TOKEN_EXPIRED_WORK_ACKS,
                    is_repeat ? M_WORK_REPEATED_ACK_ENQUEUES_AGAIN     /* WORK-10 */
                              : M_CANCEL_ACK_OF_DELETED_ENQUEUES,      /* CANCEL-5 */
                    &token, &row));
  if (DEFECT(M_CANCEL_ACK_NEEDS_INSTANCE, !model_work_is_known(s, token.of.instance)))
    return refuse(op, DK_NOT_FOUND, "there is no such instance");
  if (DEFECT(M_CANCEL_ACK_LOOKS_AT_STATE, has_ended(s, token.of.instance)))
    return refuse(op, DK_NOT_FOUND, "the orchestration has ended");
  if (DEFECT(M_CANCEL_ENDED_MARKED_LOST, is_repeat && has_ended(s, token.of.instance)))
    return lost(op, "the orchestration has ended");
  if (MUTANT(M_CANCEL_ACK_CHECKS_OUTSIDE)) {                           /* CANCEL-7: one lock */
    TRY(let_others_in(op));
    row = find_row(s, &token.of);
  }
  TRY(refuse_unknown(op, result->flags & ~(uint32_t)DK_REPEATED, "a flag of the ack"));
  if (completion) {
    TRY(refuse_unknown(op, REFUSED(M_ABI_COMPLETION_FLAGS_IGNORED, completion->flags != 0),
                       "a flag of the completion"));
    TRY(refuse_stored_completion(op, &token, row, completion));        /* WORK-4, QUEUE-4 */
    remove_row_of(op, &token, row, MUTANT(M_WORK_ACK_KEEPS_ROW));      /* WORK-4: both */
    if (MUTANT(M_WORK_ACK_IN_TWO))
      TRY(write_in_between(op));
    enqueue_completion(op, &token.of, completion);                     /* or neither */
    return DK_OK;
  }
  remove_row_of(op, &token, row, MUTANT(M_CANCEL_EMPTY_ACK_KEEPS_ROW)); /* CANCEL-8 */
  if (MUTANT(M_CANCEL_EMPTY_ACK_ENQUEUES))
    enqueue_completion(op, &token.of, &(struct dk_item){.instance = token.of.instance});
  return DK_OK;
}

dk_status
model_ack_work_item(void *self, struct dk_call *call, struct dk_bytes token,
                    const struct dk_work_result *result)
{
  struct op op;

  TRY(enter(&op, self, call, "ack_work_item"));
  return leave(&op, ack_work_item(&op, token, result));
}

static dk_status
abandon_work_item(struct op *op, struct dk_bytes text, int64_t delay_ms, int32_t ignore_attempt)
{
  const struct store *s = op->s;
  struct token token;
  struct row *row = NULL;

  TRY(find_live_row(op, text, M_TOKEN_EXPIRED_WORK_ABANDONS, M_CANCEL_ABANDON_REVIVES, &token,
                    &row));                                            /* TOKEN-2 to TOKEN-8 */
  if (DEFECT(M_WORK_DELAY_31_BITS, delay_ms > INT32_MAX))
    delay_ms &= INT32_MAX;
  int64_t visible_at = delayed_until(op, delay_ms);                    /* WORK-7: 0 is now */
  bool is_over = has_ended(s, token.of.instance);
  if (DEFECT(M_WORK_ABANDON_DELAY_IGNORED, delay_ms > 0) ||
      DEFECT(M_CANCEL_ENDED_BACK_AT_ONCE, delay_ms > 0 && is_over))
    visible_at = op->now;
  if (DEFECT(M_WORK_ABANDON_KEEPS_VISIBLE_TIME, row && delay_ms == 0))
    visible_at = row->visible_at;
  if (!row) {
    write_row(op, &token.of, &(struct dk_item){.payload = {"", 0}}, (struct dk_bytes){NULL, 0},
              visible_at);
    return DK_OK;
  }
  bool is_taken_back = REFUSED(M_POISON_WORK_IGNORE_FORGOTTEN, ignore_attempt) &&
                       !DEFECT(M_CANCEL_ENDED_BACK_COUNTS, is_over);
  if (DEFECT(M_CANCEL_ABANDON_LOOKS_AT_STATE, is_over)) {
    remove_row_of(op, &token, row, false);
    return DK_OK;
  }
  struct lock freed = row->lock;
  freed.held = MUTANT(M_WORK_ABANDON_KEEPS_LOCK);
  change_row(op, row, freed, row->owner, visible_at,
             row->attempt - (is_taken_back && row->attempt ? 1 : 0)); /* POISON-4, POISON-5 */
  return DK_OK;
}

dk_status
model_abandon_work_item(void *self, struct dk_call *call, struct dk_bytes token,
                        int64_t delay_ms, int32_t ignore_attempt)
{
  struct op op;

  TRY(enter(&op, self, call, "abandon_work_item"));
  return leave(&op, abandon_work_item(&op, token, delay_ms, ignore_attempt));
}

/* A mutant reads the row, lets others in, and writes the row as it was, with a later end. */
static dk_status
renew_in_two(struct op *op, const struct token *token, const struct row *row, int64_t extend_ms)
{
  struct dk_item item = {.struct_size = sizeof item, .payload = {"", 0}};
  struct lock lock = row->lock;
  uint64_t attempt = row->attempt;
  int64_t visible_at = row->visible_at;

  TRY(let_others_in(op));
  row = find_row(op->s, &token->of);
  if (!row) {
    write_row(op, &token->of, &item, (struct dk_bytes){NULL, 0}, visible_at);
    return DK_OK;
  }
  lock.until = lease_end(op, op->now, extend_ms);
  change_row(op, row, lock, row->owner, visible_at, attempt);
  return DK_OK;
}

static dk_status
renew_work_item_lock(struct op *op, struct dk_bytes text, int64_t extend_ms)
{
  const struct store *s = op->s;
  struct token token;
  struct row *row = NULL;

  TRY(find_live_row(op, text, M_TOKEN_EXPIRED_WORK_RENEWS, M_CANCEL_RENEW_OF_DELETED_IS_OK,
                    &token, &row));                                    /* TOKEN-2 to TOKEN-8 */
  if (DEFECT(M_CANCEL_RENEW_LOOKS_AT_STATE, !is_running(s, token.of.instance)))
    return lost(op, "the orchestration has ended");
  if (!row)
    return DK_OK;
  if (MUTANT(M_CANCEL_RENEW_WRITES_BACK))                                  /* CANCEL-7 */
    return renew_in_two(op, &token, row, extend_ms);
  enum { A_DAY = 24 * 3600 * 1000 };
  if (DEFECT(M_WORK_RENEW_AT_MOST_A_DAY, extend_ms > A_DAY))
    extend_ms = A_DAY;
  struct lock renewed = row->lock;
  if (MUTANT(M_REL_RENEWED_STAYS))                                        /* REL-2 */
    renewed.fetch_id = 0;
  if (!MUTANT(M_WORK_RENEW_DOES_NOTHING))
    renewed.until = lease_end(op, MUTANT(M_WORK_RENEW_ADDS) ? row->lock.until : op->now, extend_ms);
  if (DEFECT(M_CANCEL_ENDED_LEASE_NOT_CUT,
             renewed.until < row->lock.until && has_ended(s, token.of.instance)))
    renewed.until = row->lock.until;
  change_row(op, row, renewed, row->owner, row->visible_at,               /* WORK-6, POISON-5 */
             row->attempt + (MUTANT(M_POISON_WORK_RENEW_COUNTS) ? 1 : 0));
  return DK_OK;
}

dk_status
model_renew_work_item_lock(void *self, struct dk_call *call, struct dk_bytes token,
                           int64_t extend_ms)
{
  struct op op;

  TRY(enter(&op, self, call, "renew_work_item_lock"));
  return leave(&op, renew_work_item_lock(&op, token, extend_ms));
}

/* ---- without a turn -------------------------------------------------------------------------- */

static struct dk_bytes
in_small_letters(struct dk_bytes tag, struct dk_text *room)
{
  for (size_t i = 0; i < tag.len; i++) {
    char letter = tag.ptr[i] >= 'A' && tag.ptr[i] <= 'Z' ? (char)(tag.ptr[i] | 0x20) : tag.ptr[i];
    dk_text_add(room, &letter, 1);
  }
  return (struct dk_bytes){dk_text_str(room), tag.len};
}

/* TIME-3: a delay is that of one item.  A mutant counts it once more, for all of the instance. */
static void
move_others(struct op *op, const struct dk_item *item)
{
  const struct store *s = op->s;

  FOR_EACH(at, &s->rows) {
    const struct row *row = OWNER_OF(at, struct row, link);
    if (DEFECT(M_TIME_OWN_DELAY_MOVES_ALL, s->own_clock && item->delay_ms > 0 &&
                 equal_bytes(row->identity.instance, item->instance)))
      change_row(op, row, row->lock, row->owner, visible_from(op, item), row->attempt);
  }
}

/* WORK-9: the same row as a commit's. */
static dk_status
enqueue_for_worker(struct op *op, const struct dk_item *item)
{
  const struct store *s = op->s;
  struct identity identity = {item->instance, item->execution_id, item->activity_id};
  struct dk_bytes tag = item->tag;

  uint32_t unknown = item->flags & ~(uint32_t)DK_REPEATED;
  TRY(refuse_unknown(op, REFUSED(M_ABI_DIRECT_FLAGS_IGNORED, unknown != 0),
                     "a flag of the activity"));
  TRY(refuse_unknown(op, !s->has_extensions && item->session.ptr, "a session"));
  if (DEFECT(M_CANCEL_DIRECT_REPEAT_IS_OK,
             item->flags & DK_REPEATED && find_row(s, &identity) != NULL))
    return DONE_ALREADY;
  const struct row *stored = find_row(s, &identity);
  if (DEFECT(M_ERR_REFUSED_DIRECT_UNLOCKS, stored && stored->lock.held)) {
    change_row(op, stored, (struct lock){.epoch = stored->lock.epoch}, stored->owner,
               stored->visible_at, stored->attempt);
    op->leaves_traces = true;
  }
  if (DEFECT(M_ERR_STORED_ACTIVITY_IS_UNAVAILABLE, stored != NULL))
    return refuse(op, DK_UNAVAILABLE, "the server answered with an error");
  if (REFUSED(M_CANCEL_DIRECT_SECOND_ROW_ACCEPTED, stored != NULL))
    return refuse(op, DK_DUPLICATE, "activity %llu of execution %llu is stored", /* CANCEL-11 */
                  (unsigned long long)item->activity_id,
                  (unsigned long long)item->execution_id);
  if (DEFECT(M_WORK_DIRECT_TAG_LOST, tag.ptr != NULL))
    tag.ptr = NULL;
  struct dk_text small = DK_TEXT_EMPTY;
  if (DEFECT(M_TAG_DIRECT_IN_SMALL_LETTERS, tag.ptr != NULL))
    tag = in_small_letters(tag, &small);
  write_row(op, &identity, item, tag, visible_from(op, item)); /* TAG-4, TIME-5 */
  dk_text_done(&small);
  move_others(op, item);
  return DK_OK;
}

dk_status
model_enqueue_for_worker(void *self, struct dk_call *call, const struct dk_item *item)
{
  struct op op;

  TRY(enter(&op, self, call, "enqueue_for_worker"));
  return leave(&op, enqueue_for_worker(&op, item));
}
