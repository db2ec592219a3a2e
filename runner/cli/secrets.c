/* SPDX-License-Identifier: Apache-2.0 */
/* Finds passwords inside settings, and replaces secrets in text: whole ones and cut ones, plain
 * ones and ones that were escaped on their way.  Owns the list of secrets. */
#include "runner/cli/secrets.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  LEAST_PART = 4,  /* of a secret that is cut by the end of text or line; less reveals nothing */
  LEAST_BEGIN = 8, /* of one that is cut anywhere: the kernel does so with a process's name */
  LONGEST_ESCAPE = 12
};

void
secrets_done(struct secrets *secrets)
{
  for (size_t i = 0; i < secrets->n; i++) {
    explicit_bzero(secrets->items[i], strlen(secrets->items[i]));
    free(secrets->items[i]);
  }
  free(secrets->items);
  *secrets = (struct secrets){0};
}

static bool
is_listed(const struct secrets *secrets, const char *secret, size_t length)
{
  for (size_t i = 0; i < secrets->n; i++) {
    if (strlen(secrets->items[i]) == length && memcmp(secrets->items[i], secret, length) == 0)
      return true;
  }
  return false;
}

static void
add_form(struct secrets *secrets, const char *secret, size_t length)
{
  if (length == 0 || is_listed(secrets, secret, length))
    return;
  char **grown = reallocarray(secrets->items, secrets->n + 1, sizeof(*grown));
  char *copy = strndup(secret, length);
  if (grown)
    secrets->items = grown;
  if (!grown || !copy) {
    free(copy);
    secrets->failed = true;
    return;
  }

  size_t at = secrets->n;
  while (at > 0 && strlen(secrets->items[at - 1]) < length) {
    secrets->items[at] = secrets->items[at - 1];
    at--;
  }
  secrets->items[at] = copy;
  secrets->n++;
}

/* The lines of a secret of several lines can be printed one by one, too. */
void
secrets_add(struct secrets *secrets, const char *secret, size_t length)
{
  size_t begin = 0;

  add_form(secrets, secret, length);
  for (size_t i = 0; i <= length; i++) {
    if (i < length && secret[i] != '\n' && secret[i] != '\r')
      continue;
    if (i - begin >= LEAST_PART && i - begin < length)
      add_form(secrets, secret + begin, i - begin);
    begin = i + 1;
  }
}

/* 'it\'s' as it is written between the quotes, and as it is meant. */
static void
add_quoted(struct secrets *secrets, const char *text, size_t length)
{
  struct dk_text meant = DK_TEXT_EMPTY;
  size_t i = 0;

  while (i < length && text[i] != '\'') {
    if (text[i] == '\\' && i + 1 < length)
      i++;
    dk_text_add(&meant, text + i, 1);
    i++;
  }
  secrets_add(secrets, text, i);
  secrets_add(secrets, dk_text_str(&meant), meant.length);
  dk_text_done(&meant);
}

static int
hex_digit(char c)
{
  static const char digits[] = "0123456789abcdef";
  const char *found = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

  return found ? (int)(found - digits) : -1;
}

/* As it is written in an address, and as it is meant: %40 is '@'. */
static void
add_percent_encoded(struct secrets *secrets, const char *text, size_t length)
{
  struct dk_text meant = DK_TEXT_EMPTY;

  secrets_add(secrets, text, length);
  for (size_t i = 0; i < length; i++) {
    char c = text[i];
    if (c == '%' && i + 2 < length && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      c = (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    }
    dk_text_add(&meant, &c, 1);
  }
  secrets_add(secrets, dk_text_str(&meant), meant.length);
  dk_text_done(&meant);
}

static size_t
skip_spaces(const char *value, size_t length, size_t at)
{
  while (at < length && isspace((unsigned char)value[at]))
    at++;
  return at;
}

/* A value without quotes ends at a space; in the query of an address it ends at '&', too. */
static void
add_plain(struct secrets *secrets, const char *text, size_t length)
{
  size_t word = 0;
  size_t query = 0;

  while (word < length && !isspace((unsigned char)text[word]))
    word++;
  while (query < word && text[query] != '&')
    query++;
  secrets_add(secrets, text, word);
  add_percent_encoded(secrets, text, query);
}

static void
add_after_key(struct secrets *secrets, const char *value, size_t length, const char *key)
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
      add_quoted(secrets, value + at + 1, length - at - 1);
    else
      add_plain(secrets, value + at, length - at);
  }
}

/* scheme://user:password@host */
static void
add_in_address(struct secrets *secrets, const char *value, size_t length)
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
    add_percent_encoded(secrets, colon + 1, (size_t)(at - colon - 1));
}

void
secrets_add_passwords(struct secrets *secrets, const char *value, size_t length)
{
  add_after_key(secrets, value, length, "password");
  add_after_key(secrets, value, length, "passwd");
  add_after_key(secrets, value, length, "pwd");
  add_after_key(secrets, value, length, "secret");
  add_after_key(secrets, value, length, "scram_client_key");
  add_after_key(secrets, value, length, "scram_server_key");
  add_in_address(secrets, value, length);
}

/* ---- escaped text ---------------------------------------------------------------------------- */

/* The next bytes of a text, and those of a secret that they may stand for. */
struct place {
  const char *text, *secret;
  size_t length, left;     /* of each */
};

/* `n` bytes of the text, read as these bytes: how many of the secret match them; 0: none. */
static size_t
secret_fits(const struct place *at, const char *bytes, size_t n)
{
  return n > 0 && n <= at->left && memcmp(at->secret, bytes, n) == 0 ? n : 0;
}

static size_t
fits_character(const struct place *at, uint32_t c)
{
  char bytes[4] = {(char)c, 0, 0, 0};

  if (c < 0x80)
    return secret_fits(at, bytes, 1);
  if (c < 0x800) {
    bytes[0] = (char)(0xc0 | (c >> 6));
    bytes[1] = (char)(0x80 | (c & 0x3f));
    return secret_fits(at, bytes, 2);
  }
  if (c < 0x10000) {
    bytes[0] = (char)(0xe0 | (c >> 12));
    bytes[1] = (char)(0x80 | ((c >> 6) & 0x3f));
    bytes[2] = (char)(0x80 | (c & 0x3f));
    return secret_fits(at, bytes, 3);
  }
  bytes[0] = (char)(0xf0 | ((c >> 18) & 7));
  bytes[1] = (char)(0x80 | ((c >> 12) & 0x3f));
  bytes[2] = (char)(0x80 | ((c >> 6) & 0x3f));
  bytes[3] = (char)(0x80 | (c & 0x3f));
  return secret_fits(at, bytes, 4);
}

/* The number in at most `most` digits of the base; how many there are. */
static size_t
read_digits(const char *text, size_t length, int base, size_t most, uint32_t *ret)
{
  size_t n = 0;

  *ret = 0;
  while (n < length && n < most && hex_digit(text[n]) >= 0 && hex_digit(text[n]) < base)
    *ret = *ret * (uint32_t)base + (uint32_t)hex_digit(text[n++]);
  return n;
}

/* \u00e9; two of them for what is beyond the first 65,536. */
static size_t
fits_utf16(const struct place *at, size_t begin, size_t *ret_taken)
{
  const char *text = at->text + begin;
  size_t length = at->length - begin;
  uint32_t high, low;

  if (read_digits(text, length, 16, 4, &high) != 4)
    return 0;
  *ret_taken = begin + 4;
  if (high < 0xd800 || high > 0xdbff || length < 10 || text[4] != '\\' || text[5] != 'u'
      || read_digits(text + 6, length - 6, 16, 4, &low) != 4)
    return fits_character(at, high);
  *ret_taken = begin + 10;
  return fits_character(at, 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff));
}

/* \n, \x3a, \072, \u003a, \": of C, JSON, YAML, TAP and the shell.  What is escaped twice has more
 * backslashes. */
static size_t
fits_backslashes(const struct place *at, size_t *ret_taken)
{
  static const char letters[] = "abefnrtv", meant[] = "\a\b\033\f\n\r\t\v";
  size_t run = 1;
  uint32_t number;
  size_t n = 0;

  while (run < at->length && at->text[run] == '\\')
    run++;
  if (run < at->length) {
    char c = at->text[run];
    const char *letter = strchr(letters, c);
    const char *digits = at->text + run;
    size_t length = at->length - run;
    if (c == 'x' && read_digits(digits + 1, length - 1, 16, 2, &number) == 2
        && (n = secret_fits(at, (const char[]){(char)number}, 1)) > 0)
      *ret_taken = run + 3;
    else if (c == 'u' && (n = fits_utf16(at, run + 1, ret_taken)) > 0)
      return n;
    else if (read_digits(digits, length, 8, 3, &number) == 3 && number < 256
             && (n = secret_fits(at, (const char[]){(char)number}, 1)) > 0)
      *ret_taken = run + 3;
    else if ((c && letter && (n = secret_fits(at, &meant[letter - letters], 1)) > 0)
             || (n = secret_fits(at, &c, 1)) > 0)
      *ret_taken = run + 1;
  }
  if (n == 0 && (n = secret_fits(at, "\\", 1)) > 0)
    *ret_taken = run > 1 ? 2 : 1;
  return n;
}

/* &lt; and the like, &#39; and &#x27;. */
static size_t
fits_entity(const struct place *at, size_t *ret_taken)
{
  static const struct { const char *name; char meant; } names[] = {
    {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    size_t n = strlen(names[i].name);
    if (n <= at->length && memcmp(at->text, names[i].name, n) == 0) {
      *ret_taken = n;
      return secret_fits(at, &names[i].meant, 1);
    }
  }
  if (at->length < 4 || at->text[1] != '#')
    return 0;
  bool hex = at->text[2] == 'x' || at->text[2] == 'X';
  size_t begin = hex ? 3 : 2;
  uint32_t c;
  size_t n = read_digits(at->text + begin, at->length - begin, hex ? 16 : 10, 7, &c);
  if (n == 0 || begin + n >= at->length || at->text[begin + n] != ';')
    return 0;
  *ret_taken = begin + n + 1;
  return fits_character(at, c);
}

/* The shell's ways to put a quote between quotes. */
static size_t
fits_quote(const struct place *at, size_t *ret_taken)
{
  static const char *const ways[] = {"'\\''", "'\"'\"'"};

  for (size_t i = 0; i < 2; i++) {
    size_t n = strlen(ways[i]);
    if (n <= at->length && memcmp(at->text, ways[i], n) == 0) {
      *ret_taken = n;
      return secret_fits(at, "'", 1);
    }
  }
  return 0;
}

/* How many of the secret's next bytes the next *ret_taken of the text stand for; 0: none. */
static size_t
fits_here(const struct place *at, size_t *ret_taken)
{
  uint32_t number;
  size_t n = 0;

  if (at->text[0] == '\\')
    n = fits_backslashes(at, ret_taken);
  else if (at->text[0] == '&')
    n = fits_entity(at, ret_taken);
  else if (at->text[0] == '\'')
    n = fits_quote(at, ret_taken);
  else if (at->text[0] == '+' && (n = secret_fits(at, " ", 1)) > 0)
    *ret_taken = 1;
  else if (at->text[0] == '%' && read_digits(at->text + 1, at->length - 1, 16, 2, &number) == 2
           && (n = secret_fits(at, (const char[]){(char)number}, 1)) > 0)
    *ret_taken = 3;
  if (n == 0 && (n = secret_fits(at, at->text, 1)) > 0)
    *ret_taken = 1;
  return n;
}

/* Nothing follows, except perhaps a cut escape: text is cut where its buffer ends. */
static bool
is_cut_here(const char *text, size_t length, bool escaped)
{
  const char *newline = memchr(text, '\n', length < LONGEST_ESCAPE ? length : LONGEST_ESCAPE);
  size_t line = newline ? (size_t)(newline - text) : length;

  return line == 0 || (escaped && line < LONGEST_ESCAPE && memchr("\\&%", text[0], 3));
}

/* How many bytes at the beginning of the text are this secret; 0: none, or too few. */
static size_t
covered_by(const char *secret, const char *text, size_t length, bool escaped)
{
  struct place at = {text, secret, length, strlen(secret)};
  size_t known = 0;

  while (at.left > 0 && at.length > 0) {
    size_t taken = 1;
    size_t n = escaped ? fits_here(&at, &taken) : secret_fits(&at, at.text, 1);
    if (n == 0)
      break;
    at = (struct place){at.text + taken, at.secret + n, at.length - taken, at.left - n};
    known += n;
  }
  if (at.left == 0 || known >= LEAST_BEGIN)
    return length - at.length;
  if (known >= LEAST_PART && is_cut_here(at.text, at.length, escaped)) {
    const char *newline = memchr(at.text, '\n', at.length);
    return newline ? (size_t)(newline - text) : length;
  }
  return 0;
}

/* The length of the secret that begins here; 0: none does. */
static size_t
secret_at(const struct secrets *secrets, const char *bytes, size_t length)
{
  size_t most = 0;

  for (size_t i = 0; i < secrets->n; i++) {
    for (int escaped = 0; escaped <= 1; escaped++) {
      size_t covered = covered_by(secrets->items[i], bytes, length, escaped);
      most = covered > most ? covered : most;
    }
  }
  return most;
}

void
secrets_mask(const struct secrets *secrets, struct dk_text *out, const char *bytes, size_t length)
{
  size_t plain = 0;

  if (!secrets || (secrets->n == 0 && !secrets->failed)) {
    dk_text_add(out, bytes, length);
    return;
  }
  if (secrets->failed) {
    dk_text_puts(out, "***");
    return;
  }
  for (size_t i = 0; i < length;) {
    size_t n = secret_at(secrets, bytes + i, length - i);
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
secrets_are_in(const struct secrets *secrets, const char *bytes, size_t length)
{
  for (size_t i = 0; secrets && i < length; i++) {
    if (secret_at(secrets, bytes + i, length - i) > 0)
      return true;
  }
  return secrets && secrets->failed;
}
