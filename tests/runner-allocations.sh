#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each request for memory of the command fails, once: it ends all the same, and what it could not
# do is an exit code with a word; what it writes is whole, or is called an error.  A sample of them;
# all with DURAKIT_DEEP=1.

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

# ---- a check that fails --------------------------------------------------------------------------

# The plugin, which prints and fails, with a setting that is shown and one that is not.
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC -I"$top_srcdir/core/include" \
  -I"$top_srcdir" "$top_srcdir/tests/runner-secret.c" -o secret.so > cc.out 2>&1
ok $? 'a provider that fails is built' || diag "$(cat cc.out)"

# steady FILE: what is never the same twice is masked.
steady() {
  sed -e 's/seconds=[0-9.]*/seconds=N/' -e 's/"seconds":[0-9.]*/"seconds":N/g' \
      -e 's/one enqueue took [0-9.]* ms/one enqueue took N ms/' "$1"
}

# check_failing_at N VIEW: that request for memory fails.
check_failing_at() {
  rm -rf res
  timeout -k 5 60 env FAIL_AT="$1" COUNT_TO="$scratch/count" LD_PRELOAD="$scratch/fails.so" \
    "$DURAKIT" check ./secret.so --only turn/birth --set address=here --set password=Secret12345 \
    --set "user=someone else" --out res --run-id fixed --seed 7 --classify 0 --format "$2" \
    > out 2> err
}

for view in tap human; do
  check_failing_at 0 $view
  is $? 1 "a check that fails, as $view" || diag "$(cat out err)"
  steady out > whole.out
  steady res/results.jsonl > whole.jsonl
  find res -type f | sort > whole.files
  for at in $(sample "$(cat count)"); do
    check_failing_at "$at" $view
    code=$?
    steady out > found.out
    if [ $code -eq 1 ]; then
      diff whole.out found.out > diff.out || echo "request $at: exit 1 with $(cat diff.out)"
      steady res/results.jsonl | diff whole.jsonl - > diff.out \
        || echo "request $at: exit 1 with results $(cat diff.out)"
      find res -type f | sort | diff whole.files - > diff.out \
        || echo "request $at: exit 1 with files $(cat diff.out)"
    elif [ $code -ne 4 ] || ! { [ -s err ] || grep -q 'RESULT=ERROR' out; }; then
      echo "request $at: exit $code: $(cat err)"
    fi
    ! grep -r -s Secret12345 out err res > secrets || echo "request $at: $(cat secrets)"
    if grep 'durakit check ' out > repro && ! grep -q -x -F -f repro whole.out; then
      echo "request $at: another command to repeat it: $(cat repro)"
    fi
  done > wrong
  is "$(cat wrong)" '' "whichever request fails: all of the $view, or an error that is reported"
done

# ---- checks that pass ----------------------------------------------------------------------------

fails_each check '^# RESULT=PASS' "$DURAKIT" check "$MODEL" --only turn/birth --format tap
fails_each probe '' "$DURAKIT" probe "$MODEL"
fails_each 'probe --json' '' "$DURAKIT" probe "$MODEL" --json

done_testing
