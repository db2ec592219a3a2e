/* SPDX-License-Identifier: Apache-2.0 */
/* A store that does not answer: see patience.h.  `lock` guards what is waited for, and what the
 * plugin has said; under it the store is asked how long it has waited, and nothing else is called.
 */
#include "runner/operate/patience.h"

#include <durakit/runtime.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runner/operate/when.h"
#include "runner/say.h"

enum { LOOK_MS = 100, SAY_MS = 3000, DEAF_MS = 2000 };

struct patience {
  pthread_t thread;
  int end_fd;  /* readable: the thread is to end */
  const char *where;
  const struct mask *mask;
  int64_t limit_ms;
  struct dk_canceller *canceller;
  atomic_bool is_over;
  pthread_mutex_t lock;
  bool opens;
  int64_t opens_since;
  struct dk_store *store;
  char heard[512];  /* the last that the plugin has said */
};

/* For so long one thing has been waited for, and what the plugin has to say of it. */
static int64_t
look(struct patience *p, char ret_heard[sizeof(p->heard)])
{
  int64_t ms = 0;

  pthread_mutex_lock(&p->lock);
  if (p->opens)
    ms = when_ticks() - p->opens_since;
  else if (p->store)
    ms = dk_store_waits_ms(p->store);
  memcpy(ret_heard, p->heard, sizeof(p->heard));
  pthread_mutex_unlock(&p->lock);
  return ms;
}

static void
say_waiting(const struct patience *p, int64_t ms, const char *heard)
{
  char what[80], next[120];

  snprintf(what, sizeof(what), "the store has not answered for %lld s", (long long)(ms / 1000));
  snprintf(next, sizeof(next),
           "an answer is waited for until %lld s are over (--patience); Ctrl-C ends it",
           (long long)(p->limit_ms / 1000));
  say_problem(&(struct problem){.where = p->where, .what = what, .found = heard, .next = next},
              p->mask);
}

/* A call that does not come back, although it was cancelled, keeps no command. */
DK_NORETURN static void
leave(const struct patience *p, const char *heard)
{
  char what[80];

  snprintf(what, sizeof(what), "the store did not answer within %lld s",
           (long long)(p->limit_ms / 1000));
  say_problem(&(struct problem){.where = p->where,
                                .what = what,
                                .found = heard[0] ? heard : "a call that cannot be cancelled",
                                .next = "it may have happened or not: durakit status tells, and it "
                                        "may be tried again; --patience waits longer"},
              p->mask);
  _exit(EXIT_ENVIRONMENT);
}

static void *
watch(void *context)
{
  struct patience *p = context;
  struct pollfd end = {.fd = p->end_fd, .events = POLLIN};
  char heard[sizeof(p->heard)];
  bool is_said = false;

  while (poll(&end, 1, LOOK_MS) <= 0) {
    int64_t ms = look(p, heard);
    if (ms < SAY_MS)
      is_said = false;
    else if (!is_said && ms < p->limit_ms) {
      say_waiting(p, ms, heard);
      is_said = true;
    }
    if (ms >= p->limit_ms) {
      atomic_store(&p->is_over, true);
      dk_cancel(p->canceller);
    }
    if (ms >= p->limit_ms + DEAF_MS)
      leave(p, heard);
  }
  return NULL;
}

struct patience *
patience_begin(const char *where, const struct mask *mask, int64_t limit_ms,
               struct dk_canceller *canceller)
{
  struct patience *p = calloc(1, sizeof(*p));
  sigset_t all, before;

  if (!p)
    return NULL;
  p->where = where;
  p->mask = mask;
  p->limit_ms = limit_ms;
  p->canceller = canceller;
  pthread_mutex_init(&p->lock, NULL);
  p->end_fd = eventfd(0, EFD_CLOEXEC);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that watches them */
  int error = p->end_fd < 0 ? errno : pthread_create(&p->thread, NULL, watch, p);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error == 0)
    return p;
  if (p->end_fd >= 0)
    close(p->end_fd);
  pthread_mutex_destroy(&p->lock);
  free(p);
  errno = error;
  return NULL;
}

void
patience_end(struct patience *p)
{
  if (!p)
    return;
  eventfd_write(p->end_fd, 1);
  pthread_join(p->thread, NULL);
  close(p->end_fd);
  pthread_mutex_destroy(&p->lock);
  free(p);
}

void
patience_opens(struct patience *p)
{
  pthread_mutex_lock(&p->lock);
  p->opens = true;
  p->opens_since = when_ticks();
  pthread_mutex_unlock(&p->lock);
}

void
patience_opened(struct patience *p, struct dk_store *store)
{
  pthread_mutex_lock(&p->lock);
  p->opens = false;
  p->store = store;
  pthread_mutex_unlock(&p->lock);
}

void
patience_heard(struct patience *p, struct dk_bytes line)
{
  pthread_mutex_lock(&p->lock);
  snprintf(p->heard, sizeof(p->heard), "%.*s", (int)(line.len < 500 ? line.len : 500), line.ptr);
  pthread_mutex_unlock(&p->lock);
}

bool
patience_is_over(const struct patience *p)
{
  return p && atomic_load(&p->is_over);
}
