#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the commands that operate a store refuse: words and exit codes, and that nothing is done.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${SQLITE_PLUGIN=}" "${CC:=cc}" "${SANITIZER_CFLAGS=}"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
scratch
. "$top_srcdir/tests/operate/store.sh"
on_store "$MODEL" "store=$scratch/model.store"
d start order-1 --name order --create > out.txt
d start order-2 --name order > out.txt
before=$(sha256sum "$scratch/model.store")

# ---- words ---------------------------------------------------------------------------------------

refuses 2 'no instances' cancel <<'TEXT'
durakit: cancel: no instances are selected
  expected  ids, --name or another condition, or --all
  next      durakit instances shows what a condition selects
TEXT
refuses 2 'ids and conditions' cancel order-1 --name order <<'TEXT'
durakit: cancel: both ids and conditions are given
  expected  one of the two
  next      durakit instances shows the ids that conditions select
TEXT
refuses 2 '--all and a condition' cancel --all --name order --yes <<'TEXT'
durakit: --all: cannot be combined with a condition
  expected  one of the two
  next      durakit cancel --help shows examples
TEXT
refuses 2 'an unknown condition' cancel --nmae order <<'TEXT'
durakit: --nmae: there is no such option of durakit cancel
  next      did you mean --name? durakit cancel --help lists them
TEXT
refuses 2 'an option of another command' status order-1 --reason x <<'TEXT'
durakit: --reason: there is no such option of durakit status
  next      durakit status --help lists them; durakit cancel takes --reason
TEXT
# The option that was meant has another name here: that comes first.
meant() {
  option=$1 own=$2
  shift 2
  refuses 2 "$option of $1 means $own" "$@" <<TEXT
durakit: $option: there is no such option of durakit $1
  next      did you mean $own? durakit $1 --help lists them; durakit $others $option
TEXT
}
others='wait takes' meant --timeout --wait cancel order-1 --timeout 3s
others='cancel takes' meant --wait --timeout wait order-1 --wait 3s
others='start takes' meant --input --data raise order-1 paid --input x
others='start takes' meant --input --data enqueue order-1 items --input x
others='raise and enqueue take' meant --data --input start order-3 --name order --data x
others='instances, delete and prune take' \
  meant --completed-before --created-before cancel --completed-before 2h
refuses 2 'an option of many others' stats --status <<TEXT
durakit: --status: there is no such option of durakit stats
  next      durakit stats --help lists them; durakit cancel, instances, delete and \
prune take --status
TEXT
refuses 2 'the beginning of two options' instances --jso <<'TEXT'
durakit: --jso: there is no such option of durakit instances
  next      did you mean --json? durakit instances --help lists them
TEXT
refuses 2 'an unknown status' instances --status running,complete <<'TEXT'
durakit: --status: cannot be "running,complete"
  expected  not_started, running, completed, failed or cancelled
  next      did you mean completed? durakit instances --help shows examples
TEXT
refuses 2 'no status at all' instances --status no_word <<'TEXT'
durakit: --status: cannot be "no_word"
  expected  not_started, running, completed, failed or cancelled
  next      separate several by commas; durakit instances --help shows examples
TEXT
refuses 2 'a time without its zone' cancel --created-before 2026-11-01T08:00:00 <<'TEXT'
durakit: --created-before: cannot be "2026-11-01T08:00:00"
  expected  2026-11-01T08:00:00Z, 2026-11-01, or how long ago: 90s, 30m, 2h, 7d
  next      durakit cancel --help shows examples
TEXT
refuses 2 'a duration that is none' wait order-1 --timeout soon <<'TEXT'
durakit: --timeout: cannot be "soon"
  expected  a duration: 30 or 30s, 500ms, 5m, 2h, 7d
  next      durakit wait --help shows examples
TEXT
refuses 2 'no time at all for a call' wait order-1 --patience 0 <<'TEXT'
durakit: --patience: cannot be "0"
  expected  a duration above 0: 30 or 30s, 500ms, 5m, 2h, 7d
  next      durakit wait --help shows examples
TEXT
refuses 2 'a negative number' cancel order-1 --expect -1 <<'TEXT'
durakit: --expect: cannot be "-1"
  expected  a number, at least 0
  next      durakit cancel --help shows examples
TEXT
refuses 2 'an empty name' cancel --name '' <<'TEXT'
durakit: --name: cannot be ""
  expected  a text, not empty
  next      durakit cancel --help shows examples
TEXT
refuses 2 'no id' status <<'TEXT'
durakit: status: an argument is missing
  expected  ids of instances: order-1 order-2
  next      durakit status --help shows examples
TEXT
refuses 2 'no event' raise order-1 <<'TEXT'
durakit: raise: an argument is missing
  expected  the id of an instance, and the name of the event: order-1 paid
  next      durakit raise --help shows examples
TEXT
refuses 2 'no name' start order-3 <<'TEXT'
durakit: --name: is missing
  expected  the name of the orchestration
  next      durakit start --help shows examples
TEXT
refuses 2 'no executions' prune --all --yes <<'TEXT'
durakit: prune: no executions are selected
  expected  --keep N, --completed-before TIME, or both
  next      durakit prune --help shows examples
TEXT
refuses 2 'force for many' delete --name order --force --yes <<'TEXT'
durakit: --force: works with ids, not with conditions
  expected  ids
  next      cancel them first: durakit cancel takes the same conditions
TEXT
refuses 2 'two forms' instances --json --jsonl <<'TEXT'
durakit: --jsonl: cannot be combined with --json
  expected  one of the two
  next      durakit instances --help shows examples
TEXT
# An option with a value is given once: a second one would silently replace the first.
twice() {
  option=$1
  shift
  refuses 2 "$option twice" "$@" <<TEXT
durakit: $option: is given twice
  expected  it once, with one value
  next      durakit $1 --help shows what it takes
TEXT
}
printf 'order-1\n' > one
twice --ids-from cancel --ids-from one --ids-from one
twice --name cancel --name order --name=other --yes
twice --status instances --status running --status failed
twice --reason cancel order-1 --reason a --reason b
twice --expect cancel --name order --expect 1 --expect 2
twice --wait cancel order-1 --wait 1s --wait=2s
twice --name start order-3 --name order --name other
twice --input start order-3 --name order --input a --input a
twice --provider status order-1 --provider sqlite
is "$(d instances --name order --json --json | grep -c '"order-[12]"')" 2 \
  'a switch may be repeated'

# What --version is elsewhere: instances of a version.
for command in 'status order-1' 'wait order-1' 'history order-1' 'raise order-1 paid' stats; do
  # shellcheck disable=SC2086
  refuses 2 "no --version: $command" $command --version 1 <<TEXT
durakit: --version: there is no such option of durakit ${command%% *}
  next      durakit ${command%% *} --help lists them; durakit start, cancel, instances, delete, \
prune and others take --version
TEXT
  is "$("$DURAKIT" "${command%% *}" --help | grep -c -e --version -e 'Which instances' -e TIME)" 0 \
    "nor in its help: $command"
done
"$DURAKIT" cancle order-1 > out.txt 2> err.txt
is $? 2 'an unknown command'
like "$(cat err.txt)" '^  next      did you mean cancel?$' 'with the nearest'

# ---- ids, reasons, files -------------------------------------------------------------------------

refuses 2 'an empty id' cancel '' <<'TEXT'
durakit: "" cannot be the id of an instance
  expected  1 to 1024 bytes of UTF-8
  next      durakit cancel --help shows examples
TEXT
refuses 2 'an empty id to look at' status '' <<'TEXT'
durakit: "" cannot be the id of an instance
  expected  1 to 1024 bytes of UTF-8
  next      durakit status --help shows examples
TEXT
refuses 2 'an empty event' raise order-1 '' <<'TEXT'
durakit: raise: "" cannot be the name of an event
  expected  1 to 1024 bytes of UTF-8
  next      durakit raise --help shows examples
TEXT
refuses 2 'a setting without a value' start order-3 --name order --set foo <<'TEXT'
durakit: --set: needs a key and a value
  expected  KEY=VALUE
  next      durakit start --help shows examples
TEXT
refuses 2 'an id that is no UTF-8' cancel "$(printf 'order\377')" <<'TEXT'
durakit: "order\xff" cannot be the id of an instance
  expected  1 to 1024 bytes of UTF-8
  next      durakit cancel --help shows examples
TEXT
long=$(awk 'BEGIN { while (i++ < 1025) printf "x" }')
d status "$long" > out.txt 2> err.txt
is $? 2 'an id that is too long'
printf 'order-1\n\nor\200der\norder-2\n' > ids
refuses 2 'a file with an id that is none' cancel --ids-from ids <<'TEXT'
durakit: ids:3: "or\x80der" cannot be the id of an instance
  expected  1 to 1024 bytes of UTF-8
  next      durakit cancel --help shows examples
TEXT
refuses 2 'a file that does not exist' cancel --ids-from gone <<'TEXT'
durakit: gone: cannot be read
  expected  a file, or - for standard input
  found     No such file or directory
  next      durakit cancel --help shows examples
TEXT
refuses 2 'an input that does not exist' start order-3 --name order --input @gone <<'TEXT'
durakit: gone: cannot be read
  expected  a file, or - for standard input
  found     No such file or directory
  next      durakit start --help shows examples
TEXT
refuses 2 'a reason that is too long' cancel order-1 --reason "$long" <<'TEXT'
durakit: --reason: has 1025 bytes
  expected  at most 1024 bytes of text in one line
  next      durakit cancel --help shows examples
TEXT
refuses 2 'a reason of two lines' cancel order-1 --reason "$(printf 'a\nb')" <<'TEXT'
durakit: --reason: has the control character U+000A
  expected  at most 1024 bytes of text in one line
  next      durakit cancel --help shows examples
TEXT
refuses 2 'such a reason' cancel order-1 --reason "$(printf 'a\302\205b')" <<'TEXT'
durakit: --reason: has the control character U+0085
  expected  at most 1024 bytes of text in one line
  next      durakit cancel --help shows examples
TEXT
refuses 2 'such a name' cancel order-1 --json --by "$(printf '\302\233m')" <<'TEXT'
durakit: --by: has the control character U+009B
  expected  at most 256 bytes of text in one line
  next      durakit cancel --help shows examples
TEXT
bad=$(printf 'bad\377')
refuses 2 'a name that is no UTF-8' cancel --name "$bad" --yes --json <<'TEXT'
durakit: --name: "bad\xff" cannot be the name of an orchestration
  expected  1 to 1024 bytes of UTF-8
  next      durakit cancel --help shows examples
TEXT
refuses 2 'a name that is too long' cancel --name "$long" --yes <<TEXT
durakit: --name: "$(printf '%.100s' "$long")..." cannot be the name of an orchestration
  expected  1 to 1024 bytes of UTF-8
  next      durakit cancel --help shows examples
TEXT
refuses 2 'such a parent' instances --parent "$bad" --json <<'TEXT'
durakit: --parent: "bad\xff" cannot be the id of an instance
  expected  1 to 1024 bytes of UTF-8
  next      durakit instances --help shows examples
TEXT
refuses 2 'such a version' delete --version "$bad" --yes --jsonl <<'TEXT'
durakit: --version: "bad\xff" cannot be a version
  expected  1 to 1024 bytes of UTF-8
  next      durakit delete --help shows examples
TEXT
refuses 2 'such an id to go on after' instances --after "$bad" --json <<'TEXT'
durakit: --after: "bad\xff" cannot be the id of an instance
  expected  1 to 1024 bytes of UTF-8
  next      durakit instances --help shows examples
TEXT
refuses 2 'such an event' raise order-1 "$bad" --json <<'TEXT'
durakit: raise: "bad\xff" cannot be the name of an event
  expected  1 to 1024 bytes of UTF-8
  next      durakit raise --help shows examples
TEXT
refuses 2 'such a name to be started' start order-3 --name "$bad" --json <<'TEXT'
durakit: --name: "bad\xff" cannot be the name of an orchestration
  expected  1 to 1024 bytes of UTF-8
  next      durakit start --help shows examples
TEXT
refuses 2 'an empty name for --by' cancel order-1 --by '' <<'TEXT'
durakit: --by: cannot be ""
  expected  a text, not empty
  next      durakit cancel --help shows examples
TEXT
refuses 2 'a version that is none' start order-3 --name order --version one <<'TEXT'
durakit: --version: cannot be "one"
  expected  three numbers separated by points: 1.2.3
  next      durakit start --help shows examples
TEXT
for version in 1.2 1.2.3.4 1..3 1.02.3 1.2.3-4; do
  d start order-3 --name order --version $version > out.txt 2> err.txt
  is "$? $(head -n 1 err.txt)" "2 durakit: --version: cannot be \"$version\"" "nor is $version one"
done
# What has no end is not read to its end, and a store is not made for what is wrong.
refuses 2 'an input without end' start order-3 --name order --input @/dev/zero <<'TEXT'
durakit: /dev/zero: is too long
  expected  at most 16777216 bytes
  next      store it elsewhere, and send a reference to it
TEXT
refuses 2 'data without end' raise order-1 paid --data @/dev/zero <<'TEXT'
durakit: /dev/zero: is too long
  expected  at most 16777216 bytes
  next      store it elsewhere, and send a reference to it
TEXT
refuses 2 'ids without end' cancel --ids-from /dev/zero <<'TEXT'
durakit: /dev/zero: is too long
  expected  at most 67108864 bytes
  next      split the file, and run the command once for each part
TEXT
head -c 16777217 /dev/zero | tr '\0' x > large
d start order-3 --name order --input - < large > out.txt 2> err.txt
is "$? $(cat out.txt; head -n 1 err.txt)" '2 durakit: -: is too long' 'standard input, by one byte'
"$DURAKIT" start "$bad" --name order --create --provider "$MODEL" --set "store=$folder/new" \
  > out.txt 2> err.txt
is "$? $(ls new 2> /dev/null)" '2 ' 'no store is made for an id that is none'
is "$(sha256sum "$scratch/model.store")" "$before" 'nothing of all that was written'

# ---- the plugin ----------------------------------------------------------------------------------

"$DURAKIT" status order-1 > out.txt 2> err.txt
is "$? $(head -n 1 err.txt)" '2 durakit: --provider: is missing' 'no provider'
"$DURAKIT" status order-1 --provider modle > out.txt 2> err.txt
is "$? $(head -n 1 err.txt)" '3 durakit: modle: no plugin of this name is installed' \
  'a provider that is not installed'
echo 'a text' > text.so
"$DURAKIT" status order-1 --provider ./text.so > out.txt 2> err.txt
is $? 3 'a provider that is none'
"$DURAKIT" status order-1 --provider "$MODEL" --set stroe=x > out.txt 2> err.txt
is $? 2 'a setting that it does not have'
like "$(cat err.txt)" '^  next      did you mean store?$' 'with the nearest'
like "$("$DURAKIT" status x --provider "$MODEL" --set mutant=none 2>&1)" 'DK_INVALID: ' \
  'a setting that its open refuses, in its words'

# The model without its extensions.
cat > plain.c <<'PLAIN'
#include <dlfcn.h>
#include <durakit/provider.h>
const struct dk_provider *durakit_provider_2(uint32_t major)
{
  static struct dk_provider plain;
  if (plain.magic == 0) {
    void *model = dlopen(MODEL, RTLD_NOW | RTLD_LOCAL);
    dk_entry_fn *entry;
    *(void **)&entry = model ? dlsym(model, "durakit_provider_2") : NULL;
    if (!entry)
      return NULL;
    plain = *entry(major);
    plain.extensions = NULL;
  }
  return &plain;
}
PLAIN
# shellcheck disable=SC2086
run_ok 'a provider without durakit.admin/1 is built' $CC -shared -fPIC "-DMODEL=\"$MODEL\"" \
  -I"$top_srcdir/core/include" $SANITIZER_CFLAGS -o "$scratch/plain.so" plain.c -ldl
without() {
  "$DURAKIT" "$@" --provider "$scratch/plain.so" --settings settings > out.txt 2> err.txt
}
for command in instances stats 'delete order-1' 'prune order-1 --keep 1' \
               'cancel --name order --yes'; do
  # shellcheck disable=SC2086
  without $command
  is $? 3 "without durakit.admin/1: $command"
  like "$(cat err.txt)" '^durakit: .*: the provider does not offer durakit.admin/1$' 'is refused'
  like "$(cat err.txt)" '^  next      these work without it: start, status.*, raise, enqueue' \
    'with what works'
done
without status order-1
is "$? $(tail -n 1 out.txt)" \
  '1   status      not found, or not started: the provider does not know which' 'status works'
without cancel nowhere
is "$? $(head -n 1 out.txt)" \
  '1 nowhere: not found, or not started: the provider does not know which' 'cancel by ids, too'
without raise order-1 paid
is "$? $(cat out.txt)" '0 order-1: raised; kept for its start, if one is stored' 'and raise'
without wait order-1 --timeout 0
is "$? $(cat out.txt)" '1 order-1: has not ended in time' 'wait'
without history order-1
is "$? $(sed -n 1p err.txt)" '1 durakit: order-1: there is no such instance' 'and history'

# ---- the store -----------------------------------------------------------------------------------

look_at_store='check that --settings [^ ]*settings names a store of this provider'
rights="$look_at_store, in a version that it knows, and which rights you have on it"

# refused_open NAME WHAT STATUS NEXT: how the last command has ended, by its words; those of the
# provider are its own.  STATUS, what it found, and NEXT are patterns.
refused_open() {
  is "$code $(head -n 1 err.txt | usual)" "4 durakit: PLUGIN: $2" "$1"
  like "$(cat err.txt)" "^  found     $3: .*[a-z]" "$1: in the words of the provider"
  like "$(cat err.txt)" "^  next      $4\$" "$1: and what to do"
  is "$(wc -l < err.txt) $(cat out.txt)" "${5-3} " "$1: and no more"
}

# cannot_open NAME STATUS NEXT: what the settings name is no store, and is left alone.
cannot_open() {
  ls -l "$scratch/gone" > was.txt
  timeout 60 "$DURAKIT" status x --provider "$plugin" --settings settings > out.txt 2> err.txt
  code=$?
  refused_open "$1" 'the store cannot be opened' "$2" "$3"
  is "$(ls -l "$scratch/gone" | diff was.txt -)" '' "$1: it is left alone"
}

# Each command, and nothing is made.
judge_no_store() {
  on_store "$1" "store=$scratch/gone/store"
  mkdir "$scratch/gone"
  for command in 'status x' 'wait x' 'history x' 'raise x e' 'cancel x' 'cancel x --dry-run' \
                 instances 'delete x' 'prune x --keep 1' stats 'start x --name y'; do
    # shellcheck disable=SC2086
    d $command > out.txt 2> err.txt < /dev/null
    code=$?
    refused_open "no store: $command" 'there is no such store' DK_NOT_FOUND \
      'check --settings [^ ]*settings; durakit start --create makes a store' 4
    like "$(cat err.txt)" '^  expected  a store that exists: none was made$' 'none was made'
  done
  is "$(ls -A "$scratch/gone")" '' 'no store: none was made'
  rmdir "$scratch/gone"
  d start x --name y --create > out.txt 2> err.txt
  is $? 4 'no folder: start --create'
  mkdir "$scratch/gone"
  echo 'a text' > "$scratch/gone/store"
  case $1 in
    "$MODEL") cannot_open 'a text' DK_CORRUPT \
      "$look_at_store; if so, check the disk, and restore an intact copy" ;;
    *) cannot_open 'a text' DK_REFUSED "$rights" ;;
  esac
  is "$(cat "$scratch/gone/store")" 'a text' 'a text: nor changed'
  rm "$scratch/gone/store"
  mkdir "$scratch/gone/store"
  cannot_open 'a folder' DK_REFUSED "$rights"
  rmdir "$scratch/gone/store"
  mkfifo "$scratch/gone/store"
  cannot_open 'a pipe' DK_REFUSED "$rights"
  rm -r "$scratch/gone"
}

# As a user who may read the store's files and not write them.
judge_read_only() {
  on_store "$1" "store=$scratch/readable/store"
  mkdir "$scratch/readable"
  d start x --name order --create > out.txt
  d start y --name order > out.txt
  chmod -R a+rX "$scratch"
  chmod a-w "$scratch/readable" "$scratch/readable"/*
  as=''
  if [ "$(id -u)" -eq 0 ]; then
    as='setpriv --reuid=65534 --regid=65534 --clear-groups'
    if ! $as test -r "$1" -a -x "$DURAKIT" -a -r "$scratch/readable/store" 2> /dev/null; then
      skip 'a store without the right to write' 'this process cannot become another user'
      return
    fi
  fi
  for command in 'cancel x' 'start z --name order' 'raise x e' 'delete x --force' \
                 'prune x --keep 1'; do
    # shellcheck disable=SC2086
    $as "$DURAKIT" $command --provider "$1" --settings settings > out.txt 2> err.txt < /dev/null
    code=$?
    refused_open "a store without the right to write: $command" 'the store cannot be opened' \
      DK_REFUSED "$rights"
  done
  # What only looks needs no such right.
  sha256sum "$scratch/readable"/* > sums
  looks() {
    want=$1
    shift
    # shellcheck disable=SC2086
    $as "$DURAKIT" "$@" --provider "$plugin" --settings settings > out.txt 2> err.txt < /dev/null
    is "$? $(tail -n 1 out.txt) $(cat err.txt)" "$want " "to be read: $*"
  }
  looks '0 2 instances' instances
  looks '1 x: has not ended in time' wait x --timeout 0
  looks '0 not started: no turn of it has been committed' history x
  looks '0 1 would be requested' cancel x --dry-run
  looks '0 2 would be requested' cancel --name order --dry-run
  looks '0 1 would be deleted, including descendants' delete x --force --dry-run
  looks '0 0 would be deleted, including descendants' delete --name order --dry-run
  looks '0 would be removed: executions 0, events 0' prune --all --keep 1 --dry-run
  for command in 'status x y' stats; do
    # shellcheck disable=SC2086
    $as "$DURAKIT" $command --provider "$1" --settings settings > out.txt 2> err.txt
    is "$? $(cat err.txt)" '0 ' "to be read: $command"
  done
  is "$(sha256sum "$scratch/readable"/* | diff sums -)" '' 'to be read: nothing was written'
}

# What only some providers answer.
judge_sqlite() {
  on_store "$1" "store=$scratch/gone/store"
  mkdir "$scratch/gone"
  python3 -c 'import sqlite3, sys
sqlite3.connect(sys.argv[1]).execute("CREATE TABLE a(b)")' "$scratch/gone/store"
  cannot_open 'a database of others' DK_REFUSED "$rights"
  rm "$scratch/gone/store"
  ln -s nowhere "$scratch/gone/store"
  cannot_open 'a link to nowhere' DK_REFUSED "$rights"
  echo "store=$scratch/gone/$(printf '%.300s' "$long")" > settings
  cannot_open 'a name that is too long' DK_UNAVAILABLE \
    'check --settings [^ ]*settings, and that the store it names is reachable and has free .*again'
}

plugins=$MODEL
[ ! -f "$SQLITE_PLUGIN" ] || plugins="$MODEL $SQLITE_PLUGIN"
for one in $plugins; do
  judge_no_store "$one"
done
if [ -f "$SQLITE_PLUGIN" ]; then
  judge_read_only "$SQLITE_PLUGIN"
  judge_sqlite "$SQLITE_PLUGIN"
fi

# ---- output, signals and terminals ---------------------------------------------------------------

on_store "$MODEL" "store=$scratch/model.store"
if [ -w /dev/full ]; then
  d instances > /dev/full 2> err.txt
  is "$? $(cat err.txt)" '4 durakit: standard output: cannot be written
  found     No space left on device
  next      this command changes nothing; you can repeat it' 'a full disk'
  d start order-9 --name unknown-name > out.txt
  d cancel order-9 > /dev/full 2> err.txt
  is "$? $(cat err.txt)" '4 durakit: standard output: cannot be written
  found     No space left on device
  next      everything was done; durakit status shows the status of instances' \
    'a full disk, and a change'
  is "$(d cancel order-9 | head -n 1)" 'order-9: already requested' 'which was done'
  d cancel order-9 order-8 > /dev/full 2> err.txt
  is "$? $(sed -n 's/^  next *//p' err.txt)" \
    '4 what could be done was done; durakit status shows the status of instances' \
    'a full disk, and not all was done'
fi
d status order-1 >&- 2> err.txt
is "$? $(sed -n 2p err.txt)" '4   found     Bad file descriptor' 'no standard output'
d cancel --ids-from - <&- > out.txt 2> err.txt
is "$? $(cat out.txt err.txt)" '2 durakit: -: cannot be read
  expected  a file, or - for standard input
  found     standard input is closed
  next      durakit cancel --help shows examples' 'no standard input'
d cancel --ids-from - <&- >&- 2>&-
is $? 2 'nothing at all'

# A file with lines of another system: an id may end so, but few do.
printf 'order-1\r\nb\r\n' > crlf
hint='durakit: crlf:1: the id ends in a carriage return
  expected  lines that end only in a newline
  found     \r\n
  next      if they do not belong to the ids, remove them with tr -d '\''\r'\'''
for command in cancel 'delete --dry-run' delete; do
  # shellcheck disable=SC2086
  d $command --ids-from crlf > out.txt 2> err.txt
  is "$? $(head -n 1 out.txt)" '1 order-1\x0d: not found' "$command: lines that end in CR LF"
  is "$(head -n 4 err.txt)" "$hint" "$command: with a hint"
done
d start "$(printf 'order\r')" --name order > out.txt
printf 'order\r\n' > crlf
d cancel --ids-from crlf > out.txt 2> err.txt
is "$? $(cat err.txt)" '0 ' 'without one where it is there'
d delete "$(printf 'order\r')" --force > out.txt
d delete order-9 --force > out.txt

# A job of the background ignores SIGINT, one below nohup SIGHUP, and so would all that it starts.
python() { env --default-signal=INT,HUP,TERM python3 "$@"; }

# on_terminal ANSWER ARGUMENT...: cancel with a terminal for input and errors; what stood on it, and
# the exit code, are printed.  An answer of ^C is the key.  What hangs ends with the terminal.
on_terminal() {
  python - "$@" << 'PYTHON'
import os, pty, signal, sys
answer, command = sys.argv[1], sys.argv[2:]
signal.alarm(60)
pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm-256color")
    os.environ.pop("NO_COLOR", None)
    os.execv(command[0], command)
seen = b""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    seen += piece
    if answer and seen.endswith(b"[y/N] "):
        os.write(terminal, b"\x03" if answer == "^C" else answer.encode() + b"\n")
        answer = None
print(seen.decode().replace("\r\n", "\n"), end="")
print("exit", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
}

cancel="$DURAKIT cancel --provider $plugin --settings settings --name order"
before=$(sha256sum "$scratch/model.store")
# shellcheck disable=SC2086
is "$(on_terminal n $cancel)" 'durakit: this cancels 2 instances. Continue? [y/N] n
durakit: nothing was done
exit 5' 'on a terminal it asks; no'
# shellcheck disable=SC2086
like "$(on_terminal ^C $cancel)" '^exit 5$' 'or Ctrl-C'
is "$(sha256sum "$scratch/model.store")" "$before" 'and nothing is written'
# shellcheck disable=SC2086
on_terminal y $cancel > seen.txt
is "$(cat seen.txt)" 'durakit: this cancels 2 instances. Continue? [y/N] y
order-1: requested
order-2: requested
2 requested
exit 0' 'yes'
is "$(tr -d '\n -~' < seen.txt | wc -c | tr -d ' ')" 0 'no colour, nothing that moves a cursor'

d cancel order-2 > out.txt
serve_begin
d wait order-1 order-2 > out.txt
serve_end
serve_begin
d start family-1 --name family --input order > out.txt
hears '^family-1\.[12] works$' && hears '^family-1\.[12] works$'
d cancel family-1 --wait 60s > out.txt
d wait family-1.1 family-1.2 --timeout 60s > out.txt
serve_end
before=$(sha256sum "$scratch/model.store")
delete="$DURAKIT delete --provider $plugin --settings settings --all"
# shellcheck disable=SC2086
is "$(on_terminal n $delete)" 'durakit: this deletes at most 3 instances that have ended, with '\
'their descendants. Continue? [y/N] n
durakit: nothing was done
exit 5' 'delete asks, too, and counts no child that is deleted with its parent'
is "$(sha256sum "$scratch/model.store")" "$before" 'and nothing is deleted'

# interrupted WHEN COMMAND ARGUMENT...: SIGINT when it has written a line, or when it watches
# signals; its standard input stays open.  What it writes, and its exit code.  What hangs is killed.
cat > interrupt.py <<'PYTHON'
import signal, subprocess, sys
when, command = sys.argv[1], sys.argv[2:]
child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=open("err.txt", "w"))
signal.signal(signal.SIGALRM, lambda *_: child.kill())
signal.alarm(60)
def watches():
    status = dict(l.split(":", 1) for l in open("/proc/%d/status" % child.pid))
    return child.poll() is not None or int(status["SigBlk"], 16) >> signal.SIGINT - 1 & 1
if when == "line":
    print(child.stdout.readline().decode(), end="")
while not watches():
    pass
child.send_signal(signal.SIGINT)
print(child.stdout.read().decode(), end="")
print(child.wait())
PYTHON
interrupted() {
  interrupted_when=$1 interrupted_command=$2
  shift 2
  python interrupt.py "$interrupted_when" "$DURAKIT" "$interrupted_command" \
    --provider "$plugin" --settings settings "$@" > out.txt
}

# While it waits: two ids, of which the first has ended.
d start order-3 --name unknown-name > out.txt
interrupted line wait order-1 order-3
is "$(usual < out.txt)" 'order-1: cancelled by ME
5' 'SIGINT while it waits'
is "$(cat err.txt)" 'durakit: interrupted: the instances continue' 'and it says so'

# While it reads: the other end is open, and nothing is written to it.
before=$(sha256sum "$scratch/model.store")
mkfifo ids.fifo
for command in 'cancel --ids-from -' 'cancel --ids-from - --json' 'cancel --ids-from ids.fifo' \
               'delete --ids-from -' 'start order-4 --name order --input -' \
               'raise order-3 paid --data @ids.fifo'; do
  # shellcheck disable=SC2086
  interrupted reading $command
  is "$(cat out.txt err.txt)" '5
durakit: interrupted: no instance was changed' "SIGINT while it reads: $command"
done
is "$(sha256sum "$scratch/model.store")" "$before" 'and nothing was written'

# It reports that there is nothing to do, because a condition or a list may be wrong.
printf '\n\n' > none.ids
for command in cancel delete; do
  d $command --ids-from none.ids > out.txt 2> err.txt
  is "$? $(cat err.txt)" '0 durakit: none.ids: contains no id; nothing was done' \
    "$command: a list without an id"
done
refuses 2 'delete: conditions that select nothing' delete --status running --yes <<'TEXT'
durakit: --status: selects no instances that have ended, and conditions delete no others
  expected  completed, failed or cancelled
  next      cancel them first: durakit cancel takes the same conditions
TEXT

# Ids that come in pieces are all taken.
{ printf 'order-'; "$DURAKIT" --version > version.txt; printf '1\norder-2\n'; } > ids.fifo &
d cancel --ids-from ids.fifo > out.txt
is "$? $(cat out.txt)" '0 order-1: already cancelled
order-2: already cancelled
2 already ended' 'ids of a pipe'
wait $!

done_testing
