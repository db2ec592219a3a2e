/* SPDX-License-Identifier: Apache-2.0 */
/* The bell of the file <store>-lock: see lockfile.h.
 *
 * Locking: bell->mutex guards the list of ears, is_lent and the inotify descriptor.  It is held
 * while inotify is read and the other ears are woken.  So an ear is either woken, or is lent later,
 * and then its caller looks for work after that.  Nothing is called under it but the system. */
#include "providers/sqlite/lockfile.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

dk_status
bell_init(struct bell *bell, const char *store, struct why *why)
{
  *bell = (struct bell){.inotify = -1, .path = lockfile_path(store)};
  if (!bell->path)
    return why_set(why, DK_NO_MEMORY, "%s: out of memory", store);
  mutex_init(&bell->mutex);
  return DK_OK;
}

static void
ear_free(struct ear *ear)
{
  if (ear->fd >= 0)
    close(ear->fd);
  if (ear->told >= 0)
    close(ear->told);
  free(ear);
}

void
bell_done(struct bell *bell)
{
  struct ear *next;

  for (struct ear *ear = bell->ears; ear; ear = next) {
    next = ear->next;
    ear_free(ear);
  }
  if (bell->inotify >= 0)
    close(bell->inotify);
  free(bell->path);
  mutex_done(&bell->mutex);
}

static dk_status
listen_to_file(struct bell *bell, struct why *why)
{
  assert(mutex_is_held(&bell->mutex));
  if (bell->inotify >= 0)
    return DK_OK;
  int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0)
    return why_errno(why, errno,
                     "no inotify descriptor is left, and a call needs one to wait for work "
                     "(sysctl fs.inotify.max_user_instances, ulimit -n)",
                     bell->path);
  if (inotify_add_watch(fd, bell->path, IN_MODIFY | IN_ATTRIB) < 0) {
    why_errno(why, errno, "the lock file cannot be watched (sysctl fs.inotify.max_user_watches)",
              bell->path);
    close(fd);
    return why->status;
  }
  bell->inotify = fd;
  return DK_OK;
}

static bool
ear_listens_to(struct ear *ear, int fd)
{
  struct epoll_event event = {.events = EPOLLIN};

  return epoll_ctl(ear->fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static dk_status
ear_new(struct bell *bell, struct ear **ret_ear, struct why *why)
{
  struct ear *ear = malloc(sizeof *ear);

  assert(mutex_is_held(&bell->mutex));
  if (!ear)
    return why_set(why, DK_NO_MEMORY, "%s: out of memory", bell->path);
  *ear = (struct ear){.fd = epoll_create1(EPOLL_CLOEXEC),
                      .told = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  if (ear->fd < 0 || ear->told < 0 || !ear_listens_to(ear, bell->inotify) ||
      !ear_listens_to(ear, ear->told)) {
    why_errno(why, errno, "no descriptor for a call that waits (ulimit -n)", bell->path);
    ear_free(ear);
    return why->status;
  }
  ear->next = bell->ears;
  bell->ears = ear;
  *ret_ear = ear;
  return DK_OK;
}

dk_status
bell_lend(struct bell *bell, struct ear **ret_ear, struct why *why)
{
  struct ear *ear;

  mutex_lock(&bell->mutex);
  dk_status status = listen_to_file(bell, why);
  for (ear = bell->ears; ear && ear->is_lent; ear = ear->next)
    continue;
  if (status == DK_OK && !ear)
    status = ear_new(bell, &ear, why);
  if (status == DK_OK) {
    ear->is_lent = true;
    *ret_ear = ear;
  }
  mutex_unlock(&bell->mutex);
  return status;
}

void
bell_take_back(struct bell *bell, struct ear *ear)
{
  mutex_lock(&bell->mutex);
  assert(ear->is_lent);
  ear->is_lent = false;
  mutex_unlock(&bell->mutex);
}

static void
forget_told(struct ear *ear)
{
  uint64_t told;

  while (read(ear->told, &told, sizeof told) > 0)
    continue;
}

/* Gives whether there was anything to read.  An event that is no write has left no number: the file
 * could not be written and its time was changed, or the queue of inotify has overflowed. */
static bool
read_out(struct bell *bell)
{
  char room[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
  bool had_some = false;
  ssize_t size;

  assert(mutex_is_held(&bell->mutex));
  while ((size = read(bell->inotify, room, sizeof room)) > 0) {
    const struct inotify_event *event;
    for (ssize_t at = 0; at < size; at += (ssize_t)(sizeof *event + event->len)) {
      event = (const void *)(room + at);
      if ((event->mask & IN_MODIFY) == 0)
        bell->alarms++;
    }
    had_some = true;
  }
  return had_some;
}

uint64_t
bell_alarms(struct bell *bell, bool raises)
{
  mutex_lock(&bell->mutex);
  bell->alarms += raises ? 1 : 0;
  uint64_t alarms = bell->alarms;
  mutex_unlock(&bell->mutex);
  return alarms;
}

/* A write to an eventfd that is set already fails or adds; it is readable in both cases. */
static void
tell_others(struct bell *bell, const struct ear *who)
{
  const uint64_t one = 1;

  assert(mutex_is_held(&bell->mutex));
  for (struct ear *ear = bell->ears; ear; ear = ear->next)
    if (ear->is_lent && ear != who && write(ear->told, &one, sizeof one) < 0)
      continue;
}

void
bell_hear_out(struct bell *bell, struct ear *ear)
{
  mutex_lock(&bell->mutex);
  forget_told(ear);
  if (read_out(bell))
    tell_others(bell, ear);
  mutex_unlock(&bell->mutex);
}
