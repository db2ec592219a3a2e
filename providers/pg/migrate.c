/* SPDX-License-Identifier: Apache-2.0 */
/* From an older version to this one: one transaction, all or nothing.
 *
 * Version 1: what is done with each row is said in schema/from-1-demands.sql and from-1-copy.sql.
 * It has no word of whose clock its times are: they are milliseconds since 1970 in any case, and
 * the store is of the clock that it is opened for when it is migrated.
 *
 * Versions 2 and 3: schema/from-2.sql, schema/from-3.sql, and the functions that are new or other
 * since version 2. */
#include "providers/pg/schema.h"

const char pg_drop_version_1[] =
  "DROP TABLE IF EXISTS @schema@.instances, @schema@.executions, @schema@.history,"
  " @schema@.instance_locks, @schema@.orchestrator_queue, @schema@.worker_queue, @schema@.meta"
  " RESTRICT;\n";

/* Two tables have the name of one of today: one makes room, one has said what it had to. */
static const char make_room[] =
  "ALTER TABLE @schema@.history RENAME TO old_history;\n"
  "ALTER INDEX IF EXISTS @schema@.history_pkey RENAME TO old_history_pkey;\n"
  "DROP TABLE @schema@.meta;\n";

void
script_add_migration(struct script *s, int32_t version)
{
  if (version == 1) {
    script_add(s, pg_demands_text);
    script_add(s, make_room);
    script_add(s, pg_schema_text);
    script_add(s, pg_copy_text);
  } else {
    if (version == 2)
      script_add(s, pg_from_2_text);
    script_add(s, pg_from_3_text);
    script_add(s, pg_replaced_text);
  }
}
