#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Public headers stand alone, twice, in every C and C++ standard that the compilers have; they use
# no type that two compilers could read differently; and a provider needs nothing else.

. "${top_srcdir:-$(dirname "$0")/../..}/tests/tap.sh"
: "${CC:=cc}" "${CXX:=c++}"
scratch
include=$top_srcdir/core/include

strict='-Wall -Wextra -pedantic -Wundef -Wshadow -Werror -fsyntax-only'
for header in provider admin clock host runtime manage; do
  printf '#include <durakit/%s.h>\n#include <durakit/%s.h>\n' $header $header > "$scratch/twice.c"
  cp "$scratch/twice.c" "$scratch/twice.cc"
  for std in c90 c99 c11 c17 c2x gnu11; do
    case $header.$std in
      runtime.c90 | manage.c90) continue ;; # runtime.h has inline functions
    esac
    # shellcheck disable=SC2086
    run_ok "$header.h alone and twice, $std" \
      $CC -std=$std $strict -Wstrict-prototypes -I "$include" "$scratch/twice.c"
  done
  for std in c++98 c++11 c++14 c++17 c++20; do
    # shellcheck disable=SC2086
    run_ok "$header.h alone and twice, $std" \
      $CXX -std=$std $strict -I "$include" "$scratch/twice.cc"
  done
done

# No holes that a compiler fills as it likes (the probe's are there on purpose).
mkdir -p "$scratch/dense/durakit"
sed '/^struct dk_probe_ {/,/^};/s/char/uint64_t/' "$include/durakit/provider.h" \
  > "$scratch/dense/durakit/provider.h"
cp "$include/durakit/admin.h" "$scratch/dense/durakit"
printf '#include <durakit/admin.h>\n' > "$scratch/dense.c"
run_ok 'provider.h and admin.h have no padding' \
  $CC -std=c11 -Wpadded -Werror -fsyntax-only -I "$scratch/dense" "$scratch/dense.c"

code=$(for header in provider admin; do
  $CC -fpreprocessed -dD -E -P "$include/durakit/$header.h" 2>/dev/null
done)
for word in '[^_]bool' 'long' 'FILE' 'errno' 'va_list' 'time_t' 'off_t' 'wchar_t' '\.\.\.'; do
  is "$(printf '%s\n' "$code" | grep -nE "(^|[^a-z_0-9])$word([^a-z_0-9]|\$)")" '' \
    "provider.h and admin.h do not use $word"
done
is "$(printf '%s\n' "$code" | grep -nE 'enum [a-z_]+ [a-z]|[a-z] : [0-9]')" '' \
  'neither has enum types or bitfields'
is "$(grep -h '^#include' "$include/durakit/provider.h" | tr '\n' ' ')" \
  '#include <stddef.h> #include <stdint.h> ' 'provider.h includes stddef.h and stdint.h only'

# A provider in C and in C++ that includes nothing else; the command reads what it says of itself.
cp "$top_srcdir/tests/abi/tiny.c" "$scratch/tiny.cc"
run_ok 'a provider in C90' $CC -std=c90 -pedantic -Wall -Wextra -Werror -Wno-unused-parameter \
  -fPIC -shared -I "$include" "$top_srcdir/tests/abi/tiny.c" -o "$scratch/tiny-c.so"
run_ok 'a provider in C++98' $CXX -std=c++98 -pedantic -Wall -Wextra -Werror -Wno-unused-parameter \
  -fPIC -shared -I "$include" "$scratch/tiny.cc" -o "$scratch/tiny-cxx.so"
if [ -n "${DURAKIT:-}" ] && [ -x "$DURAKIT" ]; then
  for so in tiny-c tiny-cxx; do
    found=$("$DURAKIT" probe "$scratch/$so.so" 2>&1)
    like "$found" 'tiny' "$so.so is loaded and described by durakit probe"
  done
fi

# Every clause that the manual names is one of the contract.
clauses=$(cat "$include/durakit/provider.h" "$include/durakit/admin.h" |
  grep -oE '\b[A-Z]+-[0-9]+\b' | grep -v '^UTF-' | sort -u)
for clause in $clauses; do
  grep -q "CLAUSE(\"$clause\"" "$top_srcdir/conformance/contract/areas"/*.def ||
    missing="${missing:-} $clause"
done
is "${missing:-}" '' 'every clause that the manuals name is in the contract'

done_testing
