#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Completion for bash: what Tab would offer, asked of the function that bash would call.  The
# package bash-completion is not needed.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
command -v bash > /dev/null || skip_all 'bash is not installed'
scratch
cd "$scratch" || exit 99
unset DURAKIT_PLUGIN_PATH
mkdir plugins 'a folder'
cp "$MODEL" plugins/model.so
cp "$MODEL" plugins/other.so
: > mine.so
: > 'my settings'
: > results.jsonl
mkdir more
cp "$MODEL" more/model.so
DURAKIT_PLUGIN_PATH=$scratch/plugins:$scratch/more:$scratch/plugins
DURAKIT_TEST_VARIABLE=1
export DURAKIT_PLUGIN_PATH DURAKIT_TEST_VARIABLE DURAKIT

# Words are given as bash splits them: "=" and ":" are words of their own.  The last is being typed.
cat > ask.bash <<'BASH'
. "$1" || exit
shift
COMP_WORDS=(durakit "$@")
COMP_CWORD=$#
_durakit "$DURAKIT" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2> said
[ ! -s said ] || { echo 'it said something:'; cat said; }
[ ${#COMPREPLY[@]} = 0 ] || printf '%s\n' "${COMPREPLY[@]}"
BASH
offered() { bash --norc --noprofile ask.bash "$top_srcdir/completions/durakit" "$@" | sort; }
# offers WHAT WORDS...: exactly these words, in one line.
offers() {
  wanted=$1
  shift
  is "$(offered "$@" | paste -sd ' ' -)" "$wanted" "durakit $* [Tab]"
}
# among WORD WORDS...: that one, and every one begins as what was typed.
among() {
  wanted=$1
  shift
  offered "$@" > list
  grep -q -x -e "$wanted" list
  ok $? "durakit $* [Tab]: $wanted is among them" || diag "$(cat list)"
}

# ---- commands and options ------------------------------------------------------------------------

commands=$("$DURAKIT" --completion-words)
is "$(offered '')" "$(printf '%s\n' "$commands" | sort)" 'every command'
offers 'certify' cert
is "$(offered c)" "$(printf '%s\n' "$commands" | grep '^c' | sort)" 'those that begin so'
offers '--help --version' -
offers '' nothing-like-it ''
for command in $commands; do
  "$DURAKIT" --completion-words "$command" > words
  sed -n 's/^option \([^ ]*\).*/\1/p' words | sort > options
  offered "$command" - > list
  is "$(diff options list)" '' "$command: its options, and no other"
  [ -s list ] && grep -q -x -e --help list
  ok $? "$command: --help is one"
  # An argument that is known to have names has to offer some.
  if grep -q -x -E 'argument (PLUGIN|PROVIDER|WHAT|FILE)' words || [ "$command" = explain ]; then
    [ -n "$(offered "$command" '')" ]
    ok $? "$command: its argument"
  fi
  # So has an option.
  sed -n 's/^option \([^ ]*\) \(.*\)/\1 \2/p' words | while read -r option takes; do
    case $takes in
      *'|'* | *FILE* | *FOLDER* | *PLUGIN* | *PROVIDER* | *PROGRAM* | WORKLOADS)
        [ -n "$(offered "$command" "$option" '')" ] || echo "$option $takes" ;;
    esac
  done > silent
  is "$(cat silent)" '' "$command: what its options take"
done

# ---- arguments -----------------------------------------------------------------------------------

# Plugins may be installed where this command looks for them; each name is offered once.
names() {
  { DURAKIT_PLUGIN_PATH='' "$DURAKIT" list providers | sed 's/[[:space:]].*//'
    printf '%s\n' "$@"; } | sort -u
}
offers "$(names mine.so model other | paste -sd ' ' -)" certify ''
offers "$(names model | grep '^mo' | paste -sd ' ' -)" probe mo
is "$("$DURAKIT" list providers | grep '^model[[:space:]]' | sed 's/.*[[:space:]]//')" \
  "$scratch/plugins/model.so" 'a name is listed once, with the file that it means'
offers 'plugins/model.so plugins/other.so' check plugins/
offers 'checks clauses mutants providers topics' list ''
offers 'clauses' list cl
offers 'CANCEL-5' explain CANCEL-5
among cancel/locked-row explain cancel/lo
among cancel/only-unlocked explain cancel/only
among mass-cancellation explain mass
offers 'results.jsonl' repro res
among cancel/mass repro results.jsonl : cancel/ma
offers '' selftest ''

# ---- what options take ---------------------------------------------------------------------------

among token/next-life check mine.so --only token/
among CANCEL-5 check mine.so --only CANCEL-
among lock-stealing check mine.so --only lock
among 'CANCEL-5,turn/birth' check mine.so --only CANCEL-5,turn/bi
among run/select-timeout check mine.so --only run/sel
among turn/birth check mine.so --only = turn/bi
offers 'turn-1,work-16' bench mine.so --only turn-1,work-16
offers 'human' certify mine.so --format h
offers 'human tap' certify mine.so --format = ''
offers 'human tap' certify mine.so --format =
offers 'core' list checks --profile co
offers 'a folder' certify mine.so --out a
offers 'my settings' certify mine.so --settings my
offers 'DURAKIT_TEST_VARIABLE' certify mine.so --set-env password = DURAKIT_TEST_V
offers '' certify mine.so --set store = x
offers '' certify mine.so --seed ''

# ---- a command that does not exist, or that is another one ---------------------------------------

printf '#!/bin/sh\necho broken >&2\nexit 9\n' > broken
chmod 755 broken
for DURAKIT in "$scratch/gone" "$scratch/broken"; do
  offers '' ''
  offers '' certify ''
done

done_testing
