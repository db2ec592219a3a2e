/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the commands that operate a store, and which can be combined. */
#include "runner/cli/operate-options.h"

#include <durakit/admin.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runner/cli/message.h"
#include "runner/cli/option-row.h"
#include "runner/cli/status-words.h"
#include "runner/cli/suggest.h"
#include "runner/cli/usage.h"
#include "runner/cli/when.h"

#define SELECTS (OF(CANCEL) | OF(INSTANCES) | OF(DELETE) | OF(PRUNE))
#define HAS_ENDED (1u << DK_COMPLETED | 1u << DK_FAILED | 1u << DK_CANCELLED)
#define CHANGES_MANY (OF(CANCEL) | OF(DELETE) | OF(PRUNE))

void
operate_options_defaults(struct operating *operating)
{
  *operating = (struct operating){.expect = UINT64_MAX, .wait_ms = -1,
                                   .patience_ms = PATIENCE_MS};
}

void
operate_options_done(struct operating *operating)
{
  free(operating->metrics);
}

bool
operate_options_are_for_many(const struct chosen *c)
{
  return c->all || c->roots || c->name || c->version || c->parent || c->statuses != 0
         || c->created_from != 0 || c->created_before != 0 || c->completed_from != 0
         || c->completed_before != 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Texts; an empty one is refused. */
#define TEXT_OPTION(function, member)                                                              \
  static int function(struct options *o, const char *option, const char *value)                    \
  {                                                                                                \
    o->operating.member = value;                                                                   \
    return *value ? EXIT_PASSED : usage_bad_value(o, option, value, "a text, not empty");          \
  }
#define SWITCH(function, member)                                                                   \
  static int function(struct options *o, const char *option, const char *value)                    \
  {                                                                                                \
    (void)option;                                                                                  \
    (void)value;                                                                                   \
    o->operating.member = true;                                                                    \
    return EXIT_PASSED;                                                                            \
  }
#define TIME_OPTION(function, member)                                                              \
  static int function(struct options *o, const char *option, const char *value)                    \
  {                                                                                                \
    return take_time(o, option, value, &o->operating.chosen.member);                               \
  }
#define NUMBER_OPTION(function, member, least)                                                     \
  static int function(struct options *o, const char *option, const char *value)                    \
  {                                                                                                \
    return take_operate_number(o, option, value, least, &o->operating.member);                     \
  }

static int
take_time(const struct options *o, const char *option, const char *value, int64_t *ret)
{
  return when_parse(value, when_now(), ret) ? EXIT_PASSED
                                            : usage_bad_value(o, option, value, WHEN_EXPECTED);
}

static int
take_operate_number(const struct options *o, const char *option, const char *value, uint64_t least,
                    uint64_t *ret)
{
  char *end;

  errno = 0;
  unsigned long long n = strtoull(value, &end, 10);
  if (errno || *end || end == value || value[strspn(value, "0123456789")] || n < least
      || n > INT64_MAX)
    return usage_bad_value(o, option, value, least ? "a number, at least 1"
                                                   : "a number, at least 0");
  *ret = n;
  return EXIT_PASSED;
}

TEXT_OPTION(take_provider, provider)
TEXT_OPTION(take_name, chosen.name)
TEXT_OPTION(take_version, chosen.version)
TEXT_OPTION(take_parent, chosen.parent)
TEXT_OPTION(take_ids_from, ids_from)
TEXT_OPTION(take_reason, reason)
TEXT_OPTION(take_by, by)
TEXT_OPTION(take_after, after)
SWITCH(take_roots, chosen.roots)
SWITCH(take_all, chosen.all)
SWITCH(take_create, create)
SWITCH(take_dry_run, dry_run)
SWITCH(take_yes, yes)
SWITCH(take_force, force)
SWITCH(take_jsonl, jsonl)
SWITCH(take_prometheus, prometheus)
TIME_OPTION(take_created_after, created_from)
TIME_OPTION(take_created_before, created_before)
TIME_OPTION(take_completed_after, completed_from)
TIME_OPTION(take_completed_before, completed_before)
NUMBER_OPTION(take_limit, limit, 1)
NUMBER_OPTION(take_execution, execution, 1)
NUMBER_OPTION(take_from, from, 1)
NUMBER_OPTION(take_expect, expect, 0)

/* An empty input is allowed. */
static int
take_payload(struct options *o, const char *option, const char *value)
{
  (void)option;
  o->operating.payload = value;
  return EXIT_PASSED;
}

static int
take_keep(struct options *o, const char *option, const char *value)
{
  uint64_t n = 0;
  int code = take_operate_number(o, option, value, 1, &n);

  if (code == EXIT_PASSED && n > 1000000)
    return usage_bad_value(o, option, value, "at most 1000000 executions");
  o->operating.keep = (uint32_t)n;
  return code;
}

static int
take_wait(struct options *o, const char *option, const char *value)
{
  return when_parse_duration(value, &o->operating.wait_ms)
           ? EXIT_PASSED
           : usage_bad_value(o, option, value, WHEN_EXPECTED_DURATION);
}

static int
take_patience(struct options *o, const char *option, const char *value)
{
  return when_parse_duration(value, &o->operating.patience_ms) && o->operating.patience_ms > 0
           ? EXIT_PASSED
           : usage_bad_value(o, option, value, "a duration above 0: " WHEN_DURATIONS);
}

static int
take_metrics(struct options *o, const char *option, const char *value)
{
  struct operating *p = &o->operating;
  const char **grown = reallocarray(p->metrics, p->n_metrics + 1, sizeof(*grown));

  if (!grown) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  p->metrics = grown;
  p->metrics[p->n_metrics++] = value;
  return *value ? EXIT_PASSED : usage_bad_value(o, option, value, "a file");
}

/* One of the list of statuses. */
static int
take_one_status(struct options *o, const char *option, const char *word, const char *value)
{
  struct suggest nearest = {.word = word};
  struct dk_text what = DK_TEXT_EMPTY, next = DK_TEXT_EMPTY;

  for (size_t i = 0; status_filter(i); i++) {
    if (strcmp(status_filter(i)->word, word) == 0) {
      o->operating.chosen.statuses |= status_filter(i)->bits;
      return EXIT_PASSED;
    }
    suggest_try(&nearest, status_filter(i)->word);
  }
  dk_text_printf(&what, "cannot be \"%s\"", value);
  if (nearest.best)
    dk_text_printf(&next, "did you mean %s? ", nearest.best);
  else
    dk_text_puts(&next, "separate several by commas; ");
  usage_add_help(&next, o, "shows examples");
  int code = usage(o, option, dk_text_str(&what), STATUS_EXPECTED, dk_text_str(&next));
  dk_text_done(&what);
  dk_text_done(&next);
  return code;
}

static int
take_status(struct options *o, const char *option, const char *value)
{
  int code = EXIT_PASSED;

  for (const char *at = value; code == EXIT_PASSED;) {
    size_t n = strcspn(at, ",");
    struct dk_text word = DK_TEXT_EMPTY;

    dk_text_add(&word, at, n);
    code = take_one_status(o, option, dk_text_str(&word), value);
    dk_text_done(&word);
    if (!at[n])
      break;
    at += n + 1;
  }
  return code;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct option_row rows[] = {
  {"--provider", "PLUGIN", OPERATES, take_provider},
  {"--patience", "DURATION", OPERATES, take_patience},
  {"--name", "NAME", SELECTS | OF(START), take_name},
  {"--version", "VERSION", SELECTS | OF(START), take_version},
  {"--input", "TEXT|@FILE|-", OF(START), take_payload},
  {"--create", NULL, OF(START), take_create},
  {"--data", "TEXT|@FILE|-", OF(RAISE) | OF(ENQUEUE), take_payload},
  {"--status", STATUS_WORDS, SELECTS, take_status},
  {"--parent", "ID", SELECTS, take_parent},
  {"--roots", NULL, SELECTS, take_roots},
  {"--created-after", "TIME", SELECTS, take_created_after},
  {"--created-before", "TIME", SELECTS, take_created_before},
  {"--completed-after", "TIME", OF(INSTANCES) | OF(DELETE), take_completed_after},
  {"--completed-before", "TIME", OF(INSTANCES) | OF(DELETE) | OF(PRUNE), take_completed_before},
  {"--all", NULL, CHANGES_MANY, take_all},
  {"--ids-from", "FILE|-", OF(CANCEL) | OF(DELETE), take_ids_from},
  {"--reason", "TEXT", OF(CANCEL), take_reason},
  {"--by", "NAME", OF(CANCEL), take_by},
  {"--expect", "N", OF(CANCEL), take_expect},
  {"--wait", "DURATION", OF(CANCEL), take_wait},
  {"--timeout", "DURATION", OF(WAIT), take_wait},
  {"--keep", "N", OF(PRUNE), take_keep},
  {"--force", NULL, OF(DELETE), take_force},
  {"--dry-run", NULL, CHANGES_MANY, take_dry_run},
  {"--yes", NULL, CHANGES_MANY, take_yes},
  {"--execution", "N", OF(HISTORY), take_execution},
  {"--from", "EVENT", OF(HISTORY), take_from},
  {"--after", "ID", OF(INSTANCES), take_after},
  {"--limit", "N", OF(INSTANCES) | OF(HISTORY), take_limit},
  {"--jsonl", NULL, OPERATES & ~(OF(STATS) | OF(START) | OF(RAISE) | OF(ENQUEUE)), take_jsonl},
  {"--prometheus", NULL, OF(STATS), take_prometheus},
  {"--metrics", "FILE", OF(STATS) | REPEATS, take_metrics},
};

const struct option_row *
operate_options(size_t *ret_n)
{
  *ret_n = sizeof(rows) / sizeof(rows[0]);
  return rows;
}

/* ---- which can be combined ------------------------------------------------------------------- */

/* Either ids, or conditions. */
static int
check_targets(const struct options *o)
{
  const struct operating *p = &o->operating;
  struct chosen chosen = p->chosen;
  const char *command = options_command_name(o->command);
  bool has_ids = o->n_arguments > 0 || p->ids_from;

  if (o->command == COMMAND_PRUNE)
    chosen.completed_before = 0; /* this one is for executions */
  bool selects = operate_options_are_for_many(&chosen);
  if (!has_ids && !selects)
    return usage(o, command, "no instances are selected",
                 "ids, --name or another condition, or --all",
                 "durakit instances shows what a condition selects");
  if (has_ids && selects)
    return usage(o, command, "both ids and conditions are given", "one of the two",
                 "durakit instances shows the ids that conditions select");
  if (p->chosen.all) {
    chosen.all = false;
    if (operate_options_are_for_many(&chosen))
      return usage(o, "--all", "cannot be combined with a condition", "one of the two", NULL);
  }
  if (p->ids_from && o->n_arguments > 0)
    return usage(o, "--ids-from", "cannot be combined with ids", "one of the two", NULL);
  return EXIT_PASSED;
}

static int
check_output(const struct options *o)
{
  const struct operating *p = &o->operating;

  if (o->json && p->jsonl)
    return usage(o, "--jsonl", "cannot be combined with --json", "one of the two", NULL);
  if (p->prometheus && o->json)
    return usage(o, "--prometheus", "cannot be combined with --json", "one of the two", NULL);
  return EXIT_PASSED;
}

/* 1.2.3, of the orchestration that will run. */
static int
check_version(const struct options *o, const char *version)
{
  const char *at = version;

  for (size_t i = 0; at && i < 3; i++) {
    size_t n = strspn(at, "0123456789");
    char behind = i < 2 ? '.' : '\0';
    if (n == 0 || n > 10 || (n > 1 && *at == '0') || at[n] != behind)
      return usage_bad_value(o, "--version", version,
                             "three numbers separated by points: 1.2.3");
    at += n + 1;
  }
  return EXIT_PASSED;
}

/* Each command's own. */
static int
check_command(const struct options *o)
{
  const struct operating *p = &o->operating;

  switch (o->command) {
  case COMMAND_START:
    return p->chosen.name ? check_version(o, p->chosen.version)
                          : usage(o, "--name", "is missing", "the name of the orchestration", NULL);
  case COMMAND_CANCEL:
    if (p->dry_run && p->wait_ms >= 0)
      return usage(o, "--wait", "cannot be combined with --dry-run", "one of the two", NULL);
    return check_targets(o);
  case COMMAND_DELETE:
    if (p->chosen.statuses != 0 && (p->chosen.statuses & HAS_ENDED) == 0)
      return usage(o, "--status", "selects no instances that have ended, and conditions delete no "
                                  "others", "completed, failed or cancelled",
                   "cancel them first: durakit cancel takes the same conditions");
    if (p->force && operate_options_are_for_many(&p->chosen))
      return usage(o, "--force", "works with ids, not with conditions", "ids",
                   "cancel them first: durakit cancel takes the same conditions");
    return check_targets(o);
  case COMMAND_PRUNE:
    if (p->keep == 0 && p->chosen.completed_before == 0)
      return usage(o, "prune", "no executions are selected",
                   "--keep N, --completed-before TIME, or both", NULL);
    return check_targets(o);
  default:
    return EXIT_PASSED;
  }
}

int
operate_options_check(const struct options *options)
{
  if (!(OPERATES & (1u << options->command)))
    return EXIT_PASSED;
  if (!options->operating.provider)
    return usage(options, "--provider", "is missing",
                 "the plugin of the store: sqlite, or ./my_provider.so; or DURAKIT_PROVIDER",
                 "durakit list providers shows those that are installed");
  int code = check_output(options);
  return code == EXIT_PASSED ? check_command(options) : code;
}
