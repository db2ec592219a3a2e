/* SPDX-License-Identifier: Apache-2.0 */
/* The floor of `durakit bench pg`: the least SQL that each workload needs, written by hand, with
 * the same durability, durable claims and fenced tokens.  Each operation is one prepared statement
 * and one round trip; each caller is a thread with a connection of its own.  No plugin, no
 * functions, no errors but the last: what a provider takes longer than this is its own.
 *
 * It speaks the bench's protocol (runner/bench/bench.h) on its standard input and output.  Its
 * store is a schema, which it makes and removes; the server is named by the setting `conninfo`.
 */
#include <endian.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the statements -------------------------------------------------------------------------- */

static const char schema[] =
  "CREATE TABLE instance(iid bigint PRIMARY KEY, ready_at bigint, epoch bigint, last_event bigint)"
  "  WITH (fillfactor=50);"
  "CREATE INDEX instance_ready ON instance(ready_at) WHERE ready_at IS NOT NULL;"
  "CREATE TABLE message(iid bigint, seq bigint GENERATED ALWAYS AS IDENTITY, visible_at bigint,"
  "  payload bytea, PRIMARY KEY(iid, seq));"
  "CREATE TABLE work(iid bigint, exec bigint, act bigint GENERATED ALWAYS AS IDENTITY,"
  "  ready_at bigint, epoch bigint, payload bytea, PRIMARY KEY(iid, exec, act));"
  "CREATE INDEX work_ready ON work(ready_at);"
  "CREATE TABLE history(iid bigint, exec bigint, ev bigint, payload bytea,"
  "  PRIMARY KEY(iid, exec, ev));"
  "CREATE TABLE bare(n bigint);";

enum statement {
  FETCH_TURN,
  COMMIT_TURN,
  FETCH_WORK,
  ACK_WORK,
  CANCEL,
  ADD_MESSAGE,
  ADD_WORK,
  COUNT_WORK,
  BARE,
  STATEMENTS
};

static const char *const names[STATEMENTS] = {"fetch_turn", "commit_turn", "fetch_work",
                                              "ack_work",   "cancel",      "add_message",
                                              "add_work",   "count_work",  "bare"};

static const char *const texts[STATEMENTS] = {
  /* now, end of the lease */
  [FETCH_TURN] = "WITH i AS (SELECT iid FROM instance WHERE ready_at <= $1::bigint"
                 "    ORDER BY ready_at LIMIT 1 FOR UPDATE SKIP LOCKED),"
                 "  c AS (UPDATE instance SET ready_at = $2::bigint, epoch = epoch + 1 FROM i"
                 "    WHERE instance.iid = i.iid RETURNING instance.iid, epoch, last_event)"
                 "  SELECT c.iid, c.epoch, m.seq, m.payload FROM c LEFT JOIN message m"
                 "    ON m.iid = c.iid AND m.visible_at <= $1 ORDER BY m.seq",
  /* instance, token, now, the last message, payload */
  [COMMIT_TURN] = "WITH t AS (UPDATE instance SET ready_at = $3::bigint,"
                  "      last_event = last_event + 3"
                  "    WHERE iid = $1::bigint AND epoch = $2::bigint AND ready_at > $3"
                  "    RETURNING last_event),"
                  "  d AS (DELETE FROM message m USING t WHERE m.iid = $1 AND m.seq <= $4::bigint),"
                  "  h AS (INSERT INTO history SELECT $1, 1, last_event - e, $5::bytea FROM t,"
                  "    generate_series(0, 2) e),"
                  "  w AS (INSERT INTO work(iid, exec, ready_at, epoch, payload)"
                  "    SELECT $1, 1, $3, 0, $5 FROM t),"
                  "  m AS (INSERT INTO message(iid, visible_at, payload) SELECT $1, $3, $5 FROM t)"
                  "  SELECT last_event FROM t",
  /* now, end of the lease */
  [FETCH_WORK] = "WITH i AS (SELECT iid, exec, act FROM work WHERE ready_at <= $1::bigint"
                 "    ORDER BY ready_at LIMIT 1 FOR UPDATE SKIP LOCKED)"
                 "  UPDATE work w SET ready_at = $2::bigint, epoch = epoch + 1 FROM i"
                 "    WHERE w.iid = i.iid AND w.exec = i.exec AND w.act = i.act"
                 "    RETURNING w.iid, w.epoch, w.act, w.payload",
  /* instance, token, now, activity, whom it completes, payload */
  [ACK_WORK] = "WITH d AS (DELETE FROM work WHERE iid = $1::bigint AND exec = 1"
               "      AND act = $4::bigint AND epoch = $2::bigint AND ready_at > $3::bigint"
               "    RETURNING iid),"
               "  m AS (INSERT INTO message(iid, visible_at, payload)"
               "    SELECT $5::bigint, $3, $6::bytea FROM d),"
               "  u AS (UPDATE instance i SET ready_at = $3 FROM d"
               "    WHERE i.iid = $5 AND i.ready_at IS NULL)"
               "  SELECT iid FROM d",
  /* activities of instance 1, payload */
  [CANCEL] = "WITH d AS (DELETE FROM work WHERE iid = 1 AND exec = 1 AND act = ANY($1::bigint[])"
             "    RETURNING 1),"
             "  h AS (INSERT INTO history SELECT 1, 1, count(*) + coalesce((SELECT max(ev)"
             "    FROM history WHERE iid = 1 AND exec = 1), 0), $2::bytea FROM d)"
             "  SELECT count(*) FROM d",
  /* to, payload */
  [ADD_MESSAGE] = "WITH i AS (INSERT INTO instance VALUES($1::bigint, 0, 0, 0))"
                  "  INSERT INTO message(iid, visible_at, payload) VALUES($1, 0, $2::bytea)",
  /* instance, how many, payload */
  [ADD_WORK] = "WITH w AS (INSERT INTO work(iid, exec, ready_at, epoch, payload)"
               "    SELECT $1::bigint, 1, 0, 0, $3::bytea FROM generate_series(1, $2::bigint)"
               "    RETURNING act) SELECT max(act) FROM w",
  [COUNT_WORK] = "SELECT count(*) FROM work WHERE ready_at <= $1::bigint",
  [BARE] = "INSERT INTO bare VALUES($1::bigint)",
};

enum { LEASE_MS = 600000, INSTANCES = 64, MOST_CALLERS = 64, ROOM = 4000, PAYLOAD = 150,
       BARE_MS = 100, DONE_INSTANCES = 16 };

struct claim {
  int64_t iid, epoch, at; /* at: the last message, or the activity */
};

typedef uint64_t step_fn(PGconn *pg);

static struct {
  char *conninfo;
  const char *store;      /* the schema, as given, */
  char *quoted;           /* and for a statement */
  PGconn *callers[MOST_CALLERS];
  unsigned n_callers;
  step_fn *step;
  bool is_fan_in;         /* all completions are for instance 1 */
  int64_t cancels;
  int64_t last_activity;
  int64_t ends_ns;
  _Atomic int64_t left;
  _Atomic uint64_t operations;
  char payload[PAYLOAD];
} floor_;

static pthread_mutex_t dying = PTHREAD_MUTEX_INITIALIZER; /* one thread prints why */

/* No more than one line, and nothing of the connection's settings. */
__attribute__((noreturn, format(printf, 1, 2))) static void
die(const char *format, ...)
{
  char why[400];
  va_list args;

  pthread_mutex_lock(&dying);
  va_start(args, format);
  vsnprintf(why, sizeof(why), format, args);
  va_end(args);
  for (char *c = why; *c; c++)
    *c = *c == '\n' || *c == '\t' ? ' ' : *c;
  printf("no %s\n", why);
  fflush(stdout);
  _exit(1);
}

static int64_t
read_clock(clockid_t clock, int64_t parts)
{
  struct timespec t;

  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * parts + t.tv_nsec / (1000000000 / parts);
}

static int64_t
now_ms(void)
{
  return read_clock(CLOCK_REALTIME, 1000);
}

static int64_t
now_ns(void)
{
  return read_clock(CLOCK_MONOTONIC, 1000000000);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* `n` numbers, then, if the statement wants it, the payload; all binary. */
static PGresult *
floor_run(PGconn *pg, enum statement which, bool with_payload, int n, ...)
{
  uint64_t numbers[5];
  const char *values[6];
  int lengths[6], formats[6];
  va_list args;

  va_start(args, n);
  for (int i = 0; i < n; i++) {
    numbers[i] = htobe64((uint64_t)va_arg(args, int64_t));
    values[i] = (const char *)&numbers[i];
    lengths[i] = sizeof(numbers[i]);
    formats[i] = 1;
  }
  va_end(args);
  if (with_payload) {
    values[n] = floor_.payload;
    lengths[n] = PAYLOAD;
    formats[n++] = 1;
  }
  PGresult *result = PQexecPrepared(pg, names[which], n, values, lengths, formats, 1);
  ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    die("%s: %s", names[which], PQerrorMessage(pg));
  return result;
}

static int64_t
number(const PGresult *result, int row, int column)
{
  uint64_t wire = 0;

  if (!PQgetisnull(result, row, column))
    memcpy(&wire, PQgetvalue(result, row, column), sizeof(wire));
  return (int64_t)be64toh(wire);
}

/* The number in the first row; -1: there is no row. */
static int64_t
only_number(PGresult *result)
{
  int64_t n = PQntuples(result) > 0 ? number(result, 0, 0) : -1;

  PQclear(result);
  return n;
}

__attribute__((format(printf, 2, 3))) static void
execute(PGconn *pg, const char *format, ...)
{
  char sql[4096];
  va_list args;

  va_start(args, format);
  vsnprintf(sql, sizeof(sql), format, args);
  va_end(args);
  PGresult *result = PQexec(pg, sql);
  if (PQresultStatus(result) != PGRES_COMMAND_OK)
    die("%s", PQerrorMessage(pg));
  PQclear(result);
}

static void
ignore_notice(void *context, const PGresult *notice)
{
  (void)context;
  (void)notice;
}

static PGconn *
connect_to_server(void)
{
  PGconn *pg = PQconnectdb(floor_.conninfo ? floor_.conninfo : "");

  if (PQstatus(pg) != CONNECTION_OK)
    die("the server cannot be reached: %s", PQerrorMessage(pg));
  PQsetNoticeReceiver(pg, ignore_notice, NULL);
  if (!floor_.quoted)
    floor_.quoted = PQescapeIdentifier(pg, floor_.store, strlen(floor_.store));
  execute(pg, "SET search_path = %s", floor_.quoted);
  return pg;
}

static void
floor_prepare(PGconn *pg)
{
  for (int i = 0; i < STATEMENTS; i++) {
    PGresult *result = PQprepare(pg, names[i], texts[i], 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
      die("%s: %s", names[i], PQerrorMessage(pg));
    PQclear(result);
  }
}

/* ---- the store ------------------------------------------------------------------------------- */

static void
remove_store(void)
{
  if (floor_.n_callers > 0)
    execute(floor_.callers[0], "DROP SCHEMA IF EXISTS %s CASCADE", floor_.quoted);
  while (floor_.n_callers > 0)
    PQfinish(floor_.callers[--floor_.n_callers]);
}

/* A new one, with as many connections as there are callers. */
static void
make_store(unsigned n)
{
  remove_store();
  for (; floor_.n_callers < n; floor_.n_callers++) {
    PGconn *pg = floor_.callers[floor_.n_callers] = connect_to_server();
    if (floor_.n_callers == 0) {
      execute(pg, "DROP SCHEMA IF EXISTS %s CASCADE", floor_.quoted);
      execute(pg, "CREATE SCHEMA %s", floor_.quoted);
      execute(pg, "%s", schema);
    }
    floor_prepare(pg);
  }
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* false: all that are ready are being taken by others. */
static bool
floor_fetch(PGconn *pg, enum statement which, struct claim *ret_claim)
{
  int64_t time = now_ms();
  PGresult *result = floor_run(pg, which, false, 2, time, time + LEASE_MS);
  int last = PQntuples(result) - 1;

  if (last >= 0)
    *ret_claim = (struct claim){number(result, 0, 0), number(result, 0, 1),
                                number(result, last, 2)};
  PQclear(result);
  return last >= 0;
}

/* Three events, one activity, one message to itself. */
static uint64_t
turn(PGconn *pg)
{
  struct claim claim;

  if (!floor_fetch(pg, FETCH_TURN, &claim))
    return 0;
  if (only_number(floor_run(pg, COMMIT_TURN, true, 4, claim.iid, claim.epoch, now_ms(), claim.at)) <
      0)
    die("a lease is lost");
  return 2;
}

static void
begin_turns(void)
{
  for (int64_t iid = 1; iid <= INSTANCES; iid++)
    PQclear(floor_run(floor_.callers[0], ADD_MESSAGE, true, 1, iid));
}

/* ---- work ------------------------------------------------------------------------------------ */

static void
add_work(int64_t iid, int64_t n)
{
  if (n > 0)
    floor_.last_activity = only_number(floor_run(floor_.callers[0], ADD_WORK, true, 2, iid, n));
}

static void
begin_work(void)
{
  PQclear(floor_run(floor_.callers[0], ADD_MESSAGE, true, 1, (int64_t)1));
  for (int64_t i = 0; i < DONE_INSTANCES; i++)
    PQclear(floor_run(floor_.callers[0], ADD_MESSAGE, true, 1, 100 + i));
}

/* With a completion. */
static uint64_t
work(PGconn *pg)
{
  struct claim claim;

  if (atomic_fetch_sub(&floor_.left, 1) <= 0 || !floor_fetch(pg, FETCH_WORK, &claim))
    return 0;
  int64_t to = floor_.is_fan_in ? 1 : 100 + claim.at % DONE_INSTANCES;
  if (only_number(
          floor_run(pg, ACK_WORK, true, 5, claim.iid, claim.epoch, now_ms(), claim.at, to)) < 0)
    die("a row was deleted");
  return 2;
}

static void
top_up_work(void)
{
  add_work(1, ROOM - only_number(floor_run(floor_.callers[0], COUNT_WORK, false, 1, now_ms())));
  atomic_store(&floor_.left, ROOM);
}

/* ---- many cancellations ---------------------------------------------------------------------- */

static void
floor_put(char **at, uint32_t value)
{
  value = htobe32(value);
  memcpy(*at, &value, sizeof(value));
  *at += sizeof(value);
}

/* The last `n` activities, as PostgreSQL's array of bigint. */
static char *
list_of_activities(int64_t n, int *ret_length)
{
  enum { HEAD = 20, ELEMENT = 12, BIGINT = 20 };
  char *list = malloc(HEAD + (size_t)n * ELEMENT), *at = list;

  if (!list)
    die("no memory for the list");
  floor_put(&at, 1);
  floor_put(&at, 0);
  floor_put(&at, BIGINT);
  floor_put(&at, (uint32_t)n);
  floor_put(&at, 1);
  for (int64_t i = 0; i < n; i++) {
    uint64_t activity = htobe64((uint64_t)(floor_.last_activity - n + 1 + i));
    floor_put(&at, sizeof(activity));
    memcpy(at, &activity, sizeof(activity));
    at += sizeof(activity);
  }
  *ret_length = (int)(at - list);
  return list;
}

static uint64_t
floor_cancel_all(PGconn *pg)
{
  int length;
  char *list = list_of_activities(floor_.cancels, &length);
  const char *values[] = {list, floor_.payload};
  const int lengths[] = {length, PAYLOAD}, formats[] = {1, 1};
  int64_t start = now_ns();
  PGresult *result = PQexecPrepared(pg, names[CANCEL], 2, values, lengths, formats, 1);

  floor_.ends_ns = now_ns() - start; /* the list is made before the clock starts */
  if (PQresultStatus(result) != PGRES_TUPLES_OK)
    die("cancel: %s", PQerrorMessage(pg));
  free(list);
  int64_t gone = only_number(result);
  if (gone != floor_.cancels)
    die("%" PRId64 " rows went instead of %" PRId64, gone, floor_.cancels);
  return 1;
}

/* ---- a slice --------------------------------------------------------------------------------- */

/* Until the slice has ended or the ready work is done; one operation in any case. */
static void *
call_until_it_ends(void *pg)
{
  uint64_t n = 0;

  do
    n += floor_.step(pg);
  while (now_ns() < floor_.ends_ns && (floor_.step != work || atomic_load(&floor_.left) > 0));
  atomic_fetch_add(&floor_.operations, n);
  return NULL;
}

static int64_t
run_threads(int64_t ms)
{
  pthread_t threads[MOST_CALLERS];
  int64_t start = now_ns();

  floor_.ends_ns = start + ms * 1000000;
  for (unsigned i = 0; i < floor_.n_callers; i++)
    if (pthread_create(&threads[i], NULL, call_until_it_ends, floor_.callers[i]) != 0)
      die("a thread cannot be started");
  for (unsigned i = 0; i < floor_.n_callers; i++)
    pthread_join(threads[i], NULL);
  return now_ns() - start;
}

static void
run_slice(int64_t ms)
{
  int64_t ns;

  if (!floor_.step)
    die("run without begin");
  atomic_store(&floor_.operations, 0);
  if (floor_.step == work)
    top_up_work();
  if (floor_.step == floor_cancel_all) {
    add_work(1, floor_.cancels);
    atomic_store(&floor_.operations, floor_cancel_all(floor_.callers[0]));
    ns = floor_.ends_ns;
  } else {
    ns = run_threads(ms);
  }
  printf("ok %" PRIu64 " %" PRId64 " 0\n", atomic_load(&floor_.operations), ns);
}

/* ---- the protocol ---------------------------------------------------------------------------- */

static void
floor_begin(const char *workload, int64_t a, int64_t b)
{
  bool is_cancel = strcmp(workload, "cancel") == 0;

  if (a < 1 || (!is_cancel && a > MOST_CALLERS))
    die("not with so many callers");
  make_store(is_cancel ? 1 : (unsigned)a);
  floor_.cancels = a;
  if (strcmp(workload, "turn") == 0) {
    floor_.step = turn;
    begin_turns();
  } else if (strcmp(workload, "work") == 0 || strcmp(workload, "fan-in") == 0) {
    floor_.step = work;
    floor_.is_fan_in = workload[0] == 'f';
    begin_work();
  } else if (is_cancel) {
    floor_.step = floor_cancel_all;
    add_work(2, b);
  } else {
    die("there is no floor for %s", workload);
  }
  puts("ok");
}

static uint64_t
insert_one(PGconn *pg)
{
  PQclear(floor_run(pg, BARE, false, 1, (int64_t)1));
  return 1;
}

/* How many of one row a second, by so many callers. */
static double
rate_of_bare_commits(unsigned callers)
{
  make_store(callers);
  floor_.step = insert_one;
  atomic_store(&floor_.operations, 0);
  int64_t ns = run_threads(BARE_MS);
  return (double)atomic_load(&floor_.operations) / ((double)ns / 1e9);
}

static void
about(void)
{
  double one = rate_of_bare_commits(1), many = rate_of_bare_commits(16);
  PGresult *r = PQexec(floor_.callers[0],
                       "SELECT split_part(current_setting('server_version'), ' ', 1),"
                       "  current_setting('fsync'), current_setting('synchronous_commit'),"
                       "  current_setting('full_page_writes'),"
                       "  current_setting('wal_sync_method')");

  if (PQresultStatus(r) != PGRES_TUPLES_OK)
    die("the settings cannot be read: %s", PQerrorMessage(floor_.callers[0]));
  printf("ok PostgreSQL %.20s, fsync=%s, synchronous_commit=%s, full_page_writes=%s, "
         "wal_sync_method=%s, by hand; bare commits of a row: %.0f/s, of 16 callers %.0f/s\n",
         PQgetvalue(r, 0, 0), PQgetvalue(r, 0, 1), PQgetvalue(r, 0, 2), PQgetvalue(r, 0, 3),
         PQgetvalue(r, 0, 4), one, many);
  PQclear(r);
  remove_store();
  floor_.step = NULL;
}

static void
take_setting(const char *pair)
{
  if (strncmp(pair, "conninfo=", 9) == 0) {
    free(floor_.conninfo);
    floor_.conninfo = strdup(pair + 9);
  }
  puts("ok");
}

static void
answer(const char *line)
{
  char workload[32];
  int64_t a, b;

  if (strncmp(line, "set ", 4) == 0)
    take_setting(line + 4);
  else if (strcmp(line, "about") == 0)
    about();
  else if (sscanf(line, "begin %31s %" SCNd64 " %" SCNd64, workload, &a, &b) == 3)
    floor_begin(workload, a, b);
  else if (sscanf(line, "run %" SCNd64, &a) == 1)
    run_slice(a);
  else
    die("not a line of the protocol");
}

int
main(int argc, char **argv)
{
  char *line = NULL;
  size_t room = 0;

  if (argc != 2) {
    fputs("usage: floor SCHEMA, and the protocol of durakit bench on standard input\n", stderr);
    return 2;
  }
  floor_.store = argv[1];
  memset(floor_.payload, 'x', PAYLOAD);
  while (getline(&line, &room, stdin) >= 0) {
    line[strcspn(line, "\n")] = '\0';
    answer(line);
    if (fflush(stdout) != 0)
      break;
  }
  if (floor_.n_callers > 0)
    remove_store();
  PQfreemem(floor_.quoted);
  free(floor_.conninfo);
  free(line);
  return 0;
}
