/* SPDX-License-Identifier: Apache-2.0 */
/* The contract as data: areas and numbered clauses, in reading order.
 *
 * The tables are constant and live as long as the program; nothing here allocates, locks or fails.
 * The data is in areas.def.  docs/contract.md is made from the same tables.
 */
#ifndef DK_CONFORMANCE_CONTRACT_H
#define DK_CONFORMANCE_CONTRACT_H

#include <stddef.h>
#include <stdint.h>

#define DK_CONTRACT_VERSION "2.0-draft1"

enum dk_clause_level { DK_MUST, DK_SHOULD };

enum dk_clause_by {
  DK_BY_CHECK,  /* a check of the kit judges it */
  DK_BY_HOST,   /* the host enforces it, so that no provider ever sees a breach */
  DK_BY_LOADER, /* judged while loading, or by the engine at every check's end, memcheck too */
};

struct dk_area {
  const char *id;    /* "CANCEL" */
  const char *title; /* a few words */
  const char *intro; /* one paragraph */
};

struct dk_clause {
  const char *id; /* "CANCEL-5" */
  const char *area;
  enum dk_clause_level level;
  enum dk_clause_by by;
  const char *since;
  int planned_issue;  /* 0: judged now; N: issue N brings the check */
  const char *text;   /* the norm */
  const char *why;    /* what a host may rely on */
  const char *breaks; /* what usually breaks it */
};

const struct dk_area *dk_areas(size_t *ret_n);
const struct dk_area *dk_area_find(const char *id); /* NULL: no such area */

const struct dk_clause *dk_clauses(size_t *ret_n);
const struct dk_clause *dk_clause_find(const char *id); /* NULL: no such clause */

const char *dk_clause_level_name(enum dk_clause_level level); /* "MUST", "SHOULD" */
const char *dk_clause_by_name(enum dk_clause_by by);          /* "check", "host", "loader" */

/* FNV-1a over ids and texts: two kits with the same value hold providers to the same words. */
uint64_t dk_contract_hash(void);

#endif
