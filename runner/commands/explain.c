/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit explain`: a check, a clause, a mutant or a topic, with all that belongs to it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "conformance/checks/topics.h"
#include "conformance/contract/contract.h"
#include "conformance/contract/mutants.h"
#include "conformance/runtime/runs.h"
#include "runner/cli/printer.h"
#include "runner/cli/suggest.h"
#include "runner/cli/usage.h"
#include "runner/cli/wrap.h"
#include "runner/commands/commands.h"
#include "runner/run/plan.h"

enum { WIDEST = 96 };

/* Breaks the text at blanks; each line begins with four blanks. */
static void
wrapped(struct dk_text *out, const char *text)
{
  const unsigned width = wrap_width(STDOUT_FILENO);
  struct dk_text line = DK_TEXT_EMPTY;

  dk_text_printf(&line, "    %s\n", text);
  if (dk_text_failed(&line))
    dk_text_fail(out);
  wrap_text(out, dk_text_str(&line), line.length, width > 0 && width < WIDEST ? width : WIDEST);
  dk_text_done(&line);
}

static void
part(struct dk_text *out, const char *title, const char *text)
{
  dk_text_printf(out, "\n  %s\n", title);
  wrapped(out, text);
}

static void
mutants_of_clause(struct dk_text *out, const char *clause)
{
  size_t n;
  const struct dk_mutant *mutants = dk_mutants(&n);
  bool first = true;

  for (size_t i = 0; i < n; i++) {
    if (strcmp(mutants[i].clause, clause) != 0)
      continue;
    if (first)
      dk_text_printf(out, "\n  Mutants that break it\n");
    first = false;
    dk_text_printf(out, "    %-36s %s\n", mutants[i].id, mutants[i].text);
  }
}

static void
checks_of_clause(struct dk_text *out, const struct dk_clause *clause)
{
  size_t n;
  const struct check *const *checks = dk_checks(&n);
  bool first = true;

  for (size_t i = 0; i < n; i++) {
    if (!plan_tests(checks[i], clause->id))
      continue;
    if (first)
      dk_text_printf(out, "\n  Checks\n");
    first = false;
    dk_text_printf(out, "    %-36s %s\n", checks[i]->id, checks[i]->says);
  }
  if (first && clause->by != DK_BY_CHECK)
    part(out, "Checks", clause->by == DK_BY_HOST
                     ? "None: the host enforces it, so that no provider sees a breach."
                     : "None of its own: it is checked while the plugin is loaded, or after every "
                       "check.");
  else if (first)
    part(out, "Checks", "None yet.");
}

static void
explain_clause(struct dk_text *out, const struct dk_clause *clause)
{
  dk_text_printf(out, "%s  %s  (contract %s, since %s)\n", clause->id,
                 dk_clause_level_name(clause->level), DK_CONTRACT_VERSION, clause->since);
  part(out, "What must hold", clause->text);
  part(out, "What a host relies on", clause->why);
  part(out, "What usually breaks it", clause->breaks);
  checks_of_clause(out, clause);
  mutants_of_clause(out, clause->id);
}

static void
clauses_of_check(struct dk_text *out, const struct check *check)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);

  for (size_t i = 0; i < n; i++) {
    char title[64];
    if (!plan_tests(check, clauses[i].id))
      continue;
    snprintf(title, sizeof(title), "%s  %s", clauses[i].id,
             dk_clause_level_name(clauses[i].level));
    part(out, title, clauses[i].text);
  }
}

/* The check is meant to catch the mutant, or, if it is one of the runtime, to fail on it. */
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
explain_check(struct dk_text *out, const struct check *check)
{
  size_t n;
  const struct dk_mutant *mutants = dk_mutants(&n);

  dk_text_printf(out, "%s  (%s)\n", check->id, check->clauses);
  part(out, "What it checks", check->says);
  clauses_of_check(out, check);
  if (check->needs & NEEDS_HANDLES)
    part(out, "Needs", "a store that two handles may open: `shared` is at least 1");
  if (check->needs & NEEDS_PROCESSES)
    part(out, "Needs", "a store that two processes may open: `shared` is at least 2");
  if (check->needs & NEEDS_STORE_CLOCK)
    part(out, "Needs", "a store that uses its own clock: DK_CLOCK_STORE");
  if (check->needs & NEEDS_SERVER)
    part(out, "Needs", "a server behind the store: `shared` is 3");
  if (check->needs & NEEDS_CRASH)
    part(out, "Needs", "--store-crash and --store-start: commands that crash and start the server");
  if (check->needs & NEEDS_PAUSE)
    part(out, "Needs", "--store-pause and --store-resume: commands that pause and resume it");
  if (check->needs & NEEDS_RIGHTS)
    part(out, "Needs", "--store-deny and --store-allow: commands for the rights of the role");
  if (check->needs & NEEDS_PROXY)
    part(out, "Needs", "--through and --store-address: a way to the server through the kit");
  if (check->needs & NEEDS_WORKER_ENQUEUE)
    part(out, "Needs", "the optional operation enqueue_for_worker");
  if (check->needs & NEEDS_RELEASE)
    part(out, "Needs", "the optional operation release_fetch");
  if (check->needs & NEEDS_ROOTS)
    part(out, "Needs", "ABI 2.2 or later, in which a deletion counts roots");
  if (check->needs & NEEDS_DUPLICATE)
    part(out, "Needs", "ABI 2.3 or later, in which a duplicate commit names the item");
  if (check->needs & NEEDS_RIVALS)
    part(out, "Needs", "two simultaneous calls on one store: DK_PARALLEL, or `shared` at least 1");
  if (check->needs & NEEDS_STORE)
    part(out, "Needs", "stores with names: a STORE parameter that identifies the store");
  if (check->needs & NEEDS_DURABLE)
    part(out, "Needs", "a store that outlives its last handle: `durable` is at least 1");
  if (check->needs & NEEDS_TWO_CLOCKS)
    part(out, "Needs", "a provider that can use both the host's clock and its own");
  if (check->flags & IS_RACE)
    part(out, "Race", "It runs alone, and counts how often the calls really overlapped.");
  if (check->flags & IS_RUNTIME)
    part(out, "Profile", "runtime: it runs the runtime on the provider, in real time");
  dk_text_printf(out, "\n  Mutants that it is meant to catch\n");
  for (size_t i = 0; i < n; i++) {
    if (is_meant_for(&mutants[i], check))
      dk_text_printf(out, "    %-36s %s\n", mutants[i].id, mutants[i].text);
  }
  dk_text_printf(out, "\n  Alone\n    durakit check ./my_provider.so --only %s\n", check->id);
}

static void
explain_mutant(struct dk_text *out, const struct dk_mutant *mutant)
{
  const struct dk_clause *clause = dk_clause_find(mutant->clause);

  dk_text_printf(out, "%s  (breaks %s)\n", mutant->id, mutant->clause);
  part(out, "What it does wrong", mutant->text);
  if (clause)
    part(out, "What must hold", clause->text);
  part(out, "The check that catches it", mutant->check);
  dk_text_printf(out, "\n  Seen\n    durakit check model --set mutant=%s --only %s\n", mutant->id,
                 mutant->check);
}

static void
explain_topic(struct dk_text *out, const struct dk_topic *topic)
{
  size_t n;
  const struct check *const *checks = dk_checks(&n);

  dk_text_printf(out, "%s  (a topic)\n", topic->name);
  part(out, "What it is about", topic->says);
  dk_text_printf(out, "\n  Checks\n");
  for (size_t i = 0; i < n; i++)
    if (dk_topic_has(topic, checks[i]->id))
      dk_text_printf(out, "    %-36s %s\n", checks[i]->id, checks[i]->says);
  dk_text_printf(out, "\n  Alone\n    durakit check ./my_provider.so --only %s\n", topic->name);
}

/* An id can belong to a check and to a mutant, or be the name of a topic. */
static bool
explain_id(struct dk_text *out, const char *id, struct suggest *nearest)
{
  size_t n;
  bool found = false;
  const struct dk_topic *topics = dk_topics(&n);
  for (size_t i = 0; i < n; i++) {
    suggest_try(nearest, topics[i].name);
    if (strcmp(topics[i].name, id) == 0) {
      explain_topic(out, &topics[i]);
      found = true;
    }
  }
  const struct dk_clause *clauses = dk_clauses(&n);
  for (size_t i = 0; i < n; i++) {
    suggest_try(nearest, clauses[i].id);
    if (strcasecmp(clauses[i].id, id) == 0) {
      explain_clause(out, &clauses[i]);
      found = true;
    }
  }
  for (size_t i = 0; i < plan_count(); i++) {
    const struct check *check = plan_check(i);
    suggest_try(nearest, check->id);
    if (strcmp(check->id, id) == 0) {
      explain_check(out, check);
      found = true;
    }
  }
  const struct dk_mutant *mutants = dk_mutants(&n);
  for (size_t i = 0; i < n; i++) {
    suggest_try(nearest, mutants[i].id);
    if (strcmp(mutants[i].id, id) == 0) {
      dk_text_printf(out, "%s", found ? "\n" : "");
      explain_mutant(out, &mutants[i]);
      found = true;
    }
  }
  return found;
}

int
command_explain(const struct options *options)
{
  struct suggest nearest = {.word = options->arguments[0]};
  struct printer printer = printer_of_text();
  struct dk_text text = DK_TEXT_EMPTY, next = DK_TEXT_EMPTY;

  if (explain_id(&text, options->arguments[0], &nearest)) {
    printer_text(&printer, &text);
    return printer_done(&printer, EXIT_PASSED);
  }
  int code = usage(options, options->arguments[0],
                   "there is no such check, clause, topic or mutant", NULL,
                   message_did_you_mean(&next, nearest.best,
                                        "durakit list checks, clauses or mutants shows all"));
  dk_text_done(&next);
  return code;
}
