#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libdurakit exports what its headers declare, and nothing else.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${CC:=cc}" "${NM:=nm}"
scratch
syms=$top_srcdir/core/libdurakit.syms

# The functions that a header declares: comments removed, a name at the start of a declarator.
declared() {
  $CC -E -P -fpreprocessed "$1" | grep -oE '(^|[ *])dk_[a-z0-9_]+\(' | tr -d ' *('
}

for header in host clock; do
  declared "$top_srcdir/core/include/durakit/$header.h"
done | sort > "$scratch/declared"
is "$(sort "$syms" | diff - "$scratch/declared")" '' \
  'libdurakit.syms lists what the headers declare'

$NM -D --defined-only "$top_builddir/.libs/libdurakit.so" | awk '{ print $3 }' | sort \
  > "$scratch/found"
is "$(sort "$syms" | diff - "$scratch/found")" '' 'libdurakit.so exports what is listed'

# The comparison can fail.
cat > "$scratch/sample.h" <<'SAMPLE'
/* dk_not_this(void) */
int32_t dk_one(int32_t (*dk_nor_this)(void));
void *dk_two(void);
SAMPLE
is "$(declared "$scratch/sample.h" | tr '\n' ' ')" 'dk_one dk_two ' 'declarations are recognised'

done_testing
