/* SPDX-License-Identifier: Apache-2.0 */
/* Selects checks by id, pattern, clause, area and topic.  Owns nothing. */
#include "runner/run/plan.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conformance/checks/topics.h"
#include "conformance/contract/contract.h"
#include "conformance/contract/mutants.h"
#include "conformance/kit/engine.h"
#include "core/base/checksum.h"
#include "runner/cli/suggest.h"
#include "runner/cli/usage.h"

uint64_t
plan_manifest(void)
{
  uint64_t hash = dk_contract_hash();
  size_t n;
  const struct check *const *checks = dk_checks(&n);

  for (size_t i = 0; i < n; i++) {
    hash = dk_fnv1a64(hash, checks[i]->id, strlen(checks[i]->id) + 1);
    hash = dk_fnv1a64(hash, checks[i]->clauses, strlen(checks[i]->clauses) + 1);
  }
  checks = dk_runtime_checks(&n);
  for (size_t i = 0; i < n; i++)
    hash = dk_fnv1a64(hash, checks[i]->id, strlen(checks[i]->id) + 1);
  const struct dk_mutant *mutants = dk_mutants(&n);
  for (size_t i = 0; i < n; i++)
    hash = dk_fnv1a64(hash, mutants[i].id, strlen(mutants[i].id) + 1);
  return hash;
}

/* ---- all that can be selected: the contract's, the runtime's, and last memory/cycle ---------- */

size_t
plan_count(void)
{
  size_t n_core;
  size_t n_runtime;

  dk_checks(&n_core);
  dk_runtime_checks(&n_runtime);
  return n_core + n_runtime + 1;
}

const struct check *
plan_check(size_t i)
{
  size_t n_core;
  size_t n_runtime;
  const struct check *const *core = dk_checks(&n_core);
  const struct check *const *runtime = dk_runtime_checks(&n_runtime);

  if (i < n_core)
    return core[i];
  return i - n_core < n_runtime ? runtime[i - n_core] : &kit_memory_cycle;
}

/* Behind them the varied ones. */
static size_t
count_all(void)
{
  return plan_count() + dk_varied_count();
}

static const struct check *
any_check(size_t i)
{
  return i < plan_count() ? plan_check(i) : dk_varied_check(i - plan_count());
}

static bool
is_of_effort(const struct options *options, size_t i)
{
  if (i < plan_count())
    return true;
  if (options->command != COMMAND_CERTIFY || options->effort == EFFORT_QUICK)
    return false;
  return options->effort == EFFORT_DEEP || dk_variation_is_usual(i - plan_count());
}

/* What a provider declares is judged with its core: the checks of an extension belong to both
 * profiles. */
bool
plan_is_of_profile(const struct check *check, enum profile profile)
{
  unsigned of = (check->flags & IS_RUNTIME) != 0   ? PROFILE_RUNTIME
                : (check->needs & NEEDS_ADMIN) != 0 ? PROFILE_CORE | PROFILE_ADMIN
                                                    : PROFILE_CORE;

  return ((unsigned)profile & of) != 0;
}

static bool
declares(const struct kit_probe *probe, const char *extension)
{
  for (uint32_t i = 0; i < probe->n_extensions; i++)
    if (strcmp(probe->extensions[i], extension) == 0)
      return true;
  return false;
}

bool
plan_is_offered(const struct check *check, const struct kit_probe *probe, bool has_store)
{
  bool in_turn = (check->needs & NEEDS_FILES) != 0;
  struct {
    uint32_t need;
    bool is_there;
  } needs[] = {
    {NEEDS_ADMIN, declares(probe, "durakit.admin/1")},
    {NEEDS_HANDLES, probe->shared >= 1 && has_store},
    {NEEDS_RIVALS, probe->thread_model >= DK_PARALLEL || probe->shared >= 1},
    {NEEDS_PROCESSES, probe->shared >= 2 && has_store},
    {NEEDS_STORE, has_store},
    {NEEDS_DURABLE, probe->durable >= 1},
    {NEEDS_SERVER, probe->shared >= 3},
    {NEEDS_WORKER_ENQUEUE, probe->has_enqueue_for_worker},
    {NEEDS_RELEASE, probe->has_release_fetch},
    {NEEDS_HOST_CLOCK, (probe->clocks & DK_CLOCK_HOST) != 0},
    {NEEDS_TWO_CLOCKS, probe->clocks == (DK_CLOCK_HOST | DK_CLOCK_STORE)},
    {NEEDS_STORE_CLOCK, (probe->clocks & DK_CLOCK_STORE) != 0},
  };

  for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
    if ((check->needs & needs[i].need) != 0 && !needs[i].is_there)
      return false;
  return check->processes == 0 || in_turn || probe->shared >= 2;
}

const struct check *
plan_find(const char *id)
{
  for (size_t i = 0; i < count_all(); i++) {
    if (strcmp(any_check(i)->id, id) == 0)
      return any_check(i);
  }
  return NULL;
}

size_t
plan_first_clause(const struct check *check)
{
  return strcspn(check->clauses, " ,");
}

bool
plan_is_first(const struct check *check, const char *clause)
{
  size_t n = strlen(clause);

  return plan_first_clause(check) == n && strncasecmp(check->clauses, clause, n) == 0;
}

bool
plan_tests(const struct check *check, const char *clause)
{
  size_t n = strlen(clause);

  for (const char *at = check->clauses; *at; at += strspn(at, " ,")) {
    size_t length = strcspn(at, " ,");
    if (length == n && strncasecmp(at, clause, n) == 0)
      return true;
    at += length;
  }
  return false;
}

/* "cancel" is the area, as in "cancel/..." and CANCEL-5. */
static bool
is_in_area(const struct check *check, const char *area)
{
  size_t n = strlen(area);

  return n > 0 && strncasecmp(check->id, area, n) == 0 && check->id[n] == '/';
}

static bool
check_fits(const struct check *check, const char *pattern)
{
  const struct dk_topic *topic = dk_topic_find(pattern);

  if (check->variation && (!dk_variation_applies(check) || !strchr(pattern, '~')))
    return false;
  if (topic)
    return dk_topic_has(topic, check->id);
  return fnmatch(pattern, check->id, 0) == 0 || plan_tests(check, pattern)
         || is_in_area(check, pattern);
}

/* ---- patterns that select nothing ------------------------------------------------------------ */

static void
try_names(struct suggest *nearest)
{
  size_t n;

  for (size_t i = 0; i < plan_count(); i++)
    suggest_try(nearest, plan_check(i)->id);
  const struct dk_clause *clauses = dk_clauses(&n);
  for (size_t i = 0; i < n; i++)
    suggest_try(nearest, clauses[i].id);
  const struct dk_topic *topics = dk_topics(&n);
  for (size_t i = 0; i < n; i++)
    suggest_try(nearest, topics[i].name);
}

/* For "cancl/..." and "cancl*" the area cancel; "" if no area with checks is similar. */
static void
nearest_area(const char *pattern, char *area, size_t size)
{
  size_t n;
  size_t n_checks;
  const struct dk_area *areas = dk_areas(&n);
  const struct check *const *checks = dk_checks(&n_checks);
  char *word = strndup(pattern, strcspn(pattern, "/*?["));
  struct suggest nearest = {.word = word ? word : ""};

  for (size_t i = 0; i < n; i++) {
    bool has_checks = false;
    for (size_t j = 0; j < n_checks && !has_checks; j++)
      has_checks = is_in_area(checks[j], areas[i].id);
    if (has_checks)
      suggest_try(&nearest, areas[i].id);
  }
  snprintf(area, size, "%s", nearest.best ? nearest.best : "");
  for (char *c = area; *c; c++)
    *c = (char)tolower((unsigned char)*c);
  free(word);
}

/* A clause or a pattern that is valid and selects no check. */
static int
say_nothing_selected(const char *pattern, const struct dk_clause *clause)
{
  const char *why = !clause ? "no check matches this pattern, so nothing is selected"
                    : clause->planned_issue
                      ? "no check tests this clause yet, so nothing is selected"
                      : "no check names this clause first: the host or the loader enforces "
                        "it, or its CHECK is missing, so nothing is selected";
  char area[32] = "";
  struct dk_text next = DK_TEXT_EMPTY;

  if (!clause)
    nearest_area(pattern, area, sizeof(area));
  if (area[0])
    dk_text_printf(&next, "did you mean %s/*? ", area);
  dk_text_puts(&next, "durakit list checks shows what can be selected");
  message_problem(&(struct problem){.where = pattern, .what = why, .next = dk_text_str(&next)},
                  NULL);
  dk_text_done(&next);
  return EXIT_INCOMPLETE;
}

static const struct dk_clause *
find_clause(const char *id)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);

  for (size_t i = 0; i < n; i++) {
    if (strcasecmp(clauses[i].id, id) == 0)
      return &clauses[i];
  }
  return NULL;
}

static int
say_nothing_fits(const struct options *options, const char *pattern)
{
  struct suggest nearest = {.word = pattern};
  struct dk_text next = DK_TEXT_EMPTY;
  const struct dk_clause *clause = find_clause(pattern);

  if (clause || strpbrk(pattern, "*?["))
    return say_nothing_selected(pattern, clause);
  try_names(&nearest);
  int code = usage(options, pattern, "there is no such check, clause, area or topic", NULL,
                   message_did_you_mean(&next, nearest.best, "durakit list checks shows all"));
  dk_text_done(&next);
  return code;
}

/* The checks of the runtime also have clauses of the contract, but take real time: outside their
 * profile they run only if they are named. */
static bool
names_runtime(const char *pattern)
{
  return strcasecmp(pattern, "run") == 0 || strncmp(pattern, "run/", 4) == 0;
}

/* Marks the checks that match the first of the comma-separated patterns at `list`; moves on. */
static int
mark_one(const struct options *options, const char **list, bool *marked)
{
  char *pattern = strndup(*list, strcspn(*list, ","));
  bool found = false;

  if (!pattern) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  size_t length = strlen(pattern);
  char *mode = strstr(pattern, "@memcheck");
  if (mode)
    *mode = '\0';
  for (size_t i = 0; i < count_all(); i++) {
    const struct check *check = any_check(i);
    if (check_fits(check, pattern)
        && (plan_is_of_profile(check, options->profile) || names_runtime(pattern)))
      found = marked[i] = true;
  }
  int code = found ? EXIT_PASSED : say_nothing_fits(options, pattern);
  *list += length;
  *list += **list == ',' ? 1 : 0;
  free(pattern);
  return code;
}

static int
mark(const struct options *options, bool *marked)
{
  for (size_t i = 0; options->n_only == 0 && i < count_all(); i++)
    marked[i] = plan_is_of_profile(any_check(i), options->profile) &&
                dk_variation_applies(any_check(i)) && is_of_effort(options, i);
  for (size_t i = 0; i < options->n_only; i++) {
    const char *list = options->only[i];
    do {
      int code = mark_one(options, &list, marked);
      if (code != EXIT_PASSED)
        return code;
    } while (*list);
  }
  return EXIT_PASSED;
}

const struct check **
plan_select(const struct options *options, size_t *ret_n, int *ret_code)
{
  size_t n = count_all();
  const struct check **selected = calloc(n + 1, sizeof(const struct check *));
  bool *marked = calloc(n, sizeof(*marked));
  size_t taken = 0;

  *ret_code = EXIT_ENVIRONMENT;
  if (selected && marked)
    *ret_code = mark(options, marked);
  else
    message_print("out of memory");
  for (size_t i = 0; *ret_code == EXIT_PASSED && i < n; i++) {
    if (marked[i])
      selected[taken++] = any_check(i);
  }
  free(marked);
  if (*ret_code == EXIT_PASSED && taken == 0) {
    message_print("nothing is selected: this kit has no checks");
    *ret_code = EXIT_INCOMPLETE;
  }
  if (*ret_code != EXIT_PASSED) {
    free(selected);
    return NULL;
  }
  *ret_n = taken;
  return selected;
}
