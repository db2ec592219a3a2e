/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of version 2. */
#ifndef DK_SQLITE_TABLES_H
#define DK_SQLITE_TABLES_H

/* The statements that make a store in an empty database, in order; ends with NULL. */
extern const char *const sqlite_tables[];

/* One of them, which earlier builds did not make: the children of an instance, in their order. */
#define SQLITE_INSTANCE_PARENT                                                                     \
  "CREATE INDEX instance_parent ON instance(parent, instance) WHERE parent IS NOT NULL"

#endif
