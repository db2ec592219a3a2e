/* SPDX-License-Identifier: Apache-2.0 */
/* Fills in a struct dk_refusal, part by part.  Owns nothing. */
#ifndef DK_PLUGIN_REFUSAL_H
#define DK_PLUGIN_REFUSAL_H

#include <durakit/host.h>

enum { DK_REFUSAL_TEXT = sizeof(((struct dk_refusal *)NULL)->what) };

/* Begins a refusal: its number, where, and a text about what happened.  Always returns -1, for the
 * caller to return. */
__attribute__((format(printf, 4, 5))) int32_t
dk_refusal_begin(struct dk_refusal *refusal, int32_t number, const char *where, const char *what,
                 ...);

/* Writes one more part, one of the arrays of struct dk_refusal. */
__attribute__((format(printf, 2, 3))) void dk_refusal_say(char part[DK_REFUSAL_TEXT],
                                                          const char *format, ...);
/* Adds to a part, after ", " if it is not empty. */
__attribute__((format(printf, 2, 3))) void dk_refusal_add(char part[DK_REFUSAL_TEXT],
                                                          const char *format, ...);

#endif
