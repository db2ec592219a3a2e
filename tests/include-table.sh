#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Who may include whom: the table of the architecture, held by the #include lines.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
cd "$top_srcdir" || exit 99

# "folder: what it may use", folders or single files.  core/include may use the C standard headers
# besides; the row "test" holds for every test-*.c in addition to its folder's.
cat > "$scratch/table" <<'TABLE'
core/include: core/include
core/base: core/base
core/plugin: core/include core/base core/plugin
core/runtime: core/include core/base core/plugin core/runtime
core/runtime/testing: core conformance/tap
core/runtime/bench: core runner/bench.h
providers/sqlite: core/include/durakit/provider.h core/include/durakit/admin.h providers/sqlite
providers/pg: core/include/durakit/provider.h core/include/durakit/admin.h providers/pg
conformance/tap: core/include core/base conformance/tap
conformance/contract: core/include core/base conformance/tap conformance/contract
conformance/model: core/include core/base conformance/contract conformance/model
conformance/kit: core/include core/base conformance/tap conformance/contract conformance/kit
conformance/checks: core/include core/base conformance/contract conformance/kit conformance/checks
conformance/runtime: core conformance/contract conformance/kit conformance/runtime
conformance/fixtures: core/include/durakit/provider.h conformance/fixtures
conformance/fixtures/pages.c: core/include/durakit conformance
conformance/fixtures/zoo-table.c: core/include conformance/fixtures
conformance/fixtures/forged.c: core/include/durakit/provider.h conformance
conformance/fixtures/served.c: core/include/durakit/provider.h conformance
runner: core/include core/base conformance runner
examples: core/include/durakit/provider.h core/include/durakit/runtime.h examples
tests/runner-mover.c: core/include/durakit/provider.h examples/provider-minimal/minimal.c
tests/runner-loud.c: core/include/durakit/provider.h examples/provider-minimal/minimal.c
tests: core conformance runner tests examples/runtime/example.h
test: conformance/tap core/include/durakit/host.h
TABLE

# What decides in core/runtime is pure: it knows no store, no clock and no thread.
pure='base64 commands commit decide decode ends event future history ids json match names orch retry
  room rule stage values waiting'
pure_headers='codec commit coroutine decide decision event history json names orch registry replay
  room rule'
for file in $pure; do
  printf 'core/runtime/%s.c: core/include core/base' "$file"
  for header in $pure_headers; do
    printf ' core/runtime/%s.h' "$header"
  done
  echo
done >> "$scratch/table"

# What operates a store shares with the kit how a command line is read, and nothing that runs a
# check: it is a host, through the public headers.
printf 'runner/operate: core/include core/base runner/operate' >> "$scratch/table"
for name in json-memory mask option-row options resolve say settings suggest usage wrap; do
  printf ' runner/%s.h' "$name"
done >> "$scratch/table"
echo >> "$scratch/table"

# violations LIST: those of the files in LIST, under the current folder.
violations() {
  xargs ${AWK:-awk} -v table="$scratch/table" -v list="$1" \
    -v standard='stddef.h stdint.h stdarg.h string.h' \
    -f "$top_srcdir/tests/include-table.awk" "$scratch/table" "$1" < "$1"
}

find core conformance runner providers examples tests \
  -name '*.[ch]' -o -name '*.cc' -o -name '*.def' 2>/dev/null | sort > "$scratch/ours"
[ "$(wc -l < "$scratch/ours")" -gt 10 ]
ok $? 'the sources were found'
is "$(violations "$scratch/ours")" '' 'every #include is allowed by the table'

# A small tree where each line is judged.
mkdir "$scratch/tree"
cd "$scratch/tree" || exit 99
mkdir -p core/include/durakit core/base core/plugin providers/pg conformance/tap runner elsewhere
: > core/include/durakit/provider.h
: > core/include/durakit/host.h
: > core/base/arena.h
: > core/plugin/loader.h
: > conformance/tap/tap.h
: > runner/run.h

# judge FILE LINE EXPECTED NAME
judge() {
  printf '%s\n' "$2" > "$1"
  find . -type f | sed 's|^\./||' | sort > "$scratch/sample"
  is "$(violations "$scratch/sample")" "$3" "$4"
  rm "$1"
}

judge core/base/a.c '#include "arena.h"' '' 'a file beside it'
judge core/plugin/a.c '#include "core/base/arena.h"' '' 'a folder that the row names'
judge core/plugin/a.c '#include "../base/arena.h"' '' 'the same by another way'
judge core/plugin/a.c '#include <durakit/host.h>' '' 'a public header'
judge core/base/a.c '#include <stdlib.h>' '' 'a header of the system'
judge core/base/test-a.c '#include "conformance/tap/tap.h"' '' 'a test and its TAP'
judge providers/pg/a.c '#include <durakit/provider.h>' '' 'a provider and its one header'
judge core/base/a.c '#include "core/plugin/loader.h"' \
  'core/base/a.c:1: core/base may not use core/plugin/loader.h' 'base does not use plugin'
judge core/base/a.c '#include "../plugin/loader.h"' \
  'core/base/a.c:1: core/base may not use core/plugin/loader.h' 'nor by another way'
judge core/base/a.c '#include "conformance/tap/tap.h"' \
  'core/base/a.c:1: core/base may not use conformance/tap/tap.h' 'TAP is for tests'
judge core/base/test-a.c '#include "runner/run.h"' \
  'core/base/test-a.c:1: core/base may not use runner/run.h' 'a test does not use everything'
judge providers/pg/a.c '  #  include <durakit/host.h>' \
  'providers/pg/a.c:1: providers/pg may not use core/include/durakit/host.h' \
  'a provider does not use the host'
judge runner/a.c '#include "core/plugin/loader.h"' \
  'runner/a.c:1: runner may not use core/plugin/loader.h' 'the runner goes through host.h'
judge core/include/durakit/a.h '#include <stdio.h>' \
  'core/include/durakit/a.h:1: <stdio.h> is no C standard header that it may use' \
  'the public header needs little'
judge runner/a.c '#include "gone.h"' 'runner/a.c:1: "gone.h" is not found' 'a missing header'
judge elsewhere/a.c '#include <stdio.h>' 'elsewhere/a.c:1: its folder has no row in the table' \
  'a folder that the table does not know'

done_testing
