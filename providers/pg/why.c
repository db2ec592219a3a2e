/* SPDX-License-Identifier: Apache-2.0 */
/* Why an operation fails: see why.h.  Owns the table of SQLSTATEs. */
#include "providers/pg/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What a SQLSTATE means to a host, and what a person may do about it.  One that has no row of its
 * own goes by that of its class, its first two characters.
 *
 * LOSES: the connection ends, and the outcome of a write is unknown: the answer to a commit may
 * have been on its way.  ENDS: the connection can no longer be used; the request is undone. */
enum effect { STAYS, ENDS, LOSES };

static const char system_refuses[] =
  "the operating system of the server refuses something; see the server's log";
static const char part_is_missing[] =
  "a part of the store is missing: it was removed, damaged by hand, or changed by a later "
  "version; open the store again; if that finds nothing wrong, restore a backup";
static const char part_is_changed[] =
  "a table or function of the store was changed; restore a backup";
static const char addition_refuses[] =
  "a trigger or constraint that is not the store's own refuses this; remove what was added to "
  "the store's tables";
static const char ids_run_out[] =
  "the server has no transaction ids left; VACUUM its databases, as its log says";
static const char same_moment[] = "another call has stored the same at the same moment; try again";

static const struct meaning {
  const char *sqlstate;
  dk_status status;       /* of a lost request: if it only reads */
  enum effect effect;
  const char *next;
} meanings[] = {
  /* connections */
  {"08", DK_UNAVAILABLE, LOSES, "the connection was lost; see the server's log"},
  {"08001", DK_UNAVAILABLE, LOSES, "check that the server runs"},
  {"08004", DK_UNAVAILABLE, LOSES, "the server accepts no connection; see its log"},
  {"57P01", DK_UNAVAILABLE, LOSES, "an administrator ended the session"},
  {"57P02", DK_UNAVAILABLE, LOSES, "the server is recovering from a crash"},
  {"57P03", DK_UNAVAILABLE, LOSES, "the server is starting or stopping"},
  {"57P04", DK_UNAVAILABLE, LOSES, "the database was dropped; check dbname in conninfo"},
  {"57P05", DK_UNAVAILABLE, LOSES, "the server's idle_session_timeout has ended the session"},
  {"25P03", DK_UNAVAILABLE, ENDS, "a transaction was idle for too long; try again"},
  {"25P04", DK_UNAVAILABLE, LOSES,
   "the server's transaction_timeout has ended the session; try again, or increase it (ALTER ROLE "
   "... SET transaction_timeout)"},
  {"57", DK_UNAVAILABLE, ENDS, "see the server's log, and try again"},
  {"57014", DK_BUSY, STAYS,
   "a statement_timeout or an administrator has ended the request; try again, or increase it "
   "(ALTER ROLE ... SET statement_timeout)"},
  /* rights, and existing objects */
  {"28", DK_REFUSED, ENDS, "check the user, the password and the server's pg_hba.conf"},
  {"0P", DK_REFUSED, ENDS, "check the role that conninfo names"},
  {"3D000", DK_REFUSED, ENDS, "name an existing database (dbname in conninfo), or create it: "
                              "CREATE DATABASE ... ENCODING 'UTF8'"},
  {"42501", DK_REFUSED, STAYS,
   "let the owner grant it to the role: USAGE on the schema, EXECUTE on its functions, SELECT and, "
   "to write, INSERT, UPDATE, DELETE on its tables and USAGE on its sequences; to make a store, "
   "CREATE on the database"},
  /* After a failover, or behind a pooler, another session may take writes. */
  {"25006", DK_UNAVAILABLE, ENDS,
   "the session is read-only: name a server that accepts writes (target_session_attrs=read-write "
   "chooses it among several), check default_transaction_read_only, or open the store with "
   "DK_OPEN_READ_ONLY"},
  /* what no longer exists, or is not as it was made */
  {"3F000", DK_REFUSED, STAYS,
   "the store's schema no longer exists; close the store and open it again"},
  {"42P01", DK_CORRUPT, STAYS, part_is_missing},
  {"42703", DK_CORRUPT, STAYS, part_is_missing},
  {"42704", DK_CORRUPT, STAYS, part_is_missing},
  {"42883", DK_CORRUPT, STAYS, part_is_missing},
  {"42P10", DK_CORRUPT, STAYS, part_is_missing}, /* of an index that ON CONFLICT names */
  {"42702", DK_CORRUPT, STAYS, part_is_changed},
  {"42725", DK_CORRUPT, STAYS, part_is_changed},
  {"42804", DK_CORRUPT, STAYS, part_is_changed},
  {"42809", DK_CORRUPT, STAYS, part_is_changed},
  {"0A000", DK_REFUSED, STAYS,
   "the server does not support this; check which server it is (docs/postgresql.md, Versions), "
   "and whether the store's tables were changed"},
  /* what another program has added to it */
  {"23", DK_REFUSED, STAYS, addition_refuses},
  {"38", DK_REFUSED, STAYS, addition_refuses},
  {"39", DK_REFUSED, STAYS, addition_refuses},
  {"P0001", DK_REFUSED, STAYS, addition_refuses},
  /* others were there at the same time */
  {"40", DK_BUSY, STAYS, "other transactions changed the same rows; try again"},
  {"40001", DK_BUSY, STAYS, "other transactions changed the same rows; try again"},
  {"40003", DK_UNAVAILABLE, LOSES, "the server does not know whether it was done"},
  {"40P01", DK_BUSY, STAYS, "the server ended a deadlock; try again"},
  {"55P03", DK_BUSY, STAYS,
   "other transactions hold the lock; try again, or increase lock_timeout"},
  {"55006", DK_BUSY, STAYS, "other sessions use it; try again"},
  {"2BP01", DK_REFUSED, STAYS, "remove or move what is not the store's, and try again"},
  {"23505", DK_CORRUPT, STAYS,
   "a row that the store cannot have made refuses this, or an index that is not its own; remove "
   "what was added to the store's tables, or restore a backup"},
  {"26000", DK_BUSY, STAYS, "try again"},
  {"42P05", DK_BUSY, STAYS, "try again"},
  {"72000", DK_BUSY, STAYS, "try again"},
  /* what there is too little of */
  {"53", DK_UNAVAILABLE, STAYS, "the server has run out of something; see its log, and try again"},
  {"53100", DK_UNAVAILABLE, STAYS, "free space on the server's disk, and try again"},
  {"53200", DK_NO_MEMORY, STAYS, "the server has too little memory; try again, or give it more"},
  {"55000", DK_REFUSED, STAYS,
   "the server or database is not in the right state; if the database accepts no connections: "
   "ALTER DATABASE ... ALLOW_CONNECTIONS true"},
  {"53300", DK_UNAVAILABLE, ENDS,
   "the server, the database or the role has no connection left; lower the setting pool, or raise "
   "max_connections, or the CONNECTION LIMIT"},
  {"53400", DK_UNAVAILABLE, STAYS, "a limit of the server is reached; see its settings"},
  {"54", DK_TOO_LARGE, STAYS, "send less at once"},
  /* what is broken */
  {"58", DK_UNAVAILABLE, STAYS, system_refuses},
  {"F0", DK_UNAVAILABLE, STAYS, "check the server's configuration file"},
  {"XX001", DK_CORRUPT, STAYS, "the database is damaged; restore a backup"},
  {"XX002", DK_CORRUPT, STAYS, "an index is damaged; REINDEX it, and check the disk"},
  {"22021", DK_INVALID, STAYS, "send text in UTF-8"},
};

/* If one SQLSTATE has a meaning that passes and one that lasts, the place of the error decides,
 * never the server's words, which are in its own language.  A place is the constraint that was
 * violated, or the file of the server's source that has found the error; a place that begins with
 * one of these has this meaning. */
static const struct {
  const char *place;
  struct meaning meaning;
} placed[] = {
  {"plancache.c", {"0A000", DK_BUSY, STAYS, "the schema has changed meanwhile; try again"}},
  /* Only a message with an id, and what is in the catalogs, is stored without looking first. */
  {"message_id", {"23505", DK_BUSY, STAYS, same_moment}},
  {"pg_", {"23505", DK_BUSY, STAYS, same_moment}},
  /* What the server has too little of, whatever is sent. */
  {"varsup.c", {"54000", DK_UNAVAILABLE, STAYS, ids_run_out}},
  {"multixact.c", {"54000", DK_UNAVAILABLE, STAYS, ids_run_out}},
  {"async.c", {"54000", DK_UNAVAILABLE, STAYS,
               "the NOTIFY queue is full: a session listens in a transaction that does not end; "
               "end that transaction (pg_notification_queue_usage(), pg_stat_activity)"}},
  /* The server's own files: it has no right to open them, or they do not exist. */
  {"md.c", {"42501", DK_UNAVAILABLE, STAYS, system_refuses}},
  {"fd.c", {"42501", DK_UNAVAILABLE, STAYS, system_refuses}},
  {"md.c", {"58P01", DK_CORRUPT, STAYS,
            "a file of the database is missing; restore a backup"}},
};

static const struct meaning other = {
  "", DK_INTERNAL, STAYS, "this is a fault of the plugin or of the server; report it"};
/* Any error that ended the session. */
static const char after_death[] = "the session has ended; see the server's log, and try again";

/* Functions of the schema may raise a status by its name: DK and its digits. */
static bool
is_raised_status(const char *sqlstate, dk_status *ret_status)
{
  if (strncmp(sqlstate, "DK", 2) != 0)
    return false;
  dk_status status = 0;
  for (const char *digit = sqlstate + 2; *digit; digit++) {
    if (*digit < '0' || *digit > '9')
      return false;
    status = status * 10 + (*digit - '0');
  }
  *ret_status = status;
  return status >= DK_BUSY && status < DK_OUTCOME_UNKNOWN;
}

static const struct meaning *
meaning_of(const char *sqlstate, const char *place)
{
  const struct meaning *found = &other;

  for (size_t i = 0; i < sizeof placed / sizeof placed[0]; i++)
    if (strcmp(placed[i].meaning.sqlstate, sqlstate) == 0 &&
        strncmp(placed[i].place, place, strlen(placed[i].place)) == 0)
      return &placed[i].meaning;
  for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
    if (strcmp(meanings[i].sqlstate, sqlstate) == 0)
      return &meanings[i];
    if (strlen(meanings[i].sqlstate) == 2 && strncmp(meanings[i].sqlstate, sqlstate, 2) == 0)
      found = &meanings[i];
  }
  return found;
}

static dk_status
status_of_loss(bool writes)
{
  return writes ? DK_OUTCOME_UNKNOWN : DK_UNAVAILABLE;
}

dk_status
why_status_of(const char *sqlstate, const char *place, bool writes)
{
  dk_status raised;

  if (!*sqlstate)
    return status_of_loss(writes);
  if (is_raised_status(sqlstate, &raised))
    return raised;
  const struct meaning *meaning = meaning_of(sqlstate, place);
  return meaning->effect == LOSES ? status_of_loss(writes) : meaning->status;
}

bool
why_ends_connection(const char *sqlstate)
{
  return !*sqlstate || meaning_of(sqlstate, "")->effect != STAYS;
}

bool
why_server_is_full(const struct why *why)
{
  return strcmp(why->sqlstate, "53300") == 0;
}

static const char *
next_after(const char *sqlstate, const char *place)
{
  return *sqlstate ? meaning_of(sqlstate, place)->next
                   : "check that the server runs, and try again";
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* The length, at most `length`, at which the text ends with a whole character. */
static size_t
whole_characters(const char *text, size_t length)
{
  while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
    length--;
  return length;
}

/* A text that was cut by its buffer: its last character may be a part. */
static void
end_before_part(char *text, size_t length)
{
  size_t lead = length;

  while (lead > 0 && ((unsigned char)text[lead - 1] & 0xc0) == 0x80)
    lead--;
  unsigned char first = lead > 0 ? (unsigned char)text[lead - 1] : 0;
  size_t needed = first < 0xc0 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  if (lead > 0 && length - lead < needed)
    text[lead - 1] = '\0';
}

dk_status
why_set(struct why *why, dk_status status, const char *format, ...)
{
  va_list args;

  why->status = status;
  why->sqlstate[0] = '\0';
  va_start(args, format);
  int length = vsnprintf(why->text, sizeof why->text, format, args);
  va_end(args);
  if (length < 0)
    why->text[0] = '\0';
  else if ((size_t)length >= sizeof why->text)
    end_before_part(why->text, sizeof why->text - 1);
  return status;
}

const char *
why_line(char *room, size_t size, const char *text)
{
  size_t length = text ? strlen(text) : 0, used = 0;

  while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
    length--;
  for (size_t i = 0; i < length; i++) {
    char c = text[i] == '\t' || text[i] == '\r' ? ' ' : text[i];
    /* An indented line continues the one before. */
    bool is_end = c == '\n' && text[i + 1] != '\t' && text[i + 1] != ' ';
    size_t n = is_end ? 2 : c == '\n' ? 0 : 1;
    if (used + n + sizeof "..." > size) {
      used -= i - whole_characters(text, i);
      memcpy(room + used, "...", 3);
      used += 3;
      break;
    }
    memcpy(room + used, is_end ? "; " : &c, n);
    used += n;
  }
  room[used] = '\0';
  return room;
}

/* ---- the errors of libpq and the server ------------------------------------------------------ */

enum { MOST_MESSAGE = 420, MOST_DETAIL = 160 };

static dk_status
add_sqlstate(struct why *why, const char *sqlstate)
{
  snprintf(why->sqlstate, sizeof why->sqlstate, "%s", sqlstate);
  return why->status;
}

dk_status
why_connection(struct why *why, const PGconn *pg, enum progress progress, bool writes,
               const char *what)
{
  dk_status status = progress == SENT ? status_of_loss(writes) : DK_UNAVAILABLE;
  char room[MOST_MESSAGE];

  why_line(room, sizeof room, pg ? PQerrorMessage(pg) : "");
  return why_set(why, status, "%s: the connection to the server was lost%s%s; %s", what,
                 *room ? ": " : "", room,
                 status == DK_OUTCOME_UNKNOWN ? "the outcome is unknown"
                                              : "nothing was done; try again");
}

/* Verbose messages have it: "FATAL:  28P01: password authentication failed".  Takes it out, and
 * where in the server's source that was.  Of several hosts the last counts. */
static void
take_sqlstate_out(char *text, char sqlstate[6])
{
  enum { LENGTH = 5 };
  char *location;

  for (char *at = strstr(text, ":  "); at; at = strstr(at, ":  ")) {
    at += 3;
    if (strspn(at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != LENGTH ||
        strncmp(at + LENGTH, ": ", 2) != 0)
      continue;
    memcpy(sqlstate, at, LENGTH);
    sqlstate[LENGTH] = '\0';
    memmove(at, at + LENGTH + 2, strlen(at + LENGTH + 2) + 1);
  }
  while ((location = strstr(text, "\nLOCATION:  ")) != NULL) {
    char *end = strchr(location + 1, '\n');
    memmove(location, end ? end : "", end ? strlen(end) + 1 : 1);
  }
}

static const char *
next_after_connect(const char *sqlstate)
{
  if (!*sqlstate)
    return "start the server, or name another: conninfo=\"host=... dbname=... user=...\"; "
           "for tests, tests/with-postgres in the source tree starts a temporary one";
  if (strncmp(sqlstate, "42501", 5) == 0)
    return "let the owner of the database grant it: GRANT CONNECT ON DATABASE ... TO ...";
  if (strncmp(sqlstate, "42", 2) == 0 || strncmp(sqlstate, "22", 2) == 0 ||
      strncmp(sqlstate, "0A", 2) == 0)
    return "check the parameters in conninfo";
  return next_after(sqlstate, "");
}

/* The server will not accept later what it refuses now. */
static dk_status
status_after_connect(const char *sqlstate, bool needs_password)
{
  if (!*sqlstate)
    return needs_password ? DK_REFUSED : DK_UNAVAILABLE;
  dk_status status = why_status_of(sqlstate, "", false);
  return status == DK_UNAVAILABLE || status == DK_NO_MEMORY ? status : DK_REFUSED;
}

dk_status
why_connect(struct why *why, const PGconn *pg, const char *where)
{
  char text[2 * MOST_MESSAGE], room[MOST_MESSAGE], sqlstate[6] = "";

  snprintf(text, sizeof text, "%s", PQerrorMessage(pg));
  take_sqlstate_out(text, sqlstate);
  bool needs_password = !*sqlstate && PQconnectionNeedsPassword(pg);
  const char *next = needs_password ? "give the setting password, or a passfile"
                                    : next_after_connect(sqlstate);
  why_set(why, status_after_connect(sqlstate, needs_password), "cannot connect to %s: %s%s%s%s; %s",
          where, why_line(room, sizeof room, text), *sqlstate ? " (SQLSTATE " : "", sqlstate,
          *sqlstate ? ")" : "", next);
  return add_sqlstate(why, sqlstate);
}

static const char *
field_of(const PGresult *result, int field)
{
  const char *text = PQresultErrorField(result, field);

  return text ? text : "";
}

/* Of a violated constraint its name. */
static const char *
place_of(const PGresult *result)
{
  const char *constraint = field_of(result, PG_DIAG_CONSTRAINT_NAME);

  return *constraint ? constraint : field_of(result, PG_DIAG_SOURCE_FILE);
}

dk_status
why_result(struct why *why, const PGresult *result, bool writes, const char *what)
{
  const char *sqlstate = field_of(result, PG_DIAG_SQLSTATE);
  const char *message = field_of(result, PG_DIAG_MESSAGE_PRIMARY);
  const char *detail = field_of(result, PG_DIAG_MESSAGE_DETAIL);
  const char *hint = field_of(result, PG_DIAG_MESSAGE_HINT);
  const char *severity = field_of(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  const char *place = place_of(result);
  char room[MOST_MESSAGE], detail_room[MOST_DETAIL];
  dk_status status = why_status_of(sqlstate, place, writes), raised;
  bool is_death = strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0;
  bool is_strange = is_death && !is_raised_status(sqlstate, &raised) &&
                    meaning_of(sqlstate, place) == &other;

  if (is_strange || (is_death && writes)) /* the session has ended, wherever the commit was */
    status = status_of_loss(writes);
  why_line(room, sizeof room, *message ? message : PQresultErrorMessage(result));
  if (!*room)
    snprintf(room, sizeof room, "the server's answer does not fit the request");
  detail = *detail ? detail : hint;
  why_line(detail_room, sizeof detail_room, detail);
  if (is_raised_status(sqlstate, &raised)) /* by a function of the schema: its words are ours */
    why_set(why, status, "%s: %s%s%s", what, room, *detail ? ": " : "", detail_room);
  else if (!*sqlstate)
    why_set(why, status, "%s: %s; %s", what, room,
            status == DK_OUTCOME_UNKNOWN ? "the outcome is unknown" : "try again");
  else
    why_set(why, status, "%s: %s%s%s%s (SQLSTATE %s)%s; %s", what, room, *detail ? " (" : "",
            detail_room, *detail ? ")" : "", sqlstate,
            status == DK_OUTCOME_UNKNOWN ? "; the outcome is unknown" : "",
            is_strange ? after_death : next_after(sqlstate, place));
  return add_sqlstate(why, sqlstate);
}

void
why_set_next(struct why *why, const char *next)
{
  char said[sizeof why->text], sqlstate[sizeof why->sqlstate];
  const char *before = next_after(why->sqlstate, "");
  size_t length = strlen(why->text), tail = strlen(before);

  if (length >= tail && strcmp(why->text + length - tail, before) == 0) /* words */
    length -= tail;
  snprintf(said, sizeof said, "%.*s", (int)length, why->text);
  snprintf(sqlstate, sizeof sqlstate, "%s", why->sqlstate);
  why_set(why, why->status, "%s%s", said, next);
  add_sqlstate(why, sqlstate);
}

dk_status
why_tell(const struct why *why, const struct dk_host *host, struct dk_call *call)
{
  if (why->status < DK_BUSY && why->status != DK_CALL_CANCELLED)
    return why->status;
  return host->fail(call, why->status, (struct dk_bytes){why->text, strlen(why->text)});
}
