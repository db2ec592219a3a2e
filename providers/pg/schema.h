/* SPDX-License-Identifier: Apache-2.0 */
/* The texts in SQL by which a store is made, migrated and removed, and the names that go into them.
 *
 * A text holds @schema@ where the schema's name stands as an identifier (also at the beginning of a
 * literal, as in '@schema@.x'::regclass), @schema_literal@ where it stands as a string, and comes
 * from schema/ at build time. */
#ifndef DK_PG_SCHEMA_H
#define DK_PG_SCHEMA_H

#include <stdio.h>

#include "providers/pg/store.h"

/* schema-text.c, made by schema/text.awk */
extern const char pg_schema_text[];  /* tables and functions */
extern const char pg_drop_text[];    /* drops them again, by their names only */
extern const char pg_demands_text[]; /* raises DK204 for what of version 1 cannot be migrated */
extern const char pg_copy_text[];    /* the rows of version 1, into the tables of today */

/* A script of several texts.  An error (out of memory) is kept until it is finished. */
struct script {
  FILE *file;
  char *text;
  size_t size;
  const char *schema;
};
void script_begin(struct script *s, const char *schema);
/* Adds a text with the names put in; never with a value that came from elsewhere. */
void script_add(struct script *s, const char *text);
void script_add_number(struct script *s, int64_t number);
/* Runs it as one transaction of one round trip: the simple protocol makes one of what it gets at
 * once.  Frees it. */
dk_status script_run(struct script *s, struct connection *c, struct dk_call *call, const char *what,
                     struct why *why);

/* What each begins with: settings that hold for its transaction only, and the lock that one of
 * those who make, migrate or remove this store has at a time. */
void script_add_head(struct script *s, int64_t lock_ms);

/* migrate.c: adds what makes this version of version 1, or raises DK204 for a row that cannot be
 * understood.  All but the row of meta. */
void script_add_migration(struct script *s);
/* What version 1 was made of. */
extern const char pg_drop_version_1[];

#endif
