/* SPDX-License-Identifier: Apache-2.0 */
/* The drain: everything that a store would ever return, as lines.
 *
 * It goes through time, and stops 1 ms before and at each instant that the check has named, then
 * far later.  At each stop it reads all histories, finds the owners and pins of instances, takes
 * all turns by an empty commit and all work without a completion.  Where durakit.admin/1 is
 * declared it lists and counts before that, in lines that are kept apart and compared last: the
 * lines of fetches show the effect of a call best. A line has its instant and what can be seen, but
 * no token; a birth is shown by its number among those of its instance.  In real time there are two
 * stops, at once and at the last near instant, and the lines have no times. */
#include "conformance/kit/kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checksum.h"
#include "core/base/sat.h"

enum {
  LEASE = 1000,
  PROBE_LEASE = 30000,    /* all turns are given back; in real time it must not end before that */
  MOST_EXECUTIONS = 64,
  LONG_PAYLOAD = 64,
  MOST_TRIES = 8,         /* of a call with a retryable status */
  CLOCKS_DIFFER_MS = 50   /* in real time: the store's clock may differ from ours by so much */
};

struct birth {
  struct dk_bytes instance;
  uint64_t birth;
  uint32_t number;
};

struct drain {
  struct dk_check *t;
  struct dk_arena *arena;
  struct kit_drained *told;
  kit_lines *lines;              /* which of the two gets the next line */
  struct dk_text text;
  LIST(struct birth) births;
  uint32_t n_turns, n_work;
};

/* ---- lines ----------------------------------------------------------------------------------- */

static void
end_line(struct drain *d)
{
  char *copy = dk_arena_strdup(d->arena, dk_text_str(&d->text));

  if (copy == NULL || dk_text_failed(&d->text))
    kit_trouble(d->t, "no memory for the lines of the drain");
  /* Times in real time differ from run to run. */
  *LIST_ADD(d->t, d->arena, d->lines) =
    (struct kit_line){d->t->real_time ? 0 : elapsed(d->t), copy};
  dk_text_reset(&d->text);
}

static void
say_field(struct drain *d, const char *name, struct dk_bytes value)
{
  dk_text_printf(&d->text, " %s ", name);
  if (value.ptr == NULL) {
    dk_text_puts(&d->text, "-");
  } else if (value.len > LONG_PAYLOAD) {
    dk_text_printf(&d->text, "%zu bytes, hash %016" PRIx64, value.len,
                   dk_fnv1a64(DK_FNV1A64_START, value.ptr, value.len));
  } else {
    dk_text_puts(&d->text, "\"");
    dk_text_add_escaped(&d->text, value.ptr, value.len, DK_ESCAPE_YAML);
    dk_text_puts(&d->text, "\"");
  }
}

static void
say_when(struct drain *d, const char *name, int64_t time)
{
  if (d->t->real_time)
    return;
  dk_text_printf(&d->text, " %s ", name);
  kit_say_time(d->t, &d->text, time);
}

static void
say_instance(struct drain *d, const char *what, struct dk_bytes instance)
{
  dk_text_puts(&d->text, what);
  say_field(d, "of", instance);
}

static int
compare_lines(const void *a, const void *b)
{
  const struct kit_line *x = a, *y = b;

  if (x->at != y->at)
    return x->at < y->at ? -1 : 1;
  return strcmp(x->text, y->text);
}

static void
sort_lines(kit_lines *lines)
{
  if (lines->n > 1)
    qsort(lines->items, lines->n, sizeof(*lines->items), compare_lines);
}

/* ---- one call -------------------------------------------------------------------------------- */

static struct op *
drain_begin(struct drain *d, enum op_kind kind)
{
  return kit_begin(d->t, kit_actor(d->t, NULL), kind);
}

/* As a host does: a call with a retryable status is tried again. */
static dk_status
call_until_clear(struct drain *d)
{
  dk_status status = kit_call_quietly(d->t);

  for (int tries = 1; dk_status_class(status) == 1 && tries < MOST_TRIES; tries++)
    status = kit_call_quietly(d->t);
  return status;
}

/* A refusal while draining is a line, too: the twin must be refused in the same way. */
static bool
call(struct drain *d)
{
  struct op *op = &kit_actor(d->t, NULL)->op;
  dk_status status = call_until_clear(d);
  char name[32];

  if (status == DK_OK || status == DK_NOTHING)
    return status == DK_OK;
  dk_text_printf(&d->text, "%s -> %s", kit_op_name(op->kind),
                 kit_status_name(status, name, sizeof(name)));
  end_line(d);
  return false;
}

/* ---- histories ------------------------------------------------------------------------------- */

static void
tell_history(struct drain *d, struct dk_bytes instance, const struct dk_history *h)
{
  const struct dk_execution *e = &h->execution;

  say_instance(d, "history", instance);
  dk_text_printf(&d->text, " execution %" PRIu64 " status %" PRId32 " last event %" PRIu64,
                 e->execution_id, e->status, e->last_event_id);
  say_when(d, "started", e->started_at);
  say_when(d, "completed", e->completed_at);
  say_field(d, "output", e->output);
  end_line(d);
  for (size_t i = 0; i < h->n_events; i++) {
    say_instance(d, "history", instance);
    dk_text_printf(&d->text, " execution %" PRIu64 " event %" PRIu64, e->execution_id,
                   h->events[i].event_id);
    say_field(d, "payload", h->events[i].payload);
    end_line(d);
  }
}

/* Returns the execution's number; 0 if there is none. */
static uint64_t
drain_execution(struct drain *d, struct dk_bytes instance, uint64_t execution_id)
{
  struct op *op = drain_begin(d, OP_READ_HISTORY);

  op->read_history = (struct dk_read_history){
    .struct_size = sizeof(op->read_history), .instance = instance, .execution_id = execution_id
  };
  if (!call(d) || op->history == NULL || op->history->found == 0)
    return 0;
  tell_history(d, instance, op->history);
  return op->history->execution.execution_id;
}

static void
drain_histories(struct drain *d)
{
  /* Meanwhile the list may grow by instances that only the drain meets. */
  for (size_t i = 0; i < d->t->instances.n; i++) {
    struct dk_bytes instance = d->t->instances.items[i];
    uint64_t latest = drain_execution(d, instance, 0);

    for (uint64_t n = 1; n < MOST_EXECUTIONS && latest > n; n++)
      drain_execution(d, instance, latest - n);
  }
}

/* ---- lists and counts ------------------------------------------------------------------------ */

static uint32_t
birth_number(struct drain *d, struct dk_bytes instance, uint64_t birth)
{
  uint32_t n = 0;

  if (birth == 0)
    return 0;
  for (size_t i = 0; i < d->births.n; i++) {
    if (!same_bytes(d->births.items[i].instance, instance))
      continue;
    if (d->births.items[i].birth == birth)
      return d->births.items[i].number;
    n++;
  }
  struct dk_bytes copy = kit_copy_bytes(d->t, &d->t->arena, instance);
  *LIST_ADD(d->t, &d->t->arena, &d->births) = (struct birth){copy, birth, n + 1};
  return n + 1;
}

static void
tell_instance(struct drain *d, const struct dk_instance *i)
{
  say_instance(d, "listed", i->instance);
  dk_text_printf(&d->text, " status %" PRId32 " birth %" PRIu32 " execution %" PRIu64
                 " last event %" PRIu64, i->status, birth_number(d, i->instance, i->birth),
                 i->execution_id, i->last_event_id);
  say_when(d, "created", i->created_at);
  say_when(d, "locked until", i->locked_until);
  say_when(d, "started", i->started_at);
  say_when(d, "completed", i->completed_at);
  say_field(d, "owner", i->owner);
  say_field(d, "name", i->name);
  say_field(d, "version", i->version);
  say_field(d, "parent", i->parent_instance);
  say_field(d, "output", i->output);
  end_line(d);
}

static void
drain_list(struct drain *d)
{
  struct op *op = drain_begin(d, OP_LIST_INSTANCES);

  op->list_instances = (struct dk_list_instances){
    .struct_size = sizeof(op->list_instances), .flags = DK_LIST_OUTPUT
  };
  if (!call(d))
    return;
  for (size_t i = 0; i < op->instances->n_items; i++)
    tell_instance(d, &op->instances->items[i]);
}

/* Not in real time, where two runs do not count at the same moment. */
static void
drain_stats(struct drain *d)
{
  struct op *op = drain_begin(d, OP_READ_STATS);
  const struct dk_stats *s = &op->stats;

  if (d->t->real_time || !call(d))
    return;
  dk_text_printf(&d->text, "counted: executions %" PRIu64 " events %" PRIu64
                 ", ready/delayed/locked: messages %" PRIu64 "/%" PRIu64 "/%" PRIu64
                 " activities %" PRIu64 "/%" PRIu64 "/%" PRIu64, s->executions, s->events,
                 s->messages_ready, s->messages_delayed, s->messages_locked, s->activities_ready,
                 s->activities_delayed, s->activities_locked);
  say_when(d, "oldest message", s->oldest_message);
  say_when(d, "oldest activity", s->oldest_activity);
  end_line(d);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void
tell_head(struct drain *d, const struct dk_turn_head *head)
{
  say_instance(d, "turn", head->instance);
  dk_text_printf(&d->text, " known %" PRId32 " status %" PRId32 " birth %" PRIu32
                 " execution %" PRIu64 " last event %" PRIu64 " from %" PRIu64,
                 head->known, head->status, birth_number(d, head->instance, head->birth),
                 head->execution_id,
                 head->last_event_id, head->history_from);
  say_field(d, "name", head->name);
  say_field(d, "version", head->version);
  say_field(d, "parent", head->parent_instance);
  end_line(d);
}

static void
tell_turn(struct drain *d, const struct dk_turn *turn)
{
  struct dk_bytes instance = turn->head.instance;

  tell_head(d, &turn->head);
  for (size_t i = 0; i < turn->n_events; i++) {
    say_instance(d, "turn", instance);
    dk_text_printf(&d->text, " event %" PRIu64, turn->events[i].event_id);
    say_field(d, "payload", turn->events[i].payload);
    end_line(d);
  }
  for (size_t i = 0; i < turn->n_messages; i++) {
    const struct dk_message *m = &turn->messages[i];

    say_instance(d, "message", instance);
    dk_text_printf(&d->text, " place %zu", i + 1);
    say_field(d, "id", m->id);
    dk_text_printf(&d->text, " attempt %" PRIu32, m->attempt);
    say_when(d, "visible", m->visible_at);
    say_when(d, "enqueued", m->enqueued_at);
    say_field(d, "payload", m->payload);
    end_line(d);
  }
}

static bool
drain_turn(struct drain *d)
{
  struct op *op = drain_begin(d, OP_FETCH_TURN);
  static const struct dk_turn_result empty = {.struct_size = sizeof(empty)};

  op->fetch_turn = (struct dk_fetch_turn){
    .struct_size = sizeof(op->fetch_turn), .lock_ms = LEASE
  };
  if (!call(d) || op->turn == NULL)
    return false;
  tell_turn(d, op->turn);
  kit_name_instance(d->t, op->turn->head.instance);
  struct dk_bytes token = kit_copy_bytes(d->t, &d->t->arena, op->turn->head.lock_token);
  op = drain_begin(d, OP_ACK_TURN);
  op->token = token;
  op->result = &empty;
  return call(d);
}

/* ---- owners and pins, which only a fetch shows ----------------------------------------------- */

/* One question to all instances: each that comes is fetched once and held, and then all are given
 * back unchanged. */
struct probe {
  const char *as;                /* "to owner me" */
  struct dk_bytes owner;
  const struct dk_version_range *ranges;
  size_t n_ranges;
  LIST(struct dk_bytes) instances, tokens;
};

static bool
is_met_already(const struct probe *p, struct dk_bytes instance)
{
  for (size_t i = 0; i < p->instances.n; i++) {
    if (same_bytes(p->instances.items[i], instance))
      return true;
  }
  return false;
}

/* False: no more come; or one comes again while it is held, which ends the round. */
static bool
probe_next(struct drain *d, struct probe *p)
{
  struct op *op = drain_begin(d, OP_FETCH_TURN);

  op->fetch_turn = (struct dk_fetch_turn){
    .struct_size = sizeof(op->fetch_turn),
    .lock_ms = PROBE_LEASE,
    .owner = p->owner,
    .ranges = p->ranges,
    .n_ranges = p->n_ranges,
  };
  if (!call(d) || op->turn == NULL)
    return false;
  const struct dk_turn *turn = op->turn;
  struct dk_bytes instance = kit_copy_bytes(d->t, &d->t->arena, turn->head.instance);
  bool is_met = is_met_already(p, instance);

  *LIST_ADD(d->t, &d->t->arena, &p->instances) = instance;
  *LIST_ADD(d->t, &d->t->arena, &p->tokens) =
    kit_copy_bytes(d->t, &d->t->arena, turn->head.lock_token);
  dk_text_printf(&d->text, "would come %s:", p->as);
  say_field(d, "instance", instance);
  dk_text_printf(&d->text, " with %zu events from %" PRIu64, turn->n_events,
                 turn->head.history_from);
  end_line(d);
  return !is_met;
}

static void
run_probe(struct drain *d, struct probe *p)
{
  for (uint32_t n = 0; n < KIT_MAX_FETCHES && probe_next(d, p); n++)
    continue;
  for (size_t i = 0; i < p->tokens.n; i++) {
    struct op *op = drain_begin(d, OP_ABANDON_TURN);

    op->token = p->tokens.items[i];
    op->ignore_attempt = 1;
    call(d);
  }
}

/* TURN-5: for which owner is an instance warm? */
static void
probe_owner(struct drain *d, struct dk_bytes owner)
{
  struct dk_text as = DK_TEXT_EMPTY;
  struct probe probe = {.owner = owner};

  dk_text_puts(&as, "to owner ");
  dk_text_add_escaped(&as, owner.ptr, owner.len, DK_ESCAPE_YAML);
  probe.as = dk_text_str(&as);
  run_probe(d, &probe);
  dk_text_done(&as);
}

static struct dk_version
version_after(struct dk_version v)
{
  if (v.patch < UINT32_MAX)
    return (struct dk_version){v.major, v.minor, v.patch + 1};
  if (v.minor < UINT32_MAX)
    return (struct dk_version){v.major, v.minor + 1, 0};
  return (struct dk_version){v.major + 1, 0, 0}; /* 0.0.0 after the last of all */
}

static struct dk_version
version_before(struct dk_version v)
{
  if (v.patch > 0)
    return (struct dk_version){v.major, v.minor, v.patch - 1};
  if (v.minor > 0)
    return (struct dk_version){v.major, v.minor - 1, UINT32_MAX};
  return (struct dk_version){v.major - 1, UINT32_MAX, UINT32_MAX}; /* the last before 0.0.0 */
}

/* PIN-1: fetches for the pinned version alone, and for all other versions. */
static void
probe_pin(struct drain *d, struct dk_version pin)
{
  static const struct dk_version first = {0, 0, 0}, last = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
  struct dk_version_range only = {pin, pin}, others[2];
  size_t n = 0;
  char only_it[64], all_but[64];

  if (memcmp(&pin, &first, sizeof(pin)) != 0)
    others[n++] = (struct dk_version_range){first, version_before(pin)};
  if (memcmp(&pin, &last, sizeof(pin)) != 0)
    others[n++] = (struct dk_version_range){version_after(pin), last};
  snprintf(only_it, sizeof(only_it), "for version %" PRIu32 ".%" PRIu32 ".%" PRIu32, pin.major,
           pin.minor, pin.patch);
  snprintf(all_but, sizeof(all_but), "for all but %" PRIu32 ".%" PRIu32 ".%" PRIu32, pin.major,
           pin.minor, pin.patch);
  run_probe(d, &(struct probe){.as = only_it, .ranges = &only, .n_ranges = 1});
  run_probe(d, &(struct probe){.as = all_but, .ranges = others, .n_ranges = n});
}

/* Also asks as an owner and for a pin that no request has named, because a refused call could have
 * set one that it made up. */
static void
probe_turns(struct drain *d)
{
  for (size_t i = 0; i < d->t->owners.n; i++)
    probe_owner(d, d->t->owners.items[i]);
  probe_owner(d, bytes("durakit: no such owner"));
  for (size_t i = 0; i < d->t->pins.n; i++)
    probe_pin(d, d->t->pins.items[i]);
  probe_pin(d, (struct dk_version){UINT32_MAX, UINT32_MAX, UINT32_MAX});
}

/* ---- work ------------------------------------------------------------------------------------ */

static void
tell_work(struct drain *d, const struct dk_work_item *work)
{
  const struct dk_item *item = &work->item;

  say_instance(d, "work", item->instance);
  dk_text_printf(&d->text, " execution %" PRIu64 " activity %" PRIu64 " attempt %" PRIu32,
                 item->execution_id, item->activity_id, work->work.attempt);
  say_field(d, "tag", item->tag);
  say_field(d, "session", item->session);
  say_when(d, "visible", item->visible_at);
  say_field(d, "payload", item->payload);
  end_line(d);
}

static bool
drain_work(struct drain *d)
{
  struct op *op = drain_begin(d, OP_FETCH_WORK);

  op->fetch_work = (struct dk_fetch_work){
    .struct_size = sizeof(op->fetch_work),
    .max_items = 1,
    .lock_ms = LEASE,
    .owner = bytes("drain"),
    .tag_rule = DK_TAG_ANY,
    .session_rule = d->t->has_sessions ? DK_SESSION_ANY : DK_SESSION_NONE,
    .session_lock_ms = d->t->has_sessions ? LEASE : 0,
  };
  if (!call(d) || op->works == NULL || op->works->n_items == 0)
    return false;
  tell_work(d, &op->works->items[0]);
  struct dk_bytes token =
    kit_copy_bytes(d->t, &d->t->arena, op->works->items[0].work.lock_token);
  op = drain_begin(d, OP_ACK_WORK);
  op->token = token;
  op->work_result = (struct dk_work_result){.struct_size = sizeof(op->work_result)};
  return call(d);
}

/* ---- through time ---------------------------------------------------------------------------- */

static void
bound(struct drain *d, uint32_t n, const char *what)
{
  if (n >= KIT_MAX_FETCHES)
    kit_fail(d->t, VERDICT_FAIL, NULL, "what was fetched and acknowledged does not come again",
             NULL, "after %d %s that were fetched and acknowledged there are still more", n, what);
}

static void
stop(struct drain *d)
{
  if (d->t->has_admin) {
    d->lines = &d->told->listed;
    drain_list(d);
    drain_stats(d);
    d->lines = &d->told->seen;
  }
  drain_histories(d);
  probe_turns(d);
  for (uint32_t n = 0; drain_turn(d); n++) {
    d->n_turns++;
    bound(d, n, "turns");
  }
  for (uint32_t n = 0; drain_work(d); n++) {
    d->n_work++;
    bound(d, n, "work items");
  }
}

static int
compare_times(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

  return (x > y) - (x < y);
}

static void
go_through_time(struct drain *d)
{
  struct dk_check *t = d->t;
  size_t n = t->instants.n;
  int64_t far = dk_sat_add(now(t), KIT_FAR);
  int64_t *instants = kit_alloc(t, &t->arena, n, sizeof(*instants));

  for (size_t i = 0; i < n; i++)
    instants[i] = t->instants.items[i];
  qsort(instants, n, sizeof(*instants), compare_times);
  for (size_t i = 0; i < n && instants[i] < far; i++) {
    if (instants[i] <= now(t))
      continue;
    if (instants[i] - 1 > now(t)) {
      kit_go_to(t, instants[i] - 1);
      stop(d);
    }
    kit_go_to(t, instants[i]);
    stop(d);
  }
  kit_go_to(t, far);
  stop(d);
}

/* In real time it does not stop at each instant, because lines have no times; and it waits only as
 * long as the job allows. */
static void
wait_for_what_is_near(struct drain *d)
{
  struct dk_check *t = d->t;
  int64_t here = now(t), last = here;
  size_t n_later = 0;

  for (size_t i = 0; i < t->instants.n; i++) {
    int64_t instant = t->instants.items[i];

    if (instant > dk_sat_add(here, t->job->real_wait_ms))
      n_later++;
    else if (instant > last)
      last = instant;
  }
  if (last > here) {
    kit_go_to(t, last + CLOCKS_DIFFER_MS);
    stop(d);
  }
  if (n_later > 0)
    say_in_trace(t, "not looked at: %zu instants more than %" PRId64 " ms away (time is real)",
                 n_later, t->job->real_wait_ms);
}

void
kit_drain(struct dk_check *t, struct dk_arena *arena, struct kit_drained *ret_told)
{
  struct drain d = {.t = t, .arena = arena, .told = ret_told, .lines = &ret_told->seen};

  dk_text_init(&d.text);
  stop(&d);
  if (t->real_time)
    wait_for_what_is_near(&d);
  else
    go_through_time(&d);
  sort_lines(&ret_told->seen);
  sort_lines(&ret_told->listed);
  say_in_trace(t, "drained: %zu lines, %u turns, %u work items", ret_told->seen.n, d.n_turns,
               d.n_work);
  dk_text_done(&d.text);
}
