/* SPDX-License-Identifier: Apache-2.0 */
/* Random orchestrations in a random world: every turn is run from the start, and once more by the
 * run that was kept from the turn before, or from the start again.  A quarter of the turns is lost,
 * and each commit is followed by a restart from its encoded history.  All results must agree.
 *
 * What a program does next follows from all that it has seen, so that any difference in what it
 * sees becomes another command.  Three engines that are wrong on purpose (see local.mk: the linker
 * replaces the functions of winner-rule.c by those below) show that this finds differences. */
#include <inttypes.h>
#include <stdio.h>

#include "conformance/tap/tap.h"
#include "core/base/checksum.h"
#include "core/runtime/code/winner-rule.h"
#include "core/runtime/testing/dice.h"
#include "core/runtime/testing/random-world.h"

/* ---- wrong engines ----------------------------------------------------------------------------*/

enum rule {
  RIGHT,
  WRONG_SELECT,       /* by the order of the arguments only */
  WRONG_TRY_DEQUEUE,  /* looks past now */
  WRONG_DROP          /* "has it completed at all?" */
};

static enum rule rule;

bool __real_rule_prefers(uint64_t candidate, uint64_t best, uint64_t now);
bool __real_rule_sees(uint64_t position, uint64_t now);
bool __real_rule_is_over(uint64_t position, uint64_t now);
bool __wrap_rule_prefers(uint64_t candidate, uint64_t best, uint64_t now);
bool __wrap_rule_sees(uint64_t position, uint64_t now);
bool __wrap_rule_is_over(uint64_t position, uint64_t now);

bool
__wrap_rule_prefers(uint64_t candidate, uint64_t best, uint64_t now)
{
  if (rule == WRONG_SELECT)
    return best == POSITION_NONE && candidate != POSITION_NONE;
  return __real_rule_prefers(candidate, best, now);
}

bool
__wrap_rule_sees(uint64_t position, uint64_t now)
{
  if (rule == WRONG_TRY_DEQUEUE)
    return position != POSITION_NONE;
  return __real_rule_sees(position, now);
}

bool
__wrap_rule_is_over(uint64_t position, uint64_t now)
{
  if (rule == WRONG_DROP)
    return position != POSITION_NONE;
  return __real_rule_is_over(position, now);
}

/* ---- a random program -------------------------------------------------------------------------*/

enum { MOST_FUTURES = 10 };

struct program {
  dk_orch *o;
  struct dice dice;
  uint64_t seen; /* a hash of everything that it has received */
  dk_str told;   /* the last text, which stays valid */
  dk_future *futures[MOST_FUTURES];
  size_t n_futures;
};

static void
see(struct program *p, const void *bytes, size_t size)
{
  p->seen = dk_fnv1a64(p->seen, bytes, size);
  p->dice.state ^= p->seen;
}

static void
see_number(struct program *p, int64_t number)
{
  see(p, &number, sizeof(number));
}

static void
see_text(struct program *p, dk_str text)
{
  see_number(p, (int64_t)text.len);
  see(p, text.ptr, text.len);
  see(p, p->told.ptr, p->told.len);
  p->told = text;
}

static const char *
some_name(struct program *p)
{
  return dice_below(&p->dice, 2) ? "a" : "b";
}

static void
keep(struct program *p, dk_future *future)
{
  if (p->n_futures == MOST_FUTURES) {
    dk_drop(p->o, p->futures[0]);
    p->futures[0] = p->futures[--p->n_futures];
  }
  p->futures[p->n_futures++] = future;
}

static void
begin_one(struct program *p)
{
  switch (dice_below(&p->dice, 6)) {
  case 0:
    keep(p, dk_timer(p->o, (int64_t)dice_below(&p->dice, 1000)));
    break;
  case 1:
    keep(p, dk_external(p->o, some_name(p)));
    break;
  case 2:
    keep(p, dk_dequeue(p->o, some_name(p)));
    break;
  case 3:
    keep(p, dk_child(p->o, "child", dk_str_of(some_name(p)), NULL));
    break;
  default:
    keep(p, dk_activity(p->o, some_name(p), dk_format(p->o, "%" PRIx64, p->seen)));
  }
}

/* Some of the futures, in any order. */
static size_t
some_futures(struct program *p, dk_future **ret_futures)
{
  size_t n = 1 + dice_below(&p->dice, p->n_futures);

  for (size_t i = 0; i < n; i++) {
    size_t at = i + dice_below(&p->dice, p->n_futures - i);
    dk_future *future = p->futures[at];
    p->futures[at] = p->futures[i];
    p->futures[i] = ret_futures[i] = future;
  }
  return n;
}

static void
see_winner(struct program *p, dk_future *const *futures, size_t n, const dk_future *winner)
{
  for (size_t i = 0; i < n; i++)
    if (futures[i] == winner)
      see_number(p, (int64_t)i);
}

static void
see_outcome(struct program *p, dk_future *future)
{
  dk_str value;

  see_number(p, dk_outcome(p->o, future, &value));
  see_text(p, value);
}

static void
wait_somehow(struct program *p)
{
  dk_future *chosen[MOST_FUTURES];

  if (p->n_futures == 0)
    begin_one(p);
  size_t n = some_futures(p, chosen);
  switch (dice_below(&p->dice, 6)) {
  case 0:
    dk_all_of(p->o, chosen, n > 2 ? 2 : n);
    break;
  case 1:
    see_outcome(p, chosen[0]);
    break;
  case 2:
  case 3:
    see_winner(p, chosen, n, dk_any_of(p->o, chosen, n));
    break;
  default:
    see_winner(p, chosen, n, dk_select_of(p->o, chosen, n));
  }
}

static void
look(struct program *p)
{
  dk_str message;

  if (p->n_futures > 0 && dice_below(&p->dice, 3) == 0)
    see_number(p, dk_ready(p->o, p->futures[dice_below(&p->dice, p->n_futures)]));
  if (dk_try_dequeue(p->o, some_name(p), &message) == 1)
    see_text(p, message);
}

static void
drop_one(struct program *p)
{
  if (p->n_futures > 0)
    dk_drop(p->o, p->futures[dice_below(&p->dice, p->n_futures)]);
}

static void
use_values(struct program *p)
{
  char guid[37];

  switch (dice_below(&p->dice, 3)) {
  case 0:
    see_number(p, dk_now(p->o));
    break;
  case 1:
    see_number(p, (int64_t)dk_random(p->o));
    break;
  default:
    dk_guid(p->o, guid);
    see(p, guid, sizeof(guid));
  }
}

static void
use_kv(struct program *p)
{
  dk_str value;

  switch (dice_below(&p->dice, 8)) {
  case 0:
    dk_kv_clear(p->o, some_name(p));
    break;
  case 1:
    dk_kv_clear_all(p->o);
    break;
  case 2:
  case 3:
    dk_kv_set(p->o, some_name(p), dk_format(p->o, "%" PRIx64, p->seen));
    break;
  default:
    if (dk_kv_get(p->o, some_name(p), &value) == 1)
      see_text(p, value);
  }
}

static void
retry(struct program *p)
{
  struct dk_retry how = {.struct_size = sizeof(how),
                         .attempts = 1 + (uint32_t)dice_below(&p->dice, 3),
                         .timeout_ms = (int64_t)dice_below(&p->dice, 2) * 50,
                         .first_delay_ms = (int64_t)dice_below(&p->dice, 2) * 10,
                         .retry_timeouts = (uint32_t)dice_below(&p->dice, 2)};
  dk_str value;

  see_number(p, dk_activity_retried(p->o, some_name(p), dk_str_of("again"), NULL, &how, &value));
  see_text(p, value);
}

static void
do_something(struct program *p)
{
  switch (dice_below(&p->dice, 12)) {
  case 0:
  case 1:
  case 2:
  case 3:
    begin_one(p);
    begin_one(p);
    break;
  case 4:
    drop_one(p);
    break;
  case 5:
    use_values(p);
    break;
  case 6:
    use_kv(p);
    break;
  case 7:
    if (dice_below(&p->dice, 3) == 0)
      retry(p);
    break;
  case 8:
    look(p);
    break;
  case 9:
    dk_set_status(p->o, dk_format(p->o, "%" PRIx64, p->seen));
    break;
  default:
    wait_somehow(p);
    look(p);
  }
}

static dk_result
program(dk_orch *o, dk_str input)
{
  struct program p = {.o = o, .seen = DK_FNV1A64_START};

  see_text(&p, input);
  for (size_t steps = 4 + dice_below(&p.dice, 24); steps > 0; steps--)
    do_something(&p);
  if (dice_below(&p.dice, 8) == 0)
    dk_continue_as_new(o, input, NULL);
  if (dice_below(&p.dice, 8) == 0)
    dk_fail(o, "it failed, having seen %" PRIx64, p.seen);
  return dk_completed(o, dk_format(o, "%" PRIx64, p.seen));
}

/* ---- the tests --------------------------------------------------------------------------------*/

static void
nothing_disagrees(void)
{
  unsigned n = dice_rounds(20000), disagreements = 0;
  struct tally tally = {.turns = 0};

  rule = RIGHT;
  for (unsigned seed = 1; seed <= n; seed++) {
    const char *complaint = world_play(seed, program, &tally);
    if (!complaint)
      continue;
    diag("program %u: %s", seed, complaint);
    if (++disagreements == 5)
      break;
  }
  cmp_ok(disagreements, "==", 0, "random programs: nothing disagrees");
  note("%u programs, %lu turns, %lu of them lost, %lu by a run that was kept, %lu events, "
       "%lu drops, %lu rows cancelled, %lu strays", n, tally.turns, tally.lost, tally.gone_on,
       tally.events, tally.drops, tally.cancelled_rows, tally.strays);
  note("completed %lu, failed %lu, cancelled %lu, continued %lu", tally.terminal[DK_COMPLETED],
       tally.terminal[DK_FAILED], tally.terminal[DK_CANCELLED],
       tally.terminal[DK_CONTINUED_AS_NEW]);
  ok(tally.lost > 0 && tally.gone_on > 0 && tally.drops > 0 && tally.cancelled_rows > 0 &&
       tally.strays > 0 && tally.terminal[DK_COMPLETED] > 0 && tally.terminal[DK_FAILED] > 0 &&
       tally.terminal[DK_CONTINUED_AS_NEW] > 0,
     "they have met all there is");
}

static void
is_found(enum rule wrong, dk_orchestration_fn *code, const char *what)
{
  struct tally tally = {.turns = 0};
  unsigned seed = 1;

  rule = wrong;
  while (seed <= 50 && !world_play(seed, code, &tally))
    seed++;
  cmp_ok(seed, "<=", 50, "what is wrong is found: %s", what);
  note("by program %u", seed);
}

/* It remembers something that is not in its history: a kept run and a new run differ. */
static dk_result
remembering(dk_orch *o, dk_str input)
{
  static int begun;

  if (++begun % 2)
    dk_now(o);
  return program(o, input);
}

int
main(void)
{
  plan(NO_PLAN);
  nothing_disagrees();
  is_found(WRONG_SELECT, program, "select by the order of its arguments only");
  is_found(WRONG_TRY_DEQUEUE, program, "try_dequeue looks past now");
  is_found(WRONG_DROP, program, "a drop decided by whether it has completed at all");
  is_found(RIGHT, remembering, "code that remembers what its history does not say");
  return done_testing();
}
