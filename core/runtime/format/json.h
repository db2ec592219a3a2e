/* SPDX-License-Identifier: Apache-2.0 */
/* JSON (RFC 8259), strictly: a reader into an arena, and a writer onto a text.  Owns nothing.
 *
 * The reader refuses: text after the value, invalid UTF-8, lone surrogates, raw control characters,
 * a name twice in one object, a NUL in a name, and more than JSON_DEPTH nested brackets.  A NUL in
 * a text is allowed.
 */
#ifndef DK_RUNTIME_FORMAT_JSON_H
#define DK_RUNTIME_FORMAT_JSON_H

#include <durakit/runtime.h>

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/text.h"

enum { JSON_DEPTH = 64 };

enum json_kind {
  VALUE_NULL,
  VALUE_FALSE,
  VALUE_TRUE,
  VALUE_NUMBER,
  VALUE_TEXT,
  VALUE_LIST,
  VALUE_OBJECT
};

/* A value; in an object, a member. */
struct json {
  enum json_kind kind;
  dk_str name;               /* the member's; absent elsewhere */
  dk_str text;               /* a text, followed by a NUL; a number as it was written */
  const struct json *first;  /* of a list or an object */
  const struct json *next;
  size_t n;                  /* number of elements */
};

/* DK_OK; DK_CORRUPT with *ret_why (in the arena): where, what was found, and what was expected;
 * DK_NO_MEMORY.  `text` may be freed afterwards.  The arena gets one copy of the text, which
 * contains all texts of the value, and then the value's nodes; *ret_nodes (may be NULL) is the mark
 * between them: an arena that is rewound to it keeps the texts and frees the nodes. */
dk_status json_read(struct dk_arena *arena, dk_str text, const struct json **ret_value,
                    const char **ret_why, struct dk_arena_mark *ret_nodes);

/* The exact number; false: not a number, a fraction, an exponent, or too large. */
bool json_uint64(const struct json *value, uint64_t *ret_number);
bool json_int64(const struct json *value, int64_t *ret_number);

/* ---- writing --------------------------------------------------------------------------------- */

/* Commas are written where they are needed.  The caller writes the document's first byte:
 * dk_text_puts(text, "{"). */
void json_put_name(struct dk_text *text, const char *name);
/* Must be valid UTF-8. */
void json_put_text(struct dk_text *text, dk_str value);
void json_put_uint64(struct dk_text *text, uint64_t value);
void json_put_int64(struct dk_text *text, int64_t value);
/* "true", or a number as text. */
void json_put_literal(struct dk_text *text, const char *literal);
/* '{' or '[', and at the end '}' or ']'. */
void json_open(struct dk_text *text, char bracket);
void json_close(struct dk_text *text, char bracket);

#endif
