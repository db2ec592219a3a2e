/* SPDX-License-Identifier: Apache-2.0 */
/* Areas and clauses as tables, made of areas.def, and the few questions that one asks of them. */
#include "conformance/contract/contract.h"

#include <string.h>

#define AREA(id_, title_, intro_) { .id = (id_), .title = (title_), .intro = (intro_) },

static const struct dk_area areas[] = {
#include "conformance/contract/areas.def"
};

#define CLAUSE(id_, area_, level_, by_, since_, planned_, text_, why_, breaks_)                    \
  {                                                                                                \
    .id = (id_), .area = (area_), .level = DK_##level_, .by = DK_BY_##by_, .since = (since_),      \
    .planned_issue = (planned_), .text = (text_), .why = (why_), .breaks = (breaks_),              \
  },

static const struct dk_clause clauses[] = {
#include "conformance/contract/areas.def"
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const struct dk_area *
dk_areas(size_t *ret_n)
{
  *ret_n = COUNT(areas);
  return areas;
}

const struct dk_area *
dk_area_find(const char *id)
{
  for (size_t i = 0; id != NULL && i < COUNT(areas); i++) {
    if (strcmp(areas[i].id, id) == 0)
      return &areas[i];
  }
  return NULL;
}

const struct dk_clause *
dk_clauses(size_t *ret_n)
{
  *ret_n = COUNT(clauses);
  return clauses;
}

const struct dk_clause *
dk_clause_find(const char *id)
{
  for (size_t i = 0; id != NULL && i < COUNT(clauses); i++) {
    if (strcmp(clauses[i].id, id) == 0)
      return &clauses[i];
  }
  return NULL;
}

const char *
dk_clause_level_name(enum dk_clause_level level)
{
  return level == DK_MUST ? "MUST" : "SHOULD";
}

const char *
dk_clause_by_name(enum dk_clause_by by)
{
  switch (by) {
  case DK_BY_HOST:
    return "host";
  case DK_BY_LOADER:
    return "loader";
  case DK_BY_CHECK:
    break;
  }
  return "check";
}

/* The ending NUL is hashed too: it keeps "A" "BC" apart from "AB" "C". */
static uint64_t
hash_string(uint64_t hash, const char *s)
{
  do {
    hash ^= (unsigned char)*s;
    hash *= UINT64_C(0x100000001b3);
  } while (*s++ != '\0');
  return hash;
}

uint64_t
dk_contract_hash(void)
{
  uint64_t hash = UINT64_C(0xcbf29ce484222325);

  for (size_t i = 0; i < COUNT(clauses); i++) {
    hash = hash_string(hash, clauses[i].id);
    hash = hash_string(hash, clauses[i].text);
  }
  return hash;
}
