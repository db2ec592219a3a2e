#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands that operate a store, beside a runtime that works on it: start, status, wait,
# history, raise, enqueue, cancel, instances, delete, prune, stats.  On the model and on SQLite;
# with arguments on that store: tests/commands-pg.sh.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${SQLITE_PLUGIN=}"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
[ ! -w /dev/shm ] || TMPDIR=/dev/shm
scratch
. "$top_srcdir/tests/operate/store.sh"

# ---- before any runtime --------------------------------------------------------------------------

judge_not_started() {
  d start order-1 --name order > out.txt 2> err.txt
  is $? 4 'start: without a store'
  like "$(cat err.txt)" 'there is no such store$' 'and it reports that'
  d instances > out.txt 2> err.txt
  is $? 4 'nothing was made'

  tells 0 'start --create makes one' start order-1 --name order --input 12 --create <<'TEXT'
order-1: started
TEXT
  tells 1 'start: it is there' start order-1 --name quick <<'TEXT'
order-1: exists already, and was not started again
TEXT
  tells 0 'status: not started' status order-1 <<'TEXT'
order-1
  status      not started
  name        order
  created     TIME
  input       12
  waiting     start order, since TIME
TEXT
  tells 0 'history: not started' history order-1 <<'TEXT'
not started: no turn of it has been committed
TEXT
  d history order-1 --json > out.txt
  has 'o["execution"], o["events"], o["complete"]' '(None, [], True)' 'which is all there is'
  tells 1 'wait: has not ended in time' wait order-1 --timeout 0 <<'TEXT'
order-1: has not ended in time
TEXT
  tells 0 'cancel --dry-run' cancel order-1 --dry-run <<'TEXT'
order-1: would be requested
1 would be requested
TEXT
  tells 0 'cancel: requested' cancel order-1 --reason 'wrong customer' --by user:ada <<'TEXT'
order-1: requested
1 requested
TEXT
  tells 0 'cancel: once more' cancel order-1 --reason 'another' --by user:eve <<'TEXT'
order-1: already requested
1 already requested
TEXT
  tells 0 'status: what waits' status order-1 <<'TEXT'
order-1
  status      not started
  name        order
  created     TIME
  input       12
  waiting     start order, since TIME
  waiting     cancel, since TIME by user:ada: wrong customer
TEXT
}

# What was cancelled before it was started never runs.
judge_never_ran() {
  tells 1 'wait: it is cancelled' wait order-1 <<'TEXT'
order-1: cancelled by user:ada: wrong customer
TEXT
  tells 0 'status: when, by whom and why' status order-1 <<'TEXT'
order-1
  status      cancelled
  name        order 1.0.0
  execution   1, 3 events
  created     TIME
  cancelled   TIME
  by          user:ada
  reason      wrong customer
TEXT
  tells 0 'history: the same' history order-1 <<'TEXT'
   1  TIME  started order: 12
   2  TIME  cancel_requested by user:ada: wrong customer
   3  TIME  cancelled by user:ada: wrong customer
TEXT
  tells 0 'cancel: what is cancelled is as it was wanted' cancel order-1 <<'TEXT'
order-1: already cancelled
1 already ended
TEXT
}

# ---- one that runs -------------------------------------------------------------------------------

judge_running() {
  d start order-2 --name order > out.txt
  hears '^order-2 works$'
  ok $? 'an activity runs'
  d status order-2 --json > out.txt
  has 'o["schema"]' durakit.status/1 'status --json: its schema'
  has '[i["status"] for i in o["instances"]]' "['running']" 'it is running'
  tells 0 'cancel --wait' cancel order-2 --reason 'no longer needed' --wait 60s <<'TEXT'
order-2: requested
1 requested, 1 cancelled by now
TEXT
  hears '^order-2 must end'
  is "$heard" 'order-2 must end: cancelled' 'the activity was notified'
  tells 0 'history: what was cancelled with it' history order-2 <<'TEXT'
   1  TIME  started order
   2  TIME  activity last
   3  TIME  cancel_requested by ME: no longer needed
   4  TIME  ended of 2 (terminal_cancelled)
   5  TIME  cancelled by ME: no longer needed
TEXT
  tells 0 'history: nothing from there on' history order-2 --from 99 <<'TEXT'
no event from number 99 on
TEXT
  tells 0 'history --from --limit' history order-2 --from 2 --limit 1 <<'TEXT'
   2  TIME  activity last
TEXT
  d history order-2 --json > out.txt
  has '[(e["kind"], e.get("by"), e.get("reason")) for e in o["events"]][-1]' \
    "('cancelled', 'user:$(id -un)@$(uname -n)', 'no longer needed')" 'history --json: the same'
  has 'o["events"][3]["payload"]["code"]' terminal_cancelled 'with the payload as it is stored'
  d status order-2 --json > out.txt
  has 'o["instances"][0]["cancelled"]["reason"]' 'no longer needed' 'status --json: why'
  has 'o["instances"][0]["cancelled"]["at"] == o["instances"][0]["ended_at"]' True 'and when'
}

judge_ends() {
  d start quick-1 --name quick --input '{"sum": 12}' > out.txt
  d start broken-1 --name broken --input 'no money' > out.txt
  tells 1 'wait: how they end' wait quick-1 broken-1 nowhere --timeout 60s <<'TEXT'
quick-1: completed: {"sum": 12}
broken-1: failed: no money
nowhere: not found
TEXT
  tells 0 'wait: what is completed is well' wait quick-1 <<'TEXT'
quick-1: completed: {"sum": 12}
TEXT
  tells 1 'cancel: three, and what came of each' cancel quick-1 broken-1 nowhere quick-1 <<'TEXT'
quick-1: already completed
broken-1: already failed
nowhere: not found
2 already ended, 1 not found
TEXT
  d cancel quick-1 nowhere --json > out.txt
  has '[(i["instance"], i["outcome"], i.get("status")) for i in o["instances"]]' \
    "[('quick-1', 'over', 'completed'), ('nowhere', 'not_found', None)]" 'the same in JSON'
  has 'o["counts"]' \
    "{'requested': 0, 'already_requested': 0, 'over': 1, 'not_found': 1, 'failed': 0}" \
    'and the sums'
  tells 1 'status: one that does not exist' status nowhere <<'TEXT'
nowhere
  status      not found
TEXT
}

judge_raise() {
  d start waiting-1 --name waiting > out.txt
  reaches waiting-1 1 2
  tells 0 'raise' raise waiting-1 paid --data 'in full' <<'TEXT'
waiting-1: raised; it waits for this event
TEXT
  tells 0 'it has come' wait waiting-1 --timeout 60s <<'TEXT'
waiting-1: completed: in full
TEXT
  tells 1 'raise: an instance that has ended' raise waiting-1 paid <<'TEXT'
waiting-1: has ended (completed); nothing was sent
TEXT
  tells 1 'raise: an instance that does not exist' raise nowhere paid <<'TEXT'
nowhere: not found; nothing was sent
TEXT
}

# A sender that uses the wrong name, or the wrong command, learns it at once.
judge_what_is_waited_for() {
  d start booking-1 --name booking > out.txt
  d start late-1 --name late > out.txt
  reaches booking-1 1 2
  reaches late-1 1 7
  tells 0 'raise: it waits on a queue of this name' raise booking-1 bookings <<'TEXT'
booking-1: raised, but it waits on a queue of this name: durakit enqueue sends there
TEXT
  tells 0 'raise: nothing waits for it' raise booking-1 Bookings <<'TEXT'
booking-1: raised; it does not wait for this event now: kept until it does, or continues as new
TEXT
  tells 0 'enqueue: another queue' enqueue booking-1 other <<'TEXT'
booking-1: enqueued; it does not wait for this queue now: kept until it does
TEXT
  d enqueue booking-1 bookings --data 'two seats' --json > out.txt
  has 'o["outcome"] + ": " + o["waits_for"] + ": " + o["queue"]' 'enqueued: queue: bookings' \
    'enqueue, as JSON'
  tells 0 'enqueue: it has come' wait booking-1 --timeout 60s <<'TEXT'
booking-1: completed: two seats
TEXT
  tells 1 'enqueue: what has ended' enqueue booking-1 bookings <<'TEXT'
booking-1: has ended (completed); nothing was sent
TEXT
  d history late-1 > out.txt
  like "$(usual < out.txt)" '^ *[0-9]*  TIME  timer 0.001 s, until TIME$' \
    'history: how long a timer is, and until when'
  tells 0 'raise: what it waited for, and dropped' raise late-1 paid <<'TEXT'
late-1: raised; it does not wait for this event now: kept until it does, or continues as new
TEXT
  tells 0 'enqueue: it waits for an event of this name' enqueue late-1 'done' <<'TEXT'
late-1: enqueued, but it waits for an event of this name: durakit raise sends it
TEXT
  d raise late-1 'done' --json > out.txt
  has 'o["outcome"] + ": " + o["waits_for"]' 'raised: event' 'raise, as JSON'
  d wait late-1 --timeout 60s > out.txt
  d start booking-2 --name unknown > out.txt
  tells 0 'enqueue: not started' enqueue booking-2 bookings <<'TEXT'
booking-2: enqueued; it is not started yet: kept for it
TEXT
  d delete booking-2 --force > out.txt
  d delete booking-1 late-1 > out.txt
}

# ---- lists ---------------------------------------------------------------------------------------

judge_lists() {
  tells 0 'instances: all' instances <<'TEXT'
STATUS       CREATED                   NAME                  ID
failed       TIME  broken 1.0.0          broken-1
cancelled    TIME  order 1.0.0           order-1
cancelled    TIME  order 1.0.0           order-2
completed    TIME  quick 1.0.0           quick-1
completed    TIME  waiting 1.0.0         waiting-1
5 instances
TEXT
  tells 0 'instances: conditions' instances --name order --status cancelled,failed \
    --created-after 1h <<'TEXT'
STATUS       CREATED                   NAME                  ID
cancelled    TIME  order 1.0.0           order-1
cancelled    TIME  order 1.0.0           order-2
2 instances
TEXT
  tells 0 'instances: none' instances --created-before 1h <<'TEXT'
0 instances
TEXT
  tells 0 'instances: a page' instances --limit 2 --after broken-1 <<'TEXT'
STATUS       CREATED                   NAME                  ID
cancelled    TIME  order 1.0.0           order-1
cancelled    TIME  order 1.0.0           order-2
2 instances; there are more: --after order-2
TEXT
  d instances --limit 2 --json > out.txt
  has '(o["count"], o["next"], o["complete"])' "(2, 'order-1', True)" 'and in JSON'
  d instances --jsonl > out.txt
  is "$(python3 -c 'import json, sys
lines = [json.loads(line) for line in sys.stdin]
print([line["instance"] for line in lines[:-1]], lines[-1])' < out.txt)" \
    "['broken-1', 'order-1', 'order-2', 'quick-1', 'waiting-1'] \
{'schema': 'durakit.instances/1', 'count': 5, 'next': None, 'complete': True}" \
    'instances --jsonl: a line for each, and the whole'
}

judge_stats() {
  d stats --json > out.txt
  has 'o["instances"]' \
    "{'not_started': 0, 'running': 0, 'completed': 2, 'failed': 1, 'cancelled': 2}" 'stats --json'
  d stats --prometheus > out.txt
  is "$(grep -c -v -E '^(# (HELP|TYPE) dk_[a-z_]+ .*|dk_[a-z_]+(\{[a-z]+="[a-z_]+"\})? [0-9.]+)$' \
    out.txt)" 0 'stats --prometheus: each line is one of three'
  is "$(grep '^dk_instances' out.txt | tr '\n' ' ')" 'dk_instances{status="not_started"} 0 '\
'dk_instances{status="running"} 0 dk_instances{status="completed"} 2 '\
'dk_instances{status="failed"} 1 dk_instances{status="cancelled"} 2 ' 'and the same counts'
  is "$(sed -n 's/^# TYPE \([a-z_]*\) gauge$/\1/p' out.txt | sort | tr '\n' ' ')" \
    "$(sed -n 's/^\(dk_[a-z_]*\).*/\1/p' out.txt | sort -u | tr '\n' ' ')" 'each has its type'
  d stats > out.txt
  is "$(sed -n 's/ *completed  *//p' out.txt)" 2 'stats'
}

# ---- families, and what is removed ---------------------------------------------------------------

judge_families() {
  d start family-1 --name family --input order > out.txt
  hears '^family-1\.[12] works$' && hears '^family-1\.[12] works$'
  ok $? 'two children work'
  d instances --parent family-1 --json > out.txt
  has '[i["instance"] for i in o["instances"]]' "['family-1.1', 'family-1.2']" \
    'instances --parent'
  d instances --roots --name order --json > out.txt
  has '[i["instance"] for i in o["instances"]]' "['order-1', 'order-2']" 'instances --roots'

  d delete family-1 > out.txt 2> err.txt
  is $? 1 'delete: what runs is refused'
  is "$(cat out.txt)" 'family-1: has not ended' 'and named'
  like "$(cat err.txt)" '^  next      durakit cancel ID --wait 30s ends an instance; --force' \
    'with the way'
  tells 0 'cancel: the parent' cancel family-1 --wait 60s --by me --reason end <<'TEXT'
family-1: requested
1 requested, 1 cancelled by now
TEXT
  tells 1 'its children end with it' wait family-1.1 family-1.2 --timeout 60s <<'TEXT'
family-1.1: cancelled by family-1: end
family-1.2: cancelled by family-1: end
TEXT
  hears '^family-1\.[12] must end: cancelled$' &&
    hears '^family-1\.[12] must end: cancelled$'
  ok $? 'and what they did'
  d delete family-1.1 > out.txt 2> err.txt
  is $? 1 'delete: a child alone'
  is "$(cat out.txt)" 'family-1.1: can be deleted only together with its parent: family-1' \
    'is refused'
  tells 0 'delete --dry-run' delete family-1 --dry-run <<'TEXT'
family-1: would be deleted
3 would be deleted, including descendants
TEXT
  d delete family-1 --json > out.txt
  is $? 0 'delete: a family'
  has 'o["removed"]["instances"], o["removed"]["roots"]' '(3, 1)' 'of three, with one root'
  d delete family-1 > out.txt 2> err.txt
  is "$? $(cat out.txt)" '1 family-1: not found' 'delete: once more'
}

judge_force() {
  d start order-3 --name order > out.txt
  hears '^order-3 works$'
  d delete order-3 --force --json > out.txt
  is "$? $(json 'o["removed"]["activities"]')" '0 1' 'delete --force: with its activity'
  d start order-4 --name order > out.txt
  d delete order-1 order-4 > out.txt 2> err.txt
  is $? 1 'delete: two, of which one runs'
  is "$(cat out.txt)" 'order-4: has not ended' 'that one is named'
  d status order-1 > out.txt
  is $? 0 'and the other is there still'
  d cancel order-4 --wait 60s > out.txt
}

judge_delete_many() {
  tells 0 'delete: by conditions, dry' delete --status completed,cancelled --dry-run <<'TEXT'
order-1: would be deleted
order-2: would be deleted
order-4: would be deleted
quick-1: would be deleted
waiting-1: would be deleted
5 would be deleted, including descendants
TEXT
  d delete --status completed,cancelled --yes --json > out.txt
  has 'o["removed"]["instances"], o["removed"]["roots"]' '(5, 5)' 'delete: by conditions'
  d instances --json > out.txt
  has '[i["instance"] for i in o["instances"]]' "['broken-1']" 'the rest stays'
}

judge_prune() {
  d start account-1 --name account --input 5 > out.txt
  hears '^account-1 runs$' && hears '^account-1 runs$' && hears '^account-1 runs$' &&
    hears '^account-1 runs$' && hears '^account-1 runs$' && hears '^account-1 runs$'
  ok $? 'an instance continues as new'
  reaches account-1 6 2
  tells 0 'prune --dry-run' prune account-1 --keep 2 --dry-run <<'TEXT'
account-1: 4 of 6 executions would be removed, with 8 events
would be removed: executions 4, events 8
TEXT
  tells 0 'prune: by conditions, dry' prune --name account --keep 2 --dry-run <<'TEXT'
account-1: 4 of 6 executions would be removed, with 8 events
would be removed: executions 4, events 8
TEXT
  d prune --all --keep 9 --dry-run --json > out.txt
  looked_at=$(json 'o["would_go"]["instances"]')
  d prune --all --keep 9 --yes --json > out.txt
  has 'o["removed"]["instances"]' "$looked_at" 'prune: a dry run counts the same instances'
  tells 0 'prune: none that old' prune account-1 --completed-before 1h <<'TEXT'
removed: executions 0, events 0
TEXT
  tells 0 'prune: one' prune account-1 --keep 4 <<'TEXT'
removed: executions 2, events 4
TEXT
  tells 0 'prune: by conditions' prune --name account --keep 2 --yes <<'TEXT'
removed: executions 2, events 4
TEXT
  tells 0 'history: of the latest' history account-1 <<'TEXT'
   1  TIME  started account: 0
   2  TIME  wait paid
execution 6, after 5 that continued as new: --execution N shows one of them
TEXT
  tells 0 'history --execution' history account-1 --execution 5 <<'TEXT'
   1  TIME  started account: 1
   2  TIME  continued: 0
TEXT
  refuses 1 'history: one that was deleted' history account-1 --execution 2 <<'TEXT'
durakit: account-1: this execution is not stored
  next      without --execution the latest is shown
TEXT
  d history account-1 --execution 2 --json > out.txt 2> err.txt
  is "$? $(json 'o["execution"], o["events"], o["complete"]')" '1 (None, [], False)' 'and in JSON'
  d history nowhere --json > out.txt 2> err.txt
  is "$? $(json 'o["execution"], o["events"], o["complete"]')" '1 (None, [], False)' \
    'nothing of a missing instance is complete'
  refuses 1 'prune: one that does not exist' prune nowhere --keep 1 <<'TEXT'
durakit: nowhere: there is no such instance, or it never ran
  next      durakit instances lists all
TEXT
}

# ---- text of others ------------------------------------------------------------------------------

# Ids, names and payloads that would move a terminal, or are no text.
judge_strange_text() {
  escape=$(printf 'esc\033[2J\033]0;title\007\302\233m')
  rtl=$(printf 'two\nlines \342\200\256back\177')
  printf 'bytes \377\376\000 end' > bytes
  d start "$escape" --name waiting --input @bytes > all.txt
  d start "$rtl" --name "$escape" --input "$escape" >> all.txt
  d start "-x" --name quick > out.txt 2>&1
  is $? 2 'an id that begins as an option'
  d start --name quick --input - -- -x < bytes > out.txt
  is $? 0 'comes behind --'
  for command in "status" "history" "wait --timeout 0"; do
    for form in '' --json --jsonl; do
      # shellcheck disable=SC2086
      d $command $form -- "$escape" >> all.txt 2>&1
      [ "$command" != status ] || d status $form "$escape" "$rtl" >> all.txt 2>&1
    done
  done
  for form in '' --json --jsonl; do
    # shellcheck disable=SC2086
    d instances $form >> all.txt 2>&1
  done
  d status "$rtl" --json > out.txt
  has 'o["instances"][0]["instance"].encode().hex()' "$(printf '%s' "$rtl" | od -An -tx1 |
    tr -d ' \n')" 'JSON gives back what the id is'
  has 'o["instances"][0]["name"].encode().hex()' "$(printf '%s' "$escape" | od -An -tx1 |
    tr -d ' \n')" 'and the name'
  d cancel "$escape" "$rtl" nowhere"$escape" --reason 'line' >> all.txt 2>&1
  d delete "$rtl" "$escape" >> all.txt 2>&1
  [ "$(grep -c 'esc' all.txt)" -gt 20 ]
  ok $? 'text that would move a terminal is printed'
  is "$(tr -d '\n -~' < all.txt | od -c)" "$(printf '' | od -c)" 'and none of it moves one'
  d wait --json -- -x > out.txt
  has 'o["instances"][0].get("output_base64")' "$(base64 < bytes)" 'bytes are printed as base64'
}

# ---- all of it, on one store ---------------------------------------------------------------------

judge_store() {
  on_store "$@"
  judge_not_started
  serve_begin
  judge_never_ran
  judge_running
  judge_ends
  judge_raise
  judge_what_is_waited_for
  judge_lists
  judge_stats
  judge_families
  judge_force
  judge_delete_many
  judge_prune
  judge_strange_text
  serve_end
  is $? 0 'the runtime ends well'
  like "$(grep -c '^order-1 runs$' served.txt)" '^0$' 'what was cancelled before never ran'
}

# An event whose bytes are not an event: neither its kind nor its time is known.
judge_unreadable() {
  command -v sqlite3 > sqlite3.txt || { skip 'an unreadable event' 'no sqlite3'; return; }
  sqlite3 "$1" "UPDATE history SET payload = x'ff', large = NULL WHERE event = 2 AND iid =
                (SELECT iid FROM instance WHERE instance = 'account-1')"
  tells 0 'history: an event that cannot be read' history account-1 --from 2 --limit 1 <<'TEXT'
   2  (no date)                 unreadable \xff
TEXT
  d history account-1 --json > out.txt
  has '[(e["kind"], e["time"]) for e in o["events"]][1]' "('unreadable', None)" 'and in JSON'
}

# Roles of a PostgreSQL server: one that may look, and one that may do all but delete.
judge_rights() {
  schema=$(sed -n 's/^schema=//p' settings)
  role=$(printf '%s\n' "$DURAKIT_PG_READER" | sed -n 's/.*user=\([^ ]*\).*/\1/p')
  on_store "$plugin" "conninfo=$DURAKIT_PG_READER" "schema=$schema"
  psql -q -X -c "GRANT USAGE ON SCHEMA \"$schema\" TO $role" \
    -c "GRANT SELECT ON ALL TABLES IN SCHEMA \"$schema\" TO $role"
  ok $? 'a role that may look' || return
  for command in instances stats 'status broken-1' 'history broken-1' 'cancel --all --dry-run' \
                 'delete --all --dry-run' 'prune --all --keep 1 --dry-run'; do
    # shellcheck disable=SC2086
    run_ok "it may: $command" d $command
  done
  for command in 'cancel account-1' 'start x --name quick' 'raise account-1 x' \
                 'cancel --all --yes' 'delete broken-1' 'delete --all --yes' \
                 'prune account-1 --keep 1'; do
    # shellcheck disable=SC2086
    d $command > out.txt 2> err.txt
    is $? 4 "it must not: $command"
    like "$(cat out.txt err.txt)" 'DK_REFUSED: ' 'and the provider says why'
  done
  psql -q -X -c "GRANT INSERT, UPDATE ON ALL TABLES IN SCHEMA \"$schema\" TO $role" \
    -c "GRANT USAGE ON ALL SEQUENCES IN SCHEMA \"$schema\" TO $role"
  ok $? 'a role that may write, and not delete'
  d delete broken-1 > out.txt 2> err.txt
  is $? 4 'delete'
  like "$(cat err.txt)" 'DK_REFUSED: ' 'is refused'
  run_ok 'and nothing is deleted' d status broken-1
}

if [ $# -gt 0 ]; then
  judge_store "$@"
  [ -z "${DURAKIT_PG_READER-}" ] || judge_rights
  done_testing
fi
judge_store "$MODEL" "store=$scratch/model.store"
if [ -f "$SQLITE_PLUGIN" ]; then
  judge_store "$SQLITE_PLUGIN" "store=$scratch/sqlite.db"
  judge_unreadable "$scratch/sqlite.db"
else
  skip 'the commands on sqlite' 'the sqlite plugin was left out'
fi
done_testing
