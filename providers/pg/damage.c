/* SPDX-License-Identifier: Apache-2.0 */
/* A row that cannot be handed over must not block all others.  It is set aside for an hour, as if
 * it were locked, and the fetch that met it reports it by its name (DK_CORRUPT).
 *
 * If the server cannot read a row, the whole fetch fails: schema/damage.sql finds the row.  If the
 * server can read it, but no host would accept it, the plugin finds it in the answer, and makes its
 * claim longer. */
#include "providers/pg/handle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_LOOKS = 8 };

/* ---- what no host takes ---------------------------------------------------------------------- */

/* Bytes of the character at `text`, or 0: it is none, or too long, or no scalar value. */
static size_t
character(const unsigned char *text, size_t size)
{
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t n = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3
           : text[0] < 0xf5 ? 4 : 0;
  uint32_t value = n < 2 ? text[0] : text[0] & (0x7fu >> n);

  for (size_t i = 1; i < n && i < size; i++) {
    if ((text[i] & 0xc0) != 0x80)
      return 0;
    value = value << 6 | (text[i] & 0x3fu);
  }
  bool is_surrogate = value >= 0xd800 && value < 0xe000;
  return n > size || value < least[n] || value > 0x10ffff || is_surrogate ? 0 : n;
}

static bool
is_id(struct dk_bytes text)
{
  const unsigned char *bytes = (const unsigned char *)text.ptr;
  size_t at = 0;

  if (!text.ptr || text.len < 1 || text.len > MAX_ID || memchr(text.ptr, '\0', text.len))
    return false;
  for (size_t n = 1; at < text.len && n > 0; at += n)
    n = character(bytes + at, text.len - at);
  return at == text.len;
}

bool
fault_of_id(struct fault *f, const char *what, struct dk_bytes text, bool may_be_absent)
{
  if (is_id(text) || (may_be_absent && !text.ptr))
    return false;
  snprintf(f->text, sizeof f->text, "%s is not a text of 1 to %d bytes", what, (int)MAX_ID);
  return true;
}

bool
fault_of_number(struct fault *f, const char *what, int64_t number, int64_t most)
{
  if (number >= 1 && number <= most)
    return false;
  snprintf(f->text, sizeof f->text, "%s is %" PRId64 "; expected 1 to %" PRId64, what, number,
           most);
  return true;
}

bool
fault_of_payload(struct fault *f, const char *what, int64_t number, struct dk_bytes payload)
{
  if (payload.len <= MAX_PAYLOAD)
    return false;
  snprintf(f->text, sizeof f->text, "%s %" PRId64 " has %zu bytes; at most %d can be delivered",
           what, number, payload.len, (int)MAX_PAYLOAD);
  return true;
}

/* ---- what the server cannot read ------------------------------------------------------------- */

/* For a text that may be no id: a part of it, up to a whole character; a dot for each byte that
 * does not print. */
static const char *
readable(char room[80], struct dk_bytes text)
{
  size_t n = text.len < 79 ? text.len : 79;

  if (is_id(text)) {
    while (n > 0 && n < text.len && ((unsigned char)text.ptr[n] & 0xc0) == 0x80)
      n--;
    snprintf(room, 80, "%.*s", (int)n, text.ptr);
    return room;
  }
  for (size_t i = 0; i < n; i++)
    room[i] = text.ptr[i] >= ' ' && text.ptr[i] < 127 ? text.ptr[i] : '.';
  room[n] = '\0';
  return room;
}

/* Another has set it aside, or it was something else. */
static dk_status
find_nothing(struct operation *op, const struct why *first)
{
  if (op->tries < MOST_LOOKS)
    return ATTEMPT_AGAIN;
  return why_tell(first, op->h->host, op->call);
}

dk_status
damage_refuse(struct operation *op, struct dk_bytes instance, const char *what)
{
  char room[80], line[400];

  return refuse(op, DK_CORRUPT, "instance \"%s\": %s; this cannot be delivered, and is set aside "
                "for an hour; repair or remove it, as docs/postgresql.md describes",
                readable(room, instance), why_line(line, sizeof line, what));
}

dk_status
damage_tell(struct operation *op, struct dk_bytes instance, const struct fault *f)
{
  char room[80];

  return refuse(op, DK_CORRUPT, "instance \"%s\": %s; this cannot be delivered; repair or remove "
                "it, as docs/postgresql.md describes", readable(room, instance), f->text);
}

/* Not for a failure with another cause: an unreachable server, a missing right; and no row is the
 * cause of a missing table. */
bool
damage_may_be(const struct why *why)
{
  if (strncmp(why->sqlstate, "42", 2) == 0)
    return false;
  return why->status == DK_CORRUPT || why->status == DK_INTERNAL || why->status == DK_TOO_LARGE ||
         why->status == DK_INVALID || strncmp(why->sqlstate, "58", 2) == 0;
}

/* If even that fails, the failure of the fetch is reported. */
dk_status
damage_find(struct operation *op, const char *function, struct values *v, const struct why *first)
{
  PGresult *r = NULL;
  struct why second;

  value_bigint(v, MAX_PAYLOAD);
  value_bigint(v, SET_ASIDE_MS);
  op->keeps = &second;
  dk_status status = operation_run(op, function, true, v, "tt", &r);
  op->keeps = NULL;
  if (status != DK_OK)
    return why_tell(first, op->h->host, op->call);
  status = PQntuples(r) > 0
             ? damage_refuse(op, field_bytes(r, 0, 0), PQgetvalue(r, 0, 1))
             : find_nothing(op, first);
  PQclear(r);
  return status;
}
