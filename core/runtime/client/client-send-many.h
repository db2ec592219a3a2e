/* SPDX-License-Identifier: Apache-2.0 */
/* Sends many requests to cancel at the same time: a store that syncs each commit to the disk can
 * sync many concurrent ones at once. */
#ifndef DK_RUNTIME_CLIENT_CLIENT_SEND_MANY_H
#define DK_RUNTIME_CLIENT_CLIENT_SEND_MANY_H

#include "core/runtime/client/client.h"

/* A recipient, and the outcome of its request. */
struct recipient {
  dk_str instance;   /* followed by a NUL */
  bool was_sent;     /* else the call was cancelled, or the store had failed before */
  bool is_ours;      /* with DK_DUPLICATE: the stored request is the one that we sent before */
  dk_status status;
  const char *words; /* why it failed; in the arena; NULL: no memory */
};

/* Sends the message to all of them, with the fixed id of requests.  Requests are repeated for about
 * a second while the store is busy or unreachable.  The caller belongs to this thread; helper
 * threads have their own callers, and have ended when this returns. */
void senders_send(struct dk_client *client, struct dk_caller *caller, const struct message *message,
                  struct dk_arena *arena, struct recipient *recipients, size_t n);
/* A status that stops this request would stop all others too. */
bool senders_fail_all(dk_status status);

#endif
