/* SPDX-License-Identifier: Apache-2.0 */
/* A store that does not answer: see patience.h.  `lock` guards the current wait, and the last log
 * line of the plugin; under it the store is asked how long it has waited, and nothing else is done.
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

#include "runner/cli/message.h"
#include "runner/cli/when.h"

enum { LOOK_MS = 100, SAY_MS = 3000, DEAF_MS = 2000 };

struct patience {
  pthread_t thread;
  int end_fd;  /* readable: the thread must end */
  const char *where;
  const struct secrets *secrets;
  int64_t limit_ms;
  struct dk_canceller *canceller;
  atomic_bool is_over;
  pthread_mutex_t lock;
  bool opens;
  int64_t opens_since;
  struct dk_store *store;
  char heard[512];  /* the last log line of the plugin since the wait began */
  const char *option;  /* the limit of the wait, --wait or --timeout; NULL: --patience counts */
  int64_t until;       /* this tick */
};

/* How long the command has waited for the store, and what to report about it. */
struct wait {
  int64_t now, ms;
  int64_t left_ms;  /* until the limit; 0 or less: the wait is too long */
  bool is_waiting;  /* the command itself waits: see patience_waits */
  bool has_end;
  char heard[512];
};

/* A call that has just begun at the end of the wait may still return. */
static struct wait
look_at_calls(struct patience *p)
{
  struct wait wait = {.now = when_ticks()};

  pthread_mutex_lock(&p->lock);
  if (p->opens)
    wait.ms = wait.now - p->opens_since;
  else if (p->store)
    wait.ms = dk_store_waits_ms(p->store);
  if (wait.ms == 0)
    p->heard[0] = '\0';
  wait.is_waiting = p->option != NULL;
  wait.has_end = p->until < INT64_MAX;
  wait.left_ms = p->limit_ms - wait.ms;
  if (p->option)
    wait.left_ms = wait.ms < DEAF_MS ? DEAF_MS : p->until - wait.now;
  memcpy(wait.heard, p->heard, sizeof(wait.heard));
  pthread_mutex_unlock(&p->lock);
  return wait;
}

static void
say_waiting(const struct patience *p, const struct wait *wait)
{
  char what[PATIENCE_WORDS], next[120];

  if (wait->is_waiting) {
    snprintf(what, sizeof(what), "the store is unreachable; the command waits for it");
    snprintf(next, sizeof(next), "check that it is reachable; %s%sCtrl-C ends the wait",
             wait->has_end ? p->option : "", wait->has_end ? " or " : "");
  } else {
    snprintf(what, sizeof(what), "the store has not answered for %lld s",
             (long long)(wait->ms / 1000));
    snprintf(next, sizeof(next),
             "the limit for an answer is %lld s (--patience); Ctrl-C ends the wait",
             (long long)(p->limit_ms / 1000));
  }
  message_problem(
    &(struct problem){.where = p->where, .what = what, .found = wait->heard, .next = next},
    p->secrets);
}

/* A call that does not return, although it was cancelled, does not keep the command from ending. */
DK_NORETURN static void
leave_stuck_call(const struct patience *p, const struct wait *wait)
{
  char what[PATIENCE_WORDS], next[160];

  snprintf(next, sizeof(next),
           "it may have happened or not: check with durakit status; you can repeat it, "
           "with a longer %s", patience_words(p, what));
  message_problem(&(struct problem){.where = p->where,
                                    .what = what,
                                    .found = wait->heard[0] ? wait->heard
                                                            : "a call that cannot be cancelled",
                                    .next = next},
                  p->secrets);
  _exit(EXIT_ENVIRONMENT);
}

/* Each wait is reported once: a later one begins after the report. */
static void *
watch_calls(void *context)
{
  struct patience *p = context;
  struct pollfd end = {.fd = p->end_fd, .events = POLLIN};
  int64_t said_at = -1;

  while (poll(&end, 1, LOOK_MS) <= 0) {
    struct wait wait = look_at_calls(p);
    if (wait.ms >= SAY_MS && wait.left_ms > 0 && wait.now - wait.ms > said_at) {
      say_waiting(p, &wait);
      said_at = wait.now;
    }
    if (wait.left_ms <= 0) {
      atomic_store(&p->is_over, true);
      dk_cancel(p->canceller);
    }
    if (wait.left_ms <= -DEAF_MS)
      leave_stuck_call(p, &wait);
  }
  return NULL;
}

struct patience *
patience_begin(const char *where, const struct secrets *secrets, int64_t limit_ms,
               struct dk_canceller *canceller)
{
  struct patience *p = calloc(1, sizeof(*p));
  sigset_t all, before;

  if (!p)
    return NULL;
  p->where = where;
  p->secrets = secrets;
  p->limit_ms = limit_ms;
  p->canceller = canceller;
  pthread_mutex_init(&p->lock, NULL);
  p->end_fd = eventfd(0, EFD_CLOEXEC);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the thread that watches them */
  int error = p->end_fd < 0 ? errno : pthread_create(&p->thread, NULL, watch_calls, p);
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
patience_waits(struct patience *p, int64_t until, const char *option)
{
  pthread_mutex_lock(&p->lock);
  p->option = option;
  p->until = until;
  pthread_mutex_unlock(&p->lock);
}

void
patience_resumes(struct patience *p)
{
  patience_waits(p, 0, NULL);
}

void
patience_heard(struct patience *p, struct dk_bytes line)
{
  pthread_mutex_lock(&p->lock);
  snprintf(p->heard, sizeof(p->heard), "%.*s", (int)(line.len < 500 ? line.len : 500), line.ptr);
  pthread_mutex_unlock(&p->lock);
}

const char *
patience_words(const struct patience *p, char ret_what[PATIENCE_WORDS])
{
  if (p->option)
    snprintf(ret_what, PATIENCE_WORDS, "the store did not answer within %s", p->option);
  else
    snprintf(ret_what, PATIENCE_WORDS, "the store did not answer within %lld s",
             (long long)(p->limit_ms / 1000));
  return p->option ? p->option : "--patience";
}

bool
patience_is_over(const struct patience *p)
{
  return p && atomic_load(&p->is_over);
}
