#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A real standby beside the server of tests/with-postgres, for providers/pg/test-standby: it reads
# there, and goes on there when the primary is gone and the standby has been promoted.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers find libpq'\''s own'
if [ $# -eq 0 ]; then
  exec "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$0" '{kit}'
fi
[ -n "${DURAKIT_PG_LOG:-}" ] ||
  skip_all 'the server of DURAKIT_PG is not one of tests/with-postgres'
command -v pg_basebackup > /dev/null || skip_all 'pg_basebackup is not there'
folder=$(dirname "$DURAKIT_PG_LOG")
standby=$folder/standby
owner=$(stat -c %U "$folder/data")
as_owner=
[ "$(id -u)" -ne 0 ] ||
  as_owner="setpriv --reuid $owner --regid $(id -g "$owner") --clear-groups --inh-caps=-all --"

# The folder is the server's, and it ends with it; but its processes would not.
stop_standby() {
  $as_owner pg_ctl stop -D "$standby" -m immediate -s > /dev/null 2>&1
}
trap stop_standby EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

cd "$folder" || exit 99
$as_owner pg_basebackup -h "$PGHOST" -p "$PGPORT" -U postgres -D "$standby" -R -c fast --no-sync \
  > "$folder/backup.log" 2>&1 || {
  cat "$folder/backup.log" >&2
  exit 99
}
$as_owner sh -c "echo \"port = 5433\" >> '$standby/postgresql.conf'"
$as_owner pg_ctl start -D "$standby" -l "$folder/standby.log" -s -w -t 120 > /dev/null || {
  cat "$folder/standby.log" >&2
  exit 99
}
# From here on a commit is acknowledged when the standby has it.
psql -X -q "$DURAKIT_PG_SUPER" -c "ALTER SYSTEM SET synchronous_standby_names = '*'" \
  -c 'SELECT pg_reload_conf()' > /dev/null || exit 99

DURAKIT_PG_STANDBY="host=$PGHOST port=5433 dbname=$PGDATABASE user=$PGUSER"
DURAKIT_PG_BOTH="host=$PGHOST,$PGHOST port=$PGPORT,5433 dbname=$PGDATABASE user=$PGUSER"
DURAKIT_PG_PROMOTE="cd '$folder' && $as_owner $(command -v pg_ctl) promote -D '$standby' -s -w"
export DURAKIT_PG_STANDBY DURAKIT_PG_BOTH DURAKIT_PG_PROMOTE
"$top_builddir/providers/pg/test-standby"
