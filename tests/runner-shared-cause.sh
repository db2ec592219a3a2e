#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What all checks meet alike is told by five of them; the others are not run, and the run
# is over within seconds.

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
# first.  tells_once FIXTURE EXIT VERDICT ARGUMENTS...
tells_once() {
  fixture=$1
  code=$2
  verdict=$3
  shift 3
  # Seconds are enough on a machine that is idle; the whole run would be more than all of this.
  timeout 300 "$DURAKIT" "$@" "$zoo/$fixture.so" --format tap -j2 > tap 2> err
  is $? "$code" "$fixture: exit $code" || diag "$(tail -n 5 tap err)"
  is "$(count '^ok') $(count '^not ok')" "$(count '# SKIP') $(count '^  verdict: ')" \
    "$fixture: nothing passes without a word"
  is "$(($(count '^ok') + $(count '^not ok')))" "$(sed -n 's/^1\.\.//p' tap)" \
    "$fixture: every check has its point"
  judged=$(count "^  verdict: \"$verdict\"")
  [ "$judged" -ge 5 ] && [ "$judged" -le 8 ]
  ok $? "$fixture: five are $verdict, and what ran beside them" || diag "$judged are"
  first=$(sed -n 's/^# 5 checks ended as \([^ ]*\) did ('"$verdict"': .*/\1/p' tap)
  is "$(count '^# 5 checks ended as ')" 1 "$fixture: the cause is told once"
  is "$(sed -n "/^not ok [0-9]* - $(printf '%s' "$first" | sed 's,/,\\/,')\$/{n
n
p
}" tap)" "  verdict: \"$verdict\"" "$fixture: with a check that tells it all"
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
timeout 300 "$DURAKIT" certify "$zoo/exit-in-open.so" --format human -j2 > human 2> err
is "$(grep -c '^    check ' human)" 1 'a person is told the story once'
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

# ---- leaks and the like, under Valgrind ----------------------------------------------------------

if command -v valgrind > /dev/null && [ -z "${SANITIZER_CFLAGS-}" ] &&
  "$DURAKIT" check "$MODEL" --only turn/birth --memcheck --format tap > tap 2> err; then
  tells_once leaks-at-open 6 memory check --memcheck
  tells_once leaks-at-unload 6 memory check --memcheck
  tells_once stays-mapped 6 memory check --memcheck
else
  skip 'leaks' 'there is no Valgrind that the command can use'
fi

done_testing
