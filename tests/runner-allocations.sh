#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each request for memory of the command fails, once: it ends all the same, and what it could not
# do is an exit code with a word.  A sample of them; all with DURAKIT_DEEP=1.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
[ -z "${SANITIZER_CFLAGS-}" ] || skip_all 'a sanitizer has an allocator of its own'
scratch
cd "$scratch" || exit 99
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC "$top_srcdir/tests/runner-allocations.c" \
  -o fails.so > cc.out 2>&1
ok $? 'what makes them fail is built' || {
  diag "$(cat cc.out)"
  done_testing
}

# sample COUNT: the numbers that are tried; another part of them in each run.
sample() {
  step=1
  [ "${DURAKIT_DEEP-}" = 1 ] || step=$((($1 + 29) / 30))
  seq $((1 + $(date +%s) % step)) "$step" "$1"
}

# fails_each NAME LAST-LINE COMMAND...: a pass is only what has LAST-LINE in its output.
fails_each() {
  name=$1
  last=$2
  shift 2
  env COUNT_TO="$scratch/count" LD_PRELOAD="$scratch/fails.so" "$@" > out 2> err
  is $? 0 "$name: passes with all the memory that it asks for" || diag "$(cat out err)"
  [ "$(cat count)" -gt 30 ]
  ok $? "$name: its requests are counted"
  for at in $(sample "$(cat count)"); do
    timeout 120 env FAIL_AT="$at" LD_PRELOAD="$scratch/fails.so" "$@" > out 2> err
    code=$?
    case $code in
      0)
        grep -q -e "$last" out || echo "request $at: exit 0 without $last"
        ! grep '^# canaries: *$' out > empty || echo "request $at: exit 0 without its canaries"
        ;;
      4) [ -s err ] || grep -q '^# RESULT=ERROR' out || echo "request $at: exit 4 without a word" ;;
      124) echo "request $at: it did not end" ;;
      *) echo "request $at: exit $code: $(cat err)" ;;
    esac
  done > wrong
  is "$(cat wrong)" '' "$name: whichever fails, it ends with a right exit code and a word"
}

fails_each check '^# RESULT=PASS' "$DURAKIT" check "$MODEL" --only turn/birth --format tap
fails_each probe '' "$DURAKIT" probe "$MODEL"
fails_each 'probe --json' '' "$DURAKIT" probe "$MODEL" --json

done_testing
