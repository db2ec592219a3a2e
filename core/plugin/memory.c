/* SPDX-License-Identifier: Apache-2.0 */
/* Definedness of what is handed up: see memory.h.  Owns nothing. */
#include "config.h"

#include "core/plugin/memory.h"

#include <stdio.h>
#include <string.h>

#if HAVE_VALGRIND
#include <valgrind/memcheck.h>
#endif

#include "core/plugin/store.h"

/* ---- shapes ---------------------------------------------------------------------------------- */

#define VALUE(type, member)                                                                        \
  {#member, offsetof(struct type, member), sizeof(((struct type *)NULL)->member), false}
#define BYTES(type, member)                                                                        \
  {#member, offsetof(struct type, member), sizeof(((struct type *)NULL)->member), true}
#define SHAPE(shape, called, members)                                                              \
  const struct dk_shape dk_shape_##shape = {called, members, sizeof(members) / sizeof(*(members))}

static const struct dk_member turn_members[] = {
  VALUE(dk_turn_head, struct_size),   VALUE(dk_turn_head, reserved),
  BYTES(dk_turn_head, lock_token),    BYTES(dk_turn_head, instance),
  VALUE(dk_turn_head, known),         VALUE(dk_turn_head, status),
  BYTES(dk_turn_head, name),          BYTES(dk_turn_head, version),
  BYTES(dk_turn_head, parent_instance), VALUE(dk_turn_head, birth),
  VALUE(dk_turn_head, execution_id),  VALUE(dk_turn_head, last_event_id),
  VALUE(dk_turn_head, history_from),  VALUE(dk_turn_head, now),
  VALUE(dk_turn_head, lease_left_ms),
};
SHAPE(turn, "head", turn_members);

static const struct dk_member kv_members[] = {
  VALUE(dk_kv, struct_size), VALUE(dk_kv, reserved),   BYTES(dk_kv, key),
  BYTES(dk_kv, value),       VALUE(dk_kv, updated_at),
};
SHAPE(kv, "kv", kv_members);

static const struct dk_member event_members[] = {
  VALUE(dk_event, event_id),
  BYTES(dk_event, payload),
};
SHAPE(event, "event", event_members);

static const struct dk_member message_members[] = {
  VALUE(dk_message, struct_size), VALUE(dk_message, attempt),    BYTES(dk_message, id),
  BYTES(dk_message, payload),     VALUE(dk_message, visible_at), VALUE(dk_message, enqueued_at),
};
SHAPE(message, "message", message_members);

static const struct dk_member work_members[] = {
  VALUE(dk_work, struct_size), VALUE(dk_work, attempt), BYTES(dk_work, lock_token),
  VALUE(dk_work, item),        VALUE(dk_work, now),     VALUE(dk_work, lease_left_ms),
};
SHAPE(work, "work", work_members);

static const struct dk_member item_members[] = {
  VALUE(dk_item, struct_size),  VALUE(dk_item, flags),       BYTES(dk_item, instance),
  BYTES(dk_item, id),           VALUE(dk_item, execution_id), VALUE(dk_item, activity_id),
  BYTES(dk_item, session),      BYTES(dk_item, tag),         VALUE(dk_item, visible_at),
  VALUE(dk_item, delay_ms),     BYTES(dk_item, payload),
};
SHAPE(item, "item", item_members);

static const struct dk_member stolen_members[] = {
  VALUE(dk_stolen, struct_size), VALUE(dk_stolen, reserved),   VALUE(dk_stolen, execution_id),
  VALUE(dk_stolen, activity_id), BYTES(dk_stolen, lock_token), BYTES(dk_stolen, owner),
};
SHAPE(stolen, "stolen", stolen_members);

static const struct dk_member report_members[] = {
  VALUE(dk_cancel_report, struct_size),
  VALUE(dk_cancel_report, reserved),
  VALUE(dk_cancel_report, free_rows),
  VALUE(dk_cancel_report, locked_rows),
};
SHAPE(report, "report", report_members);

static const struct dk_member execution_members[] = {
  VALUE(dk_execution, struct_size),   VALUE(dk_execution, status),
  VALUE(dk_execution, execution_id),  VALUE(dk_execution, last_event_id),
  VALUE(dk_execution, started_at),    VALUE(dk_execution, completed_at),
  BYTES(dk_execution, output),
};
SHAPE(execution, "execution", execution_members);

static const struct dk_member instance_members[] = {
  VALUE(dk_instance, struct_size), VALUE(dk_instance, status), BYTES(dk_instance, instance),
  VALUE(dk_instance, created_at), VALUE(dk_instance, locked_until), BYTES(dk_instance, owner),
  BYTES(dk_instance, name), BYTES(dk_instance, version), BYTES(dk_instance, parent_instance),
  VALUE(dk_instance, birth), VALUE(dk_instance, execution_id), VALUE(dk_instance, last_event_id),
  VALUE(dk_instance, started_at), VALUE(dk_instance, completed_at), BYTES(dk_instance, output),
};
SHAPE(instance, "instance", instance_members);

static const struct dk_member stats_members[] = {
  VALUE(dk_stats, struct_size), VALUE(dk_stats, reserved), VALUE(dk_stats, now),
  VALUE(dk_stats, not_started), VALUE(dk_stats, running), VALUE(dk_stats, completed),
  VALUE(dk_stats, failed), VALUE(dk_stats, continued_as_new), VALUE(dk_stats, cancelled),
  VALUE(dk_stats, executions), VALUE(dk_stats, events), VALUE(dk_stats, messages_ready),
  VALUE(dk_stats, messages_delayed), VALUE(dk_stats, messages_locked),
  VALUE(dk_stats, activities_ready), VALUE(dk_stats, activities_delayed),
  VALUE(dk_stats, activities_locked), VALUE(dk_stats, oldest_message),
  VALUE(dk_stats, oldest_activity),
};
SHAPE(stats, "stats", stats_members);

static const struct dk_member removed_members[] = {
  VALUE(dk_removed, struct_size), VALUE(dk_removed, reserved), VALUE(dk_removed, instances),
  VALUE(dk_removed, executions), VALUE(dk_removed, events), VALUE(dk_removed, messages),
  VALUE(dk_removed, activities), BYTES(dk_removed, next), VALUE(dk_removed, roots),
};
SHAPE(removed, "removed", removed_members);

/* ---- asking Valgrind ------------------------------------------------------------------------- */

enum state { IS_FINE, IS_UNDEFINED, IS_NOT_THERE };

#if HAVE_VALGRIND

bool
dk_memory_is_watched(void)
{
  return RUNNING_ON_VALGRIND != 0;
}

/* *ret_at is the offset of the first byte that is wrong.  Both requests also make Valgrind report
 * it. */
static enum state
memory_ask(const void *bytes, size_t size, size_t *ret_at)
{
  uintptr_t wrong = (uintptr_t)VALGRIND_CHECK_MEM_IS_ADDRESSABLE(bytes, size);
  enum state state = IS_NOT_THERE;

  if (wrong == 0) {
    wrong = (uintptr_t)VALGRIND_CHECK_MEM_IS_DEFINED(bytes, size);
    state = IS_UNDEFINED;
  }
  if (wrong == 0)
    return IS_FINE;
  *ret_at = wrong - (uintptr_t)bytes;
  return state;
}

/* The same for memory that is certainly addressable, and without a report. */
static enum state
ask_quietly(const void *bytes, size_t size, size_t *ret_at)
{
  unsigned char undefined[sizeof(int64_t)];

  if (size > sizeof(undefined) || VALGRIND_GET_VBITS(bytes, undefined, size) != 1)
    return IS_FINE;
  for (size_t i = 0; i < size; i++)
    if (undefined[i] != 0) {
      *ret_at = i;
      return IS_UNDEFINED;
    }
  return IS_FINE;
}

#else

bool
dk_memory_is_watched(void)
{
  return false;
}

static enum state
memory_ask(const void *bytes, size_t size, size_t *ret_at)
{
  (void)bytes;
  (void)size;
  (void)ret_at;
  return IS_FINE;
}

static enum state
ask_quietly(const void *bytes, size_t size, size_t *ret_at)
{
  return memory_ask(bytes, size, ret_at);
}

#endif

/* ---- findings -------------------------------------------------------------------------------- */

bool
dk_memory_finds(const struct dk_store *store, const char *name, const void *bytes, size_t size,
                bool quietly, struct dk_memory_fault *ret_fault)
{
  size_t at = 0;

  if (!store->is_watched || size == 0)
    return false;
  enum state state = quietly ? ask_quietly(bytes, size, &at) : memory_ask(bytes, size, &at);
  if (state == IS_FINE)
    return false;
  ret_fault->clause = state == IS_UNDEFINED ? "MEM-1" : "MEM-2";
  snprintf(ret_fault->text, sizeof(ret_fault->text), "%s, byte %zu of %zu is %s", name, at + 1,
           size, state == IS_UNDEFINED ? "undefined" : "not there: beyond its block, or freed");
  return true;
}

dk_status
dk_memory_value(struct dk_call *call, const char *upcall, const char *name, const void *value,
                size_t size)
{
  struct dk_memory_fault fault;

  if (!dk_memory_finds(call->store, name, value, size, false, &fault))
    return DK_OK;
  return dk_call_violated(call, fault.clause, "%s: %s", upcall, fault.text);
}

/* MEM-1: the provider has returned, so that no stack contains a line of it: only the text reports
 * it. */
dk_status
dk_memory_returned(struct dk_call *call, dk_status status)
{
  struct dk_memory_fault fault;

  if (!dk_memory_finds(call->store, "the status", &status, sizeof(status), true, &fault))
    return status;
  return dk_call_violated(call, fault.clause, "%s returned: %s", call->operation->name, fault.text);
}

dk_status
dk_memory_bytes(struct dk_call *call, const char *upcall, const char *name, struct dk_bytes bytes)
{
  return bytes.ptr ? dk_memory_value(call, upcall, name, bytes.ptr, bytes.len) : DK_OK;
}

dk_status
dk_memory_size(struct dk_call *call, const char *upcall, const void *given)
{
  return given ? dk_memory_value(call, upcall, "struct_size", given, sizeof(uint32_t)) : DK_OK;
}

/* "item.payload", and the bytes that it points to: "item.payload.ptr" would not help an author
 * more. */
static dk_status
look_at_member(struct dk_call *call, const char *upcall, const struct dk_shape *shape,
               const struct dk_member *member, const char *given)
{
  struct dk_bytes bytes;
  char name[64];

  snprintf(name, sizeof(name), "%s.%s%s", shape->name, member->name,
           member->is_bytes ? " (ptr and len)" : "");
  TRY(dk_memory_value(call, upcall, name, given + member->offset, member->size));
  if (!member->is_bytes)
    return DK_OK;
  memcpy(&bytes, given + member->offset, sizeof(bytes));
  snprintf(name, sizeof(name), "%s.%s", shape->name, member->name);
  return dk_memory_bytes(call, upcall, name, bytes);
}

dk_status
dk_memory_struct(struct dk_call *call, const char *upcall, const struct dk_shape *shape,
                 const void *given, size_t size)
{
  if (!call->store->is_watched)
    return DK_OK;
  for (size_t i = 0; i < shape->n_members; i++) {
    const struct dk_member *member = &shape->members[i];
    if ((size_t)member->offset + member->size <= size)
      TRY(look_at_member(call, upcall, shape, member, given));
  }
  return DK_OK;
}
