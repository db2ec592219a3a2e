-- SPDX-License-Identifier: Apache-2.0
-- REL: gives back, by the id of a fetch, what that fetch has locked, after its answer was lost.

-- REL-1 to REL-3.  There is no index for it: a host asks once after such a loss, but every fetch
-- would pay for an index.  So it looks at all work, and at all instances that have messages, by the
-- existing indexes (all tags are '' or above), which lead to no page without such rows.  The
-- instances of the work are locked with those of the turns: a commit that cancels, and a deletion,
-- lock the instance first, and take its work in an order of their own.
CREATE FUNCTION @schema@.release_fetch(p_now bigint, p_lock_ms integer, p_fetch_id bigint)
RETURNS TABLE(status integer, listening bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_set text := @schema@.begin_write(p_lock_ms);
  v_id bigint := nullif(p_fetch_id, 0);
  v_instances text[];
  v_now bigint;
  v_done boolean;
  v record;
BEGIN
  status := @DK_OK@;
  v_instances := ARRAY(
    SELECT i.instance FROM @schema@.instance i
      WHERE i.ready_at IS NOT NULL AND i.locked_until <> 0 AND i.fetch_id = v_id
    UNION
    SELECT w.instance FROM @schema@.work AS w
      WHERE w.tag >= '' AND w.epoch <> 0 AND w.fetch_id = v_id);
  PERFORM 1 FROM @schema@.instance i WHERE i.instance = ANY (v_instances)
    ORDER BY i.instance FOR NO KEY UPDATE;
  PERFORM 1 FROM @schema@.work AS w
    WHERE w.instance = ANY (v_instances) AND w.epoch <> 0 AND w.fetch_id = v_id
    ORDER BY w.instance, w.execution, w.activity FOR NO KEY UPDATE;
  v_now := @schema@.clock(p_now);
  FOR v IN SELECT i.instance FROM @schema@.instance i
      WHERE i.instance = ANY (v_instances) AND i.locked_until <> 0 AND i.fetch_id = v_id LOOP
    v_done := @schema@.release_turn(v.instance, v_now, NULL);
  END LOOP;
  UPDATE @schema@.work AS w
    SET ready_at = v_now, visible_at = v_now, place = @schema@.next_number(), epoch = 0,
        owner = NULL, attempt = greatest(w.attempt - 1, 0)
    WHERE w.instance = ANY (v_instances) AND w.epoch <> 0 AND w.fetch_id = v_id;
  IF v_instances <> '{}' THEN
    listening := @schema@.listening();
  END IF;
  RETURN NEXT;
END
$$;
