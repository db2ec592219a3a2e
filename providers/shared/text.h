/* SPDX-License-Identifier: Apache-2.0 */
/* What both plugins read from texts: settings, and the parts of a token. */
#ifndef DK_PROVIDERS_TEXT_H
#define DK_PROVIDERS_TEXT_H

#include <durakit/provider.h>

#include <stdbool.h>

/* NULL: it was not given. */
const char *setting_value(const struct dk_open *open, const char *key);
/* A number from 0, and ms, s, m, h or nothing.  False: it is no duration, or too long. */
bool text_is_duration(const char *text, int64_t *ret_ms);
/* Without a NUL. */
bool text_is_utf8(const char *text, size_t length);

/* Takes a hex number, from 1 to INT64_MAX, off the front.  One number has one spelling, so one
 * token has one. */
bool token_take_number(struct dk_bytes *text, int64_t *ret_number);
bool token_take_letter(struct dk_bytes *text, char letter);

#endif
