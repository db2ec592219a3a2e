#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The SQLite plugin, the host and tests/stress, built anew with ThreadSanitizer: 16 threads on one
# store.  SQLite itself is not, so that what is called from within it is not judged.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
scratch
flags='-std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=thread -fPIC'
includes="-I$top_builddir -I$top_srcdir/core/include -I$top_srcdir"

# sources FOLDER: without the tests beside them.
sources() {
  find "$top_srcdir/$1" -maxdepth 1 -name '*.c' ! -name 'test-*' | sort
}

. "$top_srcdir/tests/tsan.sh"
cd "$scratch" || exit 99
tsan_or_skip "$flags"

# shellcheck disable=SC2046,SC2086
build_plugin() {
  ${CC:-cc} $flags $includes -fvisibility=hidden -shared \
    "-Wl,--version-script=$top_srcdir/conformance/provider.map" \
    $(sources providers/sqlite) $(sources providers/shared) \
    $(${PKG_CONFIG:-pkg-config} --cflags --libs sqlite3) -lpthread -o "$scratch/sqlite.so"
}
# shellcheck disable=SC2046,SC2086
build_stress() {
  ${CC:-cc} $flags $includes '-DDK_PLUGIN_DIR="/"' $(sources tests/stress) $(sources core/plugin) \
    $(sources core/base) $(sources conformance/tap) -ldl -lpthread -o "$scratch/stress"
}
run_ok 'the plugin is built' build_plugin || done_testing
run_ok 'tests/stress is built' build_stress || done_testing

echo 'called_from_lib:libsqlite3.so' > "$scratch/suppressions"
TSAN_OPTIONS="suppressions=$scratch/suppressions:halt_on_error=0:exitcode=66"
export TSAN_OPTIONS
run_ok '16 threads: no race, and the invariants hold' \
  "$scratch/stress" -p 0 -t 16 -n 10000 "$scratch/sqlite.so" "store=$scratch/store.db"

done_testing
