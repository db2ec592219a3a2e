#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each option of configure builds, passes the tests, and says what it leaves out.  Out of the tree.
# It takes minutes: make check-deep.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${MAKE:=make}"
scratch
unset MAKEFLAGS MFLAGS MAKELEVEL TESTS
jobs=$(nproc 2>/dev/null || echo 1)

# builds OPTION PATTERN: PATTERN is the line of configure's summary that says what the option did.
builds() {
  dir=$scratch/build
  rm -rf "$dir"
  mkdir "$dir"
  cd "$dir" || exit 99
  run_ok "$1: configure" "$top_srcdir/configure" --enable-werror "$1" || return
  like "$tap_out" "$2" "$1: the summary says so"
  run_ok "$1: make" "$MAKE" -s -j"$jobs" || return
  run_ok "$1: make check" "$MAKE" -s -j"$jobs" check
  cd "$scratch" || exit 99
}

builds --without-sqlite 'sqlite plugin .*left out (--without-sqlite)'
builds --without-pg 'pg plugin .*left out (--without-pg)'
builds --without-valgrind 'Valgrind .*left out (--without-valgrind)'
builds --enable-sanitizers 'sanitizers .*address, undefined'

done_testing
