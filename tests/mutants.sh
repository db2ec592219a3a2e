#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each mutant has its condition in the model, and each check has a mutant or a plugin of the zoo.
# That the check catches it is proved by durakit selftest, which takes minutes; this takes a moment.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
scratch
cd "$top_srcdir" || exit 99
areas=conformance/contract/areas
zoo=conformance/fixtures/zoo.def

# without_condition DEF...: mutants that the model does not know.
cat conformance/model/*.c | grep -o 'M_[A-Z0-9_]*' | sort -u > "$scratch/conditions"
without_condition() {
  sed -n 's/^MUTANT(\(M_[A-Z0-9_]*\), "\([^"]*\)".*/\1 \2/p' "$@" |
    while read -r name id; do
      grep -q -x -e "$name" "$scratch/conditions" || echo "$id: no condition names $name"
    done
}

# without_mutant DEF...: checks that neither a mutant in these files nor the zoo is for.
without_mutant() {
  cat "$@" "$zoo" | grep -o '"[a-z]*/[a-z0-9-]*"' | sort -u > "$scratch/named"
  sed -n 's,^CHECK(\([a-z]*\)\, [a-z0-9_]*\, "\([^"]*\)".*,\1/\2,p' "$@" |
    while read -r id; do
      grep -q -x -e "\"$id\"" "$scratch/named" || echo "$id: no mutant and no plugin of the zoo"
    done
}

[ "$(cat $areas/*.def | grep -c "^MUTANT(")" -gt 500 ]
ok $? 'the mutants are read'
is "$(without_condition $areas/*.def)" '' 'each mutant has its condition in conformance/model'
is "$(without_mutant $areas/*.def)" '' 'each check has a mutant, or a plugin of the zoo'

cat > "$scratch/bad.def" <<'DEF'
CHECK(hist, large, "large", "HIST-5", 0, 0, 0, "has one")
CHECK(hist, lonely, "lonely", "HIST-5", 0, 0, 0, "has none")
MUTANT(M_HIST_NOWHERE, "hist/nowhere", "HIST-5",
       "hist/large", "in no model")
DEF
is "$(without_condition "$scratch/bad.def")" 'hist/nowhere: no condition names M_HIST_NOWHERE' \
  'a mutant without a condition would be found'
is "$(without_mutant "$scratch/bad.def")" 'hist/lonely: no mutant and no plugin of the zoo' \
  'so would a check without a mutant'

done_testing
