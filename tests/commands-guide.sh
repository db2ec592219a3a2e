#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/commands.md is true: its commands are typed, its outputs are printed, and its tables
# of exit codes, metrics and JSON are those of the code.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${SQLITE_PLUGIN=}"
[ -f "$SQLITE_PLUGIN" ] || skip_all 'the sqlite plugin was left out'
scratch
trap 'end_server; chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
end_server() { :; }
. "$top_srcdir/tests/typed.sh"
. "$top_srcdir/tests/operate/store.sh"
page=$top_srcdir/docs/commands.md
cd "$scratch" || exit 99

# ---- typed from its top --------------------------------------------------------------------------

# Messages of one moment stand in the order of their ids.
also() { sed -e 's/ *[0-9.]* s$/ S s/' -e 's/  *$//'; }
with_server "$page" "$scratch"
parts=$(sed -n 's/^##* \(.*\)/\1/p' "$page" | paste -sd '|' -)
follow_document "$page" "|$parts|"
[ "$followed" -ge 20 ]
ok $? 'the page shows commands'
is "$(grep -c ': charge ends early: cancelled$' served)" 3 'serve prints each cancellation'
end_server
is "$? $(tail -n 1 served)" '0 serve: ends; what it works on is given back' \
  'and ends after SIGTERM'

# ---- tables --------------------------------------------------------------------------------------

# section HEADING: the text below it, up to the next one.
section() { awk -v heading="## $1" '/^## / { inside = $0 == heading } inside' "$page"; }
for command in start status wait history raise enqueue cancel instances delete prune stats; do
  "$DURAKIT" $command --help > help
  is "$(sed -n '/^Exit: /,$p' help | tr '\n' ' ' | grep -o -e '[:;] [0-9] ' | tr -d ':; \n')" \
    "$(section 'Exit codes' | sed -n 's/^| \([0-9]\) |.*/\1/p' | tr -d '\n')" \
    "$command: its exit codes are those of the page"
done
"$DURAKIT" stats --prometheus --provider sqlite --set store=later.db > out.txt
is "$(sed -n 's/^# TYPE \([a-z_]*\) gauge$/\1/p' out.txt | sort)" \
  "$(section Counting | sed -n 's/^| `\(dk_[a-z_]*\)`.*/\1/p' | sort)" \
  'metrics: those of the page, and no other'

# Members: "events[].by" of one row, ".reason" of the same.
section JSON | awk -F ' *[|] *' '
  $2 ~ /^`durakit/ { schema = $2; gsub(/`/, "", schema) }
  /^\|/ && schema != "" {
    n = split($3, names, /, */)
    for (i = 1; i <= n; i++) {
      name = names[i]
      if (gsub(/`/, "", name) < 2) continue
      if (name ~ /^\./) { sub(/[^.]*$/, "", base); name = base substr(name, 2) } else base = name
      print schema, name
    }
  }' | sort -u > documented
[ "$(wc -l < documented)" -gt 70 ]
ok $? 'JSON: the page documents members'

# What is printed: of stores in which there is something of everything.
cat > paths.py <<'PYTHON'
import json, sys
def walk(value, path, found):
    if isinstance(value, dict) and not path.endswith(("payload", "labels")):
        for key, inner in value.items():
            walk(inner, path + ("." if path else "") + key, found)
    elif isinstance(value, list):
        for inner in value:
            walk(inner, path + "[]", found)
        found.add(path)
        return
    if path and not path.endswith("[]"):
        found.add(path)
found = set()
for name in sys.argv[1:]:
    try:
        o = json.load(open(name))
    except ValueError:
        sys.exit(name + " is no JSON")
    paths = set()
    walk(o, "", paths)
    found |= {o["schema"] + " " + path for path in paths if path != "schema"}
print("\n".join(sorted(found)))
PYTHON
on_store "$MODEL" "store=$scratch/model.store"
number=0
# keeps COMMAND...: the object that it prints.
keeps() {
  number=$((number + 1))
  d "$@" --json > "$scratch/json.$number" 2> err.txt < /dev/null
}
keeps start waits --name waiting --create
keeps cancel waits nowhere --wait 0
keeps start quick --name quick --input "$(printf '\377')"
keeps status waits nowhere quick
keeps instances
serve_begin "$folder/serve.prom"
keeps wait quick waits nowhere
keeps start order --name order
hears '^order works$'
keeps raise order paid
keeps enqueue order bookings
keeps wait order --timeout 0
keeps start broken --name broken --input why
keeps start family --name family --input waiting
hears '^family.2 runs$'
keeps wait broken
keeps delete order
keeps delete broken nowhere --dry-run
keeps cancel --name order --expect 9
keeps cancel order family --wait 60s --reason end
keeps delete family.1
keeps status order quick broken
keeps instances
keeps instances --limit 1
for instance in order family waits broken; do
  keeps history $instance
done
keeps start typo --name ordre
until d status typo > delayed.txt && grep -q '^  delayed ' delayed.txt; do
  kill -0 "$serve_pid" || break
done
keeps status typo
keeps cancel typo --wait 60s
keeps start account --name account --input 3
reaches account 4 2
keeps prune account --keep 1 --dry-run
keeps prune account --keep 1
keeps delete quick
serve_saves
keeps stats --metrics serve.prom
serve_end
python3 "$scratch/paths.py" "$scratch"/json.* > "$scratch/printed"
is $? 0 'JSON: all of it is'
cd "$scratch" || exit 99
grep '^durakit\.instances/1 instances\[\]\.' documented | cut -d ' ' -f 2 > of_instances
for schema in status wait; do
  sed "s|^|durakit.$schema/1 |" of_instances
done | sort -u - documented > all
for schema in status wait history instances cancel delete prune; do
  echo "durakit.$schema/1 complete"
done | sort -u - all > documented
is "$(sed 's/_base64$//' printed | sort -u | comm -13 documented -)" '' \
  'JSON: each printed member is documented'
# A failure of the store, and what only some instances have at a time.
sed 's/_base64$//' printed | sort -u | comm -23 documented - > missing
is "$(grep -v -e '^durakit.cancel/1 instances\[\]\.\(error\|text\)$' \
           -e '^durakit.wait/1 instances\[\]\.input$' missing)" '' 'JSON: no other is documented'

done_testing
