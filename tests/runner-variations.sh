#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Variations of checks: which are run, what they are called, and that they find what the check
# itself does not.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
scratch
cd "$scratch" || exit 99

# ---- one of them ---------------------------------------------------------------------------------

lost='--set mutant=queue/large-empty-again'
"$DURAKIT" check "$MODEL" $lost --only turn/lease-end-frees > tap 2> err
is $? 0 'a check with small payloads passes a provider that loses large ones'
"$DURAKIT" check "$MODEL" $lost --only 'turn/lease-end-frees~payload-1025' --out out > tap 2> err
is $? 1 'with 1,025 bytes more in each payload it does not'
like "$(cat tap)" '^not ok 1 - turn/lease-end-frees~payload-1025$' 'under an id of its own'
like "$(cat tap)" 'found: "a payload came back shorter than it was stored"' 'in words'
like "$(cat tap)" "repro: .*--only .turn/lease-end-frees~payload-1025" \
  'with the command that repeats it'
"$DURAKIT" repro 'out/results.jsonl:turn/lease-end-frees~payload-1025' > tap 2> err
is $? 1 'as repro does'

"$DURAKIT" check "$MODEL" --only 'queue/*' > plain 2> err
is "$(grep -c '~' plain)" 0 'a pattern without ~ selects no variation'
"$DURAKIT" check "$MODEL" --only 'queue/*~odd-ids' > varied 2> err
is $? 0 'the model passes with odd ids' || diag "$(cat varied)"
is "$(grep -c '^ok' varied)" "$(grep -c '~odd-ids$' varied)" 'one with ~ selects these alone'
"$DURAKIT" check "$MODEL" --only 'queue/for-any-instance~odd' > tap 2> err
is $? 2 'an unknown variation is refused'

# Each of them is seen to vary something: a mutant that only it finds.
while read -r mutant check variation; do
  "$DURAKIT" check "$MODEL" --set "mutant=$mutant" --only "$check" > tap 2> err
  is $? 0 "$mutant passes $check"
  "$DURAKIT" check "$MODEL" --set "mutant=$mutant" --only "$check~$variation" > tap 2> err
  is $? 1 "and not $check~$variation" || diag "$(cat tap)"
done << 'FOUND'
queue/large-empty-again queue/delivered-keep-their-place payload-32769
turn/lock-per-handle turn/locked-stays-away two-handles
turn/lock-not-stored turn/locked-stays-away reopened
turn/lock-per-process turn/locked-stays-away two-processes
queue/payload-1024-empty queue/any-payload payload-1k
turn/max-bytes-signed turn/brings-all-in-order limits-64
cancel/many-is-a-range cancel/absent-and-twice unsorted-10000
work/cut-when-given-back token/fresh-every-time given-back+mixed+limits
cancel/stolen-first-token cancel/report-stolen expired
token/turn-token-not-compared turn/birth taken-over
del/in-any-case turn/known-head neighbours
FOUND

# ---- how many ------------------------------------------------------------------------------------

count() {
  "$DURAKIT" certify "$MODEL" --profile admin --no-memcheck --format tap "$@" > tap 2> err
  code=$?
  [ $code -eq 0 ] || diag "$(grep -v '^ok' tap)"
  grep -c '^ok' tap
}
quick=$(count --effort quick)
is "$(grep -c '~' tap)" 0 'certify --effort quick runs no variation'
default=$(count)
[ "$default" -gt "$((2 * quick))" ] && [ "$default" -le "$((3 * quick))" ]
ok $? "certify runs each check in one or two of them: $default of $quick"
is "$(count --effort default)" "$default" 'which is the default'
[ "$(count --effort deep)" -gt "$((5 * quick))" ]
ok $? '--effort deep runs all'
"$DURAKIT" certify "$MODEL" --effort high > tap 2> err
is $? 2 'an unknown effort is refused'
like "$(cat err)" 'expected  quick, default or deep' 'with what there is'

done_testing
