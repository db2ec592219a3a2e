/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files and standard input: see input.h. */
#include "runner/operate/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "runner/cli/usage.h"

#define A_FILE "a file, or - for standard input"

static int
refuse_to_read(const struct host *host, const char *name, const char *why)
{
  struct dk_text next = DK_TEXT_EMPTY;

  usage_add_help(&next, host->options, "shows examples");
  message_problem(&(struct problem){name, "cannot be read", A_FILE, why, dk_text_str(&next)}, NULL);
  dk_text_done(&next);
  return EXIT_USAGE;
}

/* A closed descriptor stays closed: main keeps its number from being used again. */
static int
refuse_error(const struct host *host, const char *name, int fd, int error)
{
  return refuse_to_read(host, name, fd == STDIN_FILENO && error == EBADF
                                      ? "standard input is closed" : strerror(error));
}

static int
refuse_size(const struct host *host, const char *name, size_t most, const char *next)
{
  struct dk_text expected = DK_TEXT_EMPTY;

  dk_text_printf(&expected, "at most %zu bytes", most);
  int code = usage(host->options, name, "is too long", dk_text_str(&expected), next);
  dk_text_done(&expected);
  return code;
}

/* Waits until there is something to read, or the end; false: a signal came. */
static bool
wait_for_more(const struct host *host, int fd)
{
  struct pollfd fds[2] = {{.fd = fd, .events = POLLIN},
                          {.fd = host_interrupt_fd(host), .events = POLLIN}};

  while (poll(fds, 2, -1) < 0 && errno == EINTR)
    continue;
  return fds[1].revents == 0;
}

static int
read_all(const struct host *host, const char *name, int fd, size_t most, const char *next,
         struct dk_text *ret_bytes)
{
  char piece[65536];

  while (wait_for_more(host, fd)) {
    ssize_t n = read(fd, piece, sizeof(piece));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n < 0)
      return refuse_error(host, name, fd, errno);
    if (n == 0)
      return EXIT_PASSED;
    if ((size_t)n > most - ret_bytes->length)
      return refuse_size(host, name, most, next);
    dk_text_add(ret_bytes, piece, (size_t)n);
    if (dk_text_failed(ret_bytes)) {
      message_print("out of memory");
      return EXIT_ENVIRONMENT;
    }
  }
  return host_say_interrupted();
}

int
input_read(const struct host *host, const char *name, size_t most, const char *next,
           struct dk_text *ret_bytes)
{
  if (strcmp(name, "-") == 0)
    return read_all(host, name, STDIN_FILENO, most, next, ret_bytes);
  /* The other end of a FIFO might never be opened: the command waits for it, and for a signal. */
  int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return refuse_error(host, name, fd, errno);
  int code = read_all(host, name, fd, most, next, ret_bytes);
  close(fd);
  return code;
}
