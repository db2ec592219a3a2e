#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples with a runtime in them, as a stranger has them: copied from where they are installed,
# built with nothing but pkg-config durakit, and judged by what they print.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
. "$top_srcdir/tests/varying.sh"
: "${CC:=cc}" "${MAKE:=make}" "${PKG_CONFIG:=pkg-config}" "${SANITIZER_CFLAGS=}" "${SQLITE_PLUGIN=}"
: "${PG_PLUGIN=}"
scratch
unset MAKEFLAGS MFLAGS MAKELEVEL DURAKIT_PLUGIN_PATH LD_LIBRARY_PATH PKG_CONFIG_SYSROOT_DIR
root=$scratch/root
run_ok 'make install' "$MAKE" -s -C "$top_builddir" install DESTDIR="$root" || done_testing

# ---- copy and build ------------------------------------------------------------------------------

found() { find "$root" -path "$1" | head -n 1; }
pc=$(found '*/pkgconfig/durakit.pc')
hello=$(found '*/examples/runtime/hello.c')
[ -n "$pc" ] && [ -n "$hello" ]
ok $? 'durakit.pc and the examples are installed' || done_testing
# As if the prefix were below $root: all folders that the file names.  The library is found because
# the Makefile of the examples tells the linker where it is, and by nothing else.
sed "s|^\([a-z_]*=\)/|\1$root/|" "$pc" > "$scratch/durakit.pc"
cp "$scratch/durakit.pc" "$pc"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
mkdir "$scratch/mine"
cd "$scratch/mine" || exit 99
cp "$(dirname "$hello")"/* .
run_ok 'they are built with their own Makefile, without a warning' \
  "$MAKE" -s CC="$CC" \
  CFLAGS="-Werror -Wshadow -Wconversion -Wpointer-arith $SANITIZER_CFLAGS" || done_testing

# What differs from run to run, and where it is installed.
plain() { without_varying | sed 's|/[^ ]*/model\.so|MODEL|'; }

# run COMMAND...: what it prints, on standard output and on the other, and its exit code.
run() {
  timeout 600 "$@" 2>&1
  echo "exit $?"
}

# shows COMMAND TEXT NAME: it prints this and no more.
shows() {
  # shellcheck disable=SC2086
  is "$(run $1 | plain)" "$2" "$3"
}

# ---- hello ---------------------------------------------------------------------------------------

shows './hello' 'usage: ./hello PROVIDER key=value... [ARGUMENT...]
exit 2' 'hello: without a provider it prints its usage'
./hello no-such-plugin > out 2>&1
like "$(cat out)" "^no-such-plugin: No such file" \
  'hello: a plugin that is nowhere is named'
DURAKIT_PLUGIN_PATH=$(dirname "$(found '*/durakit/model.so')")
export DURAKIT_PLUGIN_PATH
shows './hello model colour=blue' "model: colour: there is no setting 'colour'
  expected  store, mutant
  found     colour
  next      durakit probe MODEL lists its settings
exit 1" 'hello: a setting that is not known'
shows './hello model Ada' 'hello-Ada is started
hello-Ada is completed: Hello, Ada!
exit 0' 'hello: on the model'

# ---- what all of them print ----------------------------------------------------------------------

# said FILE TEXT NAME
said() { is "$(plain < "$1")" "$2" "$3"; }

# number FILE WORDS: the number where a line with these words has an N.
number() { sed -n "s/^.*$(printf %s "$2" | sed 's/N/\\([0-9][0-9]*\\)/').*/\1/p" "$1"; }

# read_counts FILE
read_counts() {
  ended=$(number "$1" ' N ran to their end, in time')
  late=$(number "$1" ' N ran to their end, too late')
  told=$(number "$1" ' N were notified') never=$(number "$1" ' N never ran')
  offers=$(number "$1" 'offers N ') refusals=$(number "$1" 'refusals N ')
  dropped=$(number "$1" 'dropped N ')
}

# judge_fan PROVIDER: four run at once, and these three providers hand out rows in their order.  One
# that is slow comes before the third offer; and when sixteen have begun, all four slots are taken
# by slow ones.
judge_fan() {
  counts='N ran to their end, in time
N ran to their end, too late: the store refused the result
N were notified while they ran
N never ran'
  said fan-1 "trip-1 is started: 100 suppliers are asked, 3 offers are enough
trip-1 is completed: booked for N from supplier N; offers 3 + refusals N + dropped N = 100
$counts
   100 together, of 100
exit 0" "fan-out: on $1"
  read_counts fan-1
  is "$((ended + late + told + never)) $((offers + refusals + dropped))" '100 100' \
    "fan-out: on $1 both views add up"
  [ "$ended" -ge "$((offers + refusals))" ] && [ "$told" -ge 1 ] && [ "$told" -le 4 ]
  ok $? "fan-out: on $1 $ended have ended, $late too late, $told notified"
  [ "$never" -ge 84 ]
  ok $? "fan-out: on $1 $never never ran"
  said fan-few "trip-2 is started: 3 suppliers are asked, 3 offers are enough
trip-2 is failed: 2 of 3 suppliers have an offer
$counts
     3 together, of 3
exit 0" "fan-out: on $1 too few have an offer"
  read_counts fan-few
  is "$ended $late $told $never" '3 0 0 0' "fan-out: on $1 all of these run to their end"
}

# judge_jobs PROVIDER: what is printed, how soon each has ended, and what is left of it.
judge_jobs() {
  said jobs-1 "durakit: warning: instance job-process, activity 2 (process): it has not ended \
within its grace of 500 ms: its process is killed
job-flag is started
job-flag is cancelled: it takes too long
  requested by Ada
  it noticed T ms after the request
job-descriptor is started
job-descriptor is cancelled: it takes too long
  requested by Ada
  it noticed T ms after the request
  its program PID had ended T ms after the request
job-process is started
job-process is cancelled: it takes too long
  requested by Ada
  it never checks, and had its grace of 500 ms
  its process PID had ended T ms after the request
  its program PID had ended T ms after the request
3 notified, 3 of them by the commit; 2 ended in their grace, 1 killed; threads in quarantine: 0
exit 0" "cancellable: on $1"
  sed -n 's/.* \([0-9]*\) ms after .*/\1/p' jobs-1 > jobs-ms
  is "$(awk '$1 >= 25000 { print } END { if (NR != 5) print NR " times" }' jobs-ms)" '' \
    "cancellable: on $1 none waits for a renewal: ms $(tr '\n' ' ' < jobs-ms)"
  is "$(awk 'NR > 3 && $1 < 499' jobs-ms)" '' "cancellable: on $1 the grace is granted"
  is "$(cat jobs-left)" '' "cancellable: on $1 no process is left"
}

# left.sh VALUE PAUSE: processes that have this value in their environment.  It waits for a while
# until there is none, for what was killed needs a moment to die.
cat > left.sh <<'LEFT'
for _ in 1 2 3 4 5 6 7 8 9 10; do
  grep -l -a -F "EXAMPLE=$1" /proc/[0-9]*/environ 2> /dev/null || exit 0
  sleep "$2"
done | tail -n 1
LEFT
env EXAMPLE="$PWD/control" sleep 60 &
control=$!
until [ "$(cat /proc/$control/comm)" = sleep ]; do sleep 0.1; done
like "$(sh left.sh "$PWD/control" 0.1)" "/$control/environ" 'a process that is left is found'
kill $control

# In the timer's case the limit is long enough for the activity to begin on a busy machine.
cat > all.sh <<'ALL'
run() {
  timeout 600 "$@" 2>&1
  echo "exit $?"
}
run ./hello "$@" > hello-1
run ./hello "$@" > hello-2
run ./select-timeout "$@" o1 3000 600000 > timer-1
run ./select-timeout "$@" o1 3000 600000 > timer-2
run ./select-timeout "$@" o2 600000 10 > activity
run ./fan-out "$@" > fan-1
run ./fan-out "$@" > fan-2
run ./fan-out "$@" trip-2 3 > fan-few
run env EXAMPLE="$PWD/jobs" ./cancellable "$@" > jobs-1
sh left.sh "$PWD/jobs" 1 > jobs-left
run ./cancellable "$@" > jobs-2
ALL

# ---- serve ---------------------------------------------------------------------------------------

shows './serve --metrics serve.prom' 'usage: ./serve PROVIDER key=value... [ARGUMENT...]
exit 2' 'serve: without a provider it prints its usage'
./serve --metrics serve.prom model > served 2>&1 &
pid=$!
until grep -q '^serve: works' served || ! kill -0 $pid; do :; done
kill -TERM $pid
wait $pid
is "$? $(cat served)" '0 serve: works on orders; Ctrl-C ends it
serve: ends; what it works on is given back' 'serve: works until it gets a signal'
is "$(grep -c '^# TYPE dk_' serve.prom)" 13 'serve: and has saved its metrics'

# ---- fan-out and cancellable, on the model -------------------------------------------------------

# Its store lives as long as the process.
sh all.sh model
judge_fan model
judge_jobs model

# One that deletes nothing.  The last of them end after twenty seconds.
run ./fan-out model mutant=cancel/nothing-deleted trip-1 8 > spared
read_counts spared
is "$ended $late $told $never" '8 0 0 0' 'fan-out: where no row is deleted all of them run'

# ---- all, where a store outlives them ------------------------------------------------------------

# judge PROVIDER: what all.sh has left here.
judge() {
  first='hello-world is completed: Hello, world!
exit 0'
  said hello-1 "hello-world is started
$first" "hello: on $1"
  said hello-2 "hello-world exists already
$first" "hello: on $1, once more"

  started='"v":1,"kind":"started","time":T,"name":"order","version":"1.0.0"'
  end='"error":"charge took longer than 3000 ms","code":"application"'
  past="  1 {$started,\"input\":\"3000 600000\"}
  2 {\"v\":1,\"kind\":\"activity\",\"time\":T,\"name\":\"charge\",\"input\":\"600000\"}
  3 {\"v\":1,\"kind\":\"timer\",\"time\":T,\"duration\":3000,\"fire_at\":T}
  4 {\"v\":1,\"kind\":\"timer_fired\",\"time\":T,\"source\":3}
  5 {\"v\":1,\"kind\":\"dropped\",\"time\":T,\"source\":2,\"code\":\"select_loser_timeout\"}
  6 {\"v\":1,\"kind\":\"failed\",\"time\":T,$end}
exit 0"
  said timer-1 "o1 is started: charge needs 600000 ms, the limit is 3000 ms
o1 is failed: charge took longer than 3000 ms
charge was notified after T ms: cancelled, learnt by the commit
a renewal of its lease is answered DK_LOCK_LOST: its row was deleted
$past" "select-timeout: on $1 the timer wins"
  told=$(sed -n 's/^charge was notified after \([0-9]*\) ms.*/\1/p' timer-1)
  [ "${told:-600000}" -lt 300000 ]
  ok $? "select-timeout: on $1 the activity does not sleep on: notified after ${told:-?} ms"
  said timer-2 "o1 exists already
o1 is failed: charge took longer than 3000 ms
$past" "select-timeout: on $1 the same, once more"

  said activity "o2 is started: charge needs 10 ms, the limit is 600000 ms
o2 is completed: paid
charge ended after T ms, and was not cancelled
  1 {$started,\"input\":\"600000 10\"}
  2 {\"v\":1,\"kind\":\"activity\",\"time\":T,\"name\":\"charge\",\"input\":\"10\"}
  3 {\"v\":1,\"kind\":\"timer\",\"time\":T,\"duration\":600000,\"fire_at\":T}
  4 {\"v\":1,\"kind\":\"activity_completed\",\"time\":T,\"source\":2,\"result\":\"paid\"}
  5 {\"v\":1,\"kind\":\"dropped\",\"time\":T,\"source\":3,\"code\":\"select_loser_other\"}
  6 {\"v\":1,\"kind\":\"completed\",\"time\":T,\"output\":\"paid\"}
exit 0" "select-timeout: on $1 the activity wins"

  judge_fan "$1"
  said fan-2 "trip-1 exists already
$(plain < fan-1 | sed -n '2p;$p')" "fan-out: on $1 the same, once more"
  judge_jobs "$1"
  again=
  for style in flag descriptor process; do
    again="${again}job-$style exists already
job-$style is cancelled: it takes too long
  requested by Ada
"
  done
  said jobs-2 "${again}exit 0" "cancellable: on $1 the same, once more"
  rm -f hello-[12] timer-[12] activity fan-[12] fan-few jobs-*
}

if [ -f "$SQLITE_PLUGIN" ]; then
  sh all.sh sqlite store=examples.db
  judge sqlite
else
  skip 'the examples on sqlite' 'the sqlite plugin was left out'
fi

if [ -f "$PG_PLUGIN" ] && [ -z "$SANITIZER_CFLAGS" ]; then
  # Gone afterwards, for the server may be a user's own.
  cat > pg.sh <<'PG'
sh all.sh pg schema="$1"
psql -q -X -c 'SET client_min_messages = warning' -c "DROP SCHEMA \"$1\" CASCADE"
PG
  "$top_srcdir/tests/with-postgres" -q --tap sh pg.sh "examples-$$" > out 2>&1
  if grep -q '^1\.\.0 # SKIP' out; then
    skip 'the examples on pg' "$(sed -n 's/^1\.\.0 # SKIP //p' out)"
  else
    is "$(cat out)" '' 'a PostgreSQL server for the examples'
    judge pg
  fi
else
  skip 'the examples on pg' 'the pg plugin was left out, or sanitizers find what is not ours'
fi

done_testing
