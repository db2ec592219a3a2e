#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plugins that try to end, block or forge a run: it continues, each check gets its verdict, the
# stream is well-formed, and the exit code says that the plugin has failed; with one job and with
# several.
# needs: zoo

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
durakit=${DURAKIT:-$top_builddir/runner/durakit}
model=${MODEL:-$top_builddir/conformance/model/.libs/model.so}
zoo=${ZOO:-$top_builddir/conformance/fixtures/zoo}
unset TAP_VERSION PERL5OPT HARNESS_OPTIONS HARNESS_PERL_SWITCHES
cd "$scratch" || exit 99

# A path of this test's own, by which its processes are known among those of other tests.
ln -s "$zoo" zoo
zoo=$scratch/zoo

# Of the area TURN each check begins with an enqueue, which is where these plugins go wrong.
only='turn/*'

check() {
  "$durakit" check "$1" --only "$only" --format tap "$2" --timeout-scale "$3" > out.tap 2> out.err
}

# "4 turn/bounded-by-bytes": number and name of each point.
points() {
  sed -n 's/^\(not \)\{0,1\}ok \([0-9][0-9]*\) - \([^ ]*\).*/\2 \3/p' out.tap
}

check "$model" -j1 1
is $? 0 'the model passes'
points > expected
[ "$(wc -l < expected)" -gt 5 ]
ok $? 'there are checks to run' || done_testing
plan="1..$(wc -l < expected | tr -d ' ')"

# judge FIXTURE VERDICT JOBS SCALE
judge() {
  at="$1 $3"
  check "$zoo/$1.so" "$3" "$4"
  is $? 1 "$at: the exit code" || diag "$(cat out.err)"
  is "$(points)" "$(cat expected)" "$at: every planned point is there, in plan order"
  is "$(grep '^1\.\.' out.tap)" "$plan" "$at: one plan"
  is "$(sed -n 's/^ *verdict: *"\{0,1\}\([a-z-]*\)"\{0,1\}$/\1/p' out.tap | grep -vx not-run |
    sort -u)" "$2" "$at: each verdict is $2"
  [ "$(grep -c "^  verdict: \"$2\"" out.tap)" -ge 5 ]
  ok $? "$at: what is not run is reported by five that were"
  is "$(grep -c '^ok' out.tap)" 0 "$at: no check passes"
  is "$(grep -c -e '^Bail out' -e '^::' -e '^ok 1$' out.tap)" 0 "$at: nothing is forged"
  if command -v prove > /dev/null; then
    prove --norc -e cat out.tap > proved 2>&1
    is "$? $(grep -c 'Parse errors' proved)" '1 0' "$at: prove reads the stream" ||
      diag "$(cat proved)"
  else
    skip "$at: prove reads the stream" 'prove is not installed'
  fi
}

# On a busy machine too; what does not end is given less.
enough=10
for jobs in -j1 -j4; do
  judge exit-in-constructor early-exit $jobs $enough
  judge exit-in-open early-exit $jobs $enough
  judge exit-in-operation early-exit $jobs $enough
  judge exit-in-thread early-exit $jobs $enough
  judge spins timeout $jobs 0.1
  judge ignores-sigterm timeout $jobs 0.1
  judge prints-ok host-damage $jobs $enough
  judge prints-bail-out host-damage $jobs $enough
  judge prints-command host-damage $jobs $enough
  judge closes-stdout host-damage $jobs $enough
  judge orphan host-damage $jobs $enough
done

# What these plugins have started has ended.
is "$(ps -e -o args= 2> /dev/null | grep -c "[c]heck $zoo/")" 0 'no process is left'

done_testing
