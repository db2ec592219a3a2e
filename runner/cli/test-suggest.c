/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest name: near ones are found, far ones are not. */
#include "runner/cli/suggest.h"

#include "conformance/tap/tap.h"

static const char *
nearest(const char *word)
{
  static const char *const names[] = {"certify", "check", "explain", "cancel/locked-row",
                                      "cancel/expired-row", "CANCEL-5", "CANCEL-15",
                                      "jsonl", "json"};
  struct suggest suggest = {.word = word};

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    suggest_try(&suggest, names[i]);
  return suggest.best;
}

int
main(void)
{
  plan(NO_PLAN);
  cmp_ok(suggest_distance("certify", "certify"), "==", 0, "nothing to change");
  cmp_ok(suggest_distance("", "abc"), "==", 3, "all to add");
  cmp_ok(suggest_distance("abc", ""), "==", 3, "all to drop");
  cmp_ok(suggest_distance("abc", "axc"), "==", 1, "one letter changed");
  cmp_ok(suggest_distance("abc", "acb"), "==", 1, "two neighbours swapped");
  cmp_ok(suggest_distance("abc", "ABC"), "==", 0, "case does not count");

  is(nearest("certfy"), "certify", "a letter was left out");
  is(nearest("chekc"), "check", "two letters were swapped");
  is(nearest("expl"), "explain", "the beginning of a name");
  is(nearest("cancel/lockd-row"), "cancel/locked-row", "a check");
  is(nearest("cancel-5"), "CANCEL-5", "a clause in small letters");
  is(nearest("certify"), "certify", "the name itself");
  is(nearest("jso"), "json", "of two that begin so the shorter");
  is(nearest("zzzzzz"), NULL, "nothing is near");
  is(nearest(""), NULL, "nothing was typed");

  char longest[400];
  for (size_t i = 0; i < sizeof(longest); i++)
    longest[i] = i + 1 < sizeof(longest) ? 'c' : '\0';
  is(nearest(longest), NULL, "a word that is longer than any name");
  return done_testing();
}
