/* SPDX-License-Identifier: Apache-2.0 */
/* Retry counts: see retry-counts.h.  The lock guards the rows; nothing is called under it. */
#include "core/runtime/shared/retry-counts.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checksum.h"
#include "core/runtime/shared/ticks.h"

enum { ROWS = 1024, MOST_IN_A_ROW = 32, LONG_OVER_MS = 10 * 1000 };

struct retry_count {
  struct retry_count *next;
  uint32_t pardoned, n_delays, told;
  enum delay why;
  int64_t until; /* the tick until which it is delayed; 0: it is not */
  size_t length;
  char instance[];
};

struct retry_counts {
  struct dk_lock lock;
  struct retry_count *rows[ROWS];
  atomic_size_t n; /* so that nothing is looked up if there are no rows */
};

const char *
delay_name(enum delay why)
{
  static const char *const names[N_DELAYS] = {
      [DELAY_UNREGISTERED] = "unregistered",
      [DELAY_NONDETERMINISM] = "nondeterminism",
      [DELAY_CORRUPT] = "corrupt",
      [DELAY_UNREADABLE] = "unreadable",
      [DELAY_LIMIT] = "limit",
      [DELAY_WRONG_CALL] = "wrong_call",
      [DELAY_OVERDUE] = "overdue",
      [DELAY_STUCK] = "stuck",
      [DELAY_NO_MEMORY] = "no_memory",
      [DELAY_TAKEN] = "taken",
      [DELAY_REFUSED] = "refused",
      [DELAY_DROPPED] = "dropped",
      [DELAY_NO_START] = "no_start",
  };

  return names[why];
}

struct retry_counts *
retry_counts_new(void)
{
  struct retry_counts *retries = calloc(1, sizeof(*retries));

  if (retries)
    dk_lock_init(&retries->lock);
  return retries;
}

void
retry_counts_free(struct retry_counts *retries)
{
  if (!retries)
    return;
  for (size_t i = 0; i < ROWS; i++)
    while (retries->rows[i]) {
      struct retry_count *gone = retries->rows[i];
      retries->rows[i] = gone->next;
      free(gone);
    }
  dk_lock_done(&retries->lock);
  free(retries);
}

static struct retry_count **
row_of(struct retry_counts *retries, dk_str instance)
{
  uint64_t hash = dk_fnv1a64(DK_FNV1A64_START, instance.ptr, instance.len);

  return &retries->rows[(hash ^ hash >> 32) % ROWS];
}

/* The link to the row, or to NULL. */
static struct retry_count **
retry_counts_find(struct retry_counts *retries, dk_str instance)
{
  struct retry_count **link = row_of(retries, instance);

  assert(dk_lock_is_held(&retries->lock));
  while (*link && ((*link)->length != instance.len ||
                   memcmp((*link)->instance, instance.ptr, instance.len) != 0))
    link = &(*link)->next;
  return link;
}

static void
remove_retry_count(struct retry_counts *retries, struct retry_count **link)
{
  struct retry_count *gone = *link;

  assert(dk_lock_is_held(&retries->lock));
  assert(atomic_load(&retries->n) > 0);
  *link = gone->next;
  free(gone);
  atomic_fetch_sub(&retries->n, 1);
}

/* Deletes the last row of a list that has become too long. */
static void
shorten(struct retry_counts *retries, struct retry_count **row)
{
  size_t n = 0;

  for (; *row; row = &(*row)->next)
    if (++n > MOST_IN_A_ROW) {
      remove_retry_count(retries, row);
      return;
    }
}

/* The instance's row, made if there is none; NULL: no memory, and nothing is counted. */
static struct retry_count *
retry_count_of(struct retry_counts *retries, dk_str instance)
{
  struct retry_count **link = retry_counts_find(retries, instance),
                     **row = row_of(retries, instance);

  if (*link)
    return *link;
  struct retry_count *made = calloc(1, sizeof(*made) + instance.len);
  if (!made)
    return NULL;
  made->length = instance.len;
  memcpy(made->instance, instance.ptr, instance.len);
  made->next = *row;
  *row = made;
  atomic_fetch_add(&retries->n, 1);
  shorten(retries, row);
  return made;
}

uint32_t
retry_counts_delayed_again(struct retry_counts *retries, dk_str instance, enum delay why,
                           bool *ret_first)
{
  uint32_t n_delays = 1;

  *ret_first = true;
  dk_lock(&retries->lock);
  struct retry_count *retry_count = retry_count_of(retries, instance);
  if (retry_count) {
    n_delays = ++retry_count->n_delays;
    *ret_first = !(retry_count->told & 1u << why);
    retry_count->told |= 1u << why;
  }
  dk_unlock(&retries->lock);
  return n_delays;
}

void
retry_counts_delayed_until(struct retry_counts *retries, dk_str instance, enum delay why,
                           int64_t until)
{
  dk_lock(&retries->lock);
  struct retry_count *retry_count = retry_count_of(retries, instance);
  if (retry_count) {
    retry_count->why = why;
    retry_count->until = until;
  }
  dk_unlock(&retries->lock);
}

size_t
retry_counts_delayed(struct retry_counts *retries, int64_t now, enum delay *ret_why, char *room,
                     size_t size)
{
  const struct retry_count *one = NULL;
  size_t n = 0;

  if (atomic_load(&retries->n) == 0)
    return 0;
  dk_lock(&retries->lock);
  for (size_t i = 0; i < ROWS; i++)
    for (const struct retry_count *retry_count = retries->rows[i]; retry_count;
         retry_count = retry_count->next)
      if (retry_count->until != 0 && now < ticks_after(retry_count->until, LONG_OVER_MS)) {
        one = retry_count;
        n++;
      }
  if (one) {
    *ret_why = one->why;
    snprintf(room, size, "%.*s", (int)one->length, one->instance);
  }
  dk_unlock(&retries->lock);
  return n;
}

void
retry_counts_pardon(struct retry_counts *retries, dk_str instance, uint32_t attempt)
{
  dk_lock(&retries->lock);
  struct retry_count *retry_count = retry_count_of(retries, instance);
  if (retry_count && retry_count->pardoned < attempt)
    retry_count->pardoned = attempt;
  dk_unlock(&retries->lock);
}

uint32_t
retry_counts_judged(struct retry_counts *retries, dk_str instance, uint32_t attempt)
{
  uint32_t pardoned = 0;

  if (attempt <= 1 || atomic_load(&retries->n) == 0)
    return attempt;
  dk_lock(&retries->lock);
  const struct retry_count *retry_count = *retry_counts_find(retries, instance);
  if (retry_count)
    pardoned = retry_count->pardoned;
  dk_unlock(&retries->lock);
  return attempt > pardoned ? attempt - pardoned : 1;
}

void
retry_counts_forget(struct retry_counts *retries, dk_str instance)
{
  if (atomic_load(&retries->n) == 0)
    return;
  dk_lock(&retries->lock);
  struct retry_count **link = retry_counts_find(retries, instance);
  if (*link)
    remove_retry_count(retries, link);
  dk_unlock(&retries->lock);
}
