/* SPDX-License-Identifier: Apache-2.0 */
/* From version 1 to this one: one transaction, all or nothing.
 *
 * What is done with each row is said in schema/from-1-demands.sql and from-1-copy.sql.  Version 1
 * has no word of whose clock its times are: they are milliseconds since 1970 in any case, and the
 * store is of the clock that it is opened for when it is migrated. */
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
script_add_migration(struct script *s)
{
  script_add(s, pg_demands_text);
  script_add(s, make_room);
  script_add(s, pg_schema_text);
  script_add(s, pg_copy_text);
}
