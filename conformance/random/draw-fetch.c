/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the requests of fetches: bounds, owners, version ranges and tags. */
#include "conformance/random/random.h"

static const char *const owners[] = {"worker-1", "worker-2", "Worker-1", "worker-10"};
enum { OWNERS = sizeof(owners) / sizeof(owners[0]) };

static uint64_t
draw_most_bytes(struct pass *p)
{
  struct chance *chance = &p->run->chance;

  if (!one_in(chance, 4))
    return 0;
  switch (draw_below(chance, 4)) {
  case 0: return 1;
  case 1: return UINT64_MAX;
  default: return 1 + (uint64_t)odd_size(chance, 1 << 16);
  }
}

uint32_t
draw_most(struct pass *p)
{
  static const uint32_t numbers[] = {1, 1, 2, 3, 7, UINT32_MAX};

  return numbers[draw_below(&p->run->chance, sizeof(numbers) / sizeof(numbers[0]))];
}

static uint64_t
draw_fetch_id(struct pass *p)
{
  if (p->t->provider->ops->release_fetch == NULL || !one_in(&p->run->chance, 2))
    return 0;
  return ++p->run->last_fetch_id;
}

static uint32_t
draw_version_part(struct pass *p)
{
  static const uint32_t parts[] = {0, 0, 1, 1, 2, 9, 10, 999, 1000, UINT32_MAX};

  return parts[draw_below(&p->run->chance, sizeof(parts) / sizeof(parts[0]))];
}

static struct dk_version
draw_version(struct pass *p)
{
  struct dk_version version = {1, draw_version_part(p), 0};

  if (one_in(&p->run->chance, 3))
    version = (struct dk_version){
      draw_version_part(p), draw_version_part(p), draw_version_part(p)
    };
  return version;
}

static void
draw_ranges(struct pass *p, struct dk_fetch_turn *request)
{
  enum { MANY = 300, FEW = 4 }; /* of many the last few matter */
  size_t n = one_in(&p->run->chance, 20) ? MANY : (size_t)draw_below(&p->run->chance, FEW);
  struct dk_version_range *ranges;

  if (!one_in(&p->run->chance, 2))
    return;
  ranges = lasting(p, n, sizeof(*ranges));
  for (size_t i = 0; i < n; i++) {
    if (i + FEW < n) {
      ranges[i] = (struct dk_version_range){{77, 0, 0}, {77, (uint32_t)i, 0}};
      continue;
    }
    struct dk_version a = draw_version(p), b = draw_version(p);
    ranges[i] = (struct dk_version_range){a, one_in(&p->run->chance, 3) ? a : b};
    if (one_in(&p->run->chance, 3))
      ranges[i] = (struct dk_version_range){{0, 0, 0}, b};
  }
  request->ranges = ranges;
  request->n_ranges = n;
}

void
draw_fetch_turn(struct pass *p, struct op *op)
{
  op->fetch_turn = (struct dk_fetch_turn){
    .struct_size = sizeof(op->fetch_turn),
    .max_messages = one_in(&p->run->chance, 3) ? draw_most(p) : 0,
    .max_bytes = draw_most_bytes(p),
    .lock_ms = odd_lease(&p->run->chance),
    .owner = draw_text(p, owners, OWNERS),
    .fetch_id = draw_fetch_id(p),
  };
  draw_ranges(p, &op->fetch_turn);
  if (is_plain(p))
    op->fetch_turn = (struct dk_fetch_turn){.struct_size = sizeof(op->fetch_turn),
                                            .lock_ms = PLAIN_LEASE,
                                            .owner = op->fetch_turn.owner,
                                            .fetch_id = op->fetch_turn.fetch_id};
}

/* Most are short; the tag that matters is the last of a long one. */
static void
draw_tags(struct pass *p, struct dk_fetch_work *request)
{
  struct chance *chance = &p->run->chance;
  size_t n = one_in(chance, 5) ? 300 : (size_t)draw_below(chance, 4);
  struct dk_bytes *list = lasting(p, n, sizeof(*list));

  for (size_t i = 0; i + 1 < n; i++) {
    char *name = dk_arena_printf(&p->t->lasting, "other-%zu", i);
    if (name == NULL)
      kit_trouble(p->t, "no memory for a tag");
    list[i] = n > 4 ? bytes(name) : draw_tag(p);
  }
  if (n > 0)
    list[n - 1] = draw_tag(p);
  request->tags = list;
  request->n_tags = n;
}

void
draw_fetch_work(struct pass *p, struct op *op)
{
  static const int32_t rules[] = {DK_TAG_ANY, DK_TAG_ANY, DK_TAG_ANY, DK_TAG_UNTAGGED,
                                  DK_TAG_LISTED, DK_TAG_UNTAGGED_OR_LISTED};

  op->fetch_work = (struct dk_fetch_work){
    .struct_size = sizeof(op->fetch_work),
    .max_items = draw_most(p),
    .max_bytes = draw_most_bytes(p),
    .lock_ms = odd_lease(&p->run->chance),
    .owner = draw_text(p, owners, OWNERS),
    .tag_rule = rules[draw_below(&p->run->chance, sizeof(rules) / sizeof(rules[0]))],
    .session_rule = DK_SESSION_NONE,
    .fetch_id = draw_fetch_id(p),
  };
  if (is_plain(p))
    op->fetch_work = (struct dk_fetch_work){.struct_size = sizeof(op->fetch_work),
                                            .max_items = 1,
                                            .lock_ms = PLAIN_LEASE,
                                            .owner = op->fetch_work.owner,
                                            .tag_rule = DK_TAG_ANY,
                                            .session_rule = DK_SESSION_NONE,
                                            .fetch_id = op->fetch_work.fetch_id};
  if (op->fetch_work.tag_rule == DK_TAG_LISTED ||
      op->fetch_work.tag_rule == DK_TAG_UNTAGGED_OR_LISTED)
    draw_tags(p, &op->fetch_work);
}
