/* SPDX-License-Identifier: Apache-2.0 */
/* Reads settings from the command line, the environment and files.  No message shows a value. */
#include "runner/cli/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/cli/usage.h"

int
settings_add(struct options *options, const char *key, const char *value, const char *env)
{
  struct given given = {
    .key = strdup(key), .value = strdup(value), .env = env ? strdup(env) : NULL};
  struct given *grown =
    reallocarray(options->settings, options->n_settings + 1, sizeof(*options->settings));

  if (grown)
    options->settings = grown;
  if (!grown || !given.key || !given.value || (env && !given.env)) {
    free(given.key);
    free(given.value);
    free(given.env);
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  options->settings[options->n_settings++] = given;
  return EXIT_PASSED;
}

/* Splits KEY=VALUE; copies the key to `key`.  NULL: it is not such a pair. */
static const char *
split(const char *pair, char *key, size_t size)
{
  size_t n = strcspn(pair, "=");

  if (n == 0 || pair[n] != '=' || n >= size)
    return NULL;
  memcpy(key, pair, n);
  key[n] = '\0';
  return pair + n + 1;
}

int
settings_take_pair(struct options *options, const char *option, const char *pair)
{
  char key[128];
  const char *value = split(pair, key, sizeof(key));

  if (!value)
    return usage(options, option, "needs a key and a value", "KEY=VALUE", NULL);
  return settings_add(options, key, value, NULL);
}

int
settings_take_env(struct options *options, const char *option, const char *pair)
{
  char key[128];
  const char *name = split(pair, key, sizeof(key));

  if (!name || !*name)
    return usage(options, option, "needs a key and a variable", "KEY=VARIABLE", NULL);
  const char *value = getenv(name);
  if (!value)
    return usage(options, name, "this environment variable is not set", "the value of the setting",
                 NULL);
  bool is_private = strncmp(name, SETTINGS_PRIVATE, strlen(SETTINGS_PRIVATE)) == 0;
  return settings_add(options, key, value, is_private ? NULL : name);
}

static char *
trim(char *text)
{
  while (isspace((unsigned char)*text))
    text++;
  size_t n = strlen(text);
  while (n > 0 && isspace((unsigned char)text[n - 1]))
    text[--n] = '\0';
  return text;
}

/* What the last setting came from. */
static int
note_file(struct options *options, const char *path, unsigned number, const char *whose)
{
  struct given *given = &options->settings[options->n_settings - 1];

  given->file = strdup(path);
  given->line = number;
  given->whose = whose;
  if (given->file)
    return EXIT_PASSED;
  message_print("out of memory");
  return EXIT_ENVIRONMENT;
}

/* One line of a file: "key = value", a comment, or nothing.  Some editors begin a file with a byte
 * order mark. */
static int
take_settings_line(struct options *options, const char *path, unsigned number, char *line,
                   const char *whose)
{
  bool is_marked = number == 1 && strncmp(line, "\xef\xbb\xbf", 3) == 0;
  char *text = trim(line + (is_marked ? 3 : 0));
  char *equals = strchr(text, '=');

  if (*text == '#' || !*text)
    return EXIT_PASSED;
  if (!equals || equals == text) {
    struct dk_text where = DK_TEXT_EMPTY;
    dk_text_printf(&where, "%s:%u", path, number);
    int code = usage(options, dk_text_str(&where), "this line is not a setting",
                     "key = value, or # a comment", NULL);
    dk_text_done(&where);
    return code;
  }
  *equals = '\0';
  int code = settings_add(options, trim(text), trim(equals + 1), NULL);
  return code == EXIT_PASSED ? note_file(options, path, number, whose) : code;
}

/* `whose`: the option or variable that names it. */
static int
refuse_file(const char *path, const char *whose)
{
  struct dk_text next = DK_TEXT_EMPTY;
  int cause = errno;

  dk_text_printf(&next, "make it readable, or name another file with %s", whose);
  message_problem(&(struct problem){.where = path,
                                    .what = "the file of settings cannot be read",
                                    .expected = "lines of key = value",
                                    .found = strerror(cause),
                                    .next = dk_text_str(&next)},
                  NULL);
  dk_text_done(&next);
  return EXIT_USAGE;
}

int
settings_take_file(struct options *options, const char *path, const char *whose)
{
  FILE *file = fopen(path, "re");
  char *line = NULL;
  size_t size = 0;
  int code = EXIT_PASSED;

  if (!file)
    return refuse_file(path, whose);
  for (unsigned n = 1; code == EXIT_PASSED && getline(&line, &size, file) >= 0; n++)
    code = take_settings_line(options, path, n, line, whose);
  if (code == EXIT_PASSED && ferror(file))
    code = refuse_file(path, whose);
  if (line)
    explicit_bzero(line, size);
  free(line);
  fclose(file);
  return code;
}

static void
settings_forget(struct given *given)
{
  free(given->key);
  explicit_bzero(given->value, strlen(given->value));
  free(given->value);
  free(given->env);
  free(given->file);
}

void
settings_done(struct options *options)
{
  for (size_t i = 0; i < options->n_settings; i++)
    settings_forget(&options->settings[i]);
  free(options->settings);
}

/* A key of the command line replaces the same key of the file, which comes later in the list. */
static void
let_flags_win(struct options *options, size_t n_flags)
{
  size_t n = n_flags;

  for (size_t i = n_flags; i < options->n_settings; i++) {
    bool is_given = false;
    for (size_t f = 0; f < n_flags; f++)
      is_given = is_given || strcmp(options->settings[f].key, options->settings[i].key) == 0;
    if (is_given)
      settings_forget(&options->settings[i]);
    else
      options->settings[n++] = options->settings[i];
  }
  options->n_settings = n;
}

static const char *
variable(const char *name)
{
  const char *value = getenv(name);

  return value && *value ? value : NULL;
}

/* The settings belong to the provider, so that those of one never reach another. */
int
settings_take_environment(struct options *options)
{
  const size_t n_flags = options->n_settings;
  struct environment *environment = &options->environment;
  int code = EXIT_PASSED;

  environment->provider = variable("DURAKIT_PROVIDER");
  environment->settings = environment->provider ? variable("DURAKIT_SETTINGS") : NULL;
  if (environment->settings)
    code = settings_take_file(options, environment->settings, "DURAKIT_SETTINGS");
  let_flags_win(options, n_flags);
  return code;
}

int
settings_place(struct given *given)
{
  const char *end = given->file ? strrchr(given->file, '/') : NULL;
  struct dk_text path = DK_TEXT_EMPTY;

  if (!end || given->value[0] == '/' || given->value[0] == '\0')
    return EXIT_PASSED;
  dk_text_printf(&path, "%.*s/%s", (int)(end - given->file), given->file, given->value);
  char *placed = dk_text_failed(&path) ? NULL : strdup(dk_text_str(&path));
  dk_text_done(&path);
  if (!placed) {
    message_print("out of memory");
    return EXIT_ENVIRONMENT;
  }
  free(given->value);
  given->value = placed;
  return EXIT_PASSED;
}

void
settings_tell_source(const struct given *given, struct dk_text *source)
{
  if (!given || !given->file)
    dk_text_puts(source, given && given->env ? "--set-env" : "--set");
  else
    dk_text_printf(source, "%s%s%s", given->whose, given->whose[0] == '-' ? " " : "=",
                   given->file);
}

const struct given *
settings_find(const struct options *options, const char *key)
{
  for (size_t i = 0; key && i < options->n_settings; i++) {
    if (strcmp(options->settings[i].key, key) == 0)
      return &options->settings[i];
  }
  return NULL;
}

struct dk_setting *
settings_for_provider(const struct options *options, const char *except, size_t *ret_n)
{
  struct dk_setting *settings = calloc(options->n_settings + 1, sizeof(*settings));
  size_t n = 0;

  if (!settings)
    return NULL;
  for (size_t i = 0; i < options->n_settings; i++) {
    const struct given *given = &options->settings[i];
    if (except && strcmp(given->key, except) == 0)
      continue;
    settings[n++] = (struct dk_setting){given->key, {given->value, strlen(given->value)}};
  }
  *ret_n = n;
  return settings;
}
