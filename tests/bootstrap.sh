#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What ./bootstrap does on a machine that is simulated: packages, options, totals, exit codes.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
bash=$(command -v bash) || skip_all 'bash is not installed'
unset MAKEFLAGS MFLAGS MAKELEVEL

# A tree that is configured in no time, and a machine that does what the files in its folder say.
mkdir -p "$scratch/tree" "$scratch/bin" "$scratch/says"
cd "$scratch/tree" || exit 99
mkdir build-aux m4 core
sed "s#/etc/postgresql-common#$scratch/etc#" "$top_srcdir/bootstrap" > bootstrap
conf=$scratch/etc/createcluster.conf
export conf
touch configure.ac Makefile.am m4/durakit.m4 core/local.mk
touch Makefile.in config.h.in build-aux/tap-driver.sh
program() { cat > "$1"; chmod +x "$1"; }
program configure <<'EOF'
#!/bin/sh
echo "configure $*" >> "$SAYS/log"
touch Makefile config.status
printf '\n    durakit summary\n\n'
EOF
program "$scratch/bin/autoreconf" <<'EOF'
#!/bin/sh
echo "autoreconf $*" >> "$SAYS/log"
EOF
program "$scratch/bin/dpkg-query" <<'EOF'
#!/bin/sh
shift 3
for name; do
  grep -qx "$name" "$SAYS/absent" || echo "$name:amd64 installed"
done
EOF
program "$scratch/bin/apt-get" <<'EOF'
#!/bin/sh
echo "apt-get $*" >> "$SAYS/log"
[ ! -e "$conf" ] || echo "conf $(cat "$conf")" >> "$SAYS/log"
[ ! -e "$SAYS/apt-fails" ]
EOF
program "$scratch/bin/id" <<'EOF'
#!/bin/sh
cat "$SAYS/user"
EOF
program "$scratch/bin/sudo" <<'EOF'
#!/bin/sh
[ "$1" != -n ] || shift
[ -e "$SAYS/sudo" ] && exec "$@"
exit 1
EOF
program "$scratch/bin/make" <<'EOF'
#!/bin/sh
echo "make $*" >> "$SAYS/log"
case " $* " in *' check '*)
  i=0
  while read -r result; do
    i=$((i + 1))
    echo ":test-result: $result test $i" >> build/made.trs
  done < "$SAYS/results"
  printf ':took: 12\n0m0.1s 0m0.1s\n1m1.5s 0m2.5s\n' >> build/made.trs
  printf 'ok 1 - well\nnot ok 2 - not so well\n# found: nothing\n' > build/made.log
  exit "$(cat "$SAYS/status")" ;;
esac
EOF
SAYS=$scratch/says
export SAYS
log=$SAYS/log

# machine USER ABSENT-PACKAGE...
machine() {
  echo "$1" > "$SAYS/user"
  shift
  printf '%s\n' "$@" > "$SAYS/absent"
  rm -f "$SAYS/sudo"
  : > "$log"
}

# tests STATUS RESULT...: what make check will end with, and the results of its tests
tests() {
  echo "$1" > "$SAYS/status"
  shift
  [ $# -eq 0 ] && : > "$SAYS/results" || printf '%s\n' "$@" > "$SAYS/results"
}

# run EXPECTED-EXIT ARGUMENT...: standard output in $out, standard error in $err
run() {
  expected=$1
  shift
  PATH=$scratch/bin:$PATH "$bash" ./bootstrap "$@" > out 2> err < /dev/null
  is $? "$expected" "bootstrap $*: exit $expected" || diag "$(cat out err)"
  out=$(cat out) err=$(cat err)
}
count() { grep -c -e "$1" "$log"; }

machine 0
run 0
is "$(cat "$log")" 'configure --enable-werror' 'all is there: it only configures'
machine 0
run 0
is "$(cat "$log")" '' 'the second time there is nothing to do'
touch -d 'now + 1 minute' core/local.mk
run 0
is "$(count '^autoreconf')" 1 'a changed local.mk makes the configure script anew'
touch -d 'now - 1 minute' core/local.mk

machine 0 valgrind gcc
run 0
is "$(sed -n 's/^apt-get .* \(update\|install\)/\1/p' "$log" | tr '\n' ' ')" \
  'update install -y --no-install-recommends gcc valgrind ' 'root: the missing ones are installed'
machine 1000 valgrind
touch "$SAYS/sudo"
run 0
is "$(count 'install .*valgrind$')" 1 'sudo without a password: so they are'
machine 1000 valgrind
run 4
is "$(count '^apt-get')" 0 'without rights: nothing is installed'
like "$err" 'apt-get install --no-install-recommends valgrind$' 'the one command is printed'
like "$err" '^  valgrind .*memory' 'with the reason'

machine 0 postgresql
run 0
is "$(count '^conf create_main_cluster = false$')" 2 'postgresql: no server while it is installed'
is "$(ls "$scratch/etc" 2> ls.err)" '' 'and the setting for that is removed afterwards'
: > "$SAYS/apt-fails"
machine 0 postgresql
run 4
is "$(ls "$scratch/etc" 2> ls.err)" '' 'even if apt-get fails'
rm "$SAYS/apt-fails"
mkdir -p "$scratch/etc"
echo 'of the administrator' > "$conf"
machine 0 postgresql
run 0
is "$(cat "$conf")" 'of the administrator' 'but not if it was there before'

machine 0
run 0 -- --without-pg
is "$(cat "$log" | tr '\n' ' ')" 'configure --without-pg --enable-werror make -C build clean ' \
  'new options: configured, and everything is built again'
machine 0
run 0
is "$(cat "$log")" '' 'they are kept'

tests 0 PASS PASS XFAIL
run 0 check
is "$(echo "$out" | tail -n 1)" '3 passed, 0 failed' 'check: the last line'
is "$(echo "$out" | grep -c '^====')" 0 'check: what tests have said is shown if they failed'
is "$(count '^configure')" 0 'check: built as before, where a warning is an error'
tests 0 PASS
run 0 check
is "$(echo "$out" | tail -n 1)" '1 passed, 0 failed' 'check: results of the last time do not count'
tests 2 PASS SKIP FAIL ERROR XPASS
run 1 check
is "$(echo "$out" | tail -n 1)" '1 passed, 3 failed, 1 skipped' 'check: failures and skips'
is "$(echo "$out" | sed -n '/^====/,/^# found/p')" '==== build/made.log
not ok 2 - not so well
# found: nothing' 'check: the output of the failed tests'
like "$out" '^ *12 *64  made$' 'check: the slowest tests, with their times'
tests 2 PASS
run 1 check
is "$(echo "$out" | tail -n 1)" '1 passed, 1 failed' 'check: a build that fails is a failure'
tests 0
run 1 check
is "$(echo "$out" | tail -n 1)" '0 passed, 1 failed' 'check: no test at all is a failure'
tests 0 SKIP
run 1 check
is "$(echo "$out" | tail -n 1)" '0 passed, 1 failed, 1 skipped' 'check: skips alone are a failure'

tests 0 PASS
machine 0
run 0 check --
is "$(count '^configure --enable-werror$')" 1 'check --: back to no options'
rm -r build
mkdir -p build/runner
printf '#!/bin/sh\n' > build/runner/durakit
chmod +x build/runner/durakit
machine 0
run 0 certify
run 0 check
run 0
run 0 certify
is "$(grep -v ' \(all\|check\)$' "$log")" 'configure --enable-werror' \
  'one build for all: no command configures or builds again what another has built'
machine 0
run 0 certify -- --disable-werror
is "$(count '^configure --disable-werror$')" 1 'a warning that blocks the build can be ignored'
machine 0
run 0 check
is "$(count '^configure')" 0 'which is kept'
run 0 certify -- --without-pg --enable-werror=no
is "$(count '^configure --without-pg --enable-werror=no$')" 1 'in whatever words'

run 2 chekc
like "$err" "unknown command 'chekc'" 'an unknown command is named'
run 2 check --without-pg
run 0 --help
like "$out" '^  ./bootstrap check' 'the help'

done_testing
