#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The style page as a program: every rule over the tree, and every rule on a sample that breaks it.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
cd "$top_srcdir" || exit 99
checker=$top_srcdir/tests/style.awk
rules='spdx tab space path width call decision assert length unfinished'

# What is ours: made neither by the autotools nor by a build, nor by make abi-update.
sources() {
  find core conformance runner providers examples tests docs completions m4/durakit.m4 .ci \
       bootstrap configure.ac Makefile.am ./*.md NEWS TODO 2>/dev/null \
    \( -name .libs -o -name .deps -o -name golden.def \) -prune -o -type f \
    \( -name '*.[ch]' -o -name '*.cc' -o -name '*.def' -o -name '*.sh' -o -name '*.mk' \
       -o -name '*.awk' -o -name '*.pl' -o -name '*.py' -o -name '*.md' -o -name '*.m4' \
       -o -name Makefile.am -o -path completions/durakit -o -name configure.ac \
       -o -name bootstrap -o -name run -o -name NEWS -o -name TODO \
    \) -print | sort
}

check() {
  LC_ALL=C ${AWK:-awk} -f "$checker" "$@"
}

rule_says() {
  case $1 in
    spdx) echo 'the licence line comes first' ;;
    tab) echo 'no tabs but in makefiles' ;;
    space) echo 'no white space at the end of a line' ;;
    path) echo 'no path of one machine' ;;
    width) echo 'at most 100 columns' ;;
    call) echo 'none of the forbidden calls' ;;
    decision) echo 'nothing is decided by the text of a failure' ;;
    assert) echo 'no assert that changes something' ;;
    length) echo 'no source over 700 lines' ;;
    unfinished) echo 'nothing unfinished is left in a source' ;;
  esac
}

# shellcheck disable=SC2046
check $(sources) > "$scratch/found"
[ "$(sources | wc -l)" -gt 20 ]
ok $? 'the tree was found'
for rule in $rules; do
  found=$(sed -n "s/^$rule //p" "$scratch/found")
  is "$found" '' "$rule: $(rule_says "$rule")"
done

# A sample for each way to break a rule, and its innocent neighbour.
apache='SPDX-License-Identifier: Apache-2.0'

# judge RULES WHAT FILE TEXT: a file of that name and text breaks exactly these rules.
judge() {
  sample=$scratch/sample-$tap_count
  mkdir -p "$sample/$(dirname "$3")"
  printf '%b' "$4" > "$sample/$3"
  is "$(cd "$sample" && check "$3" | cut -d ' ' -f 1 | sort -u)" "$1" "$2"
}
breaks() { judge "$1" "$1 is broken by $2" "$3" "$4"; }
keeps() { judge '' "no rule is broken by $1" "$2" "$3"; }
c="/* $apache */\n"

keeps 'a good source' core/a.c "${c}int x;\n"
breaks spdx 'no licence line' core/a.c 'int x;\n'
breaks spdx 'a licence line that is not the first' core/a.c "\n$c"
breaks spdx 'the wrong licence in a public header' core/include/durakit/a.h "${c}int x;\n"
keeps 'a script with its licence in line 2' tests/a.sh "#!/bin/sh\n# $apache\n"
breaks tab 'a tab' core/a.c "${c}int\tx;\n"
keeps 'the tabs of a makefile' core/local.mk "# $apache\na:\n\tb\n"
breaks space 'a blank at the end' core/a.c "${c}int x; \n"
for folder in work root home; do
  breaks path "/$folder/" core/a.c "$c/* /$folder/me */\n"
done
keeps '100 columns' core/a.c "$c/* $(printf '%094d' 0) */\n"
breaks width '101 columns' core/a.c "$c/* $(printf '%095d' 0) */\n"
keeps '100 letters with accents' core/a.c "$c/* \0303\0244$(printf '%093d' 0) */\n"
for call in sleep usleep nanosleep clock_nanosleep strcpy stpcpy strcat sprintf vsprintf gets; do
  breaks call "$call()" core/a.c "$c  $call(a, b);\n"
done
for call in strstr strcmp strncmp strcasestr memmem; do
  breaks decision "$call of a failure's text" core/a.c \
    "$c  if ($call(dk_caller_failure(caller)->text, name))\n"
done
breaks decision 'strstr of what was taken from one' core/a.c \
  "$c  const char *text = dk_caller_failure(caller)->text;\n  return strstr(text, name);\n"
breaks decision 'strstr of what is handed on as why' runner/a.c "$c  return strstr(why, name);\n"
keeps 'strstr of another text' core/a.c "$c  return strstr(text, name);\n"
keeps 'one of which other words are made' core/a.c \
  "$c  if (strstr(failure->text, name)) /* words */\n"
keeps 'a test that reads one' core/test-a.c "$c  ok(strstr(failure->text, name));\n"
keeps 'the names of safe calls' core/a.c "$c  snprintf(a, b, c); dk_sleep(a); s.sleeps(b);\n"
keeps 'calls in texts' core/a.c "$c  puts(\"sprintf(x)\"); /* gets(x)\n  strcat(a, b) */\n"
for change in 'n++ < 3' '--n' 'n = 3' 'n += 3' 'n <<= 3'; do
  breaks assert "assert($change)" core/a.c "$c  assert($change);\n"
done
breaks assert 'an assert of two lines' core/a.c "$c  assert((p = f(\n    x)) != 0);\n"
keeps 'asserts that compare' core/a.c \
  "$c  assert(a == 1 && b != 2 &&\n  c <= 3 && d >= '='); n = 1;\n  _Static_assert(N == 1, \"\");\n"
breaks length '701 lines' core/a.c "$c$(awk 'BEGIN { while (i++ < 700) printf "int x;\\n" }')"
for word in 'TO''DO' 'FIX''ME' 'XX''X'; do
  breaks unfinished "$word" core/a.c "$c/* $word: later */\n"
  breaks unfinished "$word in a script" tests/a.sh "# $apache\n# $word: later\n"
done
keeps 'the TODO of TAP' core/a.c "${c}puts(\"ok 1 # TODO x\"); /* prints # TODO */\n"

# ---- names that many files share -----------------------------------------------------------------

# A backtrace, a profile and a finding of Valgrind show functions without their files.
shared_names() {
  ${AWK:-awk} 'FNR == 1 { before = "" }
    before ~ /^static [^(=]*$/ && match($0, /^[a-z_0-9]+\(/) {
      print substr($0, 1, RLENGTH - 1), FILENAME
    }
    { before = $0 }' "$@" | sort -u | cut -d' ' -f1 | uniq -c |
    ${AWK:-awk} '$1 > 3 { print $2 " names a function in " $1 " files, at most 3" }'
}
# shellcheck disable=SC2046
is "$(shared_names $(find core runner providers conformance -name '*.c' ! -name 'test-*' \
  ! -path '*/testing/*'))" '' 'names: no static function shares its name with three others'
mkdir -p "$scratch/names"
for file in a b c d; do
  printf 'static void\nbegin(void)\n{\n}\n\nstatic void\n%s_end(void)\n' $file \
    > "$scratch/names/$file.c"
done
is "$(shared_names "$scratch/names/"*.c)" 'begin names a function in 4 files, at most 3' \
  'names: a function of four files'
rm "$scratch/names/d.c"
is "$(shared_names "$scratch/names/"*.c)" '' 'names: three are let be'

done_testing
