/* SPDX-License-Identifier: Apache-2.0 */
/* Prints coverage.md: each clause with its checks, each check with what it is known to catch,
 * and each test that the design papers name with the checks that answer it.
 *
 * Ends with 1, and says why, when a clause is judged by nothing, when a check catches nothing, when
 * what a paper names is not answered once, or when an answer names no check or one that does not
 * exist.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "conformance/checks/checks.h"
#include "conformance/contract/contract.h"
#include "conformance/contract/mutants.h"
#include "conformance/fixtures/zoo.h"
#include "conformance/runtime/runs.h"

struct paper_test {
  const char *paper, *name, *checks, *note;
};

static const struct paper_test paper_tests[] = {
#define PAPER_TEST(paper_, name_, checks_, note_)                                                  \
  {.paper = paper_, .name = name_, .checks = checks_, .note = note_},
#include "conformance/contract/papers.def"
};

/* What the papers name, whether it is answered or not. */
static const struct paper_name {
  const char *paper, *name;
} paper_names[] = {
#undef PAPER_TEST
#undef PAPER_NAMES
#define PAPER_NAMES(paper_, name_) {.paper = paper_, .name = name_},
#include "conformance/contract/papers.def"
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- lists of words -------------------------------------------------------------------------- */

struct words {
  const char *at;
};

/* The next word of a list that blanks separate, its length or 0 at the end. */
static size_t
next_word(struct words *words, const char **ret_word)
{
  words->at += strspn(words->at, " ");
  *ret_word = words->at;
  size_t length = strcspn(words->at, " ");
  words->at += length;
  return length;
}

static bool
is_word(const char *word, size_t length, const char *text)
{
  return strlen(text) == length && memcmp(word, text, length) == 0;
}

static bool
holds_word(const char *list, const char *text)
{
  struct words words = {list};
  const char *word;
  size_t length;

  while ((length = next_word(&words, &word)) > 0)
    if (is_word(word, length, text))
      return true;
  return false;
}

static const struct check *
find_check(const char *id, size_t length)
{
  size_t n;
  const struct check *const *checks = dk_checks(&n);

  for (size_t i = 0; i < n; i++)
    if (is_word(id, length, checks[i]->id))
      return checks[i];
  checks = dk_runtime_checks(&n);
  for (size_t i = 0; i < n; i++)
    if (is_word(id, length, checks[i]->id))
      return checks[i];
  return NULL;
}

/* ---- clauses and their checks ---------------------------------------------------------------- */

static void
put_anchor(const char *clause)
{
  for (; *clause; clause++)
    putchar(*clause >= 'A' && *clause <= 'Z' ? *clause - 'A' + 'a' : *clause);
}

/* What is known to be caught by this check: mutants of the model, providers of the zoo. */
static size_t
put_catches(const struct check *check)
{
  size_t n, put = 0;
  const struct dk_mutant *mutants = dk_mutants(&n);

  size_t length = strlen(check->id);
  for (size_t i = 0; i < n; i++)
    if (strncmp(mutants[i].check, check->id, length) == 0 &&
        (mutants[i].check[length] == '\0' || mutants[i].check[length] == '~'))
      printf("%s`%s`", put++ ? ", " : "", mutants[i].id);
  const struct dk_fixture *zoo = dk_zoo(&n);
  for (size_t i = 0; i < n; i++)
    if (zoo[i].only && strcmp(zoo[i].only, check->id) == 0 && strcmp(zoo[i].verdict, "pass") != 0)
      printf("%s`%s.so`", put++ ? ", " : "", zoo[i].name);
  return put;
}

/* The checks that this clause is first of; then the names of those that hold a part of it. */
static size_t
put_checks(const struct dk_clause *clause)
{
  size_t n, put = 0;
  const struct check *const *checks = dk_checks(&n);
  size_t length = strlen(clause->id);

  for (size_t i = 0; i < n; i++) {
    const char *first = checks[i]->clauses;
    if (!is_word(first, strcspn(first, " "), clause->id))
      continue;
    printf("| `%s` | %s | ", checks[i]->id, checks[i]->says);
    put_catches(checks[i]);
    puts(" |");
    put++;
  }
  size_t parts = 0;
  for (size_t i = 0; i < n; i++)
    if (holds_word(checks[i]->clauses, clause->id) &&
        !is_word(checks[i]->clauses, length, clause->id) &&
        strncmp(checks[i]->clauses, clause->id, length) != 0)
      printf("%s`%s`", parts++ ? ", " : "\nIn part also: ", checks[i]->id);
  if (parts)
    puts(".");
  return put;
}

static bool
put_clause(const struct dk_clause *clause)
{
  printf("\n### [%s](contract.md#", clause->id);
  put_anchor(clause->id);
  printf(")\n\n%s\n\n", clause->text);
  if (clause->planned_issue) {
    printf("Its check comes with issue %d.\n", clause->planned_issue);
    return true;
  }
  if (clause->by == DK_BY_HOST)
    puts("Held by the host before it calls: the tests of `core/plugin`.\n");
  if (clause->by == DK_BY_LOADER)
    puts("Judged while loading or by the engine at the end of each check: the providers of the "
         "zoo.\n");
  if (clause->by == DK_BY_CHECK)
    puts("| check | what must hold | catches |\n|---|---|---|");
  if (put_checks(clause) > 0 || clause->by != DK_BY_CHECK)
    return true;
  fprintf(stderr, "gen-coverage: %s is judged by no check: areas.def must have one that names it "
                  "first, or name the issue that brings it\n", clause->id);
  return false;
}

static bool
put_area(const struct dk_area *area)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);
  bool whole = true;

  printf("\n## %s: %s\n", area->id, area->title);
  for (size_t i = 0; i < n; i++)
    if (strcmp(clauses[i].area, area->id) == 0)
      whole = put_clause(&clauses[i]) && whole;
  return whole;
}

/* ---- the runtime on a provider --------------------------------------------------------------- */

static bool
put_control(const struct check *check)
{
  size_t n, put = 0;
  const struct dk_control *controls = dk_controls(&n);

  for (size_t i = 0; i < n; i++)
    if (strcmp(controls[i].check, check->id) == 0)
      printf("%s`%s`", put++ ? ", " : "", controls[i].mutant);
  if (put == 0)
    fprintf(stderr, "gen-coverage: controls.def: %s has no mutant on which it fails\n", check->id);
  return put > 0;
}

static bool
put_runtime(void)
{
  size_t n;
  const struct check *const *checks = dk_runtime_checks(&n);
  bool whole = true;

  printf("\n## The runtime on a provider\n\n"
         "%zu checks more, of `--profile runtime`. Most are there twice: told by the commit of the "
         "worker's own process, and by a renewal. Each stands with a mutant on which it fails.\n\n"
         "| check | what must hold | fails on |\n|---|---|---|\n", n);
  for (size_t i = 0; i < n; i++) {
    printf("| `%s` | %s | ", checks[i]->id, checks[i]->says);
    whole = put_control(checks[i]) && whole;
    printf(" |\n");
  }
  return whole;
}

/* ---- the papers' tests ----------------------------------------------------------------------- */

static bool
put_answers(const struct paper_test *test)
{
  struct words words = {test->checks};
  const char *id;
  size_t length, put = 0;

  while ((length = next_word(&words, &id)) > 0) {
    if (!find_check(id, length)) {
      fprintf(stderr, "gen-coverage: papers.def: %s names the check %.*s, which does not exist\n",
              test->name, (int)length, id);
      return false;
    }
    printf("%s`%.*s`", put++ ? ", " : "", (int)length, id);
  }
  if (put > 0)
    return true;
  fprintf(stderr, "gen-coverage: papers.def: %s is answered by no check\n", test->name);
  return false;
}

static size_t
count_answers(const struct paper_name *named)
{
  size_t n = 0;

  for (size_t i = 0; i < COUNT(paper_tests); i++)
    n += strcmp(paper_tests[i].paper, named->paper) == 0 &&
         strcmp(paper_tests[i].name, named->name) == 0;
  return n;
}

static size_t
count_names(const struct paper_test *test)
{
  size_t n = 0;

  for (size_t i = 0; i < COUNT(paper_names); i++)
    n += strcmp(paper_names[i].paper, test->paper) == 0 &&
         strcmp(paper_names[i].name, test->name) == 0;
  return n;
}

/* Each test that a paper names has one answer, and each answer is to such a test. */
static bool
names_agree(void)
{
  bool agree = true;

  for (size_t i = 0; i < COUNT(paper_names); i++) {
    size_t n = count_answers(&paper_names[i]);
    if (n == 1)
      continue;
    fprintf(stderr, "gen-coverage: papers.def: paper %s names %s, which has %zu answers: it needs "
                    "one PAPER_TEST line\n", paper_names[i].paper, paper_names[i].name, n);
    agree = false;
  }
  for (size_t i = 0; i < COUNT(paper_tests); i++) {
    size_t n = count_names(&paper_tests[i]);
    if (n == 1)
      continue;
    fprintf(stderr, "gen-coverage: papers.def: %s is answered for paper %s, which names it %zu "
                    "times: it needs one PAPER_NAMES line\n", paper_tests[i].name,
            paper_tests[i].paper, n);
    agree = false;
  }
  return agree;
}

static bool
put_papers(void)
{
  bool whole = names_agree();

  puts("\n## The tests that the papers name\n\n"
       "Where the paper's claim is not ours the last column says what we do instead; "
       "[papers.md](papers.md) says why.\n\n"
       "| paper | test | our checks | what differs |\n|---|---|---|---|");
  for (size_t i = 0; i < COUNT(paper_tests); i++) {
    const struct paper_test *test = &paper_tests[i];
    printf("| %s | %s | ", test->paper, test->name);
    whole = put_answers(test) && whole;
    printf(" | %s |\n", test->note);
  }
  return whole;
}

/* ---- the page -------------------------------------------------------------------------------- */

static void
put_front(void)
{
  size_t n_clauses, n_checks, n_mutants, n_zoo, judged = 0;
  const struct dk_clause *clauses = dk_clauses(&n_clauses);

  dk_checks(&n_checks);
  dk_mutants(&n_mutants);
  dk_zoo(&n_zoo);
  for (size_t i = 0; i < n_clauses; i++)
    judged += clauses[i].planned_issue == 0;
  printf("<!-- Made by gen-coverage from the tables of conformance/: edit there. -->\n\n"
         "# What is tested by what\n\n"
         "%zu clauses, %zu of them judged now; %zu checks; %zu mutants of the model; %zu providers "
         "in the zoo. A mutant stands with the check that is meant to catch it; `durakit selftest` "
         "proves each line, and that no check is without one.\n",
         n_clauses, judged, n_checks, n_mutants, n_zoo);
}

int
main(void)
{
  size_t n;
  const struct dk_area *areas = dk_areas(&n);
  bool whole = true;

  put_front();
  for (size_t i = 0; i < n; i++)
    whole = put_area(&areas[i]) && whole;
  whole = put_runtime() && whole;
  whole = put_papers() && whole;
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fputs("gen-coverage: the page could not be written\n", stderr);
    return 1;
  }
  return whole ? 0 : 1;
}
