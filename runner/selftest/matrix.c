/* SPDX-License-Identifier: Apache-2.0 */
/* The kill matrix: checks against mutants of the model.  The clean run shows which mutants would
 * have mattered in which check; only those cells are run, which is sound for sequential checks.
 * And of those only the cells that decide something: each mutant on the check that is meant to
 * catch it, and on the other checks of the same clause, which must catch different mutants.  With
 * --verbose all cells that matter are run, to show which checks catch which mutants.  Owns the
 * table of cells. */
#include <stdlib.h>
#include <string.h>

#include "conformance/contract/contract.h"
#include "conformance/contract/mutants.h"
#include "conformance/fixtures/zoo.h"
#include "runner/report/out.h"
#include "runner/run/plan.h"
#include "runner/selftest/selftest.h"

enum { TIMES_CLEAN = 20, LEAST_CELL_MS = 5000, MOST_TRIES = 8 /* of a race */ };

struct matrix {
  struct selftest *selftest;
  const struct check **checks;
  size_t n_checks;
  const struct dk_mutant *mutants;
  size_t n_mutants;
  uint8_t *reached;     /* [check][mutant] in the clean run */
  uint8_t *verdicts;    /* [check][mutant]; VERDICT_NONE: not run */
  int64_t *clean_ms;    /* [check] */
};

/* A list of cells to run; mutant n_mutants stands for no mutant. */
struct cell {
  uint32_t check, mutant;
};
struct cells {
  struct cell *items;
  size_t n;
};

typedef void take_fn(struct matrix *matrix, const struct cell *cell,
                     const struct outcome *outcome);

static uint8_t *
at(uint8_t *table, const struct matrix *matrix, size_t check, size_t mutant)
{
  return &table[check * matrix->n_mutants + mutant];
}

/* The share of the work: the time of the clean run.  A race has the machine to itself. */
static double
weight(const struct matrix *matrix, const struct cell *cell)
{
  const struct check *check = matrix->checks[cell->check];

  return (double)(matrix->clean_ms[cell->check] + 1)
         * (check->flags & IS_RACE ? matrix->selftest->options->jobs : 1);
}

static bool
is_race(const struct matrix *matrix, const struct cell *cell)
{
  return (matrix->checks[cell->check]->flags & IS_RACE) != 0;
}

/* ---- running cells --------------------------------------------------------------------------- */

static bool
start_cell(struct matrix *matrix, const struct cells *cells, size_t number,
           struct dk_setting *setting)
{
  const struct cell *cell = &cells->items[number];
  struct run *run = &matrix->selftest->run;
  struct task task = run_task(run, TASK_CHECK);
  int64_t clean = matrix->clean_ms[cell->check];

  task.job.check = matrix->checks[cell->check];
  task.job.number = (uint32_t)number + 1;
  task.job.brief = true;
  task.job.seed = 1; /* random checks make the same calls each time */
  task.deadline_ms = run->deadline_ms;
  task.tag = number;
  if (cell->mutant < matrix->n_mutants) {
    const char *id = matrix->mutants[cell->mutant].id;
    *setting = (struct dk_setting){"mutant", {id, strlen(id)}};
    task.job.settings = setting;
    task.job.n_settings = 1;
    task.deadline_ms = clean * TIMES_CLEAN > LEAST_CELL_MS ? clean * TIMES_CLEAN : LEAST_CELL_MS;
  }
  return engine_start(run->engine, &task);
}

/* A race has the machine to itself. */
static bool
may_start(const struct matrix *matrix, const struct cells *cells, size_t next, bool race_runs)
{
  const struct engine *engine = matrix->selftest->run.engine;

  if (next >= cells->n || engine_interrupted(engine) || !engine_has_room(engine))
    return false;
  return !(race_runs || is_race(matrix, &cells->items[next])) || engine_running(engine) == 0;
}

/* The settings must last until the child has its copy: here until fork. */
static int
run_cells(struct matrix *matrix, const struct cells *cells, take_fn *take)
{
  struct engine *engine = matrix->selftest->run.engine;
  size_t next = 0, n_done = 0;
  bool race_runs = false;
  double all = 0, done = 0;

  for (size_t i = 0; i < cells->n; i++)
    all += weight(matrix, &cells->items[i]);

  while (next < cells->n || engine_running(engine) > 0) {
    while (may_start(matrix, cells, next, race_runs)) {
      struct dk_setting setting;
      if (!start_cell(matrix, cells, next, &setting))
        break;
      race_runs = is_race(matrix, &cells->items[next++]);
    }
    struct outcome *outcome = engine_wait(engine);
    race_runs = false;
    if (outcome) {
      done += weight(matrix, &cells->items[outcome->tag]);
      n_done++;
    }
    if (outcome && !outcome->interrupted)
      take(matrix, &cells->items[outcome->tag], outcome);
    selftest_progress(matrix->selftest, n_done, cells->n, all > 0 && done < all ? done / all : 1);
    if (!outcome && (engine_interrupted(engine) || next < cells->n))
      return EXIT_INCOMPLETE;
    outcome_free(outcome);
  }
  return engine_interrupted(engine) ? EXIT_INCOMPLETE : EXIT_PASSED;
}

/* ---- the model itself ------------------------------------------------------------------------ */

/* Results that are no fault of the model.  On a busy machine a race may overlap too seldom to be
 * judged; it must still catch its mutants. */
static bool
is_clean(const struct check *check, enum verdict verdict)
{
  if (check->needs & NEEDS_SERVER) /* on the zoo's server, which has one */
    return verdict == VERDICT_SKIP;
  return verdict == VERDICT_PASS || (check->flags & IS_RACE && verdict == VERDICT_UNEXERCISED);
}

_Static_assert((size_t)DK_MUTANTS <= KIT_MAX_MUTANTS, "a report has room for all mutants");

static void
take_clean(struct matrix *matrix, const struct cell *cell, const struct outcome *outcome)
{
  const struct check *check = matrix->checks[cell->check];
  struct dk_text name = DK_TEXT_EMPTY;
  struct dk_text detail = DK_TEXT_EMPTY;
  bool passed = is_clean(check, outcome->verdict);

  for (size_t m = 0; m < matrix->n_mutants; m++)
    *at(matrix->reached, matrix, cell->check, m) |= outcome->report->reached[m] ? 1 : 0;
  int64_t ms = outcome->wall_ns / 1000000 + 1;
  matrix->clean_ms[cell->check] =
    ms > matrix->clean_ms[cell->check] ? ms : matrix->clean_ms[cell->check];
  dk_text_printf(&name, check->needs & NEEDS_SERVER
                          ? "the model, which has no server, is not judged by %s"
                          : "the model passes %s", check->id);
  if (passed && outcome->verdict == VERDICT_UNEXERCISED)
    dk_text_puts(&name, ", as far as its race overlapped");
  dk_text_printf(&detail, "%s: %s", verdict_name(outcome->verdict), outcome->report->message);
  if (outcome->verdict == VERDICT_SKIP)
    dk_text_printf(&detail, "%s", outcome->report->skip_reason);
  selftest_point(matrix->selftest, passed, dk_text_str(&name), dk_text_str(&detail));
  dk_text_done(&name);
  dk_text_done(&detail);
}

static void
shuffle(struct cells *cells, uint64_t seed)
{
  uint64_t x = seed ? seed : 1;

  for (size_t i = cells->n; i > 1; i--) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    size_t j = (size_t)(x % i);
    struct cell swapped = cells->items[j];
    cells->items[j] = cells->items[i - 1];
    cells->items[i - 1] = swapped;
  }
}

/* In plan order, then once more in another order. */
static int
run_clean(struct matrix *matrix, struct cells *cells)
{
  cells->n = 0;
  out_part(matrix->selftest->run.out, "the model");
  for (size_t c = 0; c < matrix->n_checks; c++)
    cells->items[cells->n++] = (struct cell){(uint32_t)c, (uint32_t)matrix->n_mutants};
  int code = run_cells(matrix, cells, take_clean);
  if (code != EXIT_PASSED)
    return code;
  out_part(matrix->selftest->run.out, "the model in another order");
  shuffle(cells, matrix->selftest->options->seed);
  return run_cells(matrix, cells, take_clean);
}

/* ---- mutants --------------------------------------------------------------------------------- */

static void
take_mutant(struct matrix *matrix, const struct cell *cell, const struct outcome *outcome)
{
  *at(matrix->verdicts, matrix, cell->check, cell->mutant) = (uint8_t)outcome->verdict;
}

/* Caught: an expectation or the comparison of the process failed.  A crash or a time-out does not
 * count. */
static bool
is_kill(enum verdict verdict)
{
  return verdict == VERDICT_FAIL || verdict == VERDICT_HOST_DAMAGE;
}

static size_t
number_of_check(const struct matrix *matrix, const char *id)
{
  for (size_t c = 0; c < matrix->n_checks; c++) {
    if (strcmp(matrix->checks[c]->id, id) == 0)
      return c;
  }
  return matrix->n_checks;
}

static bool
same_clause(const struct matrix *matrix, size_t a, size_t b)
{
  size_t n = plan_first_clause(matrix->checks[a]);

  return plan_first_clause(matrix->checks[b]) == n
         && memcmp(matrix->checks[a]->clauses, matrix->checks[b]->clauses, n) == 0;
}

/* In a race another order may reach code that the clean runs did not: so it is run on the mutants
 * that it is meant to catch, even if those runs did not reach them.  A check in real time is run on
 * no others. */
static bool
matters(struct matrix *matrix, size_t c, size_t m)
{
  uint32_t flags = matrix->checks[c]->flags;
  bool is_meant = strcmp(matrix->mutants[m].check, matrix->checks[c]->id) == 0;

  return (*at(matrix->reached, matrix, c, m) && (is_meant || !(flags & IS_SLOW)))
         || (is_meant && (flags & IS_RACE));
}

static bool
decides(const struct matrix *matrix, size_t c, size_t m)
{
  size_t meant = number_of_check(matrix, matrix->mutants[m].check);

  return matrix->selftest->options->verbose || meant == c ||
         (meant < matrix->n_checks && same_clause(matrix, meant, c));
}

static void
add_cell(struct cells *cells, size_t c, size_t m)
{
  cells->items[cells->n++] = (struct cell){(uint32_t)c, (uint32_t)m};
}

static int
run_mutants(struct matrix *matrix, struct cells *cells)
{
  cells->n = 0;
  out_part(matrix->selftest->run.out, "mutants");
  for (int races = 0; races < 2; races++) {
    for (size_t m = 0; m < matrix->n_mutants; m++) {
      for (size_t c = 0; c < matrix->n_checks; c++) {
        bool race = (matrix->checks[c]->flags & IS_RACE) != 0;
        if (race == (races == 1) && decides(matrix, c, m) && matters(matrix, c, m))
          add_cell(cells, c, m);
      }
    }
  }
  return run_cells(matrix, cells, take_mutant);
}

/* A race overlaps by chance, and on a busy machine less often: if it has missed a mutant that it is
 * meant to catch, it is run again. */
static int
run_missed_races(struct matrix *matrix, struct cells *cells)
{
  int code = EXIT_PASSED;

  for (int tries = 0; tries < MOST_TRIES && code == EXIT_PASSED; tries++) {
    cells->n = 0;
    for (size_t m = 0; m < matrix->n_mutants; m++) {
      for (size_t c = 0; c < matrix->n_checks; c++) {
        if ((matrix->checks[c]->flags & IS_RACE)
            && strcmp(matrix->mutants[m].check, matrix->checks[c]->id) == 0
            && !is_kill((enum verdict)*at(matrix->verdicts, matrix, c, m)))
          add_cell(cells, c, m);
      }
    }
    out_part(matrix->selftest->run.out, "mutants that a race has missed");
    if (cells->n > 0)
      code = run_cells(matrix, cells, take_mutant);
  }
  return code;
}

/* ---- the share of the random checks ---------------------------------------------------------- */

static bool
is_random(const struct check *check)
{
  return strncmp(check->id, "random/", 7) == 0;
}

static bool
is_found_at_random(const struct matrix *matrix, size_t m)
{
  for (size_t c = 0; c < matrix->n_checks; c++)
    if (is_random(matrix->checks[c]) &&
        is_kill((enum verdict)*at(matrix->verdicts, matrix, c, m)))
      return true;
  return false;
}

/* Only where calls overlap: random calls do not, and what waits for others to come in between would
 * take all of its time in each of them. */
static bool
is_of_race(const struct matrix *matrix, size_t m)
{
  size_t c = number_of_check(matrix, matrix->mutants[m].check);

  return c < matrix->n_checks && (matrix->checks[c]->flags & IS_RACE) != 0;
}

/* One random check after the other, each on the mutants that were not found by those before it. */
static int
run_random(struct matrix *matrix, struct cells *cells, size_t *n_run)
{
  int code = EXIT_PASSED;

  out_part(matrix->selftest->run.out, "random checks on all mutants");
  for (size_t c = 0; c < matrix->n_checks && code == EXIT_PASSED; c++) {
    cells->n = 0;
    for (size_t m = 0; is_random(matrix->checks[c]) && m < matrix->n_mutants; m++)
      if (*at(matrix->reached, matrix, c, m) && !is_of_race(matrix, m)
          && !is_found_at_random(matrix, m)
          && *at(matrix->verdicts, matrix, c, m) == VERDICT_NONE)
        add_cell(cells, c, m);
    code = run_cells(matrix, cells, take_mutant);
    *n_run += cells->n;
  }
  return code;
}

/* The rest needs what random calls do not do: races, other clocks, payloads at the limits. */
static void
judge_random(struct matrix *matrix)
{
  enum { LEAST_PERCENT = 86 };
  struct dk_text name = DK_TEXT_EMPTY, missed = DK_TEXT_EMPTY;
  size_t found = 0;

  for (size_t m = 0; m < matrix->n_mutants; m++) {
    if (is_found_at_random(matrix, m))
      found++;
    else
      dk_text_printf(&missed, "%s%s", missed.length ? " " : "not: ", matrix->mutants[m].id);
  }
  dk_text_printf(&name, "random checks find %zu of %zu mutants, at least %d %%", found,
                 matrix->n_mutants, LEAST_PERCENT);
  selftest_point(matrix->selftest, found * 100 >= matrix->n_mutants * LEAST_PERCENT,
                 dk_text_str(&name), dk_text_str(&missed));
  if (matrix->selftest->options->verbose)
    selftest_note(matrix->selftest, "%s", dk_text_str(&missed));
  dk_text_done(&name);
  dk_text_done(&missed);
}

static bool
same_kills(struct matrix *matrix, size_t a, size_t b)
{
  bool any = false;

  for (size_t m = 0; m < matrix->n_mutants; m++) {
    bool in_a = *at(matrix->verdicts, matrix, a, m) == VERDICT_FAIL;
    bool in_b = *at(matrix->verdicts, matrix, b, m) == VERDICT_FAIL;
    if (in_a != in_b)
      return false;
    any = any || in_a;
  }
  return any;
}

static bool
is_like_another(struct matrix *matrix, size_t a)
{
  for (size_t b = 0; b < matrix->n_checks; b++)
    if (b != a && same_clause(matrix, a, b) && same_kills(matrix, a, b))
      return true;
  return false;
}

/* The cells not run yet, of some mutants and of the checks that still equal another. */
static void
add_rest(struct matrix *matrix, struct cells *cells, size_t from, size_t until)
{
  for (size_t c = 0; c < matrix->n_checks; c++) {
    if (!is_like_another(matrix, c))
      continue;
    for (size_t m = from; m < until; m++)
      if (!decides(matrix, c, m) && matters(matrix, c, m))
        add_cell(cells, c, m);
  }
}

/* Two checks of one clause that have caught the same so far may differ on mutants that they are not
 * meant to catch: those are run in small portions, until the two differ. */
static int
run_rest_of_pairs(struct matrix *matrix, struct cells *cells, size_t *n_run)
{
  enum { A_BIT = 16 };
  int code = EXIT_PASSED;

  out_part(matrix->selftest->run.out, "checks that still catch the same");
  for (size_t m = 0; m < matrix->n_mutants && code == EXIT_PASSED; m += A_BIT) {
    size_t until = m + A_BIT < matrix->n_mutants ? m + A_BIT : matrix->n_mutants;

    cells->n = 0;
    add_rest(matrix, cells, m, until);
    code = run_cells(matrix, cells, take_mutant);
    *n_run += cells->n;
  }
  return code;
}

static void
list_catchers(const struct matrix *matrix, size_t mutant, struct dk_text *text)
{
  size_t meant = number_of_check(matrix, matrix->mutants[mutant].check);

  for (size_t c = 0; c < matrix->n_checks; c++) {
    if (c != meant && is_kill((enum verdict)*at(matrix->verdicts, matrix, c, mutant)))
      dk_text_printf(text, " %s", matrix->checks[c]->id);
  }
}

/* Each mutant is caught by the check that is meant to catch it. */
static void
judge_mutant(struct matrix *matrix, size_t m)
{
  const struct dk_mutant *mutant = &matrix->mutants[m];
  size_t c = number_of_check(matrix, mutant->check);
  struct dk_text name = DK_TEXT_EMPTY;
  struct dk_text detail = DK_TEXT_EMPTY;
  struct dk_text others = DK_TEXT_EMPTY;
  enum verdict verdict =
    c < matrix->n_checks ? (enum verdict)*at(matrix->verdicts, matrix, c, m) : VERDICT_NONE;

  list_catchers(matrix, m, &others);
  dk_text_printf(&name, "%s is caught by %s", mutant->id, mutant->check);
  if (c == matrix->n_checks)
    dk_text_puts(&detail, "there is no such check");
  else if (verdict == VERDICT_NONE)
    dk_text_puts(&detail, "the check never reaches the code that it changes");
  else
    dk_text_printf(&detail, "%s", verdict_name(verdict));
  dk_text_printf(&detail, "; caught by:%s", others.length ? dk_text_str(&others) : " no check");
  matrix->selftest->caught += is_kill(verdict) ? 1u : 0u;
  selftest_point(matrix->selftest, is_kill(verdict), dk_text_str(&name), dk_text_str(&detail));
  if (matrix->selftest->options->verbose)
    selftest_note(matrix->selftest, "%-40s %s%s%s", mutant->id, mutant->check,
                  others.length ? ", and" : "", dk_text_str(&others));
  dk_text_done(&name);
  dk_text_done(&detail);
  dk_text_done(&others);
}

/* ---- rules for the tables -------------------------------------------------------------------- */

/* Some plugins of the zoo have defects that the model cannot have: mutants of one check. */
static bool
is_for_fixture(const char *check)
{
  size_t n;
  const struct dk_fixture *fixtures = dk_zoo(&n);

  for (size_t i = 0; i < n; i++)
    if (fixtures[i].only && strcmp(fixtures[i].only, check) == 0 &&
        strcmp(fixtures[i].verdict, "fail") == 0)
      return true;
  return false;
}

/* A check that catches nothing of its own is not needed: so each check is meant for a mutant, and
 * must catch it. */
static void
judge_check(struct matrix *matrix, size_t c)
{
  struct dk_text name = DK_TEXT_EMPTY;
  const char *id = matrix->checks[c]->id;
  bool catches = is_for_fixture(id);

  for (size_t m = 0; m < matrix->n_mutants && !catches; m++)
    catches = strcmp(matrix->mutants[m].check, id) == 0 &&
              is_kill((enum verdict)*at(matrix->verdicts, matrix, c, m));
  dk_text_printf(&name, "%s catches a mutant that is meant for it", id);
  selftest_point(matrix->selftest, catches, dk_text_str(&name), NULL);
  dk_text_done(&name);
}

static void
judge_clause(struct matrix *matrix, const struct dk_clause *clause)
{
  struct dk_text name = DK_TEXT_EMPTY;
  bool tested = false;

  if (clause->by != DK_BY_CHECK)
    return;
  /* Checks may test a part of a planned clause already, but no check is for it. */
  for (size_t c = 0; c < matrix->n_checks && !tested; c++)
    tested = clause->planned_issue ? plan_is_first(matrix->checks[c], clause->id)
                                   : plan_tests(matrix->checks[c], clause->id);
  dk_text_printf(&name, clause->planned_issue ? "%s is planned, and has no check yet"
                                              : "%s has a check", clause->id);
  selftest_point(matrix->selftest, tested == (clause->planned_issue == 0), dk_text_str(&name),
                 tested ? "it has one" : "it has none");
  dk_text_done(&name);
}

/* If two checks for one clause catch the same mutants, one of them is not needed. */
static void
judge_kill_sets(struct matrix *matrix)
{
  struct dk_text pairs = DK_TEXT_EMPTY;

  for (size_t a = 0; a < matrix->n_checks; a++) {
    for (size_t b = a + 1; b < matrix->n_checks; b++) {
      if (same_clause(matrix, a, b) && same_kills(matrix, a, b))
        dk_text_printf(&pairs, "%s%s and %s", pairs.length ? "; " : "", matrix->checks[a]->id,
                       matrix->checks[b]->id);
    }
  }
  selftest_point(matrix->selftest, pairs.length == 0,
                 "no two checks for one clause catch the same mutants", dk_text_str(&pairs));
  dk_text_done(&pairs);
}

static void
judge_matrix(struct matrix *matrix)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);

  for (size_t m = 0; m < matrix->n_mutants; m++)
    judge_mutant(matrix, m);
  for (size_t c = 0; c < matrix->n_checks; c++)
    judge_check(matrix, c);
  for (size_t i = 0; i < n; i++)
    judge_clause(matrix, &clauses[i]);
  judge_kill_sets(matrix);
  judge_random(matrix);
}

/* All checks, and those of their variations that a mutant is meant for.  False: no memory. */
static bool
collect_checks(struct matrix *matrix)
{
  size_t n;
  const struct check *const *all = dk_checks(&n);

  matrix->checks = calloc(n + matrix->n_mutants, sizeof(const struct check *));
  for (size_t i = 0; matrix->checks && i < n; i++)
    matrix->checks[matrix->n_checks++] = all[i];
  for (size_t m = 0; matrix->checks && m < matrix->n_mutants; m++) {
    const char *id = matrix->mutants[m].check;
    const struct check *varied = strchr(id, '~') ? plan_find(id) : NULL;
    if (varied && number_of_check(matrix, id) == matrix->n_checks)
      matrix->checks[matrix->n_checks++] = varied;
  }
  return matrix->checks != NULL;
}

int
matrix_run(struct selftest *selftest)
{
  struct matrix matrix = {.selftest = selftest};
  struct cells cells = {0};
  int code = EXIT_ENVIRONMENT;

  matrix.mutants = dk_mutants(&matrix.n_mutants);
  if (!collect_checks(&matrix))
    return EXIT_ENVIRONMENT;
  selftest->mutants = (unsigned)matrix.n_mutants;
  size_t n = matrix.n_checks * (matrix.n_mutants + 1);
  matrix.reached = calloc(n, 1);
  matrix.verdicts = calloc(n, 1);
  matrix.clean_ms = calloc(matrix.n_checks, sizeof(*matrix.clean_ms));
  cells.items = calloc(n, sizeof(*cells.items));
  if (matrix.reached && matrix.verdicts && matrix.clean_ms && cells.items)
    code = run_clean(&matrix, &cells);
  if (code == EXIT_PASSED)
    code = run_mutants(&matrix, &cells);
  size_t n_run = cells.n;
  if (code == EXIT_PASSED)
    code = run_missed_races(&matrix, &cells);
  if (code == EXIT_PASSED)
    code = run_rest_of_pairs(&matrix, &cells, &n_run);
  if (code == EXIT_PASSED)
    code = run_random(&matrix, &cells, &n_run);
  if (code == EXIT_PASSED) {
    selftest_note(selftest, "%zu of %zu cells were run", n_run,
                  matrix.n_checks * matrix.n_mutants);
    selftest->mutants_are_judged = true;
    judge_matrix(&matrix);
  }
  free(matrix.checks);
  free(matrix.reached);
  free(matrix.verdicts);
  free(matrix.clean_ms);
  free(cells.items);
  return code;
}
