/* SPDX-License-Identifier: Apache-2.0 */
/* Notes: see retry-counts.h.  The lock guards the rows; nothing is called under it. */
#include "core/runtime/shared/retry-counts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/runtime/shared/ticks.h"

enum { ROWS = 1024, MOST_IN_A_ROW = 32, LONG_OVER_MS = 10 * 1000 };

struct note {
  struct note *next;
  uint32_t pardoned, stalls, told;
  enum stall delays;
  int64_t until; /* the tick until which that delays it; 0: it is not delayed */
  size_t length;
  char instance[];
};

struct notes {
  pthread_mutex_t lock;
  struct note *rows[ROWS];
  atomic_size_t n; /* so that nothing is looked up where all is well */
};

const char *
stall_name(enum stall why)
{
  static const char *const names[N_STALLS] = {
    [STALL_UNREGISTERED] = "unregistered",
    [STALL_NONDETERMINISM] = "nondeterminism",
    [STALL_CORRUPT] = "corrupt",
    [STALL_UNREADABLE] = "unreadable",
    [STALL_LIMIT] = "limit",
    [STALL_WRONG_CALL] = "wrong_call",
    [STALL_OVERDUE] = "overdue",
    [STALL_STUCK] = "stuck",
    [STALL_NO_MEMORY] = "no_memory",
    [STALL_TAKEN] = "taken",
    [STALL_REFUSED] = "refused",
    [STALL_DROPPED] = "dropped",
    [STALL_NO_START] = "no_start",
  };

  return names[why];
}

struct notes *
notes_new(void)
{
  struct notes *notes = calloc(1, sizeof(*notes));

  if (notes)
    pthread_mutex_init(&notes->lock, NULL);
  return notes;
}

void
notes_free(struct notes *notes)
{
  if (!notes)
    return;
  for (size_t i = 0; i < ROWS; i++)
    while (notes->rows[i]) {
      struct note *gone = notes->rows[i];
      notes->rows[i] = gone->next;
      free(gone);
    }
  pthread_mutex_destroy(&notes->lock);
  free(notes);
}

static struct note **
row_of(struct notes *notes, dk_str instance)
{
  uint64_t hash = 0xcbf29ce484222325u;

  for (size_t i = 0; i < instance.len; i++)
    hash = (hash ^ (unsigned char)instance.ptr[i]) * 0x100000001b3u;
  return &notes->rows[(hash ^ hash >> 32) % ROWS];
}

/* The link to the note, or to NULL. */
static struct note **
find(struct notes *notes, dk_str instance)
{
  struct note **link = row_of(notes, instance);

  while (*link && ((*link)->length != instance.len ||
                   memcmp((*link)->instance, instance.ptr, instance.len) != 0))
    link = &(*link)->next;
  return link;
}

static void
remove_note(struct notes *notes, struct note **link)
{
  struct note *gone = *link;

  *link = gone->next;
  free(gone);
  atomic_fetch_sub(&notes->n, 1);
}

/* The last of a row that has become too long goes. */
static void
shorten(struct notes *notes, struct note **row)
{
  size_t n = 0;

  for (; *row; row = &(*row)->next)
    if (++n > MOST_IN_A_ROW) {
      remove_note(notes, row);
      return;
    }
}

/* The instance's note, made if there is none; NULL: no memory, and it is forgotten. */
static struct note *
note_of(struct notes *notes, dk_str instance)
{
  struct note **link = find(notes, instance), **row = row_of(notes, instance);

  if (*link)
    return *link;
  struct note *made = calloc(1, sizeof(*made) + instance.len);
  if (!made)
    return NULL;
  made->length = instance.len;
  memcpy(made->instance, instance.ptr, instance.len);
  made->next = *row;
  *row = made;
  atomic_fetch_add(&notes->n, 1);
  shorten(notes, row);
  return made;
}

uint32_t
notes_stalled(struct notes *notes, dk_str instance, enum stall why, bool *ret_first)
{
  uint32_t stalls = 1;

  *ret_first = true;
  pthread_mutex_lock(&notes->lock);
  struct note *note = note_of(notes, instance);
  if (note) {
    stalls = ++note->stalls;
    *ret_first = !(note->told & 1u << why);
    note->told |= 1u << why;
  }
  pthread_mutex_unlock(&notes->lock);
  return stalls;
}

void
notes_delayed_until(struct notes *notes, dk_str instance, enum stall why, int64_t until)
{
  pthread_mutex_lock(&notes->lock);
  struct note *note = note_of(notes, instance);
  if (note) {
    note->delays = why;
    note->until = until;
  }
  pthread_mutex_unlock(&notes->lock);
}

size_t
notes_delayed(struct notes *notes, int64_t now, enum stall *ret_why, char *room, size_t size)
{
  const struct note *one = NULL;
  size_t n = 0;

  if (atomic_load(&notes->n) == 0)
    return 0;
  pthread_mutex_lock(&notes->lock);
  for (size_t i = 0; i < ROWS; i++)
    for (const struct note *note = notes->rows[i]; note; note = note->next)
      if (note->until != 0 && now < ticks_after(note->until, LONG_OVER_MS)) {
        one = note;
        n++;
      }
  if (one) {
    *ret_why = one->delays;
    snprintf(room, size, "%.*s", (int)one->length, one->instance);
  }
  pthread_mutex_unlock(&notes->lock);
  return n;
}

void
notes_pardon(struct notes *notes, dk_str instance, uint32_t attempt)
{
  pthread_mutex_lock(&notes->lock);
  struct note *note = note_of(notes, instance);
  if (note && note->pardoned < attempt)
    note->pardoned = attempt;
  pthread_mutex_unlock(&notes->lock);
}

uint32_t
notes_judged(struct notes *notes, dk_str instance, uint32_t attempt)
{
  uint32_t pardoned = 0;

  if (attempt <= 1 || atomic_load(&notes->n) == 0)
    return attempt;
  pthread_mutex_lock(&notes->lock);
  const struct note *note = *find(notes, instance);
  if (note)
    pardoned = note->pardoned;
  pthread_mutex_unlock(&notes->lock);
  return attempt > pardoned ? attempt - pardoned : 1;
}

void
notes_forget(struct notes *notes, dk_str instance)
{
  if (atomic_load(&notes->n) == 0)
    return;
  pthread_mutex_lock(&notes->lock);
  struct note **link = find(notes, instance);
  if (*link)
    remove_note(notes, link);
  pthread_mutex_unlock(&notes->lock);
}
