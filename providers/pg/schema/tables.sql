-- SPDX-License-Identifier: Apache-2.0
-- The tables of version 4, in PostgreSQL.  Every text here is psql's own but for @schema@, which
-- becomes the schema's name, quoted, and @schema_literal@, which becomes the same as a string.
--
-- Rules that the functions beside this file live by:
--   ids       text COLLATE "C": bytewise.  Payloads are bytea, never looked into, never compressed;
--             NULL: absent.
--   times     milliseconds since 1970, bigint.  Sums saturate: see later().
--   numbers   one sequence, `number`, counts messages, leases, births and places.  It has no cache:
--             a number that is drawn under an instance's lock is greater than all that were drawn
--             under it before.  So messages are in order of arrival, and a turn's messages differ
--             from those that came after its claim.
--   locks     rows of `instance` first, all that a function needs, its own among them, in the order
--             of their ids, in one statement; then work.  One strength: FOR NO KEY UPDATE.  A
--             transaction that has locked an instance's row owns its messages, executions and
--             history: there is no wait for those.  A fetch waits for a row only while it holds
--             none.  Between instances and work comes the right to store activities of an instance:
--             a commit has it alone, other functions share it.
--             A deletion takes the rows FOR UPDATE.  FOR KEY SHARE conflicts with that and with
--             nothing else: a commit takes it on a new parent, and never waits for it; a prune
--             takes it, and locks old executions with it, which no other transaction writes.
--   now       read by clock() after the last wait for a lock.
--
-- The functions.  All begin with p_now bigint (the host's clock; NULL: the server's) and p_lock_ms
-- int.  Below are the rows that they return; `status` is 0, or a dk_status, which defines the rest
-- of the row.  `listening` (bigint): the handles that listen, see listening() in listener.sql;
-- NULL: nothing became ready.
--   common.sql    clock(p_now) bigint; later(bigint, bigint) bigint; begin_write(p_lock_ms) text
--                 lock_address(text) void         locks the instance's row, made if it is not there
--                 forget_address(text) void       deletes it if nothing needs it
--                 make_ready(text, bigint) void   a message for it is visible from then on
--                 lock_activities_of(text, bool) void   for storing activities of the instance
--                 readable(bytea) text
--   message.sql   enqueue_message(p_now, p_lock_ms, p_instance text, p_id text,
--                   p_visible_at bigint, p_delay bigint, p_payload bytea)
--                   -> (status int, listening bigint)
--   turn.sql      fetch_turn(p_now, p_lock_ms, p_try int, p_lease bigint, p_owner text,
--                   p_prefers bool, p_max bigint, p_bytes bigint, p_ranges bigint[],
--                   p_fetch_id bigint DEFAULT 0)
--                   -> (kind int, a..f bigint, t1..t4 text, payload bytea), see there
--                 renew_turn(p_now, p_lock_ms, p_instance text, p_epoch bigint, p_extend bigint)
--                 abandon_turn(p_now, p_lock_ms, p_instance text, p_epoch bigint, p_delay bigint,
--                   p_ignore bool)
--                   -> (status int, listening bigint, epoch bigint, locked_until bigint,
--                   now bigint)
--   commit.sql    commit_turn(...) -> (kind int, a..c bigint, owner text), see there
--   work.sql      enqueue_work(p_now, p_lock_ms, p_instance text, p_execution bigint,
--                   p_activity bigint, p_visible_at bigint, p_delay bigint, p_tag text,
--                   p_payload bytea)
--                   -> (status int, listening bigint)
--                 fetch_work(p_now, p_lock_ms, p_try int, p_lease bigint, p_owner text, p_max int,
--                   p_bytes bigint, p_rule int, p_tags text[], p_fetch_id bigint DEFAULT 0)
--                 ack_work(p_now, p_lock_ms, p_instance text, p_execution bigint,
--                   p_activity bigint, p_epoch bigint, p_to text, p_id text, p_visible_at bigint,
--                   p_delay bigint, p_payload bytea)
--                 renew_work(..., p_epoch bigint, p_extend bigint)
--                 abandon_work(..., p_epoch bigint, p_delay bigint, p_ignore bool)
--                   -> as renew_turn
--   release.sql   release_fetch(p_now, p_lock_ms, p_fetch_id bigint)
--                   -> (status int, listening bigint)
--   damage.sql    set_aside_turn(p_now, p_lock_ms, p_owner text, p_ranges bigint[], p_most bigint,
--                   p_length bigint)
--                 set_aside_work(p_now, p_lock_ms, p_among int, p_rule int, p_tags text[],
--                   p_most bigint, p_length bigint)
--                   -> (instance text, why text), or no row
--                 keep_turn_aside(p_now, p_lock_ms, p_instance text, p_epoch bigint,
--                   p_length bigint) bool
--                 keep_work_aside(p_now, p_lock_ms, p_instance text, p_execution bigint,
--                   p_activity bigint, p_epoch bigint, p_length bigint) bool
--   history.sql   read_history(p_now, p_lock_ms, p_instance text, p_execution bigint,
--                   p_from bigint, p_max bigint), see there; view history_text
--   admin.sql     list_instances(p_now, p_lock_ms, [filter], p_after text, p_max bigint,
--                   p_output bool); list_executions, read_messages(p_now, p_lock_ms,
--                   p_instance text, ...); read_stats(p_now, p_lock_ms)
--                 delete_instances(p_now, p_lock_ms, p_instances text[], p_force bool)
--                 delete_matching(p_now, p_lock_ms, [filter], p_after text, p_max bigint)
--                 prune_executions(p_now, p_lock_ms, [filter], p_after text, p_max bigint,
--                   p_instance text, p_keep bigint, p_before bigint)
--                   -> (status int, state int, t1, t2, next text, instances, executions, events,
--                   messages, activities bigint); a filter is seven parameters, see there
--   A dead token is the status DK_LOCK_LOST with the values of its row: epoch of the last lease
--   (NULL or 0: there is no row), locked_until (0: not locked) and now.

CREATE SEQUENCE @schema@.number AS bigint;
-- What makes the next number is written below: with the sequence's name in it, however odd that is,
-- it is looked up once for a statement and not once for a row.
CREATE FUNCTION @schema@.next_number() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT 0::bigint';
DO $make$
BEGIN
  EXECUTE format('CREATE OR REPLACE FUNCTION %I.next_number() RETURNS bigint LANGUAGE sql VOLATILE '
                 'AS %L', @schema_literal@,
                 format('SELECT pg_catalog.nextval(%L::pg_catalog.regclass)',
                        format('%I.number', @schema_literal@)));
END
$make$;

-- ready_at: NULL without messages, else the first message's visible_at, or the end of the lease,
-- or, if it was ready when it was released, the time of the release: then put_off is true.
-- place: its place among those of one instant.  locked_until 0: its turn is not locked.  epoch: the
-- number of the last lease.  The turn's messages are those up to (turn_visible_at, turn_seq) that
-- are older than its epoch.  done_epoch: the lease of the last commit.  birth 0: no turn was ever
-- committed, the instance is unknown, and the row is an address for messages only.  created_at: by
-- its first commit, when the oldest of its messages was stored.  fetch_id: of the fetch that made
-- the last lease, 0: it had none; it means something while locked_until is not 0.
CREATE TABLE @schema@.instance(
  instance text COLLATE "C" PRIMARY KEY,
  ready_at bigint,
  place bigint NOT NULL DEFAULT 0,
  put_off boolean NOT NULL DEFAULT false,
  locked_until bigint NOT NULL DEFAULT 0,
  epoch bigint NOT NULL DEFAULT 0,
  turn_visible_at bigint NOT NULL DEFAULT 0,
  turn_seq bigint NOT NULL DEFAULT 0,
  done_epoch bigint NOT NULL DEFAULT 0,
  birth bigint NOT NULL DEFAULT 0,
  status integer NOT NULL DEFAULT 0,
  execution bigint NOT NULL DEFAULT 0,
  last_event bigint NOT NULL DEFAULT 0,
  pinned bigint[],
  owner text COLLATE "C",
  name text COLLATE "C",
  version text COLLATE "C",
  parent text COLLATE "C",
  created_at bigint NOT NULL DEFAULT 0,
  fetch_id bigint NOT NULL DEFAULT 0)
  WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
-- While a table is small, the planner takes any index that can be used, and keeps the plan.  The
-- sums with nothing leave it only the intended index, here and in message_id: a statement that says
-- `ready_at + 0` is for these two, and one that says `instance || ''` for instance_parent: children
-- one after the other, wherever among the instances they are.
CREATE INDEX instance_ready ON @schema@.instance(ready_at, place) WHERE ready_at IS NOT NULL;
CREATE INDEX instance_warm ON @schema@.instance(owner, (ready_at + 0), place)
  WHERE ready_at IS NOT NULL AND owner IS NOT NULL;
CREATE INDEX instance_put_off ON @schema@.instance((ready_at + 0)) WHERE put_off;
CREATE INDEX instance_parent ON @schema@.instance(parent, (instance || ''))
  WHERE parent IS NOT NULL;
COMMENT ON TABLE @schema@.instance IS 'Durakit: one row for each orchestration instance, and for '
  'each id that has messages. birth 0: never committed. status: 1 running, 2 completed, 3 failed, '
  '4 continued as new, 5 cancelled. Times are milliseconds since 1970.';
COMMENT ON COLUMN @schema@.instance.ready_at IS 'when a turn can be fetched; null: no messages';
COMMENT ON COLUMN @schema@.instance.locked_until IS 'end of the turn''s lease; 0: none';
COMMENT ON COLUMN @schema@.instance.owner IS
  'the worker that has its history in memory since the last commit';
COMMENT ON COLUMN @schema@.instance.pinned IS '{major,minor,patch} of the current execution';

-- attempt: deliveries that have ended.  One that is under way, or whose lease has ended without a
-- new claim, is not yet counted: a claim writes no message.
CREATE TABLE @schema@.message(
  instance text COLLATE "C" NOT NULL,
  visible_at bigint NOT NULL,
  seq bigint NOT NULL,
  attempt bigint NOT NULL DEFAULT 0,
  enqueued_at bigint NOT NULL,
  id text COLLATE "C",
  payload bytea,
  PRIMARY KEY (instance, visible_at, seq))
  WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX message_id ON @schema@.message((instance || ''), id) WHERE id IS NOT NULL;
ALTER TABLE @schema@.message ALTER payload SET STORAGE EXTERNAL;
COMMENT ON TABLE @schema@.message IS 'Durakit: messages to orchestrations, delivered by '
  '(visible_at, seq).';

-- The primary key is the identity by which a commit cancels.  ready_at: visible_at, or the end of
-- the lease; place: among those of one instant.  epoch 0: no token was given since it was free.
-- tag '': none.  session: of an item of version 1 that had one; nothing goes by it without
-- durakit.sessions/1, and dropping it would lose it.  fetch_id: as that of an instance, while epoch
-- is not 0.
CREATE TABLE @schema@.work(
  instance text COLLATE "C" NOT NULL,
  execution bigint NOT NULL,
  activity bigint NOT NULL,
  ready_at bigint NOT NULL,
  place bigint NOT NULL,
  epoch bigint NOT NULL DEFAULT 0,
  attempt bigint NOT NULL DEFAULT 0,
  visible_at bigint NOT NULL,
  tag text COLLATE "C" NOT NULL DEFAULT '',
  owner text COLLATE "C",
  session text COLLATE "C",
  payload bytea,
  fetch_id bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (instance, execution, activity))
  WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX work_ready ON @schema@.work(tag, ready_at, place);
ALTER TABLE @schema@.work ALTER payload SET STORAGE EXTERNAL;
COMMENT ON TABLE @schema@.work IS 'Durakit: activities to run. To cancel one is to delete its row, '
  'in the transaction that commits the turn. epoch 0: not locked; else ready_at is the end of the '
  'lease, and owner the worker.';

CREATE TABLE @schema@.execution(
  instance text COLLATE "C" NOT NULL,
  execution bigint NOT NULL,
  status integer NOT NULL,
  started_at bigint NOT NULL,
  completed_at bigint NOT NULL DEFAULT 0,
  output bytea,
  PRIMARY KEY (instance, execution));
ALTER TABLE @schema@.execution ALTER output SET STORAGE EXTERNAL;
COMMENT ON TABLE @schema@.execution IS 'Durakit: each execution of an instance, with its status '
  'and output. completed_at 0: it runs.';

CREATE TABLE @schema@.history(
  instance text COLLATE "C" NOT NULL,
  execution bigint NOT NULL,
  event bigint NOT NULL,
  payload bytea,
  PRIMARY KEY (instance, execution, event));
ALTER TABLE @schema@.history ALTER payload SET STORAGE EXTERNAL;
COMMENT ON TABLE @schema@.history IS 'Durakit: events, as they were committed; read them by the '
  'view history_text.';
