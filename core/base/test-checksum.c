/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of checksum.h and sat.h: published values, another way to compute them, and the ends. */
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/base/checksum.h"
#include "core/base/sat.h"

/* The division bit by bit, as the definition says. */
static uint32_t
crc32c_by_bits(const unsigned char *bytes, size_t size)
{
  uint32_t crc = 0xffffffff;

  for (size_t i = 0; i < size; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++)
      crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
  }
  return ~crc;
}

static void
published_crc32c(void)
{
  unsigned char bytes[32];

  /* The first is the check value of every CRC catalogue, the others are of RFC 3720, B.4. */
  cmp_ok(dk_crc32c(0, "123456789", 9), "==", 0xe3069283, "CRC-32C of 123456789");
  memset(bytes, 0, sizeof(bytes));
  cmp_ok(dk_crc32c(0, bytes, sizeof(bytes)), "==", 0x8a9136aa, "CRC-32C of 32 zeros");
  memset(bytes, 0xff, sizeof(bytes));
  cmp_ok(dk_crc32c(0, bytes, sizeof(bytes)), "==", 0x62a8ab43, "CRC-32C of 32 bytes FF");
  for (size_t i = 0; i < sizeof(bytes); i++)
    bytes[i] = (unsigned char)i;
  cmp_ok(dk_crc32c(0, bytes, sizeof(bytes)), "==", 0x46dd794e, "CRC-32C of 0, 1, ... 31");
  cmp_ok(dk_crc32c(0, NULL, 0), "==", 0, "CRC-32C of nothing");
}

static void
crc32c_of_parts_and_bytes(void)
{
  unsigned char all[256];
  unsigned wrong = 0;

  for (size_t i = 0; i < sizeof(all); i++)
    all[i] = (unsigned char)(255 - i);
  for (size_t i = 0; i < sizeof(all); i++)
    if (dk_crc32c(0, all + i, 1) != crc32c_by_bits(all + i, 1))
      wrong++;
  cmp_ok(wrong, "==", 0, "each of the 256 bytes as by the definition");

  uint32_t whole = dk_crc32c(0, all, sizeof(all));
  cmp_ok(whole, "==", crc32c_by_bits(all, sizeof(all)), "all of them as by the definition");
  for (size_t i = 0; i <= sizeof(all); i++)
    if (dk_crc32c(dk_crc32c(0, all, i), all + i, sizeof(all) - i) != whole)
      wrong++;
  cmp_ok(wrong, "==", 0, "two parts give what the whole gives, wherever it is cut");
  all[100] ^= 0x10;
  cmp_ok(dk_crc32c(0, all, sizeof(all)), "!=", whole, "one bit makes another checksum");
}

static void
fnv1a(void)
{
  /* From the authors' test suite. */
  cmp_ok(dk_fnv1a64(DK_FNV1A64_START, "", 0), "==", 0xcbf29ce484222325u, "FNV-1a of nothing");
  cmp_ok(dk_fnv1a64(DK_FNV1A64_START, "a", 1), "==", 0xaf63dc4c8601ec8cu, "FNV-1a of a");
  cmp_ok(dk_fnv1a64(DK_FNV1A64_START, "foobar", 6), "==", 0x85944171f73967e8u, "FNV-1a of foobar");
  cmp_ok(dk_fnv1a64(dk_fnv1a64(DK_FNV1A64_START, "foo", 3), "bar", 3), "==", 0x85944171f73967e8u,
         "two parts give what the whole gives");
  cmp_ok(dk_fnv1a64(DK_FNV1A64_START, "\xff", 1), "==",
         (DK_FNV1A64_START ^ 0xff) * 0x100000001b3u, "bytes are unsigned");
}

static void
sums(void)
{
  cmp_ok(dk_sat_add(40, 2), "==", 42, "a sum");
  cmp_ok(dk_sat_add(-40, -2), "==", -42, "a negative sum");
  cmp_ok(dk_sat_add(INT64_MAX, 0), "==", INT64_MAX, "the end and nothing");
  cmp_ok(dk_sat_add(INT64_MAX - 1, 1), "==", INT64_MAX, "just to the end");
  cmp_ok(dk_sat_add(INT64_MAX, 1), "==", INT64_MAX, "one beyond the end");
  cmp_ok(dk_sat_add(1, INT64_MAX), "==", INT64_MAX, "one beyond the end, turned round");
  cmp_ok(dk_sat_add(INT64_MAX, INT64_MAX), "==", INT64_MAX, "far beyond the end");
  cmp_ok(dk_sat_add(INT64_MIN + 1, -1), "==", INT64_MIN, "just to the lower end");
  cmp_ok(dk_sat_add(INT64_MIN, -1), "==", INT64_MIN, "one below the lower end");
  cmp_ok(dk_sat_add(-1, INT64_MIN), "==", INT64_MIN, "one below the lower end, turned round");
  cmp_ok(dk_sat_add(INT64_MIN, INT64_MIN), "==", INT64_MIN, "far below the lower end");
  cmp_ok(dk_sat_add(INT64_MAX, INT64_MIN), "==", -1, "the two ends");
}

int
main(void)
{
  plan(NO_PLAN);
  published_crc32c();
  crc32c_of_parts_and_bytes();
  fnv1a();
  sums();
  return exit_status();
}
