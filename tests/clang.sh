#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The whole with clang: no warning, and the tests pass.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${MAKE:=make}"
command -v clang >/dev/null || skip_all 'clang is not installed (Debian: clang)'
scratch
unset MAKEFLAGS MFLAGS MAKELEVEL TESTS
jobs=$(nproc 2>/dev/null || echo 1)

cd "$scratch" || exit 99
run_ok configure "$top_srcdir/configure" --enable-werror CC=clang CXX=clang++ &&
  run_ok make "$MAKE" -s -j"$jobs" &&
  run_ok 'make check' "$MAKE" -s -j"$jobs" check

done_testing
