#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each option of configure, and clang, builds without a warning, passes the tests, and says what it
# leaves out.  Out of the tree.
# It takes minutes: make check-deep.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${MAKE:=make}"
scratch
unset MAKEFLAGS MFLAGS MAKELEVEL TESTS
jobs=$(nproc 2>/dev/null || echo 1)

# Runs the tests, and says of them only what did not pass.
check() {
  "$MAKE" -s -j"$jobs" check > log 2>&1
  set -- $?
  grep -E '^(FAIL|ERROR|XPASS|# [A-Z]+:)|error:|\*\*\*' log
  return "$1"
}

# builds PATTERN OPTION...: PATTERN is the line of configure's summary that says what they did.
builds() {
  pattern=$1
  shift
  rm -rf "$scratch/build"
  mkdir "$scratch/build"
  cd "$scratch/build" || exit 99
  run_ok "$*: configure" "$top_srcdir/configure" --enable-werror "$@" || return
  like "$tap_out" "$pattern" "$*: the summary shows that"
  run_ok "$*: make" "$MAKE" -s -j"$jobs" || return
  run_ok "$*: make check" check
}

builds 'sqlite plugin .*left out (--without-sqlite)' --without-sqlite
builds 'pg plugin .*left out (--without-pg)' --without-pg
builds 'Valgrind .*left out (--without-valgrind)' --without-valgrind
builds 'asserts .*left out (--disable-assert)' --disable-assert
builds 'sanitizers .*address, undefined' --enable-sanitizers
if command -v clang > /dev/null; then
  builds 'compiler .*clang' CC=clang CXX=clang++
else
  skip 'CC=clang' 'clang is not installed (Debian: clang)'
fi
cd "$scratch" || exit 99

done_testing
