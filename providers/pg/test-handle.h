/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the operations share: the plugin through a host, on the server of DURAKIT_PG.
 * A failure of the environment bails out. */
#ifndef DK_PG_TEST_HANDLE_H
#define DK_PG_TEST_HANDLE_H

#include <libpq-fe.h>

#include <stdbool.h>

#include "providers/testing/handle.h"

/* Loads the plugin of PG_PLUGIN. */
void begin(void);
void end(void);
struct dk_library *library_under_test(void);
/* By the server's clock. */
void open_store(struct handle_under_test *h, const char *conninfo, const char *schema);
dk_status try_to_open_store(struct handle_under_test *h, const char *conninfo, const char *schema);
/* What the stores that are opened from now on take for the time; NULL: the system's clock. */
void let_clock_be(struct dk_clock *clock);
void destroy_store(const char *conninfo, const char *schema);
/* ---- SQL of the test's own ------------------------------------------------------------------- */

PGconn *connect_to(const char *conninfo);
void sql(PGconn *pg, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The first field of the first row; to be freed. */
char *sql_value(PGconn *pg, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Until a condition in SQL holds; after half a minute or so it bails out. */
void until(PGconn *pg, const char *condition);
/* Until a session waits for a lock; false: none did. */
bool somebody_waits(PGconn *pg);

/* ---- what a handle logs ---------------------------------------------------------------------- */

/* For dk_host_options: keeps the lines from warnings on. */
void keep_line(void *context, int32_t level, struct dk_bytes line);
/* One point: these words are among them; then they are forgotten. */
void expect_logged(const char *words, const char *name);

#endif
