/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of a cancellation of many, as text that a test can compare. */
#ifndef DK_RUNTIME_TESTING_CANCEL_OUTCOMES_H
#define DK_RUNTIME_TESTING_CANCEL_OUTCOMES_H

#include "core/runtime/testing/hand-made-turns.h"

struct told {
  struct dk_client *client;
  struct dk_text text;       /* "id=outcome/status " of each */
  struct dk_text failures;   /* the texts of those that failed */
  unsigned n, stop_after;    /* 0: never */
  struct dk_cancel_counts counts;
};

struct told nothing_told(void);
void forget(struct told *told);
/* A dk_cancel_fn; the context is a told. */
int32_t hear(void *context, const struct dk_cancel_outcome *outcome);
/* "1 requested, 0 already, 0 over, 0 not found, 0 failed"; valid until the next call. */
const char *counted(const struct told *told);

/* With a reason and a requester, for any number of instances. */
struct dk_cancel_options an_option(void);
struct dk_instance_filter of_name(const char *name);
/* dk_cancel_many; `told` is emptied before, and then gets the reports. */
dk_status cancel_ids(struct hand *h, const dk_str *ids, size_t n,
                     const struct dk_cancel_options *options, struct told *told);
/* How many messages the store has taken. */
uint64_t requests(struct hand *h);

#endif
