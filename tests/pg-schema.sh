#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What SQL and C share in providers/pg: a number has one place and a name on both sides, and each
# value of a commit goes to the parameter of its name.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
pg=$top_srcdir/providers/pg
provider=$top_srcdir/core/include/durakit/provider.h

text() {
  LC_ALL=C ${AWK:-awk} -f "$pg/schema/text.awk" -v name=some_text "$provider" "$pg/answers.h" "$@"
}

# ---- numbers -------------------------------------------------------------------------------------

printf '%s\n' 'SELECT @DK_DUPLICATE@, @COMMIT_STOLEN@;' > "$scratch/good.sql"
like "$(text "$scratch/good.sql")" '"SELECT 202, 2;' 'a name becomes its number'
printf '%s\n' "ERRCODE = 'DK@DK_LOCK_LOST@'" > "$scratch/state.sql"
like "$(text "$scratch/state.sql")" "'DK201'" 'also within a word'
printf '%s\n' 'SELECT @DK_SOMETHING@;' > "$scratch/bad.sql"
text "$scratch/bad.sql" > "$scratch/out" 2> "$scratch/err"
is $? 1 'a name that no header has is refused'
like "$(cat "$scratch/err")" 'bad.sql:1: .* DK_SOMETHING' 'and it is reported which, and where'

# Statuses and SQLSTATEs of ours, and kinds and refusals, are never written as numbers.
bare=$(sed 's/--.*//' "$pg"/schema/*.sql |
  grep -E "'DK[0-9]|(status|kind|a|b) :?= [0-9]+;|SELECT [12][0-9][0-9]\\b")
is "$bare" '' 'the SQL has no such number without a name'
unnamed=$(grep -oE '[A-Z][A-Z_]+ = [0-9]' "$pg/answers.h" | while read -r name _; do
  grep -q "@$name@" "$pg"/schema/*.sql || echo "$name"
done)
is "$unnamed" '' 'all names of answers.h are used in the SQL'

# ---- parameters of a commit ----------------------------------------------------------------------

sed -n '/FUNCTION @schema@.commit_turn(/,/^RETURNS/p' "$pg/schema/commit.sql" |
  tr ',(' '\n\n' | sed -n 's/^ *\([pewmc]_[a-z_]*\) .*/\1/p' > "$scratch/parameters"
{ printf '%s\n' p_now p_lock_ms # operation_values
  sed -n 's/.*values_next(&*v, "\([a-z_]*\)").*/\1/p' "$pg/commit.c"; } > "$scratch/values"
sort "$scratch/parameters" > "$scratch/sorted-parameters"
sort "$scratch/values" > "$scratch/sorted-values"
is "$(wc -l < "$scratch/parameters" | tr -d ' ')" 30 'commit_turn has 30 parameters'
is "$(cat "$scratch/sorted-values")" "$(cat "$scratch/sorted-parameters")" \
  'a commit has a value for each of them, by its name'

done_testing
