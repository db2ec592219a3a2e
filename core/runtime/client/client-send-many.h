/* SPDX-License-Identifier: Apache-2.0 */
/* Many requests to cancel on their way at once: a store that writes each through to the disk takes
 * those that come together for the price of one. */
#ifndef DK_RUNTIME_CLIENT_CLIENT_SEND_MANY_H
#define DK_RUNTIME_CLIENT_CLIENT_SEND_MANY_H

#include "core/runtime/client/client.h"

/* To whom, and what became of it. */
struct recipient {
  dk_str instance;   /* with a NUL behind it */
  bool was_sent;     /* else: somebody has called it back, or the store had failed before */
  bool is_ours;      /* with DK_DUPLICATE: what is stored is what we have sent before */
  dk_status status;
  const char *words; /* why it failed; in the arena, NULL without memory */
};

/* Sends the message to all of them, with the id of all requests.  A store that is busy or away is
 * asked again, for about a second.  The caller is this thread's; the threads that help have their
 * own, and are gone when this returns. */
void senders_send(struct dk_client *client, struct dk_caller *caller, const struct message *message,
                  struct dk_arena *arena, struct recipient *recipients, size_t n);
/* What keeps this one from being asked keeps others from it, too. */
bool senders_fail_all(dk_status status);

#endif
