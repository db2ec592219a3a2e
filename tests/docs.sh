#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The committed documents that are made from the tables are what the tables say, and the documents
# name only checks that exist.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch

# up_to_date GENERATOR DOCUMENT
up_to_date() {
  run_ok "$1 runs" sh -c '"$1" > "$2"' sh "$top_builddir/$1" "$scratch/made.md"
  [ -s "$scratch/made.md" ]
  ok $? "it writes something"
  is "$(diff "$top_srcdir/$2" "$scratch/made.md")" '' "$2 is up to date (if not: make docs)"
}

up_to_date conformance/contract/gen-contract docs/contract.md
up_to_date runner/gen-coverage docs/coverage.md

# Every check, mutant or clause that a page names in code is one: `area/words`, `AREA-1`.
"$top_builddir/runner/durakit" list checks > "$scratch/known"
"$top_builddir/runner/durakit" list mutants >> "$scratch/known"
"$top_builddir/runner/durakit" list clauses >> "$scratch/known"
areas=$(sed -n 's,^\([a-z]*\)/.*,\1,p' "$scratch/known" | sort -u | paste -sd '|' -)
upper=$(printf %s "$areas" | tr '[:lower:]' '[:upper:]')

# strangers FILE: what it names and nobody knows.
strangers() {
  grep -oE "\`($areas)/[a-z0-9-]+\`|($upper)-[0-9]+" "$1" | tr -d '`' | sort -u |
    while read -r name; do
      grep -qE "^$name([[:space:]]|$)" "$scratch/known" || echo "$name"
    done
}

printf '`cancel/mass` and CANCEL-5, but `cancel/no-such-check` and TOKEN-999\n' > "$scratch/sample"
is "$(strangers "$scratch/sample")" "TOKEN-999
cancel/no-such-check" 'a name that does not exist would be found'
for page in "$top_srcdir"/README.md "$top_srcdir"/docs/*.md; do
  is "$(strangers "$page")" '' "${page##*/} names only what exists"
done

done_testing
