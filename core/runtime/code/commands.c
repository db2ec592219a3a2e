/* SPDX-License-Identifier: Apache-2.0 */
/* What an orchestration begins: activities, timers, waits, children.  See orch.h. */
#include "core/runtime/code/orch.h"

#include "core/base/sat.h"
#include "core/runtime/code/decision.h"

/* Reads a caller's options: an older caller's struct is shorter, a newer one's longer. */
static void
read_options(struct dk_orch *o, const void *given, uint32_t size, void *ret_options, size_t known)
{
  const size_t least = 2 * sizeof(uint32_t);

  if (size < least || size > known)
    orch_wrong(o, "struct_size of its options is %u, expected %zu to %zu: set it to sizeof, and "
                  "use the runtime.h of this library", size, least, known);
  memcpy(ret_options, given, size);
}

/* Records the command, and returns its future. */
static struct dk_future *
commands_begin(struct dk_orch *o, const struct event *said)
{
  bool made;

  return orch_future(o, orch_record_command(o, said, &made));
}

/* ---- activities -------------------------------------------------------------------------------*/

static struct dk_activity_options
activity_options(struct dk_orch *o, const struct dk_activity_options *given)
{
  struct dk_activity_options options = {.struct_size = 0};

  if (given)
    read_options(o, given, given->struct_size, &options, sizeof(options));
  if (options.reserved != 0)
    orch_wrong(o, "reserved in its options is %u; expected 0", options.reserved);
  if (options.tag.ptr)
    orch_text_id(o, "the tag", options.tag);
  if (options.session.ptr && !o->past->has_sessions)
    orch_wrong(o, "this store has no sessions (durakit.sessions/1); leave the session out");
  if (options.session.ptr)
    orch_text_id(o, "the session", options.session);
  return options;
}

static dk_future *
begin_activity(struct dk_orch *o, const char *name, dk_str input,
               const struct dk_activity_options *given)
{
  struct dk_activity_options options = activity_options(o, given);

  return commands_begin(o, &(struct event){.kind = EVENT_ACTIVITY,
                                           .name = orch_name_of(o, "the name", name),
                                           .text = orch_payload(o, "the input", input),
                                           .tag = options.tag,
                                           .session = options.session});
}

dk_future *
dk_activity(dk_orch *given, const char *name, dk_str input)
{
  struct dk_orch *o = orch_begin(given, "dk_activity");

  return o ? begin_activity(o, name, input, NULL) : NULL;
}

dk_future *
dk_activity_with(dk_orch *given, const char *name, dk_str input,
                 const struct dk_activity_options *options)
{
  struct dk_orch *o = orch_begin(given, "dk_activity_with");

  return o ? begin_activity(o, name, input, options) : NULL;
}

/* ---- timers and waits -------------------------------------------------------------------------*/

dk_future *
dk_timer(dk_orch *given, int64_t ms)
{
  struct dk_orch *o = orch_begin(given, "dk_timer");

  if (!o)
    return NULL;
  if (ms < 0)
    orch_wrong(o, "the time is %lld ms; give 0 or more", (long long)ms);
  return commands_begin(
      o,
      &(struct event){.kind = EVENT_TIMER, .number = ms, .time2 = dk_sat_add(o->past->time, ms)});
}

dk_future *
dk_external(dk_orch *given, const char *event)
{
  struct dk_orch *o = orch_begin(given, "dk_external");

  if (!o)
    return NULL;
  return commands_begin(
      o, &(struct event){.kind = EVENT_WAIT, .name = orch_name_of(o, "the event's name", event)});
}

dk_future *
dk_dequeue(dk_orch *given, const char *queue)
{
  struct dk_orch *o = orch_begin(given, "dk_dequeue");

  if (!o)
    return NULL;
  return commands_begin(o, &(struct event){.kind = EVENT_DEQUEUE,
                                           .name = orch_name_of(o, "the queue's name", queue)});
}

/* Records the result in the history.  It searches only as far as the code has waited, so that each
 * replay finds the same. */
int32_t
dk_try_dequeue(dk_orch *given, const char *queue, dk_str *ret_message)
{
  struct dk_orch *o = orch_begin(given, "dk_try_dequeue");
  bool made;

  if (!o)
    return 0;
  dk_str name = orch_name_of(o, "the queue's name", queue);
  struct arrival *found = orch_unclaimed(o, name);
  if (found && !rule_sees(found->position, o->now))
    found = NULL;
  orch_record_command(o, &(struct event){.kind = EVENT_TRY_DEQUEUE, .name = name,
                                      .number = found ? 1 : 0,
                                      .source = found ? found->position : 0}, &made);
  if (!found)
    return 0;
  orch_take_unclaimed(o, name);
  if (ret_message)
    *ret_message = found->data.ptr ? found->data : dk_str_of("");
  return 1;
}

/* ---- children ---------------------------------------------------------------------------------*/

static struct dk_child_options
child_options(struct dk_orch *o, const struct dk_child_options *given)
{
  struct dk_child_options options = {.struct_size = 0};

  if (given)
    read_options(o, given, given->struct_size, &options, sizeof(options));
  if (options.reserved != 0)
    orch_wrong(o, "reserved in its options is %u; expected 0", options.reserved);
  if (options.instance.ptr)
    orch_text_id(o, "the child's instance id", options.instance);
  return options;
}

/* Makes the id of a child without a given id; fails if the ids of the parents are too long. */
static void
name_child(struct dk_orch *o)
{
  struct event *child = &o->commands[o->n_commands - 1];

  child->instance = child_instance_id(o->arena, o->past->instance, o->past->execution, child->id);
  if (!child->instance.ptr)
    orch_leave(o, ENDING_NO_MEMORY);
  if (o->past->max_id > 0 && child->instance.len > o->past->max_id)
    orch_limit(o, "the child's id would have %zu bytes, and this store takes at most %llu; give "
                  "one in its options", child->instance.len, (unsigned long long)o->past->max_id);
}

dk_future *
dk_child(dk_orch *given, const char *name, dk_str input, const struct dk_child_options *options)
{
  struct dk_orch *o = orch_begin(given, "dk_child");
  bool made;

  if (!o)
    return NULL;
  struct dk_child_options read = child_options(o, options);
  const struct event *child =
    orch_record_command(o, &(struct event){.kind = EVENT_CHILD,
                                        .name = orch_name_of(o, "the name", name),
                                        .text = orch_payload(o, "the input", input),
                                        .instance = read.instance,
                                        .version = orch_version_of(o, read.version)}, &made);
  if (made && !child->instance.ptr)
    name_child(o);
  return orch_future(o, child);
}

void
dk_start_detached(dk_orch *given, const char *name, dk_str instance, dk_str input,
                  const char *version)
{
  struct dk_orch *o = orch_begin(given, "dk_start_detached");
  bool made;

  if (!o)
    return;
  orch_record_command(o, &(struct event){.kind = EVENT_DETACHED,
                                      .name = orch_name_of(o, "the name", name),
                                      .text = orch_payload(o, "the input", input),
                                      .instance = orch_text_id(o, "the instance id", instance),
                                      .version = orch_version_of(o, version)}, &made);
}
