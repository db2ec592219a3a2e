#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The example in Rust: it builds with rustc alone, passes natively and under memcheck, and what it
# would leave behind if it were wrong is found, in its own lines.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${CC:=cc}" "${MAKE:=make}" "${RUSTC=}" "${VALGRIND=}" "${SANITIZER_CFLAGS=}"
[ -n "$RUSTC" ] || skip_all 'rustc is not installed (see configure)'
[ -z "$SANITIZER_CFLAGS" ] || skip_all 'the command was built with sanitizers, rustc has none'
scratch
unset MAKEFLAGS MFLAGS MAKELEVEL HARNESS_ACTIVE HARNESS_VERSION TAP_VERSION
cd "$scratch" || exit 99

# build NAME [SED]: the example in a folder of its own, perhaps with an edit.
build() {
  mkdir "$1"
  cp "$top_srcdir/examples/rust/Makefile" "$top_srcdir/examples/rust/provider.rs" "$1"
  if [ $# -gt 1 ]; then
    sed -i "$2" "$1/provider.rs"
    ! cmp -s "$top_srcdir/examples/rust/provider.rs" "$1/provider.rs"
    ok $? "$1: the example is edited"
  fi
  run_ok "$1: it builds" "$MAKE" -s -C "$1" CC="$CC" RUSTC="$RUSTC" RUSTFLAGS='-D warnings' \
    MINIMAL="$top_srcdir/examples/provider-minimal/minimal.c" \
    DURAKIT_CFLAGS="-I$top_srcdir/core/include"
}

# check STATUS NAME CHECKS [OPTION...]
check() {
  status=$1 name=$2 checks=$3
  shift 3
  "$DURAKIT" check "$name/minimal-rs.so" --only "$checks" --format human "$@" > out 2>&1
  is $? "$status" "$name: $checks $*" || diag "$(cat out)"
}

build good || done_testing
"$DURAKIT" certify good/minimal-rs.so --no-memcheck --format human --timeout-scale 4 > out 2>&1
like "$(tail -n 1 out)" '^RESULT=PASS passed=[1-9][0-9]* failed=0 ' 'it passes' ||
  diag "$(grep -A 12 '^✗' out)"
like "$(cat out)" 'DK_RUNTIME_ABORTS' 'what it declares is said'
check 1 good work/ack-enqueues-completion --set panic=ack_work_item
like "$(cat out)" 'ack_work_item: panicked: the setting `panic` names this operation' \
  'a panic becomes a refusal'

# What a wrong one leaves in each cycle, natively.
opened='log(&format!("minimal-rs: opened'
build thread "s/store\.$opened/std::thread::spawn(|| loop { std::thread::park() });\n        &/"
check 1 thread turn/commit-frees
like "$(cat out)" '    what  *[0-9]* threads after close, 1 before' 'thread: it is counted'
build descriptor \
  "s/store\.$opened/std::mem::forget(std::fs::File::open(\"\/dev\/null\"));\n        &/"
check 1 descriptor turn/commit-frees
like "$(cat out)" '    what  *descriptor [0-9]* (/dev/null) is still open' 'descriptor: it is named'
build leak "s/store\.$opened/std::mem::forget(std::hint::black_box(vec![1u8; 100]));\n        &/"
check 1 leak call/cycles-leave-nothing
like "$(cat out)" 'more bytes of malloc after each cycle' 'leak: it grows'

if [ -z "$VALGRIND" ]; then
  skip 'under memcheck' 'Valgrind is not there'
  done_testing
fi
check 0 good cancel,memory/cycle --memcheck
check 6 leak memory/cycle --memcheck
like "$(cat out)" '    where  *provider\.rs:[0-9]' 'leak: the line is of the example'
done_testing
