#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is easily forgotten: each setting of a plugin of ours is in the page of that plugin, each
# option of a command in a page, and in a call of that command in a test.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
scratch
cd "$top_srcdir" || exit 99

# ---- settings ------------------------------------------------------------------------------------

# tells_of PAGE KEY: in code, `pool` or pool=8.
tells_of() { grep -q -E -e "\`$2\`|(^|[^a-z_])$2=" "$1"; }

# Without a server pg is described as well, and exits with 4.
settings() {
  [ -f "$1" ] || { skip "the settings of $1" 'it is left out of this build'; return; }
  keys=$("$DURAKIT" probe "$1" --json 2> "$scratch/err" | sed -n 's/^ *"key": "\(.*\)",$/\1/p')
  [ -n "$keys" ]
  ok $? "${1##*/} has settings" || diag "$(cat "$scratch/err")"
  for key in $keys; do
    tells_of "$2" "$key"
    ok $? "${1##*/}: $2 has the setting $key"
  done
}
settings "$MODEL" docs/provider-testing-guide.md
settings "$SQLITE_PLUGIN" docs/operating.md
settings "$PG_PLUGIN" docs/postgresql.md
# shellcheck disable=SC2016
printf 'a `spoon`, fork=2, a knife\n' > "$scratch/page"
tells_of "$scratch/page" spoon && tells_of "$scratch/page" fork && ! tells_of "$scratch/page" knife
ok $? 'a setting that a page does not name would be found'

# ---- options -------------------------------------------------------------------------------------

# Options of several commands that are explained by the same words are one: a line has the option,
# its short form or "-", and the commands.
for command in $("$DURAKIT" --completion-words); do
  "$DURAKIT" "$command" --help | sed -n "s/^  --/  -, --/
    s/^  \(-[a-z]*\), \(--[a-z-]*\)\(.*\)/$command \2 \1 \3/p"
done | awk '{ command = $1; $1 = ""; commands[$0] = commands[$0] "|" command }
  END { for (row in commands) { split(row, part, " ")
          print part[1], part[2], substr(commands[row], 2) } }' | sort |
  grep -v -e '^--help ' -e '^--version ' > "$scratch/options"
[ "$(wc -l < "$scratch/options")" -gt 60 ]
ok $? 'the options are known'

# What tests type: scripts, without their comments, and documents; a line each.
{
  find tests -name '*.sh' ! -name documented.sh -exec grep -v '^ *#' {} +
  grep -h -E '^    |^<!-- output:' README.md docs/*.md
} | sed 's/^tests[^:]*://' | awk '/\\$/ { sub(/\\$/, ""); printf "%s", $0; next } { print }' \
  > "$scratch/calls"

find README.md docs -name '*.md' ! -name commands.md ! -name contract.md ! -name coverage.md \
  -exec cat {} + > "$scratch/pages"

# A command that takes --provider operates a store.
operating=$(sed -n 's/^--provider - //p' "$scratch/options")
is "$(printf '%s\n' "$operating" | grep -c cancel)" 1 'which commands operate a store is known'

# form OPTION SHORT: an expression for both forms.
form() {
  if [ "$2" = - ]; then
    echo "[^a-z-]$1([^a-z-]|\$)"
  else
    echo "[^a-z-]($1([^a-z-]|\$)|$2 ?[0-9N])"
  fi
}

# in_page OPTION SHORT COMMANDS, in_test OPTION SHORT COMMANDS
in_page() {
  if printf '%s\n' "$operating" | tr '|' '\n' | grep -q -x -E -e "$3"; then
    grep -q -E -e "$(form "$1" "$2")" docs/commands.md && return
    printf '%s\n' "$3" | tr '|' '\n' | grep -q -v -x -E -e "$operating" || return
  fi
  grep -q -E -e "$(form "$1" "$2")" "$scratch/pages"
}
in_test() {
  grep -q -E -e "(^|[^a-z-])($3)([^a-z-].*)?$(form "$1" "$2")" "$scratch/calls"
}

while read -r option short commands; do
  in_page "$option" "$short" "$commands"
  ok $? "$option of $commands is in a page" ||
    diag 'docs/commands.md has those of commands that operate a store'
  in_test "$option" "$short" "$commands"
  ok $? "$option of $commands is used in a test" ||
    diag "nothing in tests/ types one of these commands and behind it, in the same call, $option"
done < "$scratch/options"

! in_page --forgotten - cancel && ! in_page --forgotten - 'check|certify'
ok $? 'an option that is in no page would be found'
! in_page --pairs - cancel && ! in_test --reason - certify && in_test --reason - cancel
ok $? 'so would one that another command has'
! in_test --forgotten - cancel && ! in_test --reasons - cancel
ok $? 'and one that no test uses'

done_testing
