#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Hosts and providers of different minors: code that tests for a member works, code that reads
# beyond its table faults at once, and a table that close has freed cannot be read by chance.
# needs: tests/abi/versions

. "${top_srcdir:-$(dirname "$0")/../..}/tests/tap.sh"
: "${CC:=cc}"
scratch
abi=$top_srcdir/tests/abi
host=$top_builddir/tests/abi/versions
header=$top_srcdir/core/include/durakit/provider.h

# The header of a later minor: dk_host, dk_ops and dk_provider each have a member more.
mkdir -p "$scratch/later/durakit"
sed -e 's/^#define DK_ABI_MINOR .*/#define DK_ABI_MINOR 99u/' \
    -e 's/^  void (\*duplicate)(.*/&\n  const void *(*added)(const void *, const char *);/' \
    -e 's/^  dk_release_fetch_fn \*release_fetch;/&\n  void (*added)(void *self);/' \
    -e 's/^  uint32_t runtime, reserved; .*/&\n  void (*added)(void *self);/' \
    "$header" > "$scratch/later/durakit/provider.h"
is "$(grep -c 'added)(' "$scratch/later/durakit/provider.h")" 3 'a header of a later minor was made'

# plugin NAME INCLUDE FLAGS...
plugin() {
  plugin_name=$1
  plugin_include=$2
  shift 2
  run_ok "$plugin_name.so compiles" $CC -std=gnu11 -fPIC -shared "$@" -I "$plugin_include" \
    -I "$top_srcdir" "$abi/grown.c" -o "$scratch/$plugin_name.so"
}
plugin now-asks "$top_srcdir/core/include" -DASKS
plugin now-reads "$top_srcdir/core/include"
plugin later-asks "$scratch/later" -DASKS -DGROWN
plugin later-reads "$scratch/later" -DGROWN

# faults NAME COMMAND...: it is killed by SIGSEGV.  Built with ASan the report takes its place.
faults() {
  faults_name=$1
  shift
  (ASAN_OPTIONS=handle_segv=0 "$@") > "$scratch/out" 2>&1
  is $? 139 "$faults_name"
}

run_ok 'this host, a provider of now' "$host" "$scratch/now-asks.so"
run_ok 'this host, a provider of now that reads the last member' "$host" "$scratch/now-reads.so"
run_ok 'this host, a provider of later that asks' "$host" "$scratch/later-asks.so"
faults 'this host, a provider of later that does not ask' "$host" "$scratch/later-reads.so"
run_ok 'an older host, a provider of now that asks' "$host" "$scratch/now-asks.so" --older
faults 'an older host, a provider of now that does not ask' "$host" "$scratch/now-reads.so" --older
faults 'a provider that reads the table of a closed handle' "$host" "$scratch/now-asks.so" --late

done_testing
