/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON list of numbers: see list.h.  There may be 100,000: each digit by hand. */
#include "providers/sqlite/list.h"

#include <assert.h>
#include <stdlib.h>

enum { LONGEST_NUMBER = 20, LONGEST_ENTRY = 2 * LONGEST_NUMBER + 4, FIRST_ROOM = 1024 };

static bool
has_room(struct list *list)
{
  if (list->is_short || list->room - list->length >= LONGEST_ENTRY)
    return !list->is_short;
  size_t room = list->room ? 2 * list->room : FIRST_ROOM; /* of memory that is there: no overflow */
  char *bytes = realloc(list->bytes, room);
  list->is_short = !bytes;
  if (!bytes)
    return false;
  list->bytes = bytes;
  list->room = room;
  return true;
}

static void
write_number(struct list *list, uint64_t number)
{
  char digits[LONGEST_NUMBER];
  size_t n = 0;

  do
    digits[n++] = (char)('0' + number % 10);
  while ((number /= 10) > 0);
  assert(n <= list->room - list->length);
  while (n > 0)
    list->bytes[list->length++] = digits[--n];
}

static void
separate(struct list *list)
{
  assert(list->room - list->length >= LONGEST_ENTRY); /* has_room has made it */
  list->bytes[list->length] = list->length == 0 ? '[' : ',';
  list->length++;
}

void
list_add(struct list *list, uint64_t number)
{
  if (!has_room(list))
    return;
  separate(list);
  write_number(list, number);
}

void
list_add_pair(struct list *list, uint64_t first, uint64_t second)
{
  if (!has_room(list))
    return;
  separate(list);
  list->bytes[list->length++] = '[';
  write_number(list, first);
  list->bytes[list->length++] = ',';
  write_number(list, second);
  list->bytes[list->length++] = ']';
}

dk_status
list_text(struct operation *op, struct list *list, struct dk_bytes *ret_text)
{
  if (!has_room(list))
    return refuse(op, DK_NO_MEMORY, "out of memory for a list of rows, of %zu bytes so far",
                  list->length);
  if (list->length == 0)
    list->bytes[list->length++] = '[';
  list->bytes[list->length++] = ']';
  *ret_text = (struct dk_bytes){list->bytes, list->length};
  return DK_OK;
}
