/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in a file: dk_runtime_save_metrics.  Writes a new file beside it and renames that, so
 * that no reader sees an incomplete text.  No lock: each call has its own new file. */
#include <durakit/runtime.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text.h"

enum { MODE = 0644 };  /* less the umask: collectors run as another user */

struct saving {
  const char *path;
  struct dk_text beside; /* the path of the new file */
  dk_status status;
  char *reason;
  size_t size;
};

/* Reports an error: the cause first, because a path can be longer than the buffer for the
 * reason. */
static void
metrics_file_refuse(struct saving *saving, dk_status status, const char *what, int error,
                    const char *path)
{
  saving->status = status;
  if (saving->reason && saving->size > 0)
    snprintf(saving->reason, saving->size, "%s%s%s%s%s", what, error ? ": " : "",
             error ? strerror(error) : "", path ? ": " : "", path ? path : "");
}

static void
add_reason(struct saving *saving, const char *what, int error)
{
  size_t n = saving->reason && saving->size > 0 ? strlen(saving->reason) : 0;

  if (n > 0)
    snprintf(saving->reason + n, saving->size - n, "%s: %s", what, strerror(error));
}

static int
write_all(int fd, dk_str text)
{
  while (text.len > 0) {
    ssize_t n = write(fd, text.ptr, text.len);
    if (n < 0 && errno != EINTR)
      return errno;
    if (n > 0) {
      text.ptr += n;
      text.len -= (size_t)n;
    }
  }
  return 0;
}

/* True if nothing or a regular file exists there: a rename would replace a link, a device or a pipe
 * by a file. */
static bool
can_be_replaced(struct saving *saving)
{
  struct stat there;

  if (lstat(saving->path, &there) != 0) {
    if (errno == ENOENT) /* or the folder is missing, which the next step finds */
      return true;
    metrics_file_refuse(saving, DK_UNAVAILABLE, "the file cannot be inspected", errno,
                        saving->path);
    return false;
  }
  if (S_ISREG(there.st_mode))
    return true;
  metrics_file_refuse(saving, DK_INVALID, "it exists, and is not a regular file", 0, saving->path);
  return false;
}

/* -1: failed, with the reason. */
static int
open_beside(struct saving *saving)
{
  uint64_t number;

  if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number)) {
    metrics_file_refuse(saving, DK_UNAVAILABLE, "there is no random number for its name", errno,
                        NULL);
    return -1;
  }
  dk_text_printf(&saving->beside, "%s.%016" PRIx64 ".tmp", saving->path, number);
  if (dk_text_failed(&saving->beside)) {
    metrics_file_refuse(saving, DK_NO_MEMORY, "there is no memory for its path", 0, NULL);
    return -1;
  }
  const char *beside = dk_text_str(&saving->beside);
  int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, MODE);
  if (fd < 0)
    metrics_file_refuse(saving, DK_UNAVAILABLE, "the new file cannot be made", errno, beside);
  return fd;
}

/* A system that reports a full disk late reports it when the file is closed. */
static void
save(void *context, dk_str text)
{
  struct saving *saving = context;
  int fd = open_beside(saving);
  const char *beside = dk_text_str(&saving->beside);

  if (fd < 0)
    return;
  int error = write_all(fd, text);
  if (close(fd) != 0 && error == 0)
    error = errno;
  if (error != 0)
    metrics_file_refuse(saving, DK_UNAVAILABLE, "the new file cannot be written", error, beside);
  else if (rename(beside, saving->path) != 0)
    metrics_file_refuse(saving, DK_UNAVAILABLE, "the new file cannot replace the old one",
                        errno, saving->path);
  if (saving->status != DK_OK && unlink(beside) != 0)
    add_reason(saving, ", and it cannot be removed", errno);
}

dk_status
dk_runtime_save_metrics(struct dk_runtime *runtime, const char *path, char *reason, size_t size)
{
  struct saving saving = {.path = path, .beside = DK_TEXT_EMPTY, .status = DK_OK,
                          .reason = reason, .size = size};

  if (reason && size > 0)
    reason[0] = '\0';
  if (!path || !*path)
    metrics_file_refuse(&saving, DK_INVALID, "the path is empty", 0, NULL);
  else if (can_be_replaced(&saving) && dk_runtime_metrics(runtime, save, &saving) != DK_OK)
    metrics_file_refuse(&saving, DK_NO_MEMORY, "there is no memory for the text", 0, NULL);
  dk_text_done(&saving.beside);
  return saving.status;
}
