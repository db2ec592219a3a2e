/* SPDX-License-Identifier: Apache-2.0 */
/* Twin runs prove that refused calls changed nothing: one run makes them, the other does not.
 *
 * Pass 0 runs the check through.  For its k-th region (before ...  expect_unchanged) pass 2k-1
 * runs it again in a fresh store, up to the end of that region, and drains the store; pass 2k does
 * the same without making the calls of the region: they return what they returned in pass 2k-1.
 * The lines of the two drains must be equal.  Before the region the two runs must have made equal
 * calls with equal results; if not, the check let the provider choose, and the comparison would
 * mean nothing: trouble of the kit. */
#include "conformance/kit/kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Sets the region of this pass (0: none), and whether it is the run without the calls. */
static uint32_t
region_of_pass(const struct dk_check *t)
{
  return (uint32_t)(t->pass + 1) / 2;
}

static bool
is_without(const struct dk_check *t)
{
  return t->pass > 0 && t->pass % 2 == 0;
}

void
kit_want_pass(struct dk_check *t)
{
  if (t->twin.regions > 0)
    kit_trouble(t, "a check with regions cannot ask for passes of its own");
  t->passes = t->pass + 2;
}

int32_t
kit_twin_passes(const struct dk_check *t)
{
  return t->passes > 0 ? t->passes : 1 + 2 * (int32_t)t->twin.regions;
}

void
kit_twin_begin_pass(struct dk_check *t)
{
  struct kit_twin *twin = &t->twin;

  twin->region = 0;
  twin->inside = twin->skips = false;
  twin->n_compared = twin->n_skipped = 0;
  if (t->pass % 2 == 0 || twin->regions == 0)
    return;
  dk_arena_reset(&twin->arena);
  memset(&twin->log, 0, sizeof(twin->log));
  memset(&twin->calls, 0, sizeof(twin->calls));
  memset(&twin->with, 0, sizeof(twin->with));
}

/* ---- the log, which both must have in common ------------------------------------------------- */

static void
say_log_line(const struct dk_check *t, const struct kit_log_line *line, char *buffer, size_t size)
{
  char name[32];

  snprintf(buffer, size, "%s %s -> %s", t->shared->actors[line->actor].name,
           kit_op_name(line->kind), kit_status_name(line->status, name, sizeof(name)));
}

static void
say_parting(struct dk_check *t, const struct kit_log_line *with, const struct kit_log_line *without)
{
  char a[128] = "nothing more", b[128] = "nothing more";

  if (with != NULL)
    say_log_line(t, with, a, sizeof(a));
  if (without != NULL)
    say_log_line(t, without, b, sizeof(b));
  kit_fail(t, VERDICT_ERROR, NULL, a, b,
           "the two runs of a twin differ at call %zu, before the region: %s in one, %s in the "
           "other; where a provider may choose, fetch all and pick by identity",
           t->twin.n_compared + 1, a, b);
}

static bool
log_lines_agree(const struct kit_log_line *a, const struct kit_log_line *b)
{
  return a->kind == b->kind && a->actor == b->actor && a->status == b->status;
}

void
kit_twin_log(struct dk_check *t, const struct actor *who, const struct op *op)
{
  struct kit_twin *twin = &t->twin;
  struct kit_log_line line = {
    op->kind, (int32_t)(who - t->shared->actors), op->status
  };

  /* Logs only up to the region of this pass. */
  if (twin->regions == 0 || t->pass == 0 || twin->region >= region_of_pass(t))
    return;
  if (!is_without(t)) {
    *LIST_ADD(t, &twin->arena, &twin->log) = line;
    return;
  }
  const struct kit_log_line *other =
    twin->n_compared < twin->log.n ? &twin->log.items[twin->n_compared] : NULL;
  if (other == NULL || !log_lines_agree(other, &line))
    say_parting(t, other, &line);
  twin->n_compared++;
}

/* ---- the calls of a region ------------------------------------------------------------------- */

bool
kit_twin_skips(struct dk_check *t)
{
  return t->twin.skips;
}

/* Only looks of durakit.admin/1 may have results in a region: the run without them gets these. */
static const struct op *
reply_to_keep(struct dk_check *t, const struct op *op)
{
  struct op *kept;

  if (!kit_is_admin(op->kind))
    return NULL;
  kept = kit_alloc(t, &t->twin.arena, 1, sizeof(*kept));
  *kept = *op;
  kit_copy_admin_reply(t, &t->twin.arena, kept);
  return kept;
}

void
kit_twin_remember(struct dk_check *t, const struct op *op)
{
  struct kit_twin *twin = &t->twin;

  if (!twin->inside || t->pass == 0 || is_without(t) || twin->region != region_of_pass(t))
    return;
  char *text = dk_arena_strdup(&twin->arena, op->text);
  if (text == NULL)
    kit_trouble(t, "no memory");
  *LIST_ADD(t, &twin->arena, &twin->calls) =
    (struct kit_remembered){op->kind, op->status, now(t), text, reply_to_keep(t, op)};
}

static bool
brings_results(const struct op *op)
{
  return op->kind == OP_FETCH_TURN || op->kind == OP_FETCH_WORK || op->kind == OP_READ_HISTORY;
}

/* In place of the call: returns its status and text, and lets the time pass that it took. */
dk_status
kit_twin_remembered(struct dk_check *t, struct actor *who)
{
  struct kit_twin *twin = &t->twin;
  struct op *op = &who->op;

  if (twin->n_skipped == twin->calls.n || twin->calls.items[twin->n_skipped].kind != op->kind)
    kit_trouble(t, "the two runs of a twin differ inside the region, at %s", kit_op_name(op->kind));
  const struct kit_remembered *was = &twin->calls.items[twin->n_skipped++];
  if (was->status == DK_OK && brings_results(op))
    kit_trouble(t, "%s answered DK_OK between before and expect_unchanged: only refused calls "
                "belong there", kit_op_name(op->kind));
  advance_to(t, was->ended);
  op->status = was->status;
  snprintf(op->text, sizeof(op->text), "%s", was->text);
  if (was->reply != NULL)
    kit_give_admin_reply(op, was->reply);
  if (who->canceller != NULL) /* as after the call: the next one runs again */
    dk_canceller_reset(who->canceller);
  t->last = who;
  say_in_trace(t, "%s %s is left out", who->name, kit_op_name(op->kind));
  return op->status;
}

/* ---- the words ------------------------------------------------------------------------------- */

void
kit_before(struct dk_check *t)
{
  struct kit_twin *twin = &t->twin;

  if (twin->inside)
    kit_trouble(t, "before() inside another region");
  twin->inside = true;
  twin->region++;
  if (t->pass == 0)
    twin->regions = twin->region;
  if (!is_without(t) || twin->region != region_of_pass(t))
    return;
  if (twin->n_compared < twin->log.n)
    say_parting(t, &twin->log.items[twin->n_compared], NULL);
  twin->skips = true;
}

/* The earliest line that only one of the two has; NULL if there is none. */
static const struct kit_line *
first_difference(const kit_lines *with, const kit_lines *without, bool *ret_is_with)
{
  size_t a = 0, b = 0;

  while (a < with->n || b < without->n) {
    const struct kit_line *x = a < with->n ? &with->items[a] : NULL;
    const struct kit_line *y = b < without->n ? &without->items[b] : NULL;
    int order = x == NULL ? 1 : y == NULL ? -1 : x->at != y->at ? (x->at < y->at ? -1 : 1)
                                                                : strcmp(x->text, y->text);
    if (order == 0) {
      a++;
      b++;
      continue;
    }
    *ret_is_with = order < 0;
    return order < 0 ? x : y;
  }
  return NULL;
}

static bool
has_line(const kit_lines *lines, const struct kit_line *line)
{
  for (size_t i = 0; i < lines->n; i++) {
    if (lines->items[i].at == line->at && strcmp(lines->items[i].text, line->text) == 0)
      return true;
  }
  return false;
}

/* For the report: the line of the other run about the same thing at the same time, which is the one
 * with the longest common beginning, of those that only the other run has. */
static const char *
counterpart(const struct kit_line *line, const kit_lines *own, const kit_lines *others)
{
  const char *best = "nothing like it";
  size_t longest = 8; /* less in common is another thing */

  for (size_t i = 0; i < others->n; i++) {
    size_t common = 0;

    if (others->items[i].at != line->at || has_line(own, &others->items[i]))
      continue;
    while (line->text[common] != '\0' && line->text[common] == others->items[i].text[common])
      common++;
    if (common > longest) {
      longest = common;
      best = others->items[i].text;
    }
  }
  return best;
}

static void
twin_compare(struct dk_check *t, const kit_lines *with, const kit_lines *without, const char *where)
{
  bool is_with = false;
  const struct kit_line *line = first_difference(with, without, &is_with);
  char expected[1000], found[1000];

  if (line == NULL)
    return;
  const char *other = counterpart(line, is_with ? with : without, is_with ? without : with);
  snprintf(expected, sizeof(expected), "without: at T+%" PRId64 " %s", line->at,
           is_with ? other : line->text);
  snprintf(found, sizeof(found), "with the refused call: at T+%" PRId64 " %s", line->at,
           is_with ? line->text : other);
  kit_fail(t, VERDICT_FAIL, where, expected, found,
           "the refused call changed something (region %u): with the refused call: %s / without: "
           "%s", t->twin.region, is_with ? line->text : other, is_with ? other : line->text);
}

void
kit_expect_unchanged(struct dk_check *t, const char *file, int line)
{
  struct kit_twin *twin = &t->twin;
  struct kit_drained without = {.seen = {NULL, 0, 0}};
  char where[128];

  if (!twin->inside)
    kit_trouble(t, "expect_unchanged() without before()");
  twin->inside = false;
  if (t->pass == 0 || twin->region != region_of_pass(t))
    return;
  kit_place(where, sizeof(where), file, line);
  if (!is_without(t)) {
    kit_drain(t, &twin->arena, &twin->with);
  } else {
    if (twin->n_skipped < twin->calls.n)
      kit_trouble(t, "the two runs of a twin differ inside the region: a call is missing");
    twin->skips = false;
    kit_drain(t, &t->arena, &without);
    twin_compare(t, &twin->with.seen, &without.seen, where);
    twin_compare(t, &twin->with.listed, &without.listed, where);
    t->report->regions++;
  }
  kit_leave(t); /* this pass has served its purpose */
}
