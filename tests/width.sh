#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The output on a terminal of 80 columns: no line is longer, so that no word is broken; what goes
# into a pipe is as it was.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] && [ -f "$MODEL_FULL" ] ||
  skip_all 'the command or the model is not built'
python3 -c 'import pty' > /dev/null 2>&1 || skip_all 'python3 has no pty'
scratch
cd "$scratch" || exit 99
cp "$MODEL" x.so
unset HARNESS_ACTIVE CI NO_COLOR DURAKIT_PROVIDER DURAKIT_SETTINGS

# on_terminal COLUMNS COMMAND...: its output, both streams, on such a terminal; its exit code.
# Columns 0: the terminal does not report them.
cat > on-terminal.py <<'PYTHON'
import fcntl, os, pty, struct, sys, termios
columns = int(sys.argv[1])
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
out = b""
while True:
    try:
        piece = os.read(fd, 65536)
    except OSError:
        break
    if not piece:
        break
    out += piece
sys.stdout.buffer.write(out.replace(b"\r\n", b"\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
on_terminal() { python3 on-terminal.py "$@"; }

# too_long COLUMNS FILE: lines that are longer, and have a blank where they could be broken.
too_long() {
  python3 - "$@" <<'PYTHON'
import re, sys
for line in open(sys.argv[2], encoding="utf-8", newline="\n"):
    line = re.sub("\033\\[[0-9;]*m", "", line.rstrip("\n").split("\r")[-1])
    if len(line) > int(sys.argv[1]) and " " in line.strip():
        print(line)
PYTHON
}

# words FILE: its words, wherever the lines end.
words() { tr -s ' \n' '\n\n' < "$1" | sed '/^$/d'; }

# broken COLUMNS FILE: words that are no longer than the terminal is wide, and that it breaks.
broken() {
  python3 - "$@" <<'PYTHON'
import re, sys
width = int(sys.argv[1])
for line in open(sys.argv[2], encoding="utf-8", newline="\n"):
    line = re.sub("\033\\[[0-9;]*m", "", line.rstrip("\n").split("\r")[-1])
    for word in re.finditer("[^ ]+", line):
        if word.end() > width >= len(word[0]):
            print(line)
PYTHON
}

# keeps ARGUMENT...: the same words in 80 columns, if the terminal reports them and if it does
# not, as in a pipe.
keeps() {
  "$DURAKIT" "$@" > pipe.txt 2> err.txt < /dev/null
  cat err.txt >> pipe.txt
  for columns in 80 0; do
    on_terminal $columns "$DURAKIT" "$@" > terminal.txt
    is "$(too_long 80 terminal.txt)" '' "durakit $*: no line is longer ($columns)"
    words pipe.txt > pipe.words
    words terminal.txt > terminal.words
    is "$(diff pipe.words terminal.words)" '' "durakit $*: no word is broken ($columns)"
  done
}

keeps --help
keeps cancel --help
keeps list checks
keeps list clauses
keeps explain CANCEL-5
keeps explain cancel/mass
keeps status order-1 --provider sqlite-that-is-not-there --set store=none
keeps wait
for columns in 60 40; do
  for list in checks clauses mutants topics; do
    on_terminal $columns "$DURAKIT" list $list > terminal.txt
    is "$(broken $columns terminal.txt)" '' "durakit list $list: no word is broken ($columns)"
  done
done
# A path that has no room beside the name, and has it in a line of its own.
for length in 20 40 60 76 80; do
  folder=$scratch/$length
  while [ ${#folder} -lt $((length - 5)) ]; do
    folder=$folder/x
  done
  mkdir -p "$folder" && cp x.so "$folder/x.so"
  DURAKIT_PLUGIN_PATH=$folder on_terminal 80 "$DURAKIT" list providers > terminal.txt
  is "$(broken 80 terminal.txt)" '' "durakit list providers: a path of $((${#folder} + 5)) is whole"
done
keeps cancel order-1 --name order --provider "$MODEL_FULL"
plain='s/took [0-9.]* ms/took N ms/; s/"round_trip_ms": [0-9.]*/N/'
"$DURAKIT" probe ./x.so | sed "$plain" > pipe.txt
on_terminal 80 "$DURAKIT" probe ./x.so | sed "$plain" > terminal.txt
is "$(too_long 80 terminal.txt)" '' 'durakit probe: no line is longer'
words pipe.txt > pipe.words
words terminal.txt | diff pipe.words - > diff.txt
is "$(cat diff.txt)" '' 'durakit probe: no word is broken'
is "$(awk 'length > 90' pipe.txt | wc -l)" "$(awk 'length > 90' pipe.txt | grep -c '  ')" \
  'durakit probe: in a pipe a setting is one line'
on_terminal 80 "$DURAKIT" list checks --json > terminal.txt
"$DURAKIT" list checks --json | diff terminal.txt - > diff.txt
is "$(cat diff.txt)" '' 'JSON is not broken'

# ---- a run ---------------------------------------------------------------------------------------

on_terminal 80 "$DURAKIT" check ./x.so --only 'cancel/*' --set mutant=cancel/only-unlocked \
  > terminal.txt
is $? 1 'a run on a terminal'
is "$(too_long 80 terminal.txt)" '' 'its lines are no longer'
like "$(tr '\r' '\n' < terminal.txt)" '^\[#* *\] [0-9]* of [0-9]*' 'and how far it is'
"$DURAKIT" check ./x.so --only 'cancel/*' --set mutant=cancel/only-unlocked --format human \
  > pipe.txt 2> err.txt
is "$(cat err.txt)" '' 'in a pipe nothing is printed about it in less than a minute'

# The bar is as long as there is room: a line that is full cannot be taken away again.
for columns in 100 60 40 24; do
  on_terminal $columns "$DURAKIT" check ./x.so --only 'cancel/*' > terminal.txt
  is "$(tr '\r' '\n' < terminal.txt | grep '^\[[# ]*\] ' |
    awk "length >= $columns")" '' \
    "how far it is has room on $columns columns"
done
on_terminal 60 "$DURAKIT" bench ./x.so --only turn-1,turn-16 --pairs 1 --slice 10 > terminal.txt
is "$(too_long 60 terminal.txt)" '' 'durakit bench: no line is longer'
like "$(tr '\r' '\n' < terminal.txt)" '^\[#* *\] workloads: 1 of 2' 'and how far it is'
mkdir clean
TMPDIR=$scratch/clean on_terminal 40 "$DURAKIT" clean > terminal.txt
is "$(too_long 40 terminal.txt)" '' 'durakit clean: no line is longer'
long=$(printf '%060d' 7)
"$DURAKIT" start "$long" --name order --create --provider "$MODEL_FULL" \
  --set store="$scratch/store" > start.txt
on_terminal 80 "$DURAKIT" instances --provider "$MODEL_FULL" --set store="$scratch/store" \
  > terminal.txt
is "$(broken 80 terminal.txt)" '' 'durakit instances: no id is broken'
like "$(cat terminal.txt)" "$long" 'which is there'

# ---- what is next --------------------------------------------------------------------------------

"$DURAKIT" check ./x.so --next --only turn/birth --format tap > pipe.txt 2> err.txt
next='required operations are written'
[ "$(grep -n "$next" pipe.txt | cut -d : -f 1)" -lt "$(grep -n '^ok 1' pipe.txt | cut -d : -f 1)" ]
ok $? 'in a pipe --next prints first what is next' || diag "$(cat pipe.txt)"
on_terminal 80 "$DURAKIT" check ./x.so --next --only turn/birth > terminal.txt
like "$(tail -n 3 terminal.txt)" "$next" 'on a terminal at the end'

# ---- what was meant ------------------------------------------------------------------------------

# refuses NAME LAST-LINE ARGUMENT...
refuses() {
  name=$1 last=$2
  shift 2
  "$DURAKIT" "$@" > out.txt 2> err.txt
  is "$? $(tail -n 1 err.txt)" "2   next      $last" "$name"
}
refuses 'nothing is near' 'durakit instances --help lists them' instances --bogus
refuses 'of the command' 'did you mean --limit? durakit instances --help lists them' \
  instances --limt
refuses 'of another command' 'durakit instances --help lists them; durakit cancel takes --reason' \
  instances --reason
refuses 'a short one' 'durakit status --help lists them' status -x
refuses 'a wrong value' 'durakit cancel --help shows examples' cancel --expect many
refuses 'a wrong time' 'durakit instances --help shows examples' instances --created-after never
refuses 'of the kit' 'durakit check --help shows examples' check x --seed none
refuses 'an argument too few' 'durakit raise --help shows examples' raise order-1 --provider x

done_testing
