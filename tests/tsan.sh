# SPDX-License-Identifier: Apache-2.0
# For tests that build with ThreadSanitizer: sourced after tap.sh, in a folder of the test's own.
# shellcheck shell=sh

# tsan_or_skip FLAGS: skips all where the compiler has none; a race is found where it has.
tsan_or_skip() {
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
  ${CC:-cc} $1 race.c -lpthread -o race 2> /dev/null ||
    skip_all 'the compiler has no ThreadSanitizer'
  TSAN_OPTIONS=exitcode=66 ./race 2> /dev/null
  is $? 66 'a race is found'
}
