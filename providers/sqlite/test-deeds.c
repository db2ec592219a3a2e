/* SPDX-License-Identifier: Apache-2.0 */
/* Deeds on a prepared store: see test-deeds.h.  Owns the plugin and the tokens of the prepared
 * leases, which hold in every copy of that store. */
#include "providers/sqlite/test-deeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/testing/words.h"

enum { NOW = 1000000, LEASE = 3600000, LARGE = 5000, MOST_ACTIVITIES = 2001 };

static struct dk_library *library;
static char large[LARGE];

/* ---- the host -------------------------------------------------------------------------------- */

static int64_t passed; /* in a wait; else time stands still */

static int64_t
stand_still(struct dk_clock *clock)
{
  (void)clock;
  return NOW + passed;
}

static dk_status
wait_for_nothing(struct dk_clock *clock, const struct dk_wait *wait)
{
  (void)clock;
  (void)wait;
  passed++;
  return DK_NOTHING;
}

static struct dk_clock still_clock = {stand_still, wait_for_nothing};

void
deeds_begin(void)
{
  memset(large, 'l', sizeof large - 1);
  library = load_plugin("SQLITE_PLUGIN");
}

void
deeds_end(void)
{
  dk_library_close(library);
}

dk_status
doer_open(struct doer *doer, const char *path, uint32_t flags)
{
  const struct dk_host_options options = {.struct_size = sizeof options, .clock = &still_clock,
                                          .violation = note_violation};
  const struct dk_setting settings[] = {{"store", text(path)}, {"busy_timeout", text("5s")}};

  *doer = (struct doer){.caller = new_caller()};
  return dk_store_open(library, &options, doer->caller, flags, settings, 2, &doer->store);
}

void
doer_close(struct doer *doer)
{
  const char *stuck = doer->store ? dk_store_close(doer->store) : NULL;

  if (stuck)
    BAIL_OUT("close: %s did not return", stuck);
  dk_caller_free(doer->caller);
}

struct doer
doer_with_caller(const struct doer *doer)
{
  return (struct doer){new_caller(), doer->store};
}

const char *
failure_of(const struct doer *doer)
{
  return dk_caller_failure(doer->caller)->text;
}

static void
must(const struct doer *doer, dk_status status, const char *what)
{
  if (status != DK_OK)
    BAIL_OUT("%s: status %d: %s", what, (int)status, failure_of(doer));
}

/* ---- operations in short --------------------------------------------------------------------- */

static dk_status
enqueue(struct doer *doer, const char *instance, const char *payload, uint32_t flags)
{
  struct dk_item item = {.struct_size = sizeof item, .flags = flags, .instance = text(instance),
                         .id = text("the one"), .payload = text(payload)};

  return dk_store_enqueue_for_orchestrator(doer->store, doer->caller, &item);
}

dk_status
enqueue_bytes(struct doer *doer, const char *instance, size_t size)
{
  char *bytes = calloc(1, size + 1);
  struct dk_item item = {.struct_size = sizeof item, .instance = text(instance),
                         .payload = {bytes, size}};

  if (!bytes)
    BAIL_OUT("no memory");
  dk_status status = dk_store_enqueue_for_orchestrator(doer->store, doer->caller, &item);
  free(bytes);
  return status;
}

static dk_status
fetch_turn(struct doer *doer, struct dk_bytes *ret_token)
{
  struct dk_fetch_turn request = {.struct_size = sizeof request, .lock_ms = LEASE};
  struct dk_turn *turn = NULL;
  dk_status status =
    dk_store_fetch_orchestration_item(doer->store, doer->caller, &request, &turn);

  if (status == DK_OK)
    *ret_token = turn->head.lock_token;
  return status;
}

static dk_status
fetch_work(struct doer *doer, const char *tag, int64_t wait_until, struct dk_bytes *ret_token)
{
  struct dk_bytes tags[] = {text(tag)};
  struct dk_fetch_work request = {.struct_size = sizeof request, .max_items = 1, .lock_ms = LEASE,
                                  .owner = text("worker"), .tag_rule = DK_TAG_LISTED,
                                  .tags = tags, .n_tags = 1, .wait_until = wait_until};
  struct dk_works *works = NULL;
  dk_status status = dk_store_fetch_work_item(doer->store, doer->caller, &request, &works);

  if (status == DK_OK)
    *ret_token = works->items[0].work.lock_token;
  return status;
}

dk_status
wait_in_vain(struct doer *doer)
{
  struct dk_bytes token;
  dk_status status = fetch_work(doer, "unused", NOW + 2, &token);

  passed = 0;
  return status;
}

/* The first commit of an instance: three events, that many activities, a message to another. */
static dk_status
commit(struct doer *doer, struct dk_bytes token, const char *instance, size_t n, uint32_t flags)
{
  static struct dk_item items[MOST_ACTIVITIES];
  static const struct dk_item *list[MOST_ACTIVITIES];
  struct dk_event events[] = {{1, text("one")}, {2, text(large)}, {3, text("three")}};
  struct dk_item message = {.struct_size = sizeof message, .instance = text("elsewhere"),
                            .visible_at = NOW + LEASE, .payload = text(instance)};
  const struct dk_item *messages[] = {&message};
  struct dk_turn_result result = {.struct_size = sizeof result, .flags = flags, .execution_id = 1,
                                  .name = text("order"), .version = text("1"),
                                  .status = DK_RUNNING, .events = events, .n_events = 3,
                                  .worker_items = list, .n_worker_items = n,
                                  .orchestrator_items = messages, .n_orchestrator_items = 1};
  struct dk_commit_outcome outcome;

  for (size_t i = 0; i < n; i++) {
    items[i] = (struct dk_item){.struct_size = sizeof items[i], .execution_id = 1,
                                .activity_id = i + 1, .tag = text(instance),
                                .payload = text(i == 0 ? large : "do")};
    list[i] = &items[i];
  }
  return dk_store_ack_orchestration_item(doer->store, doer->caller, token, &result, &outcome);
}

/* The last: that many are cancelled. */
static dk_status
commit_cancelling(struct doer *doer, struct dk_bytes token, size_t n, uint32_t flags)
{
  struct dk_activity *cancelled = calloc(n, sizeof *cancelled);
  struct dk_event events[] = {{4, text(large)}};
  struct dk_turn_result result = {.struct_size = sizeof result, .flags = flags, .execution_id = 1,
                                  .status = DK_COMPLETED, .output = text(large), .events = events,
                                  .n_events = 1, .cancelled_activities = cancelled,
                                  .n_cancelled_activities = n};
  struct dk_commit_outcome outcome;

  if (!cancelled)
    BAIL_OUT("no memory");
  for (size_t i = 0; i < n; i++)
    cancelled[i] = (struct dk_activity){1, i + 1};
  dk_status status =
    dk_store_ack_orchestration_item(doer->store, doer->caller, token, &result, &outcome);
  free(cancelled);
  return status;
}

static dk_status
ack_work(struct doer *doer, struct dk_bytes token, const char *instance, uint32_t flags)
{
  struct dk_item completion = {.struct_size = sizeof completion, .instance = text(instance),
                               .payload = text(large)};
  struct dk_work_result result = {.struct_size = sizeof result, .flags = flags,
                                  .completion = &completion};

  return dk_store_ack_work_item(doer->store, doer->caller, token, &result);
}

static dk_status
enqueue_work(struct doer *doer, const char *instance, uint32_t flags)
{
  struct dk_item item = {.struct_size = sizeof item, .flags = flags, .instance = text(instance),
                         .execution_id = 1, .activity_id = 1, .payload = text(large)};

  return dk_store_enqueue_for_worker(doer->store, doer->caller, &item);
}

/* Whatever it does, with whatever descends from it. */
static dk_status
delete_instance(struct doer *doer, const char *instance)
{
  struct dk_bytes list[] = {text(instance)};
  struct dk_delete_instances request = {.struct_size = sizeof request, .flags = DK_DELETE_FORCE,
                                        .instances = list, .n_instances = 1};

  return dk_store_delete_instances(doer->store, doer->caller, &request, NULL);
}

static dk_status
delete_page(struct doer *doer, const char *instance)
{
  struct dk_bytes list[] = {text(instance)};
  const struct dk_instance_filter filter = {.struct_size = sizeof filter, .flags = DK_FILTER_IDS,
                                            .ids = list, .n_ids = 1};
  struct dk_delete_matching request = {.struct_size = sizeof request, .filter = &filter,
                                       .max_instances = 10};

  return dk_store_delete_matching(doer->store, doer->caller, &request, NULL);
}

static dk_status
prune(struct doer *doer, const char *instance)
{
  struct dk_prune request = {.struct_size = sizeof request, .instance = text(instance)};

  return dk_store_prune_executions(doer->store, doer->caller, &request, NULL);
}

static dk_status
read_history(struct doer *doer, const char *instance)
{
  struct dk_read_history request = {.struct_size = sizeof request, .instance = text(instance)};
  struct dk_history *history = NULL;
  dk_status status = dk_store_read_history(doer->store, doer->caller, &request, &history);

  if (status != DK_OK)
    return status;
  return history->n_events == 3 && history->events[1].payload.len == LARGE - 1 ? DK_OK : DK_CORRUPT;
}

/* ---- the deeds ------------------------------------------------------------------------------- */

enum verb { ENQUEUE, ENQUEUE_LARGE, FETCH_TURN, RENEW_TURN, COMMIT, CANCEL, GIVE_BACK_TURN,
            FETCH_WORK, RENEW_WORK, ACK_WORK, GIVE_BACK_WORK, ENQUEUE_WORK, DELETE, DELETE_PAGE,
            PRUNE, READ };
/* What it needs; each includes those above it, but for the locked work. */
enum need { NOTHING, MESSAGE, TURN, KNOWN, WORK, LOCKED_WORK, SECOND_TURN, OVER, NEXT_EXECUTION };

#define IID(name) "(SELECT iid FROM instance WHERE instance='" name "')"
#define ROWS(table, name) "(SELECT count(*) FROM " table " WHERE iid=" IID(name) ")"
#define LARGE_ROWS(table, name)                                                                    \
  "(SELECT count(*) FROM " table " t JOIN large l ON l.id=t.large WHERE t.iid=" IID(name) ")"
#define OF_INSTANCE(column, name) "(SELECT " column " FROM instance WHERE instance='" name "')"
#define OF(table, column, name) "(SELECT " column " FROM " table " WHERE iid=" IID(name) ")"
#define SENT(name)                                                                                 \
  "(SELECT count(*) FROM message WHERE iid=" IID("elsewhere") " AND payload=CAST('" name           \
  "' AS BLOB))"
#define LATER "1000000+3600000"
#define MUCH_LATER "1000000+3*3600000"

static struct deed {
  const char *instance; /* its name too */
  enum verb verb;
  enum need need;
  size_t n;             /* activities */
  dk_status repeated;
  const char *done, *undone;
  char token[128];
} deeds[DEEDS] = {
  {"new", ENQUEUE, NOTHING, 0, DK_DUPLICATE,
   ROWS("message", "new") "=1 AND " OF_INSTANCE("ready_at", "new") "=1000000",
   IID("new") " IS NULL", ""},
  {"idle", ENQUEUE_LARGE, KNOWN, 1, DK_DUPLICATE,
   ROWS("message", "idle") "=1 AND " LARGE_ROWS("message", "idle") "=1 AND "
   OF_INSTANCE("ready_at", "idle") "=1000000",
   ROWS("message", "idle") "=0 AND " OF_INSTANCE("ready_at", "idle") " IS NULL", ""},
  {"plain", ENQUEUE, NOTHING, 0, DK_DUPLICATE,
   ROWS("message", "plain") "=1 AND " OF_INSTANCE("ready_at", "plain") "=1000000",
   IID("plain") " IS NULL", ""},
  {"turn", FETCH_TURN, MESSAGE, 0, -1,
   OF_INSTANCE("locked_until=" LATER " AND epoch>0", "turn"),
   OF_INSTANCE("locked_until=0 AND epoch=0", "turn"), ""},
  {"renewed", RENEW_TURN, TURN, 0, -1, OF_INSTANCE("locked_until", "renewed") "=" MUCH_LATER,
   OF_INSTANCE("locked_until", "renewed") "=" LATER, ""},
  [COMMITTING] = {"committed", COMMIT, TURN, 40, DK_OK,
   ROWS("message", "committed") "=0 AND " ROWS("history", "committed") "=3 AND "
   ROWS("work", "committed") "=40 AND " ROWS("execution", "committed") "=1 AND "
   SENT("committed") "=1 AND " OF_INSTANCE("known=1 AND locked_until=0", "committed"),
   ROWS("message", "committed") "=1 AND " ROWS("history", "committed") "=0 AND "
   ROWS("work", "committed") "=0 AND " ROWS("execution", "committed") "=0 AND "
   SENT("committed") "=0 AND " OF_INSTANCE("known=0 AND locked_until=" LATER, "committed"), ""},
  {"cancelling", CANCEL, SECOND_TURN, 50, DK_OK,
   ROWS("message", "cancelling") "=0 AND " ROWS("work", "cancelling") "=0 AND "
   ROWS("history", "cancelling") "=4 AND " OF("execution", "status", "cancelling") "=2 AND "
   LARGE_ROWS("execution", "cancelling") "=1 AND " OF_INSTANCE("locked_until=0", "cancelling"),
   ROWS("message", "cancelling") "=1 AND " ROWS("work", "cancelling") "=50 AND "
   ROWS("history", "cancelling") "=3 AND " OF("execution", "status", "cancelling") "=1 AND "
   OF_INSTANCE("locked_until=" LATER, "cancelling"), ""},
  {"cancelling-many", CANCEL, SECOND_TURN, MOST_ACTIVITIES, DK_OK,
   ROWS("message", "cancelling-many") "=0 AND " ROWS("work", "cancelling-many") "=0 AND "
   OF("execution", "status", "cancelling-many") "=2",
   ROWS("message", "cancelling-many") "=1 AND " ROWS("work", "cancelling-many") "=2001 AND "
   OF("execution", "status", "cancelling-many") "=1", ""},
  {"given-back", GIVE_BACK_TURN, TURN, 0, -1,
   OF_INSTANCE("locked_until", "given-back") "=0 AND "
   OF("message", "visible_at", "given-back") "=1005000",
   OF_INSTANCE("locked_until", "given-back") "=" LATER " AND "
   OF("message", "visible_at", "given-back") "=1000000", ""},
  {"item", FETCH_WORK, WORK, 1, -1, OF("work", "ready_at=" LATER " AND attempt=1", "item"),
   OF("work", "ready_at=1000000 AND attempt=0 AND epoch=0", "item"), ""},
  {"item-two", FETCH_WORK, WORK, 1, -1,
   OF("work", "ready_at=" LATER " AND attempt=1", "item-two"),
   OF("work", "ready_at=1000000 AND attempt=0 AND epoch=0", "item-two"), ""},
  {"item-renewed", RENEW_WORK, LOCKED_WORK, 1, -1,
   OF("work", "ready_at=" MUCH_LATER, "item-renewed"),
   OF("work", "ready_at=" LATER, "item-renewed"), ""},
  {"item-done", ACK_WORK, LOCKED_WORK, 1, -1,
   ROWS("work", "item-done") "=0 AND " LARGE_ROWS("message", "item-done") "=1",
   ROWS("work", "item-done") "=1 AND " ROWS("message", "item-done") "=0", ""},
  {"item-given-back", GIVE_BACK_WORK, LOCKED_WORK, 1, -1,
   OF("work", "epoch=0 AND visible_at=1005000", "item-given-back"),
   OF("work", "epoch>0 AND visible_at=1000000", "item-given-back"), ""},
  {"item-new", ENQUEUE_WORK, NOTHING, 0, DK_DUPLICATE, LARGE_ROWS("work", "item-new") "=1",
   IID("item-new") " IS NULL", ""},
  [REMOVING] = {"deleted", DELETE, KNOWN, 40, DK_NOT_FOUND,
   IID("deleted") " IS NULL AND " IID("deleted-child") " IS NULL",
   ROWS("work", "deleted") "=40 AND " ROWS("history", "deleted") "=3 AND "
   LARGE_ROWS("work", "deleted") "=1 AND " ROWS("message", "deleted-child") "=1 AND "
   ROWS("history", "deleted-child") "=3 AND " OF_INSTANCE("locked_until=" LATER, "deleted-child"),
   ""},
  {"deleted-by-page", DELETE_PAGE, OVER, 5, DK_OK, IID("deleted-by-page") " IS NULL",
   ROWS("history", "deleted-by-page") "=4 AND " LARGE_ROWS("execution", "deleted-by-page") "=1",
   ""},
  {"pruned", PRUNE, NEXT_EXECUTION, 5, DK_OK,
   ROWS("execution", "pruned") "=1 AND " ROWS("history", "pruned") "=0 AND "
   OF_INSTANCE("created_at=1000000", "pruned"),
   ROWS("execution", "pruned") "=2 AND " ROWS("history", "pruned") "=4 AND "
   LARGE_ROWS("history", "pruned") "=2 AND " LARGE_ROWS("execution", "pruned") "=1 AND "
   OF_INSTANCE("created_at=1000000", "pruned"), ""},
  [READING] = {"read", READ, KNOWN, 1, -1, "0", ROWS("history", "read") "=3", ""},
};

const char *
deed_name(int deed)
{
  return deeds[deed].instance;
}

dk_status
deed_answer_when_repeated(int deed)
{
  return deeds[deed].repeated;
}

dk_status
deed_do(int deed, struct doer *doer, bool is_repeated)
{
  const struct deed *d = &deeds[deed];
  struct dk_bytes token = text(d->token), other;
  uint32_t flags = is_repeated ? DK_REPEATED : 0;

  switch (d->verb) {
  case ENQUEUE:
    return enqueue(doer, d->instance, "hello", flags);
  case ENQUEUE_LARGE:
    return enqueue(doer, d->instance, large, flags);
  case FETCH_TURN:
    return fetch_turn(doer, &other);
  case RENEW_TURN:
    return dk_store_renew_orchestration_item_lock(doer->store, doer->caller, token, 3 * LEASE);
  case COMMIT:
    return commit(doer, token, d->instance, d->n, flags);
  case CANCEL:
    return commit_cancelling(doer, token, d->n, flags);
  case GIVE_BACK_TURN:
    return dk_store_abandon_orchestration_item(doer->store, doer->caller, token, 5000, 0);
  case FETCH_WORK:
    return fetch_work(doer, d->instance, 0, &other);
  case RENEW_WORK:
    return dk_store_renew_work_item_lock(doer->store, doer->caller, token, 3 * LEASE);
  case ACK_WORK:
    return ack_work(doer, token, d->instance, flags);
  case GIVE_BACK_WORK:
    return dk_store_abandon_work_item(doer->store, doer->caller, token, 5000, 0);
  case ENQUEUE_WORK:
    return enqueue_work(doer, d->instance, flags);
  case DELETE:
    return delete_instance(doer, d->instance);
  case DELETE_PAGE:
    return delete_page(doer, d->instance);
  case PRUNE:
    return prune(doer, d->instance);
  case READ:
    return read_history(doer, d->instance);
  }
  return DK_INTERNAL;
}

/* ---- what they need -------------------------------------------------------------------------- */

static void
keep_token(struct deed *d, struct dk_bytes token)
{
  if (token.len >= sizeof d->token)
    BAIL_OUT("a token of %zu bytes", token.len);
  memcpy(d->token, token.ptr, token.len);
  d->token[token.len] = '\0';
}

static void
prepare_turn(struct deed *d, struct doer *doer)
{
  struct dk_bytes token;

  must(doer, enqueue(doer, d->instance, "hello", 0), "enqueue");
  if (d->need == MESSAGE)
    return;
  must(doer, fetch_turn(doer, &token), "fetch a turn");
  keep_token(d, token);
}

static void
prepare_locked_work(struct deed *d, struct doer *doer)
{
  struct dk_bytes token;

  must(doer, fetch_work(doer, d->instance, 0, &token), "fetch work");
  keep_token(d, token);
}

static void
prepare_next_execution(struct deed *d, struct doer *doer)
{
  struct dk_turn_result result = {.struct_size = sizeof result, .execution_id = 2};
  struct dk_commit_outcome outcome;

  prepare_turn(d, doer);
  dk_status status = dk_store_ack_orchestration_item(doer->store, doer->caller, text(d->token),
                                                     &result, &outcome);
  must(doer, status, "the next execution");
}

static void
prepare(struct deed *d, struct doer *doer)
{
  if (d->need == NOTHING)
    return;
  prepare_turn(d, doer);
  if (d->need < KNOWN)
    return;
  must(doer, commit(doer, text(d->token), d->instance, d->n, 0), "the first commit");
  if (d->need >= SECOND_TURN)
    prepare_turn(d, doer);
  if (d->need >= OVER)
    must(doer, commit_cancelling(doer, text(d->token), d->n, 0), "the last commit");
  if (d->need == NEXT_EXECUTION)
    prepare_next_execution(d, doer);
  if (d->need == LOCKED_WORK)
    prepare_locked_work(d, doer);
}

/* Its descendant is in the middle of a turn. */
static void
prepare_child(struct doer *doer)
{
  struct deed child = {.instance = "deleted-child", .need = SECOND_TURN, .n = 5};

  prepare(&child, doer);
}

/* What is to be fetched last: the others fetch theirs. */
void
deeds_prepare(const char *path)
{
  struct doer doer;

  must(&doer, doer_open(&doer, path, DK_OPEN_CREATE), "open");
  for (int i = 0; i < DEEDS; i++)
    if (deeds[i].need != MESSAGE)
      prepare(&deeds[i], &doer);
  prepare_child(&doer);
  for (int i = 0; i < DEEDS; i++)
    if (deeds[i].need == MESSAGE)
      prepare(&deeds[i], &doer);
  doer_close(&doer);
  sql_at(path, "UPDATE instance SET parent='deleted' WHERE instance='deleted-child'");
}

/* ---- looking --------------------------------------------------------------------------------- */

#define OF_NOBODY(table)                                                                           \
  "(SELECT count(*) FROM " table " WHERE iid NOT IN (SELECT iid FROM instance))"

/* Each counts what does not fit. */
static const char *const invariants =
  "(SELECT count(*) FROM pragma_integrity_check WHERE integrity_check<>'ok')"
  "+(SELECT count(*) FROM large WHERE id NOT IN (SELECT large FROM message WHERE large NOTNULL"
  "   UNION ALL SELECT large FROM work WHERE large NOTNULL"
  "   UNION ALL SELECT large FROM execution WHERE large NOTNULL"
  "   UNION ALL SELECT large FROM history WHERE large NOTNULL))"
  "+(SELECT count(*) FROM (SELECT large FROM message UNION ALL SELECT large FROM work"
  "   UNION ALL SELECT large FROM execution UNION ALL SELECT large FROM history)"
  "  WHERE large NOTNULL AND large NOT IN (SELECT id FROM large))"
  "+(SELECT count(*) FROM instance i WHERE i.ready_at IS NOT max(i.locked_until,"
  "   (SELECT min(m.visible_at) FROM message m WHERE m.iid=i.iid)))"
  "+" OF_NOBODY("message") "+" OF_NOBODY("work") "+" OF_NOBODY("execution") "+"
  OF_NOBODY("history")
  "+(SELECT count(*) FROM history h WHERE NOT EXISTS (SELECT 1 FROM execution e"
  "   WHERE e.iid=h.iid AND e.execution=h.execution))"
  "+(SELECT max(seq)>(SELECT counter FROM meta) FROM message)"
  "+(SELECT max(epoch)>(SELECT counter FROM meta) FROM instance)";

static char *
look_text(void)
{
  char *sql = NULL;
  size_t size;
  FILE *file = open_memstream(&sql, &size);

  if (!file)
    BAIL_OUT("no memory");
  fprintf(file, "SELECT %s", invariants);
  for (int i = 0; i < DEEDS; i++)
    fprintf(file, ", coalesce((%s),0)-coalesce((%s),0)", deeds[i].done, deeds[i].undone);
  fclose(file);
  return sql;
}

int
deeds_look(const char *path, enum state ret_states[DEEDS])
{
  sqlite3 *db = somebody(path);
  sqlite3_stmt *row;
  char *sql = look_text();

  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL); /* the log stays as it is */
  if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) != SQLITE_OK || sqlite3_step(row) != SQLITE_ROW)
    BAIL_OUT("%s: %s", path, sqlite3_errmsg(db));
  int wrong = sqlite3_column_int(row, 0);
  for (int i = 0; i < DEEDS; i++)
    ret_states[i] = sqlite3_column_int(row, i + 1);
  sqlite3_finalize(row);
  sqlite3_close(db);
  free(sql);
  return wrong;
}
