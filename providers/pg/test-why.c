/* SPDX-License-Identifier: Apache-2.0 */
/* The status and the text for a SQLSTATE. */
#include "providers/pg/why.h"

#include <stdio.h>
#include <string.h>

#include "conformance/tap/tap.h"

/* A fault that lasts until it is repaired is of class 2, and its text never advises another try. */
static const struct {
  const char *sqlstate;
  dk_status reading, writing;
  bool ends;
} states[] = {
  {"", DK_UNAVAILABLE, DK_OUTCOME_UNKNOWN, true},
  /* lost */
  {"08000", DK_UNAVAILABLE, DK_OUTCOME_UNKNOWN, true},
  {"08006", DK_UNAVAILABLE, DK_OUTCOME_UNKNOWN, true},
  {"08P01", DK_UNAVAILABLE, DK_OUTCOME_UNKNOWN, true},
  {"57P01", DK_UNAVAILABLE, DK_OUTCOME_UNKNOWN, true},
  {"57P02", DK_UNAVAILABLE, DK_OUTCOME_UNKNOWN, true},
  {"57P03", DK_UNAVAILABLE, DK_OUTCOME_UNKNOWN, true},
  {"57P04", DK_UNAVAILABLE, DK_OUTCOME_UNKNOWN, true},
  {"57P05", DK_UNAVAILABLE, DK_OUTCOME_UNKNOWN, true},
  {"40003", DK_UNAVAILABLE, DK_OUTCOME_UNKNOWN, true},
  {"25P03", DK_UNAVAILABLE, DK_UNAVAILABLE, true},
  {"25P04", DK_UNAVAILABLE, DK_OUTCOME_UNKNOWN, true},
  /* of the session: another may take writes */
  {"25006", DK_UNAVAILABLE, DK_UNAVAILABLE, true},
  /* undone, and to be tried again */
  {"40000", DK_BUSY, DK_BUSY, false},
  {"40001", DK_BUSY, DK_BUSY, false},
  {"40P01", DK_BUSY, DK_BUSY, false},
  {"55P03", DK_BUSY, DK_BUSY, false},
  {"55006", DK_BUSY, DK_BUSY, false},
  {"57014", DK_BUSY, DK_BUSY, false},
  {"2BP01", DK_REFUSED, DK_REFUSED, false},
  {"42P05", DK_BUSY, DK_BUSY, false},
  {"26000", DK_BUSY, DK_BUSY, false},
  {"72000", DK_BUSY, DK_BUSY, false},
  /* too little of something */
  {"53000", DK_UNAVAILABLE, DK_UNAVAILABLE, false},
  {"53100", DK_UNAVAILABLE, DK_UNAVAILABLE, false},
  {"53200", DK_NO_MEMORY, DK_NO_MEMORY, false},
  {"53300", DK_UNAVAILABLE, DK_UNAVAILABLE, true},
  {"53400", DK_UNAVAILABLE, DK_UNAVAILABLE, false},
  {"58030", DK_UNAVAILABLE, DK_UNAVAILABLE, false},
  {"F0000", DK_UNAVAILABLE, DK_UNAVAILABLE, false},
  {"54000", DK_TOO_LARGE, DK_TOO_LARGE, false},
  {"54011", DK_TOO_LARGE, DK_TOO_LARGE, false},
  /* refused */
  {"28000", DK_REFUSED, DK_REFUSED, true},
  {"28P01", DK_REFUSED, DK_REFUSED, true},
  {"0P000", DK_REFUSED, DK_REFUSED, true},
  {"3D000", DK_REFUSED, DK_REFUSED, true},
  {"3F000", DK_REFUSED, DK_REFUSED, false},
  {"42501", DK_REFUSED, DK_REFUSED, false},
  {"0A000", DK_REFUSED, DK_REFUSED, false},
  {"23000", DK_REFUSED, DK_REFUSED, false},
  {"23502", DK_REFUSED, DK_REFUSED, false},
  {"23503", DK_REFUSED, DK_REFUSED, false},
  {"23514", DK_REFUSED, DK_REFUSED, false},
  {"23P01", DK_REFUSED, DK_REFUSED, false},
  {"38000", DK_REFUSED, DK_REFUSED, false},
  {"39P01", DK_REFUSED, DK_REFUSED, false},
  {"P0001", DK_REFUSED, DK_REFUSED, false},
  /* damaged */
  {"42P01", DK_CORRUPT, DK_CORRUPT, false},
  {"42702", DK_CORRUPT, DK_CORRUPT, false},
  {"42703", DK_CORRUPT, DK_CORRUPT, false},
  {"42704", DK_CORRUPT, DK_CORRUPT, false},
  {"42725", DK_CORRUPT, DK_CORRUPT, false},
  {"42804", DK_CORRUPT, DK_CORRUPT, false},
  {"42809", DK_CORRUPT, DK_CORRUPT, false},
  {"42883", DK_CORRUPT, DK_CORRUPT, false},
  {"42P10", DK_CORRUPT, DK_CORRUPT, false},
  {"23505", DK_CORRUPT, DK_CORRUPT, false},
  {"22021", DK_INVALID, DK_INVALID, false},
  {"XX001", DK_CORRUPT, DK_CORRUPT, false},
  {"XX002", DK_CORRUPT, DK_CORRUPT, false},
  /* faults */
  {"XX000", DK_INTERNAL, DK_INTERNAL, false},
  {"42601", DK_INTERNAL, DK_INTERNAL, false},
  {"22003", DK_INTERNAL, DK_INTERNAL, false},
  {"25P02", DK_INTERNAL, DK_INTERNAL, false},
  {"ZZZZZ", DK_INTERNAL, DK_INTERNAL, false},
  /* raised by functions of the schema */
  {"DK100", DK_BUSY, DK_BUSY, false},
  {"DK201", DK_LOCK_LOST, DK_LOCK_LOST, false},
  {"DK205", DK_CORRUPT, DK_CORRUPT, false},
  {"DK000", DK_INTERNAL, DK_INTERNAL, false},
  {"DK300", DK_INTERNAL, DK_INTERNAL, false},
  {"DK2X1", DK_INTERNAL, DK_INTERNAL, false},
};

/* One SQLSTATE, two meanings. */
static const struct {
  const char *sqlstate, *place;
  dk_status status;
} placed[] = {
  {"0A000", "plancache.c", DK_BUSY},      /* cached plan must not change result type */
  {"0A000", "parse_relation.c", DK_REFUSED},
  {"0A000", "xact.c", DK_REFUSED},
  {"0A000", "", DK_REFUSED},
  {"23505", "message_id", DK_BUSY},
  {"23505", "message_pkey", DK_CORRUPT},
  {"23505", "message_payload_key", DK_CORRUPT}, /* as PostgreSQL names a stranger's */
  {"23505", "pg_type_typname_nsp_index", DK_BUSY},
  {"23505", "history_pkey", DK_CORRUPT},
  {"23505", "somebody_s_index", DK_CORRUPT},
  {"54000", "varsup.c", DK_UNAVAILABLE},  /* wraparound */
  {"54000", "multixact.c", DK_UNAVAILABLE},
  {"54000", "async.c", DK_UNAVAILABLE},   /* a full queue of NOTIFY */
  {"54000", "nbtutils.c", DK_TOO_LARGE},
  {"42501", "aclchk.c", DK_REFUSED},
  {"42501", "md.c", DK_UNAVAILABLE},      /* a file system that became read-only */
  {"42501", "fd.c", DK_UNAVAILABLE},
  {"58P01", "dfmgr.c", DK_UNAVAILABLE},   /* a library that is being replaced */
  {"58P01", "md.c", DK_CORRUPT},
  {"XX000", "md.c", DK_INTERNAL},
};

static void
test_places(void)
{
  for (size_t i = 0; i < sizeof placed / sizeof placed[0]; i++)
    for (int writes = 0; writes < 2; writes++)
      cmp_ok(why_status_of(placed[i].sqlstate, placed[i].place, writes != 0), "==",
             placed[i].status, "'%s' of '%s'", placed[i].sqlstate, placed[i].place);
}

static void
test_states(void)
{
  for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
    const char *sqlstate = states[i].sqlstate;
    cmp_ok(why_status_of(sqlstate, "", false), "==", states[i].reading, "'%s' to what reads",
           sqlstate);
    cmp_ok(why_status_of(sqlstate, "", true), "==", states[i].writing, "'%s' to what writes",
           sqlstate);
    cmp_ok(why_ends_connection(sqlstate), "==", states[i].ends, "whether '%s' ends it", sqlstate);
  }
}

static const char *
line(size_t size, const char *text)
{
  static char room[64];

  memset(room, 'x', sizeof room);
  const char *made = why_line(room, size, text);
  ok(made == room && room[size] == 'x' && strlen(room) < size, "it keeps to its room");
  return room;
}

static void
test_lines(void)
{
  is(line(40, "a word"), "a word", "a line is as it was");
  is(line(40, NULL), "", "nothing is an empty line");
  is(line(40, "a word\n\n"), "a word", "its end is left out");
  is(line(40, "one\n\tand on\ntwo"), "one and on; two", "lines become one");
  is(line(40, "one\r\n  and on"), "one   and on", "an indented line continues");
  is(line(10, "0123456789"), "012345...", "a long one is cut");
  is(line(10, "012345"), "012345", "one that there is room for, with dots, is not");
  is(line(10, "01234\303\2446789"), "01234...", "nor inside a character");
  is(line(10, "0123\303\2446789"), "0123\303\244...", "which may be the last");
}

static void
test_cut(void)
{
  struct why why;
  char text[sizeof why.text + 10];

  cmp_ok(why_set(&why, DK_BUSY, "%s", "as it is"), "==", DK_BUSY, "it gives the status back");
  is(why.text, "as it is", "and has the text");
  for (size_t before = 0; before < 4; before++) {
    memset(text, 'a', sizeof text);
    memcpy(text + sizeof why.text - 1 - before, "\360\237\230\200", 4);
    text[sizeof text - 1] = '\0';
    why_set(&why, DK_BUSY, "%s", text);
    cmp_ok(strlen(why.text), "==", sizeof why.text - 1 - before,
           "%zu bytes of a character are left out", before);
  }
  memset(text, 'a', sizeof text - 1);
  memcpy(text + sizeof why.text - 3, "\303\244", 2);
  why_set(&why, DK_BUSY, "%s", text);
  cmp_ok(strlen(why.text), "==", sizeof why.text - 1, "a whole one stays");
}

/* ---- the texts ------------------------------------------------------------------------------- */

struct dk_call {
  dk_status status;
  char text[1000];
  int n;
};

static dk_status
note_fail(struct dk_call *call, dk_status status, struct dk_bytes why)
{
  call->n++;
  call->status = status;
  snprintf(call->text, sizeof call->text, "%.*s", (int)why.len, why.ptr);
  return status;
}

static void
test_tell(void)
{
  const struct dk_host host = {.struct_size = sizeof host, .fail = note_fail};
  static const dk_status quiet[] = {DK_OK, DK_NOTHING};
  struct dk_call call = {0};
  struct why why;

  for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++) {
    why_set(&why, quiet[i], "not to be reported");
    cmp_ok(why_tell(&why, &host, &call), "==", quiet[i], "the status comes back");
  }
  cmp_ok(call.n, "==", 0, "what is no error is not reported");
  why_set(&why, DK_CALL_CANCELLED, "the call waited");
  cmp_ok(why_tell(&why, &host, &call), "==", DK_CALL_CANCELLED, "a cancelled call's status");
  is(call.text, "the call waited", "and what it waited for is reported");
  why_set(&why, DK_REFUSED, "told");
  cmp_ok(why_tell(&why, &host, &call), "==", DK_REFUSED, "an error comes back");
  is(call.text, "told", "and is reported");
}

/* A connection that was never made has a message; a missing connection has a text too. */
static void
test_connections(void)
{
  PGconn *pg = PQconnectdb("host=/nowhere user=me password=hunter2");
  struct why why;

  cmp_ok(why_connect(&why, pg, "the server of host=/nowhere"), "==", DK_UNAVAILABLE, "no server");
  ok(strncmp(why.text, "cannot connect to the server of host=/nowhere: ", 47) == 0, "says where");
  ok(!strstr(why.text, "hunter2"), "and no password");
  is(why.sqlstate, "", "there is no SQLSTATE");
  cmp_ok(why_connection(&why, pg, NOTHING_SENT, true, "commit"), "==", DK_UNAVAILABLE,
         "lost before anything was sent");
  cmp_ok(why_connection(&why, pg, SENT, true, "commit"), "==", DK_OUTCOME_UNKNOWN,
         "lost after a write was sent");
  cmp_ok(why_connection(&why, pg, SENT, false, "commit"), "==", DK_UNAVAILABLE,
         "lost after a question was sent");
  PQfinish(pg);
  cmp_ok(why_connection(&why, NULL, SENT, true, "commit"), "==", DK_OUTCOME_UNKNOWN,
         "without a connection");
  is(why.text, "commit: the connection to the server was lost; the outcome is unknown",
     "its words");

  PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_FATAL_ERROR);
  cmp_ok(why_result(&why, result, true, "commit"), "==", DK_OUTCOME_UNKNOWN,
         "a result without a word");
  PQclear(result);
}

int
main(void)
{
  plan(NO_PLAN);
  test_states();
  test_places();
  test_lines();
  test_cut();
  test_tell();
  test_connections();
  return done_testing();
}
