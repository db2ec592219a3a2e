/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets are found in settings and replaced in text. */
#include "runner/cli/secrets.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"

/* The text after masking; valid until the next call. */
static const char *
masked(const struct secrets *secrets, const char *text)
{
  static struct dk_text out = DK_TEXT_EMPTY;

  dk_text_reset(&out);
  secrets_mask(secrets, &out, text, strlen(text));
  return dk_text_str(&out);
}

/* The setting as it is shown. */
static void
hides(const char *value, const char *shown)
{
  struct secrets secrets = {0};

  secrets_add_passwords(&secrets, value, strlen(value));
  is(masked(&secrets, value), shown, "in %s", shown);
  secrets_done(&secrets);
}

static void
replaces(void)
{
  struct secrets secrets = {0};

  is(masked(NULL, "as it is"), "as it is", "no list hides nothing");
  is(masked(&secrets, "as it is"), "as it is", "an empty list hides nothing");
  secrets_add(&secrets, "", 0);
  is(masked(&secrets, "as it is"), "as it is", "an empty secret hides nothing");
  secrets_add(&secrets, "abc", 3);
  secrets_add(&secrets, "abcdef", 6);
  secrets_add(&secrets, "abc", 3);
  cmp_ok(secrets.n, "==", 2, "a secret is listed once");
  is(masked(&secrets, "xabcdefx abc"), "x***x ***", "the longest one wins");
  is(masked(&secrets, "abcabc"), "******", "one after the other");
  is(masked(&secrets, "ab"), "ab", "a part of a secret is not hidden");
  ok(secrets_are_in(&secrets, "--abc--", 7), "a text that holds one");
  ok(!secrets_are_in(&secrets, "--ab--", 6), "a text that holds none");
  secrets_done(&secrets);
  is(masked(&secrets, "abc"), "abc", "a list that was emptied");
}

static void
hides_what_is_cut(void)
{
  struct secrets secrets = {0};
  struct dk_text out = DK_TEXT_EMPTY;

  secrets_add(&secrets, "hunter2-long", 12);
  is(masked(&secrets, "it is hunter2-lon"), "it is ***", "all but its last letter");
  is(masked(&secrets, "it is hunt"), "it is ***", "four letters of it");
  is(masked(&secrets, "it is hun"), "it is hun", "three letters reveal nothing");
  is(masked(&secrets, "it is hunter3"), "it is hunter3", "another word that begins so");
  is(masked(&secrets, "hunter2 is my name"), "hunter2 is my name", "its beginning in the middle");
  is(masked(&secrets, "(hunter2-) and (hunter2-l)"), "(***) and (***)", "eight letters of it");
  is(masked(&secrets, "is hunter2-\nnext"), "is ***\nnext", "at the end of a line");
  secrets_mask(&secrets, &out, "it is hunter2-long", 15);
  is(dk_text_str(&out), "it is ***", "bytes after the end are not read");
  ok(secrets_are_in(&secrets, "it is hunter2", 13), "it counts as one");
  secrets_add(&secrets, "hunter2", 7);
  is(masked(&secrets, "it is hunter2-lo"), "it is ***",
     "a short one inside a long one that is cut");
  dk_text_done(&out);
  secrets_done(&secrets);
}

static void
hides_bytes(void)
{
  struct secrets secrets = {0};
  struct dk_text out = DK_TEXT_EMPTY;

  secrets_add(&secrets, "key", 3);
  secrets_mask(&secrets, &out, "a\0key\0b", 7);
  cmp_ok(out.length, "==", 7, "bytes of 0 are kept");
  cmp_mem(dk_text_str(&out), "a\0***\0b", 7, "and what follows them is masked");
  dk_text_done(&out);
  secrets_done(&secrets);
}

/* Text of a plugin is escaped on its way, before it is masked. */
static void
hides_what_is_escaped(void)
{
  static const char secret[] = "abc\ndef\tgh: \"i\"\r\nlast-line\n";
  static const enum dk_escape hows[] = {DK_ESCAPE_VISIBLE, DK_ESCAPE_YAML, DK_ESCAPE_TAP};
  struct secrets secrets = {0};
  struct dk_text escaped = DK_TEXT_EMPTY;

  secrets_add(&secrets, secret, strlen(secret));
  for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
    dk_text_reset(&escaped);
    dk_text_puts(&escaped, "it is ");
    dk_text_add_escaped(&escaped, secret, strlen(secret), hows[i]);
    dk_text_puts(&escaped, ", no?");
    is(masked(&secrets, dk_text_str(&escaped)), "it is ***, no?", "escaped in way %zu", i);
  }
  is(masked(&secrets, secret), "***", "as it is");
  is(masked(&secrets, "1 def\tgh: \"i\" 2"), "1 *** 2", "one of its lines");
  is(masked(&secrets, "1 def\\tgh: \"i\" 2"), "1 *** 2", "one of its lines, escaped");
  is(masked(&secrets, "1 last-line 2"), "1 *** 2", "its last line");
  is(masked(&secrets, "1 abc 2"), "1 abc 2", "a line that is too short to reveal anything");
  is(masked(&secrets, "it is abc\\ndef"), "it is ***", "escaped, and cut");
  dk_text_done(&escaped);
  secrets_done(&secrets);
}

/* As others write it, whatever they escape. */
static void
hides_other_escapes(void)
{
  static const struct { const char *secret, *text, *shown; } rows[] = {
    {"a<b>&\"c'd", "<t>a&lt;b&gt;&amp;&quot;c&apos;d</t>", "<t>***</t>"},
    {"a<b>&\"c'd", "a&#60;b&#x3E;&amp;&#34;c&#x27;d", "***"},
    {"pass&word-1", "x pass&amp;word-1 x", "x *** x"},
    {"a\"b\\c/d\n1234", "{\"a\\\"b\\\\c\\/d\\n1234\"}", "{\"***\"}"},
    {"p\303\244ss-\360\237\230\200", "\"p\\u00e4ss-\\ud83d\\uDE00\"", "\"***\""},
    {"p@ss w/rd", "u:p%40ss%20w%2Frd@ p%40ss+w/rd", "u:***@ ***"},
    {"has space 1", "/run/has\\040space\\0401 x", "/run/*** x"},
    {"tab\there", "tab\\x09here, tab\\there, tab\\011here", "***, ***, ***"},
    {"it's mine", "'it'\\''s mine' 'it'\"'\"'s mine'", "'***' '***'"},
    {"a: \"b\" c", "a\\x3a \\\"b\\\" c", "***"},
    {"a: \"b\" c", "a\\\\x3a \\\\\\\"b\\\\\\\" c", "***"},
    {"back\\nslash", "back\\nslash back\\\\nslash", "*** ***"},
    {"secret\nof-two", "it is secret\\", "it is ***"},
    {"hunter2<3-and-more", "(hunter2&lt;) x", "(***) x"},
    {"x\\\\y", "x\\\\y", "***"}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    struct secrets secrets = {0};

    secrets_add(&secrets, rows[i].secret, strlen(rows[i].secret));
    is(masked(&secrets, rows[i].text), rows[i].shown, "%s in %s", rows[i].secret, rows[i].text);
    secrets_done(&secrets);
  }
}

int
main(void)
{
  plan(NO_PLAN);
  hides_other_escapes();
  replaces();
  hides_what_is_cut();
  hides_bytes();
  hides_what_is_escaped();
  hides("host=db password=hunter2 user=me", "host=db password=*** user=me");
  hides("host=db password = hunter2", "host=db password = ***");
  hides("PASSWORD=hunter2", "PASSWORD=***");
  hides("password='two words' user=me", "password='***' user=me");
  hides("password='it\\'s' x", "password='***' x");
  hides("sslpassword=hunter2", "sslpassword=***");
  hides("postgresql://me:hunter2@db/x", "postgresql://me:***@db/x");
  hides("postgresql://me:p%40ss@db/x", "postgresql://me:***@db/x");
  hides("postgresql://me:hun/ter2@db/x", "postgresql://me:***@db/x");
  hides("postgresql://me:hunter2@db/x?a=b@c", "postgresql://me:***@db/x?a=b@c");
  hides("oauth_client_secret=hunter2 user=me", "oauth_client_secret=*** user=me");
  hides("scram_client_key=hunter2", "scram_client_key=***");
  hides("postgresql://db/x?password=hunter2&a=b", "postgresql://db/x?password=***");
  hides("postgresql://db:5432/x", "postgresql://db:5432/x");
  hides("user=me host=db", "user=me host=db");
  hides("the password is secret", "the password is secret");

  /* Written in another way than it was given. */
  struct secrets secrets = {0};
  const char *address = "postgresql://me:p%40ss@db/x?password=hunter2&a=b";
  secrets_add_passwords(&secrets, address, strlen(address));
  is(masked(&secrets, "p@ss, hunter2"), "***, ***", "decoded, and without what follows");
  secrets_done(&secrets);
  return done_testing();
}
