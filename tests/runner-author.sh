#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What an author reads while a plugin is incomplete or wrong: an operation that is still to be
# written is no failure, and no failure is reported as another one.
# needs: conformance/fixtures/zoo/blocks.so conformance/fixtures/zoo/hangs-in-constructor.so

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] || skip_all 'the command is not built'
scratch
cd "$scratch" || exit 99
minimal=$top_srcdir/examples/provider-minimal/minimal.c

# build NAME: NAME.c becomes NAME.so, if it differs from the example at all.
build() {
  ! cmp -s "$1.c" "$minimal"
  ok $? "$1: differs from the example"
  ${CC:-cc} -std=gnu11 -O1 -g -shared -fPIC ${SANITIZER_CFLAGS:-} -I"$top_srcdir/core/include" \
    "$1.c" -o "$1.so" > cc.out 2>&1
  ok $? "$1: is built" || diag "$(cat cc.out)"
}

# ---- the first operations ------------------------------------------------------------------------

cp "$minimal" first10.c
left=9
for operation in read_history renew_work_item_lock abandon_work_item ack_work_item \
  fetch_work_item renew_orchestration_item_lock abandon_orchestration_item \
  ack_orchestration_item fetch_orchestration_item enqueue_for_orchestrator; do
  sed "s/\.$operation = $operation,//" "first$((left + 1)).c" > "first$left.c"
  ! cmp -s "first$left.c" "first$((left + 1)).c"
  ok $? "the first $left: $operation is cut out of the table" || break
  build "first$left"
  "$DURAKIT" check "./first$left.so" --next --format tap > tap 2> err
  is $? 5 "the first $left: exit 5, incomplete"
  is "$(grep '^not ok' tap)" '' "the first $left: what is not written yet is no failure"
  left=$((left - 1))
done

# ---- an end in close -----------------------------------------------------------------------------

sed '/^static void store_close/,/^}/s/  free(s);/  exit(3);/' "$minimal" > exits.c
build exits
"$DURAKIT" check ./exits.so --only queue/any-payload --format human > human 2> err
like "$(cat err)" 'closing a store ended the process with exit 3' \
  'an end in close is not told as one in open'

# ---- a store without room ------------------------------------------------------------------------

sed 's/^  return enqueue(begin(self, call, "enqueue_for_orch.*/ \
    struct op full = begin(self, call, "enqueue_for_orchestrator"); \
    if (full.s->counter > 40) \
      return refuse(\&full, DK_UNAVAILABLE, "no room on the disk"); \
    return enqueue(full, MESSAGE, item);/' "$minimal" > full.c
build full
"$DURAKIT" check ./full.so --only err/alone-and-healthy --format tap > tap 2> err
is $? 1 'a store that says it has no room, where there is: exit 1'
like "$(cat tap)" '^  verdict: "fail"' 'a violation'
like "$(cat tap)" '^  clause: "ERR-1"' 'of ERR-1'
like "$(cat tap)" '^  found: "DK_UNAVAILABLE.*no room on the disk.*the kit itself can write' \
  "with the provider's text"

# What the kit meets itself is the machine's.
sed -e 's/^#include <stdlib.h>$/#include <fcntl.h>\n&/' \
  -e 's/^    if (full.s->counter > 40)/& while (open("\/dev\/null", O_RDONLY) >= 0); &/' \
  full.c > taken.c
build taken
(ulimit -n 256 && exec "$DURAKIT" check ./taken.so --only err/alone-and-healthy --format tap) \
  > tap 2> err
is $? 4 'no descriptor is left: exit 4, trouble of the machine'
like "$(cat tap)" '^  verdict: "error"' 'and no violation'
like "$(cat tap)" '^  found: "DK_UNAVAILABLE.*the kit cannot write .*Too many open files' \
  'which the kit has met, too'

# ---- a store that cannot be opened ---------------------------------------------------------------

# refuses_open NAME: the example, whose open always says DK_UNAVAILABLE.
refuses_open() {
  ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -shared -fPIC ${SANITIZER_CFLAGS:-} \
    -I"$top_srcdir/core/include" "-DMODEL=\"$MODEL\"" -DOPEN=DK_UNAVAILABLE "$@" \
    "$top_srcdir/tests/runner-refusing.c" -o away.so -ldl > cc.out 2>&1
  ok $? "a provider whose open always says DK_UNAVAILABLE is built: $*" || diag "$(cat cc.out)"
}

refuses_open
for command in probe 'check --next' 'check --only turn/birth' 'certify --no-memcheck'; do
  "$DURAKIT" $command ./away.so > out 2> err
  is $? 1 "$command: a store that nothing keeps from being opened: exit 1" || diag "$(cat out err)"
  like "$(cat err)" '^durakit: ./away.so: open answered DK_UNAVAILABLE.*failure (ERR-1)' \
    "$command: a violation of ERR-1, in words"
  like "$(cat err)" '^  found .*nothing answers.*the kit itself can write there' \
    "$command: with the provider's and what the kit has seen"
done
is "$(grep -c '^  clause: "ERR-1"' out)" "$(grep -c '^  verdict: "fail"' out)" \
  'the checks say so, too'
if [ -n "${VALGRIND-}" ]; then
  "$DURAKIT" check ./away.so --only turn/birth --memcheck > out 2> err
  is $? 1 'under Valgrind, too'
  like "$(cat out)" '^  clause: "ERR-1"' 'by the same clause'
fi

# If the kit fails itself, or cannot check something, the plugin is not at fault.
"$DURAKIT" check ./away.so --only turn/birth --set "store=$scratch/no/folder/s" > out 2> err
is $? 4 'a folder that does not exist: exit 4'
like "$(cat err)" '^  found .*the kit cannot write in .*No such file' 'which the kit has met, too'
long=$(printf '%0300d' 0)
"$DURAKIT" check ./away.so --only turn/birth --set "store=$scratch/$long" > out 2> err
is $? 4 'a name that is too long: exit 4'
like "$(cat err)" '^  found .*the kit cannot write in .*too long' 'which the kit has met, too'
refuses_open -DSHARED=3
"$DURAKIT" check ./away.so --only turn/birth > out 2> err
is $? 4 'a server, which the kit cannot look at: exit 4'
refuses_open '-DADDRESS="place"'
"$DURAKIT" check ./away.so --only turn/birth --set place=db.example:5432 > out 2> err
is $? 4 'an address that the user gave: exit 4'
"$DURAKIT" check ./away.so --only turn/birth > out 2> err
is $? 1 'and none: exit 1'

# ---- an operation that does not return -----------------------------------------------------------

sed 's/^  return renew(begin(self, call, "renew_work_item_lock".*/ \
    for (volatile int i = 0; i == 0;) continue; &/' "$minimal" > loops.c
build loops
"$DURAKIT" check ./loops.so --only token/unknown-work-token --format tap --timeout-scale 0.2 \
  > tap 2> err
is $? 1 'an operation that loops: exit 1'
like "$(cat tap)" '^  verdict: "timeout"' 'a time-out'
like "$(cat tap)" '^  message: "renew_work_item_lock did not return' 'which names it'
like "$(cat tap)" '^  next: ".*--gdb' 'and says how to see where it is'
is "$(grep -c '^  usual_cause:' tap)" 0 'and guesses no cause'
"$DURAKIT" check ./loops.so --only token/unknown-work-token --format human --timeout-scale 0.2 \
  > human 2> err
like "$(cat human)" '^    next  .*--gdb' 'so does the human view'
is "$(grep -c '^    usually' human)" 0 'which guesses no cause either'

# ---- operations that are slow --------------------------------------------------------------------

# A millisecond an operation, with a fifth of the time, is as five with all of it.
sed 's/^static struct op begin(.*{$/&\n  nanosleep(\&(struct timespec){.tv_nsec = 1000000}, NULL);/
  s/^#include <stdlib.h>$/&\n#include <time.h>/' "$minimal" > slow.c
build slow
"$DURAKIT" check ./slow.so --only ack/refused-changes-nothing --format tap --timeout-scale 0.2 \
  > tap 2> err
is $? 0 'a correct provider that is slow passes: its operations end' || diag "$(cat tap err)"
# On a busy machine the one call that is made just then may take half of 50 ms: then it is blamed.
for _ in 1 2 3 4 5; do
  "$DURAKIT" check ./slow.so --only ack/refused-changes-nothing --format tap --timeout-scale 0.01 \
    > tap 2> err
  code=$?
  [ $code -eq 1 ] || break
done
is $code 7 'one that is slower than a run can wait for: exit 7' || diag "$(cat tap err)"
like "$(cat tap)" '^  verdict: "unexercised"' 'which is no violation'
like "$(cat tap)" '^  message: "the store is too slow for this check.*--timeout-scale' \
  'and is reported, with what helps'
sed 's/^  return renew(begin(self, call, "renew_work_item_lock".*/ \
    for (volatile int i = 0; i == 0;) continue; &/' slow.c > slow-loops.c
build slow-loops
"$DURAKIT" check ./slow-loops.so --only token/unknown-work-token --format tap \
  --timeout-scale 0.2 > tap 2> err
is $? 1 'a slow one that loops, too: exit 1'
like "$(cat tap)" '^  message: "renew_work_item_lock did not return' 'and still a time-out'

# ---- many failures -------------------------------------------------------------------------------

"$DURAKIT" check ./loops.so --only token/unknown-work-token,token/expired-work \
  --format human --timeout-scale 0.2 > human 2> err
like "$(cat human)" '^violated: a time-out in renew_work_item_lock (2 checks)$' 'an overview'
is "$(grep -c '^✗ .*  timeout: as in token/unknown-work-token$' human)" 1 \
  'what hangs at the same place is printed once'
sed 's/^  if (!found)$/  if (found) abort();\n&/' "$minimal" > crashes.c
build crashes
"$DURAKIT" check ./crashes.so --only 'turn/*' --format human > human 2> err
is "$(grep -c '^    found .*SIGABRT' human)" 1 'one crash is printed once'
[ "$(grep -c '^✗ .*  crash: as in turn/' human)" -gt 5 ]
ok $? 'all others refer to it'
like "$(cat human)" '^violated: ABI-7 ([1-9][0-9]* checks)$' 'and the overview counts them'
"$DURAKIT" check ./crashes.so --only 'turn/*' --format tap > tap 2> err
like "$(cat tap)" '^# violated: ABI-7 ([1-9][0-9]* checks)$' 'as TAP does'
is "$(grep -c '^  found: .*SIGABRT' tap)" "$(grep -c '^  verdict: "crash"' tap)" \
  'where each failure is whole'
"$DURAKIT" check ./crashes.so --only turn/birth --format human > human 2> err
is "$(grep -c '^violated' human)" 0 'one failure needs no overview'

# ---- what hung natively --------------------------------------------------------------------------

zoo=$top_builddir/conformance/fixtures/zoo
if [ -z "${VALGRIND-}" ] || [ ! -f "$zoo/hangs-in-constructor.so" ]; then
  skip 'what hung natively is not run again' 'no Valgrind, or no zoo'
else
  "$DURAKIT" certify "$zoo/blocks.so" --format tap --timeout-scale 0.01 > tap 2> err
  # Unless the machine is so busy that not even loading was done.
  [ "$(grep -c '^  reason: "not run under Valgrind, because .* hung natively"' tap)" -gt 100 ] ||
    grep -q '^# 5 checks ended as ' tap
  ok $? 'what hung natively is not run again under Valgrind'
  began=$(date +%s)
  "$DURAKIT" certify "$zoo/hangs-in-constructor.so" --format tap --timeout-scale 0.01 > tap 2> err
  is $? 1 'a plugin that hangs, certified in full: exit 1'
  is "$(grep -c '^ok' tap)" 0 'nothing of it passes'
  is "$(sed -n '/^not ok .*@memcheck/{n
n
n
p
}' tap | grep -c '^  reason: "not run, because 5 checks ended as ')" \
    "$(($("$DURAKIT" list checks | grep -vc '^memory/cycle ') + 1))" \
    'nothing of it is run under Valgrind'
  is "$(grep -c '^not ok' tap)" "$(sed -n 's/^1\.\.//p' tap)" 'each has its point all the same'
  diag "it took $(($(date +%s) - began)) s"
fi

# ---- a store that is busy ------------------------------------------------------------------------

if [ ! -f "${SQLITE_PLUGIN-}" ]; then
  skip 'a store that is busy' 'SQLite is left out of this build'
else
  run_ok 'a call that gets DK_BUSY is repeated, and is no error of the kit' \
    "$DURAKIT" check "$SQLITE_PLUGIN" --only call/back-from-the-queue --set busy_timeout=5
fi

done_testing
