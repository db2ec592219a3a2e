/* SPDX-License-Identifier: Apache-2.0 */
/* `durakit repro`: reads checks from a results.jsonl, and runs them again. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/cli/server-options.h"
#include "runner/cli/settings.h"
#include "runner/cli/suggest.h"
#include "runner/cli/usage.h"
#include "runner/commands/commands.h"
#include "runner/report/repro-command.h"

static int
refuse_file(const char *path, const char *what, const char *found)
{
  message_problem(&(struct problem){path, what, "a results.jsonl of durakit certify --out FOLDER",
                                    found, "durakit repro --help shows examples"}, NULL);
  return EXIT_USAGE;
}

static const char *
text_of(const json_t *object, const char *key)
{
  const char *text = json_string_value(json_object_get(object, key));

  return text ? text : "";
}

/* The contents of a file of results. */
struct recorded {
  json_t *header;
  json_t *checks;
  unsigned cut;    /* the line where it is cut, 0: it is complete */
};

/* The last line of a run that was killed might be cut: it is left out, with a message. */
static void
say_cut(const char *path, unsigned line)
{
  struct dk_text where = DK_TEXT_EMPTY;

  dk_text_printf(&where, "%s:%u", path, line);
  message_problem(&(struct problem){dk_text_str(&where),
                                    "the file is cut here: the run was killed or the file was "
                                    "shortened", "a footer in the last line", NULL,
                                    "the results before this line are used"}, NULL);
  dk_text_done(&where);
}

static int
take_lines(const char *path, FILE *file, struct recorded *ret)
{
  struct recorded recorded = {.checks = json_array()};
  bool ended = false;
  bool first_is_cut = false;
  unsigned number = 0;
  char *line = NULL;
  size_t size = 0;

  errno = 0;
  while (getline(&line, &size, file) > 0) {
    json_t *object = json_loads(line, 0, NULL);
    const char *type = text_of(object, "type");
    number++;
    ended = strcmp(type, "footer") == 0;
    if (strcmp(type, "header") == 0 && !recorded.header)
      recorded.header = json_incref(object);
    else if (strcmp(type, "check") == 0)
      json_array_append(recorded.checks, object);
    if (!object && !recorded.cut)
      recorded.cut = number;
    first_is_cut = first_is_cut || (!object && number == 1 && line[0] == '{');
    json_decref(object);
  }
  int reason = ferror(file) ? errno : 0;
  free(line);
  if (!recorded.cut && !ended)
    recorded.cut = number + 1;
  if (recorded.header && !reason) {
    *ret = recorded;
    return EXIT_PASSED;
  }
  json_decref(recorded.header);
  json_decref(recorded.checks);
  if (reason)
    return refuse_file(path, "cannot be read", strerror(reason));
  return refuse_file(path, "has no header of a run",
                     first_is_cut ? "line 1 is cut" : "no line with \"type\":\"header\"");
}

static int
read_file(const char *path, struct recorded *ret)
{
  FILE *file = fopen(path, "re");

  if (!file)
    return refuse_file(path, "cannot be read", strerror(errno));
  int code = take_lines(path, file, ret);
  fclose(file);
  if (code == EXIT_PASSED && ret->cut)
    say_cut(path, ret->cut);
  return code;
}

static int
say_no_memory(void)
{
  message_print("out of memory");
  return EXIT_ENVIRONMENT;
}

/* Takes the recorded settings that were not given again.  A masked value must be given again. */
static int
take_recorded_settings(struct options *options, const json_t *header, struct secrets *secrets)
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
      secrets_add(secrets, given->value, strlen(given->value));
    if (given)
      continue;
    dk_text_printf(&pair, "%s=%s", key, *env ? env : "...");
    if (dk_text_failed(&pair))
      code = say_no_memory();
    else if (*env)
      code = settings_take_env(options, "--set-env", dk_text_str(&pair));
    else if (json_is_true(json_object_get(setting, "masked")))
      code = usage(options, key, "was masked when it was recorded", dk_text_str(&pair),
                   "give it again with --set or --set-env");
    else
      code = settings_add(options, key, text_of(setting, "value"), NULL);
    dk_text_done(&pair);
    if (code != EXIT_PASSED)
      return code;
  }
  return EXIT_PASSED;
}

/* The suppressions of the recorded run, unless others are given now. */
static void
take_suppressions(struct options *options, const json_t *header)
{
  const json_t *files = json_object_get(header, "suppressions");
  const size_t most = sizeof(options->suppressions) / sizeof(options->suppressions[0]);
  bool given = options->n_suppressions > 0;
  size_t i;
  json_t *file;

  json_array_foreach(files, i, file) {
    if (!given && json_string_value(file) && options->n_suppressions < most)
      options->suppressions[options->n_suppressions++] = json_string_value(file);
  }
}

/* The recorded commands for the server, unless others are given now. */
static int
take_recorded_server(struct options *options, const json_t *header)
{
  const json_t *server = json_object_get(header, "server");
  size_t n, i;
  const struct server_option *rows = server_options_all(&n);
  json_t *given;

  json_array_foreach(server, i, given) {
    for (size_t r = 0; r < n; r++) {
      const char **value = server_options_value(&options->server, &rows[r]);
      if (strcmp(rows[r].name, text_of(given, "option")) != 0 || *value)
        continue;
      if (json_is_true(json_object_get(given, "masked")))
        return usage(options, rows[r].name, "was masked when it was recorded", NULL,
                     "give it again");
      *value = text_of(given, "value");
    }
  }
  return EXIT_PASSED;
}

static bool
did_not_pass(const json_t *check)
{
  const char *verdict = text_of(check, "verdict");

  return strcmp(verdict, "pass") != 0 && strcmp(verdict, "skip") != 0;
}

/* The named check, if the recorded run had it. */
static int
take_named(struct options *options, const char *path, const json_t *checks, const char *name)
{
  struct suggest nearest = {.word = name};
  struct dk_text next = DK_TEXT_EMPTY;
  bool found = false;
  size_t i;
  json_t *check;

  json_array_foreach(checks, i, check) {
    found = found || strcmp(text_of(check, "check"), name) == 0;
    suggest_try(&nearest, text_of(check, "check"));
  }
  options->only[options->n_only++] = name;
  options->memcheck = strstr(name, "@memcheck") != NULL;
  int code = found ? EXIT_PASSED
                   : usage(options, name, "was not part of the recorded run", path,
                           message_did_you_mean(&next, nearest.best,
                                                "durakit check --only runs it"));
  dk_text_done(&next);
  return code;
}

/* The checks to run again: the named one, or all that did not pass. */
static int
take_checks(struct options *options, const char *path, const struct recorded *recorded,
            const char *name)
{
  const json_t *checks = recorded->checks;
  size_t i;
  json_t *check;

  free(options->only);
  options->n_only = 0;
  options->only = calloc(json_array_size(checks) + 1, sizeof(*options->only));
  if (!options->only)
    return say_no_memory();
  bool native = false;
  if (name)
    return take_named(options, path, checks, name);
  json_array_foreach(checks, i, check) {
    if (!did_not_pass(check))
      continue;
    options->only[options->n_only++] = text_of(check, "check");
    if (strcmp(text_of(check, "mode"), "memcheck") == 0)
      options->memcheck = true;
    else
      native = true;
  }
  options->both = native && options->memcheck;
  if (options->n_only > 0)
    return EXIT_PASSED;
  message_problem(&(struct problem){.where = path,
                                    .what = recorded->cut
                                              ? "every check before the cut passed: there is "
                                                "nothing to repeat"
                                              : "every check in it passed: there is nothing to "
                                                "repeat",
                                    .next = "FILE:CHECK names one"}, NULL);
  return EXIT_INCOMPLETE;
}

/* Prints the command before it is run. */
static int
say_command(const struct options *options, const struct secrets *secrets)
{
  struct kit_probe nothing = {0};
  struct run run = {.options = options, .probe = &nothing, .described = true, .secrets = *secrets};
  struct dk_text only = DK_TEXT_EMPTY;
  struct dk_text command = DK_TEXT_EMPTY;

  for (size_t i = 0; i < options->n_only; i++)
    dk_text_printf(&only, "%s%s", i ? "," : "", options->only[i]);
  repro_command(&command, &run, dk_text_str(&only), options->memcheck);
  bool whole = !dk_text_failed(&only) && !dk_text_failed(&command) && !secrets->failed;
  if (whole)
    message_print("again: %s%s", dk_text_str(&command),
                  options->both ? ", and without --memcheck" : "");
  dk_text_done(&only);
  dk_text_done(&command);
  return whole ? EXIT_PASSED : say_no_memory();
}

static int
repeat(struct options *options, const char *path, const char *name,
       const struct recorded *recorded)
{
  const json_t *header = recorded->header;
  struct secrets secrets = {0};
  int code = take_checks(options, path, recorded, name);

  if (code == EXIT_PASSED)
    code = take_recorded_settings(options, header, &secrets);
  if (code == EXIT_PASSED)
    code = take_recorded_server(options, header);
  if (code == EXIT_PASSED) {
    options->command = COMMAND_CHECK;
    options->arguments[0] = text_of(json_object_get(header, "plugin"), "path");
    options->seed = strtoull(text_of(header, "seed"), NULL, 0);
    options->timeout_scale = json_number_value(json_object_get(header, "timeout_scale"));
    options->next = json_is_true(json_object_get(header, "next"));
    if (options->memcheck)
      take_suppressions(options, header);
    for (size_t i = 0; i < options->n_settings; i++)
      secrets_add_passwords(&secrets, options->settings[i].value,
                            strlen(options->settings[i].value));
    server_options_add_secrets(&secrets, &options->server);
    code = say_command(options, &secrets);
  }
  secrets_done(&secrets);
  return code == EXIT_PASSED ? command_certify(options) : code;
}

int
command_repro(struct options *options)
{
  struct recorded recorded;
  char *path = strdup(options->arguments[0]);
  char *colon = path ? strrchr(path, ':') : NULL;
  const char *name = NULL;

  if (!path)
    return say_no_memory();
  if (colon && colon[1]) {
    *colon = '\0';
    name = colon + 1;
  }
  int code = read_file(path, &recorded);
  if (code == EXIT_PASSED) {
    code = repeat(options, path, name, &recorded);
    json_decref(recorded.header);
    json_decref(recorded.checks);
  }
  free(path);
  return code;
}
