/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on a stream socket: see frames.h. */
#include "core/runtime/activity/frames.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

struct header {
  uint64_t kind, length;
};

enum { LEAST_ROOM = 4096, MORE_ROOM = 64 * 1024 };
static const uint64_t longest_frame = UINT64_C(1) << 32;

/* ---- numbers and texts ----------------------------------------------------------------------- */

void
frame_put_number(struct dk_text *text, uint64_t number)
{
  dk_text_add(text, &number, sizeof(number));
}

/* Its length and 1; 0: absent. */
void
frame_put_text(struct dk_text *text, dk_str given)
{
  frame_put_number(text, given.ptr ? given.len + 1 : 0);
  if (given.len > 0)
    dk_text_add(text, given.ptr, given.len);
}

static const char *
take(struct frame_bytes *bytes, size_t n)
{
  const char *at = bytes->at;

  if (bytes->failed || n > bytes->left) {
    bytes->failed = true;
    return NULL;
  }
  bytes->at += n;
  bytes->left -= n;
  return at;
}

uint64_t
frame_get_number(struct frame_bytes *bytes)
{
  uint64_t number = 0;
  const char *at = take(bytes, sizeof(number));

  if (at)
    memcpy(&number, at, sizeof(number));
  return number;
}

dk_str
frame_get_text(struct frame_bytes *bytes)
{
  uint64_t length = frame_get_number(bytes);

  if (length == 0)
    return (dk_str){NULL, 0};
  const char *at = take(bytes, length - 1);
  return (dk_str){at, at ? length - 1 : 0};
}

/* ---- sending --------------------------------------------------------------------------------- */

/* false: stopped, do not wait any more. */
static bool
wait_for_room(int fd, int stop_fd)
{
  struct pollfd both[2] = {{.fd = fd, .events = POLLOUT}, {.fd = stop_fd, .events = POLLIN}};

  while (poll(both, 2, -1) < 0)
    if (errno != EINTR)
      return false;
  return both[1].revents == 0;
}

static bool
send_bytes(int fd, const char *bytes, size_t n, int stop_fd)
{
  while (n > 0) {
    ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes += sent;
      n -= (size_t)sent;
    } else if (errno == EAGAIN) {
      if (!wait_for_room(fd, stop_fd))
        return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool
frame_send(int fd, enum frame_kind kind, const struct dk_text *text, int stop_fd)
{
  struct header header = {kind, text->length};

  return send_bytes(fd, (const char *)&header, sizeof(header), stop_fd) &&
         send_bytes(fd, dk_text_str(text), text->length, stop_fd);
}

/* ---- receiving ------------------------------------------------------------------------------- */

void
frame_reader_init(struct frame_reader *reader, int fd)
{
  *reader = (struct frame_reader){.fd = fd};
}

void
frame_reader_done(struct frame_reader *reader)
{
  free(reader->bytes);
}

static bool
frames_make_room(struct frame_reader *reader, size_t room)
{
  if (room < LEAST_ROOM)
    room = LEAST_ROOM;
  if (room <= reader->room)
    return true;
  char *bytes = realloc(reader->bytes, room);
  if (!bytes)
    return false;
  reader->bytes = bytes;
  reader->room = room;
  return true;
}

static void
forget_last(struct frame_reader *reader)
{
  if (reader->taken == 0)
    return;
  memmove(reader->bytes, reader->bytes + reader->taken, reader->n - reader->taken);
  reader->n -= reader->taken;
  reader->taken = 0;
}

/* The length of the frame that begins here, with its header; SIZE_MAX: invalid. */
static size_t
length_of_frame(const struct frame_reader *reader)
{
  struct header header;

  if (reader->n < sizeof(header))
    return sizeof(header);
  memcpy(&header, reader->bytes, sizeof(header));
  return header.length > longest_frame ? SIZE_MAX : sizeof(header) + header.length;
}

/* The size to allocate for the frame, but at most twice what has arrived: the length comes from
 * another process, and must not be trusted. */
static size_t
room_for(const struct frame_reader *reader, size_t length)
{
  size_t most = 2 * reader->n + MORE_ROOM;

  return length < most ? length : most;
}

static enum frame_state
give_frame(struct frame_reader *reader, size_t length, enum frame_kind *ret_kind,
           struct frame_bytes *ret_bytes)
{
  struct header header;

  memcpy(&header, reader->bytes, sizeof(header));
  *ret_kind = (enum frame_kind)header.kind;
  *ret_bytes = (struct frame_bytes){
      .at = reader->bytes + sizeof(header),
      .left = length - sizeof(header),
  };
  reader->taken = length;
  return FRAME_WHOLE;
}

enum frame_state
frame_read(struct frame_reader *reader, enum frame_kind *ret_kind, struct frame_bytes *ret_bytes)
{
  forget_last(reader);
  for (;;) {
    size_t length = length_of_frame(reader);
    if (length == SIZE_MAX || !frames_make_room(reader, room_for(reader, length)))
      return FRAME_CLOSED;
    if (reader->n >= length)
      return give_frame(reader, length, ret_kind, ret_bytes);
    ssize_t got = recv(reader->fd, reader->bytes + reader->n, reader->room - reader->n,
                       MSG_DONTWAIT);
    if (got > 0)
      reader->n += (size_t)got;
    else if (got < 0 && errno == EAGAIN)
      return FRAME_PENDING;
    else if (got == 0 || errno != EINTR)
      return FRAME_CLOSED;
  }
}
