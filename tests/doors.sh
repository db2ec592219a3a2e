#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the documents for contributors name exists: every file, every function, every
# target of make, every test.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
cd "$top_srcdir" || exit 99
doors='ARCHITECTURE.md CONTRIBUTING.md HACKING.md SECURITY.md'
pages=$(ls -- *.md tests/*.md 2> "$scratch/err" | grep -v -x README.md)

# names PAGE: the texts between backquotes in a page, a line each, with the number of its line.
names() {
  ${AWK:-awk} '/^```/ { fence = !fence; next } fence { next }
    { n = split($0, part, "`"); for (i = 2; i < n; i += 2) print FNR, part[i] }' "$1"
}

# What begins with one of our folders, or ends as a file does.  Folders may be left out on the left.
# AREA and the like stand for any name, and a test program for its source.
folders=$(ls -d -- */ | tr -d / | grep -v -x build | paste -sd '|' -)
missing_files() {
  names "$1" |
    grep -E "^[0-9]+ (($folders)/[^ ]*|[A-Za-z0-9._*/-]+\.([ch]|def|sh|mk|md|sql|awk|ac|am))$" |
    while read -r line name; do
      pattern=$(echo "${name%/}" | sed 's/\./\\./g; s/\(\*\|AREA\|THING\|PLUGIN\|FOLDER\)/.*/g')
      grep -q -x -E -e "(.*/)?$pattern" -e "${pattern%\\.pg}\\.c" "$scratch/tree" ||
        echo "$1:$line: $name is no file"
    done
}

# The targets of links, from the page's own folder.
missing_links() {
  grep -n -o -E '\]\([^)#]+' "$1" | sed 's/:\](/ /' | grep -v -E ' (https?|mailto):' |
    while read -r line name; do
      [ -e "$(dirname "$1")/$name" ] || echo "$1:$line: $name is no file"
    done
}

# defined NAME FILE...: in C, in SQL, as a macro, or in a script.
defined() {
  name=$1
  shift
  grep -q -E -e "^(#define )?$name\(|^CREATE FUNCTION @schema@\.$name\(|^  *[a-z_]+ \**$name\(" "$@"
}

# A function is defined in a file that its line names, or else anywhere.
# shellcheck disable=SC2086
missing_functions() {
  names "$1" > "$scratch/names"
  grep -E '^[0-9]+ [a-z][A-Za-z0-9_]*\(\)$' "$scratch/names" | tr -d '()' |
    while read -r line name; do
      files=$(sed -n "s,^$line \(.*\.\(c\|h\|sql\|sh\)\)$,\1,p" "$scratch/names")
      if [ -n "$files" ]; then
        defined "$name" $files 2> "$scratch/err" || echo "$1:$line: $name() is not in" $files
      else
        defined "$name" $(cat "$scratch/sources") || echo "$1:$line: $name() is defined nowhere"
      fi
    done
}

# Those of automake, and ours.
missing_targets() {
  grep -n -o -E 'make -C build [a-z][a-z-]*' "$1" | sed 's/:make -C build / /' |
    while read -r line name; do
      case $name in all|check|clean|distcheck|install) continue ;; esac
      grep -q -E "^$name:" Makefile.am ./*/local.mk ./*/*/local.mk ||
        echo "$1:$line: $name is no target"
    done
}

# What is given to make try, with a folder of ours: scripts, and programs by their source.
missing_tests() {
  grep -n -o -E "T=('[^']*'|[^ ')\`]+)" "$1" | sed "s/:T=/ /; s/'//g" |
    while read -r line names; do
      for name in $names; do
        case $name in
          *.sh) [ -f "$name" ] ;;
          *) ! echo "$name" | grep -q -E "^($folders)/" || [ -f "${name%.pg}.c" ] ;;
        esac || echo "$1:$line: $name is no test"
      done
    done
}

find . -path ./.git -prune -o -path ./build -prune -o -print | sed 's,^\./,,' > "$scratch/tree"
find core conformance runner providers examples tests -name '*.[ch]' -o -name '*.sql' \
  > "$scratch/sources"

for page in $doors; do
  [ -s "$page" ]
  ok $? "$page is there"
done
for page in $pages; do
  is "$(missing_files "$page")" '' "$page: its files exist"
  is "$(missing_links "$page")" '' "$page: so do those that it links to"
  is "$(missing_functions "$page")" '' "$page: its functions are where it says"
  is "$(missing_targets "$page")" '' "$page: its targets of make exist"
  is "$(missing_tests "$page")" '' "$page: its tests exist"
done
for page in *.md; do
  [ "$page" = README.md ] || grep -q -E "^[[:space:]]+$page " Makefile.am
  ok $? "$page is in the tarball (EXTRA_DIST of Makefile.am)"
done

# Each kind of mistake is found.
cat > "$scratch/lies.md" <<'LIES'
`core/base/text.c`, `core/base/AREA.c` and `absent/here.c`, `core/none` and `none.h`
[a](../no-such-page.md)
`dk_no_such_call()`, and `dk_call_make()`
`dk_call_make()` | `core/base/text.c`
make -C build check; make -C build no-such-target
make -C build docs T='tests/docs.sh tests/none.sh hist/none core/none'
`make try T=core/base/test-text`
LIES
is "$(missing_files "$scratch/lies.md" | sed 's/.*md:/:/')" ":1: absent/here.c is no file
:1: core/none is no file
:1: none.h is no file" 'a file that does not exist would be found'
is "$(missing_links "$scratch/lies.md" | sed 's/.*md:/:/')" ":2: ../no-such-page.md is no file" \
  'so would a link to none'
is "$(missing_functions "$scratch/lies.md" | sed 's/.*md:/:/')" \
  ":3: dk_no_such_call() is defined nowhere
:4: dk_call_make() is not in core/base/text.c" 'a function that does not exist, or is elsewhere'
is "$(missing_targets "$scratch/lies.md" | sed 's/.*md:/:/')" ":5: no-such-target is no target" \
  'and a target'

is "$(missing_tests "$scratch/lies.md" | sed 's/.*md:/:/')" ":6: tests/none.sh is no test
:6: core/none is no test" 'and a test'

done_testing
