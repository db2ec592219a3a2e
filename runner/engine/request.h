/* SPDX-License-Identifier: Apache-2.0 */
/* A task as bytes, for a child that is another program: the runner writes them, the child reads
 * them.  Both are the same executable, so that there are no versions. */
#ifndef DK_RUNNER_ENGINE_REQUEST_H
#define DK_RUNNER_ENGINE_REQUEST_H

#include <sys/types.h>

#include "core/base/text.h"
#include "runner/engine/engine.h"

/* What the child is told.  All texts lie in the bytes that it was made of. */
struct request {
  struct task task;          /* of kind TASK_CHECK, with a job whose folder is there */
  struct dk_setting *settings;
  pid_t runner;
};

/* dk_text_failed tells of no memory. */
void request_write(struct dk_text *bytes, const struct task *task, const struct kit_job *job,
                   pid_t runner);
/* The check of this id; NULL: there is none. */
typedef const struct check *request_find_fn(const char *id);
/* false: the bytes are cut, or name a check that `find` does not know. */
bool request_read(struct request *ret, const char *bytes, size_t size, request_find_fn *find);
void request_done(struct request *request);

/* The bytes over a socket, with a descriptor; false with errno. */
bool request_send(int socket, const char *bytes, size_t size, int fd);
/* What recv returns; *ret_fd is -1 if none came. */
ssize_t request_receive(int socket, char *bytes, size_t size, int *ret_fd);

#endif
