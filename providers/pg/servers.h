/* SPDX-License-Identifier: Apache-2.0 */
/* Which servers a handle has had sessions on, and which of them is the one.
 *
 * The servers of one database cluster (a primary and its standbys) have one system identifier.  A
 * standby that is promoted begins a timeline, with the next number: of two servers that take writes
 * the one on the higher timeline is the primary, and the other one was superseded, whatever it
 * believes itself.  A handle remembers the cluster and the highest timeline, and has no session on
 * another cluster or a lower timeline.  Where a role may not ask for these, nothing is known, and
 * nothing refused; but once something is known, a server that does not say which it is is refused,
 * for it may be one that was superseded.  All functions take NULL for a memory that remembers
 * nothing. */
#ifndef DK_PG_SERVERS_H
#define DK_PG_SERVERS_H

#include "providers/pg/settings.h"

/* Of the server behind a session, as it was when the session began. */
struct identity {
  uint64_t system;        /* of the cluster; 0: not known */
  uint32_t timeline;      /* that it writes; 0: not known, or it is a standby, which writes none */
  bool is_withheld;       /* the server did not say */
};

/* Locking: a mutex guards all of it; nothing that waits is called under it, but the log. */
struct servers;
dk_status servers_new(const struct dk_host *host, const struct settings *settings,
                      struct servers **ret_servers, struct why *why);
void servers_free(struct servers *servers);

/* What a server says of itself, as session.c asks for it: the system identifier, and the name of
 * the file that it writes its log to, which begins with the timeline.  Absent: not known. */
struct identity identity_of(struct dk_bytes system, struct dk_bytes file);

/* The server of a new session did not say which it is; `refusal` is in its words.  DK_OK: nothing
 * is known, so that the session does without; that is logged once.  Else DK_UNAVAILABLE.  The next
 * session asks again. */
dk_status servers_judge_withheld(struct servers *servers, const struct why *refusal,
                                 const PGconn *pg, struct why *why);
/* A new session is on this server.  DK_OK: it may be used, and the highest timeline is known.  Else
 * DK_UNAVAILABLE: it was superseded, or is of another cluster. */
dk_status servers_judge(struct servers *servers, const struct identity *identity,
                        const PGconn *pg, struct why *why);
/* A session on this server is of no use any more: one on a higher timeline was met, or, where the
 * server has not said which it is, any that has. */
bool servers_have_superseded(struct servers *servers, const struct identity *identity);
/* The highest that was met; 0: none yet. */
uint32_t servers_timeline(struct servers *servers);
/* In words, for who has had such a session: "..., on timeline 1, was superseded by ..." */
void servers_tell(struct servers *servers, const struct identity *identity, char *room,
                  size_t size);

/* One probe at a time, in intervals that grow up to some seconds; `now` is the host's clock.  True:
 * it is the caller's, until the end. */
bool servers_begin_probe(struct servers *servers, int64_t now);
void servers_end_probe(struct servers *servers, int64_t now);
/* What requests wait for at the server, as the last probe has found it, in words; logged, behind
 * `what`, where it is not what was found before.  "": nothing that it could see, or no more. */
void servers_note_wait(struct servers *servers, const char *what, const char *text);
void servers_tell_wait(struct servers *servers, char *room, size_t size);

/* A connection that tries all hosts of conninfo, in its order. */
void servers_note_hosts(struct servers *servers, PGconn *pg);
/* The host that this connection tries, or has found, is the first to be tried from now on, for one
 * before it was silent, or its server is not the one (is_new); or else if such an order is in force
 * already. */
void servers_prefer(struct servers *servers, const PGconn *pg, bool is_new);
/* False: in the order of conninfo.  Else the hosts, to be given to hosts_done. */
bool servers_preferred(struct servers *servers, struct hosts *ret_hosts);

#endif
