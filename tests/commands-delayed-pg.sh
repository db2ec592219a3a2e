#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same on PostgreSQL.

. "${top_srcdir:-$(dirname "$0")/..}/tests/tap.sh"
[ -z "${SANITIZER_CFLAGS:-}" ] || skip_all 'sanitizers find libpq'\''s own'
[ -f "${PG_PLUGIN:-}" ] || skip_all 'the pg plugin was left out'
exec "$top_srcdir/tests/with-postgres" -q --tap "${SHELL:-sh}" "$top_srcdir/tests/commands-pg.sh" \
  commands-delayed.sh
