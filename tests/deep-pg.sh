#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The PostgreSQL plugin, certified again and again beside four busy loops: natively and under
# Valgrind, each time with a new seed, and nothing may fail.  For check-deep, and by hand:
#
#   DURAKIT_DEEP_RUNS=3 make check TESTS=tests/deep-pg.sh
#
#   DURAKIT_DEEP_RUNS    how many times (20); a run takes many minutes
#   DURAKIT_DEEP_NATIVE  1: without Valgrind
#   DURAKIT_DEEP_OUT     a folder for the reports, which then stay: run-N.tap, and the table runs

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
if [ $# -eq 0 ]; then
  exec "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$0" '{kit}'
fi
plugin=${PG_PLUGIN:-$top_builddir/providers/pg/.libs/pg.so}
[ -x "$DURAKIT" ] && [ -f "$plugin" ] || skip_all 'the command or the plugin is not built'
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers find libpq'\''s own'
scratch
runs=${DURAKIT_DEEP_RUNS:-20}
out=${DURAKIT_DEEP_OUT:-$scratch}
mkdir -p "$out" || exit 99
mode=
[ -z "${DURAKIT_DEEP_NATIVE:-}" ] || mode=--no-memcheck

# ---- beside it -----------------------------------------------------------------------------------

# They end with this script, even if it is killed, because each checks whether it still runs.
loops=
busy() {
  for number in 1 2 3 4; do
    sh -c 'while kill -0 "$1" 2> /dev/null; do n=0; while [ $n -lt 100000 ]; do n=$((n + 1)); done
      done' busy-loop $$ &
    loops="$loops $!"
  done
  trap 'kill $loops 2> /dev/null; rm -rf "$scratch"' EXIT
}

# ---- one run -------------------------------------------------------------------------------------

# of KEY: a number in the last line of the report of this run.
of() {
  tail -n 1 "$out/run-$run.tap" | sed -n "s/.*[ ,]$1=\([0-9]*\).*/\1/p"
}

seed() {
  sed -n 's/^# seed \(0x[0-9a-f]*\),.*/\1/p' "$out/run-$run.tap" | head -n 1
}

# A race that is seen too seldom on a busy machine (exit 7) is no failure; what fails now and then
# is one.
is_well() {
  [ "$1" -eq 0 ] || { [ "$1" -eq 7 ] && ! grep -q 'verdict: "flaky"' "$out/run-$run.tap"; }
}

# What failed, with the command that runs it again.
show_failures() {
  diag "exit $1; $(head -n 20 "$out/run-$run.err")"
  diag "$(grep -e '^not ok' -e '^  message:' -e '^  found:' -e '^  repro:' -e '^  valgrind' \
    -e '^# server' "$out/run-$run.tap")"
  diag "again: tests/with-postgres durakit certify pg {kit} --seed $(seed) $mode"
}

# The deadline is only for what hangs: beside four loops all is slower.
certify() {
  began=$(date +%s)
  # shellcheck disable=SC2086
  "$DURAKIT" certify "$plugin" $mode --format tap --timeout-scale 4 "$@" \
    > "$out/run-$run.tap" 2> "$out/run-$run.err"
  code=$?
  printf '%4s %-18s %4s %7s %7s %8s %8s\n' "$run" "$(seed)" "$code" "$(of passed)" "$(of failed)" \
    "$(grep -c 'verdict: "unexercised"' "$out/run-$run.tap")" $(($(date +%s) - began)) \
    >> "$out/runs"
  is_well "$code"
  ok $? "run $run of $runs: nothing fails" || show_failures "$code"
}

printf '%4s %-18s %4s %7s %7s %8s %8s\n' run seed exit passed failed unlucky seconds > "$out/runs"
busy
run=1
while [ "$run" -le "$runs" ]; do
  certify "$@"
  run=$((run + 1))
done
is "$(for loop in $loops; do kill -0 "$loop" 2> /dev/null && echo busy; done | wc -l)" 4 \
  'four loops were busy all the time'
is "$(sed -n '2,$s/^ *[0-9]* \(0x[0-9a-f]*\) .*/\1/p' "$out/runs" | sort -u | wc -l)" "$runs" \
  'each run had a seed of its own'
sed 's/^/# /' "$out/runs"

done_testing
