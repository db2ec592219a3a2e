-- SPDX-License-Identifier: Apache-2.0
-- Marks the schema as a store, and holds the version of its tables: one row.

CREATE TABLE @schema@.meta(
  durakit_version integer NOT NULL,
  store bigint NOT NULL,
  clock integer NOT NULL CHECK (clock IN (1, 2)),
  schema_name text NOT NULL,
  is_the_one boolean PRIMARY KEY DEFAULT true CHECK (is_the_one));
COMMENT ON TABLE @schema@.meta IS
  'A store of Durakit: version of its tables; its random number, which is in every lock token; whose'
  ' clock its times are of (1: the hosts'', 2: the server''s); the schema that its functions name';
