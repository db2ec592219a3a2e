#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What our TAP is worth to those who read it: prove, a YAML parser and automake's driver get streams
# that pass, fail, expect to fail, skip and bail out, and values that are hard to read.
# needs: conformance/tap/test-tap-failing

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
program=${TAP_FAILING:-$top_builddir/conformance/tap/test-tap-failing}
driver=$top_srcdir/build-aux/tap-driver.sh
unset TAP_VERSION PERL5OPT HARNESS_OPTIONS HARNESS_PERL_SWITCHES
cd "$scratch" || exit 99

[ -x "$program" ]
ok $? 'the program that makes the streams is built' || done_testing

# make_stream MODE: its stream, standard error and exit code in MODE.tap, MODE.err, MODE.code
make_stream() {
  "$program" "$1" > "$1.tap" 2> "$1.err"
  echo $? > "$1.code"
}

# ---- The calls of a test program: what they print, and their exit codes --------------------------

# exits MODE CODE
exits() {
  make_stream "$1"
  is "$(cat "$1.code")" "$2" "$1: exits with $2"
}

# prints MODE FILE EXPECTED
prints() {
  is "$(cat "$1.$2")" "$3" "$1: what it writes to $1.$2"
}

exits pass 0
prints pass tap 'TAP version 13
1..8
ok 1 - ok
ok 2 - is
ok 3 - is, without strings
ok 4 - isnt
ok 5 - isnt, without a string
ok 6 - cmp_ok, over signs
ok 7 - cmp_mem
ok 8 - pass, formatted
# a note
# of two lines'
prints pass err '# said on standard error'

exits fail 9
prints fail tap 'TAP version 13
1..9
not ok 1 - ok
not ok 2 - is
not ok 3 - is, without a string
not ok 4 - isnt
not ok 5 - cmp_ok
not ok 6 - cmp_ok, over signs
not ok 7 - cmp_mem
not ok 8 - cmp_mem, without bytes
not ok 9 - fail'
source_line='test-tap-failing\.c:[1-9][0-9]*$'
is "$(grep -c "^#   at        .*$source_line" fail.err)" 9 'fail: each failure says where it is'
is "$(grep -v '^#   at' fail.err)" '# failed: ok
#   expected  1 + 1 == 3
#   found     that it is false
# failed: is
#   expected  "b"
#   found     "a\n"
# failed: is, without a string
#   expected  "NULL"
#   found     NULL
# failed: isnt
#   expected  anything but "a"
#   found     "a"
# failed: cmp_ok
#   expected  2 < 1
#   found     2 and 1
# failed: cmp_ok, over signs
#   expected  -1 >= UINT64_MAX
#   found     -1 and 18446744073709551615
# failed: cmp_mem
#   expected  the same 3 bytes; byte 2 is 0x64
#   found     other bytes; byte 2 is 0x63
# failed: cmp_mem, without bytes
#   expected  NULL
#   found     other bytes
# failed: fail
#   expected  fail() is not reached
#   found     that it is false' 'fail: what was expected and found'

exits compare 0
is "$(grep -c '^Bail' compare.tap)" 0 'compare: each relation holds as it should'

exits todo 0
is "$(grep -v '^#' todo.tap)" 'TAP version 13
1..3
not ok 1 - a todo that fails # TODO issue 7
ok 2 - a todo that passes # TODO issue 7
ok 3 - after the todo' 'todo: its points'
is "$(grep -c '^# ' todo.tap)" 4 'todo: an expected failure is printed on standard output'
prints todo err ''
exits todo-and-fail 1
exits skip 0
prints skip tap 'TAP version 13
1..3
ok 1 - one that runs
ok 2 # SKIP no server
ok 3 # SKIP no server'
exits skip-all 0
prints skip-all tap 'TAP version 13
1..0 # SKIP no server'
exits bail-out 255
prints bail-out tap 'TAP version 13
1..2
ok 1 - one
Bail out!  no disk'
exits too-few 255
prints too-few tap 'TAP version 13
1..2
ok 1 - one
# planned 2, ran 1'
exits too-many 255
exits none 255
exits plan-last 0
prints plan-last tap 'TAP version 13
ok 1 - one
ok 2 - two
1..2'
exits done-testing 0
exits without-plan 255
is "$(grep '^#' without-plan.tap)" \
  '# libtap was misused: neither plan() nor done_testing() was called' 'without-plan: is reported'
exits unknown-relation 255
exits 300-fail 254
exits values 0
exits directives 0
TAP_VERSION=14 "$program" pass 2> /dev/null | head -n 1 > version
is "$(cat version)" 'TAP version 14' 'TAP_VERSION=14 gives version 14'

# ---- prove ---------------------------------------------------------------------------------------

passing='pass todo skip skip-all plan-last done-testing values directives'
failing='fail todo-and-fail bail-out too-few too-many none 300-fail'
failing_by_exit='without-plan unknown-relation'

# proves HOW CODE MODE: prove gets the stream from HOW and gives 0 or not, as CODE says.
proves() {
  prove_out=$(prove --norc -e "$1" "$3" 2>&1)
  prove_code=$?
  [ "$prove_code" -eq 0 ] || prove_code=fail
  case $1 in cat) prove_from=stream ;; *) prove_from=program ;; esac
  is "$prove_code" "$2" "prove, $prove_from $3: $2" || diag "$prove_out"
}

if command -v prove > /dev/null; then
  for mode in $passing; do
    proves cat 0 "$mode.tap"
    : > "$mode" # prove wants the name that it gives to the program to be a file
    proves "$program" 0 "$mode"
  done
  for mode in $failing; do
    proves cat fail "$mode.tap"
    : > "$mode"
    proves "$program" fail "$mode"
  done
  for mode in $failing_by_exit; do
    : > "$mode"
    proves "$program" fail "$mode"
  done
  prove --norc -e cat todo.tap > out 2>&1
  like "$(cat out)" 'TODO passed: *2' 'prove sees the todo that passes'
  prove --norc -e cat fail.tap > out 2>&1
  like "$(cat out)" 'Failed tests: *1-9' 'prove sees each failure'
  prove --norc -e cat bail-out.tap > out 2>&1
  like "$(cat out)" 'no disk' 'prove sees why it was bailed out'

  # A stream that says 14 is refused by an older prove: ours asks which one it has.
  : > pass
  prove --norc -v -e "$program" pass > out 2>&1
  like "$(cat out)" '^TAP version 1[34]' 'prove takes the version that it asked for'
else
  skip 'prove reads our streams' 'prove is not installed'
fi

# ---- The values, as prove's reader and as a YAML parser give them back ---------------------------

"$program" expected-values > expected
[ "$(wc -l < expected)" -gt 40 ]
ok $? 'the values to expect are known'

cat > reader.pl <<'PERL'
use strict;
use warnings;
use TAP::Parser;
sub show { print join(' ', $_[0], map { ord } split //, $_[1]), "\n" }
my $parser = TAP::Parser->new({ exec => ['cat', $ARGV[0]] });
my $data;
while (my $result = $parser->next) {
  $data = $result->data if $result->is_yaml;
}
die "errors: " . join('; ', $parser->parse_errors) if $parser->parse_errors;
die "tests_run " . $parser->tests_run if $parser->tests_run != 3;
die "no empty list" if @{ $data->{no_items} };
open my $expected, '<', $ARGV[1] or die;
my $item = 0;
while (<$expected>) {
  my ($key) = split;
  show($key, $key eq 'list' ? $data->{list}[$item++] : $data->{$key});
}
print "further items\n" if $item != @{ $data->{list} };
PERL

cat > reader.py <<'PYTHON'
import sys
import yaml
block = []
inside = False
for line in open(sys.argv[1], encoding='utf-8', newline='\n'):
    inside = inside or line == '  ---\n'
    if inside:
        block.append(line[2:])
    if line == '  ...\n':
        inside = False
data = yaml.safe_load(''.join(block))
assert data['no_items'] == []
items = iter(data['list'])
for line in open(sys.argv[2]):
    key = line.split()[0]
    value = next(items) if key == 'list' else data[key]
    print(' '.join([key] + [str(ord(c)) for c in str(value)]))
for item in items:
    print('further items')
PYTHON

# reads COMMAND...: given the stream and the expectation, it prints the expectation.
reads() {
  "$@" values.tap expected > found 2> errors
  is "$(cat found errors)" "$(cat expected)" "each value comes back: $*"
}

if perl -MTAP::Parser -e 1 2> /dev/null; then
  reads perl reader.pl
else
  skip 'each value comes back: perl' 'TAP::Parser is not installed'
fi
if python3 -c 'import yaml' 2> /dev/null; then
  reads python3 reader.py
else
  skip 'each value comes back: python3' 'the yaml module of python3 is not installed'
fi

# ---- Automake's driver ---------------------------------------------------------------------------

# driven MODE RESULTS: the driver runs the program and sees "one for all: one for each point".
driven() {
  printf '#!/bin/sh\nexec "%s" %s\n' "$program" "$1" > "run-$1"
  chmod +x "run-$1"
  AM_TAP_AWK=${AWK:-awk} sh "$driver" --test-name "$1" --log-file "$1.log" \
    --trs-file "$1.trs" --color-tests no --enable-hard-errors yes --expect-failure no \
    -- "./run-$1" > driven.out 2>&1
  is "$(awk '/^:test-result:/ { each = each " " $2 } /^:global-test-result:/ { all = $2 }
             END { print all ":" each }' "$1.trs")" "$2" "automake's driver, $1: $2"
}

if [ -f "$driver" ]; then
  driven plan-last 'PASS: PASS PASS'
  driven values 'PASS: PASS PASS PASS'
  driven directives 'PASS: SKIP XFAIL SKIP PASS'
  driven skip 'PASS: PASS SKIP SKIP'
  driven skip-all 'SKIP: SKIP'
  driven todo 'FAIL: XFAIL XPASS PASS'
  driven todo-and-fail 'ERROR: XFAIL FAIL ERROR'
  driven bail-out 'ERROR: PASS ERROR'
  driven too-few 'ERROR: PASS ERROR ERROR'
  driven none 'ERROR: ERROR ERROR'
  driven without-plan 'ERROR: PASS ERROR'
else
  skip "automake's driver reads our streams" 'build-aux/tap-driver.sh is not there: ./bootstrap'
fi

done_testing
