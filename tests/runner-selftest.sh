#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The kit tests itself: no hole in the kill matrix, and the zoo gets its verdicts.  Its points are
# ours.  In check-deep also what decides nothing is run: which other checks catch a mutant.
# needs: zoo

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
exec "$DURAKIT" selftest ${DURAKIT_DEEP:+--verbose} --format tap --model "$MODEL" \
  --zoo "$top_builddir/conformance/fixtures/zoo"
