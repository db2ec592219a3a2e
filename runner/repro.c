/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that run one check again, and `durakit repro`, which takes one out of results.jsonl. */
#include "runner/repro.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/commands.h"
#include "runner/facts.h"
#include "runner/plan.h"
#include "runner/settings.h"

void
repro_quote(struct dk_text *text, const char *word)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-+./:,@%=";

  if (*word && word[strspn(word, plain)] == '\0') {
    dk_text_puts(text, word);
    return;
  }
  dk_text_puts(text, "'");
  for (const char *c = word; *c; c++)
    dk_text_printf(text, *c == '\'' ? "'\\''" : "%c", *c);
  dk_text_puts(text, "'");
}

static void
add_setting(struct dk_text *text, const struct run *run, const struct given *given)
{
  struct dk_text pair = DK_TEXT_EMPTY;

  if (given->env) {
    dk_text_printf(text, " --set-env %s=%s", given->key, given->env);
    return;
  }
  dk_text_printf(&pair, "%s=", given->key);
  if (facts_is_secret(run, given))
    dk_text_puts(&pair, "***");
  else
    mask_text(&run->mask, &pair, given->value, strlen(given->value));
  dk_text_puts(text, " --set ");
  repro_quote(text, dk_text_str(&pair));
  dk_text_done(&pair);
}

void
repro_command(struct dk_text *text, const struct run *run, const char *only)
{
  dk_text_puts(text, "durakit check ");
  repro_quote(text, run->options->arguments[0]);
  dk_text_puts(text, " --only ");
  repro_quote(text, only);
  dk_text_puts(text, " --seed ");
  facts_seed(text, run);
  for (size_t i = 0; i < run->options->n_settings; i++)
    add_setting(text, run, &run->options->settings[i]);
  if (run->options->timeout_scale < 1 || run->options->timeout_scale > 1)
    dk_text_printf(text, " --timeout-scale %g", run->options->timeout_scale);
  if (run->options->next)
    dk_text_puts(text, " --next");
}

/* ---- the command ----------------------------------------------------------------------------- */

static int
refuse_file(const char *path, const char *what, const char *found)
{
  say_problem(&(struct problem){path, what, "a results.jsonl of durakit certify --out FOLDER",
                                found, NULL}, NULL);
  return EXIT_USAGE;
}

static const char *
text_of(const json_t *object, const char *key)
{
  const char *text = json_string_value(json_object_get(object, key));

  return text ? text : "";
}

/* Reads the lines; the last line of a run that was killed may be cut short, and is left out. */
static int
read_file(const char *path, json_t **ret_header, json_t **ret_checks)
{
  FILE *file = fopen(path, "re");
  char *line = NULL;
  size_t size = 0;

  if (!file)
    return refuse_file(path, "cannot be read", NULL);
  *ret_header = NULL;
  *ret_checks = json_array();
  while (getline(&line, &size, file) > 0) {
    json_t *object = json_loads(line, 0, NULL);
    const char *type = text_of(object, "type");
    if (strcmp(type, "header") == 0 && !*ret_header)
      *ret_header = json_incref(object);
    else if (strcmp(type, "check") == 0)
      json_array_append(*ret_checks, object);
    json_decref(object);
  }
  free(line);
  fclose(file);
  if (*ret_header)
    return EXIT_PASSED;
  json_decref(*ret_checks);
  return refuse_file(path, "has no header of a run", "no line with \"type\":\"header\"");
}

/* What was recorded and not given again now.  A masked value must be given again. */
static int
take_recorded_settings(struct options *options, const json_t *header, struct mask *mask)
{
  const json_t *settings = json_object_get(header, "settings");
  size_t i;
  json_t *setting;

  json_array_foreach(settings, i, setting) {
    const char *key = text_of(setting, "key");
    const char *env = text_of(setting, "env");
    struct dk_text pair = DK_TEXT_EMPTY;
    int code = EXIT_PASSED;
    const struct given *given = settings_find(options, key);
    if (given && json_is_true(json_object_get(setting, "masked")))
      mask_add(mask, given->value, strlen(given->value));
    if (given)
      continue;
    dk_text_printf(&pair, "%s=%s", key, *env ? env : "...");
    if (*env)
      code = settings_take_env(options, "--set-env", dk_text_str(&pair));
    else if (json_is_true(json_object_get(setting, "masked")))
      code = usage(key, "was masked when it was recorded", dk_text_str(&pair),
                   "give it again with --set or --set-env");
    else
      code = settings_add(options, key, text_of(setting, "value"), NULL);
    dk_text_done(&pair);
    if (code != EXIT_PASSED)
      return code;
  }
  return EXIT_PASSED;
}

static bool
did_not_pass(const json_t *check)
{
  const char *verdict = text_of(check, "verdict");

  return strcmp(verdict, "pass") != 0 && strcmp(verdict, "skip") != 0;
}

/* The checks to run again: the named one, or all that did not pass. */
static int
take_checks(struct options *options, const char *path, const json_t *checks, const char *name)
{
  size_t i;
  json_t *check;

  free(options->only);
  options->n_only = 0;
  options->only = calloc(json_array_size(checks) + 1, sizeof(*options->only));
  if (!options->only)
    return EXIT_ENVIRONMENT;
  if (name) {
    options->only[options->n_only++] = name;
    return EXIT_PASSED;
  }
  json_array_foreach(checks, i, check) {
    if (did_not_pass(check))
      options->only[options->n_only++] = text_of(check, "check");
  }
  if (options->n_only > 0)
    return EXIT_PASSED;
  say_problem(&(struct problem){.where = path,
                                .what = "every check in it passed: there is nothing to repeat",
                                .next = "FILE:CHECK names one"}, NULL);
  return EXIT_INCOMPLETE;
}

/* What will be run is said before it is run. */
static void
say_command(const struct options *options, const struct mask *mask)
{
  struct kit_probe nothing = {0};
  struct run run = {.options = options, .probe = &nothing, .described = true, .mask = *mask};
  struct dk_text only = DK_TEXT_EMPTY;
  struct dk_text command = DK_TEXT_EMPTY;

  for (size_t i = 0; i < options->n_only; i++)
    dk_text_printf(&only, "%s%s", i ? "," : "", options->only[i]);
  repro_command(&command, &run, dk_text_str(&only));
  say("again: %s", dk_text_str(&command));
  dk_text_done(&only);
  dk_text_done(&command);
}

static int
repeat(struct options *options, const char *path, const char *name, json_t *header, json_t *checks)
{
  struct mask mask = {0};
  int code = take_checks(options, path, checks, name);

  if (code == EXIT_PASSED)
    code = take_recorded_settings(options, header, &mask);
  if (code == EXIT_PASSED) {
    options->command = COMMAND_CHECK;
    options->arguments[0] = text_of(json_object_get(header, "plugin"), "path");
    options->seed = strtoull(text_of(header, "seed"), NULL, 0);
    options->timeout_scale = json_number_value(json_object_get(header, "timeout_scale"));
    options->next = json_is_true(json_object_get(header, "next"));
    for (size_t i = 0; i < options->n_settings; i++)
      mask_add_passwords(&mask, options->settings[i].value, strlen(options->settings[i].value));
    say_command(options, &mask);
  }
  mask_done(&mask);
  return code == EXIT_PASSED ? command_certify(options) : code;
}

int
command_repro(struct options *options)
{
  json_t *header;
  json_t *checks;
  char *path = strdup(options->arguments[0]);
  char *colon = path ? strrchr(path, ':') : NULL;
  const char *name = NULL;

  if (!path)
    return EXIT_ENVIRONMENT;
  if (colon && colon[1]) {
    *colon = '\0';
    name = colon + 1;
  }
  int code = read_file(path, &header, &checks);
  if (code == EXIT_PASSED) {
    code = repeat(options, path, name, header, checks);
    json_decref(header);
    json_decref(checks);
  }
  free(path);
  return code;
}
