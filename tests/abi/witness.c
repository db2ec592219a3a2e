/* SPDX-License-Identifier: Apache-2.0 */
/* A library that exports one object of each public struct, so that abidiff sees all of the ABI,
 * also what is reached by void pointers only. */
#include <durakit/admin.h>

#define WITNESS(name)                                                                              \
  DK_EXPORT extern struct name witness_##name;                                                     \
  struct name witness_##name
WITNESS(dk_bytes);
WITNESS(dk_item);
WITNESS(dk_event);
WITNESS(dk_activity);
WITNESS(dk_version);
WITNESS(dk_version_range);
WITNESS(dk_kv_change);
WITNESS(dk_turn_result);
WITNESS(dk_work_result);
WITNESS(dk_fetch_turn);
WITNESS(dk_fetch_work);
WITNESS(dk_read_history);
WITNESS(dk_instance_filter);
WITNESS(dk_list_instances);
WITNESS(dk_list_executions);
WITNESS(dk_read_messages);
WITNESS(dk_read_stats);
WITNESS(dk_delete_instances);
WITNESS(dk_delete_matching);
WITNESS(dk_prune);
WITNESS(dk_turn_head);
WITNESS(dk_message);
WITNESS(dk_work);
WITNESS(dk_kv);
WITNESS(dk_stolen);
WITNESS(dk_cancel_report);
WITNESS(dk_execution);
WITNESS(dk_instance);
WITNESS(dk_stats);
WITNESS(dk_removed);
WITNESS(dk_host);
WITNESS(dk_ops);
WITNESS(dk_param);
WITNESS(dk_setting);
WITNESS(dk_open);
WITNESS(dk_limits);
WITNESS(dk_extension);
WITNESS(dk_admin);
WITNESS(dk_provider);
