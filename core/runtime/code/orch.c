/* SPDX-License-Identifier: Apache-2.0 */
/* One run of an orchestration: how it begins, waits and ends.  See replay.h and orch.h. */
#include "core/runtime/code/orch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/utf8.h"
#include "core/runtime/code/registry.h"
#include "core/runtime/format/json-size.h"

/* The run whose thread this is. */
static _Thread_local struct dk_orch *running;

enum { RESULT_COMPLETED = 1, RESULT_FAILED = 2 };

/* ---- leaving ----------------------------------------------------------------------------------*/

void
orch_leave(struct dk_orch *o, enum ending ending)
{
  assert(running == o && ending != ENDING_WAITS);
  o->ran->ending = ending;
  coroutine_step_out(o->coroutine);
  abort(); /* a run that does not wait is not continued */
}

void
orch_wait(struct dk_orch *o)
{
  assert(running == o && !o->waits);
  o->ran->ending = ENDING_WAITS;
  o->waits = true;
  coroutine_step_out(o->coroutine);
  o->waits = false;
  orch_post_arrivals(o);
}

/* Ends the run with a text that names the call and its line. */
DK_NORETURN static void
leave_with(struct dk_orch *o, enum ending ending, const char *format, va_list args)
{
  dk_str what = orch_vprintf(o, format, args);
  char *text = o->line ? dk_arena_printf(o->arena, "%s: %s: %s", o->line, o->call, what.ptr)
                       : dk_arena_printf(o->arena, "%s: %s", o->call, what.ptr);

  if (!text)
    orch_leave(o, ENDING_NO_MEMORY);
  o->ran->text = dk_str_of(text);
  orch_leave(o, ending);
}

void
orch_wrong(struct dk_orch *o, const char *format, ...)
{
  va_list args;

  o->ran->code = CODE_APPLICATION;
  va_start(args, format);
  leave_with(o, ENDING_WRONG_USE, format, args);
}

void
orch_limit(struct dk_orch *o, const char *format, ...)
{
  va_list args;

  o->ran->code = CODE_LIMIT;
  va_start(args, format);
  leave_with(o, ENDING_LIMIT, format, args);
}

void
orch_nondeterminism(struct dk_orch *o, const char *format, ...)
{
  va_list args;

  o->ran->code = CODE_NONDETERMINISM;
  va_start(args, format);
  leave_with(o, ENDING_NONDETERMINISM, format, args);
}

/* ---- memory and text --------------------------------------------------------------------------*/

void *
orch_array(struct dk_orch *o, size_t count, size_t size)
{
  void *array = dk_arena_array(o->arena, count, size);

  if (!array)
    orch_leave(o, ENDING_NO_MEMORY);
  return array;
}

dk_str
orch_copy(struct dk_orch *o, dk_str text)
{
  if (!text.ptr)
    return text;
  char *copy = dk_arena_copy(o->arena, text.ptr, text.len);
  if (!copy)
    orch_leave(o, ENDING_NO_MEMORY);
  return (dk_str){copy, text.len};
}

dk_str
orch_vprintf(struct dk_orch *o, const char *format, va_list args)
{
  char *text = dk_arena_vprintf(o->arena, format, args);

  if (!text)
    orch_leave(o, ENDING_NO_MEMORY);
  return dk_str_of(text);
}

void **
orch_name(struct dk_orch *o, struct names *names, dk_str name)
{
  void **at = names_at(names, o->arena, name);

  if (!at)
    orch_leave(o, ENDING_NO_MEMORY);
  return at;
}

dk_str
orch_text_id(struct dk_orch *o, const char *what, dk_str text)
{
  size_t max = o->past->max_id == 0 ? SIZE_MAX : (size_t)o->past->max_id;

  if (!text.ptr)
    orch_wrong(o, "%s is missing", what);
  if (text.len > max)
    orch_wrong(o, "%s has %zu bytes; this store takes up to %zu", what, text.len, max);
  if (!dk_text_id_valid(text.ptr, text.len, max))
    orch_wrong(o, "%s is %s; it must be text in UTF-8", what,
               text.len == 0 ? "empty" : "not valid UTF-8, or has a NUL in it");
  return text;
}

/* A name that is in the history was checked when it was recorded. */
dk_str
orch_name_of(struct dk_orch *o, const char *what, const char *string)
{
  const dk_str name = dk_str_of(string);
  const struct event *recorded = orch_next_recorded(o);

  if (recorded && name.len > 0 && str_equal(recorded->name, name))
    return name;
  return orch_text_id(o, what, name);
}

/* At least a 16th of a payload is reserved for the names that are stored with the bytes. */
dk_str
orch_payload(struct dk_orch *o, const char *what, dk_str bytes)
{
  uint64_t max = o->past->max_payload;

  if (!bytes.ptr && bytes.len > 0)
    orch_wrong(o, "%s is NULL with a length of %zu", what, bytes.len);
  if (max == 0 || bytes.len < max / 16) /* fits, whatever its bytes are */
    return bytes;
  uint64_t size = json_size(bytes), most = max - max / 16;
  if (size > most)
    orch_limit(o, "%s takes %llu bytes (in JSON); this store takes up to %llu", what,
               (unsigned long long)size, (unsigned long long)most);
  return bytes;
}

dk_str
orch_version_of(struct dk_orch *o, const char *version)
{
  struct dk_version parsed;

  if (version && version_parse(dk_str_of(version), &parsed) != DK_OK)
    orch_wrong(o, "the version is not of the form 1.2.3; NULL means the newest registered one");
  return dk_str_of(version);
}

/* ---- entering a call --------------------------------------------------------------------------*/

static struct dk_orch *
orch_do_enter(const dk_orch *given, const char *call, const char *line)
{
  struct dk_orch *o = running;

  o->call = call;
  o->line = line;
  if (given != o)
    orch_wrong(o, "its dk_orch is %s; pass the one that the orchestration was called with",
               given ? "that of another turn" : "NULL");
  if (o->past->overdue && o->past->overdue(o->past->context))
    orch_leave(o, ENDING_OVERDUE);
  return o;
}

static struct dk_orch *
refuse_call(const char *call)
{
  fprintf(stderr, "durakit: %s was called where no orchestration runs: use a dk_orch only in "
                  "the function that received it, and only until that function returns\n", call);
  return NULL;
}

struct dk_orch *
orch_enter(const dk_orch *given, const char *call)
{
  return running ? orch_do_enter(given, call, NULL) : refuse_call(call);
}

struct dk_orch *
orch_begin(const dk_orch *given, const char *call)
{
  if (!running)
    return refuse_call(call);
  struct dk_orch *o = orch_do_enter(given, call, running->last_line);
  if (o->over)
    orch_wrong(o, "it was called after dk_completed or dk_failed; return their result at once");
  return o;
}

dk_orch *
dk_orch_at(dk_orch *given, const char *line)
{
  if (running)
    running->last_line = line;
  return given;
}

/* A call that must not return aborts here if no orchestration runs. */
static struct dk_orch *
begin_or_abort(const dk_orch *given, const char *call)
{
  struct dk_orch *o = orch_begin(given, call);

  if (!o)
    abort();
  return o;
}

/* ---- the ends that the code chooses -----------------------------------------------------------*/

static dk_result
end_as(struct dk_orch *o, enum ending ending, dk_str text)
{
  o->over = true;
  o->ran->ending = ending;
  o->ran->text = text;
  o->ran->code = ending == ENDING_FAILED ? CODE_APPLICATION : CODE_NONE;
  return (dk_result){ending == ENDING_FAILED ? RESULT_FAILED : RESULT_COMPLETED};
}

dk_result
dk_completed(dk_orch *given, dk_str output)
{
  struct dk_orch *o = orch_begin(given, "dk_completed");

  if (!o)
    return (dk_result){0};
  return end_as(o, ENDING_COMPLETED, orch_copy(o, orch_payload(o, "the output", output)));
}

dk_result
dk_failed(dk_orch *given, const char *error)
{
  struct dk_orch *o = orch_begin(given, "dk_failed");

  if (!o)
    return (dk_result){0};
  return end_as(o, ENDING_FAILED, orch_copy(o, dk_str_of(error ? error : "")));
}

dk_result
dk_failed_with(dk_orch *given, const char *format, ...)
{
  struct dk_orch *o = orch_begin(given, "dk_failed_with");
  va_list args;

  if (!o)
    return (dk_result){0};
  va_start(args, format);
  dk_str error = orch_vprintf(o, format, args);
  va_end(args);
  return end_as(o, ENDING_FAILED, error);
}

void
dk_fail(dk_orch *given, const char *format, ...)
{
  struct dk_orch *o = begin_or_abort(given, "dk_fail");
  va_list args;

  va_start(args, format);
  dk_str error = orch_vprintf(o, format, args);
  end_as(o, ENDING_FAILED, error);
  orch_leave(o, ENDING_FAILED);
}

void
dk_continue_as_new(dk_orch *given, dk_str input, const char *version)
{
  struct dk_orch *o = begin_or_abort(given, "dk_continue_as_new");

  o->ran->text = orch_copy(o, orch_payload(o, "the input", input));
  o->ran->version = orch_copy(o, orch_version_of(o, version));
  orch_leave(o, ENDING_CONTINUED);
}

/* ---- the run ----------------------------------------------------------------------------------*/

static void
returned(struct dk_orch *o, dk_result result)
{
  int32_t expected = o->ran->ending == ENDING_FAILED ? RESULT_FAILED : RESULT_COMPLETED;

  o->call = "return";
  o->line = NULL;
  if (!o->over || result.private_ != expected)
    orch_wrong(o, "the orchestration did not return the result of dk_completed or dk_failed");
}

/* The first thing in the run's own thread. */
static void
run_function(void *context)
{
  struct dk_orch *o = context;

  running = o;
  orch_post_carried(o);
  orch_post_arrivals(o);
  returned(o, o->function(o, (dk_str){o->started->text.ptr ? o->started->text.ptr : "",
                                      o->started->text.len}));
}

/* Reports commands of the history that the code did not repeat. */
static void
check_left_over(struct dk_orch *o)
{
  const struct event *first;
  size_t n = orch_left_over(o, &first);

  if (n == 0)
    return;
  const char *described = orch_describe(o, first);
  char *text = dk_arena_printf(
    o->arena, "the code no longer does what it did before: %zu recorded calls were not "
              "repeated, the first is event %llu (%s); register a change under a new version",
    n, (unsigned long long)first->id, described ? described : "");
  o->ran->ending = text ? ENDING_NONDETERMINISM : ENDING_NO_MEMORY;
  o->ran->code = CODE_NONDETERMINISM;
  o->ran->text = dk_str_of(text);
}

/* Collects the queued messages that were not taken, in order. */
static void
carry(struct dk_orch *o)
{
  size_t n = 0;

  for (const struct queued *q = o->queued; q; q = q->next)
    n += !q->arrival->taken;
  o->ran->carried = dk_arena_array(o->arena, n, sizeof(struct carried));
  if (!o->ran->carried) {
    o->ran->ending = ENDING_NO_MEMORY;
    return;
  }
  assert(o->ran->n_carried == 0);
  for (const struct queued *q = o->queued; q; q = q->next)
    if (!q->arrival->taken)
      o->ran->carried[o->ran->n_carried++] = (struct carried){q->queue, q->arrival->data};
}

static bool
ends_by_itself(enum ending ending)
{
  return ending == ENDING_WAITS || ending == ENDING_COMPLETED || ending == ENDING_FAILED ||
         ending == ENDING_CONTINUED;
}

static void
orch_conclude(struct dk_orch *o)
{
  if (ends_by_itself(o->ran->ending))
    check_left_over(o);
  if (o->ran->ending == ENDING_CONTINUED)
    carry(o);
  o->ran->commands = o->commands;
  o->ran->n_commands = o->n_commands;
  o->waits = o->ran->ending == ENDING_WAITS;
  o->n_said = history_length(o->history) + o->n_commands;
}

/* ---- before the run ---------------------------------------------------------------------------*/

/* The index made by decision_stage, or one made here. */
static const struct history *
index_of(struct dk_arena *arena, const struct past *past)
{
  if (past->index)
    return past->index;
  struct history *history = history_new(arena, past->events, past->n_events);
  if (!history || history_expect(history, past->arrived, past->n_arrived) != DK_OK)
    return NULL;
  for (size_t i = 0; i < past->n_arrived; i++)
    history_arrive(history);
  return history->no_memory ? NULL : history;
}

static bool
orch_refuse(struct ran *ran, enum ending ending, enum code code, const char *text)
{
  ran->ending = text ? ending : ENDING_NO_MEMORY;
  ran->code = code;
  ran->text = dk_str_of(text);
  return false;
}

/* The code does not run if the history is invalid or too long. */
static bool
can_run(struct dk_arena *arena, const struct past *past, const struct history *history,
        struct ran *ran)
{
  size_t n = history_length(history);

  if (history->why)
    return orch_refuse(ran, ENDING_CORRUPT, CODE_CORRUPT,
                       dk_arena_printf(arena, "the history is invalid: %s", history->why));
  if (past->max_events > 0 && n > past->max_events)
    return orch_refuse(ran, ENDING_LIMIT, CODE_LIMIT,
                       dk_arena_printf(arena,
                                       "the execution has %zu events, but at most %u are allowed: "
                                       "begin a new one with dk_continue_as_new",
                                       n, past->max_events));
  return true;
}

/* ---- turn by turn -----------------------------------------------------------------------------*/

struct dk_orch *
replay_new(dk_orchestration_fn *function)
{
  struct dk_orch *o = calloc(1, sizeof(*o));

  if (!o)
    return NULL;
  dk_arena_init(&o->memory);
  o->arena = &o->memory;
  o->function = function;
  o->call = "the orchestration";
  o->last_now = INT64_MIN;
  return o;
}

void
replay_free(struct dk_orch *run)
{
  if (!run)
    return;
  coroutine_free(run->coroutine);
  dk_arena_done(&run->memory);
  free(run);
}

bool
replay_waits(const struct dk_orch *run)
{
  return run->waits;
}

bool
replay_fits(const struct dk_orch *run, const struct past *past)
{
  return run->waits && run->history == past->index && run->execution == past->execution &&
         run->n_said == past->n_events;
}

size_t
replay_bytes(const struct dk_orch *run)
{
  return sizeof(*run) + dk_arena_size(&run->memory) +
         (run->coroutine ? coroutine_bytes(run->coroutine) : 0);
}

/* The first turn, at the top of the function. */
static bool
begin_run(struct dk_orch *o)
{
  o->execution = o->past->execution;
  o->now = o->started->id;
  o->coroutine = coroutine_new(run_function, o);
  return o->coroutine;
}

/* Any later turn: the history now has what the last turn recorded. */
static bool
go_on(struct dk_orch *o)
{
  assert(o->n_said == o->past->n_events && o->history == o->past->index);
  o->cursor = o->past->n_events;
  o->n_matched += o->n_commands;
  o->n_commands = 0;
  return true;
}

void
replay_turn(struct dk_orch *run, const struct past *past, struct ran *ret_ran)
{
  const struct history *history = index_of(run->arena, past);

  *ret_ran = (struct ran){.ending = ENDING_NO_MEMORY};
  run->waits = false;
  if (!history || !can_run(run->arena, past, history, ret_ran))
    return;
  run->past = past;
  run->history = history;
  run->started = history_event(history, 0);
  run->ran = ret_ran;
  run->seed = past->seed;
  if (!(run->coroutine ? go_on(run) : begin_run(run)))
    return;
  coroutine_run(run->coroutine);
  orch_conclude(run);
}

/* ---- queries and memory ------------------------------------------------------------*/

dk_str
dk_orch_instance(const dk_orch *given)
{
  const struct dk_orch *o = orch_enter(given, "dk_orch_instance");

  return o ? o->past->instance : dk_str_of(NULL);
}

uint64_t
dk_orch_execution(const dk_orch *given)
{
  const struct dk_orch *o = orch_enter(given, "dk_orch_execution");

  return o ? o->past->execution : 0;
}

dk_str
dk_orch_name(const dk_orch *given)
{
  const struct dk_orch *o = orch_enter(given, "dk_orch_name");

  return o ? o->started->name : dk_str_of(NULL);
}

dk_str
dk_orch_version(const dk_orch *given)
{
  const struct dk_orch *o = orch_enter(given, "dk_orch_version");

  return o ? o->started->version : dk_str_of(NULL);
}

dk_str
dk_orch_parent(const dk_orch *given)
{
  const struct dk_orch *o = orch_enter(given, "dk_orch_parent");

  return o ? o->started->parent.instance : dk_str_of(NULL);
}

/* What a turn decides depends on what it has waited for.  So until it consumes the first of this
 * turn's arrivals it repeats what was done before. */
static bool
is_replaying(const struct dk_orch *o)
{
  return o->now <= o->past->n_committed;
}

int32_t
dk_replaying(const dk_orch *given)
{
  const struct dk_orch *o = orch_enter(given, "dk_replaying");

  return o && is_replaying(o);
}

void *
dk_orch_alloc(dk_orch *given, size_t size)
{
  struct dk_orch *o = orch_enter(given, "dk_orch_alloc");

  return o ? orch_array(o, 1, size) : NULL;
}

dk_str
dk_format(dk_orch *given, const char *format, ...)
{
  struct dk_orch *o = orch_enter(given, "dk_format");
  va_list args;

  if (!o)
    return dk_str_of(NULL);
  va_start(args, format);
  dk_str text = orch_vprintf(o, format, args);
  va_end(args);
  return text;
}

void
dk_say(dk_orch *given, int32_t level, const char *format, ...)
{
  struct dk_orch *o = orch_enter(given, "dk_say");
  va_list args;

  if (!o || !o->past->say || is_replaying(o))
    return;
  va_start(args, format);
  dk_str line = orch_vprintf(o, format, args);
  va_end(args);
  o->past->say(o->past->context, level, line);
}
