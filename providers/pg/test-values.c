/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL's binary format, both ways, byte by byte. */
#include "providers/pg/values.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"

/* ---- values for the server ------------------------------------------------------------------- */

static void
expect_value(const struct values *v, int i, Oid type, const char *bytes, int length,
             const char *name)
{
  cmp_ok(v->types[i], "==", type, "%s: its type", name);
  cmp_ok(v->formats[i], "==", 1, "%s: binary", name);
  if (!bytes) {
    ok(v->bytes[i] == NULL, "%s: NULL", name);
    return;
  }
  if (cmp_ok(v->lengths[i], "==", length, "%s: its length", name))
    cmp_mem(v->bytes[i], bytes, (size_t)length, "%s: its bytes", name);
}

static void
test_scalars(void)
{
  struct values v;

  values_begin(&v);
  value_null(&v, 20);
  value_bool(&v, true);
  value_bool(&v, false);
  value_int(&v, -2);
  value_bigint(&v, INT64_MIN);
  value_bigint(&v, 0x0102030405060708);
  value_text(&v, (struct dk_bytes){"text", 4});
  value_text(&v, (struct dk_bytes){"", 0});
  value_text(&v, (struct dk_bytes){NULL, 0});
  value_bytea(&v, (struct dk_bytes){"\0\377", 2});
  value_bytea(&v, (struct dk_bytes){0});
  cmp_ok(v.n, "==", 11, "eleven values");
  cmp_ok(v.status, "==", DK_OK, "without an error");
  expect_value(&v, 0, 20, NULL, 0, "a NULL");
  expect_value(&v, 1, 16, "\1", 1, "true");
  expect_value(&v, 2, 16, "\0", 1, "false");
  expect_value(&v, 3, 23, "\377\377\377\376", 4, "-2");
  expect_value(&v, 4, 20, "\200\0\0\0\0\0\0\0", 8, "the smallest bigint");
  expect_value(&v, 5, 20, "\1\2\3\4\5\6\7\10", 8, "a bigint");
  expect_value(&v, 6, 25, "text", 4, "a text");
  expect_value(&v, 7, 25, "", 0, "an empty text");
  ok(v.bytes[7] != NULL, "which is not NULL");
  expect_value(&v, 8, 25, NULL, 0, "an absent text");
  expect_value(&v, 9, 17, "\0\377", 2, "bytes");
  expect_value(&v, 10, 17, NULL, 0, "absent bytes");
  values_done(&v);
  cmp_ok(v.n, "==", 0, "nothing is left");
}

static int64_t
number_of(const void *context, size_t i)
{
  const int64_t *numbers = context;

  return numbers[i];
}

static struct dk_bytes
bytes_of(const void *context, size_t i)
{
  const struct dk_bytes *bytes = context;

  return bytes[i];
}

static void
test_arrays(void)
{
  static const int64_t numbers[] = {1, -1};
  static const struct dk_bytes all[] = {{"a", 1}, {"", 0}}, some[] = {{NULL, 0}, {"bc", 2}};
  struct values v;

  values_begin(&v);
  value_bigints(&v, 0, number_of, numbers);
  value_bigints(&v, 2, number_of, numbers);
  value_texts(&v, 0, bytes_of, all);
  value_texts(&v, 2, bytes_of, all);
  value_byteas(&v, 2, bytes_of, some);
  expect_value(&v, 0, 1016, "\0\0\0\0\0\0\0\0\0\0\0\24", 12, "no bigint");
  expect_value(&v, 1, 1016, "\0\0\0\1\0\0\0\0\0\0\0\24\0\0\0\2\0\0\0\1"
                            "\0\0\0\10\0\0\0\0\0\0\0\1\0\0\0\10\377\377\377\377\377\377\377\377",
               44, "two bigints");
  expect_value(&v, 2, 1009, "\0\0\0\0\0\0\0\0\0\0\0\31", 12, "no text");
  expect_value(&v, 3, 1009, "\0\0\0\1\0\0\0\0\0\0\0\31\0\0\0\2\0\0\0\1\0\0\0\1a\0\0\0\0", 29,
               "two texts, one of them empty");
  expect_value(&v, 4, 1001, "\0\0\0\1\0\0\0\1\0\0\0\21\0\0\0\2\0\0\0\1\377\377\377\377\0\0\0\2bc",
               30, "two of bytes, one of them NULL");
  values_done(&v);
}

/* Small values share memory, and stay where they are while more come. */
static void
test_many(void)
{
  static int64_t numbers[1000];
  struct values v;

  values_begin(&v);
  for (int i = 0; i < 1000; i++)
    numbers[i] = i;
  for (int i = 0; i < MAX_VALUES; i++) {
    if (i % 10 == 5)
      value_bigints(&v, 1000, number_of, numbers);
    else
      value_bigint(&v, i);
  }
  cmp_ok(v.status, "==", DK_OK, "as many as there may be");
  for (int i = 0; i < MAX_VALUES; i++) {
    char name[20], expected[8] = {0, 0, 0, 0, 0, 0, 0, (char)i};
    snprintf(name, sizeof name, "value %d", i);
    if (i % 10 != 5)
      expect_value(&v, i, 20, expected, 8, name);
    else
      cmp_ok(v.lengths[i], "==", 20 + 12 * 1000, "%s", name);
  }
  value_bigint(&v, 0);
  cmp_ok(v.status, "==", DK_INTERNAL, "one more is an error");
  cmp_ok(v.n, "==", MAX_VALUES, "and is not added");
  values_done(&v);
  cmp_ok(v.status, "==", DK_OK, "a new beginning");
}

/* Lengths that are not read: an honest array of them would not fit into this machine. */
static struct dk_bytes
huge_bytes(const void *context, size_t i)
{
  (void)i;
  return (struct dk_bytes){context, (size_t)600 << 20};
}

static void
test_too_large(void)
{
  struct values v;

  for (int i = 0; i < 5; i++) {
    values_begin(&v);
    if (i == 0)
      value_texts(&v, 2, huge_bytes, "");
    else if (i == 1)
      value_byteas(&v, SIZE_MAX, huge_bytes, "");
    else if (i == 2)
      value_bigints(&v, SIZE_MAX / 4, number_of, NULL);
    else if (i == 3)
      value_bytea(&v, (struct dk_bytes){"", (size_t)1 << 30});
    else
      value_text(&v, (struct dk_bytes){"", SIZE_MAX});
    cmp_ok(v.status, "==", DK_TOO_LARGE, "more than the server accepts");
    value_bigint(&v, 1);
    cmp_ok(v.status, "==", DK_TOO_LARGE, "stays an error");
    cmp_ok(v.n, "==", 0, "and nothing is added");
    values_done(&v);
  }
}

/* ---- what comes back ------------------------------------------------------------------------- */

static char *
as_text(const char *text)
{
  return (char *)(uintptr_t)text; /* libpq's prototypes lack a const */
}

/* Columns of these types, as the server sends them; one row of `values`, NULL where NULL. */
static PGresult *
result_of(const Oid *types, int n, int format, const struct dk_bytes *values)
{
  PGresult *r = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
  PGresAttDesc columns[8];

  for (int i = 0; i < n; i++)
    columns[i] = (PGresAttDesc){.name = as_text("c"), .format = format, .typid = types[i]};
  if (!r || !PQsetResultAttrs(r, n, columns))
    BAIL_OUT("no result");
  for (int i = 0; i < n; i++)
    if (!PQsetvalue(r, 0, i, as_text(values[i].ptr), values[i].ptr ? (int)values[i].len : -1))
      BAIL_OUT("no value");
  return r;
}

static const Oid all_types[] = {20, 23, 25, 17, 16};
static const struct dk_bytes all_values[] = {
  {"\377\377\377\377\377\377\377\376", 8}, {"\0\0\1\2", 4}, {"text", 4}, {"\0\1", 2}, {"\1", 1}};

static void
test_fields(void)
{
  static const struct dk_bytes nulls[5];
  struct why why;
  PGresult *r = result_of(all_types, 5, 1, all_values);

  cmp_ok(result_check(r, "bityo", "fetch", &why), "==", DK_OK, "as it should be");
  cmp_ok(field_bigint(r, 0, 0), "==", -2, "a bigint");
  cmp_ok(field_int(r, 0, 1), "==", 258, "an integer");
  cmp_mem(field_bytes(r, 0, 2).ptr, "text", 4, "a text");
  cmp_ok(field_bytes(r, 0, 2).len, "==", 4, "and its length");
  cmp_mem(field_bytes(r, 0, 3).ptr, "\0\1", 2, "bytes");
  ok(field_bool(r, 0, 4), "a boolean");
  ok(!field_is_null(r, 0, 0), "none is NULL");
  PQclear(r);

  r = result_of(all_types, 5, 1, nulls);
  cmp_ok(result_check(r, "bityo", "fetch", &why), "==", DK_OK, "all may be NULL");
  cmp_ok(field_bigint(r, 0, 0), "==", 0, "as a bigint 0");
  cmp_ok(field_int(r, 0, 1), "==", 0, "as an integer 0");
  ok(field_bytes(r, 0, 2).ptr == NULL, "as a text absent");
  ok(!field_bool(r, 0, 4), "as a boolean false");
  ok(field_is_null(r, 0, 3), "and that can be asked");
  PQclear(r);
}

static void
expect_corrupt(PGresult *r, const char *types, const char *name)
{
  struct why why;

  cmp_ok(result_check(r, types, "fetch", &why), "==", DK_CORRUPT, "%s", name);
  note("%s", why.text);
  PQclear(r);
}

static void
test_wrong_answers(void)
{
  static const struct dk_bytes short_values[] = {{"\0\0\0\1", 4}, {"\0\0\1\2", 4}};

  expect_corrupt(result_of(all_types, 5, 1, all_values), "bity", "one column too many");
  expect_corrupt(result_of(all_types, 4, 1, all_values), "bityo", "one column too few");
  expect_corrupt(result_of(all_types, 5, 1, all_values), "biyto", "two types exchanged");
  expect_corrupt(result_of(all_types, 5, 1, all_values), "bity?", "a type that does not exist");
  expect_corrupt(result_of(all_types, 5, 0, all_values), "bityo", "numbers as text");
  expect_corrupt(result_of(all_types, 2, 1, short_values), "bi", "a bigint of four bytes");
  expect_corrupt(PQmakeEmptyPGresult(NULL, PGRES_COMMAND_OK), "", "no rows at all");
}

int
main(void)
{
  plan(NO_PLAN);
  test_scalars();
  test_arrays();
  test_many();
  test_too_large();
  test_fields();
  test_wrong_answers();
  return done_testing();
}
