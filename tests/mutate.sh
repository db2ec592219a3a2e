#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/mutate, which changes the sources of the plugins by rule: what each rule makes, on a sample
# of C and of SQL; what is left alone; the ids; and one mutant of the SQLite plugin from its source
# to the check that kills it.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null ||
  skip_all 'python3 from 3.9 on is not there'
scratch
tool=$top_srcdir/tests/mutate/mutate.py
mkdir -p "$scratch/providers/sqlite" "$scratch/providers/pg/schema"
: > "$scratch/none.def"

# made FILE UNIT:RULE: each mutant of this rule, as `before > after`.
mutants() { python3 "$tool" --root "$scratch" --equivalent "$scratch/none.def" --list "$@"; }
made() {
  mutants --only "$1:$2:*" 2>&1 | awk -F '\t' '{ print $3 " > " $4 }'
}

# makes FILE UNIT:RULE EXPECTED: each mutant of this rule, `before > after`.
makes() { is "$(made "$1" "$2")" "$3" "${2#*:} of ${1##*/}: $(echo "$3" | head -n 1)"; }

# ---- C -------------------------------------------------------------------------------------------

c=providers/sqlite/sample.c
cat > "$scratch/$c" <<'C'
#define LIMIT(n) ((n) < 7 && (n) > 0)
/* if (a < 1 && b) return 5; */
enum { MOST = 1024 };
struct row {
  int64_t at;
};

static int
conditions(int a, int b)
{
  if (a)
    return b;
  while (f(a) + b)
    a--;
  return b ? a : b;
}

static bool
terms(int a, int b)
{
  return !a || b < c;
}

static dk_status
steps(struct op *op)
{
  int64_t n = (uint32_t)op->n;
  assert(n < 7 && op->m == 3);
  TRY(first(op, n, 1));
  n = op->n + 1;
  if (op->failed)
    return DK_CORRUPT;
  printf("if (a < 1 && b) %d", n == 2); // n < 3
  return last(op);
}

static void
loops(int n)
{
  for (int i = 0; i < n; i++) {
    if (i == 3)
      break;
    else
      g(i);
  }
}
C

makes $c 'conditions:negated' 'if (a) > if (!(a))
while (f(a) + b) > while (!(f(a) + b))
return b ? a : b; > return !(b) ? a : b;'
makes $c 'terms:not-dropped' 'return !a || b < c; > return a || b < c;'
makes $c 'terms:relation' 'return !a || b < c; > return !a || b <= c;'
makes $c 'loops:relation' 'for (int i = 0; i < n; i++) { > for (int i = 0; i <= n; i++) {
if (i == 3) > if (i != 3)'
makes $c 'terms:logic' 'return !a || b < c; > return !a && b < c;'
makes $c 'terms:term' 'return !a || b < c; > return b < c;
return !a || b < c; > return !a ;'
makes $c 'conditions:statement' 'return b; > {}
a--; > {}'
makes $c 'steps:statement' 'TRY(first(op, n, 1)); > {}
n = op->n + 1; > {}
return DK_CORRUPT; > {}
printf("if (a < 1 && b) %d", n == 2); // n < 3 > {} // n < 3'
makes $c 'loops:statement' 'break; > {}
g(i); > {}'
makes $c 'steps:swapped' 'TRY(first(op, n, 1)); > TRY(first(n, op, 1));
TRY(first(op, n, 1)); > TRY(first(op, 1, n));'
makes $c 'steps:constant' 'TRY(first(op, n, 1)); > TRY(first(op, n, 2));'
makes $c 'steps:one-dropped' 'n = op->n + 1; > n = op->n ;'
makes $c 'MOST:constant' 'enum { MOST = 1024 }; > enum { MOST = 1025 };'
makes $c 'steps:status' 'TRY(first(op, n, 1)); > (void)(first(op, n, 1));
return DK_CORRUPT; > return DK_OK;
return last(op); > return ((void)(last(op)), DK_OK);'
makes $c 'row:type-narrowed' 'int64_t at; > int32_t at;'
makes $c 'steps:type-*' 'int64_t n = (uint32_t)op->n; > int32_t n = (uint32_t)op->n;
int64_t n = (uint32_t)op->n; > int64_t n = (uint16_t)op->n;
int64_t n = (uint32_t)op->n; > int64_t n = (uint64_t)op->n;'
is "$(mutants | cut -f 2 | grep -x -e 1 -e 2 -e 28)" '' \
  'lines of the preprocessor, comments and asserts are left alone'
is "$(mutants --only "$c:steps:*" | awk -F '\t' '$2 == 33' | cut -f 1)" "$c:steps:statement:4" \
  'so are strings, and the arguments of a format'

# ---- SQL in strings of C -------------------------------------------------------------------------

def=providers/sqlite/sample.def
cat > "$scratch/$def" <<'C'
/* SELECT 1 FROM a WHERE b=1 AND c=2 */
STATEMENT(FIND, "ACK-1, ACK-2",
          "SELECT a, coalesce(b, c) FROM x"
          " WHERE a=?1 AND b<7 OR c IS NULL ORDER BY a, b DESC LIMIT ?2")
STATEMENT(SET, "ACK-1", "UPDATE x SET a=?1, b=b+1 WHERE a BETWEEN 1 AND 'x=1'")
#define LISTED "a IN (SELECT b FROM y)"
STATEMENT(DROP, "ACK-1", "DELETE FROM x WHERE " LISTED " AND NOT b")
C

makes $def 'FIND:sql-term' '" WHERE a=?1 AND b<7 OR c IS NULL ORDER BY a, b DESC LIMIT ?2") > '"\
"'" WHERE (a=?1 OR true) AND b<7 OR c IS NULL ORDER BY a, b DESC LIMIT ?2")
" WHERE a=?1 AND b<7 OR c IS NULL ORDER BY a, b DESC LIMIT ?2") > '"\
"'" WHERE a=?1 AND (b<7 OR true) OR c IS NULL ORDER BY a, b DESC LIMIT ?2")
" WHERE a=?1 AND b<7 OR c IS NULL ORDER BY a, b DESC LIMIT ?2") > '"\
"'" WHERE a=?1 AND b<7 OR (c IS NULL AND false) ORDER BY a, b DESC LIMIT ?2")'
# after FILE UNIT:RULE: of each only what it is after the change.
after() { mutants --only "$1:$2:*" | cut -f 4; }
is "$(after $def 'FIND:sql-logic' | cut -d ' ' -f 4-8)" 'OR b<7 OR c IS
AND b<7 AND c IS' 'sql-logic: AND and OR'
is "$(after $def 'FIND:sql-relation' | cut -d ' ' -f 3-10)" 'a<>?1 AND b<7 OR c IS NULL ORDER
a=?1 AND b<=7 OR c IS NULL ORDER
a=?1 AND b<7 OR c IS NOT NULL' 'sql-relation: one further'
is "$(after $def 'FIND:sql-order-*' | sed 's/.*NULL//')" ' LIMIT ?2")
 ORDER BY a LIMIT ?2")
 ORDER BY a DESC, b LIMIT ?2")' 'sql-order: dropped, shortened, reversed'
is "$(after $def 'FIND:sql-limit' | sed 's/.*DESC//')" ' LIMIT -1-0*(?2)")' \
  'sql-limit: none, and the parameter stays'
is "$(after $def 'FIND:sql-constant' | cut -d ' ' -f 3-5)" 'a=?1 AND b<8' 'sql-constant: one more'
is "$(after $def 'FIND:sql-swapped')" '"SELECT a, coalesce(c, b) FROM x"' 'sql-swapped'
is "$(after $def 'SET:sql-column' | grep -o 'SET a.* WHERE')" 'SET a=iif(1, a, ?1), b=b+1 WHERE
SET a=?1, b=iif(1, b, b+1) WHERE' 'sql-column: one keeps its value'
is "$(after $def 'SET:sql-one-dropped' | grep -o 'b=b.* WHERE')" 'b=b WHERE' 'sql-one-dropped'
is "$(after $def 'SET:sql-logic')" '' 'the AND of BETWEEN is none'
is "$(after $def 'SET:sql-relation')" '' 'nor is = in SET and in a string a comparison'
is "$(after $def 'DROP:sql-term' | sed 's/.*WHERE//')" ' " "(" LISTED " OR true)" " AND NOT b")
 " LISTED " AND (NOT b OR true)")' 'sql-term: a macro, between two strings'
is "$(after $def 'DROP:sql-negated' | tail -n 1 | sed 's/.*LISTED//')" ' " AND b")' \
  'sql-negated: without NOT'
is "$(after $def 'LISTED:sql-negated')" '#define LISTED "a NOT IN (SELECT b FROM y)"' \
  'the SQL of a macro, under its name'
is "$(mutants --only "$def" | awk -F '\t' '$2 < 3')" '' 'a comment, and what clauses it serves'

# ---- SQL in files --------------------------------------------------------------------------------

sql=providers/pg/schema/sample.sql
cat > "$scratch/$sql" <<'SQL'
-- IF a = 1 THEN
CREATE TABLE @schema@.t(
  a bigint NOT NULL DEFAULT 0);
CREATE INDEX t_a ON @schema@.t(a, b);
CREATE FUNCTION @schema@.f(p_a bigint DEFAULT 7)
RETURNS bigint LANGUAGE plpgsql SET jit = off AS $$
DECLARE
  v_a bigint := 3;
BEGIN
  IF p_a IS DISTINCT FROM v_a THEN -- p_a = 2
    v_a := @schema@.g(p_a, v_a);
    UPDATE @schema@.t SET a = p_a, b = 'b = 1' WHERE a = ANY (p_b);
  END IF;
  PERFORM 1 FROM @schema@.t WHERE a > CASE WHEN c THEN 5 END LIMIT 1;
  RETURN v_a;
EXCEPTION WHEN unique_violation THEN
  RETURN 0;
END
$$;
SQL

makes $sql 't:sql-type-narrowed' 'a bigint NOT NULL DEFAULT 0); > a integer NOT NULL DEFAULT 0);'
makes $sql 't_a:sql-statement' 'CREATE INDEX t_a ON @schema@.t(a, b); > '
makes $sql 'f:sql-type-narrowed' 'v_a bigint := 3; > v_a integer := 3;'
makes $sql 'f:sql-statement' 'v_a := @schema@.g(p_a, v_a); > NULL;
UPDATE @schema@.t SET a = p_a, b = '\''b = 1'\'' WHERE a = ANY (p_b); > NULL;
PERFORM 1 FROM @schema@.t WHERE a > CASE WHEN c THEN 5 END LIMIT 1; > NULL;
RETURN v_a; > NULL;
RETURN 0; > NULL;'
is "$(after $sql 'f:sql-negated')" 'IF NOT (p_a IS DISTINCT FROM v_a) THEN -- p_a = 2
PERFORM 1 FROM @schema@.t WHERE NOT (a > CASE WHEN c THEN 5 END) LIMIT 1;
PERFORM 1 FROM @schema@.t WHERE a > CASE WHEN NOT (c) THEN 5 END LIMIT 1;' \
  'sql-negated: IF, WHERE and the condition of a CASE, but no exception'
is "$(after $sql 'f:sql-relation' | head -n 1)" 'IF p_a IS NOT DISTINCT FROM v_a THEN -- p_a = 2' \
  'sql-relation: IS DISTINCT FROM'
is "$(after $sql 'f:sql-swapped')" 'v_a := @schema@.g(v_a, p_a);' 'sql-swapped: no parameters'
is "$(after $sql 'f:sql-column' | cut -d ' ' -f 3-6)" 'SET b = '\''b
SET a = p_a' 'sql-column: dropped'
is "$(after $sql 'f:sql-limit' | grep -o 'END.*')" 'END ;' 'sql-limit: dropped'
is "$(after $sql 'f:sql-constant' | grep -c .)" 4 'sql-constant: neither a default nor SELECT 1'

# ---- ids -----------------------------------------------------------------------------------------

mutants | cut -f 1 > "$scratch/ids"
[ "$(wc -l < "$scratch/ids")" -gt 80 ]
ok $? 'there are as many as there should be'
is "$(sort "$scratch/ids" | uniq -d)" '' 'no two have the same id'
for file in $c $def $sql; do
  case $file in
    *.sql) echo "CREATE TABLE @schema@.above(a bigint NOT NULL DEFAULT 1);" ;;
    *.def) echo 'STATEMENT(ABOVE, "ACK-9", "SELECT a FROM b WHERE c=1 LIMIT 3")' ;;
    *) printf '/* above */\nstatic int above(int a)\n{\n  return a < 1 && g(a, 3);\n}\n' ;;
  esac | cat - "$scratch/$file" > "$scratch/above" && mv "$scratch/above" "$scratch/$file"
done
is "$(mutants | cut -f 1 | grep -v -i ':above:' | diff "$scratch/ids" -)" '' \
  'ids do not change with lines above'
is "$(mutants --sample 7 --seed 3 | cut -f 1)" "$(mutants --sample 7 --seed 3 | cut -f 1)" \
  'a seed chooses the same sample'
is "$(mutants --sample 7 --plugin sqlite | wc -l)" 7 'of so many'

first=$(head -n 1 "$scratch/ids")
printf '/* EQUIVALENT("%s", "a") */\nEQUIVALENT("%s",\n  "because ")\n' absent "$first" \
  > "$scratch/some.def"
run_ok 'an entry of a mutant that is there' python3 "$tool" --root "$scratch" --list \
  --equivalent "$scratch/some.def"
echo 'EQUIVALENT("providers/sqlite/absent.c:f:term:1", "because")' >> "$scratch/some.def"
python3 "$tool" --root "$scratch" --list --equivalent "$scratch/some.def" \
  > "$scratch/out" 2> "$scratch/err"
is $? 1 'an entry of one that is not there is refused'
like "$(cat "$scratch/err")" 'there is no such mutant: providers/sqlite/absent.c:f:term:1' 'by name'
run_ok 'equivalent.def names mutants that are there' python3 "$tool" --list --sample 0

# ---- one of the plugin ---------------------------------------------------------------------------

killed=providers/sqlite/work.c:delete_work:relation:1
if [ ! -f "$SQLITE_PLUGIN" ]; then
  skip 'a mutant of the SQLite plugin is killed' 'the plugin is left out of this build'
else
  mkdir -p "$scratch/mutants"
  run_mutant() {
    python3 "$tool" --out "$scratch/mutants" --plugin sqlite --only $killed --jobs 1 "$@" \
      > "$scratch/out" 2> "$scratch/err"
  }
  summary='killed 1 of 1 (100.0 %), 0 survived, 0 equivalent, 0 outside of the contract'
  run_mutant
  is $? 0 'a mutant is built and certified' || diag "$(cat "$scratch/err")"
  is "$(tail -n 1 "$scratch/out")" "$summary" 'it is killed' ||
    diag "$(cat "$scratch/out" "$scratch/err")"
  like "$(cat "$scratch/mutants/sqlite.jsonl")" \
    "\"id\": \"$killed\".*\"result\": \"killed\", \"verdict\": \"fail\", \"by\": \"[a-z]*/" \
    'with the check that did it'
  run_mutant
  is "$(cat "$scratch/err")" '' 'the second run takes the verdict of the first'
  is "$(tail -n 1 "$scratch/out")" "$summary" 'the same'

  echo "OUTSIDE(\"${killed%:*:*}:*\", \"because\")" > "$scratch/some.def"
  run_mutant --equivalent "$scratch/some.def"
  is "$(tail -n 1 "$scratch/out")" \
    'killed 0 of 0 (0.0 %), 0 survived, 0 equivalent, 1 outside of the contract' \
    'an entry with * is of all that fit'
fi

done_testing
