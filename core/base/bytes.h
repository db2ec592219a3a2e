/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are compared. */
#ifndef DK_BASE_BYTES_H
#define DK_BASE_BYTES_H

#include <durakit/provider.h>

#include <stdbool.h>
#include <string.h>

/* Bytes are equal; absent is equal to empty. */
static inline bool
str_equal(struct dk_bytes a, struct dk_bytes b)
{
  return a.len == b.len && (a.len == 0 || a.ptr == b.ptr || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* As memcmp; the beginning of another one comes before it. */
static inline int
str_compare(struct dk_bytes a, struct dk_bytes b)
{
  size_t shorter = a.len < b.len ? a.len : b.len;
  int order = shorter > 0 ? memcmp(a.ptr, b.ptr, shorter) : 0;

  return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

#endif
