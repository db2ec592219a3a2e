-- SPDX-License-Identifier: Apache-2.0
-- From version 2 to version 3 (migrate.c), but for the functions: no row is lost or moved, and the
-- operations of version 2 mean what they did.  So a process of version 2 that has the store open
-- waits, and then goes on; it cannot open it any more.

ALTER TABLE @schema@.instance ADD COLUMN created_at bigint NOT NULL DEFAULT 0;
-- Version 2 removes no execution, so there is the first.
UPDATE @schema@.instance AS i SET created_at = x.started_at
  FROM (SELECT DISTINCT ON (y.instance) y.instance, y.started_at FROM @schema@.execution AS y
        ORDER BY y.instance, y.execution) AS x
  WHERE x.instance = i.instance AND i.birth <> 0;
CREATE INDEX instance_parent ON @schema@.instance(parent, (instance || ''))
  WHERE parent IS NOT NULL;
UPDATE @schema@.meta SET durakit_version = 3;
