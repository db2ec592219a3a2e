/* SPDX-License-Identifier: Apache-2.0 */
/* A client: what its parts share (client.c sends; client-status.c, client-filter.c and
 * client-history.c look; client-cancel.c; client-remove.c).
 *
 * `lock` guards the client's caller, its arena and the error's text; it is held for one call of the
 * store at a time, never while anything is waited for.  Under it nothing else is locked but what
 * the host locks.  What hands results to a function of the user has callers of its own, so that the
 * function may use the client. */
#ifndef DK_RUNTIME_CLIENT_CLIENT_H
#define DK_RUNTIME_CLIENT_CLIENT_H

#include <durakit/manage.h>

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/lock.h"
#include "core/base/text.h"
#include "core/runtime/format/event.h"

enum {
  CLIENT_REPEATS = 8, /* of a call that can be made again: with pauses, about a second, */
  CLIENT_AGAIN_MS = 5000, /* and none begins later than this, however long the attempts take */
  CLIENT_ERROR = 1024 /* of text */
};

/* The ids of messages that are the same for all who send them. */
#define CLIENT_START_ID "start"
#define CLIENT_CANCEL_ID "cancel"

struct dk_client {
  struct dk_store *store;
  struct dk_canceller *canceller;
  bool has_admin;
  struct dk_lock lock;
  struct dk_caller *caller;
  struct dk_arena arena;  /* the last info's texts, or the last outcome's */
  char error[CLIENT_ERROR];
};

/* ---- errors ---------------------------------------------------------------------------------- */

/* A call of this client fails before it comes to the store, or otherwise than the store says; gives
 * the status. */
__attribute__((format(printf, 3, 4))) dk_status
client_refuse(struct dk_client *client, dk_status status, const char *format, ...);
void client_forget_error(struct dk_client *client);
/* The error as it stands. */
void client_copy_error(struct dk_client *client, char ret_words[CLIENT_ERROR]);
/* What the store has said to this caller. */
void client_words(const struct dk_caller *caller, dk_status status, char ret_words[CLIENT_ERROR]);
/* What the store has said to this caller, to be kept after its next call; gives the status. */
dk_status client_keep_error(struct dk_client *client, const struct dk_caller *caller,
                            dk_status status);
/* The same under the lock. */
dk_status client_set_error(struct dk_client *client, const struct dk_caller *caller,
                           dk_status status);
/* DK_UNSUPPORTED with words, if the provider has no durakit.admin/1. */
dk_status client_needs_admin(struct dk_client *client, const char *call);
bool client_has_admin(const struct dk_client *client);
/* Another caller for its calls; NULL: no memory. */
struct dk_caller *client_new_caller(const struct dk_client *client);
/* The longest id that the store takes. */
size_t client_max_id(const struct dk_client *client);

/* ---- again ----------------------------------------------------------------------------------- */

/* Waits for so long; false: the canceller wants the call back. */
bool client_pause_for(const struct dk_client *client, int64_t ms);
/* How long before the repetition n (from 0): 10, 20, 40, ... 500 ms. */
int64_t client_pause_of(unsigned n);
bool client_is_unknown(dk_status status);
bool client_is_called_back(const struct dk_client *client);

/* The attempts of one call: they share one clock. */
struct attempts {
  unsigned repetitions;
  int64_t until;            /* on the monotonic clock: no repetition begins later */
  bool is_unknown;          /* one of them may have been done */
  char words[CLIENT_ERROR]; /* of the first of these, from the store */
};
struct attempts attempts_begin(void);
/* Whether to make a call that changes nothing once more after this answer: at once, if the outcome
 * is unknown; patiently, after a pause, also if the store is busy or away. */
bool client_reads_again(const struct dk_client *client, struct attempts *attempts,
                        dk_status status, bool is_patient);
/* The same of a call that changes something, with the words of this answer: after a pause, once the
 * outcome of one attempt is unknown, until another tells. */
bool client_changes_again(const struct dk_client *client, struct attempts *attempts,
                          dk_status status, const char *words);
/* The answer that counts: unknown, once one attempt was, unless the last one was done, or tells
 * (`tells`: to this call its refusals do) that none can have been. */
dk_status attempts_answer(const struct attempts *attempts, dk_status status, bool tells);

/* ---- looking --------------------------------------------------------------------------------- */

/* The next execution is about to begin: nothing is over. */
static inline int32_t
client_shown_status(int32_t status)
{
  return status == DK_CONTINUED_AS_NEW ? DK_RUNNING : status;
}
/* The stored status of the newest execution, without any of its events, from the history: of any
 * provider.  DK_NOT_FOUND: no turn was committed. */
dk_status client_read_status(struct dk_client *client, const struct dk_text *instance,
                             int32_t *ret_status);

/* ---- sending --------------------------------------------------------------------------------- */

/* A message on its way: what the request points to. */
struct request_message {
  struct dk_text instance, payload;
  char id[34];
  struct dk_item item;
  char words[CLIENT_ERROR]; /* how sending it has failed, from the store */
};

/* id: for the fixed ones; NULL: one of its own, that begins with `first`. */
dk_status request_message_write(struct dk_client *client, struct request_message *request_message,
                                dk_str instance, const char *id, char first,
                                const struct message *message);
void request_message_done(struct request_message *request_message);
/* Sends it, with the client's caller or with one of this thread's.  Where it is unknown whether it
 * arrived, it is sent again until that is known, for a second or so; if it stays unknown, the words
 * are those of the first attempt.  *ret_repeated: the answer is that of a repetition. */
dk_status request_message_send(struct dk_client *client, struct dk_caller *caller,
                               struct request_message *request_message, bool *ret_repeated);

/* A cancellation's reason and by (see runtime.h). */
dk_status client_check_words(struct dk_client *client, const char *reason, const char *by);

#endif
