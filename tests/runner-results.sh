#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a run leaves behind: results, nothing else; when it is interrupted or killed, too.
# needs: conformance/fixtures/zoo/blocks.so conformance/fixtures/zoo/segfault-in-operation.so

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
points='s/^\(not \)*ok [0-9]* - //p'
is "$(sed -n "$points" again)" "$(grep '^not ok' tap | sed -n "$points")" 'all of it'
# A race sees the defect by chance.
of_races='cancel/in-some-order$\|-races-'
is "$(grep '^not ok' again | grep -vc "$of_races")" "$(grep '^not ok' tap | grep -vc "$of_races")" \
  'which fails again'
"$DURAKIT" repro $results:cancel/free-row > again 2> err
is $? 0 'repro repeats one that passed'
is "$(grep -c '^ok' again)" 1 'alone'

# ---- a folder that is used already ---------------------------------------------------------------

"$DURAKIT" check "$MODEL" --only 'cancel/*' --out out > tap 2> err
is $? 0 'a run that passes, into the same folder'
is "$(find out -type f | sort)" out/results.jsonl 'no evidence of the earlier failures is left'
mkdir other
echo 'of another program' > other/results.jsonl
"$DURAKIT" check "$MODEL" --only turn/birth --out other > tap 2> err
is $? 2 'results that durakit did not write: exit 2'
like "$(cat err)" '^durakit: other: the folder has other files already$' 'and it says so'
is "$(cat other/results.jsonl)" 'of another program' 'they are untouched'
rm other/results.jsonl
mkdir other/checks
"$DURAKIT" check "$MODEL" --only turn/birth --out other > tap 2> err
is $? 2 'so are checks without results'
rmdir other/checks
echo 'my notes' > other/notes
"$DURAKIT" check "$MODEL" --only turn/birth --out other > tap 2> err
is $? 0 'anything else may lie there'
is "$(cat other/notes)" 'my notes' 'and stays'

# ---- stores of killed checks ---------------------------------------------------------------------

mkdir stores
"$DURAKIT" check "$zoo/segfault-in-operation.so" --only turn/birth --set "store=$scratch/stores/s" \
  > tap 2> err
is $? 1 'a check that crashed'
is "$(ls stores)" '' 'its stores were removed'

# ---- interrupted ---------------------------------------------------------------------------------

for name in INT TERM; do
  rm -f tap # the last run's
  "$DURAKIT" certify "$zoo/blocks.so" --no-memcheck --out out --timeout-scale 0.2 \
    --set "store=$scratch/stores/s" > tap 2> err &
  pid=$!
  until_it tap '^not ok 2' $pid
  ok $? "$name: a run in its middle"
  kill -$name $pid
  wait $pid
  is $? 5 "$name: exit 5"
  like "$(cat err)" '^durakit: interrupted: [0-9]* of [0-9]* checks were not run$' "$name: reported"
  is "$(grep -c -e '^ok' -e '^not ok' tap)" "$(sed -n 's/^1\.\.//p' tap)" "$name: the plan is kept"
  like "$(cat tap)" 'verdict: "not-run"' "$name: a check that was not run is reported as such"
  like "$(tail -n 1 $results)" '"result":"INCOMPLETE"' "$name: so do the results"
  is "$(ls stores)" '' "$name: no store is left"
  folder=$(ls -d /dev/shm/durakit-run-*-$pid /tmp/durakit-run-*-$pid 2> ls.err)
  is "$folder" '' "$name: no folder is left"
done

# ---- two runs of one id --------------------------------------------------------------------------

# Other suites may be running on this machine, with ids and dead runs of their own.
twice=twice$$
rm -f tap
"$DURAKIT" certify "$zoo/blocks.so" --no-memcheck --timeout-scale 0.2 --run-id "$twice" \
  > tap 2> err &
pid=$!
until_it tap '^not ok 1' $pid
ok $? 'a run with an id of its own'
"$DURAKIT" check "$MODEL" --only turn/birth --run-id "$twice" > tap2 2> err2
is $? 2 'another of that id is refused while it lives'
like "$(cat err2)" "^durakit: $twice: a run with this id is still alive\$" 'and that is reported'
# One that died under the same id.
base=${TMPDIR:-/tmp}
mkdir -m 700 "$base/durakit-run-$twice-0"
: > "$base/durakit-run-$twice-0/lock"
"$DURAKIT" clean > clean 2> err2
like "$(cat err2)" "durakit-run-$twice-0: left alone, because .* the same run id and is running" \
  'clean touches nothing of that id'
kill -INT $pid
wait $pid
chmod 777 "$base/durakit-run-$twice-0"
"$DURAKIT" clean > clean 2> err2
like "$(cat err2)" "durakit-run-$twice-0: left alone: it is not your own folder" \
  'nor of a folder that others can write to'
chmod 700 "$base/durakit-run-$twice-0"
"$DURAKIT" clean > clean 2> err2
is "$(ls -d "$base/durakit-run-$twice-0" 2> ls.err)" '' 'then it is cleaned'
is "$(grep -c -e ' 1 dead runs' clean err2)" "$(printf 'clean:0\nerr2:0')" 'one is one'

# ---- killed --------------------------------------------------------------------------------------

rm -f tap
"$DURAKIT" certify "$zoo/blocks.so" --no-memcheck --timeout-scale 0.2 \
  --set "store=$scratch/stores/s" > tap 2> err &
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
ok $? 'clean keeps the record of stores'
like "$(cat err)" 'durakit clean PLUGIN --set' 'and says what it needs'
"$DURAKIT" clean "$zoo/blocks.so" --set "store=$scratch/elsewhere" > clean 2> err
like "$(cat clean)" '^removed the folder.* of [0-9]* dead run\(s, and the stores of 0 of them\)*$' \
  'clean with a store elsewhere claims no store'
like "$(cat err)" "left alone, for its stores were made by .*blocks.so --set store=.*/stores/s" \
  'and says where they are'
[ -d "$folder" ] && [ -n "$(ls stores)" ]
ok $? 'and leaves both'
"$DURAKIT" clean "$MODEL" > clean 2> err
like "$(cat err)" 'left alone, for its stores were made by .*blocks.so' \
  'so does one with another plugin'
run_ok 'clean with the plugin and its settings' "$DURAKIT" clean "$zoo/blocks.so" \
  --set "store=$scratch/stores/s"
is "$(ls stores)" '' 'removes the stores'
is "$(ls -d "$folder" 2> ls.err)" '' 'and the folder'

# ---- two runs, one folder ------------------------------------------------------------------------

run_ok 'a run writes its results' "$DURAKIT" check "$MODEL" --only turn/birth --out both
cp both/results.jsonl before
exec 9>> both/results.jsonl
flock 9
"$DURAKIT" check "$MODEL" --only turn/birth --out both > said 2> err
is $? 2 'while another run writes there, none is begun'
like "$(cat err)" 'both: another run writes its results there' 'and reports that'
exec 9>&-
run_ok 'what was there is as it was' cmp before both/results.jsonl
run_ok 'afterwards it is written again' "$DURAKIT" check "$MODEL" --only turn/birth --out both
"$DURAKIT" repro both/results.jsonl:turn/brith > said 2> err
is $? 2 'a check that was not recorded is not repeated'
like "$(cat err)" 'did you mean turn/birth?' 'and the nearest is named'

# ---- a path that begins in the user's folder -----------------------------------------------------

mkdir here
run_ok 'a store is named from here' "$DURAKIT" check "$MODEL" --only turn/birth \
  --set store=here/s --out relative
like "$(cat relative/results.jsonl)" "\"$scratch/here/s\"" 'and means this folder'
"$DURAKIT" probe "$MODEL" --set store=not-here/s > said 2> err
is $? 4 'a folder that is not here is not made up'

done_testing
