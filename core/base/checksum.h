/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums, for finding damage and for spreading keys; none of them resists an attacker.
 * Owns nothing. */
#ifndef DK_BASE_CHECKSUM_H
#define DK_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli).  The seed is 0, or the checksum of what came before: the checksum of two
 * parts is that of the whole. */
uint32_t dk_crc32c(uint32_t seed, const void *bytes, size_t size);

/* FNV-1a, 64 bits.  The seed is DK_FNV1A64_START, or the hash of what came before. */
#define DK_FNV1A64_START UINT64_C(0xcbf29ce484222325)
uint64_t dk_fnv1a64(uint64_t seed, const void *bytes, size_t size);

#endif
