#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A plugin lowers the limits of the process that started it: the run neither waits for ever nor
# passes; it sets them back and reports that.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
[ -z "${SANITIZER_CFLAGS-}" ] || skip_all 'a sanitizer needs more memory than is left here'
scratch
cd "$scratch" || exit 99

# plugin NAME FLAGS...
plugin() {
  name=$1
  shift
  ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC "-DMODEL=\"$MODEL\"" "$@" \
    "$top_srcdir/tests/runner-meddling.c" -o "$name.so" -ldl > cc.out 2>&1
  ok $? "$name: is built" || diag "$(cat cc.out)"
}

# What a run needs is seconds; what it must not do is wait without end.  Through a pipe, for a file
# that it cannot write to while a limit is lower is another failure.
check() {
  {
    timeout 300 "$DURAKIT" check "./$1.so" --only 'turn/*' --format tap "$2" 2> err
    echo $? > code
  } | cat > tap
  return "$(cat code)"
}

# reports NAME LIMIT: it is set back, each check has its verdict, and the limit is named.
reports() {
  for jobs in -j1 -j4; do
    check "$1" $jobs
    is $? 1 "$1 $jobs: exit 1" || diag "$(cat tap err)"
    is "$(sed -n 's/^1\.\.//p' tap)" "$(grep -c -e '^ok' -e '^not ok' tap)" \
      "$1 $jobs: every check has its point"
    like "$(cat tap)" '^  verdict: "host-damage"' "$1 $jobs: it is host damage"
    like "$(cat tap)" "^  found: .*$2 was set to" "$1 $jobs: and the limit is named"
    like "$(cat tap)" '^# RESULT=FAIL' "$1 $jobs: there is a last line"
  done
}

plugin address-space -DLIMIT=RLIMIT_AS -DVALUE=1048576
reports address-space RLIMIT_AS
plugin data -DLIMIT=RLIMIT_DATA -DVALUE=4096
reports data RLIMIT_DATA
plugin descriptors -DLIMIT=RLIMIT_NOFILE -DVALUE=3
reports descriptors RLIMIT_NOFILE
plugin file-size -DLIMIT=RLIMIT_FSIZE -DVALUE=0
reports file-size RLIMIT_FSIZE
plugin processor-time -DLIMIT=RLIMIT_CPU -DVALUE=0
reports processor-time RLIMIT_CPU

# A run that has no right to raise a limit again continues with what is left, and ends.
plugin for-good -DLIMIT=RLIMIT_AS -DVALUE=1048576 -DHARD
for jobs in -j1 -j4; do
  check for-good $jobs
  code=$?
  [ $code -ge 1 ] && [ $code -le 5 ]
  ok $? "for-good $jobs: an exit code of the kit's, and no pass" || diag "exit $code: $(cat err)"
  [ -s err ] || grep -q '^# RESULT=' tap
  ok $? "for-good $jobs: and words"
done
timeout 300 "$DURAKIT" probe ./for-good.so > out 2> err
[ $? -le 5 ]
ok $? 'for-good: probe ends, too' || diag "$(cat err)"

done_testing
