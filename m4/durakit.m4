# SPDX-License-Identifier: Apache-2.0
# The configure macros that are Durakit's own.

# DK_ADD_CFLAG(VARIABLE, FLAG): add FLAG to VARIABLE if the compiler takes it without a word.
AC_DEFUN([DK_ADD_CFLAG],
[AS_VAR_PUSHDEF([dk_cache], [dk_cv_cflag_$2])dnl
AC_CACHE_CHECK([whether $CC takes $2], [dk_cache],
  [dk_saved_CFLAGS=$CFLAGS
   # An unknown -Wno-... is silent in gcc until something else is wrong; ask for the positive form.
   CFLAGS="$CFLAGS -Werror m4_bpatsubst([$2], [^-Wno-], [-W])"
   AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])], [AS_VAR_SET([dk_cache], [yes])],
                     [AS_VAR_SET([dk_cache], [no])])
   CFLAGS=$dk_saved_CFLAGS])
AS_VAR_IF([dk_cache], [yes], [AS_VAR_APPEND([$1], [" $2"])])
AS_VAR_POPDEF([dk_cache])dnl
])

# DK_WITH_STORE(NAME, PKG-CONFIG MODULE [>= VERSION], DEBIAN PACKAGE): --without-NAME, and what to
# say of it.
# Sets with_NAME to yes or no and NAME_said to the line for the summary.
AC_DEFUN([DK_WITH_STORE],
[AC_ARG_WITH([$1], [AS_HELP_STRING([--without-$1], [leave the $1 plugin out])],
             [], [AS_VAR_SET([with_$1], [auto])])
AS_VAR_IF([with_$1], [no], [$1_said="left out (--without-$1)"],
  [PKG_CHECK_MODULES(m4_toupper([$1]), [$2],
     [$1_said="m4_bpatsubst([$2], [ .*]) `$PKG_CONFIG --modversion m4_bpatsubst([$2], [ .*])`"
      AS_VAR_SET([with_$1], [yes])],
     [AS_VAR_IF([with_$1], [yes],
        [AC_MSG_ERROR([--with-$1 was asked for, but $2 is not there (Debian: $3)])])
      $1_said="left out ($2 is not there; Debian: $3)"
      AS_VAR_SET([with_$1], [no])])])
AM_CONDITIONAL(m4_toupper([WITH_$1]), [test "x$with_$1" = xyes])
])
