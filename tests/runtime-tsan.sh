#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The runtime's unit tests, built anew with ThreadSanitizer: no race.  Out of the tree; it takes
# minutes: make check-deep.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${MAKE:=make}"
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'this build has other sanitizers'
scratch
unset MAKEFLAGS MFLAGS MAKELEVEL TESTS
cd "$scratch" || exit 99
flags='-O1 -g -fsanitize=thread'
TSAN_OPTIONS=halt_on_error=0:exitcode=66
export TSAN_OPTIONS

. "$top_srcdir/tests/tsan.sh"
tsan_or_skip "$flags"

run_ok 'configure' "$top_srcdir/configure" --quiet --without-sqlite --without-pg CFLAGS="$flags" ||
  done_testing
# What looks at the ends of stacks is left out: much of each is ThreadSanitizer's here.
tests=$(cd "$top_srcdir" && find core/runtime -name 'test-*.c' \
  ! -name test-coroutine.c | sort | sed 's/\.c$//')
# shellcheck disable=SC2086
run_ok 'make' "$MAKE" -s -j"$(nproc 2> /dev/null || echo 1)" conformance/model/model.la \
  conformance/model/model-full.la $tests || done_testing

MODEL=$scratch/conformance/model/.libs/model.so
MODEL_FULL=$scratch/conformance/model/.libs/model-full.so
export MODEL MODEL_FULL
for test in $tests; do
  "./$test" > out 2> err
  code=$?
  [ $code -eq 0 ] && ! grep -q '^not ok' out
  ok $? "$test" || diag "exit $code; $(grep '^not ok' out); $(head -n 60 err)"
done

done_testing
