/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of making, migrating and removing a store share: all ways to open, the texts that
 * were reported, and the server's state as seen beside the plugin. */
#ifndef DK_PG_TEST_STORES_H
#define DK_PG_TEST_STORES_H

#include "providers/pg/test-handle.h"

enum { RW = 0, CREATE = DK_OPEN_CREATE, RO = DK_OPEN_READ_ONLY, HOST = DK_OPEN_HOST_CLOCK };

extern PGconn *super;            /* NULL: no superuser is known (DURAKIT_PG_SUPER) */
extern PGconn *plain;            /* as the plugin's role */
extern const char *conninfo;     /* DURAKIT_PG */
extern char role[64];            /* the plugin's */
extern char said[2000];          /* why the last call was refused, or what was logged */

/* Loads the plugin, connects beside it.  Schemas have names of this process. */
void begin_stores(void);
void end_stores(void);
/* A name that begins with this process's own; lives until the next ones are asked for. */
const char *named(const char *name);

/* With a lock_timeout of 300 ms.  DK_OK: to be closed. */
dk_status open_as(const char *by, const char *schema, uint32_t flags, struct handle_under_test *h);
/* Opens and closes. */
dk_status try_open(const char *schema, uint32_t flags);
dk_status try_open_as(const char *by, const char *schema, uint32_t flags);
dk_status try_destroy(const char *schema);
/* One test point: DK_OK. */
bool expect_done(dk_status found, const char *name);
/* One test point: the status, and what the text has in it. */
void expect_refused(dk_status found, dk_status expected, const char *has, const char *name);

/* A number of the server's, as it sees it.  `format` as for printf. */
long number(PGconn *pg, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool schema_is_there(const char *schema);
/* All rows of all its tables and all that it is made of, as one number. */
char *digest(const char *schema);

#endif
