/* SPDX-License-Identifier: Apache-2.0 */
/* Remembers that memory failed while JSON was put together or read.
 *
 * Members are added one by one, and a member that could not be made is missing from a value that
 * looks whole; jansson itself forgets some failures while it reads.  All of its memory comes by one
 * function, which remembers.  So whoever writes JSON asks here before the first byte.
 */
#ifndef DK_RUNNER_CLI_JSON_MEMORY_H
#define DK_RUNNER_CLI_JSON_MEMORY_H

#include <jansson.h>
#include <stdbool.h>

#include "core/base/text.h"

/* Before the first use of jansson, while there is one thread. */
void json_memory_watch(void);
/* A text as a string; of one that is not whole NULL, and that is remembered, too. */
json_t *json_memory_of_text(const struct dk_text *text);
/* It has failed since: no JSON of this process can be trusted to be whole. */
bool json_memory_failed(void);

#endif
