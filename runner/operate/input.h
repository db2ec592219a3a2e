/* SPDX-License-Identifier: Apache-2.0 */
/* What a command reads before it opens the store: a file, or standard input. */
#ifndef DK_RUNNER_OPERATE_INPUT_H
#define DK_RUNNER_OPERATE_INPUT_H

#include "core/base/text.h"
#include "runner/operate/host.h"

/* Reads all of it; "-" is standard input.  If it is longer than `most`, it is refused, with `next`,
 * and no more of it is read.  A signal ends the reading, even if no data arrive.  EXIT_PASSED, or
 * another code after a message. */
int input_read(const struct host *host, const char *name, size_t most, const char *next,
               struct dk_text *ret_bytes);

#endif
