#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make abi-update: golden.def, made anew from provider.h and admin.h.  For a new draft, or an
# additive change with a new minor number; docs/abi.md gets a line that says what and why.

set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}" "${CC:=cc}"
abi=$top_srcdir/tests/abi
work=$(mktemp -d "${TMPDIR:-/tmp}/durakit-abi.XXXXXX")
trap 'rm -rf "$work"' EXIT

include=$top_srcdir/core/include/durakit
perl "$abi/layout.pl" "$include/provider.h" "$include/admin.h" > "$work/list.c"
$CC -I "$top_srcdir/core/include" "$work/list.c" -o "$work/list"
"$work/list" > "$work/golden.def-t"
mv "$work/golden.def-t" "$abi/golden.def"
draft=$(sed -n 's/^DRAFT(\(.*\))/\1/p' "$abi/golden.def")
echo "durakit: tests/abi/golden.def is made anew for draft $draft;" \
     "say in docs/abi.md what changed and why"
