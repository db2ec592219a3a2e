#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The documents that are made from the tables are what the tables say, and the documents name only
# checks that exist.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch

# made_by GENERATOR: what it prints is in $scratch/made.md.
made_by() {
  run_ok "$1 runs" sh -c '"$1" > "$2"' sh "$top_builddir/$1" "$scratch/made.md"
  [ -s "$scratch/made.md" ]
  ok $? "it writes something"
}

made_by conformance/contract/gen-contract
is "$(diff "$top_srcdir/docs/contract.md" "$scratch/made.md")" '' \
  "docs/contract.md is up to date (if not: make -C build docs)"

made_by runner/gen-coverage
is "$(diff "$top_builddir/docs/coverage.md" "$scratch/made.md")" '' 'docs/coverage.md is made by it'
lacking() {
  "$top_builddir/runner/durakit" list "$1" | while read -r name _; do
    grep -qF -e "$2$name$3" "$scratch/made.md" || echo "$name"
  done
}
is "$(lacking clauses '### [' '](contract.md#')" '' 'it has a heading for each clause'
is "$(lacking checks '| `' '` |')" '' 'a line for each check'
is "$(lacking mutants '`' '`')" '' 'and each mutant'

# damaged NAME SED-SCRIPT SAYS: with such a papers.def gen-coverage ends with 1, and reports SAYS.
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
  "/^PAPER_TEST(\"000\", \"$lost\"/,/)\$/s,cancel/ack-without-completion,cancel/absent," \
  "$lost names the check cancel/absent, which does not exist"

# Every check, mutant or clause that a page names in code is one: `area/words`, `AREA-1`.
"$top_builddir/runner/durakit" list checks > "$scratch/known"
"$top_builddir/runner/durakit" list mutants >> "$scratch/known"
"$top_builddir/runner/durakit" list clauses >> "$scratch/known"
areas=$(sed -n 's,^\([a-z]*\)/.*,\1,p' "$scratch/known" | sort -u | paste -sd '|' -)
upper=$(printf %s "$areas" | tr '[:lower:]' '[:upper:]')

# strangers FILE: the names in it that do not exist.
strangers() {
  grep -oE "\`($areas)/[a-z0-9-]+\`|^- ($areas)/[a-z0-9-]+|($upper)-[0-9]+" "$1" |
    sed -e 's/^- //' -e 's/`//g' | sort -u |
    while read -r name; do
      grep -qE "^$name([[:space:]]|$)" "$scratch/known" || echo "$name"
    done
}

printf '%s\n' '`cancel/mass` and CANCEL-5, but `cancel/no-such-check` and TOKEN-999' \
  '- cancel/mass and 7 more' '- cancel/no-such-list and 7 more' > "$scratch/sample"
is "$(strangers "$scratch/sample")" "TOKEN-999
cancel/no-such-check
cancel/no-such-list" 'a name that does not exist would be found'
for page in "$top_srcdir"/README.md "$top_srcdir"/docs/*.md "$top_builddir/docs/coverage.md"; do
  is "$(strangers "$page")" '' "${page##*/} names only what exists"
done

# A new clause, check, mutant or provider of the zoo is no reason to edit a document: what it shows
# is compared without their counts, and it has no others.
uncounted() { sed -E -f "$top_srcdir/tests/counts.sed"; }
mine='clauses: 9 of 10 are judged by this kit
- time/own-wait and 7 more  skipped: needs a clock
- time/own-wait  skipped: needs two clocks
RESULT=PASS passed=374 failed=3 skipped=26 flaky=2 seconds=12.08
RESULT=PASS passed=0 failed=3 skipped=0'
is "$(printf '%s\n' "$mine" | uncounted)" 'clauses: N of N are judged by this kit
- CHECKS  skipped: needs a clock
- CHECKS  skipped: needs two clocks
RESULT=PASS passed=N failed=3 skipped=N flaky=2 seconds=12.08
RESULT=PASS passed=0 failed=3 skipped=0' 'counts are masked, and nothing else of their lines'
other='canaries: 5 of 5 caught: assertion
clauses: all of them are judged by this kit
- time/own-wait and 7 more  not run, because 5 checks
- time/own-wait and more  skipped: needs a clock
✗ cancel/mass  CANCEL-10 MUST  fail
    found     passed=374, 1000 of 2000'
is "$(printf '%s\n' "$other" | uncounted)" "$other" 'lines of another form are not touched'

# counts FILE: the lines with a count that is not masked.
counts() {
  uncounted < "$1" | grep -nE \
    -e '(^|[^[:alnum:]._-])[1-9][0-9,]+( [a-z]+){0,4} (clauses|checks|mutants|variants)\>' \
    -e '(^|[^[:alnum:]._-])[1-9][0-9,]+( [a-z]+){0,4} (plugins|providers|zoo)\>' \
    -e '\<(clauses|checks|mutants|zoo): [0-9]' -e '\<(passed|skipped)=[1-9]'
}
printf '%s\n' 'clauses: 9 of 10 are judged by this kit' 'RESULT=PASS passed=374 failed=0' \
  'Some checks, in 12 files, and version 2 of it. The plugin runs CANCEL-10 checks.' \
  > "$scratch/sample"
is "$(counts "$scratch/sample")" '' 'a document may show what is masked'
for count in 'There are 400 checks.' 'more than 600 deliberately broken variants' \
             'all 1,653 mutants' '167 of 167 clauses' '143 providers in the zoo' \
             'it says `passed=374`' 'clauses: 167'; do
  echo "$count" > "$scratch/sample"
  is "$(counts "$scratch/sample")" "1:$count" "a document must not say: $count"
done
find "$top_srcdir" \( -path "$top_builddir" -o -path '*/.git' \) -prune -o -name '*.md' -print |
  grep -v -e '/docs/contract\.md$' -e '/docs/coverage\.md$' | sort > "$scratch/pages"
[ "$(wc -l < "$scratch/pages")" -gt 10 ]
ok $? 'the documents are found'
for page in $(cat "$scratch/pages") "$top_srcdir/NEWS" "$top_srcdir/TODO"; do
  is "$(counts "$page")" '' "${page#"$top_srcdir"/} has no count that a new check would change"
done

# ---- the clauses of each operation ---------------------------------------------------------------

# clauses_of_operations HEADER: "OPERATION: CLAUSES" of each that its comment lists.
clauses_of_operations() {
  ${AWK:-awk} '
    { sub(/^ *\/?[*]+ ?/, ""); sub(/ *[*]\/ *$/, "") }
    !inside && sub(/.*Clauses: /, "") { inside = 1; list = "" }
    inside { list = list (list == "" ? "" : " ") $0; if (/[A-Z]-[0-9]+[.]/) inside = 0; next }
    list != "" && match($0, /[a-z_]+(;|[)][(])/) {
      name = substr($0, RSTART, RLENGTH)
      gsub(/[^a-z_]/, "", name)
      sub(/[.].*/, "", list)
      print name ": " list
      list = ""
    }' "$1"
}
# each_clause: lists from stdin, one clause a line, ranges written out.
each_clause() {
  tr ',' '\n' | sed -e 's/.*: //' | ${AWK:-awk} '
    /[A-Z]+-[0-9]+/ {
      split($1, from, "-")
      to = from[2]
      if (/ to /) { to = $3; sub(/.*-/, "", to) }
      for (i = from[2] + 0; i <= to + 0; i++) print from[1] "-" i
    }' | sort -u
}
header=core/include/durakit/provider.h
clauses_of_operations "$top_srcdir/$header" > "$scratch/operations"
"$DURAKIT" list clauses | sed -n 's/^\(\(ACK\|HIST\|QUEUE\|REL\|TURN\|WORK\)-[0-9]*\).*/\1/p' |
  sort > "$scratch/of-operations"
[ "$(wc -l < "$scratch/of-operations")" -gt 40 ]
ok $? 'the clauses of operations are found'
is "$(each_clause < "$scratch/operations" | comm -13 - "$scratch/of-operations")" '' \
  "$header lists each of them at its operation (Clauses: ...)"
# What check --next says: adjacent strings are one.
next=runner/commands/next-operation.c
sed -n '/^static const struct step steps/,/^};/p' "$top_srcdir/$next" | tr -d '\n' |
  sed -e 's/" *"//g' -e 's/{"\([a-z_]*\)", *"\([^"]*\)"}/\n\1: \2\n/g' |
  grep '^[a-z_]*: ' > "$scratch/steps"
is "$(grep -c . "$scratch/steps")" 10 'check --next has ten operations'
is "$(grep -vxF -f "$scratch/operations" "$scratch/steps")" '' \
  "$next lists the clauses of $header"

done_testing
