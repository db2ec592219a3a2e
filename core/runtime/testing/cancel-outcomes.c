/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of a cancellation of many: see cancel-outcomes.h. */
#include "core/runtime/testing/cancel-outcomes.h"

#include <stdio.h>

static const char *const outcomes[] = {"none", "requested", "already", "over", "not found",
                                       "failed"};

int32_t
hear(void *context, const struct dk_cancel_outcome *outcome)
{
  struct told *told = context;

  dk_text_printf(&told->text, "%.*s=%s/%d ", (int)outcome->instance.len, outcome->instance.ptr,
                 outcomes[outcome->outcome], (int)outcome->status);
  if (outcome->text.ptr)
    dk_text_printf(&told->failures, "%d %s\n", (int)outcome->error, outcome->text.ptr);
  return ++told->n == told->stop_after;
}

struct told
nothing_told(void)
{
  return (struct told){.text = DK_TEXT_EMPTY,
                       .failures = DK_TEXT_EMPTY,
                       .counts = {.struct_size = sizeof(struct dk_cancel_counts)}};
}

void
forget(struct told *told)
{
  dk_text_done(&told->text);
  dk_text_done(&told->failures);
  *told = nothing_told();
}

struct dk_cancel_options
an_option(void)
{
  return (struct dk_cancel_options){.struct_size = sizeof(struct dk_cancel_options),
                                    .reason = "too late",
                                    .by = "user:me@here",
                                    .expect = UINT64_MAX};
}

const char *
counted(const struct told *told)
{
  static char words[128];
  const struct dk_cancel_counts *c = &told->counts;

  snprintf(words, sizeof(words), "%d requested, %d already, %d over, %d not found, %d failed",
           (int)c->requested, (int)c->already_requested, (int)c->over, (int)c->not_found,
           (int)c->failed);
  return words;
}

dk_status
cancel_ids(struct hand *h, const dk_str *ids, size_t n, const struct dk_cancel_options *options,
           struct told *told)
{
  forget(told);
  return dk_cancel_many(h->client, ids, n, options, hear, told, &told->counts);
}

uint64_t
requests(struct hand *h)
{
  return faulty_successes(h->faulty, FAULTY_ENQUEUE_MESSAGE);
}

struct dk_instance_filter
of_name(const char *name)
{
  return (struct dk_instance_filter){.struct_size = sizeof(struct dk_instance_filter),
                                     .name = dk_str_of(name)};
}
