/* SPDX-License-Identifier: Apache-2.0 */
/* A client: what its parts share.  client.c sends; client-status.c, client-info.c, client-filter.c
 * and client-history.c read; client-cancel.c and client-send-many.c cancel; client-remove.c
 * removes.
 *
 * `lock` guards the client's caller, its arena and the error's text; it is held for one call of the
 * store at a time, never during a wait.  Under it only the host takes other locks.  Operations that
 * pass results to a callback of the user have their own callers, so that the callback may use the
 * client. */
#ifndef DK_RUNTIME_CLIENT_CLIENT_H
#define DK_RUNTIME_CLIENT_CLIENT_H

#include <durakit/manage.h>

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/lock.h"
#include "core/base/text.h"
#include "core/runtime/format/event.h"

enum {
  CLIENT_REPEATS = 8, /* of a repeatable call: with the pauses about a second, */
  CLIENT_AGAIN_MS = 5000, /* and no repetition begins later than this */
  CLIENT_ERROR = 1024 /* of text */
};

/* The ids of messages that are the same for all senders. */
#define CLIENT_START_ID "start"
#define CLIENT_CANCEL_ID "cancel"

struct dk_client {
  struct dk_store *store;
  struct dk_canceller *canceller;
  bool has_admin;
  struct dk_lock lock;
  struct dk_caller *caller;
  struct dk_arena arena;  /* the texts of the last info, or of the last outcome */
  char error[CLIENT_ERROR];
};

/* ---- errors ---------------------------------------------------------------------------------- */

/* Records that a call of this client failed before it reached the store, or for another reason than
 * the store's; returns the status. */
__attribute__((format(printf, 3, 4))) dk_status
client_refuse(struct dk_client *client, dk_status status, const char *format, ...);
void client_forget_error(struct dk_client *client);
/* Copies the present error. */
void client_copy_error(struct dk_client *client, char ret_words[CLIENT_ERROR]);
/* The store's text for this caller. */
void client_words(const struct dk_caller *caller, dk_status status, char ret_words[CLIENT_ERROR]);
/* The store's text for this caller, kept beyond its next call; returns the status. */
dk_status client_keep_error(struct dk_client *client, const struct dk_caller *caller,
                            dk_status status);
/* The same, called under the lock. */
dk_status client_set_error(struct dk_client *client, const struct dk_caller *caller,
                           dk_status status);
/* DK_UNSUPPORTED with a text, if the provider has no durakit.admin/1. */
dk_status client_needs_admin(struct dk_client *client, const char *call);
bool client_has_admin(const struct dk_client *client);
/* Another caller for its calls; NULL: no memory. */
struct dk_caller *client_new_caller(const struct dk_client *client);
/* The longest id that the store takes. */
size_t client_max_id(const struct dk_client *client);

/* ---- repetitions ----------------------------------------------------------------------------- */

/* Waits for `ms`; false: the call was cancelled. */
bool client_pause_for(const struct dk_client *client, int64_t ms);
/* The pause before repetition n (from 0): 10, 20, 40, ... 500 ms. */
int64_t client_pause_of(unsigned n);
bool client_is_unknown(dk_status status);
bool client_is_cancelled(const struct dk_client *client);

/* The attempts of one call: they share one time limit. */
struct attempts {
  unsigned repetitions;
  int64_t until;            /* on the monotonic clock: no repetition begins after this */
  bool is_unknown;          /* one of them might have taken effect */
  char words[CLIENT_ERROR]; /* the store's text for the first of these */
};
struct attempts attempts_begin(void);
/* Whether to repeat, after this answer, a call that changes nothing: at once, if the outcome is
 * unknown; with `patiently`, also after a pause if the store is busy or unreachable. */
bool client_reads_again(const struct dk_client *client, struct attempts *attempts,
                        dk_status status, bool is_patient);
/* The same for a call that changes something, with the text of this answer: if the outcome of one
 * attempt is unknown, the call is repeated, after a pause, until an answer is conclusive. */
bool client_changes_again(const struct dk_client *client, struct attempts *attempts,
                          dk_status status, const char *words);
/* The final answer: unknown if one attempt was unknown, unless the last one succeeded, or proves
 * that none took effect (`tells`: refusals of this call do). */
dk_status attempts_answer(const struct attempts *attempts, dk_status status, bool tells);

/* ---- reading --------------------------------------------------------------------------------- */

/* Between two executions an instance is shown as running. */
static inline int32_t
client_shown_status(int32_t status)
{
  return status == DK_CONTINUED_AS_NEW ? DK_RUNNING : status;
}
/* The stored status of the newest execution, without any of its events, from the history: with any
 * provider.  DK_NOT_FOUND: no turn was committed. */
dk_status client_read_status(struct dk_client *client, const struct dk_text *instance,
                             int32_t *ret_status);

/* ---- sending --------------------------------------------------------------------------------- */

/* A message being sent: what the request points to. */
struct request_message {
  struct dk_text instance, payload;
  char id[34];
  struct dk_item item;
  char words[CLIENT_ERROR]; /* the store's text, if sending failed */
};

/* id: a fixed id; NULL: makes an id, which begins with `first`. */
dk_status request_message_write(struct dk_client *client, struct request_message *request_message,
                                dk_str instance, const char *id, char first,
                                const struct message *message);
void request_message_done(struct request_message *request_message);
/* Sends it, with the client's caller or with one of this thread.  If it is unknown whether it
 * arrived, sends it again until that is known, for about a second; if it remains unknown, the text
 * is that of the first attempt.  *ret_repeated: the answer is that of a repetition. */
dk_status request_message_send(struct dk_client *client, struct dk_caller *caller,
                               struct request_message *request_message, bool *ret_repeated);

/* Checks a cancellation's reason and by (see runtime.h). */
dk_status client_check_words(struct dk_client *client, const char *reason, const char *by);

#endif
