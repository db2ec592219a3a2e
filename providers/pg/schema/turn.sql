-- SPDX-License-Identifier: Apache-2.0
-- TURN: fetching, renewing and giving back one instance with its messages.

-- PIN-1 to PIN-5.  p_ranges: for each range six numbers, its least and its greatest version.
CREATE FUNCTION @schema@.fits(p_pinned bigint[], p_ranges bigint[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF p_ranges IS NULL OR p_pinned IS NULL THEN
    RETURN true;
  END IF;
  FOR i IN 1 .. cardinality(p_ranges) BY 6 LOOP
    IF p_pinned BETWEEN p_ranges[i : i + 2] AND p_ranges[i + 3 : i + 5] THEN
      RETURN true;
    END IF;
  END LOOP;
  RETURN false;
END
$$;

-- TIME-8: locks and gives an instance that was delayed until a time that, after the clock went
-- back, is still to come, and that has a due message.
CREATE FUNCTION @schema@.choose_put_off(
  p_now bigint, p_ranges bigint[], OUT instance text, OUT locked_until bigint, OUT epoch bigint)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT i.instance, i.locked_until, i.epoch INTO instance, locked_until, epoch
    FROM @schema@.instance i
    WHERE i.put_off AND i.ready_at + 0 > p_now
      AND (p_ranges IS NULL OR @schema@.fits(i.pinned, p_ranges))
      AND (SELECT m.visible_at FROM @schema@.message m WHERE m.instance = i.instance
           ORDER BY m.visible_at, m.seq LIMIT 1) <= p_now
    ORDER BY i.ready_at + 0 LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
END
$$;

-- Waits, once and with no lock held, for the row of a ready instance that others hold.  False: it
-- waited for as long as a fetch may, in vain.
CREATE FUNCTION @schema@.await_instance(
  p_now bigint, p_lock_ms integer, p_ranges bigint[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_instance text;
  v_set text;
BEGIN
  SELECT i.instance INTO v_instance FROM @schema@.instance i
    WHERE i.ready_at <= p_now AND (p_ranges IS NULL OR @schema@.fits(i.pinned, p_ranges))
    ORDER BY i.ready_at, i.place LIMIT 1;
  IF FOUND THEN
    v_set := @schema@.begin_await(p_lock_ms);
    PERFORM 1 FROM @schema@.instance i WHERE i.instance = v_instance FOR NO KEY UPDATE;
    v_set := set_config('lock_timeout', p_lock_ms::text, true);
  END IF;
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  RETURN false;
END
$$;

-- POISON-1, POISON-2: the messages of the last lease have been delivered p_counted times more than
-- their rows say.  p_visible_at: from when all of them are visible; NULL: as they are.
CREATE FUNCTION @schema@.count_delivery(
  p_of @schema@.instance, p_counted bigint, p_visible_at bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE @schema@.message m
    SET attempt = m.attempt + p_counted, visible_at = coalesce(p_visible_at, m.visible_at)
    WHERE m.instance = p_of.instance
      AND (m.visible_at, m.seq) <= (p_of.turn_visible_at, p_of.turn_seq) AND m.seq < p_of.epoch;
  RETURN true;
END
$$;

-- TURN-2: the last message that is within the bounds: from the front, but at least one.
CREATE FUNCTION @schema@.end_of_turn(
  p_instance text, p_now bigint, p_max bigint, p_bytes bigint,
  OUT visible_at bigint, OUT seq bigint)
LANGUAGE plpgsql AS $$
DECLARE
  m record;
  v_bytes bigint := 0;
BEGIN
  FOR m IN SELECT x.visible_at, x.seq, coalesce(octet_length(x.payload), 0) AS bytes
      FROM @schema@.message x
      WHERE x.instance = p_instance AND x.visible_at <= p_now
      ORDER BY x.visible_at, x.seq LIMIT nullif(p_max, 0) LOOP
    v_bytes := v_bytes + m.bytes;
    EXIT WHEN p_bytes > 0 AND v_bytes > p_bytes AND seq IS NOT NULL;
    visible_at := m.visible_at;
    seq := m.seq;
  END LOOP;
END
$$;

-- TURN-1 to TURN-5.  The rows, by kind:
--   TURN_ANSWER: a TURN_FOUND; TURN_NOTHING; TURN_AGAIN: what is ready is held by others for a
--      moment, and only a new transaction may wait for it, for this one may hold rows that it has
--      passed over; TURN_IN_VAIN: the same, and this one has waited for it
--      b: now   c: when the next will be ready, NULL: none
--   TURN_HEAD: a epoch, b birth, c execution, d last_event, e the first event that follows
--      (NULL: none), f status; t1 instance, t2 name, t3 version, t4 parent
--   TURN_EVENT: a number, payload
--   TURN_MESSAGE: a attempt, b visible_at, c enqueued_at; t1 id, payload
-- p_try: how often the same was answered "again" before; from 2 on it begins by waiting.
-- p_fetch_id: see release_fetch; without an id it is 0.
CREATE FUNCTION @schema@.fetch_turn(
  p_now bigint, p_lock_ms integer, p_try integer, p_lease bigint, p_owner text,
  p_prefers boolean, p_max bigint, p_bytes bigint, p_ranges bigint[], p_fetch_id bigint DEFAULT 0)
RETURNS TABLE(kind integer, a bigint, b bigint, c bigint, d bigint, e bigint, f bigint,
              t1 text, t2 text, t3 text, t4 text, payload bytea)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_now bigint;
  v_instance text;
  v_until bigint;
  v_last bigint;
  v_visible_at bigint;
  v_seq bigint;
  v_owner text;
  v @schema@.instance;
  v_set text := @schema@.begin_write(p_lock_ms);
  v_is_let_go boolean := true;
  v_done boolean;
BEGIN
  IF p_try >= 2 THEN
    v_is_let_go := @schema@.await_instance(@schema@.clock(p_now), p_lock_ms, p_ranges);
  END IF;
  v_now := @schema@.clock(p_now);
  kind := @TURN_ANSWER@;
  a := @TURN_FOUND@;
  b := v_now;
  LOOP
    -- TURN-10, QUEUE-8: the instance that is ready longest; but first one whose history its fetcher
    -- has, if the fetch prefers those.
    v_instance := NULL;
    IF p_prefers THEN
      SELECT i.instance, i.locked_until, i.epoch INTO v_instance, v_until, v_last
        FROM @schema@.instance i
        WHERE i.owner = p_owner AND i.ready_at + 0 <= v_now
          AND (p_ranges IS NULL OR @schema@.fits(i.pinned, p_ranges))
        ORDER BY i.ready_at + 0, i.place LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    END IF;
    IF v_instance IS NULL THEN
      SELECT i.instance, i.locked_until, i.epoch INTO v_instance, v_until, v_last
        FROM @schema@.instance i
        WHERE i.ready_at <= v_now AND (p_ranges IS NULL OR @schema@.fits(i.pinned, p_ranges))
        ORDER BY i.ready_at, i.place LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    END IF;
    IF v_instance IS NULL THEN
      SELECT i.instance, i.locked_until, i.epoch INTO v_instance, v_until, v_last
        FROM @schema@.choose_put_off(v_now, p_ranges) AS i;
    END IF;
    IF v_instance IS NULL THEN
      PERFORM 1 FROM @schema@.instance i
        WHERE i.ready_at <= v_now AND (p_ranges IS NULL OR @schema@.fits(i.pinned, p_ranges))
        ORDER BY i.ready_at LIMIT 1;
      a := CASE WHEN NOT FOUND THEN @TURN_NOTHING@ WHEN v_is_let_go THEN @TURN_AGAIN@
                ELSE @TURN_IN_VAIN@ END;
      SELECT i.ready_at INTO c FROM @schema@.instance i WHERE i.ready_at > v_now
        ORDER BY i.ready_at LIMIT 1;
      RETURN NEXT;
      RETURN;
    END IF;
    IF p_max = 0 AND p_bytes = 0 THEN                                             -- TURN-2
      SELECT m.visible_at, m.seq INTO v_visible_at, v_seq FROM @schema@.message m
        WHERE m.instance = v_instance AND m.visible_at <= v_now
        ORDER BY m.visible_at DESC, m.seq DESC LIMIT 1;
    ELSE
      SELECT x.visible_at, x.seq INTO v_visible_at, v_seq
        FROM @schema@.end_of_turn(v_instance, v_now, p_max, p_bytes) AS x;
    END IF;
    EXIT WHEN v_seq IS NOT NULL;
    -- Nothing that is written here leaves an instance ready without a message.  If something else
    -- has, that row must not block all others.
    v_done := @schema@.release_turn(v_instance, v_now, NULL);
  END LOOP;
  RETURN NEXT;

  IF v_until <> 0 THEN
    SELECT * INTO v FROM @schema@.instance i WHERE i.instance = v_instance;
    v_done := @schema@.count_delivery(v, 1, NULL);
  END IF;
  kind := @TURN_HEAD@;
  a := @schema@.next_number();                                                    -- TOKEN-1
  IF a <= greatest(v_last, v_seq) THEN
    PERFORM @schema@.refuse_number(a, greatest(v_last, v_seq));
  END IF;
  v_until := @schema@.later(v_now, p_lease);
  UPDATE @schema@.instance i
    SET ready_at = v_until, locked_until = v_until, place = a, put_off = false, epoch = a,
        turn_visible_at = v_visible_at, turn_seq = v_seq, fetch_id = p_fetch_id
    WHERE i.instance = v_instance
    RETURNING i.birth, i.execution, i.last_event, i.status, i.instance, i.name, i.version, i.parent,
      i.owner
    INTO b, c, d, f, t1, t2, t3, t4, v_owner;
  IF b <> 0 AND (v_owner IS NULL OR v_owner IS DISTINCT FROM p_owner) THEN        -- TURN-5
    SELECT h.event INTO e FROM @schema@.history h
      WHERE h.instance = v_instance AND h.execution = c ORDER BY h.event LIMIT 1;
  END IF;
  RETURN NEXT;
  IF e IS NOT NULL THEN
    RETURN QUERY SELECT @TURN_EVENT@, h.event, 0::bigint, 0::bigint, 0::bigint, 0::bigint,
      0::bigint, NULL::text, NULL::text, NULL::text, NULL::text, h.payload
      FROM @schema@.history h WHERE h.instance = v_instance AND h.execution = c
      ORDER BY h.event;
  END IF;
  RETURN QUERY SELECT @TURN_MESSAGE@, m.attempt + 1, m.visible_at, m.enqueued_at, 0::bigint,
    0::bigint, 0::bigint, m.id, NULL::text, NULL::text, NULL::text, m.payload
    FROM @schema@.message m WHERE m.instance = v_instance
      AND (m.visible_at, m.seq) <= (v_visible_at, v_seq)
    ORDER BY m.visible_at, m.seq;
END
$$;

-- ---- with a token ------------------------------------------------------------------------------

-- TOKEN-2 to TOKEN-8, TIME-6: judged under the lock.
CREATE FUNCTION @schema@.renew_turn(
  p_now bigint, p_lock_ms integer, p_instance text, p_epoch bigint, p_extend bigint)
RETURNS TABLE(status integer, listening bigint, epoch bigint, locked_until bigint, now bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v @schema@.instance;
  v_until bigint;
  v_set text := @schema@.begin_write(p_lock_ms);
BEGIN
  SELECT * INTO v FROM @schema@.instance i WHERE i.instance = p_instance FOR NO KEY UPDATE;
  now := @schema@.clock(p_now);
  epoch := v.epoch;
  locked_until := v.locked_until;
  IF v.epoch IS DISTINCT FROM p_epoch OR v.locked_until <= now THEN
    status := @DK_LOCK_LOST@;
    RETURN NEXT;
    RETURN;
  END IF;
  v_until := @schema@.later(now, p_extend);
  UPDATE @schema@.instance i SET ready_at = v_until, locked_until = v_until
    WHERE i.instance = p_instance;
  status := @DK_OK@;
  IF v_until < v.locked_until THEN -- notifies a fetch that waits for the old end
    listening := @schema@.listening();
  END IF;
  RETURN NEXT;
END
$$;

-- TURN-7, TURN-8, POISON-4: the messages of this turn, and nothing else.
CREATE FUNCTION @schema@.abandon_turn(
  p_now bigint, p_lock_ms integer, p_instance text, p_epoch bigint, p_delay bigint,
  p_ignore boolean)
RETURNS TABLE(status integer, listening bigint, epoch bigint, locked_until bigint, now bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v @schema@.instance;
  v_set text := @schema@.begin_write(p_lock_ms);
  v_done boolean;
BEGIN
  SELECT * INTO v FROM @schema@.instance i WHERE i.instance = p_instance FOR NO KEY UPDATE;
  now := @schema@.clock(p_now);
  epoch := v.epoch;
  locked_until := v.locked_until;
  IF v.epoch IS DISTINCT FROM p_epoch OR v.locked_until <= now THEN
    status := @DK_LOCK_LOST@;
    RETURN NEXT;
    RETURN;
  END IF;
  IF p_delay > 0 OR NOT p_ignore THEN
    v_done := @schema@.count_delivery(v, CASE WHEN p_ignore THEN 0 ELSE 1 END,
      CASE WHEN p_delay > 0 THEN @schema@.later(now, p_delay) END);
  END IF;
  v_done := @schema@.release_turn(p_instance, now, v.done_epoch);
  status := @DK_OK@;
  listening := @schema@.listening();
  RETURN NEXT;
END
$$;
