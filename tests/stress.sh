#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/stress itself: with the model all holds, and with its mutants it finds what is wrong.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
scratch
model=${MODEL:-$top_builddir/conformance/model/.libs/model.so}

stress() {
  rm -f "$scratch/store"
  "$top_builddir/tests/stress/stress" "$@" "store=$scratch/store" > "$scratch/out" 2>&1
}

# finds MUTANT PATTERN: the point that fails.
finds() {
  stress -p 1 -n 4000 -s 5 "$model" "mutant=$1"
  [ $? -ne 0 ]
  ok $? "$1 is found" || diag "$(cat "$scratch/out")"
  like "$(cat "$scratch/out")" "^not ok .*$2" 'and it is said what does not hold'
}

stress -n 2000 "$model"
ok $? 'the model, two processes' || diag "$(cat "$scratch/out")"
stress -p 0 -n 2000 "$model"
ok $? 'the model, one process' || diag "$(cat "$scratch/out")"
stress -p 1 -k 20 -l 200 "$model"
ok $? 'the model, killed' || diag "$(cat "$scratch/out")"

finds cancel/only-unlocked 'what a commit has cancelled'
finds cancel/comes-back 'what a commit has cancelled'
finds token/turn-token-not-compared 'messages\|one live lease\|no answer and no delivery'
finds work/completion-lost 'messages: none lost'
finds ack/timer-fires-at-once 'no answer and no delivery is wrong'

"$top_builddir/tests/stress/stress" -p 1 > "$scratch/out" 2>&1
is $? 2 'without a plugin it refuses'
like "$(cat "$scratch/out")" '^usage: ' 'and tells how it is used'

done_testing
