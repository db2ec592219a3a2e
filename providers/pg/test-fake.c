/* SPDX-License-Identifier: Apache-2.0 */
/* A server whose answers a test defines: see test-fake.h.
 *
 * Locking: `mutex` guards the threads and their sockets, and is held while a connection is
 * accepted: so none is missing in a count that is taken when no other is pending. */
#include "providers/pg/test-fake.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

enum { MOST_CONNECTIONS = 200 };

struct guest {
  struct fake *fake;
  pthread_t thread;
  int fd;
};

struct fake {
  char folder[32];
  fake_serve_fn *serve;
  void *context;
  int listener;
  pthread_t thread;
  pthread_mutex_t mutex;
  struct guest guests[MOST_CONNECTIONS];
  int n_guests;
};

/* ---- connections ----------------------------------------------------------------------------- */

static void *
serve_guest(void *context)
{
  struct guest *guest = context;

  guest->fake->serve(guest->fd, guest->fake->context);
  pthread_mutex_lock(&guest->fake->mutex);
  close(guest->fd);
  guest->fd = -1;
  pthread_mutex_unlock(&guest->fake->mutex);
  return NULL;
}

static void *
accept_all(void *context)
{
  struct fake *fake = context;
  struct pollfd pending = {.fd = fake->listener, .events = POLLIN};

  for (;;) {
    poll(&pending, 1, -1);
    pthread_mutex_lock(&fake->mutex);
    int fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
      break;
    if (fake->n_guests == MOST_CONNECTIONS)
      BAIL_OUT("too many connections to the fake server");
    struct guest *guest = &fake->guests[fake->n_guests++];
    *guest = (struct guest){.fake = fake, .fd = fd};
    if (pthread_create(&guest->thread, NULL, serve_guest, guest) != 0)
      BAIL_OUT("no thread for the fake server");
    pthread_mutex_unlock(&fake->mutex);
  }
  pthread_mutex_unlock(&fake->mutex);
  return NULL;
}

struct fake *
fake_start(fake_serve_fn *serve, void *context)
{
  struct fake *fake = calloc(1, sizeof *fake);
  struct sockaddr_un address = {.sun_family = AF_UNIX};

  if (!fake)
    BAIL_OUT("no memory for the fake server");
  fake->serve = serve;
  fake->context = context;
  pthread_mutex_init(&fake->mutex, NULL);
  snprintf(fake->folder, sizeof fake->folder, "/tmp/test-pg-XXXXXX");
  if (!mkdtemp(fake->folder))
    BAIL_OUT("no folder for the fake server");
  snprintf(address.sun_path, sizeof address.sun_path, "%s/.s.PGSQL.5432", fake->folder);
  fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fake->listener < 0 || bind(fake->listener, (void *)&address, sizeof address) < 0 ||
      listen(fake->listener, 20) < 0 ||
      pthread_create(&fake->thread, NULL, accept_all, fake) != 0)
    BAIL_OUT("no fake server");
  return fake;
}

void
fake_stop(struct fake *fake)
{
  char path[64];

  shutdown(fake->listener, SHUT_RDWR);
  pthread_join(fake->thread, NULL);
  close(fake->listener);
  pthread_mutex_lock(&fake->mutex);
  for (int i = 0; i < fake->n_guests; i++)
    if (fake->guests[i].fd >= 0)
      shutdown(fake->guests[i].fd, SHUT_RDWR);
  pthread_mutex_unlock(&fake->mutex);
  for (int i = 0; i < fake->n_guests; i++)
    pthread_join(fake->guests[i].thread, NULL);
  snprintf(path, sizeof path, "%s/.s.PGSQL.5432", fake->folder);
  if (unlink(path) != 0 || rmdir(fake->folder) != 0)
    diag("%s cannot be removed", fake->folder);
  pthread_mutex_destroy(&fake->mutex);
  free(fake);
}

const char *
fake_folder(const struct fake *fake)
{
  return fake->folder;
}

int
fake_connections(struct fake *fake)
{
  struct pollfd pending = {.fd = fake->listener, .events = POLLIN};

  for (;;) {
    pthread_mutex_lock(&fake->mutex);
    int n = fake->n_guests;
    bool all = poll(&pending, 1, 0) == 0;
    pthread_mutex_unlock(&fake->mutex);
    if (all)
      return n;
    sched_yield();
  }
}

/* ---- messages -------------------------------------------------------------------------------- */

void
fake_send(int fd, const void *bytes, size_t size)
{
  const char *at = bytes;

  while (size > 0) {
    ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
    if (n <= 0)
      return;
    at += n;
    size -= (size_t)n;
  }
}

void
fake_message(int fd, char type, const void *body, size_t size)
{
  uint32_t length = htonl((uint32_t)size + 4);
  char head[5] = {type};

  memcpy(head + 1, &length, sizeof length);
  fake_send(fd, head, sizeof head);
  fake_send(fd, body, size);
}

/* The next message's body, to be freed; NULL: there is none. */
static char *
read_body(int fd)
{
  uint32_t length;

  if (recv(fd, &length, sizeof length, MSG_WAITALL) != (ssize_t)sizeof length)
    return NULL;
  size_t size = ntohl(length) - sizeof length;
  char *body = malloc(size + 1);
  if (body && size > 0 && recv(fd, body, size, MSG_WAITALL) != (ssize_t)size) {
    free(body);
    return NULL;
  }
  return body;
}

bool
fake_read_start(int fd)
{
  char *body = read_body(fd);

  free(body);
  return body != NULL;
}

bool
fake_read_request(int fd)
{
  char types[20];

  return fake_read_types(fd, types);
}

bool
fake_read_types(int fd, char ret_types[20])
{
  size_t n = 0;
  char type;

  while (recv(fd, &type, 1, MSG_WAITALL) == 1) {
    if (n + 1 < 20)
      ret_types[n++] = type;
    ret_types[n] = '\0';
    char *body = read_body(fd);
    if (!body || type == 'X') {
      free(body);
      return false;
    }
    free(body);
    if (type == 'S' || type == 'Q')
      return true;
  }
  return false;
}

/* ---- a server's answers ---------------------------------------------------------------------- */

static void
say_parameter(int fd, const char *name, const char *value)
{
  char body[100];
  int n = snprintf(body, sizeof body, "%s%c%s", name, 0, value);

  fake_message(fd, 'S', body, (size_t)n + 1);
}

void
fake_ready(int fd, char transaction)
{
  fake_message(fd, 'Z', &transaction, 1);
}

void
fake_welcome(int fd)
{
  const uint32_t welcome = 0;

  fake_message(fd, 'R', &welcome, sizeof welcome);
}

void
fake_greet(int fd, const char *version, const char *encoding)
{
  say_parameter(fd, "server_version", version);
  say_parameter(fd, "server_encoding", encoding);
  say_parameter(fd, "client_encoding", "UTF8");
  fake_ready(fd, 'I');
}

void
fake_error(int fd, char type, const char *severity, const char *sqlstate, const char *message)
{
  fake_error_from(fd, type, severity, sqlstate, message, "postgres.c");
}

void
fake_error_from(int fd, char type, const char *severity, const char *sqlstate, const char *message,
                const char *file)
{
  char body[400];
  int n = snprintf(body, sizeof body, "S%s%cV%s%cC%s%cM%s%cF%s%cL1%cRtest%c", severity, 0, severity,
                   0, sqlstate, 0, message, 0, file, 0, 0, 0);

  fake_message(fd, type, body, (size_t)n + 1);
}

static char *
put(char *at, uint32_t value, int size)
{
  for (int i = 0; i < size; i++)
    at[i] = (char)(value >> (8 * (size - 1 - i)) & 0xff);
  return at + size;
}

static char *
put_column(char *at, const char *name, uint32_t type)
{
  memcpy(at, name, strlen(name) + 1);
  at = put(at + strlen(name) + 1, 0, 4); /* no table */
  at = put(at, 0, 2);
  at = put(at, type, 4);
  at = put(at, UINT32_MAX, 2);
  at = put(at, UINT32_MAX, 4);
  return put(at, 1, 2);                  /* binary */
}

void
fake_row(int fd, bool value, const char *text, size_t length)
{
  char columns[100], *at = put(columns, 2, 2);
  char *row = malloc(length + 20);

  if (!row)
    BAIL_OUT("no memory for a row");
  fake_message(fd, '1', NULL, 0);
  fake_message(fd, '2', NULL, 0);
  at = put_column(put_column(at, "o", 16), "t", 25);
  fake_message(fd, 'T', columns, (size_t)(at - columns));
  at = put(put(put(row, 2, 2), 1, 4), value, 1);
  at = put(at, (uint32_t)length, 4);
  memcpy(at, text, length);
  fake_message(fd, 'D', row, (size_t)(at - row) + length);
  fake_message(fd, 'C', "SELECT 1", 9);
  free(row);
}

void
fake_text(int fd, const char *text)
{
  char columns[100], row[400], *at = put(columns, 1, 2);
  size_t length = strlen(text);

  if (length + 20 > sizeof row)
    BAIL_OUT("no room for a row");
  fake_message(fd, '1', NULL, 0);
  fake_message(fd, '2', NULL, 0);
  at = put_column(at, "t", 25);
  fake_message(fd, 'T', columns, (size_t)(at - columns));
  at = put(put(row, 1, 2), (uint32_t)length, 4);
  memcpy(at, text, length);
  fake_message(fd, 'D', row, (size_t)(at - row) + length);
  fake_message(fd, 'C', "SELECT 1", 9);
}

static char *
put_text(char *at, const char *text)
{
  if (!text)
    return put(at, UINT32_MAX, 4);
  at = put(at, (uint32_t)strlen(text), 4);
  memcpy(at, text, strlen(text));
  return at + strlen(text);
}

void
fake_session(int fd, const struct fake_session *session)
{
  char columns[300], *at = put(columns, 7, 2), row[300];

#ifdef LIBPQ_HAS_PIPELINING /* a SET before it */
  fake_message(fd, '1', NULL, 0);
  fake_message(fd, '2', NULL, 0);
  fake_message(fd, 'n', NULL, 0);
  fake_message(fd, 'C', "SET", 4);
#endif
  fake_message(fd, '1', NULL, 0);
  fake_message(fd, '2', NULL, 0);
  at = put_column(put_column(at, "o", 16), "t", 25);
  at = put_column(put_column(put_column(at, "o", 16), "t", 25), "b", 20);
  at = put_column(put_column(at, "system", 25), "file", 25);
  fake_message(fd, 'T', columns, (size_t)(at - columns));
  at = put(put(put(row, 7, 2), 1, 4), session->is_standby, 1);
  at = put_text(at, session->isolation ? session->isolation : "read committed");
  at = put(put(at, 1, 4), session->is_own, 1);
  at = put_text(at, session->is_read_only || session->is_standby ? "on" : "off");
  at = put(put(put(at, 8, 4), 0, 4), 30, 4);
  at = put_text(put_text(at, session->system), session->file);
  fake_message(fd, 'D', row, (size_t)(at - row));
  fake_message(fd, 'C', "SELECT 1", 9);
  fake_ready(fd, 'I');
}

bool
fake_let_in_as(int fd, const struct fake_session *session)
{
  if (!fake_read_start(fd))
    return false;
  fake_welcome(fd);
  fake_greet(fd, "15.1", "UTF8");
  if (!fake_read_request(fd))
    return false;
  fake_session(fd, session);
  return true;
}

bool
fake_let_in(int fd)
{
  return fake_let_in_as(fd, &(struct fake_session){.is_own = true});
}

void
fake_answer_all(int fd)
{
  while (fake_read_request(fd)) {
    fake_row(fd, true, "yes", 3);
    fake_ready(fd, 'I');
  }
}
