/* SPDX-License-Identifier: Apache-2.0 */
/* A check, run again in another way: with larger payloads, other ids, larger numbers.
 *
 * The check does not know.  What it sends is changed on its way to the provider, and what comes
 * back is changed back: so the check expects what it always expects.  What comes back with another
 * padding than was sent with it is a failure of its own.  See checks/variations.def. */
#ifndef DK_KIT_VARY_H
#define DK_KIT_VARY_H

#include "conformance/kit/check.h"

struct op;
/* The operation, its request varied and its reply brought back.  `run` makes the call. */
void kit_vary(struct op *op, struct dk_store *store, struct dk_caller *caller,
              dk_status (*run)(struct op *op, struct dk_store *store, struct dk_caller *caller));

#endif
