#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The README tells the truth: what it shows as output is what the command prints, and every command
# that it shows can be typed.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
scratch
readme=$top_srcdir/README.md
cd "$scratch" || exit 99
unset HARNESS_ACTIVE HARNESS_VERSION TAP_VERSION DURAKIT_PLUGIN_PATH
mkdir bin plugins
cp "$MODEL" plugins/model.so
cp "$MODEL" my_provider.so
ln -s "$DURAKIT" bin/durakit
PATH=$scratch/bin:$PATH
DURAKIT_PLUGIN_PATH=$scratch/plugins
export PATH DURAKIT_PLUGIN_PATH

# ---- output --------------------------------------------------------------------------------------

# What differs from run to run.
plain() {
  sed -e 's/0x[0-9a-f]\{16\}/HASH/g' -e 's/run [a-z0-9]\{6\}/run ID/' \
      -e 's/seconds=[0-9.]*/seconds=S/' -e 's/took [0-9.]* ms/took T ms/' \
      -e 's/time-out [0-9]* ms/time-out T ms/' -e 's/\.c:[0-9]*$/.c:LINE/' \
      -e 's|^provider: \([^,]*\), .*|provider: \1, FILE|'
}

# Each comment that names a command is followed by a block with its output.
awk '/^<!-- output: / { sub(/^<!-- output: /, ""); sub(/ -->$/, "")
                        print > ("command." ++n); next }
     /^```/ { if (n && !shown[n]) { shown[n] = inside = 1 } else inside = 0; next }
     inside { print > ("shown." n) }' "$readme"
[ -f command.1 ] && [ -f shown.1 ] && [ -f shown.2 ]
ok $? 'the README shows output'
n=1
while [ -f "command.$n" ]; do
  command=$(cat "command.$n")
  # shellcheck disable=SC2086
  $command --format human > "got.$n" 2>&1
  plain < "shown.$n" > "shown.$n.plain"
  plain < "got.$n" > "got.$n.plain"
  is "$(diff "shown.$n.plain" "got.$n.plain")" '' "what the README shows of: $command"
  n=$((n + 1))
done

# ---- commands ------------------------------------------------------------------------------------

# Of the blocks that are indented, and of the tables.
{
  sed -n 's/^    \(durakit .*\|prove .*\)/\1/p' "$readme"
  sed -n 's/^| .* | `\(durakit [^`]*\)`.*/\1/p' "$readme"
  sed -n 's/^[0-9]\. `\(durakit [^`]*\)`.*/\1/p' "$readme"
} | sed 's/  *#.*//' > commands
[ "$(wc -l < commands)" -ge 8 ]
ok $? 'the README shows commands'

# A failure to repeat, as the README's own line makes it.
durakit check model --set mutant=cancel/first-1000-only --only cancel/mass --out out > out.tap 2>&1
while IFS= read -r command; do
  case $command in
    'durakit selftest'*) skip "$command" 'it is a test of its own: runner-selftest.sh' ;;
    *--gdb*)
      if command -v gdb > /dev/null; then
        like "$(echo quit | eval "$command" 2>&1)" 'cancel/mass' "$command"
      else
        skip "$command" 'gdb is not there'
      fi ;;
    'durakit repro'*)
      eval "$command" > got 2>&1
      is $? 1 "$command"
      like "$(cat got)" 'cancel/mass' 'repro runs the check that failed' ;;
    *)
      run_ok "$command" sh -c "$command" ;;
  esac
done < commands

done_testing
