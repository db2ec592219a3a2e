/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets are found in settings and replaced in text. */
#include "runner/mask.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"

/* What is left of the text after masking; lives until the next call. */
static const char *
masked(const struct mask *mask, const char *text)
{
  static struct dk_text out = DK_TEXT_EMPTY;

  dk_text_reset(&out);
  mask_text(mask, &out, text, strlen(text));
  return dk_text_str(&out);
}

/* The setting as it is shown. */
static void
hides(const char *value, const char *shown)
{
  struct mask mask = {0};

  mask_add_passwords(&mask, value, strlen(value));
  is(masked(&mask, value), shown, "in %s", shown);
  mask_done(&mask);
}

static void
replaces(void)
{
  struct mask mask = {0};

  is(masked(NULL, "as it is"), "as it is", "no list hides nothing");
  is(masked(&mask, "as it is"), "as it is", "an empty list hides nothing");
  mask_add(&mask, "", 0);
  is(masked(&mask, "as it is"), "as it is", "an empty secret is none");
  mask_add(&mask, "abc", 3);
  mask_add(&mask, "abcdef", 6);
  mask_add(&mask, "abc", 3);
  cmp_ok(mask.n, "==", 2, "a secret is listed once");
  is(masked(&mask, "xabcdefx abc"), "x***x ***", "the longest one wins");
  is(masked(&mask, "abcabc"), "******", "one after the other");
  is(masked(&mask, "ab"), "ab", "a part of one is none");
  ok(mask_applies(&mask, "--abc--", 7), "a text that holds one");
  ok(!mask_applies(&mask, "--ab--", 6), "a text that holds none");
  mask_done(&mask);
  is(masked(&mask, "abc"), "abc", "a list that was emptied");
}

static void
hides_bytes(void)
{
  struct mask mask = {0};
  struct dk_text out = DK_TEXT_EMPTY;

  mask_add(&mask, "key", 3);
  mask_text(&mask, &out, "a\0key\0b", 7);
  cmp_ok(out.length, "==", 7, "bytes of 0 are kept");
  cmp_mem(dk_text_str(&out), "a\0***\0b", 7, "and what follows them is masked");
  dk_text_done(&out);
  mask_done(&mask);
}

int
main(void)
{
  plan(NO_PLAN);
  replaces();
  hides_bytes();
  hides("host=db password=hunter2 user=me", "host=db password=*** user=me");
  hides("host=db password = hunter2", "host=db password = ***");
  hides("PASSWORD=hunter2", "PASSWORD=***");
  hides("password='two words' user=me", "password='***' user=me");
  hides("password='it\\'s' x", "password='***' x");
  hides("sslpassword=hunter2", "sslpassword=***");
  hides("postgresql://me:hunter2@db/x", "postgresql://me:***@db/x");
  hides("postgresql://me:p%40ss@db/x", "postgresql://me:***@db/x");
  hides("postgresql://db/x?password=hunter2&a=b", "postgresql://db/x?password=***");
  hides("postgresql://db:5432/x", "postgresql://db:5432/x");
  hides("user=me host=db", "user=me host=db");
  hides("the password is secret", "the password is secret");

  /* Told in another way than it was given. */
  struct mask mask = {0};
  const char *address = "postgresql://me:p%40ss@db/x?password=hunter2&a=b";
  mask_add_passwords(&mask, address, strlen(address));
  is(masked(&mask, "p@ss, hunter2"), "***, ***", "decoded, and without what follows");
  mask_done(&mask);
  return done_testing();
}
