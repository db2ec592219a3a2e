#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A server behind the store: what a run may do to it, what it says when it may not, and that all is
# undone, however the run ends.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
zoo=$top_builddir/conformance/fixtures/zoo
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
[ -x "$zoo/server" ] || skip_all 'the zoo is not built'
zoo=$(cd "$zoo" && pwd)
scratch
cd "$scratch" || exit 99
here=$(pwd)

# check FIXTURE WHAT [OPTION...]: with the zoo's server behind it.
check() {
  fixture=$1 what=$2
  shift 2
  "$DURAKIT" check "$zoo/$fixture.so" --only "$what" --set server="$here/s/socket" "$@" > tap 2> err
}

# The same, and it may be crashed, and its rights withdrawn.
check_hurting() {
  check "$@" --store-crash "'$zoo/server' crash '$here/s'" \
    --store-start "'$zoo/server' start '$here/s'" \
    --store-deny "'$zoo/server' deny '$here/s' # {store} password=geheim1" \
    --store-allow "'$zoo/server' allow '$here/s'"
}

# until_there FILE [PID]: at most half a minute, and as long as the process lives.
until_there() {
  last=$(($(date +%s) + 30))
  until [ -e "$1" ]; do
    { [ -z "${2-}" ] || kill -0 "$2" 2> kill.err; } && [ "$(date +%s)" -lt "$last" ] || return 1
  done
}

"$zoo/server" start "$here/s"
is $? 0 'the server of the zoo is there'

# ---- what is not given is not tested, and said ---------------------------------------------------

check honest-server \
  'srv/connection-lost,SRV-4,srv/rights-withdrawn,srv/messages-lost,srv/stopped-call-returns'
is $? 0 'without commands nothing is wrong'
like "$(cat tap)" 'srv/crash # SKIP needs --store-crash and --store-start' 'a crash is left out'
like "$(cat tap)" 'srv/rights-withdrawn # SKIP needs --store-deny and --store-allow' 'so are rights'
like "$(cat tap)" 'srv/messages-lost # SKIP needs --through and --store-address' 'and messages'
like "$(cat tap)" 'returns # SKIP needs --store-pause and --store-resume' 'and a server that stops'
like "$(cat tap)" '^# server: tested are lost connections; not tested: crash and restart' \
  'what is not tested is said before all results'
like "$(cat tap)" '^ok [0-9]* - srv/connection-lost$' 'connections are cut without any command'

"$DURAKIT" check "$MODEL" --only srv,turn/birth > tap 2> err
is $? 0 'of a provider without a server nothing is asked'
is "$(grep -c 'SKIP needs a server behind the store; the provider declares shared 2' tap)" \
  "$(($(grep -c '^ok' tap) - 1))" 'and that is the reason'
is "$(grep -c '^# server:' tap)" 0 'nor is anything said of one'

# ---- what is given -------------------------------------------------------------------------------

check_hurting honest-server 'srv/crash,srv/rights-withdrawn' --out good
is $? 0 'with commands it is crashed, and its rights are withdrawn'
is "$(grep -c '^ok.*[a-z]$' tap)" 2 'and both are tested'
like "$(cat tap)" '^# server: tested are lost connections, crash and restart, rights withdrawn;' \
  'which is said'
like "$(head -n 1 good/results.jsonl)" '"option":"--store-crash"' 'the commands are recorded'
is "$(grep -r -l geheim1 good tap err)" '' 'and no password'

check_hurting server-gives-up srv/crash --out bad --timeout-scale 2 --classify 0
is $? 1 'who gives a server up fails'
like "$(cat tap)" "repro: .*--store-crash .*/server.* crash " 'the command to repeat it has all'
"$zoo/server" deny "$here/s" && "$zoo/server" allow "$here/s"
is $? 0 'the server is there again'

check server-right-is-busy srv/rights-withdrawn --out again --classify 0 \
  --store-deny "'$zoo/server' deny '$here/s'" --store-allow "'$zoo/server' allow '$here/s'"
is $? 1 'who takes a refused right for a busy server fails'
"$DURAKIT" repro again/results.jsonl > tap 2> err
is $? 1 'repro does to the server what was done then'
like "$(cat tap)" '^not ok 1 - srv/rights-withdrawn' 'and finds the same'

# ---- commands that fail --------------------------------------------------------------------------

check honest-server srv/crash --store-crash 'echo no such thing >&2; exit 3' --store-start true
is $? 4 'a command that fails is no fault of the provider'
like "$(cat tap)" 'store-crash\\\?.*ended with exit 3.* no such thing' 'what it has said is told'
check honest-server srv/crash --store-crash 'kill $PPID'
is $? 2 'who crashes a server has to say how it is started'
like "$(cat err)" 'store-start' 'and is told the option'
check honest-server srv/crash --through server=/x --store-address /x/y
is $? 2 'a way through the kit has a place for the kit'
check honest-server srv/crash --through 'server={folder}/y' --store-address nowhere
is $? 2 'and the server an address'

# ---- undone, however it ends ---------------------------------------------------------------------

# Never resumed by the check: it is ended while the server is stopped.
for signal in TERM KILL; do
  rm -f paused resumed
  "$DURAKIT" check "$zoo/honest-server.so" --only srv/stopped-close-returns \
    --set server="$here/s/socket" --store-resume "touch '$here/resumed'" \
    --store-pause "'$zoo/server' pause '$here/s' && touch '$here/paused'; sleep 1" \
    > tap 2> err < /dev/null &
  pid=$!
  until_there paused $pid
  is $? 0 "the server is stopped, and the run gets SIG$signal"
  kill -s $signal $pid
  wait $pid 2> wait.err
  until_there resumed
  is $? 0 'the server is let go on'
  "$zoo/server" resume "$here/s"
done

"$zoo/server" crash "$here/s"
is $? 0 'the server of the zoo is gone'

done_testing
