#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make try: one test with what it needs, its verdict, and what may be tried; and each script of ours
# says what it needs.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
scratch
cd "$scratch" || exit 99
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL TESTS T

# ---- in this build -------------------------------------------------------------------------------

# try_here T: what make prints is in out and err.
try_here() { "${MAKE:-make}" -C "$top_builddir" try "T=$1" > out 2> err; }

try_here core/base/test-utf8
is $? 0 'a program that passes'
like "$(cat out)" '^1\.\.[1-9]' 'its TAP is printed'
like "$(cat out)" '^# try: core/base/test-utf8 passed: [1-9][0-9]* passed, 0 failed$' \
  'and a verdict'
try_here 'turn/birth core/base/test-chksum HIST-1'
[ $? -ne 0 ]
ok $? 'an unknown program'
is "$(sed '$d' err)" \
  "try: core/base/test-chksum is neither a test program, nor a script, nor a check
  nearest   core/base/test-checksum
  next      make try, without T, shows what T may be" 'is refused, and the nearest name is printed'
is "$(grep -c '^ok' out)" 0 'before anything is run'
try_here 'turn/birth HIST-2'
is $? 0 'a check, and the checks of a clause'
like "$(cat out)" '^ok 1 - turn/birth$' 'are run'
like "$(cat out)" '^# provider: model ' 'on the model'
like "$(cat out)" '^# try: HIST-2 passed: [1-9]' 'each has a verdict'
try_here turn/brith
[ $? -ne 0 ]
ok $? 'an unknown check'
like "$(cat err)" '^  nearest   turn/birth$' 'is refused, and the nearest is printed'
try_here ''
[ $? -ne 0 ]
ok $? 'nothing to try'
like "$(cat err)" '^  core/base/test-text .*a test program' 'shows what may be tried'

# ---- verdicts ------------------------------------------------------------------------------------

# Programs and scripts of our own, before a make that notes what it shall build.
printf '#!/bin/sh\nshift 2\necho "$@" > "%s/built"\n' "$scratch" > make
chmod +x make
mkdir -p source/tests
cp "$top_srcdir/tests/try" source/tests/

# tried T...: its exit code; what it prints is in out and err.
tried() {
  TRY_PROGRAMS='good-test bad-test' TRY_SCRIPTS='tests/one.sh tests/plain.sh' \
    TRY_HELPERS='providers/a/test-b' \
    MAKE=$scratch/make top_srcdir=$scratch/source "$top_srcdir/tests/try" "$@" > out 2> err
}
program() { printf '#!/bin/sh\n%b' "$2" > "$1" && chmod +x "$1"; }
# fails NAME TEXT LIKE: bad-test is this program.
fails() {
  program bad-test "$2"
  tried good-test bad-test
  is $? 1 "$1: exit 1"
  like "$(cat out)" "^# try: bad-test FAILED: $3" "$1: so it says"
}

program good-test 'echo 1..2\necho ok 1 - a\necho not ok 2 - b "#" TODO c\n'
tried good-test
is $? 0 'what is expected to fail does not count'
fails 'a point that fails' 'echo 1..2; echo not ok 1 - a; echo ok 2 - b; exit 1\n' \
  '1 passed, 1 failed$'
is "$(tail -n 1 out)" '# try:   not ok 1 - a' 'and is shown once more, at the end'
fails 'a failure that the exit code hides' 'echo 1..1; echo not ok 1 - a\n' '0 passed, 1 failed$'
fails 'a point too few' 'echo 1..2; echo ok 1 - a\n' '1 passed, .*; 1 points, and 2 were planned$'
fails 'no plan' 'echo ok 1 - a\n' '1 passed, 0 failed; no plan was printed$'
fails 'an exit code' 'echo 1..1; echo ok 1 - a; exit 3\n' '1 passed, 0 failed; exit 3$'
fails 'a signal' 'echo 1..1; echo ok 1 - a; kill -9 $$\n' '1 passed, 0 failed; signal 9$'

# ---- what is built -------------------------------------------------------------------------------

program source/tests/one.sh '# needs: zoo a/b providers/a/test-b providers/c/test-b
. "$top_srcdir/tests/two.sh"\necho 1..0\n'
printf '# needs: c/d\n' > source/tests/two.sh
program source/tests/plain.sh 'echo 1..0\n'
tried good-test
is "$(cat built)" good-test 'a program is built, and nothing else'
tried tests/one.sh
is "$? $(cat built)" '0 all conformance/model/model-full.la zoo a/b providers/a/test-b c/d' \
  'a script needs what it says, and what scripts say that it names, of this build'
tried tests/plain.sh
is "$(cat built)" 'all conformance/model/model-full.la' 'or what make builds'

# needless FILE: programs and plugins that it names in the build, and that it does not say it needs.
needless() {
  needs=" $(sed -n 's/^# needs: //p' "$1" | tr '\n' ' ') "
  grep -v '^ *#' "$1" | grep -o 'top_builddir}*/[a-z/]*[a-z.-]*' | sed 's,^[^/]*/,,' | sort -u |
    while read -r file; do
      case $file in
        conformance/fixtures/zoo*)
          case $needs in *' zoo '* | *' conformance/fixtures/zoo/'*) continue ;; esac ;;
        tests/*/* | */test-*)
          case $needs in *" $file "*) continue ;; esac ;;
        *) continue ;;
      esac
      echo "${1##*/}: $file"
    done
}
cd "$top_srcdir" || exit 99
for script in tests/*.sh tests/*/*.sh; do needless "$script"; done > "$scratch/needless"
is "$(cat "$scratch/needless")" '' 'each script says what it needs (if not: its line of needs)'
top=top_builddir
printf '# needs: tests/a/b\n$%s/tests/a/b\n$%s/tests/a/c\n' $top $top > "$scratch/x.sh"
is "$(needless "$scratch/x.sh")" 'x.sh: tests/a/c' 'one that does not would be found'

done_testing
