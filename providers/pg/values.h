/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to the server and what comes back, in PostgreSQL's binary format.
 *
 * A struct values is the parameters of one statement, in order.  It copies nothing that is passed
 * as struct dk_bytes: the bytes must live until the request was sent.  An error (out of memory, too
 * long) is kept until the request is sent; so the adding functions return nothing. */
#ifndef DK_PG_VALUES_H
#define DK_PG_VALUES_H

#include <stdbool.h>

#include "providers/pg/why.h"

enum { MAX_VALUES = 40 };
/* The numbers in the server's catalog, which never change. */
enum {
  TYPE_BOOL = 16,
  TYPE_BYTEA = 17,
  TYPE_BIGINT = 20,
  TYPE_INT = 23,
  TYPE_TEXT = 25,
  TYPE_BYTEAS = 1001,
  TYPE_TEXTS = 1009,
  TYPE_BIGINTS = 1016
};

struct values {
  int n;
  Oid types[MAX_VALUES];
  const char *names[MAX_VALUES]; /* of a function's parameters; NULL: by its place */
  const char *bytes[MAX_VALUES]; /* NULL: SQL's NULL */
  int lengths[MAX_VALUES], formats[MAX_VALUES];
  struct piece *pieces;          /* memory of values that had to be made */
  dk_status status;              /* DK_OK, DK_NO_MEMORY, DK_TOO_LARGE; DK_INTERNAL: too many */
};

void values_begin(struct values *v);
void values_done(struct values *v);

/* The next value is for the parameter of this name; then all following values must have names. */
struct values *values_next(struct values *v, const char *name);

void value_null(struct values *v, Oid type);
void value_bool(struct values *v, bool value);
void value_int(struct values *v, int32_t value);
void value_bigint(struct values *v, int64_t value);
void value_text(struct values *v, struct dk_bytes text);   /* absent: NULL */
void value_bytea(struct values *v, struct dk_bytes bytes); /* absent: NULL */

/* Adds an array of `n` elements; `of` gives the element of each number, NULL where it is absent.
 * An empty array is an empty array, never NULL. */
typedef int64_t value_bigint_of(const void *context, size_t i);
typedef struct dk_bytes value_bytes_of(const void *context, size_t i);
void value_bigints(struct values *v, size_t n, value_bigint_of *of, const void *context);
void value_texts(struct values *v, size_t n, value_bytes_of *of, const void *context);
void value_byteas(struct values *v, size_t n, value_bytes_of *of, const void *context);

/* Fields of a binary result.  NULL is 0, false, or absent.  A field whose type or length is not
 * what the function asks for is DK_CORRUPT at result_check: call it before a result is believed. */
int64_t field_bigint(const PGresult *r, int row, int column);
int32_t field_int(const PGresult *r, int row, int column);
bool field_bool(const PGresult *r, int row, int column);
bool field_is_null(const PGresult *r, int row, int column);
struct dk_bytes field_bytes(const PGresult *r, int row, int column); /* text, bytea; lives as r */
/* `types`: one letter for each column: b bigint, i int, t text, y bytea, o bool. */
dk_status result_check(const PGresult *r, const char *types, const char *what, struct why *why);

#endif
