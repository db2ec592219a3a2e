/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a payload a text takes, without writing it.  Owns nothing. */
#ifndef DK_RUNTIME_FORMAT_JSON_SIZE_H
#define DK_RUNTIME_FORMAT_JSON_SIZE_H

#include <durakit/runtime.h>

/* At most so many bytes as a JSON member. */
uint64_t json_size(dk_str text);

/* How much of the text, cut between characters, fits into so many bytes. */
size_t json_fitting(dk_str text, uint64_t max);

#endif
