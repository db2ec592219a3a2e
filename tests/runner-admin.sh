#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The profile `admin`: what durakit.admin/1 is judged by.  Every provider that declares it is judged
# by that with its core; if a provider does not declare it, the run reports that.
# needs: conformance/fixtures/zoo/honest-memory.so

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
scratch
cd "$scratch" || exit 99

# ---- what there is -------------------------------------------------------------------------------

"$DURAKIT" list checks --profile admin | sed 's/ .*//' > admin
"$DURAKIT" list checks | sed 's/ .*//' > core
n=$(wc -l < admin | tr -d ' ')
[ "$n" -gt 70 ]
ok $? "there are checks of durakit.admin/1: $n"
is "$(sed 's,/.*,,' admin | sort -u | paste -sd ' ' -)" 'admin del prune random work' \
  'of three areas, and two that read and remove beside others'
is "$(grep -cxFf admin core)" "$n" 'all of them are of the profile core, the usual one, too'
is "$(grep -c '^admin/\|^del/\|^prune/' core)" "$(grep -c '^admin/\|^del/\|^prune/' admin)" \
  'and the core has no others of these areas'

# ---- who declares it -----------------------------------------------------------------------------

# judged NAME PLUGIN: on a busy machine a race may be seen too seldom to be judged, and that is all.
judged() {
  "$DURAKIT" certify "$2" --profile admin --effort quick --no-memcheck -j2 --format tap \
    > "$1.tap" 2> "$1.err"
  is "$(grep '^  verdict: ' "$1.tap" | grep -v '"unexercised"')" '' "$1 fails nothing" ||
    diag "$(cat "$1.err")$(sed -n '/^not ok/,/^  \.\.\./p' "$1.tap")"
  is "$(grep -c '^ok\|^not ok' "$1.tap")" "$n" "$1: each check has its point"
  is "$(grep -c '# SKIP' "$1.tap")" 0 "$1: none is left out"
  like "$(cat "$1.tap")" '^# seed .*, profile admin, ' "$1: the head names the profile"
}

judged model "$MODEL"
if [ -f "${SQLITE_PLUGIN:-}" ]; then
  judged sqlite "$SQLITE_PLUGIN"
fi

"$DURAKIT" check "$MODEL" --set mutant=del/running-goes --only del/not-over-stays --format tap > out
is $? 1 'one that deletes what runs fails'
like "$(cat out)" 'DEL-2' 'and the clause is named'

# ---- a provider that does not --------------------------------------------------------------------

plain=$top_builddir/conformance/fixtures/zoo/honest-memory.so
if [ -f "$plain" ]; then
  "$DURAKIT" check "$plain" --profile admin --format tap > plain.tap 2> plain.err
  is "$(grep -c '# SKIP the provider does not declare durakit.admin/1$' plain.tap)" "$n" \
    'one that does not declare it is not judged by it, and the reason is printed'
  is "$(grep -c '^not ok' plain.tap)" 0 'and fails nothing'
else
  skip 'one that does not declare it' 'the zoo is not built'
fi

done_testing
