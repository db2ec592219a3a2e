-- SPDX-License-Identifier: Apache-2.0
-- What must hold of a store of version 1 that is to be migrated (migrate.c).  The first invalid row
-- makes the whole migration fail, naming its key (DK204): nothing is dropped silently.
--
-- Version 1 knows an activity's identity only from inside of its work item (JSON), and so could not
-- cancel by deleting a row.  Here, once, the work items are opened; afterwards no provider of ours
-- looks into a payload again.

DO $whole$
DECLARE
  v_names text[] := ARRAY['instances', 'executions', 'history', 'instance_locks',
                          'orchestrator_queue', 'worker_queue'];
  v_found int := (SELECT count(*) FROM pg_catalog.pg_class AS c
                  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
                  WHERE n.nspname = @schema_literal@ AND c.relkind = 'r'
                    AND c.relname = ANY (v_names));
BEGIN
  IF v_found <> 6 THEN
    RAISE EXCEPTION USING ERRCODE = 'DK@DK_CORRUPT@', MESSAGE = pg_catalog.format(
      'its version is 1, but it has %s of the six tables of version 1; restore a backup', v_found);
  END IF;
END
$whole$;

-- A program that still works with version 1 ends its present transaction, and finds nothing
-- afterwards.
LOCK TABLE @schema@.instances, @schema@.executions, @schema@.history, @schema@.instance_locks,
  @schema@.orchestrator_queue, @schema@.worker_queue IN ACCESS EXCLUSIVE MODE;

-- NULLs: the row cannot be read.
CREATE FUNCTION @schema@.old_activity_of(p_item text, OUT instance text, OUT execution bigint,
                                         OUT activity bigint, OUT session text, OUT tag text)
LANGUAGE plpgsql AS $$
DECLARE
  v_fields jsonb;
BEGIN
  v_fields := p_item::jsonb -> 'ActivityExecute';
  IF pg_catalog.jsonb_typeof(v_fields -> 'instance') = 'string'
     AND pg_catalog.jsonb_typeof(v_fields -> 'execution_id') = 'number'
     AND pg_catalog.jsonb_typeof(v_fields -> 'id') = 'number' THEN
    execution := (v_fields ->> 'execution_id')::bigint;
    activity := (v_fields ->> 'id')::bigint;
    session := v_fields ->> 'session_id';
    tag := v_fields ->> 'tag';
    instance := v_fields ->> 'instance';
  END IF;
EXCEPTION
  WHEN data_exception OR program_limit_exceeded THEN
    instance := NULL;
END
$$;
CREATE TABLE @schema@.old_activity AS
  SELECT w.id, a.* FROM @schema@.worker_queue AS w
  CROSS JOIN LATERAL @schema@.old_activity_of(w.work_item) AS a;

CREATE FUNCTION @schema@.old_is_text(p text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT p IS NOT NULL AND octet_length(p) BETWEEN 1 AND 1024 $$;

DO $demands$
DECLARE
  v record;
BEGIN
  SELECT * INTO v FROM (
    (SELECT 1 AS n, 'worker_queue' AS tab, pg_catalog.format('id = %s', a.id) AS row,
       'the activity''s identity cannot be read from work_item; expected JSON with '
       'ActivityExecute.instance, .execution_id and .id' AS what
     FROM @schema@.old_activity AS a
     WHERE NOT (@schema@.old_is_text(a.instance) AND a.execution >= 1 AND a.activity >= 1) IS TRUE
     ORDER BY a.id LIMIT 1)
    UNION ALL
    (SELECT 2, 'worker_queue', pg_catalog.format('id = %s', w.id),
       'session_id, tag or attempt_count is not what it must be; expected two texts of 1 to 1024 '
       'bytes or null, and a number from 0 to 4294967295'
     FROM @schema@.worker_queue AS w JOIN @schema@.old_activity AS a ON a.id = w.id
     WHERE NOT ((a.session IS NULL OR @schema@.old_is_text(a.session))
                AND (a.tag IS NULL OR @schema@.old_is_text(a.tag))
                AND w.attempt_count BETWEEN 0 AND 4294967295)
     ORDER BY w.id LIMIT 1)
    UNION ALL
    (SELECT 3, 'worker_queue', pg_catalog.format('id = %s', max(a.id)),
       'another row has the same instance, execution_id and id; expected one row for an activity'
     FROM @schema@.old_activity AS a GROUP BY a.instance, a.execution, a.activity
     HAVING count(*) > 1 ORDER BY max(a.id) LIMIT 1)
    UNION ALL
    (SELECT 4, 'orchestrator_queue', pg_catalog.format('id = %s', q.id),
       'instance_id or attempt_count is not what it must be; expected a text of 1 to 1024 bytes, '
       'and a number from 0 to 4294967295'
     FROM @schema@.orchestrator_queue AS q
     WHERE NOT (@schema@.old_is_text(q.instance_id) AND q.attempt_count BETWEEN 0 AND 4294967295)
     ORDER BY q.id LIMIT 1)
    UNION ALL
    (SELECT 5, 'instances', pg_catalog.format('instance_id = %L', i.instance_id),
       'an id, a name or a version is not what it must be; expected texts of 1 to 1024 bytes'
     FROM @schema@.instances AS i
     WHERE NOT (@schema@.old_is_text(i.instance_id)
                AND @schema@.old_is_text(i.orchestration_name)
                AND (i.orchestration_version IS NULL
                     OR @schema@.old_is_text(i.orchestration_version))
                AND (i.parent_instance_id IS NULL OR @schema@.old_is_text(i.parent_instance_id)))
     ORDER BY i.instance_id LIMIT 1)
    UNION ALL
    (SELECT 6, 'instances', pg_catalog.format('instance_id = %L', i.instance_id),
       'its current execution has no row in executions'
     FROM @schema@.instances AS i LEFT JOIN @schema@.executions AS e
       ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
     WHERE e.instance_id IS NULL ORDER BY i.instance_id LIMIT 1)
    UNION ALL
    (SELECT 7, 'executions', pg_catalog.format('instance_id = %L AND execution_id = %s',
                                               e.instance_id, e.execution_id),
       'its instance, execution_id or status is not what it must be; expected a row of instances, '
       'a number from 1 on, and Running, Completed, Failed, ContinuedAsNew or Cancelled'
     FROM @schema@.executions AS e LEFT JOIN @schema@.instances AS i USING (instance_id)
     WHERE NOT (i.instance_id IS NOT NULL AND e.execution_id >= 1 AND e.status IN
                  ('Running', 'Completed', 'Failed', 'ContinuedAsNew', 'Cancelled'))
     ORDER BY e.instance_id, e.execution_id LIMIT 1)
    UNION ALL
    (SELECT 8, 'history', pg_catalog.format(
         'instance_id = %L AND execution_id = %s AND event_id = %s',
         h.instance_id, h.execution_id, h.event_id),
       'its instance, execution_id or event_id is not what it must be; expected a row of '
       'instances, and two numbers from 1 on'
     FROM @schema@.history AS h LEFT JOIN @schema@.instances AS i USING (instance_id)
     WHERE NOT (i.instance_id IS NOT NULL AND h.execution_id >= 1 AND h.event_id >= 1)
     ORDER BY h.instance_id, h.execution_id, h.event_id LIMIT 1)
  ) AS found ORDER BY found.n LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'DK@DK_REFUSED@', MESSAGE = pg_catalog.format(
      'version 1 cannot be migrated: %s, the row with %s: %s; nothing was changed; '
      'look at it with: SELECT * FROM %I.%I WHERE %s, then repair or delete it, and open the store '
      'again', v.tab, v.row, v.what, @schema_literal@, v.tab, v.row);
  END IF;
END
$demands$;
