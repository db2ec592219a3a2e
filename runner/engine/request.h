/* SPDX-License-Identifier: Apache-2.0 */
/* A task as bytes, for a child that is another program: the runner writes them, the child reads
 * them.  Both are the same executable, so that there are no versions. */
#ifndef DK_RUNNER_ENGINE_REQUEST_H
#define DK_RUNNER_ENGINE_REQUEST_H

#include <sys/types.h>

#include "core/base/text.h"
#include "runner/engine/engine.h"

/* A task for the child.  All its texts lie in the bytes from which it was made. */
struct request {
  struct task task;          /* of kind TASK_CHECK, with a job whose folder exists */
  struct dk_setting *settings;
  pid_t runner;
};

/* Without memory, dk_text_failed is true of the bytes. */
void request_write(struct dk_text *bytes, const struct task *task, const struct kit_job *job,
                   pid_t runner);
/* Returns the check with this id; NULL: there is none. */
typedef const struct check *request_find_fn(const char *id);
/* false: the bytes are incomplete, or name a check that `find` does not know. */
bool request_read(struct request *ret, const char *bytes, size_t size, request_find_fn *find);
void request_done(struct request *request);

/* The bytes over a socket, with a descriptor; false with errno. */
bool request_send(int socket, const char *bytes, size_t size, int fd);
/* What recv returns; *ret_fd is -1 if none came. */
ssize_t request_receive(int socket, char *bytes, size_t size, int *ret_fd);

#endif
