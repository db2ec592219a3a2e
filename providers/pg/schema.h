/* SPDX-License-Identifier: Apache-2.0 */
/* The texts in SQL by which a store is made, migrated and removed, and the names that go into them.
 *
 * A text has @schema@ where the schema's name is an identifier (also at the beginning of a literal,
 * as in '@schema@.x'::regclass), and @schema_literal@ where it is a string.  The texts come from
 * schema/ at build time. */
#ifndef DK_PG_SCHEMA_H
#define DK_PG_SCHEMA_H

#include <stdio.h>

#include "providers/pg/store.h"

/* schema-text.c, made by schema/text.awk */
extern const char pg_schema_text[];  /* tables and functions */
extern const char pg_drop_text[];    /* drops them, by their names only */
extern const char pg_demands_text[]; /* raises DK204 for a row that cannot be migrated */
extern const char pg_copy_text[];    /* the rows of version 1, into the tables of today */

/* A script of several texts.  An error (out of memory) is kept until it is finished. */
struct script {
  FILE *file;
  char *text;
  size_t size;
  const char *schema;
};
void script_begin(struct script *s, const char *schema);
/* Adds a text with the names put in; the text must hold no value from elsewhere. */
void script_add(struct script *s, const char *text);
void script_add_number(struct script *s, int64_t number);
/* Runs the script as one transaction in one round trip: the simple protocol makes one transaction
 * of all statements that it gets at once.  Frees the script. */
dk_status script_run(struct script *s, struct connection *c, struct dk_call *call, const char *what,
                     struct why *why);

/* Adds the beginning of each script: settings for its transaction only, and the lock under which
 * one process at a time makes, migrates or removes this store. */
void script_add_head(struct script *s, int64_t lock_ms);

/* migrate.c: adds the migration from version 1 to this version, all but the row of meta.  The
 * script raises DK204 for a row that cannot be understood. */
void script_add_migration(struct script *s);
/* Drops the objects of version 1. */
extern const char pg_drop_version_1[];

#endif
