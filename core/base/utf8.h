/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF.  Owns nothing. */
#ifndef DK_BASE_UTF8_H
#define DK_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length, 1 to 4, of the character that begins at `bytes`, of which `size` may be read; 0 if no
 * valid one does.  `ret_character` may be NULL. */
size_t dk_utf8_next(const char *bytes, size_t size, uint32_t *ret_character);

/* All of it is valid.  Nothing is valid, and so is a NUL. */
bool dk_utf8_valid(const char *bytes, size_t size);

/* The character is printable and does not move others on its line: see enum dk_escape. */
bool dk_utf8_printable(uint32_t character);

/* An id as the contract requires it: 1 to `max` bytes of valid UTF-8 without a NUL. */
bool dk_text_id_valid(const char *bytes, size_t size, size_t max);

#endif
