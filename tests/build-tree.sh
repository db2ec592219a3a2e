#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A command that was built and not installed finds the plugins that were built with it, by their
# names; one that is anywhere else looks where plugins are installed, and nowhere else.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -x "$DURAKIT" ] && [ -f "$MODEL" ] || skip_all 'the command or the model is not built'
unset DURAKIT_PLUGIN_PATH
scratch
cd "$scratch" || exit 99

# found NAME [COMMAND]: the file that the name means.
found() {
  "${2-$DURAKIT}" list providers 2>&1 | sed -n "s/^$1  *[a-z]*  *//p"
}
state() { "$DURAKIT" list providers | awk -v name="$1" '$1 == name { print $2 }'; }

built=0
for name in sqlite pg model; do
  plugin=$(find "$top_builddir/providers" "$top_builddir/conformance/model" \
    -path "*/.libs/$name.so")
  [ -n "$plugin" ] || { skip "$name" 'it is left out of this build'; continue; }
  built=$((built + 1))
  is "$(found $name)" "$plugin" "$name is the one that was built beside the command"
  is "$(state $name)" built "and $name is not called installed"
  like "$("$DURAKIT" probe $name 2>&1)" "$plugin" "probe $name takes it"
done
[ $built -gt 0 ]
ok $? 'plugins are looked at'

# What is named goes first.
mkdir named
cp "$MODEL" named/model.so
DURAKIT_PLUGIN_PATH=$scratch/named
export DURAKIT_PLUGIN_PATH
is "$(found model)" "$scratch/named/model.so" 'DURAKIT_PLUGIN_PATH goes first'
is "$(state model)" installed 'where a plugin is installed, as far as the command knows'
is "$("$DURAKIT" list providers | grep -c '^model[[:space:]]')" 1 'and a name is listed once'
unset DURAKIT_PLUGIN_PATH

# Another place, where files of these names lie in the same order: as an installed command would
# meet them by chance, without what makes a build of a folder; then with it.
mkdir -p tree/runner tree/conformance/model/.libs tree/bin
cp "$DURAKIT" tree/bin/durakit
cp "$DURAKIT" tree/runner/durakit
cp "$MODEL" tree/conformance/model/.libs/only-here.so
is "$(found only-here "$scratch/tree/bin/durakit")" '' 'a command in bin finds no plugin'
is "$(found only-here "$scratch/tree/runner/durakit")" '' 'so does one in a folder runner'
touch tree/config.status
is "$(found only-here "$scratch/tree/bin/durakit")" '' 'bin in a build is not where it is built'
is "$(found only-here "$scratch/tree/runner/durakit")" \
  "$scratch/tree/conformance/model/.libs/only-here.so" 'a build that was moved finds its own'
like "$("$scratch/tree/runner/durakit" probe onlyhere 2>&1)" 'did you mean only-here?' \
  'and suggests them'
mkdir -p tree/runner/.libs
mv tree/runner/durakit tree/runner/.libs/
is "$(found only-here "$scratch/tree/runner/.libs/durakit")" \
  "$scratch/tree/conformance/model/.libs/only-here.so" 'even if the linker put it in .libs'
ln -s "$scratch/tree/runner/.libs/durakit" link
is "$(found only-here ./link)" "$scratch/tree/conformance/model/.libs/only-here.so" \
  'also through a link'

done_testing
