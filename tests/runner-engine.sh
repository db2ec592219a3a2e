#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plugins that end, hang or print: the run goes on over all checks, and none of them passes.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
zoo=$top_builddir/conformance/fixtures/zoo
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
[ -f "$zoo/blocks.so" ] || skip_all 'the zoo is not built'
scratch
cd "$scratch" || exit 99
"$DURAKIT" list checks | sed 's/ .*//' > checks
all=$(wc -l < checks | tr -d ' ')

# judges FIXTURE VERDICT JOBS: certify goes over every check, all with this verdict.
judges() {
  "$DURAKIT" certify "$zoo/$1.so" --format tap --timeout-scale 0.05 "-j$3" > tap 2> err
  is $? 1 "$1 -j$3: exit 1"
  sed -n 's/^not ok [0-9]* - //p' tap > points
  cmp -s points checks
  ok $? "$1 -j$3: every check has its point, in order, and fails"
  is "$(grep -c "^  verdict: \"$2\"" tap)" "$all" "$1 -j$3: each is $2"
  is "$(grep -c '^Bail out' tap)" 0 "$1 -j$3: nothing is forged"
}

for jobs in 1 4; do
  judges exit-in-constructor early-exit $jobs
  judges exit-in-open early-exit $jobs
  judges hangs-in-constructor timeout $jobs
done

# Not every check calls the operation at fault, but all are run, and those that do have the verdict.
goes_on() {
  "$DURAKIT" certify "$zoo/$1.so" --format tap --timeout-scale 0.05 "-j$3" > tap 2> err
  is $? 1 "$1 -j$3: exit 1"
  sed -n -e 's/^not ok [0-9]* - //p' -e 's/^ok [0-9]* - //p' tap | sed 's/ # SKIP.*//' > points
  cmp -s points checks
  ok $? "$1 -j$3: every check has its point, in order"
  [ "$(grep -c "^  verdict: \"$2\"" tap)" -gt "$((all / 2))" ]
  ok $? "$1 -j$3: most are $2"
  is "$(grep -c -e '^Bail out' -e '^::' tap)" 0 "$1 -j$3: nothing is forged"
}

for jobs in 1 4; do
  goes_on exit-in-operation early-exit $jobs
  goes_on exit-in-thread early-exit $jobs
  goes_on blocks timeout $jobs
  goes_on prints-ok host-damage $jobs
  goes_on closes-stdout host-damage $jobs
  goes_on prints-bail-out host-damage $jobs
done

# ---- while it is being written -------------------------------------------------------------------

missing=$zoo/missing-renew-work-item-lock.so
"$DURAKIT" certify "$missing" --format tap > tap 2> err
is $? 3 'certify refuses a plugin that lacks an operation'
"$DURAKIT" check "$missing" --next --format human > human 2> err
is $? 5 'check --next goes on, and is incomplete'
like "$(cat human)" '9 of 10 required operations are written; next: renew_work_item_lock' \
  'and names the next one'
[ "$(grep -c 'skipped: .*renew_work_item_lock.* not written yet' human)" -gt 0 ]
ok $? 'what needs it waits for it'

# ---- debuggers -----------------------------------------------------------------------------------

"$DURAKIT" check "$MODEL" --only turn/birth --in-process > out 2> err
is $? 5 'a pass in the own process is no verdict'
like "$(cat err)" 'no verdict' 'and that is said'
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
  '^durakit [0-9.]*, ABI 2\.0 draft 1, contract .*, manifest 0x[0-9a-f]*$' '--version'
for command in certify check list explain probe repro selftest clean; do
  like "$("$DURAKIT" $command --help)" "^  durakit $command" "$command --help shows examples"
done
like "$("$DURAKIT" probe "$MODEL")" '^provider  *model ' 'probe'
like "$("$DURAKIT" probe "$MODEL" --json)" '"name": "model"' 'probe --json'
like "$("$DURAKIT" explain CANCEL-5)" 'cancel/ack-after-deletion' 'explain a clause'
like "$("$DURAKIT" explain cancel/ack-after-deletion)" 'CANCEL-5' 'explain a check'
like "$("$DURAKIT" explain cancel/only-unlocked)" 'cancel/locked-row' 'explain a mutant'
for list in checks clauses mutants; do
  is "$("$DURAKIT" list $list | wc -l)" "$("$DURAKIT" list $list --json | grep -c '"id"')" \
    "list $list says the same in JSON"
done
DURAKIT_PLUGIN_PATH=$(dirname "$MODEL") "$DURAKIT" list providers > out
like "$(cat out)" '^model ' 'list providers'

done_testing
