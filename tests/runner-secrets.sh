#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Secrets do not leave the runner: not in TAP, the human view, results, traces, messages, commands.
# needs: conformance/fixtures/zoo/exit-in-constructor.so

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] || skip_all 'the command is not built'
scratch
cd "$scratch" || exit 99
${CC:-cc} -std=gnu11 -shared -fPIC ${SANITIZER_CFLAGS:-} -I"$top_srcdir/core/include" \
  -I"$top_srcdir" "$top_srcdir/tests/runner-secret.c" -o secret.so > cc.out 2>&1
ok $? 'the provider that prints its secrets is built' || diag "$(cat cc.out)"

PASSWORD=hunter2-of-the-environment
export PASSWORD

# quiet NAME SECRET FILE...: none of the files holds the secret.
quiet() {
  name=$1
  secret=$2
  shift 2
  found=$(grep -l -r -F -e "$secret" "$@")
  is "$found" '' "$name"
}

"$DURAKIT" check ./secret.so --only turn/birth --set user=me --set-env password=PASSWORD \
  --out results > tap 2> err
is $? 1 'it fails'
like "$(cat tap)" 'user is me' 'what it says is shown'
like "$(cat tap)" 'password is \*\*\*' 'but its password is not'
quiet 'a secret from the environment is nowhere' "$PASSWORD" tap err results
like "$(cat tap)" '^  repro: .*--set-env password=PASSWORD' 'the command names the variable'
like "$(cat results/results.jsonl)" '"key":"password","value":"\*\*\*","masked":true' \
  'the results say that it was masked'

"$DURAKIT" check ./secret.so --only turn/birth --set password=hunter2-on-the-line --out results \
  > tap 2> err
quiet 'a secret on the command line is nowhere' hunter2-on-the-line tap err results
like "$(cat tap)" "^  repro: .*password=\*\*\*" 'nor in the command'
"$DURAKIT" check ./secret.so --only turn/birth --set password=hunter2-on-the-line --format human \
  > human 2>&1
quiet 'nor in the human view' hunter2-on-the-line human

"$DURAKIT" repro results/results.jsonl > tap 2> err
is $? 2 'what was masked must be given again'
like "$(cat err)" '^durakit: password: was masked when it was recorded$' 'and that is reported'
"$DURAKIT" repro results/results.jsonl --set password=hunter2-again > tap 2> err
is $? 1 'given again, it is repeated'
quiet 'and shown nowhere' hunter2-again tap err
like "$(cat err)" '^durakit: again: durakit check .*/secret.so --only turn/birth' \
  'the command is printed first'

"$DURAKIT" check ./secret.so --only turn/birth --out results \
  --set "address=host=db password='it is hunter2' user=me" > tap 2> err
quiet 'a password inside an address is nowhere' 'it is hunter2' tap err results
"$DURAKIT" check ./secret.so --only turn/birth --out results \
  --set "user=host=db password='hun\\'ter3' port=1" > tap 2> err
quiet 'a password that the shell would quote is nowhere' ter3 tap err results
like "$(cat tap)" '^# settings: user=.*\*\*\*.*port=1' 'and what is beside it is shown'
"$DURAKIT" check ./secret.so --only turn/birth --format human \
  --set "user=host=db password='hun\\'ter3' port=1" > human 2>&1
quiet 'nor in the human view' ter3 human
"$DURAKIT" check ./secret.so --only turn/birth --out results \
  --set 'address=postgresql://me:hunter2@db/x' > tap 2> err
quiet 'nor one before the host' hunter2 tap err results

# The kit keeps the beginning of what a provider says: its cut may go through the secret.
for length in $(seq 60 30 240) $(seq 440 12 560); do
  user=$(printf "%${length}s" '' | tr ' ' u)
  "$DURAKIT" check ./secret.so --only turn/birth --out results --classify 0 --set "user=$user" \
    --set password=hunter2-that-is-cut > "tap.$length" 2> err
done
quiet 'nor a part of one, wherever the text was cut' hunt tap.* results
like "$(cat tap.*)" '\*\*\*' 'which is masked there'
"$DURAKIT" probe ./secret.so --set password=hunter2-probed > probe 2>&1
quiet 'nor what probe shows' hunter2-probed probe
printf 'password = hunter2-in-a-file\n' > settings
"$DURAKIT" check ./secret.so --only turn/birth --settings settings > tap 2> err
quiet 'nor one from a file' hunter2-in-a-file tap err
like "$(cat tap)" 'password is \*\*\*' 'which was used'

# What the provider says is escaped before it comes to the runner.
key=$(printf -- '-----BEGIN KEY-----\nhunter2-first\tline\nhunter2-second line\n-----END KEY-----')
for format in tap human; do
  "$DURAKIT" check ./secret.so --only turn/birth --out results --set "password=$key" \
    --format $format > tap 2> err
  is $? 1 "$format: a key of several lines"
  quiet "$format: is nowhere" hunter2 tap err results
  quiet "$format: with none of its lines" 'BEGIN KEY' tap err results
done
"$DURAKIT" check ./secret.so --only turn/birth --set "password=$(printf 'abc\ndefgh')" > tap 2> err
quiet 'two short lines are nowhere' defgh tap err
quiet 'nor as one' 'abc\n' tap err

# A provider that works, and shouts its secret wherever it can.  Of all that is printed and written,
# names of files included, nothing has the first eight bytes of it, nor so many of an escaped form:
# so what comes before the first letter that any format escapes is nowhere.
${CC:-cc} -std=gnu11 -shared -fPIC -w ${SANITIZER_CFLAGS:-} -I"$top_srcdir/core/include" \
  -I"$top_srcdir" "$top_srcdir/tests/runner-loud.c" -o loud.so \
  > cc.out 2>&1
ok $? 'the loud provider is built' || diag "$(cat cc.out)"
LOUD="Hunter&2<it's> \"it\"\\: 100%"
export LOUD

# silent NAME: neither the text nor the names of files in the folder said.
silent() {
  is "$(grep -l -r -F -e Hunter said; find said -name '*Hunter*')" '' "$1"
}

# shouts NAME CODE ARGUMENT...: what a command prints and writes is silent.
shouts() {
  name=$1
  code=$2
  shift 2
  rm -rf said
  mkdir said
  timeout 120 "$DURAKIT" "$@" > said/out 2> said/err < /dev/null
  is $? "$code" "$name: the exit code" || diag "$(tail -n 5 said/err)"
  silent "$name: nothing of the secret"
}

for format in tap human; do
  shouts "a check, $format" 1 check ./loud.so --only turn/birth --set "password=$LOUD" \
    --format $format --out said/results
  like "$(cat said/out)" 'process [0-9]* (\*\*\*' "$format: a process that was left behind"
  like "$(cat said/results/results.jsonl)" '\*\*\*' "$format: masked in the results"
  export LOUD_FILE=1
  shouts "a file, $format" 1 check ./loud.so --only turn/birth --set "password=$LOUD" \
    --format $format --out said/results
  unset LOUD_FILE
  like "$(cat said/out)" 'the file \*\*\* (in the working directory' \
    "$format: a file that was left behind"
  shouts "an error, $format" 1 check ./loud.so --only turn/birth --set-env password=LOUD \
    --format $format --out said/results --classify 0
  shouts "a key that there is not, $format" 2 check ./loud.so --set "passwort=$LOUD" \
    --format $format --out said/results
done
if command -v valgrind > /dev/null && [ -z "${SANITIZER_CFLAGS:-}" ]; then
  shouts 'under memcheck' 1 check ./loud.so --only turn/birth --set "password=$LOUD" --memcheck \
    --out said/results --classify 0
  like "$(cat said/results/checks/*/*/memcheck.xml)" '\*\*\*' "Valgrind's own words are masked"
else
  skip 'under memcheck' 'Valgrind is not here, or cannot be used'
fi
shouts 'probe' 0 probe ./loud.so --set "password=$LOUD"
shouts 'probe, as JSON' 0 probe ./loud.so --json --set-env password=LOUD
shouts 'what is repeated' 1 check ./loud.so --only turn/birth --set "password=$LOUD" --out said/r
cp said/r/results.jsonl said.jsonl
shouts 'repro' 1 repro said.jsonl --set "password=$LOUD"
LOUD_FAIL=1
export LOUD_FAIL
shouts 'a probe that fails' 1 probe ./loud.so --set "password=$LOUD"
for words in 'status x' 'wait x --timeout 1s' 'cancel x' 'history x' 'raise x e' \
  'start --create --name n x'; do
  # shellcheck disable=SC2086
  shouts "durakit $words" 4 $words --provider ./loud.so --set "password=$LOUD"
done
unset LOUD LOUD_FAIL

# gdb prints the command that it starts.
mkdir bin
cat > bin/gdb <<'EOF'
#!/bin/sh
while [ "$1" != --args ]; do shift; done
shift
echo "Starting program: $*"
exec "$@"
EOF
chmod +x bin/gdb
PATH=$scratch/bin:$PATH "$DURAKIT" check ./secret.so --only turn/birth --gdb --set user=me \
  --set password=hunter2-in-gdb > tap 2> err
like "$(cat tap)" '^Starting program: .* --in-process .*--set-env password=' 'gdb starts it'
quiet 'a secret is not on the command line, nor in what it prints' hunter2-in-gdb tap
like "$(cat tap)" 'password is \*\*\*' 'which has it'
like "$(cat tap)" "repro .*--set user=me --set 'password=\*\*\*'" 'as if it were given with --set'

zoo=$top_builddir/conformance/fixtures/zoo
if [ -f "$zoo/exit-in-constructor.so" ]; then
  "$DURAKIT" check "$zoo/exit-in-constructor.so" --only turn/birth --out results \
    --set secret=hunter2-unasked > tap 2> err
  is $? 1 'a plugin that cannot be asked what is secret'
  quiet 'then every setting is' hunter2-unasked tap err results
else
  skip 'a plugin that cannot be asked' 'the zoo is not built'
fi

done_testing
