#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands that operate a store, on PostgreSQL: tests/commands.sh, or the script that is named,
# in a schema of its own, which is removed afterwards, because the server may be a user's.
# needs: tests/operate/serve

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers find libpq'\''s own'
[ -f "${PG_PLUGIN:-}" ] || skip_all 'the pg plugin was left out'
if [ $# -eq 0 ]; then
  exec "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$0" commands.sh
fi
schema=commands-$$
"${SHELL:-sh}" "$top_srcdir/tests/$1" "$PG_PLUGIN" "conninfo=$DURAKIT_PG" "schema=$schema"
code=$?
psql -q -X -c 'SET client_min_messages = warning' -c "DROP SCHEMA IF EXISTS \"$schema\" CASCADE"
exit $code
