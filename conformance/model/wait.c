/* SPDX-License-Identifier: Apache-2.0 */
/* CALL: the long poll.  Look; make a descriptor, look again, and wait: so nothing slips between.
 *
 * A call that waits for a file watches it, and is woken by whatever handle or process appends to
 * it.  A watch is kept for the next wait, because the kernel takes milliseconds to close one.  A
 * store in memory has one handle only, whose operations ring the waiters' bells.  store.waiters and
 * store.watches are under store.mutex; nothing is held while the host waits. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "conformance/model/state.h"
#include "core/base/sat.h"

struct waiter {
  struct link link;
  int fd;
};

struct poll {
  struct store *s;
  struct dk_call *call;
  const char *name;
  look_fn *look;
  const void *request;
  int64_t due;          /* by the last look */
  int64_t began;        /* when it looked first; 0: not yet */
  uint64_t looks;       /* so far */
  bool is_watch;        /* of the file; else a bell */
  struct waiter waiter;
};

void
ring_waiters(struct store *s)
{
  uint64_t one = 1;

  FOR_EACH(at, &s->waiters)
    (void)!write(OWNER_OF(at, struct waiter, link)->fd, &one, sizeof one);
}

static void
silence(int fd)
{
  char heard[4096];

  while (read(fd, heard, sizeof heard) > 0)
    continue;
}

static int
new_watch(const struct store *s)
{
  char path[64];
  int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

  snprintf(path, sizeof path, "/proc/self/fd/%d", s->fd);
  if (fd >= 0 && inotify_add_watch(fd, path, IN_MODIFY) < 0) {
    int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

/* What a kept watch has reported meanwhile does not matter: the look comes after this. */
static int
take_watch(struct store *s)
{
  int fd = -1;

  pthread_mutex_lock(&s->mutex);
  if (s->n_watches > 0)
    fd = s->watches[--s->n_watches];
  pthread_mutex_unlock(&s->mutex);
  if (fd < 0)
    return new_watch(s);
  silence(fd);
  return fd;
}

void
close_watches(struct store *s)
{
  while (s->n_watches > 0)
    close(s->watches[--s->n_watches]);
}

static dk_status
begin_to_wait(struct poll *p)
{
  struct store *s = p->s;

  p->is_watch = REFUSED(M_CALL_DEAF_TO_OTHER_PROCESSES, s->is_file);
  list_init(&p->waiter.link);
  p->waiter.fd = p->is_watch ? take_watch(s) : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (p->waiter.fd < 0)
    return refuse(&(struct op){.s = s, .call = p->call, .name = p->name}, DK_UNAVAILABLE,
                  "cannot watch for work: %s", strerror(errno));
  if (p->is_watch)
    return DK_OK;
  pthread_mutex_lock(&s->mutex);
  link_after(&s->waiters, &p->waiter.link);
  pthread_mutex_unlock(&s->mutex);
  return DK_OK;
}

static void
end_waiting(struct poll *p)
{
  struct store *s = p->s;

  pthread_mutex_lock(&s->mutex);
  link_remove(&p->waiter.link);
  bool is_kept = p->is_watch && s->n_watches < MAX_WATCHES;
  if (is_kept)
    s->watches[s->n_watches++] = p->waiter.fd;
  pthread_mutex_unlock(&s->mutex);
  if (!is_kept)
    close(p->waiter.fd);
}

static dk_status
model_wait_look(struct poll *p)
{
  const struct store *s = p->s;
  struct op op;

  TRY(enter(&op, p->s, p->call, p->name));
  if (p->began == 0)
    p->began = op.now;
  if (DEFECT(M_TIME_POLL_KEEPS_FIRST_NOW, op.now > p->began)) /* TIME-1 */
    op.lease_from = p->began;
  op.is_again = p->looks++ > 0;
  dk_status status = leave(&op, p->look(&op, p->request));
  if (!DEFECT(M_CALL_POLL_KEEPS_ITS_ALARM, op.due < p->due))
    p->due = op.due;
  if (is_only_asked(s))
    *s->choice->ret_due = op.due;
  return status;
}

/* CALL-1: a cancelled fetch leaves nothing.  A mutant's counts for what is delivered next. */
static dk_status
cancelled(struct poll *p)
{
  pthread_mutex_lock(&p->s->mutex);
  p->s->cancelled_fetches++;
  pthread_mutex_unlock(&p->s->mutex);
  return DK_CALL_CANCELLED;
}

/* When the host must wake it: what is due by the store's clock, converted to the host's. */
static int64_t
alarm_of(const struct poll *p)
{
  const struct store *s = p->s;

  if (!s->own_clock || p->due == INT64_MAX || MUTANT(M_TIME_OWN_ALARM_OF_HOST))
    return p->due;
  return dk_sat_add(s->host->now(s->host), p->due - clock_now(s));
}

static dk_status
look_and_wait(struct poll *p, int64_t wait_until)
{
  const struct store *s = p->s;
  bool is_woken = false;
  int answers = 0;

  for (bool is_first = true;; is_first = false) {
    bool is_last = s->host->now(s->host) >= wait_until; /* CALL-3: when time is up, once more */
    dk_status status = DK_NOTHING;
    if (!is_first || REFUSED(M_CALL_NO_SECOND_LOOK, true))
      status = model_wait_look(p); /* CALL-2 */
    if (status != DK_NOTHING || is_last || DEFECT(M_CALL_ANY_WAKE_ENDS_THE_WAIT, is_woken))
      return status;
    bool is_deaf = MUTANT(M_CALL_POLL_IS_DEAF) || (s->elsewhere && s->elsewhere->is_deaf);
    status = s->host->wait(p->call, is_deaf ? -1 : p->waiter.fd, 1,
                           alarm_of(p) < wait_until ? alarm_of(p) : wait_until); /* CALL-2 */
    if (status == DK_CALL_CANCELLED && !DEFECT(M_CALL_CANCEL_IGNORED, ++answers < 5))
      return cancelled(p);                                             /* CALL-4 */
    if (status != DK_OK && status != DK_NOTHING && status != DK_CALL_CANCELLED)
      return status;
    is_woken = status == DK_OK;
    silence(p->waiter.fd);
  }
}

/* Mutants turn a call away when so many are looking already. */
static dk_status
look_first(struct poll *p)
{
  enum { A_CROWD = 3 };
  struct store *s = p->s;
  uint32_t before = __atomic_fetch_add(&s->fetching, 1, __ATOMIC_RELAXED);
  bool is_turned_away =
    strcmp(p->name, "fetch_work_item") == 0 ? DEFECT(M_WORK_CROWD_GETS_NOTHING, before >= A_CROWD)
                                            : DEFECT(M_TURN_CROWD_GETS_NOTHING, before >= A_CROWD);
  dk_status status = is_turned_away ? DK_NOTHING : model_wait_look(p);

  __atomic_fetch_sub(&s->fetching, 1, __ATOMIC_RELAXED);
  return status;
}

dk_status
long_poll(struct store *s, struct dk_call *call, const char *name, look_fn *look_for,
          const void *request, int64_t wait_until)
{
  struct poll p = {.s = s, .call = call, .name = name, .look = look_for, .request = request};
  dk_status status = look_first(&p);

  if (status != DK_NOTHING || s->host->now(s->host) >= wait_until)
    return status;
  if (MUTANT(M_CALL_NO_SECOND_LOOK))
    let_others_pass(s);
  TRY(begin_to_wait(&p));
  status = look_and_wait(&p, wait_until - (MUTANT(M_CALL_POLL_GIVES_UP_EARLY) ? 1 : 0));
  end_waiting(&p);
  return status;
}
