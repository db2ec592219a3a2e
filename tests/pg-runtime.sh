#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The PostgreSQL plugin passes the profile `runtime`.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers find libpq'\''s own'
if [ $# -eq 0 ]; then
  exec "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$0" '{kit}'
fi
scratch
plugin=${PG_PLUGIN:-$top_builddir/providers/pg/.libs/pg.so}
n=$("$DURAKIT" list checks --profile runtime | wc -l | tr -d ' ')

"$DURAKIT" certify "$plugin" --profile runtime --no-memcheck -j4 --format tap "$@" \
  > "$scratch/out" 2> "$scratch/err"
is $? 0 'it passes' ||
  diag "$(cat "$scratch/err")$(sed -n '/^not ok/,/^  \.\.\./p' "$scratch/out")"
is "$(grep -c '^ok' "$scratch/out")" "$n" 'each check has its point'
is "$(grep -c '# SKIP' "$scratch/out")" 0 'none is left out'

done_testing
