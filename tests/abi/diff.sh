#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# abidiff finds no difference between the ABI as compiled now and the stored baseline.

. "${top_srcdir:-$(dirname "$0")/../..}/tests/tap.sh"
: "${CC:=cc}"
abi=$top_srcdir/tests/abi
command -v abidiff > /dev/null || skip_all 'abidiff is not there (Debian: abigail-tools)'
case $(uname -m) in
  x86_64) ;;
  *) skip_all "the baseline was made on x86_64, this is $(uname -m)" ;;
esac
scratch

# witness INCLUDE: compiles the witness library against this header, into $scratch/witness.so.
witness() {
  # The old DWARF version, so that an older libabigail reads what a newer compiler writes.
  $CC -std=gnu11 -g -gdwarf-4 -O0 -fvisibility=hidden -fPIC -shared -Wl,-soname,witness.so \
    -I "$1" "$abi/witness.c" -o "$scratch/witness.so"
}
# compare: no suppressions.
compare() {
  abidiff --non-reachable-types --harmless "$abi/witness.abi" "$scratch/witness.so"
}

run_ok 'the witness library compiles' witness "$top_srcdir/core/include"
run_ok 'no difference to the baseline' compare

# The comparison sees a change that only an extension's or a callback's struct would show.
mkdir -p "$scratch/changed/durakit"
cp "$top_srcdir/core/include/durakit/admin.h" "$scratch/changed/durakit"
sed 's/^  int32_t op, reserved;/  int64_t op;/' "$top_srcdir/core/include/durakit/provider.h" \
  > "$scratch/changed/durakit/provider.h"
run_ok 'a changed header compiles' witness "$scratch/changed"
found=$(compare 2>&1)
status=$?
is "$((status & ~8))" 4 'the change is reported as a change, and nothing went wrong'
like "$found" 'dk_kv_change' 'the report names the struct'

done_testing
