/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL's binary format, both ways: see values.h.  Owns the memory that a struct values makes:
 * pieces that small values share, and one for each that is larger. */
#include "providers/pg/values.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
  PIECE_BYTES = 1000,
  ARRAY_HEAD = 20,        /* dimensions, NULLs?, element type, length, first index */
  ARRAY_EMPTY = 12,       /* no dimension: without the last two */
  MOST_BYTES = 0x3fff0000 /* the server takes no message of 1 GiB */
};

struct piece {
  struct piece *next;
  size_t size, used;
  char bytes[];
};

void
values_begin(struct values *v)
{
  v->n = 0;
  v->pieces = NULL;
  v->status = DK_OK;
  memset(v->names, 0, sizeof v->names);
}

void
values_done(struct values *v)
{
  while (v->pieces) {
    struct piece *piece = v->pieces;
    v->pieces = piece->next;
    free(piece);
  }
  values_begin(v);
}

struct values *
values_next(struct values *v, const char *name)
{
  if (v->n < MAX_VALUES)
    v->names[v->n] = name;
  return v;
}

static char *
room_for(struct values *v, size_t size)
{
  struct piece *piece = v->pieces;

  if (!piece || piece->size - piece->used < size) {
    size_t piece_size = size > PIECE_BYTES ? size : PIECE_BYTES;
    piece = malloc(sizeof *piece + piece_size);
    if (!piece) {
      v->status = DK_NO_MEMORY;
      return NULL;
    }
    *piece = (struct piece){.next = v->pieces, .size = piece_size};
    v->pieces = piece;
  }
  assert(piece->used <= piece->size && size <= piece->size - piece->used);
  char *room = piece->bytes + piece->used;
  piece->used += size;
  return room;
}

/* Adds a value that lives elsewhere; NULL is SQL's NULL. */
static void
values_add(struct values *v, Oid type, const char *bytes, size_t size)
{
  if (v->status == DK_OK && (size > MOST_BYTES || v->n == MAX_VALUES))
    v->status = v->n == MAX_VALUES ? DK_INTERNAL : DK_TOO_LARGE;
  if (v->status != DK_OK)
    return;
  assert(v->n >= 0 && v->n < MAX_VALUES);
  v->types[v->n] = type;
  v->bytes[v->n] = bytes;
  v->lengths[v->n] = (int)size;
  v->formats[v->n] = 1;
  v->n++;
}

/* ---- one value ------------------------------------------------------------------------------- */

static char *
values_put(char *at, uint64_t value, int size)
{
  assert(size >= 1 && size <= 8);
  for (int i = 0; i < size; i++)
    at[i] = (char)(value >> (8 * (size - 1 - i)) & 0xff);
  return at + size;
}

static void
add_number(struct values *v, Oid type, uint64_t value, int size)
{
  char *room = room_for(v, (size_t)size);

  if (room)
    values_put(room, value, size);
  values_add(v, type, room, (size_t)size);
}

void
value_null(struct values *v, Oid type)
{
  values_add(v, type, NULL, 0);
}

void
value_bool(struct values *v, bool value)
{
  add_number(v, TYPE_BOOL, value, 1);
}

void
value_int(struct values *v, int32_t value)
{
  add_number(v, TYPE_INT, (uint64_t)value, 4);
}

void
value_bigint(struct values *v, int64_t value)
{
  add_number(v, TYPE_BIGINT, (uint64_t)value, 8);
}

void
value_text(struct values *v, struct dk_bytes text)
{
  values_add(v, TYPE_TEXT, text.ptr, text.len);
}

void
value_bytea(struct values *v, struct dk_bytes bytes)
{
  values_add(v, TYPE_BYTEA, bytes.ptr, bytes.len);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static char *
put_array_head(char *at, size_t n, bool has_nulls, Oid element)
{
  at = values_put(at, n > 0 ? 1 : 0, 4);
  at = values_put(at, has_nulls, 4);
  at = values_put(at, element, 4);
  if (n == 0)
    return at;
  at = values_put(at, n, 4);
  return values_put(at, 1, 4);
}

void
value_bigints(struct values *v, size_t n, value_bigint_of *of, const void *context)
{
  enum { ELEMENT = 12 };

  if (n > MOST_BYTES / ELEMENT)
    v->status = v->status == DK_OK ? DK_TOO_LARGE : v->status;
  if (v->status != DK_OK)
    return;
  size_t size = n > 0 ? ARRAY_HEAD + n * ELEMENT : ARRAY_EMPTY;
  char *room = room_for(v, size);
  if (!room)
    return;
  char *at = put_array_head(room, n, false, TYPE_BIGINT);
  for (size_t i = 0; i < n; i++) {
    at = values_put(at, sizeof(int64_t), 4);
    at = values_put(at, (uint64_t)of(context, i), sizeof(int64_t));
  }
  assert(at == room + size);
  values_add(v, TYPE_BIGINTS, room, size);
}

/* The size of the array, or more than is taken. */
static size_t
size_of_array(size_t n, value_bytes_of *of, const void *context, bool *ret_has_nulls)
{
  size_t size = n > 0 ? ARRAY_HEAD : ARRAY_EMPTY;

  *ret_has_nulls = false;
  if (n > MOST_BYTES / 4)
    return SIZE_MAX;
  size += n * 4;
  for (size_t i = 0; i < n; i++) {
    struct dk_bytes element = of(context, i);
    if (!element.ptr)
      *ret_has_nulls = true;
    else if (element.len > MOST_BYTES || (size += element.len) > MOST_BYTES)
      return SIZE_MAX;
  }
  return size;
}

static void
add_array(struct values *v, Oid type, Oid element_type, size_t n, value_bytes_of *of,
          const void *context)
{
  bool has_nulls;

  if (v->status != DK_OK)
    return;
  size_t size = size_of_array(n, of, context, &has_nulls);
  if (size > MOST_BYTES) {
    v->status = DK_TOO_LARGE;
    return;
  }
  char *room = room_for(v, size);
  if (!room)
    return;
  char *at = put_array_head(room, n, has_nulls, element_type);
  for (size_t i = 0; i < n; i++) {
    struct dk_bytes element = of(context, i);
    at = values_put(at, element.ptr ? element.len : UINT32_MAX, 4);
    if (element.ptr && element.len > 0) {
      memcpy(at, element.ptr, element.len);
      at += element.len;
    }
  }
  assert(at == room + size); /* `of` gave the same twice */
  values_add(v, type, room, size);
}

void
value_texts(struct values *v, size_t n, value_bytes_of *of, const void *context)
{
  add_array(v, TYPE_TEXTS, TYPE_TEXT, n, of, context);
}

void
value_byteas(struct values *v, size_t n, value_bytes_of *of, const void *context)
{
  add_array(v, TYPE_BYTEAS, TYPE_BYTEA, n, of, context);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* The bits of a number of `size` bytes; NULL is 0. */
static uint64_t
values_read_number(const PGresult *r, int row, int column, int size)
{
  const unsigned char *at = (const unsigned char *)PQgetvalue(r, row, column);
  uint64_t number = 0;

  if (PQgetlength(r, row, column) != size) /* NULL has no length */
    return 0;
  for (int i = 0; i < size; i++)
    number = number << 8 | at[i];
  return number;
}

int64_t
field_bigint(const PGresult *r, int row, int column)
{
  return (int64_t)values_read_number(r, row, column, 8);
}

int32_t
field_int(const PGresult *r, int row, int column)
{
  return (int32_t)values_read_number(r, row, column, 4);
}

bool
field_bool(const PGresult *r, int row, int column)
{
  return values_read_number(r, row, column, 1) != 0;
}

bool
field_is_null(const PGresult *r, int row, int column)
{
  return PQgetisnull(r, row, column) != 0;
}

struct dk_bytes
field_bytes(const PGresult *r, int row, int column)
{
  if (field_is_null(r, row, column))
    return (struct dk_bytes){0};
  return (struct dk_bytes){PQgetvalue(r, row, column), (size_t)PQgetlength(r, row, column)};
}

/* `size` 0: any. */
static const struct kind {
  char letter;
  Oid type;
  int size;
  const char *name;
} kinds[] = {
  {'b', TYPE_BIGINT, 8, "bigint"}, {'i', TYPE_INT, 4, "integer"}, {'t', TYPE_TEXT, 0, "text"},
  {'y', TYPE_BYTEA, 0, "bytea"},   {'o', TYPE_BOOL, 1, "boolean"}, {'\0', 0, 0, "a known type"},
};

static const struct kind *
kind_of(char letter)
{
  const struct kind *kind = kinds;

  while (kind->letter && kind->letter != letter)
    kind++;
  return kind;
}

static dk_status
check_column(const PGresult *r, int column, const struct kind *kind, const char *what,
             struct why *why)
{
  if (PQftype(r, column) != kind->type || PQfformat(r, column) != 1)
    return why_set(why, DK_CORRUPT,
                   "%s: column %d of the answer has type %u; expected %s in binary; the "
                   "functions in the schema are of another version",
                   what, column + 1, PQftype(r, column), kind->name);
  for (int row = 0; row < PQntuples(r) && kind->size > 0; row++)
    if (!PQgetisnull(r, row, column) && PQgetlength(r, row, column) != kind->size)
      return why_set(why, DK_CORRUPT, "%s: row %d of the answer has %d bytes of %s; expected %d",
                     what, row + 1, PQgetlength(r, row, column), kind->name, kind->size);
  return DK_OK;
}

dk_status
result_check(const PGresult *r, const char *types, const char *what, struct why *why)
{
  int n = (int)strlen(types);

  if (PQresultStatus(r) != PGRES_TUPLES_OK || PQnfields(r) != n)
    return why_set(why, DK_CORRUPT,
                   "%s: the answer has %d columns; expected %d; the functions in the schema are "
                   "of another version",
                   what, PQnfields(r), n);
  for (int column = 0; column < n; column++)
    TRY(check_column(r, column, kind_of(types[column]), what, why));
  return DK_OK;
}
