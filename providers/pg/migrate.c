/* SPDX-License-Identifier: Apache-2.0 */
/* From version 1 to this one: one transaction, all or nothing.
 *
 * schema/from-1-demands.sql and from-1-copy.sql define what becomes of each row.  Version 1 does
 * not record whose clock its times are.  They are milliseconds since 1970 in any case, and the
 * migrated store gets the clock that the migrating open asks for. */
#include "providers/pg/schema.h"

const char pg_drop_version_1[] =
  "DROP TABLE IF EXISTS @schema@.instances, @schema@.executions, @schema@.history,"
  " @schema@.instance_locks, @schema@.orchestrator_queue, @schema@.worker_queue, @schema@.meta"
  " RESTRICT;\n";

/* Two old tables have the name of a present one: one is renamed, the other is no longer needed. */
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
