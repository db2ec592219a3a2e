/* SPDX-License-Identifier: Apache-2.0 */
/* A map from names to pointers: see names.h. */
#include "core/base/names.h"

#include "core/base/checksum.h"

enum { FIRST_BUCKETS = 16 };

struct name_entry {
  dk_str name;
  uint64_t hash;
  void *pointer;
  struct name_entry *next;
};

static uint64_t
hash_of(dk_str name)
{
  return dk_fnv1a64(DK_FNV1A64_START, name.ptr, name.len);
}

static struct name_entry *
names_do_find(const struct names *names, dk_str name, uint64_t hash)
{
  if (names->n_buckets == 0)
    return NULL;
  struct name_entry *entry = names->buckets[hash % names->n_buckets];
  while (entry && (entry->hash != hash || !str_equal(entry->name, name)))
    entry = entry->next;
  return entry;
}

static void
names_put(struct name_entry **buckets, size_t n_buckets, struct name_entry *entry)
{
  struct name_entry **bucket = &buckets[entry->hash % n_buckets];

  entry->next = *bucket;
  *bucket = entry;
}

/* Twice as many buckets; the old ones stay in the arena until its end. */
static bool
grow(struct names *names, struct dk_arena *arena)
{
  size_t n = names->n_buckets == 0 ? FIRST_BUCKETS : names->n_buckets * 2;
  struct name_entry **buckets = dk_arena_array(arena, n, sizeof(struct name_entry *));

  if (!buckets)
    return false;
  for (size_t i = 0; i < names->n_buckets; i++)
    for (struct name_entry *entry = names->buckets[i], *next; entry; entry = next) {
      next = entry->next;
      names_put(buckets, n, entry);
    }
  names->buckets = buckets;
  names->n_buckets = n;
  return true;
}

void **
names_at(struct names *names, struct dk_arena *arena, dk_str name)
{
  uint64_t hash = hash_of(name);
  struct name_entry *entry = names_do_find(names, name, hash);

  if (entry)
    return &entry->pointer;
  if (names->n_entries == names->n_buckets && !grow(names, arena))
    return NULL;
  entry = dk_arena_alloc(arena, sizeof(*entry));
  if (!entry)
    return NULL;
  *entry = (struct name_entry){.name = name, .hash = hash};
  names_put(names->buckets, names->n_buckets, entry);
  names->n_entries++;
  return &entry->pointer;
}

void *
names_find(const struct names *names, dk_str name)
{
  const struct name_entry *entry = names_do_find(names, name, hash_of(name));

  return entry ? entry->pointer : NULL;
}
