#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Who may include whom: the table of the architecture, held by the #include lines.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
cd "$top_srcdir" || exit 99

sed '1,/^## Who may include whom/d; /^## /,$d' ARCHITECTURE.md |
  sed -n 's/^| \(tests of \)\{0,1\}`\([^`]*\)` | \(.*\) |$/\1\2: \3/p' |
  tr -d '`' > "$scratch/table"
[ "$(wc -l < "$scratch/table")" -gt 20 ]
ok $? 'the table of ARCHITECTURE.md is read'

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
  'core/base/a.c:1: core/base must not include core/plugin/loader.h' 'base does not use plugin'
judge core/base/a.c '#include "../plugin/loader.h"' \
  'core/base/a.c:1: core/base must not include core/plugin/loader.h' 'nor by another way'
judge core/base/a.c '#include "conformance/tap/tap.h"' \
  'core/base/a.c:1: core/base must not include conformance/tap/tap.h' 'TAP is for tests'
judge core/base/test-a.c '#include "runner/run.h"' \
  'core/base/test-a.c:1: core/base must not include runner/run.h' 'a test does not use everything'
judge providers/pg/a.c '  #  include <durakit/host.h>' \
  'providers/pg/a.c:1: providers/pg must not include core/include/durakit/host.h' \
  'a provider does not use the host'
judge runner/a.c '#include "core/plugin/loader.h"' \
  'runner/a.c:1: runner must not include core/plugin/loader.h' 'the runner goes through host.h'
judge core/include/durakit/a.h '#include <stdio.h>' \
  'core/include/durakit/a.h:1: <stdio.h> is no C standard header that it may use' \
  'the public header needs little'
judge runner/a.c '#include "gone.h"' 'runner/a.c:1: "gone.h" is not found' 'a missing header'
judge elsewhere/a.c '#include <stdio.h>' 'elsewhere/a.c:1: its folder has no row in the table' \
  'a folder that the table does not know'

# A row that needs one below it.
printf '%s\n' 'core/base: core/plugin core/base' 'core/plugin: core/plugin' > "$scratch/table"
judge core/base/a.c '#include "core/base/arena.h"' \
  'core/base may use core/plugin, which has no row above it' 'rows stand in their order'

done_testing
