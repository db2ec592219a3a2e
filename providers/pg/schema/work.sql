-- SPDX-License-Identifier: Apache-2.0
-- WORK, TAG: the worker queue.  If the row is there it is work: nothing here reads the state of an
-- orchestration.

-- WORK-9: the same row as a commit's.  CANCEL-11: one identity, one row.
CREATE FUNCTION @schema@.enqueue_work(
  p_now bigint, p_lock_ms integer, p_instance text, p_execution bigint, p_activity bigint,
  p_visible_at bigint, p_delay bigint, p_tag text, p_payload bytea)
RETURNS TABLE(status integer, listening bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_set text := @schema@.begin_write(p_lock_ms);
  v_done boolean := @schema@.lock_activities_of(p_instance, false);
  v_visible_at bigint;
BEGIN
  v_visible_at := greatest(p_visible_at, @schema@.later(@schema@.clock(p_now), p_delay));
  INSERT INTO @schema@.work(instance, execution, activity, ready_at, place, visible_at, tag,
                            payload)
    VALUES (p_instance, p_execution, p_activity, v_visible_at, @schema@.next_number(), v_visible_at,
            coalesce(p_tag, ''), p_payload)
    ON CONFLICT (instance, execution, activity) DO NOTHING;
  IF FOUND THEN
    IF p_delay > 0 THEN -- TIME-1: it may have waited for the end of the same one
      UPDATE @schema@.work AS w SET ready_at = n.visible_at, visible_at = n.visible_at
        FROM (SELECT greatest(p_visible_at, @schema@.later(@schema@.clock(p_now), p_delay))
                AS visible_at) AS n
        WHERE w.instance = p_instance AND w.execution = p_execution AND w.activity = p_activity
          AND n.visible_at > v_visible_at;
    END IF;
    RETURN QUERY SELECT @DK_OK@, @schema@.listening();
  ELSE
    RETURN QUERY SELECT @DK_DUPLICATE@, NULL::bigint;
  END IF;
END
$$;

-- ---- fetching -----------------------------------------------------------------------------------

-- TAG-1: the tags that a rule takes, as they are stored; '' is that of an item without one.  For
-- "any" it gives all existing tags, one after the other in the index.  That is right for tags that
-- name kinds of workers; with one tag for each of many thousand tenants a fetch takes as many
-- looks, and a host should list tags.
CREATE FUNCTION @schema@.wanted_tags(p_rule integer, p_tags text[]) RETURNS text[]
LANGUAGE plpgsql
AS $$
DECLARE
  v_last text;
BEGIN
  IF p_rule = @DK_TAG_UNTAGGED@ THEN
    RETURN ARRAY[''];
  ELSIF p_rule < @DK_TAG_ANY@ THEN
    RETURN ARRAY(SELECT DISTINCT t.tag FROM unnest(p_tags) AS t(tag) WHERE t.tag <> ''
                 UNION ALL SELECT '' WHERE p_rule = @DK_TAG_UNTAGGED_OR_LISTED@);
  END IF;
  SELECT w.tag INTO v_last FROM @schema@.work AS w ORDER BY w.tag DESC LIMIT 1;
  IF v_last = '' THEN -- the least of all
    RETURN ARRAY[''];
  END IF;
  RETURN ARRAY(
    WITH RECURSIVE stored(tag) AS (
      (SELECT w.tag FROM @schema@.work AS w ORDER BY w.tag LIMIT 1)
      UNION ALL
      SELECT (SELECT w.tag FROM @schema@.work AS w WHERE w.tag > s.tag ORDER BY w.tag LIMIT 1)
      FROM stored AS s WHERE s.tag IS NOT NULL)
    SELECT s.tag FROM stored AS s WHERE s.tag IS NOT NULL);
END
$$;

-- WORK-2: the tags under which something is ready; first the tag of the item that is ready longest.
CREATE FUNCTION @schema@.ready_tags(p_tags text[], p_now bigint) RETURNS text[]
LANGUAGE plpgsql
AS $$
BEGIN
  RETURN ARRAY(
    SELECT t.tag FROM unnest(p_tags) AS t(tag) CROSS JOIN LATERAL (
      SELECT w.ready_at, w.place FROM @schema@.work AS w
      WHERE w.tag = t.tag AND w.ready_at <= p_now ORDER BY w.ready_at, w.place LIMIT 1) AS h
    ORDER BY h.ready_at, h.place);
END
$$;

-- CALL-6: when the first under these tags is ready.
CREATE FUNCTION @schema@.next_work(p_tags text[]) RETURNS bigint
LANGUAGE plpgsql
AS $$
BEGIN
  RETURN (
    SELECT min(h.ready_at) FROM unnest(p_tags) AS t(tag) CROSS JOIN LATERAL (
      SELECT w.ready_at FROM @schema@.work AS w
      WHERE w.tag = t.tag ORDER BY w.ready_at, w.place LIMIT 1) AS h);
END
$$;

-- Waits for the transaction that holds the item that is ready longest, before this transaction has
-- any lock.  A claim skips held items, and never waits, because it keeps locks of rows that it did
-- not take.  False: it waited for as long as a fetch may, in vain.
CREATE FUNCTION @schema@.await_work(p_tags text[], p_now bigint, p_lock_ms integer) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
  v_tags text[] := @schema@.ready_tags(p_tags, p_now);
  k record;
BEGIN
  SELECT w.instance, w.execution, w.activity INTO k FROM @schema@.work AS w
    WHERE w.tag = v_tags[1] AND w.ready_at <= p_now ORDER BY w.ready_at, w.place LIMIT 1;
  PERFORM @schema@.begin_await(p_lock_ms);
  PERFORM 1 FROM @schema@.work AS w
    WHERE w.instance = k.instance AND w.execution = k.execution AND w.activity = k.activity
    FOR NO KEY UPDATE;
  PERFORM set_config('lock_timeout', p_lock_ms::text, true);
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END
$$;

-- WORK-1, WORK-8: rows of kind WORK_ITEM.  Or one: WORK_NOTHING is ready, the next will be at `due`
-- (NULL: never); WORK_AGAIN: what is ready is held by transactions that run, so try again;
-- WORK_IN_VAIN: the same, and this one has waited for them.
-- WORK-12: a claimed row is skipped by all others until this has committed, and is not ready then.
CREATE FUNCTION @schema@.fetch_work(
  p_now bigint, p_lock_ms integer, p_try integer, p_lease bigint, p_owner text, p_max integer,
  p_bytes bigint, p_rule integer, p_tags text[], p_fetch_id bigint DEFAULT 0)
RETURNS TABLE(kind integer, now bigint, due bigint, instance text, execution bigint,
              activity bigint, epoch bigint, attempt bigint, visible_at bigint, tag text,
              payload bytea)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_set text := @schema@.begin_write(p_lock_ms);
  v_wanted text[];
  v_tags text[];
  v_tag text;
  v_n integer := 0;
  v_bytes bigint := 0;
  v_is_full boolean := false;
  v_is_let_go boolean := true;
  v_number bigint;
  v_until bigint;
  k record;
BEGIN
  v_wanted := @schema@.wanted_tags(p_rule, p_tags);
  IF p_try >= 3 THEN
    v_is_let_go := @schema@.await_work(v_wanted, @schema@.clock(p_now), p_lock_ms);
  END IF;
  now := @schema@.clock(p_now);
  v_tags := v_wanted;
  IF cardinality(v_wanted) > 1 THEN
    v_tags := @schema@.ready_tags(v_wanted, now);
  END IF;

  kind := @WORK_ITEM@;
  v_until := @schema@.later(now, p_lease);
  FOREACH v_tag IN ARRAY v_tags LOOP
    FOR k IN
      SELECT w.instance, w.execution, w.activity, w.epoch, w.place,
        coalesce(octet_length(w.payload), 0) AS bytes
      FROM @schema@.work AS w
      WHERE w.tag = v_tag AND w.ready_at <= now
      ORDER BY w.ready_at, w.place LIMIT p_max - v_n FOR NO KEY UPDATE SKIP LOCKED
    LOOP
      v_bytes := v_bytes + k.bytes;
      v_is_full := v_n > 0 AND v_bytes > p_bytes;
      EXIT WHEN v_is_full;
      v_number := @schema@.next_number();                                         -- TOKEN-1
      IF v_number <= greatest(k.epoch, k.place) THEN
        PERFORM @schema@.refuse_number(v_number, greatest(k.epoch, k.place));
      END IF;
      UPDATE @schema@.work AS w
        SET ready_at = v_until, epoch = v_number, place = v_number, attempt = w.attempt + 1,
            owner = p_owner, fetch_id = p_fetch_id
        WHERE w.instance = k.instance AND w.execution = k.execution AND w.activity = k.activity
        RETURNING w.epoch, w.attempt, w.visible_at, nullif(w.tag, ''), w.payload
        INTO epoch, attempt, visible_at, tag, payload;
      instance := k.instance;
      execution := k.execution;
      activity := k.activity;
      v_n := v_n + 1;
      RETURN NEXT;
    END LOOP;
    EXIT WHEN v_is_full OR v_n >= p_max;
  END LOOP;
  IF v_n > 0 THEN
    RETURN;
  END IF;

  IF cardinality(v_wanted) = 1 THEN
    SELECT w.ready_at INTO due FROM @schema@.work AS w
      WHERE w.tag = v_wanted[1] ORDER BY w.ready_at, w.place LIMIT 1;
  ELSE
    due := @schema@.next_work(v_wanted);
  END IF;
  kind := CASE WHEN due > now OR due IS NULL THEN @WORK_NOTHING@
               WHEN v_is_let_go THEN @WORK_AGAIN@ ELSE @WORK_IN_VAIN@ END;
  RETURN NEXT;
END
$$;

-- ---- with a token -------------------------------------------------------------------------------

-- TOKEN-2 to TOKEN-8, CANCEL-5: locks the row, and reads the clock after that.  `status` is DK_OK
-- if the lease is this token's; else DK_LOCK_LOST, with what became of it.
CREATE FUNCTION @schema@.lock_work(
  p_now bigint, p_instance text, p_execution bigint, p_activity bigint, p_epoch bigint,
  OUT status integer, OUT epoch bigint, OUT locked_until bigint, OUT now bigint)
LANGUAGE plpgsql
AS $$
BEGIN
  SELECT w.epoch, CASE w.epoch WHEN 0 THEN 0 ELSE w.ready_at END INTO epoch, locked_until
    FROM @schema@.work AS w
    WHERE w.instance = p_instance AND w.execution = p_execution AND w.activity = p_activity
    FOR NO KEY UPDATE;
  now := @schema@.clock(p_now);
  status := CASE WHEN epoch = p_epoch AND locked_until > now THEN @DK_OK@
                 ELSE @DK_LOCK_LOST@ END;
END
$$;

-- WORK-4: the row is deleted and the completion stored, or neither.  CANCEL-7: the rows in the
-- order of a commit that cancels: first the address, then the work.  A dead token makes no address.
CREATE FUNCTION @schema@.ack_work(
  p_now bigint, p_lock_ms integer, p_instance text, p_execution bigint, p_activity bigint,
  p_epoch bigint, p_to text, p_id text, p_visible_at bigint, p_delay bigint, p_payload bytea)
RETURNS TABLE(status integer, listening bigint, epoch bigint, locked_until bigint, now bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_set text := @schema@.begin_write(p_lock_ms);
  v_visible_at bigint;
  v_ready_at bigint;
  v_is_out boolean;
  v_done boolean;
BEGIN
  IF p_to IS NOT NULL THEN
    SELECT i.ready_at, i.locked_until <> 0 INTO v_ready_at, v_is_out
      FROM @schema@.instance i WHERE i.instance = p_to FOR NO KEY UPDATE;
    IF NOT FOUND THEN
      PERFORM 1 FROM @schema@.work AS w
        WHERE w.instance = p_instance AND w.execution = p_execution AND w.activity = p_activity
          AND w.epoch = p_epoch;
      IF FOUND THEN
        v_done := @schema@.lock_address(p_to);
      END IF;
    END IF;
  END IF;
  SELECT w.epoch, CASE w.epoch WHEN 0 THEN 0 ELSE w.ready_at END INTO epoch, locked_until
    FROM @schema@.work AS w
    WHERE w.instance = p_instance AND w.execution = p_execution AND w.activity = p_activity
    FOR NO KEY UPDATE;
  now := @schema@.clock(p_now);
  status := CASE WHEN epoch = p_epoch AND locked_until > now THEN @DK_OK@
                 ELSE @DK_LOCK_LOST@ END;
  IF status = @DK_OK@ AND p_to IS NOT NULL THEN
    v_visible_at := greatest(p_visible_at, @schema@.later(now, p_delay));
    INSERT INTO @schema@.message(instance, visible_at, seq, enqueued_at, id, payload)
      VALUES (p_to, v_visible_at, @schema@.next_number(), now, p_id, p_payload)
      ON CONFLICT ((instance || ''), id) WHERE id IS NOT NULL DO NOTHING;
    IF NOT FOUND THEN
      status := @DK_DUPLICATE@;
    ELSIF NOT coalesce(v_is_out OR v_ready_at <= v_visible_at, false) THEN
      v_done := @schema@.make_ready(p_to, v_visible_at);
    END IF;
  END IF;
  IF status = @DK_OK@ THEN
    DELETE FROM @schema@.work AS w
      WHERE w.instance = p_instance AND w.execution = p_execution AND w.activity = p_activity
      RETURNING CASE WHEN p_to IS NOT NULL THEN (SELECT l.listening FROM @schema@.listening l) END
      INTO listening;
  ELSIF p_to IS NOT NULL THEN
    PERFORM @schema@.forget_address(p_to);
  END IF;
  RETURN NEXT;
END
$$;

-- WORK-6.  A fetch may wait for the old end, if the new one is sooner.
CREATE FUNCTION @schema@.renew_work(
  p_now bigint, p_lock_ms integer, p_instance text, p_execution bigint, p_activity bigint,
  p_epoch bigint, p_extend bigint)
RETURNS TABLE(status integer, listening bigint, epoch bigint, locked_until bigint, now bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_set text := @schema@.begin_write(p_lock_ms);
  v record;
BEGIN
  v := @schema@.lock_work(p_now, p_instance, p_execution, p_activity, p_epoch);
  status := v.status;
  epoch := v.epoch;
  locked_until := v.locked_until;
  now := v.now;
  IF status = @DK_OK@ THEN
    UPDATE @schema@.work AS w SET ready_at = @schema@.later(now, p_extend)
      WHERE w.instance = p_instance AND w.execution = p_execution AND w.activity = p_activity;
    IF @schema@.later(now, p_extend) < locked_until THEN
      listening := @schema@.listening();
    END IF;
  END IF;
  RETURN NEXT;
END
$$;

-- WORK-7, POISON-5: behind those that are ready.
CREATE FUNCTION @schema@.abandon_work(
  p_now bigint, p_lock_ms integer, p_instance text, p_execution bigint, p_activity bigint,
  p_epoch bigint, p_delay bigint, p_ignore boolean)
RETURNS TABLE(status integer, listening bigint, epoch bigint, locked_until bigint, now bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_set text := @schema@.begin_write(p_lock_ms);
  v record;
  v_visible_at bigint;
BEGIN
  v := @schema@.lock_work(p_now, p_instance, p_execution, p_activity, p_epoch);
  status := v.status;
  epoch := v.epoch;
  locked_until := v.locked_until;
  now := v.now;
  IF status = @DK_OK@ THEN
    v_visible_at := @schema@.later(now, p_delay);
    UPDATE @schema@.work AS w
      SET ready_at = v_visible_at, visible_at = v_visible_at, place = @schema@.next_number(),
          epoch = 0, owner = NULL,
          attempt = w.attempt - CASE WHEN p_ignore AND w.attempt > 0 THEN 1 ELSE 0 END
      WHERE w.instance = p_instance AND w.execution = p_execution AND w.activity = p_activity;
    listening := @schema@.listening();
  END IF;
  RETURN NEXT;
END
$$;
