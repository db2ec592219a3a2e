#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The README is true: what it shows as output is what the command prints, and every command
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

# Who reads from the top has installed what is copied, and knows how it is found.
# told_before FILE FIRST THEN: the line that has FIRST is above the first one that has THEN.
told_before() {
  awk -v first="$2" -v then="$3" '
    index($0, first) && !told { told = NR }
    index($0, then) { exit }
    END { exit !(told && told < NR) }' "$1"
}
examples='pkg-config --variable=examplesdir'
for first in 'make -C build install' PKG_CONFIG_PATH; do
  told_before "$readme" "$first" "$examples"
  ok $? "the README explains $first before it is needed"
done
pages=0
for page in "$top_srcdir"/docs/*.md; do
  grep -q -e "$examples" "$page" || continue
  pages=$((pages + 1))
  told_before "$page" '(../README.md#installing)' "$examples" &&
    told_before "$page" PKG_CONFIG_PATH "$examples"
  ok $? "${page##*/} names the source of the examples, and PKG_CONFIG_PATH"
done
[ $pages -ge 5 ] && grep -q -x '## Installing' "$readme"
ok $? 'they are looked at, and what they point to is there'

done_testing
