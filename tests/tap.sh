# SPDX-License-Identifier: Apache-2.0
# TAP for our shell tests: source it, say ok/is/like, end with done_testing.
# The build sets top_srcdir, top_builddir (absolute) and DURAKIT (the command as built).

set -u
# With sanitizers: a child that ends early has lost nothing that the leak check should report.
[ -z "${ASAN_OPTIONS-}" ] || export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
tap_count=0
tap_failed=0
: "${top_srcdir:=$(cd "$(dirname "$0")/.." && pwd)}"
: "${top_builddir:=$top_srcdir/build}"

# diag TEXT: what a person needs to know of a failure.
diag() {
  printf "%s\n" "$*" | sed -e "s/^/# /" -e 60q
}

# ok STATUS NAME: the test passes if STATUS is 0.  The name's '#' would start a directive.
ok() {
  tap_count=$((tap_count + 1))
  tap_name=$(printf '%s' "$2" | tr '#\n' '_ ')
  if [ "$1" -eq 0 ]; then
    echo "ok $tap_count - $tap_name"
  else
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_count - $tap_name"
  fi
  return "$1"
}

# is FOUND EXPECTED NAME
is() {
  if [ "$1" = "$2" ]; then
    ok 0 "$3"
  else
    ok 1 "$3"
    diag "expected: $2"
    diag "found:    $1"
    return 1
  fi
}

# like TEXT PATTERN NAME: a basic regular expression, matched line by line.
like() {
  if printf '%s\n' "$1" | grep -q -e "$2"; then
    ok 0 "$3"
  else
    ok 1 "$3"
    diag "expected a line like: $2"
    diag "found: $1"
    return 1
  fi
}

# run_ok NAME COMMAND...: passes if the command does; what it printed is shown only if not.
run_ok() {
  tap_run_name=$1
  shift
  if tap_out=$("$@" 2>&1); then
    ok 0 "$tap_run_name"
  else
    tap_status=$?
    ok 1 "$tap_run_name"
    diag "exit $tap_status: $*"
    diag "$(printf '%s\n' "$tap_out" | tail -n 40)"
    return 1
  fi
}

# skip NAME REASON: one test point that cannot be judged here.
skip() {
  tap_count=$((tap_count + 1))
  echo "ok $tap_count - $1 # SKIP $2"
}

# skip_all REASON: nothing here can be judged.
skip_all() {
  echo "1..0 # SKIP $1"
  exit 0
}

# scratch: make a folder of this test's own, removed at its end, and name it in $scratch.
scratch() {
  scratch=$(mktemp -d "${TMPDIR:-/tmp}/durakit-test.XXXXXX") || exit 99
  trap 'chmod -R u+w "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

done_testing() {
  echo "1..$tap_count"
  [ "$tap_count" -gt 0 ] && [ "$tap_failed" -eq 0 ]
  exit
}
