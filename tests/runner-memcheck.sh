#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks under Valgrind: what each kind of finding, and of end, looks like; what is refused.
# needs: zoo

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
zoo=$top_builddir/conformance/fixtures/zoo
[ -n "${VALGRIND:-}" ] || skip_all 'Valgrind is left out of this build'
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers do not run under Valgrind'
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
[ -f "$zoo/leaks-one-byte.so" ] || skip_all 'the zoo is not built'
scratch
cd "$scratch" || exit 99

# under EXIT FIXTURE CHECK OPTION...: one check under Valgrind; its output is in tap.
under() {
  under_code=$1
  under_name=$2
  under_check=$3
  shift 3
  "$DURAKIT" check "$zoo/$under_name.so" --only "$under_check" --memcheck --classify 0 "$@" \
    > tap 2> err
  is $? "$under_code" "$under_name: exit $under_code" || diag "$(cat err tap)"
}

# ---- findings ------------------------------------------------------------------------------------

ack=work/ack-enqueues-completion
under 6 leaks-one-byte $ack --out out
like "$(cat tap)" "^not ok 1 - $ack@memcheck\$" \
  'a leak: the id ends in its mode'
like "$(cat tap)" '^  verdict: "memory"$' 'a leak: its verdict'
like "$(cat tap)" '^  clause: "MEM-3"$' 'a leak: its clause'
like "$(cat tap)" '^  message: "memcheck.x3a .*definitely lost, in [a-z_]* (memory\.c:[0-9]*)"$' \
  'a leak: kind, function, file and line'
like "$(cat tap)" '^  where: "memory\.c:[0-9]*"$' 'a leak: where'
like "$(cat tap)" '^    - "MEM-3, provider.x3a .* malloc .* < leak_a_byte (memory\.c:[0-9]*)' \
  'a leak: its stack'
like "$(cat tap)" "^  repro: \".* --only $ack --memcheck --seed" \
  'a leak: the command that runs it again'
like "$(cat tap)" '^# RESULT=MEMORY .* failed=0 .* memory=1 ' 'a leak: the last line'
[ -s "out/checks/$ack@memcheck/memcheck.xml" ]
ok $? 'a leak: --out keeps what Valgrind wrote'
like "$(cat out/results.jsonl)" '"mode":"memcheck","verdict":"memory"' \
  'a leak: results.jsonl has its mode'
like "$(cat out/results.jsonl)" '"findings":\[{"owner":"provider","clause":"MEM-3"' \
  'a leak: and the finding'
"$DURAKIT" repro out/results.jsonl --classify 0 > tap 2> err
is $? 6 'repro runs it under Valgrind again' || diag "$(cat err tap)"
like "$(cat tap)" "^not ok 1 - $ack@memcheck\$" 'repro: the same finding'

under 6 writes-one-past turn/commit-frees
like "$(cat tap)" \
  '^  message: "memcheck.x3a Invalid write of size 1, in write_one_past (memory\.c:[0-9]*)"$' \
  'an invalid write: kind, function, file and line'
like "$(cat tap)" '^  found: ".*Address .* 0 bytes after a block of size .*x3a malloc ' \
  'an invalid write: and whose memory it is beside'
under 6 undefined-byte $ack
like "$(cat tap)" '^  clause: "MEM-1"$' 'an undefined byte that is handed up: its clause'
like "$(cat tap)" 'item\.payload, byte 3 of' 'an undefined byte: which one'

# ---- ends ----------------------------------------------------------------------------------------

under 1 blocks turn/commit-frees --timeout-scale 0.05
like "$(cat tap)" '^  verdict: "timeout"$' 'a hang: its verdict'
like "$(cat tap)" '^    - "ended by SIGTERM.* < ' 'a hang: where it hangs'
under 1 segfault-in-operation turn/commit-frees
like "$(cat tap)" '^  verdict: "crash"$' 'a crash: its verdict'
like "$(cat tap)" '^    - "ended by SIGSEGV.*x3a .*(.*\.c:[0-9]*)' 'a crash: where'
under 1 exit-in-operation turn/commit-frees
like "$(cat tap)" '^  verdict: "early-exit"$' 'an early exit is no pass here either'
"$DURAKIT" check "$zoo/constructor-thread.so" --only turn/commit-frees --memcheck --classify 0 \
  > tap 2> err
is $? 0 'a constructor that starts a thread' || diag "$(cat err tap)"
like "$(cat tap)" '^# memcheck: Valgrind was started anew for each check, .* threads' \
  'and its checks are not copies, which is reported'

# ---- what passes ---------------------------------------------------------------------------------

"$DURAKIT" check "$MODEL" --only 'memory/cycle,turn/birth,TURN-10' --memcheck > tap 2> err
is $? 0 'the model passes' || diag "$(cat err tap)"
like "$(cat tap)" '^ok [0-9]* - memory/cycle@memcheck$' 'and its cycles leave nothing'
is "$(grep -c unexercised tap)" 0 'no race is judged for its overlaps'
like "$(cat tap)" '^# suppression used: ' 'suppressions that were used are listed'
like "$(cat tap)" ', mode memcheck, ' 'the mode is reported'
under 6 grows-in-a-global memory/cycle
like "$(cat tap)" '^  found: ".*, more of it after each of [34] cycles' \
  'growth over cycles is a finding'

cat > constructor.c <<'TEXT'
#include <stdlib.h>
__attribute__((constructor)) static void
write_at_load(void)
{
  volatile char *bytes = malloc(5);

  bytes[5] = 1;
  free((void *)bytes);
}
TEXT
${CC:-cc} -g -fPIC -shared -I"$top_srcdir/core/include" constructor.c \
  "$top_srcdir/examples/provider-minimal/minimal.c" -o constructor.so > cc.out 2>&1
ok $? 'a plugin whose constructor writes past its memory is built' || diag "$(cat cc.out)"
"$DURAKIT" check ./constructor.so --only 'turn/birth,memory/cycle' --memcheck --classify 0 \
  > tap 2> err
is $? 6 'what linking it does wrong is found' || diag "$(cat err tap)"
like "$(cat tap)" '^ok 1 - turn/birth@memcheck' 'not in each check'
like "$(cat tap)" '^  message: "memcheck.x3a Invalid write .*, in write_at_load (constructor\.c:' \
  'but once, by memory/cycle'

# ---- copies of what memory/cycle leaves ----------------------------------------------------------

# Each open after the sixth in a process loses a byte: only a copy of the process that has run the
# cycles comes so far in one check.
cat > seventh.c <<'TEXT'
#include <stdlib.h>
static void *seventh_malloc(size_t size);
#define malloc(size) seventh_malloc(size)
#include "minimal.c"
#undef malloc
static int opens;
static void *
seventh_malloc(size_t size)
{
  if (++opens > 6)
    *(volatile char *)malloc(1) = 1;
  return malloc(size);
}
TEXT
${CC:-cc} -g -fPIC -shared -I"$top_srcdir/core/include" -I"$top_srcdir/examples/provider-minimal" \
  seventh.c -o seventh.so > cc.out 2>&1
ok $? 'a plugin that leaks from its seventh open on is built' || diag "$(cat cc.out)"
"$DURAKIT" check ./seventh.so --only turn/birth --memcheck > tap 2> err
is $? 0 'a check alone opens it once, and passes' || diag "$(cat err tap)"
"$DURAKIT" check ./seventh.so --only turn/birth,memory/cycle --memcheck --classify 0 > tap 2> err
is $? 6 'beside memory/cycle it does not' || diag "$(cat err tap)"
like "$(cat tap)" '^not ok 1 - turn/birth@memcheck$' 'for it is a copy of the process of the cycles'
like "$(cat tap)" 'definitely lost, in seventh_malloc (seventh\.c:' 'and the leak is its own'
like "$(cat tap)" '^ok 2 - memory/cycle@memcheck$' 'and not one that each of the cycles has'

# What a check finds alone, it finds in such a copy.
for under_pair in leaks-in-error:token/unknown-turn-token leaks-at-unload:turn/commit-frees \
  undefined-member:turn/commit-frees use-after-free:turn/commit-frees \
  undefined-byte:$ack writes-one-past:turn/commit-frees; do
  under_check=${under_pair#*:}
  "$DURAKIT" check "$zoo/${under_pair%%:*}.so" --only "memory/cycle,$under_check" --memcheck \
    --classify 0 > tap 2> err
  is $? 6 "${under_pair%%:*}: exit 6 beside memory/cycle too" || diag "$(cat err tap)"
  like "$(cat tap)" "^not ok 1 - $under_check@memcheck\$" "${under_pair%%:*}: found by its check"
done

# ---- suppressions --------------------------------------------------------------------------------

# suppresses CODE NAME: with the entry on standard input.
suppresses() {
  cat > author.supp
  "$DURAKIT" check "$zoo/leaks-one-byte.so" --only $ack --memcheck \
    --classify 0 --suppressions author.supp > tap 2> err
  is $? "$1" "$2" || diag "$(cat err tap)"
}

suppresses 2 'a suppression without a reason is refused' <<'TEXT'
# A comment that is not directly above.

{
   third
   Memcheck:Leak
   fun:malloc
   obj:*/libthird.so*
}
TEXT
is "$(cat err)" "durakit: author.supp:3: this suppression has no reason
  expected  a line above it that begins with # and says why it is justified
  next      durakit check --help shows examples" 'with its line'
suppresses 2 'one that hides the provider is refused' <<'TEXT'
# It is not so bad.
{
   ours
   Memcheck:Leak
   fun:malloc
   obj:*/leaks-one-byte.so
}
TEXT
like "$(cat err)" '^durakit: author.supp:6: its first frame matches the provider$' 'with the line'
suppresses 2 'one that hides a function of the provider is refused' <<'TEXT'
# It is not so bad.
{
   ours
   Memcheck:Leak
   fun:malloc
   fun:leak_a_*
}
TEXT
like "$(cat err)" '^durakit: author.supp:6: its first frame matches a function of the provider$' \
  'with the line'
suppresses 2 'one that hides anything is refused' <<'TEXT'
# It is not so bad.
{
   all
   Memcheck:Leak
   fun:malloc
   ...
   obj:*/libthird.so*
}
TEXT
like "$(cat err)" '^durakit: author.supp:6: its first frame matches anything' 'with the line'
suppresses 2 'one without a frame is refused' <<'TEXT'
# It is not so bad.
{
   all
   Memcheck:Leak
   fun:malloc
}
TEXT
like "$(cat err)" '^durakit: author.supp:2: the entry names no frame' 'with the line'
suppresses 6 'one for another library is taken, and hides no more than that' <<'TEXT'
# libthird keeps its table for the process: its manual, section 3.
{
   third
   Memcheck:Leak
   fun:malloc
   obj:*/libthird.so*
}
TEXT
is "$(grep -c '^# suppression .*third' tap)" 0 'and is not listed'

# refuses LINE WHAT: a file that is malformed there; on standard input.
refuses() {
  suppresses 2 "malformed: $2 is refused"
  like "$(cat err)" "^durakit: author.supp:$1: " 'with its line'
}

refuses 6 'a kind that Memcheck has not' <<'TEXT'
# A reason.

# Another.
{
   third
   Memcheck:Leaks
   obj:*/libthird.so*
}
TEXT
refuses 5 'a frame that is none' <<'TEXT'
# A reason.
{
   third
   Memcheck:Leak
   object:*/libthird.so*
}
TEXT
refuses 5 'a leak of no kind' <<'TEXT'
# A reason.
{
   third
   Memcheck:Leak
   match-leak-kinds: definite,lost
   obj:*/libthird.so*
}
TEXT
refuses 5 'a parameter without its name' <<'TEXT'
# A reason.
{
   third
   Memcheck:Param
   obj:*/libthird.so*
}
TEXT
refuses 2 'an entry that does not end' <<'TEXT'
# A reason.
{
   third
   Memcheck:Leak
   obj:*/libthird.so*
TEXT
refuses 7 'a line of no entry' <<'TEXT'
# A reason.
{
   third
   Memcheck:Leak
   obj:*/libthird.so*
}
}
TEXT

# By whatever names: what an author writes for the provider's own functions hides nothing.
for pattern in '*lloc' '*alloc' malloc; do
  suppresses 2 "fun:$pattern above the provider is the allocator's" <<TEXT
# libthird keeps its table for the process.
{
   third
   Memcheck:Leak
   fun:$pattern
   obj:*/leaks-one-byte.so
}
TEXT
done
ln -s "$(cd "$zoo" && pwd)/leaks-one-byte.so" alias.so
"$DURAKIT" check ./alias.so --only $ack --memcheck --classify 0 --suppressions author.supp \
  > tap 2> err
is $? 2 'nor does the name of a link to it help' || diag "$(cat err tap)"
cat > author.supp <<'TEXT'
# libthird keeps its table for the process.
{
   third
   Memcheck:Leak
   fun:*lloc
   ...
   obj:*/leaks-one-byte.so
}
# The same, from what is above it.
{
   by letters
   Memcheck:Leak
   fun:m*c
   src:memory.c
}
TEXT
"$DURAKIT" check "$zoo/leaks-one-byte.so" --only $ack --memcheck --classify 0 \
  --suppressions author.supp > tap 2> err
is $? 2 'a first frame that may be anything is refused behind the allocator, too'
sed '1,8d' author.supp > only.supp
"$DURAKIT" check ./alias.so --only $ack --memcheck --classify 0 --suppressions only.supp \
  --out hidden > tap 2> err
is $? 6 'what is taken for another place hides nothing of the provider' || diag "$(cat err tap)"
like "$(cat tap)" "^# suppression unused: by letters (matches the provider's own findings, which" \
  'and that is reported'
like "$(tail -n 1 hidden/results.jsonl)" '"used":0,"author":true,"name":"by letters","fits_' \
  'in results.jsonl, too'

# One byte past the end by a copy, and by an inlined function.
cat > past.c <<'TEXT'
#include <stdlib.h>
#include <string.h>
static inline __attribute__((always_inline)) void
poke_inlined(volatile char *bytes)
{
  bytes[6] = 1;
}
__attribute__((constructor)) static void
write_at_load(void)
{
  static const char from[8] = "1234567";
  volatile size_t n = 8;
  char *volatile bytes = malloc(6);

  poke_inlined(bytes);
  memmove(bytes, from, n);
  free(bytes);
}
TEXT
"${CC:-cc}" -O1 -g -fPIC -shared -fno-builtin -I"$top_srcdir/core/include" past.c \
  "$top_srcdir/examples/provider-minimal/minimal.c" -o past.so > cc.out 2>&1
ok $? 'a plugin that writes past its memory in two ways' || diag "$(cat cc.out)"
"${CC:-cc}" -O1 -g -fPIC -shared -fno-builtin past.c -o libthird.so > cc.out 2>&1 \
  && "${CC:-cc}" -g -fPIC -shared -I"$top_srcdir/core/include" \
    "$top_srcdir/examples/provider-minimal/minimal.c" -Wl,--no-as-needed -L. -lthird \
    -Wl,-rpath,"$PWD" -o uses-third.so >> cc.out 2>&1
ok $? 'one that only needs a library which does' || diag "$(cat cc.out)"
for size in 1 2 4 8; do
  printf '# libthird copies in pairs of bytes.\n{\n a copy\n Memcheck:Addr%s\n fun:memmove\n' $size
  printf ' ...\n fun:call_init*\n}\n# And pokes.\n{\n a poke\n Memcheck:Addr%s\n' $size
  printf ' fun:poke_inlined\n}\n'
done > author.supp
"$DURAKIT" check ./past.so --only memory/cycle --memcheck --classify 0 \
  --suppressions author.supp > tap 2> err
is $? 6 'neither is hidden in the provider' || diag "$(cat err tap)"
is "$(grep -c '^# suppression unused: a [cp]o[pk][ey]* (matches the provider' tap)" 2 \
  'both entries are unused' || diag "$(cat tap)"
"$DURAKIT" check ./uses-third.so --only memory/cycle --memcheck --classify 0 > tap 2> err
is $? 4 "in the library they have no owner, but count" || diag "$(cat err tap)"
"$DURAKIT" check ./uses-third.so --only memory/cycle --memcheck --classify 0 \
  --suppressions author.supp --out third > tap 2> err
is $? 0 'until an entry with a reason hides them' || diag "$(cat err tap)"
is "$(grep -c '^# suppression used: a [cp]o[pk][ey]* ([1-9]' tap)" 2 'which is listed' \
  || diag "$(cat tap)"
like "$(tail -n 1 third/results.jsonl)" '"used":[1-9][0-9]*,"author":true,"name":"a poke"' \
  'in results.jsonl, too'

# ---- a file that stays mapped --------------------------------------------------------------------

ln -s "$(cd "$zoo" && pwd)/stays-mapped.so" mapped.so
for path in "$zoo/stays-mapped.so" "$zoo/../zoo/stays-mapped.so" ./mapped.so; do
  "$DURAKIT" check "$path" --only turn/birth --memcheck --classify 0 > tap 2> err
  is $? 6 'a file that stays mapped is found' || diag "$(cat err tap)"
  like "$(cat tap)" '^  clause: "MEM-4"$' "by whatever path: ${path##*/zoo/}"
done

# ---- without it ----------------------------------------------------------------------------------

mkdir empty
"$DURAKIT" certify "$MODEL" --no-memcheck > tap 2> err
like "$(tail -n 1 tap)" '^# RESULT=.* memcheck=not-tested ' '--no-memcheck is in the last line'
like "$(cat tap)" '^# memcheck was left out: --no-memcheck$' 'and is reported'
PATH=$scratch/empty "$DURAKIT" certify "$MODEL" > tap 2> err
like "$(tail -n 1 tap)" '^# RESULT=.* memcheck=not-tested ' 'without a valgrind: so does that'
like "$(cat err)" 'memory is not tested' 'and its meaning is reported'
PATH=$scratch/empty "$DURAKIT" check "$MODEL" --only turn/birth --memcheck > tap 2> err
is $? 4 'check --memcheck without a valgrind: exit 4'
like "$(cat err)" 'there is no valgrind on PATH' 'and why'
for debugger in --gdb --in-process; do
  "$DURAKIT" check "$MODEL" --only turn/birth --memcheck $debugger > tap 2> err
  is $? 2 "$debugger with --memcheck: exit 2"
done
"$DURAKIT" check "$MODEL" --only memory/cycle > tap 2> err
is $? 5 'memory/cycle without --memcheck: nothing is selected'

done_testing
