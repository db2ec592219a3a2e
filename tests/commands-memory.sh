#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One allocation of a command fails, each in its turn: it prints what it prints without that, or it
# says what is wrong and does not end with 0.  Some of them are tried, evenly spread; all with
# DURAKIT_DEEP=1.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${SQLITE_PLUGIN=}"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
[ -f "$SQLITE_PLUGIN" ] || skip_all 'the sqlite plugin is not built'
[ -z "${SANITIZER_CFLAGS-}" ] || skip_all 'the sanitizers have a malloc of their own'
scratch
. "$top_srcdir/tests/operate/store.sh"
${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC "$top_srcdir/tests/runner-allocations.c" \
  -o "$scratch/fails.so" > "$scratch/cc.out" 2>&1
ok $? 'what makes them fail is built' || { diag "$(cat "$scratch/cc.out")"; done_testing; }

# ---- a store with all that is shown --------------------------------------------------------------

on_store "$SQLITE_PLUGIN" 'store=s.db'
d start order-1 --create --name quick --input '{"of": "someone"}' > out.txt 2> err.txt
d start order-2 --name order --input '{"of": "someone else"}' > out.txt 2> err.txt
d start order-3 --name waiting > out.txt 2> err.txt
serve_begin "$folder/metrics.prom"
d wait order-1 > out.txt 2> err.txt
hears '^order-2 works$'
d cancel order-2 --by someone --reason 'the wrong customer' --wait 30s > out.txt 2> err.txt
serve_saves
serve_end
d start bad-bytes --name order --input "$(printf 'a\377b')" > out.txt 2> err.txt
mkdir plugins
ln -s "$SQLITE_PLUGIN" plugins/sqlite.so
ln -s "$MODEL" plugins/model.so
DURAKIT_PLUGIN_PATH=$folder/plugins
export DURAKIT_PLUGIN_PATH
TMPDIR=$folder
export TMPDIR

# ---- the sweep -----------------------------------------------------------------------------------

# What is never the same twice.
steady() {
  usual < "$1" | sed -e 's/took [0-9.]* ms/took N ms/' -e 's/"round_trip_ms": [0-9.]*/N/' \
                     -e 's/^\(oldest\|  \)  *\([a-z]*\)  *[0-9.]* s$/\1 \2 N s/' \
                     -e 's/\(_age_seconds\) [0-9.]*$/\1 N/' -e 's/\(_age_ms": \)[0-9]*/\1N/g'
}

# with N ARGUMENT...: the N-th allocation fails, 0: none does; its exit code.
with() {
  at=$1
  shift
  timeout 20 env FAIL_AT="$at" COUNT_TO="$folder/count" LD_PRELOAD="$scratch/fails.so" \
    "$DURAKIT" "$@" > out.txt 2> err.txt < /dev/null
}

# sweep N ARGUMENT...: at most N of its allocations fail, or all.
sweep() {
  most=$1
  shift
  rm -f count
  with 0 "$@"
  whole=$?
  steady out.txt > whole.txt
  all=$(cat count)
  [ "${DURAKIT_DEEP-}" != 1 ] || most=$all
  step=$(((all + most - 1) / most))
  at=1 wrong=
  while [ "$at" -le "$all" ]; do
    with "$at" "$@"
    code=$?
    steady out.txt > found.txt
    if [ $code -eq $whole ] && cmp -s whole.txt found.txt; then
      :
    elif [ $code -eq 0 ] || [ $code -ge 124 ] || ! [ -s err.txt ]; then
      wrong="$wrong $at(exit $code)"
      cp out.txt wrong.txt
    fi
    at=$((at + step))
  done
  [ -s whole.txt ] && [ "$all" -gt 0 ] && [ -z "$wrong" ]
  ok $? "durakit $1 ${2-} ${3-}: whole, or an error that is reported ($all allocations)"
  if [ -n "$wrong" ]; then
    diag "exit $whole without a fault; at$wrong of $all:"
    diag "$(steady wrong.txt | diff whole.txt - | head -n 10)"
  fi
}

on="--provider $SQLITE_PLUGIN --settings $folder/settings"
for list in checks clauses mutants topics providers; do
  sweep 10 list $list
  sweep 10 list $list --json
done
sweep 15 explain CANCEL-5
sweep 15 explain cancel/mass
sweep 10 --help
sweep 15 cancel --help
sweep 5 --version
sweep 10 --completion-words cancel
sweep 12 probe "$SQLITE_PLUGIN"
sweep 20 probe "$SQLITE_PLUGIN" --json
for form in '' --json --jsonl; do
  # shellcheck disable=SC2086
  {
    sweep 20 instances $form $on
    sweep 20 status order-1 order-2 order-3 bad-bytes $form $on
    sweep 20 history order-2 $form $on
    sweep 12 wait order-1 order-2 --timeout 0 $form $on
  }
done
for form in '' --json --prometheus; do
  # shellcheck disable=SC2086
  sweep 20 stats $form --metrics "$folder/metrics.prom" $on
done

# ---- what is sent is whole, or is not sent -------------------------------------------------------

# shellcheck disable=SC2086
with 0 start sent-0 --name order --input 'this much' $on
all=$(cat count)
at=1 step=$(((all + 39) / 40)) wrong=
[ "${DURAKIT_DEEP-}" != 1 ] || step=1
while [ "$at" -le "$all" ]; do
  # shellcheck disable=SC2086
  with "$at" start "sent-$at" --name order --input 'this much' $on
  if [ $? -eq 0 ]; then
    d status "sent-$at" > out.txt 2>&1
    grep -q '^  input       this much$' out.txt || wrong="$wrong $at"
  fi
  at=$((at + step))
done
is "$wrong" '' 'durakit start: the whole input, or an error'

# ---- who asks is named, or nothing is asked ------------------------------------------------------

on_dry_run() {
  # shellcheck disable=SC2086
  with "$1" cancel order-3 --dry-run --json $on
  code=$?
  sed -n 's/.*"by": *"\([^"]*\)".*/\1/p' out.txt
  return $code
}

# The first ones, for the name is looked for before anything else.  The C library itself ends the
# process for two of them, while it reads /etc/nsswitch.conf.
name=$(on_dry_run 0)
like "$name" "^user:$(id -un)@" 'durakit cancel names who asks'
at=1 wrong=
while [ "$at" -le 60 ]; do
  found=$(on_dry_run "$at")
  case $? in
    0) [ "$found" = "$name" ] || wrong="$wrong $at:$found" ;;
    134 | 139) [ -z "$found" ] || wrong="$wrong $at:$found" ;;
    *) [ -s err.txt ] || wrong="$wrong $at:silent" ;;
  esac
  at=$((at + 1))
done
is "$wrong" '' 'durakit cancel: the right name, or an error'

done_testing
