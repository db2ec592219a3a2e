/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: see stress.h. */
#include "tests/stress/stress.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint64_t
tick(struct journal *j)
{
  return atomic_fetch_add(&j->tick, 1) + 1;
}

uint64_t
fresh(struct journal *j)
{
  return atomic_fetch_add(&j->number, 1) + 1;
}

struct entry *
enter(struct journal *j, enum kind kind, uint64_t number, uint64_t by)
{
  uint64_t at = atomic_fetch_add(&j->n, 1);

  if (at >= MOST_ENTRIES) {
    broken(j, "the journal is full");
    at = MOST_ENTRIES - 1;
  }
  struct entry *entry = &j->entries[at];
  /* Who is killed in the middle of this has asked for nothing: what is not answered is said first,
   * for else it would read as DK_OK, and the kind last. */
  atomic_store(&entry->status, NO_ANSWER);
  atomic_thread_fence(memory_order_seq_cst);
  entry->number = number;
  entry->by = by;
  entry->released = UINT64_MAX;
  entry->asked = tick(j);
  atomic_thread_fence(memory_order_seq_cst);
  entry->kind = (int32_t)kind;
  return entry;
}

void
broken(struct journal *j, const char *format, ...)
{
  va_list args;

  if (atomic_exchange(&j->is_broken, true))
    return;
  va_start(args, format);
  vsnprintf(j->broken, sizeof j->broken, format, args);
  va_end(args);
}

void
name_instance(char name[16], uint64_t instance)
{
  snprintf(name, 16, "inst-%u", (unsigned)(instance % MOST_INSTANCES));
}

uint64_t
number_of_instance(struct dk_bytes name)
{
  unsigned number = 0;

  sscanf(name.ptr, "inst-%u", &number);
  return number % MOST_INSTANCES;
}

void
let_pass(int ms)
{
  poll(NULL, 0, ms);
}

struct dk_bytes
text(const char *string)
{
  return (struct dk_bytes){string, strlen(string)};
}
