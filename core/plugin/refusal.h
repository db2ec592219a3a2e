/* SPDX-License-Identifier: Apache-2.0 */
/* Fills in a struct dk_refusal, part by part.  Owns nothing. */
#ifndef DK_PLUGIN_REFUSAL_H
#define DK_PLUGIN_REFUSAL_H

#include <durakit/host.h>

enum { DK_REFUSAL_TEXT = sizeof(((struct dk_refusal *)NULL)->what) };

/* Begins a refusal: its number, where, and in words what happened.  Always -1, to be returned. */
__attribute__((format(printf, 4, 5))) int32_t
dk_refusal_begin(struct dk_refusal *refusal, int32_t number, const char *where, const char *what,
                 ...);

/* Writes one more part, one of the arrays of struct dk_refusal. */
__attribute__((format(printf, 2, 3))) void dk_refusal_say(char part[DK_REFUSAL_TEXT],
                                                          const char *format, ...);
/* Adds to a part, behind ", " if there is something already. */
__attribute__((format(printf, 2, 3))) void dk_refusal_add(char part[DK_REFUSAL_TEXT],
                                                          const char *format, ...);

#endif
