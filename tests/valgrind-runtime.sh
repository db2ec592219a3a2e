#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The unit tests of the runtime have no finding under memcheck (see valgrind.sh).
# needs: unit-tests

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -n "${VALGRIND:-}" ] || skip_all 'Valgrind is left out of this build'
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers do not run under Valgrind'
scratch
cd "$top_builddir" || exit 99
. "$top_srcdir/tests/memcheck.sh"

for test in $UNIT_TESTS; do
  case $test in core/runtime/*) has_no_finding "$test" ;; esac
done

done_testing
