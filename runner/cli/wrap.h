/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks lines at blanks, so that a terminal does not break them inside words.
 *
 * The rest of a line stands below its text: below what follows the last gap of two blanks or more
 * in its first two thirds, as after a label (not after a sentence); else below its first word.
 * Where some word would not fit there, it stands below an earlier gap, or behind a few blanks.  A
 * word that is longer than a line stays whole.  What is not for a terminal is not touched.
 */
#ifndef DK_RUNNER_CLI_WRAP_H
#define DK_RUNNER_CLI_WRAP_H

#include <stdio.h>

#include "core/base/text.h"

/* Columns of the terminal behind `fd`, 80 if it does not tell; 0: it is no terminal. */
unsigned wrap_width(int fd);

/* Adds the lines of `text`, none longer than `width`; 0: as they are. */
void wrap_text(struct dk_text *out, const char *text, size_t size, unsigned width);

/* A stream that breaks the lines that are written to it; it owns `fd`.  NULL: errno tells. */
FILE *wrap_stream(int fd, unsigned width);

#endif
