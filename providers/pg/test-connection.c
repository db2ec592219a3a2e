/* SPDX-License-Identifier: Apache-2.0 */
/* A connection, with a server that misbehaves at each place: what is reported, and that nothing is
 * left, blocks, or kills the process (a write to a closed socket raises no SIGPIPE). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conformance/tap/tap.h"
#include "providers/pg/test-lone.h"

/* ---- connecting ------------------------------------------------------------------------------ */

struct greeting {
  const char *version, *encoding;
  bool reports_nothing; /* so it seems if libpq has no memory to note what is reported */
  struct fake_session session;
  const char *severity, *sqlstate, *message; /* instead of a greeting, or a notice before it */
};

static void
serve_greeting(int fd, void *context)
{
  const struct greeting *g = context;

  if (!fake_read_start(fd))
    return;
  if (g->sqlstate && strcmp(g->severity, "FATAL") == 0) {
    fake_error(fd, 'E', g->severity, g->sqlstate, g->message);
    return;
  }
  fake_welcome(fd);
  if (g->sqlstate)
    fake_error(fd, 'N', g->severity, g->sqlstate, g->message);
  if (g->reports_nothing)
    fake_ready(fd, 'I');
  else
    fake_greet(fd, g->version ? g->version : "15.1", g->encoding ? g->encoding : "UTF8");
  if (!fake_read_request(fd))
    return;
  fake_session(fd, &g->session);
  fake_answer_all(fd);
}

static void
test_greetings(void)
{
  static const struct {
    const char *name;
    struct greeting greeting;
    uint32_t flags;
    dk_status status;
    const char *words;
  } rows[] = {
    {"a suitable server", {.version = "15.1"}, 0, DK_OK, ""},
    {"the first version", {.version = "13.0"}, 0, DK_OK, ""},
    {"an old server", {.version = "12.9"}, 0, DK_REFUSED, "version 12.9; expected 13"},
    {"an older one", {.version = "9.6.24"}, 0, DK_REFUSED, "version 9.6.24; expected 13"},
    {"another encoding", {.encoding = "LATIN1"}, 0, DK_REFUSED, "LATIN1; expected UTF8"},
    {"no version and no encoding", {.reports_nothing = true}, 0, DK_NO_MEMORY,
     "give the process more memory, and try again"},
    {"a standby", {.session = {.is_standby = true}}, 0, DK_UNAVAILABLE,
     "target_session_attrs=read-write"},
    {"a standby, to read", {.session = {.is_standby = true}}, DK_OPEN_READ_ONLY, DK_OK, ""},
    {"one that must not write", {.session = {.is_own = true, .is_read_only = true}}, 0,
     DK_UNAVAILABLE, "default_transaction_read_only is on for the role \"me\""},
    {"the same, to read", {.session = {.is_own = true, .is_read_only = true}}, DK_OPEN_READ_ONLY,
     DK_OK, ""},
    {"serializable", {.session = {.is_own = true, .isolation = "serializable"}}, 0, DK_OK, ""},
    {"serializable, through a pooler", {.session = {.isolation = "serializable"}}, 0, DK_REFUSED,
     "expected read committed"},
    {"a wrong password", {.severity = "FATAL", .sqlstate = "28P01", .message = "no, \"me\""}, 0,
     DK_REFUSED, "FATAL:  no, \"me\" (SQLSTATE 28P01); check the user, the pass"},
    {"no database", {.severity = "FATAL", .sqlstate = "3D000", .message = "no"}, 0, DK_REFUSED,
     "(SQLSTATE 3D000); name an existing database"},
    {"no right to connect", {.severity = "FATAL", .sqlstate = "42501", .message = "no"}, 0,
     DK_REFUSED, "GRANT CONNECT"},
    {"too many connections", {.severity = "FATAL", .sqlstate = "53300", .message = "no"}, 0,
     DK_UNAVAILABLE, "lower the setting pool"},
    {"starting up", {.severity = "FATAL", .sqlstate = "57P03", .message = "no"}, 0, DK_UNAVAILABLE,
     "starting or stopping"},
    {"a bad option", {.severity = "FATAL", .sqlstate = "42704", .message = "no"}, 0, DK_REFUSED,
     "check the parameters in conninfo"},
    {"no memory", {.severity = "FATAL", .sqlstate = "53200", .message = "no"}, 0, DK_NO_MEMORY,
     "too little memory"},
    {"a fault", {.severity = "FATAL", .sqlstate = "XX000", .message = "no"}, 0, DK_REFUSED,
     "XX000"},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct lone s;
    struct greeting greeting = rows[i].greeting;
    lone_begin(&s, rows[i].flags, serve_greeting, &greeting);
    expect_open(&s, rows[i].status, rows[i].words, rows[i].name);
    if (rows[i].status != DK_OK)
      ok(!strstr(s.why.text, "LOCATION"), "no place in the server's source is shown");
    if (greeting.sqlstate)
      is(s.why.sqlstate, greeting.sqlstate, "its SQLSTATE is known");
    lone_end(&s);
  }
}

static void
test_notices(void)
{
  struct greeting greeting = {.severity = "WARNING", .sqlstate = "01000", .message = "mind"};
  struct lone s;

  lone_begin(&s, 0, serve_greeting, &greeting);
  FILE *kept = tmpfile();
  int err = dup(STDERR_FILENO);
  if (!kept || err < 0 || dup2(fileno(kept), STDERR_FILENO) < 0)
    BAIL_OUT("standard error cannot be kept");
  dk_status status = connection_open(&s.c, &s.call, &s.why);
  fflush(stderr);
  dup2(err, STDERR_FILENO);
  close(err);
  cmp_ok(status, "==", DK_OK, "a warning is not a refusal");
  cmp_ok(lseek(fileno(kept), 0, SEEK_END), "==", 0, "nothing is written to standard error");
  fclose(kept);
  is(s.host.log, "the server says: mind", "a warning goes to the log");
  cmp_ok(s.host.level, "==", 2, "as one");
  lone_end(&s);
}

static void
serve_rubbish(int fd, void *context)
{
  const char *rubbish = context;

  fake_send(fd, rubbish, strlen(rubbish));
}

static void
test_strangers(void)
{
  static const char *const rubbish[] = {"", "SSH-2.0-OpenSSH_9.2p1\r\n", "R", "E\1\1\1\1\1\1",
                                        "HTTP/1.0 400 Bad Request\r\n\r\n"};
  struct lone s;

  for (size_t i = 0; i < sizeof rubbish / sizeof rubbish[0]; i++) {
    char *said = strdup(rubbish[i]);
    lone_begin(&s, 0, serve_rubbish, said);
    expect_open(&s, DK_UNAVAILABLE, "cannot connect to the server of host=/tmp/test-pg-",
                "rubbish");
    lone_end(&s);
    free(said);
  }

  lone_begin(&s, 0, serve_silence, NULL);
  s.settings.connect_ms = 30;
  expect_open(&s, DK_UNAVAILABLE, "no answer within 30ms", "silence");
  cmp_ok(s.call.events & DK_WAIT_ANSWER, "!=", 0, "the host's clock stops in a wait for a server");
  lone_end(&s);

  for (int at = 1; at <= 2; at++) {
    lone_begin(&s, 0, serve_silence, NULL);
    s.call.cancel_at = at;
    expect_open(&s, DK_CALL_CANCELLED, "", "cancelled at a wait");
    cmp_ok(s.call.n_cancelled, "==", 1, "which then was the last");
    lone_end(&s);
  }
  lone_begin(&s, 0, serve_silence, NULL);
  call_cancel(&s.call);
  expect_open(&s, DK_CALL_CANCELLED, "", "cancelled before");
  cmp_ok(fake_connections(s.fake), "==", 0, "the server was not asked");
  lone_end(&s);
}

static void
test_nobody(void)
{
  struct lone s;

  lone_begin(&s, 0, serve_silence, NULL);
  settings_done(&s.settings);
  s.settings = SETTINGS(0, "conninfo", "host=/nowhere user=me password=hunter2 dbname=it");
  expect_open(&s, DK_UNAVAILABLE, "host=/nowhere dbname=it user=me: ", "no server");
  has_words(s.why.text, "tests/with-postgres", "how one starts");
  has_words(s.why.text, "No such file", "what the system says");
  ok(!strchr(s.why.text, '\n'), "in one line");
  lone_end(&s);
}

/* ---- requests -------------------------------------------------------------------------------- */

enum deed {
  ANSWER, ANSWER_IN_TRANSACTION, CLOSE, CLOSE_AFTER_ROWS, SAY_NOTHING, COPY, RUBBISH, ERROR,
  ERROR_AND_CLOSE, WARN_AND_ANSWER, HALF_A_ROW
};

struct play {
  enum deed deed;
  const char *severity, *sqlstate;
};

static void
serve_play(int fd, void *context)
{
  const struct play *play = context;
  char byte;

  if (!fake_let_in(fd) || !fake_read_request(fd))
    return;
  if (play->deed == WARN_AND_ANSWER)
    fake_error(fd, 'N', play->severity, play->sqlstate, "mind");
  if (play->deed == ERROR || play->deed == ERROR_AND_CLOSE)
    fake_error(fd, 'E', play->severity, play->sqlstate, "no");
  if (play->deed == ANSWER || play->deed == ANSWER_IN_TRANSACTION ||
      play->deed == CLOSE_AFTER_ROWS || play->deed == WARN_AND_ANSWER)
    fake_row(fd, true, "yes", 3);
  if (play->deed == COPY)
    fake_message(fd, 'G', "\1\0\0", 3);
  if (play->deed == RUBBISH)
    fake_send(fd, "\377\377\377\377\377\377\377\377", 8);
  if (play->deed == HALF_A_ROW)
    fake_send(fd, "D\0\0\1\0\0\2", 7);
  if (play->deed == ANSWER || play->deed == ERROR || play->deed == WARN_AND_ANSWER)
    fake_ready(fd, 'I');
  if (play->deed == ANSWER_IN_TRANSACTION)
    fake_ready(fd, 'T');
  if (play->deed == CLOSE || play->deed == CLOSE_AFTER_ROWS || play->deed == ERROR_AND_CLOSE ||
      play->deed == HALF_A_ROW)
    return;
  while (recv(fd, &byte, 1, 0) == 1)
    continue;
}

static dk_status
run(struct lone *s, bool writes, const char *payload, size_t length)
{
  struct values values;
  struct request request = {.what = "commit", .sql = "SELECT $1", .values = &values,
                            .writes = writes};
  PGresult *result = NULL;

  values_begin(&values);
  value_bytea(&values, (struct dk_bytes){payload, length});
  dk_status status = connection_run(&s->c, &s->call, &request, &result, &s->why);
  values_done(&values);
  if (status == DK_OK) {
    cmp_ok(result_check(result, "ot", "commit", &s->why), "==", DK_OK, "the answer is whole");
    cmp_mem(field_bytes(result, 0, 1).ptr, "yes", 3, "and what was sent");
    PQclear(result);
  } else {
    ok(!result, "no result without DK_OK");
  }
  return status;
}

/* The outcome of a request that writes, and of one that reads; and the connection's state. */
static const struct {
  const char *name;
  struct play play;
  dk_status writing, reading;
  bool stays;
  int64_t answer_ms;
} plays[] = {
  {"an answer", {ANSWER, 0, 0}, DK_OK, DK_OK, true, 0},
  {"an answer inside a transaction", {ANSWER_IN_TRANSACTION, 0, 0}, DK_OK, DK_OK, true, 0},
  {"the end", {CLOSE, 0, 0}, DK_OUTCOME_UNKNOWN, DK_UNAVAILABLE, false, 0},
  {"rows, and no end of the commit", {CLOSE_AFTER_ROWS, 0, 0}, DK_OUTCOME_UNKNOWN, DK_UNAVAILABLE,
   false, 0},
  {"half a row", {HALF_A_ROW, 0, 0}, DK_OUTCOME_UNKNOWN, DK_UNAVAILABLE, false, 0},
  {"nothing", {SAY_NOTHING, 0, 0}, DK_OUTCOME_UNKNOWN, DK_UNAVAILABLE, false, 30},
  {"a copy", {COPY, 0, 0}, DK_OUTCOME_UNKNOWN, DK_UNAVAILABLE, false, 0},
  {"rubbish", {RUBBISH, 0, 0}, DK_OUTCOME_UNKNOWN, DK_UNAVAILABLE, false, 0},
  {"a serialization failure", {ERROR, "ERROR", "40001"}, DK_BUSY, DK_BUSY, true, 0},
  {"a deadlock, then the end", {ERROR_AND_CLOSE, "ERROR", "40P01"}, DK_BUSY, DK_BUSY, false, 0},
  {"a refusal of ours", {ERROR, "ERROR", "DK201"}, DK_LOCK_LOST, DK_LOCK_LOST, true, 0},
  {"a read-only server", {ERROR, "ERROR", "25006"}, DK_UNAVAILABLE, DK_UNAVAILABLE, false, 0},
  {"no right", {ERROR, "ERROR", "42501"}, DK_REFUSED, DK_REFUSED, true, 0},
  {"the disk is full", {ERROR, "ERROR", "53100"}, DK_UNAVAILABLE, DK_UNAVAILABLE, true, 0},
  {"an administrator", {ERROR_AND_CLOSE, "FATAL", "57P01"}, DK_OUTCOME_UNKNOWN, DK_UNAVAILABLE,
   false, 0},
  {"an administrator who leaves it open", {ERROR, "FATAL", "57P01"}, DK_OUTCOME_UNKNOWN,
   DK_UNAVAILABLE, false, 0},
  {"another FATAL error", {ERROR_AND_CLOSE, "FATAL", "53200"}, DK_OUTCOME_UNKNOWN, DK_NO_MEMORY,
   false, 0},
  {"a FATAL error that is unknown", {ERROR_AND_CLOSE, "FATAL", "ZZZ01"}, DK_OUTCOME_UNKNOWN,
   DK_UNAVAILABLE, false, 0},
  {"a fault", {ERROR, "ERROR", "ZZZ01"}, DK_INTERNAL, DK_INTERNAL, true, 0},
  {"a warning", {WARN_AND_ANSWER, "WARNING", "01000"}, DK_OK, DK_OK, true, 0},
};

static void
test_answers(void)
{
  for (size_t i = 0; i < 2 * sizeof plays / sizeof plays[0]; i++) {
    bool writes = i % 2 == 0;
    struct play play = plays[i / 2].play;
    struct lone s;

    lone_begin(&s, 0, serve_play, &play);
    expect_open(&s, DK_OK, "", "open");
    s.settings.answer_ms = plays[i / 2].answer_ms ? plays[i / 2].answer_ms : 20000;
    cmp_ok(run(&s, writes, "x", 1), "==", writes ? plays[i / 2].writing : plays[i / 2].reading,
           "%s, %s", plays[i / 2].name, writes ? "to what writes" : "to what reads");
    cmp_ok(s.c.pg != NULL, "==", plays[i / 2].stays, "%s: the connection", plays[i / 2].name);
    note("%s", s.why.text);
    if (s.why.status == DK_OUTCOME_UNKNOWN)
      has_words(s.why.text, "the outcome is unknown", "it is reported");
    lone_end(&s);
  }
}

/* Cancelled while the server is asked: a request that writes waits for the answer for a moment. */
static void
test_taken_back(void)
{
  struct play play = {SAY_NOTHING, 0, 0};
  struct lone s;

  for (int writes = 0; writes < 2; writes++) {
    lone_begin(&s, 0, serve_play, &play);
    expect_open(&s, DK_OK, "", "open");
    s.call.cancel_at = s.call.n_waits + 1;
    cmp_ok(run(&s, writes != 0, "x", 1), "==", writes ? DK_OUTCOME_UNKNOWN : DK_CALL_CANCELLED,
           "cancelled while the server was asked");
    cmp_ok(s.call.n_cancelled, "==", 1, "it did not wait again");
    ok(!s.c.pg, "and has no connection");
    lone_end(&s);
  }

  play.deed = ANSWER;
  lone_begin(&s, 0, serve_play, &play);
  expect_open(&s, DK_OK, "", "open");
  call_cancel(&s.call);
  cmp_ok(run(&s, true, "x", 1), "==", DK_CALL_CANCELLED, "cancelled before it was sent");
  ok(connection_is_alive(&s.c), "the connection is as it was");
  lone_end(&s);

  for (int is_late = 0; is_late < 2; is_late++) {
    lone_begin(&s, 0, serve_play, &play);
    expect_open(&s, DK_OK, "", "open");
    s.call.cancel_at = s.call.n_waits + 1;
    s.call.is_late = is_late != 0;
    cmp_ok(run(&s, true, "x", 1), "==", DK_OK, "cancelled %s the answer comes: it is used",
           is_late ? "as" : "before");
    cmp_ok(s.call.n_cancelled, "==", 1, "it did not ask the host to wait again");
    ok(s.c.pg && connection_is_alive(&s.c), "and the connection stays");
    lone_end(&s);
  }
}

/* ---- prepared statements --------------------------------------------------------------------- */

/* Of each request after the first what it was made of, and what it is answered. */
struct record {
  struct fake_session session;
  const char *sqlstates[8]; /* NULL: a row */
  const char *file;         /* of the server's source, in which they are raised; NULL: any */
  char types[8][20];
  int n;
};

static void
serve_record(int fd, void *context)
{
  struct record *record = context;

  if (!fake_let_in_as(fd, &record->session))
    return;
  while (record->n < 8 && fake_read_types(fd, record->types[record->n])) {
    const char *sqlstate = record->sqlstates[record->n];
    bool is_script = strcmp(record->types[record->n], "Q") == 0;
    bool is_settling = record->n > 0 && strcmp(record->types[record->n - 1], "Q") == 0;
    record->n++;
    if (is_script) {
      fake_message(fd, 'C', "DISCARD ALL", 12);
    } else if (sqlstate) {
      fake_error_from(fd, 'E', "ERROR", sqlstate, "no", record->file ? record->file : "elog.c");
    } else if (is_settling) {
      fake_session(fd, &record->session);
      continue;
    } else {
      fake_row(fd, true, "yes", 3);
    }
    fake_ready(fd, 'I');
  }
}

static dk_status
run_often(struct lone *s, const char *sql)
{
  struct values none;
  struct request request = {.what = "ask", .sql = sql, .values = &none, .writes = true,
                            .is_frequent = true};
  PGresult *result = NULL;

  values_begin(&none);
  dk_status status = connection_run(&s->c, &s->call, &request, &result, &s->why);
  PQclear(result);
  values_done(&none);
  return status;
}

/* Parse, Bind, Describe, Execute, Sync: the first time with the preparing before it. */
static void
test_prepared(void)
{
  struct record record = {.session = {.is_own = true}}, lent = {.session = {.is_own = false}};
  struct lone s;

  lone_begin(&s, 0, serve_record, &record);
  expect_open(&s, DK_OK, "", "open");
  for (int i = 0; i < 4; i++)
    cmp_ok(run_often(&s, i < 2 ? "SELECT 1" : "SELECT 2"), "==", DK_OK, "request %d", i + 1);
#ifdef LIBPQ_HAS_PIPELINING
  is(record.types[0], "PBDES", "prepared with its first use, in one request");
  is(record.types[1], "BDES", "and then only used");
  is(record.types[2], "PBDES", "another is prepared, too");
  is(record.types[3], "BDES", "and used");
#endif
  lone_end(&s);

  lone_begin(&s, 0, serve_record, &lent);
  expect_open(&s, DK_OK, "", "open");
  for (int i = 0; i < 2; i++) {
    cmp_ok(run_often(&s, "SELECT 1"), "==", DK_OK, "in a session that is lent");
    is(lent.types[i], "PBDES", "nothing is prepared");
  }
  cmp_ok(s.c.n_prepared, "==", 0, "under a name");
  lone_end(&s);
}

#ifdef LIBPQ_HAS_PIPELINING
static void
test_changed(void)
{
  static const struct {
    const char *sqlstate, *file;
    bool is_change;
  } rows[] = {{"26000", NULL, true}, {"0A000", "plancache.c", true}, {"42P05", NULL, true},
              {"0A000", "execMain.c", false}, {"22012", NULL, false}};

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct record record = {.session = {.is_own = true}, .sqlstates = {NULL, rows[i].sqlstate},
                            .file = rows[i].file};
    bool is_change = rows[i].is_change;
    struct lone s;

    lone_begin(&s, 0, serve_record, &record);
    expect_open(&s, DK_OK, "", "open");
    cmp_ok(run_often(&s, "SELECT 1"), "==", DK_OK, "it is prepared");
    dk_status status = run_often(&s, "SELECT 1");
    ok(is_change ? status == DK_BUSY : status >= DK_INVALID, "and refused with %s",
       rows[i].sqlstate);
    cmp_ok(connection_is_changed(&s.c), "==", is_change, "the session %s",
           is_change ? "is not as it was" : "is as it was");
    if (is_change) {
      cmp_ok(connection_renew(&s.c, &s.call, &s.why), "==", DK_OK, "a new beginning");
      cmp_ok(run_often(&s, "SELECT 1"), "==", DK_OK, "it can be run again");
      is(record.types[2], "Q", "by resetting the session,");
      is(record.types[3], "PBDEPBDES", "settling it,");
      is(record.types[4], "PBDES", "and preparing");
    }
    lone_end(&s);
  }
}

/* An error of a pipeline ends at its end. */
static void
test_failed_first_use(void)
{
  struct record record = {.session = {.is_own = true}, .sqlstates = {"40001"}};
  struct lone s;

  lone_begin(&s, 0, serve_record, &record);
  expect_open(&s, DK_OK, "", "open");
  cmp_ok(run_often(&s, "SELECT 1"), "==", DK_BUSY, "an error at once");
  ok(s.c.pg && connection_is_alive(&s.c), "the connection is as it was");
  cmp_ok(run_often(&s, "SELECT 1"), "==", DK_OK, "and serves the next");
  is(record.types[1], "PBDES", "what could not be prepared is prepared then");
  lone_end(&s);
}
#endif

/* More than sockets hold.  A request that was not wholly sent cannot have been done. */
enum { MUCH = 8 << 20 };

static void
serve_deaf(int fd, void *context)
{
  int *told = context;
  char byte;

  if (fake_let_in(fd) && recv(told[0], &byte, 1, 0) == 1 && byte == 'r')
    fake_answer_all(fd);
}

static void
test_deaf(void)
{
  char *much = calloc(1, MUCH);
  struct lone s;
  int told[2];

  for (int way = 0; way < 3; way++) {
    if (!much || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, told) < 0)
      BAIL_OUT("no sockets");
    lone_begin(&s, 0, serve_deaf, told);
    expect_open(&s, DK_OK, "", "open");
    if (way == 0) {
      s.call.cancel_at = s.call.n_waits + 1;
      cmp_ok(run(&s, true, much, MUCH), "==", DK_CALL_CANCELLED, "cancelled before all was sent");
      cmp_ok(s.call.events, "==", DK_WAIT_READ | DK_WAIT_WRITE | DK_WAIT_ANSWER, "waits for both");
    } else if (way == 1) {
      s.settings.answer_ms = 30;
      cmp_ok(run(&s, true, much, MUCH), "==", DK_UNAVAILABLE, "no time to send all of it");
      has_words(s.why.text, "nothing was done", "and that is reported");
    } else {
      cmp_ok(write(told[1], "r", 1), "==", 1, "the server begins to read");
      cmp_ok(run(&s, true, much, MUCH), "==", DK_OK, "all is sent and answered");
    }
    cmp_ok(s.c.pg != NULL, "==", way == 2, "the connection");
    shutdown(told[1], SHUT_RDWR);
    lone_end(&s);
    close(told[0]);
    close(told[1]);
  }
  free(much);
}

/* Sends so much before it reads that both would wait for ever if only one direction was polled. */
static void
serve_talk(int fd, void *context)
{
  (void)context;
  if (!fake_let_in(fd))
    return;
  for (int i = 0; i < 20000; i++)
    fake_error(fd, 'N', "NOTICE", "00000", "talk talk talk talk talk talk talk talk talk");
  fake_answer_all(fd);
}

static void
test_talk(void)
{
  char *much = calloc(1, MUCH);
  struct lone s;

  lone_begin(&s, 0, serve_talk, NULL);
  expect_open(&s, DK_OK, "", "open");
  cmp_ok(run(&s, true, much, MUCH), "==", DK_OK, "a server that talks first");
  cmp_ok(s.host.level, "==", 0, "its notices are logged below warnings only");
  lone_end(&s);
  free(much);
}

/* ---- idle connections ------------------------------------------------------------------------ */

enum idle { STAY, LEAVE, LEAVE_WITH_WORDS, WORDS_ONLY, CHANGE_A_SETTING, NOTIFY };

struct idle_play {
  enum idle idle;
  int told[2];
};

static void
serve_idle(int fd, void *context)
{
  struct idle_play *play = context;
  char byte;

  if (!fake_let_in(fd))
    return;
  if (play->idle == LEAVE_WITH_WORDS || play->idle == WORDS_ONLY)
    fake_error(fd, 'E', "FATAL", "57P01", "go");
  if (play->idle == CHANGE_A_SETTING)
    fake_message(fd, 'S', "TimeZone\0UTC", 13);
  if (play->idle == NOTIFY)
    fake_message(fd, 'A', "\0\0\0\1channel\0payload", 20);
  if (play->idle == LEAVE || play->idle == LEAVE_WITH_WORDS)
    shutdown(fd, SHUT_RDWR);
  fake_send(play->told[1], "x", 1);
  while (recv(fd, &byte, 1, 0) == 1)
    continue;
}

static void
test_idle(void)
{
  static const struct {
    enum idle idle;
    bool is_alive;
    const char *name;
  } rows[] = {
    {STAY, true, "nothing"},
    {LEAVE, false, "the end"},
    {LEAVE_WITH_WORDS, false, "a last word, and the end"},
    {WORDS_ONLY, false, "a last word"},
    {CHANGE_A_SETTING, true, "a changed setting"},
    {NOTIFY, true, "a notification"},
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct idle_play play = {.idle = rows[i].idle};
    struct lone s;
    char byte;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, play.told) < 0)
      BAIL_OUT("no sockets");
    lone_begin(&s, 0, serve_idle, &play);
    expect_open(&s, DK_OK, "", "open");
    cmp_ok(recv(play.told[0], &byte, 1, 0), "==", 1, "the server has had its word");
    int waits = s.call.n_waits;
    cmp_ok(connection_is_alive(&s.c), "==", rows[i].is_alive, "idle, and then %s", rows[i].name);
    cmp_ok(s.call.n_waits, "==", waits, "seen without a wait");
    lone_end(&s);
    close(play.told[0]);
    close(play.told[1]);
  }
}

int
main(void)
{
  plan(NO_PLAN);
  ok(PQisthreadsafe(), "libpq may be used by many threads");
  test_nobody(); /* what the libraries open once is open */
  int before = n_descriptors();
  test_greetings();
  test_notices();
  test_strangers();
  test_nobody();
  test_answers();
  test_taken_back();
  test_prepared();
#ifdef LIBPQ_HAS_PIPELINING
  test_changed();
  test_failed_first_use();
#endif
  test_deaf();
  test_talk();
  test_idle();
  cmp_ok(n_descriptors(), "==", before, "no descriptor is left");
  return done_testing();
}
