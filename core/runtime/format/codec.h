/* SPDX-License-Identifier: Apache-2.0 */
/* The form of payloads: one table, which encoder and decoder both use, so that they cannot differ.
 * Owns nothing. */
#ifndef DK_RUNTIME_FORMAT_CODEC_H
#define DK_RUNTIME_FORMAT_CODEC_H

#include <stdbool.h>

#include "core/runtime/format/event.h"

/* The format that is written, and the newest that is read. */
enum { CODEC_FORMAT = 1 };

/* The suffix of a member's name if its text is not valid UTF-8. */
#define CODEC_BASE64 ".base64"

enum member_type {
  MEMBER_TEXT,    /* dk_str; absent: left out */
  MEMBER_UINT,    /* uint64_t; 0: left out */
  MEMBER_INT,     /* int64_t; 0: left out */
  MEMBER_CODE,    /* enum code, as a word */
  MEMBER_PARENT,  /* struct parent, as an object; left out if it has no instance */
  MEMBER_CARRIED  /* struct carried * with size_t behind it, as a list of objects */
};

/* A member of a JSON object and of the struct that it is read into. */
struct member {
  const char *name;       /* NULL: the end of the list */
  enum member_type type;
  size_t offset;
  bool required;
};

struct shape {
  const char *kind;
  const struct member *members;
};

/* A kind of payload: events, messages, task orders. */
struct record {
  const char *what;             /* "event" */
  const struct shape *shapes;   /* by kind; the first, for kind 0, is empty */
  size_t n_shapes;
  size_t kind_offset;           /* offset of the struct's kind, which has an enum's size */
  const struct member *common;  /* members of every kind; NULL: none */
};

/* A task order as the codec sees it: with a kind, although there is only one. */
struct coded_task_order {
  unsigned kind;
  struct task_order order;
};

extern const struct record codec_events, codec_messages, codec_task_orders;
extern const struct member codec_parent[], codec_carried[];
extern const char *const codec_codes[N_CODES];

/* Adds the payload of a struct of this record. */
void codec_encode(struct dk_text *text, const struct record *record, unsigned kind,
                  const void *value);
/* Reads it into the struct, which must be all zeros before. */
dk_status codec_decode(struct dk_arena *arena, dk_str payload, const struct record *record,
                       void *value, const char **ret_why);

/* Base64 (RFC 4648, padded).  Decodes in place; returns the length, or -1 if it is not base64. */
void base64_encode(struct dk_text *text, dk_str bytes);
ptrdiff_t base64_decode(char *bytes, size_t size);

#endif
