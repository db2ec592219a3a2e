/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums: see checksum.h.  Owns nothing. */
#include "core/base/checksum.h"

/* Entry n is four steps of the division by the polynomial 0x82f63b78 (bits reversed) on n.  Half a
 * byte at a time is fast enough here, and a table of this size is easy to review. */
static const uint32_t crc32c_steps[16] = {
  0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
  0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t
dk_crc32c(uint32_t seed, const void *bytes, size_t size)
{
  const unsigned char *at = bytes;
  uint32_t crc = ~seed;

  for (size_t i = 0; i < size; i++) {
    crc ^= at[i];
    crc = crc >> 4 ^ crc32c_steps[crc & 15];
    crc = crc >> 4 ^ crc32c_steps[crc & 15];
  }
  return ~crc;
}

uint64_t
dk_fnv1a64(uint64_t seed, const void *bytes, size_t size)
{
  const unsigned char *at = bytes;
  uint64_t hash = seed;

  for (size_t i = 0; i < size; i++) {
    hash ^= at[i];
    hash *= UINT64_C(0x100000001b3);
  }
  return hash;
}
