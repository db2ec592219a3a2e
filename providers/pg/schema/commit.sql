-- SPDX-License-Identifier: Apache-2.0
-- ACK, CANCEL: the commit.  It stores what one turn did, whole or not at all.  All refusals come
-- under the locks and before the first change that stays.

-- Locks the rows of these instances and makes those that are not there, in one order.
CREATE FUNCTION @schema@.lock_addresses(p_instances text[]) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO @schema@.instance(instance)
    SELECT DISTINCT x.instance COLLATE "C" FROM unnest(p_instances) AS x(instance) ORDER BY 1
    ON CONFLICT (instance) DO UPDATE SET birth = excluded.birth WHERE false;
  RETURN true;
END
$$;

-- CANCEL-11: some of these activities were stored before.  Deletes those that this transaction has
-- stored, and returns the first of the others.
CREATE FUNCTION @schema@.find_stored(
  p_instance text, w_execution bigint[], w_activity bigint[],
  OUT execution bigint, OUT activity bigint)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM @schema@.work w WHERE w.xmin = pg_current_xact_id()::xid AND w.ctid = ANY (ARRAY(
    SELECT y.ctid FROM unnest(w_execution, w_activity) AS x(execution, activity), LATERAL (
      SELECT z.ctid FROM @schema@.work z WHERE z.instance = p_instance
        AND z.execution = x.execution AND z.activity = x.activity OFFSET 0) AS y));
  SELECT x.execution, x.activity INTO execution, activity
    FROM unnest(w_execution, w_activity) AS x(execution, activity),
      LATERAL (SELECT 1 FROM @schema@.work w WHERE w.instance = p_instance
               AND w.execution = x.execution AND w.activity = x.activity OFFSET 0) AS w LIMIT 1;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'an activity with this identity was stored at the same moment'
      USING ERRCODE = 'serialization_failure';
  END IF;
END
$$;

-- QUEUE-5: the instances other than this one that get messages.
CREATE FUNCTION @schema@.make_others_ready(
  p_instance text, p_now bigint, m_instance text[], m_visible_at bigint[], m_delay bigint[])
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  x record;
  v_done boolean;
BEGIN
  FOR x IN
    SELECT y.instance, min(greatest(y.visible_at, @schema@.later(p_now, y.delay))) AS visible_at
      FROM unnest(m_instance, m_visible_at, m_delay) AS y(instance, visible_at, delay)
      WHERE y.instance <> p_instance GROUP BY y.instance
  LOOP
    v_done := @schema@.make_ready(x.instance, x.visible_at);
  END LOOP;
  RETURN true;
END
$$;

-- The whole.  Lists come as one array for each member: e_ the events, w_ the worker items, m_ the
-- messages, c_ what is cancelled.  p_is_bare: an empty commit brings nothing that it must not have.
-- The rows, by kind:
--   COMMIT_ANSWER, the last one.  a: the status.
--      DK_OK: applied, or it was before (ACK-11); b: listening, NULL if nothing became ready
--      DK_INVALID: b UNFIT_...; c the current execution
--      DK_LOCK_LOST: b epoch of the row, 0: there is none; c locked_until; d now
--      DK_DUPLICATE: b DK_LIST_...: event c is not above d; activity d of execution c; a message to
--      t1 with id t2
--   COMMIT_CANCELLED: how many activities were deleted: a free, b locked
--   COMMIT_STOLEN: a locked one: a execution, b activity, c epoch, t1 owner
CREATE FUNCTION @schema@.commit_turn(
  p_now bigint, p_lock_ms integer, p_instance text, p_epoch bigint, p_is_repeated boolean,
  p_is_bare boolean, p_execution bigint, p_status integer, p_name text, p_version text,
  p_parent text, p_owner text, p_output bytea, p_pinned bigint[], e_event bigint[],
  e_payload bytea[], w_execution bigint[], w_activity bigint[], w_visible_at bigint[],
  w_delay bigint[], w_tag text[], w_payload bytea[], m_instance text[], m_id text[],
  m_visible_at bigint[], m_delay bigint[], m_payload bytea[], c_execution bigint[],
  c_activity bigint[], c_message text[])
RETURNS TABLE(kind integer, a bigint, b bigint, c bigint, d bigint, t1 text, t2 text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off
SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v record;
  v_now bigint;
  v_cancelled tid[];
  v_created bigint;
  v_next bigint;
  v_rows bigint;
  v_is_new boolean;
  v_set text := @schema@.begin_write(p_lock_ms);
  v_is_alone boolean := p_instance = ALL (m_instance);
  v_done boolean := v_is_alone OR @schema@.lock_addresses(m_instance || p_instance);
BEGIN
  SELECT i.epoch, i.locked_until, i.done_epoch, i.turn_visible_at, i.turn_seq, i.birth, i.execution,
      i.last_event, i.parent
    INTO v FROM @schema@.instance i WHERE i.instance = p_instance FOR NO KEY UPDATE;
  IF v.epoch = p_epoch AND v.locked_until <> 0 THEN   -- TIME-6: all that may wait, before the clock
    IF cardinality(w_activity) > 0 THEN
      v_done := @schema@.lock_activities_of(p_instance, true);
    END IF;
    IF cardinality(w_activity) > 0 AND cardinality(c_activity) > 0 THEN
      v_cancelled := @schema@.lock_activities(p_instance, c_execution, c_activity);
    END IF;
  END IF;
  v_now := @schema@.clock(p_now);

  IF p_is_repeated AND v.done_epoch = p_epoch THEN                                -- ACK-11
    a := @DK_OK@;
  ELSIF v.epoch IS DISTINCT FROM p_epoch OR v.locked_until <= v_now THEN          -- TOKEN-2 to -8
    a := @DK_LOCK_LOST@;
    b := v.epoch;
    c := v.locked_until;
    d := v_now;
  ELSIF p_execution = 0 THEN                                                      -- ERR-5, ACK-8
    IF NOT p_is_bare THEN
      a := @DK_INVALID@;
      b := @UNFIT_NOT_BARE@;
    END IF;
  ELSIF v.birth = 0 AND (p_name IS NULL OR p_version IS NULL) THEN                -- ACK-4
    a := @DK_INVALID@;
    b := @UNFIT_NAMELESS@;
  ELSIF p_execution <> v.execution + 1 AND (v.birth = 0 OR p_execution <> v.execution) THEN
    a := @DK_INVALID@;
    b := @UNFIT_EXECUTION@;
    c := v.execution;
  ELSIF p_execution = v.execution AND e_event[1] <= v.last_event THEN             -- ACK-12
    a := @DK_DUPLICATE@;
    b := @DK_LIST_EVENTS@;
    c := e_event[1];
    d := v.last_event;
  END IF;
  IF a IS NULL AND cardinality(array_remove(m_id, NULL)) > 0 THEN                 -- QUEUE-4
    SELECT @DK_DUPLICATE@, @DK_LIST_ORCHESTRATOR_ITEMS@, x.instance, x.id INTO a, b, t1, t2
      FROM unnest(m_instance, m_id) AS x(instance, id),
        LATERAL (SELECT 1 FROM @schema@.message m WHERE m.instance || '' = x.instance
                 AND m.id = x.id OFFSET 0) AS m LIMIT 1;
  END IF;
  IF a IS NULL AND cardinality(w_activity) > 0 THEN                               -- ACK-6, TAG-4
    INSERT INTO @schema@.work(instance, execution, activity, ready_at, place, visible_at, tag,
        payload)
      SELECT p_instance, x.execution, x.activity,
          greatest(x.visible_at, @schema@.later(v_now, x.delay)), @schema@.next_number(),
          greatest(x.visible_at, @schema@.later(v_now, x.delay)), coalesce(x.tag, ''), x.payload
        FROM unnest(w_execution, w_activity, w_visible_at, w_delay, w_tag, w_payload)
          AS x(execution, activity, visible_at, delay, tag, payload)
      ON CONFLICT (instance, execution, activity) DO NOTHING;
    GET DIAGNOSTICS v_rows = ROW_COUNT;
    IF v_rows <> cardinality(w_activity) THEN                                     -- CANCEL-11
      SELECT @DK_DUPLICATE@, @DK_LIST_WORKER_ITEMS@, x.execution, x.activity INTO a, b, c, d
        FROM @schema@.find_stored(p_instance, w_execution, w_activity) AS x;
    ELSIF p_now IS NULL AND v.locked_until <= @schema@.clock(NULL)
        AND v_now + v_rows < @schema@.clock(NULL) THEN
      -- TIME-6: only a wait for an ack of the same activity takes so long.
      RAISE EXCEPTION 'the lease ended while the commit waited to store an activity'
        USING ERRCODE = 'DK@DK_LOCK_LOST@';
    END IF;
  END IF;
  IF a IS NULL AND v_cancelled IS NULL AND cardinality(c_activity) > 0 THEN       -- CANCEL-1
    RETURN QUERY SELECT * FROM @schema@.cancel_listed(p_instance, c_execution, c_activity);
    v_now := @schema@.clock(p_now);
    IF v.locked_until <= v_now THEN                                               -- TIME-6
      RAISE EXCEPTION 'the lease ended while the commit waited to cancel an activity'
        USING ERRCODE = 'DK@DK_LOCK_LOST@';
    END IF;
  END IF;
  kind := @COMMIT_ANSWER@;
  IF a IS NOT NULL THEN
    PERFORM @schema@.forget_address(x.instance)
      FROM (SELECT DISTINCT y.instance FROM unnest(m_instance || p_instance) AS y(instance)) AS x;
    RETURN NEXT;
    RETURN;
  END IF;

  IF p_parent IS NOT NULL AND p_parent IS DISTINCT FROM v.parent THEN             -- DEL-3
    -- A transaction that deletes the parent at this moment has seen no child yet.  So this child is
    -- born only while no transaction deletes the parent.  There is no wait for that, because this
    -- transaction has locked its rows, and the parent's row is not in their order.
    PERFORM 1 FROM @schema@.instance i WHERE i.instance = p_parent FOR KEY SHARE NOWAIT;
  END IF;
  IF v.birth = 0 THEN                                                             -- ADMIN-3
    SELECT min(m.enqueued_at) INTO v_created FROM @schema@.message m
      WHERE m.instance = p_instance;
  END IF;
  DELETE FROM @schema@.message m WHERE m.instance = p_instance                    -- ACK-3
    AND (m.visible_at, m.seq) <= (v.turn_visible_at, v.turn_seq) AND m.seq < v.epoch;
  IF cardinality(e_event) > 0 THEN                                                -- HIST-1
    INSERT INTO @schema@.history(instance, execution, event, payload)
      SELECT p_instance, p_execution, x.event, x.payload
      FROM unnest(e_event, e_payload) AS x(event, payload);
  END IF;
  IF v_cancelled IS NOT NULL THEN                                                 -- CANCEL-3
    v_cancelled := v_cancelled || @schema@.just_inserted(p_instance, c_execution, c_activity);
    RETURN QUERY SELECT * FROM @schema@.cancel_activities(v_cancelled);
  END IF;
  IF cardinality(m_instance) > 0 THEN                                             -- ACK-7, QUEUE-2
    INSERT INTO @schema@.message(instance, visible_at, seq, enqueued_at, id, payload)
      SELECT x.instance, greatest(x.visible_at, @schema@.later(v_now, x.delay)),
          @schema@.next_number(), v_now, x.id, x.payload
        FROM unnest(m_instance, m_id, m_visible_at, m_delay, m_payload)
          AS x(instance, id, visible_at, delay, payload);
    v_done := v_is_alone OR @schema@.make_others_ready(p_instance, v_now, m_instance, m_visible_at,
      m_delay);
  END IF;
  IF cardinality(c_message) > 0 THEN                                              -- ACK-13
    DELETE FROM @schema@.message m WHERE m.ctid = ANY (ARRAY(
      SELECT y.ctid FROM unnest(c_message) AS x(id), LATERAL (
        SELECT z.ctid FROM @schema@.message z WHERE z.instance || '' = p_instance
          AND z.id = x.id OFFSET 0) AS y));
  END IF;

  a := @DK_OK@;
  IF p_execution = 0 THEN                                                         -- ACK-8
    v_done := @schema@.release_turn(p_instance, v_now, p_epoch);
    b := @schema@.listening();
    RETURN NEXT;
    RETURN;
  END IF;
  v_is_new := p_execution <> v.execution;
  IF v_is_new THEN                                                                -- EXEC-1 to -5
    INSERT INTO @schema@.execution(instance, execution, status, started_at, completed_at, output)
      VALUES (p_instance, p_execution,
              CASE WHEN p_status = @DK_STATUS_KEEP@ THEN @DK_RUNNING@ ELSE p_status END, v_now,
              CASE WHEN p_status > @DK_RUNNING@ THEN v_now ELSE 0 END,
              CASE WHEN p_status <> @DK_STATUS_KEEP@ THEN p_output END);
  ELSIF p_status <> @DK_STATUS_KEEP@ THEN
    UPDATE @schema@.execution x
      SET status = p_status, completed_at = CASE WHEN p_status > @DK_RUNNING@ THEN v_now ELSE 0 END,
          output = p_output
      WHERE x.instance = p_instance AND x.execution = p_execution;
  END IF;
  -- Stores the facts of the instance, and frees it: ACK-4, ACK-9, ACK-10, PIN-6, TURN-5, TURN-6.
  SELECT m.visible_at INTO v_next FROM @schema@.message m WHERE m.instance = p_instance
    ORDER BY m.visible_at, m.seq LIMIT 1;
  UPDATE @schema@.instance i
    SET locked_until = 0, ready_at = CASE WHEN v_next < v_now THEN v_now ELSE v_next END,
        put_off = coalesce(v_next < v_now, false), place = @schema@.next_number(),
        done_epoch = i.epoch, execution = p_execution, owner = p_owner,
        birth = CASE WHEN i.birth = 0 THEN @schema@.next_number() ELSE i.birth END,
        created_at = coalesce(v_created, i.created_at),
        status = CASE WHEN p_status <> @DK_STATUS_KEEP@ THEN p_status
                      WHEN v_is_new THEN @DK_RUNNING@ ELSE i.status END,
        last_event = coalesce(e_event[cardinality(e_event)],
                              CASE WHEN v_is_new THEN 0 ELSE i.last_event END),
        pinned = CASE WHEN p_pinned IS NULL AND NOT v_is_new THEN i.pinned ELSE p_pinned END,
        name = coalesce(p_name, i.name), version = coalesce(p_version, i.version),
        parent = coalesce(p_parent, i.parent)
    WHERE i.instance = p_instance
    RETURNING (SELECT l.listening FROM @schema@.listening l) INTO b;
  RETURN NEXT;
END
$$;

-- CANCEL-1, CANCEL-6, CANCEL-10: free, delayed, locked, expired or tagged, the listed rows of this
-- instance are deleted, and returned as they were.  One statement for any number: each row is found
-- by its identity, for which a LATERAL leaves no other plan, and is deleted by the place that was
-- found.  (The plan of one DELETE with the list beside it may be the reverse: all of the list for
-- each row of the instance.)  c: how many have left their place at that moment: claimed, renewed,
-- or deleted.
CREATE FUNCTION @schema@.cancel_found(
  p_instance text, c_execution bigint[], c_activity bigint[])
RETURNS TABLE(kind integer, a bigint, b bigint, c bigint, d bigint, t1 text, t2 text)
LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
    WITH found AS MATERIALIZED (
      SELECT ARRAY(
        SELECT y.ctid FROM unnest(c_execution, c_activity) AS x(execution, activity), LATERAL (
          SELECT z.ctid FROM @schema@.work z WHERE z.instance = p_instance
            AND z.execution = x.execution AND z.activity = x.activity OFFSET 0) AS y) AS places),
    gone AS (
      DELETE FROM @schema@.work w WHERE w.ctid = ANY ((SELECT f.places FROM found f)::tid[])
        RETURNING w.execution, w.activity, w.epoch, w.owner)
    SELECT @COMMIT_CANCELLED@, count(*) FILTER (WHERE g.epoch = 0),
      count(*) FILTER (WHERE g.epoch <> 0),
      (SELECT cardinality(f.places) FROM found f) - count(*), 0::bigint, NULL::text, NULL::text
      FROM gone g
    UNION ALL
    SELECT @COMMIT_STOLEN@, g.execution, g.activity, g.epoch, 0::bigint, g.owner::text, NULL::text
      FROM gone g WHERE g.epoch <> 0;
END
$$;

-- Locks the rows that have left their place where they are now.
CREATE FUNCTION @schema@.cancel_listed(
  p_instance text, c_execution bigint[], c_activity bigint[])
RETURNS TABLE(kind integer, a bigint, b bigint, c bigint, d bigint, t1 text, t2 text)
LANGUAGE plpgsql AS $$
DECLARE
  v_missed bigint := 0;
BEGIN
  FOR kind, a, b, c, d, t1, t2 IN
    SELECT * FROM @schema@.cancel_found(p_instance, c_execution, c_activity)
  LOOP
    v_missed := v_missed + CASE WHEN kind = @COMMIT_CANCELLED@ THEN c ELSE 0 END;
    RETURN NEXT;
  END LOOP;
  IF v_missed > 0 THEN
    RETURN QUERY SELECT * FROM @schema@.cancel_activities(
      @schema@.lock_activities(p_instance, c_execution, c_activity));
  END IF;
END
$$;

-- The same in two statements: the first locks the rows where they are, and the second deletes them
-- by their places, because they can no longer move.  A commit that also stores some does the same,
-- because it decides after the last wait.
CREATE FUNCTION @schema@.lock_activities(
  p_instance text, c_execution bigint[], c_activity bigint[])
RETURNS tid[]
LANGUAGE plpgsql AS $$
BEGIN
  RETURN ARRAY(SELECT w.ctid
    FROM unnest(c_execution, c_activity) AS x(execution, activity),
      LATERAL (SELECT y.ctid FROM @schema@.work y
               WHERE y.instance = p_instance AND y.execution = x.execution
                 AND y.activity = x.activity FOR UPDATE) AS w);
END
$$;

-- CANCEL-3: those of them that this very transaction has inserted since.
CREATE FUNCTION @schema@.just_inserted(
  p_instance text, c_execution bigint[], c_activity bigint[])
RETURNS tid[]
LANGUAGE plpgsql AS $$
BEGIN
  RETURN ARRAY(SELECT w.ctid
    FROM unnest(c_execution, c_activity) AS x(execution, activity),
      LATERAL (SELECT y.ctid FROM @schema@.work y
               WHERE y.instance = p_instance AND y.execution = x.execution
                 AND y.activity = x.activity AND y.xmin = pg_current_xact_id()::xid OFFSET 0) AS w);
END
$$;

-- These are not counted.
CREATE FUNCTION @schema@.cancel_activities(v_rows tid[])
RETURNS TABLE(kind integer, a bigint, b bigint, c bigint, d bigint, t1 text, t2 text)
LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY
    WITH gone AS (
      DELETE FROM @schema@.work w WHERE w.ctid = ANY (v_rows)
        RETURNING w.execution, w.activity, w.epoch, w.owner,
          w.xmin = pg_current_xact_id()::xid AS is_new)
    SELECT @COMMIT_CANCELLED@, count(*) FILTER (WHERE g.epoch = 0 AND NOT g.is_new),
      count(*) FILTER (WHERE g.epoch <> 0), 0::bigint, 0::bigint, NULL::text, NULL::text
      FROM gone g
    UNION ALL
    SELECT @COMMIT_STOLEN@, g.execution, g.activity, g.epoch, 0::bigint, g.owner::text, NULL::text
      FROM gone g WHERE g.epoch <> 0;
END
$$;
