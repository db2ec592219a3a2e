/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers that memory ran out while JSON was built or read.
 *
 * Members are added one by one, and a member that could not be made is missing from a value that
 * looks whole; jansson itself forgets some failures while it reads.  All of its memory comes from
 * one function, which remembers.  So code that writes JSON asks here before the first byte.
 */
#ifndef DK_RUNNER_CLI_JSON_MEMORY_H
#define DK_RUNNER_CLI_JSON_MEMORY_H

#include <jansson.h>
#include <stdbool.h>

#include "core/base/text.h"

/* Before the first use of jansson, while there is one thread. */
void json_memory_watch(void);
/* A text as a string; if the text is incomplete, NULL, and that is remembered, too. */
json_t *json_memory_of_text(const struct dk_text *text);
/* Memory has run out: no JSON of this process can be trusted to be whole. */
bool json_memory_failed(void);

#endif
