/* SPDX-License-Identifier: Apache-2.0 */
/* A process between a provider and its server: it passes on what both send, and on demand drops a
 * piece or holds it, closes the connection to both or in one direction, or resets it.
 *
 * A piece is what one side has sent and the other has not yet been given: with a protocol of
 * questions and answers, a message.  The process is forked before the plugin is loaded, and owns
 * its listening socket and all connections; its orders lie in the shared map.  It ends with the
 * check's process. */
#include "conformance/kit/kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  MOST_PAIRS = 64,
  PIECE = 1 << 16,
  HELD_LOOK_MS = 2 /* between two looks whether the held piece may go */
};

struct pair {
  int provider, server; /* -1: this entry is free */
  bool requests_ended, answers_ended;
};

struct proxy {
  struct kit_proxy *told;
  const char *address;
  int listener;
  struct pair *held;   /* whose piece is held in its socket; NULL: none */
  struct pair pairs[MOST_PAIRS];
  char piece[PIECE];
};

/* ---- addresses ------------------------------------------------------------------------------- */

static bool
unix_address(struct sockaddr_un *address, const char *path)
{
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof(address->sun_path))
    return false;
  memcpy(address->sun_path, path, strlen(path));
  return true;
}

static int
connect_unix(const char *path)
{
  struct sockaddr_un address;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (fd >= 0 && unix_address(&address, path) &&
      connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
    return fd;
  if (fd >= 0)
    close(fd);
  return -1;
}

static int
connect_tcp(const char *name)
{
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
  const char *colon = strrchr(name, ':');
  char host[256];
  int fd = -1;

  snprintf(host, sizeof(host), "%.*s", (int)(colon - name), name);
  if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
    return -1;
  for (struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next) {
    fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
      close(fd);
      fd = -1;
    }
  }
  freeaddrinfo(found);
  return fd;
}

static int
connect_to(const char *address)
{
  return address[0] == '/' ? connect_unix(address) : connect_tcp(address);
}

static int
listen_unix(struct dk_check *t, const char *path)
{
  struct sockaddr_un address;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

  if (!unix_address(&address, path))
    kit_trouble(t, "the path of the socket between provider and server is too long: %s", path);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
      listen(fd, MOST_PAIRS) != 0)
    kit_trouble(t, "the kit cannot listen at %s: %s", path, strerror(errno));
  return fd;
}

static int
listen_tcp(struct dk_check *t, unsigned *ret_port)
{
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof(address);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
      listen(fd, MOST_PAIRS) != 0 || getsockname(fd, (struct sockaddr *)&address, &size) != 0)
    kit_trouble(t, "the kit cannot listen at 127.0.0.1: %s", strerror(errno));
  *ret_port = ntohs(address.sin_port);
  return fd;
}

/* ---- passing on ------------------------------------------------------------------------------ */

static void
close_pair(struct pair *pair)
{
  close(pair->provider);
  close(pair->server);
  *pair = (struct pair){.provider = -1, .server = -1};
}

/* Closes with a reset, so that the next read fails instead of finding the end: with TCP always, and
 * with other sockets if unread data is left. */
static void
reset_pair(struct pair *pair)
{
  struct linger at_once = {.l_onoff = 1};

  setsockopt(pair->provider, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  setsockopt(pair->server, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close_pair(pair);
}

static bool
proxy_send_all(int fd, const char *bytes, size_t size)
{
  while (size > 0) {
    ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);

    if (n < 0 && errno != EINTR)
      return false;
    size_t sent = n > 0 ? (size_t)n : 0;
    bytes += sent;
    size -= sent;
  }
  return true;
}

/* True: this piece is the one to cut. */
static bool
is_the_one(struct proxy *p, bool is_answer)
{
  struct kit_proxy *told = p->told;

  return atomic_load(&told->countdown) > 0 && told->cut.is_answer == is_answer &&
         atomic_fetch_sub(&told->countdown, 1) == 1;
}

/* Ends this direction; the other direction is passed on as before. */
static void
end_half(struct pair *pair, bool is_answer)
{
  shutdown(is_answer ? pair->server : pair->provider, SHUT_RD);
  shutdown(is_answer ? pair->provider : pair->server, SHUT_WR);
  if (is_answer)
    pair->answers_ended = true;
  else
    pair->requests_ended = true;
}

static void
cut(struct proxy *p, struct pair *pair)
{
  const struct message_cut *cut = &p->told->cut;

  if (cut->half)
    end_half(pair, cut->is_answer);
  else if (cut->reset)
    reset_pair(pair);
  else
    close_pair(pair);
  atomic_store(&p->told->done, 1);
}

/* False: one of the two has closed the connection. */
static bool
pass_piece_on(struct proxy *p, const struct pair *pair, bool is_answer)
{
  int from = is_answer ? pair->server : pair->provider;
  ssize_t n = recv(from, p->piece, sizeof(p->piece), 0);

  return n > 0 && proxy_send_all(is_answer ? pair->provider : pair->server, p->piece, (size_t)n);
}

static void
pass_on(struct proxy *p, struct pair *pair, bool is_answer)
{
  const struct message_cut *told = &p->told->cut;
  ssize_t n = recv(is_answer ? pair->server : pair->provider, p->piece, 1, MSG_PEEK);

  if (n < 0 && errno == EINTR)
    return;
  if (n <= 0) {
    close_pair(pair);
    return;
  }
  bool is_cut = is_the_one(p, is_answer);
  if (is_cut && told->held) {
    p->held = pair;
    atomic_store(&p->told->holds, 1);
    return;
  }
  if (is_cut && !told->passed_on) {
    cut(p, pair);
    return;
  }
  bool is_whole = pass_piece_on(p, pair, is_answer);
  if (is_cut)
    cut(p, pair);
  else if (!is_whole)
    close_pair(pair);
}

/* Passes on the held piece, and continues as before; or its connection has been closed. */
static void
proxy_let_go(struct proxy *p)
{
  struct pair *pair = p->held;
  const struct message_cut *told = &p->told->cut;

  p->held = NULL;
  atomic_store(&p->told->go, 0);
  if (!told->passed_on || !pass_piece_on(p, pair, told->is_answer))
    close_pair(pair);
  atomic_store(&p->told->holds, 0);
  atomic_store(&p->told->done, 1);
}

static void
take_connection(struct proxy *p)
{
  struct pair pair = {.provider = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC)};
  size_t i = 0;

  if (pair.provider < 0)
    return;
  pair.server = connect_to(p->address);
  while (i < MOST_PAIRS && p->pairs[i].provider >= 0)
    i++;
  if (pair.server < 0 || i == MOST_PAIRS) {
    close_pair(&pair);
    return;
  }
  p->pairs[i] = pair;
  atomic_fetch_add(&p->told->n_connections, 1);
}

/* For a direction that has ended, waits only for the end of the other (POLLHUP); for a connection
 * that is held, for nothing. */
static struct pollfd
end_of(const struct proxy *p, const struct pair *pair, bool is_answer)
{
  bool has_ended = is_answer ? pair->answers_ended : pair->requests_ended;
  int fd = is_answer ? pair->server : pair->provider;

  return (struct pollfd){.fd = pair == p->held ? -1 : fd, .events = has_ended ? 0 : POLLIN};
}

static void
hear(struct proxy *p, struct pair *pair, const struct pollfd *end, bool is_answer)
{
  if (end->revents == 0 || end->fd < 0 || pair->provider < 0 || pair == p->held)
    return;
  if (end->events == 0)
    close_pair(pair);
  else
    pass_on(p, pair, is_answer);
}

static void
serve_once(struct proxy *p)
{
  struct pollfd ends[1 + 2 * MOST_PAIRS];

  ends[0] = (struct pollfd){.fd = p->listener, .events = POLLIN};
  for (size_t i = 0; i < MOST_PAIRS; i++) {
    ends[1 + 2 * i] = end_of(p, &p->pairs[i], false);
    ends[2 + 2 * i] = end_of(p, &p->pairs[i], true);
  }
  if (poll(ends, 1 + 2 * MOST_PAIRS, p->held != NULL ? HELD_LOOK_MS : -1) < 0)
    return;
  for (size_t i = 0; i < MOST_PAIRS; i++) {
    hear(p, &p->pairs[i], &ends[1 + 2 * i], false);
    hear(p, &p->pairs[i], &ends[2 + 2 * i], true);
  }
  if (ends[0].revents != 0)
    take_connection(p);
  if (p->held != NULL && atomic_load(&p->told->go) != 0)
    proxy_let_go(p);
}

__attribute__((noreturn)) static void
be_proxy(struct kit_proxy *told, const char *address, int listener)
{
  struct proxy *p = calloc(1, sizeof(*p));

  if (p == NULL)
    _exit(1);
  *p = (struct proxy){.told = told, .address = address, .listener = listener};
  for (size_t i = 0; i < MOST_PAIRS; i++)
    p->pairs[i] = (struct pair){.provider = -1, .server = -1};
  for (;;)
    serve_once(p);
}

/* ---- the check's side ------------------------------------------------------------------------ */

/* Fills in "host={folder} port={port}". */
static void
fill_in(struct dk_check *t, const char *form, const char *folder, unsigned port)
{
  struct kit_proxy *proxy = &t->shared->proxy;
  struct dk_text text = DK_TEXT_EMPTY;

  while (*form != '\0') {
    if (strncmp(form, "{folder}", 8) == 0) {
      dk_text_puts(&text, folder);
      form += 8;
    } else if (strncmp(form, "{host}", 6) == 0) {
      dk_text_puts(&text, "127.0.0.1");
      form += 6;
    } else if (strncmp(form, "{port}", 6) == 0) {
      dk_text_printf(&text, "%u", port);
      form += 6;
    } else {
      dk_text_add(&text, form++, 1);
    }
  }
  if (dk_text_failed(&text) || text.length >= sizeof(proxy->value))
    kit_trouble(t, "the value of --through is too long");
  memcpy(proxy->value, dk_text_str(&text), text.length + 1);
  dk_text_done(&text);
}

static int
listen_for_check(struct dk_check *t, const char *folder)
{
  const struct kit_hurt *hurt = &t->job->hurt;
  const char *equals = strchr(hurt->through, '=');
  char path[KIT_MAX_VALUE];
  unsigned port = 0;
  int listener;

  if (equals == NULL || (size_t)(equals - hurt->through) >= sizeof(t->shared->proxy.key))
    kit_trouble(t, "--through needs key=value");
  snprintf(path, sizeof(path), "%s%s", folder,
           hurt->address[0] == '/' ? strrchr(hurt->address, '/') : "");
  if (hurt->address[0] == '/')
    listener = listen_unix(t, path);
  else
    listener = listen_tcp(t, &port);
  fill_in(t, equals + 1, folder, port);
  snprintf(t->shared->proxy.key, sizeof(t->shared->proxy.key), "%.*s",
           (int)(equals - hurt->through), hurt->through);
  return listener;
}

void
kit_proxy_start(struct dk_check *t)
{
  const struct check *check = t->job->check;
  pid_t parent = getpid(), child;
  int listener;

  if ((check->needs & NEEDS_PROXY) == 0 || (t->job->hurt.powers & KIT_CAN_STAND_BETWEEN) == 0)
    return;
  listener = listen_for_check(t, t->job->folder);
  child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(0);
    be_proxy(&t->shared->proxy, t->job->hurt.address, listener);
  }
  close(listener);
  if (child < 0)
    kit_trouble(t, "the process between provider and server cannot be forked: %s",
                strerror(errno));
  t->shared->proxy.pid = child;
}

void
kit_proxy_end(struct dk_check *t)
{
  siginfo_t info;

  if (t->shared->proxy.pid <= 0)
    return;
  kill(t->shared->proxy.pid, SIGKILL);
  while (waitid(P_PID, (id_t)t->shared->proxy.pid, &info, WEXITED) != 0 && errno == EINTR)
    continue;
  t->shared->proxy.pid = 0;
}

void
cut_at_message(struct dk_check *t, struct message_cut cut)
{
  struct kit_proxy *proxy = &t->shared->proxy;

  if (proxy->pid <= 0)
    kit_trouble(t, "this check has no process between provider and server");
  if (atomic_load(&proxy->holds) != 0)
    kit_trouble(t, "a piece is still held");
  atomic_store(&proxy->countdown, 0);
  atomic_store(&proxy->done, 0);
  proxy->cut = cut;
  atomic_store(&proxy->countdown, (int32_t)cut.n);
}

/* "piece 2 of the server was passed on, and the connection closed" */
static void
trace_cut(struct dk_check *t, const struct message_cut *cut)
{
  static const char *const ends[] = {"closed", "reset", "ended in this direction", "stays open"};
  int end = cut->held && cut->passed_on ? 3 : cut->half ? 2 : cut->reset ? 1 : 0;

  say_in_trace(t, "(meanwhile piece %u of the %s was %s%s, and the connection %s)", cut->n,
               cut->is_answer ? "server" : "provider", cut->held ? "held, and then " : "",
               cut->passed_on ? "passed on" : "dropped", ends[end]);
}

/* The piece that was passed on may arrive before the connection is closed. */
static void
until_done(struct dk_check *t)
{
  while (atomic_load(&t->shared->proxy.done) == 0)
    wait_for_real(t, 1);
  trace_cut(t, &t->shared->proxy.cut);
}

bool
message_was_cut(struct dk_check *t)
{
  bool done = atomic_exchange(&t->shared->proxy.countdown, 0) <= 0;

  if (done)
    until_done(t);
  return done;
}

/* The proxy brings the countdown to 0 a moment before it says that it holds the piece. */
bool
message_is_held(struct dk_check *t, struct actor *actor)
{
  struct kit_proxy *proxy = &t->shared->proxy;

  while (atomic_load(&proxy->holds) == 0) {
    bool is_done = kit_is_done(kit_actor(t, actor), 1);

    if (is_done && atomic_exchange(&proxy->countdown, 0) > 0)
      return false;
  }
  return true;
}

void
let_message_go(struct dk_check *t)
{
  atomic_store(&t->shared->proxy.go, 1);
  until_done(t);
}
