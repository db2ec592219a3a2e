-- SPDX-License-Identifier: Apache-2.0
-- Copies the rows of version 1 into the present tables (migrate.c), which exist by now; version 1's
-- history is old_history.
--   - instances, executions, histories, messages and work items are kept, with their order, times
--     and counts of attempts; a payload is the old text, byte for byte
--   - leases end: a token of the old generation is not valid here.  A locked row is free from the
--     time at which it was visible, and its count of attempts includes that delivery
--   - the version of an orchestration that had none stays absent; no owner has a history in memory

CREATE FUNCTION @schema@.old_status(p text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE p WHEN 'Running' THEN 1 WHEN 'Completed' THEN 2 WHEN 'Failed' THEN 3
    WHEN 'ContinuedAsNew' THEN 4 WHEN 'Cancelled' THEN 5 END
$$;

-- Instances in the order in which they were made; then message targets without an instance.
INSERT INTO @schema@.instance(instance, birth, status, execution, last_event, pinned, name, version,
                              parent, created_at)
  SELECT i.instance_id, nextval('@schema@.number'), @schema@.old_status(e.status),
    i.current_execution_id,
    coalesce((SELECT max(h.event_id) FROM @schema@.old_history AS h
              WHERE h.instance_id = i.instance_id AND h.execution_id = i.current_execution_id), 0),
    CASE WHEN e.pinned_major IS NOT NULL
      THEN ARRAY[e.pinned_major, coalesce(e.pinned_minor, 0), coalesce(e.pinned_patch, 0)] END,
    i.orchestration_name, i.orchestration_version, i.parent_instance_id, i.created_at
  FROM (SELECT * FROM @schema@.instances ORDER BY created_at, instance_id) AS i
  JOIN @schema@.executions AS e
    ON e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id;
INSERT INTO @schema@.instance(instance)
  SELECT DISTINCT q.instance_id FROM @schema@.orchestrator_queue AS q
  WHERE NOT EXISTS (SELECT FROM @schema@.instances AS i WHERE i.instance_id = q.instance_id);

INSERT INTO @schema@.execution(instance, execution, status, started_at, completed_at, output)
  SELECT e.instance_id, e.execution_id, @schema@.old_status(e.status), e.started_at,
    CASE e.status WHEN 'Running' THEN 0 ELSE coalesce(e.completed_at, e.started_at) END,
    pg_catalog.convert_to(e.output, 'UTF8')
  FROM @schema@.executions AS e;

INSERT INTO @schema@.history(instance, execution, event, payload)
  SELECT h.instance_id, h.execution_id, h.event_id, pg_catalog.convert_to(h.event_data, 'UTF8')
  FROM @schema@.old_history AS h;

-- Their arrival is their old number.
INSERT INTO @schema@.message(instance, visible_at, seq, attempt, enqueued_at, payload)
  SELECT q.instance_id, q.visible_at, nextval('@schema@.number'), q.attempt_count, q.created_at,
    pg_catalog.convert_to(q.work_item, 'UTF8')
  FROM (SELECT * FROM @schema@.orchestrator_queue ORDER BY id) AS q;
UPDATE @schema@.instance AS i SET ready_at = m.visible_at, place = m.seq
  FROM (SELECT DISTINCT ON (instance) instance, visible_at, seq FROM @schema@.message
        ORDER BY instance, visible_at, seq) AS m
  WHERE m.instance = i.instance;

INSERT INTO @schema@.work(instance, execution, activity, ready_at, place, attempt, visible_at, tag,
                          session, payload)
  SELECT a.instance, a.execution, a.activity, w.visible_at, nextval('@schema@.number'),
    w.attempt_count, w.visible_at, coalesce(a.tag, ''), a.session,
    pg_catalog.convert_to(w.work_item, 'UTF8')
  FROM (SELECT * FROM @schema@.worker_queue ORDER BY id) AS w
  JOIN @schema@.old_activity AS a ON a.id = w.id;

-- Nothing was lost on the way.
DO $counts$
DECLARE
  v record;
BEGIN
  SELECT * INTO v FROM (
    SELECT 'instances' AS what, (SELECT count(*) FROM @schema@.instances) AS old,
      (SELECT count(*) FROM @schema@.instance AS i WHERE i.birth > 0) AS new
    UNION ALL SELECT 'executions', (SELECT count(*) FROM @schema@.executions),
      (SELECT count(*) FROM @schema@.execution)
    UNION ALL SELECT 'events', (SELECT count(*) FROM @schema@.old_history),
      (SELECT count(*) FROM @schema@.history)
    UNION ALL SELECT 'messages', (SELECT count(*) FROM @schema@.orchestrator_queue),
      (SELECT count(*) FROM @schema@.message)
    UNION ALL SELECT 'work items', (SELECT count(*) FROM @schema@.worker_queue),
      (SELECT count(*) FROM @schema@.work)) AS c
  WHERE c.old <> c.new LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'DK@DK_INTERNAL@', MESSAGE = pg_catalog.format(
      'version 1 has %s %s, and %s were copied; nothing was changed; this is a fault of '
      'the plugin, report it', v.old, v.what, v.new);
  END IF;
END
$counts$;

DROP TABLE @schema@.old_activity, @schema@.old_history, @schema@.instances, @schema@.executions,
  @schema@.instance_locks, @schema@.orchestrator_queue, @schema@.worker_queue;
DROP FUNCTION @schema@.old_activity_of, @schema@.old_is_text, @schema@.old_status;
