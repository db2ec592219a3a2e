/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of registry.h: versions, what is found, and what is refused. */
#include <stdlib.h>
#include <string.h>

#include "conformance/tap/tap.h"
#include "core/runtime/code/registry.h"
#include "core/runtime/testing/dice.h"

static dk_result
nothing(dk_orch *o, dk_str input)
{
  (void)o;
  (void)input;
  return (dk_result){0};
}

static dk_result
other(dk_orch *o, dk_str input)
{
  (void)o;
  (void)input;
  return (dk_result){0};
}

static dk_result
work(dk_task *task, dk_str input)
{
  (void)task;
  (void)input;
  return (dk_result){0};
}

/* ---- versions -------------------------------------------------------------------------------- */

static void
test_versions(void)
{
  static const struct {
    const char *text;
    dk_status status;
    struct dk_version version;
  } versions[] = {
    {"0.0.0", DK_OK, {0, 0, 0}},
    {"1.2.3", DK_OK, {1, 2, 3}},
    {"4294967295.10.4294967295", DK_OK, {UINT32_MAX, 10, UINT32_MAX}},
    {"4294967296.0.0", DK_INVALID, {0, 0, 0}},
    {"1.99999999999999999999.0", DK_INVALID, {0, 0, 0}},
    {"", DK_INVALID, {0, 0, 0}},
    {"1", DK_INVALID, {0, 0, 0}},
    {"1.2", DK_INVALID, {0, 0, 0}},
    {"1.2.", DK_INVALID, {0, 0, 0}},
    {"1.2.3.", DK_INVALID, {0, 0, 0}},
    {"1.2.3.4", DK_INVALID, {0, 0, 0}},
    {"1..3", DK_INVALID, {0, 0, 0}},
    {"01.2.3", DK_INVALID, {0, 0, 0}},
    {"1.2.03", DK_INVALID, {0, 0, 0}},
    {"1.2.3 ", DK_INVALID, {0, 0, 0}},
    {" 1.2.3", DK_INVALID, {0, 0, 0}},
    {"+1.2.3", DK_INVALID, {0, 0, 0}},
    {"v1.2.3", DK_INVALID, {0, 0, 0}},
    {"1.2.3-rc1", DK_INVALID, {0, 0, 0}},
  };
  struct dk_version version;

  for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
    dk_status status = version_parse(dk_str_of(versions[i].text), &version);
    ok(status == versions[i].status &&
         (status != DK_OK || memcmp(&version, &versions[i].version, sizeof(version)) == 0),
       "the version \"%s\"", versions[i].text);
  }
  cmp_ok(version_parse((dk_str){NULL, 0}, &version), "==", DK_INVALID, "no version");
  cmp_ok(version_parse((dk_str){"1.2.34", 5}, &version), "==", DK_OK, "text without a NUL");
  cmp_ok(version.patch, "==", 3, "ends where it says");
}

static void
test_comparing(void)
{
  static const struct dk_version sorted[] = {{0, 0, 1}, {0, 1, 0}, {0, 9, 9}, {1, 0, 0},
                                             {1, 2, 10}, {1, 10, 2}, {UINT32_MAX, 0, 0}};
  enum { N = sizeof(sorted) / sizeof(sorted[0]) };
  unsigned wrong = 0;

  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      int order = version_compare(sorted[i], sorted[j]);
      wrong += (order > 0) - (order < 0) != (i > j) - (i < j);
    }
  cmp_ok(wrong, "==", 0, "versions are compared as numbers");
}

/* ---- finding --------------------------------------------------------------------------------- */

static dk_orchestration_fn *
find(const struct dk_registry *registry, const char *name, const char *version,
     const char **ret_version)
{
  return registry_orchestration(registry, dk_str_of(name), dk_str_of(version), ret_version);
}

static void
test_orchestrations(void)
{
  struct dk_registry *r = dk_registry_new();
  const char *version = NULL;

  ok(!find(r, "order", NULL, &version), "nothing is found in an empty registry");
  cmp_ok(dk_register_orchestration(r, "order", "1.9.0", nothing), "==", DK_OK, "a version");
  cmp_ok(dk_register_orchestration(r, "order", "1.10.0", other), "==", DK_OK, "a later one");
  cmp_ok(dk_register_orchestration(r, "order", "1.2.0", nothing), "==", DK_OK, "an earlier one");
  cmp_ok(dk_register_orchestration(r, "orders", NULL, nothing), "==", DK_OK, "a longer name");
  cmp_ok(dk_register_orchestration(r, "orde", "9.0.0", nothing), "==", DK_OK, "a shorter one");
  ok(find(r, "order", NULL, &version) == other, "the newest of its name");
  is(version, "1.10.0", "as numbers, not as text");
  ok(find(r, "order", "1.9.0", &version) == nothing, "a certain one");
  is(version, "1.9.0", "is what it says");
  ok(!find(r, "order", "1.9.1", NULL), "a version that is not registered");
  ok(!find(r, "order", "newest", NULL), "a text that is not a version");
  ok(find(r, "orders", NULL, &version) == nothing, "one without a version");
  is(version, "1.0.0", "is 1.0.0");
  ok(!find(r, "ord", NULL, NULL), "a part of a name does not match");
  ok(!registry_orchestration(r, (dk_str){NULL, 0}, (dk_str){NULL, 0}, NULL), "nor does no name");
  ok(registry_orchestration(r, (dk_str){"ordersX", 6}, (dk_str){NULL, 0}, NULL) == nothing,
     "a name needs no NUL");
  dk_registry_free(r);
}

static void
test_activities(void)
{
  const struct dk_activity_traits traits = {
    .struct_size = sizeof(traits), .isolation = DK_IN_PROCESS, .grace_ms = 5};
  const struct dk_activity_traits older = {
    .struct_size = offsetof(struct dk_activity_traits, grace_ms), .grace_ms = 5};
  struct dk_registry *r = dk_registry_new();

  ok(!registry_activity(r, dk_str_of("charge")), "nothing is found in an empty registry");
  cmp_ok(dk_register_activity(r, "charge", work, NULL), "==", DK_OK, "an activity");
  cmp_ok(dk_register_activity(r, "charge-back", work, &older), "==", DK_OK,
         "one of an older caller");
  ok(!registry_isolated(r), "none of them is to run in a process");
  cmp_ok(dk_register_activity(r, "bill", work, &traits), "==", DK_OK, "one in a process");
  const struct registered_activity *found = registry_activity(r, dk_str_of("bill"));
  ok(found && found->function == work && found->isolation == DK_IN_PROCESS &&
       found->grace_ms == 5,
     "with its traits");
  found = registry_activity(r, dk_str_of("charge"));
  ok(found && found->isolation == DK_IN_THREAD && found->grace_ms == 0, "one without");
  found = registry_activity(r, dk_str_of("charge-back"));
  ok(found && found->grace_ms == 0, "what an older caller cannot say is the default");
  ok(!registry_activity(r, dk_str_of("charg")), "a part of a name does not match");
  ok(registry_isolated(r) == registry_activity(r, dk_str_of("bill")), "the one in a process");
  dk_registry_free(r);
}

/* Registered in any order, all are found. */
static void
test_many(void)
{
  enum { N = 300 };
  struct dk_registry *r = dk_registry_new();
  struct dice dice = {5};
  unsigned wrong = 0;
  int order[N];
  char name[32], version[32];

  for (int i = 0; i < N; i++) {
    size_t at = dice_below(&dice, (size_t)i + 1);
    order[i] = order[at];
    order[at] = i;
  }
  for (int i = 0; i < N; i++) {
    snprintf(name, sizeof(name), "o%d", order[i] % 30);
    snprintf(version, sizeof(version), "%d.0.%d", order[i] / 30, order[i]);
    wrong += dk_register_orchestration(r, name, version, order[i] < 270 ? nothing : other) != DK_OK;
    snprintf(name, sizeof(name), "a%d", order[i]);
    wrong += dk_register_activity(r, name, work, NULL) != DK_OK;
  }
  for (int i = 0; i < N; i++) {
    snprintf(name, sizeof(name), "o%d", i % 30);
    snprintf(version, sizeof(version), "%d.0.%d", i / 30, i);
    wrong += !find(r, name, version, NULL) || find(r, name, NULL, NULL) != other;
    wrong += dk_register_orchestration(r, name, version, nothing) != DK_DUPLICATE;
    snprintf(name, sizeof(name), "a%d", i);
    wrong += !registry_activity(r, dk_str_of(name));
  }
  cmp_ok(wrong, "==", 0, "%d of each are found, whatever the order", N);
  dk_registry_free(r);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void
test_refusals(void)
{
  struct dk_registry *r = dk_registry_new();
  struct dk_activity_traits traits = {.struct_size = sizeof(traits)};
  char name[257];

  memset(name, 'n', 256);
  name[256] = '\0';
  cmp_ok(dk_register_orchestration(NULL, "a", NULL, nothing), "==", DK_INVALID, "no registry");
  cmp_ok(dk_register_orchestration(r, NULL, NULL, nothing), "==", DK_INVALID, "no name");
  cmp_ok(dk_register_orchestration(r, "", NULL, nothing), "==", DK_INVALID, "an empty name");
  cmp_ok(dk_register_orchestration(r, "\xff", NULL, nothing), "==", DK_INVALID, "no UTF-8");
  cmp_ok(dk_register_orchestration(r, name, NULL, nothing), "==", DK_INVALID, "a long name");
  cmp_ok(dk_register_orchestration(r, name + 1, NULL, nothing), "==", DK_OK, "the longest name");
  cmp_ok(dk_register_orchestration(r, "a", NULL, NULL), "==", DK_INVALID, "no function");
  cmp_ok(dk_register_orchestration(r, "a", "1.0", nothing), "==", DK_INVALID, "no version");
  cmp_ok(dk_register_orchestration(r, "a", NULL, nothing), "==", DK_OK, "a good one");
  cmp_ok(dk_register_orchestration(r, "a", "1.0.0", other), "==", DK_DUPLICATE, "the same again");
  ok(find(r, "a", NULL, NULL) == nothing, "leaves the first as it was");
  cmp_ok(dk_register_activity(NULL, "a", work, NULL), "==", DK_INVALID, "no registry");
  cmp_ok(dk_register_activity(r, NULL, work, NULL), "==", DK_INVALID, "no name");
  cmp_ok(dk_register_activity(r, "a", NULL, NULL), "==", DK_INVALID, "no function");
  traits.isolation = 2;
  cmp_ok(dk_register_activity(r, "a", work, &traits), "==", DK_INVALID, "unknown isolation");
  traits = (struct dk_activity_traits){.struct_size = sizeof(traits), .grace_ms = -1};
  cmp_ok(dk_register_activity(r, "a", work, &traits), "==", DK_INVALID, "a negative grace");
  traits = (struct dk_activity_traits){.struct_size = 0};
  cmp_ok(dk_register_activity(r, "a", work, &traits), "==", DK_INVALID, "no struct_size");
  cmp_ok(dk_register_activity(r, "a", work, NULL), "==", DK_OK, "an orchestration's name is free");
  cmp_ok(dk_register_activity(r, "a", work, NULL), "==", DK_DUPLICATE, "the same again");
  dk_registry_free(r);
  dk_registry_free(NULL);
}

int
main(void)
{
  plan(NO_PLAN);
  test_versions();
  test_comparing();
  test_orchestrations();
  test_activities();
  test_many();
  test_refusals();
  return exit_status();
}
