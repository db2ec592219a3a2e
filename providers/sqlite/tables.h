/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of version 2. */
#ifndef DK_SQLITE_TABLES_H
#define DK_SQLITE_TABLES_H

/* The statements that make a store in an empty database, in order; ends with NULL. */
extern const char *const sqlite_tables[];

#endif
