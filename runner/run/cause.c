/* SPDX-License-Identifier: Apache-2.0 */
/* Compares how each of the first checks of a run ended.  Owns the counts in struct run. */
#include "runner/run/cause.h"

#include <ctype.h>
#include <string.h>

static const char *
behind_number(const char *text)
{
  while (isdigit((unsigned char)*text)
         || ((*text == ',' || *text == '.') && isdigit((unsigned char)text[1])))
    text++;
  return text;
}

/* Compares up to the end of both, or up to their first colons. */
static bool
same_but_for_numbers(const char *a, const char *b, bool first_clause)
{
  while (*a && *b && !(first_clause && *a == ':' && *b == ':')) {
    if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
      a = behind_number(a);
      b = behind_number(b);
    } else if (*a++ != *b++) {
      return false;
    }
  }
  return *a == *b; /* two ends, or two colons */
}

static bool
has_failed(const struct result *result)
{
  return (run_is_violation(result->verdict) || result->verdict == VERDICT_ERROR)
         && !run_result_is_advice(result);
}

/* The answer of one operation shows the failure, whether in the steps of the check or beside
 * them. */
static bool
is_told_by_answer(const struct result *result)
{
  return has_failed(result) && result->outcome && result->outcome->report->answer[0];
}

/* The check failed in a phase that every check goes through; or, under Valgrind, by a finding,
 * whose place identifies it. */
static bool
is_beside_steps(const struct result *result)
{
  enum phase phase = (enum phase)result->outcome->report->phase;

  if (result->verdict == VERDICT_MEMORY)
    return true;
  return has_failed(result) && phase != PHASE_RUN && phase != PHASE_TWIN;
}

bool
cause_is_same(const struct result *a, const struct result *b)
{
  const struct kit_report *one = a->outcome->report;
  const struct kit_report *other = b->outcome->report;

  if (a->verdict != b->verdict || a->mode != b->mode)
    return false;
  if (one->answer[0] || other->answer[0])
    return same_but_for_numbers(one->answer, other->answer, false);
  return one->phase == other->phase
         && strcmp(one->clause, other->clause) == 0 && strcmp(one->where, other->where) == 0
         && same_but_for_numbers(one->message, other->message,
                                 a->verdict == VERDICT_HOST_DAMAGE);
}

/* How many checks have ended as this one has, counting itself; and the first of them. */
static unsigned
count_same(const struct run *run, const struct result *result, const struct result **ret_first)
{
  unsigned n = 0;

  *ret_first = NULL;
  for (size_t i = 0; i < run->n_results; i++) {
    const struct result *other = &run->results[i];
    if (!other->outcome || !cause_is_same(other, result))
      continue;
    *ret_first = *ret_first ? *ret_first : other;
    n++;
  }
  return n;
}

/* All checks that have run in this mode ended in the same way.  Needed for failures in a check's
 * own steps, because another check might not use the operation that failed. */
static bool
all_are_same(const struct run *run, const struct result *result)
{
  for (size_t i = 0; i < run->n_results; i++) {
    const struct result *other = &run->results[i];
    if (other->outcome && other->mode == result->mode && other->verdict != VERDICT_SKIP
        && !cause_is_same(other, result))
      return false;
  }
  return true;
}

static bool
came_through(const struct result *result)
{
  return result->verdict == VERDICT_PASS || result->verdict == VERDICT_UNEXERCISED
         || result->verdict == VERDICT_FLAKY;
}

void
cause_forget(struct run *run, const struct result *result)
{
  run->causes[result->mode] = (struct cause){.came_through = true};
}

bool
cause_note(struct run *run, const struct result *result)
{
  struct cause *cause = &run->causes[result->mode];
  const struct result *first;

  if (came_through(result))
    cause_forget(run, result);
  bool beside = is_beside_steps(result);
  if (cause->came_through || cause->first || (!beside && !is_told_by_answer(result)))
    return cause->first == NULL;
  unsigned n = count_same(run, result, &first);
  if (n >= CAUSE_ALIKE && (beside || all_are_same(run, result)))
    cause->first = first;
  return n < 2;
}

bool
cause_note_answer(struct run *run, struct result *result)
{
  bool is_known = false;

  if (!is_told_by_answer(result))
    return false;
  for (size_t i = 0; i < run->n_results; i++) {
    struct result *other = &run->results[i];
    if (other == result || !is_told_by_answer(other) || !cause_is_same(other, result))
      continue;
    other->shared = result->shared = true;
    is_known = is_known || other->done;
  }
  return is_known;
}

/* A cause that ends all checks natively ends them under Valgrind, too. */
const struct result *
cause_of(const struct run *run, const struct result *result)
{
  const struct result *natively = run->causes[MODE_NATIVE].first;

  return natively ? natively : run->causes[result->mode].first;
}

void
cause_text(struct dk_text *text, const struct result *first)
{
  const struct kit_report *report = first->outcome->report;

  dk_text_printf(text, "%d checks ended as %s did (%s: %s), and none has passed: the others are "
                       "not run, because they would end in the same way", CAUSE_ALIKE, first->id,
                 verdict_name(first->verdict),
                 report->answer[0] ? report->answer : report->message);
}
