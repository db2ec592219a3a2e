/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit list`: checks, clauses, mutants, topics or providers, one a line, or as JSON. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "conformance/checks/topics.h"
#include "conformance/contract/contract.h"
#include "conformance/contract/mutants.h"
#include "conformance/kit/engine.h"
#include "runner/cli/printer.h"
#include "runner/cli/resolve.h"
#include "runner/cli/suggest.h"
#include "runner/cli/usage.h"
#include "runner/commands/commands.h"
#include "runner/run/plan.h"

/* One row: an id, what it is about, a text.  In JSON the columns have names. */
struct columns {
  const char *second, *third;
  struct printer *printer;
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
    printer_line(columns->printer, "%-36s %-12s %s", id, second, third);
}

/* With a text that was built; frees the text. */
static void
row_of_text(const struct columns *columns, const char *id, const char *second,
            struct dk_text *third)
{
  struct dk_text line = DK_TEXT_EMPTY;

  if (columns->rows && !dk_text_failed(third)) {
    row(columns, id, second, dk_text_str(third));
  } else {
    dk_text_printf(&line, "%-36s %-12s ", id, second);
    dk_text_add_text(&line, third);
    dk_text_puts(&line, "\n");
    printer_text(columns->printer, &line);
  }
  dk_text_done(third);
}

/* " [no-state]": the topics of --only that it belongs to. */
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
    row_of_text(columns, check->id, check->clauses, &says);
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
  row(context, name, resolve_is_built(path) ? "built" : "installed", path);
}

static void
list_providers(const struct columns *columns)
{
  if (!resolve_each(provider_row, (void *)(uintptr_t)columns))
    printer_no_memory(columns->printer);
}

typedef void list_fn(const struct columns *columns);
static const struct {
  const char *name;
  list_fn *list;
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

static int
list(struct columns *columns, list_fn *rows, const struct options *options)
{
  struct printer printer = printer_of(options, NULL, NULL);

  columns->printer = &printer;
  columns->rows = options->json ? json_array() : NULL;
  if (!options->json || columns->rows)
    rows(columns);
  if (options->json)
    printer_value(&printer, columns->rows);
  return printer_done(&printer, EXIT_PASSED);
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
    return list(&(struct columns){.second = kinds[i].second, .third = kinds[i].third,
                                  .profile = options->profile},
                kinds[i].list, options);
  }
  int code = usage(options, options->arguments[0], "there is no such list",
                   "checks, clauses, mutants, topics or providers",
                   message_did_you_mean(&next, nearest.best, NULL));
  dk_text_done(&next);
  return code;
}
