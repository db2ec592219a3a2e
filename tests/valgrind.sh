#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The unit tests and the command have no finding under memcheck.  What a unit test does in a child
# on purpose (a crash, a leak) is that child's.  What is slow there is left to check-valgrind; the
# runtime's, which wait for most of their time, are valgrind-runtime.sh's.
# needs: unit-tests

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -n "${VALGRIND:-}" ] || skip_all 'Valgrind is left out of this build'
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers do not run under Valgrind'
scratch
cd "$top_builddir" || exit 99

. "$top_srcdir/tests/memcheck.sh"

for test in $UNIT_TESTS; do
  case $test in core/runtime/*) ;; *) has_no_finding "$test" ;; esac
done

# Everything that the command does for one check.
memcheck -q --child-silent-after-fork=yes --log-file="$scratch/log" "$DURAKIT" check "$MODEL" \
  --only turn/birth --timeout-scale 20 > "$scratch/out" 2> "$scratch/err"
is $? 0 'the command itself has no finding' || diag "$(cat "$scratch/err" "$scratch/log")"

done_testing
