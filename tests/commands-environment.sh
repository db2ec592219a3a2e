#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# DURAKIT_PROVIDER and DURAKIT_SETTINGS: what an operator does not type each time; what is typed
# wins.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL_FULL" ] || skip_all 'the command or the model is not built'
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
scratch
cd "$scratch" || exit 99
unset DURAKIT_PROVIDER DURAKIT_SETTINGS
printf 'store = %s/first.store\n' "$scratch" > first
printf 'store = %s/second.store\n' "$scratch" > second

# says CODE TEXT NAME ARGUMENT...: durakit ends so, with this line on one of the two streams.
says() {
  want=$1 text=$2 name=$3
  shift 3
  "$DURAKIT" "$@" > out.txt 2> err.txt < /dev/null
  is "$? $(cat out.txt err.txt | grep -F -x -e "$text")" "$want $text" "$name" ||
    diag "$(cat out.txt err.txt)"
}

says 2 '  expected  the plugin of the store: sqlite, or ./my_provider.so; or DURAKIT_PROVIDER' \
  'without both nothing is in effect' status order-1
says 2 '  expected  a plugin: ./my_provider.so, an installed one, or DURAKIT_PROVIDER' \
  'nor for probe' probe

DURAKIT_PROVIDER=$MODEL_FULL
DURAKIT_SETTINGS=$scratch/first
export DURAKIT_PROVIDER DURAKIT_SETTINGS
says 0 'order-1: started' 'start, with nothing but its own' start order-1 --name order --create
says 0 '  status      not started' 'status' status order-1
says 0 '1 requested' 'cancel' cancel order-1
says 0 '1 instance' 'instances' instances
for command in wait history raise enqueue cancel instances delete prune stats; do
  "$DURAKIT" $command --help > help.txt
  is "$(tail -n 1 help.txt)" \
    "In effect here: DURAKIT_PROVIDER=$MODEL_FULL, DURAKIT_SETTINGS=$scratch/first" \
    "$command --help shows what is in effect"
done

# ---- a path in a file ----------------------------------------------------------------------------

mkdir there other
echo 'store = here.store' > there/settings
cd other || exit 99
DURAKIT_SETTINGS=$scratch/there/settings
says 0 'order-1: started' 'a relative path' start order-1 --name order --create
is "$(cd .. && echo there/* other/*.store)" 'there/here.store there/settings other/*.store' \
  'is one in the folder of the file'
says 0 '  status      not started' '--settings, too' \
  status order-1 --provider "$MODEL_FULL" --settings ../there/settings
says 4 "  next      check --set; durakit start --create makes a store" 'but --set is from here' \
  status order-1 --set store=here.store
cd "$scratch/there" || exit 99
says 0 '  status      not started' 'a file without a folder' \
  status order-1 --provider "$MODEL_FULL" --settings settings
cd "$scratch" || exit 99
printf '\357\273\277store = here.store\n' > there/marked
DURAKIT_SETTINGS=there/marked
says 0 '  status      not started' 'a file with a byte order mark' status order-1
DURAKIT_SETTINGS=$scratch/first

# ---- what is typed wins --------------------------------------------------------------------------

"$DURAKIT" start other --name order --create --settings second > out.txt 2> err.txt
says 1 '  status      not found' '--settings wins' status order-1 --settings second
says 1 '  status      not found' '--set wins' status order-1 --set "store=$scratch/second.store"
STORE=$scratch/second.store
export STORE
says 1 '  status      not found' '--set-env wins' status order-1 --set-env store=STORE
printf 'store = %s/first.store\nseed = 7\n' "$scratch" > third
DURAKIT_SETTINGS=$scratch/third
"$DURAKIT" status order-1 --set "store=$scratch/second.store" > out.txt 2> err.txt
like "$(cat err.txt)" "^durakit: $scratch/third:2: seed: the plugin has no such setting\$" \
  'only the key that is typed: the others stay'
DURAKIT_SETTINGS=$scratch/first
# Without a setting the model has a store of its own, in memory.
says 1 '  status      not found' 'with --provider the settings are not taken' \
  status order-1 --provider "$MODEL_FULL"
says 0 '  status      not started' '--provider with its settings' \
  status order-1 --provider "$MODEL_FULL" --settings first

# ---- what is wrong with them ---------------------------------------------------------------------

DURAKIT_SETTINGS=$scratch/nowhere
says 2 "durakit: $scratch/nowhere: the file of settings cannot be read" 'a missing file' \
  status order-1
like "$(tr '\n' ' ' < err.txt)" \
  'found  *No such file .*next  *make it readable, or name another file with DURAKIT_SETTINGS' \
  'with what was found, and who names it'
"$DURAKIT" status --help > help.txt
is "$? $(grep -c 'DURAKIT_SETTINGS=.*nowhere' help.txt)" '0 1' 'the help is printed all the same'
DURAKIT_SETTINGS=
says 1 'order-1' 'an empty one is none' status order-1
unset DURAKIT_PROVIDER
DURAKIT_SETTINGS=$scratch/first
says 2 'durakit: --provider: is missing' 'settings without a provider are for none' status order-1
DURAKIT_PROVIDER=nowhere
export DURAKIT_PROVIDER
says 3 'durakit: nowhere: no plugin of this name is installed' 'a plugin that does not exist' \
  status order-1

if [ -f "${SQLITE_PLUGIN:-}" ]; then
  echo 'store = nothing.db' > there/settings
  DURAKIT_PROVIDER=$SQLITE_PLUGIN DURAKIT_SETTINGS=there/settings
  says 4 '  next      check DURAKIT_SETTINGS=there/settings; durakit start --create makes a store' \
    'a store that is not there: who names it' status order-1
  like "$(cat err.txt)" 'there/nothing.db: there is no store' 'which one'
  is "$(grep -c 'DK_OPEN' err.txt)" 0 'in no words of the API'
  says 4 '  next      check --settings there/settings; durakit start --create makes a store' \
    'by the option' status order-1 --provider "$SQLITE_PLUGIN" --settings there/settings
  says 4 '  next      check --set; durakit start --create makes a store' \
    'by --set' status order-1 --set store=nothing.db
  "$DURAKIT" status order-1 --provider "$SQLITE_PLUGIN" > out.txt 2> err.txt
  like "$? $(tr '\n' ' ' < err.txt)" \
    "^2 .*setting 'store' is required.*the variable DURAKIT_SETTINGS is ignored" \
    'a setting in a file that is ignored'
  DURAKIT_SETTINGS=$scratch/first
fi

# ---- probe ---------------------------------------------------------------------------------------

DURAKIT_PROVIDER=$MODEL_FULL
"$DURAKIT" probe > out.txt 2> err.txt
is $? 0 'probe' || diag "$(cat err.txt)"
like "$(cat out.txt)" \
  "^in effect      DURAKIT_PROVIDER=$MODEL_FULL, DURAKIT_SETTINGS=$scratch/first\$" \
  'probe tells where it has them from'
like "$(cat out.txt)" '^given          store$' 'and the keys'
"$DURAKIT" probe --json > out.txt 2> err.txt
is "$(python3 -c 'import json, sys
o = json.load(open("out.txt"))["environment"]
print(o["provider"], o["settings"])')" "$MODEL_FULL $scratch/first" 'as JSON, too'
"$DURAKIT" probe "$MODEL" > out.txt 2> err.txt
is "$? $(grep -c 'in effect\|first' out.txt)" '0 0' 'probe PLUGIN takes nothing of it'
printf 'password = S3cr3tValue\n' > secret
DURAKIT_SETTINGS=$scratch/secret
"$DURAKIT" probe > out.txt 2>&1
"$DURAKIT" status order-1 >> out.txt 2>&1
"$DURAKIT" status --help >> out.txt 2>&1
is "$(grep -c S3cr3t out.txt)" 0 'no value is shown'
DURAKIT_SETTINGS=$scratch/first
"$DURAKIT" check "$MODEL" --only turn/birth > out.txt 2>&1
is "$? $(grep -c first.store out.txt)" '0 0' 'a check does not take what operators use'

done_testing
