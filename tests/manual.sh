#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manual: a page for the command and for each of its commands, made from what --help says now;
# each option that is taken, and no other, is in the help and on the page; roff understands it.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] || skip_all 'the command is not built'
scratch
cd "$scratch" || exit 99
LC_ALL=C
export LC_ALL
# In a tarball they are beside the sources.
pages=$top_builddir/docs/man
[ -d "$pages" ] || pages=$top_srcdir/docs/man

# What the page has: roff's hyphens and fonts are taken away.
plain_of() { sed -e 's/\\f[BIR]//g' -e 's/\\-/-/g' -e "s/\\\\(aq/'/g" -e 's/\\(ga/`/g' "$1"; }
# Entries that begin with "-": "--set", one a line.
entries_of() {
  plain_of "$1" | awk '/^\.TP$/ { getline; if (/^-/) print }' | grep -o -e '--[a-z-]*' | sort
}
told_by() {
  grep '^  -' "$1" | sed 's/^  \(-[a-z], \)\{0,1\}\(--[a-z-]*\).*/\2/' | sort
}

# lint FILE: what is wrong with it, a line each.
requests='TH SH SS TP PP BR \\"'
lint() {
  awk -v requests="$requests" '
    function wrong(what) { print FILENAME ":" FNR ": " what }
    BEGIN { n = split(requests, list, " "); for (i = 1; i <= n; i++) known["." list[i]] = 1 }
    /^\./ && !($1 in known) { wrong("the request " $1) }
    /^'"'"'/ { wrong("a line that begins with an apostrophe is a request") }
    /^$/ { wrong("an empty line") }
    /\t/ { wrong("a tab") }
    { line = $0; sub(/^\.\\"/, "", line)
      gsub(/\\(f[BIR]|-|e|&|\(aq|\(ga|\(ha|\(ti)/, "", line)
      if (line ~ /\\/) wrong("an escape that is not known: " line) }
    /^\.TP$/ { if (expects) wrong("an entry without a name"); expects = 1; next }
    expects && /^\./ { wrong("an entry without a name") }
    named && /^\./ { wrong("an entry without a text") }
    { named = expects; expects = 0 }
    /^\.SH / { section[substr($0, 5)]++ }
    END { if (expects) wrong("an entry without a name")
          m = split("NAME,SYNOPSIS,OPTIONS,EXIT STATUS,EXAMPLES,SEE ALSO", want, ",")
          for (i = 1; i <= m; i++)
            if (section[want[i]] != 1) wrong("no section " want[i] ", or two") }' "$1"
}

page() {
  command=$1
  name=durakit${command:+-$command}
  file=$pages/$name.1
  # shellcheck disable=SC2086
  "$DURAKIT" $command --help > help
  [ -f "$file" ]
  ok $? "$name: it has a page (if not: dist_man_MANS in docs/local.mk)" || return
  is "$("$top_builddir/runner/gen-manual" "$name" | diff "$file" -)" '' \
    "$name: the page is what the help says now (if not: make)"
  is "$(lint "$file")" '' "$name: it is sound"
  like "$(plain_of "$file" | sed -n '/^.SH NAME/,/^.SH SYN/p')" "^$name - ." "$name: its name"
  is "$(entries_of "$file" | diff options -)" '' "$name: its options, and no other"
  is "$(told_by help | diff options -)" '' "$name: so does its help (help.c, operate-help.c)"
  plain_of "$file" | sed -n '/^.SH EXIT STATUS/,/^.SH [^E]/p' | grep -x '[0-9]' > codes
  is "$(sed -n '/^Exit: /,$p' help | tr '\n' ' ' | grep -o -e '[:;] [0-9] ' | tr -d ':; ' |
        diff codes -)" '' "$name: each exit code of its help"
  grep -q -x 0 codes && grep -q -x 2 codes && grep -q -x 4 codes
  ok $? "$name: 0, 2 and 4 are among them"
  # roff fills lines, so that words are compared.
  is "$(grep '^  durakit ' help | sed -e 's/^  //' -e 's/   *.*//' | while IFS= read -r line; do
          plain_of "$file" | sed 's/\\e/\\/g' | grep -q -x -F -e "$line" || echo "$line"
        done)" '' "$name: each example of its help"
}

# ---- the pages -----------------------------------------------------------------------------------

commands=$("$DURAKIT" --completion-words)
[ "$(printf '%s\n' "$commands" | wc -l)" -ge 9 ]
ok $? 'the commands are known'
printf '%s\n' --help --version > options
page ''
plain_of "$pages/durakit.1" > general
sed -n 's/^ *EXIT_[A-Z]* = \([0-9]\)[ ,].*/\1/p' "$top_srcdir/runner/cli/message.h" > numbers
[ "$(wc -l < numbers)" -ge 8 ]
ok $? 'the exit codes are known'
is "$(diff numbers codes)" '' 'durakit: every exit code that there is'
for command in $commands; do
  like "$(cat general)" "^durakit-$command(1)$" "durakit: it names $command"
  "$DURAKIT" --completion-words "$command" | sed -n 's/^option \([^ ]*\).*/\1/p' | sort > options
  page "$command"
done
is "$(cd "$pages" && echo *.1 | tr ' ' '\n' | sort)" "$({ echo durakit.1
  for command in $commands; do echo "durakit-$command.1"; done; } | sort)" 'and no page of others'

run_ok 'without a name there is no page' \
  sh -c '! "$0" durakit-gone' "$top_builddir/runner/gen-manual"
like "$tap_out" '^gen-manual: there is no page "durakit-gone"; expected durakit or' 'and why'

# ---- roff ----------------------------------------------------------------------------------------

# judged_by WHAT COMMAND...: what it says of all pages is nothing.
judged_by() {
  what=$1
  shift
  if command -v "$1" > /dev/null; then
    for file in "$pages"/*.1; do "$@" "$file" 2>&1 > /dev/null; done > said
    is "$(cat said)" '' "$what has no complaint"
  else
    skip "$what has no complaint" "$1 is not there"
  fi
}
judged_by groff groff -man -ww -Tascii
judged_by mandoc mandoc -T lint -W error
if command -v man > /dev/null; then
  man -l "$pages/durakit-check.1" > shown 2>&1
  like "$(cat shown)" '^ *--only WHAT' 'man shows a page'
else
  skip 'man shows a page' 'man is not installed'
fi

# ---- what the lint is worth ----------------------------------------------------------------------

finds() {
  sed -e "$2" "$pages/durakit-check.1" > bad.1
  ! cmp -s bad.1 "$pages/durakit-check.1"
  ok $? "$1: another page"
  like "$(lint bad.1)" "$3" "$1 is found"
}
finds 'an unknown request' 's/^\.TP$/.TQQ/' 'the request .TQQ'
finds 'a line that became a request' "s/^runs the/'runs the/" 'apostrophe'
finds 'a stray backslash' 's/^runs the checks/\\zruns the checks/' 'an escape that is not known'
finds 'a missing section' '/^\.SH EXIT/d' 'no section EXIT STATUS'
finds 'an entry without a text' 's/^\.PP$/.TP/' 'an entry without a text'
sed '/only/d' "$pages/durakit-check.1" > bad.1
[ "$(entries_of bad.1 | diff options - | grep -c only)" -le 1 ]
ok $? 'a missing option would be found'

done_testing
