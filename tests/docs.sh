#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The committed docs/contract.md is what the clauses say.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch

run_ok 'gen-contract runs' sh -c '"$1" > "$2"' sh \
  "$top_builddir/conformance/contract/gen-contract" "$scratch/contract.md"
[ -s "$scratch/contract.md" ]
ok $? 'it writes something'
is "$(diff "$top_srcdir/docs/contract.md" "$scratch/contract.md")" '' \
  'docs/contract.md is up to date (if not: make docs)'

done_testing
