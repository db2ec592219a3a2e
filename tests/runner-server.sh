#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A server behind the store: what a run may do to it, what it reports if it has no right to, and
# that all is undone, however the run ends.
# needs: zoo

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

# ---- what is not given is not tested, and that is reported ---------------------------------------

check honest-server \
  'srv/connection-lost,SRV-4,srv/rights-withdrawn,srv/messages-lost,srv/stopped-call-returns'
is $? 0 'without commands nothing is wrong'
like "$(cat tap)" 'srv/crash # SKIP needs --store-crash and --store-start' 'a crash is left out'
like "$(cat tap)" 'srv/rights-withdrawn # SKIP needs --store-deny and --store-allow' 'so are rights'
like "$(cat tap)" 'srv/messages-lost # SKIP needs --through and --store-address' 'and messages'
like "$(cat tap)" 'returns # SKIP needs --store-pause and --store-resume' 'and a server that stops'
like "$(cat tap)" '^# server: tested: lost connections; not tested: crash and restart' \
  'what is not tested is reported before all results'
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
like "$(cat tap)" '^# server: tested: lost connections, crash and restart, withdrawn rights;' \
  'which is reported'
like "$(head -n 1 good/results.jsonl)" '"option":"--store-crash"' 'the commands are recorded'
is "$(grep -r -l geheim1 good tap err)" '' 'and no password'

check_hurting server-gives-up srv/crash --out bad --timeout-scale 2 --classify 0
is $? 1 'who gives a server up fails'
like "$(cat tap)" "repro: .*--store-crash .*/server.* crash " 'the command to repeat it has all'
"$zoo/server" deny "$here/s" && "$zoo/server" allow "$here/s"
is $? 0 'the server is there again'

check server-right-is-busy srv/rights-withdrawn --out again --classify 0 \
  --store-deny "'$zoo/server' deny '$here/s'" --store-allow "'$zoo/server' allow '$here/s'"
is $? 1 'a provider that takes a refused right for a busy server fails'
"$DURAKIT" repro again/results.jsonl > tap 2> err
is $? 1 'repro does to the server what was done then'
like "$(cat tap)" '^not ok 1 - srv/rights-withdrawn' 'and finds the same'

# ---- commands that fail --------------------------------------------------------------------------

check honest-server srv/crash --store-crash 'echo no such thing >&2; exit 3' --store-start true
is $? 4 'a command that fails is not the provider'"'"'s fault'
like "$(cat tap)" 'store-crash\\\?.*ended with exit 3.* no such thing' 'its output is reported'
check honest-server srv/crash --store-crash 'kill $PPID'
is $? 2 '--store-crash needs --store-start'
like "$(cat err)" 'store-start' 'and the option is named'
check honest-server srv/crash --through server=/x --store-address /x/y
is $? 2 'a way through the kit has a place for the kit'
check honest-server srv/crash --through 'server={folder}/y' --store-address nowhere
is $? 2 'and the server an address'

check honest-server srv/crash --through 'sever={folder}/y' --store-address /x/y
is $? 2 'and what leads through the kit is a setting of the plugin'
like "$(cat err)" 'sever: the plugin has no such setting' 'which is looked at before anything'
like "$(cat err)" 'did you mean server' 'as any other is'

# ---- commands that have no effect ----------------------------------------------------------------

# no_effect OPTION CHECK [OPTION...]: the check is an error that names the option, and no failure.
no_effect() {
  option=$1 what=$2
  shift 2
  check honest-server "$what" --classify 0 "$@"
  is $? 4 "$option that has no effect is no fault of the provider"
  like "$(cat tap)" "message: .*$option.x3a it ended with exit 0 but had no effect" \
    "$option: it is named"
  is "$(grep -c 'verdict: "error"' tap)" "$(grep -c '^not ok' tap)" "$option: that is all"
}

no_effect --store-crash srv/crash --store-crash true --store-start true
no_effect --store-crash srv/acknowledged-survives --store-crash true --store-start true
like "$(cat tap)" 'server that is down until --store-start; read_history of a new handle .*DK_OK' \
  'with what was seen'
no_effect --store-deny srv/rights-withdrawn --store-deny true --store-allow true
no_effect --store-allow srv/rights-withdrawn --store-allow true \
  --store-deny "'$zoo/server' deny '$here/s'"
like "$(cat tap)" 'this role has no right' 'with what the provider says'
"$zoo/server" allow "$here/s"
no_effect --store-start srv/acknowledged-survives --store-start true \
  --store-crash "'$zoo/server' crash '$here/s'"
like "$(cat tap)" 'the server cannot be reached' 'with what the provider says'
"$zoo/server" start "$here/s"
check honest-server srv/stopped-call-returns,srv/stopped-close-returns --classify 0 \
  --store-pause true --store-resume true
is $? 4 'a server that is not stopped is no fault of the provider'
answers='it ended with exit 0, but the server still answers'
is "$(grep -c "message: .*--store-pause.x3a $answers" tap)" 2 'in each check'

check honest-server srv/crash --classify 0 --timeout-scale 0.02 --store-start true \
  --store-crash 'sleep 8'
is $? 4 'a command that does not end is no fault of the provider'
like "$(cat tap)" 'message: .*--store-crash.x3a the command had not ended' 'and is named'

# ---- a store that the provider will not open -----------------------------------------------------

"$zoo/server" deny "$here/s"
check honest-server turn/birth --set store="$here/mine"
is $? 4 'a store that is refused is not one that exists'
like "$(cat err)" 'its store cannot be made' 'it cannot be made'
like "$(cat err)" 'refuses for another reason: .*role has no right' 'and the provider says why'
"$DURAKIT" probe "$zoo/honest-server.so" --set server="$here/s/socket" \
  --set store="$here/mine" > out 2> err
is $? 4 'nor is it for a probe'
like "$(cat err)" 'refuses for another reason: .*role has no right' 'which reports it too'
"$zoo/server" allow "$here/s"
check honest-server turn/birth --set store="$here/mine"
is $? 0 'with the right to it the same store is made'

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
  is $? 0 'the server is resumed'
  "$zoo/server" resume "$here/s"
done

"$zoo/server" crash "$here/s"
is $? 0 'the server of the zoo has ended'

done_testing
