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

enum wire_kind { WIRE_ORDER = 1, WIRE_CANCEL, WIRE_RESULT };

void wire_put_number(struct dk_text *text, uint64_t number);
void wire_put_text(struct dk_text *text, dk_str given);

/* What is left of a frame; `failed` once it has too little. */
struct wire_bytes {
  const char *at;
  size_t left;
  bool failed;
};
uint64_t wire_get_number(struct wire_bytes *bytes);
/* Points into the frame; without a NUL behind it. */
dk_str wire_get_text(struct wire_bytes *bytes);

/* Sends all of it, and waits for room as long as it takes, or until `stop_fd` (-1: none) is
 * readable.  false: the other end is gone, or it was stopped. */
bool wire_send(int fd, enum wire_kind kind, const struct dk_text *text, int stop_fd);

/* Reads frames as they come. */
struct wire_reader {
  int fd;
  char *bytes;
  size_t n, room;
  size_t taken;     /* of the frame given last, removed by the next read */
};
enum wire_state {
  WIRE_FRAME,   /* here is one; good until the next read */
  WIRE_PENDING, /* not all of one is there */
  WIRE_CLOSED   /* the other end is gone, or sends nonsense, or there is no memory */
};
void wire_reader_init(struct wire_reader *reader, int fd);
void wire_reader_done(struct wire_reader *reader);
/* Does not wait. */
enum wire_state wire_read(struct wire_reader *reader, enum wire_kind *ret_kind,
                          struct wire_bytes *ret_bytes);

#endif
