#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/runtime.md is true: its tables are what the code says, its C is compiled, its
# commands are typed, and what it shows as output is what is printed.
#
#   <!-- program: NAME -->   the block of C that follows is a whole program, built as ./NAME; the
#                            other blocks of C are functions, each compiled by itself

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${CC:=cc}" "${AWK:=awk}" "${SANITIZER_CFLAGS=}"
[ -f "$MODEL" ] || skip_all 'the model is not built'
scratch
. "$top_srcdir/tests/typed.sh"
. "$top_srcdir/tests/varying.sh"
guide=$top_srcdir/docs/runtime.md
header=$top_srcdir/core/include/durakit/runtime.h
runtime=$top_srcdir/core/runtime
cd "$scratch" || exit 99

# ---- tables --------------------------------------------------------------------------------------

# members STRUCT: the names in the header's struct, one a line, without struct_size and reserved.
members() {
  sed -n "/^struct $1 {/,/^};/p" "$header" | sed -e 's|/\*.*||' -e '1d;$d' |
    grep ';$\|,$\|; *$\|, *$' | sed -e 's/^ *\(const \)\{0,1\}\(struct \)\{0,1\}[a-z0-9_]* //' |
    tr -d ' *;' | tr ',' '\n' | sed -e '/^$/d' -e 's/^uint64_t//' |
    grep -v -x -e struct_size -e reserved | sort
}

# rows DOCUMENT COLUMNS PATTERN: cells of the rows whose first cell looks so, without backquotes.
rows() {
  $AWK -F ' *[|] *' -v columns="$2" -v pattern="$3" '
    $2 ~ pattern {
      n = split(columns, column, " ")
      line = ""
      for (i = 1; i <= n; i++) line = line (i > 1 ? " " : "") $(column[i] + 1)
      gsub(/`/, "", line)
      print line
    }' "$1" | sort
}

# section DOCUMENT HEADING: the text below it, up to the next one.
section() {
  $AWK -v heading="$2" '/^#/ { inside = $0 == heading } inside' "$1"
}

section "$guide" '### Options' > options.md
is "$(rows options.md 1 '^`[a-z_]+`$')" "$(members dk_runtime_options)" \
  'options: each member of the struct has its row, and no other has'

# NUMBER(grace_ms, MS, 10000, 1, ten_years): name, default, least.
numbers() {
  sed -n 's/^ *NUMBER(\([a-z_]*\), [A-Z]*, \(.*\), \([0-9]*\), [^,]*),$/\1|\2|\3/p' "$1" |
    while IFS='|' read -r name fallback least; do
      eval "echo $name \$(($fallback)) $least"
    done | sort
}
numbers "$runtime/options.c" > numbers
is "$(wc -l < numbers | tr -d ' ')" "$(grep -c '^ *NUMBER(' "$runtime/options.c")" \
  'options: each number of options.c is read'
rows options.md '1 2 3' '^`[a-z_]+`$' | grep '^[a-z_]* [0-9][0-9]* [0-9]' > told
is "$(diff numbers told)" '' 'options: defaults and least values are those of options.c'
like "$(cat "$runtime/options.c")" 'options->max_quarantined = 2 \* options->activity_slots;' \
  'options: max_quarantined is twice activity_slots'
like "$(cat options.md)" '^| `max_quarantined` | 2 × `activity_slots` | 1 |' 'and the page has it'
least=$(sed -n 's/.*LEAST_RENEWAL_MS = \([0-9]*\).*/\1/p' "$runtime/options.c")
is "$(grep -c "lock - buffer, which has to be $least ms at least" options.md)" 2 \
  'options: the least time between renewals'

section "$guide" '### The log' > log.md
sed -n 's/^ *\(DK_LOG_[A-Z_]*\) = \([0-9]*\).*/\1 \2/p' "$header" | while read -r name number; do
  level=$(sed -n "s/^ *\[$name\] = DK_LEVEL_\([A-Z]*\),/\1/p" "$runtime/shared/log.c")
  echo "$name $number ${level:-its own}"
done | $AWK '{ print tolower($0) }' | sort > numbers
[ "$(wc -l < numbers)" -ge 19 ]
ok $? 'log: the events of the header are read'
is "$(rows log.md '1 2 3' '^`DK_LOG_' | $AWK '{ print tolower($0) }' | sort | diff numbers -)" '' \
  'log: events, numbers and levels are those of the code'

section "$guide" '### Counters and health' > counters.md
is "$(grep -o '`[a-z_]*`' counters.md | tr -d '`' | grep -v '^dk_' | sort)" \
  "$(members dk_counters)" 'counters: the page has each, and no other'

# Families and closed lists, as metrics.c has them: "name type label = value, value; name".
metrics=$runtime/shared/metrics.c
list_of() {
  sed -n "/ $1\[/,/^};/s/^ *\[.*\] = \"\(.*\)\",/\1/p" "$metrics" | paste -s -d , | sed 's/,/, /g'
}
$AWK -v sources="$(list_of source_names)" -v outcomes="$(list_of outcome_names)" \
  -v phases="$(list_of phase_names)" -v paths="$(list_of path_names)" '
  function end() { if (name != "") print name " " type (labels == "" ? "" : " " labels) }
  BEGIN {
    open["write_requests"] = "source = " sources "; outcome = " outcomes "; name"
    open["write_cancelled"] = "code; phase = " phases "; name"
    open["write_notified"] = "path = " paths
  }
  /^static const struct family families/ { inside = 1 }
  !inside { next }
  match($0, /\.name = "[^"]*"/) { end(); name = substr($0, RSTART + 9, RLENGTH - 10); labels = "" }
  match($0, /\.type = "[^"]*"/) { type = substr($0, RSTART + 9, RLENGTH - 10) }
  match($0, /\.label = "[^"]*"/) { labels = substr($0, RSTART + 10, RLENGTH - 11) }
  match($0, /\.write = [a-z_]*/) { labels = open[substr($0, RSTART + 9, RLENGTH - 9)] }
  match($0, /\{"[a-z_]+", COUNT_/) {
    labels = labels (labels ~ / = / ? ", " : " = ") substr($0, RSTART + 2, RLENGTH - 11)
  }
  /^};/ { end(); exit }' "$metrics" | sort > families
[ "$(wc -l < families)" -ge 11 ]
ok $? 'metrics: the families of metrics.c are read'
section "$guide" '### Metrics' > metrics.md
is "$(rows metrics.md '1 2 3' '^`dk_' | sed 's/ *$//' | diff families -)" '' \
  'metrics: names, types and labels are those of the code'
bounds=$(sed -n 's/^  {"\([0-9.]*\)", [0-9]*},$/\1/p' "$metrics" | paste -s -d , |
  sed -e 's/,/, /g' -e 's/\(.*\),/\1 and/')
is "$(grep -c "The buckets end at $bounds seconds" metrics.md)" 1 'metrics: the buckets'

sed -n 's/^ *\[CODE_[A-Z_]*\] = "\(.\{1,\}\)",/\1/p' "$runtime/format/event.c" | sort > numbers
section "$guide" '### Futures' > futures.md
is "$(rows futures.md 1 '^`[a-z_]+`$' | grep -v '^dk_' | diff numbers -)" '' \
  'codes: the closed list'

manage=$top_srcdir/core/include/durakit/manage.h
section "$guide" '## Many instances' > many.md
$CC -w -E -P -fpreprocessed "$manage" | grep -oE '(^|[ *])dk_[a-z0-9_]+\(' | tr -d ' *(' |
  grep -v '_fn$' | sort > numbers
[ "$(wc -l < numbers)" -ge 13 ]
ok $? 'managing: the functions of manage.h are read'
is "$(rows many.md 1 '^`dk_' | diff numbers -)" '' 'managing: each function has its row'
section "$guide" '### Cancelling many' > many.md
sed -n 's/^  \(DK_CANCEL_[A-Z_]*\) = [1-9].*/\1/p' "$manage" | sort > numbers
is "$(rows many.md 1 '^`DK_CANCEL_' | diff numbers -)" '' 'managing: each outcome has its row'

# kinds PREFIX: those of event.c.
kinds() {
  sed -n "s/^ *\[$1_[A-Z_]*\] = {\"\([a-z_]*\)\".*/\1/p" "$runtime/format/event.c" | sort
}
section "$guide" '### What a history says' > history.md
sed '/^| message /,$d' history.md > events.md
sed '1,/^| message /d' history.md > messages.md
[ "$(kinds EVENT | wc -l)" -ge 25 ] && [ "$(kinds MESSAGE | wc -l)" -ge 10 ]
ok $? 'kinds: they are read'
kinds EVENT > numbers
is "$(rows events.md 1 '^`[a-z_]+`$' | diff numbers -)" '' 'kinds: each event has its row'
kinds MESSAGE > numbers
is "$(rows messages.md 1 '^`[a-z_]+`$' | diff numbers -)" '' 'kinds: each message has its row'

# The worst cases follow from lock and buffer, and the grace.
grace=$(sed -n 's/^ *NUMBER(grace_ms, MS, \([0-9]*\)000,.*/\1/p' "$runtime/options.c")
is "$(grep '^| [0-9]* s / [0-9]* s' "$guide" | sed 's/[^0-9 ]//g' | $AWK -v grace="$grace" '
  $3 != $1 - $2 || $4 != $3 + grace || $5 != $1 { print }
  END { if (NR != 2) print NR " rows" }')" '' 'latency: the table is lock - buffer, and the grace'

# ---- C -------------------------------------------------------------------------------------------

# blocks DOCUMENT: block-N.c for functions, NAME.c for programs.
blocks() {
  rm -f block-*.c
  $AWK '
    /^<!-- program: / { name = $3; next }
    /^```c$/ { file = name == "" ? "block-" ++n ".c" : name ".c"; name = ""; next }
    /^```/ { file = ""; next }
    file != "" { print > file }' "$1"
}
headers='durakit/manage.h errno.h poll.h signal.h stdio.h stdlib.h sys/syscall.h sys/wait.h
  syslog.h unistd.h'
warnings='-Wall -Wextra -Wshadow -Wconversion -Werror'
compile_block() {
  # shellcheck disable=SC2046,SC2086
  { for file in $headers; do echo "#include <$file>"; done; cat "$1"; } |
    $CC -std=gnu11 $warnings -Wno-unused-function $(pkg-config --cflags durakit) \
      -fsyntax-only -x c -
}

blocks "$guide"
compiled=0
for block in block-*.c; do
  run_ok "C: $(grep -m 1 '(' "$block" | sed 's/(.*//') compiles" compile_block "$block"
  compiled=$((compiled + 1))
done
[ $compiled -ge 10 ]
ok $? "C: $compiled blocks"
# shellcheck disable=SC2046,SC2086
run_ok 'C: the whole program is built' $CC -std=gnu11 $warnings $SANITIZER_CFLAGS -pthread \
  "-DPLUGIN_DIR=\"/nowhere\"" -I"$top_srcdir/examples/runtime" $(pkg-config --cflags durakit) \
  -o killed killed.c "$top_srcdir/examples/runtime/example.c" $(libraries)

# ---- commands and output -------------------------------------------------------------------------

also() { without_varying; }
type_document "$guide"
show_document "$guide"
is "$shown" 4 'four outputs are shown'

# ---- what all that is worth ----------------------------------------------------------------------

sed 's/^| `grace_ms` | 10000 /| `grace_ms` | 11000 /' options.md > lies.md
! cmp -s options.md lies.md
ok $? 'a table with a wrong default'
numbers "$runtime/options.c" > numbers
rows lies.md '1 2 3' '^`[a-z_]+`$' | grep '^[a-z_]* [0-9][0-9]* [0-9]' > told
is "$(diff numbers told | grep -c '^[<>] grace_ms')" 2 'is found'
sed 's/ = kept, quarantined/ = kept/' metrics.md > lies.md
! rows lies.md '1 2 3' '^`dk_' | sed 's/ *$//' | cmp -s - families
ok $? 'so is a label without one of its values'
printf '%s\n' '```c' 'static int f(void) { return dk_no_such_call(); }' '```' > lies.md
blocks lies.md
! compile_block block-1.c > /dev/null 2>&1
ok $? 'so is C that does not compile'

done_testing
