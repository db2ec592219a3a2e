/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks lines at blanks, so that a terminal does not break them inside words.
 *
 * The rest of a broken line is indented: it begins below the text after the last gap of two blanks
 * or more in the first two thirds of the line, as after a label (not after a sentence); otherwise
 * below the first word.  If some word would not fit there, it begins below an earlier gap, or after
 * a few blanks.  A word that is longer than a line stays whole.  Output that does not go to a
 * terminal is not changed.
 */
#ifndef DK_RUNNER_CLI_WRAP_H
#define DK_RUNNER_CLI_WRAP_H

#include <stdio.h>

#include "core/base/text.h"

/* Columns of the terminal behind `fd`, 80 if it does not know; 0: it is not a terminal. */
unsigned wrap_width(int fd);

/* Adds the lines of `text`, none longer than `width`; 0: as they are. */
void wrap_text(struct dk_text *out, const char *text, size_t size, unsigned width);

/* A stream that breaks the lines that are written to it; it owns `fd`.  NULL with errno. */
FILE *wrap_stream(int fd, unsigned width);

#endif
