/* SPDX-License-Identifier: Apache-2.0 */
/* Senders: see client-send-many.h.
 *
 * Each takes the next recipient, and owns it from then on.  `lock` guards the arena and the times
 * of failures; only these are used under it. */
#include "core/runtime/client/client-send-many.h"

#include <signal.h>
#include <stdatomic.h>

#include "core/base/sat.h"
#include "core/plugin/call.h"
#include "core/plugin/look.h"

enum { HELPERS = 31, FEW = 4 }; /* beside the calling thread; one for each FEW recipients */

struct senders {
  struct dk_client *client;
  const struct message *message;
  struct recipient *recipients;
  size_t n;
  atomic_size_t next;
  atomic_bool has_failed;   /* no more requests are sent */
  pthread_mutex_t lock;
  struct dk_arena *arena;
  int64_t good_at;          /* the last answer of a reachable store */
  int64_t fails_since;      /* since then, the first attempt that found it busy or unreachable */
};

bool
senders_fail_all(dk_status status)
{
  return status != DK_OK && status != DK_DUPLICATE && status != DK_BUSY && status != DK_INVALID &&
         status != DK_TOO_LARGE;
}

/* ---- one recipient --------------------------------------------------------------------------- */

/* All senders share their results, so that each of them does not wait anew for a store that is
 * busy. `began` is when the attempt began. */
static bool
may_repeat(struct senders *s, int64_t began, dk_status status)
{
  int32_t class = dk_status_class(status);
  int64_t now = dk_monotonic_ms();

  pthread_mutex_lock(&s->lock);
  int64_t since = began > s->good_at ? began : s->good_at;
  if (class == 0 || class == 2) {
    s->good_at = now;
    s->fails_since = INT64_MAX;
  } else if (since < s->fails_since)
    s->fails_since = since;
  bool may = class == 1 && now < dk_sat_add(s->fails_since, CLIENT_AGAIN_MS);
  pthread_mutex_unlock(&s->lock);
  return may;
}

static dk_status
send_patiently(struct senders *s, struct dk_caller *caller, struct request_message *request_message,
               bool *ret_is_ours)
{
  dk_status status = DK_CALL_CANCELLED;
  int64_t began;

  for (unsigned n = 0; n <= CLIENT_REPEATS; n++) {
    if (n > 0 && !client_pause_for(s->client, client_pause_of(n - 1)))
      break;
    began = dk_monotonic_ms();
    status = request_message_send(s->client, caller, request_message, ret_is_ours);
    if (!may_repeat(s, began, status))
      break;
  }
  return status;
}

static void
keep_words(struct senders *s, const char *words, struct recipient *recipient)
{
  pthread_mutex_lock(&s->lock);
  recipient->words = dk_arena_strdup(s->arena, words);
  pthread_mutex_unlock(&s->lock);
}

static void
send(struct senders *s, struct dk_caller *caller, struct recipient *recipient)
{
  struct request_message request_message;

  dk_caller_reset(caller);
  recipient->status = request_message_write(s->client, &request_message, recipient->instance,
                                            CLIENT_CANCEL_ID, 0, s->message);
  if (recipient->status == DK_OK)
    recipient->status = send_patiently(s, caller, &request_message, &recipient->is_ours);
  else
    client_words(caller, recipient->status, request_message.words);
  request_message_done(&request_message);
  recipient->was_sent =
      recipient->status != DK_CALL_CANCELLED &&
      !(dk_status_class(recipient->status) == 1 && client_is_cancelled(s->client));
  if (recipient->status != DK_OK && recipient->status != DK_DUPLICATE)
    keep_words(s, request_message.words, recipient);
  if (!recipient->was_sent || senders_fail_all(recipient->status))
    atomic_store(&s->has_failed, true);
}

static void
send_some(struct senders *s, struct dk_caller *caller)
{
  size_t i;

  while (!atomic_load(&s->has_failed) && !client_is_cancelled(s->client) &&
         (i = atomic_fetch_add(&s->next, 1)) < s->n)
    send(s, caller, &s->recipients[i]);
}

static void *
help(void *context)
{
  struct senders *s = context;
  struct dk_caller *caller = client_new_caller(s->client);

  if (caller)
    send_some(s, caller);
  dk_caller_free(caller);
  return NULL;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Helper threads block all signals, so that the program's handlers do not run in them. */
static size_t
call_helpers(struct senders *s, pthread_t *helpers, size_t wanted)
{
  sigset_t all, before;
  size_t n = 0;

  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (n < wanted && pthread_create(&helpers[n], NULL, help, s) == 0)
    n++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return n;
}

void
senders_send(struct dk_client *client, struct dk_caller *caller, const struct message *message,
             struct dk_arena *arena, struct recipient *recipients, size_t n)
{
  struct senders s = {.client = client,
                      .message = message,
                      .recipients = recipients,
                      .n = n,
                      .arena = arena,
                      .good_at = INT64_MIN,
                      .fails_since = INT64_MAX};
  size_t wanted = n / FEW < HELPERS ? n / FEW : HELPERS;
  pthread_t helpers[HELPERS];

  pthread_mutex_init(&s.lock, NULL);
  size_t n_helpers = call_helpers(&s, helpers, wanted);
  send_some(&s, caller);
  for (size_t i = 0; i < n_helpers; i++)
    pthread_join(helpers[i], NULL);
  pthread_mutex_destroy(&s.lock);
}
