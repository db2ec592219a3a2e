#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A command on a server whose synchronous standby is unreachable reports that, and ends.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers find libpq'\''s own'
[ -f "${PG_PLUGIN:-}" ] || skip_all 'the pg plugin was left out'
if [ $# -eq 0 ]; then
  [ -z "${DURAKIT_PG:-}" ] || skip_all 'this is a user'\''s server: its settings stay as they are'
  exec "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$0" here
fi
scratch
cd "$scratch" || exit 99
on="--provider $PG_PLUGIN --settings settings"
echo "conninfo=$DURAKIT_PG" > settings
# shellcheck disable=SC2086
run_ok 'a store' "$DURAKIT" start order-1 --name order --create $on
run_ok 'a synchronous standby that does not exist' psql -q -X "$DURAKIT_PG_SUPER" \
  -c "ALTER SYSTEM SET synchronous_standby_names = 'absent'" -c 'SELECT pg_reload_conf()'
# shellcheck disable=SC2086
timeout 120 "$DURAKIT" start order-2 --name order $on --patience 9s > out.txt 2> err.txt
is "$? $(cat out.txt)" '4 ' 'a start ends without it'
like "$(cat err.txt)" 'has not answered for 3 s' 'it says that it waits'
like "$(cat err.txt)" 'synchronous standby' 'and for what'
like "$(cat err.txt)" 'it may have happened or not' 'and that it may have happened'

# A deletion that waits for it, is cancelled, and is asked for again.
# shellcheck disable=SC2086
timeout 120 "$DURAKIT" delete order-1 --force $on --patience 4s > out.txt 2> err.txt
is $? 4 'a deletion ends without it'
like "$(cat err.txt)" 'DK_OUTCOME_UNKNOWN' 'and its outcome is unknown'
like "$(cat err.txt)" 'it may have happened or not' 'and that it may have happened'
run_ok 'no standby' psql -q -X "$DURAKIT_PG_SUPER" \
  -c 'ALTER SYSTEM RESET synchronous_standby_names' -c 'SELECT pg_reload_conf()'
# shellcheck disable=SC2086
"$DURAKIT" start order-1 --name order $on > out.txt 2> err.txt
like "$? $(cat out.txt)" '^[01] order-1: ' 'it is there, or is made again'

# A server that is frozen while an instance is waited for, or from the beginning.
(cd / && sh -c "$DURAKIT_PG_PAUSE")
began=$(date +%s)
# shellcheck disable=SC2086
timeout 120 "$DURAKIT" wait order-1 $on --timeout 6s > out.txt 2> err.txt
is $? 4 'wait: a frozen server has failed in the end'
took=$(($(date +%s) - began))
[ $took -ge 5 ] && [ $took -lt 18 ]
ok $? "wait: after $took s of 6 s"
(cd / && sh -c "$DURAKIT_PG_RESUME")
rm -f err.txt # that of before is not to be read
# shellcheck disable=SC2086
"$DURAKIT" wait order-1 $on --timeout 10s > out.txt 2> err.txt &
waiter=$!
until [ "$(psql -q -X -A -t "$DURAKIT_PG_SUPER" \
  -c "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'durakit'")" -gt 0 ] ||
  ! kill -0 $waiter; do sleep 0.1; done
began=$(date +%s)
(cd / && sh -c "$DURAKIT_PG_PAUSE")
wait $waiter
is $? 4 'wait: one that freezes meanwhile, too'
took=$(($(date +%s) - began))
[ $took -lt 19 ]
ok $? "wait: after $took s of 10 s"
(cd / && sh -c "$DURAKIT_PG_RESUME")

# A store that becomes unreachable while the command waits for an instance: order-1 never ends.
rm -f err.txt # that of before is not to be read
# shellcheck disable=SC2086
"$DURAKIT" wait order-1 $on --timeout 1h > out.txt 2> err.txt &
waiter=$!
until [ "$(psql -q -X -A -t "$DURAKIT_PG_SUPER" \
  -c "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'durakit'")" -gt 0 ] ||
  ! kill -0 $waiter; do sleep 0.1; done
(cd / && sh -c "$DURAKIT_PG_CRASH")
until grep -q 'next ' err.txt || ! kill -0 $waiter; do sleep 0.1; done
like "$(cat err.txt)" 'the store is unreachable; the command waits for it' 'wait: it says so'
kill -TERM $waiter
wait $waiter
is $? 5 'wait: and it waits until it is interrupted'
rm -f err.txt # that of before is not to be read
# shellcheck disable=SC2086
"$DURAKIT" wait order-9 $on --timeout 10m > out.txt 2> err.txt &
waiter=$!
until grep -q 'next ' err.txt || ! kill -0 $waiter; do sleep 0.1; done
like "$(cat err.txt)" 'the store is unreachable; the command waits for it' \
  'wait: from the beginning, too'
(cd / && sh -c "$DURAKIT_PG_START")
wait $waiter
is "$? $(cat out.txt)" '1 order-9: not found' 'wait: and reports what it finds later'

done_testing
