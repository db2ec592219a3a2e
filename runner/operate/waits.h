/* SPDX-License-Identifier: Apache-2.0 */
/* What a running instance waits for, according to its history and its stored messages. */
#ifndef DK_RUNNER_OPERATE_WAITS_H
#define DK_RUNNER_OPERATE_WAITS_H

#include <durakit/manage.h>

enum waits {
  WAITS_FOR_NOTHING = 0,
  WAITS_FOR_EVENT = 1, /* dk_external was called for it, and no stored event satisfies the call */
  WAITS_FOR_QUEUE = 2, /* dk_dequeue, likewise */
  WAITS_UNKNOWN = 4    /* the store does not know */
};

/* For an event, or for messages of a queue, of this name; or for both. */
enum waits waits_of(struct dk_client *client, dk_str instance, const char *name);

#endif
