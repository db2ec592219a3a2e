/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the requests of durakit.admin/1. */
#include "conformance/random/random.h"

/* Whether it is there or not. */
static struct dk_bytes
draw_after(struct pass *p)
{
  static const char *const strangers[] = {"a", "order-", "Z"};
  struct chance *chance = &p->run->chance;

  if (!one_in(chance, 3))
    return bytes(NULL);
  return one_in(chance, 4) ? bytes(strangers[draw_below(chance, 3)]) : draw_instance(p);
}

static const struct dk_bytes *
draw_ids(struct pass *p, size_t *ret_n)
{
  struct chance *chance = &p->run->chance;
  enum { MANY = 1200 }; /* of which the last one is another */
  bool is_long = one_in(chance, 10);
  size_t n = is_long ? MANY : one_in(chance, 2) ? (size_t)draw_below(chance, 4) : 1;
  struct dk_bytes *ids = lasting(p, n, sizeof(*ids));
  struct dk_bytes first = draw_instance(p);

  for (size_t i = 0; i < n; i++)
    ids[i] = is_long && i + 1 < n ? first
             : one_in(chance, 12) ? bytes("stranger") : draw_instance(p);
  *ret_n = n;
  return ids;
}

/* Mostly a time at which something was stored or has ended, or one beside it. */
static int64_t
draw_instant(struct pass *p)
{
  struct random_run *run = p->run;
  enum { MOMENTS = sizeof(run->moments) / sizeof(run->moments[0]) };

  int64_t moment = run->moments[draw_below(&run->chance, MOMENTS)];
  if (moment == 0)
    return now(p->t);
  return one_in(&run->chance, 2) ? moment : moment + (int64_t)draw_below(&run->chance, 3) - 1;
}

static void
draw_condition(struct pass *p, struct dk_instance_filter *f)
{
  static const char *const names[] = {"pay", "pay", "Pay", "pa", "pay "};
  static const char *const versions[] = {"1.0.0", "1.0.0", "1.0", "2.0.0"};
  struct chance *chance = &p->run->chance;

  switch (draw_below(chance, 10)) {
  case 0:
    f->flags |= DK_FILTER_IDS;
    f->ids = draw_ids(p, &f->n_ids);
    break;
  case 1: f->flags |= DK_FILTER_ROOTS; break;
  case 2: f->name = draw_text(p, names, 5); break;
  case 3: f->version = draw_text(p, versions, 4); break;
  case 4: f->parent_instance = draw_parent(p); break;
  case 5: f->created_from = draw_instant(p); break;
  case 6: f->created_before = draw_instant(p); break;
  case 7: f->completed_from = draw_instant(p); break;
  case 8: f->completed_before = draw_instant(p); break;
  default: f->statuses = 1 + (uint32_t)draw_below(chance, 63);
  }
}

/* Few conditions, so that some instances fit; but what removes them mostly names them, or little
 * would ever be there.  A list of families may have more. */
static const struct dk_instance_filter *
draw_filter(struct pass *p, struct op *op)
{
  struct dk_instance_filter *f = &op->filter;
  bool families = p->run->profile->families, only_lists = op->kind == OP_LIST_INSTANCES;
  bool names_some = families ? one_in(&p->run->chance, 3) : !one_in(&p->run->chance, 3);

  f->struct_size = sizeof(*f);
  if (!only_lists && names_some) {
    f->flags |= DK_FILTER_IDS;
    f->ids = draw_ids(p, &f->n_ids);
  }
  for (uint64_t n = draw_below(&p->run->chance, families && only_lists ? 5 : 3); n > 0; n--)
    draw_condition(p, f);
  return f;
}

static uint32_t
draw_page(struct pass *p)
{
  return one_in(&p->run->chance, 2) ? 1000 : 1 + (uint32_t)draw_below(&p->run->chance, 3);
}

static void
draw_list(struct pass *p, struct op *op)
{
  struct chance *chance = &p->run->chance;

  op->list_instances = (struct dk_list_instances){
    .struct_size = sizeof(op->list_instances),
    .flags = one_in(chance, 2) ? (uint32_t)DK_LIST_OUTPUT : 0u,
    .after = draw_after(p),
    .max_instances = one_in(chance, 3) ? draw_page(p) : 0,
  };
  if (one_in(chance, 2))
    op->list_instances.filter = draw_filter(p, op);
}

static void
draw_prune(struct pass *p, struct op *op)
{
  struct chance *chance = &p->run->chance;

  op->prune = (struct dk_prune){
    .struct_size = sizeof(op->prune),
    .keep = one_in(chance, 12) ? UINT32_MAX : (uint32_t)draw_below(chance, 4),
    .completed_before = one_in(chance, 2) ? draw_instant(p) : 0,
  };
  if (one_in(chance, 3)) {
    op->prune.instance = draw_instance(p);
    return;
  }
  op->prune.filter = draw_filter(p, op);
  op->prune.max_instances = draw_page(p);
  op->prune.after = draw_after(p);
}

void
draw_admin(struct pass *p, struct op *op)
{
  struct chance *chance = &p->run->chance;

  switch (op->kind) {
  case OP_LIST_INSTANCES:
    draw_list(p, op);
    break;
  case OP_LIST_EXECUTIONS:
    op->list_executions = (struct dk_list_executions){
      .struct_size = sizeof(op->list_executions),
      .max_executions = (uint32_t)draw_below(chance, 3),
      .instance = draw_instance(p),
      .after = draw_below(chance, one_in(chance, 2) ? 3 : 16),
    };
    break;
  case OP_READ_MESSAGES:
    op->read_messages = (struct dk_read_messages){
      .struct_size = sizeof(op->read_messages),
      .max_messages = (uint32_t)draw_below(chance, 3),
      .instance = draw_instance(p),
    };
    break;
  case OP_DELETE_INSTANCES:
    op->delete_instances = (struct dk_delete_instances){
      .struct_size = sizeof(op->delete_instances),
      .flags = one_in(chance, 3) ? (uint32_t)DK_DELETE_FORCE : 0u,
    };
    op->delete_instances.instances = draw_ids(p, &op->delete_instances.n_instances);
    break;
  case OP_DELETE_MATCHING:
    op->delete_matching = (struct dk_delete_matching){
      .struct_size = sizeof(op->delete_matching),
      .filter = draw_filter(p, op),
      .after = draw_after(p),
      .max_instances = draw_page(p),
    };
    break;
  case OP_PRUNE:
    draw_prune(p, op);
    break;
  default:
    break;
  }
}
