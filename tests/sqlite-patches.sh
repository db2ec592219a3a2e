#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kit against known defects of a real plugin: each of conformance/fixtures/sqlite/*.patch is
# applied to a copy of the SQLite plugin, built, and judged by the whole kit.  The lines before a
# patch's diff say what it must come to:
#   Found-by: AREA/CHECK ...  they fail; the first is the check that is meant for it.  Or the test
#                             program of the plugin that fails, where the contract cannot see it
#   Few: N                    at most so many checks fail
#   Says: TEXT                stands in what an author is shown of the check that is meant
#
#   tests/sqlite-patches.sh [NAME...]    only these

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
patches=$top_srcdir/conformance/fixtures/sqlite
durakit=${DURAKIT:-$top_builddir/runner/durakit}
unset MAKEFLAGS MFLAGS MAKELEVEL
# Stores in memory: what is judged is no disk.
if [ -w /dev/shm ]; then
  TMPDIR=/dev/shm
  export TMPDIR
fi

# copy TREE: the plugin's sources, and what they include.
copy() {
  mkdir -p "$1/providers/sqlite" "$1/providers/shared" "$1/core/include/durakit" \
    "$1/conformance" &&
    cp "$top_srcdir"/providers/sqlite/*.[ch] "$top_srcdir"/providers/sqlite/*.def \
      "$1/providers/sqlite" &&
    rm -f "$1"/providers/sqlite/test-* &&
    cp "$top_srcdir"/providers/shared/*.[ch] "$1/providers/shared" &&
    cp "$top_srcdir"/core/include/durakit/*.h "$1/core/include/durakit" &&
    cp "$top_srcdir/conformance/provider.map" "$1/conformance" &&
    rules > "$1/rules.mk" &&
    chmod -R u+w "$1"
}

# What a patch has changed is compiled anew, and what includes it.  The plugin's asserts are left
# out: some would find the defect first.
rules() {
  cat <<'MAKE'
.RECIPEPREFIX = >
objects := $(patsubst %.c,%.o,$(wildcard providers/sqlite/*.c providers/shared/*.c))
flags = -std=gnu11 -D_GNU_SOURCE -DNDEBUG -Icore/include -I. -O1 -g -fPIC -fvisibility=hidden
sqlite.so: $(objects)
> $(CC) $(SANITIZER_CFLAGS) -shared -Wl,-z,now -Wl,--version-script=conformance/provider.map \
>   -o $@ $(objects) $(LIBRARIES) -lpthread
%.o: %.c
> $(CC) $(flags) $(SANITIZER_CFLAGS) $(SQLITE_CFLAGS) -MMD -MP -c -o $@ $<
-include $(objects:.o=.d)
MAKE
}

# build TREE: $1/sqlite.so, as make would.
build() {
  ${MAKE:-make} -s -j2 -C "$1" -f rules.mk sqlite.so CC="${CC:-cc}" \
    SANITIZER_CFLAGS="${SANITIZER_CFLAGS-}" \
    SQLITE_CFLAGS="$(${PKG_CONFIG:-pkg-config} --cflags sqlite3)" \
    LIBRARIES="$(${PKG_CONFIG:-pkg-config} --libs sqlite3)"
}

# header NAME KEY: what follows KEY in the lines before the diff.
header() {
  sed -n -e '/^--- /q' -e "s/^$2: //p" "$patches/$1.patch"
}

# certify TREE: leaves TREE/failed, the names of the checks that failed.
certify() {
  "$durakit" certify "$1/sqlite.so" --effort quick --no-memcheck -j2 --timeout-scale 4 \
    --out "$1/out" > "$1/log" 2>&1
  certified=$?
  sed -n 's/^{"type":"check",.*"check":"\([^"]*\)",.*"verdict":"\([^"]*\)".*/\1 \2/p' \
    "$1/out/results.jsonl" > "$1/verdicts"
  sed -n 's/ \(fail\|crash\|timeout\|early-exit\|host-damage\)$//p' "$1/verdicts" > "$1/all"
  grep -v '^random/' "$1/all" > "$1/failed" # which find most defects, as they are meant to
}

# says NAME FILE: each phrase is in the text, however its lines are broken.
says() {
  tr -s ' \n' ' ' < "$2" > "$2.flat"
  header "$1" Says | while read -r phrase; do
    grep -qF -e "$phrase" "$2.flat" || echo "$phrase"
  done > "$2.missing"
  is "$(cat "$2.missing")" '' "$1: the text says what to repair" || diag "$(cat "$2")"
}

judge_by_kit() {
  meant=${2%% *}
  certify "$scratch/$1"
  is "$certified" 1 "$1: is refused" || diag "$(tail -n 40 "$scratch/$1/log")"
  for check in $2; do
    grep -qx "$check" "$scratch/$1/failed" || echo "$check"
  done > "$scratch/$1/missed"
  is "$(cat "$scratch/$1/missed")" '' "$1: is found by $meant and those beside it"
  [ "$(wc -l < "$scratch/$1/failed")" -le "$(header "$1" Few)" ]
  ok $? "$1: at most $(header "$1" Few) checks fail" || diag "$(cat "$scratch/$1/failed")"
  "$durakit" check "$scratch/$1/sqlite.so" --only "$meant" --format human --color never \
    > "$scratch/$1/text" 2>&1
  says "$1" "$scratch/$1/text"
}

judge_by_program() {
  SQLITE_PLUGIN="$scratch/$1/sqlite.so" "$top_builddir/$2" > "$scratch/$1/text" 2>&1
  status=$? # how many points failed; 255 if it gave up
  [ "$status" -gt 0 ] && [ "$status" -lt 100 ]
  ok $? "$1: is found by $2" || diag "exit $status: $(cat "$scratch/$1/text")"
  says "$1" "$scratch/$1/text"
}

judge() {
  found_by=$(header "$1" Found-by | tr '\n' ' ')
  [ -n "$found_by" ] && [ -n "$(header "$1" Says)" ]
  ok $? "$1: says what it must come to" || return
  cp -Rp "$scratch/built" "$scratch/$1" || exit 99
  run_ok "$1: applies" patch -d "$scratch/$1" -p1 -F0 --no-backup-if-mismatch \
    -i "$patches/$1.patch" || return
  run_ok "$1: is built" build "$scratch/$1" || return
  case $found_by in
    providers/*) judge_by_program "$1" "${found_by% }" ;;
    *) judge_by_kit "$1" "$found_by" ;;
  esac
  rm -rf "${scratch:?}/$1"
}

copy "$scratch/built" || exit 99
run_ok 'the plugin is built as the patched ones are' build "$scratch/built" || done_testing
cp -Rp "$scratch/built" "$scratch/sound" || exit 99
certify "$scratch/sound"
is "$certified" 0 'and has none of their defects' || diag "$(tail -n 40 "$scratch/sound/log")"
if [ $# -eq 0 ]; then
  set -- $(cd "$patches" && ls ./*.patch | sed 's,^\./\(.*\)\.patch$,\1,')
  [ $# -ge 10 ]
  ok $? 'the patches are there'
fi
for name; do
  judge "$name"
done

done_testing
