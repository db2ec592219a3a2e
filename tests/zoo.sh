#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The zoo: the table, the kinds in the sources and the built plugins are the same set, and each
# exports what it should.  What they do is judged by durakit selftest.
# needs: zoo

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
fixtures=$top_srcdir/conformance/fixtures
zoo=${ZOO:-$top_builddir/conformance/fixtures/zoo}

sed -n 's/^ZOO_[A-Z]*("\([^"]*\)",.*/\1/p' "$fixtures/zoo.def" | sort > "$scratch/table"
# Two have no kind: they differ in their symbols alone.
{
  sed -n 's/^  {\.name = "\([^"]*\)".*/\1/p' "$fixtures"/*.c
  sed -n 's/^#\(el\)\{0,1\}if defined FIXTURE_\(.*\)/\2/p' "$fixtures/entry.c" | tr _ -
} | sort > "$scratch/kinds"

[ "$(wc -l < "$scratch/table")" -gt 80 ]
ok $? 'the table is found'
is "$(uniq -d < "$scratch/table")" '' 'no name is twice in the table'
is "$(comm -3 "$scratch/table" "$scratch/kinds")" '' 'the sources have what zoo.def names'

for name in $(cat "$scratch/table"); do
  [ -f "$zoo/$name.so" ] || echo "$name"
done > "$scratch/absent"
is "$(cat "$scratch/absent")" '' 'each is built'

# A fixture is refused for its own reason only if its symbols are as they should be.
exported() {
  "${NM:-nm}" -D --defined-only "$1" | sed -n 's/.* T \(durakit_provider_[0-9]*\)$/\1/p'
}
for name in $(cat "$scratch/table"); do
  case $name in
    no-symbol) expected= ;;
    abi-1-only) expected=durakit_provider_1 ;;
    *) expected=durakit_provider_2 ;;
  esac
  [ "$(exported "$zoo/$name.so")" = "$expected" ] || echo "$name: $(exported "$zoo/$name.so")"
done > "$scratch/symbols"
is "$(cat "$scratch/symbols")" '' 'each exports its entry point and nothing else'

done_testing
