/* SPDX-License-Identifier: Apache-2.0 */
/* What the store has returned, for people and for programs.  Owns nothing.
 *
 * For people all text of the store is escaped, and none is cut.  In JSON text that is not UTF-8 is
 * written as base64, in the member of the same name followed by _base64.
 */
#ifndef DK_RUNNER_OPERATE_SHOW_H
#define DK_RUNNER_OPERATE_SHOW_H

#include <durakit/manage.h>
#include <durakit/runtime.h>

#include <jansson.h>

#include "core/base/text.h"

/* ---- for people ------------------------------------------------------------------------------ */

void show_text(struct dk_text *out, dk_str text);
void show_string(struct dk_text *out, const char *string);
void show_time(struct dk_text *out, int64_t ms);
/* " by NAME: REASON", each only if there is one. */
void show_why(struct dk_text *out, dk_str by, dk_str why);
/* "  label       text" as a line, if there is text. */
void show_field(struct dk_text *out, const char *label, dk_str text);

/* ---- JSON: absent is null -------------------------------------------------------------------- */

void show_json_text(json_t *object, const char *key, dk_str text);
void show_json_string(json_t *object, const char *key, const char *string);
void show_json_time(json_t *object, const char *key, int64_t ms); /* 0 is null */
void show_json_number(json_t *object, const char *key, uint64_t number);
void show_json_bool(json_t *object, const char *key, bool value);
/* An instance, with its result: output, error, or cancelled: at, by, reason. */
json_t *show_json_instance(const struct dk_instance_info *info);
json_t *show_json_removed(const struct dk_removed *removed);

#endif
