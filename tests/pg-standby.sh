#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A real standby beside the server of tests/with-postgres, for providers/pg/test-standby: it reads
# there, and continues there when the primary has ended and the standby was promoted.
# needs: providers/pg/test-standby providers/pg/test-takeover

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
. "$top_srcdir/tests/standby.sh"
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers find libpq'\''s own'
if [ $# -eq 0 ]; then
  exec "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$0" '{kit}'
fi
standby_make
DURAKIT_PG_STANDBY="host=$new_host port=$new_port dbname=$PGDATABASE user=$PGUSER"
DURAKIT_PG_BOTH=$both
DURAKIT_PG_PROMOTE=$promote
export DURAKIT_PG_STANDBY DURAKIT_PG_BOTH DURAKIT_PG_PROMOTE
"$top_builddir/providers/pg/${TEST_STANDBY:-test-standby}"
