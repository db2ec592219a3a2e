/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the runtime's checks, and that of their negative controls.
 *
 * They are not part of dk_checks: areas.def requires that each check is meant for a mutant of its
 * own, and each mutant for one check, which the kill matrix proves, mutant by mutant, in virtual
 * time.  A check of the runtime depends on many clauses at once and takes real time; so each has
 * one mutant on which it must fail, and which belongs to another check. */
#include <stdio.h>
#include <string.h>

#include "conformance/contract/contract.h"
#include "conformance/contract/mutants.h"
#include "conformance/runtime/runs.h"
#include "conformance/tap/tap.h"

static const struct check *const *checks;
static size_t n_checks;

static bool
has_known_clauses(const struct check *check)
{
  char list[128];
  char *rest = list;

  snprintf(list, sizeof(list), "%s", check->clauses);
  for (const char *name = strtok_r(list, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
    if (!dk_clause_find(name))
      return false;
  return check->clauses[0] != '\0';
}

static void
test_checks(void)
{
  const uint32_t flags = IS_RUNTIME | IS_SLOW;

  for (size_t i = 0; i < n_checks; i++) {
    const struct check *check = checks[i];

    ok(strncmp(check->id, "run/", 4) == 0 && check->flags == flags && check->run != NULL,
       "%s belongs to the profile", check->id);
    ok(has_known_clauses(check), "%s depends on existing clauses: %s", check->id,
       check->clauses);
    for (size_t j = 0; j < i; j++)
      if (strcmp(check->id, checks[j]->id) == 0)
        fail("%s is the id of two checks", check->id);
  }
}

/* None of the contract's checks belongs to this profile. */
static void
test_apart(void)
{
  size_t n, runtime = 0;
  const struct check *const *core = dk_checks(&n);

  for (size_t i = 0; i < n; i++)
    runtime += (core[i]->flags & IS_RUNTIME) != 0 || strncmp(core[i]->id, "run/", 4) == 0;
  cmp_ok(runtime, "==", 0, "no check of the profile core belongs to the runtime");
}

static void
test_controls(void)
{
  size_t n;
  const struct dk_control *controls = dk_controls(&n);

  cmp_ok(n, "==", n_checks, "each check has a control");
  for (size_t i = 0; i < n && i < n_checks; i++) {
    is(controls[i].check, checks[i]->id, "in the order of the checks");
    ok(dk_mutant_number(controls[i].mutant) >= 0, "%s is a mutant", controls[i].mutant);
  }
}

int
main(void)
{
  checks = dk_runtime_checks(&n_checks);
  ok(n_checks > 0, "there are checks");
  test_checks();
  test_apart();
  test_controls();
  return done_testing();
}
