# SPDX-License-Identifier: Apache-2.0
# For the tests of the commands that operate a store: a store, a runtime beside it, and what the
# commands print.  Source it after tap.sh and scratch.
# needs: tests/operate/serve

serve=$top_builddir/tests/operate/serve
NO_COLOR=1
LC_ALL=C
export NO_COLOR LC_ALL

# on_store PLUGIN KEY=VALUE...: what follows is for this store, in a folder of its own.
on_store() {
  plugin=$1
  shift
  store_number=$((${store_number:-0} + 1))
  folder=$scratch/store-$store_number
  mkdir "$folder" && cd "$folder" || exit 99
  printf '%s\n' "$@" > settings
  # For serve, which takes them as arguments: none of them has a quote.
  serve_settings=$(sed "s/.*/'&'/" settings | tr '\n' ' ')
}

# d COMMAND ARGUMENT...: durakit on this store.
d() {
  d_command=$1
  shift
  "$DURAKIT" "$d_command" --provider "$plugin" --settings "$folder/settings" "$@"
}

# What differs from run to run: times, who calls, where it is.
usual() {
  sed -e 's/[0-9]\{4\}-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\.[0-9]*Z/TIME/g' \
      -e "s|$plugin|PLUGIN|g" -e "s|$folder|FOLDER|g" \
      -e "s/user:$(id -un)@$(uname -n)/ME/g" -e 's/  *$//'
}

# says_on STREAM OTHER CODE NAME COMMAND ARGUMENT...: it ends with CODE, and says in the file STREAM
# what standard input has, and nothing in OTHER.
says_on() {
  stream=$1 other=$2 want=$3 name=$4
  shift 4
  cat > want.txt
  d "$@" > out.txt 2> err.txt < /dev/null
  code=$?
  usual < "$stream" > found.txt
  if [ $code -eq "$want" ] && [ ! -s "$other" ] && cmp -s want.txt found.txt; then
    ok 0 "$name"
  else
    ok 1 "$name"
    diag "exit $code, expected $want: durakit $*"
    diag "$(diff want.txt found.txt)"
    diag "$(cat "$other")"
  fi
}

# CODE NAME COMMAND ARGUMENT...: on standard output only, on standard error only.
tells() { says_on out.txt err.txt "$@"; }
refuses() { says_on err.txt out.txt "$@"; }

# json EXPRESSION [FILE]: what python makes of the object o that FILE (out.txt) holds.
json() {
  python3 -c 'import json, sys
o = json.load(open(sys.argv[2]))
try:
  print(eval(sys.argv[1]))
except Exception as e:
  print("%s: %s, in %s" % (type(e).__name__, e, o))' "$1" "${2:-out.txt}"
}

# has JSON-EXPRESSION VALUE NAME: of the last output.
has() { is "$(json "$1" 2>&1)" "$2" "$3"; }

# reaches INSTANCE EXECUTION EVENTS: waits until it is there.
reaches() {
  until d status "$1" | grep -q "^  execution   $2, $3 event"; do
    kill -0 "$serve_pid" || return
  done
}

# ---- a runtime -----------------------------------------------------------------------------------

# serve_begin [FILE]: it saves its metrics there when it is asked to.
serve_begin() {
  rm -f serve.in serve.out
  mkfifo serve.in serve.out || exit 99
  # shellcheck disable=SC2034
  serve_file=${1-}
  eval "\"$serve\" ${1+--metrics \"\$serve_file\"} \"$plugin\" $serve_settings" \
    < serve.in > serve.out 2> serve.err &
  serve_pid=$!
  exec 8> serve.in 9< serve.out
  : > served.txt
  hears '^serve: ready$' || { diag "$(cat serve.err)"; exit 99; }
}

# hears PATTERN: reads what the runtime says until a line is like that; fails at its end.
hears() {
  while read -r heard <&9; do
    printf '%s\n' "$heard" >> served.txt
    ! printf '%s\n' "$heard" | grep -q -e "$1" || return 0
  done
  return 1
}

# serve_saves: its metrics are saved now.
serve_saves() {
  echo >&8
  hears '^serve: saved$'
}

# serve_end: and the rest of what it says.
serve_end() {
  exec 8>&-
  cat <&9 >> served.txt
  exec 9<&-
  wait "$serve_pid"
}
