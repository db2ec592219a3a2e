-- SPDX-License-Identifier: Apache-2.0
-- From version 3 to version 4 (migrate.c), but for the functions: no row is written.  A process of
-- version 3 or 2 that has the store open waits, and then goes on: it calls the functions of version
-- 4, to which its fetches are without an id.  The old ones go: with a parameter more none can take
-- their place.

ALTER TABLE @schema@.instance ADD COLUMN fetch_id bigint NOT NULL DEFAULT 0;
ALTER TABLE @schema@.work ADD COLUMN fetch_id bigint NOT NULL DEFAULT 0;
DROP FUNCTION @schema@.fetch_turn(
  bigint, integer, integer, bigint, text, boolean, bigint, bigint, bigint[]);
DROP FUNCTION @schema@.fetch_work(
  bigint, integer, integer, bigint, text, integer, bigint, integer, text[]);
UPDATE @schema@.meta SET durakit_version = 4;
