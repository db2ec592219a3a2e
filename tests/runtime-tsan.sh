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

# What is to find races does.
cat > race.c <<'C'
#include <pthread.h>
static int n;
static void *add(void *unused) { n++; return unused; }
int main(void)
{
  pthread_t other;
  if (pthread_create(&other, 0, add, 0) != 0)
    return 1;
  n++;
  return pthread_join(other, 0);
}
C
# shellcheck disable=SC2086
${CC:-cc} $flags race.c -lpthread -o race 2> /dev/null ||
  skip_all 'the compiler has no ThreadSanitizer'
./race 2> /dev/null
is $? 66 'a race is found'

run_ok 'configure' "$top_srcdir/configure" --quiet --without-sqlite --without-pg CFLAGS="$flags" ||
  done_testing
tests=$(cd "$top_srcdir" && echo core/runtime/test-*.c | sed 's/\.c\>//g')
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
