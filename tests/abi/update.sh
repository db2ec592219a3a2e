#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make abi-update: golden.def and the baseline of abidiff, made anew from provider.h and
# admin.h.  For a new
# draft, or an additive change with a new minor number; docs/abi.md gets a line that says what and
# why.

set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${CC:=cc}"
abi=$top_srcdir/tests/abi
work=$(mktemp -d "${TMPDIR:-/tmp}/durakit-abi.XXXXXX")
trap 'rm -rf "$work"' EXIT

include=$top_srcdir/core/include/durakit
perl "$abi/layout.pl" "$include/provider.h" "$include/admin.h" > "$work/list.c"
$CC -I "$top_srcdir/core/include" "$work/list.c" -o "$work/list"
"$work/list" > "$work/golden.def-t"
# All types are loaded: without that abidiff 2.2 stops at an assertion when it reads the file.
# Compiled where no path of this machine gets into the baseline.
cp -r "$top_srcdir/core/include/durakit" "$abi/witness.c" "$work"
(cd "$work" && $CC -std=gnu11 -g -gdwarf-4 -O0 -fvisibility=hidden -fPIC -shared \
   -Wl,-soname,witness.so -fdebug-prefix-map="$work=." -I . witness.c -o witness.so &&
   abidw --load-all-types --no-comp-dir-path --no-show-locs witness.so > witness.abi-t)
mv "$work/golden.def-t" "$abi/golden.def"
mv "$work/witness.abi-t" "$abi/witness.abi"
draft=$(sed -n 's/^DRAFT(\(.*\))/\1/p' "$abi/golden.def")
echo "durakit: tests/abi/golden.def and witness.abi are made anew for draft $draft;" \
     "say in docs/abi.md what changed and why"
