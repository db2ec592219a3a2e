#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a run leaves behind: results, nothing else; when it is interrupted or killed, too.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
zoo=$top_builddir/conformance/fixtures/zoo
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
[ -f "$zoo/blocks.so" ] || skip_all 'the zoo is not built'
scratch
cd "$scratch" || exit 99

# until_it FILE PATTERN PID: looks again and again, while the process lives, at most a minute.
until_it() {
  last=$(($(date +%s) + 60))
  until grep -q -e "$2" "$1" 2> grep.err; do
    kill -0 "$3" 2> kill.err && [ "$(date +%s)" -lt "$last" ] || return 1
  done
}

# ---- results.jsonl -------------------------------------------------------------------------------

"$DURAKIT" check "$MODEL" --only 'cancel/*' --set mutant=cancel/only-unlocked --out out > tap 2> err
is $? 1 'a run with failures'
results=out/results.jsonl
is "$(head -n 1 $results | grep -c '"type":"header"')" 1 'the first line is the header'
is "$(tail -n 1 $results | grep -c '"type":"footer"')" 1 'the last line is the footer'
is "$(grep -c '"type":"check"' $results)" "$(grep -c -e '^ok' -e '^not ok' tap)" 'one line a check'
is "$(grep -c '"verdict":"fail"' $results)" "$(grep -c '^not ok' tap)" 'with the same verdicts'
like "$(tail -n 1 $results)" '"exit":1' 'and the exit code'
[ -s out/checks/cancel/locked-row/trace.txt ]
ok $? 'the whole trace of a failure is beside it'
is "$(ls out/checks/cancel/free-row 2> ls.err)" '' 'but of none that passed'
"$DURAKIT" repro $results > again 2> err
is $? 1 'repro repeats what failed'
is "$(grep -c '^not ok' again)" "$(grep -c '^not ok' tap)" 'all of it'
"$DURAKIT" repro $results:cancel/free-row > again 2> err
is $? 0 'repro repeats one that passed'
is "$(grep -c '^ok' again)" 1 'alone'

# ---- stores of killed checks ---------------------------------------------------------------------

mkdir stores
"$DURAKIT" check "$zoo/segfault-in-operation.so" --only turn/birth --set "store=$scratch/stores/s" \
  > tap 2> err
is $? 1 'a check that crashed'
is "$(ls stores)" '' 'its stores were removed'

# ---- interrupted ---------------------------------------------------------------------------------

for name in INT TERM; do
  "$DURAKIT" certify "$zoo/blocks.so" --out out --timeout-scale 0.2 \
    --set "store=$scratch/stores/s" > tap 2> err &
  pid=$!
  until_it tap '^not ok 2' $pid
  ok $? "$name: a run in its middle"
  kill -$name $pid
  wait $pid
  is $? 5 "$name: exit 5"
  like "$(cat err)" '^durakit: interrupted: [0-9]* of [0-9]* checks were not run$' "$name: is said"
  is "$(grep -c -e '^ok' -e '^not ok' tap)" "$(sed -n 's/^1\.\.//p' tap)" "$name: the plan is kept"
  like "$(cat tap)" 'verdict: "not-run"' "$name: what was not run says so"
  like "$(tail -n 1 $results)" '"result":"INCOMPLETE"' "$name: so do the results"
  is "$(ls stores)" '' "$name: no store is left"
  folder=$(ls -d /dev/shm/durakit-run-*-$pid /tmp/durakit-run-*-$pid 2> ls.err)
  is "$folder" '' "$name: no folder is left"
done

# ---- killed --------------------------------------------------------------------------------------

"$DURAKIT" certify "$zoo/blocks.so" --timeout-scale 0.2 --set "store=$scratch/stores/s" \
  > tap 2> err &
pid=$!
until_it tap '^not ok 2' $pid
ok $? 'a run that is going to be killed'
# In the middle of a check: it is held while its store is looked for.
last=$(($(date +%s) + 60))
while kill -STOP $pid && [ -z "$(ls stores)" ] && [ "$(date +%s)" -lt "$last" ]; do
  kill -CONT $pid
done
kill -KILL $pid
wait $pid 2> wait.err
folder=$(ls -d /dev/shm/durakit-run-*-$pid /tmp/durakit-run-*-$pid 2> ls.err)
[ -d "$folder" ]
ok $? 'it leaves its folder'
[ -n "$(ls stores)" ]
ok $? 'and a store'
"$DURAKIT" clean > clean 2> err
[ -d "$folder" ]
ok $? 'clean keeps what tells of stores'
like "$(cat err)" 'durakit clean PLUGIN --set' 'and says what it needs'
run_ok 'clean with the plugin and its settings' "$DURAKIT" clean "$zoo/blocks.so" \
  --set "store=$scratch/stores/s"
is "$(ls stores)" '' 'removes the stores'
is "$(ls -d "$folder" 2> ls.err)" '' 'and the folder'

done_testing
