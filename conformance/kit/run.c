/* SPDX-License-Identifier: Apache-2.0 */
/* One check from its first step to its verdict: see engine.h.
 *
 * The steps: a snapshot of the process, the clock, the other processes, the plugin; then for each
 * pass a fresh store, the check, and the store's removal; then everything is released and the
 * process is compared with the snapshot.  A step that fails has filled the report and left by
 * kit_leave, which returns to `guarded`; the first failure decides. */
#include "conformance/kit/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
set_phase(struct dk_check *t, enum phase phase)
{
  t->report->phase = (int32_t)phase;
}

/* Runs one step; false once the check has failed. */
static bool
guarded(struct dk_check *t, void (*step)(struct dk_check *t))
{
  t->may_leave = true;
  if (setjmp(t->leave) == 0)
    step(t);
  t->may_leave = false;
  return t->verdict == VERDICT_NONE;
}

/* ---- before the passes ----------------------------------------------------------------------- */

static void
begin_main(struct dk_check *t)
{
  struct actor *me = kit_actor(t, NULL);

  me->kind = IS_MAIN;
  me->in_use = 1;
  me->shared = t->shared;
  me->job = t->job;
  me->wait_fd = me->done_fd = me->life_fd = -1;
  snprintf(me->name, sizeof(me->name), "main");
  me->caller = dk_caller_new(NULL, 0);
  me->canceller = dk_canceller_new(NULL);
  if (me->caller == NULL || me->canceller == NULL)
    kit_trouble(t, "no memory for a caller");
  dk_caller_set_canceller(me->caller, me->canceller);
}

static void
run_do_begin(struct dk_check *t)
{
  t->shared->mutants = (struct dk_mutant_reached){
    sizeof(t->shared->mutants), KIT_MAX_MUTANTS, t->report->reached
  };
  t->shared->clock =
    dk_virtual_clock_init(kit_clock_region(t->shared), KIT_START, t->job->settle_ms);
  if (t->shared->clock == NULL)
    kit_trouble(t, "no virtual clock: descriptors have run out");
  if (t->job->answer_ms > 0)
    dk_virtual_clock_answer_within(t->shared->clock, t->job->answer_ms);
  t->clock = dk_virtual_clock_as_clock(t->shared->clock);
  if (!kit_gate_init(&t->shared->gate, t->clock))
    kit_trouble(t, "the gate before the virtual clock cannot be made");
  t->shared->gate.shared = t->shared;
  t->start = now(t);
  kit_note_own_sockets(t);
  kit_fork_processes(t);
  kit_proxy_start(t);
  begin_main(t);
}

static bool
offers(const struct dk_provider *p, const char *id)
{
  for (size_t i = 0; p->extensions != NULL && p->extensions[i] != NULL; i++) {
    if (strcmp(p->extensions[i], id) == 0)
      return true;
  }
  return false;
}

/* In real time stores get the system's clock itself, unless the kit must hold calls at it. */
static void
put_gate_before_clock(struct dk_check *t)
{
  t->shared->gate.behind = t->clock;
  t->clock = &t->shared->gate.clock;
  t->shared->is_gated = 1;
}

/* Other processes of the check see it, too: they were forked, and have not opened a store yet. */
static void
go_by_real_time(struct dk_check *t, bool own_clock)
{
  t->real_time = true;
  t->report->real_time = 1;
  t->clock = dk_clock_system();
  dk_virtual_clock_done(t->shared->clock);
  t->shared->clock = NULL;
  t->shared->own_clock = own_clock;
  if (own_clock || (t->job->check->needs & NEEDS_SERVER) != 0)
    put_gate_before_clock(t);
}

static void
load(struct dk_check *t)
{
  struct dk_refusal refusal = {.number = 0};

  set_phase(t, PHASE_LOAD);
  if (dk_library_open(t->job->plugin, kit_library_flags(t->job), &t->library, &refusal) != 0)
    kit_fail(t, VERDICT_ERROR, refusal.where, refusal.expected, refusal.found,
             "the plugin cannot be loaded: %s", refusal.what);
  t->provider = dk_library_provider(t->library);
  t->has_sessions = offers(t->provider, "durakit.sessions/1");
  t->has_admin = offers(t->provider, DK_ADMIN);
  t->shared->runtime_stays = (t->provider->runtime & DK_RUNTIME_STAYS) != 0;
  bool own_clock = (t->job->check->needs & NEEDS_STORE_CLOCK) != 0 &&
                   (t->provider->clocks & DK_CLOCK_STORE) != 0;
  bool runtime = (t->job->check->flags & IS_RUNTIME) != 0;

  if (own_clock || runtime || t->job->real_time || (t->provider->clocks & DK_CLOCK_HOST) == 0)
    go_by_real_time(t, own_clock);
  if (!kit_find_store_key(t->shared, t->job, t->provider))
    kit_trouble(t, "the provider needs a store: --set <key>=<value> for its STORE parameter %s",
                t->shared->store_key);
}

static bool
has_store_parameter(const struct dk_provider *provider)
{
  for (const struct dk_param *p = provider->params; p != NULL && p->key != NULL; p++)
    if ((p->flags & DK_PARAM_STORE) != 0)
      return true;
  return false;
}

/* ABI-12: with a store for each handle nothing is shared, even if the descriptor declares it. */
static void
fail_untrue_sharing(struct dk_check *t)
{
  snprintf(t->report->clause, sizeof(t->report->clause), "ABI-12");
  kit_fail(t, VERDICT_FAIL, NULL, "a parameter that is marked DK_PARAM_STORE, or shared 0",
           "no such parameter", "it declares shared %d, but nothing tells its stores apart",
           t->provider->shared);
}

enum { TELLS_ROOTS = 2, NAMES_DUPLICATES = 3 }; /* minors of the ABI */

static void
skip_what_is_not_offered(struct dk_check *t)
{
  const struct check *check = t->job->check;
  int32_t shared = t->provider->shared;
  bool handles = (check->needs & NEEDS_HANDLES) != 0;
  bool in_turn = (check->needs & NEEDS_FILES) != 0;
  bool processes =
    (check->needs & NEEDS_PROCESSES) != 0 || (check->processes > 0 && !in_turn);
  char why[160];

  if ((check->needs & NEEDS_ADMIN) != 0 && !t->has_admin)
    kit_skip(t, "the provider does not declare " DK_ADMIN);
  if ((check->needs & NEEDS_RIVALS) != 0 && t->provider->thread_model < DK_PARALLEL && shared < 1)
    kit_skip(t, "needs two calls at once; the provider declares one at a time, and shared 0");
  if (handles && shared < 1)
    kit_skip(t, "needs two handles on one store; the provider declares shared %d", shared);
  if (processes && shared < 2)
    kit_skip(t, "needs two processes on one store; the provider declares shared %d", shared);
  if ((handles || processes) && !has_store_parameter(t->provider))
    fail_untrue_sharing(t);
  if ((handles || processes) && t->shared->store_key[0] == '\0')
    kit_skip(t, "needs a store that can be opened twice; no value was given for a STORE parameter");
  if ((check->needs & NEEDS_STORE) != 0 && t->shared->store_key[0] == '\0')
    kit_skip(t, "needs stores with names; there is no STORE parameter, or no value for it");
  if ((check->needs & NEEDS_DURABLE) != 0 && t->provider->durable < 1)
    kit_skip(t, "needs a store that outlives its last handle; the provider declares durable %d",
         t->provider->durable);
  if (in_turn && shared >= 3)
    kit_skip(t, "needs a store in files; the provider declares shared %d, a server", shared);
  if ((check->needs & NEEDS_POWER) != 0 && t->provider->durable < 2)
    kit_skip(t, "needs a store that survives a power cut; the provider declares durable %d",
             t->provider->durable);
  if ((check->needs & NEEDS_WORKER_ENQUEUE) != 0 && t->provider->ops->enqueue_for_worker == NULL)
    kit_skip(t, "needs enqueue_for_worker, which is optional and which the provider lacks");
  if ((check->needs & NEEDS_RELEASE) != 0 && t->provider->ops->release_fetch == NULL)
    kit_skip(t, "needs release_fetch, which is optional and which the provider lacks");
  if ((check->needs & NEEDS_ROOTS) != 0 && t->provider->abi_minor < TELLS_ROOTS)
    kit_skip(t, "needs ABI 2.%d, which counts roots; the provider was built for ABI 2.%u",
             TELLS_ROOTS, t->provider->abi_minor);
  if ((check->needs & NEEDS_DUPLICATE) != 0 && t->provider->abi_minor < NAMES_DUPLICATES)
    kit_skip(t, "needs ABI 2.%d, which names duplicates; the provider was built for ABI 2.%u",
             NAMES_DUPLICATES, t->provider->abi_minor);
  if ((check->needs & NEEDS_TWO_CLOCKS) != 0 &&
      t->provider->clocks != (DK_CLOCK_HOST | DK_CLOCK_STORE))
    kit_skip(t, "needs both kinds of clock; the provider declares DK_CLOCK_%s only",
         t->provider->clocks & DK_CLOCK_HOST ? "HOST" : "STORE");
  if ((check->needs & NEEDS_SERVER) != 0 && shared < 3)
    kit_skip(t, "needs a server behind the store; the provider declares shared %d, no server",
             shared);
  if (kit_lacks_power(t->job, check, why, sizeof(why)))
    kit_skip(t, "%s", why);
  if ((check->needs & NEEDS_STORE_CLOCK) != 0 && t->shared->own_clock == 0)
    kit_skip(t, "needs a store with a clock of its own; the provider declares no DK_CLOCK_STORE");
  if ((check->needs & NEEDS_HOST_CLOCK) != 0 && t->real_time)
    kit_skip(t, "needs exact instants; the provider declares no DK_CLOCK_HOST");
}

static void
run_prepare(struct dk_check *t)
{
  run_do_begin(t);
  kit_watch_forks(t->shared, t->job);
  if (t->job->plugin == NULL)
    return;
  load(t);
  skip_what_is_not_offered(t);
}

/* ---- one pass -------------------------------------------------------------------------------- */

static void
forget_last_pass(struct dk_check *t)
{
  dk_arena_reset(&t->arena);
  memset(&t->tokens, 0, sizeof(t->tokens));
  memset(&t->instances, 0, sizeof(t->instances));
  memset(&t->instants, 0, sizeof(t->instants));
  memset(&t->owners, 0, sizeof(t->owners));
  memset(&t->pins, 0, sizeof(t->pins));
  memset(&t->spare_turns, 0, sizeof(t->spare_turns));
  memset(&t->spare_work, 0, sizeof(t->spare_work));
  memset(&kit_actor(t, NULL)->op, 0, sizeof(struct op));
  memset(&t->late, 0, sizeof(t->late));
  t->helper = NULL;
  t->n_neighbours = t->calls_beside_neighbours = 0;
  t->last = NULL;
  t->through = NULL;
  t->ending = NULL;
}

static void
begin_pass(struct dk_check *t)
{
  forget_last_pass(t);
  if (t->shared->clock != NULL)
    dk_virtual_clock_restart(t->shared->clock, KIT_START);
  kit_gate_reset(&t->shared->gate, t->shared->own_clock != 0 ? -KIT_HOST_BEHIND_MS : 0);
  t->start = now(t);
  t->waited_ms = 0;
  t->report->pass = t->pass;
  kit_twin_begin_pass(t);
  if (t->pass > 0 && t->twin.regions > 0)
    say_in_trace(t, "--- twin of region %d, %s its calls", (t->pass + 1) / 2,
                 t->pass % 2 == 1 ? "with" : "without");
  if (t->job->plugin == NULL)
    return;
  set_phase(t, PHASE_OPEN);
  if (t->pass == 0)
    kit_refuse_existing_store(t);
  kit_new_store(t);
}

static void
run_pass(struct dk_check *t)
{
  begin_pass(t);
  set_phase(t, t->pass > 0 && t->twin.regions > 0 ? PHASE_TWIN : PHASE_RUN);
  kit_make_neighbours(t);
  t->job->check->run(t);
  if (t->twin.inside)
    kit_trouble(t, "the check ended between before and expect_unchanged");
  if (t->pass > 0 && t->twin.regions > 0)
    kit_trouble(t, "the twin run ended before its region was reached");
  kit_judge_neighbours(t);
}

static void
note_time(struct dk_check *t)
{
  int64_t ms = elapsed(t);

  if (ms > t->report->virtual_ms)
    t->report->virtual_ms = ms;
}

static void
end_pass(struct dk_check *t)
{
  if (t->pass == 0)
    note_time(t);
  if (t->job->plugin == NULL)
    return;
  kit_hurt_end(t);
  set_phase(t, PHASE_CLOSE);
  kit_end_actors(t);
  kit_close(t, kit_actor(t, NULL));
  set_phase(t, PHASE_DESTROY);
  kit_destroy_store(t);
}

/* After a failure the report keeps the phase and operation of the failure. */
static void
clean_up(struct dk_check *t)
{
  struct kit_report *r = t->report;
  int32_t phase = r->phase;
  char operation[sizeof(r->operation)];

  memcpy(operation, r->operation, sizeof(operation));
  if (setjmp(t->leave) == 0)
    end_pass(t);
  r->phase = phase;
  memcpy(r->operation, operation, sizeof(operation));
}

static void
judge_overlaps(struct dk_check *t)
{
  struct kit_report *r = t->report;

  if (r->overlaps >= t->enough || t->job->memcheck)
    return; /* Valgrind runs one thread at a time */
  set_phase(t, PHASE_RUN);
  t->pass = 0;
  kit_fail(t, VERDICT_UNEXERCISED, NULL, NULL, NULL,
           "only %u of %u overlaps were seen in %u rounds: the race was not tested",
           r->overlaps, t->enough, r->rounds);
}

/* False: something still runs. */
static bool
end_what_runs(struct dk_check *t)
{
  bool (*ending)(struct dk_check *t) = t->ending;

  t->ending = NULL;
  if (ending == NULL || ending(t))
    return true;
  if (t->verdict != VERDICT_NONE)
    return false;
  snprintf(t->report->message, sizeof(t->report->message), "a thread of the runtime still runs");
  t->verdict = VERDICT_ERROR;
  return false;
}

/* False: something still runs, so that nothing can be released. */
static bool
run_whole_pass(struct dk_check *t)
{
  guarded(t, run_pass);
  if (!end_what_runs(t))
    return false;
  if (t->verdict != VERDICT_NONE)
    kit_hurt_end(t); /* a stopped server would delay the calls that are cancelled */
  if (t->verdict != VERDICT_NONE && !kit_call_actors_back(t))
    return false;
  guarded(t, t->verdict == VERDICT_NONE ? end_pass : clean_up);
  return true;
}

/* The same. */
static bool
run_passes(struct dk_check *t)
{
  for (t->pass = 0; t->verdict == VERDICT_NONE && t->pass < kit_twin_passes(t); t->pass++) {
    if (!run_whole_pass(t))
      return false;
  }
  guarded(t, judge_overlaps);
  return true;
}

/* ---- what the runtime of a language keeps ---------------------------------------------------- */

static void
forget_differences(struct kit_report *r)
{
  r->message[0] = r->clause[0] = r->expected[0] = r->found[0] = '\0';
}

/* The first pass once more, without regions, and with few rounds of a race. */
static bool
run_again(struct dk_check *t)
{
  struct kit_report *r = t->report;
  const uint32_t regions = r->regions, overlaps = r->overlaps, rounds = r->rounds;

  say_in_trace(t, "--- once more, to see what stays");
  t->runs_again = true;
  t->pass = t->passes = 0;
  t->twin.regions = r->regions = r->overlaps = r->rounds = 0;
  bool in_peace = run_whole_pass(t);
  r->regions = regions;
  r->overlaps = overlaps;
  r->rounds = rounds;
  return in_peace;
}

/* Not those whose other processes were killed, nor those that hurt a server. */
static bool
can_run_again(const struct check *check)
{
  return check->processes == 0 && (check->needs & NEEDS_SERVER) == 0;
}

/* What a declared runtime brings is there after one run of the check, or after a few: a scheduler
 * adds threads as it needs them.  Then two runs end in the same state.  After a leak no two do.
 * False: something still runs. */
static bool
run_until_nothing_changes(struct dk_check *t, const struct kit_state *before)
{
  enum { RUNS = 6 };
  struct kit_state *last = kit_state_take(t->shared, t->job, before);
  bool in_peace = true, changes = last != NULL;

  for (int run = 1; run < RUNS && changes && in_peace && t->verdict == VERDICT_NONE; run++) {
    forget_differences(t->report);
    in_peace = run_again(t);
    if (!in_peace || t->verdict != VERDICT_NONE)
      break;
    struct kit_state *next = kit_state_take(t->shared, t->job, before);
    changes = next != NULL && kit_state_differs(last, next, t->report);
    kit_state_free(last);
    last = next;
  }
  if (in_peace && changes && t->verdict == VERDICT_NONE) {
    set_phase(t, PHASE_COMPARE);
    t->verdict = VERDICT_HOST_DAMAGE;
  }
  kit_state_free(last);
  return in_peace;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
run_give_back(struct dk_check *t, bool in_peace)
{
  struct actor *me = kit_actor(t, NULL);

  kit_quit_processes(t, in_peace);
  kit_hurt_end(t);
  kit_proxy_end(t);
  free(t->own_sockets);
  if (!in_peace)
    return;
  dk_caller_free(me->caller);
  dk_canceller_free(me->canceller);
  dk_library_close(t->library);
  dk_virtual_clock_done(t->shared->clock);
  dk_arena_done(&t->arena);
  dk_arena_done(&t->twin.arena);
  dk_arena_done(&t->lasting);
}

static void
compare_states(struct dk_check *t, const struct kit_state *before)
{
  struct kit_state *after;

  /* A race that found no overlap has run to its end. */
  if (before == NULL || (t->verdict != VERDICT_NONE && t->verdict != VERDICT_UNEXERCISED))
    return;
  set_phase(t, PHASE_COMPARE);
  after = kit_state_take(t->shared, t->job, before);
  if (after == NULL) {
    snprintf(t->report->message, sizeof(t->report->message),
             "no memory to compare the process with what it was before the plugin was loaded");
    t->verdict = VERDICT_ERROR;
  } else if (kit_state_differs(before, after, t->report)) {
    t->verdict = VERDICT_HOST_DAMAGE;
  }
  kit_state_free(after);
}

/* The state before anything is loaded. */
static struct kit_state *
take_first_state(struct kit_shared *shared, const struct kit_job *job)
{
  kit_set_temporary(job);
  return kit_state_take(shared, job, NULL);
}

void
kit_run(struct kit_shared *shared, const struct kit_job *job)
{
  struct kit_state *before = job->in_process ? NULL : take_first_state(shared, job);
  struct dk_check *t = calloc(1, sizeof(*t));
  bool in_peace = true;

  if (t == NULL || (before == NULL && !job->in_process)) {
    snprintf(kit_report_of(shared)->message, sizeof(kit_report_of(shared)->message),
             "no memory for the check, before the plugin was loaded");
    kit_say_verdict(kit_report_of(shared), job, VERDICT_ERROR);
    kit_state_free(before);
    free(t);
    return;
  }
  t->shared = shared;
  t->report = kit_report_of(shared);
  t->job = job;
  t->hand_fd = -1;
  if (!job->in_process)
    kit_shared_trim(shared, job->check->processes);
  dk_arena_init(&t->arena);
  dk_arena_init(&t->twin.arena);
  dk_arena_init(&t->lasting);
  if (guarded(t, run_prepare))
    in_peace = run_passes(t);
  if (in_peace && before != NULL && t->verdict == VERDICT_NONE && shared->runtime_stays
      && can_run_again(job->check))
    in_peace = run_until_nothing_changes(t, before);
  run_give_back(t, in_peace);
  compare_states(t, before);
  if (t->verdict == VERDICT_NONE || t->verdict == VERDICT_PASS) {
    t->verdict = VERDICT_PASS;
    set_phase(t, PHASE_DONE);
  }
  kit_state_free(before);
  kit_say_verdict(t->report, job, t->verdict);
  free(t);
}
