#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the command refuses: the number and the text of each refusal, word by word.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
scratch
cd "$scratch" || exit 99
cp "$MODEL" model.so
DURAKIT_PLUGIN_PATH=$scratch
export DURAKIT_PLUGIN_PATH

# refuses CODE NAME ARGUMENTS...: standard input has what standard error must be; a line
# that ends in "..." may go on in any way.
refuses() {
  wanted=$1
  name=$2
  shift 2
  sed 's/[][\.*^$]/\\&/g; s/\\\.\\\.\\\.$/.*/; s/^/^/; s/$/$/' > pattern
  "$DURAKIT" "$@" > out 2> err < /dev/null
  is "$?" "$wanted" "$name: exit $wanted"
  wrong=$(paste pattern err | while IFS=$(printf '\t') read -r pattern found; do
    printf '%s\n' "$found" | grep -q -e "$pattern" || printf '%s\n' "$found"
  done)
  [ -z "$wrong" ] && [ "$(wc -l < pattern)" -eq "$(wc -l < err)" ]
  ok $? "$name: its words" || diag "$(cat err)"
}

# ---- the plugin ----------------------------------------------------------------------------------

refuses 3 'a wrong path' certify ./gone.so <<'TEXT'
durakit: ./gone.so: there is no such file
  expected  a provider's shared object
  found     No such file or directory
  next      check the path; durakit list providers shows those that are installed
TEXT
like "$(cat out)" '^Bail out!  ./gone.so: there is no such file$' 'a reader of TAP learns it too'
mkdir folder
refuses 3 'a folder' certify ./folder <<'TEXT'
durakit: ./folder: this is a folder
  expected  a provider's shared object, a regular file
  found     a folder
  next      name the .so file itself
TEXT
echo 'a text' > text.so
refuses 3 'a text file' certify ./text.so <<'TEXT'
durakit: ./text.so: this is not a shared object
  expected  an ELF file
  found     a text file
  next      build it with: cc -shared -fPIC -o my_provider.so my_provider.c
TEXT
# Byte 18 of an ELF file says for which machine it is.
case $(uname -m) in
aarch64) other='\076' ;;
*) other='\267' ;;
esac
cp model.so other.so
printf "$other" | dd of=other.so bs=1 seek=18 conv=notrunc 2> dd.err
refuses 3 'another architecture' certify ./other.so <<'TEXT'
durakit: ./other.so: ...
  expected  ...
  found     ...
  next      ...
TEXT
like "$(cat err)" 'machine\|architecture' 'another architecture: it is reported'
refuses 3 'a name of no plugin' certify modle <<TEXT
durakit: modle: no plugin of this name is installed
  expected  modle.so in $scratch, ...
  found     ...
  next      did you mean model? For a file of your own, type ./modle.so
TEXT
refuses 3 'no name at all' certify '' <<'TEXT'
durakit: the path of the plugin is empty
  expected  a file, ./my_provider.so
TEXT

# ---- settings ------------------------------------------------------------------------------------

refuses 2 'an unknown setting' certify model --set storr=x <<'TEXT'
durakit: storr: the plugin has no such setting
  expected  store, mutant
  next      did you mean store?
TEXT
refuses 2 'a setting without a value' certify model --set store <<'TEXT'
durakit: --set: needs a key and a value
  expected  KEY=VALUE
  next      durakit certify --help shows examples
TEXT
refuses 2 'a variable that is not there' certify model --set-env store=DURAKIT_NOT_SET <<'TEXT'
durakit: DURAKIT_NOT_SET: this environment variable is not set
  expected  the value of the setting
  next      durakit certify --help shows examples
TEXT
printf '# of the model\nmutant cancel\n' > settings
refuses 2 'a line that is no setting' certify model --settings settings <<'TEXT'
durakit: settings:2: this line is not a setting
  expected  key = value, or # a comment
  next      durakit certify --help shows examples
TEXT
refuses 2 'a file of settings that does not exist' certify model --settings gone <<'TEXT'
durakit: gone: the file of settings cannot be read
  expected  lines of key = value
  found     No such file or directory
  next      make it readable, or name another file with --settings
TEXT
refuses 2 'a value that the plugin does not take' certify model \
  --set mutant=cancel/only-unlockd <<'TEXT'
durakit: model: its store cannot be made
  expected  settings that its open accepts
  found     DK_INVALID: ...
  next      check the settings
TEXT
like "$(cat err)" 'cancel/only-unlocked' 'a value that the plugin does not take: its own words'
"$DURAKIT" certify model --set store=a --set store=b > out 2> err
is $? 2 'a setting twice: exit 2'
like "$(cat err)" 'store' 'a setting twice: which'

refuses 2 'a file for Valgrind without it' check model --only turn/birth --suppressions settings \
  <<'TEXT'
durakit: --suppressions: is only for runs under Valgrind
  expected  --memcheck
  next      durakit check --help shows examples
TEXT

# ---- stores --------------------------------------------------------------------------------------

# Another suite may be running on this machine.
mine=abc$$
"$DURAKIT" check model --only turn/birth --run-id "$mine" --set "store=$scratch/s" > out 2> err
is $? 0 'a run with an id of its own passes'
is "$(ls "$scratch" | grep '^s-')" '' 'and leaves no store'
echo 'of another program' > "$scratch/s-dk$mine-1-a"
refuses 2 'a store that exists' check model --only turn/birth --run-id "$mine" \
  --set "store=$scratch/s" <<TEXT
durakit: $scratch/s-dk$mine-1-a: a store of this name exists already; it was not touched
  expected  names made by the kit that are not in use
  next      use another --run-id; durakit clean removes what dead runs have left
TEXT
is "$(cat "$scratch/s-dk$mine-1-a")" 'of another program' 'and it is untouched'
run_ok 'another id passes' "$DURAKIT" check model --only turn/birth --run-id "${mine}d" \
  --set "store=$scratch/s"

refuses 4 'a folder that does not exist' certify model --set "store=$scratch/no/s" <<'TEXT'
durakit: model: its store cannot be made
  expected  a place where the kit can make stores of its own
  found     DK_...
  next      check the settings, and that the folder exists and is writable
TEXT
# For root every folder can be written to but those of the kernel.
read_only=$scratch/read-only
mkdir "$read_only"
chmod 555 "$read_only"
touch "$read_only/x" 2> touch.err && read_only=/proc
refuses 4 'a read-only folder' certify model --set "store=$read_only/s" <<'TEXT'
durakit: model: its store cannot be made
  expected  a place where the kit can make stores of its own
  found     DK_...
  next      check the settings, and that the folder exists and is writable
TEXT
refuses 4 'results that cannot be written' check model --only turn/birth --out /proc/out <<'TEXT'
durakit: /proc/out: results cannot be written there
  expected  a folder for results.jsonl
  found     No such file or directory
TEXT

# ---- words ---------------------------------------------------------------------------------------

refuses 2 'an unknown command' certfy <<'TEXT'
durakit: certfy: there is no such command
  expected  certify, check, list, explain, probe, repro, selftest, clean, bench, start, ...
  next      did you mean certify?
TEXT
refuses 2 'no command' <<'TEXT'
durakit: a command is missing
  expected  certify, check, list, explain, probe, repro, selftest, clean, bench, start, ...
  next      durakit --help shows examples
TEXT
refuses 2 'an unknown option' check model --onyl x <<'TEXT'
durakit: --onyl: there is no such option of durakit check
  next      did you mean --only? durakit check --help lists them
TEXT
refuses 2 'an option of another command' certify model --only x <<'TEXT'
durakit: --only: there is no such option of durakit certify
  next      durakit certify --help lists them; durakit check and bench take --only
TEXT
refuses 2 'nearly an option of its own, and one of check' certify model --memcheck <<'TEXT'
durakit: --memcheck: there is no such option of durakit certify
  next      did you mean --no-memcheck? durakit certify --help lists them; durakit check takes ...
TEXT
refuses 2 'an option before the command' --only x <<'TEXT'
durakit: --only: there is no such option
  next      durakit --help lists them; durakit check and bench take --only
TEXT
refuses 2 'the beginning of two options' list checks --jso <<'TEXT'
durakit: --jso: there is no such option of durakit list
  next      did you mean --json? durakit list --help lists them
TEXT
refuses 2 'a value that is not taken' list checks --json=yes <<'TEXT'
durakit: --json: takes no value
  next      durakit list --help shows examples
TEXT
refuses 2 'an unknown workload' bench model --only turn1 <<'TEXT'
durakit: --only: no workload has this name
  expected  turn-1, turn-16, ...
  next      durakit bench --help shows examples
TEXT
refuses 2 'what hurts, without what mends' check model --store-crash true <<'TEXT'
durakit: --store-crash: cannot be given alone
  expected  --store-start
  next      durakit check --help shows examples
TEXT
refuses 2 'more than one check for a debugger' check model --in-process <<'TEXT'
durakit: --in-process: works with one check, and several are selected
  expected  one check: --only ID
  next      durakit check --help shows examples
TEXT
refuses 2 'a short option without its value' certify model -j <<'TEXT'
durakit: -j: needs a value
  expected  N
  next      durakit certify --help shows examples
TEXT
refuses 2 'a variable without its name' certify model --set-env store= <<'TEXT'
durakit: --set-env: needs a key and a variable
  expected  KEY=VARIABLE
  next      durakit certify --help shows examples
TEXT
refuses 2 'an option that does not exist yet' check model --race <<'TEXT'
durakit: --race: there is no such option of durakit check
  next      durakit check --help lists them
TEXT
refuses 2 'a command that does not exist yet' doctor <<'TEXT'
durakit: doctor: there is no such command
  expected  certify, check, list, explain, probe, repro, selftest, clean, bench, start, ...
  next      durakit --help shows examples
TEXT
refuses 2 'an option without its value' certify model --seed <<'TEXT'
durakit: --seed: needs a value
  expected  NUMBER
  next      durakit certify --help shows examples
TEXT
refuses 2 'a value that is none' certify model -j none <<'TEXT'
durakit: -j: cannot be "none"
  expected  a number, at least 1
  next      durakit certify --help shows examples
TEXT
refuses 2 'too many jobs of a self-test' selftest --model ./model.so --jobs 65 <<'TEXT'
durakit: --jobs: cannot be "65"
  expected  at most 64 checks at a time
  next      durakit selftest --help shows examples
TEXT
refuses 2 'an option twice' certify model --jobs 2 --seed 7 -j4 <<'TEXT'
durakit: -j: is given twice
  expected  it once, with one value
  next      durakit certify --help shows what it takes
TEXT
refuses 2 'an option twice, once before the command' -j4 certify model -j 4 <<'TEXT'
durakit: -j: is given twice
  expected  it once, with one value
  next      durakit certify --help shows what it takes
TEXT
is "$("$DURAKIT" check model --only turn/birth --only turn/birth --verbose --verbose |
      grep -c '^ok ')" 1 'what adds up, and a switch, may be given twice'
refuses 2 'a run id with other letters' certify model --run-id A-B <<'TEXT'
durakit: --run-id: cannot be "A-B"
  expected  1 to 12 of a-z and 0-9
  next      durakit certify --help shows examples
TEXT
refuses 2 'no plugin' certify <<'TEXT'
durakit: certify: an argument is missing
  expected  a plugin: ./my_provider.so, or the name of an installed one
  next      durakit certify --help shows examples
TEXT
refuses 2 'an unknown check' check model --only cancel/lockd-row <<'TEXT'
durakit: cancel/lockd-row: there is no such check, clause, area or topic
  next      did you mean cancel/locked-row?
TEXT
refuses 2 'an unknown clause' check model --only CANCEL-55 <<'TEXT'
durakit: CANCEL-55: there is no such check, clause, area or topic
  next      did you mean CANCEL-5?
TEXT
refuses 2 'an unknown check among known ones' check model --only 'turn/*,turn/brith' <<'TEXT'
durakit: turn/brith: there is no such check, clause, area or topic
  next      did you mean turn/birth?
TEXT
refuses 5 'a pattern that fits nothing' check model --only 'x*' <<'TEXT'
durakit: x*: no check matches this pattern, so nothing is selected
  next      durakit list checks shows what can be selected
TEXT
refuses 5 'a pattern of no area' check model --only 'cancl/*' <<'TEXT'
durakit: cancl/*: no check matches this pattern, so nothing is selected
  next      did you mean cancel/*? durakit list checks shows what can be selected
TEXT
refuses 5 'a clause without a check' check model --only ERR-6 <<'TEXT'
durakit: ERR-6: ...
  next      durakit list checks shows what can be selected
TEXT
refuses 2 'an unknown thing to explain' explain CANCLE-5 <<'TEXT'
durakit: CANCLE-5: there is no such check, clause, topic or mutant
  next      did you mean CANCEL-5?
TEXT
refuses 2 'an unknown list' list check <<'TEXT'
durakit: check: there is no such list
  expected  checks, clauses, mutants, topics or providers
  next      did you mean checks?
TEXT
refuses 2 'a file without results' repro settings <<'TEXT'
durakit: settings: has no header of a run
  expected  a results.jsonl of durakit certify --out FOLDER
  found     no line with "type":"header"
  next      durakit repro --help shows examples
TEXT
refuses 2 'results that do not exist' repro nofile <<'TEXT'
durakit: nofile: cannot be read
  expected  a results.jsonl of durakit certify --out FOLDER
  found     No such file or directory
  next      durakit repro --help shows examples
TEXT
refuses 2 'a folder of results' repro folder <<'TEXT'
durakit: folder: cannot be read
  expected  a results.jsonl of durakit certify --out FOLDER
  found     Is a directory
  next      durakit repro --help shows examples
TEXT
"$DURAKIT" check model --only 'turn/*' --out turns > turns.tap 2> err
head -c 30 turns/results.jsonl > header.jsonl
refuses 2 'results cut in the header' repro header.jsonl <<'TEXT'
durakit: header.jsonl: has no header of a run
  expected  a results.jsonl of durakit certify --out FOLDER
  found     line 1 is cut
  next      durakit repro --help shows examples
TEXT
head -n 3 turns/results.jsonl > cut.jsonl
sed -n 4p turns/results.jsonl | head -c 20 >> cut.jsonl
refuses 5 'results cut in a line' repro cut.jsonl <<'TEXT'
durakit: cut.jsonl:4: the file is cut here: the run was killed or the file was shortened
  expected  a footer in the last line
  next      the results before this line are used
durakit: cut.jsonl: every check before the cut passed: there is nothing to repeat
  next      FILE:CHECK names one
TEXT
head -n 3 turns/results.jsonl > cut.jsonl
refuses 5 'results cut between two lines' repro cut.jsonl <<'TEXT'
durakit: cut.jsonl:4: the file is cut here: the run was killed or the file was shortened
  expected  a footer in the last line
  next      the results before this line are used
durakit: cut.jsonl: every check before the cut passed: there is nothing to repeat
  next      FILE:CHECK names one
TEXT

done_testing
