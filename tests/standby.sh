# SPDX-License-Identifier: Apache-2.0
# A synchronous standby beside the server of tests/with-postgres.  Source it behind tap.sh, beside
# that server, and say standby_make; it ends with the script.  Then there are
#
#   $folder $standby       the folder of the server, and that of the standby's data
#   $old_host $old_port    where the primary listens, and the standby
#   $new_host $new_port
#   $both                  conninfo of the one of the two that takes writes, the primary first
#   $promote               a command for sh that promotes the standby
#   as_owner COMMAND...    as the user that both belong to
#
# With DURAKIT_STANDBY_TCP=1 both listen on 127.0.0.1, else on sockets in folders.

standby_fail() {
  echo "Bail out! $*"
  exit 99
}

as_owner() {
  $owner_runs "$@"
}

standby_find_owner() {
  folder=$(dirname "$DURAKIT_PG_LOG")
  owner=$(stat -c %U "$folder/data")
  owner_runs=
  [ "$(id -u)" -ne 0 ] ||
    owner_runs="setpriv --reuid $owner --regid $(id -g "$owner") --clear-groups --inh-caps=-all --"
  cd "$folder" || exit 99
}

standby_choose_places() {
  standby=$folder/standby
  old_host=$folder new_host=$folder/s old_port=$PGPORT new_port=$PGPORT standby_more=
  as_owner mkdir -m 700 "$folder/s" || standby_fail "no folder for the standby's socket"
  [ -n "${DURAKIT_STANDBY_TCP-}" ] || return 0
  old_port=$((20000 + $$ % 20000 * 2)) new_port=$((20001 + $$ % 20000 * 2))
  old_host=127.0.0.1 new_host=127.0.0.1 standby_more="listen_addresses = '127.0.0.1'"
  as_owner sh -c "cat >> '$folder/data/postgresql.conf'" <<END
$standby_more
port = $old_port
END
  as_owner pg_ctl restart -D "$folder/data" -l "$folder/log" -s -w -m fast > /dev/null ||
    standby_fail "$(tail -n 5 "$folder/log")"
}

standby_start() {
  as_owner pg_basebackup -h "$old_host" -p "$old_port" -U postgres -D "$standby" -R -c fast \
    --no-sync > "$folder/backup.log" 2>&1 || standby_fail "$(cat "$folder/backup.log")"
  as_owner sh -c "cat >> '$standby/postgresql.conf'" <<END
$standby_more
port = $new_port
unix_socket_directories = '$folder/s'
END
  as_owner pg_ctl start -D "$standby" -l "$folder/standby.log" -s -w -t 120 > /dev/null ||
    standby_fail "$(cat "$folder/standby.log")"
}

# The folder is the server's, and ends with it; the standby's processes would not.
standby_stop() {
  as_owner pg_ctl stop -D "$standby" -m immediate -s > /dev/null 2>&1
}

# standby_ask HOST PORT SQL: as the superuser.
standby_ask() {
  psql -X -q -At -v ON_ERROR_STOP=1 -h "$1" -p "$2" -U postgres -d "$PGDATABASE" -c "$3"
}

# From here on a commit is acknowledged when the standby has it.
standby_wait() {
  standby_ask "$old_host" "$old_port" "ALTER SYSTEM SET synchronous_standby_names = '*'" &&
    standby_ask "$old_host" "$old_port" 'SELECT pg_reload_conf()' > /dev/null ||
    standby_fail 'the primary takes no settings'
  tries=600
  until [ "$(standby_ask "$old_host" "$old_port" \
    "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")" = 1 ]; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || standby_fail 'the standby does not follow'
    sleep 0.1
  done
}

standby_make() {
  [ -n "${DURAKIT_PG_LOG:-}" ] ||
    skip_all 'the server of DURAKIT_PG is not one of tests/with-postgres'
  command -v pg_basebackup > /dev/null || skip_all 'pg_basebackup is not installed'
  standby_find_owner
  standby_choose_places
  trap 'standby_stop; rm -rf "${scratch:-}"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  standby_start
  standby_wait
  both="host=$old_host,$new_host port=$old_port,$new_port dbname=$PGDATABASE user=$PGUSER"
  both="$both target_session_attrs=read-write"
  promote="cd '$folder' && $owner_runs '$(command -v pg_ctl)' promote -D '$standby' -s -w"
}
