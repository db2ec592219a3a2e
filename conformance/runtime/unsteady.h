/* SPDX-License-Identifier: Apache-2.0 */
/* A provider that stands before the one under test and does not always renew the lease of work. */
#ifndef DK_CONFORMANCE_UNSTEADY_H
#define DK_CONFORMANCE_UNSTEADY_H

#include "conformance/runtime/run.h"

enum unsteadiness {
  RENEWS,              /* as the one under test */
  RENEWS_SOMETIMES,    /* every other call answers DK_BUSY, and does nothing */
  RENEWS_NEVER
};

/* The check's own handle is from here on such a one; before given_runtime.  What is to be given to
 * keep_library after it. */
struct dk_library *make_unsteady(struct dk_check *t);
void set_unsteadiness(enum unsteadiness unsteadiness);
/* How many calls were answered DK_BUSY. */
uint32_t refused_renewals(void);

#endif
