/* SPDX-License-Identifier: Apache-2.0 */
/* How a server may be hurt, as it was given.  Owns nothing. */
#include "runner/cli/server-options.h"

#include <stddef.h>

#include "runner/run/run.h"

static const struct hurting_option options[] = {
  {"--store-crash", offsetof(struct hurting, crash)},
  {"--store-start", offsetof(struct hurting, start)},
  {"--store-pause", offsetof(struct hurting, pause)},
  {"--store-resume", offsetof(struct hurting, resume)},
  {"--store-deny", offsetof(struct hurting, deny)},
  {"--store-allow", offsetof(struct hurting, allow)},
  {"--store-address", offsetof(struct hurting, address)},
  {"--through", offsetof(struct hurting, through)},
};

const struct hurting_option *
hurting_options(size_t *ret_n)
{
  *ret_n = sizeof(options) / sizeof(options[0]);
  return options;
}

const char **
hurting_value(struct hurting *hurting, const struct hurting_option *option)
{
  return (const char **)(void *)((char *)hurting + option->offset);
}

const char *
hurting_given(const struct hurting *hurting, const struct hurting_option *option)
{
  return *(const char *const *)(const void *)((const char *)hurting + option->offset);
}

void
facts_server(struct dk_text *text, const struct run *run)
{
  const struct hurting *h = &run->options->hurting;
  const struct {
    const char *given, *what, *options;
  } rows[] = {
    {h->crash, "crash and restart", "--store-crash, --store-start"},
    {h->pause, "a server that is stopped", "--store-pause, --store-resume"},
    {h->through, "messages that are lost", "--through, --store-address"},
    {h->deny, "rights withdrawn", "--store-deny, --store-allow"},
  };
  bool first = true;

  if (!run->described || run->probe->shared < 3)
    return;
  dk_text_puts(text, "server: tested are lost connections");
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (rows[i].given)
      dk_text_printf(text, ", %s", rows[i].what);
  }
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    if (rows[i].given)
      continue;
    dk_text_printf(text, "%s%s (%s)", first ? "; not tested: " : ", ", rows[i].what,
                   rows[i].options);
    first = false;
  }
}
