#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The PostgreSQL plugin keeps the whole contract: as a plain role, on a server that the kit may
# crash, stop, cut off and deny; and some of it under Valgrind (make conformance-valgrind: all).

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers find libpq'\''s own'
if [ $# -eq 0 ]; then
  exec "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$0" '{kit}'
fi
scratch
plugin=${PG_PLUGIN:-$top_builddir/providers/pg/.libs/pg.so}

# On a server of the user's only what cannot harm others: nothing is inside.
whole=${DURAKIT_PG_LOG:+1}

# points PATTERN: how many test points of the report look so.
points() { grep -c "$1" "$scratch/out" || :; }

# why: what failed, and what the command said beside its progress.
why() {
  printf 'exit %s\n' "$code"
  grep -A 25 '^not ok' "$scratch/out"
  grep -v '^durakit: [0-9]* of ' "$scratch/err"
}

"$DURAKIT" certify "$plugin" --no-memcheck --format tap "$@" \
  > "$scratch/out" 2> "$scratch/err"
code=$?
# On a busy machine a race may be seen too seldom.
[ $code -eq 0 ] || { [ $code -eq 7 ] && ! grep -q flaky "$scratch/out"; }
ok $? 'the contract is kept' ||
  diag "$(why)"
[ "$(points '^ok')" -gt 250 ]
ok $? "by all of its checks: $(points '^ok')"
if [ -n "$whole" ]; then
  is "$(grep '^ok.*# SKIP' "$scratch/out" | grep -v 'sessions\|durakit\.\|a store in files')" \
    '' 'nothing is left out'
  is "$(grep -c ' 40P01 ' "$DURAKIT_PG_LOG")" 0 'the server saw no deadlock' ||
    diag "$(grep -A 4 ' 40P01 ' "$DURAKIT_PG_LOG")"
  is "$(psql -X -A -t -c "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'durakit%'")" 0 \
    'no store is left on the server'
  is "$(psql -X -A -t -c "SELECT string_agg(rolname, ' ') FROM pg_roles
    WHERE rolname = current_user AND NOT (rolsuper OR rolcreatedb OR rolcreaterole)")" durakit \
    'the role is a plain one'
fi

if [ -z "${VALGRIND:-}" ]; then
  skip 'memcheck has no finding' 'Valgrind is left out of this build'
else
  some=memory/cycle,turn/birth,turn/same-after-reopening,ack/fat-commit,cancel/report-stolen
  some=$some,call/returns-new-work,err/refusals-of-commit,hist/reads-what-is-asked,abi/destroy-*
  "$DURAKIT" check "$plugin" --memcheck --format tap --timeout-scale 4 "$@" --only "$some" \
    > "$scratch/out" 2> "$scratch/err"
  code=$?
  [ $code -eq 0 ] && [ "$(points '^ok')" -gt 3 ]
  ok $? "memcheck has no finding in $(points '^ok') checks" ||
    diag "$(why)"
fi

done_testing
