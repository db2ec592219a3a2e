/* SPDX-License-Identifier: Apache-2.0 */
/* A server whose answers a test defines.  It speaks PostgreSQL's protocol 3 on a socket in a folder
 * of its own.  Each connection has a thread, which runs the test's function, then closes. */
#ifndef DK_PG_TEST_FAKE_H
#define DK_PG_TEST_FAKE_H

#include <stdbool.h>
#include <stddef.h>

typedef void fake_serve_fn(int fd, void *context);

struct fake;
struct fake *fake_start(fake_serve_fn *serve, void *context);
void fake_stop(struct fake *fake);
/* The folder: conninfo's host. */
const char *fake_folder(const struct fake *fake);
int fake_connections(struct fake *fake); /* so far */

/* ---- for the test's function: they give up silently when the client has left ---------------- */

void fake_send(int fd, const void *bytes, size_t size);
void fake_message(int fd, char type, const void *body, size_t size);
/* Reads the start-up packet; false: there is none. */
bool fake_read_start(int fd);
/* One request, to its Sync, or one Query; false: the client has closed or ends the session. */
bool fake_read_request(int fd);
/* The same; the letters of its messages go to `ret_types`. */
bool fake_read_types(int fd, char ret_types[20]);

/* Lets the client in; then "15.1", "UTF8". */
void fake_welcome(int fd);
void fake_greet(int fd, const char *version, const char *encoding);
void fake_ready(int fd, char transaction); /* 'I', 'T', 'E' */
/* Error 'E' or notice 'N'. */
void fake_error(int fd, char type, const char *severity, const char *sqlstate, const char *message);
/* The same, raised in this file of the server's source. */
void fake_error_from(int fd, char type, const char *severity, const char *sqlstate,
                     const char *message, const char *file);
/* One row of a boolean and a text, and that the command is complete. */
void fake_row(int fd, bool value, const char *text, size_t length);
/* One row of one text, and that. */
void fake_text(int fd, const char *text);

/* The answer to what a connection asks first (session.c). */
struct fake_session {
  bool is_own, is_standby, is_read_only;
  const char *isolation; /* NULL: read committed */
  const char *system, *file; /* the cluster, and the file of its log; NULL: no role may ask */
};
void fake_session(int fd, const struct fake_session *session);
/* Start-up, and that answer; then it is for the test. */
bool fake_let_in(int fd); /* to a session of one's own */
bool fake_let_in_as(int fd, const struct fake_session *session);
/* Answers each request in this way for as long as they come. */
void fake_answer_all(int fd);

#endif
