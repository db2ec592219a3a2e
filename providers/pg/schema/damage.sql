-- SPDX-License-Identifier: Apache-2.0
-- Rows that cannot be handed over: a part of a payload is lost, a page cannot be read, or the row
-- is larger than an answer can be.  The fetch that has chosen such a row fails as a whole, and so
-- would all later fetches.  So a failed fetch looks here for the row that is the cause, and sets it
-- aside, as if it were locked for p_length ms.

-- NULL: a turn of the instance can be read.  Else the part that was reached, and the server's
-- error.
CREATE FUNCTION @schema@.why_not_turn(
  p_instance text, p_now bigint, p_owner text, p_most bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  v @schema@.instance;
  m record;
  v_at text := 'its row';
BEGIN
  SELECT * INTO v FROM @schema@.instance i WHERE i.instance = p_instance;
  v_at := 'its messages';
  FOR m IN SELECT x.seq, octet_length(x.payload) AS bytes, x.payload FROM @schema@.message x
      WHERE x.instance = p_instance AND x.visible_at <= p_now ORDER BY x.visible_at, x.seq LOOP
    v_at := format('message %s', m.seq);
    IF m.bytes > p_most THEN
      RETURN format('%s has %s bytes; at most %s can be delivered', v_at, m.bytes, p_most);
    END IF;
    PERFORM md5(m.payload);
  END LOOP;
  IF v.birth = 0 OR v.owner = p_owner THEN
    RETURN NULL;
  END IF;
  v_at := 'its history';
  FOR m IN SELECT h.event, octet_length(h.payload) AS bytes, h.payload FROM @schema@.history h
      WHERE h.instance = p_instance AND h.execution = v.execution ORDER BY h.event LOOP
    v_at := format('event %s of execution %s', m.event, v.execution);
    IF m.bytes > p_most THEN
      RETURN format('%s has %s bytes; at most %s can be delivered', v_at, m.bytes, p_most);
    END IF;
    PERFORM md5(m.payload);
  END LOOP;
  RETURN NULL;
EXCEPTION
  WHEN data_corrupted OR index_corrupted OR internal_error OR program_limit_exceeded OR io_error
    OR undefined_file OR character_not_in_repertoire THEN
  RETURN format('%s: %s', v_at, SQLERRM);
END
$$;

-- Looks among the first that a fetch could have chosen.  The row gets the number of a lease that no
-- host has.  No row: it was deleted, or another fetch has set it aside.
CREATE FUNCTION @schema@.set_aside_turn(
  p_now bigint, p_lock_ms integer, p_owner text, p_ranges bigint[], p_most bigint, p_length bigint)
RETURNS TABLE(instance text, why text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_set text := @schema@.begin_write(p_lock_ms);
  v_now bigint := @schema@.clock(p_now);
  v_number bigint;
BEGIN
  FOR instance IN
    (SELECT i.instance FROM @schema@.instance i WHERE i.owner = p_owner AND i.ready_at + 0 <= v_now
       AND (p_ranges IS NULL OR @schema@.fits(i.pinned, p_ranges))
     ORDER BY i.ready_at + 0, i.place LIMIT 32)
    UNION ALL
    (SELECT i.instance FROM @schema@.instance i WHERE i.ready_at <= v_now
       AND (p_ranges IS NULL OR @schema@.fits(i.pinned, p_ranges))
     ORDER BY i.ready_at, i.place LIMIT 32)
  LOOP
    why := @schema@.why_not_turn(instance, v_now, p_owner, p_most);
    CONTINUE WHEN why IS NULL;
    PERFORM 1 FROM @schema@.instance i WHERE i.instance = set_aside_turn.instance
      FOR NO KEY UPDATE;
    v_number := @schema@.next_number();
    UPDATE @schema@.instance i
      SET ready_at = @schema@.later(v_now, p_length),
          locked_until = @schema@.later(v_now, p_length), place = v_number, put_off = false,
          epoch = v_number, turn_visible_at = 0, turn_seq = 0, fetch_id = 0
      WHERE i.instance = set_aside_turn.instance AND i.ready_at <= v_now AND i.epoch < v_number;
    IF FOUND THEN
      RETURN NEXT;
      RETURN;
    END IF;
  END LOOP;
END
$$;

CREATE FUNCTION @schema@.why_not_work(p_payload bytea, p_most bigint) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
  IF octet_length(p_payload) > p_most THEN
    RETURN format('its payload has %s bytes; at most %s can be delivered',
                  octet_length(p_payload), p_most);
  END IF;
  PERFORM md5(p_payload);
  RETURN NULL;
EXCEPTION
  WHEN data_corrupted OR index_corrupted OR internal_error OR program_limit_exceeded OR io_error
    OR undefined_file OR character_not_in_repertoire THEN
  RETURN format('its payload: %s', SQLERRM);
END
$$;

-- The same of work.  p_among: how many of each tag the fetch would have taken.
CREATE FUNCTION @schema@.set_aside_work(
  p_now bigint, p_lock_ms integer, p_among integer, p_rule integer, p_tags text[], p_most bigint,
  p_length bigint)
RETURNS TABLE(instance text, why text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_set text := @schema@.begin_write(p_lock_ms);
  v_now bigint := @schema@.clock(p_now);
  v_number bigint;
  v_tag text;
  k record;
BEGIN
  FOREACH v_tag IN ARRAY @schema@.ready_tags(@schema@.wanted_tags(p_rule, p_tags), v_now) LOOP
    FOR k IN SELECT w.instance, w.execution, w.activity, w.payload FROM @schema@.work AS w
        WHERE w.tag = v_tag AND w.ready_at <= v_now ORDER BY w.ready_at, w.place
        LIMIT p_among + 32 LOOP
      why := @schema@.why_not_work(k.payload, p_most);
      CONTINUE WHEN why IS NULL;
      PERFORM 1 FROM @schema@.work AS w WHERE w.instance = k.instance
        AND w.execution = k.execution AND w.activity = k.activity FOR NO KEY UPDATE;
      v_number := @schema@.next_number();
      UPDATE @schema@.work AS w
        SET ready_at = @schema@.later(v_now, p_length), epoch = v_number, place = v_number,
            owner = NULL, fetch_id = 0
        WHERE w.instance = k.instance AND w.execution = k.execution AND w.activity = k.activity
          AND w.ready_at <= v_now AND w.epoch < v_number;
      IF FOUND THEN
        instance := k.instance;
        why := format('activity %s of execution %s: %s', k.activity, k.execution, why);
        RETURN NEXT;
        RETURN;
      END IF;
    END LOOP;
  END LOOP;
END
$$;

-- Keeps aside a row that a fetch has claimed, and that its plugin does not hand up.  Until then the
-- lease is no host's; otherwise the host would give it back with all that the fetch has locked.
CREATE FUNCTION @schema@.keep_turn_aside(
  p_now bigint, p_lock_ms integer, p_instance text, p_epoch bigint, p_length bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_set text := @schema@.begin_write(p_lock_ms);
  v_until bigint := @schema@.later(@schema@.clock(p_now), p_length);
BEGIN
  UPDATE @schema@.instance i SET ready_at = v_until, locked_until = v_until, fetch_id = 0
    WHERE i.instance = p_instance AND i.epoch = p_epoch AND i.locked_until <> 0;
  RETURN FOUND;
END
$$;

CREATE FUNCTION @schema@.keep_work_aside(
  p_now bigint, p_lock_ms integer, p_instance text, p_execution bigint, p_activity bigint,
  p_epoch bigint, p_length bigint)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
AS $$
DECLARE
  v_set text := @schema@.begin_write(p_lock_ms);
BEGIN
  UPDATE @schema@.work AS w
    SET ready_at = @schema@.later(@schema@.clock(p_now), p_length), fetch_id = 0
    WHERE w.instance = p_instance AND w.execution = p_execution AND w.activity = p_activity
      AND w.epoch = p_epoch;
  RETURN FOUND;
END
$$;
