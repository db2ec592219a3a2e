#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/operating.md, what it shows of PostgreSQL: typed beside a server of its own.  The rest is in
# operating.sh.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -f "${PG_PLUGIN:-}" ] || skip_all 'the pg plugin was left out'
# The roles of the page are made, so the server must be ours alone.
unset DURAKIT_PG
if [ $# -eq 0 ]; then
  exec "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$0" '{kit}'
fi
scratch
. "$top_srcdir/tests/typed.sh"
cp "$PG_PLUGIN" "$scratch/plugins/pg.so"
page=$top_srcdir/docs/operating.md
cd "$scratch" || exit 99
also() { sed -e 's/(the server of [^)]*)/(SERVER)/'; }

mkdir hi
cp "$top_srcdir"/examples/runtime/* hi
run_ok 'the example is built' make -C hi
follow_document "$page" '|PostgreSQL|'
[ "$followed" -ge 25 ]
ok $? 'the page shows commands'
cat step.*.out > said
like "$(cat said)" '^ completed *| *2$' 'instances are counted by status'
like "$(cat said)" '"kind":"completed".*Hello, world!' 'the reader sees a history as text'
like "$(cat said)" '^hello-Ada is completed' 'the worker works'
is "$(tail -n 1 "$(ls -t step.*.out | xargs grep -l '^hello-world' | head -n 1)")" \
  'hello-world is completed: Hello, world!' 'a restored store continues'

# ask ROLE SQL: the server's answer, in one line.
ask() { psql -X -A -t -U "$1" -d work -c "$2" 2>&1 | paste -sd ' ' -; }
like "$(ask reader 'DELETE FROM durakit.work')" 'permission denied' 'a reader changes nothing'
like "$(ask reader "SELECT nextval('durakit.number')")" 'permission denied' 'nor draws a number'
like "$(ask worker 'DROP TABLE durakit.work')" 'must be owner' 'who works removes nothing'
like "$(ask worker 'CREATE TABLE durakit.mine()')" 'permission denied' 'and makes nothing'

# The rights by default are those that a migration needs, which makes tables anew.
is "$(ask app 'CREATE TABLE durakit.probe(a int); SELECT 1' > /dev/null
     ask reader 'SELECT count(*) FROM durakit.probe')" 0 'a new table can be read'
is "$(ask worker 'INSERT INTO durakit.probe VALUES (1)')" 'INSERT 0 1' 'and worked on'
[ "$(psql -X -A -t -U app -d restored -c 'SELECT store FROM durakit.meta')" != \
  "$(ask app 'SELECT store FROM durakit.meta')" ]
ok $? 'two copies have two numbers'

done_testing
