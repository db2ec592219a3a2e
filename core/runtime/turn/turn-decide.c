/* SPDX-License-Identifier: Apache-2.0 */
/* Decides a turn: places the arrivals, runs the code, and makes a decision from what the code did.
 *
 * The first of these decides: a cancel request (the code is not run), an unreadable history or
 * message, an orchestration that is not registered, too many deliveries without a commit, and else
 * the code itself. */
#include <sys/random.h>

#include "core/runtime/turn/turn-thread.h"
#include "core/runtime/turn/turn.h"

/* ---- the past as the code sees it ------------------------------------------------------------ */

static void
say(void *context, int32_t level, dk_str line)
{
  const struct turn *turn = context;
  struct dk_log_event event = turn_event(turn, DK_LOG_TEXT);

  if (turn_thread_is_abandoned(turn->thread))
    return; /* the logger may be freed already */
  event.level = level;
  log_report(turn->shared->log, &event, "%.*s", (int)line.len, line.ptr);
}

static uint64_t
new_seed(void)
{
  uint64_t seed = 0;

  if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
    seed = (uint64_t)ticks_now() * 0x9e3779b97f4a7c15u; /* never happens with a size this small */
  return seed;
}

static struct past
past_of(struct turn *turn)
{
  const struct turn_shared *shared = turn->shared;

  return (struct past){
      .instance = turn->memory->instance,
      .execution = turn->execution,
      .events = turn->memory->events,
      .n_events = turn->memory->n_events,
      .n_committed = turn->n_committed,
      .arrived = turn->staged.arrived,
      .n_arrived = turn->staged.n_arrived,
      .index = turn->staged.index,
      .kv = turn->memory->kv,
      .n_kv = turn->memory->n_kv,
      .time = turn->now,
      .seed = new_seed(),
      .max_events = shared->options->max_events,
      .max_id = shared->limits.max_id,
      .max_payload = shared->limits.max_payload,
      .max_items = shared->limits.max_commit_items,
      .has_kv = shared->has_kv,
      .has_status = shared->has_status,
      .has_sessions = shared->has_sessions,
      .say = say,
      .limited = turn_note_limit,
      .context = turn,
  };
}

/* ---- staging --------------------------------------------------------------------------------- */

static void
keep_stray(void *context, const struct message *message, const char *why)
{
  turn_stray(context, message_kind_name(message->kind), why, false);
}

static dk_status
stage(struct turn *turn)
{
  struct history *index = remembered_index(turn->memory);

  if (!index)
    return DK_NO_MEMORY;
  return decision_stage(&turn->arena, index, turn->execution, turn->messages, turn->n_messages,
                        turn->now, keep_stray, turn, &turn->staged);
}

/* ---- failures by the runtime ----------------------------------------------------------------- */

/* As a string; it has a NUL. */
static const char *
text_of(struct turn *turn, dk_str text)
{
  const char *copy = dk_arena_copy(&turn->arena, text.ptr, text.len);

  return copy ? copy : "";
}

static struct verdict_of
failed(struct turn *turn, enum code code, const char *text)
{
  const char *copy = dk_arena_strdup(&turn->arena, text);

  return (struct verdict_of){VERDICT_FAILED, code, dk_str_of(copy ? copy : "")};
}

/* Errors that a retry cannot fix. */
static const struct fault {
  enum code code;     /* of the failure, */
  const char *words;  /* and the text before the details while it is delayed */
} faults[N_DELAYS] = {
    [DELAY_UNREGISTERED] = {CODE_UNREGISTERED, ""},
    [DELAY_NONDETERMINISM] = {CODE_NONDETERMINISM, "the code does not do what its history says: "},
    [DELAY_CORRUPT] = {CODE_CORRUPT, "its history cannot be read: "},
    [DELAY_UNREADABLE] = {CODE_CORRUPT, "a message of it cannot be read: "},
    [DELAY_LIMIT] = {CODE_LIMIT, ""},
    [DELAY_WRONG_CALL] = {CODE_APPLICATION, ""},
};

static enum fate
delay_or_fail(struct turn *turn, enum delay why, const char *details, struct verdict_of *verdict)
{
  if (!turn_fails(turn, why))
    return turn_delay(turn, why, "%s%s", faults[why].words, details);
  *verdict = failed(turn, faults[why].code, details);
  return FATE_GOES_ON;
}

/* ---- the code -------------------------------------------------------------------------------- */

static int32_t
overdue(void *context)
{
  const struct turn *turn = context;

  return turn_thread_overdue(turn->thread);
}

static void
log_wrong_use(struct turn *turn, dk_str text)
{
  struct dk_log_event event = turn_event(turn, DK_LOG_PROGRAMMING_ERROR);

  log_report(turn->shared->log, &event, "%.*s", (int)text.len, text.ptr);
}

/* What the ending of the run means for the turn. */
static enum fate
judge_run(struct turn *turn, const struct ran *ran, struct verdict_of *verdict)
{
  switch (ran->ending) {
  case ENDING_NONDETERMINISM:
    return delay_or_fail(turn, DELAY_NONDETERMINISM, text_of(turn, ran->text), verdict);
  case ENDING_LIMIT:
    return delay_or_fail(turn, DELAY_LIMIT, text_of(turn, ran->text), verdict);
  case ENDING_WRONG_USE:
    if (turn_fails(turn, DELAY_WRONG_CALL))
      log_wrong_use(turn, ran->text);
    return delay_or_fail(turn, DELAY_WRONG_CALL, text_of(turn, ran->text), verdict);
  case ENDING_OVERDUE:
    if (turn_thread_ends(turn->thread))
      return FATE_AGAIN;
    return turn_delay(turn, DELAY_OVERDUE, "its code took longer than max_turn_ms, %lld ms",
                      (long long)turn->shared->options->max_turn_ms);
  case ENDING_CORRUPT:
    return delay_or_fail(turn, DELAY_CORRUPT, text_of(turn, ran->text), verdict);
  case ENDING_NO_MEMORY:
    cache_drop_runs(turn->shared->cache); /* so that more memory and threads are free next time */
    return turn_delay(turn, DELAY_NO_MEMORY,
                      "no memory, or no thread, for its code: use fewer "
                      "slots, or raise the limits (ulimit -u)");
  case ENDING_WAITS:
  case ENDING_COMPLETED:
  case ENDING_FAILED:
  case ENDING_CONTINUED:
    break;
  }
  return FATE_GOES_ON;
}

/* The run that waits for these arrivals, or a new one that begins at the start; NULL: no memory. */
static struct dk_orch *
run_for(struct turn *turn, dk_orchestration_fn *function, const struct past *past)
{
  struct remembered *memory = turn->memory;

  if (memory->run && !replay_fits(memory->run, past))
    remembered_drop_run(memory);
  if (!memory->run)
    memory->run = replay_new(function);
  return memory->run;
}

static enum fate
run_code(struct turn *turn, dk_orchestration_fn *function, struct ran *ran,
         struct verdict_of *verdict)
{
  struct past past = past_of(turn);
  struct dk_orch *run = run_for(turn, function, &past);

  if (!run)
    return turn_delay(turn, DELAY_NO_MEMORY, "no memory for its code");
  past.overdue = overdue;
  turn_thread_code_begins(turn->thread, turn->instance);
  replay_turn(run, &past, ran);
  if (!turn_thread_code_ends(turn->thread))
    return turn_thread_is_abandoned(turn->thread) ? FATE_LEFT : FATE_TOO_LATE;
  return judge_run(turn, ran, verdict);
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static enum fate
unregistered(struct turn *turn, struct verdict_of *verdict)
{
  const struct event *started = turn->started;
  bool is_any = str_equal(started->version, dk_str_of(NO_VERSION)); /* no version was requested */
  const char *details =
      dk_arena_printf(&turn->arena,
                      "no orchestration \"%.*s\"%s%.*s is registered here: "
                      "register it (dk_register_orchestration), or cancel the instance",
                      (int)started->name.len, started->name.ptr, is_any ? "" : " of version ",
                      is_any ? 0 : (int)started->version.len, started->version.ptr);

  return delay_or_fail(turn, DELAY_UNREGISTERED, details ? details : "", verdict);
}

static enum fate
turn_decide_judge(struct turn *turn, struct ran *ran, struct verdict_of *verdict)
{
  const struct event *started = turn->started;

  if (turn->staged.cancel_requested) {
    verdict->verdict = VERDICT_CANCELLED;
    return FATE_GOES_ON;
  }
  if (turn->corrupt)
    return delay_or_fail(turn, DELAY_CORRUPT, turn->corrupt, verdict);
  if (turn->unreadable)
    return delay_or_fail(turn, DELAY_UNREADABLE, turn->unreadable, verdict);
  dk_orchestration_fn *function = registry_orchestration(turn->shared->options->registry,
                                                         started->name, started->version, NULL);
  if (!function)
    return unregistered(turn, verdict);
  if (turn_judged(turn) > turn->shared->options->max_attempts) {
    *verdict = failed(turn, CODE_POISON, "its turn was tried too often without success");
    return FATE_GOES_ON;
  }
  if (turn_thread_stuck_with(turn->thread, turn->instance))
    return turn_delay(turn, DELAY_STUCK, "its code has not returned from an earlier turn");
  return run_code(turn, function, ran, verdict);
}

/* ---- the decision ---------------------------------------------------------------------------- */

static dk_status
make_decision(struct turn *turn, const struct ran *ran, const struct verdict_of *verdict)
{
  const struct past past = past_of(turn);

  return decide(&turn->arena, &past, turn->started, turn->is_first, &turn->staged, ran, verdict,
                &turn->decision);
}

dk_status
turn_decide_failure(struct turn *turn, enum code code, dk_str text)
{
  const struct verdict_of verdict = {VERDICT_FAILED, code, text};

  return make_decision(turn, NULL, &verdict);
}

/* All messages were strays, so the code would find what it found before.  This is unknown if the
 * history or a message cannot be read. */
static bool
nothing_happened(const struct turn *turn)
{
  return !turn->is_first && turn->staged.n_arrived == 0 && !turn->corrupt && !turn->unreadable;
}

enum fate
turn_decide(struct turn *turn)
{
  struct ran ran = {.ending = ENDING_WAITS};
  struct verdict_of verdict = {.verdict = VERDICT_RAN};

  if (stage(turn) != DK_OK)
    return turn_delay(turn, DELAY_NO_MEMORY, "no memory for its turn");
  if (nothing_happened(turn))
    return turn_commit_nothing(turn, turn->staged.answers, turn->staged.n_answers);
  enum fate fate = turn_decide_judge(turn, &ran, &verdict);
  if (fate != FATE_GOES_ON)
    return fate;
  if (make_decision(turn, &ran, &verdict) != DK_OK ||
      (turn->stored_start.ptr && stored_take_along(turn) != DK_OK))
    return turn_delay(turn, DELAY_NO_MEMORY, "no memory for its turn");
  return turn_commit(turn);
}
