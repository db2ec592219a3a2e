/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets never leave the runner: what stands in this list is replaced by *** everywhere, also with
 * the escapes of C, JSON, XML, YAML, TAP, addresses and the shell in it, and its first 8 bytes and
 * more when the rest is cut off. */
#ifndef DK_RUNNER_CLI_SECRETS_H
#define DK_RUNNER_CLI_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/text.h"

struct mask {
  char **secrets; /* longest first */
  size_t n;
  bool failed;    /* out of memory: everything is masked from then on */
};

void mask_done(struct mask *mask);
/* The secret and its lines. */
void mask_add(struct mask *mask, const char *secret, size_t length);
/* The passwords inside a value: password=..., also quoted, and scheme://user:password@host; and
 * what else of its kind libpq takes. */
void mask_add_passwords(struct mask *mask, const char *value, size_t length);

/* Adds the bytes with all secrets replaced, also one that is cut off by the end of text or line.  A
 * NULL mask hides nothing. */
void mask_text(const struct mask *mask, struct dk_text *out, const char *bytes, size_t length);
/* The bytes hold a secret. */
bool mask_applies(const struct mask *mask, const char *bytes, size_t length);

#endif
