/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what ended each of the first checks of a run.  Owns the counts in struct run. */
#include "runner/cause.h"

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

/* Up to the end of both, or of their first clauses. */
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

/* Every check goes through all phases but its own steps; and of its memory, under Valgrind, what is
 * found first is told by its place. */
static bool
may_be_shared(const struct result *result)
{
  enum phase phase = (enum phase)result->outcome->report->phase;

  if (result->verdict == VERDICT_MEMORY)
    return true;
  return (verdict_is_violation(result->verdict) || result->verdict == VERDICT_ERROR)
         && !result_is_advice(result) && phase != PHASE_RUN && phase != PHASE_TWIN;
}

bool
cause_is_same(const struct result *a, const struct result *b)
{
  const struct kit_report *one = a->outcome->report;
  const struct kit_report *other = b->outcome->report;

  return a->verdict == b->verdict && a->mode == b->mode && one->phase == other->phase
         && strcmp(one->clause, other->clause) == 0 && strcmp(one->where, other->where) == 0
         && same_but_for_numbers(one->message, other->message,
                                 a->verdict == VERDICT_HOST_DAMAGE);
}

/* How many have ended as this one has, itself among them, and the first of those. */
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
  if (cause->came_through || cause->first || !may_be_shared(result))
    return cause->first == NULL;
  unsigned n = count_same(run, result, &first);
  if (n >= CAUSE_ALIKE)
    cause->first = first;
  return n < 2;
}

/* What ends all checks natively ends them under Valgrind. */
const struct result *
cause_of(const struct run *run, const struct result *result)
{
  const struct result *natively = run->causes[MODE_NATIVE].first;

  return natively ? natively : run->causes[result->mode].first;
}

void
cause_text(struct dk_text *text, const struct result *first)
{
  dk_text_printf(text, "%d checks ended as %s did (%s: %s), and none has passed: the others are "
                       "not run, for they would end so, too", CAUSE_ALIKE, first->id,
                 verdict_name(first->verdict), first->outcome->report->message);
}
