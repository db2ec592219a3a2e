#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plugins that end, hang or print: the run continues with all checks, and none of them passes.
# needs: zoo

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
zoo=$top_builddir/conformance/fixtures/zoo
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
[ -f "$zoo/blocks.so" ] || skip_all 'the zoo is not built'
scratch
cd "$scratch" || exit 99
"$DURAKIT" list checks | sed 's/ .*//' > checks
all=$(wc -l < checks | tr -d ' ')

# certify_as FIXTURE VERDICT JOBS: what will not end in any time is given little.
certify_as() {
  case $2 in timeout) scale=0.01 ;; *) scale=0.05 ;; esac
  "$DURAKIT" certify "$zoo/$1.so" --effort quick --no-memcheck --format tap --timeout-scale $scale \
    "-j$3" > tap 2> err
}

# judges FIXTURE VERDICT JOBS: the first five checks have this verdict, and those that ran beside
# them; all others are reported as not run.  (Those that need a server,
# durakit.admin/1 or release_fetch are skipped where the plugin gets so far that it says it has
# none.)
judges() {
  certify_as "$@"
  is $? 1 "$1 -j$3: exit 1"
  sed -n -e 's/^not ok [0-9]* - //p' -e 's/^ok [0-9]* - \(.*\) # SKIP needs a server .*/\1/p' \
    -e 's/^ok [0-9]* - \(.*\) # SKIP the provider does not declare durakit.*/\1/p' \
    -e 's/^ok [0-9]* - \(.*\) # SKIP needs release_fetch, .*/\1/p' tap > points
  cmp -s points checks
  ok $? "$1 -j$3: every check has its point, in order, and fails"
  judged=$(grep -c "^  verdict: \"$2\"" tap)
  is "$(grep -c '^  verdict: "not-run"' tap)" "$((all - $(grep -c '^ok' tap) - judged))" \
    "$1 -j$3: each is $2, or not run"
  [ "$judged" -ge 5 ] && [ "$judged" -lt $((5 + $3)) ]
  ok $? "$1 -j$3: five are judged, and those that ran beside them" || diag "$judged are"
  is "$(grep -c '^Bail out' tap)" 0 "$1 -j$3: nothing is forged"
}

judges exit-in-constructor early-exit 1
judges exit-in-open early-exit 1
judges exit-in-open early-exit 4
judges hangs-in-constructor timeout 4

# Not every check calls the operation at fault, but all are run, and those that do have the verdict.
goes_on() {
  certify_as "$@"
  is $? 1 "$1 -j$3: exit 1"
  sed -n -e 's/^not ok [0-9]* - //p' -e 's/^ok [0-9]* - //p' tap | sed 's/ # SKIP.*//' > points
  cmp -s points checks
  ok $? "$1 -j$3: every check has its point, in order"
  if [ "$2" = timeout ] && grep -q '^# 5 checks ended as ' tap; then
    skip "$1 -j$3: most are $2" 'the machine is busy: not even loading was done in time'
  else
    [ "$(grep -c "^  verdict: \"$2\"" tap)" -gt "$((all / 2))" ]
    ok $? "$1 -j$3: most are $2"
  fi
  is "$(grep -c -e '^Bail out' -e '^::' tap)" 0 "$1 -j$3: nothing is forged"
}

# One after the other is sampled here: zoo-hostile.sh runs each plugin in both ways.
goes_on exit-in-operation early-exit 1
goes_on exit-in-operation early-exit 4
goes_on exit-in-thread early-exit 4
goes_on blocks timeout 4
judges prints-ok host-damage 1
judges prints-ok host-damage 4
judges closes-stdout host-damage 4
judges prints-bail-out host-damage 4

# ---- what the runner is given --------------------------------------------------------------------

# A parent that ignores SIGCHLD, as some do in Python, passes that on.
timeout 60 perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV' -- \
  "$DURAKIT" check "$MODEL" --only turn/birth > tap 2> err
is $? 0 'a run under a parent that ignores SIGCHLD' || diag "$(cat tap err)"

# A parent that blocks signals passes that on, too; a crash must be one all the same.
for name in ABRT SEGV; do
  case $name in ABRT) fixture=abort-in-operation ;; SEGV) fixture=segfault-in-operation ;; esac
  if env "--block-signal=$name" true 2> env.err; then
    env "--block-signal=$name" "$DURAKIT" check "$zoo/$fixture.so" --only turn/birth > tap 2> err
    is $? 1 "a parent that blocks SIG$name: exit 1"
    like "$(cat tap)" '^  verdict: "crash"' "a parent that blocks SIG$name: a crash is one" \
      || diag "$(cat tap err)"
    run_ok "a parent that blocks SIG$name: the canaries" env "--block-signal=$name" \
      "$DURAKIT" check "$MODEL" --only turn/birth
  else
    skip "a parent that blocks SIG$name" 'this env has no --block-signal'
  fi
done

# A shell that becomes the runner leaves it its children, which are no work of a provider.
cat > script <<'EOF'
sh -c 'echo $$ > stranger; while :; do sleep 1; done' &
until [ -s stranger ]; do :; done
exec "$DURAKIT" check "$MODEL" --only turn/birth
EOF
export DURAKIT MODEL
sh script > tap 2> err
is $? 0 'a run that was given a child'
kill -0 "$(cat stranger)" 2> kill.err
ok $? 'does not end it'
kill "$(cat stranger)"

"$DURAKIT" check "$zoo/blocks.so" --only turn/birth --timeout-scale 0.05 > tap 2> err
timed_out='did not end in time[^ ]* [0-9]* operations* in [0-9]* ms'
like "$(cat tap)" "$timed_out, .*; if the store is slow[^ ]* raise --time" \
  'a time-out says how far the check came, and what helps a slow store'

# ---- damage that is done while it is loaded ------------------------------------------------------

# damage NAME FLAG: a plugin that does it.
damage() {
  ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC ${SANITIZER_CFLAGS:-} "$2" \
    "$top_srcdir/tests/runner-damage.c" -o "$1.so" > cc.out 2>&1
  ok $? "$1: is built" || diag "$(cat cc.out)"
}

damage fill -DFILL
"$DURAKIT" check ./fill.so --only turn/birth --set store=x > tap 2> err
is $? 1 'fill: the runner survives what lies in the shared memory' || diag "$(cat err)"
like "$(cat tap)" '^  verdict: "early-exit"' 'fill: and sees how it ended'
"$DURAKIT" probe ./fill.so > out 2> err
[ $? -le 5 ]
ok $? 'fill: so does probe' || diag "$(cat err)"
for fd in 1 2; do
  damage "flood$fd" "-DFLOOD=$fd"
  "$DURAKIT" check "./flood$fd.so" --only turn/birth --timeout-scale 4 > tap 2> err
  is $? 1 "flood$fd: exit 1"
  like "$(cat tap)" '^  verdict: "host-damage"' "flood$fd: ended for what it wrote"
done

# ---- a store with a clock of its own -------------------------------------------------------------

sed 's/DK_CLOCK_HOST/DK_CLOCK_STORE/' "$top_srcdir/tests/runner-secret.c" > clock.c
${CC:-cc} -std=gnu11 -shared -fPIC ${SANITIZER_CFLAGS:-} -I"$top_srcdir/core/include" \
  -I"$top_srcdir" clock.c -o clock.so > cc.out 2>&1
ok $? 'a provider with a clock of its own is built' || diag "$(cat cc.out)"
"$DURAKIT" check ./clock.so --only turn/birth > tap 2> err
like "$(cat tap)" 'time-out 30000 ms a check' 'its checks may wait for leases in real time'

# ---- while it is being written -------------------------------------------------------------------

missing=$zoo/missing-renew-work-item-lock.so
"$DURAKIT" certify "$missing" --format tap > tap 2> err
is $? 3 'certify refuses a plugin that lacks an operation'
"$DURAKIT" check "$missing" --next --format human > human 2> err
is $? 5 'check --next continues, and is incomplete'
like "$(cat human)" '9 of 10 required operations are written; next: renew_work_item_lock' \
  'and names the next one'
is "$(grep -c 'skipped: ' human)" 0 'and shows nothing of what waits for it'
like "$(cat human)" '^RESULT=.* skipped=[1-9]' 'but counts it'
"$DURAKIT" check "$missing" --next --format human --verbose > human 2> err
[ "$(grep -c 'skipped: .*renew_work_item_lock.* not written yet' human)" -gt 0 ]
ok $? 'what needs it waits for it, and --verbose shows that'
"$DURAKIT" check "$missing" --next --format tap > tap 2> err
[ "$(grep -c '# SKIP .*renew_work_item_lock.* not written yet' tap)" -gt 0 ]
ok $? 'as TAP does'
"$DURAKIT" probe "$missing" > out 2> err
is $? 3 'probe of it: exit 3'
like "$(cat out)" '^limits  *id ' 'probe describes it'
like "$(cat out)" '^missing  *renew_work_item_lock$' 'and lists what is missing'
like "$(cat err)" 'a required operation is missing' 'and reports that'
"$DURAKIT" probe "$zoo/missing-all-operations.so" --json > out 2> err
is $? 3 'probe of one without operations: exit 3'
like "$(cat out)" '"read_history"' 'probe --json lists what is missing'
"$DURAKIT" probe "$zoo/hangs-in-constructor.so" --timeout-scale 0.02 > out 2> err
is $? 1 'probe of one that hangs: exit 1'
like "$(cat err)" 'did not end within 100 ms' 'its time is 5 s, times --timeout-scale'

# ---- debuggers -----------------------------------------------------------------------------------

"$DURAKIT" check "$MODEL" --only turn/birth --in-process > out 2> err
is $? 5 'a pass in the process of the command is not a verdict'
like "$(cat err)" 'not a verdict' 'and it says so'
"$DURAKIT" check "$MODEL" --only 'turn/*' --in-process > out 2> err
is $? 2 'only one check can be run so'
mkdir bin
printf '#!/bin/sh\nprintf "%%s\\n" "$@"\n' > bin/gdb
chmod +x bin/gdb
PATH=$scratch/bin:$PATH "$DURAKIT" check "$MODEL" --only turn/birth --gdb > out 2> err
is $? 0 '--gdb starts gdb'
like "$(cat out)" '^--in-process$' 'on the command itself'
like "$(cat out)" '^turn/birth$' 'with the one check'

# ---- what the other commands say -----------------------------------------------------------------

like "$("$DURAKIT" --version)" \
  '^durakit [0-9.]*, ABI 2\.4 draft 1, contract .*, manifest 0x[0-9a-f]*$' '--version'
for command in certify check list explain probe repro selftest clean bench; do
  like "$("$DURAKIT" $command --help)" "^  durakit $command" "$command --help shows examples"
done
like "$("$DURAKIT" probe "$MODEL")" '^provider  *model ' 'probe'
like "$("$DURAKIT" probe "$MODEL" --json)" '"name": "model"' 'probe --json'
like "$("$DURAKIT" explain CANCEL-5)" 'cancel/ack-after-deletion' 'explain a clause'
like "$("$DURAKIT" explain cancel/ack-after-deletion)" 'CANCEL-5' 'explain a check'
like "$("$DURAKIT" explain cancel/only-unlocked)" 'cancel/locked-row' 'explain a mutant'
like "$("$DURAKIT" explain lock-stealing)" 'cancel/locked-row' 'explain a topic'
like "$("$DURAKIT" list topics)" 'mass-cancellation' 'list the topics'
like "$("$DURAKIT" list checks | grep '^cancel/locked-row ')" '\[lock-stealing\]' \
  'a check is listed with its topics'
for list in checks clauses mutants; do
  is "$("$DURAKIT" list $list | wc -l)" "$("$DURAKIT" list $list --json | grep -c '"id"')" \
    "list $list says the same in JSON"
done
DURAKIT_PLUGIN_PATH=$(dirname "$MODEL") "$DURAKIT" list providers > out
like "$(cat out)" '^model ' 'list providers'

# ---- what ends before the plugin is loaded -------------------------------------------------------

if [ -n "${SANITIZER_CFLAGS-}" ]; then
  skip 'a process that ends before it loads' 'a sanitizer has to be the first library'
else
  ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC "$top_srcdir/tests/runner-ended.c" \
    -o "$scratch/ended.so" -ldl > "$scratch/cc" 2>&1
  ok $? 'what ends it is built' || diag "$(cat "$scratch/cc")"
  FROM=25 LD_PRELOAD="$scratch/ended.so" "$DURAKIT" check "$MODEL" --only 'turn/*,token/*' \
    --format tap > "$scratch/tap" 2>&1
  is $? 4 'processes that are killed before they load the plugin: exit 4' ||
    diag "$(tail -n 5 "$scratch/tap")"
  is "$(grep -c '^  clause: "ABI-7"\|^  verdict: "crash"' "$scratch/tap")" 0 'no clause is violated'
  [ "$(grep -c '^  verdict: "error"' "$scratch/tap")" -gt 3 ]
  ok $? 'each is an error of the kit'
  like "$(cat "$scratch/tap")" \
    '^  message: .*by SIGKILL.* before it began to load the plugin.*memory' \
    'in words'
fi

done_testing
