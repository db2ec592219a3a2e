#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The SQLite plugin under stress (tests/stress), in real time: two processes on one file; one, and
# then two, of which a hundred are killed at their work.  The program stress reports what must
# hold (stress.sh has what it finds), and then the file is checked.
#
#   DURAKIT_DEEP=1    on the disk of $TMPDIR, and longer
# needs: tests/stress/stress providers/sqlite/test-file

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -n "${DURAKIT_DEEP-}" ] || [ ! -w /dev/shm ] || TMPDIR=/dev/shm
scratch
plugin=${SQLITE_PLUGIN:-$top_builddir/providers/sqlite/.libs/sqlite.so}
operations=10000
kills=100
[ -z "${DURAKIT_DEEP-}" ] || { operations=30000; kills=500; }

# stress NAME WHAT ARGUMENT...
stress() {
  store=$scratch/$1.db
  what=$2
  shift 2
  run_ok "$what: the invariants hold" "$top_builddir/tests/stress/stress" "$@" "$plugin" \
    "store=$store" || return
  run_ok "$what: the file is sound, and nothing is left in it" \
    "$top_builddir/providers/sqlite/test-file" "$store"
}

stress two "two processes, $operations operations each" -n "$operations"
stress one "one process, $kills times killed" -p 1 -k "$kills" -l 200
stress both "two processes, $kills times killed" -p 2 -k "$kills" -l 200

done_testing
