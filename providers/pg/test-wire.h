/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over the wire, counted there: a proxy between a client and the server, on a unix socket
 * in a folder of its own.  It changes nothing, unless it poses as a pooler or is set to cut. */
#ifndef DK_PG_TEST_WIRE_H
#define DK_PG_TEST_WIRE_H

#include <stddef.h>

struct wire;

/* Before the server of this conninfo; bails out if it cannot be.  NULL: the server is on no unix
 * socket. */
struct wire *wire_new(const char *conninfo);
void wire_free(struct wire *wire); /* its connections are cut */
const char *wire_conninfo(const struct wire *wire);
/* From here on clients do not know the numbers of their sessions, as behind a pooler that lends
 * sessions out. */
void wire_pose_as_pooler(struct wire *wire);
/* The next answer of the server does not arrive: once it is complete the connection is cut. */
void wire_cut_answer(struct wire *wire);

struct wire_counts {
  size_t connections;  /* made since */
  size_t round_trips;  /* the client has spoken after the server had; logging in is not counted */
  size_t answers;      /* ended by ReadyForQuery */
};
void wire_forget(struct wire *wire);
struct wire_counts wire_counts(struct wire *wire);
/* The texts of the notices since: with auto_explain, the plan of each statement that ran. */
size_t wire_notices(struct wire *wire);
const char *wire_notice(struct wire *wire, size_t i); /* lives until the next forgetting */

#endif
