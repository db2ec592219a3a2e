#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/stress itself: with the model all holds, and with its mutants it finds what is wrong.
# needs: zoo tests/stress/stress

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
scratch
model=${MODEL:-$top_builddir/conformance/model/.libs/model.so}

stress() {
  rm -f "$scratch/store"
  "$top_builddir/tests/stress/stress" "$@" "store=$scratch/store" > "$scratch/out" 2>&1
}

# finds MUTANT PATTERN OPTION...: the point that fails.
finds() {
  mutant=$1 pattern=$2
  shift 2
  stress -p 1 -n 4000 -s 5 "$@" "$model" "mutant=$mutant"
  [ $? -ne 0 ]
  ok $? "$mutant is found" || diag "$(cat "$scratch/out")"
  like "$(cat "$scratch/out")" "^not ok .*$pattern" 'and it is reported what does not hold'
}

stress -n 2000 "$model"
ok $? 'the model, two processes' || diag "$(cat "$scratch/out")"
stress -p 0 -n 2000 "$model"
ok $? 'the model, one process' || diag "$(cat "$scratch/out")"
stress -p 1 -k 20 -l 200 "$model"
ok $? 'the model, killed' || diag "$(cat "$scratch/out")"

stress -p 1 -t 8 -i 4 -o -n 2000 "$model"
ok $? 'the model, 8 callers on 4 instances, who keep the histories' || diag "$(cat "$scratch/out")"
stress -p 1 -k 3 -w 20 -x "echo ran >> '$scratch/ran'" "$model"
ok $? 'the model, and a command beside it' || diag "$(cat "$scratch/out")"
is "$(grep -c ran "$scratch/ran")" 3 'which was run so often'
stress -p 1 -k 3 -w 20 -x 'exit 1' "$model"
ok $((! $?)) 'one that fails is reported'
like "$(cat "$scratch/out")" '^not ok .* the command was run' 'by its own point'

finds cancel/only-unlocked 'what a commit has cancelled'
finds cancel/comes-back 'what a commit has cancelled'
finds token/turn-token-not-compared 'messages\|one live lease\|no answer and no' -n 30000
finds work/completion-lost 'messages: none lost'
finds ack/timer-fires-at-once 'no answer and no delivery is wrong'
finds cancel/only-unlocked 'what a commit has cancelled' -i 4 -o
finds work/completion-lost 'messages: none lost' -i 4 -o

# With a server behind the store: connections that are cut, and crashes.
zoo=${ZOO:-$top_builddir/conformance/fixtures/zoo}
served() {
  fixture=$1
  shift
  stress -p 2 -l 300 "$@" "$zoo/$fixture.so" "server=$scratch/s/socket"
}

if [ -x "$zoo/server" ] && "$zoo/server" start "$scratch/s"; then
  served honest-server -k 40 -c -w 30
  ok $? 'a store with a server, 40 connections cut' || diag "$(cat "$scratch/out")"
  like "$(cat "$scratch/out")" '^ok .* [1-9][0-9]* outcomes were unknown.* 0 have stayed unknown$' \
    'outcomes were unknown, and none has stayed so'
  served honest-server -k 3 -w 60 -x "'$zoo/server' crash '$scratch/s' &&
    '$zoo/server' start '$scratch/s'"
  ok $? 'the same, crashed' || diag "$(cat "$scratch/out")"
  # A provider that repeats by itself what may have been done never reports an unknown outcome; or
  # what it answers is wrong: a commit that landed is reported as refused.
  silent='while an answer was on its way'
  for wrong in server-lost-is-busy server-repeats; do
    served "$wrong" -k 40 -c -w 30
    [ $? -ne 0 ]
    ok $? "$wrong is found" || diag "$(cat "$scratch/out")"
    like "$(cat "$scratch/out")" \
      "^not ok .*\($silent\|no answer and no delivery is wrong\|as they were answered\)" \
      'no outcome is ever unknown to it, or what it answers is wrong'
  done
  "$zoo/server" crash "$scratch/s"
else
  skip 'a store with a server' 'the zoo is not built'
fi

"$top_builddir/tests/stress/stress" -p 1 > "$scratch/out" 2>&1
is $? 2 'without a plugin it refuses'
like "$(cat "$scratch/out")" '^usage: ' 'and prints its usage'

done_testing
