/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit explain`: a check, a clause or a mutant, with all that belongs to it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "conformance/checks/topics.h"
#include "conformance/contract/contract.h"
#include "conformance/contract/mutants.h"
#include "conformance/runtime/runs.h"
#include "runner/commands.h"
#include "runner/plan.h"
#include "runner/say.h"
#include "runner/suggest.h"

enum { WIDTH = 92 };

/* Broken at blanks, each line after four blanks. */
static void
wrapped(const char *text)
{
  while (*text) {
    size_t n = strlen(text);
    if (n > WIDTH) {
      for (n = WIDTH; n > 0 && text[n] != ' '; n--)
        continue;
      n = n > 0 ? n : strcspn(text, " ");
    }
    printf("    %.*s\n", (int)n, text);
    text += n + strspn(text + n, " ");
  }
}

static void
part(const char *title, const char *text)
{
  printf("\n  %s\n", title);
  wrapped(text);
}

static void
mutants_of_clause(const char *clause)
{
  size_t n;
  const struct dk_mutant *mutants = dk_mutants(&n);
  bool first = true;

  for (size_t i = 0; i < n; i++) {
    if (strcmp(mutants[i].clause, clause) != 0)
      continue;
    if (first)
      printf("\n  Mutants that break it\n");
    first = false;
    printf("    %-36s %s\n", mutants[i].id, mutants[i].text);
  }
}

static void
checks_of_clause(const struct dk_clause *clause)
{
  size_t n;
  const struct check *const *checks = dk_checks(&n);
  bool first = true;

  for (size_t i = 0; i < n; i++) {
    if (!plan_tests(checks[i], clause->id))
      continue;
    if (first)
      printf("\n  Checks\n");
    first = false;
    printf("    %-36s %s\n", checks[i]->id, checks[i]->says);
  }
  if (first && clause->by != DK_BY_CHECK)
    part("Checks", clause->by == DK_BY_HOST
                     ? "None: the host enforces it, so that no provider sees a breach."
                     : "None of its own: it is judged while loading, or after every check.");
  else if (first)
    part("Checks", "None yet.");
}

static void
explain_clause(const struct dk_clause *clause)
{
  printf("%s  %s  (contract %s, since %s)\n", clause->id, dk_clause_level_name(clause->level),
         DK_CONTRACT_VERSION, clause->since);
  part("What must hold", clause->text);
  part("What a host relies on", clause->why);
  part("What usually breaks it", clause->breaks);
  checks_of_clause(clause);
  mutants_of_clause(clause->id);
}

static void
clauses_of_check(const struct check *check)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);

  for (size_t i = 0; i < n; i++) {
    char title[64];
    if (!plan_tests(check, clauses[i].id))
      continue;
    snprintf(title, sizeof(title), "%s  %s", clauses[i].id,
             dk_clause_level_name(clauses[i].level));
    part(title, clauses[i].text);
  }
}

/* Or, for one of the runtime, shows that it can fail. */
static bool
is_meant_for(const struct dk_mutant *mutant, const struct check *check)
{
  size_t n;
  const struct dk_control *controls = dk_controls(&n);

  for (size_t i = 0; i < n; i++) {
    if (strcmp(controls[i].check, check->id) == 0 && strcmp(controls[i].mutant, mutant->id) == 0)
      return true;
  }
  return strcmp(mutant->check, check->id) == 0;
}

static void
explain_check(const struct check *check)
{
  size_t n;
  const struct dk_mutant *mutants = dk_mutants(&n);

  printf("%s  (%s)\n", check->id, check->clauses);
  part("What it checks", check->says);
  clauses_of_check(check);
  if (check->needs & NEEDS_HANDLES)
    part("Needs", "a store that two handles may open: `shared` is at least 1");
  if (check->needs & NEEDS_PROCESSES)
    part("Needs", "a store that two processes may open: `shared` is at least 2");
  if (check->needs & NEEDS_STORE_CLOCK)
    part("Needs", "a store that goes by its own clock: DK_CLOCK_STORE");
  if (check->needs & NEEDS_SERVER)
    part("Needs", "a server behind the store: `shared` is 3");
  if (check->needs & NEEDS_CRASH)
    part("Needs", "--store-crash and --store-start: commands that crash and start the server");
  if (check->needs & NEEDS_PAUSE)
    part("Needs", "--store-pause and --store-resume: commands that stop it and let it go on");
  if (check->needs & NEEDS_RIGHTS)
    part("Needs", "--store-deny and --store-allow: commands for the rights of the role");
  if (check->needs & NEEDS_PROXY)
    part("Needs", "--through and --store-address: a way to the server through the kit");
  if (check->needs & NEEDS_WORKER_ENQUEUE)
    part("Needs", "the optional operation enqueue_for_worker");
  if (check->needs & NEEDS_RIVALS)
    part("Needs", "two calls at once on one store: DK_PARALLEL, or `shared` at least 1");
  if (check->needs & NEEDS_STORE)
    part("Needs", "stores with names: a STORE parameter tells them apart");
  if (check->needs & NEEDS_DURABLE)
    part("Needs", "a store that outlives its last handle: `durable` is at least 1");
  if (check->needs & NEEDS_TWO_CLOCKS)
    part("Needs", "a provider that can go by the host's clock and by its own");
  if (check->flags & IS_RACE)
    part("Race", "It runs alone, and counts how often the calls really overlapped.");
  if (check->flags & IS_RUNTIME)
    part("Profile", "runtime: it runs the runtime on the provider, in real time");
  printf("\n  Mutants that it is meant to catch\n");
  for (size_t i = 0; i < n; i++) {
    if (is_meant_for(&mutants[i], check))
      printf("    %-36s %s\n", mutants[i].id, mutants[i].text);
  }
  printf("\n  Alone\n    durakit check ./my_provider.so --only %s\n", check->id);
}

static void
explain_mutant(const struct dk_mutant *mutant)
{
  const struct dk_clause *clause = dk_clause_find(mutant->clause);

  printf("%s  (breaks %s)\n", mutant->id, mutant->clause);
  part("What it does wrong", mutant->text);
  if (clause)
    part("What must hold", clause->text);
  part("The check that catches it", mutant->check);
  printf("\n  Seen\n    durakit check model --set mutant=%s --only %s\n", mutant->id,
         mutant->check);
}

static void
explain_topic(const struct dk_topic *topic)
{
  size_t n;
  const struct check *const *checks = dk_checks(&n);

  printf("%s  (a topic)\n", topic->name);
  part("What it is about", topic->says);
  printf("\n  Checks\n");
  for (size_t i = 0; i < n; i++)
    if (dk_topic_has(topic, checks[i]->id))
      printf("    %-36s %s\n", checks[i]->id, checks[i]->says);
  printf("\n  Alone\n    durakit check ./my_provider.so --only %s\n", topic->name);
}

/* An id may be that of a check and of a mutant, or be the name of a topic. */
static bool
explain_id(const char *id, struct suggest *nearest)
{
  size_t n;
  bool found = false;
  const struct dk_topic *topics = dk_topics(&n);
  for (size_t i = 0; i < n; i++) {
    suggest_try(nearest, topics[i].name);
    if (strcmp(topics[i].name, id) == 0) {
      explain_topic(&topics[i]);
      found = true;
    }
  }
  const struct dk_clause *clauses = dk_clauses(&n);
  for (size_t i = 0; i < n; i++) {
    suggest_try(nearest, clauses[i].id);
    if (strcasecmp(clauses[i].id, id) == 0) {
      explain_clause(&clauses[i]);
      found = true;
    }
  }
  for (size_t i = 0; i < plan_count(); i++) {
    const struct check *check = plan_check(i);
    suggest_try(nearest, check->id);
    if (strcmp(check->id, id) == 0) {
      explain_check(check);
      found = true;
    }
  }
  const struct dk_mutant *mutants = dk_mutants(&n);
  for (size_t i = 0; i < n; i++) {
    suggest_try(nearest, mutants[i].id);
    if (strcmp(mutants[i].id, id) == 0) {
      printf("%s", found ? "\n" : "");
      explain_mutant(&mutants[i]);
      found = true;
    }
  }
  return found;
}

int
command_explain(const struct options *options)
{
  struct suggest nearest = {.word = options->arguments[0]};
  struct dk_text next = DK_TEXT_EMPTY;

  if (explain_id(options->arguments[0], &nearest))
    return fflush(stdout) == 0 ? EXIT_PASSED : EXIT_ENVIRONMENT;
  int code = usage(options->arguments[0], "there is no such check, clause, topic or mutant", NULL,
                   did_you_mean(&next, nearest.best,
                                "durakit list checks, clauses or mutants shows all"));
  dk_text_done(&next);
  return code;
}
