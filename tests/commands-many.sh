#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Many instances at once: a dry run changes nothing and names those that are cancelled then, a wrong
# number does nothing, and whatever ends the command in the middle, a second one does the rest once.
# 10,000 instances on SQLite, 3,000 on the model; with arguments so many on that store:
# tests/commands-many-pg.sh.  Requests go in batches of 500.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${SQLITE_PLUGIN=}"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
scratch
. "$top_srcdir/tests/operate/store.sh"

start_many() { eval "\"$serve\" --start $1 $2 \"$plugin\" $serve_settings"; }
# The number in one counts object of the last --json.
count() { json "o['counts']['$1']"; }
# All of the store but the record of the processes that have it open.
sum_of_store() {
  if [ -n "$store_file" ]; then
    (cd "$scratch" && sha256sum "$store_file" "$store_file"-wal 2> /dev/null)
  else
    # Between \restrict and \unrestrict, whose word is a new one each time.
    pg_dump -n "\"$(sed -n 's/^schema=//p' "$folder/settings")\"" | grep -v '^\\' | sha256sum
  fi
}
# ids_of FILE: what the lines name.
ids_of() { sed -n 's/^\([a-z]*-[0-9]*\): .*/\1/p' "$1"; }

# ---- looking before it is done -------------------------------------------------------------------

judge_dry_run() {
  before=$(sum_of_store)
  d cancel --name order --dry-run > dry.txt
  is $? 0 "a dry run over $n"
  is "$(tail -n 1 dry.txt)" "$n would be requested" 'counts them'
  is "$(sum_of_store)" "$before" 'and leaves the store as it was, byte for byte'
  d cancel --name order --expect $((n - 1)) --json > out.txt 2> err.txt
  is $? 1 'another number is expected'
  is "$(cat err.txt)" "durakit: --expect: $n would be requested; nothing was done
  expected  $((n - 1))
  next      --dry-run lists them" 'and it says so'
  has '(o["found"], len(o["instances"]), o["counts"]["requested"])' "($n, 0, 0)" 'in JSON, too'
  is "$(sum_of_store)" "$before" 'and nothing is written'
  d cancel --name order > out.txt 2> err.txt < /dev/null
  is $? 2 'without a terminal many are not cancelled by the way'
  like "$(cat err.txt)" '^  expected  --yes, or --expect N$' 'and what is needed is reported'
  is "$(sum_of_store)" "$before" 'nothing is written'
  printf 'quick-1\n' | d cancel --ids-from - --dry-run > out.txt
  is "$(cat out.txt)" 'quick-1: not found
1 not found' 'ids from standard input'
}

# ---- ended in the middle -------------------------------------------------------------------------

# halfway HOW: runs cancel with a pipe that holds a page only, reads until it has asked for some,
# and then: kills it, sends SIGTERM and reads on, or closes the pipe.  What was read is in half.txt,
# the exit code printed.
halfway() {
  python3 - "$1" "$DURAKIT" cancel --provider "$plugin" --settings settings --name order --yes \
    --reason "$1" << 'PYTHON'
import fcntl, os, signal, subprocess, sys
how, command = sys.argv[1], sys.argv[2:]
out, theirs = os.pipe()
fcntl.fcntl(theirs, 1031, 4096)  # F_SETPIPE_SZ
child = subprocess.Popen(command, stdout=theirs, stderr=open("err.txt", "w"))
os.close(theirs)
told = b""
while b": requested\n" not in told:
    piece = os.read(out, 4096)
    if not piece:
        sys.exit("nothing was asked for")
    told += piece
if how == "close":
    os.close(out)
else:
    child.send_signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)
    while piece:
        piece = os.read(out, 65536)
        told += piece
open("half.txt", "wb").write(told)
print(child.wait())
PYTHON
}

# How many of all have such a message, by what a dry run says.
requested() {
  d cancel --name order --dry-run --json > out.txt
  count already_requested
}

judge_killed() {
  is "$(halfway kill)" -9 'the command is killed'
  first=$(requested)
  [ "$first" -gt 0 ] && [ "$first" -lt $n ]
  ok $? "$first of $n are requested by then"
  is "$(halfway term)" 5 'SIGTERM: it ends by itself'
  is "$(cat err.txt)" 'durakit: interrupted: what is reported was done; you can repeat the '\
'same command' 'and says that it was'
  second=$(requested)
  [ "$second" -gt "$first" ] && [ "$second" -lt $n ]
  ok $? "$second of $n are requested by then"
  is "$(grep -c ': requested$' half.txt)" $((second - first)) 'each of its requests is printed'
  is "$(tail -n 1 half.txt)" "$((second - first)) requested, $first already requested" \
    'and counted'
  is "$(halfway close)" 5 'a reader that goes away'
  is "$(cat err.txt)" '' 'hears nothing more'
  is "$(requested)" $n 'and what was asked for is done'
}

judge_again() {
  d cancel --name order --expect 0 --reason again --json > out.txt
  is $? 0 'once more, where nothing is left to be done'
  is "$(count already_requested)" $n 'all are requested already'
  is "$(ids_of dry.txt | sha256sum)" "$(json '"\n".join(i["instance"] for i in o["instances"])' |
    sha256sum)" 'they are those that the dry run has named'
}

# One event in each history, whatever came in between; the first reason counts.
judge_histories() {
  serve_begin
  d cancel --name order --yes --wait 300s > out.txt
  is $? 0 'a runtime takes all requests'
  serve_end
  is "$(grep -c ' runs$' served.txt)" 0 'none of them has run'
  d stats --json > out.txt
  has 'o["instances"]["cancelled"]' $((n + 0)) 'all are cancelled'
  has 'o["events"]' $((3 * n)) 'with three events each: started, cancel_requested, cancelled'
  d instances --status cancelled --json > out.txt
  is "$(json '" ".join(sorted(set(i["cancelled"]["reason"] for i in o["instances"])))')" \
    'close kill term' 'for three reasons: the first request of each counts'
  is "$(json 'sum(i["cancelled"]["reason"] == "kill" for i in o["instances"])')" "$first" \
    'and those are as many as were printed'
}

# ---- lists ---------------------------------------------------------------------------------------

judge_list() {
  d instances --jsonl > out.txt
  is "$(wc -l < out.txt | tr -d ' ')" $((n + 1)) 'instances: all pages'
  python3 - "$DURAKIT" instances --provider "$plugin" --settings settings << 'PYTHON' > code.txt
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=open("err.txt", "w"))
child.stdout.read(1)
child.stdout.close()
print(child.wait())
PYTHON
  is "$(cat code.txt err.txt)" 5 'a reader that goes away ends the list quietly'
  d delete --all --dry-run > out.txt
  is "$(tail -n 1 out.txt)" "$n would be deleted, including descendants" 'delete: a dry run'
  before=$(sum_of_store)
  d delete --all > out.txt 2> err.txt < /dev/null
  is $? 2 'delete: many, and no terminal to ask on'
  is "$(sum_of_store)" "$before" 'nothing is written'
  d delete --all --yes --json > out.txt
  has 'o["removed"]["instances"], o["removed"]["roots"]' "($n, $n)" 'delete: all'
  tells 0 'and nothing is left' instances <<'TEXT'
0 instances
TEXT
}

# ---- all of it -----------------------------------------------------------------------------------

# judge_store N FILE PLUGIN SETTING...: FILE empty: it is in PostgreSQL.
judge_store() {
  n=$1
  store_file=$2
  shift 2
  on_store "$@"
  start_many $n order
  is $? 0 "$n instances"
  judge_dry_run
  judge_killed
  judge_again
  judge_histories
  judge_list
}

if [ $# -gt 0 ]; then
  judge_store 3000 '' "$@"
  done_testing
fi
judge_store 3000 model.store "$MODEL" "store=$scratch/model.store"
if [ -f "$SQLITE_PLUGIN" ]; then
  judge_store 10000 sqlite.db "$SQLITE_PLUGIN" "store=$scratch/sqlite.db"
else
  skip 'many on sqlite' 'the sqlite plugin was left out'
fi
done_testing
