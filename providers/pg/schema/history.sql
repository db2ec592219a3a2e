-- SPDX-License-Identifier: Apache-2.0
-- HIST: reading a history.  STABLE: all that it reads is of one moment; no row is locked, and the
-- wait for a locked table has a limit.

-- HIST-2, HIST-3, EXEC-3.  The rows, by kind: HISTORY_EXECUTION: a its number, b last event,
-- c started_at, d completed_at, status, payload: the output; HISTORY_EVENT: a its number, payload.
-- None: there is no such execution.
CREATE FUNCTION @schema@.read_history(
  p_now bigint, p_lock_ms integer, p_instance text, p_execution bigint, p_from bigint,
  p_max bigint)
RETURNS TABLE(kind integer, a bigint, b bigint, c bigint, d bigint, status integer, payload bytea)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_execution bigint := p_execution;
  v_set text := set_config('lock_timeout', p_lock_ms::text, true);
BEGIN
  IF p_execution = 0 THEN
    SELECT i.execution INTO v_execution FROM @schema@.instance i WHERE i.instance = p_instance;
  END IF;
  RETURN QUERY SELECT @HISTORY_EXECUTION@, x.execution,
      coalesce((SELECT h.event FROM @schema@.history h
                WHERE h.instance = p_instance AND h.execution = v_execution
                ORDER BY h.event DESC LIMIT 1), 0),
      x.started_at, x.completed_at, x.status, x.output
    FROM @schema@.execution x WHERE x.instance = p_instance AND x.execution = v_execution;
  IF FOUND THEN
    RETURN QUERY SELECT @HISTORY_EVENT@, h.event, 0::bigint, 0::bigint, 0::bigint, 0, h.payload
      FROM @schema@.history h
      WHERE h.instance = p_instance AND h.execution = v_execution AND h.event >= p_from
      ORDER BY h.event LIMIT nullif(p_max, 0);
  END IF;
END
$$;

CREATE VIEW @schema@.history_text AS
  SELECT h.instance, h.execution, h.event, @schema@.readable(h.payload) AS payload
  FROM @schema@.history h;
COMMENT ON VIEW @schema@.history_text IS 'Durakit: the histories, for people: payloads as text '
  'if they are text, else with the other bytes escaped.';
