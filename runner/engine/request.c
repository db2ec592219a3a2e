/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers are eight bytes as they lie in memory; a text is its length, its bytes and a NUL;
 * absent ones have no bytes. */
#include "runner/engine/request.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

static const uint64_t absent = UINT64_MAX;

/* ---- writing --------------------------------------------------------------------------------- */

static void
put_number(struct dk_text *bytes, uint64_t number)
{
  dk_text_add(bytes, &number, sizeof(number));
}

static void
put_bytes(struct dk_text *bytes, struct dk_bytes value)
{
  put_number(bytes, value.ptr ? value.len : absent);
  if (value.ptr) {
    dk_text_add(bytes, value.ptr, value.len);
    dk_text_add(bytes, "", 1);
  }
}

static void
put_text(struct dk_text *bytes, const char *text)
{
  put_bytes(bytes, (struct dk_bytes){text, text ? strlen(text) : 0});
}

void
request_write(struct dk_text *bytes, const struct task *task, const struct kit_job *job,
              pid_t runner)
{
  put_text(bytes, job->check->id);
  put_text(bytes, job->plugin);
  put_text(bytes, job->store_key);
  put_text(bytes, job->store_value);
  put_text(bytes, job->run);
  put_text(bytes, job->folder);
  put_number(bytes, job->number);
  put_number(bytes, job->seed);
  put_number(bytes, (uint64_t)job->settle_ms);
  put_number(bytes, (uint64_t)job->answer_ms);
  put_number(bytes, job->real_time);
  put_number(bytes, (uint64_t)job->real_wait_ms);
  put_number(bytes, (uint64_t)job->patience_ms);
  put_number(bytes, job->incomplete);
  put_number(bytes, job->unload);
  put_number(bytes, (uint64_t)job->seals);
  put_number(bytes, job->seals_inode);
  put_number(bytes, job->hurt.powers);
  put_text(bytes, job->hurt.hand);
  put_text(bytes, job->hurt.through);
  put_text(bytes, job->hurt.address);
  put_number(bytes, task->tag);
  put_number(bytes, task->warms);
  put_number(bytes, (uint64_t)runner);
  put_number(bytes, job->n_settings);
  for (size_t i = 0; i < job->n_settings; i++) {
    put_text(bytes, job->settings[i].key);
    put_bytes(bytes, job->settings[i].value);
  }
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
  const char *at, *end;
  bool failed;
};

static uint64_t
take_request_number(struct reader *reader)
{
  uint64_t number = 0;

  if ((size_t)(reader->end - reader->at) < sizeof(number)) {
    reader->failed = true;
    return 0;
  }
  memcpy(&number, reader->at, sizeof(number));
  reader->at += sizeof(number);
  return number;
}

static struct dk_bytes
take_bytes(struct reader *reader)
{
  struct dk_bytes bytes = {NULL, 0};
  uint64_t length = take_request_number(reader);

  if (reader->failed || length == absent)
    return bytes;
  if (length >= (uint64_t)(reader->end - reader->at) || reader->at[length] != '\0') {
    reader->failed = true;
    return bytes;
  }
  bytes = (struct dk_bytes){reader->at, (size_t)length};
  reader->at += length + 1;
  return bytes;
}

static const char *
take_text(struct reader *reader)
{
  return take_bytes(reader).ptr;
}

static bool
take_request_settings(struct reader *reader, struct request *request)
{
  uint64_t n = take_request_number(reader);

  if (reader->failed || n > (uint64_t)(reader->end - reader->at))
    return false;
  request->settings = calloc(n + 1, sizeof(*request->settings));
  for (uint64_t i = 0; request->settings && i < n; i++) {
    request->settings[i].key = take_text(reader);
    request->settings[i].value = take_bytes(reader);
  }
  request->task.job.settings = request->settings;
  request->task.job.n_settings = n;
  return request->settings && !reader->failed;
}

bool
request_read(struct request *ret, const char *bytes, size_t size, request_find_fn *find)
{
  struct reader reader = {.at = bytes, .end = bytes + size};
  struct kit_job *job = &ret->task.job;

  *ret = (struct request){.task = {.kind = TASK_CHECK, .memcheck = true}};
  job->memcheck = true;
  const char *id = take_text(&reader);
  job->check = id ? find(id) : NULL;
  job->plugin = take_text(&reader);
  job->store_key = take_text(&reader);
  job->store_value = take_text(&reader);
  job->run = take_text(&reader);
  job->folder = take_text(&reader);
  job->number = (uint32_t)take_request_number(&reader);
  job->seed = take_request_number(&reader);
  job->settle_ms = (int32_t)take_request_number(&reader);
  job->answer_ms = (int32_t)take_request_number(&reader);
  job->real_time = take_request_number(&reader) != 0;
  job->real_wait_ms = (int64_t)take_request_number(&reader);
  job->patience_ms = (int64_t)take_request_number(&reader);
  job->incomplete = take_request_number(&reader) != 0;
  job->unload = take_request_number(&reader) != 0;
  job->seals = (int)take_request_number(&reader);
  job->seals_inode = take_request_number(&reader);
  job->hurt.powers = (uint32_t)take_request_number(&reader);
  job->hurt.hand = take_text(&reader);
  job->hurt.through = take_text(&reader);
  job->hurt.address = take_text(&reader);
  ret->task.tag = take_request_number(&reader);
  ret->task.warms = take_request_number(&reader) != 0;
  ret->runner = (pid_t)take_request_number(&reader);
  return take_request_settings(&reader, ret) && job->check && job->run && job->folder;
}

void
request_done(struct request *request)
{
  free(request->settings);
  request->settings = NULL;
}

/* ---- over a socket --------------------------------------------------------------------------- */

/* Room for one descriptor. */
union one_descriptor {
  struct cmsghdr head;
  char bytes[CMSG_SPACE(sizeof(int))];
};

bool
request_send(int socket, const char *bytes, size_t size, int fd)
{
  union one_descriptor room = {.bytes = {0}};
  struct iovec part = {(char *)(uintptr_t)bytes, size};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = room.bytes,
                           .msg_controllen = sizeof(room.bytes)};

  room.head.cmsg_level = SOL_SOCKET;
  room.head.cmsg_type = SCM_RIGHTS;
  room.head.cmsg_len = CMSG_LEN(sizeof(fd));
  memcpy(CMSG_DATA(&room.head), &fd, sizeof(fd));
  return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)size;
}

ssize_t
request_receive(int socket, char *bytes, size_t size, int *ret_fd)
{
  union one_descriptor room = {.bytes = {0}};
  struct iovec part = {bytes, size};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = room.bytes,
                           .msg_controllen = sizeof(room.bytes)};
  ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

  *ret_fd = -1;
  if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(*ret_fd)))
    memcpy(ret_fd, CMSG_DATA(head), sizeof(*ret_fd));
  return n;
}
