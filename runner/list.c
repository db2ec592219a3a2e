/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit list`: what there is, one a line, or as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "conformance/checks/topics.h"
#include "conformance/contract/contract.h"
#include "conformance/contract/mutants.h"
#include "conformance/kit/engine.h"
#include "runner/commands.h"
#include "runner/plan.h"
#include "runner/resolve.h"
#include "runner/say.h"
#include "runner/suggest.h"

/* One row: an id, what it is about, a text.  With JSON they get the names of the columns. */
struct columns {
  const char *second, *third;
  json_t *rows; /* NULL: text */
  enum profile profile;
};

static void
row(const struct columns *columns, const char *id, const char *second, const char *third)
{
  if (columns->rows)
    json_array_append_new(columns->rows, json_pack("{s:s, s:s, s:s}", "id", id, columns->second,
                                                   second, columns->third, third));
  else
    printf("%-36s %-12s %s\n", id, second, third);
}

/* " [no-state]": what of --only it belongs to, beside its own names. */
static void
add_topics(struct dk_text *says, const char *check)
{
  size_t n;
  const struct dk_topic *topics = dk_topics(&n);

  for (size_t i = 0; i < n; i++)
    if (dk_topic_has(&topics[i], check))
      dk_text_printf(says, " [%s]", topics[i].name);
}

static void
list_checks(const struct columns *columns)
{
  for (size_t i = 0; i < plan_count(); i++) {
    const struct check *check = plan_check(i);
    struct dk_text says = DK_TEXT_EMPTY;

    if (check == &kit_memory_cycle || !plan_is_of_profile(check, columns->profile))
      continue;
    dk_text_puts(&says, check->says);
    if (!columns->rows)
      add_topics(&says, check->id);
    row(columns, check->id, check->clauses, dk_text_str(&says));
    dk_text_done(&says);
  }
}

/* With how many checks each. */
static void
list_topics(const struct columns *columns)
{
  size_t n;
  size_t n_members;
  const struct dk_topic *topics = dk_topics(&n);
  const struct dk_topic_member *members = dk_topic_members(&n_members);

  for (size_t i = 0; i < n; i++) {
    char checks[32];
    unsigned has = 0;

    for (size_t k = 0; k < n_members; k++)
      has += strcmp(members[k].topic, topics[i].name) == 0 ? 1u : 0u;
    snprintf(checks, sizeof(checks), "%u checks", has);
    row(columns, topics[i].name, checks, topics[i].says);
  }
}

static void
list_clauses(const struct columns *columns)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);

  for (size_t i = 0; i < n; i++)
    row(columns, clauses[i].id,
        clauses[i].planned_issue ? "planned" : dk_clause_by_name(clauses[i].by), clauses[i].text);
}

static void
list_mutants(const struct columns *columns)
{
  size_t n;
  const struct dk_mutant *mutants = dk_mutants(&n);

  for (size_t i = 0; i < n; i++)
    row(columns, mutants[i].id, mutants[i].clause, mutants[i].text);
}

static void
provider_row(void *context, const char *name, const char *path)
{
  row(context, name, "installed", path);
}

static void
list_providers(const struct columns *columns)
{
  resolve_each(provider_row, (void *)(uintptr_t)columns);
}

static const struct {
  const char *name;
  void (*list)(const struct columns *columns);
  const char *second, *third;
} kinds[] = {
  {"checks", list_checks, "clauses", "says"},
  {"clauses", list_clauses, "by", "text"},
  {"mutants", list_mutants, "clause", "text"},
  {"topics", list_topics, "checks", "says"},
  {"providers", list_providers, "state", "path"},
};

const char *
list_name(size_t i)
{
  return i < sizeof(kinds) / sizeof(kinds[0]) ? kinds[i].name : NULL;
}

int
command_list(const struct options *options)
{
  struct suggest nearest = {.word = options->arguments[0]};
  struct dk_text next = DK_TEXT_EMPTY;

  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    suggest_try(&nearest, kinds[i].name);
    if (strcmp(kinds[i].name, options->arguments[0]) != 0)
      continue;
    struct columns columns = {kinds[i].second, kinds[i].third, NULL, options->profile};
    if (options->json)
      columns.rows = json_array();
    kinds[i].list(&columns);
    if (options->json) {
      json_dumpf(columns.rows, stdout, JSON_INDENT(2));
      putchar('\n');
    }
    json_decref(columns.rows);
    return fflush(stdout) == 0 ? EXIT_PASSED : EXIT_ENVIRONMENT;
  }
  int code = usage(options->arguments[0], "there is no such list",
                   "checks, clauses, mutants, topics or providers",
                   did_you_mean(&next, nearest.best, NULL));
  dk_text_done(&next);
  return code;
}
