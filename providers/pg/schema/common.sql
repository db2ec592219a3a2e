-- SPDX-License-Identifier: Apache-2.0
-- What the operations' functions share.

CREATE FUNCTION @schema@.clock(p_now bigint) RETURNS bigint
LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(p_now, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$$;

-- TIME-5: the sum of a time and a length, which saturates.
CREATE FUNCTION @schema@.later(p_time bigint, p_length bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT p_time + least(p_length, 9223372036854775807 - p_time)
$$;

-- Sets how long this transaction waits for a lock.  Its commit is durable, whatever the session's
-- settings are; if it might not be, the server reports that in a warning.
CREATE FUNCTION @schema@.begin_write(p_lock_ms integer) RETURNS text
LANGUAGE sql VOLATILE AS $$
  SELECT set_config('lock_timeout', p_lock_ms::text, true)
    || CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')
         THEN set_config('synchronous_commit', 'on', true) ELSE '' END
    || CASE WHEN current_setting('client_min_messages') = 'error'
         THEN set_config('client_min_messages', 'warning', true) ELSE '' END
$$;

-- A fetch waits for rows that others hold no longer than this, because there may be more by then.
CREATE FUNCTION @schema@.begin_await(p_lock_ms integer) RETURNS text
LANGUAGE sql VOLATILE AS $$
  SELECT set_config('lock_timeout', least(p_lock_ms, 100)::text, true)
$$;

-- TOKEN-1: the number of a lease must be above all earlier ones of its row, or no token is safe.
CREATE FUNCTION @schema@.refuse_number(p_number bigint, p_seen bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the store''s sequence "number" has fallen behind: it gave %, and a stored row '
    'has %; set it above all stored numbers, as docs/postgresql.md describes', p_number, p_seen
    USING ERRCODE = 'DK@DK_CORRUPT@';
END
$$;

-- Lets either one commit store activities of an instance, or other functions that are no commit: so
-- a commit that has this lock waits for no row that it inserts.  The lock lasts to the end of the
-- transaction.  The other advisory locks have a number of 64 bits (listener.sql).
CREATE FUNCTION @schema@.lock_activities_of(p_instance text, p_alone boolean) RETURNS boolean
LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN p_alone
    THEN pg_advisory_xact_lock(hashtext(@schema_literal@), hashtext(p_instance)) IS NULL
    ELSE pg_advisory_xact_lock_shared(hashtext(@schema_literal@), hashtext(p_instance)) IS NULL
  END
$$;

-- A function here returns `true` so that it can be part of an assignment, which the server
-- evaluates without a statement.

-- QUEUE-1: locks the row of an address, which is made if it is not there: without messages as yet.
CREATE FUNCTION @schema@.lock_address(p_instance text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  LOOP
    PERFORM 1 FROM @schema@.instance i WHERE i.instance = p_instance FOR NO KEY UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO @schema@.instance(instance) VALUES (p_instance)
      ON CONFLICT (instance) DO NOTHING;
    EXIT WHEN FOUND;
  END LOOP;
  RETURN true;
END
$$;

-- Deletes an address without use: this transaction made its row, or its last message was deleted.
CREATE FUNCTION @schema@.forget_address(p_instance text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM @schema@.instance i
    WHERE i.instance = p_instance AND i.birth = 0 AND i.ready_at IS NULL;
END
$$;

-- QUEUE-5: an instance whose turn is locked gets the message with its next turn; its row is locked.
CREATE FUNCTION @schema@.make_ready(p_instance text, p_visible_at bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE @schema@.instance i
    SET ready_at = p_visible_at, place = @schema@.next_number(), put_off = false
    WHERE i.instance = p_instance AND i.locked_until = 0
      AND (i.ready_at IS NULL OR i.ready_at > p_visible_at);
  RETURN true;
END
$$;

-- TURN-6, TURN-7: ends the turn; a ready instance goes behind those that are ready.  Then ready_at
-- is later than the time at which the first message is due, which matters if the clock goes back:
-- put_off.  An address without messages is deleted.  p_done: the lease of the last commit, NULL: as
-- it is.
CREATE FUNCTION @schema@.release_turn(p_instance text, p_now bigint, p_done bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_next bigint;
BEGIN
  SELECT m.visible_at INTO v_next FROM @schema@.message m WHERE m.instance = p_instance
    ORDER BY m.visible_at, m.seq LIMIT 1;
  UPDATE @schema@.instance i
    SET locked_until = 0, ready_at = CASE WHEN v_next < p_now THEN p_now ELSE v_next END,
        put_off = coalesce(v_next < p_now, false), place = @schema@.next_number(),
        done_epoch = coalesce(p_done, i.done_epoch)
    WHERE i.instance = p_instance;
  IF v_next IS NULL THEN
    PERFORM @schema@.forget_address(p_instance);
  END IF;
  RETURN true;
END
$$;

-- For people: a payload as text if it is text, else with the other bytes escaped.
CREATE FUNCTION @schema@.readable(p_payload bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN convert_from(p_payload, 'UTF8');
EXCEPTION WHEN OTHERS THEN
  RETURN encode(p_payload, 'escape');
END
$$;
