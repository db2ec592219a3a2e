#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples with a runtime in them, as a stranger has them: copied from where they are installed,
# built with nothing but pkg-config durakit, and judged by what they print.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${CC:=cc}" "${MAKE:=make}" "${PKG_CONFIG:=pkg-config}" "${SANITIZER_CFLAGS=}" "${SQLITE_PLUGIN=}"
: "${PG_PLUGIN=}"
scratch
unset MAKEFLAGS MFLAGS MAKELEVEL DURAKIT_PLUGIN_PATH
root=$scratch/root
run_ok 'make install' "$MAKE" -s -C "$top_builddir" install DESTDIR="$root" || done_testing

# ---- copy and build ------------------------------------------------------------------------------

found() { find "$root" -path "$1" | head -n 1; }
pc=$(found '*/pkgconfig/durakit.pc')
hello=$(found '*/examples/runtime/hello.c')
[ -n "$pc" ] && [ -n "$hello" ]
ok $? 'durakit.pc and the examples are installed' || done_testing
PKG_CONFIG_PATH=$(dirname "$pc")
PKG_CONFIG_SYSROOT_DIR=$root
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR LD_LIBRARY_PATH
mkdir "$scratch/mine"
cd "$scratch/mine" || exit 99
cp "$(dirname "$hello")"/* .
run_ok 'they are built with their own Makefile, without a warning' \
  "$MAKE" -s CC="$CC" \
  CFLAGS="-Werror -Wshadow -Wconversion -Wpointer-arith $SANITIZER_CFLAGS" || done_testing

# What differs from run to run: times, and where it is installed.
plain() {
  sed -e 's/"\(time\|fire_at\)":[0-9]*/"\1":T/g' -e 's/after [0-9]* ms/after T ms/' \
      -e 's|/[^ ]*/model\.so|MODEL|'
}

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
exit 2' 'hello: without a provider it tells its usage'
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

# ---- both, where a store outlives them -----------------------------------------------------------

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
ALL

# said FILE TEXT NAME
said() { is "$(plain < "$1")" "$2" "$3"; }

# judge PROVIDER: what all.sh has left here.
judge() {
  first='hello-world is completed: Hello, world!
exit 0'
  said hello-1 "hello-world is started
$first" "hello: on $1"
  said hello-2 "hello-world is there already
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
charge was told to end after T ms: cancelled, learnt by the commit
a renewal of its lease is answered DK_LOCK_LOST: its row is gone
$past" "select-timeout: on $1 the timer wins"
  told=$(sed -n 's/^charge was told to end after \([0-9]*\) ms.*/\1/p' timer-1)
  [ "${told:-600000}" -lt 300000 ]
  ok $? "select-timeout: on $1 the activity does not sleep on: told after ${told:-?} ms"
  said timer-2 "o1 is there already
o1 is failed: charge took longer than 3000 ms
$past" "select-timeout: on $1 the same, once more"

  said activity "o2 is started: charge needs 10 ms, the limit is 600000 ms
o2 is completed: paid
charge ended after T ms, and was not told to
  1 {$started,\"input\":\"600000 10\"}
  2 {\"v\":1,\"kind\":\"activity\",\"time\":T,\"name\":\"charge\",\"input\":\"10\"}
  3 {\"v\":1,\"kind\":\"timer\",\"time\":T,\"duration\":600000,\"fire_at\":T}
  4 {\"v\":1,\"kind\":\"activity_completed\",\"time\":T,\"source\":2,\"result\":\"paid\"}
  5 {\"v\":1,\"kind\":\"dropped\",\"time\":T,\"source\":3,\"code\":\"select_loser_other\"}
  6 {\"v\":1,\"kind\":\"completed\",\"time\":T,\"output\":\"paid\"}
exit 0" "select-timeout: on $1 the activity wins"
  rm -f hello-1 hello-2 timer-1 timer-2 activity
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
