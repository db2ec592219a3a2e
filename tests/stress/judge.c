/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants, from the journal and the histories.  What a killed process has requested without
 * an answer may have happened or not; but if so, wholly. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "tests/stress/stress.h"

/* What is known of a number. */
struct about {
  uint32_t facts, of;         /* a commit: so many of its facts are in a history */
  uint64_t asked, next;       /* when it was tried, and the one that followed in the history */
  uint64_t rows;              /* that it must have deleted, unless that is unclear */
  bool is_unclear;
  uint32_t consumed;          /* a message */
  bool is_scheduled, is_gone; /* an activity: by a commit that landed; cancelled by one */
  uint64_t scheduled_by;
  uint32_t acked, maybe;      /* acks that were answered DK_OK; without an answer */
  uint64_t gone_at;           /* the tick at which its cancellation was acknowledged */
};

struct court {
  const struct run *run;
  struct journal *j;
  struct about *about;
  size_t n_numbers, n_entries;
};

/* The first few wrongs of an invariant, and how many there are. */
struct wrongs {
  size_t n, looked_at;
};

static void
wrong(struct wrongs *wrongs, const char *what, uint64_t number, uint64_t other)
{
  if (wrongs->n++ < 5)
    diag("%s: %" PRIu64 " (%" PRIu64 ")", what, number, other);
}

static void
tell(const struct wrongs *wrongs, const char *name)
{
  ok(wrongs->n == 0 && wrongs->looked_at > 0, "%s: %zu wrong of %zu", name, wrongs->n,
     wrongs->looked_at);
}

static struct about *
about(const struct court *c, uint64_t number)
{
  return &c->about[number < c->n_numbers ? number : 0];
}

static bool
landed(const struct court *c, uint64_t commit)
{
  return about(c, commit)->facts > 0;
}

static int32_t
answer_of(struct entry *entry)
{
  return atomic_load(&entry->status);
}

/* ---- gathering ------------------------------------------------------------------------------- */

static void
gather_facts(struct court *c, const struct told *told)
{
  for (size_t i = 0; i < told->n; i++) {
    const struct fact *fact = &told->facts[i];
    about(c, fact->commit)->facts++;
    about(c, fact->commit)->of = fact->n;
    if (i > 0 && fact[-1].commit != fact->commit && fact[-1].instance == fact->instance)
      about(c, fact[-1].commit)->next = fact->commit;
    if (fact->what == CONSUMES)
      about(c, fact->number)->consumed++;
    else if (fact->what == SCHEDULES)
      about(c, fact->number)->is_scheduled = true;
    else if (fact->what == CANCELS)
      about(c, fact->number)->is_gone = true;
  }
}

static void
gather_entries(struct court *c)
{
  for (size_t i = 0; i < c->n_entries; i++) {
    struct entry *e = &c->j->entries[i];
    if (e->kind == COMMITTED)
      about(c, e->number)->asked = e->asked;
    if (e->kind == COMMITTED && answer_of(e) == DK_OK)
      about(c, e->number)->gone_at = e->answered;
    if (e->kind == ACKED && answer_of(e) == DK_OK)
      about(c, e->number)->acked++;
    if (e->kind == ACKED && answer_of(e) == NO_ANSWER)
      about(c, e->number)->maybe++;
  }
  for (size_t i = 0; i < c->n_entries; i++) {
    struct entry *e = &c->j->entries[i];
    if (e->kind == SCHEDULED)
      about(c, e->number)->scheduled_by = e->by;
    if (e->kind == CANCELLED && landed(c, e->by))
      about(c, e->number)->gone_at = about(c, e->by)->gone_at; /* 0: never acknowledged */
  }
}

/* ---- commits --------------------------------------------------------------------------------- */

/* ACK-11: a repeated commit whose token is not the last one any more is answered as a dead one is,
 * although it landed. */
static bool
was_overtaken(const struct court *c, const struct entry *e)
{
  const struct about *a = about(c, e->number);

  return e->unknown > 0 && a->facts > 0 && a->next != 0 && about(c, a->next)->asked < e->answered;
}

static void
judge_commits(struct court *c)
{
  struct wrongs w = {.n = 0};

  for (size_t i = 0; i < c->n_entries; i++) {
    struct entry *e = &c->j->entries[i];
    if (e->kind != COMMITTED)
      continue;
    const struct about *a = about(c, e->number);
    w.looked_at++;
    if (answer_of(e) == DK_LOCK_LOST && was_overtaken(c, e))
      continue;
    if (answer_of(e) == DK_OK && a->facts == 0)
      wrong(&w, "a commit that was acknowledged is lost", e->number, e->asked);
    if (answer_of(e) > DK_OK && a->facts > 0)
      wrong(&w, "a commit that was refused is there", e->number, (uint64_t)answer_of(e));
    if (a->facts != a->of)
      wrong(&w, "a commit is there in part", e->number, a->facts);
    if (answer_of(e) == DK_LOCK_LOST && e->until > e->since)
      wrong(&w, "a commit was refused under a lease that was live", e->number, e->asked);
  }
  tell(&w, "commits are all or nothing, and as they were answered");
}

/* ---- messages -------------------------------------------------------------------------------- */

/* 1 it must have been consumed, 0 it must not, -1 it may. */
static int
expected_of_message(const struct court *c, struct entry *e)
{
  if (e->kind == SENT && e->by != 0)
    return landed(c, e->by);
  return answer_of(e) == NO_ANSWER ? -1 : answer_of(e) == DK_OK;
}

static void
judge_messages(struct court *c)
{
  struct wrongs w = {.n = 0};

  for (size_t i = 0; i < c->n_entries; i++) {
    struct entry *e = &c->j->entries[i];
    uint64_t number = e->kind == SENT ? e->number : e->kind == ACKED ? e->by : 0;
    if (number == 0)
      continue;
    int expected = expected_of_message(c, e);
    uint32_t consumed = about(c, number)->consumed;
    w.looked_at++;
    /* QUEUE-4: repeated after it was consumed, it may come again. */
    if (consumed > 1 + (e->kind == SENT ? e->unknown : 0))
      wrong(&w, "a message was consumed more than once", number, consumed);
    else if (expected == 1 && consumed == 0)
      wrong(&w, "a message that was acknowledged is lost", number, e->by);
    else if (expected == 0 && consumed > 0)
      wrong(&w, "a message that was refused has come", number, (uint64_t)answer_of(e));
  }
  tell(&w, "messages: none lost, none twice, none that was refused");
}

/* ---- activities ------------------------------------------------------------------------------ */

static void
judge_activities(struct court *c)
{
  struct wrongs w = {.n = 0};

  for (size_t i = 0; i < c->n_entries; i++) {
    struct entry *e = &c->j->entries[i];
    const struct about *a = about(c, e->number);
    if (e->kind != SCHEDULED)
      continue;
    w.looked_at++;
    if (a->acked > 1)
      wrong(&w, "an activity was acknowledged more than once", e->number, a->acked);
    if (a->acked > 0 && !a->is_scheduled)
      wrong(&w, "an activity that no commit scheduled was acknowledged", e->number, e->by);
    if (a->is_scheduled && !a->acked && !a->maybe && !a->is_gone)
      wrong(&w, "an activity is lost", e->number, e->by);
  }
  tell(&w, "activities end once: acknowledged, or cancelled");
}

static void
judge_cancelled(struct court *c)
{
  struct wrongs w = {.n = 0};

  for (size_t i = 0; i < c->n_entries; i++) {
    struct entry *e = &c->j->entries[i];
    if (e->kind != WORK_HELD && e->kind != ACKED)
      continue;
    const struct about *a = about(c, e->number);
    bool came_after = a->is_gone && a->gone_at > 0 && e->asked > a->gone_at;
    w.looked_at++;
    if (came_after && e->kind == WORK_HELD)
      wrong(&w, "a cancelled activity was delivered after the commit", e->number, e->asked);
    if (came_after && answer_of(e) == DK_OK)
      wrong(&w, "a cancelled activity was acknowledged after the commit", e->number, e->asked);
    if (e->kind == ACKED && answer_of(e) == DK_LOCK_LOST && !a->is_gone && e->until > e->since)
      wrong(&w, "an ack was refused without a cancellation, under a live lease", e->number,
            e->asked);
  }
  tell(&w, "what a commit has cancelled is neither delivered nor acknowledged after it");
}

/* CANCEL-6, CANCEL-7: a row was ended by its ack or by the commit, whose report tells which.  Rows
 * that the commit itself has inserted are not told. */
static void
count_rows(struct court *c)
{
  for (size_t i = 0; i < c->n_entries; i++) {
    struct entry *e = &c->j->entries[i];
    const struct about *a = about(c, e->number);
    if (e->kind != CANCELLED)
      continue;
    if (a->maybe > 0)
      about(c, e->by)->is_unclear = true;
    else if (a->is_scheduled && a->scheduled_by != e->by && a->acked == 0)
      about(c, e->by)->rows++;
  }
}

static void
judge_reports(struct court *c)
{
  struct wrongs w = {.n = 0};

  count_rows(c);
  for (size_t i = 0; i < c->n_entries; i++) {
    struct entry *e = &c->j->entries[i];
    const struct about *a = about(c, e->number);
    if (e->kind != COMMITTED || e->by == 0 || answer_of(e) != DK_OK || a->is_unclear ||
        e->unknown > 0)
      continue;
    w.looked_at++;
    if (a->rows != e->rows)
      wrong(&w, "a commit told another number of deleted rows than were there", e->rows, a->rows);
  }
  tell(&w, "ack or cancellation: one of the two had the row, and the commit tells");
}

/* ---- leases ---------------------------------------------------------------------------------- */

static int
by_lease(const void *left, const void *right)
{
  const struct entry *a = *(struct entry *const *)left, *b = *(struct entry *const *)right;

  if (a->number != b->number)
    return a->number < b->number ? -1 : 1;
  if (a->since != b->since)
    return a->since < b->since ? -1 : 1;
  return (a->answered > b->answered) - (a->answered < b->answered);
}

/* When the later one was known, neither had been given back, and both leases were live.  Where they
 * began does not tell: the clock is read before a server is asked, which may come to another
 * question first, and by then the other lease may have ended. */
static bool
are_at_once(const struct entry *a, const struct entry *b)
{
  const struct entry *later = a->answered > b->answered ? a : b;

  return a->number == b->number && a->since < b->until && b->since < a->until &&
         a->answered < b->released && b->answered < a->released &&
         later->seen < a->until && later->seen < b->until;
}

static void
tell_lease(const struct entry *e, size_t n)
{
  if (n <= 5)
    diag("  a lease from %" PRId64 " for %" PRId64 " ms; asked for at tick %" PRIu64
         ", known at %" PRIu64 " and %" PRId64 ", given back at %" PRIu64, e->since,
         e->until - e->since, e->asked, e->answered, e->seen, e->released);
}

static void
judge_leases(struct court *c, enum kind kind, const char *name)
{
  struct entry **held = calloc(c->n_entries + 1, sizeof *held);
  struct wrongs w = {.n = 0};
  size_t n = 0;

  if (!held)
    BAIL_OUT("out of memory");
  for (size_t i = 0; i < c->n_entries; i++)
    if (c->j->entries[i].kind == (int32_t)kind && answer_of(&c->j->entries[i]) == DK_OK)
      held[n++] = &c->j->entries[i];
  qsort(held, n, sizeof(struct entry *), by_lease);
  w.looked_at = n;
  for (size_t i = 1; i < n; i++)
    if (are_at_once(held[i], held[i - 1])) {
      wrong(&w, "two had it at once", held[i]->number, held[i]->answered);
      tell_lease(held[i - 1], w.n);
      tell_lease(held[i], w.n);
    }
  free(held);
  tell(&w, name);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Each unknown outcome was found out, except of acks, whose row is deleted in both cases. */
static void
judge_unknown(struct court *c)
{
  size_t n = 0, landed_ones = 0;
  uint64_t unresolved = atomic_load(&c->j->unresolved);

  for (size_t i = 0; i < c->n_entries; i++) {
    struct entry *e = &c->j->entries[i];
    n += e->unknown > 0;
    landed_ones += e->unknown > 0 && e->kind == COMMITTED && landed(c, e->number);
  }
  ok(unresolved == 0, "%zu outcomes were unknown; %zu commits of them had landed; %" PRIu64
     " have stayed unknown", n, landed_ones, unresolved);
}

static void
tell_figures(const struct run *run)
{
  static const char *const names[ANSWERS] = {"DK_OK", "nothing", "lock lost", "to be repeated",
                                             "unknown"};

  for (int i = 0; i < ANSWERS; i++)
    diag("answers: %s %" PRIuFAST64, names[i], atomic_load(&run->journal->answers[i]));
}

void
judge(const struct run *run, const struct told *told)
{
  struct court c = {.run = run, .j = run->journal};

  c.n_numbers = atomic_load(&run->journal->number) + 1;
  c.n_entries = atomic_load(&run->journal->n);
  c.about = calloc(c.n_numbers, sizeof *c.about);
  if (!c.about)
    BAIL_OUT("out of memory");
  tell_figures(run);
  gather_facts(&c, told);
  gather_entries(&c);
  judge_commits(&c);
  judge_messages(&c);
  judge_activities(&c);
  judge_cancelled(&c);
  judge_reports(&c);
  judge_leases(&c, TURN_HELD, "one live lease for an instance");
  judge_leases(&c, WORK_HELD, "one live lease for an activity");
  judge_unknown(&c);
  free(c.about);
}
