#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The profile `runtime`: the model and SQLite pass all of it; it is in every listing; and a sample
# of the negative controls (all of them: runner-runtime-controls.sh, in make check-deep).

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
scratch
cd "$scratch" || exit 99

# ---- what there is -------------------------------------------------------------------------------

"$DURAKIT" list checks --profile runtime | sed 's/ .*//' > runs
"$DURAKIT" list checks | sed 's/ .*//' > core
"$DURAKIT" list checks --profile all | sed 's/ .*//' > all
n=$(wc -l < runs | tr -d ' ')
[ "$n" -gt 40 ]
ok $? "there are checks of the runtime: $n"
is "$(grep -cv '^run/' runs)" 0 'and nothing else is of the profile runtime'
is "$(grep -c '^run/' core)" 0 'none is of the profile core, the usual one'
cat core runs | cmp -s - all
ok $? 'the profile all has both'
like "$("$DURAKIT" explain run/token)" 'Profile' 'explain says where a check of the runtime belongs'
like "$("$DURAKIT" explain run/token)" 'cancel/only-unlocked' 'and on which mutant it fails'
like "$("$DURAKIT" certify --help)" '--profile runtime' 'the help shows the profile'
"$DURAKIT" certify "$MODEL" --profile fast > out 2> err
is $? 2 'another profile is refused'
like "$(cat err)" 'core, admin, runtime or all' 'with those that there are'

# ---- providers that are right --------------------------------------------------------------------

# certifies NAME PLUGIN
certifies() {
  "$DURAKIT" certify "$2" --profile runtime --no-memcheck -j8 --format tap --out "$1" \
    > "$1.tap" 2> "$1.err"
  is $? 0 "$1 passes" ||
    diag "$(cat "$1.err")$(sed -n '/^not ok/,/^  \.\.\./p' "$1.tap")"
  is "$(grep -c '^ok' "$1.tap")" "$n" "$1: each check has its point"
  is "$(grep -c '# SKIP' "$1.tap")" 0 "$1: none is left out"
  like "$(cat "$1.tap")" '^# seed .*, profile runtime, ' "$1: the head names the profile"
  like "$(head -1 "$1/results.jsonl")" '"profile": *"runtime"' "$1: the results name the profile"
}

certifies model "$MODEL"
if [ -f "${SQLITE_PLUGIN:-}" ]; then
  certifies sqlite "$SQLITE_PLUGIN"
fi

# All of them under Valgrind: make conformance-valgrind.
if [ -z "${VALGRIND:-}" ] || [ -n "${SANITIZER_CFLAGS:-}" ]; then
  skip 'some under memcheck' 'Valgrind is left out of this build'
else
  some=run/select-timeout,run/late-result,run/cancel-instance-by-renewal
  "$DURAKIT" check "$MODEL" --profile runtime --memcheck --only "$some" --format tap > out 2> err
  is $? 0 'some pass under memcheck' || diag "$(cat err)$(sed -n '/^not ok/,/^  \.\.\./p' out)"
  is "$(grep -c '^ok .*@memcheck' out)" 3 'and that was memcheck'
fi

# ---- providers that are wrong --------------------------------------------------------------------

# fails MUTANT CHECK...: each of them fails on the model with this mutant.
fails() {
  mutant=$1
  shift
  "$DURAKIT" check "$MODEL" --set "mutant=$mutant" --only "$(echo "$*" | tr ' ' ',')" -j8 \
    --timeout-scale "$scale" --format tap > out 2> err
  for check in "$@"; do
    like "$(cat out)" "^not ok [0-9]* - $check\$" "$check fails on $mutant"
  done
}

sed -n 's/^CONTROL("\(.*\)", "\(.*\)")$/\1 \2/p' \
  "$top_srcdir/conformance/runtime/controls.def" > controls
is "$(sed 's/ .*//' controls)" "$(cat runs)" 'each check has a negative control'
# What does not happen is waited for as long as patience lasts, and that is what a scale scales.
if [ "${ALL_CONTROLS:-}" ]; then
  scale=0.25
  for mutant in $(sed 's/.* //' controls | sort -u); do
    # shellcheck disable=SC2046
    fails "$mutant" $(sed -n "s|^\(.*\) $mutant\$|\1|p" controls)
  done
else
  scale=0.1
  fails cancel/ack-of-deleted-enqueues run/late-result
  fails cancel/only-unlocked run/select-timeout run/mass run/token
fi

done_testing
