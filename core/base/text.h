/* SPDX-License-Identifier: Apache-2.0 */
/* Text: a string that grows, for messages and reports that are built piece by piece.
 *
 * A lack of memory is remembered, not returned: later calls do nothing, and the caller checks
 * dk_text_failed once, at the end.  A text belongs to one thread at a time; it has no lock.
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

/* The kind of reader, which decides what must be escaped in the text.  In all three, printable
 * characters are unchanged, in UTF-8, and each byte of what is not valid UTF-8 or not printable
 * (control characters, line and paragraph separators, marks that turn the direction of a line)
 * becomes \xHH.
 */
enum dk_escape {
  DK_ESCAPE_YAML,    /* inside "...": also \\ \" \t \n; \x3a for a colon before a space or what
                        may be one */
  DK_ESCAPE_VISIBLE, /* for a person: also \t
                        ; a backslash is unchanged */
  DK_ESCAPE_TAP      /* a description: also \\ \# \t \n */
};

void dk_text_init(struct dk_text *text);

/* Frees.  NULL is allowed; the text may be used again, empty. */
void dk_text_done(struct dk_text *text);

/* Makes it empty, clears a failure, keeps the memory. */
void dk_text_reset(struct dk_text *text);

/* Do not pass a piece of the text itself to any of these. */
void dk_text_add(struct dk_text *text, const void *bytes, size_t size);
void dk_text_puts(struct dk_text *text, const char *string);
void dk_text_printf(struct dk_text *text, const char *format, ...)
  __attribute__((format(printf, 2, 3)));
void dk_text_vprintf(struct dk_text *text, const char *format, va_list args)
  __attribute__((format(printf, 2, 0)));
void dk_text_add_escaped(struct dk_text *text, const void *bytes, size_t size, enum dk_escape how);
/* Adds another text, or its failure: the result is complete, or has failed. */
void dk_text_add_text(struct dk_text *text, const struct dk_text *piece);

/* Marks the text as failed, because a piece of it could not be made. */
void dk_text_fail(struct dk_text *text);

/* The text so far, never NULL.  Valid until the next change. */
const char *dk_text_str(const struct dk_text *text);

/* An allocation or a format has failed since init or reset: the text stops before that piece. */
bool dk_text_failed(const struct dk_text *text);

#endif
