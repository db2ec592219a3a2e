/* SPDX-License-Identifier: Apache-2.0 */
/* QUEUE, TIME: the orchestrator queue.  A message is stored for any target and creates no instance.
 * And the sums of times and durations, for all operations. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "conformance/model/state.h"
#include "core/base/sat.h"

/* ---- instants -------------------------------------------------------------------------------- */

/* TIME-5: from when an item is visible. */
int64_t
visible_from(const struct op *op, const struct dk_item *item)
{
  const struct store *s = op->s;
  int64_t delayed = dk_sat_add(op->now, item->delay_ms);

  if (DEFECT(M_TIME_SUM_WRAPS, item->delay_ms > INT64_MAX - op->now) ||
      DEFECT(M_TIME_OWN_TIMER_EARLY, s->own_clock && item->delay_ms % 1000 && !item->activity_id) ||
      DEFECT(M_TIME_OWN_WORK_EARLY, s->own_clock && item->delay_ms && item->activity_id))
    return op->now;
  if (DEFECT(M_TIME_DELAY_ONLY_WITHOUT_TIME, item->visible_at && delayed > item->visible_at))
    return item->visible_at > op->now ? item->visible_at : op->now;
  if (DEFECT(M_TIME_DELAY_AFTER_TIME, item->visible_at > op->now && item->delay_ms))
    return dk_sat_add(item->visible_at, item->delay_ms);
  return item->visible_at > delayed ? item->visible_at : delayed;
}

/* TIME-1, TIME-5: when a lease of so long ends. */
int64_t
lease_end(const struct op *op, int64_t from, int64_t ms)
{
  const struct store *s = op->s;

  return DEFECT(M_TIME_LEASE_WRAPS, ms > INT64_MAX - from) ? from : dk_sat_add(from, ms);
}

/* TURN-7, WORK-7, TIME-5: from when an item that was abandoned is visible. */
int64_t
delayed_until(const struct op *op, int64_t delay_ms)
{
  const struct store *s = op->s;

  return DEFECT(M_TIME_GIVEN_BACK_WRAPS, delay_ms > INT64_MAX - op->now)
           ? op->now : dk_sat_add(op->now, delay_ms);
}

/* TIME-3, TIME-8: visible from the instant itself on, however long ago that was. */
int64_t
due_at(const struct op *op, const struct message *message)
{
  enum { A_SECOND = 1000, A_DAY = 24 * 3600 * A_SECOND };
  const struct store *s = op->s;
  int64_t due = message->visible_at;
  bool was_delayed = due > message->enqueued_at;

  if (DEFECT(M_TIME_MESSAGE_IN_SECONDS, was_delayed && due % A_SECOND != 0))
    return due - due % A_SECOND;
  if (DEFECT(M_TIME_LOOKS_BACK_A_DAY, due < op->now - A_DAY))
    return INT64_MAX;
  return dk_sat_add(due, DEFECT(M_TIME_VISIBLE_ONE_LATE, was_delayed) ? 1 : 0);
}

/* ---- ids that look alike: of mutants --------------------------------------------------------- */

enum { LOOKS_AT_MOST = 64 }; /* so many others are compared */

static struct dk_bytes
without_blanks(struct dk_bytes id)
{
  while (id.len > 0 && id.ptr[id.len - 1] == ' ')
    id.len--;
  return id;
}

static bool
is_same_in_any_case(struct dk_bytes a, struct dk_bytes b)
{
  return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

/* LIKE, with _ and %. */
static bool
fits_pattern(struct dk_bytes id, struct dk_bytes pattern)
{
  struct dk_bytes rest = {pattern.ptr + 1, pattern.len - 1};

  if (pattern.len == 0)
    return id.len == 0;
  if (*pattern.ptr == '%')
    for (size_t i = 0; i <= id.len; i++)
      if (fits_pattern((struct dk_bytes){id.ptr + i, id.len - i}, rest))
        return true;
  return id.len > 0 && (*pattern.ptr == '_' || *pattern.ptr == *id.ptr) &&
         fits_pattern((struct dk_bytes){id.ptr + 1, id.len - 1}, rest);
}

/* With e and an acute accent in one letter, or in two. */
static bool
is_same_composed(struct dk_bytes a, struct dk_bytes b)
{
  static const char one[] = "\xc3\xa9", two[] = "e\xcc\x81";
  const char *accent = memmem(a.ptr, a.len, one, 2);
  size_t before = accent ? (size_t)(accent - a.ptr) : 0;

  return accent && b.len == a.len + 1 && memcmp(a.ptr, b.ptr, before) == 0 &&
         memcmp(b.ptr + before, two, 3) == 0 &&
         memcmp(accent + 2, b.ptr + before + 3, a.len - before - 2) == 0;
}

/* QUEUE-7. */
static bool
is_taken_for(const struct store *s, struct dk_bytes other, struct dk_bytes id)
{
  return DEFECT(M_QUEUE_INSTANCES_IN_ANY_CASE, is_same_in_any_case(other, id)) ||
         DEFECT(M_QUEUE_INSTANCES_PADDED,
                equal_bytes(without_blanks(other), without_blanks(id))) ||
         DEFECT(M_QUEUE_INSTANCES_BY_PATTERN, fits_pattern(other, id)) ||
         DEFECT(M_QUEUE_INSTANCES_NORMALISED, is_same_composed(other, id));
}

/* The instance itself; but for a mutant the first one with messages that it takes for it. */
static struct dk_bytes
instance_meant(const struct store *s, struct dk_bytes id)
{
  int n = 0;

  FOR_EACH(at, &s->waiting) {
    struct dk_bytes other = OWNER_OF(at, struct instance, link)->id;
    if (++n > LOOKS_AT_MOST)
      break;
    if (!equal_bytes(other, id) && is_taken_for(s, other, id))
      return other;
  }
  return id;
}

static bool
is_alike_stored(const struct store *s, struct dk_bytes instance, struct dk_bytes id)
{
  const struct instance *of = id.ptr ? find_instance(s, instance) : NULL;
  int n = 0;

  if (!of)
    return false;
  FOR_EACH(at, &of->messages) {
    struct dk_bytes other = OWNER_OF(at, struct message, link)->id;
    if (++n > LOOKS_AT_MOST)
      break;
    if (!other.ptr)
      continue;
    if (DEFECT(M_QUEUE_IDS_IN_ANY_CASE, is_same_in_any_case(other, id)) ||
        DEFECT(M_QUEUE_IDS_PADDED, equal_bytes(without_blanks(other), without_blanks(id))))
      return true;
  }
  return false;
}

/* ---- storing --------------------------------------------------------------------------------- */

/* QUEUE-4, QUEUE-7: while a message of this instance with this id is stored, a second one is
 * refused. */
bool
is_stored_message(const struct store *s, const struct dk_item *item)
{
  return find_message(s, item->instance, item->id) ||
         is_alike_stored(s, item->instance, item->id);
}

dk_status
refuse_stored_message(struct op *op, const struct dk_item *item)
{
  if (is_stored_message(op->s, item))
    return refuse(op, DK_DUPLICATE, "a message of this instance with the id \"%.*s\" is stored",
                  (int)item->id.len, item->id.ptr);
  return DK_OK;
}

/* QUEUE-6: what becomes of a payload where it is taken for text. */
static struct dk_bytes
stored_payload(const struct store *s, struct dk_bytes payload)
{
  const char *nul = payload.len ? memchr(payload.ptr, 0, payload.len) : NULL;

  if (DEFECT(M_QUEUE_PAYLOAD_ENDS_AT_NUL, nul != NULL))
    payload.len = (size_t)(nul - payload.ptr);
  if (DEFECT(M_QUEUE_PAYLOAD_TRIMMED, without_blanks(payload).len != payload.len))
    payload = without_blanks(payload);
  if (DEFECT(M_QUEUE_PAYLOAD_1024_EMPTY, payload.len == 1024))
    payload.len = 0;
  if (DEFECT(M_ERR_PAYLOAD_24_BITS, payload.len >> 24 != 0)) /* ERR-4 */
    payload.len &= (1u << 24) - 1;
  return payload;
}

void
write_message(struct op *op, struct dk_bytes instance, const struct dk_item *item,
              int64_t visible_at)
{
  const struct store *s = op->s;
  const struct instance *of = find_instance(s, instance);
  struct dk_bytes id = item->id;
  char room[32];
  bool is_running = of && of->lock.held && of->lock.until > op->now;

  if (DEFECT(M_QUEUE_ABSENT_ID_MADE_UP, !id.ptr))
    id = (struct dk_bytes){room, (size_t)snprintf(room, sizeof room, "message-%llu",
                                                  (unsigned long long)s->arrivals + 1)};
  STEP(op, .kind = MESSAGE_COMES, .instance = instance_meant(s, instance), .id = id,
       .payload = stored_payload(s, item->payload), .visible_at = visible_at,
       .enqueued_at = op->now,
       .epoch = DEFECT(M_QUEUE_ARRIVAL_JOINS_TURN, is_running) ? of->lock.epoch : 0);
  if (DEFECT(M_QUEUE_ARRIVAL_ENDS_LEASE, is_running && visible_at > op->now))
    STEP(op, .kind = TURN_LOCK, .instance = of->id, .epoch = of->lock.epoch, .until = visible_at,
         .held = true, .handle = of->lock.handle, .committed = of->committed);
}

void
make_instance(struct op *op, struct dk_bytes id)
{
  STEP(op, .kind = FACTS, .instance = id, .birth = op->s->epochs + 1, .enqueued_at = op->now);
  STEP(op, .kind = EXECUTION, .instance = id, .execution_id = 1, .status = DK_RUNNING,
       .started_at = op->now);
}

static dk_status
enqueue_for_orchestrator(struct op *op, const struct dk_item *item)
{
  const struct store *s = op->s;
  const struct instance *target = find_instance(s, item->instance);
  bool is_known = target && target->birth;

  TRY(refuse_unknown(op, item->flags & ~(uint32_t)DK_REPEATED, "a flag of the message"));
  TRY(refuse_wrongly(op, item));
  TRY(refuse_stored_message(op, item));                               /* QUEUE-4 */
  if (DEFECT(M_QUEUE_FINISHED_REFUSED, is_known && target->current->status != DK_RUNNING))
    return refuse(op, DK_NOT_FOUND, "the instance is not running");
  write_message(op, item->instance, item, visible_from(op, item));    /* QUEUE-1, TIME-5 */
  if (DEFECT(M_QUEUE_MESSAGE_MAKES_INSTANCE, !is_known))
    make_instance(op, item->instance);
  return DK_OK;
}

dk_status
model_enqueue_for_orchestrator(void *self, struct dk_call *call, const struct dk_item *item)
{
  struct op op;

  TRY(enter(&op, self, call, "enqueue_for_orchestrator"));
  return leave(&op, enqueue_for_orchestrator(&op, item));
}
