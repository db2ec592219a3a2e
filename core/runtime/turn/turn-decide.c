/* SPDX-License-Identifier: Apache-2.0 */
/* Deciding: the arrivals are staged, the code is run, and what it did becomes a decision.
 *
 * Who may say the last word, in this order: a cancel request (the code is not run), an unreadable
 * history or message, an orchestration that nobody has registered, too many deliveries that came to
 * no end, and else the code itself. */
#include <sys/random.h>

#include "core/runtime/turn/turn-thread.h"
#include "core/runtime/turn/turn.h"

/* ---- the past as the code sees it ------------------------------------------------------------ */

static void
say(void *context, int32_t level, dk_str line)
{
  const struct job *job = context;
  struct dk_log_event event = job_event(job, DK_LOG_TEXT);

  if (seat_is_left(job->seat))
    return; /* whoever listened may be gone */
  event.level = level;
  journal_tell(job->w->journal, &event, "%.*s", (int)line.len, line.ptr);
}

static uint64_t
new_seed(void)
{
  uint64_t seed = 0;

  if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
    seed = (uint64_t)ticks_now() * 0x9e3779b97f4a7c15u; /* never with a size this small */
  return seed;
}

static struct past
past_of(struct job *job)
{
  const struct turning *w = job->w;

  return (struct past){
    .instance = job->memory->instance,
    .execution = job->execution,
    .events = job->memory->events,
    .n_events = job->memory->n_events,
    .n_committed = job->n_committed,
    .arrived = job->staged.arrived,
    .n_arrived = job->staged.n_arrived,
    .index = job->staged.index,
    .kv = job->memory->kv,
    .n_kv = job->memory->n_kv,
    .time = job->now,
    .seed = new_seed(),
    .max_events = w->options->max_events,
    .max_id = w->limits.max_id,
    .max_payload = w->limits.max_payload,
    .max_items = w->limits.max_commit_items,
    .has_kv = w->has_kv,
    .has_status = w->has_status,
    .has_sessions = w->has_sessions,
    .say = say,
    .limited = job_limited,
    .context = job,
  };
}

/* ---- staging --------------------------------------------------------------------------------- */

static void
keep_stray(void *context, const struct message *message, const char *why)
{
  job_stray(context, message_kind_name(message->kind), why, false);
}

static dk_status
stage(struct job *job)
{
  struct history *index = remembered_index(job->memory);

  if (!index)
    return DK_NO_MEMORY;
  return decision_stage(&job->arena, index, job->execution, job->messages, job->n_messages,
                        job->now, keep_stray, job, &job->staged);
}

/* ---- failures by the runtime ----------------------------------------------------------------- */

/* As a string; it has a NUL. */
static const char *
text_of(struct job *job, dk_str text)
{
  const char *copy = dk_arena_copy(&job->arena, text.ptr, text.len);

  return copy ? copy : "";
}

static struct verdict_of
failed(struct job *job, enum code code, const char *text)
{
  const char *copy = dk_arena_strdup(&job->arena, text);

  return (struct verdict_of){VERDICT_FAILED, code, dk_str_of(copy ? copy : "")};
}

/* What trying again does not mend. */
static const struct fault {
  enum code code;     /* with which it fails, */
  const char *words;  /* and what is said before the details while it is delayed */
} faults[N_STALLS] = {
  [STALL_UNREGISTERED] = {CODE_UNREGISTERED, ""},
  [STALL_NONDETERMINISM] = {CODE_NONDETERMINISM, "the code does not do what its history says: "},
  [STALL_CORRUPT] = {CODE_CORRUPT, "its history cannot be read: "},
  [STALL_UNREADABLE] = {CODE_CORRUPT, "a message of it cannot be read: "},
  [STALL_LIMIT] = {CODE_LIMIT, ""},
  [STALL_WRONG_CALL] = {CODE_APPLICATION, ""},
};

static enum fate
delay_or_fail(struct job *job, enum stall why, const char *details, struct verdict_of *verdict)
{
  if (!job_fails(job, why))
    return job_stalled(job, why, "%s%s", faults[why].words, details);
  *verdict = failed(job, faults[why].code, details);
  return FATE_COMMITTED;
}

/* ---- the code -------------------------------------------------------------------------------- */

static int32_t
overdue(void *context)
{
  const struct job *job = context;

  return seat_overdue(job->seat);
}

static void
tell_wrong_use(struct job *job, dk_str text)
{
  struct dk_log_event event = job_event(job, DK_LOG_PROGRAMMING_ERROR);

  journal_tell(job->w->journal, &event, "%.*s", (int)text.len, text.ptr);
}

/* What the end of the run means for the turn. */
static enum fate
judge_run(struct job *job, const struct ran *ran, struct verdict_of *verdict)
{
  switch (ran->ending) {
  case ENDING_NONDETERMINISM:
    return delay_or_fail(job, STALL_NONDETERMINISM, text_of(job, ran->text), verdict);
  case ENDING_LIMIT:
    return delay_or_fail(job, STALL_LIMIT, text_of(job, ran->text), verdict);
  case ENDING_WRONG_USE:
    if (job_fails(job, STALL_WRONG_CALL))
      tell_wrong_use(job, ran->text);
    return delay_or_fail(job, STALL_WRONG_CALL, text_of(job, ran->text), verdict);
  case ENDING_OVERDUE:
    if (seat_ends(job->seat))
      return FATE_AGAIN;
    return job_stalled(job, STALL_OVERDUE, "its code took longer than max_turn_ms, %lld ms",
                       (long long)job->w->options->max_turn_ms);
  case ENDING_CORRUPT:
    return delay_or_fail(job, STALL_CORRUPT, text_of(job, ran->text), verdict);
  case ENDING_NO_MEMORY:
    cache_drop_runs(job->w->cache); /* next time there is more; threads, too */
    return job_stalled(job, STALL_NO_MEMORY, "no memory, or no thread, for its code: fewer "
                                                   "slots, or higher limits (ulimit -u)");
  case ENDING_WAITS:
  case ENDING_COMPLETED:
  case ENDING_FAILED:
  case ENDING_CONTINUED:
    break;
  }
  return FATE_COMMITTED;
}

/* The one that waits for what has come now, or another that begins at the start; NULL: no
 * memory. */
static struct dk_orch *
run_for(struct job *job, dk_orchestration_fn *function, const struct past *past)
{
  struct remembered *memory = job->memory;

  if (memory->run && !replay_fits(memory->run, past))
    remembered_drop_run(memory);
  if (!memory->run)
    memory->run = replay_new(function);
  return memory->run;
}

static enum fate
run_code(struct job *job, dk_orchestration_fn *function, struct ran *ran,
         struct verdict_of *verdict)
{
  struct past past = past_of(job);
  struct dk_orch *run = run_for(job, function, &past);

  if (!run)
    return job_stalled(job, STALL_NO_MEMORY, "no memory for its code");
  past.overdue = overdue;
  seat_code_begins(job->seat, job->instance);
  replay_turn(run, &past, ran);
  if (!seat_code_ends(job->seat))
    return seat_is_left(job->seat) ? FATE_LEFT : FATE_TOO_LATE;
  return judge_run(job, ran, verdict);
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static enum fate
unregistered(struct job *job, struct verdict_of *verdict)
{
  const struct event *started = job->started;
  bool is_any = str_equal(started->version, dk_str_of(NO_VERSION)); /* none was asked for */
  const char *details =
    dk_arena_printf(&job->arena,
                    "no orchestration \"%.*s\"%s%.*s is registered here: "
                    "dk_register_orchestration, or cancel the instance",
                    (int)started->name.len, started->name.ptr, is_any ? "" : " of version ",
                    is_any ? 0 : (int)started->version.len, started->version.ptr);

  return delay_or_fail(job, STALL_UNREGISTERED, details ? details : "", verdict);
}

static enum fate
judge(struct job *job, struct ran *ran, struct verdict_of *verdict)
{
  const struct event *started = job->started;

  if (job->staged.cancel_requested) {
    verdict->verdict = VERDICT_CANCELLED;
    return FATE_COMMITTED;
  }
  if (job->corrupt)
    return delay_or_fail(job, STALL_CORRUPT, job->corrupt, verdict);
  if (job->unreadable)
    return delay_or_fail(job, STALL_UNREADABLE, job->unreadable, verdict);
  dk_orchestration_fn *function =
    registry_orchestration(job->w->options->registry, started->name, started->version, NULL);
  if (!function)
    return unregistered(job, verdict);
  if (job_judged(job) > job->w->options->max_attempts) {
    *verdict = failed(job, CODE_POISON, "its turn was tried too often without coming to an end");
    return FATE_COMMITTED;
  }
  if (seat_stuck_with(job->seat, job->instance))
    return job_stalled(job, STALL_STUCK, "its code has not come back from an earlier turn");
  return run_code(job, function, ran, verdict);
}

/* ---- the decision ---------------------------------------------------------------------------- */

static dk_status
make_decision(struct job *job, const struct ran *ran, const struct verdict_of *verdict)
{
  const struct past past = past_of(job);

  return decide(&job->arena, &past, job->started, job->is_first, &job->staged, ran, verdict,
                &job->decision);
}

dk_status
decide_failure(struct job *job, enum code code, dk_str text)
{
  const struct verdict_of verdict = {VERDICT_FAILED, code, text};

  return make_decision(job, NULL, &verdict);
}

/* All messages were strays: the code would find what it found before.  Of a history or a message
 * that cannot be read nobody knows that. */
static bool
nothing_happened(const struct job *job)
{
  return !job->is_first && job->staged.n_arrived == 0 && !job->corrupt && !job->unreadable;
}

enum fate
decide_turn(struct job *job)
{
  struct ran ran = {.ending = ENDING_WAITS};
  struct verdict_of verdict = {.verdict = VERDICT_RAN};

  if (stage(job) != DK_OK)
    return job_stalled(job, STALL_NO_MEMORY, "no memory for its turn");
  if (nothing_happened(job))
    return commit_nothing(job, job->staged.answers, job->staged.n_answers);
  enum fate fate = judge(job, &ran, &verdict);
  if (fate != FATE_COMMITTED)
    return fate;
  if (make_decision(job, &ran, &verdict) != DK_OK ||
      (job->stored_start.ptr && stored_take_along(job) != DK_OK))
    return job_stalled(job, STALL_NO_MEMORY, "no memory for its turn");
  return commit_decision(job);
}
