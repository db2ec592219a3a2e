/* SPDX-License-Identifier: Apache-2.0 */
/* Between jansson and malloc: see json-memory.h.  Jansson's functions for memory belong to the
 * process and have no context; the same holds for what is remembered here. */
#include "runner/cli/json-memory.h"

#include <stdatomic.h>
#include <stdlib.h>

static atomic_bool failed;

static void *
allocate(size_t size)
{
  void *memory = malloc(size);

  if (!memory)
    atomic_store(&failed, true);
  return memory;
}

void
json_memory_watch(void)
{
  json_set_alloc_funcs(allocate, free);
}

json_t *
json_memory_of_text(const struct dk_text *text)
{
  if (!dk_text_failed(text))
    return json_stringn(dk_text_str(text), text->length);
  atomic_store(&failed, true);
  return NULL;
}

bool
json_memory_failed(void)
{
  return atomic_load(&failed);
}
