/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, reads and makes files by descriptor: see file.h. */
#include "runner/system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/system/remove.h"

enum { PIECE = 16384 };

static int
close_with(int fd, int reason)
{
  if (fd >= 0)
    close(fd);
  errno = reason;
  return -1;
}

int
file_open(int folder, const char *name)
{
  struct stat st;
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

  if (fd < 0)
    return -1;
  if (fstat(fd, &st) != 0)
    return close_with(fd, errno);
  return S_ISREG(st.st_mode) ? fd : close_with(fd, EINVAL);
}

int
file_read(int folder, const char *name, size_t most, struct dk_text *ret)
{
  char piece[PIECE];
  ssize_t n;
  int fd = file_open(folder, name);

  if (fd < 0)
    return -1;
  while ((n = read(fd, piece, sizeof(piece))) != 0 && !dk_text_failed(ret)) {
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return close_with(fd, errno);
    size_t room = most - ret->length;
    dk_text_add(ret, piece, (size_t)n < room ? (size_t)n : room);
    if ((size_t)n > room)
      return close_with(fd, EFBIG);
  }
  if (dk_text_failed(ret))
    return close_with(fd, ENOMEM);
  close(fd);
  return 0;
}

int
file_make(int folder, const char *name, unsigned mode)
{
  if (!remove_entry(folder, name, NULL)) {
    errno = EEXIST;
    return -1;
  }
  return openat(folder, name,
                O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
}

int
file_make_folder(int folder, const char *name, unsigned mode)
{
  return mkdirat(folder, name, mode) == 0
           ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
           : -1;
}

int
file_enter_folder(int folder, const char *name, unsigned mode)
{
  int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

  if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR && errno != ELOOP))
    return fd;
  if (errno != ENOENT && unlinkat(folder, name, 0) != 0)
    return -1;
  return file_make_folder(folder, name, mode);
}

const char *
file_words(int reason)
{
  switch (reason) {
  case ELOOP:
    return "it is a link";
  case EINVAL:
  case ENXIO:
    return "it is no regular file";
  case EFBIG:
    return "it is too long";
  default:
    return strerror(reason);
  }
}
