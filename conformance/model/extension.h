/* SPDX-License-Identifier: Apache-2.0 */
/* The members of the table of durakit.status/1 behind its head, in model-full: for the model's own
 * tests, and not part of any contract.  The extension's operations are not defined yet. */
#ifndef DK_MODEL_EXTENSION_H
#define DK_MODEL_EXTENSION_H

#include <durakit/provider.h>

struct model_status {
  struct dk_extension head;
  void *self;
  /* The version of an instance's custom status, as this handle has last seen it, and its text; NULL
   * in *ret_text if there is none.  Lives until the next operation. */
  uint64_t (*look)(void *self, struct dk_bytes instance, struct dk_bytes *ret_text);
};

#endif
