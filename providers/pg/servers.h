/* SPDX-License-Identifier: Apache-2.0 */
/* Which servers a handle has had sessions on, and which of them is the primary to use.
 *
 * The servers of one database cluster (a primary and its standbys) have one system identifier.  A
 * standby that is promoted begins a timeline, with the next number: of two servers that accept
 * writes the one on the higher timeline is the primary, and the other was superseded, even if it
 * does not know that.  A handle remembers the cluster and the highest timeline, and has no session
 * on another cluster or a lower timeline.  If a role has no right to ask for these, the identity is
 * unknown, and no server is refused.  But once a cluster is known, a server that withholds its
 * identity is refused, because it may be a superseded one.  All functions accept NULL for a handle
 * that remembers nothing. */
#ifndef DK_PG_SERVERS_H
#define DK_PG_SERVERS_H

#include "providers/pg/settings.h"

/* The identity of the server behind a session, as it was when the session began. */
struct identity {
  uint64_t system;        /* of the cluster; 0: not known */
  uint32_t timeline;      /* that it writes; 0: not known, or it is a standby, which writes none */
  bool is_withheld;       /* the server did not give it */
};

/* Locking: a mutex guards all of it; under it the only call that may wait is the log's. */
struct servers;
dk_status servers_new(const struct dk_host *host, const struct settings *settings,
                      struct servers **ret_servers, struct why *why);
void servers_free(struct servers *servers);

/* The identity as session.c asks a server for it: the system identifier, and the name of the
 * server's present log file, which begins with the timeline.  Absent: not known. */
struct identity identity_of(struct dk_bytes system, struct dk_bytes file);

/* For the server of a new session that did not give its identity; `refusal` has its words.  DK_OK:
 * no cluster is known yet, so the session is used without an identity; that is logged once.
 * Otherwise DK_UNAVAILABLE.  The next session asks again. */
dk_status servers_judge_withheld(struct servers *servers, const struct why *refusal,
                                 const PGconn *pg, struct why *why);
/* For a new session on this server.  DK_OK: it may be used, and the highest timeline is noted.
 * DK_UNAVAILABLE: the server was superseded, or is of another cluster. */
dk_status servers_judge(struct servers *servers, const struct identity *identity,
                        const PGconn *pg, struct why *why);
/* True: a session on this server can no longer be used.  A server on a higher timeline was met, or,
 * if this server did not give its identity, any server that did. */
bool servers_have_superseded(struct servers *servers, const struct identity *identity);
/* The highest that was met; 0: none yet. */
uint32_t servers_timeline(struct servers *servers);
/* Describes that for a call that had such a session: "..., on timeline 1, was superseded by ..." */
void servers_tell(struct servers *servers, const struct identity *identity, char *room,
                  size_t size);

/* One probe runs at a time, in intervals that grow up to some seconds; `now` is the host's clock.
 * True: the probe is the caller's, until servers_end_probe. */
bool servers_begin_probe(struct servers *servers, int64_t now);
void servers_end_probe(struct servers *servers, int64_t now);
/* Notes in words what requests wait for at the server, as the last probe has found it.  A new
 * finding is logged, behind `what`.  "": the probe found nothing, or nothing any longer. */
void servers_note_wait(struct servers *servers, const char *what, const char *text);
void servers_tell_wait(struct servers *servers, char *room, size_t size);

/* Notes the hosts of a connection that tries all hosts of conninfo, in its order. */
void servers_note_hosts(struct servers *servers, PGconn *pg);
/* Makes the host that this connection tries, or has found, the first to be tried from now on.  With
 * is_new a host before it was silent, or had a server that is not the right one; without, this only
 * changes an order that was made so before. */
void servers_prefer(struct servers *servers, const PGconn *pg, bool is_new);
/* False: the order is that of conninfo.  True: gives the hosts in their order, to be freed by
 * hosts_done. */
bool servers_preferred(struct servers *servers, struct hosts *ret_hosts);

#endif
