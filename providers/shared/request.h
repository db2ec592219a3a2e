/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of both plugins, and what both refuse of a request before they look at the store.
 * Each plugin has its own struct operation, and reports for it by refuse(). */
#ifndef DK_PROVIDERS_REQUEST_H
#define DK_PROVIDERS_REQUEST_H

#include "providers/shared/basics.h"

#include <stdbool.h>

enum {
  MAX_ID = 1024,
  MAX_PAYLOAD = 16 << 20,
  MAX_COMMIT_BYTES = 64 << 20,
  MAX_COMMIT_ITEMS = 200000
};

struct operation;

/* Both are the plugin's own.  Reports the reason to the host, behind the operation's name. */
dk_status refuse(struct operation *op, dk_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
dk_status refuse_unknown(struct operation *op, bool is_unknown, const char *what);

/* ABI-11.  Texts and sizes have been checked by the host.  [ERR-4] */
dk_status refuse_session(struct operation *op, const struct dk_item *item);
dk_status commit_refuse_what_is_unknown(struct operation *op, const struct dk_turn_result *r);
/* ACK-8: an empty commit brings messages and nothing else. */
bool commit_is_bare(const struct dk_turn_result *r);

#endif
