#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The README's own order, with the README's values and the default lease: its worker is killed with
# kill -9 while it charges, another one takes over, and no order fails.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${CC:=cc}" "${SANITIZER_CFLAGS=}" "${SQLITE_PLUGIN=}"
[ -f "$SQLITE_PLUGIN" ] || skip_all 'the SQLite provider is not built'
scratch
. "$top_srcdir/tests/typed.sh"
cd "$scratch" || exit 99

# What the README shows of the order, line by line.
sed -n '/^    dk_future \*pay = /,/^    return /p' "$top_srcdir/README.md" > lines
is "$(grep -c . lines)" 5 'the README shows an order'
{
  printf '%s\n' '#include <durakit/runtime.h>' 'dk_orchestration_fn order;' \
    'dk_result order(dk_orch *o, dk_str input)' '{'
  cat lines
  echo '}'
} > order.c
# shellcheck disable=SC2046,SC2086
run_ok 'it compiles' $CC -std=gnu11 -Wall -Wextra -Werror $SANITIZER_CFLAGS -pthread \
  "-DPLUGIN_DIR=\"/nowhere\"" -I"$top_srcdir" $(pkg-config --cflags durakit) \
  -o lost-worker order.c "$top_srcdir/tests/lost-worker.c" \
  "$top_srcdir/examples/runtime/example.c" \
  $(libraries) || done_testing

run_ok 'orders are stored' ./lost-worker start sqlite store=orders.db || done_testing
./lost-worker hang sqlite store=orders.db > hung 2>&1 &
worker=$!
until [ "$(grep -c begins hung)" -eq 6 ] || ! kill -0 $worker; do sleep 0.1; done
kill -9 $worker
wait $worker
is "$?" 137 'the worker of all six is killed while they are charged'
timeout 600 ./lost-worker work sqlite store=orders.db > worked 2> said
is "$?" 0 'another worker takes over'
is "$(grep -c 'is completed: paid$' worked)" 6 'no order fails' || diag "$(cat worked)"
is "$(grep -c begins worked)" 6 'each was charged again'
is "$(cat said)" '' 'and no warning was printed: the limit is above the lease'

done_testing
