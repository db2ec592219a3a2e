/* SPDX-License-Identifier: Apache-2.0 */
/* The table of checks: whatever the runner and a reader rely on without looking. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "conformance/checks/checks.h"
#include "conformance/checks/topics.h"
#include "conformance/contract/contract.h"
#include "conformance/tap/tap.h"

static const struct check *const *checks;
static size_t n_checks;

/* "area/some-words": small letters, digits and single hyphens. */
static bool
is_well_formed(const char *id)
{
  size_t slashes = 0;

  for (const char *at = id; *at; at++) {
    bool between = at > id && isalnum((unsigned char)at[-1]) && isalnum((unsigned char)at[1]);

    slashes += *at == '/';
    if (*at == '/' || *at == '-') {
      if (!between)
        return false;
    } else if (!islower((unsigned char)*at) && !isdigit((unsigned char)*at)) {
      return false;
    }
  }
  return slashes == 1;
}

static void
test_ids(void)
{
  ok(is_well_formed("cancel/ack-after-deletion"), "an id has an area and words");
  ok(!is_well_formed("cancel") && !is_well_formed("cancel/") && !is_well_formed("/x"),
     "an id without one of them is not well-formed");
  ok(!is_well_formed("cancel/Ack") && !is_well_formed("cancel/a--b") &&
       !is_well_formed("cancel/a-") && !is_well_formed("a/b/c") && !is_well_formed("a/b c"),
     "nor one of other letters or form");
  for (size_t i = 0; i < n_checks; i++) {
    ok(is_well_formed(checks[i]->id), "%s is a well-formed id", checks[i]->id);
    for (size_t j = 0; j < i; j++)
      if (strcmp(checks[i]->id, checks[j]->id) == 0)
        fail("%s is the id of two checks", checks[i]->id);
  }
}

/* The next clause of a list, or NULL; *at moves behind it. */
static const struct dk_clause *
next_clause(const char **at, char *name, size_t size)
{
  size_t length = strcspn(*at, " ");

  snprintf(name, size, "%.*s", (int)length, *at);
  *at += length;
  *at += strspn(*at, " ");
  return dk_clause_find(name);
}

static void
test_clauses(void)
{
  char name[64];

  for (size_t i = 0; i < n_checks; i++) {
    const char *at = checks[i]->clauses;
    const struct dk_clause *clause;
    bool all_there = true;

    do {
      clause = next_clause(&at, name, sizeof name);
      all_there = all_there && clause;
    } while (clause && *at);
    ok(all_there, "%s names clauses that exist: %s", checks[i]->id, checks[i]->clauses);
  }
}

static const char *
first_clause(const struct check *check, char *name, size_t size)
{
  const char *at = check->clauses;

  next_clause(&at, name, size);
  return name;
}

/* Every clause that a check can judge now has one that is meant for it. */
static void
test_coverage(void)
{
  size_t n;
  const struct dk_clause *clauses = dk_clauses(&n);

  for (size_t i = 0; i < n; i++) {
    bool covered = false;
    char name[64];

    for (size_t c = 0; c < n_checks; c++)
      covered = covered || strcmp(first_clause(checks[c], name, sizeof name), clauses[i].id) == 0;
    if (clauses[i].by == DK_BY_CHECK && clauses[i].planned_issue == 0)
      ok(covered, "%s has a check", clauses[i].id);
  }
}

/* The area of the contract that an id begins with; a check may be for a clause of another. */
static const struct dk_area *
area_of(const char *id)
{
  size_t length = strcspn(id, "/");
  char name[16];

  for (size_t i = 0; i < length && i < sizeof name; i++)
    name[i] = (char)toupper((unsigned char)id[i]);
  if (length >= sizeof name)
    return NULL;
  name[length] = '\0';
  return dk_area_find(name);
}

/* Two kinds of checks are not about one area. */
static bool
is_of_all_areas(const char *id)
{
  return strncmp(id, "random/", 7) == 0 || strncmp(id, "disk/", 5) == 0;
}

static void
test_order(void)
{
  size_t n;
  const struct dk_clause *before = dk_clauses(&n);
  char name[64];

  ok(!area_of("far/too-much") && !area_of("an-area-of-far-too-long-a-name/x"),
     "what is no area is noticed");
  for (size_t i = 0; i < n_checks; i++) {
    const struct dk_clause *clause = dk_clause_find(first_clause(checks[i], name, sizeof name));

    ok(area_of(checks[i]->id) || is_of_all_areas(checks[i]->id),
       "%s belongs to an area of the contract", checks[i]->id);
    if (clause < before)
      fail("%s is in the place of %s", checks[i]->id, before->id);
    before = clause;
  }
}

static void
test_says(void)
{
  for (size_t i = 0; i < n_checks; i++) {
    const char *says = checks[i]->says;
    size_t length = says ? strlen(says) : 0;

    ok(length > 0 && length < 100 && says[length - 1] != '.', "%s says in one line what must hold",
       checks[i]->id);
    for (size_t j = 0; length > 0 && j < i; j++)
      if (strcmp(says, checks[j]->says) == 0)
        fail("%s says the same as %s", checks[i]->id, checks[j]->id);
  }
}

static void
test_needs(void)
{
  const uint32_t known = NEEDS_HANDLES | NEEDS_PROCESSES | NEEDS_WORKER_ENQUEUE |
                         NEEDS_HOST_CLOCK | NEEDS_STORE | NEEDS_RIVALS | NEEDS_DURABLE |
                         NEEDS_TWO_CLOCKS | NEEDS_STORE_CLOCK | NEEDS_SERVER | NEEDS_CRASH |
                         NEEDS_PAUSE | NEEDS_RIGHTS | NEEDS_PROXY | NEEDS_ADMIN |
                         NEEDS_RELEASE | NEEDS_ROOTS | NEEDS_DUPLICATE |
                         NEEDS_FILES | NEEDS_POWER;

  const uint32_t known_flags = IS_RACE | IS_SLOW | IS_ALONE | OF_SIZES | OF_IDS | OF_NUMBERS |
                               OF_HANDLES | OF_ALL | OF_DELIVERIES | OF_COUNTS | OF_NEIGHBOURS;

  for (size_t i = 0; i < n_checks; i++) {
    const struct check *check = checks[i];
    bool many = (check->needs & (NEEDS_PROCESSES | NEEDS_FILES)) != 0;

    ok(check->run && (check->needs & ~known) == 0 && (check->flags & ~known_flags) == 0,
       "%s can be run, with needs and flags that are known", check->id);
    ok(many == (check->processes > 0), "%s needs other processes if and only if it uses them",
       check->id);
    for (size_t j = 0; j < i; j++)
      if (check->run == checks[j]->run)
        fail("%s runs the function of %s", check->id, checks[j]->id);
  }
}

/* Each line of the topics names what exists, and is there once. */
static void
test_topics(void)
{
  size_t n, n_topics;
  const struct dk_topic_member *members = dk_topic_members(&n);
  const struct dk_topic *topics = dk_topics(&n_topics);

  for (size_t i = 0; i < n; i++) {
    bool is_check = false, is_new = true;

    for (size_t c = 0; c < n_checks; c++)
      is_check = is_check || strcmp(checks[c]->id, members[i].check) == 0;
    for (size_t j = 0; j < i; j++)
      is_new = is_new && (strcmp(members[i].topic, members[j].topic) != 0 ||
                          strcmp(members[i].check, members[j].check) != 0);
    ok(is_check && is_new && dk_topic_find(members[i].topic), "%s belongs to %s, and is there",
       members[i].check, members[i].topic);
  }
  for (size_t i = 0; i < n_topics; i++) {
    size_t has = 0;

    for (size_t c = 0; c < n_checks; c++)
      has += dk_topic_has(&topics[i], checks[c]->id);
    ok(has > 1, "%s has checks: %zu", topics[i].name, has);
  }
}

int
main(void)
{
  plan(NO_PLAN);
  checks = dk_checks(&n_checks);
  ok(n_checks > 0, "there are checks");
  test_ids();
  test_clauses();
  test_coverage();
  test_order();
  test_says();
  test_needs();
  test_topics();
  return done_testing();
}
