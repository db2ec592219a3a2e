#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The README tells the truth: what it shows as output is what the command prints, and every command
# that it shows can be typed.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
scratch
trap 'end_server; chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
end_server() { :; }
. "$top_srcdir/tests/typed.sh"
readme=$top_srcdir/README.md
cd "$scratch" || exit 99
cp "$MODEL" my_provider.so

# A failure to repeat, as the README's own line makes it.
durakit check model --set mutant=cancel/first-1000-only --only cancel/mass --out out > out.tap 2>&1
[ "$(commands_of "$readme" | wc -l)" -ge 10 ]
ok $? 'the README shows commands'
with_server "$readme" "$scratch"
type_document "$readme"

# Afterwards, for some of it comes from programs that were built.
show_document "$readme"
[ "$shown" -ge 3 ]
ok $? 'the README shows output'

done_testing
