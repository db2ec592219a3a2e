/* SPDX-License-Identifier: Apache-2.0 */
/* The floor of `durakit bench sqlite`: the least SQL that each workload needs, written by hand,
 * with the same durability, durable claims and fenced tokens.  No plugin, no threads, no queue:
 * what a provider takes longer than this is its own.
 *
 * It speaks the bench's protocol (runner/bench/bench.h) on its standard input and output.  With
 * several callers it commits in groups of half of them, which is what callers give that wait for
 * their answers.  It counts its own syncs.
 */
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- syncs, counted where SQLite makes them -------------------------------------------------- */

static uint64_t syncs;

__attribute__((visibility("default"))) int fdatasync(int fd);
__attribute__((visibility("default"))) int fsync(int fd);

int
fdatasync(int fd)
{
  syncs++;
  return (int)syscall(SYS_fdatasync, fd);
}

int
fsync(int fd)
{
  syncs++;
  return (int)syscall(SYS_fsync, fd);
}

/* ---- the database ---------------------------------------------------------------------------- */

static const char schema[] =
  "CREATE TABLE instance(iid INTEGER PRIMARY KEY, ready_at INT, locked_until INT, epoch INT,"
  "                      last_event INT);"
  "CREATE INDEX instance_ready ON instance(ready_at) WHERE ready_at IS NOT NULL;"
  "CREATE TABLE message(iid INT, seq INT, visible_at INT, payload BLOB, PRIMARY KEY(iid, seq))"
  "  WITHOUT ROWID;"
  "CREATE TABLE work(iid INT, exec INT, act INT, ready_at INT, epoch INT, payload BLOB,"
  "                  PRIMARY KEY(iid, exec, act)) WITHOUT ROWID;"
  "CREATE INDEX work_ready ON work(ready_at);"
  "CREATE TABLE history(iid INT, exec INT, ev INT, payload BLOB, PRIMARY KEY(iid, exec, ev))"
  "  WITHOUT ROWID;";

enum statement {
  BEGIN,
  COMMIT,
  FIND_TURN,
  READ_MESSAGES,
  CLAIM_TURN,
  CHECK_TURN,
  TAKE_MESSAGES,
  ADD_EVENT,
  ADD_WORK,
  ADD_MESSAGE,
  WAKE,
  RELEASE,
  FIND_WORK,
  CLAIM_WORK,
  ACK_WORK,
  ADD_INSTANCE,
  CANCEL,
  COUNT_WORK,
  STATEMENTS
};

static const char *const texts[STATEMENTS] = {
  [BEGIN] = "BEGIN IMMEDIATE",
  [COMMIT] = "COMMIT",
  [FIND_TURN] = "SELECT iid, epoch, last_event FROM instance WHERE ready_at <= ?1"
                " ORDER BY ready_at LIMIT 1",
  [READ_MESSAGES] = "SELECT seq, payload FROM message WHERE iid = ?1 AND visible_at <= ?2",
  [CLAIM_TURN] = "UPDATE instance SET ready_at = ?2, locked_until = ?2, epoch = epoch + 1"
                 " WHERE iid = ?1",
  [CHECK_TURN] = "SELECT last_event FROM instance WHERE iid = ?1 AND epoch = ?2"
                 " AND locked_until > ?3",
  [TAKE_MESSAGES] = "DELETE FROM message WHERE iid = ?1 AND seq <= ?2",
  [ADD_EVENT] = "INSERT INTO history VALUES(?1, 1, ?2, ?3)",
  [ADD_WORK] = "INSERT INTO work VALUES(?1, 1, ?2, ?3, 0, ?4)",
  [ADD_MESSAGE] = "INSERT INTO message VALUES(?1, ?2, ?3, ?4)",
  [WAKE] = "UPDATE instance SET ready_at = ?2 WHERE iid = ?1 AND ready_at IS NULL",
  [RELEASE] = "UPDATE instance SET ready_at = ?2, locked_until = 0, last_event = ?3"
              " WHERE iid = ?1",
  [FIND_WORK] = "SELECT iid, act, epoch, payload FROM work WHERE ready_at <= ?1"
                " ORDER BY ready_at LIMIT 1",
  [CLAIM_WORK] = "UPDATE work SET ready_at = ?3, epoch = epoch + 1"
                 " WHERE iid = ?1 AND exec = 1 AND act = ?2",
  [ACK_WORK] = "DELETE FROM work WHERE iid = ?1 AND exec = 1 AND act = ?2 AND epoch = ?3"
               " AND ready_at > ?4",
  [ADD_INSTANCE] = "INSERT INTO instance VALUES(?1, NULL, 0, 0, 0)",
  [CANCEL] = "DELETE FROM work WHERE iid = ?1 AND exec = 1"
             " AND act IN (SELECT value FROM json_each(?2))",
  [COUNT_WORK] = "SELECT count(*) FROM work WHERE ready_at <= ?1",
};

enum { LEASE_MS = 60000, INSTANCES = 64, MOST_CALLERS = 64, ROOM = 4000, PAYLOAD = 150,
       DONE_INSTANCES = 16 };

struct claim {
  int64_t iid, act, epoch, last_event, seq;
};

static struct {
  sqlite3 *db;
  sqlite3_stmt *statements[STATEMENTS];
  char path[4096];
  char workload[32];
  unsigned group;
  int64_t sequence, activity, cancels;
  char payload[PAYLOAD];
} floor_;

__attribute__((noreturn, format(printf, 1, 2))) static void
die(const char *format, ...)
{
  va_list args;

  va_start(args, format);
  fputs("no ", stdout);
  vprintf(format, args);
  putchar('\n');
  va_end(args);
  fflush(stdout);
  exit(1);
}

static int64_t
now_ms(void)
{
  struct timespec t;

  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t
now_ns(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Binds `n` numbers; for a payload the caller binds itself. */
static sqlite3_stmt *
bind(enum statement which, int n, ...)
{
  sqlite3_stmt *statement = floor_.statements[which];
  va_list args;

  va_start(args, n);
  for (int i = 1; i <= n; i++)
    sqlite3_bind_int64(statement, i, va_arg(args, int64_t));
  va_end(args);
  return statement;
}

static void
bind_payload(sqlite3_stmt *statement, int at)
{
  sqlite3_bind_blob(statement, at, floor_.payload, PAYLOAD, SQLITE_STATIC);
}

static int
floor_run(sqlite3_stmt *statement)
{
  int rc = sqlite3_step(statement);

  if (rc != SQLITE_DONE && rc != SQLITE_ROW)
    die("%s: %s", sqlite3_sql(statement), sqlite3_errmsg(floor_.db));
  sqlite3_reset(statement);
  return sqlite3_changes(floor_.db);
}

static void
execute(const char *sql)
{
  if (sqlite3_exec(floor_.db, sql, NULL, NULL, NULL) != SQLITE_OK)
    die("%s: %s", sql, sqlite3_errmsg(floor_.db));
}

static void
remove_files(void)
{
  static const char *const ends[] = {"", "-wal", "-shm"};
  char name[4200];

  for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
    snprintf(name, sizeof(name), "%s%s", floor_.path, ends[i]);
    if (unlink(name) != 0 && errno != ENOENT)
      die("%s: %s", name, strerror(errno));
  }
}

static void
close_database(void)
{
  for (int i = 0; i < STATEMENTS; i++) {
    sqlite3_finalize(floor_.statements[i]);
    floor_.statements[i] = NULL;
  }
  sqlite3_close(floor_.db);
  floor_.db = NULL;
  remove_files();
}

static void
open_database(void)
{
  remove_files();
  if (sqlite3_open(floor_.path, &floor_.db) != SQLITE_OK)
    die("%s: %s", floor_.path, sqlite3_errmsg(floor_.db));
  execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF;");
  execute(schema);
  for (int i = 0; i < STATEMENTS; i++)
    if (sqlite3_prepare_v3(floor_.db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                           &floor_.statements[i], NULL) != SQLITE_OK)
      die("%s: %s", texts[i], sqlite3_errmsg(floor_.db));
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void
add_message(int64_t iid, int64_t time)
{
  sqlite3_stmt *add = bind(ADD_MESSAGE, 3, iid, ++floor_.sequence, time);

  bind_payload(add, 4);
  floor_run(add);
}

static void
fetch_turn(struct claim *claim, int64_t time)
{
  sqlite3_stmt *find = bind(FIND_TURN, 1, time);

  if (sqlite3_step(find) != SQLITE_ROW)
    die("no instance is ready");
  claim->iid = sqlite3_column_int64(find, 0);
  claim->epoch = sqlite3_column_int64(find, 1) + 1;
  claim->last_event = sqlite3_column_int64(find, 2);
  sqlite3_reset(find);
  sqlite3_stmt *read = bind(READ_MESSAGES, 2, claim->iid, time);
  while (sqlite3_step(read) == SQLITE_ROW)
    claim->seq = sqlite3_column_int64(read, 0);
  sqlite3_reset(read);
  floor_run(bind(CLAIM_TURN, 2, claim->iid, time + LEASE_MS));
}

/* Three events, one activity, one message to itself. */
static void
commit_turn(const struct claim *claim, int64_t time)
{
  sqlite3_stmt *check = bind(CHECK_TURN, 3, claim->iid, claim->epoch, time);

  if (sqlite3_step(check) != SQLITE_ROW)
    die("a lease is lost");
  sqlite3_reset(check);
  floor_run(bind(TAKE_MESSAGES, 2, claim->iid, claim->seq));
  for (int64_t i = 1; i <= 3; i++) {
    sqlite3_stmt *add = bind(ADD_EVENT, 2, claim->iid, claim->last_event + i);
    bind_payload(add, 3);
    floor_run(add);
  }
  sqlite3_stmt *add = bind(ADD_WORK, 3, claim->iid, ++floor_.activity, time);
  bind_payload(add, 4);
  floor_run(add);
  add_message(claim->iid, time);
  floor_run(bind(RELEASE, 3, claim->iid, time, claim->last_event + 3));
}

static void
begin_turns(void)
{
  execute("BEGIN");
  for (int64_t iid = 1; iid <= INSTANCES; iid++) {
    floor_run(bind(ADD_INSTANCE, 1, iid));
    add_message(iid, 0);
    floor_run(bind(WAKE, 2, iid, (int64_t)0));
  }
  execute("COMMIT");
}

static uint64_t
turns(struct claim *claims)
{
  floor_run(bind(BEGIN, 0));
  for (unsigned i = 0; i < floor_.group; i++)
    fetch_turn(&claims[i], now_ms());
  floor_run(bind(COMMIT, 0));
  floor_run(bind(BEGIN, 0));
  for (unsigned i = 0; i < floor_.group; i++)
    commit_turn(&claims[i], now_ms());
  floor_run(bind(COMMIT, 0));
  return (uint64_t)floor_.group * 2;
}

/* ---- work ------------------------------------------------------------------------------------ */

static void
add_work(int64_t iid, int64_t n)
{
  execute("BEGIN");
  for (int64_t i = 0; i < n; i++) {
    sqlite3_stmt *add = bind(ADD_WORK, 3, iid, ++floor_.activity, (int64_t)0);
    bind_payload(add, 4);
    floor_run(add);
  }
  execute("COMMIT");
}

static void
begin_work(void)
{
  execute("BEGIN");
  floor_run(bind(ADD_INSTANCE, 1, (int64_t)1));
  for (int64_t i = 0; i < DONE_INSTANCES; i++)
    floor_run(bind(ADD_INSTANCE, 1, 100 + i));
  execute("COMMIT");
}

static int64_t
count_work(void)
{
  sqlite3_stmt *count = bind(COUNT_WORK, 1, now_ms());

  sqlite3_step(count);
  int64_t n = sqlite3_column_int64(count, 0);
  sqlite3_reset(count);
  return n;
}

static void
fetch_work(struct claim *claim, int64_t time)
{
  sqlite3_stmt *find = bind(FIND_WORK, 1, time);

  if (sqlite3_step(find) != SQLITE_ROW)
    die("no work is ready");
  claim->iid = sqlite3_column_int64(find, 0);
  claim->act = sqlite3_column_int64(find, 1);
  claim->epoch = sqlite3_column_int64(find, 2) + 1;
  sqlite3_reset(find);
  floor_run(bind(CLAIM_WORK, 3, claim->iid, claim->act, time + LEASE_MS));
}

/* With a completion for instance 1, or one of those that get them. */
static void
ack_work(const struct claim *claim, int64_t time)
{
  const bool is_fan_in = floor_.workload[0] == 'f';
  const int64_t to = is_fan_in ? 1 : 100 + claim->act % DONE_INSTANCES;

  if (floor_run(bind(ACK_WORK, 4, claim->iid, claim->act, claim->epoch, time)) != 1)
    die("a row was deleted");
  add_message(to, time);
  floor_run(bind(WAKE, 2, to, time));
}

static uint64_t
work(struct claim *claims)
{
  floor_run(bind(BEGIN, 0));
  for (unsigned i = 0; i < floor_.group; i++)
    fetch_work(&claims[i], now_ms());
  floor_run(bind(COMMIT, 0));
  floor_run(bind(BEGIN, 0));
  for (unsigned i = 0; i < floor_.group; i++)
    ack_work(&claims[i], now_ms());
  floor_run(bind(COMMIT, 0));
  return (uint64_t)floor_.group * 2;
}

/* ---- many cancellations ---------------------------------------------------------------------- */

/* Instance 1 is the one that cancels; as many rows of another one as are wanted. */
static void
begin_cancels(int64_t n, int64_t foreign)
{
  floor_.cancels = n;
  floor_run(bind(ADD_INSTANCE, 1, (int64_t)1));
  add_work(2, foreign);
}

/* `first` and those after it. */
static char *
list_of(int64_t first)
{
  size_t room = (size_t)floor_.cancels * 21 + 3;
  char *list = malloc(room);
  size_t length = 0;

  if (!list)
    die("no memory for the list");
  for (int64_t i = 0; i < floor_.cancels; i++)
    length += (size_t)snprintf(list + length, room - length, "%c%" PRId64, i == 0 ? '[' : ',',
                               first + i);
  snprintf(list + length, room - length, "]");
  return list;
}

static uint64_t
floor_cancel_all(struct claim *claims)
{
  char *list = list_of(floor_.activity - floor_.cancels + 1);

  (void)claims;
  floor_run(bind(BEGIN, 0));
  sqlite3_stmt *cancel = bind(CANCEL, 1, (int64_t)1);
  sqlite3_bind_text(cancel, 2, list, -1, SQLITE_STATIC);
  int gone = floor_run(cancel);
  sqlite3_stmt *add = bind(ADD_EVENT, 2, (int64_t)1, floor_.activity);
  bind_payload(add, 3);
  floor_run(add);
  floor_run(bind(COMMIT, 0));
  free(list);
  if (gone != floor_.cancels)
    die("%d rows went instead of %" PRId64, gone, floor_.cancels);
  return 1;
}

/* ---- the protocol ---------------------------------------------------------------------------- */

static void
floor_begin(const char *workload, int64_t a, int64_t b)
{
  if (floor_.db)
    close_database();
  open_database();
  snprintf(floor_.workload, sizeof(floor_.workload), "%s", workload);
  floor_.group = a > MOST_CALLERS ? MOST_CALLERS / 2 : a > 1 ? (unsigned)a / 2 : 1;
  if (strcmp(workload, "turn") == 0)
    begin_turns();
  else if (strcmp(workload, "work") == 0 || strcmp(workload, "fan-in") == 0)
    begin_work();
  else if (strcmp(workload, "cancel") == 0)
    begin_cancels(a, b);
  else
    die("there is no floor for %s", workload);
  puts("ok");
}

static void
run_slice(int64_t ms)
{
  struct claim claims[MOST_CALLERS] = {{0}};
  uint64_t operations = 0;
  uint64_t (*step)(struct claim *) = floor_.workload[0] == 't'   ? turns
                                     : floor_.workload[0] == 'c' ? floor_cancel_all
                                                                 : work;
  int64_t left = INT64_MAX;

  if (step == work) {
    int64_t there = count_work();
    if (there < ROOM)
      add_work(1, ROOM - there);
    left = ROOM / floor_.group;
  }
  if (step == floor_cancel_all)
    add_work(1, floor_.cancels);
  uint64_t before = syncs;
  int64_t start = now_ns();
  do
    operations += step(claims);
  while (step != floor_cancel_all && --left > 0 && now_ns() - start < ms * 1000000);
  printf("ok %" PRIu64 " %" PRId64 " %" PRIu64 "\n", operations, now_ns() - start, syncs - before);
}

static void
about(void)
{
  sqlite3_stmt *read;

  open_database();
  if (sqlite3_prepare_v2(floor_.db, "SELECT * FROM pragma_journal_mode, pragma_synchronous", -1,
                         &read, NULL) != SQLITE_OK
      || sqlite3_step(read) != SQLITE_ROW)
    die("%s", sqlite3_errmsg(floor_.db));
  printf("ok SQLite %s, journal_mode=%s, synchronous=%s, by hand\n", sqlite3_libversion(),
         sqlite3_column_text(read, 0), sqlite3_column_int(read, 1) == 2 ? "FULL" : "not FULL");
  sqlite3_finalize(read);
  close_database();
}

int
main(int argc, char **argv)
{
  char line[256], workload[32];
  int64_t a, b;

  if (argc != 2 || strlen(argv[1]) >= sizeof(floor_.path)) {
    fputs("usage: floor STORE, and the protocol of durakit bench on standard input\n", stderr);
    return 2;
  }
  snprintf(floor_.path, sizeof(floor_.path), "%s", argv[1]);
  memset(floor_.payload, 'x', PAYLOAD);
  while (fgets(line, sizeof(line), stdin)) {
    if (strncmp(line, "set ", 4) == 0)
      puts("ok"); /* the floor ignores what the provider receives about waiting */
    else if (strcmp(line, "about\n") == 0)
      about();
    else if (sscanf(line, "begin %31s %" SCNd64 " %" SCNd64, workload, &a, &b) == 3)
      floor_begin(workload, a, b);
    else if (sscanf(line, "run %" SCNd64, &a) == 1)
      run_slice(a);
    else
      die("not a line of the protocol: %s", line);
    if (fflush(stdout) != 0)
      break;
  }
  if (floor_.db)
    close_database();
  remove_files();
  return 0;
}
