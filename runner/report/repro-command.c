/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that run one check again. */
#include "runner/report/repro-command.h"

#include <stdio.h>
#include <string.h>

#include "runner/cli/server-options.h"
#include "runner/report/report-text.h"

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
  if (run_is_secret(run, given))
    dk_text_puts(&pair, "***");
  else
    secrets_mask(&run->secrets, &pair, given->value, strlen(given->value));
  dk_text_puts(text, " --set ");
  repro_quote(text, dk_text_str(&pair));
  if (dk_text_failed(&pair))
    dk_text_fail(text);
  dk_text_done(&pair);
}

static void
add_server(struct dk_text *text, const struct run *run)
{
  size_t n;
  const struct server_option *options = server_options_all(&n);
  struct dk_text shown = DK_TEXT_EMPTY;

  for (size_t i = 0; i < n; i++) {
    const char *value = server_options_given(&run->options->server, &options[i]);
    if (!value)
      continue;
    dk_text_reset(&shown);
    secrets_mask(&run->secrets, &shown, value, strlen(value));
    dk_text_printf(text, " %s ", options[i].name);
    repro_quote(text, dk_text_str(&shown));
    if (dk_text_failed(&shown))
      dk_text_fail(text);
  }
  dk_text_done(&shown);
}

void
repro_command(struct dk_text *text, const struct run *run, const char *only, bool memcheck)
{
  dk_text_puts(text, "durakit check ");
  repro_quote(text, run->options->arguments[0]);
  dk_text_puts(text, " --only ");
  repro_quote(text, only);
  if (memcheck)
    dk_text_puts(text, " --memcheck");
  for (size_t i = 0; memcheck && i < run->options->n_suppressions; i++) {
    dk_text_puts(text, " --suppressions ");
    repro_quote(text, run->options->suppressions[i]);
  }
  dk_text_puts(text, " --seed ");
  report_seed(text, run);
  for (size_t i = 0; i < run->options->n_settings; i++)
    add_setting(text, run, &run->options->settings[i]);
  add_server(text, run);
  if (run->options->timeout_scale < 1 || run->options->timeout_scale > 1)
    dk_text_printf(text, " --timeout-scale %g", run->options->timeout_scale);
  if (run->options->next)
    dk_text_puts(text, " --next");
}

void
repro_of(struct dk_text *text, const struct run *run, const struct result *result)
{
  repro_command(text, run, result->check->id, result->mode == MODE_MEMCHECK);
}
