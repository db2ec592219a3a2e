/* SPDX-License-Identifier: Apache-2.0 */
/* The size of a text in a payload, computed without writing it.  Owns nothing. */
#ifndef DK_RUNTIME_FORMAT_JSON_SIZE_H
#define DK_RUNTIME_FORMAT_JSON_SIZE_H

#include <durakit/runtime.h>

/* An upper bound of the bytes that it takes as a JSON member. */
uint64_t json_size(dk_str text);

/* How much of the text, cut between characters, fits into `max` bytes. */
size_t json_fitting(dk_str text, uint64_t max);

#endif
