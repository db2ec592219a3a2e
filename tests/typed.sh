# SPDX-License-Identifier: Apache-2.0
# For the tests of documents: what they show as output is what the command prints, and every
# command that they show can be typed.  Source it after tap.sh and scratch.
#
#   <!-- output: COMMAND -->   the block that follows is what COMMAND prints (--format human); a
#                              program that the document has built is called as it stands
#   <!-- exit: N -->           the commands of the next block end with N instead of 0
#
# Commands are the lines that are indented by four and begin with one of the words below; those of a
# table or a list stand between backquotes.  A document is typed from its top, in one folder.
#
# A document that is followed (follow_document) is done in its order, all of it: every line that is
# indented by four is a command, and every block belongs to one:
#
#   <!-- sql: COMMAND -->      the block that follows is what COMMAND reads

: "${CC:=cc}" "${CXX:=c++}"
unset HARNESS_ACTIVE HARNESS_VERSION TAP_VERSION DURAKIT_PLUGIN_PATH MAKEFLAGS MFLAGS MAKELEVEL
unset LD_LIBRARY_PATH

# What a reader has installed: the command, the model, pkg-config's file, the examples.
mkdir "${scratch:?scratch comes first}/bin" "$scratch/plugins"
cp "$MODEL" "$scratch/plugins/model.so"
: "${SQLITE_PLUGIN:=}"
[ ! -f "$SQLITE_PLUGIN" ] || cp "$SQLITE_PLUGIN" "$scratch/plugins/sqlite.so"
cat > "$scratch/bin/durakit" <<'COMMAND'
#!/bin/sh
# Whole runs under Valgrind take minutes, and are made by valgrind-certify.sh and examples.sh.  On a
# busy machine a check may take its time.
case " $* " in
  ' certify '*' --no-memcheck '*) ;;
  ' certify '*) set -- "$@" --no-memcheck ;;
  *) exec "$DURAKIT" "$@" ;;
esac
"$DURAKIT" "$@" --timeout-scale 4 > "${0%/*}/certified"
code=$?
cat "${0%/*}/certified"
exit $code
COMMAND
chmod 755 "$scratch/bin/durakit"
# The file that will be installed, with the folders of this tree.  As there, no program finds the
# library by itself that is linked with these flags alone.
sed -e "s|^libdir=.*|libdir=$top_builddir/.libs|" \
    -e "s|^includedir=.*|includedir=$top_srcdir/core/include|" \
    -e "s|^plugindir=.*|plugindir=$scratch/plugins|" \
    -e "s|^examplesdir=.*|examplesdir=$top_srcdir/examples|" \
    -e "s|^Libs:.*|& ${SANITIZER_CFLAGS-}|" "$top_builddir/durakit.pc" > "$scratch/bin/durakit.pc"
PATH=$scratch/bin:$PATH
DURAKIT_PLUGIN_PATH=$scratch/plugins
PKG_CONFIG_PATH=$scratch/bin
export PATH DURAKIT_PLUGIN_PATH PKG_CONFIG_PATH CC CXX DURAKIT

# What a program of one's own is linked with, that is to run from where it was built.
libraries() {
  echo "$(pkg-config --libs durakit) -Wl,-rpath,$(pkg-config --variable=libdir durakit)"
}

# What differs from run to run, and what a test that sourced this wants to be silent about.
also() { cat; }
plain() {
  sed -e 's/0x[0-9a-f]\{16\}/HASH/g' -e 's/run [a-z0-9]\{6\}/run ID/' \
      -e 's/seconds=[0-9.]*/seconds=S/' -e 's/took [0-9.]* ms/took T ms/' \
      -e 's/time-out [0-9]* ms/time-out T ms/' -e 's/\.c:[0-9]*$/.c:LINE/' \
      -e 's|^provider: \([^,]*\), .*|provider: \1, FILE|' \
      -e 's/[0-9]\{4\}\(-[0-9][0-9]\)\{2\}T[0-9:]*\.[0-9]*Z/TIME/g' |
    sed -E -f "$top_srcdir/tests/counts.sed" | also
}

# with_server DOCUMENT FOLDER: the document lets "hi/serve ... sqlite store=orders.db" run in
# another terminal.  It runs from the first start of an instance on, in that folder; and as a reader
# is slower than a runtime, a start returns when the runtime has looked at it, and the metrics that
# it saves in serve.prom are looked at when it has saved them once more.  end_server ends it.
with_server() {
  server=$(sed -n 's/.*`\(hi\/serve [^`]*sqlite store=orders.db\)` run in.*/\1/p' "$1")
  [ -n "$server" ]
  ok $? "${1##*/}: $server, in another terminal"
  mv "$scratch/bin/durakit" "$scratch/bin/durakit.plain"
  cat > "$scratch/bin/durakit" <<COMMAND
#!/bin/sh
here=$scratch
plain=\$here/bin/durakit.plain
# until_so COMMAND...: or the server has ended.
until_so() {
  until "\$@" > /dev/null 2>&1; do kill -0 "\$(cat "\$here/server.pid")" || exit 99; done
}
case " \$* \${DURAKIT_SETTINGS-} " in
  ' start '*' store=orders.db '* | ' start '*'/orders.settings ') ;;
  ' stats '*'--metrics serve.prom '*)
    touch "\$here/asked"
    until_so test '$2/serve.prom' -nt "\$here/asked"
    exec "\$plain" "\$@" ;;
  *) exec "\$plain" "\$@" ;;
esac
taken() { "\$plain" history "\$1" --provider sqlite --set store=orders.db | grep -q ' activity '; }
if [ ! -f "\$here/server.pid" ]; then
  (cd '$2' && exec $server) > "\$here/served" 2>&1 < /dev/null &
  echo \$! > "\$here/server.pid"
  until_so grep -q '^serve: works' "\$here/served"
fi
"\$plain" "\$@" || exit
until_so taken "\$2"
COMMAND
  chmod 755 "$scratch/bin/durakit"
}
end_server() {
  [ -f "$scratch/server.pid" ] || return 0
  pid=$(cat "$scratch/server.pid")
  rm "$scratch/server.pid"
  kill "$pid" && timeout 60 tail --pid="$pid" -f /dev/null
}

# One line for each command of a document: its exit code, a blank, the command.
commands_of() {
  awk '
    function command(line) {
      sub(/  +#.*/, "", line)
      if (line ~ /^(durakit|prove|mkdir|cp|make|cc|sed|c\+\+|echo|export) /) print want, line
    }
    BEGIN { want = 0 }
    /^<!-- exit: / { marked = $3; next }
    /^```/ { inside = !inside; next }
    inside { next }
    /^    / {
      want = marked != "" ? marked : 0
      in_block = 1
      command(substr($0, 5))
      want = 0
      next
    }
    in_block && /[^ ]/ { marked = ""; in_block = 0 }
    /^\| .* \| `/ { line = $0; sub(/^\| .* \| `/, "", line); sub(/`.*/, "", line); command(line) }
    /^[0-9]\. `/ { line = $0; sub(/^[0-9]\. `/, "", line); sub(/`.*/, "", line); command(line) }
  ' "$1"
}

# is_too_busy COMMAND: it has failed, and only because races found no overlap.  The output of a
# certification may be in a file, or prove may have it.
is_too_busy() {
  case $1 in
    *certify* | prove*) said=$scratch/bin/certified ;;
    *) said=typed.out ;;
  esac
  [ -f "$said" ] && grep 'RESULT=.* failed=0 .* unexercised=' "$said" |
    grep -q -v -e ' flaky=' -e ' memory=' -e ' errors='
}

# type_command WANT COMMAND
type_command() {
  want=$1
  case $2 in
    'durakit repro'*) want=1 ;; # what failed fails again
    'export '*)
      # What follows sees it.
      eval "$2"
      ok $? "$2"
      return ;;
    *' sqlite' | *' sqlite '*)
      if [ ! -f "$SQLITE_PLUGIN" ]; then
        skip "$2" 'the sqlite plugin was left out'
        return
      fi ;;
    'durakit selftest'*) skip "$2" 'it is a test of its own: runner-selftest.sh'; return ;;
    *--gdb*)
      if command -v gdb > /dev/null; then
        like "$(echo quit | eval "$2" 2>&1)" '/' "$2"
      else
        skip "$2" 'gdb is not installed'
      fi
      return ;;
    *memcheck* | *suppressions*)
      if [ -z "${VALGRIND-}" ] || [ -n "${SANITIZER_CFLAGS-}" ]; then
        skip "$2" 'no Valgrind, or sanitizers'
        return
      fi ;;
  esac
  if [ "${DURAKIT_PROVIDER-}" = sqlite ] && ! [ -f "$SQLITE_PLUGIN" ]; then
    skip "$2" 'the sqlite plugin was left out'
    return
  fi
  (eval "$2") > typed.out 2>&1
  typed=$?
  if [ "$typed" -ne "$want" ] && is_too_busy "$2"; then
    skip "$2" 'a race found no overlap: the machine is busy'
    return
  fi
  is "$typed" "$want" "$2" || diag "$(tail -n 20 typed.out)"
}

# type_document FILE: in the folder where we are.
type_document() {
  commands_of "$1" > typed.commands
  while IFS= read -r line; do
    type_command "${line%% *}" "${line#* }"
  done < typed.commands
}

# show_document FILE: its blocks of output.  How many there are is in $shown.
show_document() {
  rm -f command.* shown.*
  awk '/^<!-- output: / { sub(/^<!-- output: /, ""); sub(/ -->$/, "")
                          print > ("command." ++n); next }
       /^```/ { if (n && !shown[n]) { shown[n] = inside = 1 } else inside = 0; next }
       inside { print > ("shown." n) }' "$1"
  shown=0
  while [ -f "command.$((shown + 1))" ]; do
    shown=$((shown + 1))
    typed=$(cat "command.$shown")
    case $typed in
      *' sqlite '* | 'durakit history '*)
        if [ ! -f "$SQLITE_PLUGIN" ]; then
          skip "what ${1##*/} shows of: $typed" 'the sqlite plugin was left out'
          continue
        fi ;;
    esac
    # shellcheck disable=SC2086
    case $typed in
      'durakit certify'*)
        "$DURAKIT" ${typed#durakit } --format human --timeout-scale 4 > got 2>&1 ;;
      'durakit check'*) $typed --format human > got 2>&1 ;;
      *) timeout 600 $typed > got 2>&1 ;; # a program of the document's own
    esac
    sed '/^durakit: [0-9][0-9]* of /d' got | plain > got.plain # a busy machine reports progress
    plain < "shown.$shown" > shown.plain
    is "$(diff shown.plain got.plain)" '' "what ${1##*/} shows of: $typed"
  done
}

# ---- in its order --------------------------------------------------------------------------------

# steps_of DOCUMENT PARTS: step.N.head (what is to be done) and step.N.text, of the parts below
# these headings, "|One|Two|".
steps_of() {
  awk -v parts="$2" '
    function step(head, text) {
      n++
      print head > ("step." n ".head")
      if (text != "") print text > ("step." n ".text")
    }
    BEGIN { want = 0 }
    !fence && /^##? / { heading = $0; sub(/^##? /, "", heading)
                        inside = index(parts, "|" heading "|") }
    !inside { next }
    /^<!-- exit: / { want = $3; next }
    /^<!-- (sql|output): / { marker = substr($0, 6); sub(/ -->$/, "", marker); next }
    /^```/ { fence = !fence
             if (fence) { step(marker == "" ? "stray: " $0 : marker, ""); marker = "" }
             next }
    fence { print > ("step." n ".text"); next }
    /^    / { line = substr($0, 5); sub(/  +#.*/, "", line); step("type: " want, line); block = 1 }
    block && /^[^ ]/ { want = block = 0 }
  ' "$1"
}

# follow_document DOCUMENT PARTS: in the folder where we are; what was printed is in step.N.out.
# How many steps there were is in $followed.
follow_document() {
  rm -f step.*
  steps_of "$1" "$2"
  followed=0
  while [ -f "step.$((followed + 1)).head" ]; do
    followed=$((followed + 1))
    step=step.$followed
    read -r kind command < "$step.head"
    case $kind in
      type:)
        (eval "$(cat "$step.text")") > "$step.out" 2>&1 < /dev/null
        is $? "$command" "$(cat "$step.text")" || diag "$(tail -n 20 "$step.out")" ;;
      sql:)
        case $command in psql*) command="$command -X -q -v ON_ERROR_STOP=1" ;; esac
        run_ok "$command: $(head -n 1 "$step.text")" \
          sh -c "$command < $step.text > $step.out 2>&1 || { cat $step.out; exit 1; }" ;;
      output:)
        sh -c "$command" 2>&1 < /dev/null | plain > "$step.out"
        is "$(plain < "$step.text" | diff - "$step.out")" '' "what is shown of: $command" ;;
      *)
        ok 1 "a block that belongs to nothing: $command" ;;
    esac
  done
}
