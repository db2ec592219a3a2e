#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A real pooler in transaction mode between: the plugin does all that it does without, but hear
# notifications, and leaves nothing in the sessions that it is lent.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
PATH=$PATH:/usr/sbin
command -v pgbouncer > /dev/null || skip_all 'pgbouncer is not installed (Debian: pgbouncer)'
if [ $# -eq 0 ]; then
  exec "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$0" '{kit}'
fi
[ -n "${DURAKIT_PG_LOG:-}" ] ||
  skip_all 'the server of DURAKIT_PG is not one of tests/with-postgres'
scratch
plugin=${PG_PLUGIN:-$top_builddir/providers/pg/.libs/pg.so}

# ---- the pooler: as the server's user, for it refuses to be root -------------------------------

owner=$(stat -c %U "$(dirname "$DURAKIT_PG_LOG")/data")
folder=$(mktemp -d /tmp/durakit-pooler.XXXXXX)
printf '"durakit" ""\n' > "$folder/users"
# One session for all: a client finds what the one before has left in it.
cat > "$folder/ini" <<END
[databases]
durakit = host=$PGHOST port=$PGPORT dbname=durakit
[pgbouncer]
unix_socket_dir = $folder
listen_port = 6432
auth_type = trust
auth_file = $folder/users
pool_mode = transaction
default_pool_size = 1
max_client_conn = 500
logfile = $folder/log
END
as_owner=
if [ "$(id -u)" -eq 0 ]; then
  chown -R "$owner" "$folder"
  as_owner="setpriv --reuid $owner --regid $(id -g "$owner") --clear-groups --"
fi
chmod 755 "$folder"
$as_owner pgbouncer -q "$folder/ini" > "$folder/out" 2>&1 &
pooler=$!
trap 'kill $pooler 2> /dev/null; wait; rm -rf "$scratch" "$folder"' EXIT
through="host=$folder port=6432 dbname=durakit user=durakit"
ask() { psql -X -q -A -t "$through" -c "$1" 2>&1; }
tries=0
until [ "$(ask 'SELECT 1')" = 1 ] || [ $tries -ge 600 ] || ! kill -0 $pooler 2> /dev/null; do
  tries=$((tries + 1))
  sleep 0.1
done
is "$(ask 'SELECT 1')" 1 'the pooler lends sessions out' || {
  diag "$(cat "$folder/out" "$folder/log" 2> /dev/null)"
  done_testing
}

# ---- the plugin through it ---------------------------------------------------------------------

# The state of a used session: each setting that differs from the one that the server begins with.
state() {
  ask "SELECT string_agg(name, ' ' ORDER BY name) FROM pg_catalog.pg_settings
         WHERE source = 'session' AND name NOT IN ('application_name', 'transaction_isolation')"
  ask "SELECT count(*) FROM pg_catalog.pg_prepared_statements WHERE name <> ''"
  ask "SELECT count(*) FROM pg_catalog.pg_locks WHERE locktype = 'advisory'"
  ask "SELECT count(*) FROM pg_catalog.pg_listening_channels()"
}
before=$(state)

# checks NAME WHAT: these checks of the kit pass.
checks() {
  "$DURAKIT" check "$plugin" --format tap --set "conninfo=$through" --only "$2" \
    > "$scratch/tap" 2> "$scratch/err"
  code=$?
  ok $code "$1" || diag "exit $code; $(cat "$scratch/err"); $(grep -A 12 '^not ok' "$scratch/tap")"
  [ "$(grep -c '^ok' "$scratch/tap")" -ge "$3" ]
  ok $? "$1: at least $3 checks have run" || diag "$(tail -n 5 "$scratch/tap")"
}

checks 'the plugin works through it' "turn/birth,turn/brings-all-in-order,turn/crowd,work/crowd,\
work/repeated-ack,work/others-hold-up-nobody,cancel/locked-row,cancel/held-and-more,\
cancel/ack-races-commit,cancel/same-after-reopening,hist/large,token/takeover-turn,\
call/other-process-wakes,call/cancelled-fetch-leaves-no-trace" 14
if [ -n "${DURAKIT_DEEP:-}" ]; then
  for area in turn work cancel hist token; do
    checks "$area, as a whole" "$area/*" 10
  done
fi
is "$(state)" "$before" 'nothing is left in a session: no setting, statement, lock or channel'

psql -X -q "$DURAKIT_PG_SUPER" \
  -c 'ALTER ROLE durakit SET default_transaction_isolation = serializable'
psql -X -q -A -t "$DURAKIT_PG_SUPER" -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE usename = 'durakit' AND pid <> pg_backend_pid()" > /dev/null
"$DURAKIT" probe "$plugin" --set "conninfo=$through" > "$scratch/out" 2>&1
is $? 4 'what cannot be set for a session that is lent is refused'
like "$(cat "$scratch/out")" 'DK_REFUSED: .*default_transaction_isolation.*pooler' 'with words'
done_testing
