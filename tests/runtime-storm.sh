#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runtimes in a storm (tests/storm): processes that are killed, one that is stopped, a store that is
# unreachable for a while, cancellations requested meanwhile.  Nothing fails, nothing is done twice.
# And the storm finds a store that loses completions, or does not delete what was cancelled.
#
#   DURAKIT_DEEP=1    1,000 instances, the store unreachable for a minute; on PostgreSQL too
# needs: tests/storm/storm providers/sqlite/test-file

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -n "${DURAKIT_DEEP-}" ] || [ ! -w /dev/shm ] || TMPDIR=/dev/shm
scratch
sqlite=${SQLITE_PLUGIN:-$top_builddir/providers/sqlite/.libs/sqlite.so}
pg=${PG_PLUGIN:-$top_builddir/providers/pg/.libs/pg.so}
model=${MODEL:-$top_builddir/conformance/model/.libs/model.so}
instances=60 kills=3 away=700 stop=500
[ -z "${DURAKIT_DEEP-}" ] || { instances=1000 kills=20 away=60000 stop=5000; }

storm() {
  "$top_builddir/tests/storm/storm" "$@" > "$scratch/out" 2>&1
}

# holds WHAT ARGUMENT...: and its counts are printed.
holds() {
  what=$1
  shift
  storm -n "$instances" -k "$kills" -w "$away" -s "$stop" "$@"
  ok $? "$what: all holds" || diag "$(grep -v '^ok' "$scratch/out")"
  diag "$(sed -n 's/^# //p' "$scratch/out")"
}

# finds MUTANT POINT OPTION...: the point that fails.
finds() {
  mutant=$1 point=$2
  shift 2
  rm -f "$scratch/store"
  storm -p 1 -k 0 -n 20 -q 2000 -s 100 -l 1000 "$@" "$model" "mutant=$mutant" "store=$scratch/store"
  [ $? -ne 0 ]
  ok $? "$mutant is found" || diag "$(cat "$scratch/out")"
  like "$(cat "$scratch/out")" "^not ok .*$point" 'and it is reported what does not hold'
}

if [ -f "$sqlite" ]; then
  holds 'SQLite' "$sqlite" "store=$scratch/db"
  [ -z "${DURAKIT_DEEP-}" ] ||
    holds 'SQLite, by renewals' -r "$sqlite" "store=$scratch/by-renewal"
  run_ok 'SQLite: the file is sound, and nothing is left in it' \
    "$top_builddir/providers/sqlite/test-file" "$scratch/db"
else
  skip 'SQLite' 'the plugin is not built'
fi

finds work/completion-lost 'all 20 instances end'
finds cancel/nothing-deleted 'the queues are empty'

if [ -n "${DURAKIT_DEEP-}" ] && [ -f "$pg" ]; then
  cat > "$scratch/pg" <<'SH'
exec "$0" "$@" -d "$DURAKIT_PG_PAUSE" -u "$DURAKIT_PG_RESUME" "$PG_PLUGIN" \
  "conninfo=$DURAKIT_PG" schema=storm
SH
  PG_PLUGIN=$pg "$top_srcdir/tests/with-postgres" -q --tap \
    sh -c "$(cat "$scratch/pg")" "$top_builddir/tests/storm/storm" \
    -n "$instances" -k "$kills" -w "$away" -s "$stop" > "$scratch/out" 2>&1
  ok $? 'PostgreSQL, stopped where it is: all holds' || diag "$(grep -v '^ok' "$scratch/out")"
  diag "$(sed -n 's/^# //p' "$scratch/out")"
fi

done_testing
