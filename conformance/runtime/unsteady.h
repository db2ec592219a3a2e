/* SPDX-License-Identifier: Apache-2.0 */
/* A provider in front of the one under test that does not always renew the lease of work. */
#ifndef DK_CONFORMANCE_UNSTEADY_H
#define DK_CONFORMANCE_UNSTEADY_H

#include "conformance/runtime/run.h"

enum unsteadiness {
  RENEWS,              /* as the one under test */
  RENEWS_SOMETIMES,    /* every other call answers DK_BUSY, and does nothing */
  RENEWS_NEVER
};

/* Makes the check's own handle one of such a provider; called before given_runtime.  Pass the
 * result to keep_library after that. */
struct dk_library *make_unsteady(struct dk_check *t);
void set_unsteadiness(enum unsteadiness unsteadiness);
/* How many calls were answered with DK_BUSY. */
uint32_t refused_renewals(void);

#endif
