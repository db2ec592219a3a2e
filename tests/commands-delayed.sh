#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An instance that no worker can continue: durakit status shows why, and until when it is delayed,
# and a cancellation does not wait for that.  On SQLite; with arguments on that store:
# tests/commands-delayed-pg.sh.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${SQLITE_PLUGIN=}"
[ -x "$DURAKIT" ] || skip_all 'the command is not built'
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
scratch
. "$top_srcdir/tests/operate/store.sh"
[ -x "$serve" ] || skip_all 'the runtime for the tests is not built'

# is_delayed INSTANCE: waits until its status shows that.
is_delayed() {
  until d status "$1" > status.txt && grep -q '^  delayed ' status.txt; do
    kill -0 "$serve_pid" || return
  done
}

judge() {
  on_store "$@"
  d start first --name quick --create > out.txt 2> err.txt
  ok $? 'a store is made' || diag "$(cat err.txt)"
  serve_begin
  d start typo-1 --name ordre > out.txt
  ok $? 'a name with a mistake in it is accepted: some worker may know it'
  is_delayed typo-1
  like "$(usual < status.txt | tr '\n' ' ')" \
    'status      not started .* delayed     until TIME: unregistered: no orchestration "ordre"' \
    'status shows why it is not started'
  like "$(tail -n 1 status.txt)$(grep ' delayed ' status.txt)" \
    'register it (dk_register_orchestration), or cancel' 'and what to do'
  d status typo-1 --json > out.txt
  has 'o["instances"][0]["delayed"][0]["code"]' unregistered 'the code, as JSON'
  has 'o["instances"][0]["delayed"][0]["until"] > o["instances"][0]["delayed"][0]["since"]' True \
    'and until when'
  has '"delayed" in [w["kind"] for w in o["instances"][0]["waiting"]]' False \
    'it is no message that waits'

  # Let it be delayed for seconds, as it is after a while.
  seconds='int(o["instances"][0]["waiting"][0]["visible_at"][17:19])'
  seconds="($seconds - int(o['instances'][0]['waiting'][0]['enqueued_at'][17:19])) % 60 >= 8"
  until d status typo-1 --json > out.txt && [ "$(json "$seconds")" = True ]; do
    kill -0 "$serve_pid" || break
  done
  begun=$(date +%s%N)
  d cancel typo-1 --wait 60s > out.txt 2> err.txt
  is $? 0 'it is cancelled'
  took=$((($(date +%s%N) - begun) / 1000000))
  diag "a cancellation of what is delayed took $took ms"
  serve_end
  d status typo-1 > status.txt
  like "$(cat status.txt)" 'status      cancelled' 'for good'
  is "$(grep -c ' delayed ' status.txt)" 0 'nothing is delayed any more'
}

# An event for an instance that waits, damaged in the store: status shows which message it is, why
# it cannot be read, and the instance can be cancelled and deleted.
judge_unreadable() {
  serve_begin
  d start bad-1 --name waiting > out.txt
  reaches bad-1 1 2
  serve_end
  d raise bad-1 go --data x > out.txt
  python3 -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as store:
  store.execute("UPDATE message SET payload = ?", (b"{",))' "$scratch/sqlite.db"
  serve_begin
  is_delayed bad-1
  d status bad-1 --json > out.txt
  id=$(json '[w["id"] for w in o["instances"][0]["waiting"] if w["kind"] == "unreadable"][0]')
  like "$(grep ' waiting ' status.txt)" "unreadable $id, from .*: " \
    'status names a message that it cannot read'
  like "$(grep ' waiting ' status.txt)" 'the payload is not JSON' 'and says why'
  like "$(grep ' delayed ' status.txt)" \
    "unreadable: a message of it cannot be read: the one with the id \"$id\": .*is not JSON" \
    'it is why its instance is delayed'
  d cancel bad-1 --wait 60s > out.txt 2> err.txt
  is $? 0 'the instance can be cancelled'
  serve_end
  like "$(d status bad-1)" 'status      cancelled' 'for good'
  d delete bad-1 > out.txt 2> err.txt
  is $? 0 'and deleted' || diag "$(cat err.txt)"
  like "$(d status bad-1)" 'not found' 'nothing of it is left'
}

if [ $# -gt 0 ]; then
  judge "$@"
elif [ -f "$SQLITE_PLUGIN" ]; then
  judge "$SQLITE_PLUGIN" "store=$scratch/sqlite.db"
  judge_unreadable
else
  skip_all 'the sqlite plugin was left out'
fi
done_testing
