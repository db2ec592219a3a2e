#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What all checks meet alike is reported by five of them; the others are not run, and the run
# ends within seconds.
# needs: zoo

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
zoo=$top_builddir/conformance/fixtures/zoo
[ -f "$zoo/blocks.so" ] || skip_all 'the zoo is not built'
scratch
cd "$scratch" || exit 99

# count PATTERN: lines of the last run.
count() {
  grep -c -e "$1" tap
}

# Of each kind: the points are whole, one line says why so few have run, and each other names the
# first.  tells_once FIXTURE EXIT VERDICT ARGUMENTS...; one with a slash is not in the zoo.
tells_once() {
  fixture=$1
  case $fixture in
    */*) plugin=$fixture.so ;;
    *) plugin=$zoo/$fixture.so ;;
  esac
  code=$2
  verdict=$3
  shift 3
  [ "$1" != certify ] || set -- "$@" --effort quick
  # Seconds are enough on a machine that is idle; the whole run would be more than all of this.
  timeout 300 "$DURAKIT" "$@" "$plugin" --format tap -j2 > tap 2> err
  is $? "$code" "$fixture: exit $code" || diag "$(tail -n 5 tap err)"
  is "$(count '^ok') $(count '^not ok')" "$(count '# SKIP') $(count '^  verdict: ')" \
    "$fixture: nothing passes without a word"
  is "$(($(count '^ok') + $(count '^not ok')))" "$(sed -n 's/^1\.\.//p' tap)" \
    "$fixture: every check has its point"
  judged=$(count "^  verdict: \"$verdict\"")
  [ "$judged" -ge 5 ] && [ "$judged" -le 8 ]
  ok $? "$fixture: five are $verdict, and what ran beside them" || diag "$judged are"
  first=$(sed -n 's/^# 5 checks ended as \([^ ]*\) did ('"$verdict"': .*/\1/p' tap)
  is "$(count '^# 5 checks ended as ')" 1 "$fixture: the cause is reported once"
  is "$(sed -n "/^not ok [0-9]* - $(printf '%s' "$first" | sed 's,/,\\/,')\$/{n
n
p
}" tap)" "  verdict: \"$verdict\"" "$fixture: with a check that reports it in full"
  is "$(count "^  reason: \"not run, because 5 checks ended as $first did and none has passed")" \
    "$(($(count '^not ok') - judged))" "$fixture: so does each that is not run"
}

tells_once exit-in-constructor 1 early-exit certify
tells_once segfault-in-constructor 1 crash certify
tells_once hangs-in-constructor 1 timeout certify
tells_once exit-in-open 1 early-exit certify
tells_once hangs-in-open 1 timeout certify
tells_once wordless-open 1 fail certify
tells_once exit-in-close 1 early-exit certify
tells_once hangs-in-close 1 timeout certify
tells_once thread-left 1 host-damage certify
tells_once changes-umask 1 host-damage certify

# Nothing of it is run under Valgrind, which would meet it again.
is "$(sed -n '/^not ok .*@memcheck/{n
n
s/^  verdict: //p
}' tap | sort -u | grep -v not-run)" '' 'what is so natively is not run under Valgrind'

# A person reads the story once.
timeout 300 "$DURAKIT" certify "$zoo/exit-in-open.so" --effort quick --format human -j2 \
  > human 2> err
is "$(grep -c '^    check ' human)" 1 'a person reads it once'
[ "$(wc -l < human)" -lt 60 ]
ok $? 'on less than two pages' || diag "$(wc -l < human) lines"
like "$(cat human)" '^- .* and [0-9]* more  not run, because 5 checks' 'and the rest in a line'

# What is still running may show that it does not end so always: then nothing is left out for it.
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC "-DMODEL=\"$MODEL\"" "-DCOUNT=\"$PWD/count\"" \
  "$top_srcdir/tests/runner-recovers.c" -o recovers.so -ldl > cc.out 2>&1
ok $? 'a plugin that recovers is built' || diag "$(cat cc.out)"
for round in 1 2 3 4 5 6; do
  rm -f count
  timeout 300 "$DURAKIT" check ./recovers.so --only 'turn/*' --format tap -j4 > tap 2> err
  is $? 1 "it recovers, $round: exit 1" || diag "$(cat err)"
  is "$(($(count '^ok') + $(count '^not ok')))" "$(sed -n 's/^1\.\.//p' tap)" \
    "it recovers, $round: each check has its point"
  passed=$(($(count '^ok') + $(count '^  verdict: "flaky"')))
  [ "$passed" = 0 ] || [ "$(count '^  verdict: "not-run"')" = 0 ]
  ok $? "it recovers, $round: where one passed the others are run" || diag "$(cat tap)"
done

# What ends in the steps of a check is of that check.
timeout 300 "$DURAKIT" check "$zoo/exit-in-operation.so" --only 'turn/*' --format tap > tap 2> err
is "$(count '^  verdict: "not-run"')" 0 'checks that end in their own steps are all run'

# ---- answers, in the steps of checks -------------------------------------------------------------

# refusing NAME FLAGS...: the model, but for operations that always fail.
refusing() {
  name=$1
  shift
  ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC ${SANITIZER_CFLAGS:-} \
    -I"$top_srcdir/core/include" "-DMODEL=\"$MODEL\"" "$@" "$top_srcdir/tests/runner-refusing.c" \
    -o "$name.so" -ldl > cc.out 2>&1
  ok $? "$name: is built" || diag "$(cat cc.out)"
}

# value KEY: of the points of the last run, with the check that each is of.
value() {
  sed -n -e 's/^not ok [0-9]* - \([^ ]*\).*/\1/' -e '/^[a-z]*\//h' -e "/^  $1: /{s/^  $1: //
G
s/\n/ /
p
}" tap
}

# No check can do without it, and the first that could is not reached.
refusing enqueue -DENQUEUE=DK_INTERNAL
tells_once ./enqueue 1 fail certify
[ "$(grep -c '^  ' tap)" -lt 4500 ]
ok $? 'enqueue: in a few lines for each' || diag "$(wc -l < tap)"
timeout 300 "$DURAKIT" certify --effort quick ./enqueue.so --format human -j2 > human 2> err
is $? 1 'enqueue: exit 1 for a person, too'
is "$(grep -c '^    check ' human)" 1 'enqueue: a person reads it once'
[ "$(wc -l < human)" -lt 60 ]
ok $? 'enqueue: on less than two pages' || diag "$(wc -l < human) lines"
like "$(cat human)" '^✗ .*fail: as [a-z/-]*: enqueue_for_orchestrator answered DK_INTERNAL.*such' \
  'enqueue: those like it name the first, and what they met'
like "$(cat human)" '^violated: enqueue_for_orchestrator answered DK_INTERNAL ([5-8] checks)$' \
  'enqueue: and are counted'

# Where others pass, each is run; those that are alike are reported in a line.
refusing read -DREAD=DK_CORRUPT
for format in human tap; do
  "$DURAKIT" check ./read.so --only 'hist/*,turn/*' --format "$format" > "$format" 2> err
  is $? 1 "read: exit 1, $format"
done
is "$(count '^  verdict: "not-run"')" 0 'read: each is run'
[ "$(count '^ok')" -gt 10 ]
ok $? 'read: many pass'
failed=$(count '^  verdict: "fail"')
[ "$failed" -gt 5 ]
ok $? 'read: some fail' || diag "$(cat tap)"
is "$(count '^  same_as: ')" $((failed - 1)) 'read: all but the first as that one'
is "$(count '^  repro: ')" "$failed" 'read: each with the command that runs it again'
is "$(grep -c '^✗ .*: as hist/[a-z-]*: read_history answered DK_CORRUPT' human)" \
  $((failed - 1)) \
  'read: so it is for a person'
[ "$(wc -l < human)" -lt $((failed + 50)) ]
ok $? 'read: in a line each' || diag "$(wc -l < human) lines for $failed failures"
like "$(cat human)" "^violated: read_history answered DK_CORRUPT ($failed checks)" 'read: counted'
is "$(count '^  reruns: ')" 1 'read: only the first is run again'
"$DURAKIT" check ./read.so --only 'hist/*,turn/*' --format tap --verbose > tap 2> err
is "$(count '^  same_as: ') $(count '^  found: ')" "0 $failed" 'read: --verbose prints each in full'

# What differs is reported in full: another operation, another status, other words.
refusing words -DENQUEUE=DK_INTERNAL -DOTHER_WORDS -DREAD=DK_CORRUPT
"$DURAKIT" check ./words.so --only 'turn/*,hist/*,queue/*,abi/*' --format tap > tap 2> err
is $? 1 'words: exit 1'
is "$(count '^  verdict: "not-run"')" 0 'words: each is run'
value found | sed 's/ ([0-9]*)//' > found
for words in 'no such table' 'no row was written'; do
  is "$(grep -c "^\"DK_INTERNAL.*enqueue.*$words" found)" 1 "words: '$words' is in full once"
done
value message | grep -v ' answered DK_OK' | sed -n 's/^"\(.*\)" \([^ ]*\)$/\2 \1/p' > messages
value same_as | tr -d '"' | while read -r told by; do
  words=$(sed -n "s,^$by .* answered [A-Z_]*[^ ]* \(.*\) ([0-9]*).*,\1,p" messages)
  grep -F "$words" found | grep -q " $told\$" || echo "$by as $told: $words"
done > wrong
is "$(cat wrong)" '' 'words: whatever refers to another has met the same words'

# ---- leaks and the like, under Valgrind ----------------------------------------------------------

if command -v valgrind > /dev/null && [ -z "${SANITIZER_CFLAGS-}" ] &&
  "$DURAKIT" check "$MODEL" --only turn/birth --memcheck --format tap > tap 2> err; then
  # The first check passes, so that no other is left out, and nearly all of these fail.
  refusing nearly -DENQUEUE=DK_INTERNAL '-DWORKS_IN="-1-"'
  timeout 300 "$DURAKIT" certify --effort quick ./nearly.so --format tap -j2 > tap 2> err
  is $? 1 'nearly: exit 1'
  is "$(count '^ok 1 - ')" 1 'nearly: the first check passes'
  alike=$(grep '^  same_as: ' tap | grep -vc '@memcheck"$')
  [ "$alike" -gt 300 ]
  ok $? 'nearly: hundreds fail alike' || diag "$alike do"
  is "$(count '^  reason: "not run under Valgrind, because natively it failed as [a-z]*/')" \
    "$alike" 'nearly: none of them is run under Valgrind'
  is "$(count '^ok .* - time/one-clock-for-good@memcheck')" 1 'nearly: what passed is'
  told=$(sed -n 's/^  same_as: "\([^@]*\)"/\1/p' tap | sort -u)
  is "$(printf '%s\n' "$told" | grep -c .)" 1 'nearly: all name one'
  is "$(value verdict | grep -c "^\"fail\" $told@memcheck")" 1 'nearly: and that is run there, too'
  is "$(($(count '^ok') + $(count '^not ok')))" "$(sed -n 's/^1\.\.//p' tap)" \
    'nearly: every check has its point'
  [ "$(wc -l < tap)" -lt 8000 ]
  ok $? 'nearly: in a few lines for each' || diag "$(wc -l < tap) lines"
  tells_once leaks-at-open 6 memory check --memcheck
  tells_once leaks-at-unload 6 memory check --memcheck
  tells_once stays-mapped 6 memory check --memcheck
else
  skip 'leaks' 'there is no Valgrind that the command can use'
fi

done_testing
