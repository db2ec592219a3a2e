#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The layout of provider.h and admin.h is the one in golden.def; and the comparison sees every kind
# of change.

. "${top_srcdir:-$(dirname "$0")/../..}/tests/tap.sh"
: "${CC:=cc}"
scratch
abi=$top_srcdir/tests/abi
include=$top_srcdir/core/include/durakit
header=$include/provider.h

# judge FOLDER: compiles golden.c against FOLDER/durakit/provider.h.
judge() {
  $CC -std=gnu11 -fsyntax-only -I "$1" -I "$abi" "$abi/golden.c" 2>&1
}

run_ok 'provider.h has the layout of golden.def' judge "$top_srcdir/core/include"

# mutant NAME SCRIPT: a header changed by a sed script, which must change it; its folder in $folder.
mutant() {
  folder=$scratch/$1
  mkdir -p "$folder/durakit"
  cp "$include/admin.h" "$folder/durakit"
  sed "$2" "$header" > "$folder/durakit/provider.h"
  ! cmp -s "$header" "$folder/durakit/provider.h"
  ok $? "$1: the header was changed"
}

# refused NAME SCRIPT PATTERN
refused() {
  mutant "$1" "$2"
  found=$(judge "$folder") && found="it compiled: $found"
  like "$found" "$3" "$1 is refused for its own reason"
}

minor='s/^#define DK_ABI_MINOR .*/#define DK_ABI_MINOR 99u/'
append='s/^  void (\*duplicate)(.*/&\n  int32_t (*added)(struct dk_call *call);/'

mutant 'append-with-minor' "$append;$minor"
run_ok 'a member at the end, with a new minor number, is accepted' judge "$folder"
refused 'append-without-minor' "$append" 'struct dk_host grew: DK_ABI_MINOR must grow'
refused 'insert' "s/^  int32_t known, status;/  int64_t inserted;\n&/;$minor" \
  'dk_turn_head.known moved'
refused 'swap' \
  's/^  struct dk_bytes lock_token, instance;/  struct dk_bytes instance, lock_token;/' \
  'dk_turn_head.lock_token moved'
refused 'rename' 's/^  int64_t now;  .*/  int64_t at;/' 'no member named .now.'
refused 'callback-type' \
  's/(\*cancel_fd)(struct dk_call \*call)/(*cancel_fd)(struct dk_call *call, int32_t x)/' \
  'dk_host.cancel_fd changed its type'
refused 'function-type' \
  '/^typedef dk_status dk_renew_fn/,/;/s/int64_t extend_ms/int32_t extend_ms/' \
  'dk_renew_fn changed its signature'
refused 'typedef' 's/^typedef int32_t dk_status;/typedef uint32_t dk_status;/' \
  'dk_status is another type'
refused 'signed' 's/^  uint32_t max_items; /  int32_t max_items; /' \
  'dk_fetch_work.max_items changed its type'
refused 'frozen' "s/^  size_t len;/&\n  size_t more;/;$minor" 'struct dk_bytes is frozen'
refused 'constant' 's/DK_LOCK_LOST = 201/DK_LOCK_LOST = 211/' 'DK_LOCK_LOST changed its value'
refused 'draft' 's/^#define DK_ABI_DRAFT .*/#define DK_ABI_DRAFT 99u/' 'make abi-update'

# The list is complete: what the generator finds in the header now is what golden.def holds.
run_ok 'the generator reads provider.h' \
  sh -c "perl '$abi/layout.pl' '$header' '$include/admin.h' > '$scratch/list.c' &&
         $CC -I '$top_srcdir/core/include' '$scratch/list.c' -o '$scratch/list' &&
         '$scratch/list' > '$scratch/golden.def'"
is "$(diff "$abi/golden.def" "$scratch/golden.def")" '' \
  'golden.def names every member (after an additive change: make abi-update)'

# unlisted: of what stdin declares, that which golden.def does not have: structs and unions with a
# body, and typedefs.
unlisted() {
  $CC -w -fpreprocessed -dD -E -P - | tr -s '[:space:]' ' ' |
    grep -oE '(struct|union) [a-z_]+ \{|typedef [^;{]*[;{]' |
    sed -E 's/^(struct|union) ([a-z_]+) \{/\2/; s/^typedef .*[^a-z_]([a-z_]+_fn)\)? ?\(.*/\1/; t
            s/^typedef .*[^a-z_]([a-z_]+) ?[;{]$/\1/' |
    grep -vx dk_probe_ |
    while read -r name; do
      grep -qE "^[A-Z]+\\($name, " "$abi/golden.def" || echo "$name"
    done
}
is "$(unlisted < "$header")$(unlisted < "$include/admin.h")" '' \
  'the generator has passed over nothing'
is "$(unlisted <<'END' | paste -sd ' ' -
struct dk_bytes {int a;};
struct dk_more {int a;}; union dk_either {int a;};
typedef int32_t dk_status; typedef int64_t dk_time; typedef int (*dk_other_fn)(int);
typedef void dk_more_fn(void *self,
                        int x); typedef struct dk_inner { int a; } dk_outer;
END
)" 'dk_more dk_either dk_time dk_other_fn dk_more_fn dk_inner' 'what it passes over would be found'

# The page names the draft.
draft=$(sed -n 's/^DRAFT(\(.*\))/\1/p' "$abi/golden.def")
minor=$(sed -n 's/^MINOR(\(.*\))/\1/p' "$abi/golden.def")
like "$(cat "$top_srcdir/docs/abi.md")" "^| 2\.$minor draft $draft |" \
  "docs/abi.md has a line for 2.$minor draft $draft"

done_testing
