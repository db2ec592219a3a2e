#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The unit tests and the command have no finding under memcheck, and the sqlite plugin none in any
# check; the model stands in for it where it was left out, and is certified so by `make check-deep`.
# What a unit test does in a child on purpose (a crash, a leak) is that child's.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -n "${VALGRIND:-}" ] || skip_all 'Valgrind is left out of this build'
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers do not run under Valgrind'
scratch
cd "$top_builddir" || exit 99

memcheck() {
  "$VALGRIND" --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
    --show-leak-kinds=definite "$@"
}

for test in $UNIT_TESTS; do
  memcheck -q --child-silent-after-fork=yes "./$test" > "$scratch/out" 2> "$scratch/err"
  code=$?
  [ $code -eq 0 ]
  ok $? "$test" ||
    diag "exit $code; $(grep '^not ok' "$scratch/out"); $(head -n 40 "$scratch/err")"
done

# Everything that the command does for one check, and then the same under its own Valgrind.
memcheck -q --child-silent-after-fork=yes --log-file="$scratch/log" "$DURAKIT" check "$MODEL" \
  --only turn/birth --timeout-scale 20 > "$scratch/out" 2> "$scratch/err"
is $? 0 'the command itself has no finding' || diag "$(cat "$scratch/err" "$scratch/log")"
plugin=${SQLITE_PLUGIN:-}
[ -f "$plugin" ] || plugin=$MODEL
"$DURAKIT" certify "$plugin" -j2 --format tap > "$scratch/out" 2> "$scratch/err"
code=$?
# On a busy machine a race may be seen too seldom natively.
[ $code -eq 0 ] || [ $code -eq 7 ]
ok $? "${plugin##*/} keeps the contract natively and under memcheck" ||
  diag "exit $code; $(cat "$scratch/err"); $(grep -A 20 '^not ok' "$scratch/out")"
is "$(grep -c '^not ok .*@memcheck' "$scratch/out")" 0 'memcheck has no finding'
sed -n -e 's/^[not ]*ok [0-9]* - //p' "$scratch/out" | sed 's/ # .*//' > "$scratch/points"
grep -v '@memcheck$' "$scratch/points" > "$scratch/native"
sed -n 's/@memcheck$//p' "$scratch/points" | grep -v -x 'memory/cycle' | cmp -s - "$scratch/native"
ok $? 'both modes run the same checks' || diag "$(cat "$scratch/points")"

done_testing
