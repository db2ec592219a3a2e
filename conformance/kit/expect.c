/* SPDX-License-Identifier: Apache-2.0 */
/* Expectations.  The first one that does not hold fills the report and leaves the check, always
 * through kit_leave; the stack frames of a check own nothing, so nothing is lost. */
#include "conformance/kit/kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *
kit_status_name(dk_status status, char *buffer, size_t size)
{
  const char *name = dk_status_name(status, buffer, size);

  if (name != buffer)
    snprintf(buffer, size, "%s", name);
  return buffer;
}

/* ---- leaving the check ----------------------------------------------------------------------- */

void
kit_leave(struct dk_check *t)
{
  if (t->may_leave)
    longjmp(t->leave, 1);
  /* No step of the engine runs: there is nothing to return to. */
  kit_say_verdict(t->report, t->job, t->verdict == VERDICT_NONE ? VERDICT_ERROR : t->verdict);
  _Exit(0);
}

/* The first clause of the check is the one that it tests. */
static void
set_own_clause(struct dk_check *t)
{
  const char *clauses = t->job->check != NULL ? t->job->check->clauses : "";

  snprintf(t->report->clause, sizeof(t->report->clause), "%.*s", (int)strcspn(clauses, " ,"),
           clauses);
}

void
kit_fail(struct dk_check *t, enum verdict verdict, const char *where, const char *expected,
         const char *found, const char *format, ...)
{
  struct kit_report *r = t->report;
  va_list args;

  if (t->verdict != VERDICT_NONE)
    kit_leave(t); /* the first failure counts: this one came while cleaning up after it */
  va_start(args, format);
  vsnprintf(r->message, sizeof(r->message), format, args);
  va_end(args);
  snprintf(r->expected, sizeof(r->expected), "%s", expected == NULL ? "" : expected);
  snprintf(r->found, sizeof(r->found), "%s", found == NULL ? "" : found);
  snprintf(r->where, sizeof(r->where), "%s", where == NULL ? "" : where);
  r->pass = t->pass;
  if (r->clause[0] == '\0')
    set_own_clause(t);
  t->verdict = verdict;
  kit_leave(t);
}

void
kit_skip(struct dk_check *t, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  vsnprintf(t->report->skip_reason, sizeof(t->report->skip_reason), format, args);
  va_end(args);
  kit_fail(t, VERDICT_SKIP, NULL, NULL, NULL, "%s", t->report->skip_reason);
}

void
kit_trouble(struct dk_check *t, const char *format, ...)
{
  char text[1024];
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  kit_fail(t, VERDICT_ERROR, NULL, NULL, NULL, "%s", text);
}

/* Called after each call: fails if the host saw that a rule of the ABI was broken in it. */
void
kit_judge_violation(struct dk_check *t)
{
  struct kit_violation *v = &t->shared->violation;

  if (t->verdict != VERDICT_NONE || atomic_load_explicit(&v->happened, memory_order_acquire) != 2)
    return;
  snprintf(t->report->clause, sizeof(t->report->clause), "%s", v->clause);
  snprintf(t->report->answer, sizeof(t->report->answer), "%.48s broke %.16s: %.110s", v->operation,
           v->clause, v->text);
  kit_fail(t, VERDICT_FAIL, NULL, "the rules of the ABI are kept", v->text,
           "in %s the provider broke %s: %s", v->operation, v->clause, v->text);
}

/* Statuses that mean that an operation does not work at all, for any request. */
static bool
is_trouble(dk_status status)
{
  return dk_status_class(status) == 1 || dk_status_class(status) == 3 || status == DK_INTERNAL ||
         status == DK_CORRUPT || status == DK_REFUSED || status == DK_UNSUPPORTED;
}

void
kit_note_answer(struct dk_check *t, const char *operation, dk_status status, const char *text)
{
  char name[32];

  if (t->verdict != VERDICT_NONE || !is_trouble(status))
    return;
  snprintf(t->report->answer, sizeof(t->report->answer), "%.48s answered %s%s%.110s", operation,
           kit_status_name(status, name, sizeof(name)), text != NULL && *text != '\0' ? ": " : "",
           text != NULL ? text : "");
}

/* The operation of the check's last call; if it was made without a function of the kit, the host
 * has its name. */
static void
note_last_answer(struct dk_check *t, dk_status status)
{
  const struct actor *who = kit_actor(t, t->last);
  const char *name = kit_op_name(who->op.kind);

  if (who->op.kind == OP_RAW && who->caller != NULL &&
      dk_caller_failure(who->caller)->status == status)
    name = dk_caller_failure(who->caller)->operation;
  kit_note_answer(t, name, status, failure_text(t, t->last));
}

/* ---- expectations ---------------------------------------------------------------------------- */

/* "checks/cancel.c:17": the path from the last two folders on. */
const char *
kit_place(char *buffer, size_t size, const char *file, int line)
{
  const char *slash = strrchr(file, '/');

  while (slash != NULL && slash > file && slash[-1] != '/')
    slash--;
  snprintf(buffer, size, "%s:%d", slash == NULL ? file : slash, line);
  return buffer;
}

struct words { char where[128], what[1024]; };

__attribute__((format(printf, 4, 0))) static void
words(struct words *w, const char *file, int line, const char *format, va_list args)
{
  kit_place(w->where, sizeof(w->where), file, line);
  vsnprintf(w->what, sizeof(w->what), format, args);
}

/* The result of the last call, as in the trace. */
static const char *
last_call(const struct dk_check *t)
{
  uint32_t n = t->report->n_trace;

  return n > 0 ? t->report->trace[(n - 1) % KIT_TRACE_LINES].text : "none";
}

void
kit_expect(struct dk_check *t, bool holds, const char *condition, const char *file, int line,
           const char *what, ...)
{
  char found[512];
  struct words w;
  va_list args;

  if (holds)
    return;
  va_start(args, what);
  words(&w, file, line, what, args);
  va_end(args);
  snprintf(found, sizeof(found), "it does not hold; the last call: %s", last_call(t));
  kit_fail(t, VERDICT_FAIL, w.where, condition, found, "%s", w.what);
}

void
kit_expect_status(struct dk_check *t, dk_status got, dk_status wanted, const char *call,
                  const char *file, int line)
{
  char where[128], expected[32], name[32], found[1000], why[300] = "";
  const char *text = failure_text(t, t->last);
  enum verdict verdict = VERDICT_FAIL;

  if (got == wanted)
    return;
  kit_place(where, sizeof(where), file, line);
  kit_status_name(got, name, sizeof(name));
  bool has_text = got != DK_OK && text != NULL && text[0] != '\0';
  if (got == DK_UNAVAILABLE && wanted == DK_OK)
    verdict = kit_judge_unavailable(t, why, sizeof(why));
  note_last_answer(t, got);
  snprintf(found, sizeof(found), "%s%s%s%s", name, has_text ? ": " : "", has_text ? text : "", why);
  kit_fail(t, verdict, where,
           kit_status_name(wanted, expected, sizeof(expected)), found, "%s answered %s, not %s",
           call, name, expected);
}

void
kit_expect_equal(struct dk_check *t, int64_t got, int64_t wanted, const char *expression,
                 const char *file, int line, const char *what, ...)
{
  char expected[64], found[512];
  struct words w;
  va_list args;

  if (got == wanted)
    return;
  va_start(args, what);
  words(&w, file, line, what, args);
  va_end(args);
  snprintf(expected, sizeof(expected), "%" PRId64, wanted);
  snprintf(found, sizeof(found), "%" PRId64 " (%s)", got, expression);
  kit_fail(t, VERDICT_FAIL, w.where, expected, found, "%s: %" PRId64 ", not %s", w.what, got,
           expected);
}

static void
expect_same_bytes(struct dk_check *t, struct dk_bytes got, struct dk_bytes wanted,
                  const struct words *w)
{
  struct dk_text expected = DK_TEXT_EMPTY, found = DK_TEXT_EMPTY;

  kit_say_bytes(&expected, wanted);
  kit_say_bytes(&found, got);
  /* Freed before the check is left; the report has its own copies. */
  char e[512], f[512];
  snprintf(e, sizeof(e), "%s", dk_text_str(&expected));
  snprintf(f, sizeof(f), "%s", dk_text_str(&found));
  dk_text_done(&expected);
  dk_text_done(&found);
  kit_fail(t, VERDICT_FAIL, w->where, e, f, "%s: %s, not %s", w->what, f, e);
}

void
kit_expect_text(struct dk_check *t, struct dk_bytes got, const char *wanted, const char *expression,
                const char *file, int line, const char *what, ...)
{
  struct words w;
  va_list args;

  (void)expression;
  if (same_bytes(got, bytes(wanted)))
    return;
  va_start(args, what);
  words(&w, file, line, what, args);
  va_end(args);
  expect_same_bytes(t, got, bytes(wanted), &w);
}

void
kit_expect_bytes(struct dk_check *t, struct dk_bytes got, struct dk_bytes wanted,
                 const char *expression, const char *file, int line, const char *what, ...)
{
  struct words w;
  va_list args;

  (void)expression;
  if (same_bytes(got, wanted))
    return;
  va_start(args, what);
  words(&w, file, line, what, args);
  va_end(args);
  expect_same_bytes(t, got, wanted, &w);
}

/* Fails if a fetch returned something although nothing should be there. */
static void
expect_nothing(struct dk_check *t, dk_status status, const char *what, const char *file, int line)
{
  char where[128], name[32], why[300] = "";
  enum verdict verdict = VERDICT_FAIL;

  if (status == DK_NOTHING)
    return;
  kit_place(where, sizeof(where), file, line);
  if (status == DK_UNAVAILABLE)
    verdict = kit_judge_unavailable(t, why, sizeof(why));
  note_last_answer(t, status);
  kit_fail(t, verdict, where, "DK_NOTHING", last_call(t),
           "there should be no %s now, but the fetch answered %s%s", what,
           kit_status_name(status, name, sizeof(name)), why);
}

void
kit_expect_no_turn(struct dk_check *t, const struct fetch_turn_args *a, const char *file, int line)
{
  struct dk_turn *turn;

  expect_nothing(t, kit_try_fetch_turn(t, &turn, a), "turn", file, line);
}

void
kit_expect_no_work(struct dk_check *t, const struct fetch_work_args *a, const char *file, int line)
{
  struct dk_works *works;

  expect_nothing(t, kit_try_fetch_work(t, &works, a), "work", file, line);
}
