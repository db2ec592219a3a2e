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

# damaged NAME SED-SCRIPT SAYS: with such a papers.def gen-coverage ends with 1, and says so.
papers=conformance/contract/papers.def
mkdir -p "$scratch/conformance/contract"
damaged() {
  sed -e "$2" "$top_srcdir/$papers" > "$scratch/$papers"
  ! cmp -s "$top_srcdir/$papers" "$scratch/$papers"
  ok $? "$1: the table is another one"
  run_ok "$1: it compiles" build_generator
  said=$("$scratch/gen-coverage" 2>&1 > "$scratch/made.md")
  is $? 1 "$1: it ends with 1"
  is "$said" "gen-coverage: papers.def: $3" "$1: it says so, and nothing else"
}
build_generator() {
  "$top_builddir/libtool" --silent --tag=CC --mode=compile ${CC:-cc} -std=gnu11 -D_GNU_SOURCE \
    ${SANITIZER_CFLAGS:-} -I"$scratch" -I"$top_srcdir/core/include" -I"$top_srcdir" \
    -c "$top_srcdir/runner/gen-coverage.c" -o "$scratch/gen-coverage.lo" &&
    "$top_builddir/libtool" --silent --tag=CC --mode=link ${CC:-cc} ${SANITIZER_CFLAGS:-} \
      -o "$scratch/gen-coverage" "$scratch/gen-coverage.lo" "$top_builddir/runner/libdkrunner.la" \
      "$top_builddir/conformance/libdkkit.la" "$top_builddir/conformance/libdkcontract.la" \
      "$top_builddir/core/libdkruntime.la" "$top_builddir/core/libdkplugin.la" -ldl -lpthread
}
lost=test_ack_work_item_succeeds_if_row_exists
damaged 'an answer is lost' "/^PAPER_TEST(\"000\", \"$lost\"/,/)\$/d" \
  "paper 000 names $lost, which has 0 answers: it needs one PAPER_TEST line"
damaged 'an answer is to nothing' "/^PAPER_NAMES(\"000\", \"$lost\")/d" \
  "$lost is answered for paper 000, which names it 0 times: it needs one PAPER_NAMES line"
lost=test_ack_work_item_none_deletes_without_enqueue
damaged 'an answer names a stranger' \
  "/^PAPER_TEST(\"000\", \"$lost\"/,/)\$/s,cancel/ack-without-completion,cancel/nobody," \
  "$lost names the check cancel/nobody, which does not exist"

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
