/* SPDX-License-Identifier: Apache-2.0 */
/* Text: a string that grows, for messages and reports that are put together piece by piece.
 *
 * Out of memory is remembered, not returned: the calls after it do nothing, and the one who uses
 * the text asks dk_text_failed once.  A text belongs to one thread at a time; it has no lock.
 */
#ifndef DK_BASE_TEXT_H
#define DK_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* `length` may be read; the rest belongs to text.c. */
struct dk_text {
  char *bytes; /* NULL before the first byte; then always ends in a NUL */
  size_t length;
  size_t capacity;
  bool failed;
};

/* An initial value as good as dk_text_init. */
#define DK_TEXT_EMPTY                                                                              \
  {                                                                                                \
    NULL, 0, 0, false                                                                              \
  }

/* Who will read the text, and so what has to be escaped in it.  In all three, characters that print
 * stay as they are, in UTF-8, and each byte of what is not valid UTF-8 or does not print (control
 * characters, line and paragraph separators, marks that turn the direction of a line) becomes \xHH.
 */
enum dk_escape {
  DK_ESCAPE_YAML,    /* inside "...": also \\ \" \t \n; \x3a for a colon before a space or what
                        may be one */
  DK_ESCAPE_VISIBLE, /* for a person: also \t \n; a backslash stays as it is */
  DK_ESCAPE_TAP      /* a description: also \\ \# \t \n */
};

void dk_text_init(struct dk_text *text);

/* Frees.  NULL is allowed; the text may be used again, empty. */
void dk_text_done(struct dk_text *text);

/* Makes it empty, forgets a failure, keeps the memory. */
void dk_text_reset(struct dk_text *text);

/* None of these may be given a piece of the text itself. */
void dk_text_add(struct dk_text *text, const void *bytes, size_t size);
void dk_text_puts(struct dk_text *text, const char *string);
void dk_text_printf(struct dk_text *text, const char *format, ...)
  __attribute__((format(printf, 2, 3)));
void dk_text_vprintf(struct dk_text *text, const char *format, va_list args)
  __attribute__((format(printf, 2, 0)));
void dk_text_add_escaped(struct dk_text *text, const void *bytes, size_t size, enum dk_escape how);
/* Adds another text, with its failure: what is put together of texts is whole, or has failed. */
void dk_text_add_text(struct dk_text *text, const struct dk_text *piece);

/* It is not whole, for a piece of it could not be made. */
void dk_text_fail(struct dk_text *text);

/* The text so far, never NULL.  Good until the next change. */
const char *dk_text_str(const struct dk_text *text);

/* Memory or a format failed once since init or reset: the text stops before that piece. */
bool dk_text_failed(const struct dk_text *text);

#endif
