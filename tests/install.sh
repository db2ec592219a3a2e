#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `make install` gives: headers, pkg-config file, library, plugin, command.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${CC:=cc}" "${MAKE:=make}" "${PKG_CONFIG:=pkg-config}" "${SANITIZER_CFLAGS=}"
scratch
root=$scratch/root
unset MAKEFLAGS MFLAGS MAKELEVEL

run_ok 'make install' "$MAKE" -s -C "$top_builddir" install DESTDIR="$root" || done_testing

# The folders are found by what is in them, whatever --prefix and --libdir say.
found() { find "$root" -path "$1" -type f | head -n 1; }
pc=$(found '*/pkgconfig/durakit.pc')
plugin=$(found '*/durakit/model.so')
command=$(found '*/bin/durakit')
[ -n "$pc" ]; ok $? 'durakit.pc is installed'
[ -n "$plugin" ]; ok $? 'the model is installed as a plugin'
[ -n "$command" ]; ok $? 'the command is installed'

is "$(cd "$(dirname "$(found '*/man1/durakit.1')")" && echo *)" \
  "$({ echo durakit.1; "$DURAKIT" --completion-words | sed 's/.*/durakit-&.1/'; } |
     LC_ALL=C sort | paste -sd ' ' -)" 'a page for each command, and no other'
[ -n "$(found '*/bash-completion/completions/durakit')" ]; ok $? 'the completion is installed'

page=$(found '*/doc/durakit/coverage.md')
[ -n "$page" ] && [ -f "${page%/*}/contract.md" ] && [ -f "${page%/*}/papers.md" ]
ok $? 'so is the page of what is tested by what, and what it links to'

# pkg-config as a user has it, with DESTDIR in the place of the system's root.
query() {
  PKG_CONFIG_LIBDIR=$(dirname "$pc") PKG_CONFIG_PATH='' PKG_CONFIG_SYSROOT_DIR=$root \
    "$PKG_CONFIG" "$@" durakit
}
version=$(sed -n 's/.*PACKAGE_VERSION "\(.*\)"/\1/p' "$top_builddir/config.h")
is "$(query --modversion)" "$version" 'pkg-config prints the version'
is "$(query --variable=plugindir)" "$(dirname "$plugin")" 'and where plugins belong'

headers=$(cd "$(dirname "$(found '*/include/durakit/provider.h')")" && ls | tr '\n' ' ')
is "$headers" "$(cd "$top_srcdir/core/include/durakit" && ls -- *.h | tr '\n' ' ')" \
  'every public header is installed, and no other'

# A plugin author needs the compiler flags only, and provider.h alone.
cat > "$scratch/tiny.c" <<'TINY'
#include <durakit/provider.h>
const struct dk_provider *
durakit_provider_2(uint32_t version)
{
  (void)version;
  return NULL;
}
TINY
# shellcheck disable=SC2046
run_ok 'a provider builds with pkg-config --cflags' \
  $CC -Wall -Werror $SANITIZER_CFLAGS $(query --cflags) -shared -fPIC -Wl,-z,defs \
  -o "$scratch/tiny.so" "$scratch/tiny.c"

# A host needs the library too.
cat > "$scratch/host.c" <<'HOST'
#include <durakit/host.h>
#include <stdio.h>
int
main(void)
{
  char name[64];
  puts(dk_status_name(DK_LOCK_LOST, name, sizeof name));
  return 0;
}
HOST
# shellcheck disable=SC2046
run_ok 'a host builds with pkg-config --cflags --libs' \
  $CC -Wall -Werror $SANITIZER_CFLAGS $(query --cflags) -o "$scratch/host" "$scratch/host.c" \
  $(query --libs)
libdir=$(dirname "$(dirname "$pc")")
is "$(LD_LIBRARY_PATH=$libdir "$scratch/host" 2>&1)" DK_LOCK_LOST 'and runs'

like "$("$command" --version 2>&1)" '^durakit ' 'the installed command runs'
is "$(unset DURAKIT_PLUGIN_PATH; "$command" list providers 2>&1 | grep -c -e "$top_builddir")" 0 \
  'and knows of no plugin of the build'
run_ok 'make uninstall' "$MAKE" -s -C "$top_builddir" uninstall DESTDIR="$root"
is "$(find "$root" -type f -o -type l)" '' 'and nothing is left'

done_testing
