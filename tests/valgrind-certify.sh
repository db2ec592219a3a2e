#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The sqlite plugin keeps the contract, and has no finding under memcheck: in what allocates and
# deletes most, in its ends, and in whole cycles.  The model stands in for it where it was left out.
#
#   DURAKIT_DEEP=1    in any check, as `durakit certify` does it

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -n "${VALGRIND:-}" ] || skip_all 'Valgrind is left out of this build'
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers do not run under Valgrind'
scratch
plugin=${SQLITE_PLUGIN:-}
[ -f "$plugin" ] || plugin=$MODEL
some=memory/cycle,abi,ack,cancel
patiently='-j2 --format tap --timeout-scale 4'

# keeps WHAT EXIT STREAM: on a busy machine a race may be seen too seldom natively.
keeps() {
  [ "$2" -eq 0 ] || [ "$2" -eq 7 ]
  ok $? "${plugin##*/} $1" || diag "exit $2; $(cat "$3.err"); $(grep -A 20 '^not ok' "$3")"
}

# names STREAM: the points, of both modes.
names() {
  sed -n -e 's/^[not ]*ok [0-9]* - //p' "$1" | sed 's/ # .*//'
}

cd "$scratch" || exit 99
if [ -n "${DURAKIT_DEEP-}" ]; then
  "$DURAKIT" certify "$plugin" $patiently > both 2> both.err
  keeps 'keeps the contract natively and under memcheck' $? both
else
  "$DURAKIT" certify "$plugin" $patiently --no-memcheck > native 2> native.err
  keeps 'keeps the contract natively' $? native
  "$DURAKIT" check "$plugin" $patiently --memcheck --only "$some" > memcheck 2> memcheck.err
  keeps "keeps it under memcheck: $some" $? memcheck
  "$DURAKIT" check "$plugin" $patiently --only "$some" > native.some 2> native.some.err
  cat native.some memcheck > both
fi
is "$(grep -c '^not ok .*@memcheck' both)" 0 'memcheck has no finding'
names both | grep -v '@memcheck$' > points.native
names both | sed -n 's/@memcheck$//p' | grep -v -x 'memory/cycle' > points.memcheck
[ "$(wc -l < points.memcheck)" -gt 50 ] && cmp -s points.memcheck points.native
ok $? 'both modes run the same checks' || diag "$(diff points.native points.memcheck)"

done_testing
