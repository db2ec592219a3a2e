#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A stranger's path: the installed example, copied to an empty folder, built with nothing but
# pkg-config durakit, certified by the installed command as a user without rights; and what the
# command reports to an author who has forgotten an operation, mistyped a setting, broken a clause.
#
#   DURAKIT_DEEP=1    all is certified under memcheck, too: else parts of it are checked so

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${CC:=cc}" "${CXX:=c++}" "${MAKE:=make}" "${PKG_CONFIG:=pkg-config}" "${SANITIZER_CFLAGS=}"
scratch
unset MAKEFLAGS MFLAGS MAKELEVEL HARNESS_ACTIVE HARNESS_VERSION TAP_VERSION DURAKIT_PLUGIN_PATH
root=$scratch/root
run_ok 'make install' "$MAKE" -s -C "$top_builddir" install DESTDIR="$root" || done_testing

# ---- as a user has it ----------------------------------------------------------------------------

found() { find "$root" -path "$1" -type f | head -n 1; }
command=$(found '*/bin/durakit')
pc=$(found '*/pkgconfig/durakit.pc')
[ -n "$command" ] && [ -n "$pc" ]
ok $? 'the command and durakit.pc are installed' || done_testing
PATH=$(dirname "$command"):$PATH
PKG_CONFIG_PATH=$(dirname "$pc")
PKG_CONFIG_SYSROOT_DIR=$root
TMPDIR=$scratch/tmp
export PATH PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR TMPDIR
mkdir "$TMPDIR" "$scratch/mine"
chmod 755 "$scratch"

# Without rights: as user 65534 if we are root and can change the user; else as the present user.
as_user() { "$@"; }
who="user $(id -u)"
if [ "$(id -u)" -eq 0 ] && command -v setpriv > /dev/null; then
  unprivileged() { setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs "$@"; }
  chown 65534:65534 "$TMPDIR" "$scratch/mine"
  if unprivileged sh -c 'cd "$1" && durakit --version' sh "$scratch/mine" > /dev/null 2>&1; then
    as_user() { unprivileged "$@"; }
    who='user 65534'
  fi
fi
[ "$(as_user id -u)" -ne 0 ] || diag 'there is no way to give up rights here: it runs as root'
cd "$scratch/mine" || exit 99

# ---- copy, build, certify ------------------------------------------------------------------------

# pkg-config puts the sysroot in front of flags; in front of a variable only some versions do.
examples=$("$PKG_CONFIG" --variable=examplesdir durakit)
case $examples in
  "$root"*) ;;
  *) examples=$root$examples ;;
esac
run_ok "pkg-config shows $who where the examples are" \
  as_user cp "$examples/provider-minimal/Makefile" "$examples/provider-minimal/minimal.c" \
  "$examples/provider-minimal/minimal.cc" .
build() {
  as_user "$MAKE" -s "$@" CC="$CC" CXX="$CXX" \
    CFLAGS="-Werror -Wshadow -Wconversion -Wpointer-arith $SANITIZER_CFLAGS" \
    CXXFLAGS="-Werror -Wshadow -Wconversion -Wpedantic $SANITIZER_CFLAGS"
}
run_ok "$who builds it with its own Makefile, without a warning" build

# certify PROVIDER [OPTION]
certify() {
  as_user durakit certify "./$1.so" --format human --timeout-scale 4 ${2-} > out 2>&1
  is $? 0 "$who certifies $1${2+ $2}" || diag "$(grep -A 12 '^✗' out)"
  like "$(tail -n 1 out)" '^RESULT=PASS passed=[1-9][0-9]* failed=0 ' 'RESULT=PASS, 0 failed'
  unexplained=$(grep '  skipped: ' out | grep -v -e 'the provider declares' \
    -e 'the provider does not declare' -e 'STORE parameter' -e 'which is optional')
  is "$unexplained" '' 'what is skipped, is so for what it declares'
}

# memcheck PROVIDER CHECKS: what allocates or deletes most, and whole cycles.
memcheck() {
  as_user durakit check "./$1.so" --only "$2,memory/cycle" --memcheck > out 2>&1
  is $? 0 "$1 under memcheck: $2" || diag "$(grep -A 12 '^not' out)"
}

if [ -n "$SANITIZER_CFLAGS" ] || [ -z "${VALGRIND-}" ]; then
  certify minimal --no-memcheck
  certify minimal-cc --no-memcheck
elif [ -n "${DURAKIT_DEEP-}" ]; then
  certify minimal
  certify minimal-cc
else
  certify minimal --no-memcheck
  memcheck minimal ack
  certify minimal-cc --no-memcheck
  memcheck minimal-cc cancel
fi
as_user durakit probe ./minimal.so > out 2>&1
like "$(cat out)" '^threads  *one call at a time$' 'probe shows what it declares'

# ---- what an author reads ------------------------------------------------------------------------

# broken NAME SED: the example with one edit, which must have changed it.
broken() {
  as_user sh -c 'mkdir "$1" && cp Makefile minimal.c "$1" && sed -i "$2" "$1/minimal.c"' \
    sh "$1" "$2"
  ! cmp -s minimal.c "$1/minimal.c"
  ok $? "$1: the example is edited"
  run_ok "$1: it builds" as_user "$MAKE" -s -C "$1" minimal.so CC="$CC" CFLAGS="$SANITIZER_CFLAGS"
}

# says FILE: the output is this text, but for the place and the numbers of a run.
says() {
  sed -e "s|$scratch/mine/||" "$1" > plain
  is "$(cat plain)" "$(cat)" "$2"
}

broken missing '/\.renew_work_item_lock = /s/\.renew_work_item_lock = renew_work_item_lock,//'
as_user durakit certify ./missing/minimal.so > out 2> err
is $? 3 'missing: the exit code says that it cannot be loaded'
says err 'missing: what is printed' <<'TEXT'
durakit: ./missing/minimal.so: 1 required operation is missing: renew_work_item_lock
  expected  all ten required members of struct dk_ops (durakit/provider.h)
  found     NULL
  next      durakit check --next ./missing/minimal.so names the first one to write
TEXT
as_user durakit check ./missing/minimal.so --next > out 2> err
like "$(cat out err)" 'renew_work_item_lock.*WORK-6' 'missing: --next names it, with its clauses'

as_user durakit certify ./minimal.so --set colour=blue > out 2> err
is $? 2 'setting: the exit code says that it is the usage'
says err 'setting: what is printed' <<'TEXT'
durakit: colour: the plugin has no such setting
  expected  no setting at all
  next      durakit probe PLUGIN shows them
TEXT

# The classic mistake: a running activity is spared.
broken spared 's/^    if (!row)$/    if (!row || row->lease.token)/'
as_user durakit check ./spared/minimal.so --only cancel --format human > out 2>&1
is $? 1 'clause: the exit code says that one is violated'
like "$(cat out)" '^✗ cancel/locked-row  CANCEL-1 MUST  fail' 'clause: the check and its clause'
as_user durakit check ./spared/minimal.so --only cancel/locked-row --format human > out 2>&1
sed -n '/^    what /,/^    found /p' out > err
says err 'clause: what is printed' <<'TEXT'
    what      renew_work(t, token, .ms = 4 * LEASE_MS) answered DK_OK, not DK_LOCK_LOST
    expected  DK_LOCK_LOST
    found     DK_OK
TEXT
like "$(cat out)" 'repro     durakit check .* --only cancel/locked-row --seed 0x' \
  'clause: the command that repeats it'
as_user durakit check ./spared/minimal.so --only pin,turn,cancel --format human > out 2>&1
is "$(grep -c -e '^✗ pin/' -e '^✗ turn/' out)" 0 \
  'clause: nothing fails that has nothing to do with it'
like "$(tail -n 1 out)" '^RESULT=FAIL ' 'clause: RESULT=FAIL'

done_testing
