-- SPDX-License-Identifier: Apache-2.0
-- QUEUE: messages.

-- QUEUE-1, QUEUE-4: stored for any target, unless one with this id is stored.  The instance's row
-- first: under its lock the answer is certain, and the number that the message gets is its arrival.
CREATE FUNCTION @schema@.enqueue_message(
  p_now bigint, p_lock_ms integer, p_instance text, p_id text, p_visible_at bigint,
  p_delay bigint, p_payload bytea)
RETURNS TABLE(status integer, listening bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_now bigint;
  v_visible_at bigint;
  v_ready_at bigint;
  v_is_out boolean;
  v_set text := @schema@.begin_write(p_lock_ms);
  v_done boolean;
BEGIN
  SELECT i.ready_at, i.locked_until <> 0 INTO v_ready_at, v_is_out
    FROM @schema@.instance i WHERE i.instance = p_instance FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    v_done := @schema@.lock_address(p_instance);
  END IF;
  v_now := @schema@.clock(p_now);
  v_visible_at := greatest(p_visible_at, @schema@.later(v_now, p_delay));
  INSERT INTO @schema@.message(instance, visible_at, seq, enqueued_at, id, payload)
    VALUES (p_instance, v_visible_at, @schema@.next_number(), v_now, p_id, p_payload)
    ON CONFLICT ((instance || ''), id) WHERE id IS NOT NULL DO NOTHING;
  status := @DK_DUPLICATE@;
  IF FOUND THEN
    IF NOT coalesce(v_is_out OR v_ready_at <= v_visible_at, false) THEN
      v_done := @schema@.make_ready(p_instance, v_visible_at);
    END IF;
    status := @DK_OK@;
    listening := @schema@.listening();
  END IF;
  RETURN NEXT;
END
$$;
