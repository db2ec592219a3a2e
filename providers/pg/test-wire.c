/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy that counts: see test-wire.h.  A thread accepts; each connection has two more, one for
 * each direction.  They end when a side closes.
 *
 * Locking: `mutex` guards the counts, the notices and the list of connections; nothing else is
 * locked under it. */
#include "providers/pg/test-wire.h"

#include <endian.h>
#include <errno.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

enum { ROOM = 65536, MOST_NOTICES = 20000, HEAD = 5 };

/* One message of the server as it comes in: a letter, its length, its body. */
struct message {
  char head[HEAD];
  size_t have, length;   /* of the body */
  char *body;            /* of notices only */
};

struct line {
  struct wire *wire;
  struct line *next;
  int client, server;
  bool is_logged_in, client_spoke, is_cut;
  struct message message;
  pthread_t threads[2];
};

struct wire {
  pthread_mutex_t mutex;
  struct wire_counts counts;
  char *notices[MOST_NOTICES];
  size_t n_notices;
  struct line *lines;
  int listener;
  bool poses, cuts;
  struct sockaddr_un at, server;
  char folder[64], conninfo[300];
  pthread_t thread;
};

/* ---- the server's messages ------------------------------------------------------------------- */

/* Fields: a letter and a text each; M is the message. */
static void
keep_notice(struct wire *wire, const char *body, size_t length)
{
  for (size_t at = 0; at < length && body[at]; at += strnlen(body + at, length - at) + 1)
    if (body[at] == 'M' && wire->n_notices < MOST_NOTICES)
      wire->notices[wire->n_notices++] = strndup(body + at + 1, length - at - 1);
}

static void
end_message(struct line *line)
{
  struct message *m = &line->message;

  if (m->head[0] == 'Z' && line->is_logged_in) {
    line->wire->counts.answers++;
    line->is_cut = line->wire->cuts;
    line->wire->cuts = false;
  }
  if (m->head[0] == 'Z')
    line->is_logged_in = true;
  if (m->head[0] == 'N' && m->body)
    keep_notice(line->wire, m->body, m->length);
  free(m->body);
  *m = (struct message){.have = 0};
}

/* A pooler gives its clients numbers of its own for the sessions: the first four bytes of the key
 * by which they may be cancelled. */
static char
posed(const struct line *line, char byte)
{
  const struct message *m = &line->message;
  bool is_number = m->head[0] == 'K' && m->have >= HEAD && m->have < HEAD + sizeof(uint32_t);

  return line->wire->poses && is_number ? (char)(byte ^ 0x55) : byte;
}

static void
note_byte(struct line *line, char byte)
{
  struct message *m = &line->message;
  uint32_t length;

  if (m->have < HEAD) {
    m->head[m->have++] = byte;
    if (m->have < HEAD)
      return;
    memcpy(&length, m->head + 1, sizeof length);
    m->length = be32toh(length) - sizeof length;
    if (m->head[0] == 'N')
      m->body = calloc(1, m->length + 1);
  } else {
    if (m->body)
      m->body[m->have - HEAD] = byte;
    m->have++;
  }
  if (m->have == HEAD + m->length)
    end_message(line);
}

/* True: they go on to the other side. */
static bool
note_bytes(struct line *line, bool from_server, char *bytes, size_t n)
{
  pthread_mutex_lock(&line->wire->mutex);
  bool passes = !(from_server && line->wire->cuts && line->is_logged_in);
  for (size_t i = 0; from_server && i < n; i++) {
    bytes[i] = posed(line, bytes[i]);
    note_byte(line, bytes[i]);
  }
  if (!from_server && !line->client_spoke && line->is_logged_in && bytes[0] != 'X')
    line->wire->counts.round_trips++;
  line->client_spoke = !from_server;
  pthread_mutex_unlock(&line->wire->mutex);
  return passes;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool
write_all(int fd, const char *bytes, size_t n)
{
  while (n > 0) {
    ssize_t written = send(fd, bytes, n, MSG_NOSIGNAL);
    if (written <= 0)
      return false;
    bytes += written;
    n -= (size_t)written;
  }
  return true;
}

static void
carry(struct line *line, bool from_server)
{
  const int from = from_server ? line->server : line->client;
  const int to = from_server ? line->client : line->server;
  char *bytes = malloc(ROOM);
  ssize_t n;

  while (bytes && (n = read(from, bytes, ROOM)) > 0) {
    bool passes = note_bytes(line, from_server, bytes, (size_t)n);
    if ((from_server && line->is_cut) || (passes && !write_all(to, bytes, (size_t)n)))
      break;
  }
  shutdown(from, SHUT_RDWR);
  shutdown(to, SHUT_RDWR);
  free(bytes);
}

static void *
carry_to_server(void *line)
{
  carry(line, false);
  return NULL;
}

static void *
carry_to_client(void *line)
{
  carry(line, true);
  return NULL;
}

static void
begin_line(struct wire *wire, int client)
{
  struct line *line = calloc(1, sizeof *line);

  if (!line)
    BAIL_OUT("out of memory");
  *line = (struct line){.wire = wire, .client = client,
                        .server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (line->server < 0 ||
      connect(line->server, (struct sockaddr *)&wire->server, sizeof wire->server) != 0 ||
      pthread_create(&line->threads[0], NULL, carry_to_server, line) != 0 ||
      pthread_create(&line->threads[1], NULL, carry_to_client, line) != 0)
    BAIL_OUT("the proxy does not reach %s: %s", wire->server.sun_path, strerror(errno));
  pthread_mutex_lock(&wire->mutex);
  wire->counts.connections++;
  line->next = wire->lines;
  wire->lines = line;
  pthread_mutex_unlock(&wire->mutex);
}

static void *
accept_all(void *context)
{
  struct wire *wire = context;
  int client;

  while ((client = accept4(wire->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
    begin_line(wire, client);
  return NULL;
}

static void
end_line(struct line *line)
{
  shutdown(line->client, SHUT_RDWR);
  shutdown(line->server, SHUT_RDWR);
  for (int i = 0; i < 2; i++)
    pthread_join(line->threads[i], NULL);
  close(line->client);
  close(line->server);
  free(line->message.body);
  free(line);
}

/* ---- the proxy ------------------------------------------------------------------------------- */

static bool
find_server(struct wire *wire, const char *conninfo)
{
  PGconn *pg = PQconnectdb(conninfo);

  if (PQstatus(pg) != CONNECTION_OK)
    BAIL_OUT("no server: %s", PQerrorMessage(pg));
  bool is_local = PQhost(pg)[0] == '/';
  wire->server.sun_family = wire->at.sun_family = AF_UNIX;
  snprintf(wire->server.sun_path, sizeof wire->server.sun_path, "%.80s/.s.PGSQL.%.5s", PQhost(pg),
           PQport(pg));
  snprintf(wire->at.sun_path, sizeof wire->at.sun_path, "%s/.s.PGSQL.%.5s", wire->folder,
           PQport(pg));
  snprintf(wire->conninfo, sizeof wire->conninfo,
           "host=%s port=%.5s dbname='%.63s' user='%.63s'", wire->folder, PQport(pg), PQdb(pg),
           PQuser(pg));
  PQfinish(pg);
  return is_local;
}

struct wire *
wire_new(const char *conninfo)
{
  struct wire *wire = calloc(1, sizeof *wire);

  if (!wire)
    BAIL_OUT("out of memory");
  pthread_mutex_init(&wire->mutex, NULL);
  snprintf(wire->folder, sizeof wire->folder, "/tmp/durakit-wire-XXXXXX");
  if (!mkdtemp(wire->folder))
    BAIL_OUT("no folder for the proxy: %s", strerror(errno));
  wire->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (!find_server(wire, conninfo)) {
    wire_free(wire);
    return NULL;
  }
  if (bind(wire->listener, (struct sockaddr *)&wire->at, sizeof wire->at) != 0 ||
      listen(wire->listener, 100) != 0 ||
      pthread_create(&wire->thread, NULL, accept_all, wire) != 0)
    BAIL_OUT("the proxy cannot be at %s: %s", wire->at.sun_path, strerror(errno));
  return wire;
}

void
wire_free(struct wire *wire)
{
  shutdown(wire->listener, SHUT_RDWR);
  if (wire->thread)
    pthread_join(wire->thread, NULL);
  close(wire->listener);
  for (struct line *line = wire->lines, *next; line; line = next) {
    next = line->next;
    end_line(line);
  }
  wire_forget(wire);
  unlink(wire->at.sun_path);
  rmdir(wire->folder);
  pthread_mutex_destroy(&wire->mutex);
  free(wire);
}

void
wire_pose_as_pooler(struct wire *wire)
{
  pthread_mutex_lock(&wire->mutex);
  wire->poses = true;
  pthread_mutex_unlock(&wire->mutex);
}

void
wire_cut_answer(struct wire *wire)
{
  pthread_mutex_lock(&wire->mutex);
  wire->cuts = true;
  pthread_mutex_unlock(&wire->mutex);
}

const char *
wire_conninfo(const struct wire *wire)
{
  return wire->conninfo;
}

void
wire_forget(struct wire *wire)
{
  pthread_mutex_lock(&wire->mutex);
  while (wire->n_notices > 0)
    free(wire->notices[--wire->n_notices]);
  wire->counts = (struct wire_counts){0, 0, 0};
  pthread_mutex_unlock(&wire->mutex);
}

struct wire_counts
wire_counts(struct wire *wire)
{
  pthread_mutex_lock(&wire->mutex);
  struct wire_counts counts = wire->counts;
  pthread_mutex_unlock(&wire->mutex);
  return counts;
}

size_t
wire_notices(struct wire *wire)
{
  pthread_mutex_lock(&wire->mutex);
  size_t n = wire->n_notices;
  pthread_mutex_unlock(&wire->mutex);
  return n;
}

const char *
wire_notice(struct wire *wire, size_t i)
{
  return wire->notices[i];
}
