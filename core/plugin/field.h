/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of single fields of a request.  A form walks over a request and counts what the limits
 * apply to, because size is judged after form (ERR-5).  Owns nothing. */
#ifndef DK_PLUGIN_FIELD_H
#define DK_PLUGIN_FIELD_H

#include "core/plugin/call.h"

#define DK_NO_INDEX SIZE_MAX

/* One walk over one request. */
struct dk_form {
  struct dk_call *call;
  const struct dk_limits *limits;
  /* Where the walk is: "worker_items[3].", "completion." or "". */
  const char *list; /* NULL: in the request itself */
  size_t index;     /* DK_NO_INDEX: a single item, not a list */
  /* The counts so far. */
  uint64_t bytes, items;
  uint64_t too_large; /* the first payload beyond the limit; 0: none */
  char too_large_at[64];
};

struct dk_form dk_form_begin(struct dk_call *call);

__attribute__((format(printf, 4, 5))) dk_status
dk_form_refuse(const struct dk_form *form, dk_status status, const char *field, const char *format,
               ...);

/* struct_size is at least the size in ABI 2.0 (DK_SIZE_TO). */
dk_status dk_form_struct(const struct dk_form *form, uint32_t struct_size, size_t least);
dk_status dk_form_flags(const struct dk_form *form, uint32_t flags, uint32_t known);
/* One of 0 to `most`. */
dk_status dk_form_value(const struct dk_form *form, const char *field, int32_t value, int32_t most);
/* An id as ERR-6 requires it; absent only if that is allowed. */
dk_status dk_form_text(struct dk_form *form, const char *field, struct dk_bytes text,
                       bool may_be_absent);
/* Any bytes, counted against max_payload. */
dk_status dk_form_payload(struct dk_form *form, const char *field, struct dk_bytes payload);
dk_status dk_form_absent(const struct dk_form *form, const char *field, struct dk_bytes bytes,
                         const char *why);
/* 1 to 2^63 - 1 */
dk_status dk_form_number(const struct dk_form *form, const char *field, uint64_t number);
dk_status dk_form_at_least(const struct dk_form *form, const char *field, int64_t value,
                           int64_t least);
/* A list that is not NULL if it has elements; counts them. */
dk_status dk_form_list(struct dk_form *form, const char *field, const void *first, size_t n);
dk_status dk_form_extension(const struct dk_form *form, const char *field, const char *extension);
/* DK_LOCK_LOST if no provider can have issued this token. */
dk_status dk_form_token(const struct dk_form *form, struct dk_bytes token);

/* The end of the walk: sizes. */
dk_status dk_form_payloads_fit(const struct dk_form *form);
dk_status dk_form_commit_fits(const struct dk_form *form);

#endif
