#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# durakit bench: what it measures, and how it reports.  No figure is judged here: a machine that is
# shared has no times.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
durakit=$top_builddir/runner/durakit
model=$top_builddir/conformance/model/.libs/model.so
TMPDIR=$scratch
export TMPDIR

bench() {
  "$durakit" bench "$model" --pairs 1 --slice 10 "$@" > "$scratch/out" 2> "$scratch/err"
}

bench --only turn-1,work-1,turn-16
is $? 0 'a bench without a floor ends with 0'
is "$(sed -n 's/ .*//; /^[a-z]*-[0-9]*$/p' "$scratch/out" | paste -sd ' ' -)" \
  'turn-1 turn-16 work-1' 'the rows that were asked for, in their order'
is "$(grep -c 'no floor was given' "$scratch/out")" 3 \
  'each says that it has nothing to be compared to'
is "$(tail -n 1 "$scratch/out")" 'BENCH reached=0 missed=0 failed=0' 'the last line counts them'
is "$(ls -d "$scratch"/durakit-bench-* 2> /dev/null)" '' 'it leaves no store'

bench --only timers --json
is $? 0 'as JSON'
python3 - "$scratch/out" <<'PY'
import json, sys
whole = json.load(open(sys.argv[1]))
row, = whole["rows"]
assert row["name"] == "timers" and row["at_most"] and row["ratio"]["median"] > 0, row
assert row["operations"] > 0 and row["seconds"] > 0
PY
ok $? 'the object has the figures'

# A floor of a few lines: a second for each operation, so that anything reaches it.
cat > "$scratch/floor" <<'SH'
#!/bin/sh
while read -r word workload a b; do
  case $word in
    about) echo "ok slow, on $1" ;;
    begin) echo ok ;;
    run) echo 'ok 1 1000000000 1' ;;
    *) echo "no $word" ; exit 1 ;;
  esac
done
SH
chmod +x "$scratch/floor"
bench --only turn-1 --floor "$scratch/floor"
is $? 0 'with a floor'
is "$(tail -n 1 "$scratch/out")" 'BENCH reached=1 missed=0 failed=0' 'the floor is reached'
like "$(cat "$scratch/out")" 'floor: slow, on ' 'the floor says what it is'

# A floor that ends, and has started a process that holds its pipe: the bench does not wait for it.
cat > "$scratch/floor" <<'SH'
#!/bin/sh
sleep 300 &
echo $! > "$1.sleeper"
exit 3
SH
timeout 100 "$durakit" bench "$model" --pairs 1 --slice 10 --only turn-1 --floor "$scratch/floor" \
  > "$scratch/out" 2> "$scratch/err"
is $? 4 'a floor that ends and leaves a process with its line'
like "$(cat "$scratch/out" "$scratch/err")" 'ended with exit 3' 'its exit code is reported'
for pid in $(find "$scratch" -name '*.sleeper' -exec cat {} +); do kill "$pid" 2> /dev/null; done

# The floor receives the provider's settings first, on its input.
cat > "$scratch/floor" <<'SH'
#!/bin/sh
while read -r line; do
  case $line in
    about) echo "ok told $told, $#" ;;
    set*) told="${line#set }"; echo ok ;;
    begin*) echo ok ;;
    run*) echo 'ok 1 1000000000 1' ;;
  esac
done
SH
bench --only work-1 --floor "$scratch/floor" --set mutant=work/newest-first
is $? 0 'with a floor and a setting'
like "$(cat "$scratch/out")" 'floor: told mutant=work/newest-first, 1$' \
  'the floor receives it, and not as an argument'

bench --only turn-1-2,work-4-8
is $? 0 'callers against fewer callers'
is "$(grep -c 'at least 0.9: .*ops/s, against [0-9]' "$scratch/out")" 2 \
  'need no floor, and print both rates'

printf '#!/bin/sh\nread -r line\necho "no the disk has failed"\n' > "$scratch/floor"
bench --only turn-1 --floor "$scratch/floor"
is $? 4 'a floor that fails gives no figure'
like "$(cat "$scratch/out")" 'failed: the floor: the disk has failed' 'and says why'
printf '#!/bin/sh\nread -r line\nkill -9 $$\n' > "$scratch/floor"
bench --only turn-1 --floor "$scratch/floor"
is $? 4 'one that is killed neither'
like "$(cat "$scratch/out")" 'failed: the floor: was ended by signal 9' 'and says how it ended'
bench --only turn-1 --floor "$scratch/not-there"
is $? 4 'nor one that does not exist'
like "$(cat "$scratch/out")" 'not-there: No such file' 'which is named'

# One item in a commit less than the row needs.
"${CC:-cc}" -shared -fPIC -std=c11 -I"$top_srcdir/core/include" -o "$scratch/small.so" \
  "$top_srcdir/examples/provider-minimal/minimal.c"
"$durakit" bench "$scratch/small.so" --pairs 1 --slice 10 --only turn-1,cancel > "$scratch/out"
is $? 0 'a row that the limits of a provider do not allow is no failure'
like "$(cat "$scratch/out")" 'cancel *left out: the provider allows 1000 items' 'and is left out'

bench --only no-such-row
is $? 2 'an unknown row is refused'
like "$(cat "$scratch/err")" 'turn-1, turn-16' 'and those that there are are named'
"$durakit" bench "$scratch/nothing.so" > "$scratch/out" 2> "$scratch/err"
is $? 3 'a plugin that does not exist is refused'

done_testing
