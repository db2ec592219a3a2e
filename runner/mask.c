/* SPDX-License-Identifier: Apache-2.0 */
/* Finds passwords inside settings, and replaces secrets in text.  Owns the list of secrets. */
#include "runner/mask.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LEAST_PART = 4 }; /* of a secret that was cut; less than that tells nothing of it */

void
mask_done(struct mask *mask)
{
  for (size_t i = 0; i < mask->n; i++) {
    explicit_bzero(mask->secrets[i], strlen(mask->secrets[i]));
    free(mask->secrets[i]);
  }
  free(mask->secrets);
  *mask = (struct mask){0};
}

static bool
is_listed(const struct mask *mask, const char *secret, size_t length)
{
  for (size_t i = 0; i < mask->n; i++) {
    if (strlen(mask->secrets[i]) == length && memcmp(mask->secrets[i], secret, length) == 0)
      return true;
  }
  return false;
}

static void
add_form(struct mask *mask, const char *secret, size_t length)
{
  if (length == 0 || is_listed(mask, secret, length))
    return;
  char **grown = reallocarray(mask->secrets, mask->n + 1, sizeof(*grown));
  char *copy = strndup(secret, length);
  if (grown)
    mask->secrets = grown;
  if (!grown || !copy) {
    free(copy);
    mask->failed = true;
    return;
  }

  size_t at = mask->n;
  while (at > 0 && strlen(mask->secrets[at - 1]) < length) {
    mask->secrets[at] = mask->secrets[at - 1];
    at--;
  }
  mask->secrets[at] = copy;
  mask->n++;
}

/* Text of a plugin may have been escaped before it comes here: so these forms are secret, too. */
static void
add_forms(struct mask *mask, const char *secret, size_t length)
{
  static const enum dk_escape hows[] = {DK_ESCAPE_VISIBLE, DK_ESCAPE_YAML, DK_ESCAPE_TAP};
  struct dk_text escaped = DK_TEXT_EMPTY;

  add_form(mask, secret, length);
  for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++) {
    dk_text_reset(&escaped);
    dk_text_add_escaped(&escaped, secret, length, hows[i]);
    mask->failed = mask->failed || dk_text_failed(&escaped);
    add_form(mask, dk_text_str(&escaped), escaped.length);
  }
  if (escaped.bytes)
    explicit_bzero(escaped.bytes, escaped.length);
  dk_text_done(&escaped);
}

/* A key of several lines is told line by line as well. */
void
mask_add(struct mask *mask, const char *secret, size_t length)
{
  size_t begin = 0;

  add_forms(mask, secret, length);
  for (size_t i = 0; i <= length; i++) {
    if (i < length && secret[i] != '\n' && secret[i] != '\r')
      continue;
    if (i - begin >= LEAST_PART && i - begin < length)
      add_forms(mask, secret + begin, i - begin);
    begin = i + 1;
  }
}

/* 'it\'s' as it stands between the quotes, and as it is meant. */
static void
add_quoted(struct mask *mask, const char *text, size_t length)
{
  struct dk_text meant = DK_TEXT_EMPTY;
  size_t i = 0;

  while (i < length && text[i] != '\'') {
    if (text[i] == '\\' && i + 1 < length)
      i++;
    dk_text_add(&meant, text + i, 1);
    i++;
  }
  mask_add(mask, text, i);
  mask_add(mask, dk_text_str(&meant), meant.length);
  dk_text_done(&meant);
}

static int
hex_digit(char c)
{
  static const char digits[] = "0123456789abcdef";
  const char *found = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

  return found ? (int)(found - digits) : -1;
}

/* As it stands in an address, and as it is meant: %40 is '@'. */
static void
add_percent_encoded(struct mask *mask, const char *text, size_t length)
{
  struct dk_text meant = DK_TEXT_EMPTY;

  mask_add(mask, text, length);
  for (size_t i = 0; i < length; i++) {
    char c = text[i];
    if (c == '%' && i + 2 < length && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      c = (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    }
    dk_text_add(&meant, &c, 1);
  }
  mask_add(mask, dk_text_str(&meant), meant.length);
  dk_text_done(&meant);
}

static size_t
skip_spaces(const char *value, size_t length, size_t at)
{
  while (at < length && isspace((unsigned char)value[at]))
    at++;
  return at;
}

/* A value without quotes ends at a space; in the query of an address also at '&'. */
static void
add_plain(struct mask *mask, const char *text, size_t length)
{
  size_t word = 0;
  size_t query = 0;

  while (word < length && !isspace((unsigned char)text[word]))
    word++;
  while (query < word && text[query] != '&')
    query++;
  mask_add(mask, text, word);
  add_percent_encoded(mask, text, query);
}

static void
add_after_key(struct mask *mask, const char *value, size_t length, const char *key)
{
  size_t n = strlen(key);

  for (size_t i = 0; i + n < length; i++) {
    if (strncasecmp(value + i, key, n) != 0)
      continue;
    size_t at = skip_spaces(value, length, i + n);
    if (at >= length || value[at] != '=')
      continue;
    at = skip_spaces(value, length, at + 1);
    if (at < length && value[at] == '\'')
      add_quoted(mask, value + at + 1, length - at - 1);
    else
      add_plain(mask, value + at, length - at);
  }
}

/* scheme://user:password@host */
static void
add_in_address(struct mask *mask, const char *value, size_t length)
{
  const char *scheme = memmem(value, length, "://", 3);
  if (!scheme)
    return;
  size_t left = length - (size_t)(scheme + 3 - value);
  const char *user = scheme + 3;
  const char *slash = memchr(user, '/', left);
  const char *at = memrchr(user, '@', slash ? (size_t)(slash - user) : left);
  if (!at)
    at = memrchr(user, '@', left); /* a password with a slash that is not encoded */
  if (!at)
    return;
  const char *colon = memchr(user, ':', (size_t)(at - user));
  if (colon)
    add_percent_encoded(mask, colon + 1, (size_t)(at - colon - 1));
}

void
mask_add_passwords(struct mask *mask, const char *value, size_t length)
{
  add_after_key(mask, value, length, "password");
  add_after_key(mask, value, length, "passwd");
  add_after_key(mask, value, length, "pwd");
  add_after_key(mask, value, length, "secret");
  add_after_key(mask, value, length, "scram_client_key");
  add_after_key(mask, value, length, "scram_server_key");
  add_in_address(mask, value, length);
}

/* The length of the longest secret that begins here, 0: none.  Text is cut where its buffer ends
 * before it comes here, so the beginning of a secret is one too, at the end of text or line. */
static size_t
secret_at(const struct mask *mask, const char *bytes, size_t length)
{
  size_t longest = mask->n > 0 ? strlen(mask->secrets[0]) : 0;
  size_t line = length < longest ? length : longest;
  const char *newline = memchr(bytes, '\n', line);

  line = newline ? (size_t)(newline - bytes) : line;

  for (size_t i = 0; i < mask->n; i++) {
    size_t n = strlen(mask->secrets[i]);
    if (n <= length && memcmp(mask->secrets[i], bytes, n) == 0)
      return n;
    if (n > line && line >= LEAST_PART && memcmp(mask->secrets[i], bytes, line) == 0)
      return line;
  }
  return 0;
}

void
mask_text(const struct mask *mask, struct dk_text *out, const char *bytes, size_t length)
{
  size_t plain = 0;

  if (!mask || (mask->n == 0 && !mask->failed)) {
    dk_text_add(out, bytes, length);
    return;
  }
  if (mask->failed) {
    dk_text_puts(out, "***");
    return;
  }
  for (size_t i = 0; i < length;) {
    size_t n = secret_at(mask, bytes + i, length - i);
    if (n == 0) {
      i++;
      continue;
    }
    dk_text_add(out, bytes + plain, i - plain);
    dk_text_puts(out, "***");
    i += n;
    plain = i;
  }
  dk_text_add(out, bytes + plain, length - plain);
}

bool
mask_applies(const struct mask *mask, const char *bytes, size_t length)
{
  for (size_t i = 0; mask && i < length; i++) {
    if (secret_at(mask, bytes + i, length - i) > 0)
      return true;
  }
  return mask && mask->failed;
}
