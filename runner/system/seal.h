/* SPDX-License-Identifier: Apache-2.0 */
/* The seals of one child: random numbers that it asks for when it reports something that only the
 * kit may report.  See kit_ask_seal. */
#ifndef DK_RUNNER_SYSTEM_SEAL_H
#define DK_RUNNER_SYSTEM_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/kit/engine.h"

struct seals {
  int fd;                        /* the runner's end; -1: there is no child */
  uint64_t numbers[KIT_SEALS];   /* 0: not asked for, or asked for twice */
  bool asked[KIT_SEALS];
};

/* For a new child, which gets the other end; false with errno. */
bool seals_begin(struct seals *seals, int *ret_end);
/* Answers all pending requests, without waiting. */
void seals_answer(struct seals *seals);
/* The child has ended; its numbers stay. */
void seals_end(struct seals *seals);

/* True: the number was given out for this use, and was asked for once. */
bool seals_match(const struct seals *seals, int use, uint64_t number);

#endif
