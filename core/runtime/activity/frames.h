/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol between a runtime and the processes of its activities: frames on a stream socket.
 *
 * A frame is a kind, a length and that many bytes; the bytes are numbers and texts, which are read
 * in the order in which they were written.  Both ends are the same program, so there is no byte
 * order and no version. */
#ifndef DK_RUNTIME_ACTIVITY_FRAMES_H
#define DK_RUNTIME_ACTIVITY_FRAMES_H

#include <durakit/runtime.h>

#include <stdbool.h>

#include "core/base/text.h"

enum frame_kind { FRAME_ORDER = 1, FRAME_CANCEL, FRAME_RESULT };

void frame_put_number(struct dk_text *text, uint64_t number);
void frame_put_text(struct dk_text *text, dk_str given);

/* The rest of a frame; `failed` once it was too short. */
struct frame_bytes {
  const char *at;
  size_t left;
  bool failed;
};
uint64_t frame_get_number(struct frame_bytes *bytes);
/* Points into the frame; not followed by a NUL. */
dk_str frame_get_text(struct frame_bytes *bytes);

/* Sends all of it; waits while the socket is full, or until `stop_fd` (-1: none) is readable.
 * false: the other end is closed, or it was stopped. */
bool frame_send(int fd, enum frame_kind kind, const struct dk_text *text, int stop_fd);

/* Reads frames as they arrive. */
struct frame_reader {
  int fd;
  char *bytes;
  size_t n, room;
  size_t taken;     /* size of the last frame returned, which the next read removes */
};
enum frame_state {
  FRAME_WHOLE,   /* a frame; valid until the next read */
  FRAME_PENDING, /* a frame is incomplete */
  FRAME_CLOSED   /* the other end is closed or sends invalid data, or there is no memory */
};
void frame_reader_init(struct frame_reader *reader, int fd);
void frame_reader_done(struct frame_reader *reader);
/* Does not wait. */
enum frame_state frame_read(struct frame_reader *reader, enum frame_kind *ret_kind,
                            struct frame_bytes *ret_bytes);

#endif
