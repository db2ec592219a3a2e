/* SPDX-License-Identifier: Apache-2.0 */
/* A small store and everything outside: see random-world.h. */
#include "core/runtime/testing/random-world.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/names.h"
#include "core/runtime/code/decision.h"
#include "core/runtime/code/history.h"
#include "core/runtime/testing/dice.h"

enum { MOST_EVENTS = 4000, MOST_PENDING = 4000, MOST_TURNS = 2000, N_KEYS = 4 };

/* The state of what an event began, as the store has it. */
enum state {
  STATE_NONE,
  STATE_BEGUN,     /* a row, a timer, a child */
  STATE_ENDED,     /* its message is on its way, or was delivered */
  STATE_CANCELLED
};

struct world {
  struct dice dice;
  struct dk_arena kept, turn;
  struct event history[MOST_EVENTS];
  size_t n_history;
  enum state states[MOST_EVENTS + 1];
  struct message pending[MOST_PENDING];
  size_t n_pending;
  const struct message *late; /* came after its source was dropped */
  struct history *index;      /* of the history, as long as no turn is lost; NULL: made anew */
  struct dk_orch *run;        /* that is kept from turn to turn; NULL: there is none */
  struct dk_kv kv[N_KEYS];
  size_t n_kv;
  bool over;
  unsigned n_turns, n_messages;
  struct tally *tally;
  char complaint[512];
};

static struct world world;

static void complain(struct world *w, const char *format, ...) DK_PRINTF(2, 3);
static void
complain(struct world *w, const char *format, ...)
{
  va_list args;

  if (w->complaint[0])
    return;
  va_start(args, format);
  vsnprintf(w->complaint, sizeof(w->complaint), format, args);
  va_end(args);
}

static void *
enough(void *memory)
{
  if (!memory)
    abort();
  return memory;
}

/* ---- what happens outside ---------------------------------------------------------------------*/

static void
send(struct world *w, struct message message)
{
  if (w->n_pending < MOST_PENDING)
    w->pending[w->n_pending++] = message;
}

static dk_str
fresh_text(struct world *w, const char *what)
{
  return dk_str_of(enough(dk_arena_printf(&w->kept, "%s%u", what, ++w->n_messages)));
}

static void
end_begun(struct world *w, const struct event *event)
{
  bool fails = dice_below(&w->dice, 4) == 0;
  struct message message = {.execution = 1, .source = event->id};

  switch (event->kind) {
  case EVENT_ACTIVITY:
    message.kind = fails ? MESSAGE_ACTIVITY_FAILED : MESSAGE_ACTIVITY_COMPLETED;
    break;
  case EVENT_TIMER:
    message.kind = MESSAGE_TIMER_FIRED;
    break;
  default:
    message.kind = fails ? MESSAGE_CHILD_FAILED : MESSAGE_CHILD_COMPLETED;
  }
  if (event->kind != EVENT_TIMER)
    message.text = fresh_text(w, "result");
  w->states[event->id] = STATE_ENDED;
  send(w, message);
}

/* Ends some of what runs. */
static void
end_some(struct world *w)
{
  for (size_t i = 0; i < w->n_history; i++)
    if (w->states[w->history[i].id] == STATE_BEGUN && dice_below(&w->dice, 3) == 0)
      end_begun(w, &w->history[i]);
}

static void
raise_some(struct world *w)
{
  static const char *const names[] = {"a", "b"};

  for (size_t n = dice_below(&w->dice, 3); n > 0; n--)
    send(w, (struct message){
      .kind = dice_below(&w->dice, 2) ? MESSAGE_RAISED : MESSAGE_QUEUED,
      .id = fresh_text(w, "r"),
      .name = dk_str_of(names[dice_below(&w->dice, 2)]),
      .text = fresh_text(w, "data")});
}

/* Ends of things that were never begun, that have ended before, or of another execution. */
static void
send_nonsense(struct world *w)
{
  uint64_t source = dice_below(&w->dice, w->n_history + 1);
  bool is_begun = w->states[source] == STATE_BEGUN;
  enum message_kind kind = MESSAGE_ACTIVITY_COMPLETED + (unsigned)dice_below(&w->dice, 5);

  send(w, (struct message){.kind = kind, .execution = is_begun ? 5 : 1, .source = source,
                           .text = dk_str_of("nonsense")});
}

static void
something_happens(struct world *w)
{
  end_some(w);
  raise_some(w);
  if (dice_below(&w->dice, 8) == 0)
    send_nonsense(w);
  if (dice_below(&w->dice, 150) == 0)
    send(w, (struct message){.kind = MESSAGE_CANCEL, .text = dk_str_of("enough"),
                             .by = dk_str_of("a client")});
}

/* ---- a batch ----------------------------------------------------------------------------------*/

/* Some of what is pending, in any order, moved to the end of the list. */
static size_t
shuffle(struct world *w)
{
  size_t n = w->n_pending == 0 ? 0 : 1 + dice_below(&w->dice, w->n_pending);

  for (size_t i = 0; i < n; i++) {
    size_t last = w->n_pending - 1 - i, at = dice_below(&w->dice, last + 1);
    struct message message = w->pending[at];
    w->pending[at] = w->pending[last];
    w->pending[last] = message;
  }
  return n;
}

/* The commit deletes them, except for one that is delivered again. */
static void
take_away(struct world *w, size_t n)
{
  w->n_pending -= n;
  if (n > 0 && dice_below(&w->dice, 6) == 0)
    w->n_pending++;
}

static void
count_stray(void *context, const struct message *message, const char *why)
{
  struct world *w = context;

  w->tally->strays++;
  if (strcmp(why, "what it refers to was cancelled") == 0)
    w->late = message;
}

/* No code here writes an end after the drop of what it ends; a history that has one can be run
 * nevertheless, and its drop counts. */
static void
arrive_late(struct world *w, struct staged *staged)
{
  struct event *event = &staged->arrived[staged->n_arrived++];

  *event = (struct event){.id = w->n_history + staged->n_arrived, .source = w->late->source,
                          .text = dk_str_of("late")};
  event->kind = w->late->kind == MESSAGE_TIMER_FIRED ? EVENT_TIMER_FIRED
              : w->history[w->late->source - 1].kind == EVENT_CHILD ? EVENT_CHILD_COMPLETED
                                                                    : EVENT_ACTIVITY_COMPLETED;
  history_arrive(w->index);
}

/* ---- what a turn must not do ------------------------------------------------------------------*/

static bool
same_event(const struct event *a, const struct event *b)
{
  return a->id == b->id && a->kind == b->kind && a->source == b->source &&
         a->number == b->number && a->code == b->code && str_equal(a->name, b->name) &&
         str_equal(a->text, b->text) && str_equal(a->instance, b->instance);
}

static void
compare_runs(struct world *w, const struct ran *one, const char *what, const struct ran *other)
{
  if (one->ending != other->ending || one->n_commands != other->n_commands ||
      one->n_carried != other->n_carried || !str_equal(one->text, other->text))
    complain(w, "turn %u: %s ended as %d with %zu commands, the first as %d with %zu", w->n_turns,
             what, other->ending, other->n_commands, one->ending, one->n_commands);
  for (size_t i = 0; i < one->n_commands && i < other->n_commands; i++)
    if (!same_event(&one->commands[i], &other->commands[i]))
      complain(w, "turn %u: %s made another command %zu", w->n_turns, what, i);
  for (size_t i = 0; i < one->n_carried && i < other->n_carried; i++)
    if (!str_equal(one->carried[i].queue, other->carried[i].queue) ||
        !str_equal(one->carried[i].data, other->carried[i].data))
      complain(w, "turn %u: %s left another message %zu", w->n_turns, what, i);
}

static bool
is_an_end(enum ending ending)
{
  return ending == ENDING_WAITS || ending == ENDING_COMPLETED || ending == ENDING_FAILED ||
         ending == ENDING_CONTINUED;
}

static void
judge_ending(struct world *w, const struct ran *ran)
{
  if (!is_an_end(ran->ending))
    complain(w, "turn %u ended as %d: %.*s", w->n_turns, ran->ending, (int)ran->text.len,
             ran->text.len > 0 ? ran->text.ptr : "");
}

static bool
is_delivered(const struct world *w, uint64_t id)
{
  for (size_t i = 0; i < w->n_history; i++)
    if (w->history[i].source == id && w->history[i].kind >= EVENT_ACTIVITY_COMPLETED &&
        w->history[i].kind <= EVENT_CHILD_FAILED && w->history[i].kind != EVENT_TIMER &&
        w->history[i].kind != EVENT_CHILD)
      return true;
  return false;
}

static void
cancel(struct world *w, uint64_t id, enum event_kind kind)
{
  const struct event *event = id >= 1 && id <= w->n_history ? &w->history[id - 1] : NULL;

  if (!event || event->kind != kind)
    complain(w, "event %llu was cancelled, and is no %s", (unsigned long long)id,
             event_kind_name(kind));
  else if (w->states[id] == STATE_CANCELLED)
    complain(w, "event %llu was cancelled twice", (unsigned long long)id);
  else if (w->states[id] == STATE_NONE)
    complain(w, "event %llu was cancelled, but never begun", (unsigned long long)id);
  else if (is_delivered(w, id))
    complain(w, "event %llu was cancelled after it had ended", (unsigned long long)id);
  else
    w->states[id] = STATE_CANCELLED;
}

/* ---- a commit ---------------------------------------------------------------------------------*/

/* Through the codec: the result is what a restart would read. */
static void
keep_event(struct world *w, const struct event *event)
{
  struct dk_text text = DK_TEXT_EMPTY;
  const char *why = "";
  struct event *kept = &w->history[w->n_history];

  event_encode(&text, event);
  const struct dk_bytes payload = {dk_text_str(&text), text.length};
  if (dk_text_failed(&text) || event_decode(&w->kept, payload, kept, &why) != DK_OK)
    complain(w, "event %llu (%s) cannot be read back: %s", (unsigned long long)event->id,
             event_kind_name(event->kind), why);
  dk_text_done(&text);
  kept->id = event->id;
  if (event->id != w->n_history + 1)
    complain(w, "event %llu follows event %zu", (unsigned long long)event->id, w->n_history);
  w->n_history++;
}

static void
keep_kv(struct world *w, const struct dk_kv_change *change)
{
  struct dk_kv *at = w->kv, *end = w->kv + w->n_kv;

  if (change->op == DK_KV_CLEAR_ALL) {
    w->n_kv = 0;
    return;
  }
  while (at < end && !str_equal(at->key, change->key))
    at++;
  if (change->op == DK_KV_CLEAR && at < end)
    *at = w->kv[--w->n_kv];
  if (change->op != DK_KV_SET)
    return;
  if (at == end)
    w->n_kv++;
  *at = (struct dk_kv){
    .key = dk_str_of(enough(dk_arena_copy(&w->kept, change->key.ptr, change->key.len))),
    .value = dk_str_of(enough(dk_arena_copy(&w->kept, change->value.ptr, change->value.len)))};
}

static void
keep_outgoing(struct world *w, const struct decision *decision)
{
  for (size_t i = 0; i < decision->n_outgoing; i++) {
    const struct message *message = &decision->outgoing[i].message;
    if (message->kind == MESSAGE_TIMER_FIRED)
      w->states[message->source] = STATE_BEGUN;
    else if (message->kind == MESSAGE_START && message->parent.instance.ptr)
      w->states[message->parent.source] = STATE_BEGUN;
    else if (message->kind == MESSAGE_CANCEL)
      cancel(w, message->parent.source, EVENT_CHILD);
  }
}

static void
keep_withdrawn(struct world *w, dk_str id)
{
  unsigned long long execution, event;

  if (sscanf(id.ptr, "t%llu.%llu", &execution, &event) != 2)
    complain(w, "the message %s was withdrawn", id.ptr);
  else
    cancel(w, event, EVENT_TIMER);
}

static void
commit(struct world *w, const struct decision *decision)
{
  for (size_t i = 0; i < decision->n_events; i++)
    keep_event(w, &decision->events[i]);
  for (size_t i = 0; i < decision->n_cancelled; i++)
    cancel(w, decision->cancelled[i].activity_id, EVENT_ACTIVITY);
  for (size_t i = 0; i < decision->n_withdrawn; i++)
    keep_withdrawn(w, decision->withdrawn[i]);
  for (size_t i = 0; i < decision->n_scheduled; i++)
    w->states[decision->scheduled[i].activity_id] = STATE_BEGUN;
  keep_outgoing(w, decision);
  for (size_t i = 0; i < decision->n_kv; i++)
    keep_kv(w, &decision->kv[i]);
  w->tally->cancelled_rows += decision->n_cancelled;
  w->tally->terminal[decision->status]++;
  w->over = decision->status != DK_RUNNING;
}

/* ---- a turn -----------------------------------------------------------------------------------*/

static struct past
past_of(struct world *w, const struct staged *staged)
{
  return (struct past){.instance = dk_str_of("program"), .execution = 1,
                       .events = w->history, .n_events = w->n_history,
                       .n_committed = w->n_turns == 0 ? 0 : w->n_history,
                       .arrived = staged->arrived, .n_arrived = staged->n_arrived,
                       .index = dice_below(&w->dice, 2) ? staged->index : NULL,
                       .kv = w->kv, .n_kv = w->n_kv,
                       .time = 1000 + w->n_turns, .seed = dice_roll(&w->dice),
                       .max_events = MOST_EVENTS, .max_id = 255, .max_payload = 65536,
                       .has_kv = true, .has_status = true, .has_sessions = true};
}

/* Begins at the top of the function; the caller frees it. */
static struct dk_orch *
run_once(dk_orchestration_fn *program, const struct past *past, struct ran *ret_ran)
{
  struct dk_orch *run = enough(replay_new(program));

  replay_turn(run, past, ret_ran);
  return run;
}

/* After a restart the code continues where it was, and does nothing again. */
static void
restart(struct world *w, dk_orchestration_fn *program, const struct ran *before)
{
  struct staged nothing = {.n_arrived = 0};
  struct past past = past_of(w, &nothing);
  struct ran ran;

  past.index = NULL;
  while (past.n_events > 0 && past.events[past.n_events - 1].kind >= EVENT_COMPLETED &&
         (past.events[past.n_events - 1].kind <= EVENT_CONTINUED ||
          past.events[past.n_events - 1].kind == EVENT_ENDED))
    past.n_events--;
  past.n_committed = past.n_events;
  struct dk_orch *run = run_once(program, &past, &ran);
  if (ran.ending != before->ending || ran.n_commands > 0 || !str_equal(ran.text, before->text))
    complain(w, "after a restart turn %u ends as %d with %zu new commands, and had ended as %d: "
                "%.*s", w->n_turns, ran.ending, ran.n_commands, before->ending, (int)ran.text.len,
             ran.text.len > 0 ? ran.text.ptr : "");
  replay_free(run);
}

static void
count_drops(struct world *w, const struct ran *ran)
{
  for (size_t i = 0; i < ran->n_commands; i++)
    w->tally->drops += ran->commands[i].kind == EVENT_DROPPED;
}

/* Decides, and commits what was decided. */
static void
conclude(struct world *w, dk_orchestration_fn *program, const struct past *past,
         const struct staged *staged, const struct ran *ran, size_t n_batch)
{
  struct verdict_of verdict = {.verdict = VERDICT_RAN};
  struct decision decision;

  if (staged->cancel_requested)
    verdict.verdict = VERDICT_CANCELLED;
  else if (dice_below(&w->dice, 500) == 0)
    verdict = (struct verdict_of){VERDICT_FAILED, CODE_POISON, dk_str_of("poison")};
  if (decide(&w->turn, past, &w->history[0], w->n_turns == 0, staged, ran, &verdict, &decision) !=
      DK_OK)
    complain(w, "turn %u cannot be decided", w->n_turns);
  if (w->n_turns == 0)
    w->n_history = 0; /* the commit adds it again */
  take_away(w, n_batch);
  commit(w, &decision);
  if (verdict.verdict == VERDICT_RAN) {
    count_drops(w, ran);
    restart(w, program, ran);
  }
  w->n_turns++;
}

/* What is delivered is freed with the turn, and must not be read later. */
static struct message *
deliver(struct world *w, size_t n)
{
  struct message *batch = enough(dk_arena_array(&w->turn, n, sizeof(*batch)));

  for (size_t i = 0; i < n; i++) {
    batch[i] = w->pending[w->n_pending - n + i];
    dk_str *texts[] = {&batch[i].id, &batch[i].name, &batch[i].text, &batch[i].by};
    for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++)
      if (texts[t]->ptr)
        texts[t]->ptr = enough(dk_arena_copy(&w->turn, texts[t]->ptr, texts[t]->len));
  }
  return batch;
}

static void
stage(struct world *w, size_t n_batch, struct staged *ret_staged)
{
  w->late = NULL;
  if (!w->index)
    w->index = enough(history_new(&w->kept, w->history, w->n_history));
  if (decision_stage(&w->turn, w->index, 1, deliver(w, n_batch), n_batch, 1000 + w->n_turns,
                     count_stray, w, ret_staged) != DK_OK)
    abort();
  if (w->late && dice_below(&w->dice, 2))
    arrive_late(w, ret_staged);
}

static void
forget_run(struct world *w)
{
  replay_free(w->run);
  w->run = NULL;
}

/* The waiting run continues, or a second one begins at the top: both do the same.
 */
static void
go_on(struct world *w, dk_orchestration_fn *program, struct past past, const struct staged *staged,
      const struct ran *ran)
{
  struct ran further;

  past.index = staged->index;
  if (w->run && !replay_fits(w->run, &past))
    complain(w, "turn %u: the run that was kept does not fit", w->n_turns);
  bool is_kept = w->run;
  w->tally->gone_on += is_kept;
  if (!w->run)
    w->run = enough(replay_new(program));
  replay_turn(w->run, &past, &further);
  compare_runs(w, ran, is_kept ? "the run that was kept" : "a second run", &further);
}

/* After the commit the index is kept too; sometimes its memory is needed for others. */
static void
settle(struct world *w)
{
  if (history_settle(w->index, w->history, w->n_history) != DK_OK)
    abort();
  if (!replay_waits(w->run) || dice_below(&w->dice, 8) == 0)
    forget_run(w);
  if (!w->run && dice_below(&w->dice, 2))
    w->index = NULL;
}

/* The store differs from what the run has done. */
static void
lose(struct world *w)
{
  w->tally->lost++;
  forget_run(w);
  w->index = NULL;
}

static void
play_turn(struct world *w, dk_orchestration_fn *program)
{
  size_t n_batch = shuffle(w);
  struct staged staged;
  struct ran ran;

  stage(w, n_batch, &staged);
  struct past past = past_of(w, &staged);
  struct dk_orch *one = run_once(program, &past, &ran);
  go_on(w, program, past, &staged, &ran);
  judge_ending(w, &ran);
  w->tally->turns++;
  if (!w->complaint[0] && dice_below(&w->dice, 4) == 0) {
    lose(w);
  } else if (!w->complaint[0]) {
    conclude(w, program, &past, &staged, &ran, n_batch);
    settle(w);
  }
  replay_free(one);
}

/* ---- the end ----------------------------------------------------------------------------------*/

static bool
is_closed(const struct world *w, const struct event *event)
{
  if (event->kind != EVENT_ACTIVITY && event->kind != EVENT_CHILD)
    return true;
  for (size_t i = 0; i < w->n_history; i++)
    if (w->history[i].source == event->id && w->history[i].kind != EVENT_TRY_DEQUEUE)
      return true;
  return false;
}

static void
judge_end(struct world *w)
{
  if (!w->over)
    complain(w, "it has not ended after %u turns", w->n_turns);
  for (size_t i = 0; i < w->n_history; i++) {
    const struct event *event = &w->history[i];
    if (w->states[event->id] == STATE_BEGUN)
      complain(w, "event %llu (%s) is left open", (unsigned long long)event->id,
               event_kind_name(event->kind));
    if (!is_closed(w, event))
      complain(w, "the history does not say how event %llu (%s) ended",
               (unsigned long long)event->id, event_kind_name(event->kind));
  }
  if (w->n_history > 0 && (w->history[w->n_history - 1].kind < EVENT_COMPLETED ||
                           w->history[w->n_history - 1].kind > EVENT_CONTINUED))
    complain(w, "the last event does not end the execution");
}

const char *
world_play(uint64_t seed, dk_orchestration_fn *program, struct tally *tally)
{
  struct world *w = &world;

  memset(w, 0, offsetof(struct world, history));
  memset(w->states, 0, sizeof(w->states));
  w->n_history = w->n_pending = w->n_kv = w->n_turns = w->n_messages = 0;
  w->over = false;
  w->index = NULL;
  w->complaint[0] = '\0';
  w->tally = tally;
  w->dice.state = seed;
  w->history[w->n_history++] = (struct event){
    .id = 1, .kind = EVENT_STARTED, .name = dk_str_of("program"), .version = dk_str_of("1.0.0"),
    .text = dk_str_of(enough(dk_arena_printf(&w->kept, "%llu", (unsigned long long)seed)))};
  for (unsigned n = 0; n < MOST_TURNS && !w->over && !w->complaint[0]; n++) {
    something_happens(w);
    play_turn(w, program);
    dk_arena_done(&w->turn);
  }
  if (!w->complaint[0])
    judge_end(w);
  forget_run(w);
  tally->events += w->n_history;
  dk_arena_done(&w->kept);
  dk_arena_done(&w->turn);
  return w->complaint[0] ? w->complaint : NULL;
}
