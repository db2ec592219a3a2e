/* SPDX-License-Identifier: Apache-2.0 */
/* What every test of a provider of ours needs that has a host: see words.h. */
#include "providers/testing/words.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"

struct dk_library *
load_plugin(const char *variable)
{
  struct dk_library *library;
  struct dk_refusal refusal;
  const char *plugin = getenv(variable);

  if (!plugin || dk_library_open(plugin, 0, &library, &refusal) < 0)
    BAIL_OUT("no plugin: %s: %s", variable, plugin ? refusal.what : "is not set");
  return library;
}

struct dk_caller *
new_caller(void)
{
  struct dk_caller *caller = dk_caller_new(NULL, 0);

  if (!caller)
    BAIL_OUT("no caller");
  return caller;
}

void
note_violation(void *context, const char *operation, const char *clause, const char *what)
{
  (void)context;
  fail("%s breaks %s: %s", operation, clause, what);
}

struct dk_bytes
text(const char *string)
{
  return (struct dk_bytes){string, strlen(string)};
}
