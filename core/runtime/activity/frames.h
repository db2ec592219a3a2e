/* SPDX-License-Identifier: Apache-2.0 */
/* What goes between a runtime and the processes of its activities: frames on a stream socket.
 *
 * A frame is a kind, a length and so many bytes; its bytes are numbers and texts, put and got in
 * one order.  Both ends are the same program, so there is no byte order and no version. */
#ifndef DK_RUNTIME_ACTIVITY_FRAMES_H
#define DK_RUNTIME_ACTIVITY_FRAMES_H

#include <durakit/runtime.h>

#include <stdbool.h>

#include "core/base/text.h"

enum frame_kind { FRAME_ORDER = 1, FRAME_CANCEL, FRAME_RESULT };

void frame_put_number(struct dk_text *text, uint64_t number);
void frame_put_text(struct dk_text *text, dk_str given);

/* What is left of a frame; `failed` once it has too little. */
struct frame_bytes {
  const char *at;
  size_t left;
  bool failed;
};
uint64_t frame_get_number(struct frame_bytes *bytes);
/* Points into the frame; without a NUL behind it. */
dk_str frame_get_text(struct frame_bytes *bytes);

/* Sends all of it, and waits for room as long as it takes, or until `stop_fd` (-1: none) is
 * readable.  false: the other end is gone, or it was stopped. */
bool frame_send(int fd, enum frame_kind kind, const struct dk_text *text, int stop_fd);

/* Reads frames as they come. */
struct frame_reader {
  int fd;
  char *bytes;
  size_t n, room;
  size_t taken;     /* of the frame given last, removed by the next read */
};
enum frame_state {
  FRAME_WHOLE,   /* here is one; good until the next read */
  FRAME_PENDING, /* not all of one is there */
  FRAME_CLOSED   /* the other end is gone, or sends nonsense, or there is no memory */
};
void frame_reader_init(struct frame_reader *reader, int fd);
void frame_reader_done(struct frame_reader *reader);
/* Does not wait. */
enum frame_state frame_read(struct frame_reader *reader, enum frame_kind *ret_kind,
                            struct frame_bytes *ret_bytes);

#endif
