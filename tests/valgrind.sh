#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The unit tests, and the command with the model, each check in its own child, have no finding under
# memcheck.  What a unit test does in a child on purpose (a crash, a leak) is that child's.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -n "${VALGRIND:-}" ] || skip_all 'Valgrind is left out of this build'
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers do not run under Valgrind'
scratch
cd "$top_builddir" || exit 99

memcheck() {
  "$VALGRIND" --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
    --show-leak-kinds=definite "$@"
}

for test in $UNIT_TESTS; do
  memcheck -q --child-silent-after-fork=yes "./$test" > "$scratch/out" 2> "$scratch/err"
  code=$?
  [ $code -eq 0 ]
  ok $? "$test" ||
    diag "exit $code; $(grep '^not ok' "$scratch/out"); $(head -n 40 "$scratch/err")"
done

# A memcheck run is slow, and its threads never overlap: a race may be left unexercised.
memcheck --log-file="$scratch/memcheck.%p" "$DURAKIT" certify "$MODEL" --timeout-scale 20 -j2 \
  --format tap > "$scratch/out" 2> "$scratch/err"
code=$?
[ $code -eq 0 ] || [ $code -eq 7 ]
ok $? 'the model keeps the contract under memcheck' ||
  diag "exit $code; $(cat "$scratch/err"); $(grep -A 20 '^not ok' "$scratch/out")"
summaries=$(cat "$scratch"/memcheck.* | grep -c 'ERROR SUMMARY: 0 errors')
[ "$summaries" -gt "$("$DURAKIT" list checks | wc -l)" ]
ok $? "every check was looked at ($summaries processes)"
# The canary that crashes dies of a signal that it sends itself; nothing else has an error.
is "$(grep -l 'ERROR SUMMARY: [1-9]' "$scratch"/memcheck.* | wc -l)" 0 'no process has a finding' ||
  diag "$(cat $(grep -l 'ERROR SUMMARY: [1-9]' "$scratch"/memcheck.*) | head -n 60)"

done_testing
