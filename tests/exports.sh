#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libdurakit exports what its headers declare, and nothing else.  Each plugin of ours exports its
# entry, needs nothing but the libraries that are named here, and has no text relocations and no
# executable stack.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
: "${CC:=cc}" "${NM:=nm}"
scratch
syms=$top_srcdir/core/libdurakit.syms

# The functions that a header declares: comments removed, a name at the start of a declarator; what
# is defined inline, and function types, are none.
declared() {
  $CC -w -E -P -fpreprocessed "$1" | sed '/^static inline/,/^}/d' |
    grep -oE '(^|[ *])dk_[a-z0-9_]+\(' | tr -d ' *(' | grep -v '_fn$'
}

for header in host clock runtime manage; do
  declared "$top_srcdir/core/include/durakit/$header.h"
done | sort > "$scratch/declared"
is "$(sort "$syms" | diff - "$scratch/declared")" '' \
  'libdurakit.syms lists what the headers declare'

$NM -D --defined-only "$top_builddir/.libs/libdurakit.so" | awk '{ print $3 }' | sort \
  > "$scratch/found"
is "$(sort "$syms" | diff - "$scratch/found")" '' 'libdurakit.so exports what is listed'

# The comparison can fail.
cat > "$scratch/sample.h" <<'SAMPLE'
/* dk_not_this(void) */
int32_t dk_one(int32_t (*dk_nor_this)(void));
void *dk_two(void);
typedef int32_t dk_three_fn(void);
static inline int32_t
dk_four(void)
{
  return dk_one(0);
}
SAMPLE
is "$(declared "$scratch/sample.h" | tr '\n' ' ')" 'dk_one dk_two ' 'declarations are recognised'

# ---- plugins -------------------------------------------------------------------------------------

# provided FILE LIBRARY...: what those libraries define for it without a version.
provided() {
  user=$1
  shift
  for library; do
    found=$(ldd "$user" | awk -v name="$library" '$1 == name { print $3 }')
    [ -z "$found" ] || $NM -D --defined-only "$found" | awk '$3 !~ /@@/ { print $3 }'
  done
}

# faults FILE LIBRARY...: what is wrong with a plugin that may need these libraries, a line each.
faults() {
  so=$1
  shift
  found=$($NM -D --defined-only "$so" | awk '{ print $3 }' | tr '\n' ' ')
  [ "$found" = 'durakit_provider_2 ' ] || echo "exports: $found"
  readelf -dW "$so" | grep -q TEXTREL && echo 'text relocations'
  readelf -lW "$so" | awk '$1 == "GNU_STACK" && / RWE / { print "executable stack" }'
  readelf -lW "$so" | grep -q GNU_STACK || echo 'no word on its stack'
  for needed in $(readelf -dW "$so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case " $* libc.so.6 ld-linux-x86-64.so.2 " in
      *" $needed "*) ;;
      *) echo "needs $needed" ;;
    esac
  done
  # A symbol of a library has a version; one without comes from those that have none, or could only
  # come from a host.
  provided "$so" "$@" > "$scratch/provided"
  $NM -D --undefined-only "$so" | awk '$1 == "U" && $2 !~ /@/ { print $2 }' |
    grep -v -x -F -f "$scratch/provided" | sed 's/^/undefined: /'
}

if ! command -v readelf > /dev/null; then
  skip 'plugins' 'readelf is not installed (Debian: binutils)'
elif [ -n "${SANITIZER_CFLAGS:-}" ]; then
  skip 'plugins' 'sanitizers add their own libraries'
else
  is "$(faults "$MODEL")" '' 'model.so is as a plugin should be'
  if [ -f "${PG_PLUGIN:=}" ]; then
    is "$(faults "$PG_PLUGIN" libpq.so.5)" '' 'pg.so needs libpq besides'
    like "$(faults "$PG_PLUGIN")" '^undefined: PQclear' 'which is seen'
  fi

  # Each fault is found in a plugin that has it.
  cat > "$scratch/bad.c" <<'SAMPLE'
extern int of_the_host(void);
extern double cos(double);
const void *durakit_provider_2(unsigned host_minor);
const void *durakit_provider_2(unsigned host_minor)
{
#ifdef UNDEFINED
  host_minor += (unsigned)of_the_host();
#endif
#ifdef NEEDED
  host_minor += (unsigned)cos(host_minor);
#endif
  return host_minor ? "" : 0;
}
#ifdef RELOCATED
__asm__(".text\n .quad durakit_provider_2\n");
#endif
#ifdef SECOND
int second = 1;
#endif
SAMPLE
  # bad NAME PATTERN FLAGS...
  bad() {
    bad_name=$1 bad_pattern=$2
    shift 2
    $CC -shared -fPIC "$scratch/bad.c" "$@" -o "$scratch/$bad_name.so" > "$scratch/cc.out" 2>&1
    like "$(faults "$scratch/$bad_name.so")" "$bad_pattern" "a plugin with $bad_name is found out"
  }
  $CC -shared -fPIC "$scratch/bad.c" -o "$scratch/good.so"
  is "$(faults "$scratch/good.so")" '' 'one without a fault has none'
  bad second-symbol '^exports: .*second' -DSECOND
  bad undefined-symbol '^undefined: of_the_host' -DUNDEFINED
  bad another-library '^needs libm.so.6' -DNEEDED -Wl,--no-as-needed -lm
  bad a-text-relocation '^text relocations' -DRELOCATED -Wl,-z,notext
  bad executable-stack '^executable stack' -Wl,-z,execstack
fi

done_testing
