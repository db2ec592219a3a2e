/* SPDX-License-Identifier: Apache-2.0 */
/* The store in memory: how its rows are found (hash tables) and kept in order (lists).  Owns the
 * tables; everything here is under store.mutex. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conformance/model/state.h"
#include "core/base/checksum.h"

/* ---- lists and tables ------------------------------------------------------------------------ */

void
list_init(struct link *list)
{
  list->previous = list->next = list;
}

void
link_after(struct link *place, struct link *link)
{
  link->previous = place;
  link->next = place->next;
  place->next->previous = link;
  place->next = link;
}

void
link_remove(struct link *link)
{
  link->previous->next = link->next;
  link->next->previous = link->previous;
  list_init(link);
}

void
link_to_end(struct link *list, struct link *link)
{
  link_remove(link);
  link_after(list->previous, link);
}

static void
table_grow(struct table *t)
{
  size_t n_slots = t->n_slots * 2;
  struct entry **slots = calloc(n_slots, sizeof *slots);

  if (!slots)
    return; /* it still works, more slowly */
  for (size_t i = 0; i < t->n_slots; i++) {
    for (struct entry *e = t->slots[i], *next; e; e = next) {
      next = e->next;
      e->next = slots[e->hash % n_slots];
      slots[e->hash % n_slots] = e;
    }
  }
  free(t->slots);
  t->slots = slots;
  t->n_slots = n_slots;
}

void
table_add(struct table *t, struct entry *entry, uint64_t hash)
{
  if (t->n >= t->n_slots)
    table_grow(t);
  entry->hash = hash;
  entry->next = t->slots[hash % t->n_slots];
  t->slots[hash % t->n_slots] = entry;
  t->n++;
}

void
table_remove(struct table *t, struct entry *entry)
{
  struct entry **at = &t->slots[entry->hash % t->n_slots];

  while (*at != entry)
    at = &(*at)->next;
  *at = entry->next;
  t->n--;
}

#define FOR_EACH_IN(table, hash_, e)                                                               \
  for (struct entry *e = (table)->slots[(hash_) % (table)->n_slots]; e; e = e->next)               \
    if (e->hash == (hash_))

/* ---- finding --------------------------------------------------------------------------------- */

bool
equal_bytes(struct dk_bytes a, struct dk_bytes b)
{
  return !a.ptr == !b.ptr && a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

uint64_t
hash_of_instance(struct dk_bytes id)
{
  return dk_fnv1a64(DK_FNV1A64_START, id.ptr, id.len);
}

uint64_t
hash_of_identity(const struct identity *i)
{
  uint64_t hash = hash_of_instance(i->instance);

  hash = dk_fnv1a64(hash, &i->execution_id, sizeof i->execution_id);
  return dk_fnv1a64(hash, &i->activity_id, sizeof i->activity_id);
}

uint64_t
hash_of_message(struct dk_bytes instance, struct dk_bytes id)
{
  return dk_fnv1a64(hash_of_instance(instance), id.ptr, id.len);
}

struct instance *
find_instance(const struct store *s, struct dk_bytes id)
{
  FOR_EACH_IN(&s->instances, hash_of_instance(id), e) {
    struct instance *instance = OWNER_OF(e, struct instance, entry);
    if (equal_bytes(instance->id, id))
      return instance;
  }
  return NULL;
}

static int
compare_instances(const void *a, const void *b)
{
  const struct instance *const *x = a, *const *y = b;

  return str_compare((*x)->id, (*y)->id);
}

/* ADMIN-1.  What mutants sort by. */
static int
compare_in_locale(const void *a, const void *b)
{
  const struct instance *const *x = a, *const *y = b;
  int order = strcasecmp((*x)->id.ptr, (*y)->id.ptr);

  return order ? order : compare_instances(a, b);
}

static bool
is_number(struct dk_bytes id)
{
  for (size_t i = 0; i < id.len; i++)
    if (id.ptr[i] < '0' || id.ptr[i] > '9')
      return false;
  return id.len > 0;
}

static int
compare_as_numbers(const void *a, const void *b)
{
  const struct instance *const *x = a, *const *y = b;
  struct dk_bytes one = (*x)->id, other = (*y)->id;

  if (is_number(one) && is_number(other) && one.len != other.len)
    return one.len < other.len ? -1 : 1;
  return compare_instances(a, b);
}

static int
compare_by_birth(const void *a, const void *b)
{
  const struct instance *const *x = a, *const *y = b;

  if ((*x)->birth != (*y)->birth)
    return (*x)->birth < (*y)->birth ? -1 : 1;
  return compare_instances(a, b);
}

/* Sorted when it is asked for, and kept until an instance comes or goes. */
struct instance *const *
instances_in_order(struct store *s)
{
  struct instance **all;
  size_t n = 0;

  if (s->is_in_order)
    return s->in_order;
  all = reallocarray(s->in_order, s->instances.n + 1, sizeof(struct instance *));
  if (!all)
    return NULL;
  for (size_t i = 0; i < s->instances.n_slots; i++)
    for (struct entry *e = s->instances.slots[i]; e; e = e->next)
      all[n++] = OWNER_OF(e, struct instance, entry);
  qsort(all, n, sizeof(struct instance *),
        MUTANT(M_ADMIN_ORDER_OF_A_LOCALE)    ? compare_in_locale
        : MUTANT(M_ADMIN_IDS_AS_NUMBERS)     ? compare_as_numbers
        : MUTANT(M_ADMIN_IN_ORDER_OF_BIRTHS) ? compare_by_birth
                                             : compare_instances);
  s->in_order = all;
  s->is_in_order = true;
  return all;
}

struct message *
find_message(const struct store *s, struct dk_bytes instance, struct dk_bytes id)
{
  if (!id.ptr)
    return NULL;
  FOR_EACH_IN(&s->messages, hash_of_message(instance, id), e) {
    struct message *message = OWNER_OF(e, struct message, entry);
    if (equal_bytes(message->of->id, instance) && equal_bytes(message->id, id))
      return message;
  }
  return NULL;
}

struct session *
find_session(const struct store *s, struct dk_bytes id)
{
  struct session *session = s->sessions;

  while (session && !equal_bytes(session->id, id))
    session = session->next;
  return session;
}

struct row *
find_row(const struct store *s, const struct identity *i)
{
  FOR_EACH_IN(&s->activities, hash_of_identity(i), e) {
    struct row *row = OWNER_OF(e, struct row, entry);
    if (row->identity.execution_id == i->execution_id &&
        row->identity.activity_id == i->activity_id &&
        equal_bytes(row->identity.instance, i->instance))
      return row;
  }
  return NULL;
}
