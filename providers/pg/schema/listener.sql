-- SPDX-License-Identifier: Apache-2.0
-- CALL-7: the handles to be notified (NOTIFY) that something may have become ready.
--
-- A notification is a hint, and a missed one only costs time.  So the rows are lost when the server
-- crashes (unlogged), as are their sessions.  Each session holds its row's number as an advisory
-- lock; a session that finds a row without that lock removes it.
--
-- A transaction that makes something ready calls listening() after its first write to one of the
-- queues, and notifies the others after the commit.  A transaction that called it before a
-- registration existed holds a lock on its queue since then.  So when the writers() that are seen
-- after the registration have ended, all other writers know of it.
CREATE UNLOGGED TABLE @schema@.listener (
  number bigint PRIMARY KEY
);
COMMENT ON TABLE @schema@.listener IS
  'handles that listen for notifications; the next listener removes a row without a session';

-- 0: none; the number of the only one; -1: several.  The view is for a RETURNING of the write
-- itself: a statement locks its tables before it takes its snapshot.
CREATE VIEW @schema@.listening AS
  SELECT CASE count(*) WHEN 0 THEN 0 WHEN 1 THEN min(l.number) ELSE -1 END AS listening
  FROM (SELECT x.number FROM @schema@.listener AS x ORDER BY x.number LIMIT 2) AS l;

CREATE FUNCTION @schema@.listening() RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN (SELECT l.listening FROM @schema@.listening AS l);
END
$$;

-- Two that do it at once do not wait for one another.
CREATE FUNCTION @schema@.forget_listeners() RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  DELETE FROM @schema@.listener AS l
  WHERE l.number = ANY (ARRAY(
    SELECT d.number FROM @schema@.listener AS d
    WHERE NOT EXISTS (
      SELECT FROM pg_catalog.pg_locks AS k
      WHERE k.locktype = 'advisory' AND k.objsubid = 1 AND k.granted
        AND k.database = (SELECT b.oid FROM pg_catalog.pg_database AS b
                          WHERE b.datname = pg_catalog.current_database())
        AND (k.classid::bigint << 32 | k.objid::bigint) = d.number)
    FOR UPDATE SKIP LOCKED));
END
$$;

-- Registers this session if it is the client's own: `p_pid` is the number that the client has for
-- its session, which differs behind a pooler that lends sessions out.  False: nothing was done.
-- The session is idle most of the time, and a time-out for that (since PostgreSQL 14) would only
-- make it register again.
CREATE FUNCTION @schema@.listen(p_number bigint, p_pid int) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  IF p_pid <> pg_catalog.pg_backend_pid() OR NOT pg_catalog.pg_try_advisory_lock(p_number) THEN
    RETURN false;
  END IF;
  PERFORM pg_catalog.set_config('synchronous_commit', 'off', true);
  IF pg_catalog.current_setting('idle_session_timeout', true) IS NOT NULL THEN
    PERFORM pg_catalog.set_config('idle_session_timeout', '0', false);
  END IF;
  PERFORM @schema@.forget_listeners();
  INSERT INTO @schema@.listener(number) VALUES (p_number) ON CONFLICT DO NOTHING;
  RETURN true;
END
$$;

-- Transactions that write to a queue of this schema: all, or those of `p_among` that still run.
-- '': none.
CREATE FUNCTION @schema@.writers(p_schema text, p_among text) RETURNS text
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp SET jit = off AS $$
  SELECT coalesce(pg_catalog.string_agg(DISTINCT k.virtualtransaction, ','), '')
  FROM pg_catalog.pg_locks AS k
  WHERE k.locktype = 'relation' AND k.mode = 'RowExclusiveLock'
    AND k.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()
    AND k.relation IN (
      SELECT c.oid FROM pg_catalog.pg_class AS c
      WHERE c.relname IN ('instance', 'work')
        AND c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace AS n
                              WHERE n.nspname = p_schema))
    AND k.database = (SELECT d.oid FROM pg_catalog.pg_database AS d
                      WHERE d.datname = pg_catalog.current_database())
    AND (p_among IS NULL
         OR k.virtualtransaction = ANY (pg_catalog.string_to_array(p_among, ',')))
$$;

-- Notifies the others: bit 1 turns, bit 2 work.  Its own commit need not be durable, so that no
-- sync is made under the lock that a transaction with notifications holds while it commits.
CREATE FUNCTION @schema@.tell(p_channel text, p_rings int, p_forgets boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM pg_catalog.set_config('synchronous_commit', 'off', true);
  IF p_forgets THEN
    PERFORM @schema@.forget_listeners();
  END IF;
  PERFORM pg_catalog.pg_notify(p_channel, p_rings::text);
  RETURN true;
END
$$;
