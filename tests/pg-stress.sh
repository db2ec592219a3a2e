#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The PostgreSQL plugin under stress (tests/stress), in real time: callers that compete for the same
# rows, processes that are killed, connections that are cut at both ends, a server that crashes.
# The program stress reports what must hold (stress.sh has what it finds); the server's log reports
# deadlocks.
#
#   DURAKIT_DEEP=1    much longer
# needs: tests/stress/stress

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
if [ -z "${DURAKIT_PG_LOG-}" ]; then
  [ -z "${DURAKIT_PG-}" ] || skip_all 'needs a server of its own, and DURAKIT_PG names another'
  [ -z "${PG_STRESS_AGAIN-}" ] || skip_all 'there is no log of the server'
  exec env PG_STRESS_AGAIN=1 "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$0"
fi
scratch
plugin=${PG_PLUGIN:-$top_builddir/providers/pg/.libs/pg.so}
cross=500 kills=10 cuts=40 ends=40 crashes=3 life=200
[ -z "${DURAKIT_DEEP-}" ] || { cross=25000 kills=120 cuts=1000 ends=1000 crashes=50 life=2000; }

# stress NAME WHAT ARGUMENT...: in a schema of its own, which stays if it is to be looked at.
stress() {
  schema=stress-$1
  what=$2
  shift 2
  run_ok "$what: the invariants hold" "$top_builddir/tests/stress/stress" "$@" "$plugin" \
    "conninfo=$DURAKIT_PG" "schema=$schema" || return
  run_ok "$what: nothing is left in the queues" test "$(psql -X -A -t -c "
    SELECT (SELECT count(*) FROM \"$schema\".message) + (SELECT count(*) FROM \"$schema\".work)
      + (SELECT count(*) FROM \"$schema\".instance WHERE ready_at IS NOT NULL)")" = 0
  psql -X -q -c "DROP SCHEMA \"$schema\" CASCADE" > /dev/null 2>&1
}

# A backend of this role, but not the one that asks; none may be there while they connect again.
end_one="for try in 1 2 3 4 5 6 7 8 9; do
  psql -X -q -A -t -c \"SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE usename = current_user AND pid <> pg_backend_pid() AND query LIKE '%stress-ended%'
  ORDER BY state, random() LIMIT 1\" > '$scratch/ended' || exit
  ! grep -q t '$scratch/ended' || break; done"

stress cross "16 callers on 4 instances" -p 4 -t 4 -i 4 -o -n "$cross"
stress cold "4 processes that read each history again" -p 4 -t 2 -n "$cross"
is "$(grep -c ' 40P01 ' "$DURAKIT_PG_LOG")" 0 'the server has seen no deadlock'
stress killed "4 processes, one killed $kills times" -p 4 -k "$kills" -w "$life" -l 2000
stress cut "$cuts sockets shut by the client" -p 2 -k "$cuts" -c -w 50 -l 1000
stress ended "$ends connections ended by the server" -p 2 -k "$ends" -x "$end_one" -w 20 -l 1000
ended=$(grep -c ' 57P01 FATAL:' "$DURAKIT_PG_LOG")
# One that was on its way out already does not say that it was ended.
[ "$ended" -ge $((ends * 9 / 10)) ]
ok $? "so many have ended: $ended"
stress crashed "the server crashes $crashes times" -p 2 -k "$crashes" -w 300 -l 2000 \
  -x "$DURAKIT_PG_CRASH && $DURAKIT_PG_START"
is "$(grep -c ' 40P01 ' "$DURAKIT_PG_LOG")" 0 'nor one among all that'

done_testing
