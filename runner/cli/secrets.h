/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets never leave the runner: each secret in this list is replaced by *** everywhere, even with
 * the escapes of C, JSON, XML, YAML, TAP, addresses and the shell in it, and even if it is cut
 * after its first 8 bytes or more. */
#ifndef DK_RUNNER_CLI_SECRETS_H
#define DK_RUNNER_CLI_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/text.h"

struct secrets {
  char **items;   /* longest first */
  size_t n;
  bool failed;    /* out of memory: everything is masked from then on */
};

void secrets_done(struct secrets *secrets);
/* The secret and its lines. */
void secrets_add(struct secrets *secrets, const char *secret, size_t length);
/* The passwords inside a value: password=..., quoted or not, scheme://user:password@host, and the
 * other secrets that libpq takes. */
void secrets_add_passwords(struct secrets *secrets, const char *value, size_t length);

/* Adds the bytes with all secrets replaced, even one that is cut by the end of text or line.  No
 * list, NULL, hides nothing. */
void secrets_mask(const struct secrets *secrets, struct dk_text *out, const char *bytes,
                  size_t length);
/* The bytes hold a secret. */
bool secrets_are_in(const struct secrets *secrets, const char *bytes, size_t length);

#endif
