-- SPDX-License-Identifier: Apache-2.0
-- ADMIN, DEL, PRUNE: looking at instances, and removing those that have ended.

-- ---- looking ------------------------------------------------------------------------------------

-- STABLE, as in history.sql: all of an answer is of one moment, no row is locked, and the wait for
-- a locked table has a limit.

-- ADMIN-1 to ADMIN-4.  A filter is seven parameters: p_ids (NULL: any), p_roots, p_name, p_version,
-- p_parent (NULL: any), p_statuses (bit 1 << status; 0: any) and p_times: created from and before,
-- completed from and before (0: whenever).
-- It is planned each time for the given parameters, so that the others drop out of the query, and
-- the given ones lead to an index.  The order is that of instance_pkey, or, if there is a parent,
-- of instance_parent and of no other: a page begins where the one before has ended, and looks at
-- nothing before that.
CREATE FUNCTION @schema@.matching(
  p_now bigint, p_ids text[], p_roots boolean, p_name text, p_version text, p_parent text,
  p_statuses integer, p_times bigint[], p_after text, p_max bigint, p_output boolean)
RETURNS TABLE(instance text, status integer, created_at bigint, locked_until bigint, owner text,
              name text, version text, parent text, birth bigint, execution bigint,
              last_event bigint, started_at bigint, completed_at bigint, output bytea)
LANGUAGE plpgsql STABLE
SET jit = off SET plan_cache_mode = force_custom_plan
AS $$
BEGIN
  RETURN QUERY
    SELECT i.instance, i.status, CASE i.birth WHEN 0 THEN m.enqueued_at ELSE i.created_at END,
        CASE WHEN i.locked_until > p_now THEN i.locked_until ELSE 0 END, i.owner, i.name, i.version,
        i.parent, i.birth, i.execution, i.last_event, coalesce(x.started_at, 0),
        coalesce(x.completed_at, 0), CASE WHEN p_output THEN x.output END
      FROM @schema@.instance i
      LEFT JOIN LATERAL (SELECT min(y.enqueued_at) AS enqueued_at FROM @schema@.message y
                         WHERE y.instance = i.instance) AS m ON i.birth = 0
      LEFT JOIN LATERAL (SELECT y.started_at, y.completed_at, y.output FROM @schema@.execution y
                         WHERE y.instance = i.instance AND y.execution = i.execution
                         OFFSET 0) AS x ON i.birth <> 0
      WHERE CASE WHEN p_parent IS NULL THEN i.instance ELSE i.instance || '' END
          > coalesce(p_after, '')
        AND (p_ids IS NULL OR i.instance = ANY (p_ids))
        AND (NOT p_roots OR i.parent IS NULL)
        AND (p_name IS NULL OR i.name = p_name)
        AND (p_version IS NULL OR i.version = p_version)
        AND (p_parent IS NULL OR i.parent = p_parent)
        AND (p_statuses = 0 OR p_statuses & (1 << i.status) <> 0)
        AND (i.birth <> 0 OR m.enqueued_at IS NOT NULL)
        AND (p_times[1] = 0
             OR CASE i.birth WHEN 0 THEN m.enqueued_at ELSE i.created_at END >= p_times[1])
        AND (p_times[2] = 0
             OR CASE i.birth WHEN 0 THEN m.enqueued_at ELSE i.created_at END < p_times[2])
        AND (p_times[3] = 0 AND p_times[4] = 0 OR i.status > @DK_RUNNING@ AND x.completed_at <> 0)
        AND (p_times[3] = 0 OR x.completed_at >= p_times[3])
        AND (p_times[4] = 0 OR x.completed_at < p_times[4])
      ORDER BY CASE WHEN p_parent IS NULL THEN i.instance ELSE i.instance || '' END
      LIMIT nullif(p_max, 0);
END
$$;

CREATE FUNCTION @schema@.list_instances(
  p_now bigint, p_lock_ms integer, p_ids text[], p_roots boolean, p_name text, p_version text,
  p_parent text, p_statuses integer, p_times bigint[], p_after text, p_max bigint,
  p_output boolean)
RETURNS TABLE(instance text, status integer, created_at bigint, locked_until bigint, owner text,
              name text, version text, parent text, birth bigint, execution bigint,
              last_event bigint, started_at bigint, completed_at bigint, output bytea)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_set text := set_config('lock_timeout', p_lock_ms::text, true);
BEGIN
  RETURN QUERY SELECT * FROM @schema@.matching(@schema@.clock(p_now), p_ids, p_roots, p_name,
    p_version, p_parent, p_statuses, p_times, p_after, p_max, p_output);
END
$$;

-- ADMIN-5.
CREATE FUNCTION @schema@.list_executions(
  p_now bigint, p_lock_ms integer, p_instance text, p_after bigint, p_max bigint)
RETURNS TABLE(execution bigint, last_event bigint, started_at bigint, completed_at bigint,
              status integer, output bytea)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_set text := set_config('lock_timeout', p_lock_ms::text, true);
BEGIN
  RETURN QUERY
    SELECT x.execution,
        coalesce((SELECT h.event FROM @schema@.history h
                  WHERE h.instance = p_instance AND h.execution = x.execution
                  ORDER BY h.event DESC LIMIT 1), 0),
        x.started_at, x.completed_at, x.status, x.output
      FROM @schema@.execution x WHERE x.instance = p_instance AND x.execution > p_after
      ORDER BY x.execution LIMIT nullif(p_max, 0);
END
$$;

-- ADMIN-8.
CREATE FUNCTION @schema@.read_messages(
  p_now bigint, p_lock_ms integer, p_instance text, p_max bigint)
RETURNS TABLE(id text, visible_at bigint, enqueued_at bigint, payload bytea)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_set text := set_config('lock_timeout', p_lock_ms::text, true);
BEGIN
  RETURN QUERY
    SELECT m.id, m.visible_at, m.enqueued_at, m.payload
      FROM @schema@.message m WHERE m.instance = p_instance
      ORDER BY m.visible_at, m.seq LIMIT nullif(p_max, 0);
END
$$;

-- ADMIN-6.  One statement, which reads all tables: here that is intended.
CREATE FUNCTION @schema@.read_stats(p_now bigint, p_lock_ms integer)
RETURNS TABLE(now bigint, not_started bigint, running bigint, completed bigint, failed bigint,
              continued_as_new bigint, cancelled bigint, executions bigint, events bigint,
              messages_ready bigint, messages_delayed bigint, messages_locked bigint,
              activities_ready bigint, activities_delayed bigint, activities_locked bigint,
              oldest_message bigint, oldest_activity bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET jit = off
SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
  v_set text := set_config('lock_timeout', p_lock_ms::text, true);
  v_now bigint := @schema@.clock(p_now);
BEGIN
  RETURN QUERY
    SELECT v_now,
        (SELECT count(*) FROM @schema@.instance i WHERE i.birth = 0
           AND EXISTS (SELECT FROM @schema@.message m WHERE m.instance = i.instance)),
        i.running, i.completed, i.failed, i.continued_as_new, i.cancelled,
        (SELECT count(*) FROM @schema@.execution), (SELECT count(*) FROM @schema@.history),
        m.ready, m.delayed, m.locked, w.ready, w.delayed, w.locked, coalesce(m.oldest, 0),
        coalesce(w.oldest, 0)
      FROM (SELECT count(*) FILTER (WHERE y.status = @DK_RUNNING@) AS running,
              count(*) FILTER (WHERE y.status = @DK_COMPLETED@) AS completed,
              count(*) FILTER (WHERE y.status = @DK_FAILED@) AS failed,
              count(*) FILTER (WHERE y.status = @DK_CONTINUED_AS_NEW@) AS continued_as_new,
              count(*) FILTER (WHERE y.status = @DK_CANCELLED@) AS cancelled
              FROM @schema@.instance y) AS i,
        (SELECT count(*) FILTER (WHERE y.visible_at > v_now) AS delayed,
              count(*) FILTER (WHERE y.visible_at <= v_now AND z.locked_until > v_now) AS locked,
              count(*) FILTER (WHERE y.visible_at <= v_now AND z.locked_until <= v_now) AS ready,
              min(y.visible_at) FILTER (WHERE y.visible_at <= v_now AND z.locked_until <= v_now)
                AS oldest
              FROM @schema@.message y JOIN @schema@.instance z ON z.instance = y.instance) AS m,
        (SELECT count(*) FILTER (WHERE y.visible_at > v_now) AS delayed,
              count(*) FILTER (WHERE y.visible_at <= v_now AND y.is_held) AS locked,
              count(*) FILTER (WHERE y.visible_at <= v_now AND NOT y.is_held) AS ready,
              min(y.visible_at) FILTER (WHERE y.visible_at <= v_now AND NOT y.is_held) AS oldest
              FROM (SELECT z.visible_at, z.epoch <> 0 AND z.ready_at > v_now AS is_held
                    FROM @schema@.work z) AS y) AS w;
END
$$;

-- ---- which instances are deleted ----------------------------------------------------------------

-- DEL-4: a turn of it was committed, or it has messages.
CREATE FUNCTION @schema@.is_there(p_instance text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT FROM @schema@.instance i WHERE i.instance = p_instance AND i.birth <> 0)
    OR EXISTS (SELECT FROM @schema@.message m WHERE m.instance = p_instance);
END
$$;

-- DEL-3: those that have a row, and all their descendants, in the order of their ids.  Each comes
-- once: so a ring of parents has an end.
CREATE FUNCTION @schema@.family(p_of text[]) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN ARRAY(
    WITH RECURSIVE member(instance) AS (
      SELECT x.instance COLLATE "C" FROM unnest(p_of) AS x(instance)
      UNION
      SELECT c.instance FROM member AS f, LATERAL (
        SELECT i.instance FROM @schema@.instance i WHERE i.parent = f.instance OFFSET 0) AS c)
    SELECT i.instance FROM member AS f, LATERAL (
        SELECT y.instance FROM @schema@.instance y WHERE y.instance = f.instance OFFSET 0) AS i
      ORDER BY i.instance);
END
$$;

-- The same with their rows locked.  After a wait for a row the family may have grown, or changed;
-- then the locks are given back, and the function begins anew, so that all rows are locked in
-- order.  FOR UPDATE: no new instance can become a child of one of them (commit_turn).
CREATE FUNCTION @schema@.lock_family(p_of text[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
  v_all text[];
BEGIN
  FOR v_try IN 1 .. 10 LOOP
    v_all := @schema@.family(p_of);
    BEGIN
      v_all := ARRAY(SELECT i.instance FROM @schema@.instance i WHERE i.instance = ANY (v_all)
                     ORDER BY i.instance FOR UPDATE);
      IF v_all = @schema@.family(p_of) THEN
        RETURN v_all;
      END IF;
      RAISE EXCEPTION USING ERRCODE = 'DK@DK_BUSY@';
    EXCEPTION WHEN SQLSTATE 'DK@DK_BUSY@' THEN
      CONTINUE;
    END;
  END LOOP;
  RAISE EXCEPTION 'the descendants keep changing' USING ERRCODE = 'serialization_failure';
END
$$;

-- DEL-2: of these the first that has not ended.
CREATE FUNCTION @schema@.first_not_over(p_all text[], OUT instance text, OUT status integer)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  SELECT i.instance, i.status INTO instance, status FROM unnest(p_all) AS x(instance), LATERAL (
      SELECT y.instance, y.status FROM @schema@.instance y
      WHERE y.instance = x.instance
        AND y.status NOT IN (@DK_COMPLETED@, @DK_FAILED@, @DK_CANCELLED@) OFFSET 0) AS i
    ORDER BY i.instance LIMIT 1;
END
$$;

-- DEL-8: of these, in order, each that has no existing parent and has ended with all its
-- descendants; and, on request, how many rows it and they have.
CREATE FUNCTION @schema@.families_that_may_go(p_roots text[], p_sizes boolean)
RETURNS TABLE(root text, size bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN QUERY
    WITH RECURSIVE member(root, instance) AS (
      SELECT i.instance, i.instance FROM unnest(p_roots) AS x(instance), LATERAL (
          SELECT y.instance, y.parent FROM @schema@.instance y
          WHERE y.instance = x.instance
            AND y.status IN (@DK_COMPLETED@, @DK_FAILED@, @DK_CANCELLED@) OFFSET 0) AS i
        WHERE i.parent IS NULL OR NOT @schema@.is_there(i.parent)
      UNION
      SELECT f.root, c.instance FROM member AS f, LATERAL (
        SELECT i.instance FROM @schema@.instance i WHERE i.parent = f.instance OFFSET 0) AS c),
    whole AS MATERIALIZED (
      SELECT f.root, array_agg(f.instance) AS members FROM member AS f, LATERAL (
          SELECT y.status FROM @schema@.instance y WHERE y.instance = f.instance OFFSET 0) AS i
        GROUP BY f.root HAVING bool_and(i.status IN (@DK_COMPLETED@, @DK_FAILED@, @DK_CANCELLED@)))
    SELECT w.root, CASE WHEN p_sizes THEN (
        SELECT sum(1 + (SELECT count(*) FROM @schema@.history h WHERE h.instance = m.instance)
            + (SELECT count(*) FROM @schema@.execution e WHERE e.instance = m.instance)
            + (SELECT count(*) FROM @schema@.message e WHERE e.instance = m.instance)
            + (SELECT count(*) FROM @schema@.work e WHERE e.instance = m.instance))::bigint
          FROM unnest(w.members) AS m(instance)) END
      FROM whole AS w ORDER BY w.root;
END
$$;

-- ---- deleting -----------------------------------------------------------------------------------

-- DEL-1, DEL-7: deletes all rows of these instances; the instances' rows are locked.
CREATE FUNCTION @schema@.remove_instances(
  p_all text[], OUT instances bigint, OUT executions bigint, OUT events bigint,
  OUT messages bigint, OUT activities bigint)
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM @schema@.history h WHERE h.instance = ANY (p_all);
  GET DIAGNOSTICS events = ROW_COUNT;
  DELETE FROM @schema@.execution x WHERE x.instance = ANY (p_all);
  GET DIAGNOSTICS executions = ROW_COUNT;
  DELETE FROM @schema@.message m WHERE m.instance = ANY (p_all);
  GET DIAGNOSTICS messages = ROW_COUNT;
  DELETE FROM @schema@.work w WHERE w.instance = ANY (p_all);
  GET DIAGNOSTICS activities = ROW_COUNT;
  DELETE FROM @schema@.instance i WHERE i.instance = ANY (p_all);
  GET DIAGNOSTICS instances = ROW_COUNT;
END
$$;

-- DEL-1 to DEL-7.  Judged under the locks of all that would be deleted.  status DK_OK, and the
-- deleted rows; DK_NOT_FOUND: t1 does not exist; DK_REFUSED: t1 has the parent t2, which exists and
-- is not deleted; or t1 has not ended, and the state is its status.  With DK_OK the state is the
-- number of deleted roots (DEL-7), here and in delete_matching.
CREATE FUNCTION @schema@.delete_instances(
  p_now bigint, p_lock_ms integer, p_instances text[], p_force boolean)
RETURNS TABLE(status integer, state integer, t1 text, t2 text, next text, instances bigint,
              executions bigint, events bigint, messages bigint, activities bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_set text := @schema@.begin_write(p_lock_ms);
  v_all text[] := @schema@.lock_family(p_instances);
BEGIN
  SELECT @DK_NOT_FOUND@, x.instance INTO status, t1 FROM unnest(p_instances) AS x(instance)
    WHERE NOT @schema@.is_there(x.instance) ORDER BY x.instance COLLATE "C" LIMIT 1;
  IF status IS NULL THEN
    SELECT @DK_REFUSED@, i.instance, i.parent INTO status, t1, t2
      FROM unnest(p_instances) AS x(instance), LATERAL (
        SELECT y.instance, y.parent FROM @schema@.instance y
        WHERE y.instance = x.instance AND y.parent IS NOT NULL OFFSET 0) AS i
      WHERE i.parent NOT IN (SELECT y.instance FROM unnest(v_all) AS y(instance))
        AND @schema@.is_there(i.parent)
      ORDER BY i.instance LIMIT 1;
  END IF;
  IF status IS NULL AND NOT p_force THEN
    SELECT @DK_REFUSED@, x.instance, x.status INTO status, t1, state
      FROM @schema@.first_not_over(v_all) AS x
      WHERE x.instance IS NOT NULL;
  END IF;
  IF status IS NULL THEN
    status := @DK_OK@;
    state := (SELECT count(DISTINCT x.instance COLLATE "C") FROM unnest(p_instances) AS x(instance));
    SELECT x.* INTO instances, executions, events, messages, activities
      FROM @schema@.remove_instances(v_all) AS x;
  END IF;
  RETURN NEXT;
END
$$;

-- DEL-8, DEL-9.  A page has a limit for the selected instances that it looks at, and one for the
-- rows that it removes, but it removes a family as a whole.  A family is chosen without a lock, in
-- slices, because it may be large; then it is locked, and judged once more.
CREATE FUNCTION @schema@.delete_matching(
  p_now bigint, p_lock_ms integer, p_ids text[], p_roots boolean, p_name text, p_version text,
  p_parent text, p_statuses integer, p_times bigint[], p_after text, p_max bigint)
RETURNS TABLE(status integer, state integer, t1 text, t2 text, next text, instances bigint,
              executions bigint, events bigint, messages bigint, activities bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  c_looks constant integer := 2000;
  c_slice constant integer := 50;
  c_rows constant bigint := 20000;
  v_set text := @schema@.begin_write(p_lock_ms);
  v_ids text[] := ARRAY(
    SELECT m.instance FROM @schema@.matching(0, p_ids, p_roots, p_name, p_version, p_parent,
      p_statuses, p_times, p_after, c_looks + 1, false) AS m);
  v_roots text[] := '{}';
  v_all text[];
  v_rows bigint := 0;
  v_is_cut boolean := false;
  k record;
BEGIN
  FOR v_from IN 1 .. least(cardinality(v_ids), c_looks) BY c_slice LOOP
    FOR k IN SELECT f.root, f.size
        FROM @schema@.families_that_may_go(v_ids[v_from : v_from + c_slice - 1], true) AS f LOOP
      v_rows := v_rows + k.size;
      v_is_cut := cardinality(v_roots) = p_max OR (v_rows > c_rows AND cardinality(v_roots) > 0);
      EXIT WHEN v_is_cut;
      v_roots := v_roots || k.root;
    END LOOP;
    EXIT WHEN v_is_cut;
  END LOOP;
  IF v_is_cut THEN
    next := v_roots[cardinality(v_roots)];
  ELSIF cardinality(v_ids) > c_looks THEN
    next := v_ids[c_looks];
  END IF;
  status := @DK_OK@;
  v_all := @schema@.lock_family(v_roots);
  v_roots := ARRAY(SELECT m.instance FROM @schema@.matching(0, v_roots, p_roots, p_name, p_version,
    p_parent, p_statuses, p_times, NULL, 0, false) AS m);
  v_roots := ARRAY(SELECT f.root FROM @schema@.families_that_may_go(v_roots, false) AS f);
  state := cardinality(v_roots);
  SELECT x.* INTO instances, executions, events, messages, activities
    FROM @schema@.remove_instances(@schema@.family(v_roots)) AS x;
  RETURN NEXT;
END
$$;

-- ---- pruning ------------------------------------------------------------------------------------

-- PRUNE-1 to PRUNE-3, of one life.  Its turns go on meanwhile, because they touch only the current
-- execution and the next.  No other transaction can delete the instance meanwhile: FOR KEY SHARE.
-- Two that prune the same instance take its executions in one order.
CREATE FUNCTION @schema@.prune_instance(
  p_instance text, p_birth bigint, p_keep bigint, p_before bigint,
  OUT executions bigint, OUT events bigint)
LANGUAGE plpgsql AS $$
DECLARE
  v_first_kept bigint;
  v_current bigint;
  v_gone bigint[];
BEGIN
  executions := 0;
  events := 0;
  SELECT x.execution INTO v_first_kept FROM @schema@.execution x WHERE x.instance = p_instance
    ORDER BY x.execution DESC OFFSET greatest(p_keep, 1) - 1 LIMIT 1;
  PERFORM 1 FROM @schema@.execution x WHERE x.instance = p_instance AND x.execution < v_first_kept
    AND x.status <> @DK_RUNNING@ AND (p_before = 0 OR x.completed_at < p_before) LIMIT 1;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  SELECT i.execution INTO v_current FROM @schema@.instance i
    WHERE i.instance = p_instance AND i.birth = p_birth FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  WITH gone AS (
    DELETE FROM @schema@.execution x WHERE x.instance = p_instance
      AND x.execution < least(v_first_kept, v_current) AND x.status <> @DK_RUNNING@
      AND (p_before = 0 OR x.completed_at < p_before)
      RETURNING x.execution)
    SELECT coalesce(array_agg(g.execution), '{}') INTO v_gone FROM gone AS g;
  executions := cardinality(v_gone);
  DELETE FROM @schema@.history h WHERE h.instance = p_instance AND h.execution = ANY (v_gone);
  GET DIAGNOSTICS events = ROW_COUNT;
END
$$;

-- PRUNE-4.  One instance (DK_NOT_FOUND: it is not known), or a page of all that the filter selects,
-- which ends at a number of instances or of deleted rows.  It goes in the order of their ids: so
-- the one row that each locks is also in order.
CREATE FUNCTION @schema@.prune_executions(
  p_now bigint, p_lock_ms integer, p_ids text[], p_roots boolean, p_name text, p_version text,
  p_parent text, p_statuses integer, p_times bigint[], p_after text, p_max bigint,
  p_instance text, p_keep bigint, p_before bigint)
RETURNS TABLE(status integer, state integer, t1 text, t2 text, next text, instances bigint,
              executions bigint, events bigint, messages bigint, activities bigint)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off
SET jit = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  c_looks constant bigint := 2000;
  c_rows constant bigint := 20000;
  v_set text := @schema@.begin_write(p_lock_ms);
  v_is_cut boolean := false;
  k record;
  v record;
BEGIN
  status := @DK_OK@;
  instances := 0;
  executions := 0;
  events := 0;
  IF p_instance IS NOT NULL THEN
    SELECT i.birth INTO k FROM @schema@.instance i
      WHERE i.instance = p_instance AND i.birth <> 0;
    IF FOUND THEN
      instances := 1;
      SELECT x.* INTO executions, events
        FROM @schema@.prune_instance(p_instance, k.birth, p_keep, p_before) AS x;
    ELSE
      status := @DK_NOT_FOUND@;
      t1 := p_instance;
    END IF;
    RETURN NEXT;
    RETURN;
  END IF;
  FOR k IN SELECT m.instance, m.birth FROM @schema@.matching(0, p_ids, p_roots, p_name, p_version,
      p_parent, p_statuses, p_times, p_after, least(p_max, c_looks) + 1, false) AS m LOOP
    v_is_cut := instances = least(p_max, c_looks) OR executions + events >= c_rows;
    EXIT WHEN v_is_cut;
    v := @schema@.prune_instance(k.instance, k.birth, p_keep, p_before);
    executions := executions + v.executions;
    events := events + v.events;
    instances := instances + 1;
    next := k.instance;
  END LOOP;
  IF NOT v_is_cut THEN
    next := NULL;
  END IF;
  RETURN NEXT;
END
$$;
