# SPDX-License-Identifier: Apache-2.0
# For tests that run others under memcheck: sourced after tap.sh, with a folder $scratch.
# shellcheck shell=sh

memcheck() {
  "$VALGRIND" --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
    --show-leak-kinds=definite "$@"
}

# has_no_finding TEST: a unit test, by its path in the build.
has_no_finding() {
  memcheck -q --child-silent-after-fork=yes "./$1" > "$scratch/out" 2> "$scratch/err"
  code=$?
  [ $code -eq 0 ]
  ok $? "$1" || diag "exit $code; $(grep '^not ok' "$scratch/out"); $(head -n 40 "$scratch/err")"
}
