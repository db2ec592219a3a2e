#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a run leaves on a server: stores that are made after their check was ended, and what
# `durakit clean` does about those that stay.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] || skip_all 'the command is not built'
scratch
cd "$scratch" || exit 99
here=$(pwd)
TMPDIR=$here
export TMPDIR
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC ${SANITIZER_CFLAGS:-} \
  -I"$top_srcdir/core/include" -I"$top_srcdir" "$top_srcdir/tests/runner-stores.c" \
  -o stores.so > cc.out 2>&1
ok $? 'a provider with a folder for a server is built' || diag "$(cat cc.out)"

# check RUN [OPTION...]: one check, against the server in ./srv
check() {
  run=$1
  shift
  "$DURAKIT" check ./stores.so --only turn/birth --set store=x --set server="$here/srv" \
    --timeout-scale 0.05 --classify 0 --run-id "$run" "$@" > tap 2> err
}

# clean [OPTION...]
clean() {
  "$DURAKIT" clean ./stores.so --set store=x "$@" > out 2> err
}

# folder_of RUN
folder_of() {
  for base in /dev/shm "$here" /tmp; do
    for path in "$base/durakit-run-$1-"*; do
      [ ! -d "$path" ] || printf '%s\n' "$path"
    done
  done
}

stores() {
  (cd srv && ls -d x-* 2> "$here/ls.err")
}

# ---- a store that comes late ---------------------------------------------------------------------

me=c$$
mkdir srv other
touch srv/hang-make srv/late
check "${me}a"
is $? 1 'a check is ended while it makes its store'
like "$(cat tap)" 'verdict: "timeout"' 'by its time-out'
like "$(cat tap)" 'open did not return' 'in open'
is "$(grep -c "x-dk${me}a-1-a" srv/log)" 2 'the store is removed at once, and again at the end'
is "$(stores)" '' 'so that none is left, though the server made it in between'
is "$(folder_of "${me}a")" '' 'and the folder of the run is removed'

touch srv/refuse
rm srv/log
check "${me}b"
is $? 1 'the same with a server that does not remove it any more'
is "$(stores | grep -c -e '-1-a$')" 1 'it stays'
like "$(cat err)" \
  "left over, because their check was ended while they were made:.* x-dk${me}b-1-a" \
  'that is reported'
like "$(cat tap)" 'could not be removed; see .*/journal; durakit clean' 'with what removes it'
folder=$(folder_of "${me}b")
like "$(cat "$folder/journal")" "^dk${me}b-1-a\$" 'and it is in the journal'

# ---- of another server ---------------------------------------------------------------------------

rm srv/hang-make srv/late
clean --set server="$here/other"
like "$(cat err)" "$folder: left alone, .*stores.so --set store=x, with another server" \
  'clean on another server says whose stores they are'
[ -d "$folder" ] && [ -n "$(stores)" ]
ok $? 'and forgets nothing'
[ ! -e other/log ]
ok $? 'nor has it removed anything there'
is "$(grep -c -e "$here/srv" -e "$here/other" "$folder/origin")" 0 'the value stands nowhere'

# ---- a long journal ------------------------------------------------------------------------------

n=0
while [ $n -lt 40 ]; do
  n=$((n + 1))
  mkdir "srv/x-dk${me}b-7-$n"
  echo "dk${me}b-7-$n" >> "$folder/journal"
done
rm -f srv/refuse srv/log
touch srv/slow "srv/hang-x-dk${me}b-7-3"
clean --set server="$here/srv" --timeout-scale 0.4
is $? 4 'clean with a store whose removal hangs' || diag "$(cat err)"
like "$(cat err)" "$folder: stores could not be removed: x-dk${me}b-7-3 did not return within" \
  'names the run and the store'
like "$(cat err)" '--timeout-scale gives it more time' 'and what helps'
is "$(stores)" "x-dk${me}b-7-3" 'all others are removed, though they took longer in all'
is "$(cat "$folder/journal")" "dk${me}b-7-3" 'the journal no longer has what was removed'
rm "srv/hang-x-dk${me}b-7-3" srv/log
clean --set server="$here/srv"
is $? 0 'afterwards it ends' || diag "$(cat err)"
is "$(cat srv/log)" "x-dk${me}b-7-3" 'and tries nothing twice'
is "$(stores)$(folder_of "${me}b")" '' 'nothing is left'

# ---- a fault while it is cleaned -----------------------------------------------------------------

# What is left of a run, put back: its folder and its stores.
put_back() {
  rm -rf "$folder" srv
  cp -a kept.run "$folder" && cp -a kept.srv srv
}

is_clean() {
  [ ! -e "$folder" ] && [ -z "$(stores)" ]
}

# clean_failing_at N: that request for memory fails; afterwards all is removed, or it is reported.
clean_failing_at() {
  put_back
  timeout -k 5 60 env FAIL_AT="$1" COUNT_TO="$here/count" LD_PRELOAD="$here/fails.so" \
    "$DURAKIT" clean ./stores.so --set store=x --set server="$here/srv" > out 2> err
  code=$?
  case $code in
    0) is_clean || echo "request $1: exit 0 with $(stores) left: $(cat out err)" ;;
    4)
      [ -s err ] || echo "request $1: exit 4 without a word"
      clean --set server="$here/srv"
      [ -z "$(stores)" ] || echo "request $1: lost $(stores): $(cat err)"
      ;;
    *) echo "request $1: exit $code: $(cat err)" ;;
  esac
}

if [ -z "${SANITIZER_CFLAGS-}" ]; then
  ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC "$top_srcdir/tests/runner-allocations.c" \
    -o fails.so > cc.out 2>&1
  ok $? 'what makes requests for memory fail is built' || diag "$(cat cc.out)"
  rm -f srv/slow
  touch srv/refuse
  check "${me}c"
  folder=$(folder_of "${me}c")
  rm -f srv/refuse
  mkdir "srv/x-dk${me}c-7-b"
  echo "dk${me}c-7-b" >> "$folder/journal"
  cp -a "$folder" kept.run && cp -a srv kept.srv
  is "$(clean_failing_at 0)" '' 'a run that left stores is cleaned'
  all=$(cat count)
  step=1
  [ "${DURAKIT_DEEP-}" = 1 ] || step=$(((all + 39) / 40))
  for at in $(seq $((1 + $(date +%s) % step)) "$step" "$all"); do
    clean_failing_at "$at"
  done > wrong
  is "$(cat wrong)" '' 'whichever request for memory fails, clean forgets nothing'
  put_back

  # ---- what is no journal, and no origin

  for name in journal origin; do
    put_back
    rm "$folder/$name"
    mkfifo "$folder/$name"
    timeout -k 5 20 "$DURAKIT" clean ./stores.so --set store=x --set server="$here/srv" > out 2> err
    is $? 4 "a FIFO for its $name is an error" || diag "$(cat err)"
    like "$(cat err)" "$folder: left alone: .*: it is no regular file" 'which is reported'
    is "$(stores)" "$(cd kept.srv && ls -d x-*)" 'and no store is touched'
  done
  put_back
  mkdir user
  echo precious > user/file
  ln -s "$here/user/file" "$folder/journal-t"
  clean --set server="$here/srv"
  is $? 0 'a link for its new journal is no hindrance' || diag "$(cat err)"
  is "$(cat user/file)" precious 'and is not followed'
  is_clean
  ok $? 'nothing is left'
else
  skip 'a fault while it is cleaned' 'a sanitizer has an allocator of its own'
fi

# What a plugin puts into the folder of its run is not followed, and not emptied.
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC -w ${SANITIZER_CFLAGS:-} \
  -I"$top_srcdir/core/include" -I"$top_srcdir" "$top_srcdir/tests/runner-mover.c" -o mover.so \
  > cc.out 2>&1
ok $? 'a provider that tampers with folders is built' || diag "$(cat cc.out)"
MOVER_TARGET=$here/precious
export MOVER_TARGET
mkdir precious
for n in $(seq 1 40); do
  mkdir "precious/$n"
  : > "precious/$n/file"
  : > "precious/$n.out"
done
find precious | sort > precious.before

MOVER=link "$DURAKIT" check ./mover.so --only 'turn/*' --run-id linked --classify 0 -j1 > tap 2> err
is "$(find precious | sort | diff precious.before -)" '' 'nothing is removed behind a link'
is "$(folder_of linked)" '' 'the folder of that run is removed'
like "$(cat tap)" 'verdict: "host-damage"' 'the plugin is at fault'
like "$(cat tap)" 'found: "../../checks"' 'for what it has moved'
is "$(grep -c -e '^ok' -e '^not ok' tap)" "$(sed -n 's/^1\.\.//p' tap)" 'and each check was run'
is "$(grep -c 'verdict: "error"' tap)" 0 'without an error of the kit'

# Nor does it hold up the checks that come after it.
MOVER=names timeout -k 5 120 "$DURAKIT" check ./mover.so --only 'turn/*' --run-id "n$$" \
  --classify 0 -j1 > tap 2> err
is $? 1 'a plugin that takes the names of the next checks is at fault' || diag "$(cat err)"
is "$(grep -c '^ *verdict: "error"' tap)" 0 'and the kit has no error of its own'
like "$(cat tap)" 'verdict: "host-damage"' 'it is host damage'
like "$(cat tap)" 'message: "the check took names outside its folder' 'in words'
is "$(folder_of n$$)" '' 'the folder of that run is removed'

# Results are written in the folder that was made for them, and nowhere else.
mkdir -p precious/birth
echo precious > precious/birth/trace.txt
find precious | sort > precious.before
MOVER=results MOVER_OUT=$here/res timeout -k 5 60 "$DURAKIT" check ./mover.so --only turn/birth \
  --run-id "r$$" --out res --classify 0 > tap 2> err
is $? 1 'a plugin that puts a link among the results' || diag "$(cat err)"
is "$(find precious | sort | diff precious.before -)$(cat precious/birth/trace.txt)" precious \
  'leads them nowhere'
[ -f res/checks/turn/birth/trace.txt ] && [ ! -L res/checks/turn ]
ok $? 'they lie where they belong'
rm -r res/results.jsonl
mkfifo res/results.jsonl
timeout -k 5 60 "$DURAKIT" check "$MODEL" --only turn/birth --out res > tap 2> err
is $? 2 'a FIFO for the results is refused' || diag "$(cat err)"

if "$DURAKIT" list providers > /dev/null 2>&1 && command -v valgrind > ls.err \
  && [ -z "${SANITIZER_CFLAGS-}" ]; then
  MOVER=fifo timeout -k 5 100 "$DURAKIT" check ./mover.so --only turn/birth --memcheck \
    --run-id "p$$" --classify 0 > tap 2> err
  is $? 0 'a FIFO among the output of Valgrind is not read' || diag "$(cat tap err)"
  is "$(folder_of p$$)" '' 'the folder of that run is removed'
  : > precious/123.xml
  find precious | sort > precious.before
  MOVER=memcheck timeout -k 5 100 "$DURAKIT" check ./mover.so --memcheck \
    --only turn/birth,turn/second-handle --run-id "x$$" --classify 0 > tap 2> err
  is "$(find precious | sort | diff precious.before -)" '' \
    'no output of Valgrind is looked for elsewhere'
  is "$(grep -c '^ok' tap)" 2 'and none is lost' || diag "$(cat tap err)"
else
  skip 'what lies among the output of Valgrind' 'there is no Valgrind'
fi

if [ "$(id -u)" = 0 ] && unshare -m true 2> /dev/null; then
  MOVER=mount unshare -m "$DURAKIT" check ./mover.so --only turn/birth --run-id mounted > tap 2> err
  is "$(find precious | sort | diff precious.before -)" '' 'what is mounted is not emptied'
  like "$(cat err)" \
    'durakit-run-mounted-.*: the folder of the run could not be removed completely' \
    'what is left is reported'
  like "$(cat err)" 'found .* here: another file system is mounted there' 'with the place'
  # The mount has ended with its namespace.
  for path in $(folder_of mounted); do rm -r "$path"; done
  is "$(find precious | sort | diff precious.before -)" '' 'nor later'
else
  skip 'what is mounted is not emptied' 'a mount needs root, and a namespace of its own'
fi

done_testing
