#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A primary with a synchronous standby, two workers under load (tests/failover), and four ways in
# which another server replaces theirs.  Each has servers of its own.
#
#   kill     all processes of the primary are killed (-9), the standby is promoted
#   freeze   they are stopped (SIGSTOP), the standby is promoted; later they go on
#   back     they are killed, the standby is promoted; then the old primary is started again, as a
#            primary that waits for no standby, and the workers' sessions are ended: so they make
#            new ones, by conninfo, which names the old server first
#   live     nothing happens to the primary, and the standby is promoted in the middle of the load:
#            from then on no commit of the old primary is confirmed
#
# Nothing that was acknowledged is lost, no activity runs to its end twice, and the workers are at
# work again soon after the promotion.  No worker uses an old primary that came back.
#
#   RUNS=5 SCENARIOS='freeze back' tests/pg-failover.sh      so often [1], and these [all]
#   DURAKIT_FAILOVER_ORDERS=N   so many orders in each [250; live: 1000]
#   DURAKIT_FAILOVER_AFTER=MS   the standby is promoted so long after the event [3000; live: 0]
#   DURAKIT_FAILOVER_MS=MS      so long the workers may take [10000; 0: it is only told]
#   DURAKIT_FAILOVER_LOGS=DIR   what the workers have logged stays there
#   DURAKIT_STANDBY_TCP=1       the servers listen on 127.0.0.1, instead of sockets in folders
# needs: tests/failover/failover

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
. "$top_srcdir/tests/standby.sh"
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers find libpq'\''s own'
plugin=${PG_PLUGIN:-$top_builddir/providers/pg/.libs/pg.so}
program=$top_builddir/tests/failover/failover

# ---- one of them, beside the server of tests/with-postgres ---------------------------------------

# What is done to the servers: scripts, each to be run once.
write_commands() {
  cat > "$scratch/kill" <<END
first=\$(sed -n 1p '$folder/data/postmaster.pid')
kill -STOP "\$first"
kill -KILL "\$first" \$(ps -o pid= --ppid "\$first")
while kill -0 "\$first" 2> /dev/null; do sleep 0.05; done
END
  echo "$promote" > "$scratch/promote"
  cat > "$scratch/back" <<END
set -e
cd '$folder'
$owner_runs sh -c 'sed -i /synchronous_standby_names/d data/postgresql.auto.conf
  printf "%s\n" "log_statement = all" "log_connections = on" >> data/postgresql.auto.conf
  rm -f data/postmaster.pid'
$owner_runs '$(command -v pg_ctl)' start -D data -l back.log -s -w -t 120 > /dev/null
psql -X -q -At -h '$new_host' -p '$new_port' -U postgres -d '$PGDATABASE' -c "SELECT count(*) FROM
  (SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '$PGUSER') AS t" \
  > '$scratch/ended'
END
}

# No worker has used it, and the workers log why they do not.
judge_old() {
  ended=$(cat "$scratch/ended")
  [ "$ended" -ge 2 ]
  ok $? "sessions of the workers were ended: $ended"
  came=$(grep -c "connection authorized: user=$PGUSER " "$folder/back.log")
  [ "$came" -ge 1 ]
  ok $? "the old primary was tried, so often: $came"
  is "$(grep -c '"failover"\.' "$folder/back.log")" 0 'and not asked for anything of the store'
  is "$(standby_ask "$old_host" "$old_port" \
    'SELECT timeline_id FROM pg_control_checkpoint()')" 1 'it is alive, on its old timeline'
  like "$(cat "$scratch/log")" '^worker .*was superseded' 'the workers log why'
}

# The program's points are one of ours; its details are in the log.
run_program() {
  "$program" -n "${DURAKIT_FAILOVER_ORDERS:-250}" -w "${DURAKIT_FAILOVER_AFTER:-3000}" \
    -s "${DURAKIT_FAILOVER_MS:-10000}" "$@" "$plugin" "conninfo=$both" schema=failover \
    > "$scratch/out" 2> "$scratch/log"
  ok $? "$scenario: all holds" || diag "$(grep -v '^#' "$scratch/log" | tail -n 20 | cut -c 1-300)"
  diag "$(grep -e '^not ok' -e '^Bail' "$scratch/out"; sed -n 's/^# //p' "$scratch/log")"
  [ -z "${DURAKIT_FAILOVER_LOGS-}" ] ||
    cp "$scratch/log" "$DURAKIT_FAILOVER_LOGS/$scenario-${number:-1}.log"
}

run_scenario() {
  scenario=$1
  scratch
  standby_make
  write_commands
  case $scenario in
    kill) run_program -e "sh $scratch/kill" -m "sh $scratch/promote" ;;
    freeze) run_program -e "$DURAKIT_PG_PAUSE" -m "sh $scratch/promote" -b "$DURAKIT_PG_RESUME" ;;
    back)
      run_program -e "sh $scratch/kill" -m "sh $scratch/promote" -b "sh $scratch/back"
      judge_old
      ;;
    live)
      run_program -e true -w "${DURAKIT_FAILOVER_AFTER:-0}" -n "${DURAKIT_FAILOVER_ORDERS:-1000}" \
        -m "sh $scratch/promote"
      ;;
    *) standby_fail "$scenario: no scenario" ;;
  esac
  done_testing
}

# ---- all of them ---------------------------------------------------------------------------------

[ "${1-}" != --scenario ] || run_scenario "$2"
[ -f "$plugin" ] && [ -x "$program" ] || skip_all 'the plugin or tests/failover is not built'
[ -z "${DURAKIT_PG-}" ] || skip_all 'the server of DURAKIT_PG is not one of tests/with-postgres'
"$top_srcdir/tests/with-postgres" -q true 2> /dev/null || skip_all 'postgres is not installed'
export top_srcdir top_builddir number
number=1
while [ "$number" -le "${RUNS:-1}" ]; do
  for scenario in ${SCENARIOS:-kill freeze back live}; do
    out=$("$top_srcdir/tests/with-postgres" -q "${SHELL:-sh}" "$0" --scenario "$scenario" 2>&1)
    ok $? "run $number: $scenario"
    diag "$(printf '%s\n' "$out" | sed -e 's/^# //' -e '/^1\.\./d')"
  done
  number=$((number + 1))
done

done_testing
