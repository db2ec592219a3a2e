/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON list of numbers, or of pairs of them: it gives one statement any number of rows.  It
 * grows.  A lack of memory is reported when the list's text is asked for.  {0} is an empty list. */
#ifndef DK_SQLITE_LIST_H
#define DK_SQLITE_LIST_H

#include "providers/sqlite/handle.h"

struct list {
  char *bytes;          /* to be freed, when the statement is closed */
  size_t length, room;
  bool is_short;        /* of memory */
};

void list_add(struct list *list, uint64_t number);
void list_add_pair(struct list *list, uint64_t first, uint64_t second);

/* Ends the list.  The text lives as long as the list does. */
dk_status list_text(struct operation *op, struct list *list, struct dk_bytes *ret_text);

#endif
