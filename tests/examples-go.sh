#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The example in Go: it builds with go alone and passes, with its runtime declared; the result says
# that memory was not checked; and what it would leave behind if it were wrong is found.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${CC:=cc}" "${MAKE:=make}" "${GO=}" "${SANITIZER_CFLAGS=}"
[ -n "$GO" ] || skip_all 'go is not installed (see configure)'
[ -z "$SANITIZER_CFLAGS" ] || skip_all 'the command was built with sanitizers, cgo is not'
scratch
unset MAKEFLAGS MFLAGS MAKELEVEL HARNESS_ACTIVE HARNESS_VERSION TAP_VERSION
GOCACHE=$scratch/cache
GOFLAGS=-mod=mod
GOTOOLCHAIN=local
GOPROXY=off
export GOCACHE GOFLAGS GOTOOLCHAIN GOPROXY
cd "$scratch" || exit 99

# build NAME [SED]: the example in a folder of its own, perhaps with an edit.
build() {
  mkdir "$1"
  cp "$top_srcdir"/examples/go/* "$1"
  if [ $# -gt 1 ]; then
    sed -i "$2" "$1/provider.go"
    ! cmp -s "$top_srcdir/examples/go/provider.go" "$1/provider.go"
    ok $? "$1: the example is edited"
  fi
  run_ok "$1: it builds" "$MAKE" -s -C "$1" CC="$CC" GO="$GO" \
    MINIMAL="$top_srcdir/examples/provider-minimal" DURAKIT_CFLAGS="-I$top_srcdir/core/include"
}

# check STATUS NAME CHECKS [OPTION...]
check() {
  status=$1 name=$2 checks=$3
  shift 3
  "$DURAKIT" check "$name/minimal-go.so" --only "$checks" --format human "$@" > out 2>&1
  is $? "$status" "$name: $checks $*" || diag "$(cat out)"
}

build good || done_testing
why='the provider declares that it cannot run under Valgrind'
"$DURAKIT" certify good/minimal-go.so --format human --timeout-scale 4 > out 2>&1
is $? 0 'it is certified' || diag "$(grep -A 12 '^✗' out)"
like "$(tail -n 1 out)" '^RESULT=PASS passed=[1-9][0-9]* failed=0 .* memcheck=not-tested ' \
  'all that runs passes, and memory is not tested'
is "$(head -n 1 out)" "memory was not checked: $why" 'as the first line says'
"$DURAKIT" probe good/minimal-go.so > out 2>&1
like "$(cat out)" '^runtime  *its threads and descriptors stay .*; cannot run under Valgrind$' \
  'probe shows what it declares'
check 1 good work/ack-enqueues-completion --set panic=ack_work_item
like "$(cat out)" 'ack_work_item: panicked: the setting `panic` names this operation' \
  'a panic becomes a refusal'

# What a wrong one leaves in each cycle.
opened='log(c.store, "minimal-go: opened")'
build thread "s/$opened/go func() { runtime.LockOSThread(); select {} }()\n\t\t&/"
check 1 thread call/cycles-leave-nothing
# Each has a stack, which may be noticed first.
like "$(cat out)" '    what  .* \(threads\|bytes mapped outside malloc\|bytes of malloc\)' \
  'thread: they grow, once no thread is idle'
build descriptor \
  "s/$opened/syscall.Open(\"\/dev\/null\", 0, 0)\n\t\t&/;s/^\t\"strings\"/&\n\t\"syscall\"/"
check 1 descriptor turn/commit-frees
like "$(cat out)" '    what  *descriptor [0-9]* (/dev/null) is still open' 'descriptor: it is named'
build leak "s/$opened/C.CString(strings.Repeat(\"x\", 5000))\n\t\t&/"
check 1 leak call/cycles-leave-nothing
like "$(cat out)" 'more bytes of malloc after each cycle' "leak: what C's malloc gave grows"
done_testing
