#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Commands on a store that does not answer: after a few seconds they say what they wait for, after
# their patience they end, and report whether the work was done.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${SQLITE_PLUGIN:=}" "${PG_PLUGIN:=}"
command -v python3 > /dev/null 2>&1 || skip_all 'there is no python3'
scratch
cd "$scratch" || exit 99
. "$top_srcdir/tests/operate/store.sh"

# Patience of 4 s; a busy machine takes longer, but not by a minute.
# gives_up CODE COMMAND...: ends with 4 in time, and says on standard error what it waited for.
gives_up() {
  name=$1
  shift
  began=$(date +%s)
  timeout 120 "$DURAKIT" "$@" --patience 4s > out.txt 2> err.txt < /dev/null
  is $? 4 "$name: it ends, with the code of a store that failed"
  took=$(($(date +%s) - began))
  [ $took -ge 4 ] && [ $took -lt 60 ]
  ok $? "$name: after $took s of a patience of 4 s"
  is "$(grep -c 'the store has not answered for 3 s' err.txt)" 1 "$name: it says once that it waits"
  like "$(cat err.txt)" 'the limit for an answer is 4 s (--patience)' "$name: and for how long"
  like "$(cat err.txt)" 'the store did not answer within 4 s' "$name: and why it ends"
  is "$(cat out.txt)" '' "$name: and nothing else"
}

# waits_for_server NAME COMMAND...: with a limit of 5 s, for a store that stays unreachable.
waits_for_server() {
  name=$1
  shift
  began=$(date +%s)
  timeout 120 "$DURAKIT" "$@" --provider "$PG_PLUGIN" --settings settings > out.txt 2> err.txt
  is $? 4 "$name: the store has failed in the end"
  took=$(($(date +%s) - began))
  [ $took -ge 4 ] && [ $took -lt 25 ]
  ok $? "$name: after $took s of 5 s"
  is "$(grep -c 'the store is unreachable; the command waits for it' err.txt)" 1 \
    "$name: it says so once"
  is "$(grep -c 'the limit for an answer' err.txt)" 0 "$name: and promises no other limit"
}

# ---- a call that hangs ---------------------------------------------------------------------------

# Holds the writer's lock until its standard input ends.
cat > "$scratch/hold.py" <<'PYTHON'
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute('BEGIN IMMEDIATE')
print('held', flush=True)
sys.stdin.read()
PYTHON
if [ -f "$SQLITE_PLUGIN" ]; then
  on_store "$SQLITE_PLUGIN" "store=$scratch/orders.db" busy_timeout=10m
  d start order-1 --name order --create > /dev/null
  is $? 0 'a store'
  mkfifo held in
  python3 "$scratch/hold.py" "$scratch/orders.db" < in > held &
  holder=$!
  exec 7> in
  read -r _ < held
  set -- --provider "$SQLITE_PLUGIN" --settings settings
  gives_up 'start' start order-2 --name order "$@"
  like "$(cat err.txt)" 'next ' 'start: and what to do'
  gives_up 'cancel' cancel order-1 "$@"
  gives_up 'raise' raise order-1 paid "$@"
  # A call that ends, and is made again: the patience is with all of them.
  sed 's/^busy_timeout=.*/busy_timeout=1s/' settings > short
  gives_up 'cancel, again and again' cancel order-1 --provider "$SQLITE_PLUGIN" --settings short
  sed 's/^busy_timeout=.*/busy_timeout=2s/' settings > short
  "$DURAKIT" cancel order-1 --provider "$SQLITE_PLUGIN" --settings short > out.txt 2> err.txt
  is "$? $(sed 's/failed: .*/failed/' out.txt | tr '\n' ' ')" '4 order-1: failed 1 failed ' \
    'cancel: a store that stays busy has failed'
  [ "$(grep -c 'has not answered' err.txt)" -le 1 ]
  ok $? 'cancel: which is reported once at most'
  # Who only reads is not held up.
  d status order-1 > out.txt
  is "$? $(head -n 1 out.txt | cut -c 1-7)" '0 order-1' 'status: answered at once'
  # Longer than it takes: as if nothing had been.
  rm -f err.txt
  "$DURAKIT" start order-3 --name order "$@" --patience 10m \
    > out.txt 2> err.txt < /dev/null 7>&- &
  starter=$!
  until grep -q 'has not answered' err.txt || ! kill -0 $starter; do sleep 0.2; done
  exec 7>&-
  wait $holder
  wait $starter
  is "$? $(cat out.txt)" '0 order-3: started' 'what comes back in time is done'
  d start order-4 --name order > out.txt 2> err.txt
  is "$? $(cat err.txt)" '0 ' 'and without a wait nothing is reported'
fi

# ---- a server that takes connections and says nothing --------------------------------------------

cat > "$scratch/silent.py" <<'PYTHON'
import socket, sys
s = socket.socket()
s.bind(('127.0.0.1', 0))
s.listen()
print(s.getsockname()[1], flush=True)
sys.stdin.read()
PYTHON
if [ -f "$PG_PLUGIN" ] && [ -z "${SANITIZER_CFLAGS:-}" ]; then
  cd "$scratch" && mkfifo port in2
  python3 "$scratch/silent.py" < in2 > port 2> silent.err &
  server=$!
  exec 7> in2
  read -r port < port
  on_store "$PG_PLUGIN" "conninfo=host=127.0.0.1 port=$port dbname=x user=y connect_timeout=60"
  gives_up 'a silent server' status order-1 --provider "$PG_PLUGIN" --settings settings
  like "$(cat err.txt)" 'it was not done' 'a silent server: nothing was done'
  like "$(tr '\n' ' ' < err.txt | tr -s ' ')" 'cancelled while it waited for .*127\.0\.0\.1' \
    'a silent server: which is named'
  # A command that waits has a limit of its own.
  waits_for_server 'wait, a silent server' wait order-1 --timeout 5s
  exec 7>&-
  wait $server
  waits_for_server 'wait, no server' wait order-1 --timeout 5s
  waits_for_server 'cancel --wait, no server' cancel order-1 --wait 5s
fi

# ---- the option ----------------------------------------------------------------------------------

"$DURAKIT" start order-1 --name order --provider sqlite --patience 0 > out.txt 2> err.txt
is "$? $(head -n 1 err.txt)" '2 durakit: --patience: cannot be "0"' 'no patience is none'
for command in start status wait history raise enqueue cancel instances delete prune stats; do
  like "$("$DURAKIT" $command --help)" '--patience DURATION .*30s' "$command --help shows it"
done

done_testing
