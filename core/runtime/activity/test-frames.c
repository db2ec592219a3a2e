/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that another process sends: whole, in pieces, and with a false length. */
#include "core/runtime/activity/frames.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conformance/tap/tap.h"

static int ends[2];

static void
send_all(const void *bytes, size_t size)
{
  if (send(ends[0], bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size)
    BAIL_OUT("%zu bytes cannot be sent", size);
}

/* The length in a header costs nothing until the bytes arrive. */
static void
believes_no_length(void)
{
  const uint64_t header[2] = {1, UINT64_C(1) << 30};
  struct frame_reader reader;
  struct frame_bytes bytes;
  enum frame_kind kind;

  frame_reader_init(&reader, ends[1]);
  send_all(header, sizeof(header));
  send_all("some of it", 10);
  ok(frame_read(&reader, &kind, &bytes) == FRAME_PENDING, "a frame that has only begun");
  cmp_ok(reader.room, "<=", 1 << 20, "takes little room, whatever its length is to be");
  frame_reader_done(&reader);
}

static void
reads_in_pieces(void)
{
  enum { SIZE = 300000, PIECE = 30000 };
  const uint64_t header[2] = {1, SIZE};
  struct frame_reader reader;
  struct frame_bytes bytes = {.left = 0};
  enum frame_kind kind;
  char *sent = malloc(SIZE);

  if (!sent)
    BAIL_OUT("no memory");
  for (size_t i = 0; i < SIZE; i++)
    sent[i] = (char)(i % 251);
  frame_reader_init(&reader, ends[1]);
  send_all(header, sizeof(header));
  enum frame_state state = FRAME_PENDING;
  for (size_t at = 0; at < SIZE && state == FRAME_PENDING; at += PIECE) {
    send_all(sent + at, PIECE);
    state = frame_read(&reader, &kind, &bytes);
  }
  ok(state == FRAME_WHOLE && bytes.left == SIZE, "a frame that comes in pieces is whole");
  ok(bytes.left == SIZE && memcmp(bytes.at, sent, SIZE) == 0, "and what was sent");
  frame_reader_done(&reader);
  free(sent);
}

int
main(void)
{
  plan(NO_PLAN);
  for (int i = 0; i < 2; i++) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      BAIL_OUT("no socket");
    if (i == 0)
      believes_no_length();
    else
      reads_in_pieces();
    close(ends[0]);
    close(ends[1]);
  }
  return done_testing();
}
