/* SPDX-License-Identifier: Apache-2.0 */
/* The mutants of the model: one defect each, chosen when its store is opened (mutant=ID), so that
 * every check can be shown to catch what it is meant to catch.
 *
 * The table is constant and lives as long as the program; nothing here allocates, locks or fails.
 * The data is in areas.def.  Shared by the model, the runner and the documentation.
 */
#ifndef DK_CONFORMANCE_MUTANTS_H
#define DK_CONFORMANCE_MUTANTS_H

#include <stddef.h>
#include <stdint.h>

/* M_CANCEL_ONLY_UNLOCKED, ...: the number of each, which is its position in areas.def. */
enum dk_mutant_name {
#define MUTANT(name, id, clause, check, text) name,
#include "conformance/contract/areas.def"
  DK_MUTANTS /* how many there are */
};

struct dk_mutant {
  const char *id;     /* "cancel/only-unlocked" */
  const char *clause; /* "CANCEL-1" */
  const char *check;  /* the check that is meant to catch it: "cancel/locked-row" */
  const char *text;   /* the wrong thing that a provider's author would do */
};

const struct dk_mutant *dk_mutants(size_t *ret_n);
int32_t dk_mutant_number(const char *id);  /* -1: no such mutant */
const char *dk_mutant_nearest(const char *id); /* the id that looks most like it; never NULL */

/* The service "durakit.mutant-reached/1" of a host: the model marks each mutant whose condition
 * would have made a difference, so that only those need to be tried on a check. */
#define DK_MUTANT_REACHED "durakit.mutant-reached/1"
struct dk_mutant_reached {
  uint32_t struct_size, n;
  uint8_t *reached; /* [n], set to 1 by number, by several threads at once */
};

#endif
