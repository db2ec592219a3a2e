#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The guides are true, as the README is: each is typed from its top in a folder of its own.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
scratch
. "$top_srcdir/tests/typed.sh"

for guide in provider-implementation-guide provider-testing-guide migration-from-abi-1; do
  mkdir "$scratch/$guide"
  cd "$scratch/$guide" || exit 99
  file=$top_srcdir/docs/$guide.md
  [ "$(commands_of "$file" | wc -l)" -ge 3 ]
  ok $? "$guide shows commands"
  type_document "$file"
  show_document "$file"
done

# The synopsis is C that declares a provider.
awk '/^<!-- synopsis -->/ { wanted = 1 } wanted && /^```/ { if (inside) exit; inside = 1; next }
     inside' "$top_srcdir/docs/provider-implementation-guide.md" > "$scratch/synopsis.c"
like "$(cat "$scratch/synopsis.c")" 'durakit_provider_2' 'the synopsis is there'
# shellcheck disable=SC2046
run_ok 'it is compiled' "$CC" -std=c11 -fsyntax-only $(pkg-config --cflags durakit) \
  "$scratch/synopsis.c"

# What the mechanism is worth: a document that lies is found.
mkdir "$scratch/lies"
cd "$scratch/lies" || exit 99
printf '%s\n' '    durakit explain NO-SUCH-1' '' '<!-- exit: 0 -->' '    durakit --version' \
  > lies.md
found=$(tap_count=0; type_document lies.md | grep -c '^not ok 1 ')
is "$found" 1 'a command that does not work is found'
printf '%s\n' '<!-- output: durakit explain CANCEL-5 -->' '```' 'something else' '```' > lies.md
found=$(tap_count=0; show_document lies.md | grep -c '^not ok 1 ')
is "$found" 1 'an output that is not what is printed is found'

# What is forgiven on a busy machine, and no more.
said() { echo "# RESULT=WORD passed=1 $1 seconds=1" > typed.out; }
said "failed=0 skipped=0 unexercised=1"
is_too_busy 'durakit check model'
ok $? 'a race that found no overlap is left out'
for wrong in 'failed=1 skipped=0' 'failed=0 skipped=0 flaky=1' 'failed=0 skipped=0 memory=1'; do
  said "$wrong unexercised=1"
  is_too_busy 'durakit check model'
  [ $? -ne 0 ]
  ok $? "with $wrong it is not"
done

done_testing
