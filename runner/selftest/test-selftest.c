/* SPDX-License-Identifier: Apache-2.0 */
/* The one word that a self-test ends in. */
#include "runner/selftest/selftest.h"

int
main(void)
{
  struct selftest selftest = {.points = 3, .zoo_is_there = true};

  plan(NO_PLAN);
  is(selftest_word(&selftest, EXIT_PASSED), "PASS", "all of it held");
  is(selftest_word(&selftest, EXIT_INCOMPLETE), "INCOMPLETE", "it was interrupted");
  selftest.passed_by = 1;
  is(selftest_word(&selftest, EXIT_PASSED), "PARTLY", "a provider of the zoo was not judged");
  selftest.passed_by = 0;
  selftest.zoo_is_there = false;
  is(selftest_word(&selftest, EXIT_PASSED), "PARTLY", "without the zoo");
  is(selftest_word(&selftest, EXIT_ENVIRONMENT), "FAIL", "without the zoo, and ended early");
  selftest.failed = 1;
  is(selftest_word(&selftest, EXIT_PASSED), "FAIL", "without the zoo, and a point failed");
  selftest.zoo_is_there = true;
  is(selftest_word(&selftest, EXIT_PASSED), "FAIL", "a point failed");
  return done_testing();
}
